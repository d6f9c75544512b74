"""Checkpoints of everything that a run needs to continue, in a folder that keeps the last few."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpugrad import checkpoint
from gpugrad.core.arguments import COUNT, PATH, WHOLE, optional, takes
from gpugrad.core.ranks import Shard, cut_part, join_shards, own_part, ranks
from gpugrad.core.variable import Variable
from gpugrad.data.loader import DataLoader, LoaderState
from gpugrad.errors import ArgumentError, CheckpointError, GpugradError
from gpugrad.nn.module import Module
from gpugrad.ops.random.generator import Generator, default_generator
from gpugrad.train.callbacks import Callback
from gpugrad.train.folder_lock import FolderLock
from gpugrad.train.loop import Run, average_statistics
from gpugrad.train.shard_files import KEY, read_shards, remove_unlisted, together, write_shards

_DEFAULT = "default random generator"
_RANKS = "random of ranks"
_RUN = "run"
_PARTS = "parts"


class Checkpoints(Callback):
    """Checkpoints of named parts: one call saves them all, and one restores them.

    The state of the default random generator is saved with them. As a callback of `fit`, it
    continues at the latest checkpoint, if there is one, and saves as the run goes on, also when
    Ctrl-C or SIGTERM ends it. With the run's `DataLoader` among the parts, it continues in the
    middle of an epoch. A run that was killed and resumed has the same bits as an uninterrupted one.

    Args:
        folder: where the files ``STEP.safetensors`` are; created if it does not exist.
        keep: how many of the last files are kept; None keeps all.
        every_epochs: epochs between checkpoints of a run.
        every_steps: steps between more checkpoints of a run, which needs a DataLoader; or None.
        parts: by name, any number of Modules, Variables, optimizers, DataLoaders, random
            Generators, and objects with ``state_dict()`` and ``load_state_dict(state)``.

    Raises:
        ArgumentError: a part is none of these, or is named ``run``.

    If ranks of `gg.distributed` have parts of Variables or of averages, each writes its own to a
    file beside that of rank 0, which comes last and lists them. Such checkpoints load at any number
    of ranks, with or without shards.

    One process at a time saves to a folder: from its first `save` as long as the object lives, and
    in a run of `fit` from the beginning to the end. Others get a CheckpointError that names it.

    >>> import tempfile
    >>> model, optimizer = gg.nn.Dense(2, 1), gg.optim.Adam(0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoints = gg.train.Checkpoints(folder, model=model, optimizer=optimizer)
    ...     path = checkpoints.save(step=7, metadata={"note": "first"})
    ...     checkpoints.restore()
    {'note': 'first'}
    """

    @takes(keep=optional(COUNT), every_epochs=COUNT, every_steps=optional(COUNT))
    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        keep: int | None = 3,
        every_epochs: int = 1,
        every_steps: int | None = None,
        **parts: Any,
    ) -> None:
        self.folder = PATH("Checkpoints", "folder", folder)
        self.keep, self.every_epochs, self.every_steps = keep, every_epochs, every_steps
        if _RUN in parts:
            raise ArgumentError(
                "Checkpoints: no part may be named 'run', as the run's own state is."
            )
        for name, part in parts.items():
            kinds = (Module, Variable, DataLoader, Generator)
            if not isinstance(part, kinds) and not hasattr(part, "load_state_dict"):
                raise ArgumentError(
                    f"Checkpoints: {name} is a {type(part).__name__}, which has no state_dict() "
                    "and load_state_dict(state)."
                )
        self.parts = parts
        self._lock = FolderLock(self.folder)
        self._saved = -1
        self._begun = 0
        self._data_starts: dict[str, LoaderState] = {}

    # ---- by hand

    @takes(step=WHOLE)
    def save(self, step: int, metadata: Mapping[str, Any] | None = None) -> Path:
        """Write all parts, or none on an error, and remove what `keep` leaves out.

        Args:
            step: the number in the file's name; `latest` is the largest.
            metadata: anything that JSON can hold; `restore` returns it.

        Raises:
            ArgumentError: `step` is not a whole number, or JSON cannot hold the metadata.
            CheckpointError: the file cannot be written, or another process saves to the folder;
                older ones are still there.
        """
        arrays, small = self._collect(None)
        return self._write(step, arrays, small, metadata)

    def latest(self) -> Path | None:
        """The file with the largest step, or None."""
        return next(self._files(), None)

    def restore(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any] | None:
        """Load all parts from a file, by default the latest; on an error nothing changes.

        Returns:
            The metadata; None if `path` is None and there is no checkpoint.

        Raises:
            CheckpointError: the file is missing or damaged, or of other parts; the message lists
                the differences. Or `path` is None, and files of the folder
                have names as of checkpoints, but none is one.
        """
        if path is None:
            path = self._last()
            if path is None:
                return None
        return self._restored(PATH("Checkpoints", "path", path), None)

    # ---- in a run

    def begin(self, run: Run) -> None:
        """Continue at the latest checkpoint."""
        loaders = [part for part in self.parts.values() if isinstance(part, DataLoader)]
        if self.every_steps is not None and not loaders:
            raise ArgumentError(
                "Checkpoints: every_steps needs the run's gg.data.DataLoader as a part, to "
                "continue in the middle of an epoch."
            )
        self._own_folder()
        path = self._last()
        if path is not None:
            self._restored(path, run)
        self._saved = run.step if path is not None else -1

    def begin_epoch(self, run: Run) -> None:
        """Note where the epoch begins in the data, which batches are taken from ahead of time."""
        self._begun = run.epoch
        self._data_starts.clear()
        loaders = {k: part for k, part in self.parts.items() if isinstance(part, DataLoader)}
        wrapped = len(loaders) == 1 and not isinstance(run.data, DataLoader)
        for name, loader in loaders.items():
            if loader is run.data or wrapped:
                epoch, batch = loader.upcoming()
                self._data_starts[name] = LoaderState(epoch, batch - run.batch)

    def end_of_step(self, run: Run) -> None:
        """Save every few steps, but not at the end of an epoch, which has its own checkpoint."""
        due = self.every_steps is not None and run.step % self.every_steps == 0
        if due and run.batch != run.steps_per_epoch:
            self._save_run(run)

    def end_of_epoch(self, run: Run) -> None:
        """Save every few epochs, and after the last."""
        if run.epoch % self.every_epochs == 0 or run.epoch == run.epochs:
            self._save_run(run)

    def end(self, run: Run) -> None:
        """Save what a signal has left, unless it broke off a step: that may have changed a part."""
        has_loader = any(isinstance(part, DataLoader) for part in self.parts.values())
        is_new = run.interrupted and run.step != self._saved and not run.in_step
        try:
            if is_new and (has_loader or not run.batch):
                self._save_run(run)
        finally:
            self._lock.release()

    def _save_run(self, run: Run) -> None:
        arrays, small = self._collect(run)
        self._write(run.step, arrays, small | {_RUN: run.state()}, None)
        self._saved = run.step

    # ---- parts

    def _collect(self, run: Run | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays by name, and states that JSON can hold."""
        arrays: dict[str, Any] = {}
        small: dict[str, Any] = {_DEFAULT: default_generator().state}
        if ranks.size > 1:
            small[_RANKS] = ranks.gather(small[_DEFAULT])
        for name, part in self.parts.items():
            if isinstance(part, Module):
                average_statistics(part)
                arrays |= {f"{name}/{k}": own_part(v) for k, v in part.state().items()}
            elif isinstance(part, Variable):
                arrays[name] = own_part(part)
            elif isinstance(part, DataLoader):
                small[name] = list(self._position(name, part, run))
            elif isinstance(part, Generator):
                small[name] = part.state
            else:
                of = (self._variables(),) if _is_optimizer(part) else ()
                own = part.shards(*of) if hasattr(part, "shards") else None
                state = part.state_dict(*of) if own is None else own
                arrays |= {f"{name}/{k}": v for k, v in state.items()}
        return arrays, small

    def _position(self, name: str, loader: DataLoader, run: Run | None) -> LoaderState:
        """The position of a run in its data; the loader itself may be some batches ahead."""
        if run is None or name not in self._data_starts:
            return loader.state()
        epoch, batch = self._data_starts[name]
        ended = run.epoch > self._begun
        return LoaderState(epoch + 1, 0) if ended else LoaderState(epoch, batch + run.batch)

    def _variables(self) -> dict[str, Variable]:
        variables: dict[str, Variable] = {}
        for name, part in self.parts.items():
            if isinstance(part, Module):
                variables |= {f"{name}.{k}": v for k, v in part.state().items()}
            elif isinstance(part, Variable):
                variables[name] = part
        return variables

    def _load(self, arrays: dict[str, Any], small: Mapping[str, Any]) -> None:
        states, random = small.get(_RANKS) or [small[_DEFAULT]], default_generator()
        random.state = states[min(ranks.rank, len(states) - 1)]
        if ranks.rank >= len(states):  # the run was one of fewer ranks
            random.state = random.fold_in(ranks.rank).state
        # optimizers last: one with shards takes the values of the Variables
        for name, part in sorted(self.parts.items(), key=lambda item: _is_optimizer(item[1])):
            own = {
                k.removeprefix(f"{name}/"): v for k, v in arrays.items() if k.startswith(f"{name}/")
            }
            if isinstance(part, Module):
                state = part.state()
                part.load_state({k: cut_part(v, state.get(k)) for k, v in own.items()})
            elif isinstance(part, Variable):
                part.assign(cut_part(arrays[name], part))
            elif isinstance(part, DataLoader):
                part.load_state(small[name])
            elif isinstance(part, Generator):
                part.state = small[name]
            elif _is_optimizer(part):
                part.load_state_dict(own, self._variables())
            else:
                part.load_state_dict(own)

    # ---- files

    def _files(self) -> Iterator[Path]:
        """The files of this class, the latest first; a folder may hold others."""
        return filter(_is_ours, self._candidates())

    def _last(self) -> Path | None:
        """As `latest`, but an error where files of others would pass for an empty folder."""
        path = self.latest()
        if path is None and (other := next(self._candidates(), None)):
            raise CheckpointError(
                f"{other} was not written by gg.train.Checkpoints, and {self.folder} holds no "
                "checkpoint: move the file away to start anew, or choose another folder."
            )
        return path

    def _candidates(self) -> Iterator[Path]:
        """The files that have names as of checkpoints, the latest first."""
        found = self.folder.glob("*.safetensors") if self.folder.is_dir() else ()
        steps = {int(p.stem) for p in found if re.fullmatch("[0-9]{8,}", p.stem) and p.is_file()}
        return filter(Path.exists, map(self._path, sorted(steps, reverse=True)))

    def _path(self, step: int) -> Path:
        return self.folder / f"{step:08d}.safetensors"

    def _own_folder(self) -> None:
        """Create the folder, and keep other processes from saving there."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(f"{self.folder} cannot be created: {error.strerror}.") from error
        if not ranks.rank:  # which writes for all ranks
            self._lock.acquire()

    def _write(
        self, step: int, arrays: Mapping[str, Any], small: Mapping[str, Any], metadata: Any
    ) -> Path:
        text = {_PARTS: json.dumps(sorted(self.parts)), "states": json.dumps(small)}
        try:
            text["metadata"] = json.dumps(metadata)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"Checkpoints: JSON cannot hold the metadata: {error}.") from error
        self._own_folder()
        path = self._path(step)
        shards = {k: a for k, a in arrays.items() if isinstance(a, Shard)}
        text |= write_shards(self.folder, step, shards)
        own = {k: a for k, a in arrays.items() if k not in shards}
        together(lambda: None if ranks.rank else self._write_last(path, own, text))
        return path

    def _write_last(self, path: Path, arrays: Mapping[str, Any], text: dict[str, str]) -> None:
        """Write the file that makes the checkpoint, and remove older ones."""
        checkpoint.save(path, arrays, text)
        files = list(self._files())
        for old in files[self.keep :] if self.keep is not None else ():
            if old != path:
                old.unlink(missing_ok=True)
        if KEY in text:
            remove_unlisted(self.folder, self._files())

    def _restored(self, path: Path, run: Run | None) -> dict[str, Any] | None:
        arrays, text = checkpoint.load(path)
        try:
            names, small = json.loads(text[_PARTS]), json.loads(text["states"])
            metadata: dict[str, Any] | None = json.loads(text["metadata"])
        except (KeyError, ValueError) as error:
            raise CheckpointError(f"{path} was not written by gg.train.Checkpoints.") from error
        if names != sorted(self.parts):
            raise CheckpointError(f"{path} has the parts {names}, expected {sorted(self.parts)}.")
        if run is not None and _RUN not in small:
            raise CheckpointError(
                f"{path} was saved by hand, not in a run of fit: it does not say where to continue."
            )
        values, states = self._collect(None)
        own = {k: v for k, v in values.items() if isinstance(v, Shard)}
        before = {k: v.value() if isinstance(v, Variable) else v for k, v in values.items()}
        before |= join_shards([own])
        if KEY in text:
            arrays |= read_shards(path.parent, text[KEY], own)
        try:
            self._load(arrays, small)
            if run is not None:
                run.load_state(small[_RUN])
        except BaseException as error:
            self._load(before, states)
            if isinstance(error, (GpugradError, KeyError)):
                raise CheckpointError(f"{path} does not fit: {error}") from error
            raise  # Ctrl-C, or an error of a part's own load_state_dict
        return metadata


def _is_ours(path: Path) -> bool:
    """Whether a file is not known to be another's; a damaged one is for `restore` to refuse."""
    try:
        return _PARTS in checkpoint.metadata_of(path)
    except CheckpointError:
        return True


def _is_optimizer(part: Any) -> bool:
    return hasattr(part, "apply_gradients")
