"""Products of matrices and tensors: sums of products over shared axes.

They are linear in each argument, so the gradient by one is another product: of the cotangent
and the conjugate of the other argument.
"""

import functools
import math
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import aligned
from gpugrad.core.backend import NUMPY, SCALARS
from gpugrad.core.samples import shaped
from gpugrad.errors import AxisError, ShapeError
from gpugrad.kernels.cpu import products
from gpugrad.kernels.cpu.large import LARGE, elements, on_threads
from gpugrad.kernels.cpu.products import LEAST_SIZES
from gpugrad.kernels.libraries import cublaslt
from gpugrad.registry.on_arrays import beside_number
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate


def adjoint(xp, x):
    """Conjugate transpose of matrices."""
    return conjugate(xp, xp.matrix_transpose(x))


def captures_products(*arrays, **params):
    """Whether a CUDA graph may hold a product: cuBLASLt's, but not CuPy's own."""
    return cublaslt.binding() is not None


_LENGTHS: tuple[Any, ...] = ([np.ones(2), np.ones(3)], {}, ShapeError, r"\(2,\).*\(3,\)")
PRODUCT: dict[str, Any] = {"native_half": True, "kinds": "fci"}
"""Fields of products."""


def _to_x1(xp, how, g, x1_shape, x2):
    matmul, multiply = how(xp)
    if x2.ndim == 1:
        return multiply(xp.expand_dims(g, axis=-1), conjugate(xp, x2))
    if len(x1_shape) == 1:
        g = xp.expand_dims(g, axis=-2)
    y = matmul(g, adjoint(xp, x2))
    return y if y.shape == x1_shape else xp.sum_to(y, x1_shape)


def _to_x2(xp, how, g, x1, x2_shape):
    matmul, multiply = how(xp)
    if x1.ndim == 1:
        x1 = conjugate(xp, x1)
        if len(x2_shape) == 1:
            return multiply(g, x1)
        return multiply(xp.expand_dims(g, axis=-2), xp.expand_dims(x1, axis=-1))
    if x1.ndim > 2 and len(x2_shape) <= 2:  # sums over the batch inside the one product
        rows = math.prod(x1.shape[:-1])
        x1 = xp.reshape(x1, (rows, x1.shape[-1]))
        g = xp.reshape(g, (rows, *x2_shape[1:]))
    y = matmul(g, adjoint(xp, x1), transposed=True)
    return y if y.shape == x2_shape else xp.sum_to(y, x2_shape)


def multiplied(xp, x1, x2):
    """The product of arrays that broadcast to a larger one, of NumPy arrays on threads."""
    if xp is NUMPY and elements((x1, x2)) >= LARGE:
        return on_threads(np.multiply, x1, x2)
    return xp.multiply(x1, x2)


def _plain(xp):
    """How the rules multiply a cotangent by the other factor."""

    def matmul(g, y, transposed=False):
        return xp.matmul(y, g) if transposed else xp.matmul(g, y)

    return matmul, functools.partial(multiplied, xp)


def _masking(xp):
    """`_plain` with 0 * inf = 0; other products with an infinite or NaN factor are NaN."""

    def matmul(g, y, transposed=False):
        product, _ = _plain(xp)
        finite = xp.isfinite(y)
        some = product(xp.where(g == 0, 0.0, 1.0), xp.where(finite, 0.0, 1.0), transposed)
        y = product(g, xp.where(finite, y, 0), transposed)
        return xp.where(some > 0, math.nan, y)

    return matmul, xp.masked_multiply


def _matmul_rules(how):
    return [
        lambda xp, g, x1_shape, x2: _to_x1(xp, how, g, x1_shape, x2),
        lambda xp, g, x1, x2_shape: _to_x2(xp, how, g, x1, x2_shape),
    ]


def _matmul_batch(xp, batched, x1, x2):
    rank1, rank2 = x1.ndim - batched[0], x2.ndim - batched[1]
    if rank1 == rank2 == 1:
        if all(batched):
            return xp.sum(x1 * x2, axis=-1)
        return xp.matmul(x1, x2) if batched[0] else xp.matmul(x2, x1)
    if rank2 == 1 and rank1 == 2 and not batched[0]:  # one product, not one for each example
        return xp.matmul(x2, xp.matrix_transpose(x1))
    if rank1 == 1:
        x1 = xp.expand_dims(x1, axis=-2)
    if rank2 == 1:
        x2 = xp.expand_dims(x2, axis=-1)
    y = xp.matmul(*aligned(xp, batched, (x1, x2)))
    gone = (*((-2,) if rank1 == 1 else ()), *((-1,) if rank2 == 1 else ()))
    return xp.squeeze(y, axis=gone) if gone else y


@op(
    _matmul_rules(_plain), masked=_matmul_rules(_masking),
    linear="each", batch=_matmul_batch, cuda=cublaslt.matmul, kinds="fci",
    ref=lambda x1, x2: x1 @ x2,
    samples=shaped(
        [(2, 3), (3, 4)], [(3,), (3,)], [(3,), (3, 2)], [(2, 3), (3,)], [(3,), (2, 3, 2)],
        [(2, 2, 3), (3,)], [(2, 2, 3), (2, 3, 2)], [(2, 2, 3), (3, 2)], [(2, 3), (2, 3, 2)],
        [(2, 1, 2, 2), (3, 2, 1)], [(0, 3), (3, 2)], [(2, 0), (0, 3)], [(0, 2, 3), (3, 2)],
    ),
    errors=[
        ([np.ones((2, 3)), np.ones((2, 3))], {}, ShapeError, r"matmul.*\(2, 3\).*\(2, 3\)"),
        ([np.ones((2, 2, 3)), np.ones((4, 2))], {}, ShapeError, r"matmul.*\(2, 2, 3\).*\(4, 2\)"),
        ([np.ones(3), 2.0], {}, ShapeError, "matmul"),
    ],
    captures=captures_products,
mixed="half")  # fmt: skip
def matmul(xp, x1, x2, /):
    """Product of matrices; also of stacks of them, and of vectors.

    Args:
        x1: array of shape (..., m, k), or (k,).
        x2: array of shape (..., k, n), or (k,). Stacks are broadcast against each other.

    Returns:
        Tensor of shape (..., m, n), without the axes that a vector lacks.

    >>> print(gg.matmul([[1.0, 2.0], [3.0, 4.0]], [10.0, 1.0]))
    [12. 34.]
    """
    if x1.size * x2.size >= LEAST_SIZES and xp is NUMPY:  # a launcher for cpu= would take 0.2 us
        result = products.product(x1, x2)
        if result is not NotImplemented:
            return result
    if x1.ndim > 2 and x2.ndim == 2:  # one product of tall matrices, not one for each in the stack
        rows = x1.reshape(math.prod(x1.shape[:-1]), x1.shape[-1])
        return xp.lib.matmul(rows, x2).reshape(*x1.shape[:-1], x2.shape[1])
    return xp.lib.matmul(x1, x2)


def _vecdot_rules(multiply):
    def by_x1(xp, g, x1_shape, x2, axis):
        g = xp.expand_dims(conjugate(xp, g), axis=axis)
        return xp.sum_to(getattr(xp, multiply)(g, x2), x1_shape)

    def by_x2(xp, g, x1, x2_shape, axis):
        g = xp.expand_dims(g, axis=axis)
        return xp.sum_to(getattr(xp, multiply)(g, x1), x2_shape)

    return [by_x1, by_x2]


def _vecdot_batch(xp, batched, x1, x2, *, axis):
    ranks = x1.ndim - batched[0], x2.ndim - batched[1]  # an axis from 0 on is of equal ranks
    rank = max(ranks)
    if not -min(ranks) <= axis < rank:
        raise AxisError(f"vecdot: axis {axis} is out of bounds for examples of {ranks} axes.")
    return xp.vecdot(*aligned(xp, batched, (x1, x2)), axis=axis - rank if axis >= 0 else axis)


@op(
    _vecdot_rules("multiply"),
    masked=_vecdot_rules("masked_multiply"),
    linear="each",
    batch=_vecdot_batch,
    kinds="fci",
    ref=lambda x1, x2, axis=-1: np.sum(np.conj(x1) * x2, axis=axis),
    samples=shaped(
        [(3,), (3,)],
        [(2, 3), (3,)],
        [(2, 1, 3), (4, 3)],
        ([(2, 3), (2, 3)], {"axis": 0}),
        [(0,), (0,)],
        ([(2, 3), (2, 1)], {"axis": -2}),
    ),
    errors=[_LENGTHS, ([np.ones((2, 3)), np.ones(3)], {"axis": 0}, AxisError, "from the end")],
    captures=captures_products,
    mixed="half",
)
def vecdot(xp, x1, x2, /, axis=-1):
    """Sum of conj(x1) * x2 along an axis.

    Args:
        x1, x2: arrays of equal length along the axis, broadcast along the others.
        axis: int; negative, if one array has more axes than the other.

    Returns:
        Tensor of the broadcast shape without that axis.

    >>> print(gg.vecdot([[1.0, 2.0], [3.0, 4.0]], [10.0, 1.0]))
    [12. 34.]
    """
    if axis >= 0 and x1.ndim != x2.ndim:
        raise AxisError(f"vecdot: axis {axis} of {x1.shape} and {x2.shape}: count it from the end.")
    if xp is NUMPY:
        return xp.lib.vecdot(x1, x2, axis=axis)
    x1, x2 = xp.lib.moveaxis(xp.conj(x1), axis, -1), xp.lib.moveaxis(x2, axis, -1)
    return xp.matmul(x1[..., None, :], x2[..., None])[..., 0, 0]


# ---- NumPy's products of matrices and vectors --------------------------------------------


def _is_scalar(x):
    return type(x) in SCALARS or not x.ndim


@op(
    samples=shaped(
        [(3,), (3,)],
        [(2, 3), (3, 2)],
        [(), (3,)],
        [(2, 2, 3), (3,)],
        [(2, 3), (2, 3, 2)],
        [(0,), (0,)],
    ),
    errors=[_LENGTHS],
    **PRODUCT,
    mixed="half",
)
def dot(xp, x1, x2, /):
    """Sum over the last axis of `x1` and the second-to-last (or only) axis of `x2`, as numpy.dot.

    Args:
        x1, x2: arrays of any shape; a number or 0-d array just multiplies.

    Returns:
        Tensor with the other axes of `x1`, then those of `x2`.

    >>> print(gg.dot([1.0, 2.0], [10.0, 1.0]))
    12.0
    """
    if _is_scalar(x1) or _is_scalar(x2):
        return beside_number(xp.multiply, x1, x2)
    if x2.ndim == 1 or max(x1.ndim, x2.ndim) == 2:
        return xp.matmul(x1, x2)
    return xp.tensordot(x1, x2, axes=((-1,), (-2,)))


@op(
    samples=shaped([(3,), (3,)], [(2, 3), (3,)], [(2, 3), (4, 3)], [(), (3,)], [(0,), (0,)]),
    errors=[_LENGTHS],
    **PRODUCT,
    mixed="half",
)
def inner(xp, x1, x2, /):
    """Sum of products over the last axes of both, with no conjugate.

    Args:
        x1, x2: arrays of equal length along the last axis; a number or 0-d array multiplies.

    Returns:
        Tensor with the other axes of `x1`, then those of `x2`.

    >>> print(gg.inner([1.0, 2.0], [10.0, 1.0]))
    12.0
    """
    if _is_scalar(x1) or _is_scalar(x2):
        return beside_number(xp.multiply, x1, x2)
    return xp.matmul(x1, x2) if x2.ndim == 1 else xp.tensordot(x1, x2, axes=((-1,), (-1,)))


@op(
    samples=shaped([(3,), (3,)], [(2, 2), (2, 2)], [(), ()], [(0,), (0,)]),
    errors=[_LENGTHS, ([np.ones(2), 2.0], {}, ShapeError, "vdot: a number and")],
    **PRODUCT,
    mixed="half",
)
def vdot(xp, x1, x2, /):
    """Sum of conj(x1) * x2 over all elements.

    Args:
        x1, x2: arrays with the same number of elements, which are flattened.

    Returns:
        0-d Tensor.

    >>> print(gg.vdot([1.0, 2.0], [10.0, 1.0]))
    12.0
    """
    if type(x1) in SCALARS or type(x2) in SCALARS:
        if getattr(x1, "size", 1) != 1 or getattr(x2, "size", 1) != 1:
            raise ShapeError("vdot: a number and an array of several elements. See gg.multiply.")
        x1 = x1.conjugate() if type(x1) in SCALARS else conjugate(xp, x1)
        return xp.reshape(xp.multiply(x1, x2), ())
    x1, x2 = xp.reshape(x1, (x1.size,)), xp.reshape(x2, (x2.size,))
    return xp.matmul(conjugate(xp, x1), x2)


def _need(name, x1, x2, n1, n2):
    """ShapeError if the arguments do not have `n1` and `n2` axes at least."""
    shapes = [() if type(x) in SCALARS else x.shape for x in (x1, x2)]
    if len(shapes[0]) < n1 or len(shapes[1]) < n2:
        raise ShapeError(
            f"{name}: at least {n1} and {n2} axes are needed; the shapes are {shapes[0]} and "
            f"{shapes[1]}."
        )


@op(
    samples=shaped(
        [(2, 3), (3,)], [(2, 2, 3), (3,)], [(2, 3), (4, 3)], [(0, 3), (3,)], [(2, 0), (0,)]
    ),
    errors=[
        ([np.ones((2, 3)), np.ones(2)], {}, ShapeError, r"\(2, 3\).*\(2,"),
        ([np.ones(3), np.ones(3)], {}, ShapeError, r"matvec.*\(3,\)"),
    ],
    **PRODUCT,
    mixed="half",
)
def matvec(xp, x1, x2, /):
    """Products of matrices and vectors; stacks of both are broadcast against each other.

    Args:
        x1: array of shape (..., m, n).
        x2: array of shape (..., n).

    Returns:
        Tensor of shape (..., m).

    >>> print(gg.matvec([[1.0, 2.0], [3.0, 4.0]], [10.0, 1.0]))
    [12. 34.]
    """
    _need("matvec", x1, x2, 2, 1)
    return xp.squeeze(xp.matmul(x1, xp.expand_dims(x2, axis=-1)), -1)


@op(
    samples=shaped([(3,), (3, 2)], [(2, 3), (3, 2)], [(3,), (2, 3, 2)], [(0,), (0, 2)]),
    errors=[
        ([np.ones(2), np.ones((3, 2))], {}, ShapeError, r"\(2,\).*\(3, 2\)"),
        ([np.ones(3), np.ones(3)], {}, ShapeError, r"vecmat.*\(3,\)"),
    ],
    **PRODUCT,
    mixed="half",
)
def vecmat(xp, x1, x2, /):
    """Products of (conjugate) vectors and matrices; stacks are broadcast against each other.

    Args:
        x1: array of shape (..., n); complex ones are conjugated.
        x2: array of shape (..., n, m).

    Returns:
        Tensor of shape (..., m).

    >>> print(gg.vecmat([10.0, 1.0], [[1.0, 2.0], [3.0, 4.0]]))
    [13. 24.]
    """
    _need("vecmat", x1, x2, 1, 2)
    return xp.squeeze(xp.matmul(xp.expand_dims(conjugate(xp, x1), axis=-2), x2), -2)
