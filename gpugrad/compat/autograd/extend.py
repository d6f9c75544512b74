"""The names for extending autograd."""

# ruff: noqa: F401
from gpugrad.compat.autograd.boxes import Box
from gpugrad.compat.autograd.core import (
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    notrace_primitive,
    primitive,
)
from gpugrad.compat.autograd.nodes import JVPNode, SparseObject, VJPNode
from gpugrad.compat.autograd.tracer import register_notrace
from gpugrad.compat.autograd.vector_spaces import VSpace, vspace
from gpugrad.compat.names import forwarding

__getattr__, __dir__ = forwarding(__name__, own=globals())
