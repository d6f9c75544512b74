"""Sums over the elements of all pairs of vectors, for the metrics of `gpugrad.scipy.spatial`."""

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import uniform
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.kernels.cpu import pairs
from gpugrad.kernels.cpu.large import MIDDLE, steps_unless
from gpugrad.registry.on_arrays import widened
from gpugrad.registry.record import op


def _ratio(xp, x, y):
    none = xp.equal(y, 0)
    return xp.where(none, 0, x / xp.where(none, 1, y))


def _power(xp, x, p):
    """|x|^p, and 0 with slopes of 0 where x is 0."""
    none = xp.equal(x, 0)
    return xp.where(none, 0, xp.abs(xp.where(none, 1, x)) ** p)


TERMS: dict[str, Any] = {
    "cityblock": lambda xp, a, b, p=1.0: xp.abs(a - b),
    "squares": lambda xp, a, b, p=1.0: xp.square(a - b),
    "totals": lambda xp, a, b, p=1.0: xp.abs(a + b),
    "canberra": lambda xp, a, b, p=1.0: _ratio(xp, xp.abs(a - b), xp.abs(a) + xp.abs(b)),
    "power": lambda xp, a, b, p=1.0: _power(xp, a - b, p),
    "entropy": lambda xp, a, b, p=1.0: xp.rel_entr(a, (a + b) / 2) + xp.rel_entr(b, (a + b) / 2),
    "chebyshev": lambda xp, a, b, p=1.0: xp.abs(a - b),
}
"""Symmetric functions of two elements, whose sum is taken; of the last one the maximum."""

_SLOPES: dict[str, Any] = {
    "cityblock": lambda xp, a, b, p: xp.sign(a - b),
    "squares": lambda xp, a, b, p: 2 * (a - b),
    "totals": lambda xp, a, b, p: xp.sign(a + b),
    "canberra": lambda xp, a, b, p: _ratio(
        xp,
        xp.sign(a - b) - _ratio(xp, xp.abs(a - b), xp.abs(a) + xp.abs(b)) * xp.sign(a),
        xp.abs(a) + xp.abs(b),
    ),
    "power": lambda xp, a, b, p: p * xp.sign(a - b) * _power(xp, a - b, p - 1),
    "entropy": lambda xp, a, b, p: xp.where(
        xp.equal(a + b, 0), 0, xp.log(_ratio(xp, 2 * a, a + b))
    ),
    "chebyshev": lambda xp, a, b, p: _share_of_largest(xp, a - b),
}
"""The derivative of each term by its first element."""


def _share_of_largest(xp, d):
    size = xp.abs(d)
    ties = xp.equal(size, xp.max(size, axis=-1, keepdims=True))
    count = xp.sum(xp.astype(ties, d.dtype), axis=-1, keepdims=True)
    return xp.where(ties, xp.sign(d) / count, 0)


def _all(xp, x1, x2):
    return xp.expand_dims(widened(x1), axis=-2), xp.expand_dims(widened(x2), axis=-3)


def _check(name, x1, x2, term):
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"{name}: x1 {x1.shape} and x2 {x2.shape} are not (..., m, k), (..., n, k)."
        )
    if term not in TERMS:
        raise ArgumentError(f"{name}: term={term!r:.40} is none of {', '.join(TERMS)}.")


def _samples(rng):
    for x1, x2, terms in (((2, 3), (4, 3), TERMS), ((2, 2, 2), (2, 3, 2), ["cityblock"])):
        for term in terms:
            low = 0.3 if term == "entropy" else -2
            yield [uniform(rng, *x, low=low) for x in (x1, x2)], {"term": term, "p": 2.5}


_ERRORS = [
    ([np.ones((2, 3)), np.ones((4, 2))], {"term": "power"}, ShapeError, r"\(2, 3\).*\(4, 2\)"),
    ([np.ones((2, 3)), np.ones((4, 3))], {"term": "a"}, ArgumentError, "'a' is none of"),
]


def _ref(x1, x2, term, p=1.0):
    terms = TERMS[term](NUMPY, *_all(NUMPY, x1, x2), p)
    return terms.max(-1) if term == "chebyshev" else terms.sum(-1)


def _by_second(xp, g, x1, x2, term, p):
    return xp.pair_sums_grad(xp.swapaxes(g, -1, -2), x2, x1, term=term, p=p)


@op(
    vjp=[lambda xp, g, x1, x2, term, p: xp.pair_sums_grad(g, x1, x2, term=term, p=p), _by_second],
    batch="matrices",
    cpu=pairs.pair_sums,
    captures=True,
    ref=_ref,
    samples=_samples,
    errors=_ERRORS,
)
def pair_sums(xp, x1, x2, /, *, term, p=1.0):
    """Sums of a term of the elements of all pairs of vectors, as the distances of metrics are.

    Args:
        x1: array of shape (..., m, k).
        x2: array of shape (..., n, k).
        term: "cityblock" for |a - b|, "squares" for (a - b)^2, "totals" for |a + b|, "canberra" for
            |a - b| / (|a| + |b|), "power" for |a - b|^p, "entropy" for
            a log(2a / (a + b)) + b log(2b / (a + b)); "chebyshev" for the largest |a - b|.
        p: the number of "power".

    Returns:
        Tensor of shape (..., m, n). On the CPU, a C kernel needs memory for the result alone.

    >>> print(gg.pair_sums([[1.0, 2.0]], [[3.0, 5.0]], term="cityblock"))
    [[5.]]
    """
    _check("pair_sums", x1, x2, term)
    all_ = TERMS[term](xp, *_all(xp, x1, x2), p)
    return xp.max(all_, axis=-1) if term == "chebyshev" else xp.sum(all_, axis=-1)


def _grad_samples(rng):
    for (x1, x2), how in _samples(rng):
        yield [rng.normal(size=_ref(x1, x2, **how).shape), x1, x2], how


@op(
    cpu=pairs.pair_sums_grad,
    opens=steps_unless(pairs.takes_gradient),
    captures=True,
    ref=lambda g, x1, x2, term, p=1.0: np.sum(
        g[..., None] * _SLOPES[term](NUMPY, *_all(NUMPY, x1, x2), p), -2
    ),
    samples=_grad_samples,
    errors=[([np.ones((2, 4)), *args], *rest) for args, *rest in _ERRORS],
)
def pair_sums_grad(xp, g, x1, x2, /, *, term, p=1.0):
    """The gradient of `pair_sums` by `x1`. Equal largest terms share it.

    >>> print(gg.pair_sums_grad([[2.0]], [[1.0, 9.0]], [[3.0, 5.0]], term="cityblock"))
    [[-2.  2.]]
    """
    _check("pair_sums_grad", x1, x2, term)
    if g.shape[-2:] != (x1.shape[-2], x2.shape[-2]):
        raise ShapeError(
            f"pair_sums_grad: g {g.shape} is not (..., m, n) of {x1.shape}, {x2.shape}."
        )
    slopes = _SLOPES[term](xp, *_all(xp, x1, x2), p)
    return xp.sum(xp.expand_dims(g, axis=-1) * slopes, axis=-2)


def _own_samples(rng):
    for (x, _), how in _samples(rng):
        yield [x], how


def _own_ref(x, term, p=1.0):
    return _ref(x, x, term, p)[..., *np.triu_indices(x.shape[-2], 1)]


def _of_pairs(m):
    """For each element of an (m, m) matrix, the place of its pair among those of `pdist`, or 0."""
    above = np.triu_indices(m, 1)
    places = np.zeros((m, m), int)
    places[above] = places[above[::-1]] = np.arange(len(above[0]))
    return places


def _check_own(name, x, term):
    if x.ndim < 2 or x.shape[-2] < 2:
        raise ShapeError(f"{name}: x {x.shape} is not (..., m, k) of two vectors or more.")
    _check(name, x, x, term)


_OWN_ERRORS = [
    ([np.ones((1, 3))], {"term": "power"}, ShapeError, r"\(1, 3\)"),
    ([np.ones((2, 3))], {"term": "a"}, ArgumentError, "'a' is none of"),
]


@op(
    vjp=[lambda xp, g, x, term, p: xp.own_pair_sums_grad(g, x, term=term, p=p)],
    batch="matrices",
    cpu=pairs.own_pair_sums,
    captures=True,
    ref=_own_ref,
    samples=_own_samples,
    errors=_OWN_ERRORS,
)
def own_pair_sums(xp, x, /, *, term, p=1.0):
    """`pair_sums` of the pairs of one set of vectors: (0, 1), (0, 2), ... (m - 2, m - 1).

    Args:
        x: array of shape (..., m, k), with m of 2 or more.
        term, p: as of `pair_sums`.

    Returns:
        Tensor of shape (..., m (m - 1) / 2).

    >>> print(gg.own_pair_sums([[0.0], [1.0], [3.0]], term="cityblock"))
    [1. 3. 2.]
    """
    _check_own("own_pair_sums", x, term)
    m = x.shape[-2]
    i, j = np.triu_indices(m, 1)
    all_ = xp.pair_sums(x, x, term=term, p=p)
    return xp.getitem(xp.reshape(all_, (*x.shape[:-2], m * m)), index=(Ellipsis, i * m + j))


def _own_grad_samples(rng):
    for (x,), how in _own_samples(rng):
        yield [rng.normal(size=_own_ref(x, **how).shape), x], how


def _full(g, m):
    return np.where(np.eye(m, dtype=bool), 0, g[..., _of_pairs(m)])


@op(
    cpu=pairs.own_pair_sums_grad,
    opens=steps_unless(
        lambda g, x: len(x.shape) == 2 and math.prod(x.shape) * x.shape[0] >= MIDDLE
    ),
    captures=True,
    ref=lambda g, x, term, p=1.0: np.sum(
        _full(g, x.shape[-2])[..., None] * _SLOPES[term](NUMPY, *_all(NUMPY, x, x), p), -2
    ),
    samples=_own_grad_samples,
    errors=[([np.ones(1), *args], *rest) for args, *rest in _OWN_ERRORS],
)
def own_pair_sums_grad(xp, g, x, /, *, term, p=1.0):
    """The gradient of `own_pair_sums`.

    >>> print(gg.own_pair_sums_grad([2.0], [[1.0, 9.0], [3.0, 5.0]], term="cityblock"))
    [[-2.  2.]
     [ 2. -2.]]
    """
    _check_own("own_pair_sums_grad", x, term)
    m = x.shape[-2]
    if g.shape != (*x.shape[:-2], m * (m - 1) // 2):
        raise ShapeError(f"own_pair_sums_grad: g {g.shape} is not of the pairs of x {x.shape}.")
    full = xp.getitem(g, index=(Ellipsis, _of_pairs(m)))
    of_both = xp.triu(full, k=1) + xp.tril(full, k=-1)
    return xp.pair_sums_grad(of_both, x, x, term=term, p=p)
