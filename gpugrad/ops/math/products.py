"""Products of matrices and tensors: sums of products over shared axes.

They are linear in each argument, so the gradient by one is another product: of the cotangent
and the conjugate of the other argument.
"""

import math
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import aligned
from gpugrad.core.backend import NUMPY, SCALARS
from gpugrad.core.samples import shaped
from gpugrad.errors import AxisError, DTypeError, ShapeError
from gpugrad.kernels.cpu import products
from gpugrad.kernels.cpu.products import LEAST_SIZES
from gpugrad.kernels.libraries import cublaslt
from gpugrad.ops._axes import arrays_of
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
_PRODUCT: dict[str, Any] = {"native_half": True, "kinds": "fci"}


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


def _plain(xp):
    """How the rules multiply a cotangent by the other factor."""

    def matmul(g, y, transposed=False):
        return xp.matmul(y, g) if transposed else xp.matmul(g, y)

    return matmul, xp.multiply


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
    **_PRODUCT,
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
    **_PRODUCT,
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
    **_PRODUCT,
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
    **_PRODUCT,
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
    **_PRODUCT,
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


# ---- tensors -----------------------------------------------------------------------------


def _contracted(x1, x2, axes):
    """The axes of each array to sum over, counted from 0."""
    if isinstance(axes, (int, np.integer)):
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise AxisError(f"tensordot: {x1.shape} and {x2.shape} do not both have {axes} axes.")
        return list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    pair = [[a] if isinstance(a, (int, np.integer)) else list(a) for a in axes]
    summed = []
    for x, named in zip((x1, x2), pair, strict=True):
        if any(not -x.ndim <= a < x.ndim for a in named):
            raise AxisError(f"tensordot: the shape {x.shape} does not have all the axes {named}.")
        summed.append([a % x.ndim for a in named])
    return summed


@op(
    samples=shaped(
        [(2, 3, 4), (3, 4, 2)], ([(2, 3), (3, 2)], {"axes": 1}), ([(2,), (3,)], {"axes": 0}),
        ([(2, 3, 2), (2, 3)], {"axes": ((1, 0), (1, 0))}), ([(0, 2), (2, 3)], {"axes": 1}),
        ([(3,), (2, 3)], {"axes": ((-1,), (1,))}), ([(2, 0), (0, 3)], {"axes": 1}),
    ),
    errors=[
        ([np.ones((2, 3)), np.ones((2, 3))], {"axes": 1}, ShapeError, r"tensordot.*\(2, 3\)"),
        ([np.ones(2), np.ones(2)], {"axes": 2}, AxisError, "tensordot.*2 axes"),
        ([np.ones(2), np.ones(2)], {"axes": ((1,), (0,))}, AxisError, r"tensordot.*\[1\]"),
    ],
    **_PRODUCT,
mixed="half")  # fmt: skip
def tensordot(xp, x1, x2, /, axes=2):
    """Sum of products over axes of two arrays.

    Args:
        x1, x2: arrays.
        axes: n for the last n axes of `x1` and the first n of `x2`; or a pair of sequences:
            the axes of each, in matching order.

    Returns:
        Tensor with the other axes of `x1`, then those of `x2`.

    >>> print(gg.tensordot([[1.0, 2.0], [3.0, 4.0]], [10.0, 1.0], axes=1))
    [12. 34.]
    """
    x1, x2 = arrays_of(xp, x1, x2)
    summed1, summed2 = _contracted(x1, x2, axes)
    lengths = [x1.shape[a] for a in summed1]
    if lengths != [x2.shape[a] for a in summed2]:
        raise ShapeError(
            f"tensordot: axes {summed1} of {x1.shape} and axes {summed2} of {x2.shape} are summed "
            "together, so their lengths must be equal."
        )
    free1 = [a for a in range(x1.ndim) if a not in summed1]
    free2 = [a for a in range(x2.ndim) if a not in summed2]
    shape1, shape2 = [x1.shape[a] for a in free1], [x2.shape[a] for a in free2]
    k = math.prod(lengths)
    y1 = xp.reshape(xp.permute_dims(x1, (*free1, *summed1)), (math.prod(shape1), k))
    y2 = xp.reshape(xp.permute_dims(x2, (*summed2, *free2)), (k, math.prod(shape2)))
    return xp.reshape(xp.matmul(y1, y2), (*shape1, *shape2))


@op(
    kinds="fci",
    samples=shaped([(2,), (3,)], [(0,), (3,)], [(2, 2), (2,)], [(), (3,)]),
    errors=[([np.ones(2), "text"], {}, DTypeError, "number")],
)
def outer(xp, x1, x2, /):
    """Products of each element of `x1` with each of `x2`.

    Args:
        x1, x2: arrays of m and n elements, which are flattened, or numbers.

    Returns:
        Tensor of shape (m, n).

    >>> print(gg.outer([1.0, 2.0], [10.0, 1.0]))
    [[10.  1.]
     [20.  2.]]
    """
    x1, x2 = arrays_of(xp, x1, x2)
    return xp.reshape(x1, (x1.size, 1)) * xp.reshape(x2, (1, x2.size))


@op(
    kinds="fci",
    samples=shaped([(2, 2), (1, 3)], [(2,), (3,)], [(3,), (2, 2)], [(), (2,)], [(0, 2), (1, 2)]),
    errors=[([np.ones(2), "text"], {}, DTypeError, "number")],
)
def kron(xp, x1, x2, /):
    """Kronecker product: `x2` times each element of `x1`, as blocks.

    Args:
        x1, x2: arrays or numbers; the shape with fewer axes is padded with ones in front.

    Returns:
        Tensor whose lengths are the products of theirs.

    >>> print(gg.kron([1.0, 2.0], [10.0, 1.0]))
    [10.  1. 20.  2.]
    """
    x1, x2 = arrays_of(xp, x1, x2)
    n = max(x1.ndim, x2.ndim)
    shape1 = (1,) * (n - x1.ndim) + x1.shape
    shape2 = (1,) * (n - x2.ndim) + x2.shape
    y1 = xp.reshape(x1, tuple(m for a in shape1 for m in (a, 1)))
    y2 = xp.reshape(x2, tuple(m for b in shape2 for m in (1, b)))
    return xp.reshape(y1 * y2, tuple(a * b for a, b in zip(shape1, shape2, strict=True)))


@op(
    kinds="fci",
    ref="numpy.linalg.cross",
    samples=shaped([(3,), (3,)], [(2, 3), (3,)], ([(3, 2), (3, 1)], {"axis": 0}), [(0, 3), (3,)]),
    errors=[
        ([np.ones(2), np.ones(2)], {}, ShapeError, r"cross.*length 3.*\(2,\)"),
        ([np.ones(3), np.ones(3)], {"axis": 1}, AxisError, "cross.*axis 1"),
    ],
)
def cross(xp, x1, x2, /, axis=-1):
    """Cross product of vectors in space.

    Args:
        x1, x2: arrays of length 3 along the axis, broadcast along the others.
        axis: int; negative, if one array has more axes than the other.

    Returns:
        Tensor of the broadcast shape.

    >>> print(gg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]))
    [0. 0. 1.]
    """
    x1, x2 = arrays_of(xp, x1, x2)
    for x in (x1, x2):
        if not -x.ndim <= axis < x.ndim:
            raise AxisError(f"cross: the shape {x.shape} has no axis {axis}.")
        if x.shape[axis] != 3:
            raise ShapeError(f"cross: axis {axis} must have length 3, the shape is {x.shape}.")
    next1, next2 = xp.roll(x1, -1, axis=axis), xp.roll(x2, -1, axis=axis)
    return xp.roll(x1 * next2 - next1 * x2, -1, axis=axis)  # place i now holds element i + 2


@op(
    kinds="fci",
    ref=np.trace,
    samples=shaped(
        [(3, 3)],
        ([(2, 3)], {"offset": 1}),
        ([(2, 3, 2)], {"offset": -1}),
        [(0, 0)],
        ([(2, 3, 2)], {"axis1": -2, "axis2": -1}),
    ),
    errors=[([np.ones(3)], {}, ShapeError, r"\(3,\)")],
    mixed="float32",
)
def trace(xp, x, /, offset=0, axis1=0, axis2=1):
    """Sum of the elements on a diagonal of matrices.

    Args:
        x: array of two or more axes.
        axis1, axis2: the axes of the rows and of the columns, as for `diagonal`.

    Returns:
        Tensor of the shape without the two axes.

    >>> print(gg.trace([[1.0, 2.0], [3.0, 4.0]]))
    5.0
    """
    return xp.sum(xp.diagonal(x, offset, axis1, axis2), axis=-1)
