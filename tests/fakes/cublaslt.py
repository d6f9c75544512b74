"""A stand-in for ``nvmath.bindings.cublasLt`` that computes what descriptors describe, in NumPy.

Like cuBLASLt, `matmul` builds its matrices only from pointers, layouts (rows, columns, leading
dimension, batch) and transposes: a wrong layout gives wrong numbers. It checks what cuBLASLt
checks: sizes of attributes, leading dimensions, agreement of rows and columns, an algorithm that
was chosen for this very problem, a workspace. Names, signatures, numbers and attribute sizes are
those of nvmath-python 1.0; `test_cublaslt.py` compares them with the real binding if installed.

Not modelled: which problems cuBLASLt supports, alignment, rounding, speed.
"""

import functools
import importlib.util
import itertools
import sys
import types
from typing import Any

import ml_dtypes
import numpy as np

from gpugrad.testing.cuda.driver import get_setting
from gpugrad.testing.cuda.driver.libraries import read, view, work, write

matmul_heuristic_result_dtype = np.dtype(
    [("algo", [("data_", "<u8", (8,))]), ("workspace_size", "<u8"), ("state", "<i4"),
     ("waves_count", "<f4"), ("reserved", "<i4", (4,))]
)  # fmt: skip

DTYPES = {0: np.float32, 1: np.float64, 2: np.float16, 14: ml_dtypes.bfloat16}
DESC = {3: np.int32, 4: np.int32, 7: np.uint32, 8: np.int64, 11: np.int64, 12: np.int64}
LAYOUT = {5: np.int32, 6: np.int64}
PREFERENCE = {1: np.uint64, 5: np.uint32, 6: np.uint32, 7: np.uint32, 8: np.uint32}

calls: list[dict[str, Any]] = []
"""The calls of `matmul`, for tests to inspect."""

live: dict[int, dict[Any, Any]] = {}
_numbers = itertools.count(0x5000)


class cuBLASLtError(Exception):
    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"cuBLASLt status {status}")


def _new(**values: Any) -> int:
    number = next(_numbers)
    live[number] = values
    return number


def _set(number: int, kinds: dict[int, Any], attr: int, buf: int, size: int) -> None:
    if np.dtype(kinds[attr]).itemsize != size:
        raise cuBLASLtError(7)
    live[number][attr] = read(buf, kinds[attr])


def create() -> int:
    return _new(handle=True)


def destroy(light_handle: int) -> None:
    del live[light_handle]


def matmul_desc_create(compute_type: int, scale_type: int) -> int:
    if (compute_type, scale_type) not in {(68, 0), (77, 0), (75, 0), (70, 1)}:
        raise cuBLASLtError(15)
    return _new(compute=compute_type, scale=scale_type)


def matmul_desc_destroy(matmul_desc: int) -> None:
    del live[matmul_desc]


def matmul_desc_set_attribute(matmul_desc: int, attr: int, buf: int, size_in_bytes: int) -> None:
    _set(matmul_desc, DESC, attr, buf, size_in_bytes)


def matrix_layout_create(type: int, rows: int, cols: int, ld: int) -> int:
    if ld < rows:
        raise cuBLASLtError(7)
    return _new(type=type, rows=rows, cols=cols, ld=ld)


def matrix_layout_destroy(mat_layout: int) -> None:
    del live[mat_layout]


def matrix_layout_set_attribute(mat_layout: int, attr: int, buf: int, size_in_bytes: int) -> None:
    _set(mat_layout, LAYOUT, attr, buf, size_in_bytes)


def matmul_preference_create() -> int:
    return _new(preference=True)


def matmul_preference_destroy(pref: int) -> None:
    del live[pref]


def matmul_preference_set_attribute(pref: int, attr: int, buf: int, size_in_bytes: int) -> None:
    _set(pref, PREFERENCE, attr, buf, size_in_bytes)


def _problem(desc: int, layouts: tuple[int, ...]) -> int:
    """The key of an algorithm: everything except the pointers of epilogues."""
    kept = {k: v for k, v in live[desc].items() if k not in (8, 11)}
    description = (
        sorted(map(str, kept.items())),
        *(sorted(map(str, live[n].items())) for n in layouts),
    )
    return hash(str(description)) & 0x7FFFFFFFFFFFFFFF


def matmul_algo_get_heuristic(
    light_handle: int, operation_desc: int, adesc: int, bdesc: int, cdesc: int, ddesc: int,
    preference: int, requested_algo_count: int, heuristic_results_array: int,
    return_algo_count: int,
) -> None:  # fmt: skip
    assert live[light_handle]["handle"]
    limits = live[preference]
    results = view(heuristic_results_array, matmul_heuristic_result_dtype, (requested_algo_count,))
    results["workspace_size"] = min(1 << 20, int(limits[1]))
    results["algo"]["data_"][0, 0] = _problem(operation_desc, (adesc, bdesc, cdesc, ddesc))
    write(return_algo_count, np.int32, 1)


def _matrices(layout: int, pointer: int) -> np.ndarray[Any, Any]:
    held = live[layout]
    shape = (int(held.get(5, 1)), held["rows"], held["cols"])
    return view(pointer, DTYPES[held["type"]], shape, (int(held.get(6, 0)), 1, held["ld"]))


def _wide(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a.astype(np.float64 if a.dtype == np.float64 else np.float32)


def matmul(
    light_handle: int, compute_desc: int, alpha: int, a: int, adesc: int, b: int, bdesc: int,
    beta: int, c: int, cdesc: int, d: int, ddesc: int, algo: int, workspace: int,
    workspace_size_in_bytes: int, stream: int,
) -> None:  # fmt: skip
    if _does_nothing():
        work(stream, "nvmath", "matmul", _nothing)
        return
    assert live[light_handle]["handle"]
    desc = live[compute_desc]
    if read(algo, np.uint64) != _problem(compute_desc, (adesc, bdesc, cdesc, ddesc)):
        raise cuBLASLtError(7)
    if not workspace or workspace_size_in_bytes < 1 << 20:
        raise cuBLASLtError(7)
    four = [_matrices(n, p) for n, p in ((adesc, a), (bdesc, b), (cdesc, c), (ddesc, d))]
    shapes = (four[0].shape, four[1].shape, four[3].shape)
    operands = {"shapes": shapes, "dtypes": {x.dtype for x in four}}
    calls.append({"desc": dict(desc), "stream": stream, **operands})
    scales = [read(p, DTYPES[desc["scale"]]) for p in (alpha, beta)]
    launch = functools.partial(_multiply, dict(desc), *scales, *four)
    work(stream, "nvmath", "matmul", launch)


@functools.cache
def _does_nothing() -> bool:
    """Whether devices do nothing, so that only the host's time of a call counts."""
    return bool(get_setting("null_work"))


def _nothing() -> None:
    """The work of a product on a device that does nothing."""


def _multiply(
    desc: dict[Any, Any], alpha: Any, beta: Any, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any],
    old: np.ndarray[Any, Any], out: np.ndarray[Any, Any],
) -> None:  # fmt: skip
    x = x.transpose(0, 2, 1) if desc.get(3, 0) else x
    y = y.transpose(0, 2, 1) if desc.get(4, 0) else y
    if x.shape[2] != y.shape[1] or (x.shape[1], y.shape[2]) != out.shape[1:]:
        raise cuBLASLtError(7)
    if not x.shape[0] == y.shape[0] == out.shape[0]:
        raise cuBLASLtError(7)
    with np.errstate(all="ignore"):
        product = alpha * np.matmul(_wide(x), _wide(y))
        if beta != 0:
            product = product + beta * _wide(old)
        if int(desc.get(7, 1)) == 256:  # the first matrix summed over the contracted axis
            view(int(desc[8]), out.dtype, (x.shape[1],))[...] = _wide(x)[0].sum(1)
        out[...] = _finished(desc, product, out.dtype).astype(out.dtype)


def _finished(desc: dict[Any, Any], x: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """The epilogue; rows of `x` are features, columns examples."""
    epilogue, (count, rows, cols) = int(desc.get(7, 1)), x.shape
    if epilogue in (1, 256):
        return x
    bias = view(int(desc[8]), dtype, (rows,))
    if epilogue in (4, 6, 134, 36, 164):
        x = x + _wide(bias)[:, None]
    if epilogue == 4:
        return x
    relu = epilogue in (6, 134, 152)
    if epilogue in (134, 164, 152, 208):
        ld = int(desc[12])
        if ld < rows or ld % (128 if relu else 8) or count != 1:
            raise cuBLASLtError(7)
        if relu:
            aux = view(int(desc[11]), np.uint8, (cols, ld // 8), (ld // 8, 1))
        else:
            aux = view(int(desc[11]), dtype, (cols, ld), (ld, 1))
    if epilogue in (134, 164):
        if relu:
            bits = np.zeros((cols, ld), bool)
            bits[:, :rows] = x[0].T > 0
            aux[...] = np.packbits(bits, axis=1, bitorder="little")
        else:
            aux[:, :rows] = x[0].T.astype(dtype)
    if epilogue in (6, 134):
        return np.maximum(x, 0)
    if epilogue in (36, 164):
        return 0.5 * x * (1 + np.tanh(_gelu_inner(x)))
    if relu:
        x = x * np.unpackbits(aux, axis=1, bitorder="little")[:, :rows].T
    else:
        u = _wide(aux[:, :rows]).T
        t = np.tanh(_gelu_inner(u))
        x = x * (0.5 * (1 + t) + 0.5 * u * (1 - t * t) * 0.7978845608028654
                 * (1 + 3 * 0.044715 * u * u))  # fmt: skip
    bias[...] = x[0].sum(1).astype(dtype)
    return x


def _gelu_inner(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(0.7978845608028654 * (x + 0.044715 * x**3), x.dtype)


def install() -> None:
    """Make ``import nvmath.bindings.cublasLt`` import this module from now on."""
    for name in ("nvmath", "nvmath.bindings"):
        module = types.ModuleType(name, "Fake; see tests/fakes/cublaslt.py.")
        module.__path__ = []
        module.__spec__ = importlib.util.spec_from_loader(name, loader=None)
        sys.modules[name] = module
    sys.modules["nvmath.bindings.cublasLt"] = sys.modules[__name__]
