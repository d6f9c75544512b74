"""Rounding, comparison, selection, logic and bits: mostly ops without a gradient."""

import numpy as np
from numpy._core import umath

from gpugrad.core.backend import NUMPY, SCALARS
from gpugrad.core.samples import integers, shaped, uniform
from gpugrad.errors import DTypeError, ShapeError
from gpugrad.ops.arrays.gather import nonzero
from gpugrad.registry.record import elementwise, op


def _step(signature, doc, arguments, result, kinds="fi", **more):
    """An elementwise op without a gradient; its example prints `result` for the arguments."""
    example = (arguments, result)
    return elementwise(
        signature, differentiable=False, kinds=kinds, doc=doc, example=example, **more
    )


# ---- rounding ----------------------------------------------------------------------------

_SIGNS = "[1.5, -1.5]"

floor = _step(
    "floor(x)",
    "Largest whole number not above `x`. Its gradient is None.",
    _SIGNS,
    "[ 1. -2.]",
    cost=0,
)
ceil = _step(
    "ceil(x)",
    "Smallest whole number not below `x`. Its gradient is None.",
    _SIGNS,
    "[ 2. -1.]",
    cost=0,
)
trunc = _step(
    "trunc(x)", "`x` without its fraction. Its gradient is None.", _SIGNS, "[ 1. -1.]", cost=0
)


@op(
    name="round",
    differentiable=False,
    kinds="fci",
    batch="stack",
    samples=shaped([(3,)], [()], ([(2, 3)], {"decimals": 1}), [(0, 2)]),
    errors=[(["text"], {}, DTypeError, "number")],
    captures=True,
)
def round_(xp, x, /, decimals=0):
    """Nearest whole number, halves to the even one. Its gradient is None.

    Args:
        decimals: how many places to keep behind the point; before it if negative.

    >>> print(gg.round([0.5, 1.5, -1.2]))
    [ 0.  2. -1.]
    """
    return xp.lib.round(x, decimals)


# ---- comparison and selection ------------------------------------------------------------

_BESIDE = "[1.0, 2.0], 2.0"

equal = _step("equal(x, y)", "Whether `x` equals `y`.", _BESIDE, "[False  True]", "fci", cost=0)
not_equal = _step(
    "not_equal(x, y)", "Whether `x` differs from `y`.", _BESIDE, "[ True False]", "fci", cost=0
)
less = _step("less(x, y)", "Whether `x` is below `y`.", _BESIDE, "[ True False]", cost=0)
less_equal = _step(
    "less_equal(x, y)", "Whether `x` is not above `y`.", _BESIDE, "[ True  True]", cost=0
)
greater = _step("greater(x, y)", "Whether `x` is above `y`.", _BESIDE, "[False False]", cost=0)
greater_equal = _step(
    "greater_equal(x, y)", "Whether `x` is not below `y`.", _BESIDE, "[False  True]", cost=0
)

maximum = elementwise(
    "maximum(x, y)",
    d=[lambda xp, x, y: x >= y, lambda xp, x, y: xp.logical_not(x >= y)],
    kinds="fci",
    doc="The larger of two. If they are equal, the first gets the gradient, as in TensorFlow.",
    example=("[1.0, 3.0], 2.0", "[2. 3.]"),
    cost=0,
)
minimum = elementwise(
    "minimum(x, y)",
    d=[lambda xp, x, y: x <= y, lambda xp, x, y: xp.logical_not(x <= y)],
    kinds="fci",
    doc="The smaller of two. If they are equal, the first gets the gradient, as in TensorFlow.",
    example=("[1.0, 3.0], 2.0", "[1. 2.]"),
    cost=0,
)


def _where_samples(rng):
    for shapes in ([(3,)] * 3, [()] * 3, [(2, 1), (1, 3), (2, 3)], [(2, 3), (), (3,)]):
        cond, x, y = (uniform(rng, *s) for s in shapes)
        yield [cond > 0, x, y], {}


_BITS = {"e": np.int16, "f": np.int32, "d": np.int64, "F": np.int64}
"""The integer dtype as wide as a floating point number, by the letter of its dtype."""


def _bits(x):
    """The bits of a floating point array as integers; None for anything else."""
    if type(x) is not np.ndarray or x.dtype.char not in _BITS or not x.ndim:
        return None
    return x.view(_BITS[x.dtype.char])


_FEW = 1 << 10
"""Elements up to which NumPy's where is faster than the product."""


def _where(xp, condition, x, y):
    """NumPy's where as a product with 0 or 1: no branches, a sixth to a third of the time.

    The factors are the bits as integers, so no 0 meets an infinity and nothing is rounded.
    """
    many = type(condition) is np.ndarray and condition.size > _FEW
    if many and condition.dtype == bool:
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
    doc="`x` where the condition holds, else `y`. The branch not taken gets a gradient of "
    "exactly 0, even where its derivative is infinite.",
    example=("[True, False], 1.0, 2.0", "[1. 2.]"),
    cost=0,
)


def where_(condition, x=None, y=None, /):
    """`x` where the condition holds, else `y`; without the two, where it holds, as `nonzero`.

    The branch not taken gets a gradient of exactly 0, even where its derivative is infinite.

    Args:
        condition: array of booleans, or of numbers that are true if they are not 0.
        x, y: arrays or numbers. All three are broadcast.

    Returns:
        Tensor of the broadcast shape; or a tuple of int64 Tensors, one for each axis, whose length
        depends on the values.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: something is neither a number nor an array of numbers, or only `y` is missing.

    >>> print(gg.where([True, False], 1.0, 2.0), gg.where([True, False])[0])
    [1. 2.] [0]
    """
    if x is None and y is None:
        return nonzero(condition)
    return where(condition, x, y)


where_.__name__ = where_.__qualname__ = "where"
where_.__module__ = "gpugrad"  # for pickle, which looks functions up
vars(where_)["op"] = vars(where)["op"]  # it is the op's function to `gg.testing.check_op`

# ---- logic and bits ----------------------------------------------------------------------


def _logical(name, doc, result):
    signature, samples = f"logical_{name}(x, y)", integers(2, 0, 2)
    arguments = "[True, True, False], [True, False, False]"
    return _step(signature, doc, arguments, result, kinds="b", samples=samples, cost=0)


def _bitwise(name, doc, arguments, result):
    signature, samples = f"bitwise_{name}(x, y)", integers(2, 0, 8)
    return _step(signature, doc, arguments, result, kinds="i", samples=samples)


logical_and = _logical("and", "Whether both are true (not zero).", "[ True False False]")
logical_or = _logical("or", "Whether at least one is true (not zero).", "[ True  True False]")
logical_xor = _logical("xor", "Whether exactly one is true (not zero).", "[False  True False]")
logical_not = _step(
    "logical_not(x)",
    "Whether it is false (zero).",
    "[True, False]",
    "[False  True]",
    kinds="b",
    samples=integers(1, 0, 2),
    cost=0,
)

bitwise_and = _bitwise("and", "Bits set in both of two integers.", "[6, 5], 3", "[2 1]")
bitwise_or = _bitwise("or", "Bits set in either of two integers.", "[6, 5], 3", "[7 7]")
bitwise_xor = _bitwise("xor", "Bits set in exactly one of two integers.", "[6, 5], 3", "[5 6]")
bitwise_left_shift = _bitwise(
    "left_shift", "`x` times 2 to the power `y`, for integers.", "[6, 5], 1", "[12 10]"
)
bitwise_right_shift = _bitwise(
    "right_shift", "`x` over 2 to the power `y`, rounded down, for integers.", "[6, 5], 1", "[3 2]"
)
bitwise_invert = _step(
    "bitwise_invert(x)",
    "Every bit of integers or booleans inverted.",
    "[6, -1]",
    "[-7  0]",
    kinds="i",
    forward="bitwise_invert",
    samples=integers(1, 0, 8),
)

_INF = "[1.0, float('inf')]"

isfinite = _step(
    "isfinite(x)", "Whether it is neither infinite nor NaN.", _INF, "[ True False]", "fci", cost=0
)
isinf = _step("isinf(x)", "Whether it is infinite.", _INF, "[False  True]", "fci", cost=0)
isnan = _step("isnan(x)", "Whether it is not a number.", _INF, "[False False]", "fci", cost=0)
signbit = _step(
    "signbit(x)",
    "Whether the sign bit is set, as in -0.0.",
    "[1.0, -0.0]",
    "[False  True]",
    "f",
    cost=0,
)


@op(
    arrays=("x", "min", "max"),
    ref=lambda x, min=None, max=None: np.clip(x, min, max),
    samples=shaped(
        ([(3,)], {"min": -1.0, "max": 1.0}), ([(2, 3)], {"min": -0.5}), ([()], {"max": 0.5})
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
    if xp is NUMPY and {type(min), type(max)} <= SCALARS and min and max and x.dtype.kind in "fiu":
        return umath.clip(x, min, max)  # one pass; at a bound of 0 it has zeros of other signs
    if min is not None:
        x = xp.maximum(x, min)
    if max is not None:
        x = xp.minimum(x, max)
    return xp.positive(x) if min is None and max is None else x
