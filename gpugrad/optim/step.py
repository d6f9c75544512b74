"""How an optimizer steps: what a subclass declares for it, and the path of each Variable."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import get_ident
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core import devices
from gpugrad.core.arguments import Range
from gpugrad.core.backend import HALF, READINGS, TENSOR
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.replaceable import SignalsDeferred, lock_arrays, unlock_arrays
from gpugrad.core.scopes import scopes, updating
from gpugrad.core.settings import numerics
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, NumericsError, reraise
from gpugrad.kernels.codegen.update_kernel import StepKernel
from gpugrad.kernels.runtime.launch import gpu_of
from gpugrad.optim.accumulate import add_gradients, mean_gradients
from gpugrad.optim.arrays import as_reals, make_own, own_contiguous, ravel_reals, sum_rows
from gpugrad.optim.checks import Gradient, check_gradient
from gpugrad.optim.clip import Limits, all_finite, clip
from gpugrad.optim.groups import Group, settings_of
from gpugrad.optim.rules import Rule
from gpugrad.optim.state import State, Stateful
from gpugrad.trace.numerics import check
from gpugrad.trace.tracing import Tracing

Schedule = float | Callable[[int], Any]


Work = tuple[State, Any, Any]
"""A Variable's state, its array, and its gradient as a flat array or IndexedSlices."""

Settings = Callable[[State], tuple[float, ...]]
"""The numbers of the next step of a Variable."""


class Stepping(Stateful):
    """The part of `Optimizer` that steps arrays."""

    hyper: ClassVar[Mapping[str, Range]] = {}
    """The ranges of the settings, besides the learning rate, that a group may have."""
    flags: ClassVar[tuple[str, ...]] = ()
    """Attributes that the formula reads: it is compiled once for each combination of values."""
    _learning_rate: Schedule
    limits: Limits
    skip_nonfinite: bool
    measure: Callable[..., Sequence[Any]] | None = None
    """The direction, and the new averages, of a formula that reads norms: see `StepKernel`."""
    average: Callable[[list[Any], Any], tuple[list[Any], Any]] | None = None
    """Makes accumulated gradients, and whether to step, those of all processes."""

    # -- what a subclass declares

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """The numbers that the formula reads as `s`, in the same order in every step.

        By default the settings by name, and the learning rate as ``rate``.

        Args:
            h: the settings in `hyper`, of the Variable's group.
            rate: the learning rate.
            step: the number of the Variable's step, from 1.
        """
        return {**{name: getattr(h, name) for name in self.hyper}, "rate": rate}

    def formula(self, *args: Any, **keywords: Any) -> Sequence[Any]:
        """The new ``(p, *slots)`` from ``(xp, s, p, g, *slots)``, for one element.

        `xp` has absolute, maximum, sign, sqrt and square. Conditions may depend on `flags` only.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement formula.")

    def takes_rows(self, h: Any) -> bool:
        """Whether an element whose gradient is 0 keeps its value and its averages.

        If so, IndexedSlices update only their rows. Otherwise they become dense.
        """
        return False

    def by_array(self, variable: Variable) -> bool:
        """Whether `move_array` steps the whole Variable, in place of the formula."""
        return False

    def move_array(self, xp: Any, s: Any, p: Any, g: Any, averages: Mapping[str, Any]) -> Any:
        """The new array; the averages, which are flat, are updated in place.

        Args:
            xp: NumPy or CuPy.
            s: the numbers, as attributes.
            p, g: arrays in the Variable's shape, in float32 or wider.
            averages: arrays by slot.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement move_array.")

    # -- settings

    def any_of(self, setting: str) -> bool:
        """Whether a setting is above 0, here or in a group."""
        values = [getattr(self, setting), *(g.settings.get(setting, 0.0) for g in self.groups)]
        return any(value > 0 for value in values)

    @property
    def decays(self) -> bool:
        """Whether there is weight decay, which a formula may skip otherwise."""
        return self.any_of("weight_decay")

    def _rate(self, value: Any) -> float:
        try:
            rate = float(value)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"{self.name}: the learning rate must be a number, got {value!r:.60}."
            ) from error
        if not (math.isfinite(rate) and rate >= 0):
            raise ArgumentError(f"{self.name}: the learning rate must be at least 0, got {rate}.")
        return rate

    def _settings_now(self) -> Settings:
        """The function of a Variable's state that returns the settings of its next step.

        It calls each schedule once.
        """
        known: dict[Any, tuple[float, ...]] = {}
        rates: dict[Group, float] = {}

        def settings(state: State) -> tuple[float, ...]:
            key = group, step = state.group, state.step + 1
            numbers = known.get(key)
            if numbers is None:
                if group not in rates:
                    rate = group.settings.get("learning_rate", self._learning_rate)
                    rates[group] = self._rate(rate(self.iterations) if callable(rate) else rate)
                h = settings_of(self, group, self.hyper) if group.settings else self
                values = self.numbers(h, rates[group], step).values()
                numbers = known[key] = tuple(map(float, values))  # NumPy's would widen float32
            return numbers

        return settings

    def _names(self) -> tuple[str, ...]:
        return tuple(self.numbers(settings_of(self, self._others, self.hyper), 0.0, 1))

    @property
    def _rule(self) -> Any:
        """The formula for the flags of now."""
        key = tuple([getattr(self, flag) for flag in self.flags])
        rule = self._rules.get(key)
        if rule is None:
            name, names = type(self).__name__.lower(), self._names()
            kernel = StepKernel(name, self.formula, names, len(self.slots), self.measure)
            rule = self._rules[key] = Rule(kernel)
        return rule

    @property
    def kernel(self) -> StepKernel:
        """The kernels that step all Variables on a GPU."""
        return self._rule.kernel

    def _load(self, variables: Sequence[Variable]) -> None:
        """Compile the loop in C if it steps one of these, however small they are."""
        if any(v.dtype not in HALF and not self.by_array(v) for v in variables):
            self._rule.loop.load()

    # -- a step

    def _take(self, pairs: list[tuple[Gradient, Variable]], when: Any = True) -> None:
        """Take a step with gradients that have been checked, or count that it is skipped."""
        try:
            if not when:
                self.skipped += 1
                return
            take = self._accumulate if self.accumulate > 1 else self._step
            with updating:
                if numerics():
                    self._take_or_undo(take, pairs)
                else:
                    take(pairs)
        except MemoryError as error:
            reraise(error, f"{self.name}.apply_gradients", {}, {})

    def _take_or_undo(self, take: Callable[[Any], None], pairs: list[Any]) -> None:
        """Take a step, and undo it if a Variable became NaN or infinite."""
        before, undo = [(v, v._data) for _, v in pairs], self._undo()
        try:
            take(pairs)
            for (g, v), (_, data) in zip(pairs, before, strict=True):
                inputs = {"variable": data, "gradient": g}
                check(f"{self.name}.apply_gradients of '{v.name}'", v._data, inputs)
        except NumericsError:
            undo()
            for v, data in before:
                v._data = data
            raise

    def _accumulate(self, pairs: list[tuple[Gradient, Variable]]) -> None:
        """Add gradients to the sums; take a step with their means when there are enough."""
        states = [self._state(v) for _, v in pairs]
        last = self._calls + 1 == self.accumulate
        if last:
            settings = self._settings_now()
            for state in self._states.values():
                settings(state)  # a schedule may raise
        with SignalsDeferred():
            add_gradients(states, [g for g, _ in pairs])
            self._calls += 1
            if not last:
                return
            self._calls = 0  # also if this raises, since the sums are empty then
            pairs, when = self._prepare(
                mean_gradients(self._states.values(), self.accumulate), True
            )
            if when:
                self._step(pairs)
            else:
                self.skipped += 1

    def _prepare(
        self, pairs: list[tuple[Gradient, Variable]], when: Any
    ) -> tuple[list[tuple[Gradient, Variable]], Any]:
        """Clipped gradients, and whether to take the step."""
        if self.average is not None:
            pairs, when = self.average(pairs, when)
        if self.skip_nonfinite:
            with recording_stopped(keep=Tracing):
                finite = all_finite([g for g, _ in pairs])
                when = finite if when is True else TENSOR.logical_and(finite, when)
        return (self._clip(pairs) if self.limits else pairs), when

    def _clip(self, pairs: list[tuple[Gradient, Variable]]) -> list[tuple[Gradient, Variable]]:
        grads, variables = [], [v for _, v in pairs]
        for g, v in pairs:
            if not isinstance(g, IndexedSlices):  # which are checked when their values are known
                g = check_gradient(self.name, g, v, self._paths.get(v._id))
            elif g.dense_shape is None:
                g = IndexedSlices(g.values, g.indices, v.shape)
            grads.append(g)
        with recording_stopped():
            return list(zip(clip(grads, **self.limits), variables, strict=True))

    def _check_gradients(self, pairs: Iterable[tuple[Any, Variable]]) -> list[Any]:
        """The pairs with gradients that fit their Variables."""
        name, paths = self.name, self._paths
        try:  # a GPU allocates for the least and the greatest index
            return [(check_gradient(name, g, v, paths.get(v._id)), v) for g, v in pairs]
        except MemoryError as error:
            reraise(error, f"{name}.apply_gradients", {}, {})

    def _step(self, pairs: list[tuple[Gradient, Variable]]) -> None:
        """Update the arrays of Variables, which nobody sees before all of them are new."""
        variables = [variable for _, variable in pairs]
        states = [self._state(v) for v in variables]
        gradients = [g for g, _ in pairs]
        if get_ident() in scopes:  # of a trace, which can undo the step, or of a replay
            self._update(states, gradients, list(map(own_contiguous, variables)))
            return
        with SignalsDeferred():
            arrays = lock_arrays(variables)
            try:
                self._update(states, gradients, make_own(arrays))
            finally:
                unlock_arrays(variables, arrays)

    # -- paths

    def _update(
        self, states: Sequence[State], gradients: Sequence[Any], arrays: Sequence[Any]
    ) -> None:
        """Write to the Variables' arrays; everything that can fail comes before.

        The path of each array is chosen here.
        """
        settings = self._settings_now()
        rows: list[Work] = []
        whole: list[Work] = []
        on_gpu: list[Work] = []
        on_cpu: list[Work] = []
        group: Any = None
        some_by_array = type(self).by_array is not Stepping.by_array
        for state, gradient, data in zip(states, gradients, arrays, strict=True):
            if state.group is not group:
                group = state.group
                settings(state)  # a schedule may raise
            if type(gradient) is IndexedSlices:
                takes_rows = self.takes_rows(settings_of(self, group, self.hyper))
                if takes_rows and gradient.dtype not in HALF:  # whose sums round too much
                    rows.append((state, data, gradient))
                    continue
                gradient = gradient.to_dense()
            if some_by_array and self.by_array(state.variable):
                path = whole
            else:
                path = on_cpu if type(data) is np.ndarray else on_gpu
            path.append((state, data, as_reals(gradient._data)))
        for state, data, gradient in rows:  # first, because it allocates memory, so can fail
            with devices.formulas_on(data):
                self._move_rows(state, data, gradient, settings(state))
        if whole:
            self._move_arrays(whole, settings)
        if on_gpu:
            for launched in group_by_launch(on_gpu):
                launch_group(self, launched, settings(launched[0][0]))
        if on_cpu:
            self._move_on_cpu(on_cpu, settings)
        for state in states:
            state.count()
        self.iterations += 1

    def _move_on_cpu(self, work: list[Work], settings: Settings) -> None:
        columns: list[Sequence[Any]] = []
        numbers: list[Sequence[float]] = []  # those of consecutive Variables that share them
        rows: list[int] = []
        for state, data, g in work:
            own = settings(state)
            if not numbers or own is not numbers[-1]:
                numbers.append(own)
            averages = [state.averages[slot] for slot in self.slots]
            columns.append([ravel_reals(data), g.reshape(-1), *averages])
            rows.append(len(numbers) - 1)
        self._rule.step(columns, numbers, rows)

    def _move_arrays(self, work: list[Work], settings: Settings) -> None:
        names = self._names()
        for state, data, g in work:
            with devices.formulas_on(data):
                half = data.dtype in HALF
                p, g = (a.astype(np.float32) if half else a for a in (ravel_reals(data), g))
                shape = data.shape if data.dtype.kind != "c" else p.shape
                s = SimpleNamespace(**dict(zip(names, settings(state), strict=True)))
                slots = self.sizes(state.variable)  # without the sum of gradients
                averages = {slot: state.averages[slot] for slot in slots}
                xp = READINGS[type(data)].lib
                new = self.move_array(xp, s, p.reshape(shape), g.reshape(shape), averages)
                ravel_reals(data)[...] = new.reshape(-1)

    def _move_rows(self, state: State, data: Any, rows: IndexedSlices, settings: Any) -> None:
        """Step the rows of an array that have a gradient."""
        indices, values = sum_rows(rows.indices._data, rows.values._data)
        if not len(indices):
            return
        averages = [state.averages[slot] for slot in self.slots]
        # complex rows are rows of twice as many reals
        whole = [a.reshape(len(data), -1) for a in (ravel_reals(data), *averages)]
        p, *own = (a[indices].reshape(-1) for a in whole)
        columns = [p, ravel_reals(values), *own]
        if type(data) is np.ndarray:
            self._rule.step([columns], [settings], [0])
        else:
            self.kernel.step([[column] for column in columns], settings, None, None)
        for a, part in zip(whole, (p, *own), strict=True):
            a[indices] = part.reshape(len(indices), -1)


def group_by_launch(work: Sequence[Work]) -> list[list[Work]]:
    """Split `work` into launches: one dtype, one GPU, one group and one step number each."""
    groups: dict[Any, list[Work]] = {}
    for item in work:
        state, data, _ = item
        key = data.dtype, gpu_of(data), state.group, state.step
        groups.setdefault(key, []).append(item)
    return list(groups.values())


def launch_group(
    optimizer: Stepping,
    group: Sequence[Work],
    settings: tuple[float, ...],
    live: Any = None,
    rounded: Sequence[Any] | None = None,
) -> None:
    """Launch the kernel that updates arrays of one dtype on one GPU.

    `live` and `rounded` are the arguments of `kernels.codegen.update_kernel.StepKernel.step`.
    """
    states, data, grads = zip(*group, strict=True)
    with devices.formulas_on(data[0]):
        averages = [[s.averages[slot] for s in states] for slot in optimizer.slots]
        arrays = [[*map(as_reals, data)], grads, *averages]
        optimizer.kernel.step(arrays, settings, live, rounded)
