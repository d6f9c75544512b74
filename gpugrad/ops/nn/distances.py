"""Norms of vectors, and distances and angles between them."""

from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, on_gpu
from gpugrad.core.samples import shaped, uniform
from gpugrad.errors import AxisError, ShapeError
from gpugrad.kernels.cpu import pairs
from gpugrad.kernels.cpu.large import steps_unless
from gpugrad.ops._axes import broadcast_shapes
from gpugrad.registry.on_arrays import widened
from gpugrad.registry.record import op


def _normalize_ref(x, p=2.0, axis=1, eps=1e-12):
    return x / np.maximum(np.linalg.norm(x, p, axis=axis, keepdims=True), eps)


@op(
    ref=_normalize_ref,
    samples=shaped(
        [(2, 3)], ([(3,)], {"axis": 0, "p": 3}), ([(2, 3, 2)], {"axis": -2, "eps": 1.5}), [(2, 0)]
    ),
    errors=[([np.ones(3)], {}, AxisError, "axis 1")],
)
def normalize(xp, x, /, p=2.0, axis=1, *, eps=1e-12):
    """Vectors of length 1 along an axis: x / max(norm(x), eps).

    Args:
        p: order of the norm, a number or inf.
        axis: int, of the vectors.
        eps: shorter vectors are divided by this; a zero vector stays 0, with a finite gradient.

    >>> print(gg.normalize([[3.0, 4.0], [0.0, 0.0]]))
    [[0.6 0.8]
     [0.  0. ]]
    """
    return x / xp.maximum(xp.vector_norm(x, axis=axis, keepdims=True, ord=p), eps)


def _similarity_ref(x1, x2, axis=1, eps=1e-8):
    x1, x2 = np.broadcast_arrays(x1, x2)  # before the norms: vectors of length 1 grow
    lengths = [np.maximum(np.linalg.norm(x, axis=axis), eps) for x in (x1, x2)]
    return np.sum(x1 * x2, axis) / lengths[0] / lengths[1]


@op(
    ref=_similarity_ref,
    samples=shaped(
        [(2, 3)] * 2,
        ([(3,)] * 2, {"axis": -1}),
        [(2, 3, 2), (2, 3, 1)],
        [(2, 1), (3,)],
        [(2, 0)] * 2,
    ),
    errors=[
        ([np.ones((2, 3)), np.ones((2, 2))], {}, ShapeError, r"\(2, 3\).*\(2, 2\)"),
        ([np.ones(3), np.ones(3)], {}, AxisError, "axis 1"),
    ],
    mixed="float32",
)
def cosine_similarity(xp, x1, x2, /, axis=1, *, eps=1e-8):
    """Cosine of the angle between vectors along an axis.

    Args:
        x1, x2: arrays that broadcast against each other.
        axis: int, of the vectors in the broadcast shape.
        eps: shorter vectors are divided by this instead of their length, so that the cosine
            with a zero vector is 0. The gradient there is finite.

    Returns:
        Tensor of the broadcast shape without that axis.

    >>> print(gg.cosine_similarity([[1.0, 0.0]], [[3.0, 3.0]]))
    [0.70710677]
    """
    shape = broadcast_shapes("cosine_similarity", [x1.shape, x2.shape])
    x1, x2 = (x if x.shape == shape else xp.broadcast_to(x, shape) for x in (x1, x2))
    n1, n2 = (xp.vector_norm(x, axis=axis, keepdims=True) for x in (x1, x2))
    return xp.sum((x1 / xp.maximum(n1, eps)) * (x2 / xp.maximum(n2, eps)), axis=axis)


def _pairwise_ref(x1, x2, p=2.0, eps=1e-6, keepdims=False):
    return np.linalg.norm(x1 - x2 + eps, p, axis=-1, keepdims=keepdims)


@op(
    ref=_pairwise_ref,
    samples=shaped(
        [(2, 3)] * 2,
        ([(3,)] * 2, {"p": 1, "eps": 0}),
        ([(2, 3), (3,)], {"keepdims": True}),
        ([(2, 3)] * 2, {"p": np.inf}),
    ),
    errors=[
        ([np.ones((2, 3)), np.ones((2, 2))], {}, ShapeError, r"\(2, 3\).*\(2, 2\)"),
        ([np.float64(1.0), np.float64(1.0)], {}, ShapeError, "0-d"),
    ],
    mixed="float32",
)
def pairwise_distance(xp, x1, x2, /, *, p=2.0, eps=1e-6, keepdims=False):
    """Norm of x1 - x2 + eps along the last axis.

    Args:
        x1, x2: vectors along the last axis, broadcast against each other.
        p: order of the norm, a number or inf.
        eps: added to the differences, as in torch. The gradient does not need it: it is 0 where
            the norm is 0.
        keepdims: whether the last axis stays, with length 1.

    Returns:
        Tensor of the broadcast shape without the last axis.

    >>> print(gg.pairwise_distance([[3.0, 4.0]], [[0.0, 0.0]], eps=0))
    [5.]
    """
    if not x1.ndim:
        raise ShapeError("pairwise_distance: the arrays are 0-d, they must be vectors.")
    return xp.vector_norm(x1 - x2 + eps, axis=-1, keepdims=keepdims, ord=p)


def _differences(xp, x1, x2):
    return xp.expand_dims(widened(x1), axis=-2) - xp.expand_dims(widened(x2), axis=-3)


def _swapped(xp, x):
    return xp.swapaxes(x, -1, -2)


_PAIRS = shaped([(2, 3), (4, 3)], [(2, 2, 1), (2, 3, 1)], [(0, 3), (2, 3)])
_PAIR_ERRORS: list[Any] = [
    ([np.ones((2, 3)), np.ones((4, 2))], {}, ShapeError, r"\(2, 3\).*\(4, 2\)"),
    ([np.ones(3), np.ones((2, 3))], {}, ShapeError, r"\(3,\)"),
]


def _check_pairs(name, x1, x2):
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"{name}: x1 {x1.shape} and x2 {x2.shape} are not (..., m, k), (..., n, k)."
        )


@op(
    vjp=[
        lambda xp, g, x1, x2, out: xp.euclidean_distances_grad(g, x1, x2, out),
        lambda xp, g, x1, x2, out: xp.euclidean_distances_grad(
            _swapped(xp, g), x2, x1, _swapped(xp, out)
        ),
    ],
    batch="matrices",
    cpu=pairs.distances,
    captures=True,
    ref=lambda x1, x2: np.linalg.norm(_differences(NUMPY, x1, x2), axis=-1),
    samples=_PAIRS,
    errors=_PAIR_ERRORS,
)
def euclidean_distances(xp, x1, x2, /):
    """Euclidean distances between all pairs of vectors of two sets; `cdist` calls it."""
    _check_pairs("euclidean_distances", x1, x2)
    return xp.vector_norm(_differences(xp, x1, x2), axis=-1)


def _distances_grad_samples(rng):
    for (x1, x2), _ in _PAIRS(rng):
        out = np.linalg.norm(_differences(NUMPY, x1, x2), axis=-1)
        yield [uniform(rng, *out.shape), x1, x2, out], {}


@op(
    cpu=pairs.distances_grad,
    opens=steps_unless(pairs.takes_gradient),
    captures=True,
    ref=lambda g, x1, x2, out: np.sum((g / out)[..., None] * _differences(NUMPY, x1, x2), -2),
    samples=_distances_grad_samples,
    errors=[([np.ones((2, 4)), *args, np.ones((2, 4))], *rest) for args, *rest in _PAIR_ERRORS],
)
def euclidean_distances_grad(xp, g, x1, x2, out, /):
    """The gradient of `euclidean_distances` by `x1`; 0 for equal vectors."""
    _check_pairs("euclidean_distances_grad", x1, x2)
    equal = xp.equal(out, 0)
    # not (g / out) times the differences: its derivative divides by the square, which may vanish
    units = _differences(xp, x1, x2) / xp.expand_dims(xp.where(equal, 1, out), axis=-1)
    return xp.sum(xp.expand_dims(xp.where(equal, 0, g), axis=-1) * units, axis=-2)


@op(
    ref=lambda x1, x2, p=2.0: np.linalg.norm(x1[..., :, None, :] - x2[..., None, :, :], p, axis=-1),
    samples=shaped(
        [(2, 3), (4, 3)],
        ([(2, 2, 1), (3, 1)], {"p": 1}),
        ([(2, 3), (2, 3)], {"p": np.inf}),
        [(0, 3), (2, 3)],
    ),
    errors=[
        ([np.ones((2, 3)), np.ones((4, 2))], {}, ShapeError, r"cdist.*\(2, 3\).*\(4, 2\)"),
        ([np.ones(3), np.ones((2, 3))], {}, ShapeError, r"cdist.*\(3,\)"),
    ],
    mixed="float32",
)
def cdist(xp, x1, x2, /, *, p=2.0):
    """Distances between all pairs of vectors of two sets.

    It forms the differences, so equal vectors have distance exactly 0 (and gradient 0), and the
    distance of close vectors is exact. Without a C kernel that takes memory for m * n * k numbers;
    with one, for float matrices on the CPU and p=2, only for the result.

    Args:
        x1: array of shape (..., m, k).
        x2: array of shape (..., n, k). Stacks are broadcast.
        p: order of the norm: a number, 0 (the count of elements that differ; no gradient) or inf.

    Returns:
        Tensor of shape (..., m, n).

    >>> print(gg.cdist([[0.0, 0.0], [3.0, 0.0]], [[3.0, 4.0]]))
    [[5.]
     [4.]]
    """
    _check_pairs("cdist", x1, x2)
    if p == 2 and x1.shape[:-2] == x2.shape[:-2] and not on_gpu(x1) and x1.dtype.kind == "f":
        return xp.euclidean_distances(x1, x2)
    return xp.vector_norm(_differences(xp, x1, x2), axis=-1, ord=p)
