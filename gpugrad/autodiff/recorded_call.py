"""Recording a call that is not an op, but has a gradient of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpugrad.autodiff.recordable import Recordable, Rule, split_rule
from gpugrad.autodiff.recorder import record_many
from gpugrad.core.tensor import Tensor


class RecordedCall(Recordable):
    """One call of a function whose gradients all come from one function.

    Args:
        name: the function's name.
        gradients: function of a reading and of one gradient for each result, that returns one for
            each input.
        unused: see `Recordable`.
    """

    outputs = 0  # `g` is a tuple even for one result

    def __init__(
        self,
        name: str,
        gradients: Callable[[Any, tuple[Any, ...]], Sequence[Any]],
        unused: Sequence[int] = (),
    ) -> None:
        self.name, self._gradients, self.unused = name, gradients, unused

    def rules_for(self, n: int) -> Sequence[Rule]:
        """One rule for each input; the first that runs computes the gradients of all."""
        return split_rule(lambda xp, g, saved, params: self._gradients(xp, g), n)

    def record(self, outs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        """Offer the call to the recorders of this thread."""
        ids = tuple(x._id for x in inputs)
        record_many(self, tuple(outs), ids, (None,) * len(ids), (), None)
