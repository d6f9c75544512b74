"""Reading and writing elements by index.

Two adjoint pairs do the work: `getitem` and `scatter_at` for an index that is metadata (slices,
ints, masks, arrays), `take_along_axis` and `scatter_along_axis` for one that is data. Places
named twice get the sum of their gradients.
"""

from __future__ import annotations

import numpy as np

from gpugrad.core.backend import ARRAYS, SCALARS
from gpugrad.core.samples import shaped
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import DTypeError, IndexOutOfBoundsError, ShapeError
from gpugrad.kernels.by_hand import scatter
from gpugrad.ops.arrays.index_rules import (
    BASIC,
    add_at,
    assign,
    bare_index,
    explained,
    fitting,
    has_arrays,
    may_repeat,
    numbered_writes,
)
from gpugrad.ops.arrays.index_vmap import array_of, getitem_batch, scatter_at_batch, written
from gpugrad.registry.record import op


def frozen_index(index):
    """An index of which nobody else can change the arrays: what a tape may keep.

    >>> from gpugrad.ops.arrays.indexing import frozen_index
    >>> frozen_index(([0, 1], slice(2)))
    (array([0, 1]), slice(None, 2, None))
    """
    if type(index) in BASIC:
        return index
    if isinstance(index, Tensor):  # ``index[i] = v`` gives that Tensor, not this, another array
        return wrap(index._data)
    if type(index) is tuple:
        return tuple(frozen_index(part) for part in index)
    if isinstance(index, list):
        index = array_of(index)
    return index.copy() if type(index) in ARRAYS else index


def _index_samples(*cases):
    """Arrays of a shape, read at an index."""
    return shaped(*(([shape], {"index": index}) for shape, index in cases))


def _getitem_kernel(xp, x, *, index):
    if not has_arrays(index):
        return NotImplemented
    bare = bare_index("getitem", xp, x.shape, index, checked=False)
    return scatter.getitem(xp, x, index=bare)


@op(
    vjp=[lambda xp, g, x_shape, index: xp.scatter_at(g, index=index, shape=x_shape)],
    linear=True,
    keeps_half=True,
    batch=getitem_batch,
    kinds="fc",
    ref=lambda x, index: x[index],
    cuda=_getitem_kernel,
    samples=_index_samples(
        ((4,), 1),
        ((2, 3), -1),
        ((2, 3), (slice(None), 1)),
        ((2, 3, 2), (Ellipsis, 0)),
        ((5,), slice(None, None, -2)),
        ((2, 3), (None, slice(0, 1))),
        ((), ()),
        ((0, 2), slice(1)),
        ((2, 3), (1, 2)),
        ((4,), [0, 2, 0]),
        ((3, 2), np.array([[0, -1], [1, 0]])),
        ((2, 3), ([0, 1, 1], [2, -1, 2])),
        ((2, 3), (slice(None), np.array([1, 1]))),
        ((2, 3, 2), (np.array([0, 1]), slice(None), np.array([1, 0]))),
        ((4,), np.array([True, False, True, False])),
        ((2, 2), np.array([[True, False], [True, True]])),
        ((3,), np.array([], dtype=int)),
    ),
    errors=[
        ([np.ones(3)], {"index": 3}, IndexOutOfBoundsError, r"getitem: index 3.*\(3,\)"),
        ([np.ones(3)], {"index": [0, -4]}, IndexOutOfBoundsError, "getitem: index -4"),
        ([np.ones(3)], {"index": (0, 0)}, IndexOutOfBoundsError, "getitem: too many indices"),
        ([np.ones(3)], {"index": np.array([True])}, IndexOutOfBoundsError, "boolean"),
        ([np.ones(3)], {"index": np.array([0.5])}, DTypeError, "float64.*astype"),
        ([np.ones(3)], {"index": 1.0}, DTypeError, "integers, slices or booleans"),
    ],
)
def getitem(xp, x, /, *, index):
    """Elements of an array: what ``x[index]`` is.

    Args:
        index: what NumPy takes: ints, slices, None, ``...``, arrays or lists of integers, masks,
            or a tuple of them. Tensors may be among them.

    Returns:
        Tensor of the shape that NumPy gives.

    >>> print(gg.getitem([1.0, 2.0, 3.0], index=[0, 2]))
    [1. 3.]
    """
    try:
        part = x[bare_index("getitem", xp, x.shape, index)]
    except IndexError as error:
        raise explained("getitem", x.shape, error) from error
    return part if type(part) in ARRAYS else xp.lib.asarray(part)


def _scatter_at_reference(g, index, shape):
    out = np.zeros(shape, g.dtype)
    np.add.at(out, index, g)
    return out


def _scatter_at_kernel(xp, g, *, index, shape):
    bare = bare_index("scatter_at", xp, shape, index, checked=False)
    return scatter.scatter_at(xp, g, index=bare, shape=shape)


@op(
    vjp=[lambda xp, g, index: xp.getitem(g, index=index)],
    linear=True,
    batch=scatter_at_batch,
    kinds="fc",
    ref=_scatter_at_reference,
    cuda=_scatter_at_kernel,
    samples=shaped(
        ([()], {"index": 1, "shape": (3,)}),
        ([(2,)], {"index": (slice(None), 1), "shape": (2, 3)}),
        ([(3,)], {"index": [0, 2, 0], "shape": (4,)}),
        ([(3, 2)], {"index": np.array([1, -1, 1]), "shape": (2, 2)}),
        ([(2, 2)], {"index": (slice(None), np.array([1, 1])), "shape": (2, 3)}),
        ([(3,)], {"index": ([0, 1, 1], [2, -1, 2]), "shape": (2, 3)}),
        ([(2,)], {"index": np.array([True, False, True]), "shape": (3,)}),
        ([(0, 2)], {"index": np.array([], dtype=int), "shape": (3, 2)}),
    ),
    errors=[
        ([np.ones(3)], {"index": slice(2), "shape": (4,)}, ShapeError, "scatter_at.*broadcast"),
        ([np.ones(1)], {"index": [4], "shape": (4,)}, IndexOutOfBoundsError, "scatter_at: index 4"),
    ],
)
def scatter_at(xp, g, /, *, index, shape):
    """Add elements into an array of zeros at an index; the adjoint of `getitem`.

    Args:
        g: array of the shape of ``zeros(shape)[index]``.
        index: as for `getitem`; what is named twice gets the sum.
        shape: of the result.

    Returns:
        Tensor of that shape.

    >>> print(gg.scatter_at([1.0, 2.0, 4.0], index=[0, 2, 0], shape=(3,)))
    [5. 0. 2.]
    """
    out = xp.lib.zeros(shape, dtype=g.dtype)
    try:
        index = bare_index("scatter_at", xp, out.shape, index)
        if may_repeat(index):
            add_at("scatter_at", xp, out, index, g)
        else:
            out[index] = g
    except IndexError as error:
        raise explained("scatter_at", shape, error) from error
    return out


def _index_add_reference(x, values, index):
    out = x.copy()
    np.add.at(out, index, values)
    return out


@op(
    vjp=[
        lambda xp, g: g,
        lambda xp, g, values_shape, index: xp.sum_to(xp.getitem(g, index=index), values_shape),
    ],
    batch=written("index_add"),
    kinds="fc",
    ref=_index_add_reference,
    samples=shaped(
        ([(4,), ()], {"index": 1}),
        ([(2, 3), (2,)], {"index": (slice(None), 1)}),
        ([(4,), (3,)], {"index": [0, 2, 0]}),
        ([(3, 2), (2,)], {"index": np.array([1, -2])}),
        ([(3,), (1,)], {"index": np.array([True, False, True])}),
    ),
    errors=[
        ([np.ones(3), np.ones(2)], {"index": [0, 1, 2]}, ShapeError, "index_add.*broadcast"),
        ([np.ones(3), 1.0], {"index": [3]}, IndexOutOfBoundsError, "index_add: index 3"),
        ([np.ones(3), np.ones(1) * 1j], {"index": [0]}, DTypeError, "index_add: a complex128"),
    ],
)
def index_add(xp, x, values, /, *, index):
    """`x` with values added at an index; what the index names twice is added to twice.

    Args:
        values: array that broadcasts to the shape of ``x[index]``.
        index: as for `getitem`.

    Returns:
        Tensor of the shape and dtype of `x`.

    >>> print(gg.index_add([1.0, 1.0, 1.0], [1.0, 2.0, 4.0], index=[0, 2, 0]))
    [6. 1. 3.]
    """
    out, values = xp.lib.array(x, order="C"), fitting("index_add", x, values)
    add_at("index_add", xp, out, bare_index("index_add", xp, x.shape, index), values)
    return out


@op(
    vjp=[lambda xp, g, index: xp.index_fill(g, index=index)],
    jvp=[lambda xp, t, index: xp.index_fill(t, index=index)],
    keeps_half=True,
    batch=written("index_fill"),
    kinds="fc",
    ref=lambda x, index, value=0: _index_put_reference(x, value, index),
    samples=_index_samples(
        ((4,), 1),
        ((2, 3), (slice(None), 1)),
        ((4,), [0, 2, 0]),
        ((3,), np.array([True, False, True])),
    ),
    errors=[
        ([np.ones(3)], {"index": 3}, IndexOutOfBoundsError, "index_fill: index 3"),
        ([np.ones(3)], {"index": 0, "value": 1j}, DTypeError, "index_fill: a complex"),
    ],
)
def index_fill(xp, x, /, *, index, value=0):
    """`x` with one number put at an index.

    Args:
        index: as for `getitem`.
        value: a Python number.

    Returns:
        Tensor of the shape and dtype of `x`.

    >>> print(gg.index_fill([1.0, 2.0, 3.0], index=[0, 2], value=5.0))
    [5. 2. 5.]
    """
    out = xp.lib.array(x, order="C")
    assign("index_fill", xp, out, value, index)
    return out


def _last_writes_reference(x, index):
    places = np.arange(x.size).reshape(x.shape)[index]
    flat = places.ravel().tolist()
    stays = [place not in flat[i + 1 :] for i, place in enumerate(flat)]
    return np.array(stays).reshape(places.shape)


@op(
    differentiable=False,
    keeps_half=True,
    batch=written("last_writes"),
    kinds="f",
    ref=_last_writes_reference,
    samples=_index_samples(
        ((4,), [0, 2, 0]),
        ((3, 2), np.array([1, -2, 1])),
        ((2, 3), ([0, 1, 0], [2, -1, -1])),
        ((3,), slice(2)),
    ),
    errors=[([np.ones(3)], {"index": [3, 3]}, IndexOutOfBoundsError, "last_writes: index 3")],
)
def last_writes(xp, x, /, *, index):
    """Which of the writes of ``x[index] = values`` stay: of those to one place, the last.

    Args:
        x: array; only its shape matters.
        index: as for `getitem`.

    Returns:
        Boolean Tensor of the shape of ``x[index]``.

    >>> print(gg.last_writes([1.0, 2.0, 3.0], index=[0, 1, 0]))
    [False  True  True]
    """
    try:
        writes, last = numbered_writes(xp, x.shape, bare_index("last_writes", xp, x.shape, index))
    except IndexError as error:
        raise explained("last_writes", x.shape, error) from error
    return writes == last


def _index_put_values(xp, g, values_shape, index):
    part = xp.getitem(g, index=index)
    if may_repeat(index):
        part = xp.where(xp.last_writes(g, index=index), part, 0)
    extra = max(len(values_shape) - part.ndim, 0)  # NumPy lets a value have more ones in front
    return xp.reshape(xp.sum_to(part, values_shape[extra:]), values_shape)


def _index_put_reference(x, values, index):
    out = np.array(x)
    out[index] = values
    return out


_PUT_SAMPLES = shaped(
    ([(4,), ()], {"index": 1}),
    ([(2, 3), (2,)], {"index": (slice(None), 1)}),
    ([(4,), (3,)], {"index": [0, 2, 0]}),
    ([(3, 2), (2,)], {"index": np.array([1, -2, 1])}),
    ([(3,), (1,)], {"index": np.array([True, False, True])}),
    ([(2, 3), (1, 1, 3)], {"index": 0}),
    ([(2, 3), (3,)], {"index": ([0, 1, 0], [2, -1, -1])}),
    ([(), ()], {"index": ()}),
    ([(2, 2), (3,)], {"index": np.array([[True, False], [True, True]])}),
)


@op(
    vjp=[lambda xp, g, index: xp.index_fill(g, index=index), _index_put_values],
    keeps_half=True,
    batch=written("index_put"),
    kinds="fc",
    ref=_index_put_reference,
    samples=_PUT_SAMPLES,
    errors=[
        ([np.ones(3), np.ones(2)], {"index": slice(3)}, ShapeError, "index_put.*broadcast"),
        ([np.ones(3), 1.0], {"index": 3}, IndexOutOfBoundsError, "index_put: index 3"),
        ([np.ones(3), np.ones(1) * 1j], {"index": [0]}, DTypeError, "index_put: a complex128"),
    ],
)
def index_put(xp, x, values, /, *, index):
    """`x` with an array of values put at an index; of several writes to a place the last stays.

    Args:
        values: array that broadcasts to the shape of ``x[index]``.
        index: as for `getitem`.

    Returns:
        Tensor of the shape and dtype of `x`.

    >>> print(gg.index_put([1.0, 1.0, 1.0], [2.0, 3.0, 4.0], index=[0, 2, 0]))
    [4. 1. 3.]
    """
    out = xp.lib.array(x, order="C")
    assign("index_put", xp, out, values, index)
    return out


@op(
    keeps_half=True,
    kinds="fc",
    ref=lambda x, value, index: _index_put_reference(x, value, index),
    samples=_PUT_SAMPLES,
    errors=[
        ([np.ones(3), np.ones(2)], {"index": slice(3)}, ShapeError, "broadcast"),
        ([np.ones(3), 1.0], {"index": 3}, IndexOutOfBoundsError, "index 3 is out of bounds"),
        ([np.arange(3), 0.5], {"index": 0}, DTypeError, "int64 array"),
    ],
)
def setitem(xp, x, value, /, *, index):
    """`x` with a value put at an index: what `x` is after ``x[index] = value``.

    Args:
        value: array that broadcasts to the shape of ``x[index]``, or a number. Of several
            writes to one place the last stays, and it alone gets a gradient.
        index: as for `getitem`.

    Returns:
        Tensor of the shape and dtype of `x`.

    >>> print(gg.setitem([1.0, 2.0, 3.0], 0.0, index=slice(2)))
    [0. 0. 3.]
    """
    if type(value) in SCALARS:  # in the dtype of x: 0.1 as a float32 array would be another number
        return xp.index_fill(x, index=index, value=value)
    return xp.index_put(x, value, index=index)
