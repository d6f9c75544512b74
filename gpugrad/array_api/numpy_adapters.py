"""NumPy's functions whose arguments differ from those of gpugrad's function of that name.

The parameters are NumPy's; arrays are positional.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core import backend
from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.core.views import arranged
from gpugrad.errors import ArgumentError, DTypeError, GpugradError, ShapeError
from gpugrad.ops.arrays import creation
from gpugrad.ops.math.quantiles import OF_THE_SAMPLE


def public() -> Any:
    """The public namespace, in which the counterparts of NumPy's functions are found by name."""
    return sys.modules["gpugrad"]


def _along_axis(function: str, a: Any, axis: Any, **keywords: Any) -> Any:
    """An op along an axis, or on the flattened array for axis None, as in NumPy."""
    a = tensor(a)
    a, axis = (a.reshape(-1), -1) if axis is None else (a, axis)
    return getattr(TENSOR, function)(a, axis=axis, **keywords)


def _take(a: Any, indices: Any, /, axis: Any = None, mode: Any = "raise") -> Any:
    a, indices = tensor(a), tensor(indices)
    a = a.reshape(-1) if axis is None or not a.ndim else a
    axis = axis or 0
    if mode == "wrap":
        indices = TENSOR.remainder(indices, max(a.shape[axis], 1))
    elif mode == "clip":
        indices = TENSOR.clip(indices, 0, a.shape[axis] - 1)
    elif mode != "raise":
        raise ArgumentError(f"numpy.take: mode={mode!r} is not 'raise', 'wrap' or 'clip'.")
    return TENSOR.take(a, indices, axis=axis)


def _sort(a: Any, /, axis: Any = -1, *, stable: Any = None) -> Any:
    return _along_axis("sort", a, axis)


def _argsort(a: Any, /, axis: Any = -1, *, stable: Any = None) -> Any:
    return _along_axis("argsort", a, axis)


def _where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None and y is None:
        return tensor(condition).nonzero()
    return TENSOR.where(condition, x, y)


def _copy(a: Any, /, order: Any = "K") -> Any:
    return arranged(tensor(a).copy(), order)


def reshape(a: Any, /, shape: Any, order: Any = "C", *, copy: Any = None) -> Any:
    """Of another shape; in F order the first index changes fastest."""
    a = tensor(a)
    if order != "C" and _is_f(a, order):
        shape = shape if isinstance(shape, (tuple, list)) else (shape,)
        rows = TENSOR.reshape(_transpose(a), tuple(shape)[::-1], copy=copy)
        return _transpose(rows)
    return public().reshape(a, shape, copy=copy)


def ravel(a: Any, /, order: Any = "C") -> Any:
    """The elements in C order, F order, or the order of memory."""
    a = tensor(a)
    if order == "K" and a.ndim > 1 and not _flags(a, order).c_contiguous:
        a = TENSOR.permute_dims(a, _by_stride(a.strides))
    return TENSOR.ravel(_transpose(a) if _is_f(a, order) else a)


def _by_stride(strides: tuple[int, ...]) -> tuple[int, ...]:
    """The axes by falling strides, as NumPy sorts them: an axis of stride 0 keeps its place."""
    axes = list(range(len(strides)))[::-1]
    for i in range(1, len(axes)):
        place = i
        for j in range(i - 1, -1, -1):
            own, other = abs(strides[axes[i]]), abs(strides[axes[j]])
            if own and other:
                if other <= own:
                    break
                place = j
        axes.insert(place, axes.pop(i))
    return tuple(axes[::-1])


def _is_f(a: Tensor, order: Any) -> bool:
    """Whether an order of the elements is column-major."""
    if str(order).upper() not in ("C", "F", "A", "K"):
        raise ArgumentError(f"order={order!r} is not 'C', 'F', 'A' or 'K'.")
    if str(order).upper() == "A":
        return bool(_flags(a, order).fnc)
    return str(order).upper() == "F"


def _flags(a: Tensor, order: Any) -> Any:
    if backend.READINGS[type(a._data)].nesting:
        raise ArgumentError(
            f"order={order!r} depends on the memory, which a traced function or vmap chooses: "
            "write 'C' or 'F'."
        )
    return a._data.flags


def _concatenate(arrays: Any, /, axis: Any = 0) -> Any:
    if axis is None:
        return TENSOR.concat([TENSOR.ravel(tensor(a)) for a in arrays], axis=0)
    try:
        return TENSOR.concat(arrays, axis=axis)
    except GpugradError:  # which names NumPy's function
        return public().concatenate(arrays, axis=axis)


def _in_one_axis(name: str, a: Any, v: Any, /, mode: Any) -> Any:
    """``convolve`` and ``correlate``, also of numbers."""
    return arranged(getattr(TENSOR, name)(_line(a), _line(v), mode=mode), "C")


def _line(x: Any) -> Tensor:
    """An array of at least one axis."""
    x = tensor(np.asarray(x) if type(x) in backend.SCALARS else x)
    return x if x.ndim else x.reshape(1)


def real_if_all_are(x: Any) -> Any:
    """A complex array as NumPy returns it: real if all imaginary parts are 0."""
    if x.dtype.kind != "c" or backend.READINGS[type(x._data)].nesting:
        return x
    return x if np.any(x.imag._on_host()) else x.real


def _poly(seq_of_zeros: Any, /) -> Any:
    x = _line(seq_of_zeros)
    return NotImplemented if x.ndim == 2 else public().poly(x)


def _of_vectors(name: str, a1: Any, a2: Any, /) -> Any:
    """A function of two polynomials, whose coefficients may be one number."""
    a1, a2 = _line(a1), _line(a2)
    if name == "polymul" and not (a1.size and a2.size):  # no coefficients: the polynomial 0
        a1, a2 = (x if x.size else public().zeros(1, x.dtype, device=x.device) for x in (a1, a2))
    return getattr(public(), name)(a1, a2)


def _einsum(
    *operands: Any, dtype: Any = None, order: Any = "K", casting: Any = "safe", optimize: Any = None
) -> Any:
    """``einsum``; of one array without a sum NumPy returns a view, whatever the dtype."""
    if dtype is not None and not _is_a_view(operands):
        operands = tuple(x if isinstance(x, str) else TENSOR.astype(x, dtype) for x in operands)
    return public().einsum(*operands, optimize=optimize)


def _is_a_view(operands: Any) -> bool:
    if len(operands) != 2 or not isinstance(operands[0], str):
        return False
    given, arrow, result = operands[0].replace(" ", "").replace(".", "").partition("->")
    return set(given) == set(result) if arrow else len(set(given)) == len(given)


def _roots(p: Any, /) -> Any:
    """``roots``: without leading zeros, and real if all roots are, as NumPy's."""
    p = _line(p)
    if backend.READINGS[type(p._data)].nesting or p.ndim > 1:
        return public().roots(p)
    nonzero = np.flatnonzero(p._on_host())
    if not nonzero.size:
        return TENSOR.astype(p[:0], np.result_type(p.dtype, np.float64))
    if nonzero[0] == nonzero[-1]:  # a constant times a power, whose roots NumPy makes float64
        return public().zeros(p.size - 1 - int(nonzero[0]), np.float64, device=p.device)
    return real_if_all_are(public().roots(p[int(nonzero[0]) :]))


def _pad(array: Any, /, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Any:
    """``pad``; NumPy calls a function on the values."""
    if callable(mode) or not keywords.keys() <= public().pad.op.params.keys():
        return NotImplemented
    return public().pad(array, pad_width, mode, **keywords)


def _triangle(name: str, m: Any, /, k: int = 0) -> Any:
    """``tril`` or ``triu``; NumPy repeats an array of one axis."""
    m = tensor(m)
    m = TENSOR.broadcast_to(m, (m.size, m.size)) if m.ndim == 1 else m
    return getattr(TENSOR, name)(m, k=k)


def _quantile(
    name: str, a: Any, q: Any, /, axis: Any = None, *, method: Any = "linear", keepdims: Any = False
) -> Any:
    """``quantile`` and the like; the dtype of an array `q` counts where NumPy interpolates."""
    if tensor(q).ndim and method not in OF_THE_SAMPLE:
        a = TENSOR.astype(tensor(a), np.result_type(tensor(a).dtype, getattr(q, "dtype", float)))
    return getattr(public(), name)(a, q, axis, method=method, keepdims=keepdims)


def _vander(x: Any, /, N: Any = None, increasing: bool = False) -> Any:
    if tensor(x).ndim != 1:
        raise ShapeError(f"numpy.vander: x must have one axis, its shape is {tensor(x).shape}.")
    return arranged(public().vander(x, N, increasing), "C")


def _unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: Any = "big") -> Any:
    if tensor(a).dtype != np.uint8:
        raise DTypeError(f"numpy.unpackbits: a must be uint8, not {tensor(a).dtype}.")
    return public().unpackbits(a, axis=axis, count=count, bitorder=bitorder)


def _outer_product(a: Any, b: Any, /) -> Any:
    return TENSOR.outer(TENSOR.ravel(a), TENSOR.ravel(b))


def _take_along_axis(arr: Any, indices: Any, /, axis: Any = -1) -> Any:
    arr = tensor(arr)
    arr, axis = (arr.reshape(-1), -1) if axis is None else (arr, axis)
    return TENSOR.take_along_axis(arr, indices, axis=axis)


def laid_out(
    shape: Sequence[int], value: Any, dtype: Any, device: Any, axes: Sequence[int] | None = None
) -> Tensor:
    """A Tensor of a number, or of an array that broadcasts to the shape.

    `axes` is their order in memory, the contiguous one last.
    """
    axes = tuple(range(len(shape)) if axes is None else axes)
    if np.ndim(value):
        whole = TENSOR.broadcast_to(creation.asarray(value, dtype=dtype, device=device), shape)
        result = arranged(TENSOR.permute_dims(whole, axes), "C", copy=True)
    else:
        result = creation.full(tuple(shape[i] for i in axes), value, dtype, device=device)
    if axes == tuple(range(len(shape))):
        return result
    back = tuple(int(i) for i in np.argsort(axes))
    return arranged(TENSOR.permute_dims(result, back), "K", copy=True)


def _like(
    value: Any,
    a: Any,
    /,
    dtype: Any = None,
    order: Any = "K",
    *,
    shape: Any = None,
    device: Any = None,
) -> Any:
    """``zeros_like`` and the like, also of another shape; they read no values."""
    a, order = tensor(a), str(order).upper()
    shape = a.shape if shape is None else shape if np.ndim(shape) else (shape,)
    if len(shape) != a.ndim or backend.READINGS[type(a._data)].nesting:
        order = "C" if order in ("A", "K") else order
    axes = tuple(range(len(shape)))
    axes = axes[::-1] if _is_f(a, order) else _by_stride(a.strides) if order == "K" else axes
    return laid_out(shape, value, a.dtype if dtype is None else dtype, device or a.device, axes)


def _full_like(a: Any, fill_value: Any, /, *args: Any, **keywords: Any) -> Any:
    return _like(fill_value, a, *args, **keywords)


def _transpose(a: Any, /, axes: Any = None) -> Any:
    return tensor(a).transpose() if axes is None else TENSOR.permute_dims(a, tuple(axes))


def _cross(
    a: Any, b: Any, /, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = TENSOR.moveaxis(a, axisa, -1), TENSOR.moveaxis(b, axisb, -1)
    return TENSOR.moveaxis(TENSOR.cross(a, b, axis=-1), -1, axisc)


def _windows(x: Any, window_shape: Any, /, axis: Any = None, *, writeable: bool = False) -> Any:
    if writeable:
        raise ArgumentError("numpy.sliding_window_view: its result is a copy: writeable=False.")
    return public().sliding_window_view(x, window_shape, axis)


def _bin_edges(name: str, a: Any, /, bins: Any = 10, **others: Any) -> Any:
    """``histogram`` and its edges; NumPy estimates how many bins a rule by name needs."""
    return NotImplemented if isinstance(bins, str) else getattr(public(), name)(a, bins, **others)


def _size(a: Any, axis: Any = None) -> Any:
    shape = tensor(a).shape
    if axis is None:
        return int(np.prod(shape))
    return int(np.prod([shape[i] for i in np.atleast_1d(axis)]))


def _memory(question: Any, *tensors: Any) -> bool:
    arrays = [x._data if isinstance(x, Tensor) else x for x in tensors]
    return bool(question(*arrays))


METADATA: dict[str, Callable[..., Any]] = {  # reads no values, so no gradient is cut
    "iscomplexobj": lambda x: tensor(x).dtype.kind == "c",
    "isrealobj": lambda x: tensor(x).dtype.kind != "c",
    "may_share_memory": lambda a, b, max_work=None: _memory(np.may_share_memory, a, b),
    "ndim": lambda a: tensor(a).ndim,
    "shape": lambda a: tensor(a).shape,
    "shares_memory": lambda a, b, max_work=None: _memory(np.shares_memory, a, b),
    "size": _size,
}


def _promote(dtype: Any) -> Callable[[Any], Any]:
    return lambda own: np.result_type(own, dtype)


def _no_half(own: Any) -> Any:
    return np.float32 if own == np.float16 else own


LEAST_DTYPES: dict[str, Callable[[Any], Any]] = {
    "numpy.corrcoef": _promote(np.float64),
    "numpy.cov": _promote(np.float64),
    "numpy.fft.irfft2": _no_half,
    "numpy.fft.irfftn": _no_half,
    "numpy.interp": _promote(np.float64),
    "numpy.polyfit": _promote(np.float64),
    "numpy.vander": _promote(np.int64),
}
"""The dtypes in which NumPy's functions compute, where gpugrad's have another."""

ADAPTERS: dict[str, Callable[..., Any]] = {
    "argsort": _argsort,
    "concatenate": _concatenate,
    "convolve": lambda a, v, /, mode="full": _in_one_axis("convolve", a, v, mode=mode),
    "copy": _copy,
    "correlate": lambda a, v, /, mode="valid": _in_one_axis("correlate", a, v, mode=mode),
    "cross": _cross,
    "empty_like": functools.partial(_like, 0),
    "einsum": _einsum,
    "full_like": _full_like,
    "histogram": functools.partial(_bin_edges, "histogram"),
    "histogram_bin_edges": functools.partial(_bin_edges, "histogram_bin_edges"),
    "identity": lambda n, dtype=None: public().eye(n, dtype=dtype),
    "lib.stride_tricks.sliding_window_view": _windows,
    "ones_like": functools.partial(_like, 1),
    "outer": _outer_product,
    "pad": _pad,
    "poly": _poly,
    "polymul": functools.partial(_of_vectors, "polymul"),
    "polyadd": functools.partial(_of_vectors, "polyadd"),
    "polysub": functools.partial(_of_vectors, "polysub"),
    **{
        name: functools.partial(_quantile, name)
        for name in ("quantile", "percentile", "nanquantile", "nanpercentile")
    },
    "ravel": ravel,
    "real": lambda val, /: val if tensor(val).dtype.kind != "c" else tensor(val).real,
    "reshape": reshape,
    "roots": _roots,
    "sort": _sort,
    "take": _take,
    "take_along_axis": _take_along_axis,
    "transpose": _transpose,
    "tril": functools.partial(_triangle, "tril"),
    "triu": functools.partial(_triangle, "triu"),
    "unpackbits": _unpackbits,
    "vander": _vander,
    "where": _where,
    "zeros_like": functools.partial(_like, 0),
}
