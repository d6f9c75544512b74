"""Rounding, comparison, selection, logic and bits: mostly ops without a gradient."""

from __future__ import annotations

import numpy as np

from gpugrad.core.samples import calls, integers, shaped, uniform
from gpugrad.errors import DTypeError, ShapeError
from gpugrad.registry.record import elementwise, op

# ---- rounding ----------------------------------------------------------------------------

floor = elementwise(
    "floor(x)",
    differentiable=False,
    kinds="fi",
    doc="Largest whole number not above `x`. Its gradient is None.",
    example=("[1.5, -1.5]", "[ 1. -2.]"),
)

ceil = elementwise(
    "ceil(x)",
    differentiable=False,
    kinds="fi",
    doc="Smallest whole number not below `x`. Its gradient is None.",
    example=("[1.5, -1.5]", "[ 2. -1.]"),
)

trunc = elementwise(
    "trunc(x)",
    differentiable=False,
    kinds="fi",
    doc="`x` without its fraction. Its gradient is None.",
    example=("[1.5, -1.5]", "[ 1. -1.]"),
)


def _round_batch(xp, batched, x, *, decimals):
    return xp.round(x, decimals)


@op(
    name="round",
    differentiable=False,
    kinds="fci",
    batch=_round_batch,
    samples=shaped([(3,)], [()], ([(2, 3)], {"decimals": 1}), [(0, 2)]),
    errors=[(["text"], {}, DTypeError, "number")],
)
def round_(xp, x, /, decimals=0):
    """Nearest whole number, halves to the even one. Its gradient is None.

    Args:
        decimals: how many places to keep behind the point; before it if negative.

    Returns:
        Tensor of the shape and dtype of `x`.

    >>> print(gg.round([0.5, 1.5, -1.2]))
    [ 0.  2. -1.]
    """
    return xp.lib.round(x, decimals)


# ---- comparison and selection ------------------------------------------------------------

equal = elementwise(
    "equal(x, y)",
    differentiable=False,
    kinds="fci",
    doc="Whether `x` equals `y`, elementwise.",
    example=("[1.0, 2.0], 2.0", "[False  True]"),
)

not_equal = elementwise(
    "not_equal(x, y)",
    differentiable=False,
    kinds="fci",
    doc="Whether `x` differs from `y`, elementwise.",
    example=("[1.0, 2.0], 2.0", "[ True False]"),
)

less = elementwise(
    "less(x, y)",
    differentiable=False,
    kinds="fi",
    doc="Whether `x` is below `y`, elementwise.",
    example=("[1.0, 2.0], 2.0", "[ True False]"),
)

less_equal = elementwise(
    "less_equal(x, y)",
    differentiable=False,
    kinds="fi",
    doc="Whether `x` is not above `y`, elementwise.",
    example=("[1.0, 2.0], 2.0", "[ True  True]"),
)

greater = elementwise(
    "greater(x, y)",
    differentiable=False,
    kinds="fi",
    doc="Whether `x` is above `y`, elementwise.",
    example=("[1.0, 2.0], 2.0", "[False False]"),
)

greater_equal = elementwise(
    "greater_equal(x, y)",
    differentiable=False,
    kinds="fi",
    doc="Whether `x` is not below `y`, elementwise.",
    example=("[1.0, 2.0], 2.0", "[False  True]"),
)

maximum = elementwise(
    "maximum(x, y)",
    d=[lambda xp, x, y: x >= y, lambda xp, x, y: xp.logical_not(x >= y)],
    kinds="fci",
    doc="The larger of two. Of equal ones the first gets the gradient, as in TensorFlow.",
    example=("[1.0, 3.0], 2.0", "[2. 3.]"),
)

minimum = elementwise(
    "minimum(x, y)",
    d=[lambda xp, x, y: x <= y, lambda xp, x, y: xp.logical_not(x <= y)],
    kinds="fci",
    doc="The smaller of two. Of equal ones the first gets the gradient, as in TensorFlow.",
    example=("[1.0, 3.0], 2.0", "[1. 2.]"),
)


def _where_samples(rng):
    for shapes in ([(3,)] * 3, [()] * 3, [(2, 1), (1, 3), (2, 3)], [(2, 3), (), (3,)]):
        cond, x, y = (uniform(rng, *s) for s in shapes)
        yield [cond > 0, x, y], {}


_BITS = {"e": np.int16, "f": np.int32, "d": np.int64, "F": np.int64}
"""Integers as wide as a floating point number, by the letter of its dtype."""


def _bits(x):
    """The bits of an array of floating point numbers as integers; None if it is none."""
    if type(x) is not np.ndarray or x.dtype.char not in _BITS or not x.ndim:
        return None
    return x.view(_BITS[x.dtype.char])


def _where(xp, condition, x, y):
    """NumPy's where, by a product with 0 or 1: without branches, in a sixth to a third of the time.

    It is one of integers, of the same bits: the 0 meets no infinity, and nothing is rounded.
    """
    if type(condition) is np.ndarray and condition.dtype == bool:
        p, q = _bits(x), _bits(y)
        if p is not None and type(y) is int and y == 0:
            return (p * condition.view(np.int8)).view(x.dtype)
        if q is not None and type(x) is int and x == 0:
            return (q * (~condition).view(np.int8)).view(y.dtype)
        if p is not None and q is not None and x.dtype == y.dtype:
            chosen = (p - q) * condition.view(np.int8)
            chosen += q
            return chosen.view(x.dtype)
    return xp.lib.where(condition, x, y)


where = elementwise(
    "where(condition, x, y)",
    kinds="fc",
    samples=_where_samples,
    forward=_where,
    ref="numpy.where",
    vjp=[
        None,
        lambda xp, g, condition: xp.where(condition, g, 0),
        lambda xp, g, condition: xp.where(condition, 0, g),
    ],
    jvp=[
        None,
        lambda xp, t, condition: xp.where(condition, t, 0),
        lambda xp, t, condition: xp.where(condition, 0, t),
    ],
    errors=[([np.ones(2) > 0, 1.0, np.ones(3)], {}, ShapeError, "where")],
    doc=(
        "`x` where the condition holds, else `y`. The branch not taken gets a gradient of "
        "exactly 0, even where its derivative is infinite."
    ),
    example=("[True, False], 1.0, 2.0", "[1. 2.]"),
)

# ---- logic and bits ----------------------------------------------------------------------

logical_and = elementwise(
    "logical_and(x, y)",
    differentiable=False,
    kinds="b",
    samples=integers(2, 0, 2),
    doc="Whether both are true (not zero), elementwise.",
    example=("[True, True, False], [True, False, False]", "[ True False False]"),
)

logical_or = elementwise(
    "logical_or(x, y)",
    differentiable=False,
    kinds="b",
    samples=integers(2, 0, 2),
    doc="Whether at least one is true (not zero), elementwise.",
    example=("[True, True, False], [True, False, False]", "[ True  True False]"),
)

logical_xor = elementwise(
    "logical_xor(x, y)",
    differentiable=False,
    kinds="b",
    samples=integers(2, 0, 2),
    doc="Whether exactly one is true (not zero), elementwise.",
    example=("[True, True, False], [True, False, False]", "[False  True False]"),
)

logical_not = elementwise(
    "logical_not(x)",
    differentiable=False,
    kinds="b",
    samples=integers(1, 0, 2),
    doc="Whether it is false (zero), elementwise.",
    example=("[True, False]", "[False  True]"),
)

bitwise_and = elementwise(
    "bitwise_and(x, y)",
    differentiable=False,
    kinds="i",
    samples=integers(2, 0, 8),
    doc="Bits set in both, of integers.",
    example=("[6, 5], 3", "[2 1]"),
)

bitwise_or = elementwise(
    "bitwise_or(x, y)",
    differentiable=False,
    kinds="i",
    samples=integers(2, 0, 8),
    doc="Bits set in either, of integers.",
    example=("[6, 5], 3", "[7 7]"),
)

bitwise_xor = elementwise(
    "bitwise_xor(x, y)",
    differentiable=False,
    kinds="i",
    samples=integers(2, 0, 8),
    doc="Bits set in one of the two, of integers.",
    example=("[6, 5], 3", "[5 6]"),
)

bitwise_left_shift = elementwise(
    "bitwise_left_shift(x, y)",
    differentiable=False,
    kinds="i",
    samples=integers(2, 0, 8),
    doc="`x` times 2 to the power `y`, of integers.",
    example=("[6, 5], 1", "[12 10]"),
)

bitwise_right_shift = elementwise(
    "bitwise_right_shift(x, y)",
    differentiable=False,
    kinds="i",
    samples=integers(2, 0, 8),
    doc="`x` over 2 to the power `y`, rounded down, of integers.",
    example=("[6, 5], 1", "[3 2]"),
)

bitwise_invert = elementwise(
    "bitwise_invert(x)",
    forward="bitwise_invert",
    differentiable=False,
    kinds="i",
    samples=integers(1, 0, 8),
    doc="Every bit the other way, of integers or booleans.",
    example=("[6, -1]", "[-7  0]"),
)

isfinite = elementwise(
    "isfinite(x)",
    differentiable=False,
    kinds="fci",
    doc="Whether it is neither infinite nor NaN.",
    example=("[1.0, float('inf')]", "[ True False]"),
)

isinf = elementwise(
    "isinf(x)",
    differentiable=False,
    kinds="fci",
    doc="Whether it is infinite.",
    example=("[1.0, float('inf')]", "[False  True]"),
)

isnan = elementwise(
    "isnan(x)",
    differentiable=False,
    kinds="fci",
    doc="Whether it is not a number.",
    example=("[1.0, float('inf')]", "[False False]"),
)

signbit = elementwise(
    "signbit(x)",
    differentiable=False,
    kinds="f",
    doc="Whether the sign bit is set, as it is of -0.0.",
    example=("[1.0, -0.0]", "[False  True]"),
)


def _clip_ref(x, min=None, max=None):
    return np.clip(x, min, max)


@op(
    arrays=("x", "min", "max"),
    ref=_clip_ref,
    samples=calls(
        lambda rng: ([uniform(rng, 3)], {"min": -1.0, "max": 1.0}),
        lambda rng: ([uniform(rng, 2, 3)], {"min": -0.5}),
        lambda rng: ([uniform(rng)], {"max": 0.5}),
    ),
    errors=[([np.ones(3)], {"min": np.ones(2)}, ShapeError, "clip")],
)
def clip(xp, x, /, min=None, max=None):
    """`x`, but not below `min` and not above `max`; its gradient is 1 also at the bounds.

    Args:
        min, max: number, array that broadcasts with `x`, or None for no bound. Tensors among
            them get gradients too.

    Returns:
        Tensor of the (broadcast) shape.

    >>> print(gg.clip([-2.0, 0.5, 2.0], -1.0, 1.0))
    [-1.   0.5  1. ]
    """
    if min is not None:
        x = xp.maximum(x, min)
    if max is not None:
        x = xp.minimum(x, max)
    return xp.positive(x) if min is None and max is None else x
