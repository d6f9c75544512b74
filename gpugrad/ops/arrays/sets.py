"""Arrays as sets: distinct elements, membership, union, intersection, differences.

The gradient of a distinct element goes to its first occurrence. How many there are depends on
the values, so `vmap` cannot run these.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpugrad.autodiff.batched import Batched
from gpugrad.core.backend import HALF, NAMESPACES, TENSOR
from gpugrad.core.samples import calls, uniform
from gpugrad.core.tensor import tensor, wrap
from gpugrad.errors import AxisError, DTypeError, saying_where
from gpugrad.ops.arrays.select import by_values
from gpugrad.registry.record import op

_WAY_OUT = "Call it outside of vmap."
_TEXT: list[Any] = [(["text"], {}, DTypeError, "number")]
_TEXT_TWO: list[Any] = [([np.ones(2), "text"], {}, DTypeError, "number")]


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Any
    inverse_indices: Any


def _different(rng):
    """For differences: equal elements that move apart are no longer equal."""
    yield [uniform(rng, 4)], {}
    yield [uniform(rng, 2, 2)], {}
    yield [uniform(rng)], {}
    yield [uniform(rng, 0)], {}


def _unique_vjp(xp, g, out, x_shape):
    size = math.prod(x_shape)
    first = xp.scatter_along_axis(g[0], out[1], axis=0, shape=(size,), unique=True)
    return xp.reshape(first, x_shape)


@op(
    vjp=[_unique_vjp],
    name="unique_all",
    outputs=4,
    kinds="fc",
    ref=lambda x: tuple(np.unique_all(x)),
    samples=_different,
    errors=_TEXT,
    batch=by_values("unique_all", _WAY_OUT),
)
def _unique_all(xp, x, /):
    """The distinct elements in ascending order, and what is known of them: for `unique_all`.

    Args:
        x: array, of any shape; each NaN is distinct.

    Returns:
        Tensor of the elements, and int64 Tensors: where each comes first, which of them each
        element of `x` is, and how often each occurs.

    >>> print(gg.unique_all([3.0, 1.0, 3.0]).counts)
    [1 2]
    """
    values, indices, inverse, counts = xp.lib.unique(
        x.reshape(-1), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    return values, indices, inverse.reshape(x.shape), counts


@saying_where
def unique_all(x, /):
    """The distinct elements in ascending order, and what is known of them.

    Args:
        x: array, of any shape; each NaN is distinct.

    Returns:
        Named tuple of Tensors: the values, differentiable; indices: where in row-major order
        each comes first; inverse_indices, of the shape of `x`: ``values[inverse_indices]`` is
        `x`; and counts: how often each occurs.

    Raises:
        ArgumentError: inside `vmap`, where each example has values of its own.

    >>> found = gg.unique_all([3.0, 1.0, 3.0])
    >>> print(found.values, found.indices, found.inverse_indices, found.counts)
    [1. 3.] [1 0] [1 0 1] [1 2]
    """
    return UniqueAll(*_unique_all(x))


@saying_where
def unique_counts(x, /):
    """The distinct elements in ascending order, and how often each occurs.

    Args:
        x: array, of any shape; each NaN is distinct.

    Returns:
        Named tuple of Tensors: values, differentiable, and counts.

    Raises:
        ArgumentError: inside `vmap`, where each example has values of its own.

    >>> values, counts = gg.unique_counts([3.0, 1.0, 3.0])
    >>> print(values, counts)
    [1. 3.] [1 2]
    """
    found = _unique_all(x)
    return UniqueCounts(found[0], found[3])


@saying_where
def unique_inverse(x, /):
    """The distinct elements in ascending order, and which of them each element is.

    Args:
        x: array, of any shape; each NaN is distinct.

    Returns:
        Named tuple of Tensors: values, differentiable, and inverse_indices of the shape of `x`.

    Raises:
        ArgumentError: inside `vmap`, where each example has values of its own.

    >>> values, inverse = gg.unique_inverse([3.0, 1.0, 3.0])
    >>> print(values, inverse)
    [1. 3.] [1 0 1]
    """
    found = _unique_all(x)
    return UniqueInverse(found[0], found[2])


@op(kinds="f", samples=_different, errors=_TEXT)
def unique_values(xp, x, /):
    """The distinct elements in ascending order; each gradient goes to the first of its value.

    Args:
        x: array, of any shape; each NaN is distinct.

    Returns:
        Tensor of one axis. How long it is depends on the values.

    >>> print(gg.unique_values([3.0, 1.0, 3.0]))
    [1. 3.]
    """
    return xp.unique_all(x)[0]


@saying_where
def unique(
    ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True
):
    """The distinct elements in ascending order, as NumPy's unique.

    Args:
        ar: array, of any shape.
        return_index: whether to return where each comes first, too.
        return_inverse: whether to return which of them each element is, too.
        return_counts: whether to return how often each occurs, too.
        axis: along which distinct slices are looked for; None looks for elements.
        equal_nan: whether all NaN are one.

    Returns:
        Tensor of the values, differentiable; or a tuple of it and what else is asked for.

    Raises:
        AxisError: an axis that `ar` does not have.
        ArgumentError: inside `vmap`, where each example has values of its own.

    >>> print(gg.unique([[2.0, 1.0], [2.0, 1.0]], axis=0))
    [[2. 1.]]
    """
    x = tensor(ar)
    if type(x._data) is Batched:
        by_values("unique", _WAY_OUT)(None, ())
    if axis is not None and not -x.ndim <= axis < x.ndim:
        raise AxisError(f"unique: axis {axis} is out of bounds for the shape {x.shape}.")
    data = x._data.astype(np.float32) if x.dtype in HALF else x._data  # CuPy sorts no bfloat16
    _, index, *more = NAMESPACES[type(data)].lib.unique(
        data,
        return_index=True,
        return_inverse=return_inverse,
        return_counts=return_counts,
        axis=axis,
        equal_nan=equal_nan,
    )
    whole = TENSOR.reshape(x, (x.size,)) if axis is None else x
    found = [TENSOR.take(whole, wrap(index), axis=0 if axis is None else axis)]
    found += [wrap(index)] if return_index else []
    found += [wrap(m) for m in more]
    return found[0] if len(found) == 1 else tuple(found)


# ---- membership and sets -----------------------------------------------------------------


def _isin_batch(xp, batched, x, test, *, assume_unique, invert):
    if not batched[1]:
        return xp.isin(x, test, assume_unique, invert)
    n = test.shape[0]
    test = xp.reshape(test, (n, test.size // n if n else 0))
    x = x if batched[0] else xp.broadcast_to(x, (n, *x.shape))
    test = xp.reshape(test, (n, *(1,) * (x.ndim - 1), test.shape[1]))
    found = xp.any(xp.expand_dims(x, axis=-1) == test, axis=-1)
    return xp.logical_not(found) if invert else found


def _integers(rng, *shape):
    return rng.integers(0, 4, shape)


@op(
    differentiable=False,
    kinds="fi",
    batch=_isin_batch,
    samples=calls(
        lambda rng: ([_integers(rng, 2, 3), _integers(rng, 2)], {}),
        lambda rng: ([_integers(rng, 4) / 2, _integers(rng, 2, 1) / 2], {"invert": True}),
        lambda rng: ([uniform(rng), uniform(rng, 2)], {}),
        lambda rng: ([uniform(rng, 2), uniform(rng, 0)], {}),
    ),
    errors=[(["text", np.ones(2)], {}, DTypeError, "number")],
)
def isin(xp, x, test, /, assume_unique=False, invert=False):
    """Whether each element is among others.

    Args:
        test: array, of any shape: the others.
        assume_unique: that no element comes twice in either, which may be faster.
        invert: whether to ask for those that are not among them.

    Returns:
        bool Tensor of the shape of `x`. It has no gradient.

    >>> print(gg.isin([1.0, 2.0, 3.0], [3.0, 1.0]))
    [ True False  True]
    """
    return xp.lib.isin(x, test, assume_unique=assume_unique, invert=invert)


def _two_sets(rng):
    """Some elements in both; they are moved together in no check, so only integers tie."""
    yield [uniform(rng, 4), uniform(rng, 3)], {}
    yield [uniform(rng, 2, 2), uniform(rng, 2)], {}
    yield [_integers(rng, 5), _integers(rng, 4)], {}
    yield [uniform(rng, 0), uniform(rng, 2)], {}


def _flat(xp, x):
    return xp.reshape(x, (x.size,))


@op(kinds="f", samples=_two_sets, errors=_TEXT_TWO)
def union1d(xp, x, y, /):
    """The distinct elements of two arrays together, in ascending order.

    Args:
        x, y: arrays, of any shape.

    Returns:
        Tensor of one axis. The gradient of an element goes to its first occurrence, in `x` if
        it is in both.

    >>> print(gg.union1d([3.0, 1.0], [2.0, 3.0]))
    [1. 2. 3.]
    """
    return xp.unique_values(xp.concat([_flat(xp, x), _flat(xp, y)], axis=0))


@op(kinds="f", samples=_two_sets, errors=_TEXT_TWO)
def intersect1d(xp, x, y, /, assume_unique=False):
    """The distinct elements that are in both of two arrays, in ascending order.

    Args:
        x, y: arrays, of any shape.
        assume_unique: that no element comes twice in either, which may be faster.

    Returns:
        Tensor of one axis. The gradient goes to `x`.

    >>> print(gg.intersect1d([3.0, 1.0], [2.0, 3.0]))
    [3.]
    """
    own = xp.sort(_flat(xp, x)) if assume_unique else xp.unique_values(x)
    return xp.compress(xp.isin(own, y), own)


@op(kinds="f", samples=_two_sets, errors=_TEXT_TWO)
def setdiff1d(xp, x, y, /, assume_unique=False):
    """The distinct elements of one array that are not in another, in ascending order.

    Args:
        y: array, of any shape: what to leave out.
        assume_unique: that no element comes twice in either: then they stay in their order.

    Returns:
        Tensor of one axis. The gradient goes to `x`.

    >>> print(gg.setdiff1d([3.0, 1.0], [2.0, 3.0]))
    [1.]
    """
    own = _flat(xp, x) if assume_unique else xp.unique_values(x)
    return xp.compress(xp.isin(own, y, invert=True), own)


@op(kinds="f", samples=_two_sets, errors=_TEXT_TWO)
def setxor1d(xp, x, y, /, assume_unique=False):
    """The distinct elements that are in one of two arrays and not in both, in ascending order.

    Args:
        x, y: arrays, of any shape.
        assume_unique: that no element comes twice in either, which may be faster.

    Returns:
        Tensor of one axis.

    >>> print(gg.setxor1d([3.0, 1.0], [2.0, 3.0]))
    [1. 2.]
    """
    parts = [xp.setdiff1d(x, y, assume_unique), xp.setdiff1d(y, x, assume_unique)]
    return xp.sort(xp.concat(parts, axis=0))
