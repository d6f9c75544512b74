"""Steps, files and learning rates of TensorFlow 1's graphs: tf.compat.v1.train."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gpugrad as gg
from gpugrad.compat import tf
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf.v1 import decays, optimizers
from gpugrad.compat.tf.v1.graph import GraphKeys, Node, get_default_graph
from gpugrad.compat.tf.v1.session import Session
from gpugrad.compat.tf.v1.variables import RefVariable
from gpugrad.errors import CheckpointError


class Saver:
    """Saves and restores the Variables of a graph in safetensors files, the last `max_to_keep`."""

    def __init__(
        self, var_list=None, reshape=False, sharded=False, max_to_keep=5, *others, **options
    ) -> None:
        self._variables, self._most = var_list, max_to_keep or 0
        self.last_checkpoints: list[str] = []

    def _named(self, session: Session) -> dict[str, RefVariable]:
        chosen = self._variables or session.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        return dict(chosen) if isinstance(chosen, dict) else {v.op.name: v for v in chosen}

    def save(self, sess: Session, save_path: str, global_step=None, **options) -> str:
        if isinstance(global_step, Node):
            global_step = sess.run(global_step)
        path = save_path if global_step is None else f"{save_path}-{int(global_step)}"
        gg.checkpoint.save(path, {k: v.variable for k, v in self._named(sess).items()})
        self.last_checkpoints = [p for p in self.last_checkpoints if p != path] + [path]
        while 0 < self._most < len(self.last_checkpoints):
            Path(self.last_checkpoints.pop(0)).unlink(missing_ok=True)
        return path

    def restore(self, sess: Session, save_path: str) -> None:
        values, _ = gg.checkpoint.load(save_path)
        named = self._named(sess)
        if missing := ", ".join(name for name in named if name not in values):
            raise CheckpointError(f"Saver.restore: {save_path} has no values of {missing}.")
        for name, node in named.items():
            node.restore(values[name])


def get_global_step(graph=None) -> Any:
    """The Variable that counts steps, None if there is none."""
    return get_default_graph().variables.get("global_step:0")


def get_or_create_global_step(graph=None) -> RefVariable:
    kinds = [GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP]
    known = get_global_step()
    return known or RefVariable(0, False, kinds, dtype="int64", full_name="global_step")


create_global_step = get_or_create_global_step


def global_step(sess: Session, global_step_tensor: Node) -> int:
    """The number of steps now."""
    return int(sess.run(global_step_tensor))


def get_checkpoint_state(checkpoint_dir, latest_filename=None) -> Any:
    """The latest path of a folder as ``model_checkpoint_path``; None if there is none."""
    path = tf.train.latest_checkpoint(checkpoint_dir)
    return path and SimpleNamespace(model_checkpoint_path=path)


__getattr__, __dir__ = forwarding(__name__, decays, optimizers, tf.train, own=globals())
