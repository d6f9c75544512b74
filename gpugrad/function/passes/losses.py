"""A loss and its gradient by the scores in one launch, which reads the scores once less.

It stands where the gradient did: what that is multiplied by, such as one over the number of
examples, is known without the loss as a rule.
"""

from __future__ import annotations

import copy

from gpugrad.core.backend import Namespace
from gpugrad.function.passes.joined import Joined, with_instead
from gpugrad.function.passes.readers import Readers
from gpugrad.kernels.by_hand.cross_entropy import loss_and_gradient
from gpugrad.trace.program import Program, Step

__all__ = ["with_gradients"]

_LOSS, _GRADIENT = "sparse_softmax_cross_entropy", "sparse_softmax_cross_entropy_grad"


class _Both(Joined):
    """The arguments are what the gradient is multiplied by, the scores and the labels."""

    __slots__ = ()
    overwrites = 1

    def __init__(self, loss: Step, gradient: Step) -> None:
        args = [gradient.args[0], *loss.args]
        gradient = copy.copy(gradient)
        gradient.args = tuple(args)  # of what the loss reads, not of other views of it
        super().__init__("loss and gradient", args, [loss, gradient], [*loss.outs, *gradient.outs])
        self.params = {"ignore_index": loss.params["ignore_index"]}

    def run(self, xp: Namespace, *arrays: object, over: bool = False) -> object:
        """As of a `Joined`."""
        return loss_and_gradient(xp, *arrays, over=over, **self.params)


def with_gradients(program: Program) -> Program:
    """Join cross entropies, against class numbers, with their gradients."""
    readers = Readers(program)
    instead: dict[int, list[Step]] = {}  # of a step, by id
    for loss in program.steps:
        gradient = _gradient_of(loss, readers) if loss.name == _LOSS else None
        between = None if gradient is None else _of_it(loss, gradient, program, readers)
        if gradient is None or between is None:
            continue
        if any(id(s) in instead for s in (loss, gradient, *between)):
            continue  # moved behind another loss
        instead.update((id(s), []) for s in (loss, *between))
        instead[id(gradient)] = [_Both(loss, gradient), *between]
    return with_instead(program, instead)


def _gradient_of(loss: Step, readers: Readers) -> Step | None:
    """The one step that takes the loss's gradient, of the same scores, after it."""
    (out,), (scores, labels) = loss.outs, loss.args
    found = [
        s for v in readers.alike(scores) if v.shape == scores.shape for s in readers.of(v)
        if s.name == _GRADIENT and s.args[1] is v
    ]  # fmt: skip
    if len(found) != 1 or loss.params["label_smoothing"]:
        return None
    (gradient,) = found
    names = ("ignore_index", "label_smoothing")
    same = all(loss.params[n] == gradient.params[n] for n in names) and any(
        v is gradient.args[2] and v.shape == labels.shape for v in readers.alike(labels)
    )
    later = readers.place[id(gradient)] > readers.place[id(loss)]
    fits = gradient.args[0].dtype == out.dtype and gradient.args[0].shape == out.shape
    return gradient if same and later and fits else None


def _of_it(loss: Step, gradient: Step, program: Program, readers: Readers) -> list[Step] | None:
    """The steps between the two that need the loss, which can come after both.

    None if the gradient is one of those that need it, or one of them may have effects.
    """
    first, last = readers.place[id(loss)], readers.place[id(gradient)]
    found, made = [], {id(v) for v in loss.outs}
    for step in program.steps[first + 1 : last + 1]:
        if any(id(v) in made for v in step.inputs):
            if step is gradient or step.op is None or step.op.kind == "control":
                return None
            found.append(step)
            made |= {id(v) for v in step.outs}
    return found
