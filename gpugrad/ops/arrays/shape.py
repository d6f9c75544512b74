"""Shape, order of axes, broadcasting and dtype. All of these ops are linear.

A rule moves the gradient back the same way. Forwards may return views of their input: a write to
one gives the Tensors new arrays if a tape, or anything else, holds the old ones.
"""

import contextlib
import functools
import math
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import batch_axis_of
from gpugrad.core.arguments import FLAG
from gpugrad.core.backend import NUMPY, as_dtype
from gpugrad.core.samples import shaped
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from gpugrad.kernels.cpu.large import LARGE, MIDDLE, kernels
from gpugrad.ops._axes import add_reduce, as_tuple
from gpugrad.ops.arrays import moves_in_c
from gpugrad.registry.record import op

NOT_NUMBERS: list[Any] = [(["text"], {}, DTypeError, "number")]
"""The error of an op that accepts every array."""

moves = functools.partial(op, linear=True, native_half=True, kinds="fc", captures=True)
"""Declares an op that moves or copies elements without computing: linear, exact in any float."""


def need_matrices(name, x):
    """ShapeError if `x` has fewer than two axes."""
    if x.ndim < 2:
        raise ShapeError(f"{name}: a matrix (..., m, n) is needed, but the shape is {x.shape}.")


_RESHAPE_BACK = [lambda xp, g, x_shape: xp.reshape(g, x_shape)]


def reshaped_back(xp, x, part, **_):
    """`x` after a write to a view that has all of its elements in their order."""
    return xp.reshape(part, x.shape)


_RAVELED = shaped([(2, 3)], [()], [(0, 2)])


def _reshape_batch(xp, batched, x, *, shape, copy):
    shape = as_tuple(shape)
    if shape.count(-1) == 1:  # the batch axis would hide a mismatch
        known, size = math.prod(n for n in shape if n != -1), math.prod(x.shape[1:])
        rest = size // known if known else 0
        shape = tuple(rest if n == -1 else n for n in shape)
    if math.prod(shape) != math.prod(x.shape[1:]):
        raise ShapeError(f"reshape: an example of shape {x.shape[1:]} does not fill {shape}.")
    return xp.reshape(x, (x.shape[0], *shape), copy=copy)


def _expand_dims_batch(xp, batched, x, *, axis):
    more = len(axis) if isinstance(axis, (tuple, list)) else 1
    return xp.expand_dims(x, axis=batch_axis_of(axis, x.ndim - 1 + more))


@moves(
    vjp=_RESHAPE_BACK,
    batch=_reshape_batch,
    ref=lambda x, shape: np.reshape(x, shape),
    samples=shaped(
        ([(2, 3)], {"shape": (3, 2)}),
        ([(2, 3)], {"shape": (-1,)}),
        ([()], {"shape": (1, 1)}),
        ([(1,)], {"shape": ()}),
        ([(0, 2)], {"shape": (2, 0, 3)}),
        ([(4,)], {"shape": (2, -1)}),
    ),
    errors=[
        ([np.ones(6)], {"shape": (4, 2)}, ShapeError, r"reshape.*\(6,\).*shape=\(4, 2\)"),
        ([np.ones(6)], {"shape": (-1, -1)}, ShapeError, "reshape"),
    ],
    view="reshape",
    writes=reshaped_back,
)
def reshape(xp, x, /, shape, *, copy=None):
    """Give an array another shape; its elements keep their row-major order.

    Args:
        shape: tuple of ints, or one int; one of them may be -1 and is then inferred.
        copy: True returns a copy, not a view; False raises where NumPy would copy.

    Returns:
        Tensor of that shape.

    >>> print(gg.reshape([1.0, 2.0, 3.0, 4.0], (2, -1)))
    [[1. 2.]
     [3. 4.]]
    """
    if copy is not None:
        return xp.lib.reshape(x, shape, copy=copy)
    if xp is NUMPY and x.size >= LARGE and not x.flags.c_contiguous:
        with contextlib.suppress(ValueError):  # it needs a copy, which takes several threads
            return x.reshape(shape, copy=False)
        x = kernels("copies").row_major(x)
    return x.reshape(shape)


@op(kinds="fc", samples=_RAVELED, errors=NOT_NUMBERS, writes=reshaped_back)
def ravel(xp, x, /):
    """Flatten an array to one axis, in row-major order.

    Returns:
        Tensor of shape (x.size,).

    >>> print(gg.ravel([[1.0, 2.0], [3.0, 4.0]]))
    [1. 2. 3. 4.]
    """
    y = xp.reshape(x, (x.size,))
    # of elements that do not lie side by side NumPy's reshape is a view, and its ravel a copy
    flags = getattr(y, "flags", None)  # arrays of vmap, and of a trace, have none
    return y if flags is None or flags.c_contiguous else y.copy()


@op(kinds="fc", ref="numpy.ravel", samples=_RAVELED, errors=NOT_NUMBERS)
def flatten(xp, x, /):
    """Flatten an array to one axis, in row-major order; the same as `ravel`.

    Returns:
        Tensor of shape (x.size,).

    >>> print(gg.flatten([[1.0, 2.0], [3.0, 4.0]]))
    [1. 2. 3. 4.]
    """
    return xp.reshape(x, (x.size,))


@moves(
    vjp=_RESHAPE_BACK,
    batch=_expand_dims_batch,
    ref=lambda x, axis=0: np.expand_dims(x, axis),
    samples=shaped(
        [(3,)],
        ([(2, 3)], {"axis": -1}),
        ([()], {"axis": 0}),
        ([(2, 3)], {"axis": (0, 2)}),
        ([(0, 2)], {"axis": 1}),
    ),
    errors=[([np.ones(3)], {"axis": 3}, AxisError, "expand_dims.*axis 3")],
    view="reshape",
    writes=reshaped_back,
)
def expand_dims(xp, x, /, axis=0):
    """Insert axes of length 1.

    Args:
        axis: positions of the new axes in the result: an int, or a tuple of ints.

    Returns:
        Tensor with the new axes.

    >>> print(gg.expand_dims([1.0, 2.0], axis=-1))
    [[1.]
     [2.]]
    """
    return xp.lib.expand_dims(x, axis=axis)


def _squeeze_batch(xp, batched, x, *, axis):
    if axis is None:
        axis = tuple(k for k in range(x.ndim - 1) if x.shape[k + 1] == 1)
    return xp.squeeze(x, axis=batch_axis_of(axis, x.ndim - 1))


@moves(
    vjp=_RESHAPE_BACK,
    batch=_squeeze_batch,
    samples=shaped(
        ([(1, 3)], {"axis": 0}),
        ([(2, 1, 3, 1)], {"axis": (1, -1)}),
        [(1, 3, 1)],
        [()],
        ([(1, 0)], {"axis": 0}),
    ),
    errors=[
        ([np.ones((1, 3))], {"axis": 1}, ShapeError, r"squeeze.*size.*\(1, 3\)"),
        ([np.ones((1, 3))], {"axis": 2}, AxisError, "squeeze.*axis 2"),
    ],
    view="reshape",
    writes=reshaped_back,
)
def squeeze(xp, x, /, axis=None):
    """Remove axes of length 1.

    Args:
        axis: an int, or a tuple of ints; None for all axes of length 1.

    Returns:
        Tensor without those axes.

    >>> print(gg.squeeze([[1.0, 2.0]], 0))
    [1. 2.]
    """
    return x.squeeze(axis)


def _permute_dims_vjp(xp, g, axes):
    axes = [a % len(axes) for a in axes]
    return xp.permute_dims(g, tuple(sorted(range(len(axes)), key=axes.__getitem__)))


def _permute_dims_batch(xp, batched, x, *, axes):
    return xp.permute_dims(x, (0, *batch_axis_of(tuple(axes), x.ndim - 1)))


@moves(
    vjp=[_permute_dims_vjp],
    batch=_permute_dims_batch,
    samples=shaped(
        ([(2, 3, 4)], {"axes": (2, 0, 1)}),
        ([(2, 3)], {"axes": (-1, 0)}),
        ([()], {"axes": ()}),
        ([(0, 2)], {"axes": (1, 0)}),
    ),
    errors=[
        ([np.ones((2, 3))], {"axes": (0,)}, AxisError, r"permute_dims.*\(2, 3\)"),
        ([np.ones((2, 3))], {"axes": (0, 0)}, AxisError, "permute_dims.*repeated"),
    ],
    view="strides",
    writes=lambda xp, x, part, axes: _permute_dims_vjp(xp, part, axes),
)
def permute_dims(xp, x, /, axes):
    """Permute the axes.

    Args:
        axes: tuple of ints: the axes of `x` in the order of the result.

    Returns:
        Tensor of shape ``[x.shape[a] for a in axes]``.

    >>> print(gg.permute_dims([[1.0, 2.0, 3.0]], (1, 0)))
    [[1.]
     [2.]
     [3.]]
    """
    return x.transpose(axes)


@moves(
    vjp=[lambda xp, g: xp.matrix_transpose(g)],
    batch="stack",
    samples=shaped([(2, 3)], [(2, 3, 2)], [(0, 2)]),
    errors=[([np.ones(3)], {}, ShapeError, r"matrix_transpose.*\(3,\)")],
    view="strides",
    writes=lambda xp, x, part: xp.matrix_transpose(part),
)
def matrix_transpose(xp, x, /):
    """Swap the last two axes.

    Args:
        x: array of shape (..., m, n).

    Returns:
        Tensor of shape (..., n, m).

    >>> print(gg.matrix_transpose([[1.0, 2.0], [3.0, 4.0]]))
    [[1. 3.]
     [2. 4.]]
    """
    need_matrices("matrix_transpose", x)
    return x.swapaxes(-1, -2)


@moves(
    vjp=[lambda xp, g, source, destination: xp.moveaxis(g, destination, source)],
    batch="axis",
    samples=shaped(
        ([(2, 3, 4)], {"source": 0, "destination": -1}),
        ([(2, 3, 4)], {"source": (0, 1), "destination": (-1, 0)}),
        ([(3,)], {"source": 0, "destination": 0}),
        ([(0, 2)], {"source": 0, "destination": 1}),
    ),
    errors=[
        ([np.ones((2, 3))], {"source": 2, "destination": 0}, AxisError, "moveaxis.*axis 2"),
        ([np.ones((2, 3))], {"source": (0, 1), "destination": 0}, ArgumentError, "same number"),
    ],
    view="strides",
    writes=lambda xp, x, part, source, destination: xp.moveaxis(part, destination, source),
)
def moveaxis(xp, x, /, source, destination):
    """Move axes to other positions; the other axes keep their order.

    Args:
        source: axes to move: an int, or a tuple of ints.
        destination: their positions in the result.

    Returns:
        Tensor with the axes in the new order.

    >>> gg.moveaxis(gg.reshape([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], (1, 2, 3)), 0, -1).shape
    (2, 3, 1)
    """
    return xp.lib.moveaxis(x, source, destination)


@moves(
    vjp=[lambda xp, g, axis1, axis2: xp.swapaxes(g, axis1, axis2)],
    batch="axis",
    samples=shaped(
        ([(2, 3, 4)], {"axis1": 0, "axis2": -1}),
        ([(3,)], {"axis1": 0, "axis2": 0}),
        ([(0, 2)], {"axis1": 0, "axis2": 1}),
    ),
    errors=[([np.ones(3)], {"axis1": 0, "axis2": 1}, AxisError, "swapaxes.*axis 1")],
    view="strides",
    writes=lambda xp, x, part, axis1, axis2: xp.swapaxes(part, axis1, axis2),
)
def swapaxes(xp, x, /, axis1, axis2):
    """Swap two axes.

    Args:
        axis1, axis2: ints.

    Returns:
        Tensor with the two axes swapped.

    >>> print(gg.swapaxes([[1.0, 2.0, 3.0]], 0, 1))
    [[1.]
     [2.]
     [3.]]
    """
    return x.swapaxes(axis1, axis2)


def _broadcast_to_batch(xp, batched, x, *, shape):
    shape = as_tuple(shape)
    ones = (1,) * (len(shape) + 1 - x.ndim)
    return xp.broadcast_to(xp.reshape(x, (x.shape[0], *ones, *x.shape[1:])), (x.shape[0], *shape))


@moves(
    vjp=[lambda xp, g, x_shape: xp.sum_to(g, x_shape)],
    batch=_broadcast_to_batch,
    samples=shaped(
        ([(3,)], {"shape": (2, 3)}),
        ([(2, 1)], {"shape": (2, 3)}),
        ([()], {"shape": (2, 2)}),
        ([(1, 2)], {"shape": (0, 2)}),
        ([(2, 3)], {"shape": (2, 3)}),
    ),
    errors=[([np.ones(2)], {"shape": (2, 3)}, ShapeError, r"broadcast_to.*\(2,\).*\(2, 3\)")],
    view="broadcast",
    writes="an element of the view may stand at several places. Write to a copy: x = x.copy()",
)
def broadcast_to(xp, x, /, shape):
    """Broadcast an array to a shape.

    Args:
        shape: tuple of ints, or one int.

    Returns:
        Tensor of that shape.

    >>> print(gg.broadcast_to([1.0, 2.0], (2, 2)))
    [[1. 2.]
     [1. 2.]]
    """
    return xp.lib.broadcast_to(x, shape)


def sum_to_ref(x, shape):
    """`sum_to` by NumPy."""
    ones = (1,) * (x.ndim - len(shape)) + tuple(shape)
    for axis, n in enumerate(ones):
        if n == 1:
            x = x.sum(axis, keepdims=True)
    return x.reshape(shape)


def _sum_to_batch(xp, batched, x, *, shape):
    ones = (1,) * (x.ndim - 1 - len(shape))
    return xp.reshape(xp.sum_to(x, (x.shape[0], *ones, *shape)), (x.shape[0], *shape))


@op(
    vjp=[lambda xp, g, x_shape: xp.broadcast_to(g, x_shape)],
    linear=True,
    batch=_sum_to_batch,
    c_call=moves_in_c.sum_to,
    kinds="fc",
    ref=sum_to_ref,
    samples=shaped(
        ([(2, 3)], {"shape": (3,)}),
        ([(2, 3)], {"shape": (2, 1)}),
        ([(2, 2)], {"shape": ()}),
        ([(0, 2)], {"shape": (1, 2)}),
        ([(2, 3)], {"shape": (2, 3)}),
        ([(2, 3, 2)], {"shape": (1, 2)}),
    ),
    errors=[([np.ones((2, 3))], {"shape": (2,)}, ShapeError, r"sum_to.*\(2,\).*\(2, 3\)")],
    captures=True,
    reduces="sum",
)
def sum_to(xp, x, /, shape):
    """Sum over the axes that broadcasting added or stretched: the adjoint of `broadcast_to`.

    Args:
        x: array whose shape `shape` broadcasts to.
        shape: tuple of ints.

    Returns:
        Tensor of shape `shape`.

    >>> print(gg.sum_to([[1.0, 2.0], [3.0, 4.0]], (2,)))
    [4. 6.]
    """
    lead = x.ndim - len(shape)
    axes = tuple(range(lead))
    if x.shape[lead:] != shape:  # not just leading axes, as for a bias
        if lead < 0 or any(n not in (1, m) for n, m in zip(shape, x.shape[lead:], strict=True)):
            raise ShapeError(f"sum_to: the shape {shape} does not broadcast to {x.shape}.")
        axes += tuple(i for i in range(lead, x.ndim) if shape[i - lead] != x.shape[i])
    return (add_reduce(xp, x, axes, True) if axes else x).reshape(shape)


def _astype_vjp(xp, g, x_dtype):
    return xp.astype(xp.real(g) if g.dtype.kind == "c" and x_dtype.kind != "c" else g, x_dtype)


@op(
    vjp=[_astype_vjp],
    name="astype",
    linear=True,
    native_half=True,
    batch="stack",
    kinds="f",
    ref=lambda x, dtype: x.astype(dtype),
    samples=shaped(
        ([(2, 3)], {"dtype": "float64"}),
        ([()], {"dtype": np.float64}),
        ([(3,)], {"dtype": np.complex128}),
        ([(0, 2)], {"dtype": "complex128"}),
        ([(3,)], {"dtype": "int64"}),
    ),
    errors=[
        ([np.ones(2)], {"dtype": "text"}, DTypeError, "astype: 'text' is not a dtype"),
        ([np.ones(2) + 1j], {"dtype": "float32"}, DTypeError, r"gg.real\(x\)"),
    ],
    by_element=True,
    captures=True,
    cost=0,
)
def _astype(xp, x, /, dtype):
    """The op behind `gg.astype`."""
    try:
        dtype = as_dtype(dtype)
    except DTypeError as error:
        raise DTypeError(f"astype: {error}") from error
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        raise DTypeError(
            f"astype: {x.dtype} cannot be cast to {dtype}. Choose a part with gg.real(x), "
            "gg.imag(x) or gg.abs(x)."
        )
    if xp is NUMPY and dtype.char in "ef" and x.dtype.char in "ef" and x.size >= MIDDLE:
        out = kernels("halves").cast(x, dtype)
        if out is not NotImplemented:
            return out
    return x.astype(dtype, copy=False)


def astype(x, /, dtype, *, copy=True, device=None, order="K") -> Tensor:
    """Cast to another dtype; the gradient is cast back.

    Args:
        x: array of any shape.
        dtype: a dtype, or its name. A cast to integers truncates, and stops gradients.
        copy: False returns a Tensor that has the dtype already itself, as NumPy does.
        device: device of the result; None for that of `x`.
        order: ignored; part of NumPy's method.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: `dtype` is not a dtype, or is real where `x` is complex.
        DeviceError: the device does not exist.

    >>> print(gg.astype([1.5, -2.5], "int64"))
    [ 1 -2]
    """
    out = _astype(x, dtype)
    fresh = copy is True or FLAG("astype", "copy", copy)
    if not fresh and isinstance(x, Tensor) and x.dtype == out.dtype:
        out = tensor(x)
    return out if device is None else out.to_device(device)
