"""gpugrad: automatic differentiation for CuPy and NumPy arrays.

`GradientTape` records operations on tensors and differentiates them, to any order; the same program
runs on an NVIDIA GPU and on a CPU. Ops have the names of the array API and NumPy, the tape those of
TensorFlow, and the transforms those of JAX.
"""

# fmt: off
# ruff: noqa: I001  # what belongs together stands together
from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import numpy as _np

from gpugrad import debug, errors
from gpugrad.array_api import methods as _methods  # noqa: F401  # hangs the ops on Tensor
from gpugrad import ops as _ops  # noqa: F401  # declares every op
from gpugrad.core.backend import BFLOAT16 as bfloat16
from gpugrad.core.devices import Device, device, devices, set_device
from gpugrad.transforms.custom import custom_gradient, custom_jvp, grad_pass_through
from gpugrad.core.dlpack import from_dlpack
from gpugrad.core.dtypes import can_cast, finfo, iinfo, isdtype, promote_types, result_type
from gpugrad.core.known_as import missing as _missing
from gpugrad.errors import OutOfMemoryError
from gpugrad.autodiff.forward import ForwardAccumulator
from gpugrad.autodiff.graph import Graph, gradients
from gpugrad.array_api.info import VERSION as __array_api_version__
from gpugrad.array_api.info import __array_namespace_info__
from gpugrad.array_api.numpy_writes import (
    copyto, fill_diagonal, place, put, put_along_axis, putmask,
)
from gpugrad.core.settings import (
    deterministic, get_matmul_precision, set_deterministic, set_matmul_precision,
)
from gpugrad.registry.mixed_precision import mixed_precision
from gpugrad.registry.record import OPS, Op, elementwise, no_gradient, op

from gpugrad.ops.arrays.apply import apply_along_axis, apply_over_axes, einsum_path
from gpugrad.ops.arrays.arrange import (
    flip, roll, tile, repeat, tril, triu, diagonal, diagonal_scatter, diag_embed,
)
from gpugrad.ops.math.bits import packbits, unpackbits
from gpugrad.ops.math.comparison import (
    floor, ceil, trunc, round_ as round, equal, not_equal, less, less_equal, greater,
    greater_equal, maximum, minimum, where_ as where, logical_and, logical_or,
    logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift,
    bitwise_right_shift, bitwise_invert, isfinite, isinf, isnan, signbit, clip,
)
from gpugrad.ops.arrays.creation import (
    zeros, ones, empty, full, zeros_like, ones_like, empty_like, full_like, arange, linspace,
    eye, array, asarray, to_device,
)
from gpugrad.ops.math.cumulative import (
    cumulative_sum, cumulative_prod, cumsum, cumprod, recurrence, cumulative_max, cumulative_min,
    cumulative_logsumexp,
)
from gpugrad.ops.math.differences import diff, ediff1d, gradient, trapezoid, cumulative_trapezoid
from gpugrad.ops.math.einsum import einsum
from gpugrad.ops.math.arithmetic import (
    add, subtract, multiply, masked_multiply, divide, masked_divide, floor_divide, remainder,
    fmod, negative, positive, abs_ as abs, sign, power, square, sqrt, rsqrt, cbrt, reciprocal,
    hypot, copysign, stop_gradient, squared_difference,
)
from gpugrad.ops.math.complex import real, imag, conj, complex_ as complex
from gpugrad.ops.math.transcendental import (
    exp, exp2, expm1, log, log2, log10, log1p, logaddexp, sin, cos, tan, asin, acos, atan, atan2,
    sinh, cosh, tanh, asinh, acosh, atanh, deg2rad, rad2deg, erf, erfc,
)
from gpugrad.ops.arrays.gather import (
    take, gather, scatter_rows, take_along_axis, scatter_along_axis, nonzero,
)
from gpugrad.ops.arrays.grids import (
    tri, ix_, indices, fromfunction, logspace, geomspace, bartlett, hanning, hamming, blackman,
    kaiser,
)
from gpugrad.ops.math.histograms import bincount, digitize, histogram_bin_edges, histogram
from gpugrad.ops.arrays.index_numpy import (
    broadcast_shapes, tril_indices, triu_indices, tril_indices_from, triu_indices_from,
    diag_indices, diag_indices_from, unravel_index, ravel_multi_index,
)
from gpugrad.ops.arrays.indexing import (
    getitem, scatter_at, index_add, index_fill, last_writes, index_put, setitem,
)
from gpugrad.ops.arrays.inspect import (
    allclose, array_equal, array_equiv, ndim, shape, size, isscalar, iscomplexobj, isrealobj,
)
from gpugrad.ops.arrays.join import concat, stack, unstack, split, broadcast_arrays, meshgrid
from gpugrad.ops.math.nan_reductions import (
    nansum, nanprod, nancumsum, nancumprod, nanmean, nanvar, nanstd, nanmax, nanmin, nanargmax,
    nanargmin,
)
from gpugrad.ops.math.numeric import (
    fabs, fmax, fmin, heaviside, lerp, nan_to_num, divmod_ as divmod, modf, frexp, ldexp,
    nextafter, spacing, rint, fix, around, isposinf, isneginf, isreal, iscomplex, isclose, gcd,
    lcm, bitwise_count, float_power, real_if_close, angle,
)
from gpugrad.ops.arrays.pad import pad
from gpugrad.ops.math.polynomials import (
    polyadd, polysub, polymul, polydiv, polyint, poly, polyfit, roots, polyval, polyder,
)
from gpugrad.ops.math.products import (
    matmul, vecdot, dot, matvec, vecmat, inner, vdot,
)
from gpugrad.ops.math.tensor_products import tensordot, outer, kron, cross, trace
from gpugrad.ops.math.quantiles import (
    quantile, percentile, median, nanquantile, nanpercentile, nanmedian,
)
from gpugrad.ops.arrays.shape_numpy import (
    transpose, rollaxis, atleast_1d, atleast_2d, atleast_3d, flipud, fliplr, rot90, diag,
    diagflat,
)
from gpugrad.ops.math.reduction import (
    sum_ as sum, mean, var, std, max_ as max, min_ as min, prod, logsumexp, argmax, argmin,
    any_ as any, all_ as all, count_nonzero,
)
from gpugrad.ops.arrays.resize import resize, append, delete, insert, trim_zeros
from gpugrad.ops.arrays.segments import (
    segment_sum, segment_mean, segment_sqrt_n, segment_max, segment_min, segment_prod,
)
from gpugrad.ops.arrays.select import (
    compress, extract, select, piecewise, choose, argwhere, flatnonzero,
)
from gpugrad.ops.arrays.sets import (
    unique_all, unique_counts, unique_inverse, unique_values, unique, isin, union1d,
    intersect1d, setdiff1d, setxor1d,
)
from gpugrad.ops.arrays.shape import (
    reshape, ravel, flatten, expand_dims, squeeze, permute_dims, matrix_transpose, moveaxis,
    swapaxes, broadcast_to, sum_to, astype,
)
from gpugrad.ops.math.signal import convolve, correlate, interp, unwrap
from gpugrad.ops.arrays.sort import argsort, sort, searchsorted, top_k
from gpugrad.ops.arrays.join_numpy import (
    concatenate, hstack, vstack, dstack, column_stack, block, array_split, hsplit, vsplit,
    dsplit,
)
from gpugrad.ops.math.statistics import ptp, average, cov, corrcoef
from gpugrad.ops.arrays.windows import sliding_window_view
from gpugrad.transforms.recompute import recompute_grad
from gpugrad.autodiff.gradients import AggregationMethod, UnconnectedGradients
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.convert import constant, convert_to_tensor
from gpugrad.core.tensor import Tensor
from gpugrad.transforms.derivatives import grad, hvp, jvp, linearize, value_and_grad, vjp
from gpugrad.transforms.jacobians import batch_jacobian, hessian, jacobian
from gpugrad.transforms.implicit import implicit_diff
from gpugrad.registry.from_cuda import elementwise_kernel, raw_kernel
from gpugrad.core.variable import Variable
from gpugrad.transforms.vmap import vectorized_map, vmap

__version__ = "0.1.0"

bool = _np.dtype("bool")
int8, int16, int32, int64 = (_np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (_np.dtype(f"float{n}") for n in (16, 32, 64))
complex64, complex128 = _np.dtype("complex64"), _np.dtype("complex128")
e, inf, nan, newaxis, pi = _np.e, _np.inf, _np.nan, None, _np.pi

# NumPy's other names
absolute = abs
amax, amin = max, min
arccos, arccosh, arcsin, arcsinh = acos, acosh, asin, asinh
arctan, arctan2, arctanh = atan, atan2, atanh
bitwise_not = invert = bitwise_invert
conjugate = conj
degrees, radians = rad2deg, deg2rad
left_shift, right_shift = bitwise_left_shift, bitwise_right_shift
mod = remainder
pow = power
true_divide = divide

_NAMESPACES = (
    "bridge", "checkpoint", "cuda", "data", "distributed", "fft", "linalg", "nn", "numpy", "optim",
    "random", "scipy", "special", "testing", "train", "typing",
)
_ELSEWHERE = {
    "about": "kernels.about", "cond": "function.control.api", "lib": "numpy", "mse": "nn",
    "prefetch_to_device": "cuda", "profile": "registry.profile",
    "scan": "function.control.api", "set_seed": "random",
    "while_loop": "function.control.api",
}


def __getattr__(name: str) -> Any:
    """A namespace, or an op: those that are not imported yet, or not named here."""
    if name in _NAMESPACES:
        return importlib.import_module(f"gpugrad.{name}")
    if name in _ELSEWHERE:
        value = getattr(importlib.import_module(f"gpugrad.{_ELSEWHERE[name]}"), name)
    elif name in OPS:
        value = OPS[name].eager
    else:
        value = None
    if value is not None:
        if name in __all__:  # a user's op may be forgotten again
            globals()[name] = value
        return value
    raise _missing("gpugrad", name, OPS)


def __dir__() -> list[str]:
    """The public names, and the namespaces that ``from gpugrad import *`` does not import."""
    return sorted({*__all__, *_NAMESPACES})


class _Package(types.ModuleType):
    """gpugrad itself: `function` is the decorator even when the folder of that name is loaded."""

    @property
    def function(self) -> Any:
        return importlib.import_module("gpugrad.function").function

    @function.setter
    def function(self, module: types.ModuleType) -> None:
        """The import of the folder sets it."""

    def __reduce__(self) -> Any:
        """By name, as cloudpickle does with modules of the plain type."""
        return importlib.import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package


__all__ = [
    "OPS", "AggregationMethod", "Device", "ForwardAccumulator", "GradientTape", "Graph",
    "IndexedSlices", "Op", "OutOfMemoryError", "Tensor", "UnconnectedGradients", "Variable",
    "__array_api_version__", "__array_namespace_info__", "about", "abs", "absolute", "acos",
    "acosh", "add", "adjugate", "all", "allclose", "amax", "amin", "angle", "any", "append",
    "apply_along_axis", "apply_over_axes", "arange", "arccos", "arccosh", "arcsin", "arcsinh",
    "arctan", "arctan2", "arctanh", "argmax", "argmin", "argpartition", "argsort", "argwhere",
    "around", "array", "array_equal", "array_equiv", "array_split", "asarray", "asin", "asinh",
    "astype", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "average",
    "bartlett", "batch_jacobian", "bfloat16", "binary_cross_entropy_with_logits", "bincount",
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman", "block", "bool",
    "bridge", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "cbrt", "ceil",
    "checkpoint", "cholesky", "choose", "clip", "column_stack", "complex", "complex64",
    "complex128", "compress", "concat", "concatenate", "cond", "conj", "conjugate", "constant",
    "convert_to_tensor", "convolve", "copysign", "copyto", "corrcoef", "correlate", "cos", "cosh",
    "count_nonzero", "cov", "cross", "cuda", "cumprod", "cumsum", "cumulative_logsumexp",
    "cumulative_max", "cumulative_min", "cumulative_prod", "cumulative_sum", "cumulative_trapezoid",
    "custom_gradient", "custom_jvp", "debug", "deg2rad", "degrees", "delete", "det",
    "deterministic", "device", "devices", "diag", "diag_embed", "diag_indices", "diag_indices_from",
    "diagflat", "diagonal", "diagonal_scatter", "diff", "digitize", "divide", "divmod", "dot",
    "dsplit", "dstack", "e", "ediff1d", "einsum", "einsum_path", "elementwise",
    "elementwise_kernel", "elu", "empty", "empty_like", "equal", "erf", "erfc", "errors", "exp",
    "exp2", "expand_dims", "expm1", "extract", "eye", "fabs", "fft", "fill_diagonal", "finfo",
    "fix", "flatnonzero", "flatten", "flip", "fliplr", "flipud", "float16", "float32", "float64",
    "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "frexp", "from_dlpack",
    "fromfunction", "full", "full_like", "function", "gather", "gcd", "gelu", "geomspace",
    "get_matmul_precision", "getitem", "grad", "grad_pass_through", "gradient", "gradients",
    "greater", "greater_equal", "hamming", "hanning", "hardtanh", "heaviside", "hessian",
    "histogram", "histogram_bin_edges", "hsplit", "hstack", "hvp", "hypot", "i0", "iinfo", "imag",
    "implicit_diff", "index_add", "index_fill", "index_put", "indices", "inf", "inner", "insert",
    "int8", "int16", "int32", "int64", "interp", "intersect1d", "inv", "invert", "isclose",
    "iscomplex", "iscomplexobj", "isdtype", "isfinite", "isin", "isinf", "isnan", "isneginf",
    "isposinf", "isreal", "isrealobj", "isscalar", "ix_", "jacobian", "jvp", "kaiser", "kron",
    "last_writes", "lcm", "ldexp", "leaky_relu", "left_shift", "lerp", "less", "less_equal",
    "lexsort", "lib", "linalg", "linearize", "linspace", "log", "log1p", "log2", "log10",
    "log_sigmoid", "log_softmax", "logaddexp", "logaddexp2", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logspace", "logsumexp", "masked_divide",
    "masked_multiply", "matmul", "matrix_norm", "matrix_power", "matrix_transpose", "matvec", "max",
    "maximum", "mean", "median", "meshgrid", "min", "minimum", "mish", "mixed_precision", "mod",
    "modf", "moveaxis", "mse", "multiply", "nan", "nan_to_num", "nanargmax", "nanargmin",
    "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile",
    "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "ndim", "negative", "newaxis",
    "nextafter", "nn", "no_gradient", "nonzero", "not_equal", "one_hot", "ones", "ones_like", "op",
    "optim", "outer", "packbits", "pad", "partition", "percentile", "permute_dims", "pi",
    "piecewise", "place", "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul",
    "polysub", "polyval", "positive", "pow", "power", "prefetch_to_device", "prod", "profile",
    "promote_types", "ptp", "put", "put_along_axis", "putmask", "quantile", "rad2deg", "radians",
    "random", "ravel", "ravel_multi_index", "raw_kernel", "real", "real_if_close", "reciprocal",
    "recompute_grad", "recurrence", "relu", "relu6", "remainder", "repeat", "reshape", "resize",
    "result_type", "right_shift", "rint", "roll", "rollaxis", "roots", "rot90", "round", "rsqrt",
    "scan", "scatter_along_axis", "scatter_at", "scatter_rows", "scipy", "searchsorted",
    "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sqrt_n", "segment_sum",
    "select", "selu", "set_deterministic", "set_device", "set_matmul_precision", "set_seed",
    "setdiff1d", "setitem", "setxor1d", "shape", "sigmoid", "sign", "signbit", "silu", "sin",
    "sinc", "sinh", "size", "sliding_window_view", "slogdet", "softmax", "softmax_cross_entropy",
    "softplus", "softsign", "solve",
    "solve_triangular", "sort", "sort_complex", "spacing", "sparse_softmax_cross_entropy",
    "special", "split", "sqrt", "square", "squared_difference",
    "squeeze", "stack", "std", "stop_gradient", "subtract", "sum", "sum_to", "swapaxes", "take",
    "take_along_axis", "tan", "tanh", "tensordot", "testing", "tile", "to_device", "top_k", "trace",
    "transpose", "trapezoid", "tri", "tril", "tril_indices", "tril_indices_from", "trim_zeros",
    "triu", "triu_indices", "triu_indices_from", "true_divide", "trunc", "uint8", "uint16",
    "uint32", "uint64", "union1d", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values", "unpackbits", "unravel_index", "unstack", "unwrap", "value_and_grad", "vander",
    "var", "vdot", "vecdot", "vecmat", "vector_norm", "vectorized_map", "vjp", "vmap", "vsplit",
    "vstack", "where", "while_loop", "zeros", "zeros_like",
]
