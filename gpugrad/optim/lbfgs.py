"""L-BFGS: a quasi-Newton method for losses without noise."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import devices
from gpugrad.core.arguments import ABOVE_0, COUNT, NOT_NEGATIVE, one_of, optional, takes
from gpugrad.core.backend import READINGS
from gpugrad.core.convert import constant
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.errors import (
    ArgumentError,
    CheckpointError,
    DeviceError,
    DTypeError,
    ShapeError,
    saying_where,
)
from gpugrad.optim.arrays import ravel_reals
from gpugrad.optim.checks import check_count, check_empty, take_array
from gpugrad.optim.line_search import Point, search
from gpugrad.optim.state import flatten_variables
from gpugrad.trace.array import current_trace


class LBFGS:
    """L-BFGS with a line search for the strong Wolfe conditions, as in torch and SciPy.

    Each call of `minimize` takes up to `max_iterations` steps, along the gradient times an estimate
    of the inverse Hessian from the last `history_size` steps: Nocedal and Wright 2006, "Numerical
    Optimization", algorithm 7.5. The loss must not be random, so use the whole data in each
    evaluation. Steps are chosen on the host: call `minimize` outside of `gg.function`, and pass it
    a traced loss for speed.

    Args:
        learning_rate: the first step length that the line search tries, above 0.
        max_iterations: the most steps of one call.
        max_evaluations: the most evaluations of the loss in one call, 5 / 4 of `max_iterations` if
            None.
        tolerance_gradient: a call ends when no element of the gradient is larger.
        tolerance_change: a call ends when the loss, or every element of a step, changes by less.
        history_size: the number of steps that are remembered.
        line_search: ``"strong_wolfe"``; or None to take steps of length `learning_rate`.

    >>> x = gg.Variable([-1.2, 1.0], dtype="float64")
    >>> rosenbrock = lambda: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> optimizer = gg.optim.LBFGS(max_iterations=100)
    >>> loss = optimizer.minimize(rosenbrock, [x])
    >>> print(loss, x.value())
    24.2 [1. 1.]
    """

    @saying_where
    @takes(learning_rate=ABOVE_0, tolerance_gradient=NOT_NEGATIVE, tolerance_change=NOT_NEGATIVE)
    @takes(history_size=COUNT, max_iterations=COUNT, max_evaluations=optional(COUNT))
    @takes(line_search=one_of("strong_wolfe", None))
    def __init__(
        self,
        learning_rate: float = 1.0,
        max_iterations: int = 20,
        max_evaluations: int | None = None,
        tolerance_gradient: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 10,
        line_search: str | None = "strong_wolfe",
        name: str | None = None,
    ) -> None:
        self.name = name or type(self).__name__
        self.learning_rate, self.line_search = learning_rate, line_search
        self.tolerance_gradient, self.tolerance_change = tolerance_gradient, tolerance_change
        self.history_size, self.max_iterations = history_size, max_iterations
        default = max_iterations * 5 // 4
        self.max_evaluations = default if max_evaluations is None else max_evaluations
        self.iterations = 0
        """The number of steps taken."""
        self.evaluations = 0
        """The number of evaluations of losses."""
        self._pairs: list[tuple[Any, Any]] = []  # steps, and the changes of the gradient
        self._last: tuple[Any, Any] | None = None  # the last step, and the gradient before it

    @saying_where
    def minimize(self, loss: Callable[[], Tensor], var_list: Any = None) -> Tensor:
        """Take up to `max_iterations` steps that make `loss` smaller; return the loss before them.

        Args:
            loss: a function without arguments that computes the loss.
            var_list: Variables to update, possibly in nested lists, the same in every call. If
                None, all trainable Variables that the loss reads.

        Raises:
            ArgumentError: `loss` is not a function or not a number, or the call is traced.
            DTypeError, DeviceError: a Variable is not floating, or on another device.
            ShapeError: the Variables have another size than in earlier calls.
        """
        if not callable(loss):
            raise ArgumentError(f"{self.name}: minimize needs a function that computes the loss.")
        if current_trace() is not None:
            raise ArgumentError(
                f"{self.name}: minimize chooses its steps on the host, so it cannot be traced. "
                "Call it outside of gg.function, with a loss that is a gg.function."
            )
        objective = _Objective(self.name, loss, var_list)
        if self._last is not None and self._last[0].size != objective.size:
            raise ShapeError(
                f"{self.name}: the Variables have {objective.size} elements, but "
                f"{self._last[0].size} in earlier calls. Use a new optimizer."
            )
        with devices.formulas_on(objective.x):
            self._run(objective)
        return objective.first

    def _run(self, objective: _Objective) -> None:
        value, g = objective.value, objective.gradient
        evaluations = 1
        try:
            for k in range(1, self.max_iterations + 1):
                if _largest(g) <= self.tolerance_gradient:
                    break
                direction = self._direction(g)
                slope = _dot(g, direction)
                if slope > -self.tolerance_change:
                    break
                t = self.learning_rate
                if self._last is None:
                    t *= min(1.0, 1.0 / float(abs(g).sum()))
                before = value
                x, start = objective.x, Point(0.0, value, g, slope)
                at = functools.partial(objective.on_line, x, direction)
                if self.line_search:
                    most = self.max_evaluations - evaluations
                    smallest = self.tolerance_change / max(_largest(direction), 1e-300)
                    point, count = search(at, start, t, most, smallest)
                else:
                    is_last = k == self.max_iterations
                    point = Point(t, value, g, slope) if is_last else at(t)
                    count = 0 if is_last else 1
                evaluations += count
                step = direction * point.t
                objective.x = x + step
                self._last, self.iterations = (step, g), self.iterations + 1
                value, g = point.loss, point.gradient
                if evaluations >= self.max_evaluations or _largest(step) <= self.tolerance_change:
                    break
                if abs(value - before) < self.tolerance_change:
                    break
        finally:
            self.evaluations += evaluations
            objective.write(objective.x)

    def _direction(self, g: Any) -> Any:
        if self._last is None:
            return -g
        step, gradient = self._last
        change = g - gradient
        if _dot(change, step) > 1e-10:
            self._pairs = [*self._pairs, (step, change)][-self.history_size :]
        q, parts = -g, []
        for s, y in reversed(self._pairs):
            part = _dot(s, q) / _dot(y, s)
            q = q - part * y
            parts.append(part)
        if self._pairs:
            s, y = self._pairs[-1]
            q = q * (_dot(y, s) / _dot(y, y))
        for (s, y), part in zip(self._pairs, reversed(parts), strict=True):
            q = q + (part - _dot(y, q) / _dot(y, s)) * s
        return q

    def state_dict(self, names: Mapping[str, Variable] | None = None) -> dict[str, Tensor]:
        """A copy of the state as Tensors by name.

        Args:
            names: ignored: the state holds all Variables in the order of `minimize`.
        """
        counts = {"iterations": self.iterations, "evaluations": self.evaluations}
        state = {k: constant(np.array(n), device="cpu") for k, n in counts.items()}
        if self._last is not None:
            state |= {"step": wrap(self._last[0].copy()), "gradient": wrap(self._last[1].copy())}
        for k, (s, y) in enumerate(self._pairs):
            state |= {f"{k}.step": wrap(s.copy()), f"{k}.change": wrap(y.copy())}
        return state

    def load_state_dict(
        self, state: Mapping[str, Any], names: Mapping[str, Variable] | None = None
    ) -> None:
        """Load a state that `state_dict` returned: all of it, or on an error nothing.

        Raises:
            CheckpointError: the state belongs to another optimizer.
        """
        left = dict(state)
        iterations, evaluations = (
            check_count(self.name, key, take_array(self.name, left, key, ()))
            for key in ("iterations", "evaluations")
        )

        def pair(keys: Sequence[str]) -> tuple[Any, Any]:
            arrays = [left.pop(key, None) for key in keys]
            if any(a is None for a in arrays):
                raise CheckpointError(f"{self.name}: the state lacks one of {list(keys)}.")
            first, second = (tensor(a)._data for a in arrays)
            return first, second

        last = pair(("step", "gradient")) if "step" in left else None
        count = sum(key.endswith(".change") for key in left)
        pairs = [pair((f"{k}.step", f"{k}.change")) for k in range(count)]
        check_empty(self.name, left)
        self.iterations, self.evaluations = iterations, evaluations
        self._last, self._pairs = last, pairs

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(learning_rate={self.learning_rate}, "
            f"iterations={self.iterations}, evaluations={self.evaluations})"
        )


class _Objective:
    """A loss as a function of one flat array.

    Attributes:
        x: the current point.
        value, gradient, first: the loss and its gradient at the start, and the loss as a Tensor.
    """

    def __init__(self, name: str, loss: Callable[[], Tensor], var_list: Any) -> None:
        self._name, self._loss = name, loss
        self._variables = None if var_list is None else flatten_variables(var_list)
        self.first, gradients = self._evaluate()
        self.dtype = np.result_type(np.float32, *(a.dtype for a in gradients))
        self.value, self.gradient = float(self.first.numpy()), self._flat(gradients)
        self.x = self._flat([ravel_reals(v._data) for v in self._variables or ()])
        self.size = self.x.size

    def _evaluate(self) -> tuple[Tensor, list[Any]]:
        with GradientTape() as tape:
            value = tensor(self._loss())
        if value.size != 1:
            raise ArgumentError(
                f"{self._name}: the loss must be a number, its shape is {value.shape}."
            )
        if self._variables is None:
            self._variables = list(tape.watched_variables())
        self._check(self._variables)
        gradients = tape.gradient(value, self._variables, unconnected_gradients="zero")
        dense = [
            constant(g, device=v.device) for g, v in zip(gradients, self._variables, strict=True)
        ]
        return value, [ravel_reals(g._data) for g in dense]

    def _check(self, variables: Sequence[Variable]) -> None:
        if not variables:
            raise ArgumentError(
                f"{self._name}: the loss read no trainable Variable, so there is nothing to update."
            )
        for v in variables:
            if v.dtype.kind not in "fcV":
                raise DTypeError(f"{self._name}: the Variable '{v.name}' is {v.dtype}.")
            if v.device != variables[0].device:
                raise DeviceError(
                    f"{self._name}: the Variable '{v.name}' is on {v.device}, "
                    f"'{variables[0].name}' on {variables[0].device}. Move all to one device."
                )

    def _flat(self, parts: Sequence[Any]) -> Any:
        lib = READINGS[type(parts[0])].lib
        return lib.concatenate([p.astype(self.dtype) for p in parts])

    def on_line(self, x: Any, direction: Any, t: float) -> Point:
        """Evaluate the loss at step length `t` from `x` along a direction."""
        self.write(x + t * direction)
        value, gradients = self._evaluate()
        gradient = self._flat(gradients)
        return Point(t, float(value.numpy()), gradient, _dot(gradient, direction))

    def write(self, x: Any) -> None:
        begin = 0
        for v in self._variables or ():
            n = ravel_reals(v._data).size
            part = x[begin : begin + n]
            begin += n
            if v.dtype.kind == "c":
                part = part.astype(v._data.real.dtype).view(v.dtype)
            v.assign(wrap(part.astype(v.dtype).reshape(v.shape)))


def _dot(x: Any, y: Any) -> float:
    return float(x.dot(y))


def _largest(x: Any) -> float:
    return float(abs(x).max()) if x.size else 0.0
