"""Products and quotients that are 0 where a factor is, entropies, and robust losses.

Where a limit exists the value and the gradients are the limits: xlogy(0, 0) is 0, and so are
its gradients, as TensorFlow has it.
"""

from __future__ import annotations

from gpugrad.core.samples import grid
from gpugrad.ops.special.common import library
from gpugrad.registry.on_arrays import typed
from gpugrad.registry.record import elementwise


def _both(xp, a, b, value):
    """`value`, and 0 where a and b are both 0."""
    return xp.where(xp.logical_and(a == 0, b == 0), 0, value)


xlogy = elementwise(
    "xlogy(x, y)",
    kinds="fc",
    forward=library("xlogy"),
    ref="scipy.special.xlogy",
    singular=True,
    d=[
        lambda xp, x, y: xp.log(xp.where(xp.logical_and(x == 0, y <= 0), 1, y)),
        lambda xp, x, y: xp.masked_divide(x, y),
    ],
    domain=((-2, 2), (0.3, 2)),
    doc=(
        "x log(y), and 0 where `x` is 0 although log(y) is infinite or NaN. The gradients are 0"
        " there."
    ),
    example=("[0.0, 2.0], [0.0, 1.0]", "[0. 0.]"),
)

xlog1py = elementwise(
    "xlog1py(x, y)",
    kinds="fc",
    forward=library("xlog1py"),
    ref="scipy.special.xlog1py",
    singular=True,
    d=[
        lambda xp, x, y: xp.log1p(xp.where(xp.logical_and(x == 0, y <= -1), 0, y)),
        lambda xp, x, y: xp.masked_divide(x, 1 + y),
    ],
    domain=((-2, 2), (-0.7, 2)),
    doc=(
        "x log(1 + y), and 0 where `x` is 0 although log(1 + y) is infinite or NaN. The"
        " gradients are 0 there."
    ),
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
        lambda xp, x, y: _both(xp, x, y, 1 / xp.where(x == 0, xp.where(y == 0, 1, y), y)),
        lambda xp, out, y: -xp.masked_divide(out, y),
    ],
    doc="x / y, and 0 where `x` is 0 although `y` is 0 too. The gradients at (0, 0) are 0.",
    example=("[0.0, 2.0], [0.0, 4.0]", "[0.  0.5]"),
)


def _multiply_no_nan(xp, x, y):
    return xp.lib.where(y == 0, 0 * y, xp.lib.where(y == 0, 0 * y, x) * y)


multiply_no_nan = elementwise(
    "multiply_no_nan(x, y)",
    forward=_multiply_no_nan,
    ref="numpy.multiply",
    vjp=[lambda xp, g, y: xp.multiply_no_nan(g, y), lambda xp, g, x: xp.multiply_no_nan(x, g)],
    cost=0,
    doc="x y, and 0 where `y` is 0 although `x` is infinite or NaN.",
    example=("float('inf'), [0.0, 2.0]", "[ 0. inf]"),
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
    doc="x / y, and 0 where `y` is 0. Both gradients are 0 there.",
    example=("2.0, [0.0, 4.0]", "[0.  0.5]"),
    cost=0,
)

entr = elementwise(
    "entr(x)",
    forward=library("entr"),
    ref="scipy.special.entr",
    singular=True,
    domain=(0.3, 3),
    d=[lambda xp, x: -1 - xp.log(x)],
    doc="-x log(x), 0 at 0, and -inf below it.",
    example=("[0.0, 0.5]", "[0.        0.3465736]"),
)

rel_entr = elementwise(
    "rel_entr(x, y)",
    forward=library("rel_entr"),
    ref="scipy.special.rel_entr",
    singular=True,
    d=[
        lambda xp, x, y: _both(xp, x, y, 1 + xp.log(x / y)),
        lambda xp, x, y: -xp.masked_divide(x, y),
    ],
    domain=(0.3, 3),
    doc="x log(x / y); 0 where `x` is 0 and `y` is not negative, and inf outside of that.",
    example=("[0.0, 2.0], 2.0", "[0. 0.]"),
)

kl_div = elementwise(
    "kl_div(x, y)",
    forward=library("kl_div"),
    ref="scipy.special.kl_div",
    singular=True,
    d=[
        lambda xp, x, y: _both(xp, x, y, xp.log(x / y)),
        lambda xp, x, y: 1 - xp.masked_divide(x, y),
    ],
    domain=(0.3, 3),
    doc="x log(x / y) - x + y; `y` where `x` is 0, and inf where one is negative.",
    example=("[0.0, 2.0], 2.0", "[2. 0.]"),
)

huber = elementwise(
    "huber(delta, x)",
    forward=library("huber"),
    ref="scipy.special.huber",
    d=[
        lambda xp, delta, x: xp.where(xp.abs(x) <= delta, 0, xp.abs(x) - delta),
        lambda xp, delta, x: xp.where(xp.abs(x) <= delta, x, delta * xp.sign(x)),
    ],
    domain=((0.3, 1), (1.2, 4)),
    doc=(
        "Huber's loss of `x`: x^2 / 2 up to `delta`, from there on its tangent, delta (|x| -"
        " delta / 2); inf where `delta` is negative. The loss of two arrays is `huber_loss`."
    ),
    example=("1.0, [0.5, 3.0]", "[0.125 2.5  ]"),
)


def _pseudo_huber_delta(xp, delta, x):
    """(h - delta)^2 / h with h = hypot(delta, x), without the difference."""
    h = xp.hypot(delta, x)
    excess = xp.masked_divide(x * x, h + delta)
    return xp.masked_divide(excess * excess, h)


pseudo_huber = elementwise(
    "pseudo_huber(delta, x)",
    forward=library("pseudo_huber"),
    ref="scipy.special.pseudo_huber",
    d=[_pseudo_huber_delta, lambda xp, delta, x: xp.masked_divide(delta * x, xp.hypot(delta, x))],
    samples=grid(2, ((0.3, 2), (-3, 3))),
    doc=(
        "Smooth form of Huber's loss, delta^2 (sqrt(1 + (x / delta)^2) - 1); inf where `delta` is"
        " negative. The gradient at (0, 0) is 0."
    ),
    example=("1.0, [0.0, 1.0]", "[0.        0.4142136]"),
)
