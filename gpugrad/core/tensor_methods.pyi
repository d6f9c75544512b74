# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
import numpy as np
from collections.abc import Sequence
from gpugrad.array_api.memory import Flags, Flat
from gpugrad.array_api.methods import Reference
from gpugrad.core.known_as import NamesElsewhere
from gpugrad.core.tensor import Tensor
from gpugrad.typing import ArrayLike, Axis, DTypeLike, DeviceLike, Shape, UfuncKeywords
from typing import Any, Self, SupportsIndex, Unpack

class Methods(NamesElsewhere):
    """The methods and operators of a Tensor that are ops."""

    def __add__(self, other: ArrayLike, /) -> Tensor: ...
    def __radd__(self, other: ArrayLike, /) -> Tensor: ...
    def __iadd__(self, other: ArrayLike, /) -> Self: ...
    def __sub__(self, other: ArrayLike, /) -> Tensor: ...
    def __rsub__(self, other: ArrayLike, /) -> Tensor: ...
    def __isub__(self, other: ArrayLike, /) -> Self: ...
    def __mul__(self, other: ArrayLike, /) -> Tensor: ...
    def __rmul__(self, other: ArrayLike, /) -> Tensor: ...
    def __imul__(self, other: ArrayLike, /) -> Self: ...
    def __truediv__(self, other: ArrayLike, /) -> Tensor: ...
    def __rtruediv__(self, other: ArrayLike, /) -> Tensor: ...
    def __itruediv__(self, other: ArrayLike, /) -> Self: ...
    def __floordiv__(self, other: ArrayLike, /) -> Tensor: ...
    def __rfloordiv__(self, other: ArrayLike, /) -> Tensor: ...
    def __ifloordiv__(self, other: ArrayLike, /) -> Self: ...
    def __mod__(self, other: ArrayLike, /) -> Tensor: ...
    def __rmod__(self, other: ArrayLike, /) -> Tensor: ...
    def __imod__(self, other: ArrayLike, /) -> Self: ...
    def __pow__(self, other: ArrayLike, /) -> Tensor: ...
    def __rpow__(self, other: ArrayLike, /) -> Tensor: ...
    def __ipow__(self, other: ArrayLike, /) -> Self: ...
    def __matmul__(self, other: ArrayLike, /) -> Tensor: ...
    def __rmatmul__(self, other: ArrayLike, /) -> Tensor: ...
    def __imatmul__(self, other: ArrayLike, /) -> Self: ...
    def __and__(self, other: ArrayLike, /) -> Tensor: ...
    def __rand__(self, other: ArrayLike, /) -> Tensor: ...
    def __iand__(self, other: ArrayLike, /) -> Self: ...
    def __or__(self, other: ArrayLike, /) -> Tensor: ...
    def __ror__(self, other: ArrayLike, /) -> Tensor: ...
    def __ior__(self, other: ArrayLike, /) -> Self: ...
    def __xor__(self, other: ArrayLike, /) -> Tensor: ...
    def __rxor__(self, other: ArrayLike, /) -> Tensor: ...
    def __ixor__(self, other: ArrayLike, /) -> Self: ...
    def __lshift__(self, other: ArrayLike, /) -> Tensor: ...
    def __rlshift__(self, other: ArrayLike, /) -> Tensor: ...
    def __ilshift__(self, other: ArrayLike, /) -> Self: ...
    def __rshift__(self, other: ArrayLike, /) -> Tensor: ...
    def __rrshift__(self, other: ArrayLike, /) -> Tensor: ...
    def __irshift__(self, other: ArrayLike, /) -> Self: ...
    def __divmod__(self, other: ArrayLike, /) -> tuple[Tensor, Tensor]: ...
    def __rdivmod__(self, other: ArrayLike, /) -> tuple[Tensor, Tensor]: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __round__(self) -> Tensor: ...
    def __lt__(self, other: ArrayLike, /) -> Tensor: ...
    def __le__(self, other: ArrayLike, /) -> Tensor: ...
    def __gt__(self, other: ArrayLike, /) -> Tensor: ...
    def __ge__(self, other: ArrayLike, /) -> Tensor: ...
    def __eq__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]
    def __contains__(self, value: ArrayLike) -> bool:
        """Whether any element equals a value."""

    def __getitem__(self, index: Any) -> Tensor: ...
    def __setitem__(self, index: Any, value: ArrayLike) -> None:
        """``x[index] = value``; in place if nothing is recorded and nobody else holds the array."""

    @property
    def T(self) -> Tensor: ...
    @property
    def mT(self) -> Tensor: ...
    @property
    def H(self) -> Tensor: ...
    @property
    def real(self) -> Tensor: ...
    @real.setter
    def real(self, value: ArrayLike) -> None: ...
    @property
    def imag(self) -> Tensor: ...
    @imag.setter
    def imag(self, value: ArrayLike) -> None: ...
    def sum(
        self,
        axis: Axis = None,
        *,
        dtype: DTypeLike = None,
        keepdims: bool = False,
        out: Tensor | None = None,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Tensor:
        """Sum along axes; 0 if there are no elements."""

    def mean(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        dtype: DTypeLike = None,
        out: Tensor | None = None,
        where: ArrayLike | None = None,
    ) -> Tensor:
        """Arithmetic mean along axes."""

    def prod(
        self,
        axis: Axis = None,
        *,
        dtype: DTypeLike = None,
        keepdims: bool = False,
        out: Tensor | None = None,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Tensor:
        """Product along axes; 1 if there are no elements. Gradients are exact next to zeros."""

    def var(
        self,
        axis: Axis = None,
        *,
        correction: ArrayLike = 0.0,
        keepdims: bool = False,
        ddof: ArrayLike | None = None,
        dtype: DTypeLike = None,
        out: Tensor | None = None,
        where: ArrayLike | None = None,
        mean: Any = None,
    ) -> Tensor:
        """Variance along axes: mean squared distance from the mean."""

    def std(
        self,
        axis: Axis = None,
        *,
        correction: ArrayLike = 0.0,
        keepdims: bool = False,
        ddof: ArrayLike | None = None,
        dtype: DTypeLike = None,
        out: Tensor | None = None,
        where: ArrayLike | None = None,
        mean: Any = None,
    ) -> Tensor:
        """Standard deviation along axes: square root of `var`, with gradient 0 where it is 0."""

    def max(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Tensor:
        """Largest element along axes; equal ones share the gradient."""

    def min(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Tensor:
        """Smallest element along axes; equal ones share the gradient."""

    def any(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: ArrayLike | None = None,
    ) -> Tensor:
        """Whether at least one element is true (not 0). Its gradient is None."""

    def all(
        self,
        axis: Axis = None,
        *,
        keepdims: bool = False,
        out: Tensor | None = None,
        where: ArrayLike | None = None,
    ) -> Tensor:
        """Whether all elements are true (not 0). Its gradient is None."""

    def argmax(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Index of the largest element, the first of equal ones. Its gradient is None."""

    def argmin(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Index of the smallest element, the first of equal ones. Its gradient is None."""

    def ptp(
        self, axis: Axis = None, *, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Distance from the smallest to the largest element along axes."""

    def cumsum(
        self, axis: Axis = None, dtype: DTypeLike = None, *, out: Tensor | None = None
    ) -> Tensor:
        """Running sum as NumPy's: `cumulative_sum`, over all elements if `axis` is None."""

    def cumprod(
        self, axis: Axis = None, dtype: DTypeLike = None, *, out: Tensor | None = None
    ) -> Tensor:
        """Running product as NumPy's: `cumulative_prod`, over all elements if `axis` is None."""

    def dot(self, x2: ArrayLike, /, *, out: Tensor | None = None) -> Tensor:
        """Sum over the last axis of `x1` and the second-to-last (or only) axis of `x2`, as
        numpy.dot.
        """

    def matvec(self, x: ArrayLike) -> Tensor:
        """The product with a vector; SciPy finds it and makes a linear operator of the matrix."""

    def rmatvec(self, x: ArrayLike) -> Tensor:
        """The product of the conjugate transpose with a vector."""

    def trace(
        self,
        offset: SupportsIndex = 0,
        axis1: SupportsIndex = 0,
        axis2: SupportsIndex = 1,
        *,
        dtype: DTypeLike = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Sum of the elements on a diagonal of matrices."""

    def conj(self, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
        """Complex conjugate."""

    def conjugate(self, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
        """Complex conjugate."""

    def clip(
        self,
        min: ArrayLike | None = None,
        max: ArrayLike | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        """`x`, but not below `min` and not above `max`; its gradient is 1 also at the bounds."""

    def round(self, decimals: SupportsIndex = 0, *, out: Tensor | None = None) -> Tensor:
        """Nearest whole number, halves to the even one. Its gradient is None."""

    def transpose(self, *axes: Axis) -> Tensor:
        """Permute the axes; without arguments, reverse them."""

    def squeeze(self, axis: Axis = None) -> Tensor:
        """Remove axes of length 1."""

    def swapaxes(self, axis1: SupportsIndex, axis2: SupportsIndex) -> Tensor:
        """Swap two axes."""

    def diagonal(
        self, offset: SupportsIndex = 0, axis1: SupportsIndex = 0, axis2: SupportsIndex = 1
    ) -> Tensor:
        """Extract a diagonal of matrices."""

    def repeat(self, repeats: Any, axis: Axis = None) -> Tensor:
        """Repeat each element, or each slice along an axis."""

    def take(
        self,
        indices: ArrayLike,
        /,
        axis: Axis = None,
        *,
        out: Tensor | None = None,
        mode: Any = None,
    ) -> Tensor:
        """Take slices of an array along an axis."""

    def nonzero(self) -> tuple[Tensor, ...]:
        """Indices of the elements that are not 0, in row-major order; their gradient is None."""

    def sort(self, axis: int = -1, kind: Any = None, *, stable: Any = None) -> None:
        """Sort the elements in place along an axis, as NumPy's method; stable and
        differentiable.
        """

    def argsort(
        self,
        axis: Axis = -1,
        *,
        descending: bool = False,
        stable: bool = True,
        kind: Any = None,
        order: Any = None,
    ) -> Tensor:
        """Indices that sort an array along an axis; their gradient is None."""

    def choose(self, choices: ArrayLike, mode: str = "raise") -> Tensor:
        """Choose each element from one of several arrays by its number."""

    def argpartition(
        self, kth: Shape, axis: Axis = -1, *, kind: Any = None, order: Any = None
    ) -> Tensor:
        """Indices that partition an array as `partition` does; their gradient is None."""

    def searchsorted(self, x2: ArrayLike, /, side: str = "left", sorter: Any = None) -> Tensor:
        """Indices at which elements would be inserted into a sorted array; the gradient is None."""

    def fill(self, value: ArrayLike) -> None:
        """Set every element to one value; differentiable with respect to the value."""

    def view(self, dtype: DTypeLike = None) -> Any:
        """A view of the same tensor, or a copy of its bytes as numbers of another dtype."""

    def ref(self) -> Reference:
        """A reference that can be a key, as TensorFlow's ``ref``; it keeps the Tensor alive."""

    def _begin_write(self, value: ArrayLike | None = None) -> None:
        """Let recorders see the elements of `x` before a function reads them, and then writes to
        `x`.
        """

    def astype(
        self,
        dtype: DTypeLike,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
        *,
        device: DeviceLike = None,
    ) -> Tensor:
        """Cast to another dtype; the gradient is cast back."""

    @property
    def base(self) -> Tensor | None: ...
    def byteswap(self, inplace: bool = False) -> Tensor:
        """The elements with their bytes reversed; has no gradient."""

    def compress(self, condition: Any, axis: Axis = None, out: Tensor | None = None) -> Any:
        """The slices along an axis where a condition is true."""

    def copy(self, order: str = "C") -> Tensor:
        """A copy; the gradient flows through."""

    @property
    def ctypes(self) -> Any: ...
    @property
    def data(self) -> Any: ...
    def dump(self, file: Any) -> None:
        """Write a pickle of the values as a NumPy array to a file, or a path."""

    def dumps(self) -> bytes:
        """A pickle of the values as a NumPy array."""

    @property
    def flags(self) -> Flags: ...
    @property
    def flat(self) -> Flat: ...
    @flat.setter
    def flat(self, value: ArrayLike) -> None: ...
    def flatten(self, order: str = "C") -> Tensor:
        """A copy of the elements along one axis."""

    def get(
        self, stream: Any = None, order: str = "C", out: Tensor | None = None, blocking: bool = True
    ) -> np.ndarray[Any, Any]:
        """A NumPy array of the values, as CuPy's method; `out` is written if it is given."""

    def item(self, *index: Any) -> Any:
        """One element as a Python number: the only one, or that at an index."""

    def partition(self, kth: Shape, axis: int = -1) -> None:
        """Put the `kth` element along an axis where sorting would put it, in place."""

    def put(self, indices: Any, values: Any, mode: str = "raise") -> Any: ...
    def ravel(self, order: str = "C") -> Tensor:
        """The elements along one axis: a view if the memory allows it."""

    def reshape(self, *shape: Shape, order: str = "C", copy: bool | None = None) -> Tensor:
        """The same elements in another shape, which is one tuple or several ints."""

    def resize(self, *shape: Shape, refcheck: bool = True) -> None:
        """Another shape in place: elements are cut off, or zeros are appended."""

    def scatter_add(self, slices: Any, value: ArrayLike) -> None:
        """Write ``add`` of elements and values at an index that may repeat."""

    def scatter_max(self, slices: Any, value: ArrayLike) -> None:
        """Write ``maximum`` of elements and values at an index that may repeat."""

    def scatter_min(self, slices: Any, value: ArrayLike) -> None:
        """Write ``minimum`` of elements and values at an index that may repeat."""

    def set(self, arr: Any, stream: Any = None) -> None:
        """Write the values of a NumPy array of the same shape and dtype, as CuPy's method."""

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """As NumPy's; a Tensor is always writable, so ``write=False`` is refused."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def tobytes(self, order: str = "C") -> bytes:
        """The bytes of the elements."""

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """Write the elements to a file."""

    def to_device(self, device: DeviceLike, /, *, stream: Any = None) -> Tensor:
        """The tensor on another device, itself if it is there already; differentiable."""

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return the capsule that ``from_dlpack`` of any library reads; that function calls
        this.
        """

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the tensor's device as DLPack's (kind, number): (1, 0) is the CPU, (2, i) a
        GPU.
        """

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The module gpugrad, as a namespace of the array API standard."""

    def __array_function__(
        self, function: Any, types: Sequence[Any], args: Any, keywords: Any
    ) -> Any:
        """Called by ``np.sum(tensor)``, ``np.concatenate`` and all of NumPy that is not a ufunc."""
