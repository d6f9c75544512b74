"""NumPy's functions that select elements by conditions, or find them."""

import math

import numpy as np

from gpugrad.autodiff.batched import batch_axis_of
from gpugrad.core.backend import TENSOR
from gpugrad.core.samples import calls, uniform
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError, saying_where
from gpugrad.ops._axes import arrays_of, flatten_or_check_axis, index_along
from gpugrad.ops.arrays.creation import asarray
from gpugrad.ops.arrays.shape import NOT_NUMBERS
from gpugrad.registry.record import op


def refuse_vmap(name, way_out):
    """The vmap rule of an op whose result's length depends on the values: it raises."""

    def refuse(xp, batched, *arrays, **params):
        raise ArgumentError(
            f"{name}: the length of the result depends on the values and would differ between "
            f"examples, so vmap cannot run it. {way_out}"
        )

    return refuse


_MASK_INSTEAD = "Use gg.where(condition, x, 0) instead."


def _compress_vjp(xp, g, condition, x_shape, axis):
    shape = (math.prod(x_shape),) if axis is None else tuple(x_shape)
    axis = 0 if axis is None else axis % len(x_shape)
    rest = shape[axis] - condition.shape[0]
    mask = xp.pad(xp.astype(condition != 0, "int8"), (0, rest)) != 0
    return xp.reshape(xp.scatter_at(g, index=index_along(axis, mask), shape=shape), x_shape)


def _compress_batch(xp, batched, condition, x, *, axis):
    if batched[0]:
        refuse_vmap("compress", _MASK_INSTEAD)(xp, batched)
    if axis is None:
        x, axis = xp.reshape(x, (x.shape[0], math.prod(x.shape[1:]))), 0
    return xp.compress(condition, x, batch_axis_of(axis, x.ndim - 1))


_CHOICE = np.array([True, False, True])


@op(
    vjp=[None, _compress_vjp],
    linear="each",
    native_half=True,
    kinds="fc",
    batch=_compress_batch,
    length_by_values=True,
    samples=calls(
        lambda rng: [_CHOICE, uniform(rng, 3)],
        lambda rng: ([_CHOICE[:2], uniform(rng, 2, 3)], {"axis": 1}),
        lambda rng: ([np.array([0, 2]), uniform(rng, 3, 2)], {"axis": -2}),
        lambda rng: [_CHOICE, uniform(rng, 2, 2)],
    ),
    errors=[
        ([_CHOICE, np.ones(2)], {}, ShapeError, r"compress: a condition of length 3.*\(2,\)"),
        ([np.ones((2, 2)), np.ones(4)], {}, ShapeError, r"compress.*\(2, 2\)"),
        ([_CHOICE, np.ones(3)], {"axis": 1}, AxisError, "compress: axis 1"),
    ],
)
def compress(xp, condition, x, /, axis=None):
    """Slices along an axis for which a condition holds.

    Under `vmap` the condition must be the same for all examples.

    Args:
        condition: one-dimensional array, at most as long as the axis; not 0 is true.
        x: array of at least one axis.
        axis: int; None selects elements of the flattened array.

    Returns:
        Tensor, whose length along the axis is the number of true elements.

    >>> print(gg.compress([True, False, True], [1.0, 2.0, 3.0]))
    [1. 3.]
    """
    x, axis = flatten_or_check_axis(xp.lib, "compress", x, axis)
    if condition.ndim != 1 or condition.shape[0] > x.shape[axis]:
        raise ShapeError(
            f"compress: a condition of length {condition.shape[0] if condition.ndim else 0} and "
            f"shape {condition.shape} for axis {axis} of the shape {x.shape}."
        )
    places = xp.lib.nonzero(condition != 0)[0]
    return xp.lib.take(x, places, axis=axis)


@op(
    kinds="fc",
    samples=calls(
        lambda rng: [_CHOICE, uniform(rng, 3)], lambda rng: [np.eye(2) > 0, uniform(rng, 2, 2)]
    ),
    errors=[([_CHOICE, np.ones(2)], {}, ShapeError, r"compress.*\(2,\)")],
)
def extract(xp, condition, x, /):
    """Elements for which a condition holds, in row-major order: ``x[condition]``.

    Under `vmap` the condition must be the same for all examples.

    Args:
        condition: array of as many elements as `x`; not 0 is true.

    Returns:
        One-dimensional Tensor, whose length depends on the values.

    >>> print(gg.extract([[True, False], [False, True]], [[1.0, 2.0], [3.0, 4.0]]))
    [1. 4.]
    """
    condition, x = arrays_of(xp, condition, x)
    return xp.compress(xp.reshape(condition, (condition.size,)), xp.reshape(x, (x.size,)))


@saying_where
def select(condlist, choicelist, default=0) -> Tensor:
    """Choose each element from the choice that belongs to the first true condition.

    Args:
        condlist: list of boolean arrays.
        choicelist: list of as many arrays or numbers; all are broadcast against each other.
        default: array or number, where no condition holds.

    Returns:
        Tensor of the broadcast shape. Elements not chosen get a gradient of exactly 0.

    Raises:
        ArgumentError: the lists differ in length, or are empty.
        DTypeError: a condition is not boolean.
        ShapeError: the shapes do not broadcast against each other.

    >>> x = gg.constant([-2.0, 0.5, 3.0])
    >>> print(gg.select([x < 0, x > 1], [-x, x * x], x))
    [2.  0.5 9. ]
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ArgumentError(
            f"select: {len(condlist)} conditions for {len(choicelist)} choices; the numbers "
            "must be equal and not 0."
        )
    out = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        condition = tensor(condition)
        if condition.dtype.kind != "b":
            raise DTypeError(f"select: conditions must be boolean, not {condition.dtype}.")
        out = TENSOR.where(condition, choice, out)
    return out


@saying_where
def piecewise(x, condlist, funclist, *args, **keywords) -> Tensor:
    """Evaluate functions piecewise, each where its condition holds.

    Each function is called on the whole of `x` and may give infinities elsewhere: elements not
    chosen get a gradient of exactly 0.

    Args:
        x: array of any shape.
        condlist: list of boolean arrays of the shape of `x`; the last true one decides.
        funclist: list of functions of a Tensor, or numbers; an extra one is for where no
            condition holds, 0 without it.
        *args, **keywords: further arguments of the functions.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentError: the number of functions is not that of the conditions, nor one more.

    >>> x = gg.constant([-4.0, 0.0, 4.0])
    >>> print(gg.piecewise(x, [x > 0], [gg.sqrt, lambda x: -x]))
    [ 4. -0.  2.]
    """
    x = tensor(x)
    conditions = condlist if isinstance(condlist, (list, tuple)) else [condlist]
    if x.ndim and conditions and isinstance(conditions[0], (bool, np.bool_)):
        conditions = [conditions]  # one condition for a vector, written as a list
    if len(funclist) - len(conditions) not in (0, 1):
        raise ArgumentError(
            f"piecewise: {len(funclist)} functions for {len(conditions)} conditions; pass one "
            "for each, or one more."
        )

    def value(part):
        return part(x, *args, **keywords) if callable(part) else part

    with np.errstate(all="ignore"):  # from elements where the function does not apply
        values = [value(part) for part in funclist]
    out = values[-1] if len(funclist) > len(conditions) else 0
    for condition, part in zip(conditions, values, strict=False):
        out = TENSOR.where(tensor(condition), part, out)
    return TENSOR.astype(TENSOR.broadcast_to(out, x.shape), x.dtype)


@op(
    name="choose",
    variadic=True,
    native_half=True,
    kinds="fc",
    ref=lambda arrays, mode="raise": np.choose(arrays[0], arrays[1:], mode=mode),
    samples=calls(
        lambda rng: [[np.array([0, 2, 1]), *(uniform(rng, 3) for _ in range(3))]],
        lambda rng: [[np.array([[0], [1]]), uniform(rng), uniform(rng, 2)]],
        lambda rng: ([[np.array([-1, 4]), uniform(rng, 2), uniform(rng, 2)]], {"mode": "wrap"}),
        lambda rng: ([[np.array([-1, 4]), uniform(rng, 2), uniform(rng, 2)]], {"mode": "clip"}),
    ),
    errors=[
        ([[np.array([0]), np.ones(1)]], {"mode": "no"}, ArgumentError, "choose.*'raise'"),
        ([[np.array([0.0]), np.ones(1)]], {}, DTypeError, "choose.*float64"),
    ],
)
def _choose(xp, arrays, /, *, mode="raise"):
    """The op behind `gg.choose`."""
    a, *choices = arrays
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}.")
    if a.dtype.kind not in "iu":
        raise DTypeError(f"choose: a must have integers, not {a.dtype}.")
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    if mode == "wrap":
        a = xp.remainder(a, len(choices))
    elif mode == "clip":
        a = xp.minimum(xp.maximum(a, 0), len(choices) - 1)
    stacked = xp.stack([xp.broadcast_to(x, shape) for x in choices], axis=0)
    a = xp.expand_dims(xp.broadcast_to(a, shape), axis=0)
    return xp.squeeze(xp.take_along_axis(stacked, a, axis=0), 0)


@saying_where
def choose(a, choices, mode="raise") -> Tensor:
    """Choose each element from one of several arrays by its number.

    Args:
        a: integers: the number of the array for each element.
        choices: list of arrays or numbers; all are broadcast against each other.
        mode: what to do with numbers out of bounds: ``"raise"`` an error (negative ones count
            from the end), ``"wrap"`` around, or ``"clip"`` to the first and last.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        IndexOutOfBoundsError: a number is out of bounds.
        ArgumentError: `mode` is none of these.
        DTypeError: `a` is not an array of integers.
        ShapeError: the shapes do not broadcast against each other.

    >>> print(gg.choose([0, 1], [[1.0, 2.0], [3.0, 4.0]]))
    [1. 4.]
    """
    if isinstance(a, (list, tuple)):  # a list beside arrays would take their dtype
        a = asarray(a, device=getattr(choices, "device", None))
    return _choose([a, *choices], mode=mode)


_SOME_ZEROS = calls(
    lambda rng: [np.array([0.0, 1.0, 0.0, 3.0])],
    lambda rng: [(uniform(rng, 2, 3) > 0) * 1.0],
    lambda rng: [np.zeros((2, 2))],
)


def _nonzero_op(forward):
    return op(
        differentiable=False,
        kinds="fi",
        samples=_SOME_ZEROS,
        batch=refuse_vmap(forward.__name__, "Use x != 0 instead."),
        length_by_values=True,
        errors=NOT_NUMBERS,
    )(forward)


@_nonzero_op
def argwhere(xp, x, /):
    """Indices of the elements that are not 0, one row each; their gradient is None.

    `vmap` cannot run it, because the length of the result depends on the values.

    Returns:
        int64 Tensor of shape (n, x.ndim).

    >>> print(gg.argwhere([[0.0, 1.0], [2.0, 0.0]]))
    [[0 1]
     [1 0]]
    """
    return xp.lib.argwhere(x)


@_nonzero_op
def flatnonzero(xp, x, /):
    """Indices of the elements that are not 0, in row-major order; their gradient is None.

    `vmap` cannot run it, because the length of the result depends on the values.

    Returns:
        One-dimensional int64 Tensor.

    >>> print(gg.flatnonzero([[0.0, 1.0], [2.0, 0.0]]))
    [1 2]
    """
    return xp.lib.flatnonzero(x)
