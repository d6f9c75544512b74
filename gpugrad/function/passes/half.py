"""What a program widens from 16 bits for kernels that widen by themselves: they read it as it is.

A model in mixed precision takes its loss of float32 scores, which were 16-bit floats before, and
rounds the gradient back to those. The kernels widen and round by themselves: given the 16-bit
scores they compute the same numbers, and what often are the largest arrays of a step are read and
written once instead of three times, and at half the bytes. So it is with gradients of weights
that an optimizer keeps in float32.
"""

from __future__ import annotations

import numpy as np

from gpugrad.core.backend import HALF
from gpugrad.function.passes.dead import remove_dead
from gpugrad.function.passes.rewrite import Readers, Rewriter
from gpugrad.trace.program import Program, Step, Value

__all__ = ["unwidened"]

_LOSS, _GRADIENT = "sparse_softmax_cross_entropy", "sparse_softmax_cross_entropy_grad"


def unwidened(program: Program) -> Program:
    """Let losses, their gradients and optimizers take what was widened as it was."""
    writer = _Writer(program)
    for step in program.steps:
        writer.write(writer.renamed(step))
    return remove_dead(writer.program())


class _Writer(Rewriter):
    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._readers = Readers(program)
        self._narrow: dict[int, Value] = {}  # by a float32 value's id, what stands for it

    def write(self, step: Step) -> None:
        """Append a step, or that which takes its place."""
        narrow = self._narrow.get(id(step.args[0])) if step.args else None
        if narrow is not None and step.name == "reshape":  # on the way to where it is rounded
            self._narrow[id(step.outs[0])] = self.reshaped(step, narrow, step.outs[0].shape)
        elif narrow is not None:
            self.replace(step.outs[0], narrow)
        elif getattr(step.launched, "widens", False):
            n = len(step.args) - len(step.variables)
            gradients = [self._before(step, a) or a for a in step.args[:n]]
            self.keep(self.with_args(step, [*gradients, *step.args[n:]]))
        elif step.name == _LOSS and (scores := self._before(step, step.args[0])):
            made = self.with_args(step, (scores, *step.args[1:]))
            made.params = {**step.params, "dtype": np.dtype(np.float32)}
            self.keep(made)
        elif step.name == _GRADIENT and (scores := self._before(step, step.args[1])):
            g, _, *rest = step.args
            (out,) = step.outs
            if self._is_rounded(out, scores.dtype):
                self._narrow[id(out)] = self.step(
                    step, _GRADIENT, [g, scores, *rest], step.params, out.shape, scores.dtype
                )
            else:
                self.keep(step)
        else:
            self.keep(step)

    def _before(self, of: Step, x: Value) -> Value | None:
        """What a float32 value was as a 16-bit one, in its shape."""
        maker = self._readers.maker.get(id(x))
        if maker is None or maker.name not in ("astype", "reshape") or x.dtype != np.float32:
            return None
        (given,) = maker.inputs
        if given.dtype in HALF:
            return given
        before = self._before(of, given) if maker.name == "reshape" else None
        return before and self.reshaped(of, before, x.shape)

    def _is_rounded(self, x: Value, dtype: np.dtype) -> bool:
        """Whether a value is only read to be rounded to a dtype, perhaps in another shape."""
        reader = self._readers.only(x)
        if reader is None or reader.name not in ("astype", "reshape"):
            return False
        (out,) = reader.outs
        return out.dtype == dtype if reader.name == "astype" else self._is_rounded(out, dtype)
