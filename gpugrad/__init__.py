"""gpugrad: automatic differentiation for CuPy and NumPy arrays.

`GradientTape` records what is done to tensors and differentiates it, to any order; the same
program runs on an NVIDIA GPU and on a CPU. The names of the ops are the array API's, those of
the tape TensorFlow's, those of the transforms JAX's.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as _np

from gpugrad import errors
from gpugrad import methods as _methods  # noqa: F401  # hangs the ops on Tensor
from gpugrad.backend import BFLOAT16 as bfloat16
from gpugrad.backend import Device, device, devices, set_device
from gpugrad.errors import OutOfMemoryError
from gpugrad.forward import ForwardAccumulator
from gpugrad.graph import Graph, gradients
from gpugrad.op import OPS, Op, elementwise, no_gradient, op
from gpugrad.ops import random
from gpugrad.ops.activations import (
    elu,
    gelu,
    hardtanh,
    leaky_relu,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    softsign,
)
from gpugrad.ops.arranging import (
    diagonal,
    diagonal_scatter,
    flip,
    pad,
    repeat,
    roll,
    tile,
    tril,
    triu,
)
from gpugrad.ops.comparison import (
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clip,
    equal,
    floor,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    not_equal,
    signbit,
    trunc,
    where,
)
from gpugrad.ops.comparison import (
    round_ as round,
)
from gpugrad.ops.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    to_device,
    zeros,
    zeros_like,
)
from gpugrad.ops.cumulative import (
    cumulative_prod,
    cumulative_sum,
    recurrence,
)
from gpugrad.ops.einsum import (
    einsum,
)
from gpugrad.ops.elementwise import (
    abs_ as abs,
)
from gpugrad.ops.elementwise import (
    acos,
    acosh,
    add,
    angle,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    conj,
    copysign,
    cos,
    cosh,
    deg2rad,
    divide,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    floor_divide,
    fmod,
    hypot,
    imag,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    masked_divide,
    masked_multiply,
    multiply,
    negative,
    positive,
    power,
    rad2deg,
    real,
    reciprocal,
    remainder,
    rsqrt,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    squared_difference,
    stop_gradient,
    subtract,
    tan,
    tanh,
)
from gpugrad.ops.elementwise import (
    complex_ as complex,
)
from gpugrad.ops.gathering import (
    gather,
    nonzero,
    put_along_axis,
    scatter_rows,
    take,
    take_along_axis,
)
from gpugrad.ops.indexing import (
    getitem,
    index_add,
    index_fill,
    index_put,
    last_writes,
    scatter_at,
    setitem,
)
from gpugrad.ops.joining import (
    broadcast_arrays,
    concat,
    meshgrid,
    split,
    stack,
    unstack,
)
from gpugrad.ops.linalg import (
    adjugate,
    cholesky,
    det,
    inv,
    matrix_power,
    slogdet,
    solve,
    solve_triangular,
)
from gpugrad.ops.nn import (
    binary_cross_entropy_with_logits,
    log_softmax,
    mse,
    one_hot,
    softmax,
    softmax_cross_entropy,
    softmax_grad,
    sparse_softmax_cross_entropy,
    sparse_softmax_cross_entropy_grad,
)
from gpugrad.ops.norms import (
    matrix_norm,
    vector_norm,
)
from gpugrad.ops.products import (
    cross,
    dot,
    kron,
    matmul,
    outer,
    tensordot,
    trace,
    vecdot,
)
from gpugrad.ops.random import (
    set_seed,
)
from gpugrad.ops.reduction import (
    all_ as all,
)
from gpugrad.ops.reduction import (
    any_ as any,
)
from gpugrad.ops.reduction import (
    argmax,
    argmin,
    count_nonzero,
    logsumexp,
    mean,
    prod,
    std,
    var,
)
from gpugrad.ops.reduction import (
    max_ as max,
)
from gpugrad.ops.reduction import (
    min_ as min,
)
from gpugrad.ops.reduction import (
    sum_ as sum,
)
from gpugrad.ops.shaping import (
    astype,
    broadcast_to,
    expand_dims,
    flatten,
    matrix_transpose,
    moveaxis,
    permute_dims,
    ravel,
    reshape,
    squeeze,
    sum_to,
    swapaxes,
)
from gpugrad.ops.sorting import (
    argsort,
    searchsorted,
    sort,
    top_k,
)
from gpugrad.recorder import AggregationMethod, UnconnectedGradients
from gpugrad.tape import GradientTape
from gpugrad.tensor import IndexedSlices, Tensor, constant, convert_to_tensor
from gpugrad.transforms import (
    custom_gradient,
    grad,
    grad_pass_through,
    hessian,
    hvp,
    jacobian,
    jvp,
    recompute_grad,
    value_and_grad,
    vjp,
)
from gpugrad.variable import Variable

if TYPE_CHECKING:
    from gpugrad import checkpoint, nn, optim, testing

__version__ = "0.1.0"

bool = _np.dtype("bool")
int8 = _np.dtype("int8")
int16 = _np.dtype("int16")
int32 = _np.dtype("int32")
int64 = _np.dtype("int64")
uint8 = _np.dtype("uint8")
uint16 = _np.dtype("uint16")
uint32 = _np.dtype("uint32")
uint64 = _np.dtype("uint64")
float16 = _np.dtype("float16")
float32 = _np.dtype("float32")
float64 = _np.dtype("float64")
complex64 = _np.dtype("complex64")
complex128 = _np.dtype("complex128")
e, inf, nan, newaxis, pi = _np.e, _np.inf, _np.nan, None, _np.pi

_KNOWN_AS = {  # by NumPy, TensorFlow or torch
    "array": "asarray", "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arctan2": "atan2",
    "cast": "astype", "concatenate": "concat", "cumprod": "cumulative_prod",
    "cumsum": "cumulative_sum", "identity": "positive", "norm": "vector_norm", "pow": "power",
    "reduce_max": "max", "reduce_mean": "mean", "reduce_min": "min", "reduce_prod": "prod",
    "reduce_sum": "sum", "transpose": "permute_dims",
}  # fmt: skip

_LATER = ("checkpoint", "nn", "optim", "testing")  # imported when first asked for


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return importlib.import_module(f"gpugrad.{name}")
    if name in OPS:  # one that a user has declared
        return OPS[name].eager
    hint = f" It is called gg.{_KNOWN_AS[name]} here." if name in _KNOWN_AS else ""
    raise AttributeError(f"module 'gpugrad' has no attribute {name!r}.{hint}")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "OPS",
    "AggregationMethod",
    "Device",
    "ForwardAccumulator",
    "GradientTape",
    "Graph",
    "IndexedSlices",
    "Op",
    "OutOfMemoryError",
    "Tensor",
    "UnconnectedGradients",
    "Variable",
    "abs",
    "acos",
    "acosh",
    "add",
    "adjugate",
    "all",
    "angle",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bfloat16",
    "binary_cross_entropy_with_logits",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "cbrt",
    "ceil",
    "checkpoint",
    "cholesky",
    "clip",
    "complex",
    "complex64",
    "complex128",
    "concat",
    "conj",
    "constant",
    "convert_to_tensor",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cross",
    "cumulative_prod",
    "cumulative_sum",
    "custom_gradient",
    "deg2rad",
    "det",
    "device",
    "devices",
    "diagonal",
    "diagonal_scatter",
    "divide",
    "dot",
    "e",
    "einsum",
    "elementwise",
    "elu",
    "empty",
    "empty_like",
    "equal",
    "erf",
    "erfc",
    "errors",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "eye",
    "flatten",
    "flip",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "fmod",
    "full",
    "full_like",
    "gather",
    "gelu",
    "getitem",
    "grad",
    "grad_pass_through",
    "gradients",
    "greater",
    "greater_equal",
    "hardtanh",
    "hessian",
    "hvp",
    "hypot",
    "imag",
    "index_add",
    "index_fill",
    "index_put",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "inv",
    "isfinite",
    "isinf",
    "isnan",
    "jacobian",
    "jvp",
    "kron",
    "last_writes",
    "leaky_relu",
    "less",
    "less_equal",
    "linspace",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_sigmoid",
    "log_softmax",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "masked_divide",
    "masked_multiply",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "mish",
    "moveaxis",
    "mse",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nn",
    "no_gradient",
    "nonzero",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "op",
    "optim",
    "outer",
    "pad",
    "permute_dims",
    "pi",
    "positive",
    "power",
    "prod",
    "put_along_axis",
    "rad2deg",
    "random",
    "ravel",
    "real",
    "reciprocal",
    "recompute_grad",
    "recurrence",
    "relu",
    "relu6",
    "remainder",
    "repeat",
    "reshape",
    "roll",
    "round",
    "rsqrt",
    "scatter_at",
    "scatter_rows",
    "searchsorted",
    "selu",
    "set_device",
    "set_seed",
    "setitem",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinh",
    "slogdet",
    "softmax",
    "softmax_cross_entropy",
    "softmax_grad",
    "softplus",
    "softsign",
    "solve",
    "solve_triangular",
    "sort",
    "sparse_softmax_cross_entropy",
    "sparse_softmax_cross_entropy_grad",
    "split",
    "sqrt",
    "square",
    "squared_difference",
    "squeeze",
    "stack",
    "std",
    "stop_gradient",
    "subtract",
    "sum",
    "sum_to",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "testing",
    "tile",
    "to_device",
    "top_k",
    "trace",
    "tril",
    "triu",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unstack",
    "value_and_grad",
    "var",
    "vecdot",
    "vector_norm",
    "vjp",
    "where",
    "zeros",
    "zeros_like",
]
