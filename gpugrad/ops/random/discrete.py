"""Random integers, choices and permutations. Their gradient is None."""

from __future__ import annotations

import math

import numpy as np

from gpugrad.core import backend
from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, ShapeError, saying_where
from gpugrad.ops.random import sampling
from gpugrad.ops.random.generator import default_generator
from gpugrad.ops.random.sampling import (
    Call,
    Shape,
    Source,
    as_shape,
    check,
    distribution,
    shape_first,
)

_at_most_one: sampling.Test = (lambda v: v <= 1 + 1e-6, "1 or less")
_below_one: sampling.Test = (lambda v: (v >= 0) & (v < 1), "0 or more, and below 1")
_above_one: sampling.Test = (lambda v: v > 1, "above 1")


@saying_where
def bits(shape: Shape = (), *, dtype=None, device=None, generator: Source = None) -> Tensor:
    """Random bits: integers of uint32 (or `dtype` uint64), all equally likely.

    Args:
        shape: int or tuple of ints.
        dtype: uint32 if None.
        device: the default device if None.
        generator: the default generator if None.

    >>> gg.random.bits(3).dtype.name
    'uint32'
    """
    dtype = backend.as_dtype(np.uint32 if dtype is None else dtype)
    if dtype not in (np.uint32, np.uint64):
        raise ArgumentError(f"bits: dtype must be uint32 or uint64, got {dtype}.")
    draw = (generator or default_generator())._draw
    return draw("bits", as_shape("bits", shape), dtype, device)


@shape_first
def integers(
    shape: Shape = (),
    low: int = 0,
    high: int | None = None,
    *,
    dtype=None,
    device=None,
    generator: Source = None,
) -> Tensor:
    """Random integers from `low` up to, but not including, `high`; int64 if `dtype` is None.

    `low` plus the high word of a 64-bit random number times (high - low): the probabilities differ
    by at most a part in 2^64 / (high - low). Other arguments as `bits`.

    >>> bool(gg.all(gg.random.integers(5, 0, 3) < 3))
    True
    """
    if high is None:
        raise ArgumentError("integers: high= is needed: integers(shape, low, high).")
    if not (isinstance(low, (int, np.integer)) and isinstance(high, (int, np.integer))):
        raise ArgumentError(
            f"integers: low and high must be ints, got {low!r:.60} and {high!r:.60}. The shape "
            "comes first here: integers(shape, low, high)."
        )
    if low >= high:
        raise ArgumentError(f"integers: low={low} is not below high={high}.")
    dtype = backend.as_dtype(np.int64 if dtype is None else dtype)
    if dtype.kind not in "iu":
        raise ArgumentError(f"integers: dtype must be an integer dtype, got {dtype}.")
    room = np.iinfo(dtype)
    if low < room.min or high - 1 > room.max:
        raise ArgumentError(f"integers: {low} to {high} does not fit {dtype}.")
    draw = (generator or default_generator())._draw
    return draw("integers", as_shape("integers", shape), dtype, device, int(low), int(high))


@saying_where
def permutation(x, *, axis: int = 0, device=None, generator: Source = None) -> Tensor:
    """The integers below `x` in random order, or an array in random order along an axis.

    Args:
        x: int, or array with axes. The result of a Tensor is differentiable.
        axis: along which to reorder.
        device: of the result for an int; the default device if None.
        generator: the default generator if None.

    >>> sorted(gg.random.permutation(4).tolist())
    [0, 1, 2, 3]
    """
    draw = (generator or default_generator())._draw
    if isinstance(x, (int, np.integer)):
        n = int(x)
        return draw("permutation", as_shape("permutation", (n,)), np.int64, device, n)
    t = tensor(x)
    if not t.ndim:
        raise ShapeError("permutation: x must be an int or an array with axes.")
    n = t.shape[axis]
    return TENSOR.take(t, draw("permutation", (n,), np.int64, t.device, n), axis=axis)


@saying_where
def choice(
    x, shape: Shape = (), *, replace: bool = True, p=None, device=None, generator: Source = None
) -> Tensor:
    """Random elements of an array along its first axis, or random integers below an int.

    Args:
        x: int, or array with axes. The result of a Tensor is differentiable.
        shape: int or tuple of ints: shape of the choices.
        replace: whether an element can be chosen twice.
        p: probabilities (n,), which sum to 1; equal ones if None. Without replacement, each turn
            chooses among the elements left, in proportion to their `p`.
        device: for an int `x`; the default device if None.
        generator: the default generator if None.

    Raises:
        ArgumentError: `p` does not sum to 1, or there are fewer elements than choices.

    >>> gg.random.choice([5.0, 6.0], (2, 3)).shape
    (2, 3)
    """
    whole, wanted = isinstance(x, (int, np.integer)), as_shape("choice", shape)
    items = None if whole else tensor(x)
    if items is not None and not items.ndim:
        raise ShapeError("choice: x must be an int or an array with axes.")
    n, where = (int(x), device) if items is None else (items.shape[0], items.device)
    count = int(np.prod(wanted))
    if n < (1 if replace else count) and count:
        raise ArgumentError(f"choice: {count} of {n} cannot be chosen, replace={replace}.")
    if p is None and replace:
        index = integers(wanted, 0, max(n, 1), device=where, generator=generator)
    elif p is None:
        order = permutation(n, device=where, generator=generator)
        index = TENSOR.reshape(order[:count], wanted)
    else:
        index = _weighted(tensor(p), n, wanted, replace, generator)
    return index if items is None else items[index]


def _weighted(p: Tensor, n, shape, replace, generator) -> Tensor:
    """Positions in proportion to `p`: by the inverse of its running sum, or by a race."""
    if p.shape != (n,):
        raise ShapeError(f"choice: p must have the shape ({n},), got {p.shape}.")
    check("choice", sampling.not_negative, p=p)
    p, count = TENSOR.astype(TENSOR.stop_gradient(p), np.float64), int(np.prod(shape))
    if type(p._data) is np.ndarray:
        if abs(p._data.sum() - 1) > 1e-3:
            raise ArgumentError(f"choice: p must sum to 1, its sum is {p._data.sum()}.")
        if not replace and np.count_nonzero(p._data) < count:
            raise ArgumentError(f"choice: fewer than {count} elements of p are above 0.")
    draw = (generator or default_generator())._draw
    if replace:
        total = TENSOR.cumulative_sum(p, axis=0)
        u = draw("uniform", shape, np.float64, p.device)
        return TENSOR.searchsorted(total / total[-1:], u, side="right")
    # a race: with exponential times of rates p, the earliest are chosen
    times = draw("exponential", (n,), np.float64, p.device) / TENSOR.maximum(p, 1e-300)
    return TENSOR.reshape(TENSOR.argsort(times)[:count], shape)


@saying_where
def categorical(
    logits,
    shape: Shape = None,
    *,
    axis: int = -1,
    dtype=None,
    device=None,
    generator: Source = None,
) -> Tensor:
    """Random class numbers with probabilities softmax(logits).

    Each logit gets a Gumbel number, and the largest sum wins: exact also for classes whose
    probability a running sum would round away.

    Args:
        logits: array (..., k) of logarithms of probabilities, up to a constant.
        shape: of the result, to which the shape of `logits` without `axis` broadcasts; None for
            that shape.
        axis: of the classes.
        dtype: int64 if None.
        device: the device of `logits` if None.
        generator: the default generator if None.

    >>> gg.random.categorical([[0.0, 1.0, 2.0]] * 4).shape
    (4,)
    """
    scores = tensor(logits)
    if not scores.ndim or not scores.shape[axis]:
        raise ShapeError(f"categorical: there are no classes in logits of shape {scores.shape}.")
    scores = TENSOR.moveaxis(scores, axis, -1)
    call = Call("categorical", shape, dtype or np.int64, device, generator, scores, events=(1,))
    (scores,) = call.parameters
    noise = call.noise("gumbel", event=scores.shape[-1:])
    return call.rounded(TENSOR.argmax(TENSOR.stop_gradient(scores) + noise, axis=-1))


@distribution((sampling.probability, "p"), dtype=np.bool_)
def bernoulli(call, p=0.5):
    """True with probability `p`, where a uniform number is below it.

    Args:
        shape: int or tuple of ints, to which `p` broadcasts; None for its own shape.
        p: number or array, from 0 to 1.
        dtype: bool if None.
        device, generator: as for `gg.random.normal`.

    >>> print(gg.random.bernoulli(3, 1.0))
    [ True  True  True]
    """
    return call.rounded(TENSOR.less(call.noise("uniform"), p))


@saying_where
def rademacher(shape: Shape = (), *, dtype=None, device=None, generator: Source = None) -> Tensor:
    """-1 or 1, equally likely; float32 if `dtype` is None, other arguments as `bits`.

    >>> print(gg.abs(gg.random.rademacher(3)))
    [1. 1. 1.]
    """
    call = Call("rademacher", shape, dtype, device, generator)
    return call.rounded(TENSOR.where(call.noise("uniform") < 0.5, -1.0, 1.0))


@distribution((sampling.not_negative, "rate"), dtype=np.int64, wide=True)
def poisson(call, rate=1.0):
    """Poisson random numbers with mean `rate`; int64 if `dtype` is None, others as `bernoulli`.

    >>> gg.random.poisson((2, 3), 4.0).dtype.name
    'int64'
    """
    return call.rounded(call.noise("poisson", rate))


@distribution((sampling.not_negative, "n"), (sampling.probability, "p"), dtype=np.int64, wide=True)
def binomial(call, n=1, p=0.5):
    """The number of successes in `n` trials, each with probability `p`; others as `poisson`.

    >>> bool(gg.all(gg.random.binomial(5, 10, 0.3) <= 10))
    True
    """
    return call.rounded(call.noise("binomial", n, p))


@distribution((sampling.probability, "p"), (sampling.positive, "p"), dtype=np.int64, wide=True)
def geometric(call, p=0.5):
    """The number of trials until one succeeds, each with probability `p`; others as `poisson`.

    >>> bool(gg.all(gg.random.geometric(5, 0.3) >= 1))
    True
    """
    number = not isinstance(p, Tensor)
    rate = -math.log1p(-min(p, 1 - 2.0**-53)) if number else -TENSOR.log1p(-p)
    trials = TENSOR.ceil(call.noise("exponential") / rate)
    return call.rounded(TENSOR.maximum(trials, 1.0))


@distribution((sampling.positive, "n", "p"), (sampling.probability, "p"), dtype=np.int64, wide=True)
def negative_binomial(call, n=1.0, p=0.5):
    """The number of failures before `n` trials succeed, each with probability `p`.

    A Poisson number whose rate is a gamma number: `n` need not be an integer. Other arguments as
    `poisson`.

    >>> bool(gg.all(gg.random.negative_binomial(5, 3, 0.3) >= 0))
    True
    """
    n = TENSOR.stop_gradient(n) if isinstance(n, Tensor) else n
    p = TENSOR.stop_gradient(p) if isinstance(p, Tensor) else p
    return call.rounded(call.noise("poisson", call.gamma(n) * ((1 - p) / p)))


@distribution((_below_one, "p"), dtype=np.int64, wide=True)
def logseries(call, p=0.5):
    """Integers k from 1 up with probability -`p` ** k / (k log(1 - `p`)); others as `poisson`.

    A geometric number of a random probability (Kemp 1981).

    >>> bool(gg.all(gg.random.logseries(5, 0.3) >= 1))
    True
    """
    rate = TENSOR.log1p(-p) if isinstance(p, Tensor) else math.log1p(-p)
    again = -TENSOR.expm1(call.noise("uniform") * rate)
    trials = TENSOR.ceil(call.noise("exponential") / -TENSOR.log(again))
    return call.rounded(TENSOR.stop_gradient(TENSOR.maximum(trials, 1.0)))


@distribution((_above_one, "a"), dtype=np.int64, wide=True)
def zipf(call, a=2.0):
    """Integers k from 1 up with probability in proportion to k ** -`a`; others as `poisson`.

    >>> bool(gg.all(gg.random.zipf(5, 2.0) >= 1))
    True
    """
    return call.rounded(call.noise("zipf", a))


@distribution((sampling.not_negative, "ngood", "nbad", "nsample"), dtype=np.int64, wide=True)
def hypergeometric(call, ngood=1, nbad=1, nsample=1):
    """How many are good of `nsample` drawn from `ngood` and `nbad`; others as `poisson`.

    >>> bool(gg.all(gg.random.hypergeometric(5, 3, 4, 2) <= 2))
    True
    """
    good, bad, sample = call.parameters
    left = good + bad - sample
    check("hypergeometric", sampling.not_negative, **{"ngood + nbad - nsample": left})
    return call.rounded(call.noise("hypergeometric", good, bad, sample))


@saying_where
def multinomial(
    n, p, shape: Shape = None, *, dtype=None, device=None, generator: Source = None
) -> Tensor:
    """How often each of k outcomes comes in `n` trials: binomial numbers, one after the other.

    Args:
        n: number of trials, or an array of them.
        p: array (..., k) of probabilities; the last one is what the others leave of 1.
        shape: of the result without its last axis; None for the shape of the parameters.
        dtype: int64 if None.
        device, generator: as for `gg.random.normal`.

    Raises:
        ArgumentError: the probabilities but the last sum to more than 1, or one is negative.

    >>> int(gg.sum(gg.random.multinomial(20, [0.2, 0.3, 0.5])))
    20
    """
    p = tensor(p)
    check("multinomial", sampling.not_negative, n=n)
    check("multinomial", sampling.probability, p=p)
    if type(p._data) is np.ndarray and p.ndim and p.size:
        check("multinomial", _at_most_one, **{"the sum of p[..., :-1]": p._data[..., :-1].sum(-1)})
    rest = 1 - TENSOR.cumulative_sum(p, axis=-1) + p

    def count(call, i, left, p, rest):
        chance = TENSOR.clip(p[..., i] / TENSOR.maximum(rest[..., i], 1e-300), 0.0, 1.0)
        return call.noise("binomial", left, chance)

    return _in_turn("multinomial", count, n, p, rest, shape, dtype, device, generator)


@saying_where
def multivariate_hypergeometric(
    colors, nsample, shape: Shape = None, *, dtype=None, device=None, generator: Source = None
) -> Tensor:
    """How many of each color are in a sample: hypergeometric numbers, one after the other.

    Args:
        colors: array (..., k) of how many there are of each.
        nsample: size of the sample, or an array of sizes.
        shape, dtype, device, generator: as for `multinomial`.

    >>> int(gg.sum(gg.random.multivariate_hypergeometric([3, 4, 5], 6)))
    6
    """
    colors = TENSOR.astype(tensor(colors), np.float64)
    check("multivariate_hypergeometric", sampling.not_negative, colors=colors, nsample=nsample)
    total = TENSOR.sum(colors, axis=-1, keepdims=True)
    left = total[..., 0] - nsample
    check("multivariate_hypergeometric", sampling.not_negative, **{"sum(colors) - nsample": left})
    rest = total - TENSOR.cumulative_sum(colors, axis=-1)

    def count(call, i, left, colors, rest):
        return call.noise("hypergeometric", colors[..., i], rest[..., i], left)

    name = "multivariate_hypergeometric"
    return _in_turn(name, count, nsample, colors, rest, shape, dtype, device, generator)


def _in_turn(name, count, n, each, rest, shape, dtype, device, generator) -> Tensor:
    """`n` divided among outcomes: `count` draws the next one's share of what is left."""
    if not each.ndim or not each.shape[-1]:
        raise ShapeError(f"{name}: an axis of outcomes is needed, the shape is {each.shape}.")
    options = dtype or np.int64, device, generator
    call = Call(name, shape, *options, n, each, rest, events=(0, 1, 1), wide=True)
    n, *arrays = call.parameters  # n may be a number
    each, rest = map(TENSOR.stop_gradient, arrays)
    n = TENSOR.stop_gradient(n) if isinstance(n, Tensor) else n
    left = TENSOR.broadcast_to(n + 0 * each[..., 0], call.shape)
    counts = []
    for i in range(each.shape[-1] - 1):
        counts.append(count(call, i, left, each, rest))
        left = left - counts[-1]
    return call.rounded(TENSOR.stack([*counts, left], axis=-1))
