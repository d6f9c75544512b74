"""Arrays as sets: distinct elements, membership, union, intersection, differences.

The gradient of a distinct element goes to its first occurrence. The length of the results depends
on the values, so `vmap` cannot run these functions, except `isin`: they raise ArgumentError.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gpugrad.autodiff.batched import Batched
from gpugrad.core.backend import HALF, READINGS, TENSOR
from gpugrad.core.samples import calls, shaped, uniform
from gpugrad.core.tensor import tensor, wrap
from gpugrad.errors import DTypeError, saying_where
from gpugrad.ops._axes import arrays_of, check_axis
from gpugrad.ops.arrays.select import refuse_vmap
from gpugrad.ops.arrays.shape import NOT_NUMBERS
from gpugrad.registry.record import op

_WAY_OUT = "Call it outside of vmap."


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Any
    inverse_indices: Any


# distinct elements: numerical differences would separate equal elements
_DISTINCT = shaped([(4,)], [(2, 2)], [()], [(0,)])


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
    samples=_DISTINCT,
    errors=NOT_NUMBERS,
    batch=refuse_vmap("unique_all", _WAY_OUT),
    length_by_values=True,
)
def _unique_all(xp, x, /):
    """The op behind `gg.unique_all`."""
    values, indices, inverse, counts = xp.lib.unique(
        x.reshape(-1), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    return values, indices, inverse.reshape(x.shape), counts


@saying_where
def unique_all(x, /) -> UniqueAll:
    """The distinct elements in ascending order, with indices and counts. Not inside `vmap`.

    Args:
        x: array of any shape; each NaN is distinct.

    Returns:
        Named tuple of Tensors: values (differentiable); indices of the first occurrences, in
        row-major order; inverse_indices, so that ``values[inverse_indices]`` is `x`; and counts.

    >>> unique = gg.unique_all([3.0, 1.0, 3.0])
    >>> print(unique.values, unique.indices, unique.inverse_indices, unique.counts)
    [1. 3.] [1 0] [1 0 1] [1 2]
    """
    return UniqueAll(*_unique_all(x))


@saying_where
def unique_counts(x, /) -> UniqueCounts:
    """The distinct elements in ascending order, and how often each occurs. Not inside `vmap`.

    Args:
        x: array of any shape; each NaN is distinct.

    Returns:
        Named tuple of Tensors: values (differentiable) and counts.

    >>> values, counts = gg.unique_counts([3.0, 1.0, 3.0])
    >>> print(values, counts)
    [1. 3.] [1 2]
    """
    values, _, _, counts = _unique_all(x)
    return UniqueCounts(values, counts)


@saying_where
def unique_inverse(x, /) -> UniqueInverse:
    """The distinct elements in ascending order, and the indices that rebuild `x` from them.

    Not inside `vmap`.

    Args:
        x: array of any shape; each NaN is distinct.

    Returns:
        Named tuple of Tensors: values (differentiable) and inverse_indices of the shape of `x`.

    >>> values, inverse = gg.unique_inverse([3.0, 1.0, 3.0])
    >>> print(values, inverse)
    [1. 3.] [1 0 1]
    """
    values, _, inverse, _ = _unique_all(x)
    return UniqueInverse(values, inverse)


@op(kinds="f", samples=_DISTINCT, errors=NOT_NUMBERS)
def unique_values(xp, x, /):
    """The distinct elements in ascending order. Not inside `vmap`.

    Args:
        x: array of any shape; each NaN is distinct.

    Returns:
        One-dimensional Tensor. Each gradient goes to the first occurrence of the value.

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
        ar: array of any shape.
        return_index: whether to return the indices of the first occurrences, too.
        return_inverse: whether to return the indices that rebuild `ar`, too.
        return_counts: whether to return how often each occurs, too.
        axis: the axis whose distinct slices are returned; None for distinct elements.
        equal_nan: whether all NaN are equal.

    Returns:
        Tensor of the values (differentiable), or a tuple of it and the other requested Tensors.

    Raises:
        AxisError: `ar` does not have the axis.
        ArgumentError: inside `vmap`: the length of the result depends on the values.

    >>> print(gg.unique([[2.0, 1.0], [2.0, 1.0]], axis=0))
    [[2. 1.]]
    """
    x = tensor(ar)
    if type(x._data) is Batched:
        refuse_vmap("unique", _WAY_OUT)(None, ())
    if axis is not None:
        axis = check_axis("unique", axis, x.shape)
    data = x._data.astype(np.float32) if x.dtype in HALF else x._data  # CuPy cannot sort bfloat16
    unique_of = READINGS[type(data)].lib.unique
    _, index, *more = unique_of(
        data, True, return_inverse, return_counts, axis=axis, equal_nan=equal_nan
    )
    results = [TENSOR.take(x, wrap(index), axis=axis)]
    results += [wrap(index)] if return_index else []
    results += [wrap(array) for array in more]
    return results[0] if len(results) == 1 else tuple(results)


def _isin_batch(xp, batched, x, test, *, assume_unique, invert):
    if not batched[1]:
        return xp.isin(x, test, assume_unique, invert)
    n = test.shape[0]
    test = xp.reshape(test, (n, test.size // n if n else 0))
    x = x if batched[0] else xp.broadcast_to(x, (n, *x.shape))
    test = xp.reshape(test, (n, *(1,) * (x.ndim - 1), test.shape[1]))
    matches = xp.any(xp.expand_dims(x, axis=-1) == test, axis=-1)
    return xp.logical_not(matches) if invert else matches


def _integers(rng, *shape):
    return rng.integers(0, 4, shape)


@op(
    differentiable=False,
    kinds="fi",
    batch=_isin_batch,
    samples=calls(
        lambda rng: [_integers(rng, 2, 3), _integers(rng, 2)],
        lambda rng: ([_integers(rng, 4) / 2, _integers(rng, 2, 1) / 2], {"invert": True}),
        lambda rng: [uniform(rng), uniform(rng, 2)],
        lambda rng: [uniform(rng, 2), uniform(rng, 0)],
    ),
    errors=[(["text", np.ones(2)], {}, DTypeError, "number")],
    captures=True,
)
def isin(xp, x, test, /, assume_unique=False, invert=False):
    """Whether each element of `x` is an element of `test`; the gradient is None.

    Args:
        invert: whether to negate the result.

    Returns:
        bool Tensor of the shape of `x`.

    >>> print(gg.isin([1.0, 2.0, 3.0], [3.0, 1.0]))
    [ True False  True]
    """
    return xp.lib.isin(x, test, assume_unique=assume_unique, invert=invert)


_on_two_sets = op(
    kinds="f",
    samples=calls(
        lambda rng: [uniform(rng, 4), uniform(rng, 3)],
        lambda rng: [uniform(rng, 2, 2), uniform(rng, 2)],
        # only integers occur in both: numerical differences would separate equal floats
        lambda rng: [_integers(rng, 5), _integers(rng, 4)],
        lambda rng: [uniform(rng, 0), uniform(rng, 2)],
        lambda rng: [uniform(rng), uniform(rng, 2)],
    ),
    errors=[([np.ones(2), "text"], {}, DTypeError, "number")],
)


@_on_two_sets
def union1d(xp, x, y, /):
    """The union of two arrays: its distinct elements in ascending order. Not inside `vmap`.

    Returns:
        One-dimensional Tensor. The gradient of an element goes to its first occurrence, in `x` if
        it is in both.

    >>> print(gg.union1d([3.0, 1.0], [2.0, 3.0]))
    [1. 2. 3.]
    """
    return xp.unique_values(xp.append(x, y))


@_on_two_sets
def intersect1d(xp, x, y, /, assume_unique=False):
    """The distinct elements in both of two arrays, in ascending order. Not inside `vmap`.

    Returns:
        One-dimensional Tensor. The gradient goes to `x`.

    >>> print(gg.intersect1d([3.0, 1.0], [2.0, 3.0]))
    [3.]
    """
    x, y = arrays_of(xp, x, y)
    values = xp.sort(xp.ravel(x)) if assume_unique else xp.unique_values(x)
    return xp.compress(xp.isin(values, y), values)


@_on_two_sets
def setdiff1d(xp, x, y, /, assume_unique=False):
    """The distinct elements of `x` that are not in `y`, in ascending order. Not inside `vmap`.

    Args:
        assume_unique: whether neither array has duplicates; then the elements keep their order.

    Returns:
        One-dimensional Tensor. The gradient goes to `x`.

    >>> print(gg.setdiff1d([3.0, 1.0], [2.0, 3.0]))
    [1.]
    """
    x, y = arrays_of(xp, x, y)
    values = xp.ravel(x) if assume_unique else xp.unique_values(x)
    return xp.compress(xp.isin(values, y, invert=True), values)


@_on_two_sets
def setxor1d(xp, x, y, /, assume_unique=False):
    """The distinct elements in exactly one of two arrays, in ascending order. Not inside `vmap`.

    Returns:
        One-dimensional Tensor.

    >>> print(gg.setxor1d([3.0, 1.0], [2.0, 3.0]))
    [1. 2.]
    """
    parts = [xp.setdiff1d(x, y, assume_unique), xp.setdiff1d(y, x, assume_unique)]
    return xp.sort(xp.concat(parts, axis=0))
