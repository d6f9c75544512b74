"""NumPy's functions that pick elements by conditions, or say where they are."""

from __future__ import annotations

import math

import numpy as np

from gpugrad.autodiff.batched import batch_axis_of
from gpugrad.core.backend import TENSOR
from gpugrad.core.samples import calls, uniform
from gpugrad.core.tensor import tensor
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError, saying_where
from gpugrad.registry.record import op


def by_values(name, way_out):
    """What `vmap` does with an op whose result is as long as the values say: it cannot."""

    def refuse(xp, batched, *arrays, **params):
        raise ArgumentError(
            f"{name}: how long its result is depends on the values, so vmap cannot run it: the "
            f"examples would differ in length. {way_out}"
        )

    return refuse


_MASK_INSTEAD = "Use gg.where(condition, x, 0) instead."

# ---- by a condition ----------------------------------------------------------------------


def _compress_vjp(xp, g, condition, x_shape, axis):
    flat = (math.prod(x_shape),) if axis is None else tuple(x_shape)
    lead = (slice(None),) * (0 if axis is None else axis % len(x_shape))
    rest = flat[len(lead)] - condition.shape[0]
    whole = xp.pad(xp.astype(condition != 0, "int8"), (0, rest)) != 0
    return xp.reshape(xp.scatter_at(g, index=(*lead, whole), shape=flat), x_shape)


def _compress_jvp(xp, t, condition, axis):
    return xp.compress(condition, t, axis)


def _compress_batch(xp, batched, condition, x, *, axis):
    if batched[0]:
        by_values("compress", _MASK_INSTEAD)(xp, batched)
    if axis is None:
        x, axis = xp.reshape(x, (x.shape[0], math.prod(x.shape[1:]))), 0
    return xp.compress(condition, x, batch_axis_of(axis, x.ndim - 1))


_CHOICE = np.array([True, False, True])


@op(
    vjp=[None, _compress_vjp], jvp=[None, _compress_jvp], keeps_half=True, kinds="fc",
    batch=_compress_batch,
    samples=calls(
        lambda rng: ([_CHOICE, uniform(rng, 3)], {}),
        lambda rng: ([_CHOICE[:2], uniform(rng, 2, 3)], {"axis": 1}),
        lambda rng: ([np.array([0, 2]), uniform(rng, 3, 2)], {"axis": -2}),
        lambda rng: ([_CHOICE, uniform(rng, 2, 2)], {}),
    ),
    errors=[
        ([_CHOICE, np.ones(2)], {}, ShapeError, r"compress: a condition of length 3.*\(2,\)"),
        ([np.ones((2, 2)), np.ones(4)], {}, ShapeError, r"compress.*\(2, 2\)"),
        ([_CHOICE, np.ones(3)], {"axis": 1}, AxisError, "compress: axis 1"),
    ],
)  # fmt: skip
def compress(xp, condition, x, /, axis=None):
    """Slices along an axis for which a condition holds. How many depends on the values.

    Args:
        condition: array of one axis, not longer than that of `x`; not 0 is true.
        x: array, of any shape but ().
        axis: along which; None takes the elements in row-major order.

    Returns:
        Tensor, as long along the axis as the condition is true.

    Raises:
        ShapeError: the condition is longer than the axis, or has not one axis.
        AxisError: an axis that `x` does not have.
        ArgumentError: inside `vmap`, where each example has a condition of its own.

    >>> print(gg.compress([True, False, True], [1.0, 2.0, 3.0]))
    [1. 3.]
    """
    if axis is None:
        x, axis = x.reshape(-1), 0
    elif not -x.ndim <= axis < x.ndim:
        raise AxisError(f"compress: axis {axis} is out of bounds for the shape {x.shape}.")
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
        lambda rng: ([_CHOICE, uniform(rng, 3)], {}),
        lambda rng: ([np.eye(2) > 0, uniform(rng, 2, 2)], {}),
    ),
    errors=[([_CHOICE, np.ones(2)], {}, ShapeError, r"compress.*\(2,\)")],
)  # fmt: skip
def extract(xp, condition, x, /):
    """Elements for which a condition holds, in row-major order: ``x[condition]``.

    Args:
        condition: array of as many elements as `x`; not 0 is true.
        x: array, of any shape.

    Returns:
        Tensor of one axis. How long it is depends on the values.

    Raises:
        ShapeError: the condition has more elements than `x`.
        ArgumentError: inside `vmap`, where each example has a condition of its own.

    >>> print(gg.extract([[True, False], [False, True]], [[1.0, 2.0], [3.0, 4.0]]))
    [1. 4.]
    """
    return xp.compress(xp.reshape(condition, (condition.size,)), xp.reshape(x, (x.size,)))


@saying_where
def select(condlist, choicelist, default=0):
    """Of several choices, at each place that of the first condition that holds.

    Args:
        condlist: list of boolean arrays.
        choicelist: list of as many arrays or numbers; all are broadcast against each other.
        default: array or number, where no condition holds.

    Returns:
        Tensor of the broadcast shape. What was not chosen gets a gradient of exactly 0.

    Raises:
        ArgumentError: the lists are not equally long, or empty.
        DTypeError: a condition that is not boolean.
        ShapeError: shapes that do not go together.

    >>> x = gg.constant([-2.0, 0.5, 3.0])
    >>> print(gg.select([x < 0, x > 1], [-x, x * x], x))
    [2.  0.5 9. ]
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ArgumentError(
            f"select: {len(condlist)} conditions for {len(choicelist)} choices; as many are "
            "needed, and at least one."
        )
    out = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        condition = tensor(condition)
        if condition.dtype.kind != "b":
            raise DTypeError(f"select: a condition is boolean, not {condition.dtype}.")
        out = TENSOR.where(condition, choice, out)
    return out


def piecewise(x, condlist, funclist, *args, **keywords):
    """Apply functions to the parts of an array, each where its condition holds.

    Each function sees the whole of `x`, with 0 or an infinity where it pleases: what is not
    chosen gets a gradient of exactly 0.

    Args:
        x: array, of any shape.
        condlist: list of boolean arrays of the shape of `x`; the last that holds decides.
        funclist: list of functions of a Tensor, or numbers; one more than conditions is for
            where none holds, else that is 0.
        *args, **keywords: further arguments of the functions.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentError: there are neither as many functions as conditions nor one more.

    >>> x = gg.constant([-4.0, 0.0, 4.0])
    >>> print(gg.piecewise(x, [x > 0], [gg.sqrt, lambda x: -x]))
    [ 4. -0.  2.]
    """
    x = tensor(x)
    conditions = condlist if isinstance(condlist, (list, tuple)) else [condlist]
    if conditions and isinstance(conditions[0], (bool, np.bool_)):
        conditions = [conditions]  # one condition for a vector, written as a list
    if len(funclist) - len(conditions) not in (0, 1):
        raise ArgumentError(
            f"piecewise: {len(funclist)} functions for {len(conditions)} conditions; as many are "
            "needed, or one more."
        )

    def value(part):
        return part(x, *args, **keywords) if callable(part) else part

    with np.errstate(all="ignore"):  # of the places where they are not meant
        values = [value(part) for part in funclist]
    out = values[-1] if len(funclist) > len(conditions) else 0
    for condition, part in zip(conditions, values, strict=False):
        out = TENSOR.where(tensor(condition), part, out)
    return TENSOR.astype(TENSOR.broadcast_to(out, x.shape), x.dtype)


def _choose_ref(arrays, mode="raise"):
    return np.choose(arrays[0], arrays[1:], mode=mode)


@op(
    name="choose", variadic=True, keeps_half=True, kinds="fc", ref=_choose_ref,
    samples=calls(
        lambda rng: ([[np.array([0, 2, 1]), *(uniform(rng, 3) for _ in range(3))]], {}),
        lambda rng: ([[np.array([[0], [1]]), uniform(rng), uniform(rng, 2)]], {}),
        lambda rng: ([[np.array([-1, 4]), uniform(rng, 2), uniform(rng, 2)]], {"mode": "wrap"}),
        lambda rng: ([[np.array([-1, 4]), uniform(rng, 2), uniform(rng, 2)]], {"mode": "clip"}),
    ),
    errors=[
        ([[np.array([0]), np.ones(1)]], {"mode": "no"}, ArgumentError, "choose.*'raise'"),
        ([[np.array([0.0]), np.ones(1)]], {}, DTypeError, "choose.*float64"),
    ],
)  # fmt: skip
def _choose(xp, arrays, /, *, mode="raise"):
    """Pick each element from one of several arrays: the op behind `choose`.

    Args:
        arrays: list of an array of integers, and the arrays to choose from.
        mode: as for `choose`.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        IndexOutOfBoundsError: there is no choice of that number.
        ArgumentError: another mode.
        DTypeError: numbers of choices that are no integers.

    >>> print(gg.choose([0, 1], [[1.0, 2.0], [3.0, 4.0]]))
    [1. 4.]
    """
    a, *choices = arrays
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"choose: no mode {mode!r}; 'raise', 'wrap' or 'clip'.")
    if a.dtype.kind not in "iu":
        raise DTypeError(f"choose: the choices are numbered by integers, not by {a.dtype}.")
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    if mode == "wrap":
        a = xp.remainder(a, len(choices))
    elif mode == "clip":
        a = xp.minimum(xp.maximum(a, 0), len(choices) - 1)
    stacked = xp.stack([xp.broadcast_to(x, shape) for x in choices], axis=0)
    a = xp.expand_dims(xp.broadcast_to(a, shape), axis=0)
    return xp.squeeze(xp.take_along_axis(stacked, a, axis=0), 0)


@saying_where
def choose(a, choices, mode="raise"):
    """Pick each element from one of several arrays.

    Args:
        a: integers: the number of the choice at each place.
        choices: list of arrays or numbers; all are broadcast against each other.
        mode: what becomes of numbers beyond the choices: ``"raise"`` an error (negative ones
            count from the end), ``"wrap"`` around, or ``"clip"`` to the first and last.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        IndexOutOfBoundsError: there is no choice of that number.
        ArgumentError: another mode.
        DTypeError: numbers of choices that are no integers.
        ShapeError: shapes that do not go together.

    >>> print(gg.choose([0, 1], [[1.0, 2.0], [3.0, 4.0]]))
    [1. 4.]
    """
    return _choose([a, *choices], mode=mode)


# ---- where elements are ------------------------------------------------------------------


def _some_zeros(rng):
    yield [np.array([0.0, 1.0, 0.0, 3.0])], {}
    yield [(uniform(rng, 2, 3) > 0) * 1.0], {}
    yield [np.zeros((2, 2))], {}


@op(
    differentiable=False, kinds="fi", samples=_some_zeros,
    batch=by_values("argwhere", "Use x != 0 instead."),
    errors=[(["text"], {}, DTypeError, "number")],
)  # fmt: skip
def argwhere(xp, x, /):
    """Indices of the elements that are not 0, one row each. How many depends on the values.

    Args:
        x: array, of any shape.

    Returns:
        int64 Tensor of shape (how many there are, x.ndim). It has no gradient.

    Raises:
        ArgumentError: inside `vmap`, where each example has values of its own.

    >>> print(gg.argwhere([[0.0, 1.0], [2.0, 0.0]]))
    [[0 1]
     [1 0]]
    """
    return xp.lib.argwhere(x)


@op(
    differentiable=False, kinds="fi", samples=_some_zeros,
    batch=by_values("flatnonzero", "Use x != 0 instead."),
    errors=[(["text"], {}, DTypeError, "number")],
)  # fmt: skip
def flatnonzero(xp, x, /):
    """Indices, in row-major order, of the elements that are not 0.

    Args:
        x: array, of any shape.

    Returns:
        int64 Tensor of one axis. How long it is depends on the values; it has no gradient.

    Raises:
        ArgumentError: inside `vmap`, where each example has values of its own.

    >>> print(gg.flatnonzero([[0.0, 1.0], [2.0, 0.0]]))
    [1 2]
    """
    return xp.lib.flatnonzero(x)
