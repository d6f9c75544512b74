"""A stand-in for CuPy on a machine without a GPU: CuPy's rules, NumPy's arithmetic.

`install()` puts modules named cupy and cupyx into `sys.modules`. They run the device paths of
gpugrad, and the CuPy reading of every op, where CI has no GPU. They imitate the rules that code
written on NumPy breaks:

- ``cupy.ndarray`` is not a ``numpy.ndarray``. A NumPy array where an array is expected is a
  TypeError, and so is ``np.asarray`` of a device array; values cross only by ``.get()`` and
  ``cupy.array``.
- Reductions and item access return 0-d arrays, never scalars, and Python cannot index with 0-d
  arrays (``range(x)``, ``[1, 2][x]``).
- There are two devices, or as many as GPUGRAD_TESTS_GPUS says. A kernel whose array is not on the
  current device is a ValueError, and ``x.copy()`` goes to the current device.
- There is only what CuPy 14 has: `MISSING`, `REFUSED` and the lists of submodules were
  generated from CuPy 14.2, by comparing the names and signatures of the two libraries.
- No RuntimeWarnings; singular matrices give NaN unless ``cupyx.errstate(linalg="raise")``.

Only a real GPU can test: CUDA's results (rounding, the order of sums), kernels beyond what the
shim models (a RawModule runs on the CPU), concurrent streams (only who waited for whom is
recorded), graphs, performance, dtypes that CUDA libraries lack, and CuPy's positional argument
names. Modules that gpugrad does not call, such as cupy.random, are left out.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import operator
import os
import sys
import threading
import types
import weakref
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import scipy.linalg
import scipy.special

GPUS = int(os.environ.get("GPUGRAD_TESTS_GPUS", "2"))


def _words(text: str) -> list[str]:
    return text.split()


MISSING = frozenset(
    _words(
        "asmatrix block bmat busday_count busday_offset busdaycalendar bytes_ character "
        "clongdouble complex256 datetime64 datetime_as_string datetime_data einsum_path "
        "errstate False_ flexible float128 frompyfunc fromregex geomspace get_include "
        "getbufsize geterr geterrcall histogram_bin_edges info insert is_busday isnat "
        "little_endian longdouble matrix matvec memmap nanpercentile nanquantile ndenumerate "
        "nditer nested_iters object_ polyder polydiv polyint recarray record ScalarType "
        "sctypeDict setbufsize seterr seterrcall show_runtime spacing str_ test timedelta64 "
        "True_ typecodes unstack vecdot vecmat void"
    )
)
"""Public names of NumPy that CuPy does not have."""

REFUSED: dict[str, frozenset[str]] = {
    name: frozenset(keywords.split())
    for keywords, names in {
        "where": "all any mean nanmean",
        "initial where": "amax amin max min nanmax nanmin nanprod nansum prod sum",
        "where mean correction": "nanstd nanvar std var",
        "subok": "broadcast_arrays broadcast_to copy",
        "device": "asanyarray empty empty_like eye full full_like linspace ones ones_like zeros "
        "zeros_like",
        "kind order": "argpartition partition",
        "order stable": "argsort sort",
        "keepdims": "count_nonzero",
        "kind": "isin",
        "weights": "percentile quantile",
        "mode": "take",
        "sorted": "unique",
        "out": "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
        "upper": "cholesky",
        "hermitian rtol": "matrix_rank pinv",
        "hermitian": "svd",
    }.items()
    for name in names.split()
}
"""By function: keywords that it has in NumPy and not in CuPy."""

LINALG = _words(
    "LinAlgError cholesky cond cross det eig eigh eigvals eigvalsh inv lstsq matmul matrix_power "
    "matrix_rank matrix_transpose norm pinv qr slogdet solve svd tensorinv tensorsolve"
)
SCIPY_LINALG = _words(
    "block_diag circulant expm hadamard hankel khatri_rao lu lu_factor lu_solve "
    "solve_triangular toeplitz"
)
SPECIAL = _words(
    "bdtr bdtrc bdtri beta betainc betaincinv betaln binom boxcox boxcox1p cbrt chdtr chdtrc "
    "chdtri cosdg cosm1 cotdg digamma ellipeinc ellipj ellipk ellipkinc ellipkm1 entr erf erfc "
    "erfcinv erfcx erfinv exp1 exp10 exp2 expi expit expm1 expn exprel fdtr fdtrc fdtri gamma "
    "gammainc gammaincc gammainccinv gammaincinv gammaln gammasgn gdtr gdtrc huber i0 i0e i1 i1e "
    "inv_boxcox inv_boxcox1p j0 j1 k0 k0e k1 k1e kl_div lambertw log1p log_expit log_ndtr "
    "log_softmax loggamma logit logsumexp lpmv multigammaln nbdtr nbdtrc nbdtri ndtr ndtri pdtr "
    "pdtrc pdtri poch polygamma pseudo_huber psi radian rel_entr rgamma round shichi sici sinc "
    "sindg softmax sph_harm_y spherical_yn tandg wright_bessel xlog1py xlogy y0 y1 yn zeta zetac"
)
COMPLEX_SPECIAL = frozenset(
    _words("digamma expm1 exprel gamma lambertw log1p loggamma psi rgamma sinc xlog1py xlogy")
)
"""The functions of CuPy's ``special`` that take complex numbers."""
METHODS = _words(
    "all any argmax argmin argpartition argsort astype choose clip compress conj conjugate "
    "cumprod cumsum diagonal dot fill flatten max mean min nonzero partition prod put ravel "
    "repeat reshape round searchsorted sort squeeze std sum swapaxes take trace transpose var view"
)
VIEWS = frozenset(_words("diagonal ravel reshape squeeze swapaxes transpose view"))  # no kernel

ATOMIC = {
    name: frozenset(dtypes.split())
    for name, dtypes in {
        "add": "int32 uint32 uint64 float16 float32 float64",
        "subtract": "int32 uint32",
        "maximum": "int32 uint32 uint64",
        "minimum": "int32 uint32 uint64",
    }.items()
}
"""The dtypes of ``ufunc.at`` in CuPy 14.0; 14.1 has int64 too.

Extremes of floats exist there, but ignore NaN and round float64 to float32: nothing may use them.
"""
SORTING = frozenset(_words("argpartition argsort lexsort median partition sort unique"))
"""Functions that sort by Thrust, which does not support bfloat16."""


# ---- devices -----------------------------------------------------------------------------


class _Current(threading.local):
    device = 0
    capture: list[Any] | None = None
    """Launches since begin_capture."""
    captured: list[Any]
    """Arrays created since: a graph reads and writes their memory when it is launched."""

    def __init__(self) -> None:
        self._streams: list[list[Any]] = [[] for _ in range(GPUS)]

    def streams(self, device: int = -1) -> list[Any]:
        """The streams of this thread on a device, the current one last."""
        held = self._streams[self.device if device < 0 else device]
        if not held:
            held.append(Stream.null)
        return held


_current = _Current()


class Device:
    """``cupy.cuda.Device``: a number, and a context that makes it current."""

    compute_capability = "90"

    def __init__(self, device: Any = None) -> None:
        self.id = _current.device if device is None else int(getattr(device, "id", device))
        if not 0 <= self.id < GPUS:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        self._before: list[int] = []

    def __enter__(self) -> Device:
        self._before.append(_current.device)
        _current.device = self.id
        return self

    def __exit__(self, *exc: object) -> None:
        _current.device = self._before.pop()

    def use(self) -> None:
        _current.device = self.id

    def synchronize(self) -> None:
        """Nothing is ever pending."""

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"


class CUDARuntimeError(RuntimeError):
    """``cupy.cuda.runtime.CUDARuntimeError``."""


# ---- the array ---------------------------------------------------------------------------


class ndarray:
    """``cupy.ndarray``: holds a NumPy array that nothing else may touch."""

    __slots__ = ("__weakref__", "_array", "_base", "_block", "_gpu")
    __module__ = "cupy"
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100

    def __init__(self, shape: Any, dtype: Any = float) -> None:
        self._array, self._gpu = np.empty(shape, dtype), _current.device
        self._block = _allocators[0](self._array.nbytes)
        _owners[id(self._array)] = self
        if _current.capture is not None:
            _current.captured.append(self._array)

    @property
    def device(self) -> Device:
        return Device(self._gpu)

    @property
    def T(self) -> ndarray:
        return _wrap(self._array.T, self._gpu)

    @property
    def mT(self) -> ndarray:
        return _wrap(self._array.mT, self._gpu)

    @property
    def real(self) -> ndarray:
        return _wrap(self._array.real, self._gpu)

    @property
    def imag(self) -> ndarray:
        return _wrap(self._array.imag, self._gpu)

    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)
    ndim = property(lambda self: self._array.ndim)
    size = property(lambda self: self._array.size)
    nbytes = property(lambda self: self._array.nbytes)
    itemsize = property(lambda self: self._array.itemsize)
    strides = property(lambda self: self._array.strides)
    flags = property(lambda self: self._array.flags)
    base = property(
        lambda self: None if getattr(self, "_base", None) is _foreign else self._array.base
    )
    data = property(lambda self: types.SimpleNamespace(ptr=self._array.ctypes.data))

    def get(self, *args: Any, **kwargs: Any) -> np.ndarray[Any, Any]:
        _not_captured("a copy to the host")
        return np.array(self._array, order="C")

    def set(self, values: np.ndarray[Any, Any], stream: Any = None) -> None:
        _not_captured("a copy from the host")
        self._array[...] = values

    def copy(self, order: str = "C") -> ndarray:
        return _repeated(lambda: self._array.copy(order), _current.device)

    def item(self, *args: Any) -> Any:
        _not_captured("a copy to the host")
        return self._array.item(*args)

    def tolist(self) -> Any:
        _not_captured("a copy to the host")
        return self._array.tolist()

    def tobytes(self, order: str = "C") -> bytes:
        _not_captured("a copy to the host")
        return self._array.tobytes(order)

    def __getitem__(self, index: Any) -> ndarray:
        at = _index(index)
        if _current.capture is not None:
            return _repeated(lambda: self._array[_wrapped(self._array, at)], self._gpu)
        return _wrap(self._array[_wrapped(self._array, at)], self._gpu)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError("non-scalar numpy.ndarray cannot be used for fill")
        array, at = _bare(self), _index(index)
        if _is_advanced(index) and not isinstance(value, ndarray):
            _not_captured("a number from the host for an index of arrays")
        bare = value if isinstance(value, np.ndarray) else _bare(value)
        _now_or_in_graph(lambda: array.__setitem__(_wrapped(array, at), bare))

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[ndarray]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        _not_captured("a copy to the host")
        return bool(self._array)

    def __int__(self) -> int:
        _not_captured("a copy to the host")
        return int(self._array)

    def __float__(self) -> float:
        _not_captured("a copy to the host")
        return float(self._array)

    def __complex__(self) -> complex:
        _not_captured("a copy to the host")
        return complex(self._array)

    def __repr__(self) -> str:
        return repr(self._array)

    def __str__(self) -> str:
        return str(self._array)

    def __format__(self, spec: str) -> str:
        return format(self._array, spec)

    def __copy__(self) -> ndarray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ndarray:
        return self.copy()

    def __reduce__(self) -> Any:
        return array, (self._array,)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or not hasattr(sys.modules["cupy"], ufunc.__name__):
            return NotImplemented
        inputs = tuple(x[()] if isinstance(x, np.ndarray) and not x.ndim else x for x in inputs)
        return getattr(sys.modules["cupy"], ufunc.__name__)(*inputs, **kwargs)

    def _unary(self, function: Any) -> Any:
        return self.__array_ufunc__(function, "__call__", self)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        home = func.__module__.replace("numpy", "cupy", 1)
        function = getattr(sys.modules.get(home), func.__name__, None)
        if function is None or not all(issubclass(t, (ndarray, np.ndarray)) for t in types):
            return NotImplemented
        return function(*args, **kwargs)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface = self._array.__array_interface__
        return {k: interface[k] for k in ("shape", "typestr", "descr", "data", "strides")} | {
            "version": 3, "stream": 1,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self._gpu  # kDLCUDA

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:  # fmt: skip
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("the fake CuPy hands out an array only where it is")
        if copy:
            raise BufferError("copy=True only supported for copy to CPU.")
        return self._array.__dlpack__(max_version=max_version, copy=copy)


def _operator(name: str, ufunc: Any, reflected: bool) -> Any:
    def method(self: ndarray, other: Any) -> Any:
        if not isinstance(other, ndarray) and getattr(other, "__array_ufunc__", ...) is None:
            return NotImplemented
        if other is None or isinstance(other, str):
            return NotImplemented
        args = (other, self) if reflected else (self, other)
        return self.__array_ufunc__(ufunc, "__call__", *args)

    method.__name__ = name
    return method


def _inplace(name: str, function: Any) -> Any:
    def method(self: ndarray, other: Any) -> ndarray:
        array, value = _bare(self), _bare(other)
        _now_or_in_graph(lambda: function(array, value))
        return self

    method.__name__ = name
    return method


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift,
}.items():  # fmt: skip
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__", _ufunc, False))
    setattr(ndarray, f"__r{_name}__", _operator(f"__r{_name}__", _ufunc, True))
    if _name != "matmul":  # CuPy lacks `@=`
        setattr(ndarray, f"__i{_name}__", _inplace(_name, getattr(operator, f"i{_name}", None)
                                                   or getattr(operator, f"i{_name}_")))  # fmt: skip
for _name, _ufunc in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}.items():  # fmt: skip
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__", _ufunc, False))
for _name, _ufunc in {
    "neg": np.negative, "pos": np.positive, "abs": np.abs, "invert": np.invert,
}.items():  # fmt: skip
    setattr(ndarray, f"__{_name}__", functools.partialmethod(ndarray._unary, _ufunc))


_foreign = object()
"""The `_base` of an array whose memory belongs to another library: to CuPy it is not a view."""


def _shared(array: np.ndarray[Any, Any], gpu: int | None = None) -> Any:
    device_array = _wrap(array, gpu)
    device_array._base = _foreign
    return device_array


_owners: weakref.WeakValueDictionary[int, ndarray] = weakref.WeakValueDictionary()
"""Arrays that own their memory, by the id of the NumPy array that they hold."""


def _wrap(value: Any, gpu: int | None = None) -> Any:
    """Device arrays for every array in a function's result; NumPy scalars become 0-d arrays."""
    if isinstance(value, (np.ndarray, np.generic)):
        wrapped = object.__new__(ndarray)
        wrapped._array = np.asarray(value)
        wrapped._gpu = _current.device if gpu is None else gpu
        if _current.capture is not None:
            _current.captured.append(wrapped._array)
        if wrapped._array.base is None and id(wrapped._array) in _owners:
            return _owners[id(wrapped._array)]  # a function returned its argument
        if wrapped._array.base is None:  # it owns its memory, which counts as the device's
            with Device(wrapped._gpu):
                wrapped._block = _allocators[0](wrapped._array.nbytes)
            _owners[id(wrapped._array)] = wrapped
        else:
            wrapped._base = _owners.get(id(wrapped._array.base))  # a view keeps its base alive
        return wrapped
    if isinstance(value, tuple):
        parts = [_wrap(v, gpu) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [_wrap(v, gpu) for v in value]
    return value


def _bare(value: Any, same_device: bool = True) -> Any:
    """NumPy arrays for every device array in an argument, if a kernel may read them here."""
    if type(value) is ndarray:
        if same_device and value._gpu != _current.device:
            raise ValueError(
                f"Array device must be same as the current device: array device = {value._gpu} "
                f"while current = {_current.device}"
            )
        return value._array
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_bare(v, same_device) for v in value)
    return value


def _index(index: Any) -> Any:
    """An index, for which CuPy accepts NumPy arrays and lists too."""
    if isinstance(index, tuple):
        return tuple(_index(i) for i in index)
    if isinstance(index, (list, np.ndarray)):
        _not_captured("an index from the host")
    if isinstance(index, ndarray) and index.dtype.kind == "b":
        _not_captured("a mask as an index, whose elements the host counts")
    return index if isinstance(index, np.ndarray) else _bare(index, same_device=False)


def _wrapped(array: np.ndarray[Any, Any], at: Any) -> Any:
    """An index of NumPy's for `array`; integers in arrays wrap around, as CuPy's do."""
    parts = at if isinstance(at, tuple) else (at,)
    if not any(isinstance(p, np.ndarray) and p.dtype.kind in "iu" for p in parts):
        return at
    used = [p.ndim if isinstance(p, np.ndarray) and p.dtype.kind == "b" else p is not None
            and p is not ... for p in parts]  # fmt: skip
    wrapped, axis = [], 0
    for part, n in zip(parts, used, strict=True):
        if part is ...:
            n = array.ndim - sum(used)
        elif isinstance(part, np.ndarray) and part.dtype.kind in "iu" and axis < array.ndim:
            part = part % array.shape[axis] if array.shape[axis] else part
        wrapped.append(part)
        axis += n
    return tuple(wrapped)


def _is_advanced(index: Any) -> bool:
    return any(isinstance(i, (ndarray, list, np.ndarray))
               for i in (index if isinstance(index, tuple) else (index,)))  # fmt: skip


CAPTURED = frozenset(
    _words(
        "all angle any arange argmax argmin argsort around as_strided ascontiguousarray astype "
        "atleast_1d broadcast_arrays broadcast_to concatenate conj copy cumprod cumsum diagonal "
        "digitize empty empty_like expand_dims eye flip full full_like imag isclose lambertw max "
        "mean min moveaxis ones ones_like permute_dims prod ravel real reduce repeat reshape roll "
        "round searchsorted sinc sort squeeze stack std sum swapaxes take take_along_axis tile "
        "transpose tri tril triu var view where zeros zeros_like zeta"
    )
)
"""Functions that CuPy 14.2 runs as views, memset and launches on pool memory, by its sources.

Sorting is Thrust's, under a policy that does not wait for the stream. Other functions wait for a
result, copy from or to the host, call a library that CuPy refuses to capture, or were not read.
"""

AT_ONCE = 8
"""The most arrays that CuPy joins one by one; beyond, it copies addresses from the host."""


def _not_captured(what: str) -> None:
    """Raise during a capture: CuPy cannot capture this, or nobody knows whether it can."""
    if _current.capture is not None:
        raise CUDARuntimeError(f"the fake CuPy cannot capture {what}")


def _now_or_in_graph(kernel: Any) -> None:
    """Run a kernel that writes to memory, or record it while a graph is captured."""

    def quietly() -> None:
        with np.errstate(all="ignore"):
            kernel()

    if _current.capture is None:
        quietly()
    else:
        _current.capture.append(quietly)


def _repeated(compute: Any, gpu: int | None = None) -> Any:
    """The device arrays of a function's result, computed again by each launch of a graph."""
    with np.errstate(all="ignore"):
        result = _wrap(compute(), gpu)
        again = result if _current.capture is None else compute()
    several = isinstance(result, (tuple, list))
    for k, (one, second) in enumerate(
        zip(result, again, strict=True) if several else [(result, again)]
    ):
        memory = one._array  # not the device array, whose lifetime the pool controls
        if again is result or np.may_share_memory(memory, second) or not memory.size:
            continue

        def launch(memory: Any = memory, k: int = k) -> None:
            memory[...] = compute()[k] if several else compute()

        _now_or_in_graph(launch)
    return result


def _sortable(name: str, arrays: Any) -> None:
    if name in SORTING and any(getattr(a, "dtype", None) == "bfloat16" for a in arrays):
        raise NotImplementedError("Sorting arrays with dtype 'bfloat16' is not supported")


def _add_at(a: ndarray, index: Any, value: Any, ufunc: Any = np.add) -> None:
    """``ufunc.at``."""
    if not isinstance(value, ndarray):
        _not_captured("a number from the host for an index of arrays")
    array, at, bare = _bare(a), _index(index), _bare(value)
    _now_or_in_graph(lambda: ufunc.at(array, _wrapped(array, at), bare))


CONVERTS = frozenset(
    _words(
        "allclose arange array_equal atleast_1d clip empty eye full full_like identity isclose "
        "kron linspace meshgrid ones tile tri where zeros zeta"
    )
)
"""Functions that take numbers where others need an array, by CuPy 14.2's sources."""


def _need_arrays(name: str, args: Any) -> None:
    """Raise as CuPy does for a number in the place of an array; a ufunc takes numbers."""
    if name in CONVERTS or not args:
        return
    first = args[0] if isinstance(args[0], (list, tuple)) else args[:1]
    floats = (np.inexact, ml_dtypes.bfloat16)
    for value in (*first, *(a for a in args[1:] if isinstance(a, floats))):
        if isinstance(value, (bool, int, float, complex, np.generic)):
            raise TypeError(f"Unsupported type {type(value)} of {name}()")


def _lift(function: Any, name: str) -> Any:
    """NumPy's function with device arrays as arguments and results, like CuPy's."""
    refused = REFUSED.get(name, frozenset())

    @functools.wraps(function, updated=())
    def lifted(*args: Any, **kwargs: Any) -> Any:
        for keyword in kwargs:
            if keyword in refused:
                raise TypeError(f"{name}() got an unexpected keyword argument '{keyword}'")
        out = kwargs.get("out")
        is_ufunc = isinstance(function, np.ufunc)
        if not is_ufunc:
            _need_arrays(name, args)
        if not (name in CAPTURED if out is None else is_ufunc) and not is_ufunc:
            _not_captured(f"{name}()")
        if name in ("concatenate", "stack") and len(args[0]) > AT_ONCE:
            _not_captured("the addresses of many arrays")
        keywords, arguments = {k: _bare(v) for k, v in kwargs.items()}, [_bare(a) for a in args]
        _sortable(name, arguments)
        is_product = getattr(function, "signature", None)  # a matrix product, not elementwise
        if is_product and all(a.size and a.dtype.kind in "fc" for a in arguments):
            _not_captured(f"the cuBLAS of {name}()")
        if out is not None:
            _now_or_in_graph(lambda: function(*arguments, **keywords))
            return out
        if _current.capture is not None:
            return _repeated(lambda: function(*arguments, **keywords))
        with np.errstate(all="ignore"):
            result = function(*arguments, **keywords)
        if isinstance(result, bool) and name in ("allclose", "array_equal", "array_equiv"):
            result = np.bool_(result)
        return _wrap(result)

    return lifted


def _method(name: str) -> Any:
    refused = REFUSED.get(name, frozenset())

    def method(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        for keyword in kwargs:
            if keyword in refused:
                raise TypeError(f"{name}() got an unexpected keyword argument '{keyword}'")
        if name not in CAPTURED:
            _not_captured(f"{name}()")
        array = _bare(self, same_device=name not in VIEWS)
        _sortable(name, [array])
        arguments, keywords = [_bare(a) for a in args], {k: _bare(v) for k, v in kwargs.items()}
        if _current.capture is not None:
            return _repeated(lambda: getattr(array, name)(*arguments, **keywords), self._gpu)
        with np.errstate(all="ignore"):
            result = getattr(array, name)(*arguments, **keywords)
        if name in VIEWS and not np.may_share_memory(result, array):
            _bare(self)  # a kernel copies it
        return self if result is array else _wrap(result, self._gpu)

    method.__name__ = name
    return method


for _name in METHODS:
    setattr(ndarray, _name, _method(_name))


class ufunc:
    """``cupy.ufunc``: callable; reduces and accumulates with + and * only, as CuPy's does."""

    __module__ = "cupy"

    def __init__(self, of: np.ufunc) -> None:
        self._of, self._call = of, _lift(of, of.__name__)
        self.__name__ = self.name = of.__name__
        self.nin, self.nout, self.nargs = of.nin, of.nout, of.nargs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._of.signature is not None:
            kwargs.pop("where", None)
        return self._call(*args, **kwargs)

    def _only(self, names: tuple[str, ...], method: str) -> Any:
        if self.name not in names:
            raise NotImplementedError(f"`{self.name}.{method}` is not supported yet")
        return _lift(getattr(self._of, method), method)

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
               keepdims: bool = False) -> Any:  # fmt: skip
        function = self._only(("add", "multiply"), "reduce")
        return function(array, axis=axis, dtype=dtype, out=out, keepdims=keepdims)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        return self._only(("add", "multiply"), "accumulate")(array, axis, dtype, out)

    def reduceat(self, array: Any, indices: Any, axis: int = 0) -> Any:
        return self._only(("add",), "reduceat")(array, indices, axis)

    def at(self, a: ndarray, indices: Any, b: Any = None) -> None:
        if self.name not in ATOMIC:
            raise NotImplementedError(f"`{self.name}.at` is not supported yet")
        if a.dtype.name not in ATOMIC[self.name]:
            raise TypeError(f"cupy.{self.name}.at does not support {a.dtype} as data type")
        _add_at(a, indices, b, self._of)

    def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        return _lift(self._of.outer, "outer")(a, b, **kwargs)

    def __repr__(self) -> str:
        return f"<ufunc 'cupy_{self.name}'>"


# ---- functions that differ from NumPy's --------------------------------------------------


def array(obj: Any, dtype: Any = None, copy: Any = True, order: str = "K", ndmin: int = 0,
          **kwargs: Any) -> ndarray:  # fmt: skip
    """Copy to the device from NumPy or another device."""
    here = isinstance(obj, ndarray) and obj._gpu == _current.device and ndmin <= obj.ndim
    if here and not copy and dtype in (None, obj.dtype):
        return obj  # type: ignore[no-any-return]
    if not isinstance(obj, ndarray):
        _not_captured("a copy from the host")

    if not isinstance(obj, ndarray) and hasattr(obj, "__cuda_array_interface__"):
        memory = types.SimpleNamespace(__array_interface__=obj.__cuda_array_interface__, held=obj)
        obj = np.asarray(memory)  # the "memory of the device"
        if not copy and dtype in (None, obj.dtype):
            return _shared(obj)  # type: ignore[no-any-return]

    def bare(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [bare(v) for v in value]
        return value._array if isinstance(value, ndarray) else value

    return _repeated(lambda: np.array(bare(obj), dtype=dtype, order=order, ndmin=ndmin))


def asarray(a: Any, dtype: Any = None, order: str = "K", *, blocking: bool = False) -> ndarray:
    return array(a, dtype, copy=False, order=order)


class _Capsule:
    """Hands NumPy a DLPack capsule: the "memory of the device" is the host's here."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._capsule


def from_dlpack(array: Any, *, device: Any = None, copy: bool | None = None) -> ndarray:
    kind, gpu = array.__dlpack_device__()
    if kind != 2:
        raise TypeError("CPU arrays cannot be directly imported to CuPy.")
    shared = np.from_dlpack(_Capsule(array.__dlpack__(stream=1, max_version=(1, 0), copy=copy)))
    return _shared(shared, gpu)  # type: ignore[no-any-return]


def _triangle(name: str) -> Any:
    """``cupy.tril``, which turns bfloat16 into float32, as it combines it with a NumPy scalar."""
    lifted = _lift(getattr(np, name), name)

    @functools.wraps(lifted)
    def triangle(m: Any, k: int = 0) -> Any:
        result = lifted(m, k)
        return result.astype(np.float32) if m.dtype == "bfloat16" else result

    return triangle


class _Linalg(threading.local):
    raises = False


_linalg = _Linalg()


@contextlib.contextmanager
def errstate(*, linalg: str | None = None, **kwargs: Any) -> Iterator[None]:
    """``cupyx.errstate``."""
    before, _linalg.raises = _linalg.raises, linalg == "raise"
    try:
        yield
    finally:
        _linalg.raises = before


def _quiet(function: Any, name: str) -> Any:
    """A solver that returns NaN for a matrix it cannot solve, as CuPy's do by default."""
    lifted = _lift(function, name)

    @functools.wraps(lifted)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        try:
            return lifted(*args, **kwargs)
        except np.linalg.LinAlgError as error:
            about = str(error).lower()
            if _linalg.raises or not ("singular" in about or "positive" in about):
                raise
            like = args[-1] if name == "solve" else args[0]
            dtype = np.result_type(_bare(args[0]).dtype, np.float32)
            return _wrap(np.full(like.shape, np.nan, dtype))

    return quiet


class CompileException(Exception):
    """``cupy.cuda.compiler.CompileException``."""


class RawModule:
    """``cupy.RawModule``, whose kernels the shim runs on the CPU."""

    def __init__(
        self, code: str | None = None, *, path: str | None = None, options: Any = (),
        backend: str = "nvrtc", translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False, name_expressions: Any = None, jitify: Any = None,
    ) -> None:  # fmt: skip
        self._code = code

    def get_function(self, name: str) -> Any:
        from gpugrad.testing.cuda import shim

        if shim.unavailable():
            raise NotImplementedError(f"to run kernels the fake CuPy {shim.unavailable()}")
        try:
            module = shim.module(self._code, name)
        except shim.ShimError as error:
            raise CompileException(str(error)) from error

        def run(
            grid: Any, block: Any, args: Any, *, shared_mem: int = 0,
            enable_cooperative_groups: bool = False,
        ) -> None:  # fmt: skip
            bare = [a[()] if isinstance(a, np.ndarray) else _bare(a, False) for a in args]
            launch = functools.partial(
                module.run, name, grid, block, bare,
                shared=shared_mem, cooperative=enable_cooperative_groups,
            )  # fmt: skip
            if _current.capture is None:
                launch()
            else:
                _current.capture.append(launch)

        run.attributes = {  # type: ignore[attr-defined]
            "num_regs": 0, "local_size_bytes": 0, "shared_size_bytes": 0,
            "max_threads_per_block": 1024,
        }  # fmt: skip
        return run


class ElementwiseKernel:
    """``cupy.ElementwiseKernel`` of numbers and contiguous arrays of one shape, run by the shim."""

    def __init__(self, in_params: str, out_params: str, operation: str, name: str) -> None:
        self._in, self._out = ([p.split() for p in s.split(",")] for s in (in_params, out_params))
        self._operation, self.name = operation, name

    def __call__(self, *args: Any) -> Any:
        arguments = dict(zip((name for _, name in (*self._in, *self._out)), args, strict=False))
        like = next(a for a in args if isinstance(a, ndarray))
        for dtype, name in self._out:
            arguments.setdefault(name, ndarray(like.shape, dtype))
        of_c = {"float32": "float", "float64": "double"}
        params, lines, values = [], [], []
        for dtype, name in (*self._in, *self._out):
            value, const = arguments[name], "const " if [dtype, name] in self._in else ""
            if isinstance(value, ndarray):
                assert value.dtype == dtype
                assert value.flags.c_contiguous
                params.append(f"{const}{of_c[dtype]}* _raw_{name}")
                lines.append(f"{const}{of_c[dtype]}& {name} = _raw_{name}[i];")
            else:
                params.append(f"{const}{of_c[dtype]} {name}")
                value = np.dtype(dtype).type(value)
            values.append(value)
        source = f"""__global__ void {self.name}({", ".join(params)}, long long n) {{
          long long i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n) {{ {" ".join(lines)} {self._operation}; }}
        }}"""
        run = RawModule(source).get_function(self.name)
        run((-(-like.size // 128), 1, 1), (128, 1, 1), [*values, np.int64(like.size)])
        results = [arguments[name] for _, name in self._out]
        return results[0] if len(results) == 1 else tuple(results)


class Event:
    """``cupy.cuda.Event``: remembers the stream that recorded it."""

    def __init__(
        self, block: bool = False, disable_timing: bool = False, interprocess: bool = False
    ) -> None:
        self.stream: Stream | None = None

    def record(self, stream: Stream | None = None) -> None:
        self.stream = stream or get_current_stream()

    awaited: list[Event] = []  # noqa: RUF012  # those that the host waited for

    def synchronize(self) -> None:
        """The event has already happened."""
        Event.awaited.append(self)

    done = property(lambda self: True)


class Stream:
    """``cupy.cuda.Stream``: work is done at once; records who waited for whom."""

    null: Stream
    waits: list[tuple[int, int]] = []  # noqa: RUF012  # one list for all: (waiting, waited for)
    awaited: list[int] = []  # noqa: RUF012  # those that the host waited for
    _count = 0

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False,
        priority: int | None = None,
    ) -> None:  # fmt: skip
        Stream._count += not null
        self.ptr = 0 if null else 0x1000 + 16 * Stream._count
        self.device_id = -1 if null else _current.device
        self.is_non_blocking, self.priority = non_blocking, priority or 0

    @classmethod
    def from_external(cls, obj: Any) -> Stream:
        version, ptr = obj.__cuda_stream__()
        if version != 0:
            raise ValueError(f"unsupported version {version} of the CUDA stream protocol")
        stream = cls(null=True)
        stream.ptr, stream.device_id = ptr, _current.device
        return stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr

    def __enter__(self) -> Stream:
        if self.device_id not in (-1, _current.device):
            raise RuntimeError("the stream is not of the current device")
        _current.streams().append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _current.streams().pop()

    def use(self) -> Stream:
        _current.streams()[-1] = self
        return self

    def record(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        assert event.stream is not None
        Stream.waits.append((self.ptr, event.stream.ptr))

    def synchronize(self) -> None:
        """Nothing is pending; records that somebody waited."""
        Stream.awaited.append(self.ptr)
        if _current.capture is not None:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported")

    def is_capturing(self) -> bool:
        return _current.capture is not None

    def begin_capture(self, mode: Any = None) -> None:
        """From here on kernels are recorded, not run; functions without a kernel raise."""
        assert self.is_non_blocking
        _current.capture, _current.captured = [], []

    def end_capture(self) -> Graph:
        launches, _current.capture = _current.capture, None
        return Graph(launches, _current.captured)


class Graph:
    """``cupy.cuda.Graph``: kernel launches, with their addresses at capture."""

    launched = 0

    def __init__(self, launches: Any, memory: Any) -> None:
        self.launches, self._memory = launches, memory

    def launch(self, stream: Any = None) -> None:
        Graph.launched += 1
        for launch in self.launches:
            launch()


Stream.null = Stream(null=True)

ranges: list[str] = []
"""NVTX ranges that have begun, and "end" for each that has ended."""


def get_current_stream(device_id: int = -1) -> Stream:
    return _current.streams(device_id)[-1]  # type: ignore[no-any-return]


class OutOfMemoryError(MemoryError):
    """``cupy.cuda.memory.OutOfMemoryError``."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        about = f", limit set to: {limit:,} bytes" if limit else ""
        super().__init__(
            f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes{about})."
        )


class failing_allocation:
    """Inside its ``with`` statement the allocation that `after` selects fails.

    Attributes:
        done: whether it has failed, or none is to fail.
    """

    def __enter__(self) -> failing_allocation:
        self._whole, self._left = MemoryPool._allocate, 0

        def allocate(pool: Any, size: int, gpu: int) -> Any:
            self._left -= 1
            if self._left == 0:
                raise OutOfMemoryError(size, 0, 0)
            return self._whole(pool, size, gpu)

        MemoryPool._allocate = allocate
        return self

    def __exit__(self, *exc: object) -> None:
        MemoryPool._allocate = self._whole

    def after(self, n: int) -> None:
        """Let the `n`-th allocation from now on fail, or none if `n` is 0."""
        self._left = n

    @property
    def done(self) -> bool:
        return self._left <= 0


class MemoryPool:
    """``cupy.cuda.MemoryPool``: counts the bytes of the arrays that own memory, by device.

    As CuPy's, it hands out the smallest free block that is large enough, and splits it: the rest
    stays in the pool until all parts of the block are free. Each stream has blocks of its own.
    Memory that a pool caches stays reserved when the pool dies: CuPy 14.1 does not free it.
    """

    reserved: list[int] = [0] * GPUS  # by all pools, from the devices

    def __init__(self) -> None:
        self._used, self._limit = [0] * GPUS, [0] * GPUS
        self._free: list[dict[int, list[_Chunk]]] = [{} for _ in range(GPUS)]  # by stream
        self.emptied = 0

    def malloc(self, size: int) -> Any:
        size, gpu = -(-size // 512) * 512, _current.device
        with _pool_lock:
            return self._allocate(size, gpu)

    def _allocate(self, size: int, gpu: int) -> Any:
        free = self._free[gpu].setdefault(get_current_stream().ptr, [])
        chunk = min((c for c in free if c.size >= size), key=lambda c: c.size, default=None)
        if chunk is None:
            self._make_room(size, gpu)
            MemoryPool.reserved[gpu] += size
            chunk = _Chunk(size, free)
        else:
            free.remove(chunk)
            chunk.split(size)
        self._used[gpu] += size
        return _Block(self, chunk, gpu)

    def _make_room(self, size: int, gpu: int) -> None:
        """Return free blocks until a new one fits; raises OutOfMemoryError if it does not."""
        for collect in (lambda: None, gc.collect):
            if self._fits(size, gpu):
                return
            collect()
            self.free_all_blocks()
        if not self._fits(size, gpu):
            raise OutOfMemoryError(size, self.total_bytes(), self._limit[gpu])

    def _fits(self, size: int, gpu: int) -> bool:
        return self.total_bytes() + size <= min(self._limit[gpu] or TOTAL, TOTAL)

    def free_all_blocks(self, stream: Any = None) -> None:
        with _pool_lock:
            for free in self._free[_current.device].values():
                whole = [c for c in free if c.before is c.after is None]
                MemoryPool.reserved[_current.device] -= sum(c.size for c in whole)
                free[:] = [c for c in free if c not in whole]
        self.emptied += 1

    def used_bytes(self) -> int:
        return self._used[_current.device]

    def free_bytes(self) -> int:
        return sum(c.size for free in self._free[_current.device].values() for c in free)

    def total_bytes(self) -> int:
        return self.used_bytes() + self.free_bytes()

    def get_limit(self) -> int:
        return self._limit[_current.device]

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        if size is not None and fraction is not None:
            raise ValueError("size and fraction cannot be specified at one time")
        self._limit[_current.device] = int(TOTAL * fraction) if fraction else size or 0


class _Chunk:
    """A part of a block of the device's memory, and its neighbours in the block."""

    def __init__(self, size: int, free: list[_Chunk]) -> None:
        self.size, self.free = size, free
        self.before: _Chunk | None = None
        self.after: _Chunk | None = None

    def split(self, size: int) -> None:
        """Keep the first bytes; the rest becomes free."""
        if size < self.size:
            rest = _Chunk(self.size - size, self.free)
            rest.before, rest.after, self.after, self.size = self, self.after, rest, size
            if rest.after is not None:
                rest.after.before = rest
            self.free.append(rest)

    def release(self) -> None:
        """Join free neighbours, and become free."""
        chunk = self
        while chunk.before is not None and chunk.before in chunk.free:
            chunk = chunk.before
        if chunk is not self:
            self.free.remove(chunk)
        while (after := chunk.after) is not None and (after is self or after in chunk.free):
            if after is not self:
                chunk.free.remove(after)
            chunk.size, chunk.after = chunk.size + after.size, after.after
            if after.after is not None:
                after.after.before = chunk
        chunk.free.append(chunk)


class _Block:
    """Memory of the pool, returned to it when nothing holds the block."""

    def __init__(self, pool: MemoryPool, chunk: _Chunk, gpu: int) -> None:
        self._pool, self._chunk, self._gpu = pool, chunk, gpu

    def __del__(self) -> None:
        with _pool_lock:
            self._pool._used[self._gpu] -= self._chunk.size
            self._chunk.release()


TOTAL = 1 << 36
_pool_lock = threading.RLock()  # an array may die while its own thread allocates
_pool = MemoryPool()
_allocators: list[Any] = [_pool.malloc]


def set_allocator(allocator: Any = None) -> None:
    _allocators[0] = allocator


@contextlib.contextmanager
def using_allocator(allocator: Any = None) -> Iterator[None]:
    before = _allocators[0]
    set_allocator(allocator)
    try:
        yield
    finally:
        set_allocator(before)


# ---- the modules -------------------------------------------------------------------------


def _module(name: str, contents: dict[str, Any]) -> types.ModuleType:
    module = types.ModuleType(name, "Fake; see tests/fakes/cupy.py.")
    module.__path__ = []  # a package: its submodules are in sys.modules
    module.__spec__ = importlib.util.spec_from_loader(name, loader=None)
    vars(module).update(contents)
    return module


_UNWRAPPED = _words(
    "can_cast finfo iinfo iscomplexobj isrealobj isscalar issubdtype min_scalar_type ndim "
    "promote_types result_type shape size broadcast_shapes isdtype may_share_memory"
)


def _namespace(of: Any, names: list[str]) -> dict[str, Any]:
    contents: dict[str, Any] = {}
    for name in names:
        value = getattr(of, name)
        if isinstance(value, np.ufunc) and of is np:
            contents[name] = ufunc(value)
        elif isinstance(value, (type, types.ModuleType)) or not callable(value):
            contents[name] = value
        else:
            contents[name] = _lift(value, name)
    return contents


def _refusing_complex(name: str, function: Any) -> Any:
    @functools.wraps(function, updated=())
    def refusing(*args: Any, **kwargs: Any) -> Any:
        dtypes = [a.dtype for a in args if isinstance(a, ndarray)]
        if any(d.kind == "c" for d in dtypes):
            raise TypeError(f"Wrong type ({dtypes}) of arguments for cupyx_scipy_special_{name}")
        return function(*args, **kwargs)

    return refusing


def _dtype_aware(name: str) -> Any:
    """A function of arrays that returns numbers, shapes or dtypes, not arrays."""
    function = getattr(np, name)

    def answer(*args: Any, **kwargs: Any) -> Any:
        return function(*(_bare(a, same_device=False) for a in args), **kwargs)

    answer.__name__ = name
    return answer


def modules() -> dict[str, types.ModuleType]:
    """The fake modules by name."""
    submodules = {n for n in dir(np) if isinstance(getattr(np, n), types.ModuleType)}
    names = [n for n in dir(np) if not n.startswith("_") and n not in MISSING | submodules]
    top = _namespace(np, names)
    top |= {n: _dtype_aware(n) for n in _UNWRAPPED if callable(getattr(np, n)) and n not in
            ("finfo", "iinfo")}  # fmt: skip
    runtime = _module("cupy.cuda.runtime", {
        "memGetInfo": lambda: (TOTAL - MemoryPool.reserved[_current.device], TOTAL),
        "getDeviceCount": lambda: GPUS, "getDevice": lambda: _current.device,
        "deviceSynchronize": lambda: None, "CUDARuntimeError": CUDARuntimeError,
        "getDeviceProperties": lambda gpu: {"name": b"stand-in", "multiProcessorCount": 1},
        "driverGetVersion": lambda: 0, "runtimeGetVersion": lambda: 0,
    })  # fmt: skip
    device = _module("cupy.cuda.device", {"Device": Device})
    compiler = _module("cupy.cuda.compiler", {"CompileException": CompileException})
    nvtx = _module("cupy.cuda.nvtx", {
        "RangePush": lambda message, id_color=-1: ranges.append(message),
        "RangePop": lambda: ranges.append("end"),
    })  # fmt: skip
    cuda = _module("cupy.cuda", {
        "compiler": compiler, "nvtx": nvtx,
        "Device": Device, "Stream": Stream, "Event": Event, "runtime": runtime, "device": device,
        "is_available": lambda: True, "get_current_stream": get_current_stream,
        "MemoryPool": MemoryPool, "get_allocator": lambda: _allocators[0],
        "set_allocator": set_allocator, "using_allocator": using_allocator, "Graph": Graph,
    })  # fmt: skip
    linalg = _module("cupy.linalg", _namespace(np.linalg, LINALG))
    for name in ("inv", "solve", "cholesky"):
        setattr(linalg, name, _quiet(getattr(np.linalg, name), name))
    fft = _module("cupy.fft", _namespace(
        np.fft, [n for n in np.fft.__all__ if callable(getattr(np.fft, n)) and n != "test"]
    ))  # fmt: skip
    special = _module("cupyx.scipy.special", {
        name: function if name in COMPLEX_SPECIAL else _refusing_complex(name, function)
        for name, function in _namespace(
            scipy.special, [n for n in SPECIAL if hasattr(scipy.special, n)]
        ).items()
    })  # fmt: skip
    slinalg = _module("cupyx.scipy.linalg", _namespace(scipy.linalg, SCIPY_LINALG))
    stride_tricks = _module("cupy.lib.stride_tricks", _namespace(
        np.lib.stride_tricks, ["as_strided", "sliding_window_view"]
    ))  # fmt: skip
    lib = _module("cupy.lib", {"stride_tricks": stride_tricks})
    top |= {
        "ndarray": ndarray, "ufunc": ufunc, "array": array, "asarray": asarray,
        "asanyarray": asarray, "from_dlpack": from_dlpack,
        "get_default_memory_pool": lambda: _pool,
        "linalg": linalg, "fft": fft, "lib": lib, "cuda": cuda,
        "tril": _triangle("tril"), "triu": _triangle("triu"),
        "ElementwiseKernel": ElementwiseKernel, "RawModule": RawModule, "__version__": "14.0.1",
    }  # fmt: skip
    scipy_ = _module("cupyx.scipy", {"special": special, "linalg": slinalg})
    cupyx = _module("cupyx", {
        "scipy": scipy_, "errstate": errstate,
        "rsqrt": _lift(lambda x: 1 / np.sqrt(x), "rsqrt"), "empty_pinned": np.empty,
    })  # fmt: skip
    every = [
        _module("cupy", top), lib, stride_tricks, linalg, fft, cuda, device, runtime,
        compiler, cupyx, scipy_, special, slinalg,
    ]  # fmt: skip
    return {m.__name__: m for m in every}


def install() -> None:
    """Make ``import cupy`` import the fake from now on; call before gpugrad imports it."""
    for name in [n for n in sys.modules if n.partition(".")[0] in ("cupy", "cupyx")]:
        del sys.modules[name]
    sys.modules.update(modules())
