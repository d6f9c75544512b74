"""Products and quotients that are 0 where a factor is 0, entropies, and robust losses.

Where a limit exists, values and gradients are that limit: xlogy(0, 0) and its gradients are 0, as
in TensorFlow.
"""

from gpugrad.core.samples import grid
from gpugrad.ops.math.arithmetic import is_complex, unless_infinite
from gpugrad.ops.special.common import scipy_op
from gpugrad.registry.on_arrays import typed
from gpugrad.registry.record import elementwise


def _unless_both_zero(xp, a, b, value):
    """`value`, but 0 where a and b are both 0."""
    return xp.where(xp.logical_and(a == 0, b == 0), 0, value)


def _log_beside(xp, x, y, log, zero):
    """log(y), and 0 where `x` is 0 and log(y) is infinite or NaN; it is infinite at `zero`."""
    if is_complex(x) and not is_complex(y):
        y = y + 0j
    outside = y == zero if is_complex(y) else y <= zero
    return log(xp.where(xp.logical_and(x == 0, outside), zero + 1, y))


xlogy = scipy_op(
    "xlogy(x, y)",
    lambda xp, x, y: _log_beside(xp, x, y, xp.log, 0),
    lambda xp, x, y: xp.masked_divide(x, unless_infinite(y)),
    kinds="fc",
    singular=True,
    domain=((-2, 2), (0.3, 2)),
    cpu=True,
)(
    doc="x log(y); where `x` is 0 and log(y) is infinite or NaN, it and its gradients are 0.",
    example=("[0.0, 2.0], [0.0, 1.0]", "[0. 0.]"),
)

xlog1py = scipy_op(
    "xlog1py(x, y)",
    lambda xp, x, y: _log_beside(xp, x, y, xp.log1p, -1),
    lambda xp, x, y: xp.masked_divide(x, 1 + unless_infinite(y)),
    kinds="fc",
    singular=True,
    domain=((-2, 2), (-0.7, 2)),
    cpu=True,
)(
    doc="x log(1 + y); where `x` is 0 and log(1 + y) infinite or NaN, it and its gradients are 0.",
    example=("[0.0, 2.0], [-1.0, 0.0]", "[0. 0.]"),
)


def _xdivy(xp, x, y):
    x, y = typed(x, y)
    return x / xp.lib.where(x == 0, xp.lib.where(y == 0, 1, y), y)


xdivy = elementwise(
    "xdivy(x, y)",
    kinds="fc",
    forward=_xdivy,
    ref=lambda x, y: x / y,
    domain=((-2, 2), (0.5, 2)),
    singular=True,
    d=[
        lambda xp, x, y: _unless_both_zero(
            xp, x, y, 1 / xp.where(x == 0, xp.where(y == 0, 1, y), y)
        ),
        lambda xp, out, y: -xp.masked_divide(out, y),
    ],
    doc="x / y, and 0 where both `x` and `y` are 0; the gradients there are 0 too.",
    example=("[0.0, 2.0], [0.0, 4.0]", "[0.  0.5]"),
)


multiply_no_nan = elementwise(
    "multiply_no_nan(x, y)",
    forward=lambda xp, x, y: xp.lib.where(y == 0, 0 * y, xp.lib.where(y == 0, 0 * y, x) * y),
    ref="numpy.multiply",
    vjp=[lambda xp, g, y: xp.multiply_no_nan(g, y), lambda xp, g, x: xp.multiply_no_nan(x, g)],
    doc="x y, and 0 where `y` is 0, even if `x` is infinite or NaN.",
    example=("float('inf'), [0.0, 2.0]", "[ 0. inf]"),
    cost=0,
)


def _divide_no_nan(xp, x, y):
    x, y = typed(x, y)
    zero = y == 0
    return xp.lib.where(zero, 0 * y, x) / xp.lib.where(zero, 1 + 0 * y, y)


divide_no_nan = elementwise(
    "divide_no_nan(x, y)",
    forward=_divide_no_nan,
    ref="numpy.divide",
    domain=((-2, 2), (0.5, 2)),
    vjp=[
        lambda xp, g, y: xp.divide_no_nan(g, y),
        lambda xp, g, out, y: -xp.divide_no_nan(g * out, y),
    ],
    doc="x / y, and 0 where `y` is 0; the gradients there are 0 too.",
    example=("2.0, [0.0, 4.0]", "[0.  0.5]"),
    cost=0,
)

entr = scipy_op("entr(x)", lambda xp, x: -1 - xp.log(x), singular=True, domain=(0.3, 3))(
    doc="-x log(x), 0 at 0, and -inf below it.", example=("[0.0, 0.5]", "[0.        0.3465736]")
)

rel_entr = scipy_op(
    "rel_entr(x, y)",
    lambda xp, x, y: _unless_both_zero(xp, x, y, 1 + xp.log(x / y)),
    lambda xp, x, y: -xp.masked_divide(x, unless_infinite(y)),
    singular=True,
    domain=(0.3, 3),
    cpu=True,
)(
    doc="x log(x / y); 0 where `x` is 0 and `y` is not negative, inf where one is negative.",
    example=("[0.0, 2.0], 2.0", "[0. 0.]"),
)

kl_div = scipy_op(
    "kl_div(x, y)",
    lambda xp, x, y: _unless_both_zero(xp, x, y, xp.log(x / y)),
    lambda xp, x, y: 1 - xp.masked_divide(x, y),
    singular=True,
    domain=(0.3, 3),
    cpu=True,
)(
    doc="x log(x / y) - x + y; `y` where `x` is 0, and inf where one is negative.",
    example=("[0.0, 2.0], 2.0", "[2. 0.]"),
)

huber = scipy_op(
    "huber(delta, x)",
    lambda xp, delta, x: xp.where(xp.abs(x) <= delta, 0, xp.abs(x) - delta),
    lambda xp, delta, x: xp.where(xp.abs(x) <= delta, x, delta * xp.sign(x)),
    domain=((0.3, 1), (1.2, 4)),
)(
    doc="Huber's loss: x^2 / 2 up to `delta`, its tangent beyond; inf where `delta` < 0.\n\n"
    "The tangent is delta (|x| - delta / 2). The loss of two arrays is `huber_loss`.",
    example=("1.0, [0.5, 3.0]", "[0.125 2.5  ]"),
)


def _pseudo_huber_delta(xp, delta, x):
    """(h - delta)^2 / h with h = hypot(delta, x), computed without the difference."""
    h = xp.hypot(delta, x)
    excess = x * xp.masked_divide(x, h + delta)
    return excess * xp.masked_divide(excess, h)


pseudo_huber = scipy_op(
    "pseudo_huber(delta, x)",
    _pseudo_huber_delta,
    lambda xp, delta, x: delta * xp.masked_divide(x, xp.hypot(delta, x)),
    samples=grid(2, ((0.3, 2), (-3, 3))),
    cpu=True,
)(
    doc="A smooth form of Huber's loss, delta^2 (sqrt(1 + (x / delta)^2) - 1).\n\n"
    "It is inf where `delta` is negative. The gradient at (0, 0) is 0.",
    example=("1.0, [0.0, 1.0]", "[0.        0.4142136]"),
)
