"""Ops that torch also has equal torch in values and gradients, on the samples in their records.

`SAME` and `TWINS` say what each op is compared with, `DIFFERENT` why some ops differ from the torch
function of the same name; together they list every op whose name torch knows. `EDGES` are points
that the samples avoid, `DIFFERENT_AT` points where the two differ on purpose.
"""

import inspect
import math
import re

import numpy as np
import pytest
from taping import taped

import gpugrad as gg
from gpugrad.testing.close import as_numpy
from gpugrad.testing.grads import is_hermitian, random_like

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore::UserWarning"),  # torch's, of slow paths and broadcasts
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
torch = pytest.importorskip("torch", exc_type=ImportError)
F = torch.nn.functional

HOMES = (torch.linalg, torch.fft, torch.special, F, torch, torch.Tensor)


def torch_function(name):
    """The torch function of a name; HOMES are searched in order if there are several."""
    matches = (getattr(home, name, None) for home in HOMES)
    return next((f for f in matches if callable(f) and not inspect.isclass(f)), None)


# ---- same name, same arguments ----------------------------------------------------------

SAME = """
abs acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
adaptive_max_pool2d adaptive_max_pool3d add affine_grid all any argmax argmin argsort argwhere
asin asinh atan atan2 atanh atleast_1d atleast_2d atleast_3d avg_pool2d avg_pool3d bilinear
bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor cdist ceil celu
channel_shuffle cholesky clip column_stack complex conj conv1d conv2d conv3d conv_transpose1d
conv_transpose2d conv_transpose3d copysign cos cosh cosine_embedding_loss cosine_similarity
ctc_loss deg2rad det diag diag_embed diagonal diff digamma divide dstack eig eigh eigvals eigvalsh
elu entr erf erfc erfcx erfinv exp exp2 expm1 fft fft2 fftn fftshift fix flatten fliplr flipud floor
floor_divide fmax fmin fmod fold frexp gammaln gaussian_nll_loss gcd gelu glu greater
greater_equal grid_sample hardshrink hardsigmoid hardswish hardtanh heaviside hfft
hinge_embedding_loss hstack huber_loss hypot i0 i0e i1 i1e ifft ifft2 ifftn ifftshift ihfft imag
inner interpolate inv irfft irfft2 irfftn isclose isfinite isin isinf isnan isneginf isposinf
isreal kron l1_loss lcm lerp less less_equal log log10 log1p log2 log_ndtr log_softmax logaddexp
logaddexp2 logical_and logical_not logical_or logical_xor logit lp_pool1d lp_pool2d lp_pool3d
margin_ranking_loss matmul matrix_norm matrix_power matrix_rank max_pool1d max_pool2d max_pool3d
maximum minimum mish moveaxis mse_loss multi_dot multilabel_margin_loss
multilabel_soft_margin_loss multiply nan_to_num nanmean nansum ndtr ndtri negative nextafter
norm normalize not_equal pairwise_distance pinv pixel_shuffle pixel_unshuffle poisson_nll_loss
positive qr rad2deg ravel real reciprocal relu relu6 remainder reshape rfft rfft2 rfftn rsqrt
searchsorted selu sigmoid signbit silu sin sinc sinh slogdet smooth_l1_loss softmax softmin
softplus softshrink softsign solve sqrt square squeeze stack std subtract svd svdvals tan tanh
tanhshrink tensorinv threshold trapezoid tril triplet_margin_loss triu trunc unfold var vecdot
vector_norm vstack where xlog1py xlogy
""".split()  # noqa: SIM905

RENAMED = {"axis": "dim", "axes": "dim", "keepdims": "keepdim", "axis1": "dim1", "axis2": "dim2"}
RENAMED |= {"k": "diagonal", "ddof": "correction", "correction": "correction"}
"""torch's names for our arguments. Its defaults differ, so ours are passed."""


# ---- another name, or other arguments ---------------------------------------------------


def axes_of(x, axis):
    """Axes as a tuple, counted from the front."""
    if axis is None:
        return tuple(range(x.ndim))
    return tuple(int(a) % x.ndim for a in np.atleast_1d(np.array(axis, int)))


def along_all(f):
    """Turns a reduction of one axis into one of several axes, or of all."""

    def reduced(x, *args, axis=None, keepdims=False, **keywords):
        axes = axes_of(x, axis)
        kept = [a for a in range(x.ndim) if a not in axes]
        lines = x.permute([*kept, *axes]).reshape([x.shape[a] for a in kept] + [-1])
        y = f(lines, *args, dim=-1, **keywords)
        return y.reshape([1 if a in axes else n for a, n in enumerate(x.shape)]) if keepdims else y

    return reduced


def reduction(f):
    """Turns a reduction of several axes into one where None means all."""

    def function(x, axis=None, *, dtype=None, keepdims=False):
        if axis == ():
            return NotImplemented  # torch takes that for all axes
        # torch.sum(x, dtype=complex) of a real x has no gradient, so the dtype comes first
        return f(cast(x, dtype), axes_of(x, axis), keepdims)

    return function


def flat_if_none(f):
    """A function along an axis; axis None is along all elements in row-major order."""

    def function(x, *args, axis=None, **keywords):
        if axis is None:
            return f(x.flatten(), *args, dim=0, **keywords)
        return f(x, *args, dim=axis, **keywords)

    return function


def at_channels(f):
    """A function of channels on axis 1 that takes their `axis`."""

    def function(x, *args, axis=1, **keywords):
        if x.ndim < 2:
            return f(x, *args, **keywords)
        return f(x.movedim(axis, 1), *args, **keywords).movedim(1, axis)

    return function


def at_the_end(f):
    """A normalization of the last axes that takes any `axis`."""

    def function(x, *weights, axis=-1, eps=1e-5):
        axes = axes_of(x, axis)
        last = list(range(-len(axes), 0))
        moved = x.movedim(axes, last)
        return f(moved, moved.shape[-len(axes) :], *weights, eps=eps).movedim(last, axes)

    return function


def without_gradient(x):
    """For arguments that torch accepts only as constants."""
    return x if x is None else x.detach()


def dtype_of(dtype):
    return getattr(torch, np.dtype(dtype).name)


def cast(x, dtype):
    return x if dtype is None else x.to(dtype_of(dtype))


def matrices(f):
    """Lets a solver whose `b` must be a matrix take a vector."""

    def function(*args, b, **keywords):
        return f(*args, b[:, None], **keywords)[..., 0] if b.ndim == 1 else f(*args, b, **keywords)

    return function


def places(shape, index):
    """The flat positions, in row-major order, that an index selects."""
    return torch.tensor(np.array(np.arange(math.prod(shape)).reshape(shape)[index]))


def put(x, values, *, index):
    at = places(x.shape, index)
    if at.unique().numel() < at.numel():
        return NotImplemented  # torch does not define which of several writes to one element wins
    return put_at(x, at, values, accumulate=False)


def put_at(x, at, values, accumulate=True):
    values = values.reshape(values.shape[max(0, values.ndim - at.ndim) :]).expand(at.shape)
    flat = x.flatten().index_put((at.flatten(),), values.flatten(), accumulate=accumulate)
    return flat.reshape(x.shape)


def take(x, indices, axis):
    axis %= x.ndim
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return x.index_select(axis, indices.flatten() % x.shape[axis]).reshape(shape)


def segment(reduce, start=0.0):
    """Sums, means or extremes of groups of rows; rows of negative groups are skipped."""

    def function(data, segment_ids, num_segments):
        if num_segments == 0:
            return NotImplemented
        ids, rows = segment_ids[segment_ids >= 0], data[segment_ids >= 0]
        ids = ids.reshape(-1, *[1] * (rows.ndim - 1)).expand(rows.shape)
        y = torch.full((num_segments, *rows.shape[1:]), start, dtype=rows.dtype)
        return y.scatter_reduce(0, ids, rows, reduce, include_self=reduce != "mean")

    return function


def batch_norm(
    x, running_mean=None, running_var=None, weight=None, bias=None, *, training=False, axis=1,
    **keywords,
):  # fmt: skip
    statistics = [None if s is None else s.detach().clone() for s in (running_mean, running_var)]
    if statistics[0] is None:  # ours then returns the statistics of the array
        channels = x.shape[axis]
        statistics, keywords["momentum"] = [torch.zeros(channels), torch.ones(channels)], 1.0
        statistics = [s.to(x.dtype) for s in statistics]
    f = at_channels(F.batch_norm)
    y = f(x, *statistics, weight, bias, training, axis=axis, **keywords)
    return y, *statistics


def cov(m, y=None, fweights=None, aweights=None, *, rowvar=True, bias=False, ddof=None):
    m, y = [a if a is None or rowvar or a.ndim < 2 else a.mT for a in (m, y)]
    m = m if y is None else torch.cat([torch.atleast_2d(m), torch.atleast_2d(y)])
    if aweights is not None and aweights.is_complex():
        return NotImplemented
    correction = (0 if bias else 1) if ddof is None else ddof
    return torch.cov(m, correction=correction, fweights=fweights, aweights=aweights)


def corrcoef(x, y=None, *, rowvar=True):
    x, y = [a if a is None or rowvar or a.ndim < 2 else a.mT for a in (x, y)]
    return torch.corrcoef(x if y is None else torch.cat([torch.atleast_2d(x), torch.atleast_2d(y)]))


def dot(x1, x2):
    if x1.ndim == x2.ndim == 1:
        return torch.dot(x1, x2)
    if 0 in (x1.ndim, x2.ndim):
        return x1 * x2
    return torch.tensordot(x1, x2, ([x1.ndim - 1], [max(x2.ndim - 2, 0)]))


def convolution(x, w, *, padding=0, **keywords):
    if isinstance(padding, tuple) and isinstance(padding[0], tuple):
        x, padding = F.pad(x, [p for pair in padding[::-1] for p in pair]), 0
    if padding == "same" and keywords.get("stride", 1) != 1:
        return NotImplemented  # torch supports it only for stride 1
    return (F.conv1d, F.conv2d, F.conv3d)[x.ndim - 3](x, w, padding=padding, **keywords)


def convolve(x1, x2, mode="full"):
    """By conv1d; unlike convolve, it does not reverse the kernel, so flip it."""
    if mode == "same":
        return NotImplemented
    if len(x1) < len(x2):
        x1, x2 = x2, x1
    padding = len(x2) - 1 if mode == "full" else 0
    return F.conv1d(x1[None, None], x2.flip(0)[None, None], padding=padding)[0, 0]


def solve_triangular(a, b, *, lower, adjoint=False, unit_diagonal=False):
    a, lower = (a.mH, not lower) if adjoint else (a, lower)
    a = torch.tril(a) if lower else torch.triu(a)
    options = {"upper": not lower, "unitriangular": unit_diagonal}
    return matrices(torch.linalg.solve_triangular)(a, b=b, **options)


def lu(x):
    p, lower, upper = torch.linalg.lu(x)
    return p.real, lower, upper  # torch's permutation is complex where x is


def lu_factor(x):
    lu, pivots = torch.linalg.lu_factor(x)
    return lu, pivots - 1


def lu_solve(lu, pivots, b, *, trans=0):
    lu = lu.conj() if trans == 1 else lu  # its adjoint is then the transpose
    return matrices(torch.linalg.lu_solve)(lu, (pivots + 1).int(), b=b, adjoint=trans != 0)


def pad(x, pad_width, mode="constant", *, constant_values=0.0, **keywords):
    modes = {"edge": "replicate", "reflect": "reflect", "wrap": "circular"}
    if mode != "constant":
        if x.ndim != 1 or mode not in modes:
            return NotImplemented
        return F.pad(x[None, None], pad_width, modes[mode])[0, 0]
    widths = np.broadcast_to(pad_width, (x.ndim, 2))
    values = np.broadcast_to(constant_values, (x.ndim, 2))
    for axis in range(x.ndim):
        for side in (0, 1):
            sides = np.zeros((x.ndim, 2), int)
            sides[axis, side] = widths[axis, side]
            x = F.pad(x, sides[::-1].flatten().tolist(), value=values[axis, side])
    return x


def polygamma(n, x):
    if not isinstance(n, torch.Tensor):
        return torch.special.polygamma(int(n), x)
    n, x = torch.broadcast_tensors(n, x)
    pairs = zip(n.flatten(), x.flatten(), strict=True)
    each = [torch.special.polygamma(int(k), v) for k, v in pairs]
    return torch.stack(each).reshape(x.shape) if each else x * 1


def quantile(f):
    def function(x, q, axis=None, *, method="linear", keepdims=False):
        if method not in ("linear", "lower", "higher", "midpoint", "nearest"):
            return NotImplemented
        q = torch.tensor(q, dtype=x.dtype)
        return along_all(f)(x, q, axis=axis, keepdims=keepdims, interpolation=method)

    return function


def percentile(x, q, *args, **keywords):
    return quantile(torch.quantile)(x, (np.array(q) / 100).tolist(), *args, **keywords)


def middle(f):
    def function(x, axis=None, keepdims=False):
        if x.numel() == 0:
            return NotImplemented
        return along_all(f)(x, 0.5, axis=axis, keepdims=keepdims)

    return function


def trace(x, offset=0, axis1=0, axis2=1):
    return torch.diagonal(x, offset, axis1, axis2).sum(-1)


def product(x, axis=None, dtype=None, keepdims=False):
    return along_all(torch.prod)(cast(x, dtype), axis=axis, keepdims=keepdims)


def attention(
    query, key, value, attn_mask=None, dropout_mask=None, *, dropout_p=0.0, is_causal=False, **kw
):
    if dropout_mask is not None or (is_causal and attn_mask is not None):
        return NotImplemented
    return F.scaled_dot_product_attention(query, key, value, attn_mask, 0.0, is_causal, **kw)


def embedding_bag(indices, weight, per_sample_weights=None, *, padding_idx=None, **keywords):
    return F.embedding_bag(
        indices, weight, per_sample_weights=per_sample_weights, padding_idx=padding_idx, **keywords
    )


def cumulative(f, start=None):
    def function(x, axis=None, *, dtype=None, include_initial=False):
        x, axis = cast(x, dtype), 0 if axis is None else axis
        y = f(x, axis)
        y = y if isinstance(y, torch.Tensor) else y.values
        if include_initial:
            return torch.cat([torch.full_like(y.narrow(axis, 0, 1), start), y], axis)
        return y

    return function


# They take our arguments, under our names, and return NotImplemented where torch lacks the
# case. A function of torch's own gets its keywords translated, as in `SAME`.
TWINS = {
    # NumPy's names
    "append": lambda x, values, axis=None: (
        torch.cat([x, values], axis) if axis is not None
        else torch.cat([x.flatten(), values.flatten()])
    ),
    "around": torch.round,
    "astype": lambda x, dtype: x.to(dtype_of(dtype)),
    "bitwise_invert": torch.bitwise_not,
    "compress": lambda condition, x, axis=None: (
        (x.flatten() if axis is None else x).index_select(
            0 if axis is None else axis, condition.nonzero().flatten()
        )
    ),
    "concat": lambda arrays, axis=0: (
        torch.cat([a.flatten() for a in arrays]) if axis is None else torch.cat(arrays, axis)
    ),
    "concatenate": lambda arrays, axis=0, dtype=None: (
        torch.concatenate([cast(a, dtype) for a in arrays], axis) if axis is not None
        else torch.concatenate([a.flatten() for a in arrays])
    ),
    "convolve": convolve,
    "correlate": lambda x1, x2, mode="valid": (
        convolve(x1, x2.conj().flip(0), mode) if len(x1) >= len(x2) else NotImplemented
    ),
    "cumprod": flat_if_none(torch.cumprod),
    "cumsum": flat_if_none(torch.cumsum),
    "cumulative_logsumexp": cumulative(torch.logcumsumexp),
    "cumulative_max": cumulative(torch.cummax),
    "cumulative_min": cumulative(torch.cummin),
    "cumulative_prod": cumulative(torch.cumprod, 1.0),
    "cumulative_sum": cumulative(torch.cumsum, 0.0),
    "cumulative_trapezoid": lambda y, *x, initial=None, axis=-1, **keywords: (
        torch.cumulative_trapezoid(y, *x, dim=axis, **keywords) if initial is None
        else NotImplemented
    ),
    "diagflat": lambda x, k=0: torch.diagflat(x, k),
    "digitize": lambda x, bins, right=False: (
        torch.bucketize(x, bins, right=not right) if len(bins) < 2 or bins[0] <= bins[-1]
        else NotImplemented  # torch's are in ascending order
    ),
    "divmod": lambda x, y: (
        torch.floor_divide(x.detach(), y.detach()), torch.remainder(x, y)
    ),
    "dot": dot,
    "ediff1d": lambda x, to_end=None, to_begin=None: (
        torch.cat([torch.atleast_1d(torch.as_tensor(part, dtype=x.dtype))
                   for part in (to_begin, torch.diff(x.flatten()), to_end) if part is not None])
    ),
    "expand_dims": lambda x, axis=0: (
        torch.unsqueeze(x, axis) if isinstance(axis, int) else NotImplemented
    ),
    "extract": lambda condition, x: torch.masked_select(x, condition),
    "fabs": torch.abs,
    "flatnonzero": lambda x: torch.nonzero(x.flatten()).flatten(),
    "flip": lambda x, axis=None: torch.flip(x, axes_of(x, axis)),
    "gradient_along": lambda x, *spacing, axis=-1, **keywords: (
        torch.gradient(x, **({"spacing": spacing} if spacing else {}), dim=axis, **keywords)[0]
    ),
    "matrix_transpose": lambda x: x.mT,
    "max": reduction(torch.amax),
    "mean": reduction(torch.mean),
    "median": middle(torch.quantile),
    "min": reduction(torch.amin),
    "modf": lambda x: (torch.frac(x), torch.trunc(x)),
    "nanmedian": middle(torch.nanquantile),
    "nanpercentile": lambda x, q, *args, **keywords: (
        quantile(torch.nanquantile)(x, (np.array(q) / 100).tolist(), *args, **keywords)
    ),
    "nanquantile": quantile(torch.nanquantile),
    "outer": lambda x1, x2: torch.outer(x1.flatten(), x2.flatten()),
    "pad": pad,
    "pad_constant": lambda x, pad_width, value=0.0: pad(x, pad_width, constant_values=value),
    "percentile": percentile,
    "permute_dims": lambda x, axes: torch.permute(x, axes),
    "power": torch.pow,
    "prod": product,
    "ptp": lambda x, axis=None, keepdims=False: (
        torch.amax(x, axes_of(x, axis), keepdims) - torch.amin(x, axes_of(x, axis), keepdims)
    ),
    "quantile": quantile(torch.quantile),
    "repeat": lambda x, repeats, axis=None: (
        torch.repeat_interleave(
            x, torch.tensor(repeats) if isinstance(repeats, (list, tuple)) else repeats, axis
        )
    ),
    "rint": torch.round,
    "roll": lambda x, shift, axis=None: torch.roll(x, shift, axis),
    "rollaxis": lambda x, axis, start=0: (
        torch.movedim(x, axis, 0) if start == 0 else NotImplemented
    ),
    "rot90": lambda x, k=1, axes=(0, 1): torch.rot90(x, k, axes),
    "setitem": put,
    "sign": torch.sgn,
    "sliding_window_view": lambda x, window_shape, axis=None: (
        x.unfold(0, window_shape, 1) if isinstance(window_shape, int)
        else x.unfold(0, window_shape[0], 1).unfold(1, window_shape[1], 1) if axis is None
        else NotImplemented
    ),
    "sort": lambda x, axis=-1, **keywords: torch.sort(x, dim=axis, **keywords)[0],
    "sum": reduction(torch.sum),
    "swapaxes": lambda x, axis1, axis2: torch.swapaxes(x, axis1, axis2),
    "take": lambda x, indices, axis=None: (
        torch.take(x, indices) if axis is None else take(x, indices, axis)
    ),
    "take_along_axis": lambda x, indices, axis=-1: (
        torch.take_along_dim(x, indices % max(x.shape[axis], 1), axis)
    ),
    "tensordot": lambda x1, x2, axes=2: torch.tensordot(x1, x2, axes),
    "tile": lambda x, repetitions: torch.tile(x, tuple(np.atleast_1d(repetitions).tolist())),
    "trace": trace,
    "transpose": lambda x, axes=None: torch.permute(x, axes or tuple(range(x.ndim))[::-1]),
    "union1d": lambda x, y: torch.unique(torch.cat([x.flatten(), y.flatten()])),
    "unique_values": torch.unique,
    "unraveled": lambda x, shape: (
        torch.stack(torch.unravel_index(x, shape)) if shape else NotImplemented
    ),
    "vander": lambda x, N=None, increasing=False: (
        torch.linalg.vander(x, N=N) if increasing else torch.linalg.vander(x, N=N).flip(-1)
    ),
    "vdot": lambda x1, x2: torch.vdot(x1.flatten(), x2.flatten()),
    "windows": lambda x, size, axis=-1, step=1, dilation=1: (
        x.unfold(axis, size, step) if dilation == 1 else NotImplemented
    ),
    # indexing, and sums by index
    "bincount": lambda x, *weights, minlength=0: torch.bincount(x, *weights, minlength=minlength),
    "broadcast_to": lambda x, shape: torch.broadcast_to(x, shape),
    "diagonal_scatter": lambda x, offset, shape: (
        torch.diagonal_scatter(torch.zeros(shape, dtype=x.dtype), x, offset, -2, -1)
    ),
    "embedding": lambda indices, weight, padding_idx=None, sparse=False: (
        F.embedding(indices, weight, padding_idx, sparse=sparse)
    ),
    "embedding_bag": embedding_bag,
    "gather": lambda params, indices, axis=0: take(params, indices, axis),
    "getitem": lambda x, index: x.flatten()[places(x.shape, index)],
    "index_add": lambda x, values, index: put_at(x, places(x.shape, index), values),
    "index_fill": lambda x, index, value=0: (
        x.flatten().index_fill(0, places(x.shape, index).flatten(), value).reshape(x.shape)
    ),
    "index_put": put,
    "one_hot": lambda x, num_classes: (
        F.one_hot(x, num_classes).float() if (x >= 0).all() else NotImplemented
    ),
    "scatter_along_axis": lambda values, indices, *, axis, shape, unique=False: (
        torch.zeros(shape, dtype=values.dtype).scatter_add(
            axis, (indices % max(shape[axis], 1)).expand(values.shape), values
        )
    ),
    "scatter_at": lambda g, index, shape: (
        put_at(torch.zeros(shape, dtype=g.dtype), places(shape, index), g)
    ),
    "scatter_rows": lambda values, indices, shape: (
        torch.zeros(shape, dtype=values.dtype).index_add(0, indices, values)
    ),
    "segment_max": segment("amax", -math.inf),
    "segment_mean": segment("mean"),
    "segment_min": segment("amin", math.inf),
    "segment_sum": segment("sum"),
    "sum_to": lambda x, shape: x.sum_to_size(shape),
    "take_rows": lambda indices, weight: weight[indices],
    "top_k": lambda x, k, axis=-1: torch.topk(x, k, axis),
    # linear algebra
    "block_diag": lambda arrays: (
        torch.block_diag(*arrays) if max(a.ndim for a in arrays) < 3 else NotImplemented
    ),
    "cho_solve": lambda c, b, lower=True: (
        matrices(lambda c, b, **keywords: torch.cholesky_solve(b, c, **keywords))(
            torch.tril(c) if lower else torch.triu(c), b=b, upper=not lower
        )
    ),
    "cond": lambda x, p=None: (
        torch.linalg.cond(x, p) if p in (None, 2, -2)
        # torch.linalg.cond overwrites what its own gradient needs
        else torch.linalg.matrix_norm(x, p) * torch.linalg.matrix_norm(torch.linalg.inv(x), p)
    ),
    "corrcoef": corrcoef,
    "count_nonzero": lambda x, axis=None, keepdims=False: torch.count_nonzero(x, axis),
    "cov": cov,
    "cross": lambda x1, x2, axis=-1: (
        torch.linalg.cross(*torch.broadcast_tensors(x1, x2), dim=axis)
    ),
    "einsum": lambda operands, subscripts: torch.einsum(subscripts, *operands),
    "equal": torch.eq,
    "expm": torch.linalg.matrix_exp,
    "lstsq": lambda a, b, rcond=None: (
        matrices(lambda a, b: torch.linalg.lstsq(a, b.expand(*a.shape[:-1], -1)).solution)(a, b=b)
    ),
    "lu": lu,
    "lu_factor": lu_factor,
    "lu_solve": lu_solve,
    "matvec": lambda x1, x2: (x1 @ x2[..., None])[..., 0],
    "solve_triangular": solve_triangular,
    "tensorsolve": lambda a, b, axes=None: torch.linalg.tensorsolve(a, b, axes),
    "vecmat": lambda x1, x2: (x1.conj()[..., None, :] @ x2)[..., 0, :],
    # functions of numbers
    "angle": lambda x, deg=False: torch.rad2deg(torch.angle(x)) if deg else torch.angle(x),
    "gammainc": lambda a, x: torch.special.gammainc(without_gradient(a), x),
    "gammaincc": lambda a, x: torch.special.gammaincc(without_gradient(a), x),
    "j0": torch.special.bessel_j0,
    "j1": torch.special.bessel_j1,
    "k0": torch.special.modified_bessel_k0,
    "k0e": torch.special.scaled_modified_bessel_k0,
    "k1": torch.special.modified_bessel_k1,
    "k1e": torch.special.scaled_modified_bessel_k1,
    "ldexp": lambda x, y: torch.ldexp(x, y + 0.0),  # torch's gradient takes 2**y in integers
    "log_sigmoid": F.logsigmoid,
    "loggamma": torch.lgamma,
    "logsumexp": reduction(torch.logsumexp),
    "multigammaln": lambda a, d: torch.special.multigammaln(a, d),
    "polygamma": polygamma,
    "random_gamma_grad": lambda alpha, sample: (
        torch._standard_gamma_grad(*torch.broadcast_tensors(alpha, sample))
    ),
    "round": lambda x, decimals=0: torch.round(x, decimals=decimals),
    "spherical_jn": lambda z, n=0: (
        torch.special.spherical_bessel_j0(z) if n == 0 else NotImplemented
    ),
    "squared_difference": lambda x, y: F.mse_loss(*torch.broadcast_tensors(x, y), reduction="none"),
    "stop_gradient": torch.Tensor.detach,
    "trigamma": lambda x: torch.polygamma(1, x),
    "y0": torch.special.bessel_y0,
    "y1": torch.special.bessel_y1,
    "zeta": lambda x, q: torch.special.zeta(without_gradient(x), q),
    # Fourier transforms
    "fft_c2c": lambda x, axes, norm="backward", inverse=False: (
        (torch.fft.ifftn if inverse else torch.fft.fftn)(x, dim=axes, norm=norm)
    ),
    "fft_c2r": lambda x, axes, n, norm="backward", folded=False: (
        torch.fft.irfftn(x, [x.shape[a] for a in axes[:-1]] + [n], axes, norm) if not folded
        else NotImplemented
    ),
    "fft_r2c": lambda x, axes, norm="backward", folded=False: (
        torch.fft.rfftn(x, dim=axes, norm=norm) if not folded else NotImplemented
    ),
    # neural networks
    "avg_pool1d": lambda x, kernel_size, divisor_override=None, **keywords: (
        F.avg_pool1d(x, kernel_size, **keywords) if divisor_override is None else NotImplemented
    ),
    "batch_norm": batch_norm,
    "bce_with_logits_loss": lambda x, y, weight=None, pos_weight=None, reduction="mean": (
        F.binary_cross_entropy_with_logits(
            x, y, without_gradient(weight), pos_weight=without_gradient(pos_weight),
            reduction=reduction,
        )
    ),
    "binary_cross_entropy": lambda x, y, weight=None, **keywords: (
        F.binary_cross_entropy(x, y, without_gradient(weight), **keywords)
    ),
    "binary_cross_entropy_with_logits": lambda logits, labels: (
        F.binary_cross_entropy_with_logits(
            *torch.broadcast_tensors(logits, labels), reduction="none"
        )
    ),
    "convolution": convolution,
    "cross_entropy": lambda x, labels, weight=None, **keywords: (
        F.cross_entropy(x, labels, without_gradient(weight), **keywords)
    ),
    "dot_product_attention": attention,
    "group_norm": at_channels(
        lambda x, weight=None, bias=None, *, num_groups, **keywords: (
            F.group_norm(x, num_groups, weight, bias, **keywords)
        )
    ),
    "instance_norm": at_channels(
        lambda x, weight=None, bias=None, **keywords: (
            F.instance_norm(x, weight=weight, bias=bias, **keywords)
        )
    ),
    "kl_div_loss": F.kl_div,
    "layer_norm": at_the_end(F.layer_norm),
    "leaky_relu": lambda x, negative_slope=0.01: F.leaky_relu(x, negative_slope),
    "linear": lambda x, weight, *bias: (
        F.linear(x, weight, *bias) if weight.ndim == 2 else NotImplemented
    ),
    "local_response_norm": at_channels(F.local_response_norm),
    "multi_margin_loss": lambda x, labels, weight=None, **keywords: (
        F.multi_margin_loss(x, labels, weight=without_gradient(weight), **keywords)
    ),
    "nll_loss": lambda x, labels, weight=None, **keywords: (
        F.nll_loss(x, labels, without_gradient(weight), **keywords)
    ),
    "prelu": at_channels(F.prelu),
    "probability_cross_entropy": lambda x, y: (
        F.binary_cross_entropy(*torch.broadcast_tensors(x, y), reduction="none")
    ),
    "rms_norm": at_the_end(F.rms_norm),
    "sigmoid_cross_entropy": lambda x, y: (
        F.binary_cross_entropy_with_logits(*torch.broadcast_tensors(x, y), reduction="none")
    ),
    "soft_margin_loss": lambda x, y, **keywords: F.soft_margin_loss(x, y.detach(), **keywords),
    "softmax_cross_entropy": lambda logits, labels, axis=-1: (
        F.cross_entropy(logits.movedim(axis, -1).reshape(-1, logits.shape[axis]),
                        labels.movedim(axis, -1).reshape(-1, logits.shape[axis]),
                        reduction="none").reshape(logits.movedim(axis, -1).shape[:-1])
    ),
    "sparse_softmax_cross_entropy": lambda logits, labels, ignore_index=None, **keywords: (
        F.cross_entropy(
            logits.reshape(-1, logits.shape[-1]), labels.flatten(), reduction="none",
            ignore_index=-100 if ignore_index is None else ignore_index, **keywords,
        ).reshape(labels.shape)
    ),
    "unit_huber": lambda x: F.huber_loss(x, torch.zeros_like(x), reduction="none"),
}  # fmt: skip


# ---- ops without a twin -----------------------------------------------------------------

DIFFERENT = {
    "kl_div": "is SciPy's, of two probabilities; torch's loss of logarithms is our kl_div_loss",
    "polar": "is SciPy's, a factorisation of matrices; torch's makes complex numbers",
    "resize": "is NumPy's, which repeats the elements; torch's changes a tensor in place",
}

VALUES_ONLY = """
bincount floor_divide heaviside j0 j1 k0 k0e k1 k1e random_gamma_grad spherical_jn union1d
unique_values y0 y1
""".split()  # noqa: SIM905
"""torch has no derivative of these."""

ROUGH = {
    "random_gamma_grad": (1e-4, "torch computes a rational approximation, in float32's accuracy")
}
"""Relative tolerance of the values, and why it is larger."""


# ---- comparing --------------------------------------------------------------------------

AROUND = {
    "cholesky": lambda m, f: lambda x, **keywords: f(hermitian(m, x), **keywords),
    # torch's gradient is right for the results of log_softmax alone
    "ctc_loss": lambda m, f: lambda x, *args, **k: f(m.log_softmax(x, -1), *args, **k),
    "eig": lambda m, f: lambda x: without_phase(m, f(x)),
    "eigh": lambda m, f: lambda x, **keywords: without_phase(m, f(x, **keywords)),
    "svd": lambda m, f: lambda x, **keywords: without_phase(m, f(x, **keywords)),
}
"""The function to compare in place of an op, with `f` for the op and `m` for gg or torch."""


def hermitian(m, x):
    """x, which is Hermitian already: this makes torch's gradient Hermitian too."""
    return (x + m.conj(m.swapaxes(x, -1, -2))) / 2


def without_phase(m, results):
    """Remove the arbitrary sign or phase of eigenvectors and singular vectors."""
    return [m.abs(r) for r in results] if len(results) == 3 else [results[0], m.abs(results[1])]


REFUSALS = re.compile(
    "not implemented for|does not support complex|not intended to support complex|"
    "outputs with complex dtype|N must be greater than 1|Expected a floating point or complex|"
    "MKL FFT error|Expected non-zero|expected at least 2 tensors|the first tensor must be|"
    "expects input with > 2 dims|Expected 3D or higher"
)
"""torch's messages for cases that it does not support."""


def mapped(f, x):
    return type(x)(mapped(f, v) for v in x) if isinstance(x, (list, tuple)) else f(x)


def flat(x):
    return [leaf for v in x for leaf in flat(v)] if isinstance(x, (list, tuple)) else [x]


def inexact(x):
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


def samples(op):
    """(title, arguments, keywords) of each sample, also in complex numbers if the op takes them."""
    rng = np.random.default_rng(0)

    def widened(x):
        if not inexact(x) or x.dtype.kind == "c":
            return x
        y = rng.uniform(-0.7, 0.7, x.shape)
        return np.asarray(x + 1j * (y - y.mT if is_hermitian(x) else y))

    for k, (args, keywords) in enumerate(op.samples(rng)):
        arrays = dict(zip(op.signature.parameters, args, strict=False)) | keywords
        args, keywords = in_arrays(op, args, keywords, np.asarray)
        moved = any(inexact(a) for n in op.arrays if n in arrays for a in flat(arrays[n]))
        if "f" in op.kinds or not moved:
            yield f"{op.name}, sample {k}", args, keywords
        if "c" in op.kinds and moved:
            yield f"{op.name}, complex sample {k}", *in_arrays(op, args, keywords, widened)


def in_arrays(op, args, keywords, f):
    """Arguments with f applied to each array; metadata is unchanged."""

    def g(name, x):
        if name not in op.arrays:
            return x
        return mapped(lambda a: f(a) if isinstance(a, (np.ndarray, np.generic)) else a, x)

    names = list(op.signature.parameters)[: len(args)]
    return [g(n, a) for n, a in zip(names, args, strict=True)], {
        n: g(n, a) for n, a in keywords.items()
    }


def torch_keywords(op, args, keywords):
    """Keywords under torch's names."""
    passed = set(list(op.signature.parameters)[: len(args)]) | set(keywords)
    ours = {n: d for n, d in op.params.items() if n in RENAMED and n not in passed}
    ours = {n: d for n, d in ours.items() if d is not None and d is not False} | keywords
    ours = {n: dtype_of(v) if n == "dtype" else v for n, v in ours.items()}
    return {RENAMED.get(n, n): v for n, v in ours.items()}


class Refused(Exception):
    """torch does not support the case of a sample."""


def of_torch(op, args, keywords):
    twin = TWINS.get(op.name) or torch_function(op.name)
    if getattr(twin, "__module__", None) != __name__:
        keywords = torch_keywords(op, args, keywords)
    xs = []

    def tensor(a):
        t = torch.tensor(a.copy(), requires_grad=inexact(a) and op.name not in VALUES_ONLY)
        xs.extend([t] if inexact(a) else [])
        return t

    f = AROUND.get(op.name, lambda m, f: f)(torch, twin)
    try:
        tensors, named = in_arrays(op, args, keywords, tensor)
        results = f(*tensors, **named)
    except (RuntimeError, ValueError, NotImplementedError) as error:
        if REFUSALS.search(str(error)):
            raise Refused from error
        raise
    if results is NotImplemented:
        raise Refused
    return xs, flat(list(results) if isinstance(results, tuple) else results)


def of_gpugrad(op, args, keywords):
    xs = []

    def tensor(a):
        t = gg.asarray(a)
        xs.extend([t] if inexact(a) else [])
        return t

    args, keywords = in_arrays(op, args, keywords, tensor)
    f = AROUND.get(op.name, lambda m, f: f)(gg, op.eager)
    tape, ys = taped(lambda xs: f(*args, **keywords), xs, persistent=True)
    return tape, xs, flat(list(ys) if isinstance(ys, tuple) else ys)


def numbers(x):
    """A torch tensor as a NumPy array."""
    x = x.detach()
    return (x.to_dense() if x.is_sparse else x).resolve_conj().resolve_neg().numpy(force=True)


def assert_near(what, ours, theirs, rtol):
    """`rtol` for each element, with an `atol` for rounding in sums with numbers of about 1.

    If there are larger elements, `atol` is for sums with the largest one.
    """
    assert ours.shape == theirs.shape, what
    if theirs.dtype.kind in "fc":
        assert ours.dtype.kind == theirs.dtype.kind, what
    atol = max(4e-15, 1e-13 * np.abs(theirs[np.isfinite(theirs)]).max(initial=0))
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=what)


def compare(op, calls):
    """Compare values and gradients of some calls; return how many of each were compared."""
    rtol, _ = ROUGH.get(op.name, (1e-9, ""))
    rng = np.random.default_rng(1)
    values = gradients = 0
    for title, args, keywords in calls:
        try:
            xs, ys = of_torch(op, args, keywords)
        except Refused:
            continue
        tape, our_xs, our_ys = of_gpugrad(op, args, keywords)
        assert len(our_ys) == len(ys), title
        for k, (a, d) in enumerate(zip(our_ys, ys, strict=True)):
            assert_near(f"{title}, result {k}", as_numpy(a), numbers(d), rtol)
        values += 1
        moved = [(a, d) for a, d in zip(our_ys, ys, strict=True) if d.requires_grad]
        if not moved:
            continue
        cts = [random_like(rng, numbers(d)) for _, d in moved]
        grads = torch.autograd.grad(
            [d for _, d in moved], xs, [torch.tensor(ct) for ct in cts], allow_unused=True
        )
        targets, upstream = [a for a, _ in moved], [gg.asarray(ct) for ct in cts]
        for k, (x, d) in enumerate(zip(our_xs, grads, strict=True)):
            if d is not None:  # None: torch has no gradient for this argument
                g = tape.gradient(targets, x, upstream, "zero")
                assert_near(f"{title}, gradient {k}", as_numpy(g), numbers(d), 1e-7)
                gradients += 1
    return values, gradients


@pytest.mark.parametrize("name", sorted({*SAME, *TWINS}))
def test_values_and_gradients_equal_torch(name):
    op = gg.OPS[name]
    values, gradients = compare(op, samples(op))
    assert values
    assert gradients or not op.differentiable or name in VALUES_ONLY


@pytest.mark.parametrize("name", DIFFERENT)
def test_ops_listed_as_different_differ_from_torch(name):
    with pytest.raises((AssertionError, TypeError)):  # different numbers, or different arguments
        compare(gg.OPS[name], samples(gg.OPS[name]))


def test_every_op_that_torch_has_is_listed():
    listed = {*SAME, *TWINS, *DIFFERENT}
    assert sorted(listed - set(gg.OPS)) == []
    assert sorted(n for n in gg.OPS if torch_function(n) and n not in listed) == []


# ---- edges ------------------------------------------------------------------------------

INF, NAN = math.inf, math.nan

EDGES = [
    ("abs", [[0.0, -0.0]], {}),
    ("abs", [[0j, 1 + 0j]], {}),
    ("acosh", [[complex(-2, 0.0), complex(-2, -0.0)]], {}),
    ("atan2", [[0.0, 0.0, 1.0, INF], [0.0, -1.0, 0.0, 1.0]], {}),
    ("celu", [[0.0, -INF, INF]], {}),
    ("complex", [[0.0, 1.0], [INF, NAN]], {}),
    ("cosine_similarity", [[0.0, 0.0], [1.0, 2.0]], {"axis": 0}),
    ("cross_entropy", [[[-1.0, -INF], [3.0, 800.0]], [0, 1]], {}),
    ("cumprod", [[0.0, 2.0, 0.0, 3.0]], {"axis": 0}),
    ("eigvalsh", [np.eye(3)], {}),
    ("elu", [[0.0, -800.0, INF]], {}),
    ("fmax", [[NAN, 1.0], [1.0, NAN]], {}),
    ("gelu", [[-40.0]], {}),
    ("hardsigmoid", [[3.0, -3.0]], {}),
    ("hardswish", [[3.0, -3.0]], {}),
    ("hardtanh", [[1.0, -1.0]], {}),
    ("huber_loss", [[0.0, 1.0, INF], [0.0, 0.0, 0.0]], {"reduction": "none"}),
    ("layer_norm", [[NAN, 1.0, 2.0]], {}),
    ("leaky_relu", [[0.0]], {}),
    ("log_softmax", [[-INF, 1.0, 1.0]], {}),
    ("logaddexp", [[1e10, INF, -INF, 0.0], [1e10, 0.0, 0.0, -INF]], {}),
    ("logaddexp2", [[1e10, INF, -INF, 0.0], [1e10, 0.0, 0.0, -INF]], {}),
    ("logsumexp", [[INF, 1.0]], {}),
    ("logsumexp", [[-INF, 1.0]], {}),
    ("max", [[1.0, 3.0, 3.0]], {}),
    ("max_pool1d", [np.ones((1, 1, 4))], {"kernel_size": 2}),
    ("normalize", [[0.0, 0.0]], {"axis": 0}),
    ("pairwise_distance", [np.eye(2), np.eye(2)], {"eps": 0.0}),
    ("power", [[0.0, 0.0, 0.0, 2.0], [0.0, 1.0, 2.0, 0.0]], {}),
    ("prod", [[0.0, 2.0, 3.0]], {}),
    ("prod", [[0.0, 2.0, 0.0]], {}),
    ("relu", [[0.0, -0.0, INF]], {}),
    ("relu6", [[0.0, 6.0]], {}),
    ("remainder", [[1.0, 1.0, -1.0], [0.1, INF, INF]], {}),
    ("rms_norm", [[NAN, 1.0, 2.0]], {"eps": 1e-6}),
    ("sign", [[0j, 1 + 0j]], {}),
    ("silu", [[-800.0, 800.0]], {}),
    ("sinc", [[0.0]], {}),
    ("smooth_l1_loss", [[0.0, 1.0], [0.0, 0.0]], {}),
    ("softmax", [[-INF, 1.0, 1.0]], {}),
    ("softshrink", [[0.5, -0.5]], {}),
    ("sort", [[2.0, 1.0, 2.0]], {}),
    ("sqrt", [[0.0]], {}),
    ("multi_margin_loss", [[[1.0, 0.0]], [0]], {}),
    ("svdvals", [np.zeros((2, 2))], {}),
    ("var", [[3.0]], {"correction": 1}),
    ("vector_norm", [[0.0, 0.0]], {}),
    ("vector_norm", [[1.0, -1.0]], {"ord": INF}),
    ("where", [[True, False], [INF, 1.0], [1.0, NAN]], {}),
]
"""Kinks, ties, zeros and infinities where the two agree."""

DIFFERENT_AT = [
    ("binary_cross_entropy", [[0.0, 1.0], [1.0, 0.0]], {}, "the gradient stays finite"),
    ("cdist", [np.eye(2), np.eye(2) - 1], {"p": INF}, "equal largest differences share"),
    ("corrcoef", [np.ones((2, 3))], {}, "the gradient of constant data is 0, not NaN"),
    ("digamma", [[-1.0]], {}, "the gradient at a pole is infinite, not 7e32"),
    ("gelu", [[INF, -INF]], {}, "the slopes are 1 and 0, not NaN"),
    ("hypot", [[0.0], [0.0]], {}, "the gradient at the origin is 0, not NaN"),
    ("kl_div_loss", [[-INF], [0.0]], {}, "a target of 0 adds 0, whatever the model says"),
    ("maximum", [[1.0], [1.0]], {}, "the first gets all of it, as in TensorFlow"),
    ("median", [[1.0, 3.0, 3.0]], {}, "equal elements share"),
    ("minimum", [[1.0], [1.0]], {}, "the first gets all of it, as in TensorFlow"),
    ("nanmean", [[NAN, NAN]], {}, "the gradient of an empty mean is 0, not NaN"),
    ("nll_loss", [[[-1.0, -2.0]], [-100]], {}, "the mean of no losses is 0, not NaN"),
    ("power", [[-2.0], [3.0]], {}, "the gradient by an exponent is 0, not NaN"),
    ("selu", [[0.0]], {}, "the slope at 0 is that of positive numbers, as in TensorFlow"),
    ("xlogy", [[0.0], [0.0]], {}, "the gradient is 0, not NaN"),
]


def edge(name, args, keywords):
    return [(f"{name} at an edge", [np.asarray(a) for a in args], keywords)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # from inf - inf
@pytest.mark.parametrize(("name", "args", "keywords"), EDGES)
def test_edges_equal_torch(name, args, keywords):
    values, _ = compare(gg.OPS[name], edge(name, args, keywords))
    assert values


@pytest.mark.parametrize(("name", "args", "keywords", "reason"), DIFFERENT_AT)
def test_edges_listed_as_different_differ_from_torch(name, args, keywords, reason):
    with pytest.raises(AssertionError):
        compare(gg.OPS[name], edge(name, args, keywords))
