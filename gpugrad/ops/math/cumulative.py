"""Running sums, products, extremes and logsumexp, and the recurrence behind their adjoints."""

import itertools
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import batch_axis_of
from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import shaped
from gpugrad.errors import AxisError, DTypeError, ShapeError
from gpugrad.kernels.by_hand import scan
from gpugrad.kernels.cpu.large import MIDDLE, kernels
from gpugrad.ops._axes import accumulated, cast_back, check_axis
from gpugrad.ops.arrays import moves_in_c
from gpugrad.registry.record import op


def _one_axis(name, ndim, axis):
    """The axis of a cumulative op; only one-dimensional arrays may leave it out."""
    if axis is None and ndim != 1:
        raise AxisError(f"{name}: axis= is needed, since the array has {ndim} axes, not one.")
    return 0 if axis is None else axis


def _axis_of(name, shape, axis):
    """The axis of a cumulative op, counted from 0."""
    n = len(shape)
    axis = _one_axis(name, n, axis)
    check_axis(name, axis, shape)
    return axis % n


def _without_first(xp, x, axis):
    return xp.getitem(x, index=(slice(None),) * (axis % x.ndim) + (slice(1, None),))


_NEEDS_AXIS: tuple[Any, ...] = ([np.ones((2, 3))], {}, AxisError, "axis= is needed")
_BEYOND: tuple[Any, ...] = ([np.ones((2, 3))], {"axis": 2}, AxisError, "axis 2 is out of bounds")
REAL_DTYPE: tuple[Any, ...] = ([np.ones(2) + 1j], {"dtype": "float64"}, DTypeError, "gg.real")

# ---- sums and products -------------------------------------------------------------------

_WITH_INITIAL = shaped(
    [(4,)],
    ([(2, 3)], {"axis": 0}),
    ([(2, 3)], {"axis": -1, "include_initial": True}),
    [(0,)],
    ([(2, 0)], {"axis": 1}),
    ([(1, 4)], {"axis": 1, "dtype": "complex128"}),
)


def running_doc(what, nothing, example, without="an array of one axis"):
    """The docstring of a running sum or product."""
    return f"""{what}.

    Args:
        x: array of at least one axis.
        axis: int; None for {without}.
        include_initial: whether {nothing}, the result for no elements, comes first.

    Returns:
        Tensor of the same shape (one longer along the axis with `include_initial`).

    >>> print(gg.{example[0]})
    {example[1]}
    """


def _running(name, vjp, what, nothing, result, linear=False):
    """A running sum or product, by the array API's function of that name."""

    def running(xp, x, /, axis=None, *, dtype=None, include_initial=False):
        axis, run = _one_axis(name, x.ndim, axis), getattr(xp.lib, name)
        if xp is NUMPY and x.size >= MIDDLE and dtype is None and not include_initial:
            out = kernels("sums").running_sum(x, axis, what="add" if sums else "multiply")
            if out is not NotImplemented:
                return out
        return accumulated(name, run, x, dtype, axis=axis, include_initial=include_initial)

    sums = name == "cumulative_sum"

    def batch(xp, batched, x, *, axis, **params):
        axis = batch_axis_of(_one_axis(name, x.ndim - 1, axis), x.ndim - 1)
        return getattr(xp, name)(x, axis=axis, **params)

    running.__doc__ = running_doc(what, nothing, (f"{name}([1.0, 2.0, 3.0])", result))
    more = {
        "linear": linear,
        "mixed": "float32",
        "native_half": True,
        "kinds": "fci",
        "samples": _WITH_INITIAL,
        "c_call": moves_in_c.cumulative_sum if sums else None,
    }
    errors = [_NEEDS_AXIS, REAL_DTYPE]
    return op([vjp], name=name, errors=errors, batch=batch, cuda=getattr(scan, name), **more)(
        running
    )


def _cumulative_sum_vjp(xp, g, x_shape, x_dtype, axis, include_initial):
    g = cast_back(xp, g, x_dtype)
    if not x_shape:
        return xp.getitem(g, index=(-1,))
    axis = 0 if axis is None else axis
    back = xp.suffix_sum(g, axis=axis)
    return _without_first(xp, back, axis) if include_initial else back


def _cumulative_prod_vjp(xp, g, x, axis, dtype, include_initial):
    """Return (x_0 ... x_{k-1}) r_k, r_k = g_k + x_{k+1} r_{k+1}: no division by zeros."""
    x_dtype = x.dtype
    x = x if dtype is None else xp.astype(x, dtype)
    if not x.ndim:
        return cast_back(xp, xp.getitem(g, index=(-1,)), x_dtype)
    axis = (0 if axis is None else axis) % x.ndim
    if not x.shape[axis]:
        nothing = xp.getitem(g, index=(slice(None),) * axis + (slice(0, 0),))
        return cast_back(xp, nothing, x_dtype)
    if x.dtype.kind == "c":
        x = xp.conj(x)
    if include_initial:
        g = _without_first(xp, g, axis)
    until = (slice(None),) * axis
    before = xp.cumulative_prod(x, axis=axis, include_initial=True)
    before = xp.getitem(before, index=(*until, slice(0, -1)))
    later = xp.concat(
        [_without_first(xp, x, axis), xp.getitem(x, index=(*until, slice(0, 1)))], axis=axis
    )
    return cast_back(xp, before * xp.recurrence(later, g, axis=axis, reverse=True), x_dtype)


cumulative_sum = _running(
    "cumulative_sum", _cumulative_sum_vjp, "Running sum along an axis", 0, "[1. 3. 6.]", linear=True
)
cumulative_prod = _running(
    "cumulative_prod",
    _cumulative_prod_vjp,
    "Running product along an axis. Its gradients are exact next to zeros",
    1,
    "[1. 2. 6.]",
)


@op(
    native_half=True,
    kinds="fc",
    cuda=scan.suffix_sum,
    c_call=moves_in_c.suffix_sum,
    opens=None,
    ref=lambda x, axis: np.flip(np.cumsum(np.flip(x, axis), axis), axis),
    samples=shaped(
        ([(4,)], {"axis": 0}),
        ([(2, 3)], {"axis": -1}),
        ([(2, 3, 2)], {"axis": 1}),
        ([(2, 0)], {"axis": 1}),
    ),
    errors=[([np.ones(3)], {"axis": 1}, AxisError, "axis 1")],
)
def suffix_sum(xp, x, /, *, axis):
    """The gradient of `cumulative_sum`: the sum of each element and all later ones."""
    if xp is NUMPY and x.size >= MIDDLE:
        out = kernels("sums").running_sum(x, axis, back=True)
        if out is not NotImplemented:
            return out
    return xp.flip(xp.cumulative_sum(xp.flip(x, axis=axis), axis=axis), axis=axis)


def _numpy_running(name, of, what, result):
    """NumPy's running sum or product; without an axis, over all elements."""

    def forward(xp, x, /, axis=None, dtype=None):
        x = xp.reshape(x, (x.size,)) if axis is None else x
        return getattr(xp, of)(x, axis=0 if axis is None else axis, dtype=dtype)

    forward.__doc__ = f"""{what} as NumPy's: `{of}`, over all elements if `axis` is None.

    Args:
        axis: int; None for all elements, in row-major order.

    Returns:
        Tensor of the shape of `x`; of shape (x.size,) without an axis.

    >>> print(gg.{name}([[1.0, 2.0], [3.0, 4.0]]))
    {result}
    """
    axes = [{}, {"axis": 0}, {"axis": -1}]
    samples = shaped([(4,)], *(([(2, 3)], axis) for axis in axes), [()])
    return op(name=name, native_half=True, kinds="fci", samples=samples, errors=[_BEYOND])(forward)


cumsum = _numpy_running("cumsum", "cumulative_sum", "Running sum", "[ 1.  3.  6. 10.]")
cumprod = _numpy_running("cumprod", "cumulative_prod", "Running product", "[ 1.  2.  6. 24.]")

# ---- extremes and logsumexp --------------------------------------------------------------


def _accumulated(xp, name, ufunc, x, axis):
    """Each element combined with all those before it."""
    axis = _axis_of(name, x.shape, axis)
    if xp is NUMPY and x.size >= MIDDLE and ufunc in (np.maximum, np.minimum):
        out = kernels("sums").running_sum(x, axis, what=ufunc.__name__)
        if out is not NotImplemented:
            return out
    if xp is NUMPY:
        return ufunc.accumulate(x, axis=axis)
    x, reach = xp.lib.moveaxis(x, axis, 0), 1  # CuPy's ufuncs cannot accumulate: log2(n) steps
    while reach < x.shape[0]:
        x = xp.lib.concat([x[:reach], ufunc(x[reach:], x[:-reach])], axis=0)
        reach *= 2
    return xp.lib.moveaxis(x, 0, axis)


_SCANNED = shaped(
    [(5,)], ([(3, 2)], {"axis": 0}), ([(2, 3)], {"axis": -1}), [(0,)], ([(2, 0)], {"axis": 1})
)
_SCAN_ERRORS = [_NEEDS_AXIS, ([np.ones(3)], {"axis": 1}, AxisError, "axis 1")]


def _scan(name, ufunc, vjp, what, example, ref=None, **more):
    """A running op that combines elements by a ufunc."""

    def running(xp, x, /, axis=None):
        if x.dtype.kind == "c" and "c" not in more["kinds"]:
            raise DTypeError(f"{name}: x is {x.dtype}; write gg.log(gg.cumulative_sum(gg.exp(x))).")
        if "i" not in more["kinds"] and x.dtype.kind not in "fV":
            x = x.astype(np.float64)
        return _accumulated(xp, name, getattr(xp.lib, ufunc), x, axis)

    def batch(xp, batched, x, *, axis):
        return getattr(xp, name)(x, axis=1 + _axis_of(name, x.shape[1:], axis))

    running.__doc__ = f"""{what}.

    Args:
        x: array of at least one axis.
        axis: int; None for an array of one axis.

    Returns:
        Tensor of the shape of `x`; NaN from the first NaN on.

    >>> print(gg.{name}({example[0]}))
    {example[1]}
    """
    ref = ref or (lambda x, axis=0: getattr(np, ufunc).accumulate(x, axis))
    more |= {"samples": _SCANNED, "errors": _SCAN_ERRORS, "cuda": getattr(scan, name)}
    return op([vjp], name=name, ref=ref, batch=batch, **more)(running)


def _extreme_vjp(xp, g, out, x, axis):
    """The gradient goes to the place where the extreme was last reached."""
    axis = 0 if axis is None else axis
    reached = xp.astype((x == out) | xp.isnan(x), np.int64)
    count = xp.cumulative_sum(reached * 0 + 1, axis=axis)
    place = xp.cumulative_max(reached * (count - 1), axis=axis)
    return xp.scatter_along_axis(g, place, axis=axis, shape=x.shape)


def _cumulative_logsumexp_vjp(xp, g, out, x, axis):
    """Return exp(x_k - y_k) r_k, r_k = g_k + exp(y_k - y_(k + 1)) r_(k + 1).

    As y ascends, no exponential is above 1, and nothing cancels.
    """
    axis = (0 if axis is None else axis) % x.ndim
    finite = xp.where(out == -np.inf, 0.0, out)  # -inf - -inf is NaN; the exponential is 0
    lead = (slice(None),) * axis
    after = xp.getitem(finite, index=(*lead, slice(1, None)))
    last = xp.getitem(finite, index=(*lead, slice(-1, None)))
    factor = xp.exp(out - xp.concat([after, last], axis=axis))
    return xp.exp(x - finite) * xp.recurrence(factor, g, axis=axis, reverse=True)


_EXTREME: dict[str, Any] = {"vjp": _extreme_vjp, "kinds": "fci", "native_half": True}

cumulative_max = _scan(
    "cumulative_max",
    "maximum",
    what="Largest element so far along an axis; the last of equal ones gets the gradient",
    example=("[1.0, 3.0, 2.0]", "[1. 3. 3.]"),
    **_EXTREME,
)
cumulative_min = _scan(
    "cumulative_min",
    "minimum",
    what="Smallest element so far along an axis; the last of equal ones gets the gradient",
    example=("[2.0, 1.0, 3.0]", "[2. 1. 1.]"),
    **_EXTREME,
)
cumulative_logsumexp = _scan(
    "cumulative_logsumexp",
    "logaddexp",
    _cumulative_logsumexp_vjp,
    "log(cumulative_sum(exp(x))) along an axis, without overflow",
    ("[1000.0, 1000.0]", "[1000.     1000.6931]"),
    ref=lambda x, axis=0: np.log(np.cumsum(np.exp(x), axis)),
    kinds="f",
)


def _shifted(xp, y, axis, reverse):
    """Move each element to the next place (to the previous one, if reverse)."""
    n = y.shape[axis]
    until = (slice(None),) * axis
    kept = xp.getitem(y, index=(*until, slice(1, None) if reverse else slice(0, n - 1)))
    edge = xp.getitem(y, index=(*until, slice(0, 1))) * 0
    return xp.concat([kept, edge] if reverse else [edge, kept], axis=axis)


def _adjoint_recurrence(xp, g, a, axis, reverse):
    """The recurrence run backwards: the sum of what all later steps pass to each step."""
    return xp.recurrence(_shifted(xp, a, axis, not reverse), g, axis=axis, reverse=not reverse)


def _recurrence_a(xp, g, out, a, axis, reverse):
    axis = axis % a.ndim
    d = _shifted(xp, out, axis, reverse)
    a, d = (xp.conj(a), xp.conj(d)) if d.dtype.kind == "c" else (a, d)
    return _adjoint_recurrence(xp, g, a, axis, reverse) * d


def _recurrence_b(xp, g, a, axis, reverse):
    a = xp.conj(a) if a.dtype.kind == "c" else a
    return _adjoint_recurrence(xp, g, a, axis % a.ndim, reverse)


_FEW = 10
"""Up to this many lines, a loop over Python numbers beats NumPy's steps from row to row."""


def _one_by_one(a, out, reverse):
    """The recurrence along axis 0, in place, one line after the other."""
    order = slice(None, None, -1 if reverse else 1)
    for at in np.ndindex(out.shape[1:]):
        factors, line = a[(order, *at)].tolist(), out[(order, *at)].tolist()
        for k in range(1, len(line)):
            line[k] += factors[k] * line[k - 1]
        out[(order, *at)] = line


def _recurrence_ref(a, b, *, axis, reverse=False):
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    out, y = np.empty_like(b), 0
    for k in range(len(b))[:: -1 if reverse else 1]:
        out[k] = y = b[k] + a[k] * y
    return np.moveaxis(out, 0, axis)


@op(
    [_recurrence_a, _recurrence_b],
    kinds="fc",
    ref=_recurrence_ref,
    batch="axis",
    cuda=scan.recurrence,
    samples=shaped(
        ([(4,)] * 2, {"axis": 0}),
        ([(2, 3)] * 2, {"axis": -1, "reverse": True}),
        ([(3, 1)] * 2, {"axis": 1}),
    ),
    errors=[
        ([np.ones(2), np.ones(3)], {"axis": 0}, ShapeError, "same shape"),
        ([np.ones(2), np.ones(2)], {"axis": 1}, AxisError, "axis 1"),
    ],
)
def recurrence(xp, a, b, /, *, axis, reverse=False):
    """First-order linear recurrence along an axis: y_k = b_k + a_k y_{k-1}, from y_{-1} = 0.

    Args:
        a, b: arrays of the same shape.
        reverse: whether to start at the end.

    >>> print(gg.recurrence([2.0, 2.0, 2.0], [1.0, 1.0, 1.0], axis=0))
    [1. 3. 7.]
    """
    if a.shape != b.shape:
        raise ShapeError(f"recurrence: a {a.shape} and b {b.shape} must have the same shape.")
    a, b = xp.lib.moveaxis(a, axis, 0), xp.lib.moveaxis(b, axis, 0)
    out = xp.lib.array(b, dtype=xp.lib.result_type(a, b))
    if xp is NUMPY and 0 < out.size < _FEW * len(out):
        _one_by_one(a, out, reverse)
        return np.moveaxis(out, 0, axis)
    steps = range(b.shape[0])[:: -1 if reverse else 1]
    for before, k in itertools.pairwise(steps):
        out[k] += a[k] * out[before]
    return xp.lib.moveaxis(out, 0, axis)
