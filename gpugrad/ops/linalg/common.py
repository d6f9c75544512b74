"""Checks, samples and declarations of ops of square matrices."""

from typing import Any

import numpy as np

from gpugrad.core.samples import calls, uniform
from gpugrad.errors import ShapeError, SingularMatrixError
from gpugrad.registry.record import op

SQUARE = [((1, 1),), ((2, 2),), ((3, 3),), ((2, 2, 2),), ((0, 2, 2),), ((0, 0),)]
NO_MATRIX: tuple[Any, ...] = ([np.ones(3)], {}, ShapeError, r"\(3,\)")
NOT_SQUARE: tuple[Any, ...] = ([np.ones((2, 3))], {}, ShapeError, r"square.*\(2, 3\)")
STACKS: dict[str, Any] = {"kinds": "fc", "batch": "matrices"}


def matrices(*shapes, shift=2.0):
    """Samples far from singular: `shift` times the identity is added to the first matrix."""

    def sample(first, *rest):
        def make(rng):
            matrix = uniform(rng, *first, low=-1, high=1) + shift * np.eye(first[-1])
            return [matrix, *(uniform(rng, *s) for s in rest)], {}

        return make

    return [sample(*case) for case in shapes]


def on_each(function):
    """A function of matrices on each of a stack, for `ref`; identities if there is none."""

    def ref(*arrays, **how):
        stack = np.broadcast_shapes(*(x.shape[:-2] for x in arrays))
        arrays = [np.broadcast_to(x, (*stack, *x.shape[-2:])) for x in arrays]
        found = [function(*(x[i] for x in arrays), **how) for i in np.ndindex(stack)]
        every = found or [function(*(np.eye(*x.shape[-2:], dtype=x.dtype) for x in arrays), **how)]
        columns = zip(*every, strict=True) if isinstance(every[0], tuple) else [every]
        out = [np.stack(c)[: len(found)].reshape(*stack, *c[0].shape) for c in columns]
        return tuple(out) if isinstance(every[0], tuple) else out[0]

    return ref


def square_op(vjp=None, *, errors=(), **record):
    """`op` for one array of square matrices, which it adds to the docstring."""

    def declare(forward):
        head, mark, example = forward.__doc__.partition(">>>")
        head += "Args:\n        x: array of shape (..., n, n).\n\n    "
        forward.__doc__ = head + mark + example
        defaults = {"samples": calls(*matrices(*SQUARE)), "kinds": "fc"}
        if vjp is not None:
            defaults["batch"] = "matrices"
        return op(vjp, errors=[NOT_SQUARE, *errors], **defaults | record)(forward)

    return declare


def as_inexact(x):
    """Integers become float64, as in NumPy; some of CuPy's functions refuse integers."""
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


def need_square(name, x):
    """ShapeError unless `x` is a stack of square matrices."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name}: square matrices are needed, the shape is {x.shape}.")


def singular(name, what):
    """The error for a matrix that has no inverse or factor."""
    return SingularMatrixError(
        f"{name}: {what}. Add a small multiple of the identity, or use a decomposition that "
        "allows it."
    )


def identity(xp, x):
    """Identity matrices of the shape of `x`."""
    return xp.diagonal_scatter(xp.diagonal(x, 0, -2, -1) ** 0, offset=0, shape=x.shape)


def part(xp, x, *at):
    """A slice of vectors along their last axis."""
    return xp.getitem(x, index=(Ellipsis, slice(*at)))
