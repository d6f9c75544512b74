"""Edge cases of the ops that TensorFlow lacks, one row each as in `test_conventions`.

Rows follow torch, or JAX where torch lacks the op, except those marked FINITE: there torch or JAX
returns NaN, infinity or a wrong number, although a finite subgradient (or the exact derivative)
exists.
"""

import contextlib
import functools

import numpy as np
import pytest
from taping import taped
from test_conventions import (
    EYE,
    FINITE,
    check_forward_mode,
    check_gradient,
    check_gradient_of_tensors,
    connected,
    finite,
    inf,
    linalg,
    nan,
    nn,
    special,
)

import gpugrad as gg
from gpugrad.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    IndexOutOfBoundsError,
    ShapeError,
    SingularMatrixError,
)

W = gg.constant([1.0, 10.0, 100.0, 1000.0], gg.float64)
SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
QUERY = np.array([[1.0, 2.0], [3.0, 4.0]])
MASK = gg.constant([[True, False], [False, False]])  # the second row is fully masked


def summed(loss, *constants, **keywords):
    return lambda *xs: loss(*xs, *constants, reduction="sum", **keywords)


def zero_where_not_positive(f):
    """`f(x)` where x is positive, 0 elsewhere."""
    return lambda x: gg.where(x > 0, f(x), 0.0)


# name: (function, arguments, gradients by each argument; None is no gradient[, FINITE])
ROWS = {
    # ---- ties and NaN in maxima, minima and medians
    "fmax, tie": (gg.fmax, [2.0, 2.0], [1.0, 0.0]),
    "fmax(nan, 1)": (gg.fmax, [nan, 1.0], [0.0, 1.0]),
    "fmax(1, nan)": (gg.fmax, [1.0, nan], [1.0, 0.0]),
    "fmax(nan, nan)": (gg.fmax, [nan, nan], [1.0, 0.0]),
    "fmin, tie": (gg.fmin, [2.0, 2.0], [1.0, 0.0]),
    "fmin(nan, 1)": (gg.fmin, [nan, 1.0], [0.0, 1.0]),
    "fmin(1, nan)": (gg.fmin, [1.0, nan], [1.0, 0.0]),
    "max over two axes, tie": (
        lambda x: gg.max(x, axis=(0, 1)), [[[1.0, 2.0], [2.0, 2.0]]],
        [[[0.0, 1 / 3], [1 / 3, 1 / 3]]]),
    "nanmax, tie": (gg.nanmax, [[2.0, nan, 2.0]], [[0.5, 0.0, 0.5]]),
    "nanmin, tie": (gg.nanmin, [[2.0, nan, 2.0]], [[0.5, 0.0, 0.5]]),
    "ptp, tie": (gg.ptp, [[1.0, 1.0, 3.0, 3.0]], [[-0.5, -0.5, 0.5, 0.5]]),
    "ptp of equal numbers": (gg.ptp, [[2.0, 2.0]], [[0.0, 0.0]]),
    "median of an even count": (gg.median, [[4.0, 1.0, 3.0, 2.0]], [[0.0, 0.0, 0.5, 0.5]]),
    "median, tie": (gg.median, [[2.0, 2.0, 1.0]], [[0.5, 0.5, 0.0]]),
    "median with nan": (gg.median, [[1.0, nan, 3.0]], [[nan, nan, nan]]),
    "nanmedian": (gg.nanmedian, [[nan, 1.0, 3.0]], [[0.0, 0.5, 0.5]]),
    "quantile between": (lambda x: gg.quantile(x, 0.3), [[4.0, 1.0, 2.0]], [[0.0, 0.4, 0.6]]),
    "quantile of infinities": (lambda x: gg.quantile(x, 0.5), [[1.0, inf, 3.0]], [[0.0, 0.0, 1.0]]),
    "quantile 0, ties as in min": (
        lambda x: gg.quantile(x, 0.0), [[1.0, 1.0, 2.0]], [[0.5, 0.5, 0.0]]),
    "quantile, lower": (
        lambda x: gg.quantile(x, 0.5, method="lower"), [[3.0, 1.0, 2.0, 4.0]],
        [[0.0, 0.0, 1.0, 0.0]]),
    "cumulative_max, tie": (
        lambda x: gg.cumulative_max(x) * W, [[1.0, 2.0, 2.0, 1.0]], [[1.0, 10.0, 1100.0, 0.0]]),
    "cumulative_max with nan": (
        lambda x: gg.cumulative_max(x) * W, [[1.0, nan, 2.0, 3.0]], [[1.0, 1110.0, 0.0, 0.0]]),
    "cumulative_min, tie": (
        lambda x: gg.cumulative_min(x) * W, [[2.0, 1.0, 1.0, 3.0]], [[1.0, 10.0, 1100.0, 0.0]]),
    "partition, tie": (
        lambda x: gg.partition(x, 1) * W[:3], [[2.0, 2.0, 1.0]], [[10.0, 100.0, 1.0]]),
    "sort downwards, tie": (
        lambda x: gg.sort(x, descending=True) * W[:3], [[2.0, 2.0, 1.0]], [[1.0, 10.0, 100.0]]),
    "sort of nan": (lambda x: gg.sort(x) * W[:3], [[nan, 2.0, 1.0]], [[100.0, 10.0, 1.0]]),
    "top_k of nan": (lambda x: gg.top_k(x, k=1)[0], [[nan, 2.0, 1.0]], [[1.0, 0.0, 0.0]]),
    "max_pool of nan": (
        lambda x: nn.max_pool1d(x, 2), [[[1.0, nan, 2.0, 3.0]]], [[[0.0, 1.0, 0.0, 1.0]]]),
    "max_pool of -inf": (lambda x: nn.max_pool1d(x, 2), [[[-inf, -inf]]], [[[1.0, 0.0]]]),
    "max_pool, padding never wins": (
        lambda x: nn.max_pool1d(x, 2, padding=1), [[[-1.0, -1.0]]], [[[1.0, 1.0]]]),
    "adaptive_max_pool, tie": (
        lambda x: nn.adaptive_max_pool1d(x, 2), [[[1.0] * 4]], [[[1.0, 0.0, 1.0, 0.0]]]),
    "segment_max, an empty segment": (
        lambda x: gg.segment_max(x, [0, 0, 2], 3), [[1.0, 1.0, 2.0]], [[0.5, 0.5, 1.0]]),
    "prod of a number, axis 0": (lambda x: gg.prod(x, axis=0), [2.0], [1.0]),
    "mean of a number, axis -1": (lambda x: gg.mean(x, axis=-1), [2.0], [1.0]),
    "cumprod of a number, axis 0": (lambda x: gg.cumprod(x, axis=0), [2.0], [1.0]),
    "repeat of a number, axis 0": (lambda x: gg.repeat(x, 3, axis=0), [2.0], [3.0]),
    "segment_prod with a zero": (
        lambda x: gg.segment_prod(x, [0, 0, 0], 1), [[0.0, 2.0, 3.0]], [[6.0, 0.0, 0.0]]),
    "segment_prod with two zeros": (
        lambda x: gg.segment_prod(x, [0, 0, 0], 1), [[0.0, 0.0, 3.0]], [[0.0, 0.0, 0.0]]),
    "inf-norm of a matrix, tie": (
        lambda x: linalg.norm(x, ord=1), [[[1.0, -1.0], [1.0, 1.0]]], [[[0.5, -0.5], [0.5, 0.5]]]),
    # ---- activations at their kinks and at infinity
    "relu6 of nan": (nn.relu6, [nan], [0.0]),
    "hardtanh": (nn.hardtanh, [[-1.0, 0.0, 1.0, 2.0]], [[0.0, 1.0, 0.0, 0.0]]),
    "hardsigmoid": (nn.hardsigmoid, [[-3.0, 0.0, 3.0]], [[0.0, 1 / 6, 0.0]]),
    "hardswish": (nn.hardswish, [[-3.0, 0.0, 3.0, inf, -inf]], [[0.0, 0.5, 1.0, 1.0, 0.0]]),
    "hardshrink": (nn.hardshrink, [[-0.5, 0.0, 0.5, 0.6]], [[0.0, 0.0, 0.0, 1.0]]),
    "softshrink": (nn.softshrink, [[-0.5, 0.0, 0.5, 0.6]], [[0.0, 0.0, 0.0, 1.0]]),
    "threshold": (lambda x: nn.threshold(x, 2.0, 9.0), [[1.0, 2.0, 3.0]], [[0.0, 0.0, 1.0]]),
    "elu": (lambda x: nn.elu(x, alpha=2.0), [[0.0, -1000.0, inf, -inf]], [[2.0, 0.0, 1.0, 0.0]]),
    "celu": (lambda x: nn.celu(x, alpha=2.0), [[0.0, inf, -inf]], [[1.0, 1.0, 0.0]]),
    "leaky_relu": (
        lambda x: nn.leaky_relu(x, negative_slope=0.2), [[-inf, nan, inf]], [[0.2, 0.2, 1.0]]),
    "prelu at 0": (nn.prelu, [[[0.0, -1.0, 1.0]], 0.25], [[[0.25, 0.25, 1.0]], -1.0]),
    "squared_relu": (nn.squared_relu, [[0.0, -1.0, 1.0]], [[0.0, 0.0, 2.0]]),
    "reglu at 0": (nn.reglu, [[0.0, 2.0]], [[0.0, 0.0]]),
    "softsign at infinity": (nn.softsign, [[inf, -inf]], [[0.0, 0.0]], FINITE),
    "sigmoid at infinity": (nn.sigmoid, [[inf, -inf, 1000.0]], [[0.0, 0.0, 0.0]]),
    "tanh at infinity": (nn.tanh, [[inf, -inf, nan]], [[0.0, 0.0, nan]]),
    "tanhshrink": (nn.tanhshrink, [[0.0, inf, -inf]], [[0.0, 1.0, 1.0]]),
    "softplus at infinity": (nn.softplus, [[inf, -inf]], [[1.0, 0.0]]),
    "log_sigmoid at infinity": (nn.log_sigmoid, [[inf, -inf]], [[0.0, 1.0]]),
    "gelu, far": (nn.gelu, [[1000.0, -1000.0]], [[1.0, 0.0]]),
    "gelu by tanh, far": (
        lambda x: nn.gelu(x, approximate="tanh"), [[1e150, -1e150]], [[1.0, 0.0]], FINITE),
    "silu, far": (nn.silu, [[1000.0, -1000.0]], [[1.0, 0.0]]),
    "mish, far": (nn.mish, [[0.0, 1000.0, -1000.0]], [[0.6, 1.0, 0.0]]),
    "sparsemax, tie": (lambda x: nn.sparsemax(x) * W[:2], [[0.0, 0.0]], [[-4.5, 4.5]]),
    "sparsemax at the edge": (lambda x: nn.sparsemax(x) * W[:2], [[1.0, 0.0]], [[0.0, 0.0]]),
    # ---- losses at their kinks, far out, and without contributing elements
    "l1_loss at 0": (summed(nn.l1_loss), [[1.0, 2.0], [1.0, 1.0]], [[0.0, 1.0], [0.0, -1.0]]),
    "huber_loss": (
        summed(nn.huber_loss), [[1.0, -1.0, 0.0, inf], [0.0] * 4],
        [[1.0, -1.0, 0.0, 1.0], [-1.0, 1.0, 0.0, -1.0]]),
    "smooth_l1_loss": (
        summed(nn.smooth_l1_loss), [[1.0, -1.0, 0.0], [0.0] * 3],
        [[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]]),
    "smooth_l1_loss, beta 0": (
        summed(nn.smooth_l1_loss, beta=0.0), [[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [-1.0, 0.0]]),
    "log_cosh_loss, far": (
        summed(nn.log_cosh_loss), [[1000.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [-1.0, 0.0]]),
    "hinge_loss": (summed(nn.hinge_loss, [1.0, -1.0]), [[1.0, -1.0]], [[-1.0, 1.0]]),
    "hinge_embedding_loss": (
        summed(nn.hinge_embedding_loss, [-1.0] * 3), [[1.0, 2.0, 0.0]], [[-1.0, 0.0, -1.0]]),
    "margin_ranking_loss, tie": (summed(nn.margin_ranking_loss, [1.0]), [[1.0], [1.0]],
                                 [[-1.0], [1.0]]),
    "multi_margin_loss": (summed(nn.multi_margin_loss, [1]), [[[1.0, 2.0, 0.0]]], [[[0.0] * 3]]),
    "multilabel_margin_loss": (
        summed(nn.multilabel_margin_loss, [[0, -1, -1]]), [[[1.0, 0.0, 2.0]]],
        [[[-1 / 3, 0.0, 1 / 3]]]),
    "soft_margin_loss, far": (
        summed(nn.soft_margin_loss, [1.0, 1.0]), [[1000.0, -1000.0]], [[0.0, -1.0]], FINITE),
    "sigmoid_focal_loss, far": (
        summed(nn.sigmoid_focal_loss, [1.0, 1.0]), [[1000.0, -1000.0]], [[0.0, -0.25]]),
    "triplet_margin_loss of one point": (
        nn.triplet_margin_loss, [[[1.0, 2.0]]] * 3,
        [[[0.0, 0.0]], [[-(0.5**0.5)] * 2], [[0.5**0.5] * 2]]),
    "cross_entropy, all ignored": (
        lambda x: nn.cross_entropy(x, [-100, -100]), [QUERY], [np.zeros((2, 2))]),
    "nll_loss, all ignored": (lambda x: nn.nll_loss(x, [-100, -100]), [QUERY], [np.zeros((2, 2))]),
    "nll_loss, weights of 0": (
        lambda x: nn.nll_loss(x, [1, 1], [1.0, 0.0]), [QUERY], [np.zeros((2, 2))], FINITE),
    "cross_entropy, another at -inf": (
        lambda x: nn.cross_entropy(x, [0]), [[[0.0, -inf]]], [[[0.0, 0.0]]]),
    "cross_entropy, its own at -inf": (
        lambda x: nn.cross_entropy(x, [1]), [[[0.0, -inf]]], [[[1.0, -1.0]]]),
    "softmax_cross_entropy, 0 at -inf": (
        lambda x: gg.softmax_cross_entropy(x, [[1.0, 0.0]]), [[[0.0, -inf]]], [[[0.0, 0.0]]]),
    "binary_cross_entropy at 0 and 1": (
        summed(nn.binary_cross_entropy, [0.0, 1.0]), [[0.0, 1.0]], [[0.0, 0.0]]),
    "bce_with_logits_loss, far": (
        summed(nn.bce_with_logits_loss, [1.0, 1.0, 1.0, 0.0]), [[1000.0, -1000.0, inf, -inf]],
        [[0.0, -1.0, 0.0, 0.0]]),
    "kl_div, a probability of 0": (
        summed(nn.kl_div), [[-1.0, -2.0], [0.0, 1.0]], [[0.0, -1.0], [1.0, 3.0]], FINITE),
    "kl_div, its logarithm": (
        summed(nn.kl_div, log_target=True), [[-1.0, -2.0], [-inf, 0.0]], [[0.0, -1.0], [0.0, 3.0]],
        FINITE),
    "gaussian_nll_loss, no variance": (
        summed(nn.gaussian_nll_loss), [[1.0], [2.0], [0.0]], [[-1e6], [1e6], [5e5 - 5e11]]),
    # ---- zero vectors, constant data
    **{
        f"{p}-norm of 0": (
            lambda x, p=p: gg.vector_norm(x, ord=p), [[0.0, 0.0]], [[0.0, 0.0]], FINITE)
        for p in (0.5, 1, 1.5, 3, inf, -inf, -1)
    },
    "3-norm with a 0": (lambda x: gg.vector_norm(x, ord=3), [[0.0, 3.0]], [[0.0, 1.0]]),
    "norm of complex 0": (gg.vector_norm, [[0j, 0j]], [[0.0, 0.0]], FINITE),
    "norm of complex numbers": (gg.vector_norm, [[3j, 4.0 + 0j]], [[0.6j, 0.8]]),
    "norm of infinity": (gg.vector_norm, [[inf, 1.0]], [[nan, 0.0]]),
    "Frobenius norm of 0": (linalg.norm, [[[0.0, 0.0]]], [[[0.0, 0.0]]], FINITE),
    "nuclear norm of 0": (lambda x: linalg.norm(x, ord="nuc"), [np.zeros((2, 2))], [EYE]),
    "spectral norm of I": (
        lambda x: linalg.norm(x, ord=2), [EYE], [[[0.5, 0.0], [0.0, 0.5]]]),
    "cdist of one point": (nn.cdist, [[[1.0, 2.0]]] * 2, [[[0.0, 0.0]]] * 2),
    "cdist, 1 axis the same": (
        lambda x, y: nn.cdist(x, y, p=3.0), [[[1.0, 2.0]], [[1.0, 3.0]]],
        [[[0.0, -1.0]], [[0.0, 1.0]]]),
    "cdist by the largest, tie": (
        lambda x, y: nn.cdist(x, y, p=inf), [[[1.0, 2.0]], [[2.0, 3.0]]],
        [[[-0.5, -0.5]], [[0.5, 0.5]]], FINITE),
    "pairwise_distance of one point": (
        lambda x, y: nn.pairwise_distance(x, y, eps=0.0), [[[1.0, 2.0]]] * 2, [[[0.0, 0.0]]] * 2),
    "cosine_similarity of 0": (nn.cosine_similarity, [[[0.0, 0.0]]] * 2, [[[0.0, 0.0]]] * 2),
    "cosine_similarity of 0 and (3, 4)": (
        nn.cosine_similarity, [[[0.0, 0.0]], [[3.0, 4.0]]], [[[6e7, 8e7]], [[0.0, 0.0]]]),
    "cosine_similarity of one vector": (
        nn.cosine_similarity, [[[1.0, 2.0]]] * 2, [[[0.0, 0.0]]] * 2),
    "layer_norm of equal numbers": (
        lambda x: nn.layer_norm(x) * [1.0, 2.0, 6.0], [[1.0] * 3],
        [np.array([-2.0, -1.0, 3.0]) / 1e-5**0.5]),
    "layer_norm of equal numbers, eps 0": (
        lambda x: nn.layer_norm(x, eps=0.0) * [1.0, 2.0, 6.0], [[1.0] * 3], [[0.0] * 3], FINITE),
    "rms_norm of 0, eps 0": (
        lambda x: nn.rms_norm(x, eps=0.0) * W[:2], [[0.0] * 2], [[0.0] * 2], FINITE),
    "batch_norm of equal numbers": (
        lambda x: nn.batch_norm(x, training=True)[0] * [[1.0], [3.0]], [[[1.0], [1.0]]],
        [np.array([[-1.0], [1.0]]) / 1e-5**0.5]),
    "corrcoef of equal numbers": (
        lambda x: gg.corrcoef(x)[1, 1], [[[1.0, 1.0, 1.0], [1.0, 2.0, 4.0]]], [np.zeros((2, 3))],
        FINITE),
    "corrcoef of proportional numbers": (
        lambda x: gg.corrcoef(x)[0, 1], [[[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]], [np.zeros((2, 3))]),
    "nanstd of equal numbers": (gg.nanstd, [[1.0, nan, 1.0]], [[0.0] * 3], FINITE),
    "std of one, correction 1": (lambda x: gg.std(x, correction=1), [[1.0]], [[nan]]),
    "nansum of NaN only": (gg.nansum, [[nan, nan]], [[0.0, 0.0]]),
    "nanmean": (gg.nanmean, [[nan, 1.0, 2.0]], [[0.0, 0.5, 0.5]]),
    "nanprod": (gg.nanprod, [[nan, 2.0, 3.0]], [[0.0, 3.0, 2.0]]),
    # ---- attention, softmax
    "masked_softmax, a masked row": (
        lambda x: nn.masked_softmax(x, MASK) * W[:2], [[[1.0, nan], [nan, inf]]],
        [np.zeros((2, 2))]),
    "attention, a masked row": (
        lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, attn_mask=MASK),
        [QUERY, QUERY, QUERY], [np.zeros((2, 2)), np.zeros((2, 2)), [[1.0, 1.0], [0.0, 0.0]]]),
    "attention, a masked key of nan": (
        lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, attn_mask=MASK),
        [QUERY, [[1.0, 2.0], [nan, nan]], QUERY],
        [np.zeros((2, 2)), np.zeros((2, 2)), [[1.0, 1.0], [0.0, 0.0]]], FINITE),
    "softmax of -inf": (lambda x: gg.softmax(x) * W[:2], [[-inf, -inf]], [[nan, nan]]),
    "softmax of (0, -inf)": (lambda x: gg.softmax(x) * W[:2], [[0.0, -inf]], [[0.0, 0.0]]),
    "softmax, a row of -inf unused": (
        lambda x: gg.softmax(x)[1, 0], [[[-inf, -inf], [0.0, 0.0]]], [[[0.0, 0.0], [0.25, -0.25]]],
        FINITE),
    "log_softmax, a row of -inf unused": (
        lambda x: gg.log_softmax(x)[1, 0], [[[-inf, -inf], [0.0, 0.0]]],
        [[[0.0, 0.0], [0.5, -0.5]]], FINITE),
    "logsumexp, a row of -inf unused": (
        lambda x: gg.logsumexp(x, axis=1)[1], [[[-inf, -inf], [0.0, 0.0]]],
        [[[0.0, 0.0], [0.5, 0.5]]], FINITE),
    "cumulative_logsumexp after -inf": (
        gg.cumulative_logsumexp, [[-inf, -inf, 0.0]], [[0.0, 0.0, 1.0]], FINITE),
    "logaddexp(-inf, -inf)": (gg.logaddexp, [-inf, -inf], [nan, nan]),
    "logaddexp(-inf, 0)": (gg.logaddexp, [-inf, 0.0], [0.0, 1.0]),
    "logaddexp(inf, 0)": (gg.logaddexp, [inf, 0.0], [1.0, 0.0]),
    "logaddexp2(inf, -inf)": (gg.logaddexp2, [inf, -inf], [1.0, 0.0]),
    # ---- entropies
    "entr": (special.entr, [[0.0, 1.0, -1.0]], [[inf, -1.0, nan]]),
    "rel_entr(0, 0)": (special.rel_entr, [0.0, 0.0], [0.0, 0.0]),
    "rel_entr(0, 2)": (special.rel_entr, [0.0, 2.0], [-inf, 0.0]),
    "rel_entr(2, 0)": (special.rel_entr, [2.0, 0.0], [inf, -inf]),
    "special.kl_div(0, 0)": (special.kl_div, [0.0, 0.0], [0.0, 1.0]),
    "special.kl_div(1, 1)": (special.kl_div, [1.0, 1.0], [0.0, 0.0]),
    "special.huber at its kink": (special.huber, [1.0, 1.0], [0.0, 1.0]),
    "special.pseudo_huber(0, 0)": (special.pseudo_huber, [0.0, 0.0], [0.0, 0.0]),
    # ---- matrices with equal or zero eigenvalues
    "svd of I, a vector": (
        lambda x: gg.sum(linalg.svd(x)[0] @ linalg.svd(x)[2] * [[1.0, 2.0], [3.0, 4.0]]), [EYE],
        [[[0.0, -0.5], [0.5, 0.0]]], FINITE),
    "eigvals of I": (
        lambda x: gg.real(linalg.eigvals(x)) * W[:2], [EYE], [[[1.0, 0.0], [0.0, 10.0]]]),
    "det of rank 2 of 3": (gg.det, [np.diag([1.0, 2.0, 0.0])], [np.diag([0.0, 0.0, 2.0])]),
    "det of complex singular": (
        gg.det, [[[1j, 2j], [2.0 + 0j, 4.0]]], [[[4.0, -2.0], [2j, -1j]]], FINITE),
    "pinv of rank 1": (
        linalg.pinv, [SINGULAR], [[[0.0048, -0.0144], [-0.0144, -0.0768]]]),
    "matrix_power 0": (lambda x: linalg.matrix_power(x, 0), [SINGULAR], [np.zeros((2, 2))]),
    "expm of 0": (linalg.expm, [np.zeros((2, 2))], [np.ones((2, 2))]),
    # ---- angles, powers, remainders
    "hypot(inf, 1)": (gg.hypot, [inf, 1.0], [nan, 0.0]),
    "atan2 of huge": (gg.atan2, [1e200, 1e200], [5e-201, -5e-201], FINITE),
    "atan2 of tiny": (gg.atan2, [1e-200, 1e-200], [5e199, -5e199], FINITE),
    "atan2(-0, -1)": (gg.atan2, [-0.0, -1.0], [-1.0, 0.0]),
    "angle of a real number": (gg.angle, [[-1.0, 1.0]], [[0.0, 0.0]]),
    "sign of complex 0": (lambda z: gg.real(gg.sign(z)), [0j], [0.0]),
    "fmod": (gg.fmod, [[-7.0, 4.0, -4.0], [2.0, 2.0, 2.0]], [[1.0] * 3, [3.0, -2.0, 2.0]]),
    "fmod where x / y rounds up": (gg.fmod, [1.0, 0.1], [1.0, -9.0], FINITE),
    "fmod(1, inf)": (gg.fmod, [1.0, inf], [1.0, 0.0]),
    "remainder(-1, inf)": (gg.remainder, [-1.0, inf], [1.0, 1.0]),
    "pow(-0, -1)": (gg.power, [-0.0, -1.0], [-inf, 0.0], FINITE),
    "pow(inf, 2)": (gg.power, [inf, 2.0], [inf, inf]),
    "pow(1, inf)": (gg.power, [1.0, inf], [inf, 0.0]),
    "pow(1, nan)": (gg.power, [1.0, nan], [nan, 0.0]),
    "pow(nan, 0)": (gg.power, [nan, 0.0], [0.0, 0.0], FINITE),
    "pow(0j, 2)": (gg.power, [0j, 2.0 + 0j], [0.0, 0.0]),
    "cbrt at 0": (gg.cbrt, [0.0], [inf]),
    "prod of (inf, 0)": (gg.prod, [[inf, 0.0]], [[0.0, inf]]),
    "prod with nan": (gg.prod, [[2.0, nan, 3.0]], [[nan, 6.0, nan]]),
    # ---- clip
    "clip of nan": (lambda x: gg.clip(x, 0.0, 1.0), [nan], [0.0]),
    "clip of infinities": (gg.clip, [[inf, -inf], 0.0, 1.0], [[0.0, 0.0], 1.0, 1.0]),
    "clip at its upper bound": (gg.clip, [1.0, 0.0, 1.0], [1.0, 0.0, 0.0]),
    "clip with equal bounds": (gg.clip, [1.0, 1.0, 1.0], [1.0, 0.0, 0.0]),
    "clip, bounds crossed": (gg.clip, [[0.0, 2.0, 5.0], 3.0, 1.0], [[0.0] * 3, 0.0, 3.0]),
    "clip from below only": (lambda x: gg.clip(x, 0.0), [[-1.0, 0.0, 1.0]], [[0.0, 1.0, 1.0]]),
    "nan_to_num": (gg.nan_to_num, [[nan, inf, -inf, 1.0]], [[0.0, 0.0, 0.0, 1.0]]),
    # ---- steps, parts of numbers
    "heaviside": (gg.heaviside, [[-1.0, 0.0, 1.0], 0.5], [[0.0] * 3, 1.0]),
    "fix": (gg.fix, [[0.5, 1.0]], [None]),
    "modf": (lambda x: gg.modf(x)[0], [[0.0, -1.5, 2.0]], [[1.0, 1.0, 1.0]]),
    "frexp": (lambda x: gg.frexp(x)[0], [[3.0]], [[0.25]]),
    "fabs at 0": (gg.fabs, [0.0], [0.0]),
    "sinc": (gg.sinc, [[0.0, 1.0, inf]], [[0.0, -1.0, 0.0]], FINITE),
    "exprel at 0": (special.exprel, [0.0], [0.5]),
    "logit at its bounds": (special.logit, [[0.0, 0.5, 1.0]], [[inf, 4.0, inf]]),
    "ndtri at its bounds": (special.ndtri, [[0.0, 1.0]], [[inf, inf]]),
    "log_ndtr, far": (special.log_ndtr, [[inf, -inf]], [[0.0, inf]], FINITE),
    "boxcox at 0": (special.boxcox, [2.0, 0.0], [0.5, np.log(2.0) ** 2 / 2]),
    "gammainc at 0": (special.gammainc, [[1.0, 2.0, 0.5], [0.0] * 3], [[0.0] * 3, [1.0, 0.0, inf]],
                      FINITE),
    "gammainc where x^a underflows": (
        lambda x: 1e29 * special.gammainc(3.0, x), [[1e-14]], [[5.0]], FINITE),
    "betainc at its bounds": (lambda x: special.betainc(2.0, 3.0, x), [[0.0, 1.0]], [[0.0, 0.0]]),
    "spherical_jn(1) at 0": (lambda x: special.spherical_jn(1, x), [0.0], [1 / 3]),
    # ---- tables and indices
    "interp at points and beyond": (
        gg.interp, [[0.0, 1.0, 1.5, 2.0, 4.0, 5.0], [1.0, 2.0, 4.0], [10.0, 20.0, 0.0]],
        [[0.0, 10.0, 10.0, -10.0, -10.0, 0.0], [-15.0, 5.0, 10.0], [2.5, 1.5, 2.0]]),
    "interp of one point": (gg.interp, [[0.0, 1.0, 2.0], [1.0], [3.0]], [[0.0] * 3, [0.0], [3.0]]),
    "searchsorted": (lambda x: gg.searchsorted([1.0, 2.0], x), [[1.5]], [None]),
    "digitize": (lambda x: gg.digitize(x, [1.0, 2.0]), [[1.5]], [None]),
    "unique_values": (
        lambda x: gg.unique_values(x) * W[:2], [[2.0, 1.0, 2.0]], [[10.0, 1.0, 0.0]]),
    "histogram, weights at the edges": (
        lambda w: gg.histogram([0.0, 2.0, 4.0, 5.0], bins=[0.0, 2.0, 4.0], weights=w)[0] * W[:2],
        [[1.0] * 4], [[1.0, 10.0, 10.0, 0.0]]),
    "take by uint64": (
        lambda x: gg.take(x, gg.constant(np.array([1, 1], np.uint64))), [[1.0, 2.0]], [[0.0, 2.0]]),
    "int8 indices in a larger array": (
        lambda x: x[np.array([99, -1], np.int8), np.array([2, 2], np.int8)],
        [np.zeros((100, 3))], [np.pad([[2.0]], ((99, 0), (2, 0)))]),
    "sum of an empty array": (lambda x: gg.sum(gg.exp(x) * gg.sqrt(x)), [np.zeros((0, 3))],
                       [np.zeros((0, 3))]),
    # ---- real input, complex result
    "fft of real numbers": (lambda x: gg.fft.fft(x)[1], [[1.0, 2.0, 3.0]], [[1.0, -0.5, -0.5]]),
    "rfft": (lambda x: gg.fft.rfft(x)[1], [[1.0, 2.0, 3.0]], [[1.0, -0.5, -0.5]]),
    "irfft": (lambda x: gg.fft.irfft(x, 2)[1], [[1.0 + 0j, 2.0 + 1j]], [[0.5, -0.5]]),
    "prod of complex numbers": (
        gg.prod, [[1 + 1j, 2 + 0j, 1j]], [[-2j, -1 - 1j, 2 - 2j]]),
    "eigvals of a rotation": (
        lambda x: gg.imag(linalg.eigvals(x)) * [1.0, 2.0], [[[0.0, 1.0], [-1.0, 0.0]]],
        [[[0.0, -0.5], [0.5, 0.0]]]),
    # ---- a masked branch never poisons a gradient
    "where matmul of infinities": (
        lambda x, y: gg.where(gg.constant([[True], [False]]), (1 / x) @ y, 0.0),
        [[[1.0, 2.0], [0.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]]],
        [[[-3.0, -1.75], [0.0, 0.0]], [[1.0, 1.0], [0.5, 0.5]]], FINITE),
    "where matmul of nan": (
        lambda x, y: gg.where(gg.constant([[True], [False]]), x @ y, 0.0),
        [[[1.0, 2.0], [nan, 2.0]], EYE], [[[1.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [2.0, 2.0]]],
        FINITE),
    "where norm of a row": (
        lambda x: gg.where(gg.constant([False, True]), gg.sqrt(gg.sum(x * x, axis=1)), 0.0),
        [[[0.0, 0.0], [3.0, 4.0]]], [[[0.0, 0.0], [0.6, 0.8]]], FINITE),
    "where vector_norm of an infinite row": (
        lambda x: gg.where(gg.constant([False, True]), gg.vector_norm(x, axis=1), 0.0),
        [[[inf, 0.0], [3.0, 4.0]]], [[[0.0, 0.0], [0.6, 0.8]]], FINITE),
    "where std of an infinite row": (
        lambda x: gg.where(gg.constant([False, True]), gg.std(x, axis=1), 0.0),
        [[[inf, 0.0], [1.0, 3.0]]], [[[0.0, 0.0], [-0.5, 0.5]]], FINITE),
    "where slogdet": (
        lambda x: gg.where(gg.constant([False, True]), gg.slogdet(x)[1], 0.0),
        [[SINGULAR, EYE]], [[np.zeros((2, 2)), EYE]], FINITE),
}  # fmt: skip

MASKED = {  # functions that are not finite, or have no finite derivative, at 0
    "log2": gg.log2, "log10": gg.log10, "rsqrt": gg.rsqrt, "cbrt": gg.cbrt, "x/x": lambda x: x / x,
    "x**-1.5": lambda x: x**-1.5, "x**x": lambda x: x**x, "x log(x)": lambda x: x * gg.log(x),
    "xlogy": lambda x: special.xlogy(x, x), "xdivy": lambda x: special.xdivy(1.0, x),
    "xlog1py": lambda x: special.xlog1py(1.0, x - 1), "entr": special.entr,
    "rel_entr": lambda x: special.rel_entr(x, x), "kl_div": lambda x: special.kl_div(1.0, x),
    "logaddexp": lambda x: gg.logaddexp(gg.log(x), gg.log(x)), "logit": special.logit,
    "ndtri": special.ndtri, "erfinv": lambda x: special.erfinv(x - 1), "gamma": special.gamma,
    "gammaln": special.gammaln, "digamma": special.digamma, "polygamma": lambda x:
    special.polygamma(1, x), "beta": lambda x: special.beta(x, x), "k0": special.k0,
    "y0": special.y0, "expi": special.expi, "exp1": special.exp1, "spence": special.spence,
    "ellipk": lambda x: special.ellipk(1 - x), "acosh": lambda x: gg.acosh(1 + x),
    "zeta": lambda x: special.zeta(2.0, x), "boxcox": lambda x: special.boxcox(x, 0.5),
    "gammainc": lambda x: special.gammainc(x, x), "betainc": lambda x: special.betainc(x, x, 0.5),
    "atan2": lambda x: gg.atan2(x, x), "1/hypot": lambda x: 1 / gg.hypot(x, x),
    "1/norm": lambda x: 1 / gg.vector_norm(x), "1/std": lambda x: 1 / gg.std(x),
    "remainder": lambda x: gg.remainder(1.0, x), "fmod": lambda x: gg.fmod(1.0, x),
    "logsumexp": lambda x: gg.logsumexp(gg.log(gg.stack([x, x]))),
    "softmax": lambda x: gg.softmax(gg.log(gg.stack([x, x])))[0],
    "exp(1/x)": lambda x: gg.exp(1 / x), "sin(1/x)": lambda x: gg.sin(1 / x),
    "tanh(1/x)": lambda x: gg.tanh(1 / x), "gelu(1/x)": lambda x: gg.gelu(1 / x),
    "silu(1/x)": lambda x: gg.silu(1 / x), "softplus(1/x)": lambda x: gg.softplus(1 / x),
    "norm of (x, 1/x)": lambda x: gg.vector_norm(gg.stack([x, 1 / x])),
    "std of (x, 1/x)": lambda x: gg.std(gg.stack([x, 1 / x])),
    "cosine of (x, 1/x)": lambda x: nn.cosine_similarity(
        gg.stack([x, 1 / x]), gg.stack([x, x]), axis=0),
    "dot of (1/x) and (x)": lambda x: gg.dot(gg.stack([1 / x]), gg.stack([x])),
    "vecdot of (1/x) and (x)": lambda x: gg.vecdot(gg.stack([1 / x]), gg.stack([x])),
}  # fmt: skip


@pytest.mark.parametrize("f", [gg.cumulative_sum, gg.cumulative_prod], ids=lambda f: f.__name__)
@pytest.mark.parametrize("include_initial", [False, True])
def test_cumulative_ops_of_a_scalar_are_differentiable(f, include_initial):
    run = functools.partial(f, axis=0, include_initial=include_initial)
    gg.testing.check_grads(run, (np.array(2.5),), order=2)


@pytest.mark.parametrize("name", ROWS)
def test_gradient_at_an_edge(name):
    check_gradient(*ROWS[name])


@pytest.mark.parametrize("name", connected(ROWS))
def test_gradient_at_an_edge_while_an_outer_tape_records(name):
    check_gradient_of_tensors(*ROWS[name])


@pytest.mark.parametrize("name", finite(ROWS))
def test_forward_mode_at_an_edge(name):
    check_forward_mode(*ROWS[name])


@pytest.mark.parametrize("at", [0.0, -1.0])
@pytest.mark.parametrize("name", MASKED)
def test_masked_branch_has_gradient_0(name, at):
    check_gradient(zero_where_not_positive(MASKED[name]), [at], [0.0])


# name: (call, expected value)
VALUES = {
    "sum of []": (lambda: gg.sum([]), 0.0),
    "prod of []": (lambda: gg.prod([]), 1.0),
    "mean of []": (lambda: gg.mean([]), nan),
    "logsumexp of []": (lambda: gg.logsumexp([]), -inf),
    "logsumexp of [] along an axis": (
        lambda: gg.logsumexp(np.zeros((2, 0)), axis=1, keepdims=True), [[-inf], [-inf]]),
    "norm of []": (lambda: gg.vector_norm([]), 0.0),
    "any of []": (lambda: gg.any([]), False),
    "all of []": (lambda: gg.all([]), True),
    "det of a 0x0 matrix": (lambda: gg.det(np.zeros((0, 0))), 1.0),
    "matmul, an empty axis": (lambda: gg.matmul(np.ones((1, 0)), np.ones((0, 2))), [[0.0, 0.0]]),
    "softmax of []": (lambda: gg.softmax([]), []),
    "max of no rows": (lambda: gg.max(np.zeros((0, 3)), axis=1), []),
    "attention over no keys": (
        lambda: nn.scaled_dot_product_attention(
            np.ones((1, 2)), np.ones((0, 2)), np.ones((0, 2))), [[0.0, 0.0]]),
    "empty segments": (lambda: gg.segment_max([1.0], [2], 3), [-inf, -inf, 1.0]),
    "segments, a negative one": (lambda: gg.segment_sum([1.0, 2.0], [0, -1], 2), [1.0, 0.0]),
    "median of []": (lambda: gg.median([]), nan),
    "median of no rows": (lambda: gg.median(np.ones((0, 2)), axis=0), [nan, nan]),
    "nanmedian of []": (lambda: gg.nanmedian(np.ones((2, 0), int), axis=1), [nan, nan]),
    "median of a number": (lambda: gg.median(1.0), 1.0),
    "unique_values of a number": (lambda: gg.unique_values(1.0), [1.0]),
    "unique_values of nan": (lambda: gg.unique_values([nan, nan, 1.0]), [1.0, nan, nan]),
    "unique of nan": (lambda: gg.unique([nan, nan, 1.0]), [1.0, nan]),
    "unique_values of -0": (lambda: gg.unique_values([0.0, -0.0]), [0.0]),
    "searchsorted, left": (
        lambda: gg.searchsorted([1.0, 2.0, 2.0], [0.0, 1.0, 2.0, 3.0, nan, inf]),
        [0, 0, 1, 3, 3, 3]),
    "searchsorted, right": (
        lambda: gg.searchsorted([1.0, 2.0, 2.0], [0.0, 1.0, 2.0, 3.0], side="right"), [0, 1, 3, 3]),
    "searchsorted in []": (lambda: gg.searchsorted([], [1.0]), [0]),
    "histogram, last edge included": (
        lambda: gg.histogram([0.0, 2.0, 4.0, 4.5], bins=[0.0, 2.0, 4.0])[0], [1, 2]),
    "histogram of equal numbers": (lambda: gg.histogram([2.0, 2.0], bins=2)[1], [1.5, 2.0, 2.5]),
    "histogram, nan outside": (
        lambda: gg.histogram([nan, 2.0], bins=2, range=(0.0, 4.0))[0], [0, 1]),
    "digitize, right": (lambda: gg.digitize([1.0, 2.0], [1.0, 2.0], right=True), [0, 1]),
    "one_hot of invalid classes": (lambda: gg.one_hot([2, -1], 2), [[0.0, 0.0], [0.0, 0.0]]),
    "cross_entropy, int8 labels of 200": (
        lambda: nn.cross_entropy(np.zeros((1, 200)), np.array([100], np.int8)), np.log(200.0)),
    "ravel_multi_index of int8": (
        lambda: gg.ravel_multi_index((np.array([100], np.int8),) * 2, (200, 200)), [20100]),
    "logsumexp": (
        lambda: gg.logsumexp([[-inf, -inf], [inf, 0.0], [inf, -inf], [nan, 0.0]], axis=1),
        [-inf, inf, inf, nan]),
    "logsumexp, complex infinities": (
        lambda: gg.logsumexp([[-inf + 4j, -inf], [800 + 4j, 800]], axis=1),
        [-inf, 800 + np.log(1 + np.exp(4j))]),
    "logaddexp": (lambda: gg.logaddexp([-inf, inf, inf], [-inf, inf, -inf]), [-inf, inf, inf]),
    "clip, bounds crossed": (lambda: gg.clip([0.0, 5.0], 3.0, 1.0), [1.0, 1.0]),
    "corrcoef of equal numbers": (
        lambda: gg.corrcoef([[1.0, 1.0], [1.0, 2.0]]), [[nan, nan], [nan, 1.0]]),
    "kl_div, probabilities of 0": (
        lambda: nn.kl_div([0.0], [-inf], log_target=True, reduction="sum"), 0.0),
    "cross_entropy, all ignored": (lambda: nn.cross_entropy([[1.0, 2.0]], [-100]), 0.0),
    # where TensorFlow and NumPy differ, the values are NumPy's
    "mean of integers": (lambda: gg.mean([1, 2]), 1.5),
    "argmax of a matrix": (lambda: gg.argmax([[1.0, 5.0], [7.0, 2.0]]), 2),
    "round half to even": (lambda: gg.round([0.5, 1.5, 2.5]), [0.0, 2.0, 2.0]),
    "float to int": (lambda: gg.astype([1.7, -1.7], "int32"), [1, -1]),
    "int / int": (lambda: gg.constant([1, 2]) / gg.constant([2, 2]), [0.5, 1.0]),
    "int // int": (lambda: gg.constant([-7, 7]) // gg.constant([2, -2]), [-4, -4]),
    "int % int": (lambda: gg.constant([-7, 7]) % gg.constant([2, -2]), [1, -1]),
    "matmul of vectors": (lambda: gg.matmul([1.0, 2.0], [3.0, 4.0]), 11.0),
    "sum of bools": (lambda: gg.sum([True, True]), 2),
    "int + float": (lambda: gg.constant(1) + 1.5, 2.5),
    "take from the end": (lambda: gg.take([1.0, 2.0], [-1]), [2.0]),
}  # fmt: skip

HUGE = np.array([2**64 - 1], np.uint64)  # its bits would be -1 as an int64

# name: (call, exception, words of its message)
ERRORS = {
    "max of []": (lambda: gg.max([]), ShapeError, "max.*an empty array has no maximum"),
    "argmax of []": (lambda: gg.argmax([]), ShapeError, "argmax.*empty"),
    "quantile of []": (lambda: gg.quantile([], 0.5), ShapeError, "quantile: .* is empty"),
    "sort of a number": (lambda: gg.sort(1.0), AxisError, "sort.*axis -1"),
    "softmax of a number": (lambda: gg.softmax(1.0), AxisError, "softmax: axis -1"),
    "trim_zeros beyond the axes": (
        lambda: gg.trim_zeros([[0.0, 1.0]], axis=2), AxisError, "trim_zeros: axis 2"),
    "an axis that is not an int": (
        lambda: gg.flip([[0.0, 1.0]], axis=1.0), ArgumentError, "flip: .*an int or a tuple"),
    "an axis of unstack that is not an int": (
        lambda: gg.unstack([0.0, 1.0], axis=0.5), ArgumentError, "unstack: .*axis=0.5.*an int"),
    "an axis of split that is not an int": (
        lambda: gg.split([0.0, 1.0], 2, axis="x"), ArgumentError, "split: .*axis='x'.*an int"),
    "an axis of unique that is not an int": (
        lambda: gg.unique([0.0, 1.0], axis="x"), ArgumentError, "unique: .*axis='x'.*an int"),
    "an axis of gradient that is not an int": (
        lambda: gg.gradient([0.0, 1.0], axis="x"), ArgumentError, "gradient: .*axis='x'.*an int"),
    "an axis of dct that is not an int": (
        lambda: gg.fft.dct([0.0, 1.0], axis=0.5), ArgumentError, "dct: .*axis=0.5.*an int"),
    "an axis of gradient twice": (
        lambda: gg.gradient([[0.0, 1.0]] * 2, axis=(0, -2)), AxisError, "gradient: .*twice"),
    "a number of pieces that is not an int": (
        lambda: gg.split([0.0, 1.0], 1.5), ArgumentError, "split: .*1.5.*an int"),
    "a dict of lengths": (
        lambda: gg.fft.irfftn([[0.0, 1.0]], s={"a": 1}), DTypeError, "irfftn: s .*{'a': 1}"),
    "text for a value to fill in": (
        lambda: gg.OPS["index_fill"].eager([0.0], index=0, value="x"), DTypeError, "index_fill:"),
    "an array for a dtype": (
        lambda: gg.zeros(1, dtype=np.ones(2)), DTypeError, r"array\(.* is not a dtype"),
    "edges of bins in disorder": (
        lambda: gg.histogram([1.0], gg.constant([2.0, 1.0])), ArgumentError, "histogram: .*order"),
    "a tolerance that is text": (
        lambda: gg.real_if_close([1j], "x"), ArgumentError, "real_if_close: .*'x'.*a number"),
    "an unknown casting rule": (
        lambda: gg.can_cast("int8", "int16", "x"), ArgumentError, "can_cast: .*must be one of"),
    "a size of tri that is not an int": (
        lambda: gg.tri("x"), ArgumentError, "tri: .*N: 'x'.*an int"),
    "a scale that is not a number": (
        lambda: gg.random.normal(2, stddev="x"), DTypeError, "normal: .*stddev='x'"),
    "text where a function wants an array": (
        lambda: gg.linalg.cho_solve("text", [1.0]), ArgumentError, "cho_solve: .*'text'"),
    "a length that is too large": (lambda: gg.zeros(2**70), ShapeError, "zeros: .*dimension"),
    "a tolerance that is not a number": (
        lambda: gg.isclose(1.0, [1.0], rtol=gg.ones(3)), ArgumentError, "isclose: .*one element"),
    "an array for labels of axes": (
        lambda: gg.einsum_path(gg.ones(3), [1.0]), ArgumentError, "einsum_path: .*a string"),
    "an axis that is a bool": (
        lambda: gg.sum([[0.0, 1.0]], axis=True), ArgumentError, "sum: .*an int or a tuple"),
    "interp without points": (lambda: gg.interp([1.0], [], []), ShapeError, "interp.*one length"),
    "cumulative_logsumexp of complex numbers": (
        lambda: gg.cumulative_logsumexp([1j]), DTypeError, "x is complex64; write gg.log"),
    "inv of a singular matrix": (lambda: gg.inv(SINGULAR), SingularMatrixError, "inv.*[Ss]ingular"),
    "take beyond the end": (lambda: gg.take([1.0, 2.0], [2]), IndexOutOfBoundsError, "index 2"),
    **{
        f"{name} of a huge index": (lambda f=f: f([1.0, 2.0]), IndexOutOfBoundsError, name)
        for name, f in {
            "getitem": lambda x: gg.constant(x)[HUGE],
            "take": lambda x: gg.take(x, HUGE),
            "gather": lambda x: gg.gather(x, HUGE),
            "take_along_axis": lambda x: gg.take_along_axis(x, HUGE),
            "embedding": lambda x: nn.embedding(HUGE, [x]),
            "scatter_rows": lambda x: gg.scatter_rows(x[:1], HUGE, shape=(2,)),
            "index_add": lambda x: gg.index_add(x, [1.0], index=HUGE),
            "segment_sum": lambda x: gg.segment_sum(x[:1], HUGE, 3),
            "sparse_softmax_cross_entropy": lambda x: gg.sparse_softmax_cross_entropy([x], HUGE),
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_value_at_an_edge(name):
    call, expected = VALUES[name]
    np.testing.assert_allclose(call().numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ERRORS)
def test_error_at_an_edge(name):
    call, error, words = ERRORS[name]
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gg.full(2, nan, dtype=int), "full.*nan.*int64"),
        (lambda: gg.arange("a"), "arange: stop.*'a'"),
        (lambda: gg.roll([1.0, 2.0], 1.5), r"roll: shift.*1\.5"),
    ],
)
def test_values_of_the_wrong_kind_are_refused(call, words):
    with pytest.raises(DTypeError, match=words):
        call()
    with pytest.raises(OverflowError, match=r"full: .*-1 out of bounds for uint8"):
        gg.full_like(gg.ones(2, "uint8"), -1)


def test_a_slope_does_not_read_the_element_it_belongs_to():
    x = np.array([[1.0, np.nan, 2.0, 5.0], [np.inf, 3.0, 4.0, 7.0]])
    with np.errstate(invalid="ignore"):
        for how in ({"axis": 0}, {"axis": 1}, {"axis": 1, "edge_order": 2}):
            np.testing.assert_array_equal(gg.gradient(x, 0.5, **how), np.gradient(x, 0.5, **how))


def test_histogram_of_nan_without_a_range_has_nan_edges():
    counts, edges = gg.histogram([1.0, nan])
    assert not counts.numpy().any()
    assert np.isnan(edges.numpy()).all()
    assert gg.histogram([1.0, nan], bins=2, range=(0, 2))[0].tolist() == [0, 1]


REAL = [n for n, op in sorted(gg.OPS.items()) if "c" not in op.kinds and op.kind == "elementwise"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a ComplexWarning is an error
@pytest.mark.parametrize("name", [*REAL, "exponential_remainder", "spherical_jn"])
def test_op_of_real_numbers_never_drops_an_imaginary_part(name):
    with contextlib.suppress(gg.errors.GpugradError):
        gg.OPS[name].eager(*[np.array([0.5 + 0.2j])] * len(gg.OPS[name].arrays))


@pytest.mark.parametrize("name", sorted(n for n, op in gg.OPS.items() if "axis" in op.params))
def test_text_as_an_axis_is_refused_as_such(name):
    op = gg.OPS[name]
    with pytest.raises((gg.errors.GpugradError, TypeError)) as info:
        op.eager(*[np.ones((2, 3))] * len(op.arrays), axis="a")
    message = str(info.value)
    assert isinstance(info.value, gg.errors.GpugradError) or "missing" in message
    assert "string formatting" not in message


def test_unravel_index_into_a_0d_array_gives_no_indices():
    assert gg.unravel_index(0, ()) == np.unravel_index(0, ()) == ()
    with pytest.raises(IndexOutOfBoundsError, match="1 is out of bounds"):
        gg.unravel_index(1, ())


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_a_running_op_without_an_axis_flattens_as_numpys(name):
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(getattr(gg, name)(x).numpy(), getattr(np, name)(x))
    np.testing.assert_array_equal(getattr(np, name)(gg.constant(x)), getattr(np, name)(x))


@pytest.mark.parametrize("append", [None, 7.0, [7.0, 8.0]], ids=str)
@pytest.mark.parametrize("prepend", [None, 5.0, [5.0, 6.0]], ids=str)
@pytest.mark.parametrize("n", range(8))
def test_diff_with_edges_equals_numpys(n, prepend, append):
    x = np.array([1.0, 4.0, 9.0])
    edges = {k: v for k, v in (("prepend", prepend), ("append", append)) if v is not None}
    np.testing.assert_array_equal(gg.diff(x, n=n, **edges).numpy(), np.diff(x, n=n, **edges))


@pytest.mark.parametrize("name", ["log", "log2", "log10", "log1p", "logsumexp", "sqrt"])
def test_a_complex_logarithm_is_the_principal_value(name, rng):
    z = rng.uniform(-5, 5, (40, 3)) + 1j * rng.uniform(-50, 50, (40, 3))
    exact = np.log(np.exp(z).sum(-1)) if name == "logsumexp" else getattr(np, name)(z)
    ours = gg.logsumexp(z, axis=-1) if name == "logsumexp" else getattr(gg, name)(z)
    np.testing.assert_allclose(ours.numpy(), exact, rtol=1e-10)


# ---- 16-bit floats beside counts that they cannot hold ------------------------------------

MANY = 70_000  # float16 ends at 65,504
COUNTING = {
    "mean": gg.mean, "std": gg.std, "var": gg.var, "nanmean": gg.nanmean, "nanstd": gg.nanstd,
    "nanvar": gg.nanvar, "average": gg.average, "max": gg.max, "min": gg.min, "nanmax": gg.nanmax,
    "nanmin": gg.nanmin, "ptp": gg.ptp, "median": gg.median, "nanmedian": gg.nanmedian,
    "quantile": lambda x: gg.quantile(x, 0.3), "sparsemax": lambda x: gg.sparsemax(x)[:9],
    "mse_loss": lambda x: gg.nn.mse_loss(x, x[::-1] * 0.5),
    "l1_loss": lambda x: gg.nn.l1_loss(x, x[::-1] * 0.5),
    "layer_norm": lambda x: gg.layer_norm(x)[:9] / 1000,
    "rms_norm": lambda x: gg.rms_norm(x)[:9] / 1000,
    "group_norm": lambda x: gg.group_norm(x.reshape(1, 2, -1), num_groups=1)[:, :, :9] / 1000,
    "instance_norm": lambda x: gg.instance_norm(x.reshape(1, 1, -1))[..., :9] / 1000,
    "batch_norm": lambda x: gg.batch_norm(x.reshape(-1, 1), training=True)[0][:9] / 1000,
    "avg_pool1d": lambda x: gg.avg_pool1d(x.reshape(1, 1, -1), MANY),
    "adaptive_avg_pool1d": lambda x: gg.adaptive_avg_pool1d(x.reshape(1, 1, -1), 1),
    "segment_mean": lambda x: gg.segment_mean(x, np.zeros(MANY, int), 1),
    "segment_max": lambda x: gg.segment_max(x, np.zeros(MANY, int), 1),
    "segment_sqrt_n": lambda x: gg.segment_sqrt_n(x / MANY**0.5, np.zeros(MANY, int), 1),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("equal", [False, True], ids=["spread", "equal"])
@pytest.mark.parametrize("name", COUNTING)
def test_16_bit_gradients_are_right_beyond_the_largest_count_of_float16(name, equal, dtype):
    x = np.random.default_rng(0).integers(1, 9, MANY) / 8.0 if not equal else np.ones(MANY)
    grads = []
    for d in (dtype, "float64"):
        v = gg.asarray(x, dtype=d)
        tape, y = taped(lambda v: COUNTING[name](v), v)
        assert y.dtype == v.dtype
        grads.append(np.asarray(tape.gradient(y, v, gg.full_like(y, 20_000)), np.float64))
    np.testing.assert_allclose(*grads, rtol=0.03, atol=0.02 * np.abs(grads[1]).mean() + 1e-3)


MODES = {
    "eager": lambda f, x: f(x),
    "function": lambda f, x: gg.function(f)(x),
    "vmap": lambda f, x: gg.vmap(f)(x[None])[0],
    "jvp": lambda f, x: gg.jvp(f, [x], [x])[0],
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.thin(3)
def test_16_bit_values_beyond_the_largest_count_are_right_in_every_mode(name, mode, dtype):
    x = gg.asarray(32.0 * np.random.default_rng(0).integers(1, 9, MANY), dtype=dtype)
    y, exact = MODES[mode](COUNTING[name], x), COUNTING[name](gg.astype(x, "float64"))
    assert y.dtype == x.dtype
    np.testing.assert_allclose(gg.astype(y, "float64"), exact, rtol=0.02, atol=0.02)


NAN_REDUCTIONS = [
    name for name, op in gg.OPS.items()
    if name.startswith("nan") and op.differentiable and not name.startswith("nanarg")
    and name != "nan_to_num"
]  # fmt: skip


@pytest.mark.parametrize("name", NAN_REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0])
def test_a_nan_reduction_ignores_the_tangent_of_a_nan(name, axis):
    """It is NaN too where the NaN is computed, so it may not be multiplied by 0."""
    keywords = {"axis": axis} | ({"q": 0.3} if "q" in gg.OPS[name].params else {})
    x = np.array([[1.0, np.nan], [np.nan, 3.0], [2.0, 0.5]])

    def f(t):
        return gg.sum(gg.OPS[name].eager(x * t, **keywords))

    t = gg.constant(1.5, "float64")
    _, forward = gg.jvp(f, [t], [gg.ones_like(t)])
    reverse = gg.grad(f)(t)
    assert np.isfinite(reverse.numpy())
    np.testing.assert_allclose(forward.numpy(), reverse.numpy(), rtol=1e-12)


def test_sigmoid_of_a_complex_number_is_finite_where_exp_overflows():
    z = gg.asarray(np.array([-1000.0 + 1.0j, 1000.0 - 2.0j, -0.5 + 0.3j]))
    middle = 1 / (1 + np.exp(0.5 - 0.3j))
    for f in (gg.sigmoid, gg.function(gg.sigmoid)):
        np.testing.assert_allclose(f(z).numpy(), [0.0, 1.0, middle], rtol=1e-15)
    slopes = gg.grad(lambda z: gg.sum(gg.real(gg.sigmoid(z))))(z)
    np.testing.assert_allclose(slopes, [0.0, 0.0, np.conj(middle * (1 - middle))], rtol=1e-14)
    np.testing.assert_allclose(gg.silu(z)[:2], [0.0, 1000.0 - 2.0j])


@pytest.mark.parametrize("join", [gg.concat, gg.stack])
@pytest.mark.parametrize(("other", "common"), [("float16", "float32"), ("int32", "float64")])
def test_bfloat16_joins_what_numpy_does_not_promote_it_with(join, other, common):
    x, y = gg.asarray([1.5, 2.0], dtype="bfloat16"), gg.asarray([3, 4], dtype=other)
    for joined in (join([x, y]), gg.function(lambda x, y: join([x, y]))(x, y)):
        assert joined.dtype == common == gg.result_type(x, y)
        assert joined.numpy().ravel().tolist() == [1.5, 2.0, 3.0, 4.0]
    with gg.GradientTape() as tape:
        tape.watch(x)
        z = gg.sum(join([x, y]) * 2.0)
    assert tape.gradient(z, x).dtype == "bfloat16"


@pytest.mark.parametrize("n", range(4))
def test_a_power_of_a_matrix_of_booleans_is_one_of_booleans(n):
    m = np.array([[True, False], [True, True]])
    for power in (gg.matrix_power, gg.function(lambda x, n=n: gg.matrix_power(x, n))):
        got = power(gg.asarray(m), n).numpy()
        assert got.dtype == bool
        np.testing.assert_array_equal(got, np.linalg.matrix_power(m, n))
