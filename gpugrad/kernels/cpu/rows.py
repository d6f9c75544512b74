"""Softmax, logsumexp, cross entropy and layer norm of rows, with gradients, in C: see rows.cpp.

The functions return NotImplemented for arrays that NumPy has to compute with.

They stay beside the generator of `codegen.c_kernel`. With a width that is known only when it runs,
its kernels of softmax and log_softmax take 1.03 to 1.14 of their time in float32 for 4096 x 1024,
8192 x 256 and 512 x 8192, and 0.85 to 0.96 for 65536 x 48 (CPU time of one thread with AVX2,
medians of 41 runs by turns on a loaded machine). It has no gathers, as labels need.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.kernels.cpu import pool
from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import MIDDLE, WIDE, errors_raise
from gpugrad.kernels.cpu.pool import Kernels

_FAMILIES = (
    ("Softmax", "SoftmaxGrad", "SoftmaxOrZero"),
    ("LogSoftmax", "LogSoftmaxGrad"),
    ("LogSumExp", "LogSumExpGrad"),
    ("CrossEntropy", "CrossEntropyGrad"),
    ("LayerNorm", "LayerNormGrads"),
)
"""Jobs of rows.cpp that are compiled together."""


@functools.cache
def _in_c(kind: str, wide: int) -> tuple[Kernels, int]:
    """The functions in C for a job and a dtype, and the job's number among them."""
    head = f"#define TYPE {('float', 'double')[wide]}\n"
    if kind == "Channels":
        return Kernels("rows", head + "#define CHANNELS\n", channels="p lll d"), 0
    (family,) = (family for family in _FAMILIES if kind in family)
    head += f"#define JOBS {' '.join(f'JOB({name})' for name in family)}\n"
    return Kernels("rows", head, rows="l p lld p"), family.index(kind)


def _takes(kind: str, x: Any, *others: Any) -> bool:
    """Whether all are arrays of x's dtype, and the kernels compiled."""
    return (
        x.size >= MIDDLE
        and x.dtype in WIDE
        and all(type(a) is np.ndarray and a.dtype == x.dtype for a in others)
        and bool(_in_c(kind, WIDE[x.dtype])[0])
        and not errors_raise()
    )


def _row_major(*arrays: Any) -> list[Any]:
    """`row_major` of each; None stays None."""
    return [None if a is None else row_major(a) for a in arrays]


def _is_last(x: Any, axis: Any) -> bool:
    """Whether an axis is the last one of an array."""
    return type(x) is np.ndarray and axis in (-1, x.ndim - 1, (-1,), (x.ndim - 1,))


def _run(
    kind: str, n: int, arrays: Sequence[Any], x: Any, eps: float = 0.0, sums: bool = False
) -> None:
    """Run a kernel on the rows of n elements of `x`; with `sums`, the last array is of sums."""
    pointers = pool.addresses(arrays)
    at = pointers[len(arrays) - 1] if sums else None
    in_c, job = _in_c(kind, WIDE[x.dtype])
    in_c.rows(job, pointers, x.size // n, n, eps, at)


def _along(kind: str, axis: int, *arrays: Any) -> Any:
    """An array of the shape of `arrays`, by their rows along the last axis."""
    x = arrays[0]
    same = all(a.shape == x.shape for a in arrays)
    if not same or axis not in (-1, x.ndim - 1) or not _takes(kind, *arrays):
        return NotImplemented
    out = np.empty(x.shape, x.dtype)
    # arrays that are copied must live until the kernel has run
    arrays = (*_row_major(*arrays), out)
    _run(kind, x.shape[-1], arrays, x)
    return out


def softmax(xp: Any, x: Any, /, axis: int = -1) -> Any:
    """The launcher of `gpugrad.ops.nn.softmax.softmax`."""
    return _along("Softmax", axis, x)


def softmax_or_zero(x: Any) -> Any:
    """The softmax along the last axis, but zeros for a row of -inf."""
    return _along("SoftmaxOrZero", -1, x)


def softmax_grad(xp: Any, g: Any, out: Any, /, axis: int = -1) -> Any:
    """The launcher of `gpugrad.ops.nn.softmax.softmax_grad`."""
    return _along("SoftmaxGrad", axis, g, out)


def log_softmax(xp: Any, x: Any, /, axis: int = -1) -> Any:
    """The launcher of `gpugrad.ops.nn.softmax.log_softmax`."""
    return _along("LogSoftmax", axis, x)


def log_softmax_grad(xp: Any, g: Any, out: Any, /, axis: int = -1) -> Any:
    """The launcher of `gpugrad.ops.nn.softmax.log_softmax_grad`."""
    return _along("LogSoftmaxGrad", axis, g, out)


def logsumexp(xp: Any, x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The launcher of `gpugrad.ops.math.reduction.logsumexp`."""
    if not _is_last(x, axis) or not _takes("LogSumExp", x):
        return NotImplemented
    x, out = row_major(x), np.empty(x.shape[:-1], x.dtype)
    _run("LogSumExp", x.shape[-1], (x, out), x)
    return out[..., None] if keepdims else out


def logsumexp_grad(g: Any, x: Any, out: Any, axis: Any) -> Any:
    """The gradient of `logsumexp` by `x`, given that by its results."""
    if not _is_last(x, axis) or not _takes("LogSumExpGrad", x, g, out):
        return NotImplemented
    g, x, out = _row_major(g, x, out)
    d = np.empty(x.shape, x.dtype)
    _run("LogSumExpGrad", x.shape[-1], (g, x, out, d), x)
    return d


def _counted(labels: Any, kept: Any) -> Any:
    """Labels as the kernels read them: -1 for a row that does not count."""
    labels = labels if kept is None else np.where(kept, labels, -1)
    return np.ascontiguousarray(labels, np.int64)


def cross_entropy(x: Any, labels: Any, kept: Any) -> Any:
    """Cross entropy of the softmax of rows.

    Args:
        x: array (..., classes).
        labels: ints (...), which are classes.
        kept: mask (...) of the rows that count, or None.
    """
    if not _takes("CrossEntropy", x):
        return NotImplemented
    x, out = row_major(x), np.empty(labels.shape, x.dtype)
    labels = _counted(labels, kept)
    _run("CrossEntropy", x.shape[-1], (x, labels, out), x)
    return out


def cross_entropy_grad(g: Any, x: Any, labels: Any, kept: Any) -> Any:
    """The gradient of `cross_entropy` by `x`, given that by its results."""
    if g.shape != labels.shape or not _takes("CrossEntropyGrad", x, g):
        return NotImplemented
    x, g, out = row_major(x), row_major(g), np.empty(x.shape, x.dtype)
    labels = _counted(labels, kept)
    _run("CrossEntropyGrad", x.shape[-1], (x, labels, g, out), x)
    return out


def has_rows(x: Any, axis: Any, eps: float) -> bool:
    """Whether `affine_norm` takes means over the last axis. Tiny variances are NumPy's to scale."""
    return _is_last(x, axis) and eps >= 1e-12 and _takes("LayerNorm", x)


def has_channels(x: Any, axis: Any, eps: float) -> bool:
    """Whether `affine_norm` takes means over all axes but the second of at least three."""
    shaped = type(x) is np.ndarray and x.ndim > 2 and axis == (0, *range(2, x.ndim))
    return shaped and eps >= 1e-12 and _takes("Channels", x)


def _means(
    x: Any,
    weights: Sequence[Any],
    axis: Any = -1,
    along: Any = -1,
    eps: float = 1e-5,
    centered: bool = True,
) -> str | None:
    """Whether means are of rows or of channels, with weights of their size; None for others."""
    if centered and has_rows(x, axis, eps) and _is_last(x, along):
        means, shape = "rows", x.shape[-1:]
    elif centered and has_channels(x, axis, eps) and along in (1, (1,)):
        means, shape = "channels", x.shape[1:2]
    else:
        return None
    fits = all(w is None or (w.shape == shape and w.dtype == x.dtype) for w in weights)
    return means if fits else None


def _run_channels(x: Any, arrays: Sequence[Any], eps: float) -> None:
    """Run the kernel with the fields of its job, null for None."""
    pointers = pool.addresses(arrays)
    in_c, _ = _in_c("Channels", WIDE[x.dtype])
    in_c.channels(pointers, *x.shape[:2], x[0, 0].size, eps)


def affine_norm(xp: Any, x: Any, /, weight: Any = None, bias: Any = None, **params: Any) -> Any:
    """The launcher of `gpugrad.ops.nn.normalization_fused.standardize_affine`."""
    means, eps = _means(x, (weight, bias), **params), params.get("eps", 1e-5)
    if means is None:
        return NotImplemented
    x, weight, bias = _row_major(x, weight, bias)
    out = np.empty(x.shape, x.dtype)
    if means == "rows":
        mean, var = np.empty((2, *x.shape[:-1], 1), x.dtype)
        _run("LayerNorm", x.shape[-1], (x, weight, bias, out, mean, var), x, eps)
    else:
        mean, var = np.empty((2, 1, x.shape[1], *(1,) * (x.ndim - 2)), x.dtype)
        _run_channels(x, (x, None, weight, bias, out, mean, var, None, None), eps)
    return (out, mean, var) if math.isfinite(var.max()) else NotImplemented


def affine_norm_grads(
    xp: Any, g: Any, x: Any, /, *small: Any, weight: Any = None, **params: Any
) -> Any:
    """The launcher of the gradients by `x`, `weight` and bias; the first alone without `weight`.

    `small` are the mean and the variance, and the gradients by them; then perhaps the weight.
    """
    mean, var, g_mean, g_var, *rest = small
    weight = rest[0] if rest else weight
    means = _means(x, (weight,), **params) if g.shape == x.shape else None
    kind = "LayerNormGrads" if means == "rows" else "Channels"
    if means is None or not _takes(kind, x, g, mean, var, g_mean, g_var):
        return NotImplemented
    if np.any(g_mean) or np.any(g_var) or not math.isfinite(var.max()):
        return NotImplemented
    g, x, mean, var, weight = _row_major(g, x, mean, var, weight)
    out, eps = np.empty(x.shape, x.dtype), params.get("eps", 1e-5)
    sums = np.empty((2, x.shape[-1 if means == "rows" else 1]), x.dtype)
    if means == "rows":
        arrays = (g, x, mean, var, weight, out, sums)
        _run("LayerNormGrads", x.shape[-1], arrays, x, eps, sums=True)
    else:
        _run_channels(x, (x, g, weight, None, out, mean, var, *sums), eps)
    return out if weight is None else (out, *sums)
