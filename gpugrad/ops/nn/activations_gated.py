"""Activations that read more than one element: gates, learned slopes, and along an axis."""

import numpy as np

from gpugrad.core.backend import NUMPY, SCALARS
from gpugrad.core.samples import along_axis, shaped
from gpugrad.errors import AxisError, ShapeError
from gpugrad.ops._axes import check_axis
from gpugrad.registry.on_arrays import wide, widened
from gpugrad.registry.record import op


def _halves(xp, name, x, axis):
    """The first and the second half of an array along an axis."""
    check_axis(name, axis, x.shape)
    n = x.shape[axis]
    if n % 2:
        raise ShapeError(f"{name}: axis {axis} of the shape {x.shape} cannot be halved.")
    until = (slice(None),) * (axis % x.ndim)
    return (
        xp.getitem(x, index=(*until, slice(0, n // 2))),
        xp.getitem(x, index=(*until, slice(n // 2, n))),
    )


_HALVED = shaped([(4,)], ([(2, 3)], {"axis": 0}), [(2, 2, 4)], ([(2, 2, 3)], {"axis": 1}))
_HALF_ERRORS = [
    ([np.ones((2, 3))], {}, ShapeError, r"axis -1.*\(2, 3\)"),
    ([np.ones((2, 2))], {"axis": 2}, AxisError, "axis 2"),
]


def _gated(name, formula, ref, doc, example):
    """Declare an op of the two halves of an array; `ref` is its formula in NumPy."""

    def forward(xp, x, /, axis=-1):
        return formula(xp, *_halves(xp, name, x, axis))

    forward.__doc__ = f"""{doc}

    Args:
        x: array of at least one dimension, of even length along `axis`.
        axis: int, along which it is halved.

    Returns:
        Tensor half as long along the axis.

    >>> print(gg.{name}({example[0]}))
    {example[1]}
    """

    def half_ref(x, axis=-1):
        return ref(*np.split(x, 2, axis))

    return op(name=name, samples=_HALVED, errors=_HALF_ERRORS, ref=half_ref)(forward)


glu = _gated(
    "glu",
    lambda xp, a, b: a * xp.sigmoid(b),
    lambda a, b: a / (1 + np.exp(-b)),
    "The first half of an array times the sigmoid of the second.\n\n"
    '    Dauphin et al. 2017, "Language Modeling with Gated Convolutional Networks".',
    ("[4.0, 6.0, 0.0, 100.0]", "[2. 6.]"),
)
swiglu = _gated(
    "swiglu",
    lambda xp, a, b: xp.silu(a) * b,
    lambda a, b: a / (1 + np.exp(-a)) * b,
    "`silu` of the first half of an array times the second.\n\n"
    '    Shazeer 2020, "GLU Variants Improve Transformer".',
    ("[0.0, 100.0, 4.0, 6.0]", "[  0. 600.]"),
)
geglu = _gated(
    "geglu",
    lambda xp, a, b: xp.gelu(a) * b,
    lambda a, b: a * NUMPY.special.ndtr(a) * b,
    "`gelu` of the first half of an array times the second.",
    ("[0.0, 100.0, 4.0, 6.0]", "[  0. 600.]"),
)
reglu = _gated(
    "reglu",
    lambda xp, a, b: xp.relu(a) * b,
    lambda a, b: np.maximum(a, 0) * b,
    "`relu` of the first half of an array times the second.",
    ("[-1.0, 2.0, 4.0, 6.0]", "[ 0. 12.]"),
)


def _prelu_ref(x, weight, axis=1):
    if weight.size > 1:
        weight = np.expand_dims(weight, [k for k in range(x.ndim) if k != axis % x.ndim])
    return np.where(x > 0, x, weight * x)


@op(
    ref=_prelu_ref,
    samples=shaped([(2, 3), (3,)], [(3,), ()], ([(2, 3, 2), (2,)], {"axis": -1}), [(2, 2), (1,)]),
    errors=[
        ([np.ones((2, 3)), np.ones(2)], {}, ShapeError, r"prelu.*\(2,\).*\(2, 3\)"),
        ([np.ones((2, 3)), np.ones(3)], {"axis": 2}, AxisError, "prelu.*axis 2"),
    ],
)
def prelu(xp, x, weight, /, *, axis=1):
    """`x` where it is positive, else `x` times a learned slope.

    Args:
        weight: the slope: one number, or an array with one for each channel. It is also the
            gradient at 0.
        axis: int, of the channels.

    He et al. 2015, "Delving Deep into Rectifiers".

    >>> print(gg.prelu([[-2.0, -2.0]], [0.5, 0.25]))
    [[-1.  -0.5]]
    """
    if type(weight) not in SCALARS and weight.shape == (1,):
        weight = xp.reshape(weight, ())
    elif type(weight) not in SCALARS and weight.ndim:
        check_axis("prelu", axis, x.shape)
        if weight.shape != (x.shape[axis],):
            raise ShapeError(
                f"prelu: weight has shape {weight.shape}; x has {x.shape[axis]} channels along "
                f"axis {axis} of the shape {x.shape}."
            )
        weight = xp.reshape(weight, (-1, *(1,) * (x.ndim - axis % x.ndim - 1)))
    return xp.where(xp.greater(x, 0), x, x * weight)


_SCORES = along_axis({"axis": 1}, domain=(-5, 5))
_AXIS_ERRORS = [([np.ones((2, 3))], {"axis": 2}, AxisError, "axis 2")]


@op(
    native_half=True,
    samples=_SCORES,
    errors=_AXIS_ERRORS,
    ref=lambda x, axis=-1: NUMPY.special.softmax(-x, axis),
)
def softmin(xp, x, /, axis=-1):
    """`softmax` of -x: the smallest numbers get the largest shares.

    Args:
        axis: int, along which the results sum to 1.

    >>> print(gg.softmin([0.0, 100.0]))
    [1. 0.]
    """
    return xp.softmax(-widened(x), axis=axis)


def _sparsemax_vjp(xp, g, out, axis):
    g, out = wide(xp, g), wide(xp, out)  # sums over a support of any size
    support = xp.greater(out, 0)
    size = xp.sum(xp.astype(support, out.dtype), axis=axis, keepdims=True)
    mean = xp.sum(xp.where(support, g, 0), axis=axis, keepdims=True) / xp.maximum(size, 1)
    return xp.where(support, g - mean, 0)


def _sparsemax_ref(x, axis=-1):
    """By bisection for the threshold."""
    low, high = x.min(axis, keepdims=True) - 1, x.max(axis, keepdims=True)
    for _ in range(100):
        middle = (low + high) / 2
        enough = np.maximum(x - middle, 0).sum(axis, keepdims=True) > 1
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return np.maximum(x - low, 0)


@op(
    vjp=[_sparsemax_vjp],
    batch="axis",
    ref=_sparsemax_ref,
    errors=_AXIS_ERRORS,
    samples=along_axis({"axis": 1}, domain=(-0.6, 0.6)),
    captures=True,
)
def sparsemax(xp, x, /, axis=-1):
    """The probabilities nearest to the scores: like `softmax`, but with exact zeros.

    Args:
        axis: int, along which the results sum to 1.

    Martins and Astudillo 2016, "From Softmax to Sparsemax".

    >>> print(gg.sparsemax([0.5, 0.0, -2.0]))
    [0.75 0.25 0.  ]
    """
    check_axis("sparsemax", axis, x.shape)
    n = x.shape[axis]
    if not n:
        return xp.lib.zeros_like(x)
    lib = xp.lib
    x = x - lib.max(x, axis=axis, keepdims=True)
    falling = -lib.sort(-x, axis=axis)
    rank = lib.arange(1, n + 1, dtype=x.dtype).reshape((-1,) + (1,) * (x.ndim - axis % x.ndim - 1))
    excess = lib.cumsum(falling, axis=axis) - 1
    support = lib.sum(rank * falling > excess, axis=axis, keepdims=True)
    threshold = lib.take_along_axis(excess, support - 1, axis=axis) / support.astype(x.dtype)
    return lib.maximum(x - threshold, 0)
