"""Names of autograd's tracer. Its graph of nodes has no counterpart here: gpugrad has a tape."""

# ruff: noqa: F401
from __future__ import annotations

from typing import Any

from gpugrad.compat.autograd.boxes import Box, getval, isbox
from gpugrad.compat.autograd.core import notrace_primitive, primitive

_GRAPH = (
    "gpugrad.compat.autograd has no graph of nodes: see what a tape has recorded by "
    "gg.GradientTape.explain, or trace a function by gg.function."
)


class Node:
    """A node of autograd's graph.

    Raises:
        NotImplementedError: when one is made.
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        raise NotImplementedError(_GRAPH)

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


class _TraceStack:
    def new_trace(self) -> Any:
        raise NotImplementedError(_GRAPH)


trace_stack = _TraceStack()


def trace(*args: Any, **keywords: Any) -> Any:
    """Run a function on nodes.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(_GRAPH)


new_box = trace


def register_notrace(trace_type: Any, primitive_fun: Any) -> None:
    """Say that a primitive has no derivative; one without rules has none anyway."""
