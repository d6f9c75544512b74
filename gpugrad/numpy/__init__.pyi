# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
import builtins
from gpugrad.core.tensor import Tensor
from gpugrad.typing import ArrayLike, DTypeLike, DeviceLike, NumpyUfuncKeywords
from typing import Any, Unpack
from gpugrad.numpy import fft as fft
from gpugrad.numpy import lib as lib
from gpugrad.numpy import linalg as linalg
from gpugrad.numpy import polynomial as polynomial
from gpugrad.numpy.creation import ndarray as ndarray
from gpugrad.numpy.polynomials import poly1d as poly1d
from gpugrad.numpy.tricks import c_ as c_
from gpugrad.numpy.tricks import mgrid as mgrid
from gpugrad.numpy.tricks import ogrid as ogrid
from gpugrad.numpy.tricks import r_ as r_
from gpugrad.numpy.ufuncs import ufunc as ufunc
from gpugrad.numpy.vectorized import vectorize as vectorize
from numpy import bool as bool
from numpy import bool_ as bool_
from numpy import broadcast as broadcast
from numpy import busdaycalendar as busdaycalendar
from numpy import byte as byte
from numpy import bytes_ as bytes_
from numpy import cdouble as cdouble
from numpy import character as character
from numpy import clongdouble as clongdouble
from numpy import complex128 as complex128
from numpy import complex256 as complex256
from numpy import complex64 as complex64
from numpy import complexfloating as complexfloating
from numpy import csingle as csingle
from numpy import ctypeslib as ctypeslib
from numpy import datetime64 as datetime64
from numpy import double as double
from numpy import dtype as dtype
from numpy import dtypes as dtypes
from numpy import errstate as errstate
from numpy import exceptions as exceptions
from numpy import f2py as f2py
from numpy import finfo as finfo
from numpy import flatiter as flatiter
from numpy import flexible as flexible
from numpy import float128 as float128
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import floating as floating
from numpy import generic as generic
from numpy import half as half
from numpy import iinfo as iinfo
from numpy import inexact as inexact
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import int8 as int8
from numpy import int_ as int_
from numpy import intc as intc
from numpy import integer as integer
from numpy import intp as intp
from numpy import long as long
from numpy import longdouble as longdouble
from numpy import longlong as longlong
from numpy import ndenumerate as ndenumerate
from numpy import ndindex as ndindex
from numpy import nditer as nditer
from numpy import number as number
from numpy import object_ as object_
from numpy import rec as rec
from numpy import record as record
from numpy import short as short
from numpy import signedinteger as signedinteger
from numpy import single as single
from numpy import str_ as str_
from numpy import testing as testing
from numpy import timedelta64 as timedelta64
from numpy import typing as typing
from numpy import ubyte as ubyte
from numpy import uint as uint
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64
from numpy import uint8 as uint8
from numpy import uintc as uintc
from numpy import uintp as uintp
from numpy import ulong as ulong
from numpy import ulonglong as ulonglong
from numpy import unsignedinteger as unsignedinteger
from numpy import ushort as ushort
from numpy import void as void
from numpy.lib import scimath as emath
from numpy.rec import recarray as recarray

__all__: list[str]
False_: Any
ScalarType: Any
True_: Any
e: float
euler_gamma: float
fromstring: Any
index_exp: Any
inf: float
little_endian: builtins.bool
nan: float
newaxis: None
pi: float
s_: Any
sctypeDict: Any
typecodes: Any

def abs(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Calculate the absolute value element-wise."""

def absolute(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Calculate the absolute value element-wise."""

def acos(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Trigonometric inverse cosine, element-wise."""

def acosh(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Inverse hyperbolic cosine, element-wise."""

def add(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Add arguments element-wise."""

def all(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = ..., *, where: Any = ...
) -> Tensor:
    """Test whether all array elements along a given axis evaluate to True."""

def allclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: builtins.bool = False
) -> Any:
    """Returns True if two arrays are element-wise equal within a tolerance."""

def amax(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
) -> Any:
    """Return the maximum of an array or maximum along an axis."""

def amin(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
) -> Any:
    """Return the minimum of an array or minimum along an axis."""

def angle(z: Any, deg: builtins.bool = False) -> Tensor:
    """Return the angle of the complex argument."""

def any(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = ..., *, where: Any = ...
) -> Tensor:
    """Test whether any array element along a given axis evaluates to True."""

def append(arr: Any, values: Any, axis: Any = None) -> Tensor:
    """Append values to the end of an array."""

def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a function to 1-D slices along the given axis."""

def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    """Apply a function repeatedly over multiple axes."""

def arange(
    start_or_stop: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    like: Any = None,
) -> Any:
    """Return evenly spaced values within a given interval."""

def arccos(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Trigonometric inverse cosine, element-wise."""

def arccosh(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Inverse hyperbolic cosine, element-wise."""

def arcsin(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Inverse sine, element-wise."""

def arcsinh(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Inverse hyperbolic sine element-wise."""

def arctan(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Trigonometric inverse tangent, element-wise."""

def arctan2(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """Element-wise arc tangent of ``x1/x2`` choosing the quadrant correctly."""

def arctanh(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Inverse hyperbolic tangent element-wise."""

def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = ...) -> Tensor:
    """Returns the indices of the maximum values along an axis."""

def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = ...) -> Tensor:
    """Returns the indices of the minimum values along an axis."""

def argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Tensor:
    """Perform an indirect partition along the given axis using the algorithm specified by the
    `kind` keyword. It returns an array of indices of the same shape as `a` that index data
    along the given axis in partitioned order.
    """

def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Tensor:
    """Returns the indices that would sort an array."""

def argwhere(a: Any) -> Tensor:
    """Find the indices of array elements that are non-zero, grouped by element."""

def around(a: Any, decimals: Any = 0, out: Any = None) -> Tensor:
    """Round an array to the given number of decimals."""

def array(
    object: ArrayLike,
    dtype: DTypeLike = None,
    *,
    copy: builtins.bool | None = True,
    order: str = "K",
    subok: builtins.bool = False,
    ndmin: int = 0,
    like: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """A Tensor of anything that NumPy's ``array`` takes; of Tensors, recorded."""

def array2string(
    a: Any,
    max_line_width: Any = None,
    precision: Any = None,
    suppress_small: Any = None,
    separator: str = " ",
    prefix: str = "",
    *,
    formatter: Any = None,
    threshold: Any = None,
    edgeitems: Any = None,
    sign: Any = None,
    floatmode: Any = None,
    suffix: str = "",
    legacy: Any = None,
) -> Any:
    """Return a string representation of an array."""

def array_equal(a1: Any, a2: Any, equal_nan: builtins.bool = False) -> Any:
    """True if two arrays have the same shape and elements, False otherwise."""

def array_equiv(a1: Any, a2: Any) -> Any:
    """Returns True if input arrays are shape consistent and all elements equal."""

def array_repr(
    arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None
) -> Any:
    """Return the string representation of an array."""

def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Split an array into multiple sub-arrays."""

def array_str(
    a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None
) -> Any:
    """Return a string representation of the data in an array."""

def asanyarray(
    a: Any,
    dtype: DTypeLike = None,
    order: str | None = None,
    *,
    device: DeviceLike = None,
    copy: builtins.bool | None = None,
    like: Any = None,
) -> Tensor:
    """A Tensor; `a` itself if it is one of that dtype and order. Arguments as `array`."""

def asarray(
    a: Any,
    dtype: DTypeLike = None,
    order: str | None = None,
    *,
    device: DeviceLike = None,
    copy: builtins.bool | None = None,
    like: Any = None,
) -> Tensor:
    """A Tensor; `a` itself if it is one of that dtype and order. Arguments as `array`."""

def asarray_chkfinite(a: Any, dtype: DTypeLike = None, order: str | None = None) -> Tensor:
    """`asarray`, which raises ArgumentError if an element is infinite or NaN."""

def ascontiguousarray(a: Any, dtype: DTypeLike = None, *, like: Any = None) -> Tensor:
    """A Tensor of at least one axis with its elements in row-major order."""

def asfortranarray(a: Any, dtype: DTypeLike = None, *, like: Any = None) -> Tensor:
    """A Tensor with its elements in column-major order."""

def asin(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Inverse sine, element-wise."""

def asinh(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Inverse hyperbolic sine element-wise."""

def asmatrix(data: Any, dtype: DTypeLike = None) -> Any:
    """Interpret the input as a matrix."""

def astype(
    x: Any, dtype: DTypeLike, /, *, copy: builtins.bool = True, device: DeviceLike = None
) -> Tensor:
    """Copies an array to a specified data type."""

def atan(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Trigonometric inverse tangent, element-wise."""

def atan2(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """Element-wise arc tangent of ``x1/x2`` choosing the quadrant correctly."""

def atanh(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Inverse hyperbolic tangent element-wise."""

def atleast_1d(*arys: Any) -> Tensor:
    """Convert inputs to arrays with at least one dimension."""

def atleast_2d(*arys: Any) -> Tensor:
    """View inputs as arrays with at least two dimensions."""

def atleast_3d(*arys: Any) -> Tensor:
    """View inputs as arrays with at least three dimensions."""

def average(
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: builtins.bool = False,
    *,
    keepdims: Any = ...,
) -> Tensor:
    """Compute the weighted average along the specified axis."""

def bartlett(M: Any) -> Any:
    """Return the Bartlett window."""

def base_repr(number: Any, base: Any = 2, padding: Any = 0) -> Any:
    """Return a string representation of a number in the given base system."""

def binary_repr(num: Any, width: Any = None) -> Any:
    """Return the binary representation of the input number as a string."""

def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Tensor:
    """Count number of occurrences of each value in array of non-negative ints."""

def bitwise_and(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Compute the bit-wise AND of two arrays element-wise."""

def bitwise_count(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Computes the number of 1-bits in the absolute value of ``x``. Analogous to the builtin
    `int.bit_count` or ``popcount`` in C++.
    """

def bitwise_invert(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Compute bit-wise inversion, or bit-wise NOT, element-wise."""

def bitwise_left_shift(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """Shift the bits of an integer to the left."""

def bitwise_not(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Compute bit-wise inversion, or bit-wise NOT, element-wise."""

def bitwise_or(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Compute the bit-wise OR of two arrays element-wise."""

def bitwise_right_shift(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """Shift the bits of an integer to the right."""

def bitwise_xor(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Compute the bit-wise XOR of two arrays element-wise."""

def blackman(M: Any) -> Any:
    """Return the Blackman window."""

def block(arrays: Any) -> Any:
    """Assemble an nd-array from nested lists of blocks."""

def bmat(obj: Any, ldict: Any = None, gdict: Any = None) -> Any:
    """Build a matrix object from a string, nested sequence, or array."""

def broadcast_arrays(*args: Any, subok: builtins.bool = False) -> Any:
    """Broadcast any number of arrays against each other."""

def broadcast_shapes(*args: Any) -> Any:
    """Broadcast the input shapes into a single shape."""

def broadcast_to(array: Any, shape: Any, subok: builtins.bool = False) -> Tensor:
    """Broadcast an array to a new shape."""

def busday_count(
    begindates: Any,
    enddates: Any,
    weekmask: str = "1111100",
    holidays: Any = (),
    busdaycal: Any = None,
    out: Any = None,
) -> Any:
    """Counts the number of valid days between `begindates` and `enddates`, not including the day
    of `enddates`.
    """

def busday_offset(
    dates: Any,
    offsets: Any,
    roll: str = "raise",
    weekmask: str = "1111100",
    holidays: Any = None,
    busdaycal: Any = None,
    out: Any = None,
) -> Any:
    """First adjusts the date to fall on a valid day according to the ``roll`` rule, then applies
    offsets to the given dates counted in valid days.
    """

def can_cast(from_: Any, to: Any, casting: str = "safe") -> Any:
    """Returns True if cast between data types can occur according to the casting rule."""

def cbrt(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Return the cube-root of an array, element-wise."""

def ceil(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Return the ceiling of the input, element-wise."""

def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Tensor:
    """Construct an array from an index array and a list of arrays to choose from."""

def clip(
    a: Any,
    a_min: Any = ...,
    a_max: Any = ...,
    out: Any = None,
    *,
    min: Any = ...,
    max: Any = ...,
    **kwargs: Any,
) -> Tensor:
    """Clip (limit) the values in an array."""

def column_stack(tup: Any) -> Tensor:
    """Stack 1-D arrays as columns into a 2-D array."""

def common_type(*arrays: Any) -> Any:
    """Return a scalar type which is common to the input arrays."""

def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Tensor:
    """Return selected slices of an array along given axis."""

def concat(
    arrays: Any,
    /,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
) -> Tensor:
    """Join a sequence of arrays along an existing axis."""

def concatenate(
    arrays: Any,
    /,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
) -> Tensor:
    """Join a sequence of arrays along an existing axis."""

def conj(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Return the complex conjugate, element-wise."""

def conjugate(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Return the complex conjugate, element-wise."""

def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """Returns the discrete, linear convolution of two one-dimensional sequences."""

def copy(a: Any, order: str = "K", subok: builtins.bool = False) -> Any:
    """Return an array copy of the given object."""

def copysign(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Change the sign of x1 to that of x2, element-wise."""

def copyto(dst: Any, src: Any, casting: str = "same_kind", where: builtins.bool = True) -> Any:
    """Copies values from one array to another, broadcasting as necessary."""

def corrcoef(
    x: Any, y: Any = None, rowvar: builtins.bool = True, *, dtype: DTypeLike = None
) -> Tensor:
    """Return Pearson product-moment correlation coefficients."""

def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """Cross-correlation of two 1-dimensional sequences."""

def cos(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Cosine element-wise."""

def cosh(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Hyperbolic cosine, element-wise."""

def count_nonzero(a: Any, axis: Any = None, *, keepdims: builtins.bool = False) -> Tensor:
    """Counts the number of non-zero values in the array ``a``."""

def cov(
    m: Any,
    y: Any = None,
    rowvar: builtins.bool = True,
    bias: builtins.bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: DTypeLike = None,
) -> Tensor:
    """Estimate a covariance matrix, given data and weights."""

def cross(
    a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None
) -> Tensor:
    """Return the cross product of two (arrays of) vectors."""

def cumprod(a: Any, axis: Any = None, dtype: DTypeLike = None, out: Any = None) -> Tensor:
    """Return the cumulative product of elements along a given axis."""

def cumsum(a: Any, axis: Any = None, dtype: DTypeLike = None, out: Any = None) -> Tensor:
    """Return the cumulative sum of the elements along a given axis."""

def cumulative_prod(
    x: Any,
    /,
    *,
    axis: Any = None,
    dtype: DTypeLike = None,
    out: Any = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """Return the cumulative product of elements along a given axis."""

def cumulative_sum(
    x: Any,
    /,
    *,
    axis: Any = None,
    dtype: DTypeLike = None,
    out: Any = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """Return the cumulative sum of the elements along a given axis."""

def datetime_as_string(
    arr: Any, unit: Any = None, timezone: str = "naive", casting: str = "same_kind"
) -> Any:
    """Convert an array of datetimes into an array of strings."""

def datetime_data(dtype: DTypeLike, /) -> Any:
    """Get information about the step size of a date or time type."""

def deg2rad(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Convert angles from degrees to radians."""

def degrees(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Convert angles from radians to degrees."""

def delete(arr: Any, obj: Any, axis: Any = None) -> Tensor:
    """Return a new array with sub-arrays along an axis deleted. For a one dimensional array,
    this returns those entries not returned by `arr[obj]`.
    """

def diag(v: Any, k: Any = 0) -> Tensor:
    """Extract a diagonal or construct a diagonal array."""

def diag_indices(n: Any, ndim: Any = 2) -> Any:
    """Return the indices to access the main diagonal of an array."""

def diag_indices_from(arr: Any) -> Any:
    """Return the indices to access the main diagonal of an n-dimensional array."""

def diagflat(v: Any, k: Any = 0) -> Tensor:
    """Create a two-dimensional array with the flattened input as a diagonal."""

def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Tensor:
    """Return specified diagonals."""

def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = ..., append: Any = ...) -> Tensor:
    """Calculate the n-th discrete difference along the given axis."""

def digitize(x: Any, bins: Any, right: builtins.bool = False) -> Tensor:
    """Return the indices of the bins to which each value in input array belongs."""

def divide(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Divide arguments element-wise."""

def divmod(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """Return element-wise quotient and remainder simultaneously."""

def dot(a: Any, b: Any, out: Any = None) -> Tensor:
    """Dot product of two arrays. Specifically,"""

def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Split array into multiple sub-arrays along the 3rd axis (depth)."""

def dstack(tup: Any) -> Tensor:
    """Stack arrays in sequence depth wise (along third axis)."""

def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """The differences between consecutive elements of an array."""

def einsum(
    *operands: Any, out: Any = None, optimize: builtins.bool = False, **kwargs: Any
) -> Tensor:
    """Evaluates the Einstein summation convention on the operands."""

def einsum_path(
    *operands: Any, optimize: str = "greedy", einsum_call: builtins.bool = False
) -> Any:
    """Evaluates the lowest cost contraction order for an einsum expression by considering the
    creation of intermediate arrays.
    """

def empty(
    shape: Any,
    dtype: DTypeLike = ...,
    order: str = "C",
    *,
    device: DeviceLike = None,
    like: Any = None,
) -> Tensor:
    """A Tensor to be filled; here its values are zeros."""

def empty_like(
    prototype: Any,
    /,
    dtype: DTypeLike = None,
    order: str = "K",
    subok: builtins.bool = True,
    shape: Any = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """Return a new array with the same shape and type as a given array."""

def equal(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Return (x1 == x2) element-wise."""

def exp(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Calculate the exponential of all elements in the input array."""

def exp2(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Calculate `2**p` for all `p` in the input array."""

def expand_dims(a: Any, axis: Any) -> Tensor:
    """Expand the shape of an array."""

def expm1(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Calculate ``exp(x) - 1`` for all elements in the array."""

def extract(condition: Any, arr: Any) -> Tensor:
    """Return the elements of an array that satisfy some condition."""

def eye(
    N: Any,
    M: Any = None,
    k: Any = 0,
    dtype: DTypeLike = ...,
    order: str = "C",
    *,
    device: DeviceLike = None,
    like: Any = None,
) -> Any:
    """Return a 2-D array with ones on the diagonal and zeros elsewhere."""

def fabs(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Compute the absolute values element-wise."""

def fill_diagonal(a: Any, val: Any, wrap: builtins.bool = False) -> Any:
    """Fill the main diagonal of the given array of any dimensionality."""

def fix(x: Any, out: Any = None) -> Tensor:
    """Round to nearest integer towards zero."""

def flatnonzero(a: Any) -> Tensor:
    """Return indices that are non-zero in the flattened version of a."""

def flip(m: Any, axis: Any = None) -> Tensor:
    """Reverse the order of elements in an array along the given axis."""

def fliplr(m: Any) -> Tensor:
    """Reverse the order of elements along axis 1 (left/right)."""

def flipud(m: Any) -> Tensor:
    """Reverse the order of elements along axis 0 (up/down)."""

def float_power(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """First array elements raised to powers from second array, element-wise."""

def floor(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Return the floor of the input, element-wise."""

def floor_divide(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Return the largest integer smaller or equal to the division of the inputs. It is
    equivalent to the Python ``//`` operator and pairs with the Python ``%`` (`remainder`),
    function so that ``a = a % b + b * (a // b)`` up to roundoff.
    """

def fmax(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Element-wise maximum of array elements."""

def fmin(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Element-wise minimum of array elements."""

def fmod(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Returns the element-wise remainder of division."""

def format_float_positional(
    x: Any,
    precision: Any = None,
    unique: builtins.bool = True,
    fractional: builtins.bool = True,
    trim: str = "k",
    sign: builtins.bool = False,
    pad_left: Any = None,
    pad_right: Any = None,
    min_digits: Any = None,
) -> Any:
    """Format a floating-point scalar as a decimal string in positional notation."""

def format_float_scientific(
    x: Any,
    precision: Any = None,
    unique: builtins.bool = True,
    trim: str = "k",
    sign: builtins.bool = False,
    pad_left: Any = None,
    exp_digits: Any = None,
    min_digits: Any = None,
) -> Any:
    """Format a floating-point scalar as a decimal string in scientific notation."""

def frexp(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Decompose the elements of x into mantissa and twos exponent."""

def from_dlpack(x: Any, /, *, device: DeviceLike = None, copy: Any = None) -> Any:
    """Create a NumPy array from an object implementing the ``__dlpack__`` protocol. Generally,
    the returned NumPy array is a view of the input object. See [1]_ and [2]_ for more
    details.
    """

def frombuffer(
    buffer: Any, dtype: DTypeLike = None, count: Any = -1, offset: Any = 0, *, like: Any = None
) -> Any:
    """Interpret a buffer as a 1-dimensional array."""

def fromfile(
    file: Any,
    dtype: DTypeLike = None,
    count: Any = -1,
    sep: str = "",
    offset: Any = 0,
    *,
    like: Any = None,
) -> Any:
    """Construct an array from data in a text or binary file."""

def fromfunction(
    function: Any, shape: Any, *, dtype: DTypeLike = ..., like: Any = None, **kwargs: Any
) -> Any:
    """Construct an array by executing a function over each coordinate."""

def fromiter(iter: Any, dtype: DTypeLike, count: Any = -1, *, like: Any = None) -> Any:
    """Create a new 1-dimensional array from an iterable object."""

def frompyfunc(func: Any, /, nin: Any, nout: Any, **kwargs: Any) -> Any:
    """Takes an arbitrary Python function and returns a NumPy ufunc."""

def fromregex(file: Any, regexp: Any, dtype: DTypeLike, encoding: Any = None) -> Any:
    """Construct an array from a text file, using regular expression parsing."""

def full(
    shape: Any,
    fill_value: Any,
    dtype: DTypeLike = None,
    order: str = "C",
    *,
    device: DeviceLike = None,
    like: Any = None,
) -> Tensor:
    """A Tensor of one value, or of an array that broadcasts to the shape."""

def full_like(
    a: Any,
    fill_value: Any,
    dtype: DTypeLike = None,
    order: str = "K",
    subok: builtins.bool = True,
    shape: Any = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """Return a full array with the same shape and type as a given array."""

def gcd(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Returns the greatest common divisor of ``|x1|`` and ``|x2|``"""

def genfromtxt(
    fname: Any,
    dtype: DTypeLike = ...,
    comments: str = "#",
    delimiter: Any = None,
    skip_header: Any = 0,
    skip_footer: Any = 0,
    converters: Any = None,
    missing_values: Any = None,
    filling_values: Any = None,
    usecols: Any = None,
    names: Any = None,
    excludelist: Any = None,
    deletechars: str = ...,
    replace_space: str = "_",
    autostrip: builtins.bool = False,
    case_sensitive: builtins.bool = True,
    defaultfmt: str = "f%i",
    unpack: Any = None,
    usemask: builtins.bool = False,
    loose: builtins.bool = True,
    invalid_raise: builtins.bool = True,
    max_rows: Any = None,
    encoding: Any = None,
    *,
    ndmin: Any = 0,
    like: Any = None,
) -> Any:
    """Load data from a text file, with missing values handled as specified."""

def geomspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: builtins.bool = True,
    dtype: DTypeLike = None,
    axis: Any = 0,
) -> Any:
    """Return numbers spaced evenly on a log scale (a geometric progression)."""

def get_include() -> Any:
    """Return the directory that contains the NumPy \\*.h header files."""

def get_printoptions() -> Any:
    """Return the current print options."""

def getbufsize() -> Any:
    """Return the size of the buffer used in ufuncs."""

def geterr() -> Any:
    """Get the current way of handling floating-point errors."""

def geterrcall() -> Any:
    """Return the current callback function used on floating-point errors."""

def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    """Return the gradient of an N-dimensional array."""

def greater(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Return the truth value of (x1 > x2) element-wise."""

def greater_equal(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Return the truth value of (x1 >= x2) element-wise."""

def hamming(M: Any) -> Any:
    """Return the Hamming window."""

def hanning(M: Any) -> Any:
    """Return the Hanning window."""

def heaviside(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Compute the Heaviside step function."""

def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Compute the histogram of a dataset."""

def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Compute the bi-dimensional histogram of two data samples."""

def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Function to calculate only the edges of the bins used by the `histogram` function."""

def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Compute the multidimensional histogram of some data."""

def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Split an array into multiple sub-arrays horizontally (column-wise)."""

def hstack(tup: Any, *, dtype: DTypeLike = None, casting: str = "same_kind") -> Tensor:
    """Stack arrays in sequence horizontally (column wise)."""

def hypot(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Given the "legs" of a right triangle, return its hypotenuse."""

def i0(x: Any) -> Tensor:
    """Modified Bessel function of the first kind, order 0."""

def identity(n: Any, dtype: DTypeLike = None, *, like: Any = None) -> Any:
    """Return the identity array."""

def imag(val: Any) -> Tensor:
    """Return the imaginary part of the complex argument."""

def indices(dimensions: Any, dtype: DTypeLike = ..., sparse: builtins.bool = False) -> Any:
    """Return an array representing the indices of a grid."""

def info(
    object: Any = None, maxwidth: Any = 76, output: Any = None, toplevel: str = "numpy"
) -> Any:
    """Get help information for an array, function, class, or module."""

def inner(a: Any, b: Any, /) -> Tensor:
    """Inner product of two arrays."""

def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Tensor:
    """Insert values along the given axis before the given indices."""

def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Tensor:
    """One-dimensional linear interpolation for monotonically increasing sample points."""

def intersect1d(
    ar1: Any, ar2: Any, assume_unique: builtins.bool = False, return_indices: builtins.bool = False
) -> Tensor:
    """Find the intersection of two arrays."""

def invert(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Compute bit-wise inversion, or bit-wise NOT, element-wise."""

def is_busday(
    dates: Any,
    weekmask: str = "1111100",
    holidays: Any = None,
    busdaycal: Any = None,
    out: Any = None,
) -> Any:
    """Calculates which of the given dates are valid days, and which are not."""

def isclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: builtins.bool = False
) -> Tensor:
    """Returns a boolean array where two arrays are element-wise equal within a tolerance."""

def iscomplex(x: Any) -> Tensor:
    """Returns a bool array, where True if input element is complex."""

def iscomplexobj(x: Any) -> Any:
    """Check for a complex type or an array of complex numbers."""

def isdtype(dtype: DTypeLike, kind: Any) -> Any:
    """Determine if a provided dtype is of a specified data type ``kind``."""

def isfinite(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Test element-wise for finiteness (not infinity and not Not a Number)."""

def isfortran(a: Any) -> Any:
    """Check if the array is Fortran contiguous but *not* C contiguous."""

def isin(
    element: Any,
    test_elements: Any,
    assume_unique: builtins.bool = False,
    invert: builtins.bool = False,
    *,
    kind: Any = None,
) -> Tensor:
    """Calculates ``element in test_elements``, broadcasting over `element` only. Returns a
    boolean array of the same shape as `element` that is True where an element of `element` is
    in `test_elements` and False otherwise.
    """

def isinf(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Test element-wise for positive or negative infinity."""

def isnan(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Test element-wise for NaN and return result as a boolean array."""

def isnat(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Test element-wise for NaT (not a time) and return result as a boolean array."""

def isneginf(x: Any, out: Any = None) -> Tensor:
    """Test element-wise for negative infinity, return result as bool array."""

def isposinf(x: Any, out: Any = None) -> Tensor:
    """Test element-wise for positive infinity, return result as bool array."""

def isreal(x: Any) -> Tensor:
    """Returns a bool array, where True if input element is real."""

def isrealobj(x: Any) -> Any:
    """Return True if x is a not complex type or an array of complex numbers."""

def isscalar(element: Any) -> Any:
    """Returns True if the type of `element` is a scalar type."""

def issubdtype(arg1: Any, arg2: Any) -> Any:
    """Returns True if first argument is a typecode lower/equal in type hierarchy."""

def iterable(y: Any) -> Any:
    """Check whether or not an object can be iterated over."""

def ix_(*args: Any) -> Any:
    """Construct an open mesh from multiple sequences."""

def kaiser(M: Any, beta: Any) -> Any:
    """Return the Kaiser window."""

def kron(a: Any, b: Any) -> Tensor:
    """Kronecker product of two arrays."""

def lcm(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Returns the lowest common multiple of ``|x1|`` and ``|x2|``"""

def ldexp(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Returns x1 * 2**x2, element-wise."""

def left_shift(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """Shift the bits of an integer to the left."""

def less(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Return the truth value of (x1 < x2) element-wise."""

def less_equal(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Return the truth value of (x1 <= x2) element-wise."""

def lexsort(keys: Any, axis: Any = -1) -> Tensor:
    """Perform an indirect stable sort using a sequence of keys."""

def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: builtins.bool = True,
    retstep: builtins.bool = False,
    dtype: DTypeLike = None,
    axis: Any = 0,
    *,
    device: DeviceLike = None,
) -> Any:
    """Return evenly spaced numbers over a specified interval."""

def load(
    file: Any,
    mmap_mode: Any = None,
    allow_pickle: builtins.bool = False,
    fix_imports: builtins.bool = True,
    encoding: str = "ASCII",
    *,
    max_header_size: Any = 10000,
) -> Any:
    """Load arrays or pickled objects from ``.npy``, ``.npz`` or pickled files."""

def loadtxt(
    fname: Any,
    dtype: DTypeLike = ...,
    comments: str = "#",
    delimiter: Any = None,
    converters: Any = None,
    skiprows: Any = 0,
    usecols: Any = None,
    unpack: builtins.bool = False,
    ndmin: Any = 0,
    encoding: Any = None,
    max_rows: Any = None,
    *,
    quotechar: Any = None,
    like: Any = None,
) -> Any:
    """Load data from a text file."""

def log(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Natural logarithm, element-wise."""

def log10(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Return the base 10 logarithm of the input array, element-wise."""

def log1p(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Return the natural logarithm of one plus the input array, element-wise."""

def log2(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Base-2 logarithm of `x`."""

def logaddexp(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Logarithm of the sum of exponentiations of the inputs."""

def logaddexp2(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Logarithm of the sum of exponentiations of the inputs in base-2."""

def logical_and(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Compute the truth value of x1 AND x2 element-wise."""

def logical_not(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Compute the truth value of NOT x element-wise."""

def logical_or(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Compute the truth value of x1 OR x2 element-wise."""

def logical_xor(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Compute the truth value of x1 XOR x2, element-wise."""

def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: builtins.bool = True,
    base: Any = 10.0,
    dtype: DTypeLike = None,
    axis: Any = 0,
) -> Any:
    """Return numbers spaced evenly on a log scale."""

def mask_indices(n: Any, mask_func: Any, k: Any = 0) -> Any:
    """Return the indices to access (n, n) arrays, given a masking function."""

def matmul(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Matrix product of two arrays."""

def matrix_transpose(x: Any, /) -> Tensor:
    """Transposes a matrix (or a stack of matrices) ``x``."""

def matvec(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Matrix-vector dot product of two arrays."""

def max(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
) -> Tensor:
    """Return the maximum of an array or maximum along an axis."""

def maximum(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Element-wise maximum of array elements."""

def may_share_memory(a: Any, b: Any, /, max_work: Any = 0) -> Any:
    """Determine if two arrays might share memory"""

def mean(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike = None,
    out: Any = None,
    keepdims: Any = ...,
    *,
    where: Any = ...,
) -> Tensor:
    """Compute the arithmetic mean along the specified axis."""

def median(
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: builtins.bool = False,
    keepdims: builtins.bool = False,
) -> Tensor:
    """Compute the median along the specified axis."""

def meshgrid(
    *xi: Any, copy: builtins.bool = True, sparse: builtins.bool = False, indexing: str = "xy"
) -> Any:
    """Return a tuple of coordinate matrices from coordinate vectors."""

def min(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
) -> Tensor:
    """Return the minimum of an array or minimum along an axis."""

def min_scalar_type(a: Any, /) -> Any:
    """For scalar ``a``, returns the data type with the smallest size and smallest scalar kind
    which can hold its value. For non-scalar array ``a``, returns the vector's dtype
    unmodified.
    """

def minimum(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Element-wise minimum of array elements."""

def mintypecode(typechars: Any, typeset: str = "GDFgdf", default: str = "d") -> Any:
    """Return the character for the minimum-size type to which given types can be safely cast."""

def mod(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Returns the element-wise remainder of division."""

def modf(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Return the fractional and integral parts of an array, element-wise."""

def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Move axes of an array to new positions."""

def multiply(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Multiply arguments element-wise."""

def nan_to_num(
    x: Any, copy: builtins.bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Tensor:
    """Replace NaN with zero and infinity with large finite numbers (default behaviour) or with
    the numbers defined by the user using the `nan`, `posinf` and/or `neginf` keywords.
    """

def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = ...) -> Tensor:
    """Return the indices of the maximum values in the specified axis ignoring NaNs. For all-NaN
    slices ``ValueError`` is raised. Warning: the results cannot be trusted if a slice
    contains only NaNs and -Infs.
    """

def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = ...) -> Tensor:
    """Return the indices of the minimum values in the specified axis ignoring NaNs. For all-NaN
    slices ``ValueError`` is raised. Warning: the results cannot be trusted if a slice
    contains only NaNs and Infs.
    """

def nancumprod(a: Any, axis: Any = None, dtype: DTypeLike = None, out: Any = None) -> Tensor:
    """Return the cumulative product of array elements over a given axis treating Not a Numbers
    (NaNs) as one. The cumulative product does not change when NaNs are encountered and
    leading NaNs are replaced by ones.
    """

def nancumsum(a: Any, axis: Any = None, dtype: DTypeLike = None, out: Any = None) -> Tensor:
    """Return the cumulative sum of array elements over a given axis treating Not a Numbers
    (NaNs) as zero. The cumulative sum does not change when NaNs are encountered and leading
    NaNs are replaced by zeros.
    """

def nanmax(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
) -> Tensor:
    """Return the maximum of an array or maximum along an axis, ignoring any NaNs. When all-NaN
    slices are encountered a ``RuntimeWarning`` is raised and NaN is returned for that slice.
    """

def nanmean(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike = None,
    out: Any = None,
    keepdims: Any = ...,
    *,
    where: Any = ...,
) -> Tensor:
    """Compute the arithmetic mean along the specified axis, ignoring NaNs."""

def nanmedian(
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: builtins.bool = False,
    keepdims: Any = ...,
) -> Tensor:
    """Compute the median along the specified axis, while ignoring NaNs."""

def nanmin(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
) -> Tensor:
    """Return minimum of an array or minimum along an axis, ignoring any NaNs. When all-NaN
    slices are encountered a ``RuntimeWarning`` is raised and Nan is returned for that slice.
    """

def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: builtins.bool = False,
    method: str = "linear",
    keepdims: Any = ...,
    *,
    weights: Any = None,
) -> Tensor:
    """Compute the qth percentile of the data along the specified axis, while ignoring nan
    values.
    """

def nanprod(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
) -> Tensor:
    """Return the product of array elements over a given axis treating Not a Numbers (NaNs) as
    ones.
    """

def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: builtins.bool = False,
    method: str = "linear",
    keepdims: Any = ...,
    *,
    weights: Any = None,
) -> Tensor:
    """Compute the qth quantile of the data along the specified axis, while ignoring nan values.
    Returns the qth quantile(s) of the array elements.
    """

def nanstd(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> Tensor:
    """Compute the standard deviation along the specified axis, while ignoring NaNs."""

def nansum(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
) -> Tensor:
    """Return the sum of array elements over a given axis treating Not a Numbers (NaNs) as zero."""

def nanvar(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> Tensor:
    """Compute the variance along the specified axis, while ignoring NaNs."""

def ndim(a: Any) -> Any:
    """Return the number of dimensions of an array."""

def negative(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Numerical negative, element-wise."""

def nested_iters(
    op: Any,
    axes: Any,
    flags: Any = None,
    op_flags: Any = None,
    op_dtypes: Any = None,
    order: str = "K",
    casting: str = "safe",
    buffersize: Any = 0,
) -> Any:
    """Create nditers for use in nested loops"""

def nextafter(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Return the next floating-point value after x1 towards x2, element-wise."""

def nonzero(a: Any) -> Any:
    """Return the indices of the elements that are non-zero."""

def not_equal(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Return (x1 != x2) element-wise."""

def ones(
    shape: Any,
    dtype: DTypeLike = None,
    order: str = "C",
    *,
    device: DeviceLike = None,
    like: Any = None,
) -> Tensor:
    """A Tensor of ones."""

def ones_like(
    a: Any,
    dtype: DTypeLike = None,
    order: str = "K",
    subok: builtins.bool = True,
    shape: Any = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """Return an array of ones with the same shape and type as a given array."""

def outer(a: Any, b: Any, out: Any = None) -> Tensor:
    """Compute the outer product of two vectors."""

def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> Tensor:
    """Packs the elements of a binary-valued array into bits in a uint8 array."""

def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Tensor:
    """Pad an array."""

def partition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Tensor:
    """Return a partitioned copy of an array."""

def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: builtins.bool = False,
    method: str = "linear",
    keepdims: builtins.bool = False,
    *,
    weights: Any = None,
) -> Tensor:
    """Compute the q-th percentile of the data along the specified axis."""

def permute_dims(a: Any, axes: Any = None) -> Tensor:
    """Returns an array with axes transposed."""

def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Evaluate a piecewise-defined function."""

def place(arr: Any, mask: Any, vals: Any) -> Any:
    """Change elements of an array based on conditional and input values."""

def poly(seq_of_zeros: Any) -> Tensor:
    """Find the coefficients of a polynomial with the given sequence of roots."""

def polyadd(a1: Any, a2: Any) -> Tensor:
    """Find the sum of two polynomials."""

def polyder(p: Any, m: Any = 1) -> Tensor:
    """Return the derivative of the specified order of a polynomial."""

def polydiv(u: Any, v: Any) -> Any:
    """Returns the quotient and remainder of polynomial division."""

def polyfit(
    x: Any,
    y: Any,
    deg: Any,
    rcond: Any = None,
    full: builtins.bool = False,
    w: Any = None,
    cov: builtins.bool = False,
) -> Tensor:
    """Least squares polynomial fit."""

def polyint(p: Any, m: Any = 1, k: Any = None) -> Tensor:
    """Return an antiderivative (indefinite integral) of a polynomial."""

def polymul(a1: Any, a2: Any) -> Tensor:
    """Find the product of two polynomials."""

def polysub(a1: Any, a2: Any) -> Tensor:
    """Difference (subtraction) of two polynomials."""

def polyval(p: Any, x: Any) -> Tensor:
    """The value of a polynomial at numbers, or at a `poly1d`."""

def positive(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Numerical positive, element-wise."""

def pow(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """First array elements raised to powers from second array, element-wise."""

def power(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """First array elements raised to powers from second array, element-wise."""

def printoptions(*args: Any, **kwargs: Any) -> Any:
    """Context manager for setting print options."""

def prod(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
) -> Tensor:
    """Return the product of array elements over a given axis."""

def promote_types(type1: Any, type2: Any, /) -> Any:
    """Returns the data type with the smallest size and smallest scalar kind to which both
    ``type1`` and ``type2`` may be safely cast. The returned data type is always considered
    "canonical", this mainly means that the promoted dtype will always be in native byte
    order.
    """

def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = ...) -> Tensor:
    """Range of values (maximum - minimum) along an axis."""

def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> Any:
    """Replaces specified elements of an array with given values."""

def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> Any:
    """Put values into the destination array by matching 1d index and data slices."""

def putmask(a: Any, /, mask: Any, values: Any) -> Any:
    """Changes elements of an array based on conditional and input values."""

def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: builtins.bool = False,
    method: str = "linear",
    keepdims: builtins.bool = False,
    *,
    weights: Any = None,
) -> Tensor:
    """Compute the q-th quantile of the data along the specified axis."""

def rad2deg(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Convert angles from radians to degrees."""

def radians(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Any:
    """Convert angles from degrees to radians."""

def ravel(a: Any, order: str = "C") -> Tensor:
    """Return a contiguous flattened array."""

def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C") -> Tensor:
    """Converts a tuple of index arrays into an array of flat indices, applying boundary modes to
    the multi-index.
    """

def real(val: Any) -> Tensor:
    """Return the real part of the complex argument."""

def real_if_close(a: Any, tol: Any = 100) -> Any:
    """If input is complex with all imaginary parts close to zero, return real parts."""

def reciprocal(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Return the reciprocal of the argument, element-wise."""

def remainder(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Returns the element-wise remainder of division."""

def repeat(a: Any, repeats: Any, axis: Any = None) -> Tensor:
    """Repeat each element of an array after themselves"""

def require(
    a: Any, dtype: DTypeLike = None, requirements: Any = None, *, like: Any = None
) -> Tensor:
    """A Tensor that meets requirements: ``"C"`` or ``"F"`` order; it always owns what it writes."""

def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: Any = None) -> Tensor:
    """Gives a new shape to an array without changing its data."""

def resize(a: Any, new_shape: Any) -> Tensor:
    """Return a new array with the specified shape."""

def result_type(*arrays_and_dtypes: Any) -> Any:
    """Returns the type that results from applying the NumPy :ref:`type promotion
    <arrays.promotion>` rules to the arguments.
    """

def right_shift(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Any:
    """Shift the bits of an integer to the right."""

def rint(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Round elements of the array to the nearest integer."""

def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """Roll array elements along a given axis."""

def rollaxis(a: Any, axis: Any, start: Any = 0) -> Tensor:
    """Roll the specified axis backwards, until it lies in a given position."""

def roots(p: Any) -> Tensor:
    """The roots of a polynomial, also of a `poly1d`."""

def rot90(m: Any, k: Any = 1, axes: Any = (0, 1)) -> Tensor:
    """Rotate an array by 90 degrees in the plane specified by axes."""

def round(a: Any, decimals: Any = 0, out: Any = None) -> Tensor:
    """Evenly round to the given number of decimals."""

def row_stack(tup: Any, *, dtype: DTypeLike = None, casting: str = "same_kind") -> Any:
    """Stack arrays in sequence vertically (row wise)."""

def save(file: Any, arr: Any, allow_pickle: builtins.bool = True) -> Any:
    """Save an array to a binary file in NumPy ``.npy`` format."""

def savetxt(
    fname: Any,
    X: Any,
    fmt: str = "%.18e",
    delimiter: str = " ",
    newline: str = ...,
    header: str = "",
    footer: str = "",
    comments: str = "# ",
    encoding: Any = None,
) -> Any:
    """Save an array to a text file."""

def savez(file: Any, *args: Any, allow_pickle: builtins.bool = True, **kwds: Any) -> Any:
    """Save several arrays into a single file in uncompressed ``.npz`` format."""

def savez_compressed(file: Any, *args: Any, allow_pickle: builtins.bool = True, **kwds: Any) -> Any:
    """Save several arrays into a single file in compressed ``.npz`` format."""

def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Find indices where elements should be inserted to maintain order."""

def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Return an array drawn from elements in choicelist, depending on conditions."""

def set_printoptions(
    precision: Any = None,
    threshold: Any = None,
    edgeitems: Any = None,
    linewidth: Any = None,
    suppress: Any = None,
    nanstr: Any = None,
    infstr: Any = None,
    formatter: Any = None,
    sign: Any = None,
    floatmode: Any = None,
    *,
    legacy: Any = None,
    override_repr: Any = None,
) -> Any:
    """Set printing options."""

def setbufsize(size: Any) -> Any:
    """Set the size of the buffer used in ufuncs."""

def setdiff1d(ar1: Any, ar2: Any, assume_unique: builtins.bool = False) -> Tensor:
    """Find the set difference of two arrays."""

def seterr(
    all: Any = None, divide: Any = None, over: Any = None, under: Any = None, invalid: Any = None
) -> Any:
    """Set how floating-point errors are handled."""

def seterrcall(func: Any) -> Any:
    """Set the floating-point error callback function or log object."""

def setxor1d(ar1: Any, ar2: Any, assume_unique: builtins.bool = False) -> Tensor:
    """Find the set exclusive-or of two arrays."""

def shape(a: Any) -> Any:
    """Return the shape of an array."""

def shares_memory(a: Any, b: Any, /, max_work: Any = -1) -> Any:
    """Determine if two arrays share memory."""

def show_config(mode: str = "stdout") -> Any:
    """Show libraries and system information on which NumPy was built and is being used"""

def show_runtime() -> Any:
    """Print information about various resources in the system including available intrinsic
    support and BLAS/LAPACK library in use
    """

def sign(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Returns an element-wise indication of the sign of a number."""

def signbit(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Returns element-wise True where signbit is set (less than zero)."""

def sin(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Trigonometric sine, element-wise."""

def sinc(x: Any) -> Tensor:
    """Return the normalized sinc function."""

def sinh(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Hyperbolic sine, element-wise."""

def size(a: Any, axis: Any = None) -> Any:
    """Return the number of elements along a given axis."""

def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Tensor:
    """Return a sorted copy of an array."""

def sort_complex(a: Any) -> Tensor:
    """Sort a complex array using the real part first, then the imaginary part."""

def spacing(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Return the distance between x and the nearest adjacent number."""

def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Split an array into multiple sub-arrays as views into `ary`."""

def sqrt(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Return the non-negative square-root of an array, element-wise."""

def square(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Return the element-wise square of the input."""

def squeeze(a: Any, axis: Any = None) -> Tensor:
    """Remove axes of length one from `a`."""

def stack(
    arrays: Any,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: DTypeLike = None,
    casting: str = "same_kind",
) -> Tensor:
    """Join a sequence of arrays along a new axis."""

def std(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> Tensor:
    """Compute the standard deviation along the specified axis."""

def subtract(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Subtract arguments, element-wise."""

def sum(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike = None,
    out: Any = None,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
) -> Tensor:
    """Sum of array elements over a given axis."""

def swapaxes(a: Any, axis1: Any, axis2: Any) -> Tensor:
    """Interchange two axes of an array."""

def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Tensor:
    """Take elements from an array along an axis."""

def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Tensor:
    """Take values from the input array by matching 1d index and data slices."""

def tan(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Compute tangent element-wise."""

def tanh(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Compute hyperbolic tangent element-wise."""

def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """Compute tensor dot product along specified axes."""

def test(
    label: str = "fast",
    verbose: Any = 1,
    extra_argv: Any = None,
    doctests: builtins.bool = False,
    coverage: builtins.bool = False,
    durations: Any = -1,
    tests: Any = None,
) -> Any:
    """Pytest test runner."""

def tile(A: Any, reps: Any) -> Tensor:
    """Construct an array by repeating A the number of times given by reps."""

def trace(
    a: Any,
    offset: Any = 0,
    axis1: Any = 0,
    axis2: Any = 1,
    dtype: DTypeLike = None,
    out: Any = None,
) -> Tensor:
    """Return the sum along diagonals of the array."""

def transpose(a: Any, axes: Any = None) -> Tensor:
    """Returns an array with axes transposed."""

def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Tensor:
    """Integrate along the given axis using the composite trapezoidal rule."""

def tri(N: Any, M: Any = None, k: Any = 0, dtype: DTypeLike = ..., *, like: Any = None) -> Any:
    """An array with ones at and below the given diagonal and zeros elsewhere."""

def tril(m: Any, k: Any = 0) -> Tensor:
    """Lower triangle of an array."""

def tril_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    """Return the indices for the lower-triangle of an (n, m) array."""

def tril_indices_from(arr: Any, k: Any = 0) -> Any:
    """Return the indices for the lower-triangle of arr."""

def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Remove values along a dimension which are zero along all other."""

def triu(m: Any, k: Any = 0) -> Tensor:
    """Upper triangle of an array."""

def triu_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    """Return the indices for the upper-triangle of an (n, m) array."""

def triu_indices_from(arr: Any, k: Any = 0) -> Any:
    """Return the indices for the upper-triangle of arr."""

def true_divide(
    x: ArrayLike, y: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Divide arguments element-wise."""

def trunc(x: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]) -> Tensor:
    """Return the truncated value of the input, element-wise."""

def typename(char: Any) -> Any:
    """Return a description for the given data type code."""

def union1d(ar1: Any, ar2: Any) -> Tensor:
    """Find the union of two arrays."""

def unique(
    ar: Any,
    return_index: builtins.bool = False,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
    axis: Any = None,
    *,
    equal_nan: builtins.bool = True,
    sorted: builtins.bool = True,
) -> Any:
    """Find the unique elements of an array."""

def unique_all(x: Any) -> Any:
    """Find the unique elements of an array, and counts, inverse, and indices."""

def unique_counts(x: Any) -> Any:
    """Find the unique elements and counts of an input array `x`."""

def unique_inverse(x: Any) -> Any:
    """Find the unique elements of `x` and indices to reconstruct `x`."""

def unique_values(x: Any) -> Tensor:
    """Returns the unique elements of an input array `x`."""

def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> Tensor:
    """Unpacks elements of a uint8 array into a binary-valued output array."""

def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """Converts a flat index or array of flat indices into a tuple of coordinate arrays."""

def unstack(x: Any, /, *, axis: Any = 0) -> Any:
    """Split an array into a sequence of arrays along the given axis."""

def unwrap(
    p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 6.283185307179586
) -> Tensor:
    """Unwrap by taking the complement of large deltas with respect to the period."""

def vander(x: Any, N: Any = None, increasing: builtins.bool = False) -> Tensor:
    """Generate a Vandermonde matrix."""

def var(
    a: Any,
    axis: Any = None,
    dtype: DTypeLike = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> Tensor:
    """Compute the variance along the specified axis."""

def vdot(a: Any, b: Any, /) -> Tensor:
    """Return the dot product of two vectors."""

def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Vector dot product of two arrays."""

def vecmat(
    x1: ArrayLike, x2: ArrayLike, /, out: Any = None, **ufunc: Unpack[NumpyUfuncKeywords]
) -> Tensor:
    """Vector-matrix dot product of two arrays."""

def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Split an array into multiple sub-arrays vertically (row-wise)."""

def vstack(tup: Any, *, dtype: DTypeLike = None, casting: str = "same_kind") -> Tensor:
    """Stack arrays in sequence vertically (row wise)."""

def where(condition: Any, x: Any = None, y: Any = None, /) -> Tensor:
    """Return elements chosen from `x` or `y` depending on `condition`."""

def zeros(
    shape: Any,
    dtype: DTypeLike = ...,
    order: str = "C",
    *,
    device: DeviceLike = None,
    like: Any = None,
) -> Tensor:
    """A Tensor of zeros."""

def zeros_like(
    a: Any,
    dtype: DTypeLike = None,
    order: str = "K",
    subok: builtins.bool = True,
    shape: Any = None,
    *,
    device: DeviceLike = None,
) -> Any:
    """Return an array of zeros with the same shape and type as a given array."""
