"""Reading and writing elements by index.

Two adjoint pairs do the work: `getitem` and `scatter_at` for an index that is metadata (slices,
ints, masks, arrays), `take_along_axis` and `scatter_along_axis` for one that is data. Places
named twice get the sum of their gradients.
"""

from __future__ import annotations

import math

import numpy as np

from gpugrad.backend import ARRAYS, NUMPY, SCALARS, device_of
from gpugrad.determinism import deterministic
from gpugrad.errors import (
    DeviceError,
    DTypeError,
    IndexOutOfBoundsError,
    ShapeError,
)
from gpugrad.kernels import scatter
from gpugrad.op import op
from gpugrad.ops.indexing_under_vmap import array_of, getitem_batch, scatter_at_batch, written
from gpugrad.samples import shaped
from gpugrad.tensor import Tensor, wrap

_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


# ---- what an index may be ----------------------------------------------------------------


def frozen_index(index):
    """An index of which nobody else can change the arrays: what a tape may keep.

    >>> from gpugrad.ops.indexing import frozen_index
    >>> frozen_index(([0, 1], slice(2)))
    (array([0, 1]), slice(None, 2, None))
    """
    if type(index) in _BASIC:
        return index
    if isinstance(index, Tensor):  # ``index[i] = v`` gives that Tensor, not this, another array
        return wrap(index._data)
    if type(index) is tuple:
        return tuple(frozen_index(part) for part in index)
    if isinstance(index, list):
        index = array_of(index)
    return index.copy() if type(index) in ARRAYS else index


def as_int64(indices):
    """Integers as int64. A uint64 beyond it stays beyond every axis: it does not turn negative."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(2**63 - 1))
    return indices.astype(np.int64, copy=False)


def _array_entry(name, xp, part):
    """One entry of an index as an int, a bool, or an array of the library of `xp`."""
    if isinstance(part, np.integer):
        return int(part)
    if isinstance(part, (bool, np.bool_)):
        return bool(part)
    if isinstance(part, Tensor):
        made = part._data
        if (type(made) is np.ndarray) is not (xp is NUMPY):
            raise DeviceError(
                f"{name}: the index is on {device_of(made)}, the array is not. Move one with "
                "x.to_device(device)."
            )
    else:
        made = array_of(part) if isinstance(part, (list, tuple)) else part
        made = made if type(made) in ARRAYS else np.asarray(made)
    if made.dtype.kind not in "biu":
        raise DTypeError(
            f"{name}: an index is made of integers, slices or booleans, not of {made.dtype} "
            f"({part!r:.60}). Convert it with gg.astype(index, 'int64')."
        )
    made = as_int64(made) if made.dtype == np.uint64 else made
    # row-major, so that of several writes to one place it is the last that stays
    return np.asarray(made, order="C") if xp is NUMPY else xp.lib.asarray(made)


def _bare(name, xp, shape, index, checked=True):
    """`index` as the array library takes it: Tensors and lists in it are bare arrays."""
    if type(index) in _BASIC:
        return index
    if type(index) is not tuple:
        index = (index,)
    if _BASIC.issuperset(map(type, index)):
        return index
    made = tuple(p if type(p) in _BASIC else _array_entry(name, xp, p) for p in index)
    if checked and xp is not NUMPY:  # NumPy checks by itself, CuPy wraps around
        _check_bounds(name, made, shape)
    return made


def _uses(part):
    """How many axes of the array an entry of an index stands for."""
    if part is None or part is Ellipsis or type(part) is bool:
        return 0
    return part.ndim if type(part) in ARRAYS and part.dtype.kind == "b" else 1


def _check_bounds(name, index, shape):
    rest = len(shape) - sum(map(_uses, index))
    axis = 0
    for part in index:
        if type(part) in ARRAYS and part.dtype.kind != "b" and axis < len(shape):
            check_range(name, part, shape[axis], axis)
        axis += rest if part is Ellipsis else _uses(part)


def check_range(name, indices, n, axis, first=None):
    """IndexOutOfBoundsError if an integer index is not from `first` (None: -n) to n - 1."""
    first = -n if first is None else first
    if not indices.size:
        return
    low, high = int(indices.min()), int(indices.max())
    if low < first or high >= n:
        raise IndexOutOfBoundsError(
            f"{name}: index {low if low < first else high} is out of bounds for axis {axis}, whose "
            f"length is {n}. Indices run from {first} to {n - 1}."
        )


def explained(name, shape, error):
    """What NumPy's or CuPy's IndexError means."""
    if isinstance(error, IndexOutOfBoundsError):
        return error
    said = str(error).rstrip(".")
    kind = ShapeError if "broadcast" in said else IndexOutOfBoundsError
    return kind(f"{name}: {said}. The shape is {tuple(shape)}.")


def _may_repeat(index):
    """Whether an index can name a place twice: only arrays of integers can."""
    parts = index if type(index) is tuple else (index,)
    if _BASIC.issuperset(map(type, parts)):
        return False
    entries = (p._data if isinstance(p, Tensor) else p for p in parts)
    return any(
        isinstance(p, (list, tuple)) or (type(p) in ARRAYS and p.dtype.kind in "iu" and p.size > 1)
        for p in entries
    )


# ---- adding and putting in place ---------------------------------------------------------


def add_at(name, xp, out, index, values):
    """Add to elements of a new row-major array in place; those named twice are added to twice."""
    try:
        if not _may_repeat(index):
            out[index] += values
        elif xp is NUMPY and _is_rows(index, out.ndim):
            _add_rows(name, out, index, values)
        elif xp is NUMPY or not deterministic():
            xp.lib.add.at(out, index, values)
        else:
            _add_in_order(xp, out, index, values)
    except IndexError as error:
        raise explained(name, out.shape, error) from error


def _is_rows(index, ndim):
    """Whether an index is made of integer arrays only."""
    return len(index) <= ndim and all(type(p) is np.ndarray and p.dtype.kind != "b" for p in index)


def flat_places(index, shape):
    """Where integer arrays, one for each of the first axes, point to: counted in row-major order.

    np.ravel_multi_index takes ten times as long.
    """
    places = 0
    for part, n in zip(index, shape, strict=False):
        counted = np.where(part < 0, part + n, part) if part.size and part.min() < 0 else part
        places = places * n + counted
    return places


def _add_rows(name, out, index, values):
    """`add_at` for NumPy and integer arrays, on flat arrays.

    np.add.at is several times as fast there: 5000 rows of 128 floats take 3.4 ms, not 17.
    """
    for axis, part in enumerate(index):
        check_range(name, part, out.shape[axis], axis)
    shape = np.broadcast_shapes(*(p.shape for p in index)) + out.shape[len(index) :]
    values = np.broadcast_to(values, shape)
    if not values.size:
        return
    rows = flat_places([as_int64(p) for p in index], out.shape)
    width = math.prod(out.shape[len(index) :])
    places = rows.reshape(-1, 1) * width + np.arange(width)
    np.add.at(out.reshape(-1), places.reshape(-1), values.reshape(-1))


def _add_in_order(xp, out, index, values):
    """`add_at` by the number of each place, for the kernel that adds in one order."""
    places = xp.lib.arange(out.size).reshape(out.shape)[index]
    values = xp.lib.broadcast_to(values, places.shape).reshape(-1)
    added = xp.scatter_rows(values, places.reshape(-1), shape=(out.size,))
    out += added.reshape(out.shape)


def _last_writes(xp, shape, index):
    """The writes of ``x[index] = v``, numbered in row-major order, and for each the one that stays.

    That is the last at its place, as in NumPy; CuPy alone would leave it to chance.
    """
    lib = xp.lib
    region = lib.broadcast_to(lib.zeros((), dtype="uint64"), shape)[index].shape
    writes = lib.arange(math.prod(region), dtype="uint64").reshape(region)
    last = lib.zeros(shape, dtype="uint64")  # the one integer of 64 bits that CuPy's maximum.at has
    if xp is NUMPY:
        last[index] = writes
    else:
        lib.maximum.at(last, index, writes)
    return writes, last[index]


def _fitting(name, x, values):
    """`values` in the dtype of `x`; DTypeError if that would lose a fraction or a phase."""
    scalar = type(values) in SCALARS
    dtype = np.dtype(type(values)) if scalar else values.dtype
    given, room = ("f" if d.kind == "V" else d.kind for d in (dtype, x.dtype))
    if given in "fc" and "buifc".index(given) > "buifc".index(room):
        raise DTypeError(
            f"{name}: a {dtype} value does not go into a {x.dtype} array. Convert one of them "
            "with gg.astype(x, dtype)."
        )
    return values if scalar else values.astype(x.dtype, copy=False)


def assign(name, xp, out, values, index):
    """``out[index] = values`` in place: checked as ops are; of several writes the last stays."""
    values = _fitting(name, out, values)
    try:
        index = _bare(name, xp, out.shape, index)
        if type(values) not in SCALARS and _may_repeat(index):
            if xp is NUMPY:
                values = np.asarray(values, order="C")
            else:
                _, last = _last_writes(xp, out.shape, index)
                values = xp.lib.broadcast_to(values, last.shape).reshape(-1)[last.astype("int64")]
        out[index] = values
    except IndexError as error:
        raise explained(name, out.shape, error) from error


# ---- an index that is metadata -----------------------------------------------------------


def _index_samples(*cases):
    """Arrays of a shape, read at an index."""
    return shaped(*(([shape], {"index": index}) for shape, index in cases))


@op(
    vjp=[lambda xp, g, x_shape, index: xp.scatter_at(g, index=index, shape=x_shape)],
    linear=True, keeps_half=True, batch=getitem_batch, kinds="fc", ref=lambda x, index: x[index],
    samples=_index_samples(
        ((4,), 1), ((2, 3), -1), ((2, 3), (slice(None), 1)), ((2, 3, 2), (Ellipsis, 0)),
        ((5,), slice(None, None, -2)), ((2, 3), (None, slice(0, 1))), ((), ()), ((0, 2), slice(1)),
        ((2, 3), (1, 2)), ((4,), [0, 2, 0]), ((3, 2), np.array([[0, -1], [1, 0]])),
        ((2, 3), ([0, 1, 1], [2, -1, 2])), ((2, 3), (slice(None), np.array([1, 1]))),
        ((2, 3, 2), (np.array([0, 1]), slice(None), np.array([1, 0]))),
        ((4,), np.array([True, False, True, False])),
        ((2, 2), np.array([[True, False], [True, True]])), ((3,), np.array([], dtype=int)),
    ),
    errors=[
        ([np.ones(3)], {"index": 3}, IndexOutOfBoundsError, r"getitem: index 3.*\(3,\)"),
        ([np.ones(3)], {"index": [0, -4]}, IndexOutOfBoundsError, "getitem: index -4"),
        ([np.ones(3)], {"index": (0, 0)}, IndexOutOfBoundsError, "getitem: too many indices"),
        ([np.ones(3)], {"index": np.array([True])}, IndexOutOfBoundsError, "boolean"),
        ([np.ones(3)], {"index": np.array([0.5])}, DTypeError, "float64.*astype"),
        ([np.ones(3)], {"index": 1.0}, DTypeError, "integers, slices or booleans"),
    ],
)  # fmt: skip
def getitem(xp, x, /, *, index):
    """Elements of an array: what ``x[index]`` is.

    Args:
        x: array, of any shape.
        index: what NumPy takes: ints, slices, None, ``...``, arrays or lists of integers, masks,
            or a tuple of them. Tensors may be among them.

    Returns:
        Tensor of the shape that NumPy gives.

    Raises:
        IndexOutOfBoundsError: an index beyond the end, too many of them, or a mask of another
            length.
        DTypeError: an index that is neither integer nor boolean.
        DeviceError: an index on another device.

    >>> import gpugrad as gg
    >>> print(gg.getitem([1.0, 2.0, 3.0], index=[0, 2]))
    [1. 3.]
    """
    try:
        part = x[_bare("getitem", xp, x.shape, index)]
    except IndexError as error:
        raise explained("getitem", x.shape, error) from error
    return part if type(part) in ARRAYS else xp.lib.asarray(part)


def _scatter_at_reference(g, index, shape):
    out = np.zeros(shape, g.dtype)
    np.add.at(out, index, g)
    return out


def _scatter_at_kernel(xp, g, *, index, shape):
    bare = _bare("scatter_at", xp, shape, index, checked=False)
    return scatter.scatter_at(xp, g, index=bare, shape=shape)


@op(
    vjp=[lambda xp, g, index: xp.getitem(g, index=index)],
    linear=True, batch=scatter_at_batch, kinds="fc", ref=_scatter_at_reference,
    cuda=_scatter_at_kernel,
    samples=shaped(
        ([()], {"index": 1, "shape": (3,)}), ([(2,)], {"index": (slice(None), 1), "shape": (2, 3)}),
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
)  # fmt: skip
def scatter_at(xp, g, /, *, index, shape):
    """Add elements into an array of zeros at an index; the adjoint of `getitem`.

    Args:
        g: array of the shape of ``zeros(shape)[index]``.
        index: as for `getitem`; what is named twice gets the sum.
        shape: of the result.

    Returns:
        Tensor of that shape.

    Raises:
        ShapeError: the elements do not fit the index.
        IndexOutOfBoundsError, DTypeError, DeviceError: as for `getitem`.

    >>> import gpugrad as gg
    >>> print(gg.scatter_at([1.0, 2.0, 4.0], index=[0, 2, 0], shape=(3,)))
    [5. 0. 2.]
    """
    out = xp.lib.zeros(shape, dtype=g.dtype)
    try:
        index = _bare("scatter_at", xp, out.shape, index)
        if _may_repeat(index):
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
    batch=written("index_add"), kinds="fc", ref=_index_add_reference,
    samples=shaped(
        ([(4,), ()], {"index": 1}), ([(2, 3), (2,)], {"index": (slice(None), 1)}),
        ([(4,), (3,)], {"index": [0, 2, 0]}), ([(3, 2), (2,)], {"index": np.array([1, -2])}),
        ([(3,), (1,)], {"index": np.array([True, False, True])}),
    ),
    errors=[
        ([np.ones(3), np.ones(2)], {"index": [0, 1, 2]}, ShapeError, "index_add.*broadcast"),
        ([np.ones(3), 1.0], {"index": [3]}, IndexOutOfBoundsError, "index_add: index 3"),
        ([np.ones(3), np.ones(1) * 1j], {"index": [0]}, DTypeError, "index_add: a complex128"),
    ],
)  # fmt: skip
def index_add(xp, x, values, /, *, index):
    """`x` with values added at an index; what the index names twice is added to twice.

    Args:
        x: array, of any shape.
        values: array that broadcasts to the shape of ``x[index]``.
        index: as for `getitem`.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ShapeError: the values do not fit the index.
        DTypeError: values whose fraction or imaginary part would be lost.
        IndexOutOfBoundsError, DeviceError: as for `getitem`.

    >>> import gpugrad as gg
    >>> print(gg.index_add([1.0, 1.0, 1.0], [1.0, 2.0, 4.0], index=[0, 2, 0]))
    [6. 1. 3.]
    """
    out, values = xp.lib.array(x, order="C"), _fitting("index_add", x, values)
    add_at("index_add", xp, out, _bare("index_add", xp, x.shape, index), values)
    return out


@op(
    vjp=[lambda xp, g, index: xp.index_fill(g, index=index)],
    jvp=[lambda xp, t, index: xp.index_fill(t, index=index)],
    keeps_half=True, batch=written("index_fill"), kinds="fc",
    ref=lambda x, index, value=0: _index_put_reference(x, value, index),
    samples=_index_samples(
        ((4,), 1), ((2, 3), (slice(None), 1)), ((4,), [0, 2, 0]),
        ((3,), np.array([True, False, True])),
    ),
    errors=[
        ([np.ones(3)], {"index": 3}, IndexOutOfBoundsError, "index_fill: index 3"),
        ([np.ones(3)], {"index": 0, "value": 1j}, DTypeError, "index_fill: a complex"),
    ],
)  # fmt: skip
def index_fill(xp, x, /, *, index, value=0):
    """`x` with one number put at an index.

    Args:
        x: array, of any shape.
        index: as for `getitem`.
        value: a Python number.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        DTypeError: a number whose fraction or imaginary part would be lost.
        IndexOutOfBoundsError, DeviceError: as for `getitem`.

    >>> import gpugrad as gg
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
    differentiable=False, keeps_half=True, batch=written("last_writes"),
    kinds="f", ref=_last_writes_reference,
    samples=_index_samples(
        ((4,), [0, 2, 0]), ((3, 2), np.array([1, -2, 1])), ((2, 3), ([0, 1, 0], [2, -1, -1])),
        ((3,), slice(2)),
    ),
    errors=[([np.ones(3)], {"index": [3, 3]}, IndexOutOfBoundsError, "last_writes: index 3")],
)  # fmt: skip
def last_writes(xp, x, /, *, index):
    """Which of the writes of ``x[index] = values`` stay: of those to one place, the last.

    Args:
        x: array; only its shape matters.
        index: as for `getitem`.

    Returns:
        Boolean Tensor of the shape of ``x[index]``.

    Raises:
        IndexOutOfBoundsError, DTypeError, DeviceError: as for `getitem`.

    >>> import gpugrad as gg
    >>> print(gg.last_writes([1.0, 2.0, 3.0], index=[0, 1, 0]))
    [False  True  True]
    """
    try:
        writes, last = _last_writes(xp, x.shape, _bare("last_writes", xp, x.shape, index))
    except IndexError as error:
        raise explained("last_writes", x.shape, error) from error
    return writes == last


def _index_put_values(xp, g, values_shape, index):
    part = xp.getitem(g, index=index)
    if _may_repeat(index):
        part = xp.where(xp.last_writes(g, index=index), part, 0)
    extra = max(len(values_shape) - part.ndim, 0)  # NumPy lets a value have more ones in front
    return xp.reshape(xp.sum_to(part, values_shape[extra:]), values_shape)


def _index_put_reference(x, values, index):
    out = np.array(x)
    out[index] = values
    return out


_PUT_SAMPLES = shaped(
    ([(4,), ()], {"index": 1}), ([(2, 3), (2,)], {"index": (slice(None), 1)}),
    ([(4,), (3,)], {"index": [0, 2, 0]}), ([(3, 2), (2,)], {"index": np.array([1, -2, 1])}),
    ([(3,), (1,)], {"index": np.array([True, False, True])}), ([(2, 3), (1, 1, 3)], {"index": 0}),
    ([(2, 3), (3,)], {"index": ([0, 1, 0], [2, -1, -1])}), ([(), ()], {"index": ()}),
    ([(2, 2), (3,)], {"index": np.array([[True, False], [True, True]])}),
)  # fmt: skip


@op(
    vjp=[lambda xp, g, index: xp.index_fill(g, index=index), _index_put_values],
    keeps_half=True, batch=written("index_put"),
    kinds="fc", ref=_index_put_reference, samples=_PUT_SAMPLES,
    errors=[
        ([np.ones(3), np.ones(2)], {"index": slice(3)}, ShapeError, "index_put.*broadcast"),
        ([np.ones(3), 1.0], {"index": 3}, IndexOutOfBoundsError, "index_put: index 3"),
        ([np.ones(3), np.ones(1) * 1j], {"index": [0]}, DTypeError, "index_put: a complex128"),
    ],
)  # fmt: skip
def index_put(xp, x, values, /, *, index):
    """`x` with an array of values put at an index; of several writes to a place the last stays.

    Args:
        x: array, of any shape.
        values: array that broadcasts to the shape of ``x[index]``.
        index: as for `getitem`.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ShapeError: the values do not fit the index.
        DTypeError: values whose fraction or imaginary part would be lost.
        IndexOutOfBoundsError, DeviceError: as for `getitem`.

    >>> import gpugrad as gg
    >>> print(gg.index_put([1.0, 1.0, 1.0], [2.0, 3.0, 4.0], index=[0, 2, 0]))
    [4. 1. 3.]
    """
    out = xp.lib.array(x, order="C")
    assign("index_put", xp, out, values, index)
    return out


@op(
    keeps_half=True, kinds="fc", ref=lambda x, value, index: _index_put_reference(x, value, index),
    samples=_PUT_SAMPLES,
    errors=[
        ([np.ones(3), np.ones(2)], {"index": slice(3)}, ShapeError, "broadcast"),
        ([np.ones(3), 1.0], {"index": 3}, IndexOutOfBoundsError, "index 3 is out of bounds"),
        ([np.arange(3), 0.5], {"index": 0}, DTypeError, "int64 array"),
    ],
)  # fmt: skip
def setitem(xp, x, value, /, *, index):
    """`x` with a value put at an index: what `x` is after ``x[index] = value``.

    Args:
        x: array, of any shape.
        value: array that broadcasts to the shape of ``x[index]``, or a number. Of several
            writes to one place the last stays, and it alone gets a gradient.
        index: as for `getitem`.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ShapeError: the value does not fit the index.
        DTypeError: a value whose fraction or imaginary part would be lost.
        IndexOutOfBoundsError, DeviceError: as for `getitem`.

    >>> import gpugrad as gg
    >>> print(gg.setitem([1.0, 2.0, 3.0], 0.0, index=slice(2)))
    [0. 0. 3.]
    """
    if type(value) in SCALARS:  # in the dtype of x: 0.1 as a float32 array would be another number
        return xp.index_fill(x, index=index, value=value)
    return xp.index_put(x, value, index=index)
