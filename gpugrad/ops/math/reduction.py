"""Ops that reduce axes."""

import math
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import batch_axis_of
from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import along_axis, calls, uniform
from gpugrad.errors import AxisError, ShapeError
from gpugrad.kernels.by_hand import softmax as kernels
from gpugrad.kernels.cpu import large
from gpugrad.kernels.cpu.large import LARGE
from gpugrad.ops._axes import (
    accumulated,
    add_reduce,
    all_axes,
    along_rows,
    cast_back,
    count,
    expand,
    how_many,
    per_count,
    reduced,
    reduced_tangent,
    reducing,
)
from gpugrad.ops._roots import root_of_powers
from gpugrad.ops.arrays import moves_in_c
from gpugrad.ops.math.cumulative import REAL_DTYPE
from gpugrad.registry.on_arrays import wide
from gpugrad.registry.record import op

_KEPT = {"axis": (-1, 1), "keepdims": True}
_EVERY = along_axis({"axis": None}, {"axis": (0, 2)}, _KEPT, {"axis": ()})
NO_AXIS: list[Any] = [([np.ones((2, 3))], {"axis": 2}, AxisError, "axis 2 is out of bounds")]
EMPTY = [*NO_AXIS, ([np.ones((0, 3))], {"axis": 0}, ShapeError, "zero-size|empty")]


# ---- sums and products -------------------------------------------------------------------

_TOTALS: dict[str, Any] = {
    "native_half": True,
    "kinds": "fci",
    "samples": along_axis(
        {"axis": None}, {"axis": (0, 2), "dtype": np.complex128}, _KEPT, {"axis": ()}
    ),
    "errors": [*NO_AXIS, REAL_DTYPE],
}


def _sum_vjp(xp, g, x_shape, x_dtype, axis, keepdims):
    g = cast_back(xp, g, x_dtype)
    return xp.broadcast_to(expand(xp, g, x_shape, axis, keepdims), x_shape)


@op(
    [_sum_vjp],
    linear=True,
    name="sum",
    batch=reducing("sum"),
    **_TOTALS,
    captures=True,
    reduces="sum",
    mixed="float32",
    c_call=moves_in_c.total(is_mean=False),
)
def sum_(xp, x, /, axis=None, *, dtype=None, keepdims=False):
    """Sum along axes; 0 if there are no elements.

    Args:
        dtype: dtype of the sum. None: the dtype of `x`; int64 or uint64 for smaller integers, int64
            for booleans.

    >>> print(gg.sum([[1.0, 2.0], [3.0, 4.0]], axis=0))
    [4. 6.]
    """
    if dtype is None and x.dtype.char not in "eE":
        if x.size < LARGE:  # without another call
            return xp.add_reduce(x, axis=axis, keepdims=keepdims)
        return add_reduce(xp, x, axis, keepdims)
    return accumulated("sum", xp.add_reduce, x, dtype, axis=axis, keepdims=keepdims)


def _others(xp, x):
    """Along the last axis: the product of all the others. No division, so zeros are exact."""
    before = _exclusive(xp, x)
    after = xp.flip(_exclusive(xp, xp.flip(x, axis=-1)), axis=-1)
    return before * after


def _exclusive(xp, x):
    """Along the last axis: the product of the elements before."""
    n = x.shape[-1]
    running = xp.cumulative_prod(x, axis=-1, include_initial=True)
    return xp.getitem(running, index=(Ellipsis, slice(0, n)))


def _prod_vjp(xp, g, x, axis, dtype, keepdims):
    x_dtype = x.dtype
    x = x if dtype is None else xp.astype(x, dtype)
    axes = all_axes(x.ndim, axis)
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    order = kept + axes
    moved = xp.permute_dims(x, order)
    flat = xp.reshape(moved, (*(x.shape[i] for i in kept), count(x.shape, axis)))
    d = xp.permute_dims(
        xp.reshape(_others(xp, flat), moved.shape), tuple(np.argsort(order).tolist())
    )
    d = xp.conj(d) if d.dtype.kind == "c" else d
    return cast_back(xp, expand(xp, g, x.shape, axis, keepdims) * d, x_dtype)


def _prod_jvp(xp, t, out, x, axis, dtype, keepdims):
    def gradient(g):
        return _prod_vjp(xp, g, x, axis, dtype, keepdims)

    return reduced_tangent(xp, gradient, t, out, axis, keepdims)


@op([_prod_vjp], jvp=[_prod_jvp], batch=reducing("prod"), **_TOTALS, captures=True, mixed="float32")
def prod(xp, x, /, axis=None, *, dtype=None, keepdims=False):
    """Product along axes; 1 if there are no elements. Gradients are exact next to zeros.

    Args:
        dtype: dtype of the product; None as for `sum`.

    >>> print(gg.prod([2.0, 3.0, 4.0]))
    24.0
    """
    if xp is NUMPY and dtype is None and x.size >= large.MIDDLE:
        sums = large.kernels("sums")
        out = sums.product_of_rows(x, axis, keepdims)
        if axis is None and not keepdims:
            out = sums.product(x)
        if out is not NotImplemented:
            return out
    return accumulated("prod", xp.lib.prod, x, dtype, axis=axis, keepdims=keepdims)


# ---- mean and spread ---------------------------------------------------------------------


def _over(total, n):
    """A sum divided by n; NaN, with no warning, where n is 0."""
    return total / n if n > 0 else total * float("nan")


def _mean_vjp(xp, g, x_shape, axis, keepdims):
    n = count(x_shape, axis)
    g = per_count(xp, g, n) if n else g * float("nan")
    return xp.broadcast_to(expand(xp, g, x_shape, axis, keepdims), x_shape)


@op(
    [_mean_vjp],
    linear=True,
    kinds="fc",
    samples=_EVERY,
    errors=NO_AXIS,
    batch=reducing("mean"),
    captures=True,
    reduces="mean",
    mixed="float32",
    c_call=moves_in_c.total(is_mean=True),
)
def mean(xp, x, /, axis=None, *, keepdims=False):
    """Arithmetic mean along axes.

    Args:
        x: array of any shape; integers give float64.

    Returns:
        Tensor without the reduced axes; NaN, with no warning, where there are no elements.

    >>> print(gg.mean([[1.0, 2.0], [3.0, 4.0]], axis=1))
    [1.5 3.5]
    """
    exact = {"dtype": np.float64} if x.dtype.kind in "biu" else {}
    n = count(x.shape, axis)
    if n and xp is not NUMPY:  # in one kernel
        return x.mean(axis=axis, keepdims=keepdims, **exact)
    if exact:
        return _over(xp.add_reduce(x, axis=axis, keepdims=keepdims, **exact), n)
    return _over(add_reduce(xp, x, axis, keepdims), n)


def _squares(xp, x, axis, keepdims):
    """Sum of squared distances from the mean."""
    d = x - xp.mean(x, axis=axis, keepdims=True)
    return xp.sum(d * xp.conj(d) if d.dtype.kind == "c" else d * d, axis=axis, keepdims=keepdims)


def _freedom(shape, axis, correction, ddof):
    """The divisor of a sum of squares; 0 if there are too few elements."""
    return max(count(shape, axis) - (correction if ddof is None else ddof), 0)


def _spread(name, forward, what, **more):
    """Variance or standard deviation, from ``forward(xp, x, axis, correction, keepdims, ddof)``."""

    def spread(xp, x, /, axis=None, *, correction=0.0, keepdims=False, ddof=None):
        return forward(xp, x, axis, correction, keepdims, ddof)

    def reference(x, axis=None, correction=0, keepdims=False):
        return getattr(np, name)(x, axis=axis, ddof=correction, keepdims=keepdims)

    spread.__doc__ = f"""{what}.

    Returns:
        Tensor without the reduced axes; NaN, with no warning, where the divisor is not positive.

    >>> print(gg.{name}([1.0, 3.0]))
    1.0
    """
    keywords = {"axis": None}, {"axis": (0, 2), "keepdims": True}, {"axis": 1, "correction": 1}
    samples = along_axis(*keywords)
    return op(name=name, samples=samples, ref=reference, errors=NO_AXIS, **more)(spread)


def _var(xp, x, axis, correction, keepdims, ddof):
    s = _squares(xp, x, axis, keepdims)
    s = xp.real(s) if s.dtype.kind == "c" else s
    return _over(s, _freedom(x.shape, axis, correction, ddof))


var = _spread(
    "var", _var, "Variance along axes: mean squared distance from the mean", mixed="float32"
)


def _std(xp, x, axis, correction, keepdims, ddof):
    n = _freedom(x.shape, axis, correction, ddof)
    if n <= 0:
        return xp.sqrt(xp.var(x, axis=axis, correction=correction, keepdims=keepdims, ddof=ddof))
    d = x - xp.mean(x, axis=axis, keepdims=True)
    return root_of_powers(xp, d, 2, axis, keepdims, divisor=n)


def _std_slope(xp, out, x, axis, correction, ddof):
    """(x - mean) / (n std); 0 where all elements are equal (0 / 0), NaN where the std is NaN."""
    n = _freedom(x.shape, axis, correction, ddof)
    d = x - xp.mean(x, axis=axis, keepdims=True)
    return xp.masked_divide(d, out * n) if n else d * float("nan")


def _std_rule(multiply):
    def vjp(xp, g, out, x, axis, correction, keepdims, ddof):
        g, out, x = (wide(xp, v) for v in (g, out, x))  # float16 does not hold every n
        g, out = (expand(xp, v, x.shape, axis, keepdims) for v in (g, out))
        return getattr(xp, multiply)(g, _std_slope(xp, out, x, axis, correction, ddof))

    return vjp


def _std_jvp(xp, t, out, x, axis, correction, keepdims, ddof):
    def gradient(g):
        return _std_rule("masked_multiply")(xp, g, out, x, axis, correction, keepdims, ddof)

    return reduced_tangent(xp, gradient, t, out, axis, keepdims)


def _std_opens(x, axis, correction, keepdims, ddof):
    return "kernels" if _freedom(x.shape, axis, correction, ddof) else None


std = _spread(
    "std",
    _std,
    "Standard deviation along axes: square root of `var`, with gradient 0 where it is 0",
    vjp=[_std_rule("multiply")],
    masked=[_std_rule("masked_multiply")],
    jvp=[_std_jvp],
    kinds="fc",
    batch=reducing("std"),
    captures=True,
    opens=_std_opens,
    mixed="float32",
)

# ---- extremes and logsumexp --------------------------------------------------------------


def _extreme_vjp(xp, g, out, x, axis, keepdims):
    """Equal extremes share the gradient, as in TensorFlow, torch and JAX."""
    hit = xp.astype(x == expand(xp, out, x.shape, axis, keepdims), x.dtype)
    share = how_many(xp, hit, axis)
    return hit * per_count(xp, expand(xp, g, x.shape, axis, keepdims), share)


def _jvp_by(vjp):
    def jvp(xp, t, out, x, axis, keepdims):
        return reduced_tangent(
            xp, lambda g: vjp(xp, g, out, x, axis, keepdims), t, out, axis, keepdims
        )

    return jvp


def _extreme(name, which, result):
    ufunc = {"max": np.maximum, "min": np.minimum}[name]

    def extreme(xp, x, /, axis=None, *, keepdims=False):
        if xp is NUMPY:  # without the microsecond that np.max looks at its arguments
            return ufunc.reduce(x, axis, keepdims=keepdims)
        return getattr(xp.lib, name)(x, axis=axis, keepdims=keepdims)

    extreme.__doc__ = f"""{which} element along axes; equal ones share the gradient.

    Args:
        x: array of any shape, not of length 0 along a reduced axis.

    Returns:
        Tensor without the reduced axes; NaN where there is a NaN.

    >>> print(gg.{name}([[1.0, 2.0], [3.0, 0.0]], axis=1))
    {result}
    """
    more = {"kinds": "fci", "samples": _EVERY, "errors": EMPTY, "batch": reducing(name)}
    rules = {"vjp": [_extreme_vjp], "jvp": [_jvp_by(_extreme_vjp)]}
    return op(**rules, name=name, captures=True, reduces=name, **more)(extreme)


max_ = _extreme("max", "Largest", "[2. 3.]")
min_ = _extreme("min", "Smallest", "[1. 0.]")


def _logsumexp_opens(x, axis, keepdims):
    """Small ones are steps; larger ones have a kernel of their own."""
    axis = -1 if axis is None and len(x.shape) == 1 else axis
    return "c" if along_rows(x, axis) and math.prod(x.shape) < large.MIDDLE else None


def _logsumexp_vjp(xp, g, out, x, axis, keepdims):
    if xp is NUMPY and x.size >= large.MIDDLE:
        d = large.kernels("rows").logsumexp_grad(g, x, out, axis)
        if d is not NotImplemented:
            return d
    return _logsumexp_rule(xp, g, out, x, axis, keepdims)


def _logsumexp_rule(xp, g, out, x, axis, keepdims):
    d = xp.exp(x - expand(xp, out, x.shape, axis, keepdims))
    d = xp.conj(d) if d.dtype.kind == "c" else d
    return xp.masked_multiply(expand(xp, g, x.shape, axis, keepdims), d)


@op(
    [_logsumexp_vjp],
    jvp=[_jvp_by(_logsumexp_rule)],
    kinds="fc",
    ref="scipy.special.logsumexp",
    errors=NO_AXIS,
    batch=reducing("logsumexp"),
    cuda=kernels.logsumexp,
    cpu=lambda *args, **params: large.kernels("rows").logsumexp(*args, **params),
    large=large.MIDDLE,
    opens=_logsumexp_opens,
    samples=along_axis({"axis": None}, {"axis": (0, 2), "keepdims": True}),
    mixed="float32",
)
def logsumexp(xp, x, /, axis=None, *, keepdims=False):
    """log(sum(exp(x))) along axes, without overflow.

    Args:
        x: array of any shape. Of complex numbers the result is the principal value of the log.

    Returns:
        Tensor without the reduced axes; -inf where all elements are -inf, or there are none.

    >>> print(gg.logsumexp([1000.0, 1000.0]))
    1000.6931
    """
    if not count(x.shape, axis):
        total = xp.add_reduce(x, axis=axis, keepdims=keepdims)
        return xp.lib.full(total.shape, float("-inf"), dtype=total.dtype)
    # a complex shift would carry its imaginary part around the branch cut of the log
    largest = xp.max(x.real if x.dtype.kind == "c" else x, axis=axis, keepdims=True)
    shift = xp.where(xp.isfinite(largest), largest, 0)
    total = xp.add_reduce(xp.exp(x - shift), axis=axis, keepdims=True)
    nothing = total == 0  # log(0) would warn
    out = xp.where(nothing, largest, xp.log(xp.where(nothing, 1, total)) + shift)
    return out if keepdims else xp.reshape(out, shape=reduced(x.shape, axis))


def _index(name, which, result):
    """Index of an extreme; for axis None it counts through all elements of an example."""

    def index(xp, x, /, axis=None, *, keepdims=False):
        return getattr(xp.lib, name)(x, axis=axis, keepdims=keepdims)

    def batch(xp, batched, x, *, axis, keepdims):
        if axis is not None:
            return getattr(xp, name)(x, axis=batch_axis_of(axis, x.ndim - 1), keepdims=keepdims)
        flat = xp.reshape(x, (x.shape[0], count(x.shape[1:], None)))
        out = getattr(xp, name)(flat, axis=1)
        return xp.reshape(out, (-1,) + (1,) * (x.ndim - 1)) if keepdims else out

    index.__doc__ = f"""Index of the {which} element, the first of equal ones. Its gradient is None.

    Args:
        x: array of any shape, not of length 0 along the axis.
        axis: int, or None to count through all elements.
        keepdims: whether the reduced axis stays, with length 1.

    Returns:
        int64 Tensor without the reduced axis.

    >>> print(gg.{name}([1.0, 3.0, 2.0]))
    {result}
    """
    more = {"kinds": "fi", "samples": along_axis({"axis": 1, "keepdims": True}), "errors": EMPTY}
    more["c_call"] = moves_in_c.place_of(least=name == "argmin")
    return op(name=name, differentiable=False, batch=batch, captures=True, **more)(index)


argmax = _index("argmax", "largest", 1)
argmin = _index("argmin", "smallest", 0)


def _test(name, what, result):
    ufunc = {"any": np.logical_or, "all": np.logical_and}[name]

    def test(xp, x, /, axis=None, *, keepdims=False):
        if xp is NUMPY:
            return ufunc.reduce(x, axis, keepdims=keepdims)
        return getattr(xp.lib, name)(x, axis=axis, keepdims=keepdims)

    test.__doc__ = f"""{what} true (not 0). Its gradient is None.

    Returns:
        bool Tensor without the reduced axes.

    >>> print(gg.{name}([True, False]))
    {result}
    """
    more = {"kinds": "fib", "samples": _EVERY, "errors": NO_AXIS, "batch": reducing(name)}
    more["c_call"] = moves_in_c.test(every=name == "all")
    return op(name=name, differentiable=False, captures=True, **more)(test)


any_ = _test("any", "Whether at least one element is", True)
all_ = _test("all", "Whether all elements are", False)


@op(
    differentiable=False,
    kinds="fib",
    errors=NO_AXIS,
    batch=reducing("count_nonzero"),
    samples=calls(
        lambda rng: ([uniform(rng, 2, 3) > 0], {"axis": 0}), lambda rng: [uniform(rng, 3)]
    ),
    captures=True,
)
def count_nonzero(xp, x, /, axis=None, *, keepdims=False):
    """How many elements are not 0. Its gradient is None.

    Returns:
        int64 Tensor without the reduced axes.

    >>> print(gg.count_nonzero([1.0, 0.0, 2.0]))
    2
    """
    return xp.add_reduce(x != 0, axis=axis, keepdims=keepdims)
