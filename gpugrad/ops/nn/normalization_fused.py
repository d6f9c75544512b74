"""The norms as one op, which standardizes, scales and shifts, for GPUs and large arrays.

Elsewhere the norms are two ops, and each reads its arrays from cache; here kernels read
them from memory once. Statistics of 16-bit floats are float32.
"""

from typing import Any

import numpy as np

from gpugrad.autodiff.batched import batch_axis_of
from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import uniform
from gpugrad.errors import AxisError, ShapeError
from gpugrad.kernels.by_hand import norms as kernels
from gpugrad.kernels.cpu import rows
from gpugrad.ops._axes import all_axes, along_rows, count
from gpugrad.ops.nn.losses import same_shape
from gpugrad.ops.nn.normalization import (
    affine,
    affine_ref,
    inverse_root,
    standardize_grad_ref,
    standardize_ref,
)
from gpugrad.registry.on_arrays import wide
from gpugrad.registry.record import op


def narrowed(xp, y, x, *weights):
    """A result in float32, cast to the dtype of its inputs if they have the same one."""
    same = all(w is None or w.dtype == x.dtype for w in weights)
    return xp.astype(y, x.dtype) if same and y.dtype != x.dtype else y


def _samples(rng):
    yield [uniform(rng, 2, 3), uniform(rng, 3), uniform(rng, 3)], {}
    params = {"axis": (1, 2), "along": (1, 2), "eps": 0.1, "centered": False}
    yield [uniform(rng, 2, 2, 2), uniform(rng, 2, 2)], params
    yield [uniform(rng, 3, 2), uniform(rng, 2), uniform(rng, 2)], {"axis": 0, "along": 1}
    yield [uniform(rng, 2, 2, 3), uniform(rng, 2)], {"axis": -1, "along": 1}
    yield [uniform(rng, 2, 3)], {"centered": False}
    yield [uniform(rng, 3, 2)], {"axis": (0, 1), "along": 1, "bias": uniform(rng, 2)}


def _small(shape, axis):
    axes = all_axes(len(shape), axis)
    return tuple(1 if a in axes else n for a, n in enumerate(shape))


def _grad_samples(rng):
    for (x, *weight), params in _samples(rng):
        small = _small(x.shape, params.get("axis", -1))
        arrays = [uniform(rng, *s, low=0.5) for s in (x.shape, x.shape, *[small] * 4)]
        yield [*arrays, *weight[:1]], {k: v for k, v in params.items() if k != "bias"}


def _ref(x, weight=None, bias=None, axis=-1, along=-1, eps=1e-5, centered=True):
    out, mean, std = standardize_ref(x, axis, eps, centered)
    return affine_ref(out, weight, bias, along), mean, std**2


_errors = [
    ([np.ones((2, 3)), np.ones(2)], {}, ShapeError, r"weight.*\(2,\).*\(3,\)"),
    ([np.ones((2, 3))], {"axis": 2}, AxisError, "axis 2 is out of bounds"),
]


def _vjp(xp, g, x, weight, bias_shape, out, axis, along, eps, centered):
    params = {"axis": axis, "along": along, "eps": eps, "centered": centered}
    statistics = out[1], out[2], g[1], g[2]
    if weight is None:
        dx = xp.standardize_affine_grad(g[0], x, *statistics, **params)
        return dx, None, None if bias_shape is None else _sum_along(xp, g[0], along)
    return xp.standardize_affine_grads(g[0], x, *statistics, weight, **params)


def _sum_along(xp, g, along):
    axes = all_axes(g.ndim, along)
    return xp.sum(g, axis=tuple(a for a in range(g.ndim) if a not in axes))


def _batch(xp, batched, x, weight, bias, *, axis, along, **params):
    if not batched[0]:
        size = (weight if batched[1] else bias).shape[0]
        x = xp.broadcast_to(x, (size, *x.shape))
    n, axes = x.ndim - 1, all_axes(x.ndim - 1, along)
    params |= {"axis": batch_axis_of(axis, n), "along": batch_axis_of(along, n)}
    if not any(batched[1:]):
        return xp.standardize_affine(x, weight, bias, **params)
    y, mean, var = xp.standardize_affine(x, **params)
    one = tuple(m if a in axes else 1 for a, m in enumerate(x.shape[1:]))
    if weight is not None:
        y = y * xp.reshape(weight, (*weight.shape[: batched[1]], *one))
    if bias is not None:
        y = y + xp.reshape(bias, (*bias.shape[: batched[2]], *one))
    return y, mean, var


def _opens(x, weight, bias, *, axis, along, eps, centered):
    return centered and along_rows(x, axis) and along_rows(x, along)


@op(
    vjp=_vjp,
    arrays=("x", "weight", "bias"),
    outputs=3,
    opens=lambda *args, **params: "kernels" if _opens(*args, **params) else None,
    native_half=True,
    batch=_batch,
    samples=_samples,
    ref=_ref,
    errors=_errors,
    cuda=kernels.standardize_affine,
    cpu=rows.affine_norm,
)
def standardize_affine(
    xp, x, /, weight=None, bias=None, *, axis=-1, along=-1, eps=1e-5, centered=True
):
    """`standardize` or `rms_standardize`, scaled and shifted in one op; `layer_norm` calls it.

    Args:
        axis: int or tuple of ints, to average over.
        along: int or tuple of ints: the axes of the weights.
        centered: False uses 0 for the mean and the mean square for the variance.

    Returns:
        Tensors (x - mean) / sqrt(var + eps) * weight + bias, mean and var. The last two have
        length 1 along `axis`, and are float32 for 16-bit floats. Where var + eps is 0, the result
        and its gradient are 0.
    """
    if centered and xp is not NUMPY:  # kernels need not standardize values whose squares overflow
        mean = xp.mean(wide(xp, x), axis=axis, keepdims=True)
        d = wide(xp, x) - mean
        var = xp.mean(d * d, axis=axis, keepdims=True)
        out = d * inverse_root(xp, var, eps)
    elif centered:
        out, mean, std = xp.standardize(wide(xp, x), axis=axis, eps=eps)
        var = std * std
    else:
        out, std = xp.rms_standardize(wide(xp, x), axis=axis, eps=eps)
        mean, var = xp.lib.zeros_like(std), std * std
    y = affine(xp, "standardize_affine", out, wide(xp, weight), wide(xp, bias), along)
    return narrowed(xp, y, x, weight, bias), mean, var


def _gradients(xp, g, x, mean, var, g_mean, g_var, weight, axis, along, eps, centered):
    """The gradient by `x`, and the standardized `x`."""
    n = max(count(x.shape, axis), 1)
    scale = inverse_root(xp, var, eps)
    out = (x - mean) * scale
    g = affine(xp, "standardize_affine_grad", g, weight, None, along)
    slope = 2 * g_var * ((var + eps) * scale) - scale * xp.sum_of_products(g, out, axis=axis)
    dx = g * scale + out * (slope / n)
    if centered:
        dx = dx + (g_mean - scale * xp.sum(g, axis=axis, keepdims=True)) / n
    return dx, out


def _grad_ref(
    g, x, mean, var, g_mean, g_var, weight=None, axis=-1, along=-1, eps=1e-5, centered=True
):
    g, out, std = affine_ref(g, weight, None, along), (x - mean) / np.sqrt(var + eps), np.sqrt(var)
    by_std = 2 * g_var * std
    return standardize_grad_ref(g, out, std, centered * g_mean, by_std, axis, eps, centered)


_GRAD_ERRORS: list[Any] = [
    ([np.ones((2, 3)), np.ones((3, 2)), *[np.ones((2, 1))] * 4], {}, ShapeError, r"\(3, 2\)")
]


def _in_rows(g, x, *others, axis=-1, **params):
    """Where the means are over the last axes: there fusion makes a kernel of the body."""
    axes = all_axes(len(x.shape), axis)
    return "traced" if axes == tuple(range(len(x.shape) - len(axes), len(x.shape))) else None


@op(
    arrays=("g", "x", "mean", "var", "g_mean", "g_var", "weight"),
    native_half=True,
    opens=_in_rows,
    samples=_grad_samples,
    ref=_grad_ref,
    errors=_GRAD_ERRORS,
    cuda=kernels.standardize_affine_grad,
    cpu=rows.affine_norm_grads,
)
def standardize_affine_grad(
    xp, g, x, mean, var, g_mean, g_var, /, weight=None, *, axis=-1, along=-1, eps=1e-5,
    centered=True,
):  # fmt: skip
    """The gradient of `standardize_affine` by its input."""
    same_shape("standardize_affine_grad", g=g, x=x)
    arrays = [wide(xp, a) for a in (g, x, mean, var, g_mean, g_var, weight)]
    dx, _ = _gradients(xp, *arrays, axis, along, eps, centered)
    return xp.astype(dx, x.dtype)


def _grads_ref(g, x, mean, var, g_mean, g_var, weight, axis=-1, along=-1, eps=1e-5, centered=True):
    dx = _grad_ref(g, x, mean, var, g_mean, g_var, weight, axis, along, eps, centered)
    axes = all_axes(x.ndim, along)
    rest = tuple(a for a in range(x.ndim) if a not in axes)
    out = (x - mean) / np.sqrt(var + eps)
    return dx, np.sum(g * out, rest), np.sum(g, rest)


@op(
    outputs=3,
    native_half=True,
    opens=_in_rows,
    samples=lambda rng: ((args, params) for args, params in _grad_samples(rng) if len(args) == 7),
    ref=_grads_ref,
    errors=[([*_GRAD_ERRORS[0][0], np.ones(2)], *_GRAD_ERRORS[0][1:])],
    cuda=kernels.standardize_affine_grads,
    cpu=rows.affine_norm_grads,
)
def standardize_affine_grads(
    xp, g, x, mean, var, g_mean, g_var, weight, /, *, axis=-1, along=-1, eps=1e-5, centered=True
):
    """The gradients of `standardize_affine` by its input, weight and bias, in one pass."""
    same_shape("standardize_affine_grads", g=g, x=x)
    arrays = [wide(xp, a) for a in (g, x, mean, var, g_mean, g_var, weight)]
    dx, out = _gradients(xp, *arrays, axis, along, eps, centered)
    grads = dx, _sum_along(xp, arrays[0] * out, along), _sum_along(xp, arrays[0], along)
    return tuple(xp.astype(a, b.dtype) for a, b in zip(grads, (x, weight, weight), strict=True))
