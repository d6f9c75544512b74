"""Connectionist temporal classification: the loss of a label sequence without an alignment.

Graves et al. 2006, "Connectionist Temporal Classification". A path through the time steps
visits the states blank, l1, blank, l2, ..., blank in order, and may leave out a blank between
two labels that differ. All sums over paths are computed in the logarithm.
"""

import itertools
import math
import operator

import numpy as np

from gpugrad.autodiff.batched import all_batched
from gpugrad.core.backend import NUMPY, SCALARS
from gpugrad.core.samples import calls
from gpugrad.errors import ArgumentError, DTypeError, IndexOutOfBoundsError, ShapeError
from gpugrad.kernels.cpu import ctc as cpu
from gpugrad.kernels.cpu.large import MIDDLE, steps_unless
from gpugrad.kernels.runtime.launch import is_captured
from gpugrad.ops.arrays.index_rules import is_deferred
from gpugrad.ops.nn.losses import real, reduced, reduced_ref, sample
from gpugrad.registry.record import op


def _folded(xp, x):
    """`x` with its first two axes merged."""
    return xp.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def _states_batch(xp, batched, targets, target_lengths, *, blank):
    targets, target_lengths = all_batched(xp, batched, (targets, target_lengths))
    states = xp.ctc_states(_folded(xp, targets), _folded(xp, target_lengths), blank=blank)
    return tuple(xp.reshape(x, (*targets.shape[:2], x.shape[1])) for x in states)


def _states_ref(targets, target_lengths, blank=0):
    rows = [[], [], [], []]
    for labels, n in zip(targets.tolist(), target_lengths.tolist(), strict=True):
        path = [blank]
        for k, label in enumerate(labels):
            path += [label if k < n else blank, blank]
        places = range(len(path))
        rows[0].append(path)
        rows[1].append([k == 0 for k in places])
        rows[2].append([2 * n - 1 <= k <= 2 * n for k in places])
        rows[3].append([k > 1 and path[k] not in (blank, path[k - 2]) for k in places])
    return tuple(np.array(r) for r in rows)


@op(
    differentiable=False,
    outputs=4,
    batch=_states_batch,
    kinds="i",
    ref=_states_ref,
    samples=calls(
        sample([[1, 1, 2], [2, 9, 9]], [3, 1]),
        sample([[0]], [1], blank=2),
        sample(np.zeros((2, 0), np.int64), [0, 0]),
    ),
    errors=[([np.array([1]), np.array([1])], {}, ShapeError, r"ctc_states.*\(1,\)")],
    captures=True,
)
def ctc_states(xp, targets, target_lengths, /, *, blank=0):
    """Label sequences with blanks around and between them; `ctc_losses` calls it.

    Returns:
        Four Tensors of shape (n, 2 s + 1): the class of each state, and whether it is the
        first one, is one of the last two, and can be reached from two states before.
    """
    if targets.ndim != 2 or target_lengths.shape != targets.shape[:1]:
        raise ShapeError(
            f"ctc_states: targets {targets.shape} and target_lengths {target_lengths.shape} are "
            "not (n, s) and (n,)."
        )
    lib, (n, s) = xp.lib, targets.shape
    lengths = target_lengths[:, None]
    states = lib.full((n, 2 * s + 1), blank, dtype=np.int64)
    states[:, 1::2] = lib.where(lib.arange(s) < lengths, targets, blank)
    number = lib.broadcast_to(lib.arange(2 * s + 1), states.shape)
    final = lib.logical_and(number >= 2 * lengths - 1, number <= 2 * lengths)
    skips = lib.zeros(states.shape, dtype=bool)
    skips[:, 2:] = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    return states, number == 0, final, skips


# The logarithm of an empty sum over paths. Finite, as the derivative of logaddexp(-inf, -inf) is
# NaN; far below any sum of logarithms, and far above the smallest float32.
NEVER = -1e30


def _at(xp, x, t):
    return xp.getitem(x, index=t)


def _columns(xp, x, first, last):
    return xp.getitem(x, index=(slice(None), slice(first, last)))


def _no_path(xp, scores):
    """One column without a path."""
    return _columns(xp, _at(xp, scores, 0), 0, 1) * 0 + NEVER


def _only(xp, mask, x):
    return xp.where(mask, x, NEVER)


def _start(xp, mask, scores):
    """One path at these states, in the dtype of the scores; none elsewhere."""
    return _only(xp, mask, xp.astype(mask, scores.dtype) * 0)


def _step(xp, parts, scores, lengths, t, before):
    """Sums over the ways to a state in step t, for examples that have that step."""
    total = xp.logaddexp(xp.logaddexp(parts[0], parts[1]), parts[2])
    return xp.where(xp.greater(lengths, t), total if scores is None else total + scores, before)


def _alphas(xp, scores, first, skips, lengths):
    """Sums over the beginnings of paths to each state, before and after each step.

    Before the first step all paths wait at the first blank. After the last step of an example
    nothing changes.
    """
    alpha = _start(xp, first, scores)
    n = alpha.shape[1]
    edge = _no_path(xp, scores)
    alphas = [alpha]
    for t in range(scores.shape[0]):
        wide = xp.concat([edge, edge, alpha], axis=1)
        one, two = _columns(xp, wide, 1, n + 1), _columns(xp, wide, 0, n)
        ways = alpha, one, _only(xp, skips, two)
        alpha = _step(xp, ways, _at(xp, scores, t), lengths, t, alpha)
        alphas.append(alpha)
    return alphas


def _betas(xp, scores, final, skips, lengths):
    """Sums over the remainders of paths from each state, after each step."""
    beta = _start(xp, final, scores)
    n = beta.shape[1]
    edge = _no_path(xp, scores)
    betas = [beta]
    for t in range(scores.shape[0] - 1, 0, -1):
        ahead = beta + _at(xp, scores, t)
        one = xp.concat([_columns(xp, ahead, 1, n), edge], axis=1)
        two = xp.concat([_only(xp, skips, ahead), edge, edge], axis=1)
        ways = ahead, one, _columns(xp, two, 2, n + 2)
        beta = _step(xp, ways, None, lengths, t, beta)
        betas.append(beta)
    return betas[::-1]


def _total(xp, alpha, final):
    """The sum over all paths, and whether there is one."""
    total = xp.logsumexp(_only(xp, final, alpha), axis=1)
    return total, xp.greater(total, NEVER / 2)


def _prepared(xp, log_probs, targets, input_lengths, target_lengths, blank):
    states, first, final, skips = xp.ctc_states(targets, target_lengths, blank=blank)
    places = xp.expand_dims(states, axis=0)
    scores = xp.maximum(xp.take_along_axis(log_probs, places, axis=2), NEVER)
    return places, scores, first, final, skips, xp.expand_dims(input_lengths, axis=-1)


def _check(log_probs, targets, input_lengths, target_lengths, blank):
    shapes = [a.shape for a in (log_probs, targets, input_lengths, target_lengths)]
    n = shapes[0][1] if len(shapes[0]) == 3 else -1
    fits = shapes[1][:1] == shapes[2] == shapes[3] == (n,)
    if not fits or targets.ndim != 2 or not shapes[0][0]:
        raise ShapeError(
            f"ctc_losses: log_probs {shapes[0]}, targets {shapes[1]}, input_lengths {shapes[2]} "
            f"and target_lengths {shapes[3]} are not (steps, n, classes), (n, s), (n,) and (n,). "
            "Pad shorter targets with any number."
        )
    if any(a.dtype.kind not in "iu" for a in (targets, input_lengths, target_lengths)):
        raise DTypeError("ctc_losses: targets and lengths must be integers.")
    steps, _, classes = shapes[0]
    if not 0 <= operator.index(blank) < classes:
        raise ArgumentError(f"ctc_losses: blank={blank} is not one of the {classes} classes.")
    if not n or is_captured(log_probs):
        return
    longest = int(input_lengths.max()), int(target_lengths.max())
    least = min(int(input_lengths.min()), int(target_lengths.min()))
    if least < 0 or longest[0] > steps or longest[1] > targets.shape[1]:
        raise ShapeError(
            f"ctc_losses: input_lengths up to {longest[0]} and target_lengths up to {longest[1]} "
            f"do not fit {steps} steps and targets {targets.shape}; none may be negative."
        )


def _check_labels(states, classes):
    if not states.size or is_captured(states) or is_deferred("ctc_losses", states, classes):
        return
    if not 0 <= states.min() <= states.max() < classes:
        raise IndexOutOfBoundsError(
            f"ctc_losses: labels run from {states.min()} to {states.max()}, the {classes} classes "
            f"from 0 to {classes - 1}."
        )


def _checked_states(xp, log_probs, targets, input_lengths, target_lengths, blank):
    """The labels with blanks between, if they and the shapes fit: C reads at any label."""
    _check(log_probs, targets, input_lengths, target_lengths, blank)
    states = xp.ctc_states(targets, target_lengths, blank=blank)[0]
    _check_labels(states, log_probs.shape[2])
    return states


def _unfit(xp, states, log_probs, targets, input_lengths, target_lengths):
    """Sequences with labels or lengths out of range, for CUDA graphs, which cannot raise."""
    steps, _, classes = log_probs.shape
    labels = xp.lib.all((states >= 0) & (states < classes), axis=1)
    inputs = (input_lengths >= 0) & (input_lengths <= steps)
    wanted = (target_lengths >= 0) & (target_lengths <= targets.shape[1])
    return ~(labels & inputs & wanted)


def _paths(log_probs, targets, input_lengths, target_lengths, blank, k):
    """All paths of example `k` that give its labels, each with its probability."""
    wanted = targets[k, : target_lengths[k]].tolist()
    for path in itertools.product(range(log_probs.shape[2]), repeat=int(input_lengths[k])):
        if [c for c, _ in itertools.groupby(path) if c != blank] == wanted:
            yield path, math.exp(sum(log_probs[t, k, c] for t, c in enumerate(path)))


def _ctc_ref(*args, blank=0):
    totals = [sum(p for _, p in _paths(*args, blank, k)) for k in range(len(args[1]))]
    return np.array([-math.log(p) if p else math.inf for p in totals])


def _log_p(*shape):
    return real(*shape, low=-3, high=0)


_SAMPLES = (
    sample(_log_p(4, 2, 3), [[1, 1], [2, 9]], [4, 3], [2, 1]),
    sample(_log_p(2, 2, 2), [[0, 0], [0, 0]], [2, 0], [1, 0], blank=1),
)
_LENGTHS = [np.array([[1, 2]]), np.array([3]), np.array([2])]
_CTC_ERRORS = [
    ([np.ones((3, 2, 4)), *_LENGTHS], {}, ShapeError, r"\(3, 2, 4\).*\(1, 2\)"),
    ([np.ones((2, 1, 4)), *_LENGTHS], {}, ShapeError, "up to 3"),
    ([np.ones((3, 1, 2)), *_LENGTHS], {}, IndexOutOfBoundsError, "0 to 2.*0 to 1"),
    ([np.ones((3, 1, 4)), *_LENGTHS], {"blank": 4}, ArgumentError, "blank=4"),
    ([np.ones((3, 1, 4)), *_LENGTHS], {"blank": 0.5}, ArgumentError, "blank=0.5.*an int"),
    ([np.ones((3, 1, 4)), np.ones((1, 2)), *_LENGTHS[1:]], {}, DTypeError, "integers"),
]


def _ctc_vjp(xp, g, log_probs, targets, input_lengths, target_lengths, blank):
    d = xp.ctc_losses_grad(log_probs, targets, input_lengths, target_lengths, blank=blank)
    return d * xp.reshape(g, (1, -1, 1))


def _ctc_batch(xp, batched, *arrays, blank):
    log_probs, *rest = all_batched(xp, batched, arrays)
    batch, steps, n, classes = log_probs.shape
    log_probs = xp.reshape(xp.moveaxis(log_probs, 1, 0), (steps, batch * n, classes))
    losses = xp.ctc_losses(log_probs, *(_folded(xp, x) for x in rest), blank=blank)
    return xp.reshape(losses, (batch, n))


@op(
    vjp=[_ctc_vjp, None, None, None],
    batch=_ctc_batch,
    samples=calls(*_SAMPLES),
    ref=_ctc_ref,
    errors=_CTC_ERRORS,
    captures=True,
)
def ctc_losses(xp, log_probs, targets, input_lengths, target_lengths, /, *, blank=0):
    """The negative logarithm of each label sequence's probability; `ctc_loss` calls it.

    Returns:
        Tensor of shape (n,); inf where the steps are too few for the labels, with gradient 0.
    """
    states = _checked_states(xp, log_probs, targets, input_lengths, target_lengths, blank)
    if xp is NUMPY and log_probs.size:
        lengths = input_lengths, target_lengths
        losses = cpu.ctc(log_probs, targets, lengths, blank=blank, gradient=False)
        if losses is not NotImplemented:
            return losses
    _, scores, first, final, skips, lengths = _prepared(
        xp, log_probs, targets, input_lengths, target_lengths, blank
    )
    total, some = _total(xp, _alphas(xp, scores, first, skips, lengths)[-1], final)
    losses = xp.where(some, 0 - total, math.inf)
    if not is_captured(losses):
        return losses
    wrong = _unfit(xp, states, log_probs, targets, input_lengths, target_lengths)
    return xp.where(wrong, math.nan, losses)


def _occupancy_ref(log_probs, *args, blank=0):
    """Minus the probability of each class at each step, over all paths."""
    out = np.zeros_like(log_probs)
    for k in range(len(args[0])):
        for path, p in _paths(log_probs, *args, blank, k):
            out[np.arange(len(path)), k, path] -= p
        out[:, k] /= -out[0, k].sum() or 1
    return out


@op(
    samples=calls(*_SAMPLES),
    ref=_occupancy_ref,
    errors=[([np.ones((3, 1, 4)), np.array([1]), *_LENGTHS[1:]], {}, ShapeError, r"\(1,\)")],
    opens=steps_unless(lambda log_probs, targets, *_: cpu.states(log_probs, targets) >= MIDDLE),
)
def ctc_losses_grad(xp, log_probs, targets, input_lengths, target_lengths, /, *, blank=0):
    """The gradient of `ctc_losses` by `log_probs`: minus the share of paths at each class."""
    if xp is NUMPY and log_probs.size:
        _checked_states(xp, log_probs, targets, input_lengths, target_lengths, blank)
        d = cpu.ctc(log_probs, targets, (input_lengths, target_lengths), blank=blank, gradient=True)
        if d is not NotImplemented:
            return d
    places, scores, first, final, skips, lengths = _prepared(
        xp, log_probs, targets, input_lengths, target_lengths, blank
    )
    alphas = _alphas(xp, scores, first, skips, lengths)
    betas = _betas(xp, scores, final, skips, lengths)
    total, some = _total(xp, alphas[-1], final)
    total = xp.expand_dims(xp.where(some, total, 0), axis=-1)  # no path: every share is 0
    shares = [
        xp.where(xp.greater(lengths, t), xp.exp(alpha + beta - total), 0)
        for t, (alpha, beta) in enumerate(zip(alphas[1:], betas, strict=True))
    ]
    shares = xp.stack(shares, axis=0)
    places = xp.broadcast_to(places, shares.shape)
    return 0 - xp.scatter_along_axis(shares, places, axis=2, shape=log_probs.shape)


def _ctc_loss_ref(*args, blank=0, reduction="mean", zero_infinity=False):
    if args[0].ndim == 2:
        lengths = (np.reshape(a, 1) for a in args[2:])
        losses = _ctc_ref(args[0][:, None], args[1][None], *lengths, blank=blank).reshape(())
    else:
        losses = _ctc_ref(*args, blank=blank)
    if zero_infinity:
        losses = np.where(np.isfinite(losses), losses, 0)
    if reduction == "mean":
        losses = losses / np.maximum(args[3], 1)
    return reduced_ref(losses, reduction)


@op(
    ref=_ctc_loss_ref,
    samples=calls(
        _SAMPLES[0],
        sample(
            _log_p(2, 2, 3), [[1, 1], [2, 1]], [2, 2], [2, 2], zero_infinity=True, reduction="sum"
        ),
        sample(_log_p(3, 2), [1], 3, 1, reduction="none"),
    ),
    errors=[
        *_CTC_ERRORS,
        ([np.ones((3, 1, 4)), np.array([1, 2]), *_LENGTHS[1:]], {}, ShapeError, r"\(2,\)"),
        ([np.ones((3, 1, 4)), *_LENGTHS], {"reduction": "max"}, ArgumentError, "reduction='max'"),
    ],
    mixed="float32",
)
def ctc_loss(
    xp,
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    /,
    *,
    blank=0,
    reduction="mean",
    zero_infinity=False,
):
    """Connectionist temporal classification: label sequences that are shorter than the input.

    Args:
        log_probs: logarithms of the probabilities of the classes, as `log_softmax` gives them:
            shape (steps, n, classes), or (steps, classes) for one example.
        targets: integers of shape (n, s), or (s,): the labels. Elements beyond the length of a
            target are not read. Concatenated targets, which torch also takes, must be put into
            rows first.
        input_lengths: integers of shape (n,), or (): numbers of steps.
        target_lengths: integers of shape (n,), or (): numbers of labels.
        blank: the class that means no label.
        reduction: ``"mean"`` (of each loss divided by the length of its target), ``"sum"`` or
            ``"none"``.
        zero_infinity: whether losses are 0 instead of inf where the steps are too few for the
            labels. The gradient is 0 there in any case.

    Returns:
        Tensor of shape (), or (n,). The gradient is the derivative by the logarithms; torch's
        differs, but agrees after the backward pass of `log_softmax`.

    Graves et al. 2006, "Connectionist Temporal Classification".

    >>> log_probs = gg.log_softmax(gg.zeros((4, 1, 3)))
    >>> print(gg.ctc_loss(log_probs, [[1, 2]], [4], [2], reduction="sum"))
    1.6863989
    """
    lengths = [input_lengths, target_lengths]
    if any(type(x) in SCALARS for x in lengths):
        raise DTypeError("ctc_losses: the lengths must be arrays of integers, not numbers.")
    single = log_probs.ndim == 2
    if single:
        log_probs = xp.expand_dims(log_probs, axis=1)
        targets = xp.expand_dims(targets, axis=0)
        lengths = [xp.reshape(x, (1,)) for x in lengths]
    losses = xp.ctc_losses(log_probs, targets, *lengths, blank=blank)
    if zero_infinity:
        losses = xp.where(xp.isinf(losses), 0, losses)
    if reduction == "mean":
        losses = losses / xp.astype(xp.maximum(lengths[1], 1), losses.dtype)
    if single and reduction == "none":
        return xp.reshape(losses, ())
    return reduced(xp, "ctc_loss", losses, reduction)
