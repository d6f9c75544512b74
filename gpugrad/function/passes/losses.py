"""A loss and its gradient in one launch instead of two, saving one read of the scores.

The launch also adds the losses up, if the program does.

The launch replaces the gradient's step: the factor of the gradient, such as one over the number of
examples, usually does not depend on the loss.
"""

from __future__ import annotations

import copy
import functools
import math

from gpugrad.function.passes.rewrite import FusedStep, Readers, replace_steps
from gpugrad.kernels.by_hand.cross_entropy import MOST_ADDED, loss_and_gradient
from gpugrad.trace.program import Program, Step, Value

_LOSS, _GRADIENT = "sparse_softmax_cross_entropy", "sparse_softmax_cross_entropy_grad"


def _loss_and_gradient(loss: Step, gradient: Step, total: list[Step]) -> FusedStep:
    """The step of the factor of the gradient, the scores, the labels, and perhaps a divisor."""
    args = [gradient.args[0], *loss.args]
    gradient = copy.copy(gradient)
    gradient.args = tuple(args)  # the same views of them as the loss reads
    steps = [loss, gradient, *total]
    outs = [v for s in (loss, gradient, *total[-1:]) for v in s.outs]
    args += [s.args[1] for s in total[1:]]
    params = {"ignore_index": loss.params["ignore_index"]}
    params |= {"total": _reduction(total[0])} if total else {}
    launch = functools.partial(loss_and_gradient, **params)
    step = FusedStep("loss and gradient", args, steps, outs, launch)
    step.params, step.overwrites, step.placed = params, 1, 2 if total else None
    return step


def join_losses(program: Program) -> Program:
    """Join cross entropies with class labels and their gradients."""
    readers = Readers(program)
    replacements: dict[int, list[Step]] = {}  # by id of a step
    for loss in program.steps:
        gradient = _gradient_of(loss, readers) if loss.name == _LOSS else None
        between = None if gradient is None else _dependents(loss, gradient, program, readers)
        if gradient is None or between is None:
            continue
        if any(id(s) in replacements for s in (loss, gradient, *between)):
            continue  # moved after another loss
        replacements.update((id(s), []) for s in (loss, *between))
        total = _total(loss, between, readers)
        others = [s for s in between if s not in total]
        replacements[id(gradient)] = [_loss_and_gradient(loss, gradient, total), *others]
    return replace_steps(program, replacements)


def _gradient_of(loss: Step, readers: Readers) -> Step | None:
    """The one later step that computes the loss's gradient, from the same scores."""
    (out,), (scores, labels) = loss.outs, loss.args
    views = [v for v in readers.same_rows(scores) if v.shape == scores.shape]
    gradients = [s for v in views for s in readers.of(v) if s.name == _GRADIENT and s.args[1] is v]
    if len(gradients) != 1 or loss.params["label_smoothing"]:
        return None
    (gradient,) = gradients
    names = ("ignore_index", "label_smoothing")
    same = all(loss.params[n] == gradient.params[n] for n in names) and any(
        v is gradient.args[2] and v.shape == labels.shape for v in readers.same_rows(labels)
    )
    later = readers.place[id(gradient)] > readers.place[id(loss)]
    fits = gradient.args[0].dtype == out.dtype and gradient.args[0].shape == out.shape
    return gradient if same and later and fits else None


def _dependents(
    loss: Step, gradient: Step, program: Program, readers: Readers
) -> list[Step] | None:
    """The steps between the two that depend on the loss, and can move after both.

    None if the gradient depends on the loss too, or a dependent may have effects.
    """
    first, last = readers.place[id(loss)], readers.place[id(gradient)]
    dependents, values = [], {id(v) for v in loss.outs}
    for step in program.steps[first + 1 : last + 1]:
        if any(id(v) in values for v in step.inputs):
            if step is gradient or step.op is None or step.op.kind == "control":
                return None
            dependents.append(step)
            values |= {id(v) for v in step.outs}
    return dependents


def _total(loss: Step, dependents: list[Step], readers: Readers) -> list[Step]:
    """The step among the dependents that adds all losses up, if they are few enough.

    If only the sum's quotient by an array of one element is read, that step follows. It is a
    masked_divide where losses are averaged over the examples that count.
    """
    (losses,) = loss.outs
    own = {id(v) for step in dependents for v in step.outs}
    for step in dependents:
        out, how = step.outs[0], _reduction(step)
        adds = how in ("sum", "mean") and step.inputs == [losses]
        if adds and out.shape == () and out.dtype == losses.dtype:
            after = readers.only(out) if how == "sum" else None
            if math.prod(losses.shape) > MOST_ADDED:
                return []
            if after in dependents and _divides(after, out) and id(after.args[1]) not in own:
                return [step, after]
            return [step]
    return []


def _divides(step: Step, x: Value) -> bool:
    # masked_divide is what the mean over labels that are not ignored ends with
    by = step.args[1] if step.name == "masked_divide" and step.args[0] is x else None
    return isinstance(by, Value) and (by.shape, by.dtype, by.host) == ((), x.dtype, x.host)


def _reduction(step: Step) -> str | None:
    return None if step.op is None else step.op.reduces
