"""`apply_gradients` in a program that is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpugrad.core.backend import TENSOR
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor
from gpugrad.core.variable import Variable
from gpugrad.optim.arrays import flat, reals, state_dtype
from gpugrad.optim.states import State, grouped

if TYPE_CHECKING:
    from gpugrad.optim.optimizer import Optimizer

__all__ = ["Applied"]


class Applied:
    """`apply_gradients` in a program: an effect, and what kernels do of it in a CUDA graph."""

    version = 0
    widens = True
    """Whether its kernels take 16-bit floats in the place of float32."""

    def __init__(self, optimizer: Optimizer, pairs: list[Any], asks: bool) -> None:
        self._optimizer, self._asks = optimizer, asks
        self.variables = [v for _, v in pairs]
        # no gradients: a program would hold those that it was traced with
        self._kinds = [
            (g.dtype, (g.dense_shape,) if isinstance(g, IndexedSlices) else ()) for g, _ in pairs
        ]
        self._sparse = any(rows for _, rows in self._kinds)
        self._groups: list[list[tuple[int, State]]] = []  # with positions among the Variables
        self._states: Any = None

    def __call__(self, *real: Tensor) -> list[Tensor]:
        """Take a step with gradients of real Tensors."""
        now, given = iter(real), []
        when = next(now) if self._asks else True
        for (dtype, rows), variable in zip(self._kinds, self.variables, strict=True):
            made: Any = next(now)
            if rows:
                made = IndexedSlices(made, next(now), *rows)
            elif made.dtype != dtype:  # a kernel was to widen it
                made = TENSOR.astype(made, dtype)
            given.append((made, variable))
        if self._sparse:  # whose indices are of each run
            self._optimizer.apply_gradients(given, when=when)
        else:
            self._optimizer._apply(given, when)
        return []

    @property
    def averages(self) -> dict[tuple[int, int], int]:
        """Bytes of what the optimizer keeps for each Variable, by the numbers of the two."""

        def nbytes(v: Variable) -> int:
            return len(self._optimizer.slots) * reals(v) * state_dtype(v.dtype).itemsize

        return {(id(self._optimizer), v._id): nbytes(v) for v in self.variables}

    @property
    def launched(self) -> Applied | None:
        """Itself, if kernels can do all of it."""
        on_cpu = any(v.device.kind == "cpu" for v in self.variables)
        # whether it is taken is asked on the host: what is not taken is not counted there
        return None if self._sparse or on_cpu or self._asks or not self._optimizer.kernel else self

    def numbers(self) -> list[Any]:
        """The settings of the next step, for each launch: the learning rate is one of them."""
        optimizer = self._optimizer
        rate = optimizer._rate_now()
        if self._states is not optimizer._states or any(
            len({state.step for _, state in group}) > 1 for group in self._groups
        ):  # states were loaded, or moved elsewhere and not all of them
            self._group()
        made = []
        for group in self._groups:
            _, first = group[0]
            settings = optimizer._settings(first.step + 1, rate)
            made.append(np.array(settings, state_dtype(first.variable.dtype)))
            for _, state in group:
                state.step += 1
        optimizer.iterations += 1
        return made

    def uncount(self) -> None:
        """As if the last `numbers` had not been asked for."""
        for group in self._groups:
            for _, state in group:
                state.step -= 1
        self._optimizer.iterations -= 1

    def _group(self) -> None:
        optimizer = self._optimizer
        optimizer.build(self.variables)
        self._states, self.version = optimizer._states, self.version + 1
        states = [self._states[v._id] for v in self.variables]
        work = [(s, s.variable._data, i) for i, s in enumerate(states)]
        self._groups = [[(i, s) for s, _, i in group] for group in grouped(work)]

    def launch(self, arrays: list[Any], values: list[Any], live: list[Any]) -> list[Any]:
        """Move `values` along the gradients `arrays`."""
        optimizer = self._optimizer
        for group, numbers in zip(self._groups, live, strict=True):
            work = [(state, values[i], flat(arrays[i])) for i, state in group]
            optimizer._launch(work, optimizer._settings(1, 0.0), numbers)
        return []
