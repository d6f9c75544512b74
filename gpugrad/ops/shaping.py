"""Shape and layout: ops that move elements, copy them, or leave some out. All are linear.

A rule moves the gradient back the same way. Forwards may return views of their input: Tensors
are immutable, so nobody can tell.
"""

from __future__ import annotations

import math

import numpy as np

from gpugrad.backend import TENSOR, as_dtype
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from gpugrad.op import op
from gpugrad.samples import calls, shaped, uniform
from gpugrad.tensor import tensor


def _axis(axis, ndim):
    """`axis` counted from 0; of a wrong one the array library has complained before."""
    return axis + ndim if axis < 0 else axis


def _matrices(name, x):
    if x.ndim < 2:
        raise ShapeError(f"{name}: matrices (..., m, n) are needed, the shape is {x.shape}.")


# ---- the same elements in another shape --------------------------------------------------


@op(
    vjp=[lambda xp, g, x_shape: xp.reshape(g, x_shape)],
    linear=True, keeps_half=True, kinds="fc", ref=lambda x, shape: np.reshape(x, shape),
    samples=shaped(
        ([(2, 3)], {"shape": (3, 2)}), ([(2, 3)], {"shape": (-1,)}), ([()], {"shape": (1, 1)}),
        ([(1,)], {"shape": ()}), ([(0, 2)], {"shape": (2, 0, 3)}), ([(4,)], {"shape": (2, -1)}),
    ),
    errors=[
        ([np.ones(6)], {"shape": (4, 2)}, ShapeError, r"reshape.*\(6,\).*shape=\(4, 2\)"),
        ([np.ones(6)], {"shape": (-1, -1)}, ShapeError, "reshape"),
    ],
)  # fmt: skip
def reshape(xp, x, /, shape, *, copy=None):
    """Return the elements of `x`, in row-major order, in another shape.

    Args:
        x: array, of any shape.
        shape: tuple of ints, or one int; one of them may be -1: as long as it must be.
        copy: False forbids a copy, True asks for one; tensors are immutable, so that only
            memory differs.

    Returns:
        Tensor of that shape.

    Raises:
        ShapeError: the elements do not fill the shape.

    >>> import gpugrad as gg
    >>> print(gg.reshape([1.0, 2.0, 3.0, 4.0], (2, -1)))
    [[1. 2.]
     [3. 4.]]
    """
    return x.reshape(shape) if copy is None else xp.lib.reshape(x, shape, copy=copy)


@op(
    kinds="fc", ref="numpy.ravel", samples=shaped(([(2, 3)], {}), ([()], {}), ([(0, 2)], {})),
    errors=[(["text"], {}, DTypeError, "number")],
)  # fmt: skip
def ravel(xp, x, /):
    """Return the elements of `x`, in row-major order, along one axis.

    Args:
        x: array, of any shape.

    Returns:
        Tensor of shape (x.size,).

    >>> import gpugrad as gg
    >>> print(gg.ravel([[1.0, 2.0], [3.0, 4.0]]))
    [1. 2. 3. 4.]
    """
    return xp.reshape(x, (x.size,))


@op(
    kinds="fc", ref="numpy.ravel", samples=shaped(([(2, 3)], {}), ([()], {}), ([(0, 2)], {})),
    errors=[(["text"], {}, DTypeError, "number")],
)  # fmt: skip
def flatten(xp, x, /):
    """Return the elements of `x`, in row-major order, along one axis; the same as `ravel`.

    Args:
        x: array, of any shape.

    Returns:
        Tensor of shape (x.size,).

    >>> import gpugrad as gg
    >>> print(gg.flatten([[1.0, 2.0], [3.0, 4.0]]))
    [1. 2. 3. 4.]
    """
    return xp.reshape(x, (x.size,))


@op(
    vjp=[lambda xp, g, x_shape: xp.reshape(g, x_shape)],
    linear=True, keeps_half=True, kinds="fc", ref=lambda x, axis=0: np.expand_dims(x, axis),
    samples=shaped(
        ([(3,)], {}), ([(2, 3)], {"axis": -1}), ([()], {"axis": 0}), ([(2, 3)], {"axis": (0, 2)}),
        ([(0, 2)], {"axis": 1}),
    ),
    errors=[([np.ones(3)], {"axis": 3}, AxisError, "expand_dims.*axis 3")],
)  # fmt: skip
def expand_dims(xp, x, /, *, axis=0):
    """Insert axes of length 1.

    Args:
        x: array, of any shape.
        axis: where they are in the result: an int, or a tuple of them.

    Returns:
        Tensor with that many more axes.

    Raises:
        AxisError: a position that the result does not have.

    >>> import gpugrad as gg
    >>> print(gg.expand_dims([1.0, 2.0], axis=-1))
    [[1.]
     [2.]]
    """
    return xp.lib.expand_dims(x, axis=axis)


@op(
    vjp=[lambda xp, g, x_shape: xp.reshape(g, x_shape)],
    linear=True, keeps_half=True, kinds="fc", ref="numpy.squeeze",
    samples=shaped(
        ([(1, 3)], {"axis": 0}), ([(2, 1, 3, 1)], {"axis": (1, -1)}), ([(1, 3, 1)], {}),
        ([()], {}), ([(1, 0)], {"axis": 0}),
    ),
    errors=[
        ([np.ones((1, 3))], {"axis": 1}, ShapeError, r"squeeze.*size.*\(1, 3\)"),
        ([np.ones((1, 3))], {"axis": 2}, AxisError, "squeeze.*axis 2"),
    ],
)  # fmt: skip
def squeeze(xp, x, /, axis=None):
    """Remove axes of length 1.

    Args:
        x: array, of any shape.
        axis: which: an int, or a tuple of them; None for all of length 1.

    Returns:
        Tensor with that many fewer axes.

    Raises:
        ShapeError: the length of an axis is not 1.
        AxisError: an axis that `x` does not have.

    >>> import gpugrad as gg
    >>> print(gg.squeeze([[1.0, 2.0]], 0))
    [1. 2.]
    """
    return x.squeeze(axis)


# ---- the axes in another order -----------------------------------------------------------


def _permute_dims_vjp(xp, g, axes):
    axes = [_axis(a, len(axes)) for a in axes]
    return xp.permute_dims(g, tuple(sorted(range(len(axes)), key=axes.__getitem__)))


@op(
    vjp=[_permute_dims_vjp], linear=True, keeps_half=True, kinds="fc", ref="numpy.permute_dims",
    samples=shaped(
        ([(2, 3, 4)], {"axes": (2, 0, 1)}), ([(2, 3)], {"axes": (-1, 0)}), ([()], {"axes": ()}),
        ([(0, 2)], {"axes": (1, 0)}),
    ),
    errors=[
        ([np.ones((2, 3))], {"axes": (0,)}, AxisError, r"permute_dims.*\(2, 3\)"),
        ([np.ones((2, 3))], {"axes": (0, 0)}, AxisError, "permute_dims.*repeated"),
    ],
)  # fmt: skip
def permute_dims(xp, x, /, axes):
    """Put the axes in another order.

    Args:
        x: array, of any shape.
        axes: tuple of ints: the axis of `x` that becomes axis 0, 1, ... of the result.

    Returns:
        Tensor of shape ``[x.shape[a] for a in axes]``.

    Raises:
        AxisError: not every axis of `x` is named once.

    >>> import gpugrad as gg
    >>> print(gg.permute_dims([[1.0, 2.0, 3.0]], (1, 0)))
    [[1.]
     [2.]
     [3.]]
    """
    return x.transpose(axes)


@op(
    vjp=[lambda xp, g: xp.matrix_transpose(g)],
    linear=True, keeps_half=True, kinds="fc", ref="numpy.matrix_transpose",
    samples=shaped(([(2, 3)], {}), ([(2, 3, 2)], {}), ([(0, 2)], {})),
    errors=[([np.ones(3)], {}, ShapeError, r"matrix_transpose.*\(3,\)")],
)  # fmt: skip
def matrix_transpose(xp, x, /):
    """Exchange the last two axes.

    Args:
        x: array of shape (..., m, n).

    Returns:
        Tensor of shape (..., n, m).

    Raises:
        ShapeError: there are fewer than two axes.

    >>> import gpugrad as gg
    >>> print(gg.matrix_transpose([[1.0, 2.0], [3.0, 4.0]]))
    [[1. 3.]
     [2. 4.]]
    """
    _matrices("matrix_transpose", x)
    return x.swapaxes(-1, -2)


@op(
    vjp=[lambda xp, g, source, destination: xp.moveaxis(g, destination, source)],
    linear=True, keeps_half=True, kinds="fc", ref="numpy.moveaxis",
    samples=shaped(
        ([(2, 3, 4)], {"source": 0, "destination": -1}),
        ([(2, 3, 4)], {"source": (0, 1), "destination": (-1, 0)}),
        ([(3,)], {"source": 0, "destination": 0}), ([(0, 2)], {"source": 0, "destination": 1}),
    ),
    errors=[
        ([np.ones((2, 3))], {"source": 2, "destination": 0}, AxisError, "moveaxis.*axis 2"),
        ([np.ones((2, 3))], {"source": (0, 1), "destination": 0}, ArgumentError, "same number"),
    ],
)  # fmt: skip
def moveaxis(xp, x, /, source, destination):
    """Move axes to other positions; the rest keep their order.

    Args:
        x: array, of any shape.
        source: which: an int, or a tuple of them.
        destination: their positions in the result.

    Returns:
        Tensor with the same axes, in another order.

    Raises:
        AxisError: an axis that `x` does not have, or one named twice.
        ArgumentError: `source` and `destination` are not as many.

    >>> import gpugrad as gg
    >>> gg.moveaxis(gg.reshape([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], (1, 2, 3)), 0, -1).shape
    (2, 3, 1)
    """
    return xp.lib.moveaxis(x, source, destination)


@op(
    vjp=[lambda xp, g, axis1, axis2: xp.swapaxes(g, axis1, axis2)],
    linear=True, keeps_half=True, kinds="fc", ref="numpy.swapaxes",
    samples=shaped(
        ([(2, 3, 4)], {"axis1": 0, "axis2": -1}), ([(3,)], {"axis1": 0, "axis2": 0}),
        ([(0, 2)], {"axis1": 0, "axis2": 1}),
    ),
    errors=[([np.ones(3)], {"axis1": 0, "axis2": 1}, AxisError, "swapaxes.*axis 1")],
)  # fmt: skip
def swapaxes(xp, x, /, axis1, axis2):
    """Exchange two axes.

    Args:
        x: array, of any shape.
        axis1, axis2: which.

    Returns:
        Tensor with the two axes exchanged.

    Raises:
        AxisError: an axis that `x` does not have.

    >>> import gpugrad as gg
    >>> print(gg.swapaxes([[1.0, 2.0, 3.0]], 0, 1))
    [[1.]
     [2.]
     [3.]]
    """
    return x.swapaxes(axis1, axis2)


# ---- broadcasting ------------------------------------------------------------------------


@op(
    vjp=[lambda xp, g, x_shape: xp.sum_to(g, x_shape)],
    linear=True, keeps_half=True, kinds="fc", ref="numpy.broadcast_to",
    samples=shaped(
        ([(3,)], {"shape": (2, 3)}), ([(2, 1)], {"shape": (2, 3)}), ([()], {"shape": (2, 2)}),
        ([(1, 2)], {"shape": (0, 2)}), ([(2, 3)], {"shape": (2, 3)}),
    ),
    errors=[([np.ones(2)], {"shape": (2, 3)}, ShapeError, r"broadcast_to.*\(2,\).*\(2, 3\)")],
)  # fmt: skip
def broadcast_to(xp, x, /, shape):
    """Repeat axes of length 1, and the whole along new axes in front, to fill a shape.

    Args:
        x: array, of any shape.
        shape: tuple of ints, or one int.

    Returns:
        Tensor of that shape.

    Raises:
        ShapeError: `x` does not stretch to the shape.

    >>> import gpugrad as gg
    >>> print(gg.broadcast_to([1.0, 2.0], (2, 2)))
    [[1. 2.]
     [1. 2.]]
    """
    return xp.lib.broadcast_to(x, shape)


def _sum_to_reference(x, shape):
    ones = (1,) * (x.ndim - len(shape)) + tuple(shape)
    for axis, n in enumerate(ones):
        if n == 1:
            x = x.sum(axis, keepdims=True)
    return x.reshape(shape)


@op(
    vjp=[lambda xp, g, x_shape: xp.broadcast_to(g, x_shape)],
    linear=True, kinds="fc", ref=_sum_to_reference,
    samples=shaped(
        ([(2, 3)], {"shape": (3,)}), ([(2, 3)], {"shape": (2, 1)}), ([(2, 2)], {"shape": ()}),
        ([(0, 2)], {"shape": (1, 2)}), ([(2, 3)], {"shape": (2, 3)}),
        ([(2, 3, 2)], {"shape": (1, 2)}),
    ),
    errors=[([np.ones((2, 3))], {"shape": (2,)}, ShapeError, r"sum_to.*\(2,\).*\(2, 3\)")],
)  # fmt: skip
def sum_to(xp, x, /, shape):
    """Sum along the axes along which an array of that shape was broadcast to that of `x`.

    The adjoint of `broadcast_to`.

    Args:
        x: array, of a shape that `shape` broadcasts to.
        shape: tuple of ints.

    Returns:
        Tensor of shape `shape`.

    Raises:
        ShapeError: `shape` does not broadcast to the shape of `x`.

    >>> import gpugrad as gg
    >>> print(gg.sum_to([[1.0, 2.0], [3.0, 4.0]], (2,)))
    [4. 6.]
    """
    lead = x.ndim - len(shape)
    axes = tuple(range(lead))
    if x.shape[lead:] != shape:  # not only axes in front, as for a bias
        if lead < 0 or any(n not in (1, m) for n, m in zip(shape, x.shape[lead:], strict=True)):
            raise ShapeError(f"sum_to: the shape {shape} does not broadcast to {x.shape}.")
        axes += tuple(i for i in range(lead, x.ndim) if shape[i - lead] != x.shape[i])
    return (xp.add_reduce(x, axis=axes, keepdims=True) if axes else x).reshape(shape)


# ---- dtype -------------------------------------------------------------------------------


def _astype_vjp(xp, g, x_dtype):
    return xp.astype(xp.real(g) if g.dtype.kind == "c" and x_dtype.kind != "c" else g, x_dtype)


@op(
    vjp=[_astype_vjp], linear=True, keeps_half=True, kinds="f",
    ref=lambda x, dtype: x.astype(dtype),
    samples=shaped(
        ([(2, 3)], {"dtype": "float64"}), ([()], {"dtype": np.float64}),
        ([(3,)], {"dtype": np.complex128}), ([(0, 2)], {"dtype": "complex128"}),
        ([(3,)], {"dtype": "int64"}),
    ),
    errors=[
        ([np.ones(2)], {"dtype": "text"}, DTypeError, "astype: 'text' is not a dtype"),
        ([np.ones(2) + 1j], {"dtype": "float32"}, DTypeError, r"gg.real\(x\)"),
    ],
)  # fmt: skip
def astype(xp, x, /, dtype, *, copy=True):
    """Convert the elements to another dtype; the gradient is converted back.

    Args:
        x: array, of any shape.
        dtype: a dtype, or its name. Floats lose their fraction on the way to integers, and
            gradients stop there.
        copy: accepted for the array API's sake; tensors are immutable, so it changes nothing.

    Returns:
        Tensor of that dtype, of the shape of `x`.

    Raises:
        DTypeError: no dtype of that name, or a real one for complex numbers.

    >>> import gpugrad as gg
    >>> print(gg.astype([1.5, -2.5], "int64"))
    [ 1 -2]
    """
    try:
        dtype = as_dtype(dtype)
    except DTypeError as error:
        raise DTypeError(f"astype: {error}") from error
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        raise DTypeError(
            f"astype: {x.dtype} does not become {dtype}: say which part, with gg.real(x), "
            "gg.imag(x) or gg.abs(x)."
        )
    return x.astype(dtype, copy=False)


# ---- joining and taking apart ------------------------------------------------------------


def _concat_vjp(xp, g, i, arrays_shape, axis):
    lead = () if axis is None else (slice(None),) * _axis(axis, g.ndim)
    length = math.prod if axis is None else lambda shape: shape[len(lead)]
    start = sum(map(length, arrays_shape[:i]))
    part = xp.getitem(g, index=(*lead, slice(start, start + length(arrays_shape[i]))))
    return xp.reshape(part, arrays_shape[i]) if axis is None else part


@op(
    vjp=_concat_vjp, variadic=True, linear=True, keeps_half=True, kinds="fc",
    ref=lambda arrays, axis=0: np.concatenate(arrays, axis=axis),
    samples=calls(
        lambda rng: ([[uniform(rng, 2), uniform(rng, 3)]], {}),
        lambda rng: ([[uniform(rng, 2, 1), uniform(rng, 2, 3), uniform(rng, 2, 0)]], {"axis": -1}),
        lambda rng: ([[uniform(rng, 2, 3)]], {"axis": 0}),
        lambda rng: ([[uniform(rng, 2, 2), uniform(rng), uniform(rng, 3)]], {"axis": None}),
    ),
    errors=[
        ([[np.ones((2, 3)), np.ones((2, 2))]], {}, ShapeError, r"concat.*\(2, 3\).*\(2, 2\)"),
        ([[np.ones(2)]], {"axis": 1}, AxisError, "concat.*axis 1"),
        ([[]], {}, ArgumentError, "concat: a list of at least one"),
    ],
)  # fmt: skip
def concat(xp, arrays, /, *, axis=0):
    """Join arrays along an axis that they have.

    Args:
        arrays: list of arrays, whose shapes differ along that axis only.
        axis: along which; None joins the elements of all, in row-major order.

    Returns:
        Tensor as long as all of them together; its dtype follows NumPy's promotion.

    Raises:
        ShapeError: the shapes differ along another axis.
        AxisError: an axis that they do not have.
        ArgumentError: the list is empty.

    >>> import gpugrad as gg
    >>> print(gg.concat([[1.0, 2.0], [3.0]]))
    [1. 2. 3.]
    """
    return xp.lib.concat(arrays, axis=axis)


def _stack_vjp(xp, g, i, arrays_shape, axis):
    axis = _axis(axis, len(arrays_shape[i]) + 1)
    return xp.getitem(g, index=(slice(None),) * axis + (i,))


@op(
    vjp=_stack_vjp, variadic=True, linear=True, keeps_half=True, kinds="fc", ref="numpy.stack",
    samples=calls(
        lambda rng: ([[uniform(rng, 3), uniform(rng, 3)]], {}),
        lambda rng: ([[uniform(rng, 2, 3), uniform(rng, 2, 3)]], {"axis": -1}),
        lambda rng: ([[uniform(rng), uniform(rng), uniform(rng)]], {}),
        lambda rng: ([[uniform(rng, 0, 2)]], {"axis": 1}),
    ),
    errors=[
        ([[np.ones(2), np.ones(3)]], {}, ShapeError, r"stack.*\(2,\).*\(3,\)"),
        ([[np.ones(2)]], {"axis": 2}, AxisError, "stack.*axis 2"),
    ],
)  # fmt: skip
def stack(xp, arrays, /, *, axis=0):
    """Join arrays of one shape along a new axis.

    Args:
        arrays: list of arrays.
        axis: the position of the new axis in the result.

    Returns:
        Tensor with one more axis, as long as the list.

    Raises:
        ShapeError: the shapes differ.
        AxisError: a position that the result does not have.
        ArgumentError: the list is empty.

    >>> import gpugrad as gg
    >>> print(gg.stack([[1.0, 2.0], [3.0, 4.0]], axis=1))
    [[1. 3.]
     [2. 4.]]
    """
    return xp.lib.stack(arrays, axis=axis)


def _length(name, x, axis):
    """The length of an axis, and the axis counted from 0."""
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"{name}: axis {axis} is out of bounds for the shape {x.shape}.")
    axis = _axis(axis, x.ndim)
    return x.shape[axis], axis


def unstack(x, /, *, axis=0):
    """Take an array apart along an axis; the opposite of `stack`.

    Args:
        x: array, of any shape but ().
        axis: along which.

    Returns:
        Tuple of Tensors without that axis, as many as it was long.

    Raises:
        AxisError: an axis that `x` does not have.

    >>> import gpugrad as gg
    >>> a, b = gg.unstack([[1.0, 2.0], [3.0, 4.0]], axis=1)
    >>> print(b)
    [2. 4.]
    """
    x = tensor(x)
    n, axis = _length("unstack", x, axis)
    return tuple(TENSOR.getitem(x, index=(slice(None),) * axis + (i,)) for i in range(n))


def split(x, indices_or_sections, /, *, axis=0):
    """Cut an array into pieces along an axis; the opposite of `concat`.

    Args:
        x: array, of any shape but ().
        indices_or_sections: the number of equal pieces, or a list of the positions where to
            cut.
        axis: along which.

    Returns:
        List of Tensors.

    Raises:
        ArgumentError: the axis does not divide into that many equal pieces.
        AxisError: an axis that `x` does not have.

    >>> import gpugrad as gg
    >>> a, b = gg.split([1.0, 2.0, 3.0, 4.0], 2)
    >>> print(b)
    [3. 4.]
    >>> [part.tolist() for part in gg.split([1.0, 2.0, 3.0], [1])]
    [[1.0], [2.0, 3.0]]
    """
    x = tensor(x)
    n, axis = _length("split", x, axis)
    if hasattr(indices_or_sections, "__len__") and np.ndim(indices_or_sections):
        cuts = [int(i) for i in indices_or_sections]
    else:
        sections = int(indices_or_sections)
        if sections < 1 or n % sections:
            raise ArgumentError(
                f"split: axis {axis} of the shape {x.shape} does not divide into {sections} equal "
                "pieces. Give a list of the positions where to cut."
            )
        cuts = list(range(n // sections, n, n // sections)) if n else [0] * (sections - 1)
    lead = (slice(None),) * axis
    edges = zip([0, *cuts], [*cuts, n], strict=True)
    return [TENSOR.getitem(x, index=(*lead, slice(start, stop))) for start, stop in edges]


def broadcast_arrays(*arrays):
    """Broadcast arrays against each other.

    Args:
        *arrays: arrays, or numbers.

    Returns:
        List of Tensors, all of one shape; each keeps its dtype.

    Raises:
        ShapeError: the shapes do not go together.

    >>> import gpugrad as gg
    >>> a, b = gg.broadcast_arrays([1.0, 2.0], [[3.0], [4.0]])
    >>> print(b)
    [[3. 3.]
     [4. 4.]]
    """
    xs = [tensor(x) for x in arrays]
    try:
        shape = np.broadcast_shapes(*(x.shape for x in xs))
    except ValueError as error:
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(
            f"broadcast_arrays: the shapes {shapes} do not go together. They must agree, counted "
            "from the last axis; a 1 stretches."
        ) from error
    return [x if x.shape == shape else TENSOR.broadcast_to(x, shape) for x in xs]


def meshgrid(*arrays, indexing="xy"):
    """Coordinates of the points of a grid, from those along each of its axes.

    Args:
        *arrays: arrays of one axis; or numbers.
        indexing: ``"ij"``: the i-th array varies along axis i. ``"xy"``: the first varies
            along axis 1, the second along axis 0, as the pixels of a picture are counted.

    Returns:
        List of Tensors, one for each array, all of the shape of the grid.

    Raises:
        ShapeError: an array with more than one axis.
        ArgumentError: another `indexing`.

    >>> import gpugrad as gg
    >>> x, y = gg.meshgrid([1.0, 2.0], [3.0, 4.0])
    >>> print(y)
    [[3. 3.]
     [4. 4.]]
    """
    xs = [tensor(x) for x in arrays]
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: no indexing {indexing!r}; 'xy' or 'ij'.")
    if any(x.ndim > 1 for x in xs):
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(f"meshgrid: arrays of one axis are needed, the shapes are {shapes}.")
    order = list(range(len(xs)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    shape = tuple(xs[i].size for i in order)
    places = [tuple(-1 if i == k else 1 for i in order) for k in range(len(xs))]
    return [
        TENSOR.broadcast_to(TENSOR.reshape(x, place), shape)
        for x, place in zip(xs, places, strict=True)
    ]


# ---- moving along an axis ----------------------------------------------------------------


@op(
    vjp=[lambda xp, g, axis: xp.flip(g, axis=axis)],
    linear=True, keeps_half=True, kinds="fc", ref="numpy.flip",
    samples=shaped(
        ([(2, 3)], {}), ([(2, 3)], {"axis": 0}), ([(2, 3, 2)], {"axis": (0, -1)}), ([()], {}),
        ([(0, 2)], {"axis": 0}),
    ),
    errors=[([np.ones(3)], {"axis": 1}, AxisError, "flip.*axis 1")],
)  # fmt: skip
def flip(xp, x, /, *, axis=None):
    """Reverse the order of the elements along axes.

    Args:
        x: array, of any shape.
        axis: an int, or a tuple of them; None for all.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        AxisError: an axis that `x` does not have.

    >>> import gpugrad as gg
    >>> print(gg.flip([1.0, 2.0, 3.0]))
    [3. 2. 1.]
    """
    return xp.lib.flip(x, axis=axis) if x.ndim or axis is not None else x


def _roll_vjp(xp, g, shift, axis):
    back = tuple(-s for s in shift) if isinstance(shift, (tuple, list)) else -shift
    return xp.roll(g, back, axis=axis)


@op(
    vjp=[_roll_vjp], linear=True, keeps_half=True, kinds="fc", ref="numpy.roll",
    samples=shaped(
        ([(2, 3)], {"shift": 2}), ([(2, 3)], {"shift": -1, "axis": -1}),
        ([(2, 3)], {"shift": (1, 4), "axis": (0, 1)}), ([(0, 2)], {"shift": 1, "axis": 0}),
    ),
    errors=[([np.ones(3)], {"shift": 1, "axis": 1}, AxisError, "roll.*axis 1")],
)  # fmt: skip
def roll(xp, x, /, shift, *, axis=None):
    """Move the elements along axes; those that leave at the end come in at the start.

    Args:
        x: array, of any shape.
        shift: by how many places: an int, or one for each axis.
        axis: an int, or a tuple of them; None moves the elements in row-major order.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        AxisError: an axis that `x` does not have.

    >>> import gpugrad as gg
    >>> print(gg.roll([1.0, 2.0, 3.0], 1))
    [3. 1. 2.]
    """
    return xp.lib.roll(x, shift, axis=axis)


# ---- copies ------------------------------------------------------------------------------


def _several(n):
    return (n,) if isinstance(n, (int, np.integer)) else tuple(n)


def _tile_vjp(xp, g, x_shape, repetitions):
    reps = _several(repetitions)
    n = max(len(reps), len(x_shape))
    reps = (1,) * (n - len(reps)) + reps
    lengths = (1,) * (n - len(x_shape)) + tuple(x_shape)
    copies = tuple(k for pair in zip(reps, lengths, strict=True) for k in pair)
    one = tuple(k for length in lengths for k in (1, length))
    return xp.reshape(xp.sum_to(xp.reshape(g, copies), one), x_shape)


@op(
    vjp=[_tile_vjp], linear=True, keeps_half=True, kinds="fc",
    ref=lambda x, repetitions: np.tile(x, repetitions),
    samples=shaped(
        ([(3,)], {"repetitions": 2}), ([(2, 3)], {"repetitions": (2, 1)}),
        ([(3,)], {"repetitions": (2, 2)}), ([(2, 2)], {"repetitions": (3,)}),
        ([()], {"repetitions": (2,)}), ([(2,)], {"repetitions": (0,)}),
    ),
    errors=[([np.ones(3)], {"repetitions": (-1,)}, ArgumentError, "tile.*negative")],
)  # fmt: skip
def tile(xp, x, /, repetitions):
    """Lay copies of an array side by side.

    Args:
        x: array, of any shape.
        repetitions: tuple of how many along each axis, or one int for the last axis. The
            shorter one of it and the shape is filled up with ones in front.

    Returns:
        Tensor, along each axis as many times as long.

    Raises:
        ArgumentError: a negative number of copies.

    >>> import gpugrad as gg
    >>> print(gg.tile([1.0, 2.0], (2, 2)))
    [[1. 2. 1. 2.]
     [1. 2. 1. 2.]]
    """
    reps = _several(repetitions)
    if any(r < 0 for r in reps):
        raise ArgumentError(f"tile: a negative number of copies in repetitions={repetitions}.")
    return xp.lib.tile(x, reps)


def _counts(repeats):
    """`repeats` as an int, or as a list of them."""
    counts = repeats.tolist() if hasattr(repeats, "tolist") else repeats
    if isinstance(counts, int):
        return counts
    counts = list(counts)
    return counts[0] if len(counts) == 1 else counts


def _repeat_vjp(xp, g, x_shape, repeats, axis):
    shape = (math.prod(x_shape),) if axis is None else tuple(x_shape)
    axis = 0 if axis is None else _axis(axis, len(shape))
    before, after, n = shape[:axis], shape[axis + 1 :], shape[axis]
    counts = _counts(repeats)
    if isinstance(counts, int):
        copies = xp.reshape(g, (*before, n, counts, *after))
        return xp.reshape(xp.sum_to(copies, (*before, n, 1, *after)), x_shape)
    origin = [i for i, count in enumerate(counts) for _ in range(count)]
    index = (*[slice(None)] * axis, np.array(origin, dtype=np.int64))
    return xp.reshape(xp.scatter_at(g, index=index, shape=shape), x_shape)


@op(
    vjp=[_repeat_vjp], linear=True, keeps_half=True, kinds="fc", ref="numpy.repeat",
    samples=shaped(
        ([(2, 3)], {"repeats": 2}), ([(2, 3)], {"repeats": 2, "axis": -1}),
        ([(2, 3)], {"repeats": [1, 0, 2], "axis": 1}), ([(2, 2)], {"repeats": (1, 2, 0, 3)}),
        ([()], {"repeats": 3}), ([(2,)], {"repeats": 0}), ([(2, 2)], {"repeats": [2], "axis": 0}),
    ),
    errors=[
        ([np.ones(3)], {"repeats": [1, 2], "axis": 0}, ShapeError, "repeat"),
        ([np.ones(3)], {"repeats": 2, "axis": 1}, AxisError, "repeat.*axis 1"),
    ],
)  # fmt: skip
def repeat(xp, x, /, repeats, *, axis=None):
    """Repeat each element, or each slice along an axis.

    Args:
        x: array, of any shape.
        repeats: how many times: an int, or a list of one for each slice.
        axis: along which; None repeats the elements in row-major order.

    Returns:
        Tensor of the shape of `x` but for that axis; with one axis if `axis` is None.

    Raises:
        ShapeError: there are not as many `repeats` as slices.
        AxisError: an axis that `x` does not have.

    >>> import gpugrad as gg
    >>> print(gg.repeat([1.0, 2.0], 2))
    [1. 1. 2. 2.]
    """
    return xp.lib.repeat(x, _counts(repeats), axis=axis)


def _widths(pad_width, ndim):
    """(before, after) for each axis, from any of the forms that np.pad takes."""
    try:
        pairs = np.broadcast_to(np.asarray(pad_width), (ndim, 2)).tolist()
    except ValueError as error:
        raise ShapeError(
            f"pad: pad_width={pad_width} fits no array of {ndim} axes. Give one int, or a pair "
            "(before, after), or one pair for each axis."
        ) from error
    if any(type(n) is not int or n < 0 for pair in pairs for n in pair):
        raise ArgumentError(f"pad: pad_width={pad_width}: an int is needed that is not negative.")
    return pairs


def _inside(pad_width, shape):
    """The index of the original within the padded array."""
    pairs = _widths(pad_width, len(shape))
    return tuple(slice(b, b + n) for (b, _), n in zip(pairs, shape, strict=True))


@op(
    vjp=[lambda xp, g, x_shape, pad_width: xp.getitem(g, index=_inside(pad_width, x_shape))],
    jvp=[lambda xp, t, pad_width: xp.pad(t, pad_width)],
    keeps_half=True, kinds="fc",
    ref=lambda x, pad_width, constant_values=0.0: np.pad(
        x, pad_width, constant_values=constant_values
    ),
    samples=shaped(
        ([(3,)], {"pad_width": 1}), ([(2, 3)], {"pad_width": (1, 2)}),
        ([(2, 3)], {"pad_width": ((0, 1), (2, 0)), "constant_values": 0.5}),
        ([(0, 2)], {"pad_width": ((1, 1), (0, 0))}), ([(2, 2)], {"pad_width": 0}),
    ),
    errors=[
        ([np.ones(3)], {"pad_width": ((1, 1), (1, 1))}, ShapeError, "pad.*1 axes"),
        ([np.ones(3)], {"pad_width": -1}, ArgumentError, "pad.*negative"),
    ],
)  # fmt: skip
def pad(xp, x, /, pad_width, *, constant_values=0.0):
    """Put a border of one value around an array.

    Args:
        x: array, of any shape.
        pad_width: pairs (before, after), one for each axis; or one pair, or one int, for all.
        constant_values: the value, a number.

    Returns:
        Tensor, along each axis longer by `before` and `after`.

    Raises:
        ShapeError: there are not as many pairs as axes.
        ArgumentError: a negative width.

    >>> import gpugrad as gg
    >>> print(gg.pad([1.0, 2.0], (1, 2)))
    [0. 1. 2. 0. 0.]
    """
    pairs = _widths(pad_width, x.ndim)
    shape = tuple(b + n + a for n, (b, a) in zip(x.shape, pairs, strict=True))
    out = xp.lib.full(shape, constant_values, dtype=x.dtype)
    out[_inside(pad_width, x.shape)] = x
    return out


# ---- parts of matrices -------------------------------------------------------------------

_SOME_MATRICES = shaped(
    ([(3, 3)], {}), ([(2, 3)], {"k": 1}), ([(2, 3, 2)], {"k": -1}), ([(0, 2)], {}),
)  # fmt: skip


@op(
    vjp=[lambda xp, g, k: xp.tril(g, k=k)],
    linear=True, keeps_half=True, kinds="fc", ref="numpy.tril", samples=_SOME_MATRICES,
    errors=[([np.ones(3)], {}, ShapeError, r"tril.*\(3,\)")],
)  # fmt: skip
def tril(xp, x, /, *, k=0):
    """Lower triangle of matrices: elements above the k-th diagonal become 0.

    Args:
        x: array of shape (..., m, n).
        k: the diagonal; 0 is the main one, those above it are positive.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ShapeError: there are fewer than two axes.

    >>> import gpugrad as gg
    >>> print(gg.tril([[1.0, 2.0], [3.0, 4.0]]))
    [[1. 0.]
     [3. 4.]]
    """
    _matrices("tril", x)
    return xp.lib.tril(x, k=k)


@op(
    vjp=[lambda xp, g, k: xp.triu(g, k=k)],
    linear=True, keeps_half=True, kinds="fc", ref="numpy.triu", samples=_SOME_MATRICES,
    errors=[([np.ones(3)], {}, ShapeError, r"triu.*\(3,\)")],
)  # fmt: skip
def triu(xp, x, /, *, k=0):
    """Upper triangle of matrices: elements below the k-th diagonal become 0.

    Args:
        x: array of shape (..., m, n).
        k: the diagonal; 0 is the main one, those above it are positive.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ShapeError: there are fewer than two axes.

    >>> import gpugrad as gg
    >>> print(gg.triu([[1.0, 2.0], [3.0, 4.0]]))
    [[1. 2.]
     [0. 4.]]
    """
    _matrices("triu", x)
    return xp.lib.triu(x, k=k)


@op(
    vjp=[lambda xp, g, x_shape, offset: xp.diagonal_scatter(g, offset=offset, shape=x_shape)],
    linear=True, keeps_half=True, kinds="fc",
    ref=lambda x, offset=0: np.diagonal(x, offset, axis1=-2, axis2=-1),
    samples=shaped(
        ([(3, 3)], {}), ([(2, 3)], {"offset": 1}), ([(2, 3, 2)], {"offset": -1}),
        ([(2, 2)], {"offset": 3}),
    ),
    errors=[([np.ones(3)], {}, ShapeError, r"diagonal.*\(3,\)")],
)  # fmt: skip
def diagonal(xp, x, /, *, offset=0):
    """Elements on a diagonal of matrices.

    Args:
        x: array of shape (..., m, n).
        offset: the diagonal; 0 is the main one, those above it are positive.

    Returns:
        Tensor of shape (..., length of the diagonal).

    Raises:
        ShapeError: there are fewer than two axes.

    >>> import gpugrad as gg
    >>> print(gg.diagonal([[1.0, 2.0], [3.0, 4.0]]))
    [1. 4.]
    """
    _matrices("diagonal", x)
    return xp.lib.diagonal(x, offset, -2, -1)


def _diagonal_scatter_reference(x, offset, shape):
    out = np.zeros(shape, x.dtype)
    for i in range(x.shape[-1]):
        out[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return out


@op(
    vjp=[lambda xp, g, offset: xp.diagonal(g, offset=offset)],
    linear=True, keeps_half=True, kinds="fc", ref=_diagonal_scatter_reference,
    samples=shaped(
        ([(3,)], {"offset": 0, "shape": (3, 3)}), ([(2,)], {"offset": 1, "shape": (2, 3)}),
        ([(2, 2)], {"offset": -1, "shape": (2, 3, 2)}), ([(0,)], {"offset": 3, "shape": (2, 2)}),
    ),
    errors=[
        ([np.ones(3)], {"offset": 1, "shape": (3, 3)}, ShapeError, r"diagonal_scatter.*\(3,\)"),
    ],
)  # fmt: skip
def diagonal_scatter(xp, x, /, *, offset, shape):
    """Put elements on a diagonal of matrices that are 0 elsewhere; the adjoint of `diagonal`.

    Args:
        x: array of shape (..., length of the diagonal).
        offset: the diagonal; 0 is the main one, those above it are positive.
        shape: of the result, (..., m, n).

    Returns:
        Tensor of that shape.

    Raises:
        ShapeError: the elements do not fill the diagonal.

    >>> import gpugrad as gg
    >>> print(gg.diagonal_scatter([1.0, 2.0], offset=0, shape=(2, 2)))
    [[1. 0.]
     [0. 2.]]
    """
    out = xp.lib.zeros(shape, dtype=x.dtype)
    row, column = max(-offset, 0), max(offset, 0)
    n = max(min(shape[-2] - row, shape[-1] - column), 0)
    if x.shape != (*shape[:-2], n):
        raise ShapeError(
            f"diagonal_scatter: {x.shape} does not fill diagonal {offset} of the shape {shape}."
        )
    i = xp.lib.arange(n)
    out[..., i + row, i + column] = x
    return out
