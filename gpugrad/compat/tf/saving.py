"""tf.train.Checkpoint on safetensors files: Variables and optimizers of objects, by their paths.

A file does not keep how far the iterator of a Dataset is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.compat.tf.shapes import as_dtype
from gpugrad.compat.tf.state import Module
from gpugrad.errors import CheckpointError


def _parts(x) -> Iterable[tuple[Any, Any]]:
    """The parts of an object by their names; of Keras' objects, the public ones first."""
    if isinstance(x, (list, tuple)):
        return enumerate(x)
    if isinstance(x, dict):
        return x.items()
    if isinstance(x, (Module, gg.nn.Module, Checkpoint)):
        return vars(x).items()
    if all(kind.__name__ != "KerasSaveable" for kind in type(x).__mro__):
        return ()
    own, last = dict(vars(x)), "trainable_variables"  # what no attribute holds
    if hasattr(x, "apply_gradients"):
        own.pop(f"_{last}", None)  # of the model
    names = sorted(own, key=lambda k: (k[0] == "_", k.endswith(last)))
    return [(k.lstrip("_"), own[k]) for k in names]


def _paths(x, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Variables and gpugrad's optimizers in an object, each with its path."""
    if isinstance(x, (gg.Variable, gg.optim.Optimizer)):
        yield path, x
    elif id(x) not in seen:
        seen.add(id(x))
        if isinstance(getattr(x, "value", None), gg.Variable):  # a Variable of Keras
            yield path, x.value
        else:
            for key, part in _parts(x):
                yield from _paths(part, f"{path}/{key}".strip("/"), seen)


class Restored:
    """The outcome of `Checkpoint.restore`; the first two methods raise CheckpointError."""

    def __init__(self, missing: list[str], unexpected: list[str]) -> None:
        self._missing, self._unexpected = missing, unexpected

    def assert_existing_objects_matched(self) -> Restored:
        """Itself, if each Variable has a value in the file."""
        if self._missing:
            raise CheckpointError(f"restore: the file has no values of {', '.join(self._missing)}.")
        return self

    def assert_consumed(self) -> Restored:
        """Itself, if also each value belongs to a Variable."""
        if self._unexpected:
            names = ", ".join(self._unexpected)
            raise CheckpointError(f"restore: no Variables are called {names}.")
        return self.assert_existing_objects_matched()

    def expect_partial(self) -> Restored:
        """Itself."""
        return self


class Checkpoint:
    """Saves and restores Variables and optimizers, by the names of keywords and attributes.

    >>> import gpugrad.compat.tf as tf, tempfile
    >>> v = tf.Variable(3.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = tf.train.Checkpoint(v=v).write(f"{folder}/model")
    ...     _ = v.assign(0.0)
    ...     _ = tf.train.Checkpoint(v=v).restore(path).assert_consumed()
    >>> v.numpy().item()
    3.0
    """

    def __init__(self, root=None, **parts) -> None:
        vars(self).update(parts if root is None else {"root": root, **parts})

    def _found(self) -> tuple[dict[str, gg.Variable], dict[str, Any]]:
        """The Variables and the optimizers, by their paths."""
        parts, seen = dict(vars(self)), {id(self)}
        root = parts.pop("root", {})
        whole = _parts(root) or getattr(root, "__dict__", {}).items()
        found = dict(_paths({**dict(whole), **parts}, "", seen))
        variables = {path: x for path, x in found.items() if isinstance(x, gg.Variable)}
        return variables, {path: x for path, x in found.items() if path not in variables}

    def write(self, file_prefix, options=None) -> str:
        variables, optimizers = self._found()
        values: dict[str, Any] = dict(variables)
        for path, optimizer in optimizers.items():
            state = optimizer.state_dict(variables)
            values |= {f"{path}/{name}": value for name, value in state.items()}
        gg.checkpoint.save(file_prefix, values)
        return str(file_prefix)

    def save(self, file_prefix, options=None) -> str:
        numbers = [n for n, _ in _numbered(Path(file_prefix))]
        Path(file_prefix).parent.mkdir(parents=True, exist_ok=True)
        return self.write(f"{file_prefix}-{max(numbers, default=0) + 1}")

    def read(self, save_path, options=None) -> Restored:
        values, _ = gg.checkpoint.load(save_path)
        variables, optimizers = self._found()
        for name in variables.keys() & values.keys():
            variables[name].assign(values[name])
        own = set(variables)
        for path, optimizer in optimizers.items():
            names = {n: n.removeprefix(f"{path}/") for n in values if n.startswith(f"{path}/")}
            if names:
                state = {name: values[n] for n, name in names.items()}
                optimizer.load_state_dict(state, variables)
            own |= names.keys() or {path}
        return Restored(sorted(own - values.keys()), sorted(values.keys() - own))

    def restore(self, save_path, options=None) -> Restored:
        """`read`; nothing if the path is None."""
        return Restored([], []) if save_path is None else self.read(save_path)


def _numbered(prefix: Path) -> list[tuple[int, Path]]:
    pattern = re.compile(re.escape(prefix.name) + r"-(\d+)")
    folder = prefix.parent
    names = os.listdir(folder) if folder.is_dir() else []
    matches = ((pattern.fullmatch(name), folder / name) for name in names)
    return sorted((int(match[1]), path) for match, path in matches if match)


class CheckpointManager:
    """The last `max_to_keep` Checkpoints in a folder."""

    def __init__(
        self, checkpoint, directory, max_to_keep, *others, checkpoint_name="ckpt", **options
    ) -> None:
        self._checkpoint, self._keep = checkpoint, max_to_keep
        self._prefix = Path(directory) / checkpoint_name

    def save(self, checkpoint_number=None, *others, **options) -> str:
        if checkpoint_number is None:
            path = self._checkpoint.save(self._prefix)
        else:
            self._prefix.parent.mkdir(parents=True, exist_ok=True)
            path = self._checkpoint.write(f"{self._prefix}-{int(checkpoint_number)}")
        for old in self.checkpoints[: -self._keep] if self._keep else []:
            os.remove(old)
        return path

    checkpoints = property(lambda self: [str(path) for _, path in _numbered(self._prefix)])
    latest_checkpoint = property(lambda self: next(reversed(self.checkpoints), None))


def latest_checkpoint(checkpoint_dir, latest_filename=None) -> str | None:
    """The path in a folder with the highest number; None if there is none."""
    folder = Path(checkpoint_dir)
    names = os.listdir(folder) if folder.is_dir() else []
    numbered = [(int(n), name) for name in names if (n := name.rpartition("-")[2]).isdigit()]
    return str(folder / max(numbered)[1]) if numbered else None


class CheckpointReader:
    """The values in a file, or in the latest of a folder, by names."""

    def __init__(self, path) -> None:
        self._values, _ = gg.checkpoint.load(latest_checkpoint(path) or path)

    def get_tensor(self, tensor_str) -> Any:
        return np.asarray(self._values[tensor_str])

    def has_tensor(self, tensor_str) -> bool:
        return tensor_str in self._values

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        return {name: list(x.shape) for name, x in self._values.items()}

    def get_variable_to_dtype_map(self) -> dict[str, Any]:
        return {name: as_dtype(x.dtype) for name, x in self._values.items()}


load_checkpoint = CheckpointReader


def list_variables(ckpt_dir_or_file) -> list[tuple[str, list[int]]]:
    return list(CheckpointReader(ckpt_dir_or_file).get_variable_to_shape_map().items())
