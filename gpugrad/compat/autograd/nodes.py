"""Nodes of autograd's graph, which has no counterpart here."""

from __future__ import annotations

from typing import Any

GRAPH = (
    "gpugrad.compat.autograd has no graph of nodes: see what a tape has recorded by "
    "gg.GradientTape.explain, or trace a function by gg.function."
)


class Node:
    """A node of autograd's graph.

    Raises:
        NotImplementedError: when one is made.
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        raise NotImplementedError(GRAPH)

    @classmethod
    def new_root(cls, *args: Any, **keywords: Any) -> Node:
        """A node without parents, which cannot be made either."""
        return cls(*args, **keywords)


class VJPNode(Node):
    """A node of reverse mode."""


class JVPNode(Node):
    """A node of forward mode."""


class SparseObject(Node):
    """A gradient of which most elements are 0."""
