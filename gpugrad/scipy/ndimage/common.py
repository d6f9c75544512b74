"""Arguments, boundary modes and results, which all functions of SciPy's ndimage share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gpugrad.array_api.numpy_results import write_out
from gpugrad.array_api.writes import begin_write
from gpugrad.core.backend import NUMPY, as_dtype, is_inexact
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.core.views import arranged
from gpugrad.kernels.cpu.large import LARGE
from gpugrad.numpy.creation import asarray
from gpugrad.ops.scipy.ndimage import NUMPY_MODES
from gpugrad.scipy.signatures import with_signature

SCIPY = NUMPY.scipy("ndimage")
DOUBLE = np.dtype("float64")


def array(x: Any, *others: Any) -> Tensor:
    """A Tensor of what SciPy takes: Python floats are float64, and lists may hold Tensors."""
    if isinstance(x, Tensor):
        return tensor(x)
    return asarray(x, device=next((o.device for o in others if isinstance(o, Tensor)), None))


def output_dtype(output: Any, x: Tensor, weights: Tensor | None = None) -> np.dtype[Any]:
    """The dtype of a result, from SciPy's `output`: a dtype, an array to write to, or None."""
    dtype = x.dtype if output is None else as_dtype(output if is_dtype(output) else output.dtype)
    if (x.dtype.kind == "c" or getattr(weights, "dtype", dtype).kind == "c") and dtype.kind != "c":
        if output is not None and not isinstance(output, type):
            raise RuntimeError("output must have complex dtype")
        return np.promote_types(dtype, np.complex64)
    return dtype


def is_dtype(output: Any) -> bool:
    """Whether SciPy's `output` is a dtype, not an array."""
    return output is None or isinstance(output, (str, type, np.dtype))


def as_scipy(
    formula: Any = None,
    *,
    dtype: Any = output_dtype,
    order: bool = False,
    direct: str = "",
    has_kernel: bool = False,
) -> Any:
    """The function with the signature of SciPy's of that name; a decorator.

    The formula gets a Tensor `input`, the result's dtype as `output`, and the arguments that it
    names. The decorator casts its result and writes it to an array.

    Args:
        formula: a function of the arguments by name.
        dtype: the dtype of the result, ``(output, input, weights)``.
        order: whether complex numbers are refused, as they have no order.
        direct: the dtypes, by their letters, of which SciPy's function is faster: it runs on NumPy
            arrays if nothing is recorded.
        has_kernel: whether this is so of small arrays of floats alone.
    """
    if formula is None:
        return functools.partial(
            as_scipy, dtype=dtype, order=order, direct=direct, has_kernel=has_kernel
        )
    name = formula.__name__

    def call(bound: inspect.BoundArguments) -> Any:
        given = bound.arguments
        weights = given.get("weights")
        x = given["input"] = array(given["input"], weights)
        if weights is not None:
            weights = given["weights"] = array(weights, x)
        if order and x.dtype.kind == "c":
            raise TypeError(f"{name}: Complex type not supported")
        to = given.get("output")
        slow = not has_kernel or x.size < LARGE or x.dtype.kind != "f"
        if x.dtype.char in direct and slow and is_dtype(to) and is_plain([*given.values()]):
            bound.arguments = {k: v._data if isinstance(v, Tensor) else v for k, v in given.items()}
            with np.errstate(all="ignore"):  # ops do not warn
                return wrapped(getattr(SCIPY, name)(*bound.args, **bound.kwargs))
        if "output" not in given:
            return formula(**given)
        output = given["output"]
        kind = given["output"] = dtype(output, x, weights)
        if "output_shape" in given and given["output_shape"] is None:
            given["output_shape"] = x.shape if is_dtype(output) else output.shape
        if not is_dtype(output):
            begin_write(output)
        result = formula(**given)
        if result.dtype.kind == "c" and kind.kind != "c":
            result = xp.real(result)
        if kind.kind == "b" and result.dtype.kind == "f":
            result = xp.trunc(result)  # as C casts it
        result = xp.astype(result, kind) if result.dtype != kind else result
        if is_dtype(output):  # a new array in row-major order, as SciPy returns
            return arranged(result, "C", copy=result is x)
        if tuple(output.shape) != result.shape:
            raise RuntimeError(f"output shape not correct: {output.shape}, not {result.shape}")
        columns = output.flags.f_contiguous and not output.flags.c_contiguous
        return write_out(name, output, arranged(result, "F" if columns else "C"))

    return with_signature(formula, SCIPY, call)


INTEGERS = "?bBhHiIlLqQ"


def is_plain(args: Sequence[Any]) -> bool:
    """Whether all Tensors are NumPy arrays that no tape, trace or vmap follows, as no integers."""
    tensors = [x for v in args for x in (v if type(v) in (list, tuple) else (v,))]
    tensors = [x for x in tensors if isinstance(x, Tensor)]
    if threads.stack and any(is_inexact(x.dtype) for x in tensors):
        return False
    return all(type(x._data) is np.ndarray for x in tensors)


def wrapped(result: Any) -> Any:
    """Tensors of arrays and of NumPy's scalars, also of those in a tuple or list."""
    if isinstance(result, (tuple, list)):
        return type(result)(map(wrapped, result))
    if isinstance(result, np.generic):
        return wrap(np.asarray(result))
    kinds = ("__array_interface__", "__cuda_array_interface__")
    return wrap(result) if any(hasattr(result, kind) for kind in kinds) else result


def check_mode(mode: Any) -> str:
    """A boundary mode; SciPy's error for others."""
    if not isinstance(mode, str) or mode not in NUMPY_MODES:
        names = ", ".join(NUMPY_MODES)
        raise RuntimeError(f"boundary mode not supported: {mode!r} is none of {names}")
    return mode


def sequence(value: Any, n: int) -> list[Any]:
    """One value for each of `n` axes, from one for all or one for each."""
    if isinstance(value, Tensor) and value.ndim:
        value = [value[k] for k in range(value.shape[0])]
    is_many = not isinstance(value, (str, Tensor)) and np.iterable(value)
    values = list(value) if is_many else [value] * n
    if len(values) != n:
        raise RuntimeError(f"sequence argument must have length equal to input rank, {n}: {value}")
    return values


def check_axis(axis: Any, ndim: int) -> int:
    """An axis that is not negative."""
    return int(np.lib.array_utils.normalize_axis_index(axis, ndim))


def check_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """The axes that a filter works along: all if None."""
    if axes is None:
        return tuple(range(ndim))
    axes = (axes,) if np.isscalar(axes) else axes
    if not isinstance(axes, Iterable):
        raise ValueError("axes must be an integer, iterable of integers, or None")
    axes = tuple(axes)
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise ValueError(f"specified axis: {axis} is out of range")
    axes = tuple(int(axis) % ndim for axis in axes)
    if len(set(axes)) != len(axes):
        raise ValueError("axes must be unique")
    return axes


def by_axis(x: Tensor, axes: Any, *values: Any) -> list[tuple[Any, ...]]:
    """(axis, value, value, ...) for each of the axes."""
    axes = check_axes(axes, x.ndim)
    return list(zip(axes, *(sequence(v, len(axes)) for v in values), strict=True))


def floating(x: Tensor) -> Tensor:
    """`x` itself if it has floats or complex numbers; integers in float64, as SciPy computes."""
    return x if x.dtype.kind in "fcV" else xp.astype(x, DOUBLE)


def real_parts(x: Tensor, formula: Callable[[Tensor], Tensor]) -> Tensor:
    """A linear formula of real numbers, for complex ones too."""
    if x.dtype.kind != "c":
        return formula(x)
    return xp.complex(formula(xp.real(x)), formula(xp.imag(x)))


def padded(x: Tensor, pairs: Sequence[tuple[int, int]], mode: str, cval: Any) -> Tensor:
    """`x` with more elements along each axis, by the boundary mode."""
    if not any(n for pair in pairs for n in pair):
        return x
    if NUMPY_MODES[mode] != "constant":
        return xp.pad(x, pairs, mode=NUMPY_MODES[mode])
    if not isinstance(cval, (Tensor, complex)):
        return xp.pad_constant(x, pairs, value=cval)
    inside = asarray(np.pad(np.ones(x.shape, bool), pairs), device=x.device)
    cval = cval if isinstance(cval, Tensor) else xp.astype(array(cval, x), x.dtype)
    return xp.where(inside, xp.pad_constant(x, pairs), cval)


def around(size: int, origin: int, words: str = "invalid origin") -> tuple[int, int]:
    """How many elements a window of `size` needs before and after each element."""
    before = size // 2 + origin
    if not 0 <= before < size:
        raise ValueError(words)
    return before, size - 1 - before
