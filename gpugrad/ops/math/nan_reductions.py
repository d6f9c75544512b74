"""Reductions that leave NaNs out; the gradients of NaNs are 0.

If all elements are NaN, sums are 0, products 1 and other results NaN, with no warning.
"""

import math
import warnings
from typing import Any

import numpy as np

from gpugrad.core.arguments import check_numbers
from gpugrad.core.backend import as_dtype
from gpugrad.core.samples import shaped
from gpugrad.ops._axes import expand, how_many, per_count, reducing
from gpugrad.ops.math.cumulative import REAL_DTYPE, running_doc
from gpugrad.ops.math.reduction import EMPTY, NO_AXIS
from gpugrad.registry.record import op


def with_nan(sampler):
    """Samples with a NaN in one place."""

    def samples(rng):
        for args, keywords in sampler(rng):
            if args[0].size > 2:
                args[0].flat[rng.integers(args[0].size)] = np.nan
            yield args, keywords

    return samples


_EVERY = with_nan(
    shaped(
        [(4,)],
        ([(3, 2)], {"axis": 0}),
        ([(2, 3, 2)], {"axis": (-1, 1), "keepdims": True}),
        [()],
        ([(0, 2)], {"axis": 1}),
    )
)
_FLOATS: dict[str, Any] = {"native_half": True, "kinds": "fc", "errors": [*NO_AXIS, REAL_DTYPE]}


def _three(last, *more):
    """Samples without an axis, along the first, and along the last with other keywords as well."""
    last = ([(2, 3)], {"axis": -1, **last})
    return with_nan(shaped([(4,)], ([(3, 2)], {"axis": 0}), last, *more))


def quiet(name):
    """NumPy's function, without its warnings where all elements are NaN."""

    def reference(x, *args, **keywords):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(np, name)(x, *args, **keywords)

    return reference


def _filled(xp, x, value):
    """`x` with `value` in the place of NaNs."""
    return x if x.dtype.kind in "biu" else xp.where(xp.isnan(x), value, x)


def _counted(xp, x, axis, keepdims):
    """How many elements are not NaN, as real numbers of the precision of `x`."""
    real = {"complex64": np.float32, "complex128": np.float64}.get(x.dtype.name, x.dtype)
    return xp.sum(xp.astype(~xp.isnan(x), real), axis=axis, keepdims=keepdims)


def _or_nan(xp, n):
    """A divisor that gives NaN, and no warning, where it is not positive."""
    return xp.where(n > 0, n, float("nan"))


def _in_dtype(xp, f, x, dtype):
    """``f(x)`` in a dtype; for 16-bit floats in float32, rounded once at the end."""
    dtype = x.dtype if dtype is None else as_dtype(dtype)
    half = dtype.char in "eE"
    wide = np.dtype(np.float32) if half else dtype
    out = f(x if x.dtype == wide else xp.astype(x, wide))
    return xp.astype(out, dtype) if half else out


# ---- sums and products -------------------------------------------------------------------


@op(samples=_EVERY, **_FLOATS, mixed="float32")
def nansum(xp, x, /, axis=None, *, dtype=None, keepdims=False):
    """Sum along axes of elements that are not NaN; 0 if there are none.

    >>> print(gg.nansum([1.0, float("nan"), 2.0]))
    3.0
    """
    return xp.sum(_filled(xp, x, 0), axis=axis, dtype=dtype, keepdims=keepdims)


@op(samples=_EVERY, **_FLOATS)
def nanprod(xp, x, /, axis=None, *, dtype=None, keepdims=False):
    """Product along axes of elements that are not NaN; 1 if there are none.

    >>> print(gg.nanprod([2.0, float("nan"), 3.0]))
    6.0
    """
    return xp.prod(_filled(xp, x, 1), axis=axis, dtype=dtype, keepdims=keepdims)


def _nan_running(name, of, what, nothing, result):
    """The running sum or product `of` with `nothing` in the place of NaNs."""

    def running(xp, x, /, axis=None, *, dtype=None, include_initial=False):
        x = _filled(xp, x, nothing)
        if axis is None:
            x, axis = xp.reshape(x, (x.size,)), 0
        return getattr(xp, of)(x, axis=axis, dtype=dtype, include_initial=include_initial)

    def reference(x, axis=None, **how):
        x = np.where(np.isnan(x), nothing, x)
        x, axis = (x.ravel(), 0) if axis is None else (x, axis)
        return getattr(np, of)(x, axis=axis, **how)

    what = f"{what} in which NaNs count as {nothing}: along an axis, or over all elements"
    example = f"{name}([2.0, np.nan, 3.0])", result
    running.__doc__ = running_doc(what, nothing, example, without="all, in row-major order")
    samples = _three({"include_initial": True}, [(2, 3)])
    return op(name=name, ref=reference, samples=samples, **_FLOATS)(running)


nancumsum = _nan_running("nancumsum", "cumulative_sum", "Running sum", 0, "[2. 2. 5.]")
nancumprod = _nan_running("nancumprod", "cumulative_prod", "Running product", 1, "[2. 2. 6.]")

# ---- mean and spread ---------------------------------------------------------------------


def _nanmean(xp, x, axis, keepdims):
    if x.dtype.kind in "biu":
        return xp.mean(x, axis=axis, keepdims=keepdims)
    n = _or_nan(xp, _counted(xp, x, axis, keepdims))
    return xp.nansum(x, axis=axis, keepdims=keepdims) / n


@op(samples=_EVERY, ref=quiet("nanmean"), **_FLOATS, mixed="float32")
def nanmean(xp, x, /, axis=None, *, dtype=None, keepdims=False):
    """Arithmetic mean along axes of elements that are not NaN.

    Args:
        x: array of any shape; integers give float64.
        dtype: to compute in, and of the result; None is that of `x`.

    Returns:
        Tensor without the reduced axes; NaN where all elements are NaN.

    >>> print(gg.nanmean([1.0, float("nan"), 2.0]))
    1.5
    """
    return _in_dtype(xp, lambda x: _nanmean(xp, x, axis, keepdims), x, dtype)


def _deviations(xp, x, axis, correction, keepdims):
    """Distances from the mean, 0 for NaN; and the divisor of the sum of their squares."""
    d = xp.where(xp.isnan(x), 0.0, x - _nanmean(xp, x, axis, True))
    return d, _or_nan(xp, _counted(xp, x, axis, keepdims) - correction)


def _nanvar(xp, x, axis, correction, keepdims):
    if x.dtype.kind in "biu":
        return xp.var(x, axis=axis, correction=correction, keepdims=keepdims)
    d, n = _deviations(xp, x, axis, correction, keepdims)
    squares = xp.real(d * xp.conj(d)) if d.dtype.kind == "c" else d * d
    return xp.sum(squares, axis=axis, keepdims=keepdims) / n


def _nanstd(xp, x, axis, correction, keepdims):
    if x.dtype.kind in "biu":
        return xp.std(x, axis=axis, correction=correction, keepdims=keepdims)
    d, n = _deviations(xp, x, axis, correction, keepdims)
    return xp.vector_norm(d, axis=axis, keepdims=keepdims) / xp.sqrt(n)


def _nan_spread(name, formula, what):
    """Variance or standard deviation of elements that are not NaN."""

    def spread(xp, x, /, axis=None, *, dtype=None, correction=0.0, keepdims=False, ddof=None):
        less = correction if ddof is None else ddof
        check_numbers(name, "biuf", correction=less)
        return _in_dtype(xp, lambda x: formula(xp, x, axis, less, keepdims), x, dtype)

    spread.__doc__ = f"""{what}.

    Args:
        dtype: to compute in, and of the result; None is that of `x`.

    Returns:
        Real Tensor without the reduced axes; NaN where the divisor is not positive.

    >>> print(gg.{name}([1.0, float("nan"), 3.0]))
    1.0
    """
    last = ([(2, 3, 2)], {"axis": (-1, 1), "keepdims": True})
    samples = with_nan(shaped([(4,)], ([(4, 2)], {"axis": 0, "correction": 1}), last))
    return op(name=name, samples=samples, ref=quiet(name), **_FLOATS)(spread)


nanvar = _nan_spread("nanvar", _nanvar, "Variance along axes of elements that are not NaN")
nanstd = _nan_spread(
    "nanstd",
    _nanstd,
    "Standard deviation along axes of elements that are not NaN, with gradient 0 where it is 0",
)

# ---- extremes ----------------------------------------------------------------------------


def _extreme(xp, x, axis, keepdims, reduced, beyond):
    """The extreme of the elements that are not NaN; `beyond` replaces NaNs."""
    if x.dtype.kind in "biu":
        return reduced(x, axis=axis, keepdims=keepdims)
    nan = xp.lib.isnan(x)
    extreme = reduced(xp.lib.where(nan, beyond, x), axis=axis, keepdims=keepdims)
    only = xp.lib.all(nan, axis=axis, keepdims=keepdims)
    return xp.lib.where(only, math.nan, extreme)


def _extreme_vjp(xp, g, out, x, axis, keepdims):
    """Equal extremes share the gradient; a NaN equals nothing."""
    hit = xp.astype(x == expand(xp, out, x.shape, axis, keepdims), x.dtype)
    share = xp.maximum(how_many(xp, hit, axis), 1)
    return hit * per_count(xp, expand(xp, g, x.shape, axis, keepdims), share)


def _extreme_jvp(xp, t, out, x, axis, keepdims):
    """Selected, not multiplied by 0: the tangents of NaN are NaN themselves."""
    hit = x == expand(xp, out, x.shape, axis, keepdims)
    share = xp.reshape(how_many(xp, xp.astype(hit, t.dtype), axis), out.shape)
    total = xp.sum(xp.where(hit, t, 0), axis=axis, keepdims=keepdims)
    return per_count(xp, total, xp.maximum(share, 1))


def _nan_extreme(name, which, of, beyond, result):
    def extreme(xp, x, /, axis=None, *, keepdims=False):
        return _extreme(xp, x, axis, keepdims, getattr(xp.lib, of), beyond)

    extreme.__doc__ = f"""{which} element along axes that is not NaN; equal ones share the gradient.

    Args:
        x: array of any shape, not of length 0 along a reduced axis.

    Returns:
        Tensor without the reduced axes; NaN where all elements are NaN.

    >>> print(gg.{name}([1.0, float("nan"), 2.0]))
    {result}
    """
    more = {"kinds": "fc", "ref": quiet(name), "samples": _EVERY, "errors": EMPTY}
    rules = {"vjp": [_extreme_vjp], "jvp": [_extreme_jvp]}
    return op(name=name, **rules, batch=reducing(name), captures=True, **more)(extreme)


nanmax = _nan_extreme("nanmax", "Largest", "max", -np.inf, "2.0")
nanmin = _nan_extreme("nanmin", "Smallest", "min", np.inf, "1.0")


def _place(xp, x, extreme, axis, keepdims):
    """The first index of the extreme; -1 where all elements are NaN."""
    out = extreme(x, axis=axis, keepdims=True)
    index = xp.argmax(xp.astype(xp.equal(x, out), np.int8), axis=axis, keepdims=keepdims)
    if x.dtype.kind in "biu":
        return index
    nothing = xp.isnan(out)
    return xp.where(xp.reshape(nothing, index.shape), -1, index)


def _nan_index(name, which, of, result):
    def index(xp, x, /, axis=None, *, keepdims=False):
        return _place(xp, x, getattr(xp, of), axis, keepdims)

    index.__doc__ = f"""Index of the {which} element that is not NaN, the first of equal ones.

    It has no gradient.

    Args:
        x: array of any shape, not empty.
        axis: int, or None to count through all elements.
        keepdims: whether the reduced axis stays, with length 1.

    Returns:
        int64 Tensor without the reduced axis; -1 where all elements are NaN.

    >>> print(gg.{name}([1.0, float("nan"), 2.0]))
    {result}
    """
    return op(name=name, samples=_three({"keepdims": True}), errors=EMPTY)(index)


nanargmax = _nan_index("nanargmax", "largest", "nanmax", 2)
nanargmin = _nan_index("nanargmin", "smallest", "nanmin", 0)
