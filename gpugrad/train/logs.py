"""Logs of a run in files: JSON lines, CSV and TensorBoard.

A file that cannot be written while a run goes on, as on a full disk, is a warning.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import io
import json
import math
import os
import time
from typing import Any

from gpugrad.core.arguments import PATH
from gpugrad.errors import ArgumentError
from gpugrad.train.callbacks import Callback, going_on


class _Lines(Callback):
    """A file to which each epoch appends a line."""

    on_every_rank = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = PATH(type(self).__name__, "path", path)

    def begin(self, run: Any) -> None:
        """Create the file and its folder."""
        try:  # a file that is there stays, but must be writable
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.open("a").close()
        except OSError as error:
            name = type(self).__name__
            raise ArgumentError(
                f"{name}: {self.path} cannot be written: {error.strerror}."
            ) from error

    def _append(self, text: str) -> None:
        """Append a line, or nothing if the disk is full: the next line must begin at its own."""
        size = self.path.stat().st_size if self.path.exists() else 0
        try:
            with self.path.open("a", newline="") as file:
                file.write(text)
        except OSError:
            with contextlib.suppress(OSError):
                os.truncate(self.path, size)
            raise


class JSONLog(_Lines):
    """Append a line of JSON for each epoch: its number, the steps taken and all numbers.

    A number that is NaN or infinite, which JSON cannot hold, is null.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = gg.train.JSONLog(f"{folder}/log.jsonl")
    ...     _ = gg.train.fit(lambda x: gg.sum(x), [np.ones(2)], callbacks=[log], progress=False)
    ...     print(log.path.read_text()[:36])
    {"epoch": 1, "step": 1, "loss": 2.0,
    """

    def end_of_epoch(self, run: Any) -> None:
        """Append a line."""
        numbers = {name: x if math.isfinite(x) else None for name, x in run.logs.items()}
        line = json.dumps({"epoch": run.epoch, "step": run.step, **numbers})
        with going_on("JSONLog", self.path):
            self._append(line + "\n")


class CSVLog(_Lines):
    """Append a row for each epoch; the columns are those of the file's first line.

    Raises:
        ArgumentError: the file has other columns.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = gg.train.CSVLog(f"{folder}/log.csv")
    ...     _ = gg.train.fit(lambda x: gg.sum(x), [np.ones(2)], callbacks=[log], progress=False)
    ...     print(log.path.read_text()[:15])
    epoch,step,loss
    """

    def end_of_epoch(self, run: Any) -> None:
        """Append a row."""
        row = {"epoch": run.epoch, "step": run.step, **run.logs}
        with going_on("CSVLog", self.path):
            new = not self.path.exists() or not self.path.stat().st_size
            if not new:
                self._check_columns(list(row))
            text = io.StringIO(newline="")
            writer = csv.DictWriter(text, list(row))
            if new:
                writer.writeheader()
            writer.writerow(row)
            self._append(text.getvalue())

    def _check_columns(self, ours: list[str]) -> None:
        with self.path.open(newline="") as file:
            columns = next(csv.reader(file))
        if columns != ours:
            raise ArgumentError(
                f"CSVLog: {self.path} has the columns {columns}, this run {ours}. Write to "
                "another file."
            )


class TensorBoard(Callback):
    """Event files for TensorBoard, by its own writer: needs tensorboard.

    Args:
        folder: the run's folder, for ``tensorboard --logdir``.

    >>> log = gg.train.TensorBoard("runs/first")  # doctest: +SKIP
    """

    on_every_rank = False

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = PATH("TensorBoard", "folder", folder)
        try:
            self._writers = importlib.import_module("tensorboard.summary.writer.event_file_writer")
            protos = "tensorboard.compat.proto"
            self._event = importlib.import_module(f"{protos}.event_pb2").Event
            self._summary = importlib.import_module(f"{protos}.summary_pb2").Summary
        except ImportError as error:
            raise ArgumentError(
                "TensorBoard: needs tensorboard: pip install tensorboard."
            ) from error
        self._writer: Any = None

    def begin(self, run: Any) -> None:
        """Open an event file."""
        self._writer = self._writers.EventFileWriter(str(self.folder))

    def end_of_epoch(self, run: Any) -> None:
        """Write all numbers at the current step."""
        values = [
            self._summary.Value(tag=name, simple_value=value) for name, value in run.logs.items()
        ]
        event = self._event(
            wall_time=time.time(), step=run.step, summary=self._summary(value=values)
        )
        with going_on("TensorBoard", self.folder):
            self._writer.add_event(event)

    def end(self, run: Any) -> None:
        """Close the event file."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            with going_on("TensorBoard", self.folder):
                writer.close()
