"""Names of autograd's tracer. Its graph of nodes has no counterpart here: gpugrad has a tape."""

# ruff: noqa: F401
from __future__ import annotations

from typing import Any

from gpugrad.compat.autograd.boxes import Box, getval, isbox
from gpugrad.compat.autograd.core import notrace_primitive, primitive
from gpugrad.compat.autograd.nodes import GRAPH, JVPNode, Node, SparseObject, VJPNode
from gpugrad.compat.names import forwarding


class _TraceStack:
    def new_trace(self) -> Any:
        raise NotImplementedError(GRAPH)


trace_stack = _TraceStack()


def trace(*args: Any, **keywords: Any) -> Any:
    """Run a function on nodes.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(GRAPH)


new_box = trace


def register_notrace(trace_type: Any, primitive_fun: Any) -> None:
    """Say that a primitive has no derivative; one without rules has none anyway."""


__getattr__, __dir__ = forwarding(__name__, own=globals())
