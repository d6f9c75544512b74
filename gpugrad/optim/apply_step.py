"""The step that a traced `apply_gradients` leaves in a program."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor
from gpugrad.core.variable import Variable
from gpugrad.kernels.by_hand.casts import straighten
from gpugrad.optim.arrays import as_reals, state_dtype
from gpugrad.optim.state import State
from gpugrad.optim.step import Stepping, group_by_launch, launch_group

_clock = attrgetter("step", "group")


class ApplyStep:
    """`apply_gradients` as a side effect of a program, on the host or as kernels in a CUDA graph.

    Args:
        optimizer: the optimizer that takes the step.
        pairs: the traced gradients and their Variables.
        conditional: whether the first array of each run says if the step is taken.
    """

    version = 0
    """Raised whenever the groups of launches change, so that captured graphs are renewed."""
    widens = True
    """Whether its kernels accept 16-bit floats in place of float32."""

    def __init__(self, optimizer: Stepping, pairs: list[Any], conditional: bool) -> None:
        self._optimizer, self._conditional = optimizer, conditional
        self.variables = [v for _, v in pairs]
        # dtypes and shapes only: the traced gradients themselves would stay alive
        self._kinds = [
            (g.dtype, (g.dense_shape,) if isinstance(g, IndexedSlices) else ()) for g, _ in pairs
        ]
        self._sparse = any(dense_shape for _, dense_shape in self._kinds)
        self._groups: list[list[tuple[int, State]]] = []  # with indices into `variables`
        self._states_of: list[list[State]] = []  # the states alone, by group
        self._dtypes: list[Any] = []  # of the numbers of each group
        self._numbers: list[tuple[float, ...]] = []  # the settings of the last step, by group
        self._states: Any = None
        self._rule: Any = None
        self._rounded: dict[int, int] = {}  # places of 16-bit copies, by those of the Variables

    def __call__(self, *arrays: Tensor) -> list[Tensor]:
        """Take a step on the host with the gradients of this run."""
        remaining = iter(arrays)
        when = next(remaining) if self._conditional else True
        pairs = []
        for (dtype, dense_shape), variable in zip(self._kinds, self.variables, strict=True):
            grad: Any = next(remaining)
            if dense_shape:
                grad = IndexedSlices(grad, next(remaining), *dense_shape)
            elif grad.dtype != dtype:  # left in 16 bits for a kernel that widens it
                grad = TENSOR.astype(grad, dtype)
            pairs.append((grad, variable))
        if self._sparse:  # the indices differ from run to run, so they are checked again
            pairs = self._optimizer._check_gradients(pairs)
        self._optimizer._take(pairs, when)
        return []

    def load(self) -> None:
        """Compile the loop in C that steps Variables on the CPU."""
        self._optimizer._load(self.variables)

    @property
    def averages(self) -> dict[tuple[int, int], int]:
        """Bytes of the averages of each Variable, by the ids of the optimizer and the Variable."""

        def nbytes(v: Variable) -> int:
            return sum(self._optimizer.sizes(v).values()) * state_dtype(v.dtype).itemsize

        return {(id(self._optimizer), v._id): nbytes(v) for v in self.variables}

    @property
    def launched(self) -> ApplyStep | None:
        """The step itself if kernels can do all of it, else None."""
        on_cpu = any(v.device.kind == "cpu" for v in self.variables)
        # a conditional step needs the host, which counts the steps that were taken
        host = (
            self._sparse
            or on_cpu
            or self._conditional
            or self._optimizer.accumulate != 1
            or any(map(self._optimizer.by_array, self.variables))
        )
        return None if host else self

    @property
    def rounds(self) -> bool:
        """Whether its kernels can write 16-bit copies of the Variables, too."""
        return self._optimizer.kernel.rounds

    def with_rounded(self, places: Sequence[int]) -> ApplyStep:
        """The same, where the Variables at these places have 16-bit copies, of one dtype.

        The copies follow the Variables in the arguments of `launch`.
        """
        new = copy.copy(self)
        new._rounded = {k: len(self.variables) + at for at, k in enumerate(places)}
        return new

    def numbers(self) -> list[Any]:
        """The settings of the next step (learning rate, step number...) for each launch."""
        optimizer = self._optimizer
        settings_of = optimizer._settings_now()
        is_same = self._states is optimizer._states and self._rule is optimizer._rule
        if not is_same or any(len(set(map(_clock, states))) > 1 for states in self._states_of):
            self._group()  # states were loaded, a flag was set, or some were stepped elsewhere
        self._numbers = [settings_of(states[0]) for states in self._states_of]
        arrays = [np.array(n, t) for n, t in zip(self._numbers, self._dtypes, strict=True)]
        for states in self._states_of:
            for state in states:
                state.step += 1
        optimizer.iterations += 1
        return arrays

    def uncount(self) -> None:
        """Take back the step that the last call of `numbers` counted."""
        for states in self._states_of:
            for state in states:
                state.step -= 1
        self._optimizer.iterations -= 1

    def _group(self) -> None:
        optimizer = self._optimizer
        optimizer.build(self.variables)
        self._states, self._rule = optimizer._states, optimizer._rule
        self.version += 1
        states = [self._states[v._id] for v in self.variables]
        work = [(s, s.variable._data, i) for i, s in enumerate(states)]
        self._groups = [[(i, s) for s, _, i in group] for group in group_by_launch(work)]
        self._states_of = [[s for _, s in group] for group in self._groups]
        self._dtypes = [state_dtype(states[0].variable.dtype) for states in self._states_of]

    def launch(self, arrays: list[Any], values: list[Any], live: list[Any]) -> list[Any]:
        """Update the Variables' arrays `values` with the gradients `arrays`."""
        arrays = straighten(arrays)
        for group, settings, numbers in zip(self._groups, self._numbers, live, strict=True):
            work = [(state, values[i], as_reals(arrays[i])) for i, state in group]
            copies = [self._rounded.get(i) for i, _ in group] if self._rounded else None
            rounded = copies and [None if at is None else values[at] for at in copies]
            launch_group(self._optimizer, work, settings, numbers, rounded)
        return []
