"""Objects that take an op's place in a step of control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from gpugrad.autodiff.recorder import RecordedCall
from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.function.passes.rewrite import Rewriter, rewritten
from gpugrad.registry.fields import Replay
from gpugrad.trace.program import Program, Step, Value

Gradients = Callable[..., list[Tensor | None]]


class ControlOp(Replay):
    """The op of a step that is not a registered op: a function of Tensors with its own gradient.

    Passes and replays read the same attributes as of a registered op; here they have the defaults.

    Attributes:
        name: the step's name.
        kind: ``"control"``: passes and replays leave such a step unchanged.
        arrays: empty: its arguments have no names, and there may be any number of them.
        outputs: above 1, because its function returns a list, whatever its length.
        variadic, is_library_function: False, as for most ops.
    """

    kind = "control"
    arrays: tuple[str, ...] = ()
    outputs = 2
    variadic = is_library_function = False

    def __init__(self, name: str) -> None:
        self.name = name


class GradientOverride(ControlOp):
    """The op of a step that returns its first arguments, but has its own gradient.

    In branches and loop bodies it keeps the gradient of a `custom_gradient`.

    The step takes the results of a call, its inputs, and what its gradient reads; it returns the
    results. Only tapes need it.

    Args:
        name: the call's name.
        n_outs, n_inputs: how many results and inputs it has.
        gradients: function of the upstream gradients and of what it reads, as Tensors. It returns
            a gradient or None for each input.
    """

    def __init__(self, name: str, n_outs: int, n_inputs: int, gradients: Gradients) -> None:
        super().__init__(name)
        self._n_outs, self._n_inputs, self._gradients = n_outs, n_inputs, gradients

    def eager(self, *tensors: Tensor) -> list[Tensor]:
        """The results, recorded by the recorders of this thread."""
        n, m = self._n_outs, self._n_outs + self._n_inputs
        outs, read = [wrap(t._data) for t in tensors[:n]], [copy(t) for t in tensors[m:]]

        def gradients(xp: Any, g: tuple[Any, ...]) -> list[Any]:
            grads = self._gradients(*(x if xp is TENSOR else wrap(x) for x in g), *read)
            return [x if x is None or xp is TENSOR else x._data for x in grads]

        RecordedCall(self.name, gradients).record(outs, tensors[n:m])
        return outs


def strip_gradient_overrides(program: Program) -> Program:
    """The program without its gradient overrides, for runs that nobody records."""

    def strip(rewriter: Rewriter, step: Step) -> Sequence[Value] | None:
        is_override = type(step.op) is GradientOverride
        return step.args[: len(step.outs)] if is_override else None

    return rewritten(program, strip)
