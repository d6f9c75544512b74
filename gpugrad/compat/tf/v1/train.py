"""Gradients, optimizers and files of TensorFlow 1's graphs: tf.compat.v1.train."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

import gpugrad as gg
from gpugrad.compat import tf
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf.v1.graph import (
    Effect,
    Node,
    RefVariable,
    Run,
    Session,
    Zeros,
    get_default_graph,
)
from gpugrad.errors import ArgumentError


def gradients(
    ys, xs, grad_ys=None, name="gradients", *others, stop_gradients=None, **options
) -> list[Any]:
    """The gradients of a sum of `ys` by each of `xs`; None where there is no path."""
    sources = list(xs) if isinstance(xs, (list, tuple)) else [xs]

    def compute(run: Run) -> list[Any]:  # on a Graph that records the whole run
        values = run.of(sources)  # before the targets, so that these are computed from them
        targets, stop = run.of(ys), run.of(stop_gradients)
        return list(gg.gradients(targets, values, run.of(grad_ys), stop_gradients=stop))

    both = Effect(compute, "gradients")
    each = range(len(sources))
    return [None if _is_none(both, i) else Node(operator.getitem, (both, i)) for i in each]


def _is_none(both: Node, i: int) -> bool:
    run = Zeros(2)
    with gg.Graph().as_default():
        return run.of(both)[i] is None


class Optimizer:
    """An optimizer of a graph: `minimize` returns what a Session runs for a step."""

    def __init__(self, own) -> None:
        self._own = own

    def compute_gradients(self, loss, var_list=None, *others, **options) -> list[Any]:
        variables = list(var_list or get_default_graph().get_collection("trainable_variables"))
        return list(zip(gradients(loss, variables), variables, strict=True))

    def apply_gradients(self, grads_and_vars, global_step=None, name=None) -> Node:
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise ArgumentError("apply_gradients: no Variable has a gradient.")

        def step(run: Run) -> None:
            values = [(run.of(g), run.of(v)) for g, v in pairs]
            self._own.apply_gradients(values)
            if global_step is not None:
                run.of(global_step).assign_add(1)

        return Effect(step, name or "step")

    def minimize(self, loss, global_step=None, var_list=None, *others, **options) -> Node:
        return self.apply_gradients(self.compute_gradients(loss, var_list), global_step)


def _optimizer(name: str, make: Callable[..., Any]) -> Any:
    def start(self, *args, use_locking=False, name=None, **options) -> None:
        Optimizer.__init__(self, make(*args, **options))

    doc = f"TensorFlow 1's {name}Optimizer."
    return type(f"{name}Optimizer", (Optimizer,), {"__init__": start, "__doc__": doc})


def _momentum(learning_rate, momentum, use_nesterov=False) -> Any:
    return gg.optim.SGD(learning_rate, momentum, nesterov=use_nesterov)


def _adam(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8) -> Any:
    return gg.optim.Adam(learning_rate, beta1, beta2, epsilon)


def _rms(learning_rate, decay=0.9, momentum=0.0, epsilon=1e-10) -> Any:
    return gg.optim.RMSprop(learning_rate, rho=decay, momentum=momentum, epsilon=epsilon)


def _adagrad(learning_rate, initial_accumulator_value=0.1) -> Any:
    return gg.optim.Adagrad(learning_rate, initial_accumulator_value=initial_accumulator_value)


GradientDescentOptimizer = _optimizer("GradientDescent", gg.optim.SGD)
MomentumOptimizer, AdamOptimizer = _optimizer("Momentum", _momentum), _optimizer("Adam", _adam)
RMSPropOptimizer, AdagradOptimizer = _optimizer("RMSProp", _rms), _optimizer("Adagrad", _adagrad)


class Saver:
    """Saves and restores the Variables of a graph in a safetensors file."""

    def __init__(self, var_list=None, *others, **options) -> None:
        self._variables = var_list

    def _named(self, session: Session) -> dict[str, RefVariable]:
        chosen = self._variables or session.graph.variables.values()
        named = chosen if isinstance(chosen, dict) else {v.name.split(":")[0]: v for v in chosen}
        return dict(named)

    def save(self, sess: Session, save_path: str, global_step=None, **options) -> str:
        path = save_path if global_step is None else f"{save_path}-{int(global_step)}"
        gg.checkpoint.save(path, {k: v.variable for k, v in self._named(sess).items()})
        return path

    def restore(self, sess: Session, save_path: str) -> None:
        values, _ = gg.checkpoint.load(save_path)
        for name, node in self._named(sess).items():
            node.restore(values[name])


def get_global_step() -> Any:
    known = get_default_graph().variables.get("global_step:0")
    return RefVariable(0, trainable=False, name="global_step") if known is None else known


get_or_create_global_step = create_global_step = get_global_step


def get_checkpoint_state(checkpoint_dir, latest_filename=None) -> Any:
    """The latest path of a folder as ``model_checkpoint_path``; None if there is none."""
    path = tf.train.latest_checkpoint(checkpoint_dir)
    return path and types.SimpleNamespace(model_checkpoint_path=path)


__getattr__, __dir__ = forwarding(__name__, tf.train, own=globals())
