# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
import builtins
import numpy as np
from collections.abc import Callable, Iterable, Iterator, Sequence
from gpugrad.array_api.info import _Info
from gpugrad.core.dtypes import _FloatLimits, _IntegerLimits
from gpugrad.ops.arrays.sets import UniqueAll, UniqueCounts, UniqueInverse
from gpugrad.typing import ArrayLike, Axis, DTypeLike, DeviceLike, Shape, UfuncKeywords
from typing import Any, SupportsIndex, Unpack
from gpugrad import bridge as bridge
from gpugrad import checkpoint as checkpoint
from gpugrad import cuda as cuda
from gpugrad import data as data
from gpugrad import debug as debug
from gpugrad import distributed as distributed
from gpugrad import errors as errors
from gpugrad import fft as fft
from gpugrad import linalg as linalg
from gpugrad import nn as nn
from gpugrad import numpy as numpy
from gpugrad import optim as optim
from gpugrad import random as random
from gpugrad import scipy as scipy
from gpugrad import special as special
from gpugrad import testing as testing
from gpugrad import train as train
from gpugrad import typing as typing
from gpugrad.autodiff.forward import ForwardAccumulator as ForwardAccumulator
from gpugrad.autodiff.gradients import AggregationMethod as AggregationMethod
from gpugrad.autodiff.gradients import UnconnectedGradients as UnconnectedGradients
from gpugrad.autodiff.graph import Graph as Graph
from gpugrad.autodiff.tape import GradientTape as GradientTape
from gpugrad.core.devices import Device as Device
from gpugrad.core.indexed_slices import IndexedSlices as IndexedSlices
from gpugrad.core.tensor import Tensor as Tensor
from gpugrad.core.variable import Variable as Variable
from gpugrad.errors import OutOfMemoryError as OutOfMemoryError
from gpugrad.function import function as function
from gpugrad.numpy import lib as lib
from gpugrad.registry.mixed_precision import mixed_precision as mixed_precision
from gpugrad.registry.profile import profile as profile
from gpugrad.registry.record import OPS as OPS
from gpugrad.registry.record import Op as Op
from gpugrad.transforms.custom import custom_gradient as custom_gradient
from gpugrad.transforms.custom import custom_jvp as custom_jvp
from gpugrad.transforms.custom import grad_pass_through as grad_pass_through
from gpugrad.transforms.derivatives import grad as grad
from gpugrad.transforms.derivatives import jvp as jvp
from gpugrad.transforms.derivatives import linearize as linearize
from gpugrad.transforms.derivatives import value_and_grad as value_and_grad
from gpugrad.transforms.derivatives import vjp as vjp
from gpugrad.transforms.implicit import implicit_diff as implicit_diff
from gpugrad.transforms.jacobians import batch_jacobian as batch_jacobian
from gpugrad.transforms.jacobians import hessian as hessian
from gpugrad.transforms.jacobians import jacobian as jacobian
from gpugrad.transforms.recompute import recompute_grad as recompute_grad
from gpugrad.transforms.vmap import vectorized_map as vectorized_map
from gpugrad.transforms.vmap import vmap as vmap

__all__: list[str]
__array_api_version__: str
bfloat16: np.dtype[Any]
bool: np.dtype[Any]
complex128: np.dtype[Any]
complex64: np.dtype[Any]
e: float
float16: np.dtype[Any]
float32: np.dtype[Any]
float64: np.dtype[Any]
inf: float
int16: np.dtype[Any]
int32: np.dtype[Any]
int64: np.dtype[Any]
int8: np.dtype[Any]
nan: float
newaxis: None
pi: float
uint16: np.dtype[Any]
uint32: np.dtype[Any]
uint64: np.dtype[Any]
uint8: np.dtype[Any]
__version__: str

def __array_namespace_info__() -> _Info:
    """Return an object whose methods describe the namespace, as the array API requires."""

def about() -> str:
    """Describe what gpugrad runs on, for a bug report: a line for each part."""

def abs(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Distance from 0. The gradient at 0 is 0."""

def absolute(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Distance from 0. The gradient at 0 is 0."""

def acos(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Arccosine, in radians."""

def acosh(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Inverse hyperbolic cosine."""

def add(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Sum."""

def adjugate(x: ArrayLike, /) -> Tensor:
    """Transposed cofactors of square matrices: det(x) * inv(x), defined for singular ones too."""

def all(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """Whether all elements are true (not 0). Its gradient is None."""

def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: builtins.bool = False,
) -> builtins.bool:
    """Whether all elements are close: ``abs(a - b) <= atol + rtol * abs(b)``."""

def amax(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """Largest element along axes; equal ones share the gradient."""

def amin(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """Smallest element along axes; equal ones share the gradient."""

def angle(x: ArrayLike, /, deg: builtins.bool = False) -> Tensor:
    """Angle of a complex number, from -pi to pi. The gradient at 0 is 0."""

def any(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """Whether at least one element is true (not 0). Its gradient is None."""

def append(x: ArrayLike, values: ArrayLike, /, axis: Axis = None) -> Tensor:
    """Append values to an array."""

def apply_along_axis(
    func1d: Any, axis: Axis, arr: ArrayLike, *args: Any, **keywords: Any
) -> Tensor:
    """Apply a function to each vector along an axis."""

def apply_over_axes(func: Any, a: ArrayLike, axes: Axis) -> Tensor:
    """Apply a reduction along one axis after another; the axes stay, with length 1."""

def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Make evenly spaced values from `start` up to, but not including, `stop`."""

def arccos(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Arccosine, in radians."""

def arccosh(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Inverse hyperbolic cosine."""

def arcsin(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Arcsine, in radians."""

def arcsinh(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Inverse hyperbolic sine."""

def arctan(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Arctangent, in radians."""

def arctan2(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Angle of the point with ordinate `x` and abscissa `y`, in radians. The gradient at 0 is 0."""

def arctanh(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Inverse hyperbolic tangent."""

def argmax(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Index of the largest element, the first of equal ones. Its gradient is None."""

def argmin(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Index of the smallest element, the first of equal ones. Its gradient is None."""

def argpartition(
    x: ArrayLike, /, kth: Shape, axis: Axis = -1, *, kind: Any = None, order: Any = None
) -> Tensor:
    """Indices that partition an array as `partition` does; their gradient is None."""

def argsort(
    x: ArrayLike,
    /,
    axis: Axis = -1,
    *,
    descending: builtins.bool = False,
    stable: builtins.bool = True,
    kind: Any = None,
    order: Any = None,
) -> Tensor:
    """Indices that sort an array along an axis; their gradient is None."""

def argwhere(x: ArrayLike, /) -> Tensor:
    """Indices of the elements that are not 0, one row each; their gradient is None."""

def around(x: ArrayLike, /, decimals: SupportsIndex = 0, *, out: Tensor | None = None) -> Tensor:
    """Round to a number of decimals, halves to the even one. The gradient is None."""

def array(
    obj: Any,
    /,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
    copy: builtins.bool | None = True,
) -> Tensor:
    """Make a Tensor of a copy, as NumPy's ``array``; otherwise as `asarray`."""

def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: builtins.bool = False) -> builtins.bool:
    """Whether two arrays have the same shape and the same elements."""

def array_equiv(a1: ArrayLike, a2: ArrayLike) -> builtins.bool:
    """Whether two arrays, broadcast against each other, have the same elements."""

def array_split(ary: ArrayLike, indices_or_sections: Any, axis: Axis = 0) -> list[Tensor]:
    """Split an array along an axis into pieces that need not be equally long."""

def asarray(
    obj: ArrayLike,
    /,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
    copy: builtins.bool | None = None,
) -> Tensor:
    """Make a Tensor from anything that is or contains numbers; a Tensor is returned unchanged."""

def asin(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Arcsine, in radians."""

def asinh(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Inverse hyperbolic sine."""

def astype(
    x: ArrayLike,
    /,
    dtype: DTypeLike,
    *,
    copy: builtins.bool = True,
    device: DeviceLike = None,
    order: str = "K",
) -> Tensor:
    """Cast to another dtype; the gradient is cast back."""

def atan(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Arctangent, in radians."""

def atan2(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Angle of the point with ordinate `x` and abscissa `y`, in radians. The gradient at 0 is 0."""

def atanh(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Inverse hyperbolic tangent."""

def atleast_1d(*arrays: ArrayLike) -> Any:
    """Add axes of length 1 to arrays with too few axes."""

def atleast_2d(*arrays: ArrayLike) -> Any:
    """Add axes of length 1 to arrays with too few axes."""

def atleast_3d(*arrays: ArrayLike) -> Any:
    """Add axes of length 1 to arrays with too few axes."""

def average(
    x: ArrayLike,
    /,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: builtins.bool = False,
    *,
    keepdims: builtins.bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Weighted mean along axes, as numpy.average."""

def bartlett(M: SupportsIndex, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Make a triangular window, 0 at both ends."""

def binary_cross_entropy_with_logits(logits: ArrayLike, labels: ArrayLike, /) -> Tensor:
    """Cross entropy of the sigmoid of scores against probabilities, elementwise and exact."""

def bincount(
    x: ArrayLike, /, weights: ArrayLike | None = None, minlength: SupportsIndex = 0
) -> Tensor:
    """How often each integer from 0 on occurs, or the sum of its weights."""

def bitwise_and(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Bits set in both of two integers."""

def bitwise_count(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """The number of bits set in an integer's absolute value, as uint8."""

def bitwise_invert(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Every bit of integers or booleans inverted."""

def bitwise_left_shift(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """`x` times 2 to the power `y`, for integers."""

def bitwise_not(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Every bit of integers or booleans inverted."""

def bitwise_or(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Bits set in either of two integers."""

def bitwise_right_shift(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """`x` over 2 to the power `y`, rounded down, for integers."""

def bitwise_xor(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Bits set in exactly one of two integers."""

def blackman(M: SupportsIndex, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Make Blackman's window: 0.42 - 0.5 cos x + 0.08 cos 2x."""

def block(arrays: ArrayLike, /) -> Tensor:
    """Join the arrays of nested lists: the innermost lists along the last axis, and so on
    outwards.
    """

def broadcast_arrays(*arrays: ArrayLike) -> tuple[Tensor, ...]:
    """Broadcast arrays against each other."""

def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that results from broadcasting shapes against each other."""

def broadcast_to(x: ArrayLike, /, shape: Shape, *, subok: Any = None) -> Tensor:
    """Broadcast an array to a shape."""

def can_cast(from_: Any, to: Any, /, casting: str = "safe") -> builtins.bool:
    """Return whether a cast loses nothing."""

def cbrt(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Cube root."""

def ceil(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Smallest whole number not below `x`. Its gradient is None."""

def cholesky(x: ArrayLike, /, *, upper: builtins.bool = False) -> Tensor:
    """Triangular factor L of positive definite matrices: L times its conjugate transpose."""

def choose(a: ArrayLike, choices: ArrayLike, mode: str = "raise") -> Tensor:
    """Choose each element from one of several arrays by its number."""

def clip(
    x: ArrayLike,
    /,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`x`, but not below `min` and not above `max`; its gradient is 1 also at the bounds."""

def column_stack(arrays: ArrayLike, /) -> Tensor:
    """Join vectors as the columns of a matrix; matrices horizontally."""

def complex(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """Complex number with real part `x` and imaginary part `y`."""

def compress(
    condition: ArrayLike, x: ArrayLike, /, axis: Axis = None, *, out: Tensor | None = None
) -> Tensor:
    """Slices along an axis for which a condition holds."""

def concat(
    arrays: ArrayLike,
    /,
    axis: Axis = 0,
    *,
    out: Tensor | None = None,
    dtype: DTypeLike = None,
    casting: Any = None,
) -> Tensor:
    """Join arrays along an existing axis."""

def concatenate(
    arrays: ArrayLike,
    /,
    axis: Axis = 0,
    *,
    dtype: DTypeLike = None,
    out: Tensor | None = None,
    casting: Any = None,
) -> Tensor:
    """Join arrays along an existing axis; NumPy's name for `concat`."""

def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any
) -> Any:
    """Call one of two functions: ``true_fn(*operands) if pred else false_fn(*operands)``."""

def conj(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Complex conjugate."""

def conjugate(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Complex conjugate."""

def constant(
    value: ArrayLike,
    dtype: DTypeLike = None,
    shape: Shape | None = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Make a Tensor from a number, nested lists or an array; the values are copied."""

def convert_to_tensor(value: ArrayLike, dtype: DTypeLike = None) -> Tensor:
    """Return `value` as a Tensor: a Tensor itself, a Variable's value, else `constant`."""

def convolve(x1: ArrayLike, x2: ArrayLike, /, mode: str = "full") -> Tensor:
    """Convolution of two sequences: y_k = sum over j of x1_j x2_(k - j)."""

def copysign(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """`x` with the sign of `y`. There is no gradient by `y`."""

def copyto(
    dst: Tensor, src: ArrayLike, casting: str = "same_kind", where: builtins.bool = True
) -> None:
    """Write `src` to `dst`, as NumPy's ``copyto``; differentiable."""

def corrcoef(
    x: ArrayLike,
    /,
    y: ArrayLike | None = None,
    *,
    rowvar: builtins.bool = True,
    dtype: DTypeLike = None,
) -> Tensor:
    """Correlation coefficients of variables: covariance divided by standard deviations."""

def correlate(x1: ArrayLike, x2: ArrayLike, /, mode: str = "valid") -> Tensor:
    """Correlation of two sequences: y_k = sum over j of x1_(j + k) conj(x2_j)."""

def cos(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Cosine of an angle in radians."""

def cosh(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Hyperbolic cosine."""

def count_nonzero(x: ArrayLike, /, axis: Axis = None, *, keepdims: builtins.bool = False) -> Tensor:
    """How many elements are not 0. Its gradient is None."""

def cov(
    m: ArrayLike,
    /,
    y: ArrayLike | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    *,
    rowvar: builtins.bool = True,
    bias: builtins.bool = False,
    ddof: ArrayLike | None = None,
    dtype: DTypeLike = None,
) -> Tensor:
    """Covariance matrix of variables."""

def cross(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    axis: Axis = -1,
    *,
    axisa: Any = None,
    axisb: Any = None,
    axisc: Any = None,
) -> Tensor:
    """Cross product of vectors in space."""

def cumprod(
    x: ArrayLike, /, axis: Axis = None, dtype: DTypeLike = None, *, out: Tensor | None = None
) -> Tensor:
    """Running product as NumPy's: `cumulative_prod`, over all elements if `axis` is None."""

def cumsum(
    x: ArrayLike, /, axis: Axis = None, dtype: DTypeLike = None, *, out: Tensor | None = None
) -> Tensor:
    """Running sum as NumPy's: `cumulative_sum`, over all elements if `axis` is None."""

def cumulative_logsumexp(x: ArrayLike, /, axis: Axis = None) -> Tensor:
    """log(cumulative_sum(exp(x))) along an axis, without overflow."""

def cumulative_max(x: ArrayLike, /, axis: Axis = None) -> Tensor:
    """Largest element so far along an axis; the last of equal ones gets the gradient."""

def cumulative_min(x: ArrayLike, /, axis: Axis = None) -> Tensor:
    """Smallest element so far along an axis; the last of equal ones gets the gradient."""

def cumulative_prod(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    include_initial: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Running product along an axis. Its gradients are exact next to zeros."""

def cumulative_sum(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    include_initial: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Running sum along an axis."""

def cumulative_trapezoid(
    y: ArrayLike,
    /,
    x: ArrayLike | None = None,
    dx: ArrayLike = 1.0,
    axis: Axis = -1,
    initial: ArrayLike | None = None,
) -> Tensor:
    """Running integral along an axis by the trapezoidal rule, as SciPy's."""

def deg2rad(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Degrees as radians."""

def degrees(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Radians as degrees."""

def delete(x: ArrayLike, /, obj: Any, axis: Axis = None) -> Tensor:
    """Remove slices along an axis."""

def det(x: ArrayLike, /) -> Tensor:
    """Determinant of square matrices."""

def deterministic() -> builtins.bool:
    """Whether results on a GPU must be bitwise the same in every run: see `set_deterministic`."""

def device(name: DeviceLike = None) -> Device:
    """Return the device of that name, which is also a context manager: the default inside it."""

def devices() -> list[Device]:
    """All devices that answer, the CPU first."""

def diag(x: ArrayLike, /, k: SupportsIndex = 0) -> Tensor:
    """Extract the diagonal of a matrix, or build a matrix from its diagonal."""

def diag_embed(
    x: ArrayLike, /, offset: SupportsIndex = 0, axis1: SupportsIndex = -2, axis2: SupportsIndex = -1
) -> Tensor:
    """Build square matrices from their diagonals, 0 elsewhere; torch's function."""

def diag_indices(
    n: SupportsIndex, ndim: SupportsIndex = 2, *, device: DeviceLike = None
) -> tuple[Tensor, ...]:
    """Indices of the main diagonal of an array whose axes have the same length."""

def diag_indices_from(arr: ArrayLike) -> tuple[Tensor, ...]:
    """Indices of the main diagonal of an array: `diag_indices` of its shape."""

def diagflat(x: ArrayLike, /, k: SupportsIndex = 0) -> Tensor:
    """Build a matrix with the flattened array on a diagonal."""

def diagonal(
    x: ArrayLike, /, offset: SupportsIndex = 0, axis1: SupportsIndex = 0, axis2: SupportsIndex = 1
) -> Tensor:
    """Extract a diagonal of matrices."""

def diagonal_scatter(x: ArrayLike, /, *, offset: SupportsIndex, shape: Shape) -> Tensor:
    """Build matrices from a diagonal, 0 elsewhere: the adjoint of `diagonal`."""

def diff(
    x: ArrayLike,
    /,
    n: int = 1,
    axis: int = -1,
    *,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Tensor:
    """Differences of neighbours along an axis: x_(k + 1) - x_k."""

def digitize(x: ArrayLike, bins: ArrayLike, /, right: builtins.bool = False) -> Tensor:
    """Index of the bin that each element falls into; the gradient is None."""

def divide(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Quotient, elementwise; integers give float64."""

def divmod(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> tuple[Tensor, Tensor]:
    """`floor_divide` and `remainder` at once; only the second has a gradient."""

def dot(x1: ArrayLike, x2: ArrayLike, /, *, out: Tensor | None = None) -> Tensor:
    """Sum over the last axis of `x1` and the second-to-last (or only) axis of `x2`, as
    numpy.dot.
    """

def dsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Tensor]:
    """Split an array along axis 2; the inverse of `dstack`."""

def dstack(arrays: ArrayLike, /) -> Tensor:
    """Join arrays in depth: along axis 2, like channels of an image."""

def ediff1d(
    x: ArrayLike, /, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Tensor:
    """Differences of neighbours among all elements in row-major order."""

def einsum(subscripts: str, *operands: ArrayLike, optimize: Any = None) -> Tensor:
    """Sum products over labelled axes, in Einstein's notation."""

def einsum_path(
    subscripts: str, *operands: ArrayLike, optimize: str = "greedy"
) -> tuple[list[Any], str]:
    """The cheapest order of contractions of an `einsum`, as NumPy's einsum_path."""

def elementwise(
    signature: str,
    *,
    forward: Any = None,
    domain: Any = (-2.0, 2.0),
    doc: str,
    example: tuple[str, str],
    vjp: Any = None,
    jvp: Any = None,
    d: Any = None,
    differentiable: builtins.bool = True,
    singular: builtins.bool = False,
    kinds: str = "f",
    native_half: builtins.bool = False,
    cuda: Any = None,
    cpu: Any = None,
    large: Any = None,
    numpy: Any = None,
    writes: Any = None,
    mixed: Any = None,
    captures: Any = None,
    cost: Any = None,
    c_call: Any = None,
    samples: Any = None,
    ref: Any = None,
    errors: Any = (),
) -> Any:
    """Declare an elementwise op; return its eager function."""

def elementwise_kernel(
    signature: str,
    cuda: str,
    *,
    formula: Callable[..., Any],
    d: Sequence[Any],
    preamble: str = "",
    ref: Any = None,
    doc: str = "",
    example: tuple[str, str] | None = None,
    **record: Any,
) -> Callable[..., Any]:
    """Declare an elementwise op whose kernel is an expression of CUDA C++."""

def elu(x: ArrayLike, /, alpha: ArrayLike = 1.0) -> Tensor:
    """`x` where it is positive, else alpha * (exp(x) - 1)."""

def empty(
    shape: int | tuple[int, ...] | list[int], dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Tensor:
    """Make an uninitialised Tensor; here its values are zeros. Arguments as `zeros`."""

def empty_like(x: ArrayLike, /, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Tensor:
    """Make a Tensor of zeros with the shape, dtype and device of another array."""

def equal(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Whether `x` equals `y`."""

def erf(x: ArrayLike, /) -> Tensor:
    """Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to `x`."""

def erfc(x: ArrayLike, /) -> Tensor:
    """1 - erf(x), exact for large `x`."""

def exp(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """e to the power `x`."""

def exp2(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """2 to the power `x`."""

def expand_dims(x: ArrayLike, /, axis: Axis = 0) -> Tensor:
    """Insert axes of length 1."""

def expm1(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """exp(x) - 1, exact for small `x`."""

def extract(condition: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Elements for which a condition holds, in row-major order: ``x[condition]``."""

def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    k: int = 0,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Make a matrix with ones on its `k`-th diagonal."""

def fabs(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Distance from 0 of a real number, as a float. The gradient at 0 is 0."""

def fill_diagonal(a: Tensor, val: ArrayLike, wrap: builtins.bool = False) -> None:
    """Write a value to the main diagonal, as NumPy's ``fill_diagonal``; differentiable."""

def finfo(type: Any, /) -> _FloatLimits:
    """Return the limits of a floating-point dtype."""

def fix(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Nearest whole number towards 0. Its gradient is None."""

def flatnonzero(x: ArrayLike, /) -> Tensor:
    """Indices of the elements that are not 0, in row-major order; their gradient is None."""

def flatten(x: ArrayLike, /) -> Tensor:
    """Flatten an array to one axis, in row-major order; the same as `ravel`."""

def flip(x: ArrayLike, /, axis: Axis = None) -> Tensor:
    """Reverse the order of the elements along axes."""

def fliplr(x: ArrayLike, /) -> Tensor:
    """Reverse the order along axis 1, left to right."""

def flipud(x: ArrayLike, /) -> Tensor:
    """Reverse the order along axis 0, upside down."""

def float_power(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """`power` in float64 (complex128 for complex numbers), as NumPy's float_power."""

def floor(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Largest whole number not above `x`. Its gradient is None."""

def floor_divide(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Largest whole number not above the quotient. Its gradient is None."""

def fmax(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """The larger of two; of a number and a NaN the number. Of equal ones the first gets the
    gradient.
    """

def fmin(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """The smaller of two; of a number and a NaN the number. Of equal ones the first gets the
    gradient.
    """

def fmod(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Remainder of division rounded towards 0; has the sign of `x`."""

def frexp(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> tuple[Tensor, Tensor]:
    """Mantissa m and exponent e of numbers: x = m * 2**e with 0.5 <= abs(m) < 1."""

def from_dlpack(
    x: ArrayLike, /, *, device: DeviceLike = None, copy: builtins.bool | None = None
) -> Tensor:
    """Make a Tensor of another library's array, sharing its memory if possible."""

def fromfunction(
    function: ArrayLike,
    shape: Shape,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    **keywords: Any,
) -> Any:
    """Call a function once, with the indices of every element of a shape."""

def full(
    shape: int | tuple[int, ...] | list[int],
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Make a Tensor with one value everywhere."""

def full_like(
    x: ArrayLike, /, fill_value: ArrayLike, dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Tensor:
    """Make a Tensor of one value with the shape, dtype and device of another array."""

def gather(params: ArrayLike, indices: ArrayLike, /, axis: Axis = 0) -> Tensor:
    """Take slices of an array along an axis, like TensorFlow's gather: rows of an embedding."""

def gcd(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Greatest common divisor of integers."""

def gelu(x: ArrayLike, /, approximate: str = "none") -> Tensor:
    """`x` times the probability that a standard normal number is below `x`."""

def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: SupportsIndex = 50,
    endpoint: builtins.bool = True,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Make a geometric sequence: each number is the one before times the same factor."""

def get_matmul_precision() -> str:
    """How products of float32 matrices are computed on a GPU: see `set_matmul_precision`."""

def getitem(x: ArrayLike, /, *, index: Any) -> Tensor:
    """Elements of an array at an index: the op behind ``x[index]``."""

def gradient(
    f: ArrayLike, /, *varargs: Any, axis: Axis = None, edge_order: int = 1
) -> Tensor | tuple[Tensor, ...]:
    """Slopes of sampled values along axes, by differences; as numpy.gradient."""

def gradients(
    ys: ArrayLike,
    xs: ArrayLike,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: builtins.bool = False,
    gate_gradients: builtins.bool = False,
    aggregation_method: Any = None,
    stop_gradients: ArrayLike | None = None,
    unconnected_gradients: Any = ...,
) -> list[Any]:
    """Sum of dy/dx over `ys` for each x, from the log of an enclosing Graph or tape."""

def greater(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Whether `x` is above `y`."""

def greater_equal(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Whether `x` is not below `y`."""

def hamming(M: SupportsIndex, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Make Hamming's window: 0.54 - 0.46 cos, 0.08 at both ends."""

def hanning(M: SupportsIndex, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Make Hann's window: one period of (1 - cos) / 2, 0 at both ends."""

def hardtanh(x: ArrayLike, /, min_val: ArrayLike = -1.0, max_val: ArrayLike = 1.0) -> Tensor:
    """`x`, but not below `min_val` and not above `max_val`."""

def heaviside(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """0 where `x` is negative, 1 where it is positive, `y` where it is 0. Its gradient by `x` is
    0, as that of a step.
    """

def histogram(
    x: ArrayLike,
    /,
    bins: SupportsIndex = 10,
    range: Any = None,
    density: builtins.bool | None = False,
    weights: ArrayLike | None = None,
) -> tuple[Tensor, Tensor]:
    """How many elements fall into each of a row of bins, as numpy.histogram."""

def histogram_bin_edges(x: ArrayLike, /, bins: SupportsIndex = 10, range: Any = None) -> Tensor:
    """Edges of the bins that `histogram` uses."""

def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Tensor]:
    """Split an array along axis 1, a vector along axis 0; the inverse of `hstack`."""

def hstack(arrays: ArrayLike, /, *, dtype: DTypeLike = None, casting: Any = None) -> Tensor:
    """Join arrays horizontally: along axis 1, vectors along axis 0."""

def hvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Hessian of a scalar function times a vector: forward mode over reverse mode."""

def hypot(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Length of the vector (x, y), without overflow. The gradient at (0, 0) is 0."""

def i0(x: ArrayLike, /) -> Tensor:
    """Modified Bessel function of the first kind, of order 0."""

def iinfo(type: Any, /) -> _IntegerLimits:
    """Return the limits of an integer dtype."""

def imag(x: ArrayLike, /) -> Tensor:
    """Imaginary part."""

def index_add(x: ArrayLike, values: ArrayLike, /, *, index: Any) -> Tensor:
    """A copy of `x` with values added at an index; values at repeated indices all count."""

def index_fill(x: ArrayLike, /, *, index: Any, value: ArrayLike = 0) -> Tensor:
    """A copy of `x` with one number written at an index."""

def index_put(x: ArrayLike, values: ArrayLike, /, *, index: Any) -> Tensor:
    """A copy of `x` with an array of values written at an index."""

def indices(
    dimensions: Any,
    dtype: DTypeLike = None,
    sparse: builtins.bool = False,
    *,
    device: DeviceLike = None,
) -> Any:
    """The indices of every element of a shape."""

def inner(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Sum of products over the last axes of both, with no conjugate."""

def insert(arr: ArrayLike, obj: Any, values: Any, axis: Axis = None) -> Tensor:
    """Insert slices into an array."""

def interp(
    x: ArrayLike,
    points: ArrayLike,
    values: ArrayLike,
    /,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: ArrayLike | None = None,
) -> Tensor:
    """Values at `x` of the piecewise linear function through points."""

def intersect1d(
    x: ArrayLike,
    y: ArrayLike,
    /,
    assume_unique: builtins.bool = False,
    *,
    return_indices: Any = None,
) -> Tensor:
    """The distinct elements in both of two arrays, in ascending order. Not inside `vmap`."""

def inv(x: ArrayLike, /) -> Tensor:
    """Inverse of square matrices."""

def invert(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Every bit of integers or booleans inverted."""

def isclose(
    x: ArrayLike,
    y: ArrayLike,
    /,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: builtins.bool = False,
) -> Tensor:
    """Whether abs(x - y) <= atol + rtol * abs(y), elementwise."""

def iscomplex(x: ArrayLike, /) -> Tensor:
    """Whether the imaginary part is not 0."""

def iscomplexobj(x: ArrayLike) -> builtins.bool:
    """Whether the dtype of an array or a number is complex, whatever its values are."""

def isdtype(dtype: DTypeLike, kind: Any) -> builtins.bool:
    """Return whether a dtype is of a kind."""

def isfinite(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Whether it is neither infinite nor NaN."""

def isin(
    x: ArrayLike,
    test: ArrayLike,
    /,
    assume_unique: builtins.bool = False,
    invert: builtins.bool = False,
    *,
    kind: Any = None,
) -> Tensor:
    """Whether each element of `x` is an element of `test`; the gradient is None."""

def isinf(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Whether it is infinite."""

def isnan(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Whether it is not a number."""

def isneginf(x: ArrayLike, /, *, out: Tensor | None = None) -> Tensor:
    """Whether it is infinite and negative."""

def isposinf(x: ArrayLike, /, *, out: Tensor | None = None) -> Tensor:
    """Whether it is infinite and positive."""

def isreal(x: ArrayLike, /) -> Tensor:
    """Whether the imaginary part is 0; True for real numbers."""

def isrealobj(x: ArrayLike) -> builtins.bool:
    """Whether the dtype of an array or a number is not complex."""

def isscalar(element: Any) -> builtins.bool:
    """Whether any object is a Python or NumPy number, not a 0-d array."""

def ix_(*args: ArrayLike) -> tuple[Tensor, ...]:
    """Index vectors, reshaped so that together they select a grid: ``x[ix_(rows, columns)]``."""

def kaiser(
    M: SupportsIndex, beta: ArrayLike, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Tensor:
    """Make Kaiser's window, from the Bessel function i0: the larger `beta`, the narrower."""

def kron(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Kronecker product: `x2` times each element of `x1`, as blocks."""

def last_writes(x: ArrayLike, /, *, index: Any) -> Tensor:
    """Marks the writes of ``x[index] = values`` that stay: the last one to each element."""

def lcm(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Least common multiple of integers."""

def ldexp(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """`x` times 2 to the power `y`, an integer: exact, without computing 2**y."""

def leaky_relu(x: ArrayLike, /, negative_slope: ArrayLike = 0.01) -> Tensor:
    """`x` where it is positive, else `negative_slope` times `x`."""

def left_shift(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """`x` times 2 to the power `y`, for integers."""

def lerp(start: ArrayLike, end: ArrayLike, weight: ArrayLike, /) -> Tensor:
    """Linear interpolation: start + weight * (end - start), as torch's."""

def less(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Whether `x` is below `y`."""

def less_equal(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Whether `x` is not above `y`."""

def lexsort(keys: ArrayLike, /, axis: Axis = -1) -> Tensor:
    """Indices that sort by several keys: by the last one, ties by the one before, and so on."""

def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    /,
    num: int = 50,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    endpoint: builtins.bool = True,
) -> Tensor:
    """Make `num` evenly spaced values from `start` to `stop`."""

def log(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Natural logarithm."""

def log10(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Logarithm to base 10."""

def log1p(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """log(1 + x), exact for small `x`."""

def log2(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Logarithm to base 2."""

def log_sigmoid(x: ArrayLike, /) -> Tensor:
    """Logarithm of the sigmoid of `x`, exact where the sigmoid itself would be 0 or 1."""

def log_softmax(x: ArrayLike, /, axis: Axis = -1) -> Tensor:
    """Logarithm of the softmax along an axis, exact where the softmax itself would be 0."""

def logaddexp(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """log(exp(x) + exp(y)), without overflow."""

def logaddexp2(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """log2(2^x + 2^y), without overflow."""

def logical_and(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Whether both are true (not zero)."""

def logical_not(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Whether it is false (zero)."""

def logical_or(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Whether at least one is true (not zero)."""

def logical_xor(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Whether exactly one is true (not zero)."""

def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: SupportsIndex = 50,
    endpoint: builtins.bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Make numbers with evenly spaced logarithms, from base**start to base**stop."""

def logsumexp(x: ArrayLike, /, axis: Axis = None, *, keepdims: builtins.bool = False) -> Tensor:
    """log(sum(exp(x))) along axes, without overflow."""

def masked_divide(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """Quotient that is 0 where `x` is 0, even if `y` is 0 there."""

def masked_multiply(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """Product that is 0 where `x` is 0, even if `y` is infinite or not a number there. It keeps
    a masked branch from poisoning a gradient.
    """

def matmul(
    x1: ArrayLike, x2: ArrayLike, /, *, out: Tensor | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Product of matrices; also of stacks of them, and of vectors."""

def matrix_norm(x: ArrayLike, /, *, keepdims: builtins.bool = False, ord: str = "fro") -> Tensor:
    """Norm of matrices."""

def matrix_power(x: ArrayLike, /, n: SupportsIndex) -> Tensor:
    """Product of `n` copies of a square matrix, by repeated squaring."""

def matrix_transpose(x: ArrayLike, /) -> Tensor:
    """Swap the last two axes."""

def matvec(
    x1: ArrayLike, x2: ArrayLike, /, *, out: Tensor | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Products of matrices and vectors; stacks of both are broadcast against each other."""

def max(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """Largest element along axes; equal ones share the gradient."""

def maximum(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """The larger of two. If they are equal, the first gets the gradient, as in TensorFlow."""

def mean(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    dtype: DTypeLike = None,
    out: Tensor | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """Arithmetic mean along axes."""

def median(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    overwrite_input: Any = None,
) -> Tensor:
    """Middle element along axes, or the mean of the two in the middle."""

def meshgrid(
    *arrays: ArrayLike,
    indexing: str = "xy",
    sparse: builtins.bool = False,
    copy: builtins.bool = True,
) -> tuple[Tensor, ...]:
    """Coordinates of the points of a grid, from the coordinates along each axis."""

def min(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """Smallest element along axes; equal ones share the gradient."""

def minimum(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """The smaller of two. If they are equal, the first gets the gradient, as in TensorFlow."""

def mish(x: ArrayLike, /) -> Tensor:
    """`x` times tanh(softplus(x))."""

def mod(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Remainder of `floor_divide`; has the sign of `y`."""

def modf(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> tuple[Tensor, Tensor]:
    """Fraction and whole part of numbers, both with their sign; the first has the gradient."""

def moveaxis(x: ArrayLike, /, source: Shape, destination: Shape) -> Tensor:
    """Move axes to other positions; the other axes keep their order."""

def mse(x: ArrayLike, y: ArrayLike, /, *, reduction: str = "mean") -> Tensor:
    """Squared differences. The mean of no elements is NaN."""

def multiply(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Product, elementwise."""

def nan_to_num(
    x: ArrayLike,
    /,
    copy: builtins.bool = True,
    nan: ArrayLike = 0.0,
    posinf: Any = None,
    neginf: Any = None,
) -> Tensor:
    """Replace NaN and infinities by numbers; the gradient there is 0."""

def nanargmax(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Index of the largest element that is not NaN, the first of equal ones."""

def nanargmin(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Index of the smallest element that is not NaN, the first of equal ones."""

def nancumprod(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    include_initial: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Running product in which NaNs count as 1: along an axis, or over all elements."""

def nancumsum(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    include_initial: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Running sum in which NaNs count as 0: along an axis, or over all elements."""

def nanmax(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """Largest element along axes that is not NaN; equal ones share the gradient."""

def nanmean(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """Arithmetic mean along axes of elements that are not NaN."""

def nanmedian(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    overwrite_input: Any = None,
) -> Tensor:
    """Median along axes of elements that are not NaN; gradients of NaNs are 0."""

def nanmin(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """Smallest element along axes that is not NaN; equal ones share the gradient."""

def nanpercentile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    overwrite_input: Any = None,
    weights: ArrayLike | None = None,
) -> Tensor:
    """Percentiles along axes of elements that are not NaN: `nanquantile` with levels from 0 to
    100.
    """

def nanprod(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """Product along axes of elements that are not NaN; 1 if there are none."""

def nanquantile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    overwrite_input: Any = None,
    weights: ArrayLike | None = None,
) -> Tensor:
    """Quantiles along axes of elements that are not NaN; gradients of NaNs are 0."""

def nanstd(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    correction: ArrayLike = 0.0,
    keepdims: builtins.bool = False,
    ddof: ArrayLike | None = None,
    out: Tensor | None = None,
    where: ArrayLike | None = None,
    mean: Any = None,
) -> Tensor:
    """Standard deviation along axes of elements that are not NaN, with gradient 0 where it is 0."""

def nansum(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """Sum along axes of elements that are not NaN; 0 if there are none."""

def nanvar(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    correction: ArrayLike = 0.0,
    keepdims: builtins.bool = False,
    ddof: ArrayLike | None = None,
    out: Tensor | None = None,
    where: ArrayLike | None = None,
    mean: Any = None,
) -> Tensor:
    """Variance along axes of elements that are not NaN."""

def ndim(a: ArrayLike) -> int:
    """Number of axes of an array or a number, an int."""

def negative(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """-`x`."""

def nextafter(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """The next float from `x` on in the direction of `y`. The gradient goes to `x`."""

def no_gradient(name: str) -> None:
    """Say that an op declared with unknown rules (``...``) has no gradient there: it is None."""

def nonzero(x: ArrayLike, /) -> tuple[Tensor, ...]:
    """Indices of the elements that are not 0, in row-major order; their gradient is None."""

def not_equal(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Whether `x` differs from `y`."""

def one_hot(x: ArrayLike, /, num_classes: SupportsIndex, *, dtype: DTypeLike = "float32") -> Tensor:
    """Integers as rows that are 1 at that position and 0 elsewhere."""

def ones(
    shape: int | tuple[int, ...] | list[int], dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Tensor:
    """Make a Tensor of ones; arguments as `zeros`."""

def ones_like(x: ArrayLike, /, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Tensor:
    """Make ones with the shape, dtype and device of another array."""

def op(
    vjp: Sequence[Any] | Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    arrays: Sequence[str] | None = None,
    jvp: Any = None,
    masked: Any = None,
    differentiable: builtins.bool = True,
    linear: builtins.bool = False,
    outputs: SupportsIndex = 1,
    unused: Any = (),
    variadic: builtins.bool = False,
    kinds: str = "f",
    native_half: builtins.bool = False,
    cuda: Any = None,
    cpu: Any = None,
    large: Any = None,
    numpy: Any = None,
    batch: Any = None,
    writes: Any = None,
    mixed: Any = None,
    opens: str = "traced",
    captures: Any = None,
    view: Any = None,
    by_element: builtins.bool = False,
    reduces: Any = None,
    cost: Any = None,
    length_by_values: builtins.bool = False,
    overwrites: Any = None,
    c_call: Any = None,
    samples: Any = None,
    ref: Any = None,
    errors: Any = (),
) -> Any:
    """Declare a primitive (with `vjp`) or composite op from its forward; a decorator."""

def outer(x1: ArrayLike, x2: ArrayLike, /, *, out: Tensor | None = None) -> Tensor:
    """Products of each element of `x1` with each of `x2`."""

def packbits(x: ArrayLike, /, axis: Axis = None, bitorder: str = "big") -> Tensor:
    """Pack eight booleans at a time into a byte; the last byte is padded with zeros."""

def pad(
    x: ArrayLike,
    /,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: ArrayLike = 0.0,
    end_values: ArrayLike = 0.0,
    stat_length: Any = None,
) -> Tensor:
    """Pad an array, as NumPy's pad."""

def partition(
    x: ArrayLike, /, kth: Shape, axis: Axis = -1, *, kind: Any = None, order: Any = None
) -> Tensor:
    """Put the k-th smallest element in its sorted place: smaller ones before it, larger after
    it.
    """

def percentile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    overwrite_input: Any = None,
    weights: ArrayLike | None = None,
) -> Tensor:
    """Percentiles along axes: `quantile` with levels from 0 to 100."""

def permute_dims(x: ArrayLike, /, axes: Axis) -> Tensor:
    """Permute the axes."""

def piecewise(x: ArrayLike, condlist: Any, funclist: Any, *args: Any, **keywords: Any) -> Tensor:
    """Evaluate functions piecewise, each where its condition holds."""

def place(arr: Tensor, mask: Any, vals: ArrayLike) -> None:
    """Write values one after the other where a mask is true, as NumPy's ``place``;
    differentiable.
    """

def poly(x: ArrayLike, /) -> Tensor:
    """Coefficients of the polynomial with these roots and the first coefficient 1."""

def polyadd(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Coefficients of a sum of polynomials."""

def polyder(p: ArrayLike, /, m: SupportsIndex = 1) -> Tensor:
    """Coefficients of a derivative of a polynomial."""

def polydiv(u: ArrayLike, v: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Quotient and remainder of polynomials, by long division."""

def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    /,
    deg: Any,
    *,
    rcond: Any = None,
    full: Any = None,
    w: Any = None,
    cov: Any = None,
) -> Tensor:
    """Coefficients of the least squares fit of a polynomial to points."""

def polyint(p: ArrayLike, /, m: SupportsIndex = 1, k: SupportsIndex | None = None) -> Tensor:
    """Coefficients of an antiderivative of a polynomial."""

def polymul(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Coefficients of a product of polynomials."""

def polysub(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Coefficients of a difference of polynomials."""

def polyval(p: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Value of a polynomial at `x`, by Horner's scheme."""

def positive(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """A copy of `x`."""

def pow(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """`x` to the power `y`. Of real numbers the gradient by `y` is 0 where `x` is not positive;
    for `y` = 0 the gradient by `x` is 0 also at 0.
    """

def power(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """`x` to the power `y`. Of real numbers the gradient by `y` is 0 where `x` is not positive;
    for `y` = 0 the gradient by `x` is 0 also at 0.
    """

def prefetch_to_device(
    batches: Iterable[Any], device: DeviceLike = None, size: int = 2
) -> Iterator[Any]:
    """Iterate over batches, copying the next ones to a device while it computes."""

def prod(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """Product along axes; 1 if there are no elements. Gradients are exact next to zeros."""

def promote_types(type1: Any, type2: Any, /) -> np.dtype[Any]:
    """Return the dtype that two dtypes promote to."""

def ptp(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Distance from the smallest to the largest element along axes."""

def put(a: Tensor, ind: Any, v: ArrayLike, mode: str = "raise") -> None:
    """Write values at positions of the flattened array, as NumPy's ``put``; differentiable."""

def put_along_axis(arr: Tensor, indices: Any, values: ArrayLike, axis: int | None) -> None:
    """Write values along an axis, as NumPy's ``put_along_axis``; differentiable."""

def putmask(a: Tensor, mask: Any, values: ArrayLike) -> None:
    """Write the values at the places of a mask, as NumPy's ``putmask``; differentiable."""

def quantile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    overwrite_input: Any = None,
    weights: ArrayLike | None = None,
) -> Tensor:
    """Quantiles along axes: the value that a share `q` of the elements does not exceed."""

def rad2deg(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Radians as degrees."""

def radians(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Degrees as radians."""

def ravel(x: ArrayLike, /, *, order: Any = None) -> Tensor:
    """Flatten an array to one axis, in row-major order."""

def ravel_multi_index(
    multi_index: ArrayLike, /, dims: Any, mode: str = "raise", *, order: Any = None
) -> Tensor:
    """Convert indices along each axis to flat indices, which count in row-major order."""

def raw_kernel(
    source: str,
    *,
    grid: Callable[..., Any] | int | Sequence[int],
    block: Callable[..., Any] | int | Sequence[int] = 256,
    scalars: Callable[..., Sequence[Any]] | None = None,
    results: Callable[..., Any] | None = None,
    shared: Callable[..., int] | int = 0,
    dtypes: Sequence[Any] | None = None,
    **record: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare an op with a CUDA kernel, from its formula; a decorator."""

def real(x: ArrayLike, /) -> Tensor:
    """Real part."""

def real_if_close(x: ArrayLike, /, tol: SupportsIndex = 100) -> Tensor:
    """The real part, if all imaginary parts are close to 0; else `x` itself."""

def reciprocal(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """1 / x."""

def recurrence(
    a: ArrayLike, b: ArrayLike, /, *, axis: Axis, reverse: builtins.bool = False
) -> Tensor:
    """First-order linear recurrence along an axis: y_k = b_k + a_k y_{k-1}, from y_{-1} = 0."""

def relu(x: ArrayLike, /) -> Tensor:
    """`x` where it is positive, else 0. The gradient at 0 is 0."""

def relu6(x: ArrayLike, /) -> Tensor:
    """`x`, but not below 0 and not above 6. The gradient at both bounds is 0."""

def remainder(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Remainder of `floor_divide`; has the sign of `y`."""

def repeat(x: ArrayLike, /, repeats: Any, axis: Axis = None) -> Tensor:
    """Repeat each element, or each slice along an axis."""

def reshape(x: ArrayLike, /, shape: Shape, *, copy: Any = None, order: Any = None) -> Tensor:
    """Give an array another shape; its elements keep their row-major order."""

def resize(x: ArrayLike, /, new_shape: Shape) -> Tensor:
    """Fill a shape with the elements of an array, repeated as needed."""

def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the dtype of the result of an op on these arguments."""

def right_shift(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """`x` over 2 to the power `y`, rounded down, for integers."""

def rint(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Nearest whole number, halves to the even one. Its gradient is None."""

def roll(x: ArrayLike, /, shift: Shape, axis: Axis = None) -> Tensor:
    """Shift the elements along axes; those pushed off the end come in at the start."""

def rollaxis(x: ArrayLike, /, axis: Axis, start: ArrayLike = 0) -> Tensor:
    """Move one axis in front of another; `moveaxis` is easier to read."""

def roots(p: ArrayLike, /) -> Tensor:
    """Roots of a polynomial: the eigenvalues of its companion matrix."""

def rot90(x: ArrayLike, /, k: SupportsIndex = 1, axes: Axis = (0, 1)) -> Tensor:
    """Rotate an array by 90 degrees in the plane of two axes."""

def round(x: ArrayLike, /, decimals: SupportsIndex = 0, *, out: Tensor | None = None) -> Tensor:
    """Nearest whole number, halves to the even one. Its gradient is None."""

def rsqrt(x: ArrayLike, /) -> Tensor:
    """One over the square root."""

def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any,
    *,
    length: int | None = None,
    reverse: builtins.bool = False,
) -> tuple[Any, Any]:
    """Carry a value along an axis: ``carry, y = f(carry, x)`` for each x along axis 0 of `xs`."""

def scatter_along_axis(
    values: ArrayLike,
    indices: ArrayLike,
    /,
    *,
    axis: Axis,
    shape: Shape,
    unique: builtins.bool = False,
) -> Tensor:
    """Add elements into an array of zeros along an axis: the adjoint of `take_along_axis`."""

def scatter_at(values: ArrayLike, /, *, index: Any, shape: Shape) -> Tensor:
    """Add elements into an array of zeros at an index: the adjoint of `getitem`."""

def scatter_rows(values: ArrayLike, indices: ArrayLike, /, *, shape: Shape) -> Tensor:
    """Add rows into an array of zeros; repeated indices add up."""

def searchsorted(x1: ArrayLike, x2: ArrayLike, /, side: str = "left", sorter: Any = None) -> Tensor:
    """Indices at which elements would be inserted into a sorted array; the gradient is None."""

def segment_max(data: ArrayLike, segment_ids: ArrayLike, /, num_segments: SupportsIndex) -> Tensor:
    """Elementwise maximum of the rows of each group; -inf for an empty group. Ties share
    gradients.
    """

def segment_mean(data: ArrayLike, segment_ids: ArrayLike, /, num_segments: SupportsIndex) -> Tensor:
    """Mean of the rows of each group; 0 for an empty group."""

def segment_min(data: ArrayLike, segment_ids: ArrayLike, /, num_segments: SupportsIndex) -> Tensor:
    """Elementwise minimum of the rows of each group; inf for an empty group. Ties share
    gradients.
    """

def segment_prod(data: ArrayLike, segment_ids: ArrayLike, /, num_segments: SupportsIndex) -> Tensor:
    """Elementwise product of the rows of each group; 1 for an empty group. Exact next to zeros."""

def segment_sqrt_n(
    data: ArrayLike, segment_ids: ArrayLike, /, num_segments: SupportsIndex
) -> Tensor:
    """Sum of the rows of each group, divided by the square root of their number."""

def segment_sum(data: ArrayLike, segment_ids: ArrayLike, /, num_segments: SupportsIndex) -> Tensor:
    """Sum of the rows of each group; 0 for an empty group."""

def select(condlist: Any, choicelist: Any, default: ArrayLike = 0) -> Tensor:
    """Choose each element from the choice that belongs to the first true condition."""

def selu(x: ArrayLike, /) -> Tensor:
    """1.0507 times `x` where it is positive, else 1.7581 times (exp(x) - 1). The gradient at 0
    is 1.0507.
    """

def set_deterministic(on: builtins.bool = True) -> None:
    """Choose for all threads whether results on a GPU must be bitwise the same in every run."""

def set_device(name: str | Device) -> None:
    """Make `name` the default device of all threads; a ``with`` statement takes precedence."""

def set_matmul_precision(precision: str) -> None:
    """Choose how products of float32 matrices are computed on a GPU; the names are torch's."""

def set_seed(seed: int) -> None:
    """Restart the default generator, so that random numbers repeat from here on."""

def setdiff1d(x: ArrayLike, y: ArrayLike, /, assume_unique: builtins.bool = False) -> Tensor:
    """The distinct elements of `x` that are not in `y`, in ascending order. Not inside `vmap`."""

def setitem(x: ArrayLike, value: ArrayLike, /, *, index: Any) -> Tensor:
    """A copy of `x` with a value written at an index: `x` after ``x[index] = value``."""

def setxor1d(x: ArrayLike, y: ArrayLike, /, assume_unique: builtins.bool = False) -> Tensor:
    """The distinct elements in exactly one of two arrays, in ascending order. Not inside `vmap`."""

def shape(a: ArrayLike) -> tuple[int, ...]:
    """Lengths of the axes of an array or a number, a tuple of ints."""

def sigmoid(x: ArrayLike, /) -> Tensor:
    """1 / (1 + exp(-x)), without overflow."""

def sign(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """-1, 0 or 1, with gradient 0; a complex number over its absolute value."""

def signbit(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Whether the sign bit is set, as in -0.0."""

def silu(x: ArrayLike, /) -> Tensor:
    """`x` times its sigmoid, also called swish."""

def sin(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Sine of an angle in radians."""

def sinc(x: ArrayLike, /) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0. Its derivatives are exact at 0 and near it."""

def sinh(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Hyperbolic sine."""

def size(a: ArrayLike, axis: Axis = None) -> int:
    """Number of elements of an array or a number: in all, or along one axis. An int."""

def sliding_window_view(x: ArrayLike, /, window_shape: Shape, axis: Axis = None) -> Tensor:
    """All windows of a shape, as NumPy's sliding_window_view."""

def slogdet(x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Sign and logarithm of the absolute value of the determinant of square matrices."""

def softmax(x: ArrayLike, /, axis: Axis = -1) -> Tensor:
    """Exponentials divided by their sum along an axis; NaN where all scores along it are -inf."""

def softmax_cross_entropy(logits: ArrayLike, labels: ArrayLike, /, axis: Axis = -1) -> Tensor:
    """Cross entropy of the softmax of scores, against a probability for each class."""

def softplus(x: ArrayLike, /, beta: ArrayLike = 1.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, without overflow. The gradient is the sigmoid of beta * x."""

def softsign(x: ArrayLike, /) -> Tensor:
    """x / (1 + |x|)."""

def solve(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Solution of x1 @ x = x2 for square matrices."""

def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    /,
    *,
    lower: Any,
    adjoint: builtins.bool = False,
    unit_diagonal: builtins.bool = False,
) -> Tensor:
    """Solution of a @ x = b for triangular matrices."""

def sort(
    x: ArrayLike,
    /,
    axis: Axis = -1,
    *,
    descending: builtins.bool = False,
    stable: builtins.bool = True,
    kind: Any = None,
    order: Any = None,
) -> Tensor:
    """Sort an array along an axis; each gradient goes back to its element's place."""

def sort_complex(x: ArrayLike, /) -> Tensor:
    """Sort along the last axis by the real part, ties by the imaginary part."""

def spacing(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Distance to the next float away from 0, with the sign of `x`. Its gradient is None."""

def sparse_softmax_cross_entropy(
    logits: ArrayLike,
    labels: ArrayLike,
    /,
    *,
    ignore_index: SupportsIndex | None = None,
    label_smoothing: ArrayLike = 0.0,
    dtype: DTypeLike = None,
) -> Tensor:
    """Cross entropy of the softmax of scores along the last axis, against class numbers."""

def split(x: ArrayLike, indices_or_sections: Any, /, axis: Axis = 0) -> list[Tensor]:
    """Split an array along an axis; the inverse of `concat`."""

def sqrt(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Square root. At 0 the slope is infinite: the gradient is 0 where a mask blocks it, and NaN
    for ``square(sqrt(x))``.
    """

def square(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """The number times itself."""

def squared_difference(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """|x - y|^2, elementwise."""

def squeeze(x: ArrayLike, /, axis: Axis = None) -> Tensor:
    """Remove axes of length 1."""

def stack(
    arrays: ArrayLike,
    /,
    axis: Axis = 0,
    *,
    out: Tensor | None = None,
    dtype: DTypeLike = None,
    casting: Any = None,
) -> Tensor:
    """Join arrays of the same shape along a new axis."""

def std(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    correction: ArrayLike = 0.0,
    keepdims: builtins.bool = False,
    ddof: ArrayLike | None = None,
    dtype: DTypeLike = None,
    out: Tensor | None = None,
    where: ArrayLike | None = None,
    mean: Any = None,
) -> Tensor:
    """Standard deviation along axes: square root of `var`, with gradient 0 where it is 0."""

def stop_gradient(x: ArrayLike, /) -> Tensor:
    """The same values, as a constant: no gradient flows through."""

def subtract(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Difference."""

def sum(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    dtype: DTypeLike = None,
    keepdims: builtins.bool = False,
    out: Tensor | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """Sum along axes; 0 if there are no elements."""

def sum_to(x: ArrayLike, /, shape: Shape) -> Tensor:
    """Sum over the axes that broadcasting added or stretched: the adjoint of `broadcast_to`."""

def swapaxes(x: ArrayLike, /, axis1: SupportsIndex, axis2: SupportsIndex) -> Tensor:
    """Swap two axes."""

def take(
    x: ArrayLike,
    indices: ArrayLike,
    /,
    axis: Axis = None,
    *,
    out: Tensor | None = None,
    mode: Any = None,
) -> Tensor:
    """Take slices of an array along an axis."""

def take_along_axis(x: ArrayLike, indices: ArrayLike, /, axis: Axis = -1) -> Tensor:
    """Take elements along an axis, by indices that may differ between the other axes."""

def tan(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Tangent of an angle in radians."""

def tanh(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Hyperbolic tangent."""

def tensordot(x1: ArrayLike, x2: ArrayLike, /, axes: Axis = 2) -> Tensor:
    """Sum of products over axes of two arrays."""

def tile(x: ArrayLike, /, repetitions: Shape) -> Tensor:
    """Tile copies of an array."""

def to_device(x: ArrayLike, /, device: DeviceLike, *, stream: Any = None) -> Tensor:
    """Copy an array to another device; the gradient is copied back."""

def top_k(x: ArrayLike, /, k: SupportsIndex, *, axis: Axis = -1) -> tuple[Tensor, Tensor]:
    """The `k` largest elements along an axis in descending order, and their indices."""

def trace(
    x: ArrayLike,
    /,
    offset: SupportsIndex = 0,
    axis1: SupportsIndex = 0,
    axis2: SupportsIndex = 1,
    *,
    dtype: DTypeLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Sum of the elements on a diagonal of matrices."""

def transpose(x: ArrayLike, /, axes: Axis = None) -> Tensor:
    """Permute the axes, as NumPy's transpose."""

def trapezoid(
    y: ArrayLike, /, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: Axis = -1
) -> Tensor:
    """Integral along an axis by the trapezoidal rule."""

def tri(
    N: SupportsIndex,
    M: SupportsIndex | None = None,
    k: SupportsIndex = 0,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Make a matrix with ones on and below a diagonal, and zeros above."""

def tril(x: ArrayLike, /, k: SupportsIndex = 0) -> Tensor:
    """Lower triangle of matrices: elements above the k-th diagonal become 0."""

def tril_indices(
    n: SupportsIndex,
    k: SupportsIndex = 0,
    m: SupportsIndex | None = None,
    *,
    device: DeviceLike = None,
) -> tuple[Tensor, ...]:
    """Indices of the lower triangle of a matrix: the k-th diagonal and those below it."""

def tril_indices_from(arr: ArrayLike, k: SupportsIndex = 0) -> tuple[Tensor, ...]:
    """Indices of the lower triangle of a matrix."""

def trim_zeros(filt: ArrayLike, /, trim: str = "fb", axis: Axis = None) -> Tensor:
    """Remove the zeros at the edges of an array."""

def triu(x: ArrayLike, /, k: SupportsIndex = 0) -> Tensor:
    """Upper triangle of matrices: elements below the k-th diagonal become 0."""

def triu_indices(
    n: SupportsIndex,
    k: SupportsIndex = 0,
    m: SupportsIndex | None = None,
    *,
    device: DeviceLike = None,
) -> tuple[Tensor, ...]:
    """Indices of the upper triangle of a matrix: the k-th diagonal and those above it."""

def triu_indices_from(arr: ArrayLike, k: SupportsIndex = 0) -> tuple[Tensor, ...]:
    """Indices of the upper triangle of a matrix."""

def true_divide(x: ArrayLike, y: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Quotient, elementwise; integers give float64."""

def trunc(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """`x` without its fraction. Its gradient is None."""

def union1d(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """The union of two arrays: its distinct elements in ascending order. Not inside `vmap`."""

def unique(
    ar: ArrayLike,
    return_index: builtins.bool = False,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
    axis: Axis = None,
    *,
    equal_nan: builtins.bool = True,
) -> Any:
    """The distinct elements in ascending order, as NumPy's unique."""

def unique_all(x: ArrayLike, /) -> UniqueAll:
    """The distinct elements in ascending order, with indices and counts. Not inside `vmap`."""

def unique_counts(x: ArrayLike, /) -> UniqueCounts:
    """The distinct elements in ascending order, and how often each occurs. Not inside `vmap`."""

def unique_inverse(x: ArrayLike, /) -> UniqueInverse:
    """The distinct elements in ascending order, and the indices that rebuild `x` from them."""

def unique_values(x: ArrayLike, /) -> Tensor:
    """The distinct elements in ascending order. Not inside `vmap`."""

def unpackbits(
    x: ArrayLike, /, axis: Axis = None, count: Any = None, bitorder: str = "big"
) -> Tensor:
    """Unpack bytes into eight zeros or ones each; the opposite of `packbits`."""

def unravel_index(indices: Any, shape: Shape) -> tuple[Tensor, ...]:
    """Convert flat indices, which count in row-major order, to indices along each axis."""

def unstack(x: ArrayLike, /, *, axis: Axis = 0) -> tuple[Tensor, ...]:
    """Split an array into its slices along an axis; the inverse of `stack`."""

def unwrap(
    p: ArrayLike, /, discont: Any = None, axis: Axis = -1, *, period: ArrayLike = 6.283185307179586
) -> Tensor:
    """Phases without jumps: adds whole periods where neighbours differ by over half of one."""

def vander(
    x: ArrayLike, /, N: SupportsIndex | None = None, increasing: builtins.bool = False
) -> Tensor:
    """Vandermonde matrices: each column is a power of the numbers."""

def var(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    correction: ArrayLike = 0.0,
    keepdims: builtins.bool = False,
    ddof: ArrayLike | None = None,
    dtype: DTypeLike = None,
    out: Tensor | None = None,
    where: ArrayLike | None = None,
    mean: Any = None,
) -> Tensor:
    """Variance along axes: mean squared distance from the mean."""

def vdot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Sum of conj(x1) * x2 over all elements."""

def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    axis: Axis = -1,
    *,
    out: Tensor | None = None,
    dtype: DTypeLike = None,
) -> Tensor:
    """Sum of conj(x1) * x2 along an axis."""

def vecmat(
    x1: ArrayLike, x2: ArrayLike, /, *, out: Tensor | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Products of (conjugate) vectors and matrices; stacks are broadcast against each other."""

def vector_norm(
    x: ArrayLike, /, axis: Axis = None, *, keepdims: builtins.bool = False, ord: ArrayLike = 2
) -> Tensor:
    """Norm of vectors: the `ord`-th root of the sum of the absolute values' powers."""

def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Tensor]:
    """Split an array along axis 0; the inverse of `vstack`."""

def vstack(arrays: ArrayLike, /, *, dtype: DTypeLike = None, casting: Any = None) -> Tensor:
    """Join arrays vertically: along axis 0, vectors as rows."""

def where(
    condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /
) -> Tensor:
    """`x` where the condition holds, else `y`; without the two, where it holds, as `nonzero`."""

def while_loop(
    cond_fn: Callable[..., Any],
    body_fn: Callable[..., Any],
    init: Any,
    *,
    maximum_iterations: int | None = None,
) -> Any:
    """Apply a function as long as a condition holds: ``while cond_fn(x): x = body_fn(x)``."""

def zeros(
    shape: int | tuple[int, ...] | list[int], dtype: DTypeLike = None, *, device: DeviceLike = None
) -> Tensor:
    """Make a Tensor of zeros."""

def zeros_like(x: ArrayLike, /, dtype: DTypeLike = None, *, device: DeviceLike = None) -> Tensor:
    """Make zeros with the shape, dtype and device of another array."""
