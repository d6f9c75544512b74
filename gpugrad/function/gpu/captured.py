"""Which steps the capture of a stream can hold.

A graph can hold launches, and memory of the pool that it keeps. It cannot hold what waits for a
result (an index that is checked, a shape that depends on values), nor cuBLAS, cuSOLVER and cuRAND,
which CuPy refuses to capture. That is found when it is captured, and left out then. Two things
would be captured and be wrong in later launches: an array that comes from the host, of which only
the address is captured, and an FFT, whose plan and work area are CuPy's, which may drop them. So an
op is here only if its forward does neither, on CuPy 14; the tests ask a stand-in that refuses both.
"""

from __future__ import annotations

from gpugrad.function.passes.pieces import AT_ONCE
from gpugrad.kernels.libraries import cublaslt
from gpugrad.trace.program import Step, Value, takes_arguments

__all__ = ["can_be_captured"]

VIEWS = frozenset((
    "broadcast_to", "diagonal", "expand_dims", "matrix_transpose", "moveaxis", "permute_dims",
    "reshape", "squeeze", "swapaxes",
))  # fmt: skip
"""Ops that launch nothing, or a copy at most; of an array with no elements a view is not known."""

LAUNCHES = frozenset((
    # element by element
    "angle", "around", "astype", "celu", "elu", "exponential_remainder", "frexp", "gelu",
    "hardshrink", "hardtanh", "isclose", "lambertw", "leaky_relu", "modf", "mse_loss", "packbits",
    "round", "shichi", "sici", "softplus", "softshrink", "spacing", "spherical_jn", "threshold",
    "unpackbits",
    # reductions; CuPy's own and CUB's take what memory they need from the pool
    "all", "any", "argmax", "argmin", "count_nonzero", "masked_softmax", "max", "mean", "min",
    "nanmax", "nanmin", "prod", "std", "sum", "sum_of_products", "sum_to", "vector_norm",
    # copies
    "class_scores", "ctc_losses", "ctc_states", "diagonal_scatter", "flip", "one_hot",
    "pad_constant", "repeat", "resample", "roll", "segment_rows", "tile", "tril", "triu",
    "windows",
    # Thrust's sorts, under a policy that does not wait for the stream
    "argsort", "digitize", "order_statistics", "searchsorted", "sort", "sparsemax", "top_k",
))  # fmt: skip
"""Ops of which CuPy makes launches, and nothing else."""

INDEXED = frozenset(("getitem", "index_add", "index_fill", "index_put", "last_writes"))
"""Ops that launch, where their index is the same in every run."""


def can_be_captured(step: Step) -> bool:
    """Whether an op's own function, on bare arrays, is launches on memory that can be fixed."""
    op = step.op
    if op.name in ("einsum", "matmul", "vecdot"):  # CuPy's own product cannot be captured
        return cublaslt.binding() is not None
    if op.cuda is not None or op.name in VIEWS or all(v.view for v in step.outs):
        return True
    if op.name in ("concat", "stack"):
        return len(step.args[0]) <= AT_ONCE
    if op.name in INDEXED:  # which check an index that is data
        return not takes_arguments(step.params["index"])
    if op.kind == "elementwise":
        return op.home.startswith("gpugrad.")  # others may bring arrays from the host
    arrays = all(isinstance(a, Value) or a is None for a in step.args)  # no number to be sent
    return op.name in LAUNCHES and arrays
