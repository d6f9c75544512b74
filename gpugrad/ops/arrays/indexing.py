"""Ops that read or write elements at an index.

Two adjoint pairs do the work: `getitem` and `scatter_at` for an index that is metadata (slices,
ints, masks, arrays), `take_along_axis` and `scatter_along_axis` for one that is data. Gradients of
repeated indices add up.
"""

import numpy as np

from gpugrad.core.backend import ARRAYS, SCALARS
from gpugrad.core.holders import opened
from gpugrad.core.samples import shaped
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import DTypeError, IndexOutOfBoundsError, ShapeError
from gpugrad.kernels.by_hand import scatter
from gpugrad.ops.arrays import moves_in_c
from gpugrad.ops.arrays.gather import scatter_ref
from gpugrad.ops.arrays.index_rules import (
    add_at,
    assign,
    cast_values,
    elements_at,
    has_arrays,
    index_error,
    is_basic,
    is_by_axes,
    library_index,
    may_repeat,
    number_writes,
    sum_at,
    write,
)
from gpugrad.ops.arrays.index_vmap import array_of, getitem_batch, scatter_at_batch, write_batch
from gpugrad.ops.arrays.shape import moves
from gpugrad.registry.record import op
from gpugrad.trace.program import takes_arguments


def _is_fixed(*arrays, index, **params):
    """Whether an index is the same in every run: an index that is data is checked on the host."""
    return not takes_arguments(index)


def frozen_index(index):
    """A copy of an index that a tape may keep: nobody else can change its arrays.

    >>> from gpugrad.ops.arrays.indexing import frozen_index
    >>> frozen_index(([0, 1], slice(2)))
    (array([0, 1]), slice(None, 2, None))
    """
    if is_basic(index):
        return index
    index = opened(index)
    if isinstance(index, Tensor):  # ``index[i] = v`` replaces the array of that Tensor only
        return wrap(index._kept())
    is_list = isinstance(index, list)
    if type(index) is tuple or (is_list and is_by_axes(index)):
        return tuple(frozen_index(part) for part in index)
    index = array_of(index) if is_list else index
    return index.copy() if type(index) in ARRAYS else index


def _index_samples(*cases):
    """Samples from pairs of a shape and an index."""
    return shaped(*(([shape], {"index": index}) for shape, index in cases))


_READS = _index_samples(
    ((4,), 1), ((2, 3), -1), ((2, 3), (slice(None), 1)), ((2, 3, 2), (Ellipsis, 0)),
    ((5,), slice(None, None, -2)), ((2, 3), (None, slice(0, 1))), ((), ()), ((0, 2), slice(1)),
    ((2, 3), (1, 2)), ((4,), [0, 2, 0]), ((3, 2), np.array([[0, -1], [1, 0]])),
    ((2, 3), ([0, 1, 1], [2, -1, 2])), ((2, 3), (slice(None), np.array([1, 1]))),
    ((2, 3, 2), (np.array([0, 1]), slice(None), np.array([1, 0]))),
    ((4,), np.array([True, False, True, False])), ((2, 2), np.array([[True, False], [True, True]])),
    ((3,), np.array([], dtype=int)),
)  # fmt: skip


def _getitem_kernel(xp, x, *, index):
    if not has_arrays(index):
        return NotImplemented
    array_index = library_index("getitem", xp, x.shape, index, checked=False)
    return scatter.getitem(xp, x, index=array_index)


@moves(
    vjp=[lambda xp, g, x_shape, index: xp.scatter_at(g, index=index, shape=x_shape)],
    batch=getitem_batch,
    ref=lambda x, index: x[index],
    cuda=_getitem_kernel,
    c_call=moves_in_c.getitem,
    samples=_READS,
    errors=[
        ([np.ones(3)], {"index": 3}, IndexOutOfBoundsError, r"getitem: index 3.*\(3,\)"),
        ([np.ones(3)], {"index": [0, -4]}, IndexOutOfBoundsError, "getitem: index -4"),
        ([np.ones(3)], {"index": (0, 0)}, IndexOutOfBoundsError, "getitem: too many indices"),
        ([np.ones(3)], {"index": np.array([True])}, IndexOutOfBoundsError, "boolean"),
        ([np.ones(3)], {"index": np.array([0.5])}, DTypeError, "float64.*astype"),
        ([np.ones(3)], {"index": 1.0}, DTypeError, "integers, slices or booleans"),
    ],
    length_by_values="index",
    writes=lambda xp, x, part, index: xp.setitem(x, part, index=index),
)
def getitem(xp, x, /, *, index):
    """Elements of an array at an index: the op behind ``x[index]``.

    The index must be on the device of `x`; otherwise it raises DeviceError.

    Args:
        index: ints, slices, None, ``...``, arrays, Tensors or lists of integers, masks, or a tuple
            of them, as in NumPy.

    Returns:
        Tensor of the shape that NumPy gives.

    >>> print(gg.getitem([1.0, 2.0, 3.0], index=[0, 2]))
    [1. 3.]
    """
    try:
        if is_basic(index):  # `library_index` would return it: a call for nothing
            part = x[index]
        else:
            index = library_index("getitem", xp, x.shape, index)
            alone = type(index) is tuple and len(index) == 1 and type(index[0]) is np.ndarray
            part = elements_at(xp, x, index[0]) if alone and x.ndim else x[index]
    except IndexError as error:
        raise index_error("getitem", x.shape, error) from error
    return part if type(part) in ARRAYS else xp.lib.asarray(part)


def _scatter_at_kernel(xp, g, *, index, shape):
    array_index = library_index("scatter_at", xp, shape, index, checked=False)
    return scatter.scatter_at(xp, g, index=array_index, shape=shape)


@op(
    vjp=[lambda xp, g, index: xp.getitem(g, index=index)],
    linear=True,
    batch=scatter_at_batch,
    kinds="fc",
    ref=scatter_ref,
    cuda=_scatter_at_kernel,
    c_call=moves_in_c.scatter_at,
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
def scatter_at(xp, values, /, *, index, shape):
    """Add elements into an array of zeros at an index: the adjoint of `getitem`.

    Args:
        values: array of the shape of ``zeros(shape)[index]``.
        index: as for `getitem`; those at repeated indices add up.
        shape: shape of the result.

    Returns:
        Tensor of that shape.

    >>> print(gg.scatter_at([1.0, 2.0, 4.0], index=[0, 2, 0], shape=(3,)))
    [5. 0. 2.]
    """
    try:
        index = library_index("scatter_at", xp, shape, index)
        out = sum_at(xp, index, values, shape)
        if out is not NotImplemented:
            return out
        out = xp.lib.zeros(shape, dtype=values.dtype)
        if may_repeat(index):
            add_at("scatter_at", xp, out, index, values)
        else:
            write(xp, out, index, values)
    except IndexError as error:
        raise index_error("scatter_at", shape, error) from error
    return out


@op(
    vjp=[
        lambda xp, g: g,
        lambda xp, g, values_shape, index: xp.sum_to(xp.getitem(g, index=index), values_shape),
    ],
    batch=write_batch("index_add"),
    c_call=moves_in_c.index_add,
    kinds="fc",
    ref=lambda x, values, index: (
        x + scatter_ref(np.broadcast_to(values, x[index].shape), index, x.shape)
    ),
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
    captures=_is_fixed,
)
def index_add(xp, x, values, /, *, index):
    """A copy of `x` with values added at an index; values at repeated indices all count.

    Args:
        values: array that broadcasts to the shape of ``x[index]``; not float for an integer `x`,
            not complex for a real one.

    >>> print(gg.index_add([1.0, 1.0, 1.0], [1.0, 2.0, 4.0], index=[0, 2, 0]))
    [6. 1. 3.]
    """
    values = cast_values("index_add", x, values)
    index = library_index("index_add", xp, x.shape, index)
    out = sum_at(xp, index, values, x.shape, x)
    if out is NotImplemented:
        out = xp.lib.array(x, order="C")
        add_at("index_add", xp, out, index, values)
    return out


def _write_over(name):
    """The launcher that writes to `x` itself, if its caller says that nobody reads it again."""

    def launcher(xp, x, /, *values, index, value=0, over=False):
        if over:
            assign(name, xp, x, values[0] if values else value, index)
        return x if over else NotImplemented

    return launcher


@op(
    vjp=[lambda xp, g, index: xp.index_fill(g, index=index)],
    jvp=[lambda xp, t, index: xp.index_fill(t, index=index)],
    native_half=True,
    cpu=_write_over("index_fill"),
    overwrites=0,
    batch=write_batch("index_fill"),
    c_call=moves_in_c.index_fill,
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
    captures=_is_fixed,
)
def index_fill(xp, x, /, *, index, value=0):
    """A copy of `x` with one number written at an index.

    Args:
        value: a Python number; not a float for an integer `x`, not complex for a real one.

    >>> print(gg.index_fill([1.0, 2.0, 3.0], index=[0, 2], value=5.0))
    [5. 2. 5.]
    """
    out = xp.lib.array(x, order="C")
    assign("index_fill", xp, out, value, index)
    return out


def _last_writes_reference(x, index):
    elements = np.arange(x.size).reshape(x.shape)[index]
    flat = elements.ravel().tolist()
    stays = [element not in flat[i + 1 :] for i, element in enumerate(flat)]
    return np.array(stays).reshape(elements.shape)


@op(
    differentiable=False,
    native_half=True,
    batch=write_batch("last_writes"),
    kinds="f",
    ref=_last_writes_reference,
    samples=_index_samples(
        ((4,), [0, 2, 0]),
        ((3, 2), np.array([1, -2, 1])),
        ((2, 3), ([0, 1, 0], [2, -1, -1])),
        ((3,), slice(2)),
    ),
    errors=[([np.ones(3)], {"index": [3, 3]}, IndexOutOfBoundsError, "last_writes: index 3")],
    captures=_is_fixed,
)
def last_writes(xp, x, /, *, index):
    """Marks the writes of ``x[index] = values`` that stay: the last one to each element.

    Args:
        x: array; only its shape matters.

    Returns:
        bool Tensor of the shape of ``x[index]``.

    >>> print(gg.last_writes([1.0, 2.0, 3.0], index=[0, 1, 0]))
    [False  True  True]
    """
    try:
        writes, last = number_writes(xp, x.shape, library_index("last_writes", xp, x.shape, index))
    except IndexError as error:
        raise index_error("last_writes", x.shape, error) from error
    return writes == last


def _index_put_values(xp, g, values_shape, index):
    part = xp.getitem(g, index=index)
    if may_repeat(index):
        part = xp.where(xp.last_writes(g, index=index), part, 0)
    extra = max(len(values_shape) - part.ndim, 0)  # NumPy allows extra ones in front
    return xp.reshape(xp.sum_to(part, values_shape[extra:]), values_shape)


def _index_put_reference(x, values, index):
    out = np.array(x)
    out[index] = values
    return out


_WRITES = shaped(
    ([(4,), ()], {"index": 1}), ([(2, 3), (2,)], {"index": (slice(None), 1)}),
    ([(4,), (3,)], {"index": [0, 2, 0]}), ([(3, 2), (2,)], {"index": np.array([1, -2, 1])}),
    ([(3,), (1,)], {"index": np.array([True, False, True])}), ([(2, 3), (1, 1, 3)], {"index": 0}),
    ([(2, 3), (3,)], {"index": ([0, 1, 0], [2, -1, -1])}), ([(), ()], {"index": ()}),
    ([(2, 2), (3,)], {"index": np.array([[True, False], [True, True]])}),
)  # fmt: skip


@op(
    vjp=[lambda xp, g, index: xp.index_fill(g, index=index), _index_put_values],
    native_half=True,
    cpu=_write_over("index_put"),
    overwrites=0,
    batch=write_batch("index_put"),
    c_call=moves_in_c.index_put,
    kinds="fc",
    ref=_index_put_reference,
    samples=_WRITES,
    errors=[
        ([np.ones(3), np.ones(2)], {"index": slice(3)}, ShapeError, "index_put.*broadcast"),
        ([np.ones(3), 1.0], {"index": 3}, IndexOutOfBoundsError, "index_put: index 3"),
        ([np.ones(3), np.ones(1) * 1j], {"index": [0]}, DTypeError, "index_put: a complex128"),
    ],
    captures=_is_fixed,
)
def index_put(xp, x, values, /, *, index):
    """A copy of `x` with an array of values written at an index.

    Of several writes to an element the last stays.

    Args:
        values: array that broadcasts to the shape of ``x[index]``; not float for an integer `x`,
            not complex for a real one.

    >>> print(gg.index_put([1.0, 1.0, 1.0], [2.0, 3.0, 4.0], index=[0, 2, 0]))
    [4. 1. 3.]
    """
    out = xp.lib.array(x, order="C")
    assign("index_put", xp, out, values, index)
    return out


@op(
    native_half=True,
    kinds="fc",
    ref=_index_put_reference,
    samples=_WRITES,
    errors=[
        ([np.ones(3), np.ones(2)], {"index": slice(3)}, ShapeError, "broadcast"),
        ([np.ones(3), 1.0], {"index": 3}, IndexOutOfBoundsError, "index 3 is out of bounds"),
        ([np.arange(3), 0.5], {"index": 0}, DTypeError, "int64 array"),
    ],
)
def setitem(xp, x, value, /, *, index):
    """A copy of `x` with a value written at an index: `x` after ``x[index] = value``.

    Args:
        value: array that broadcasts to the shape of ``x[index]``, or a number; not float for an
            integer `x`, not complex for a real one. Of several writes to an element the last
            stays, and it alone gets a gradient.

    >>> print(gg.setitem([1.0, 2.0, 3.0], 0.0, index=slice(2)))
    [0. 0. 3.]
    """
    if type(value) in SCALARS:  # cast once, to the dtype of x: 0.1 would change in float32
        return xp.index_fill(x, index=index, value=value)
    return xp.index_put(x, value, index=index)
