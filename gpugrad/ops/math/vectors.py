"""NumPy's products of vectors, beside `matmul`, `vecdot` and `dot`."""

from __future__ import annotations

import numpy as np

from gpugrad.core.backend import SCALARS
from gpugrad.core.samples import shaped
from gpugrad.errors import ShapeError
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate


@op(
    keeps_half=True, kinds="fci",
    samples=shaped(
        ([(2, 3), (3,)], {}), ([(2, 2, 3), (3,)], {}), ([(2, 3), (4, 3)], {}),
        ([(0, 3), (3,)], {}), ([(2, 0), (0,)], {}),
    ),
    errors=[
        ([np.ones((2, 3)), np.ones(2)], {}, ShapeError, r"\(2, 3\).*\(2,"),
        ([np.ones(3), np.ones(3)], {}, ShapeError, r"matvec.*\(3,\)"),
    ],
)  # fmt: skip
def matvec(xp, x1, x2, /):
    """Products of matrices and vectors; stacks of both are broadcast against each other.

    Args:
        x1: array of shape (..., m, n).
        x2: array of shape (..., n).

    Returns:
        Tensor of shape (..., m).

    Raises:
        ShapeError: the lengths n differ, or the stacks do not go together.

    >>> print(gg.matvec([[1.0, 2.0], [3.0, 4.0]], [10.0, 1.0]))
    [12. 34.]
    """
    _need("matvec", x1, x2, 2, 1)
    return xp.squeeze(xp.matmul(x1, xp.expand_dims(x2, axis=-1)), -1)


@op(
    keeps_half=True, kinds="fci",
    samples=shaped(
        ([(3,), (3, 2)], {}), ([(2, 3), (3, 2)], {}), ([(3,), (2, 3, 2)], {}),
        ([(0,), (0, 2)], {}),
    ),
    errors=[
        ([np.ones(2), np.ones((3, 2))], {}, ShapeError, r"\(2,\).*\(3, 2\)"),
        ([np.ones(3), np.ones(3)], {}, ShapeError, r"vecmat.*\(3,\)"),
    ],
)  # fmt: skip
def vecmat(xp, x1, x2, /):
    """Products of (conjugate) vectors and matrices; stacks are broadcast against each other.

    Args:
        x1: array of shape (..., n); complex ones are conjugated.
        x2: array of shape (..., n, m).

    Returns:
        Tensor of shape (..., m).

    Raises:
        ShapeError: the lengths n differ, or the stacks do not go together.

    >>> print(gg.vecmat([10.0, 1.0], [[1.0, 2.0], [3.0, 4.0]]))
    [13. 24.]
    """
    _need("vecmat", x1, x2, 1, 2)
    return xp.squeeze(xp.matmul(xp.expand_dims(conjugate(xp, x1), axis=-2), x2), -2)


def _need(name, x1, x2, n1, n2):
    """ShapeError if the arguments do not have `n1` and `n2` axes at least."""
    shapes = [() if type(x) in SCALARS else x.shape for x in (x1, x2)]
    if len(shapes[0]) < n1 or len(shapes[1]) < n2:
        raise ShapeError(
            f"{name}: {n1} and {n2} axes are needed at least; the shapes are {shapes[0]} and "
            f"{shapes[1]}."
        )


@op(
    keeps_half=True, kinds="fci",
    samples=shaped(
        ([(3,), (3,)], {}), ([(2, 3), (3,)], {}), ([(2, 3), (4, 3)], {}), ([(), (3,)], {}),
        ([(0,), (0,)], {}),
    ),
    errors=[([np.ones(2), np.ones(3)], {}, ShapeError, r"\(2,\).*\(3,\)")],
)  # fmt: skip
def inner(xp, x1, x2, /):
    """Sum of products over the last axes of both, with no conjugate.

    Args:
        x1, x2: arrays of equal length along the last axis; a number or 0-d array multiplies.

    Returns:
        Tensor with the other axes of `x1`, then those of `x2`.

    Raises:
        ShapeError: the lengths differ.

    >>> print(gg.inner([1.0, 2.0], [10.0, 1.0]))
    12.0
    """
    if type(x1) in SCALARS or type(x2) in SCALARS or 0 in (x1.ndim, x2.ndim):
        return xp.multiply(x1, x2)
    if x2.ndim == 1:
        return xp.matmul(x1, x2)
    return xp.tensordot(x1, x2, axes=((-1,), (-1,)))


@op(
    keeps_half=True, kinds="fci",
    samples=shaped(([(3,), (3,)], {}), ([(2, 2), (2, 2)], {}), ([(), ()], {}), ([(0,), (0,)], {})),
    errors=[
        ([np.ones(2), np.ones(3)], {}, ShapeError, r"\(2,\).*\(3,\)"),
        ([np.ones(2), 2.0], {}, ShapeError, "vdot: a number beside"),
    ],
)  # fmt: skip
def vdot(xp, x1, x2, /):
    """Sum of conj(x1) * x2 over all elements.

    Args:
        x1, x2: arrays of as many elements; those of several axes are flattened.

    Returns:
        0-d Tensor.

    Raises:
        ShapeError: there are not as many elements.

    >>> print(gg.vdot([1.0, 2.0], [10.0, 1.0]))
    12.0
    """
    if type(x1) in SCALARS or type(x2) in SCALARS:
        if getattr(x1, "size", 1) != 1 or getattr(x2, "size", 1) != 1:
            raise ShapeError("vdot: a number beside an array of several elements. See gg.multiply.")
        x1 = x1.conjugate() if type(x1) in SCALARS else conjugate(xp, x1)
        return xp.reshape(xp.multiply(x1, x2), ())
    x1, x2 = xp.reshape(x1, (x1.size,)), xp.reshape(x2, (x2.size,))
    return xp.matmul(conjugate(xp, x1), x2)
