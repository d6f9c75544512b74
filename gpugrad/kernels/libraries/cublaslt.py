"""Matrix products by cuBLASLt, through nvmath-python where that is installed.

CuPy's own product cannot be captured in a CUDA graph, and for stacks of 16-bit floats it converts
to float32 and back, or fails. Here each call has its own stream and workspace, transposed views
are read without a copy, and the product itself adds an array or a bias and applies an activation
or its gradient.

cuBLASLt's matrices are column-major, ours row-major. The rows of C = A B are the columns of C' = B'
A', so B is passed as the first matrix and A as the second, and nothing is copied.
"""

from __future__ import annotations

import functools
import itertools
import math
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core.backend import BFLOAT16, HALF, SCALARS, cupy
from gpugrad.core.forking import import_module, new_lock
from gpugrad.core.settings import get_matmul_precision
from gpugrad.errors import GpugradWarning
from gpugrad.kernels.runtime.launch import gpu_of

WORKSPACE = 32 << 20  # most bytes for an algorithm; NVIDIA's advice for Hopper
PLANS = 512  # most problems whose descriptors are cached

_TYPES = {  # cudaDataType_t
    np.dtype(np.float32): 0,
    np.dtype(np.float64): 1,
    np.dtype(np.float16): 2,
    BFLOAT16: 14,
}
_COMPUTE_32F, _COMPUTE_64F = 68, 70  # cublasComputeType_t
_PRECISIONS = {"highest": _COMPUTE_32F, "high": 77, "medium": 75}

# cublasLtEpilogue_t. "aux" and "d..." write or read `aux`; for "...bgrad..." `bias` is a result.
EPILOGUES = {
    "default": 1, "bias": 4, "relu_bias": 6, "relu_aux_bias": 134, "gelu_bias": 36,
    "gelu_aux_bias": 164, "drelu_bgrad": 152, "dgelu_bgrad": 208,
    "bgrad_b": 256,  # cuBLASLt's first matrix is our second
}  # fmt: skip

# numbers of attributes in cublasLt.h
_TRANSA, _TRANSB, _EPILOGUE, _BIAS, _AUX, _AUX_LD = 3, 4, 7, 8, 11, 12
_BATCH_COUNT, _BATCH_OFFSET = 5, 6
_MAX_WORKSPACE, _MIN_ALIGNMENTS = 1, (5, 6, 7, 8)


# ---- the library ------------------------------------------------------------------------


@functools.cache
def binding() -> Any:
    """The module ``nvmath.bindings.cublasLt``, or None where it is not installed."""
    try:
        return import_module("nvmath.bindings.cublasLt")
    except (ImportError, RuntimeError):  # RuntimeError: installed, but cuBLASLt is not
        return None


@functools.cache
def _warn_once(why: str) -> None:
    warnings.warn(
        f"gpugrad: {why}, so CuPy multiplies stacks and 16-bit floats, which is slower and cannot "
        "be captured in a CUDA graph. Run pip install 'gpugrad[cublaslt]'.",
        GpugradWarning,
        stacklevel=2,
    )


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
    """The common stride of the batch axes, or None."""
    axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n > 1]
    for (_, outer), (n, inner) in itertools.pairwise(axes):
        if outer != n * inner:
            return None
    return axes[-1][1] if axes else 0


def _operand(lib: Any, a: Any, batch: tuple[int, ...]) -> _Operand:
    """The operand for a stack of matrices, copied if cuBLASLt cannot read its layout."""
    rows, columns = a.shape[-2:]
    for _ in range(2):
        full = lib.broadcast_to(a, (*batch, rows, columns)) if batch else a
        *outer, by_row, by_column = (s // a.dtype.itemsize for s in full.strides)
        stride = _batch_stride(batch, tuple(outer))
        if stride is not None and stride >= 0:
            if (columns == 1 or by_column == 1) and (rows == 1 or by_row >= columns):
                return _Operand(a, False, by_row if rows > 1 else columns, stride)
            if (rows == 1 or by_row == 1) and (columns == 1 or by_column >= rows):
                return _Operand(a, True, by_column if columns > 1 else rows, stride)
        a = lib.ascontiguousarray(full if stride is None or 0 in a.strides else a)
    raise AssertionError("a contiguous array has a layout")


class _ProductPlan:
    """Descriptors of one problem, and the algorithm that cuBLASLt prefers for it.

    Args:
        handle: cuBLASLt's handle for the device.
        sizes: m, n, k, and the number of products.
        dtypes: of the factors and of the product.
        compute: cublasComputeType_t.
        a, b: the operands.
        epilogue: a value of `EPILOGUES`.
        aux_ld: elements per row of aux; 0 without aux.
        aligned: alignment in bytes of the four matrices.
        bias, aux: addresses; 0 if absent.

    Attributes:
        algo: address of the algorithm.
        size: bytes of its workspace.
        zero, one: addresses of these numbers.
        shape: shape of the result.
    """

    shape: tuple[int, ...] = ()

    def __init__(
        self,
        handle: int,
        sizes: Sequence[int],
        dtypes: tuple[Any, Any],
        compute: int,
        a: _Operand,
        b: _Operand,
        epilogue: int,
        aux_ld: int,
        aligned: Sequence[int],
        bias: int,
        aux: int,
    ) -> None:
        m, n, k, count = sizes
        dtype, out_dtype = dtypes
        lt = self._lt = binding()
        self.lock = new_lock()
        wide = np.float64 if dtype == np.float64 else np.float32
        self._scales = np.array([0, 1], wide)
        self.zero = self._scales.ctypes.data
        self.one = self.zero + self._scales.itemsize
        self.desc = lt.matmul_desc_create(compute, _TYPES[np.dtype(wide)])
        self.layouts: list[int] = []
        # run when no product uses the plan any more
        weakref.finalize(self, _destroy, lt, self.desc, self.layouts).atexit = False
        kind = _TYPES[dtype]
        for rows, columns, matrix, attribute in ((n, k, b, _TRANSA), (k, m, a, _TRANSB)):
            self.set(attribute, np.int32(matrix.by_columns))
            rows, columns = (columns, rows) if matrix.by_columns else (rows, columns)
            self._layout(kind, rows, columns, matrix.ld, count, matrix.batch_stride)
        self._layout(_TYPES[out_dtype], n, m, n, count, m * n)
        self.set(_EPILOGUE, np.uint32(epilogue))
        if aux_ld:
            self.set(_AUX_LD, np.int64(aux_ld))
        self.point(bias, aux)  # the choice of an algorithm depends on their alignment
        self._algo, self.size = self._preferred(handle, aligned)
        self.algo = self._algo.ctypes.data

    def set(self, attribute: int, value: Any) -> None:
        """Set an attribute of the product."""
        held = np.asarray(value)
        self._lt.matmul_desc_set_attribute(self.desc, attribute, held.ctypes.data, held.nbytes)

    def point(self, bias: int, aux: int) -> None:
        """Set the addresses of the epilogue's arrays; 0 if absent."""
        for attribute, address in ((_BIAS, bias), (_AUX, aux)):
            if address:
                self.set(attribute, np.int64(address))

    def _layout(self, kind: int, rows: int, columns: int, ld: int, count: int, stride: int) -> None:
        layout = self._lt.matrix_layout_create(kind, rows, columns, ld)
        self.layouts.append(layout)
        if count > 1:
            for attribute, value in (
                (_BATCH_COUNT, np.int32(count)),
                (_BATCH_OFFSET, np.int64(stride)),
            ):
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
        result, count = np.zeros(1, lt.matmul_heuristic_result_dtype), np.zeros(1, np.int32)
        a, b, c = self.layouts
        try:
            lt.matmul_algo_get_heuristic(
                handle, self.desc, a, b, c, c, preference, 1, result.ctypes.data, count.ctypes.data
            )
        finally:
            lt.matmul_preference_destroy(preference)
        if not count[0] or result["state"][0]:
            raise lt.cuBLASLtError(15)  # CUBLAS_STATUS_NOT_SUPPORTED
        return result["algo"], int(result["workspace_size"][0])


def _destroy(lt: Any, desc: int, layouts: Sequence[int]) -> None:
    for layout in layouts:
        lt.matrix_layout_destroy(layout)
    lt.matmul_desc_destroy(desc)


_plans: OrderedDict[Any, _ProductPlan | _NeedsCopy | None] = OrderedDict()  # None: not supported
_plans_lock = new_lock()
_MISSING: Any = object()


class _NeedsCopy(NamedTuple):
    """In place of a plan: the matrices must be copied, broadcast to `batch`, for cuBLASLt."""

    batch: tuple[int, ...]


def _plan(
    key: Any, make: Callable[[], _ProductPlan | _NeedsCopy | None]
) -> _ProductPlan | _NeedsCopy | None:
    plan = _plans.get(key, _MISSING)
    if plan is not _MISSING:
        return plan
    try:
        plan = make()
    except binding().cuBLASLtError:
        plan = None
    with _plans_lock:
        _plans[key] = plan
        if len(_plans) > PLANS:
            _plans.popitem(last=False)
    return plan


# ---- products ---------------------------------------------------------------------------


def relu_aux_shape(m: int, n: int) -> tuple[int, int]:
    """The shape of the array that `relu_aux` makes."""
    return m, -(-n // 128) * 16


def relu_aux(lib: Any, m: int, n: int) -> Any:
    """An array for relu's ``aux``: one bit per element, rows padded to 128."""
    return lib.ndarray(relu_aux_shape(m, n), np.uint8)


def gelu_aux(lib: Any, m: int, n: int, dtype: Any) -> Any:
    """An array for gelu's ``aux``: the activation's input, rows padded to 8."""
    return lib.ndarray((m, -(-n // 8) * 8), dtype)


def product(
    lib: Any,
    a: Any,
    b: Any,
    *,
    added: Any = None,
    epilogue: str = "default",
    bias: Any = None,
    aux: Any = None,
    dtype: Any = None,
) -> Any:
    """The product of stacks of matrices, with an addition and an epilogue in the same launch.

    Args:
        lib: the array library.
        a: array of shape (..., m, k), transposed or not.
        b: array of shape (..., k, n). Stacks are broadcast against each other.
        added: C-contiguous array of the result's shape and dtype to add to the product, or None.
        epilogue: a name in `EPILOGUES`. ``"bias"`` adds `bias`. ``"relu_aux_bias"`` and
            ``"gelu_aux_bias"`` then apply the activation and write to `aux` what its gradient
            needs. ``"drelu_bgrad"`` and ``"dgelu_bgrad"`` multiply by the activation's derivative,
            read from `aux`, and write the sum over rows to `bias`. ``"bgrad_b"`` writes the sum
            over the rows of `b` to `bias`. The gelu is the tanh form.
        bias: array of shape (n,) and the dtype of `a`.
        aux: array made by `relu_aux` or `gelu_aux`.
        dtype: float32 for a product of 16-bit floats that is not rounded; None for that of `a`.

    Returns:
        The array of shape (..., m, n); NotImplemented if cuBLASLt is not installed or does not
        support these dtypes and layouts.
    """
    if binding() is None:
        return NotImplemented
    device, precision = gpu_of(a), get_matmul_precision()
    at = b.data.ptr, a.data.ptr, 0 if added is None else added.data.ptr
    aligned = at[0] & 255, at[1] & 255, at[2] & 255
    aux_shape = None if aux is None else aux.shape
    extra = 0 if bias is None else bias.data.ptr, 0 if aux is None else aux.data.ptr
    dtype = dtype or a.dtype
    layouts = a.dtype, b.dtype, dtype, a.shape, b.shape, a.strides, b.strides, aligned

    def make() -> _ProductPlan | _NeedsCopy | None:
        if a.dtype not in _TYPES or a.dtype != b.dtype:
            return None
        (m, k), n = a.shape[-2:], b.shape[-1]
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        sizes = m, n, k, math.prod(batch)
        if 0 in sizes or max(sizes) > 2**31 - 1:
            return None
        operands = _operand(lib, a, batch), _operand(lib, b, batch)
        if operands[0].array is not a or operands[1].array is not b:
            return _NeedsCopy(batch)
        compute = _COMPUTE_64F if a.dtype == np.float64 else _COMPUTE_32F
        if a.dtype == np.float32:
            compute = _PRECISIONS[precision]
        aux_ld = 0 if aux_shape is None else aux_shape[1] * (8 if "relu" in epilogue else 1)
        least = tuple(min(256, x & -x) if x else 256 for x in (*aligned, aligned[-1]))
        of, number = (a.dtype, dtype), EPILOGUES[epilogue]
        plan = _ProductPlan(
            _handle(device), sizes, of, compute, *operands, number, aux_ld, least, *extra
        )
        plan.shape = (*batch, m, n)
        return plan

    plan = _plan((device, *layouts, epilogue, aux_shape, precision), make)
    if plan is None:
        return NotImplemented
    if isinstance(plan, _NeedsCopy):
        a, b = (_operand(lib, x, plan.batch).array for x in (a, b))
        return product(lib, a, b, added=added, epilogue=epilogue, bias=bias, aux=aux, dtype=dtype)
    return _execute(plan, device, type(a), dtype, at, extra)


def _execute(
    plan: _ProductPlan, device: int, kind: Any, dtype: Any, at: Sequence[int], extra: Sequence[int]
) -> Any:
    """Run a plan on the addresses `at` of b, a and what is added; `extra`: of bias and aux."""
    out = kind(plan.shape, dtype)  # CuPy aligns it to 256 bytes
    cuda, lt, size = cupy().cuda, binding(), plan.size
    # the stream's pool gives the workspace to later launches on the stream, or to a capture
    workspace = cuda.alloc(size) if size else None
    first, second, result = plan.layouts
    to = out.data.ptr
    beta, c = (plan.one, at[2]) if at[2] else (plan.zero, to)
    operands = at[0], first, at[1], second, beta, c, result, to, result
    memory = 0 if workspace is None else workspace.ptr
    rest = plan.algo, memory, size, cuda.get_current_stream().ptr
    if any(extra):
        with plan.lock:  # pointers of epilogues are attributes of the shared descriptor
            plan.point(*extra)
            lt.matmul(_handle(device), plan.desc, plan.one, *operands, *rest)
    else:
        lt.matmul(_handle(device), plan.desc, plan.one, *operands, *rest)
    return out


def matmul(xp: Any, x1: Any, x2: Any) -> Any:
    """The launcher of the op `matmul`."""
    kind = type(x1)
    if kind in SCALARS or kind is np.ndarray or type(x2) is not kind or not (x1.ndim and x2.ndim):
        return NotImplemented
    if x1.ndim == 1 or x2.ndim == 1:  # CuPy multiplies vectors by cuBLAS, which no graph captures
        one = x1[None] if x1.ndim == 1 else x1
        out = matmul(xp, one, x2[:, None] if x2.ndim == 1 else x2)
        extra = (-2,) * (x1.ndim == 1) + (-1,) * (x2.ndim == 1)
        return out if out is NotImplemented else out.squeeze(extra)
    if x1.shape[-1] != x2.shape[-2]:
        return NotImplemented  # the formula's error names the shapes
    if x1.ndim > 2 and x2.ndim == 2:  # one product of a tall matrix instead of one per batch item
        rows = x1.reshape(math.prod(x1.shape[:-1]), x1.shape[-1])
        out = product(xp.lib, rows, x2)
        return out if out is NotImplemented else out.reshape(*x1.shape[:-1], x2.shape[1])
    if binding() is None and (x1.dtype in HALF or x1.ndim > 2):
        _warn_once("nvmath-python is not installed")
    return product(xp.lib, x1, x2)


matmul.library = "cuBLASLt"  # type: ignore[attr-defined]  # no kernel of ours: the shim has none
