"""Averages of weights over training steps: EMA and SWA."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.arguments import BELOW_1
from gpugrad.core.backend import HALF, TENSOR, is_inexact
from gpugrad.core.convert import constant
from gpugrad.core.ranks import Shard, cut_part, own_part, ranks
from gpugrad.core.tensor import Tensor
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, DTypeError, saying_where
from gpugrad.optim.checks import (
    check_count,
    check_empty,
    check_rule,
    take_array,
    warn_of_left_out,
    write_rule,
)
from gpugrad.optim.optimizer import Optimizer
from gpugrad.optim.state import flatten_variables
from gpugrad.trace.tracing import Tracing


class _WeightAverage(Optimizer):
    """Moves Variables by a part, the learning rate, of the way to their "gradients"."""

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        return {"keep": 1 - rate, "rate": rate}

    def formula(self, xp: Any, s: Any, p: Any, g: Any) -> Any:
        return (s.keep * p + s.rate * g,)


class EMA:
    """Exponential moving averages of Variables.

    Each `update` computes ``average = decay * average + (1 - decay) * variable``, in one launch for
    all Variables on a GPU, also in `gg.function`. Polyak and Juditsky 1992.

    Args:
        variables: floating Variables, possibly in nested lists, or a Module; averages begin with
            their values. Those of 16-bit Variables are float32.
        decay: from 0 to below 1; or a function of the number of updates so far, as
            ``lambda n: min(0.999, (1 + n) / (10 + n))``, which lets averages forget the start.

    Raises:
        ArgumentError: there are no Variables, or `decay` is out of range.
        DTypeError: a Variable is not floating.

    >>> v = gg.Variable(1.0)
    >>> ema = gg.optim.EMA([v], decay=0.75)
    >>> _ = v.assign(5.0)
    >>> ema.update()
    >>> with ema.apply():
    ...     print(v.value())
    2.0
    >>> print(v.value())
    5.0
    """

    @saying_where
    def __init__(self, variables: Any, decay: float | Callable[[int], float] = 0.999) -> None:
        if not callable(decay):
            BELOW_1(type(self).__name__, "decay", decay)
        if hasattr(variables, "named_variables"):
            variables = [v for v in variables.variables if is_inexact(v.dtype)]
        self.decay = decay
        self.variables = flatten_variables(variables)
        if not self.variables:
            raise ArgumentError(f"{type(self).__name__}: there are no Variables.")
        self.averages = [_copy(type(self).__name__, v) for v in self.variables]
        """The averages: Variables in the order of `variables`."""
        self._towards = _WeightAverage(self._rate, type(self).__name__)

    def _rate(self, updates: int) -> float:
        return 1 - (self.decay(updates) if callable(self.decay) else self.decay)

    @property
    def updates(self) -> int:
        """The number of updates so far."""
        return self._towards.iterations

    def update(self, *, when: Any = True) -> None:
        """Move the averages towards the Variables; call it after the optimizer's step.

        Args:
            when: whether to do it, as for `Optimizer.apply_gradients`.
        """
        with recording_stopped(keep=Tracing):
            values = [
                TENSOR.astype(v.value(), a.dtype)
                for v, a in zip(self.variables, self.averages, strict=True)
            ]
        self._towards.apply_gradients(zip(values, self.averages, strict=True), when=when)

    @contextlib.contextmanager
    def apply(self) -> Iterator[None]:
        """Give the Variables their averages in a ``with`` statement, and then their values back."""
        values = [v.value() for v in self.variables]
        try:
            self.assign()
            yield
        finally:
            for v, value in zip(self.variables, values, strict=True):
                v.assign(value)

    def assign(self) -> None:
        """Give the Variables their averages for good."""
        for v, average in zip(self.variables, self.averages, strict=True):
            v.assign(TENSOR.astype(average.value(), v.dtype))

    def state_dict(self, names: Mapping[str, Variable] | None = None) -> dict[str, Tensor]:
        """The averages as ``NAME.average``, with ``updates`` and the class as ``rule``.

        `gg.checkpoint.save` takes an EMA in place of an optimizer.

        Args:
            names: Variables by name, as in ``module.state_dict()``. If None, they are numbered.
        """
        if names is not None:
            warn_of_left_out(type(self).__name__, names, self.variables)
        state = {f"{name}.average": a.value() for name, a in self._by_name(names).items()}
        others = {"updates": np.array(self.updates), "rule": write_rule(type(self).__name__)}
        return state | {k: constant(array, device="cpu") for k, array in others.items()}

    def shards(self, names: Mapping[str, Variable] | None = None) -> dict[str, Any]:
        """As `state_dict`, but averages of which this rank has a part as what checkpoints join."""
        own = {f"{name}.average": own_part(a) for name, a in self._by_name(names).items()}
        return self.state_dict(names) | {k: a for k, a in own.items() if isinstance(a, Shard)}

    def load_state_dict(
        self, state: Mapping[str, Any], names: Mapping[str, Variable] | None = None
    ) -> None:
        """Load a state that `state_dict` returned: all of it, or on an error nothing.

        Raises:
            CheckpointError: the state belongs to other averages.
        """
        name, averages = type(self).__name__, self._by_name(names)
        of = {f"{key}.average": a for key, a in averages.items()}
        left = {key: cut_part(value, of.get(key)) for key, value in state.items()}
        check_rule(name, name, left)
        updates = check_count(name, "updates", take_array(name, left, "updates", ()))
        arrays = {
            key: take_array(name, left, f"{key}.average", a.shape, a.dtype)
            for key, a in averages.items()
        }
        check_empty(name, left)
        for key, average in averages.items():
            average.assign(constant(arrays[key], device=average.device))
        self._towards.iterations = updates

    def _by_name(self, names: Mapping[str, Variable] | None) -> dict[str, Variable]:
        if names is None:
            return {str(i): a for i, a in enumerate(self.averages)}
        of = {v._id: a for v, a in zip(self.variables, self.averages, strict=True)}
        return {name: of[v._id] for name, v in names.items() if v._id in of}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.variables)} Variables, updates={self.updates})"


class SWA(EMA):
    """Stochastic weight averaging: the mean of the Variables at all updates.

    Call `update` once per epoch near the end of training, then `assign`, and pass over the data
    once more for the statistics of BatchNorm. Izmailov et al. 2018, "Averaging Weights Leads to
    Wider Optima and Better Generalization".

    Args:
        variables: as for `EMA`.

    >>> v = gg.Variable(0.0)
    >>> swa = gg.optim.SWA([v])
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = v.assign(value)
    ...     swa.update()
    >>> swa.assign()
    >>> print(v.value())
    3.0
    """

    def __init__(self, variables: Any) -> None:
        super().__init__(variables, _share)


def _share(updates: int) -> float:
    return updates / (updates + 1)


def _copy(name: str, variable: Variable) -> Variable:
    """A Variable with the same value, at least in float32."""
    if not is_inexact(variable.dtype):
        raise DTypeError(
            f"{name}: the Variable '{variable.name}' is {variable.dtype}, but averages need a "
            "floating dtype."
        )
    dtype = np.dtype(np.float32) if variable.dtype in HALF else variable.dtype
    value = TENSOR.astype(variable.value(), dtype)
    name, device = f"{variable.name}.average", variable.device
    average = Variable(value, trainable=False, name=name, device=device)
    if variable._id in ranks.parts:
        ranks.parts[average._id] = ranks.parts[variable._id]
    return average
