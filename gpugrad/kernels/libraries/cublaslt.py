"""Matrix products by cuBLASLt, through the bindings of nvmath-python where they are installed.

CuPy's own product cannot be captured in a CUDA graph, and of stacks it takes 16-bit floats up to
float32 and back, or not at all. Here stream and workspace are given with each call; transposed
views are read as they lie; and another array or a bias is added, and an activation or its
gradient taken, by the product itself.

cuBLASLt's matrices are in columns, ours in rows: the rows of C = A B are the columns of
C' = B' A', so it is given B as its first matrix and A as its second, and nothing moves.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core.backend import BFLOAT16, HALF, SCALARS, cupy
from gpugrad.core.settings import get_matmul_precision
from gpugrad.kernels.runtime.launch import gpu_of, pointer

__all__ = [
    "binding", "gelu_aux", "matmul", "product", "relu_aux", "relu_aux_shape",
]  # fmt: skip

WORKSPACE = 32 << 20  # bytes that an algorithm may take at most; what NVIDIA advises for Hopper
PLANS = 512  # problems whose descriptors are kept

_TYPES = {  # cudaDataType_t
    np.dtype(np.float32): 0, np.dtype(np.float64): 1, np.dtype(np.float16): 2, BFLOAT16: 14,
}  # fmt: skip
_COMPUTE_32F, _COMPUTE_64F = 68, 70  # cublasComputeType_t
_PRECISIONS = {"highest": _COMPUTE_32F, "high": 77, "medium": 75}

# cublasLtEpilogue_t; those that write or read `aux`, and those for which `bias` is a result
EPILOGUES = {
    "default": 1, "bias": 4, "relu_bias": 6, "relu_aux_bias": 134, "gelu_bias": 36,
    "gelu_aux_bias": 164, "drelu_bgrad": 152, "dgelu_bgrad": 208,
    "bgrad_b": 256,  # of cuBLASLt's first matrix, which is our second
}  # fmt: skip

# attributes, as cublasLt.h numbers them
_TRANSA, _TRANSB, _EPILOGUE, _BIAS, _AUX, _AUX_LD = 3, 4, 7, 8, 11, 12
_BATCH_COUNT, _BATCH_OFFSET = 5, 6
_MAX_WORKSPACE, _MIN_ALIGNMENTS = 1, (5, 6, 7, 8)


# ---- the library ------------------------------------------------------------------------


@functools.cache
def binding() -> Any:
    """The module ``nvmath.bindings.cublasLt``, or None where it is not installed."""
    try:
        return importlib.import_module("nvmath.bindings.cublasLt")
    except (ImportError, RuntimeError):  # RuntimeError: installed, but cuBLASLt is not
        return None


@functools.cache
def _say_once(why: str) -> None:
    warnings.warn(
        f"gpugrad: {why}, so products of 16-bit floats and of stacks are CuPy's, which are slower "
        "and cannot be captured in a CUDA graph. pip install 'gpugrad[cublaslt]'.",
        RuntimeWarning, stacklevel=2,
    )  # fmt: skip


@functools.cache
def _handle(device: int) -> int:
    return int(binding().create())


class _Operand(NamedTuple):
    """How a stack of matrices lies in memory, in elements."""

    array: Any
    by_columns: bool
    ld: int
    batch_stride: int


def _batch_stride(shape: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """The one stride of axes taken together; None if there is none."""
    axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n > 1]
    for (_, outer), (n, inner) in itertools.pairwise(axes):
        if outer != n * inner:
            return None
    return axes[-1][1] if axes else 0


def _operand(lib: Any, a: Any, batch: tuple[int, ...]) -> _Operand:
    """Read a stack of matrices where it lies; where that cannot be, in a copy."""
    rows, columns = a.shape[-2:]
    for _ in range(2):
        spread = lib.broadcast_to(a, (*batch, rows, columns)) if batch else a
        *outer, by_row, by_column = (s // a.dtype.itemsize for s in spread.strides)
        stride = _batch_stride(batch, tuple(outer))
        if stride is not None and stride >= 0:
            if (columns == 1 or by_column == 1) and (rows == 1 or by_row >= columns):
                return _Operand(a, False, by_row if rows > 1 else columns, stride)
            if (rows == 1 or by_row == 1) and (columns == 1 or by_column >= rows):
                return _Operand(a, True, by_column if columns > 1 else rows, stride)
        a = lib.ascontiguousarray(spread if stride is None or 0 in a.strides else a)
    raise AssertionError("a contiguous array has a layout")


class _Plan:
    """Descriptors of one problem, and the algorithm that cuBLASLt prefers for it.

    Args:
        handle: of cuBLASLt on the device.
        sizes: m, n, k, and how many products.
        dtype, compute: of the matrices, and how they are multiplied.
        a, b: how they lie.
        epilogue: of `EPILOGUES`.
        aux_ld: elements of a row of its array; 0 if it has none.
        aligned: of the four matrices: to how many bytes.
        bias, aux: addresses; 0 for what it does not have.

    Attributes:
        algo: address of the algorithm.
        size: bytes of the workspace that it takes.
        zero, one: addresses of these numbers.
        shape: of the result.
    """

    shape: tuple[int, ...] = ()

    def __init__(self, handle: int, sizes: Sequence[int], dtype: Any, compute: int,
                 a: _Operand, b: _Operand, epilogue: int, aux_ld: int, aligned: Sequence[int],
                 bias: int, aux: int) -> None:  # fmt: skip
        m, n, k, count = sizes
        lt = self._lt = binding()
        self.lock = threading.Lock()
        wide = np.float64 if dtype == np.float64 else np.float32
        self._scales = np.array([0, 1], wide)
        self.zero = self._scales.ctypes.data
        self.one = self.zero + self._scales.itemsize
        self.desc = lt.matmul_desc_create(compute, _TYPES[np.dtype(wide)])
        self.layouts: list[int] = []
        # when nobody multiplies by it any more
        weakref.finalize(self, _destroy, lt, self.desc, self.layouts).atexit = False
        kind = _TYPES[dtype]
        for rows, columns, matrix, attribute in ((n, k, b, _TRANSA), (k, m, a, _TRANSB)):
            self.set(attribute, np.int32(matrix.by_columns))
            rows, columns = (columns, rows) if matrix.by_columns else (rows, columns)
            self._layout(kind, rows, columns, matrix.ld, count, matrix.batch_stride)
        self._layout(kind, n, m, n, count, m * n)
        self.set(_EPILOGUE, np.uint32(epilogue))
        if aux_ld:
            self.set(_AUX_LD, np.int64(aux_ld))
        self.point(bias, aux)  # the choice of an algorithm looks at them
        self._algo, self.size = self._preferred(handle, aligned)
        self.algo = self._algo.ctypes.data

    def set(self, attribute: int, value: Any) -> None:
        """Set an attribute of the product."""
        held = np.asarray(value)
        self._lt.matmul_desc_set_attribute(self.desc, attribute, held.ctypes.data, held.nbytes)

    def point(self, bias: int, aux: int) -> None:
        """Set where the epilogue finds its arrays; 0 for one that it does not have."""
        for attribute, at in ((_BIAS, bias), (_AUX, aux)):
            if at:
                self.set(attribute, np.int64(at))

    def _layout(self, kind: int, rows: int, columns: int, ld: int, count: int, stride: int) -> None:
        layout = self._lt.matrix_layout_create(kind, rows, columns, ld)
        self.layouts.append(layout)
        if count > 1:
            for attribute, value in (
                (_BATCH_COUNT, np.int32(count)), (_BATCH_OFFSET, np.int64(stride))
            ):  # fmt: skip
                held = np.asarray(value)
                self._lt.matrix_layout_set_attribute(
                    layout, attribute, held.ctypes.data, held.nbytes
                )

    def _preferred(self, handle: int, aligned: Sequence[int]) -> tuple[np.ndarray[Any, Any], int]:
        lt = self._lt
        preference = lt.matmul_preference_create()
        limits = zip(_MIN_ALIGNMENTS, map(np.uint32, aligned), strict=True)
        for attribute, value in ((_MAX_WORKSPACE, np.uint64(WORKSPACE)), *limits):
            held = np.asarray(value)
            lt.matmul_preference_set_attribute(preference, attribute, held.ctypes.data, held.nbytes)
        found, count = np.zeros(1, lt.matmul_heuristic_result_dtype), np.zeros(1, np.int32)
        a, b, c = self.layouts
        try:
            lt.matmul_algo_get_heuristic(
                handle, self.desc, a, b, c, c, preference, 1, found.ctypes.data, count.ctypes.data
            )
        finally:
            lt.matmul_preference_destroy(preference)
        if not count[0] or found["state"][0]:
            raise lt.cuBLASLtError(15)  # CUBLAS_STATUS_NOT_SUPPORTED
        return found["algo"], int(found["workspace_size"][0])


def _destroy(lt: Any, desc: int, layouts: Sequence[int]) -> None:
    for layout in layouts:
        lt.matrix_layout_destroy(layout)
    lt.matmul_desc_destroy(desc)


_plans: OrderedDict[Any, _Plan | _Copied | None] = OrderedDict()  # None: nothing for it
_plans_lock = threading.Lock()


class _Copied(NamedTuple):
    """Of matrices that cuBLASLt cannot read where they lie: the axes of the stacks."""

    batch: tuple[int, ...]


def _plan(key: Any, make: Callable[[], _Plan | _Copied | None]) -> _Plan | _Copied | None:
    with _plans_lock:
        if key in _plans:
            _plans.move_to_end(key)
            return _plans[key]
        try:
            made = make()
        except binding().cuBLASLtError:
            made = None
        _plans[key] = made
        if len(_plans) > PLANS:
            _plans.popitem(last=False)
        return made


def _alignment(at: int) -> int:
    return min(256, at & -at) if at else 256


# ---- products ---------------------------------------------------------------------------


def relu_aux_shape(m: int, n: int) -> tuple[int, int]:
    """Of the array that `relu_aux` makes."""
    return m, -(-n // 128) * 16


def relu_aux(lib: Any, m: int, n: int) -> Any:
    """An array for ``aux`` of relu: one bit for each element, rows padded to 128."""
    return lib.empty(relu_aux_shape(m, n), dtype=np.uint8)


def gelu_aux(lib: Any, m: int, n: int, dtype: Any) -> Any:
    """An array for ``aux`` of gelu: what the activation is taken of, rows padded to 8."""
    return lib.empty((m, -(-n // 8) * 8), dtype=dtype)


def product(
    lib: Any, a: Any, b: Any, *, added: Any = None, epilogue: str = "default",
    bias: Any = None, aux: Any = None,
) -> Any:  # fmt: skip
    """The product of stacks of matrices, with what cuBLASLt can do to it on the way.

    Args:
        lib: the array library.
        a: array of shape (..., m, k), transposed or not.
        b: array of shape (..., k, n). Stacks are broadcast against each other.
        added: what is added to the product: a C-contiguous array of the result's shape and dtype.
        epilogue: of `EPILOGUES`: ``"bias"`` adds `bias` of shape (n,); ``"relu_aux_bias"`` and
            ``"gelu_aux_bias"`` take the activation then, and write to `aux` what its gradient
            needs; ``"drelu_bgrad"`` and ``"dgelu_bgrad"`` multiply by the activation's derivative
            read from `aux`, and write the sum over rows to `bias`; ``"bgrad_b"`` writes there that
            of `b`. The gelu is the tanh form.
        bias: array of shape (n,) and the dtype of `a`.
        aux: of `relu_aux` or `gelu_aux`.

    Returns:
        The array of shape (..., m, n), or NotImplemented where cuBLASLt is not there or has nothing
        for these dtypes and layouts.
    """
    lt = binding()
    if lt is None:
        return NotImplemented
    device = gpu_of(a)
    at = pointer(b), pointer(a), 0 if added is None else pointer(added)
    aligned = tuple([p & 255 for p in at])
    aux_shape = None if aux is None else aux.shape
    extra = [0 if x is None else pointer(x) for x in (bias, aux)]
    key = (
        device, a.dtype, b.dtype, a.shape, b.shape, a.strides, b.strides, aligned, epilogue,
        aux_shape, precision := get_matmul_precision(),
    )  # fmt: skip
    plan = _plan(
        key, lambda: _planned(lib, device, a, b, aligned, epilogue, aux_shape, precision, extra)
    )
    if plan is None:
        return NotImplemented
    if isinstance(plan, _Copied):
        a, b = (_operand(lib, x, plan.batch).array for x in (a, b))
        return product(lib, a, b, added=added, epilogue=epilogue, bias=bias, aux=aux)
    kind = type(a)
    out = kind(plan.shape, a.dtype)  # at a multiple of 256 bytes
    # of the stream's own memory: what is launched on it later gets it, and so does a capture
    workspace = kind((plan.size,), np.uint8) if plan.size else None
    first, second, result = plan.layouts
    with plan.lock:  # pointers of epilogues are attributes of the one descriptor
        plan.point(*extra)
        lt.matmul(
            _handle(device), plan.desc, plan.one, at[0], first, at[1], second,
            plan.zero if added is None else plan.one, at[2] or pointer(out), result,
            pointer(out), result, plan.algo,
            0 if workspace is None else pointer(workspace), plan.size,
            int(cupy().cuda.get_current_stream().ptr),
        )  # fmt: skip
    return out


def _planned(
    lib: Any, device: int, a: Any, b: Any, aligned: tuple[int, ...], epilogue: str,
    aux_shape: Any, precision: str, extra: Sequence[int],
) -> _Plan | _Copied | None:  # fmt: skip
    """The plan of a product; None if cuBLASLt has nothing for these dtypes and sizes."""
    if a.dtype not in _TYPES or a.dtype != b.dtype:
        return None
    (m, k), n, dtype = a.shape[-2:], b.shape[-1], a.dtype
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    sizes = m, n, k, math.prod(batch)
    if 0 in sizes or max(sizes) > 2**31 - 1:
        return None
    left, right = _operand(lib, a, batch), _operand(lib, b, batch)
    if left.array is not a or right.array is not b:
        return _Copied(batch)
    compute = _COMPUTE_64F if dtype == np.float64 else _COMPUTE_32F
    if dtype == np.float32:
        compute = _PRECISIONS[precision]
    aux_ld = 0 if aux_shape is None else aux_shape[1] * (8 if "relu" in epilogue else 1)
    plan = _Plan(_handle(device), sizes, dtype, compute, left, right, EPILOGUES[epilogue], aux_ld,
                 tuple(map(_alignment, (*aligned, aligned[-1]))), *extra)  # fmt: skip
    plan.shape = (*batch, m, n)
    return plan


def matmul(xp: Any, x1: Any, x2: Any) -> Any:
    """The launcher of the op `matmul`."""
    kind = type(x1)
    if kind in SCALARS or kind is np.ndarray or type(x2) is not kind or not (x1.ndim and x2.ndim):
        return NotImplemented
    if x1.ndim == 1 or x2.ndim == 1:  # CuPy's product of vectors is cuBLAS's: no graph can hold it
        one = x1[None] if x1.ndim == 1 else x1
        made = matmul(xp, one, x2[:, None] if x2.ndim == 1 else x2)
        gone = (-2,) * (x1.ndim == 1) + (-1,) * (x2.ndim == 1)
        return made if made is NotImplemented else made.squeeze(gone)
    if x1.shape[-1] != x2.shape[-2]:
        return NotImplemented  # the formula's error names the shapes
    if x1.ndim > 2 and x2.ndim == 2:  # one product of tall matrices, not one for each in the stack
        rows = x1.reshape(math.prod(x1.shape[:-1]), x1.shape[-1])
        made = product(xp.lib, rows, x2)
        return made if made is NotImplemented else made.reshape(*x1.shape[:-1], x2.shape[1])
    if binding() is None and (x1.dtype in HALF or x1.ndim > 2):
        _say_once("nvmath-python is not installed")
    return product(xp.lib, x1, x2)


matmul.library = "cuBLASLt"  # type: ignore[attr-defined]  # no kernel of ours: the shim has none
