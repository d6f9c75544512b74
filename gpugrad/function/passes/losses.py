"""A loss and its gradient in one launch instead of two, saving one read of the scores.

The launch replaces the gradient's step: the factor of the gradient, such as one over the number of
examples, usually does not depend on the loss.
"""

from __future__ import annotations

import copy

from gpugrad.core.backend import Reading
from gpugrad.function.passes.rewrite import FusedStep, Readers, replace_steps
from gpugrad.kernels.by_hand.cross_entropy import loss_and_gradient
from gpugrad.trace.program import Program, Step

__all__ = ["join_losses"]

_LOSS, _GRADIENT = "sparse_softmax_cross_entropy", "sparse_softmax_cross_entropy_grad"


class _LossAndGradient(FusedStep):
    """The arguments are the factor of the gradient, the scores and the labels."""

    __slots__ = ()
    overwrites = 1

    def __init__(self, loss: Step, gradient: Step) -> None:
        args = [gradient.args[0], *loss.args]
        gradient = copy.copy(gradient)
        gradient.args = tuple(args)  # the same views of them as the loss reads
        super().__init__("loss and gradient", args, [loss, gradient], [*loss.outs, *gradient.outs])
        self.params = {"ignore_index": loss.params["ignore_index"]}

    def run(self, xp: Reading, *arrays: object, over: bool = False) -> object:
        """See `FusedStep.run`."""
        return loss_and_gradient(xp, *arrays, over=over, **self.params)


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
        replacements[id(gradient)] = [_LossAndGradient(loss, gradient), *between]
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
