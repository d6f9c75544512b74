"""Layer and RMS norm, and the primitives of all norms.

`standardize` and `rms_standardize` keep their result and its statistics for the gradient, not
their input. The gradient is an op with a gradient of its own.
"""

import functools
import math

import numpy as np

from gpugrad.core.arguments import check_numbers
from gpugrad.core.backend import HALF, NUMPY, SCALARS, on_gpu
from gpugrad.core.float_errors import no_overflow
from gpugrad.core.samples import along_axis, shaped, uniform
from gpugrad.errors import ArgumentError, AxisError, ShapeError
from gpugrad.kernels.by_hand import norms as kernels
from gpugrad.kernels.cpu import rows
from gpugrad.kernels.cpu.large import MIDDLE, are_numpys
from gpugrad.ops._axes import all_axes, count
from gpugrad.ops._roots import all_in_range, root_of_powers
from gpugrad.ops.nn.losses import same_shape
from gpugrad.registry.on_arrays import through_float32
from gpugrad.registry.record import op


def inverse_root(xp, var, eps):
    """1 / sqrt(var + eps), or 0 where that is infinite; NaN where the variance has overflowed."""
    s = var + eps
    regular = xp.not_equal(s, 0)
    return xp.where(regular, xp.rsqrt(xp.where(regular, s, 1)), 0) + 0 * s


def _inverse_length(xp, size, eps):
    """1 / sqrt(size * size + eps), or 0 where that is infinite; the square may overflow."""
    if size.dtype.kind == "c":
        return inverse_root(xp, size * size, eps)
    if eps:
        return 1 / xp.hypot(size, math.sqrt(eps))
    nothing = size == 0
    return xp.where(nothing, 0, 1 / xp.where(nothing, 1, size))


def _root_mean_square(xp, x, axis, eps):
    """Along axes, which stay. With `eps` it need not be exact where squares vanish."""
    n = max(count(x.shape, axis), 1)
    if xp is NUMPY:
        with no_overflow():
            mean = _summed_products(xp, x, x, axis) / n
        if mean.dtype.kind == "c" or all_in_range(mean, smallest=not eps):
            return np.sqrt(mean)
    return root_of_powers(xp, x, 2, axis, True, divisor=n)


def _lengths(xp, mean_square, dtype, eps):
    """The root of a mean square and its `_inverse_length`, for kernels: they cannot look at sums.

    Args:
        mean_square: a function of a factor, which multiplies the elements first: where squares
            overflow or, without `eps`, vanish, the root is one of scaled elements.
    """
    limits = np.finfo(dtype)
    half = 2.0 ** (limits.maxexp // 2)
    square = mean_square(1)
    root = length = xp.sqrt(square)
    if eps:
        length = xp.sqrt(square + eps)
    ranges = [(xp.greater, float(limits.max), 1 / half)]
    ranges += [] if eps else [(xp.less, float(limits.tiny / limits.eps), half)]
    for beyond, limit, scale in ranges:
        there = beyond(square, limit)
        size = xp.sqrt(mean_square(scale)) * (1 / scale)
        root, length = xp.where(there, size, root), xp.where(there, size, length)
    if eps:
        return root, xp.reciprocal(length)
    nothing = length == 0
    return root, xp.where(nothing, 0, xp.reciprocal(xp.where(nothing, 1, length)))


def _scaled(xp, x, scale):
    """`x` times a scale, for squares.

    Elements that do not count beside those that overflow are set to 0: their squares would be
    subnormal, and products that are take a processor a hundred times as long.
    """
    if scale < 1:
        x = xp.where(x * x > 1 / scale, x, 0)
    return x if scale == 1 else x * scale


def _mean_square(xp, x, axis, scale):
    x = _scaled(xp, x, scale)
    return xp.mean(x * x, axis=axis, keepdims=True)


def _moments(xp, x, axis):
    """The mean along axes, and the function `mean_square` of the distances from it.

    If these are the last axes and others, as in a batch norm of images, a kernel reads the array
    once: a row has its own mean, and the squared distance of that from the whole mean is added to
    the row's own variance (Chan, Golub and LeVeque 1983).
    """
    n, axes = x.ndim, all_axes(x.ndim, axis)
    start = n - next(k for k in range(n + 1) if n - 1 - k not in axes)
    last = tuple(range(start, n)) if math.prod(x.shape[start:]) > 1 else ()
    rest = tuple(a for a in sorted(axes) if a not in last and (x.shape[a] > 1 or not last))
    of_rows = mean = xp.mean(x, axis=last or rest, keepdims=True)
    d = x - of_rows
    if not (last and rest):
        return mean, lambda scale: _mean_square(xp, d, last or rest, scale)
    mean = xp.mean(of_rows, axis=rest, keepdims=True)
    off = of_rows - mean

    def mean_square(scale):
        a = _scaled(xp, off, scale)
        return xp.mean(_mean_square(xp, d, last, scale) + a * a, axis=rest, keepdims=True)

    return mean, mean_square


def _check_axes(name, x, axis):
    for a in axis if isinstance(axis, (tuple, list)) else (axis,):
        if not -x.ndim <= a < x.ndim:
            raise AxisError(f"{name}: axis {a} is out of bounds for the shape {x.shape}.")


def _product_samples(rng):
    for shape, axis in (((4,), -1), ((2, 3), 0), ((2, 3, 2), (0, -1)), ((2, 2, 3), (2, 1))):
        yield [uniform(rng, *shape), uniform(rng, *shape)], {"axis": axis}
    yield [uniform(rng, 2, 0), uniform(rng, 2, 0)], {}


@op(
    vjp=[lambda xp, g, y: g * y, lambda xp, g, x: g * x],
    linear="each",
    batch="axis",
    samples=_product_samples,
    ref=lambda x, y, axis=-1: np.sum(x * y, axis, keepdims=True),
    errors=[
        ([np.ones((2, 3))] * 2, {"axis": 2}, AxisError, "axis 2 is out of bounds"),
        ([np.ones((2, 3)), np.ones(3)], {}, ShapeError, r"\(2, 3\).*\(3,\)"),
    ],
    captures=True,
)
def sum_of_products(xp, x, y, /, axis=-1):
    """Sum of x * y along axes, which stay with length 1; `softmax_grad` calls it.

    Args:
        x, y: arrays of the same shape, of at least one dimension.
        axis: int or tuple of ints.

    Returns:
        Tensor of that shape, with length 1 along `axis`.
    """
    same_shape("sum_of_products", x=x, y=y)
    _check_axes("sum_of_products", x, axis)
    return _summed_products(xp, x, y, axis)


def _summed_products(xp, x, y, axis):
    axes = all_axes(x.ndim, axis)
    if axes == (x.ndim - 1,) and xp is NUMPY and x.dtype.kind != "c":
        return np.vecdot(x, y)[..., None]
    n = next((k for k in range(x.ndim) if x.ndim - 1 - k not in axes), x.ndim)
    if xp is not NUMPY or n == 0 or x.dtype.kind == "c":  # vecdot conjugates complex numbers
        return xp.add_reduce(x * y, axis=axis, keepdims=True)
    # BLAS reads both once and writes no product: a quarter of the time
    lead = x.shape[: x.ndim - n]
    flat = (*lead, math.prod(x.shape[x.ndim - n :]))
    total = np.vecdot(x.reshape(flat), y.reshape(flat)).reshape(*lead, *(1,) * n)
    rest = tuple(a for a in axes if a < x.ndim - n)
    return np.add.reduce(total, axis=rest, keepdims=True) if rest else total


def standardize_ref(x, axis=-1, eps=1e-5, centered=True):
    """The standardized array, mean and deviation by NumPy, for the references of all norms."""
    mean = np.mean(x, axis, keepdims=True) * centered
    std = np.sqrt(np.mean((x - mean) ** 2, axis, keepdims=True))
    return (x - mean) / np.sqrt(std**2 + eps), mean, std


_NO_AXIS = [([np.ones((2, 3))], {"axis": 2}, AxisError, "axis 2 is out of bounds")]
_along_axes = functools.partial(
    op, batch="axis", opens="c", samples=along_axis({"axis": (0, 2), "eps": 0.1}), errors=_NO_AXIS
)


@_along_axes(
    vjp=[
        lambda xp, g, out, axis, eps: xp.standardize_grad(
            g[0], out[0], out[2], g[1], g[2], axis=axis, eps=eps
        )
    ],
    outputs=3,
    ref=standardize_ref,
    cuda=kernels.standardize,
)
def standardize(xp, x, /, axis=-1, *, eps=1e-5):
    """Shift and scale an array to mean 0 and variance 1 along axes; `layer_norm` calls it.

    Returns:
        Tensors (x - mean) / sqrt(std^2 + eps), mean and standard deviation; the last two have
        length 1 along `axis`. Where std^2 + eps is 0, the result and its gradient are 0. (The
        variance would overflow where the result does not.)
    """
    _check_axes("standardize", x, axis)
    if xp is not NUMPY and x.dtype.kind == "f":
        mean, mean_square = _moments(xp, x, axis)
        std, scale = _lengths(xp, mean_square, x.dtype, eps)
        return (x - mean) * scale, mean, std
    n = max(count(x.shape, axis), 1)
    mean = xp.add_reduce(x, axis=axis, keepdims=True) / n
    d = x - mean
    std = _root_mean_square(xp, d, axis, eps)
    d *= _inverse_length(xp, std, eps)
    return d, mean, std


def _standardize_grad_samples(rng):
    for shape, axis, eps in (((4,), -1, 0.1), ((2, 3), (0, 1), 0.0), ((2, 3, 2), 1, 1e-5)):
        small = [1 if a in all_axes(len(shape), axis) else n for a, n in enumerate(shape)]
        shapes = shape, shape, small, small, small
        yield [uniform(rng, *s, low=0.5) for s in shapes], {"axis": axis, "eps": eps}


def standardize_grad_ref(g, out, std, g_mean, g_std, axis=-1, eps=1e-5, centered=True):
    """The gradient of `standardize_ref` by NumPy."""
    n, length = out.size / std.size, np.sqrt(std**2 + eps)
    own, along = (np.mean(v, axis, keepdims=True) for v in (g * centered, g * out))
    return (g - own - out * along) / length + (g_mean + g_std * out * length / std) / n


def _by_length(xp, g, size, scale):
    """A gradient by the size, to multiply the standardized array; 0 where the size is 0."""
    return xp.masked_divide(xp.where(size == 0, 0, g), size * scale)


@op(
    samples=_standardize_grad_samples,
    ref=standardize_grad_ref,
    cuda=kernels.standardize_grad,
    errors=[([np.ones(3), np.ones(2), *[np.ones(1)] * 3], {}, ShapeError, r"\(3,\).*\(2,\)")],
)
def standardize_grad(xp, g, out, std, g_mean, g_std, /, axis=-1, *, eps=1e-5):
    """The gradient of `standardize` by its input."""
    n = max(count(out.shape, axis), 1)
    scale = _inverse_length(xp, std, eps)
    # d = out * slope / n + shift + g * scale: small factors, so that large arrays are read once
    shift = (g_mean - scale * xp.sum(g, axis=axis, keepdims=True)) / n
    slope = _by_length(xp, g_std, std, scale) - scale * xp.sum_of_products(g, out, axis=axis)
    d = out * (slope / n) + shift
    d += g * scale  # in place, as `d` has the array type of all arguments
    return d


@_along_axes(
    vjp=[
        lambda xp, g, out, axis, eps: xp.rms_standardize_grad(
            g[0], out[0], out[1], g[1], axis=axis, eps=eps
        )
    ],
    outputs=2,
    cuda=kernels.rms_standardize,
    ref=lambda x, axis=-1, eps=1e-6: standardize_ref(x, axis, eps, centered=False)[::2],
)
def rms_standardize(xp, x, /, axis=-1, *, eps=1e-6):
    """Scale an array to a mean square of 1 along axes; `rms_norm` calls it.

    Returns:
        Tensors x / sqrt(root^2 + eps) and the root of the mean square, which has length 1 along
        `axis`. Where root^2 + eps is 0, the result and its gradient are 0.
    """
    _check_axes("rms_standardize", x, axis)
    if xp is not NUMPY and x.dtype.kind == "f":
        root, scale = _lengths(xp, lambda s: _mean_square(xp, x, axis, s), x.dtype, eps)
        return x * scale, root
    root = _root_mean_square(xp, x, axis, eps)
    return x * _inverse_length(xp, root, eps), root


def _rms_grad_samples(rng):
    for (g, out, root, g_root, _), keywords in _standardize_grad_samples(rng):
        yield [g, out, root, g_root], keywords


@op(
    samples=_rms_grad_samples,
    ref=lambda g, out, root, g_root, axis=-1, eps=1e-6: standardize_grad_ref(
        g, out, root, 0, g_root, axis, eps, centered=False
    ),
    cuda=kernels.rms_standardize_grad,
    errors=[([np.ones(3), np.ones(2), np.ones(1), np.ones(1)], {}, ShapeError, r"\(3,\).*\(2,\)")],
)
def rms_standardize_grad(xp, g, out, root, g_root, /, axis=-1, *, eps=1e-6):
    """The gradient of `rms_standardize` by its input."""
    n = max(count(out.shape, axis), 1)
    scale = _inverse_length(xp, root, eps)
    along = scale * xp.sum_of_products(g, out, axis=axis)
    slope = _by_length(xp, g_root, root, scale) - along
    d = out * (slope / n)
    d += g * scale
    return d


def _placed(xp, name, what, w, x_shape, axis):
    """Weights with the shape of some axes, reshaped to broadcast with an array."""
    if type(w) in SCALARS:
        return w
    if w.shape == x_shape[-1:] and type(axis) is int and axis in (-1, len(x_shape) - 1):
        return w
    axes = all_axes(len(x_shape), axis)
    expected = tuple(x_shape[a] for a in axes)
    if w.shape != expected:
        raise ShapeError(
            f"{name}: {what} has shape {w.shape}; it must be {expected}, the lengths of the axes "
            f"{axes} of x, whose shape is {x_shape}."
        )
    if list(axes) != sorted(axes):
        raise ArgumentError(f"{name}: with a weight, axes {axes} must be in increasing order.")
    if axes == tuple(range(len(x_shape) - len(axes), len(x_shape))):
        return w
    return xp.reshape(w, tuple(n if a in axes else 1 for a, n in enumerate(x_shape)))


def affine(xp, name, x, weight, bias, axis, weight_name="weight", bias_name="bias"):
    """`x` times weight plus bias, which have the shape of some axes of `x`."""
    if weight is not None:
        x = x * _placed(xp, name, weight_name, weight, x.shape, axis)
    return x if bias is None else x + _placed(xp, name, bias_name, bias, x.shape, axis)


def affine_ref(x, weight, bias, axis):
    """`affine` in NumPy, for the references."""
    axes = {a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))}
    rest = tuple(a for a in range(x.ndim) if a not in axes)
    x = x if weight is None else x * np.expand_dims(weight, rest)
    return x if bias is None else x + np.expand_dims(bias, rest)


_NORM_ERRORS = [
    *_NO_AXIS,
    ([np.ones((2, 3)), np.ones(2)], {}, ShapeError, r"weight.*\(2,\).*\(3,\)"),
]


@op(
    arrays=("x", "weight", "bias"),
    native_half=True,
    ref=lambda x, weight=None, bias=None, axis=-1, eps=1e-5: affine_ref(
        standardize_ref(x, axis, eps)[0], weight, bias, axis
    ),
    errors=_NORM_ERRORS,
    samples=shaped(
        [(2, 3), (3,), (3,)],
        ([(4,)], {"eps": 0.1}),
        ([(2, 3, 2), (3, 2), (3, 2)], {"axis": (-2, -1)}),
        ([(2, 3, 2), (3,)], {"axis": 1}),
    ),
)
def layer_norm(xp, x, /, weight=None, bias=None, *, axis=-1, eps=1e-5):
    """Layer normalisation: (x - mean) / sqrt(var + eps) * weight + bias.

    Args:
        weight, bias: arrays of the shape of these axes of `x`; None for 1 and 0.
        axis: int or tuple of ints, to average over. torch's ``normalized_shape`` of k lengths is
            the last k axes.

    Returns:
        Tensor of the shape of `x`. Where all elements are equal, it is `bias` and the gradient is
        finite. On a GPU, float32 rows whose variance overflows (elements of about 1e19) give NaN.

    Ba et al. 2016, "Layer Normalization".

    >>> print(gg.layer_norm([[1.0, 3.0], [5.0, 5.0]], [2.0, 2.0], eps=0))
    [[-2.  2.]
     [ 0.  0.]]
    """
    in_c = x.size >= MIDDLE and are_numpys(weight, bias)
    in_c = in_c and rows.has_rows(getattr(x, "_data", x), axis, eps)
    if (in_c or on_gpu(x)) and SCALARS.isdisjoint((type(weight), type(bias))):
        with no_overflow():
            out, _, var = xp.standardize_affine(x, weight, bias, axis=axis, along=axis, eps=eps)
        if not in_c or math.isfinite(getattr(var, "_data", var).max()):  # else its gradient is NaN
            return out
    return _layer_norm(xp, x, weight, bias, axis=axis, eps=eps)


@through_float32
def _layer_norm(xp, x, weight, bias, *, axis, eps):
    out, _, _ = xp.standardize(x, axis=axis, eps=eps)
    return affine(xp, "layer_norm", out, weight, bias, axis)


def _rms_ref(x, weight=None, axis=-1, eps=None):
    eps = np.finfo(x.dtype).eps if eps is None else eps
    return affine_ref(standardize_ref(x, axis, eps, centered=False)[0], weight, None, axis)


@op(
    arrays=("x", "weight"),
    native_half=True,
    ref=_rms_ref,
    errors=_NORM_ERRORS,
    samples=shaped(
        ([(2, 3), (3,)], {"eps": 1e-3}),
        ([(2, 3, 2), (3, 2)], {"axis": (1, 2), "eps": 0.1}),
        ([(2, 3)], {"axis": 0, "eps": 1e-6}),
    ),
)
def rms_norm(xp, x, /, weight=None, *, axis=-1, eps=None):
    """Root-mean-square normalisation: x / sqrt(mean(x * x) + eps) * weight.

    Args:
        weight: array of the shape of these axes of `x`; None for 1.
        axis: int or tuple of ints, to average over.
        eps: added to the mean square; None for the machine epsilon of the dtype that it is
            computed in, as in torch.

    Returns:
        Tensor of the shape of `x`. On a GPU, float32 rows whose mean square overflows (elements of
        about 1e19) give NaN.

    Zhang and Sennrich 2019, "Root Mean Square Layer Normalization".

    >>> print(gg.rms_norm([1.0, 7.0], [5.0, 5.0]))
    [1. 7.]
    """
    if eps is None:
        eps = float(np.finfo(np.float32 if x.dtype in HALF else x.dtype).eps)
    elif type(eps) is not float:
        check_numbers("rms_norm", "biuf", eps=eps)
    if on_gpu(x) and type(weight) not in SCALARS:
        params = {"axis": axis, "along": axis, "eps": eps, "centered": False}
        return xp.standardize_affine(x, weight, **params)[0]
    return _rms_norm(xp, x, weight, axis=axis, eps=eps)


@through_float32
def _rms_norm(xp, x, weight, *, axis, eps):
    out, _ = xp.rms_standardize(x, axis=axis, eps=eps)
    return affine(xp, "rms_norm", out, weight, None, axis)
