"""TensorFlow 1's optimizers and moving averages, as operations of a graph."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import optimizers
from gpugrad.compat.tf.convert import tensor
from gpugrad.compat.tf.optimizers import constrain
from gpugrad.compat.tf.shapes import numpys
from gpugrad.compat.tf.state import Variable
from gpugrad.compat.tf.v1.gradients import gradients
from gpugrad.compat.tf.v1.graph import (
    GraphKeys,
    Node,
    Run,
    executing_eagerly,
    get_default_graph,
    nodes_of,
)
from gpugrad.compat.tf.v1.variables import Effect, RefVariable
from gpugrad.core import nest
from gpugrad.core.arguments import NOT_NEGATIVE
from gpugrad.errors import ArgumentError


class Optimizer:
    """An optimizer of a graph: `minimize` returns what a Session runs for a step.

    With eager execution it takes the step at once, of a loss that is a function.

    Args:
        own: the optimizer of `gpugrad` whose formula it runs, with its settings.
        learning_rate: a number, or a Node.
        name: of the optimizer, which is in the names of its Variables.
    """

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2

    def __init__(self, own: Any, learning_rate: Any, name: str) -> None:
        self._own, self._rate, self._name = own, learning_rate, name
        self._slots: dict[tuple[str, int], Any] = {}
        self._steps: Any = None

    def get_name(self) -> str:
        return self._name

    def get_slot_names(self) -> list[str]:
        return list(self._own.slots)

    def get_slot(self, var, name) -> Any:
        return self._slots.get((name, id(var)), (None,))[0]

    def variables(self) -> list[Any]:
        """The Variables that hold its state."""
        own = [slot for slot, _ in self._slots.values()]
        return own if self._steps is None else [self._steps, *own]

    def compute_gradients(
        self,
        loss,
        var_list=None,
        gate_gradients=1,
        aggregation_method=None,
        colocate_gradients_with_ops=False,
        grad_loss=None,
    ) -> list[Any]:
        if executing_eagerly():
            return self._gradients_now(loss, var_list, grad_loss)
        known = get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES)
        variables = nest.flatten(list(known if var_list is None else var_list))
        return list(zip(gradients(loss, variables, grad_loss), variables, strict=True))

    def _gradients_now(self, loss, var_list, grad_loss) -> list[Any]:
        if not callable(loss):
            raise ArgumentError(f"{self._name}: with eager execution the loss must be a function.")
        with gg.GradientTape() as tape:
            value = loss()
        variables = list(tape.watched_variables() if var_list is None else var_list)
        slopes = tape.gradient(value, variables, output_gradients=grad_loss)
        return list(zip(slopes, variables, strict=True))

    def apply_gradients(self, grads_and_vars, global_step=None, name=None) -> Any:
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise ArgumentError("apply_gradients: no Variable has a gradient.")
        slots = [[self._slot(slot, v) for slot in self._own.slots] for _, v in pairs]
        if self._steps is None and isinstance(self._own, optimizers.Adam):
            self._steps = self._variable(f"{self._name}/steps", 0.0)
        limited = [v for _, v in pairs if isinstance(v, RefVariable) and v.constraint is not None]
        limits = [(v, v.constraint(v)) for v in limited]

        def step(run: Run) -> None:
            rate = run.of(self._rate() if callable(self._rate) else self._rate)
            count = None if self._steps is None else run.of(self._steps).assign_add(1.0)
            numbers = SimpleNamespace(**self._own.numbers(self._own, rate, count))
            for (g, node), own in zip(run.of(pairs), slots, strict=True):
                variables = [node, *run.of(own)]
                for v, value in zip(variables, self._moved(numbers, g, variables), strict=True):
                    v.assign(value)
            for v, limit in limits:  # which is computed now, from the new value
                run.of(v).assign(run.of(limit))
            if global_step is not None:
                run.of(global_step).assign_add(1)

        if executing_eagerly():
            step(Run({}))
            constrain(v for _, v in pairs)
            return None
        nodes = [x for x in [self._rate, self._steps, global_step] if isinstance(x, Node)]
        return Effect(step, name or self._name, (pairs, slots, nodes))

    def _moved(self, numbers: Any, g: Any, variables: list[Any]) -> list[Any]:
        """The new values of a Variable and its averages: of a sparse gradient in its rows."""
        rows = None
        if isinstance(g, gg.IndexedSlices):
            ones = gg.ones(g.indices.shape, dtype="float32")
            named = gg.segment_sum(ones, g.indices, num_segments=variables[0].shape[0]) > 0
            rows = gg.reshape(named, (-1,) + (1,) * (variables[0].ndim - 1))
            g = g.to_dense()
        values = [v.value() for v in variables]
        new = self._own.formula(_XP, numbers, values[0], g, *values[1:])
        if rows is not None and not isinstance(self._own, optimizers.Adam):  # whose averages decay
            new = [gg.where(rows, a, b) for a, b in zip(new, values, strict=True)]
        return [gg.astype(x, v.dtype, copy=False) for x, v in zip(new, values, strict=True)]

    def _slot(self, slot: str, v: Any) -> Any:
        if (slot, id(v)) not in self._slots:
            first = getattr(self._own, getattr(self._own, "begins", {}).get(slot, ""), 0.0)
            if isinstance(v, RefVariable):
                own, name = Node(tensor, (v.initial_value,)), f"{v.op.name}/{self._name}"
                start: Any = Node(lambda x: gg.full_like(x, first), (own,), like=v)
            else:
                start, name = gg.full_like(v.value(), first), self._name
            own_slot = self._variable(name, start, numpys(v.dtype))
            self._slots[slot, id(v)] = own_slot, v  # which keeps its id
        return self._slots[slot, id(v)][0]

    def _variable(self, name: str, start: Any, dtype: Any = "float32") -> Any:
        if executing_eagerly():
            return Variable(start, False, dtype=dtype)
        graph = get_default_graph()
        return RefVariable(start, False, dtype=dtype, full_name=graph.unique_name(name))

    def minimize(
        self,
        loss,
        global_step=None,
        var_list=None,
        gate_gradients=1,
        aggregation_method=None,
        colocate_gradients_with_ops=False,
        name=None,
        grad_loss=None,
    ) -> Any:
        pairs = self.compute_gradients(loss, var_list, grad_loss=grad_loss)
        return self.apply_gradients(pairs, global_step, name)


_XP = SimpleNamespace(
    sqrt=gg.sqrt, square=gg.square, maximum=gg.maximum, absolute=gg.abs, sign=gg.sign
)
"""The functions that formulas of optimizers call."""


class _ProximalGradientDescent(optimizers.Optimizer):
    """Gradient descent whose step minimizes L1 and L2 penalties exactly."""

    hyper = gg.optim.ranges(l1=NOT_NEGATIVE, l2=NOT_NEGATIVE)
    l1 = l2 = 0.0

    def numbers(self, h: Any, rate: Any, step: Any) -> dict[str, Any]:
        return {"rate": rate, "l1": h.l1, "l2": h.l2}

    def formula(self, xp: Any, s: Any, p: Any, g: Any) -> Any:
        """The step of one element."""
        return (_proximal(xp, s, p - s.rate * g, s.rate),)


class _ProximalAdagrad(optimizers.Adagrad):
    """Adagrad whose step minimizes L1 and L2 penalties exactly."""

    hyper = gg.optim.ranges(
        initial_accumulator_value=NOT_NEGATIVE, l1=NOT_NEGATIVE, l2=NOT_NEGATIVE
    )
    l1 = l2 = 0.0
    numbers = _ProximalGradientDescent.numbers

    def formula(self, xp: Any, s: Any, p: Any, g: Any, total: Any) -> Any:
        """The step of one element."""
        total = total + xp.square(g)
        rate = s.rate / xp.sqrt(total)
        return _proximal(xp, s, p - rate * g, rate), total


def _proximal(xp: Any, s: Any, p: Any, rate: Any) -> Any:
    return xp.sign(p) * xp.maximum(xp.absolute(p) - rate * s.l1, 0.0) / (1 + rate * s.l2)


class GradientDescentOptimizer(Optimizer):
    """Steps against the gradient."""

    def __init__(self, learning_rate, use_locking=False, name="GradientDescent") -> None:
        super().__init__(gg.optim.SGD(0.0), learning_rate, name)


class MomentumOptimizer(Optimizer):
    """Steps along a decaying sum of gradients."""

    def __init__(
        self, learning_rate, momentum, use_locking=False, name="Momentum", use_nesterov=False
    ) -> None:
        own = gg.optim.SGD(0.0, momentum, nesterov=use_nesterov)
        super().__init__(own, learning_rate, name)


class AdamOptimizer(Optimizer):
    """Adam, whose steps are those of `gpugrad.compat.tf.optimizers.Adam`."""

    def __init__(
        self,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-08,
        use_locking=False,
        name="Adam",
    ) -> None:
        super().__init__(optimizers.Adam(0.0, beta1, beta2, epsilon), learning_rate, name)


class RMSPropOptimizer(Optimizer):
    """TensorFlow 1's RMSProp, whose average of squares begins at 1."""

    def __init__(
        self,
        learning_rate,
        decay=0.9,
        momentum=0.0,
        epsilon=1e-10,
        use_locking=False,
        centered=False,
        name="RMSProp",
    ) -> None:
        own = optimizers.RMSprop(0.0, decay, momentum, epsilon, centered)
        own.first = 1.0
        super().__init__(own, learning_rate, name)


class AdagradOptimizer(Optimizer):
    """Adagrad without an epsilon."""

    def __init__(
        self, learning_rate, initial_accumulator_value=0.1, use_locking=False, name="Adagrad"
    ) -> None:
        own = optimizers.Adagrad(0.0, initial_accumulator_value, 0.0)
        super().__init__(own, learning_rate, name)


class AdadeltaOptimizer(Optimizer):
    """Adadelta: steps of the size of earlier steps."""

    def __init__(
        self, learning_rate=0.001, rho=0.95, epsilon=1e-08, use_locking=False, name="Adadelta"
    ) -> None:
        super().__init__(optimizers.Adadelta(0.0, rho, epsilon), learning_rate, name)


class FtrlOptimizer(Optimizer):
    """FTRL-Proximal."""

    def __init__(
        self,
        learning_rate,
        learning_rate_power=-0.5,
        initial_accumulator_value=0.1,
        l1_regularization_strength=0.0,
        l2_regularization_strength=0.0,
        use_locking=False,
        name="Ftrl",
        accum_name=None,
        linear_name=None,
        l2_shrinkage_regularization_strength=0.0,
        beta=None,
    ) -> None:
        own = optimizers.Ftrl(
            0.0,
            learning_rate_power,
            initial_accumulator_value,
            l1_regularization_strength,
            l2_regularization_strength,
            l2_shrinkage_regularization_strength,
            beta or 0.0,
        )
        super().__init__(own, learning_rate, name)


class ProximalGradientDescentOptimizer(Optimizer):
    """Gradient descent with exact L1 and L2 penalties."""

    def __init__(
        self,
        learning_rate,
        l1_regularization_strength=0.0,
        l2_regularization_strength=0.0,
        use_locking=False,
        name="ProximalGradientDescent",
    ) -> None:
        own = _ProximalGradientDescent(
            0.0, l1=l1_regularization_strength, l2=l2_regularization_strength
        )
        super().__init__(own, learning_rate, name)


class ProximalAdagradOptimizer(Optimizer):
    """Adagrad with exact L1 and L2 penalties."""

    def __init__(
        self,
        learning_rate,
        initial_accumulator_value=0.1,
        l1_regularization_strength=0.0,
        l2_regularization_strength=0.0,
        use_locking=False,
        name="ProximalAdagrad",
    ) -> None:
        own = _ProximalAdagrad(
            0.0, initial_accumulator_value, l1_regularization_strength, l2_regularization_strength
        )
        super().__init__(own, learning_rate, name)


class ExponentialMovingAverage:
    """Decaying averages of Variables, which `apply` updates.

    Args:
        decay: the part of the old average in the new one.
        num_updates: the number of updates so far, if the decay shall begin smaller.
    """

    def __init__(
        self, decay, num_updates=None, zero_debias=False, name="ExponentialMovingAverage"
    ) -> None:
        if zero_debias:
            raise ArgumentError("ExponentialMovingAverage: zero_debias= is not understood.")
        self._decay, self._updates, self.name = decay, num_updates, name
        self._averages: dict[RefVariable, RefVariable] = {}

    def average_name(self, var) -> str:
        return f"{var.op.name}/{self.name}"

    def average(self, var) -> Any:
        """The average of a Variable, None before `apply`."""
        return self._averages.get(var)

    def apply(self, var_list=None) -> Node:
        graph = get_default_graph()
        chosen = list(var_list or graph.get_collection(GraphKeys.TRAINABLE_VARIABLES))
        kinds = [GraphKeys.GLOBAL_VARIABLES]
        for v in chosen:
            if v not in self._averages:
                self._averages[v] = RefVariable(
                    v.initial_value, False, kinds, dtype=v.dtype, full_name=self.average_name(v)
                )
                graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, v)

        def update(run: Run) -> None:
            decay, n = run.of([self._decay, self._updates])
            if n is not None:
                n = gg.astype(tensor(n), "float32")
                decay = gg.minimum(decay, (1 + n) / (10 + n))
            for v in chosen:
                average = run.of(self._averages[v])
                average.assign_sub((1 - decay) * (average.value() - run.of(v)))

        uses = [chosen, *nodes_of([self._decay, self._updates]), *self._averages.values()]
        return Effect(update, self.name, uses)

    def variables_to_restore(self, moving_avg_variables=None) -> dict[str, RefVariable]:
        """Variables by the names of their averages, for a `Saver`."""
        chosen = moving_avg_variables or get_default_graph().get_collection(
            GraphKeys.GLOBAL_VARIABLES
        )
        averages = self._averages.values()
        return {
            self.average_name(v) if v in self._averages else v.op.name: v
            for v in chosen
            if v not in averages
        }


__getattr__, __dir__ = forwarding(__name__, own=globals())
