"""16-bit floats: kernels that read them directly, and casts of many arrays in one launch.

A mixed-precision model widens its 16-bit scores to float32 for the loss and rounds the gradient
back. The kernels can widen and round themselves. From the 16-bit scores they compute the same
numbers, and read and write them, often the largest arrays of a step, once instead of three times,
at half the bytes. The same holds for gradients of weights that an optimizer keeps in float32.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, Reading
from gpugrad.function.passes.rewrite import (
    FusedStep,
    Readers,
    Rewriter,
    is_cast,
    is_reshape,
    replace_steps,
)
from gpugrad.function.passes.simplify import remove_dead
from gpugrad.kernels.by_hand.casts import NARROW, cast_all, turn_all
from gpugrad.kernels.libraries import cudnn
from gpugrad.trace.program import Program, Step, Value

_LOSS, _GRADIENT = "sparse_softmax_cross_entropy", "sparse_softmax_cross_entropy_grad"


# ---- reading 16-bit floats directly ------------------------------------------------------


def read_narrow_directly(program: Program) -> Program:
    """Let losses, their gradients and optimizers read 16-bit floats without a cast."""
    rewriter = _Unwidener(program)
    for step in program.steps:
        rewriter.write(rewriter.renamed(step))
    return remove_dead(rewriter.program())


class _Unwidener(Rewriter):
    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._readers = Readers(program)
        self._narrow: dict[int, Value] = {}  # by a float32 value's id, its 16-bit substitute

    def write(self, step: Step) -> None:
        narrow = self._narrow.get(id(step.args[0])) if step.args else None
        if narrow is not None and is_reshape(step):  # before the step that rounds it
            self._narrow[id(step.outs[0])] = self.reshaped(step, narrow, step.outs[0].shape)
        elif narrow is not None:
            self.replace(step.outs[0], narrow)
        elif getattr(step.launched, "widens", False):
            n = len(step.args) - len(step.variables)
            gradients = [self._before_cast(step, a) or a for a in step.args[:n]]
            self.keep(self.with_args(step, [*gradients, *step.args[n:]]))
        elif step.name == _LOSS and (scores := self._before_cast(step, step.args[0])):
            loss = self.with_args(step, (scores, *step.args[1:]))
            loss.params = {**step.params, "dtype": np.dtype(np.float32)}
            self.keep(loss)
        elif step.name == _GRADIENT and (scores := self._before_cast(step, step.args[1])):
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

    def _before_cast(self, of: Step, x: Value) -> Value | None:
        """The 16-bit value that a float32 one was cast from, in the shape of `x`."""
        maker = self._readers.maker.get(id(x))
        if maker is None or x.dtype != np.float32 or not (is_cast(maker) or is_reshape(maker)):
            return None
        (source,) = maker.inputs
        if source.dtype in HALF:
            return source
        before = self._before_cast(of, source) if is_reshape(maker) else None
        return before and self.reshaped(of, before, x.shape)

    def _is_rounded(self, x: Value, dtype: np.dtype) -> bool:
        """Whether the only reader of a value rounds it to `dtype`, perhaps after a reshape."""
        reader = self._readers.only(x)
        if reader is None or not (is_cast(reader) or is_reshape(reader)):
            return False
        (out,) = reader.outs
        return out.dtype == dtype if is_cast(reader) else self._is_rounded(out, dtype)


# ---- many casts in one launch ------------------------------------------------------------

SMALL = 1 << 20
"""Bytes up to which an array is cast with others even if it is not needed for long."""


def join_casts(program: Program) -> Program:
    """Cast weights to 16 bits in one launch: a mixed-precision step has many such casts.

    Casts only arguments and Variables, which exist from the start, and only if the results are
    needed in the backward pass anyway, or are small: all results are held from the first step on.
    """
    readers = Readers(program)
    groups: dict[Any, list[Step]] = {}
    for step in program.steps:
        if _is_early(step, readers):
            groups.setdefault((step.outs[0].dtype, step.phase), []).append(step)
    replacements: dict[int, list[Step]] = {}
    for steps in groups.values():
        if len(steps) > 1:
            replacements.update((id(s), []) for s in steps)
            replacements[id(steps[0])] = [Casts(steps, [_is_convolved(s, readers) for s in steps])]
    return replace_steps(program, replacements)


class Casts(FusedStep):
    """Casts of several arrays, which are the arguments.

    Attributes:
        turned: for each, whether its channels are last in the memory of the result.
    """

    __slots__ = ("turned",)

    def __init__(self, steps: list[Step], turned: list[bool]) -> None:
        args, outs = [s.args[0] for s in steps], [s.outs[0] for s in steps]
        self.turned = turned
        name = f"{len(steps)} casts to {outs[0].dtype}"
        launch = functools.partial(_cast_and_turn, outs[0].dtype, turned)
        super().__init__(name, args, steps, outs, launch)

    @property
    def plain(self) -> list[Step]:
        """The casts whose results are in C order."""
        return [s for s, t in zip(self.unfused.steps, self.turned, strict=True) if not t]

    def without(self, results: Collection[int]) -> list[Step]:
        """The step without the casts that have these results, by id; nothing if none is left."""
        pairs = zip(self.unfused.steps, self.turned, strict=True)
        left = [(s, t) for s, t in pairs if id(s.outs[0]) not in results]
        return [Casts([s for s, _ in left], [t for _, t in left])] if left else []


def _cast_and_turn(dtype: Any, turned: list[bool], xp: Reading, *arrays: Any) -> list[Any]:
    pairs = list(zip(arrays, turned, strict=True))
    plain, others = ([a for a, t in pairs if t is which] for which in (False, True))
    casts = iter(cast_all(plain, dtype) if plain else ())
    turns = iter(turn_all(others, dtype) if others else ())
    return [next(turns if t else casts) for t in turned]


def _is_convolved(cast: Step, readers: Readers) -> bool:
    """Whether only convolutions of cuDNN read a cast array, which want its channels last."""
    (out,) = cast.outs
    convolved = all(s.name.startswith("convolution") for s in readers.of(out))
    return convolved and len(out.shape) > 2 and cudnn.binding() is not None


def _is_early(step: Step, readers: Readers) -> bool:
    """Whether a step casts an argument or a Variable, and is worth joining with others."""
    if not is_cast(step) or not isinstance(step.args[0], Value):
        return False
    (x,), (out,) = step.args, step.outs
    if x.dtype != np.float32 or out.dtype not in NARROW or x.constant is not None:
        return False
    if id(x) in readers.maker or 0 in x.shape:
        return False
    of = readers.of(out)
    fused = any(s.op is not None and s.op.kind == "elementwise" for s in of)  # costs nothing there
    return not fused and (out.nbytes <= SMALL or any(_is_backward(s, readers) for s in of))


def _is_backward(step: Step, readers: Readers) -> bool:
    """Whether a step, or a reader of its view, belongs to a backward pass."""
    return step.backward or any(
        v.view and any(_is_backward(s, readers) for s in readers.of(v)) for v in step.outs
    )
