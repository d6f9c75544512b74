"""Callbacks of `fit`: the progress bar, early stopping and plots."""

from __future__ import annotations

import contextlib
import errno
import importlib
import math
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpugrad.core.arguments import FLAG, NOT_NEGATIVE, PATH, TEXT, WHOLE, one_of, takes
from gpugrad.errors import ArgumentError, GpugradWarning


class Callback:
    """Methods that `fit` calls. A subclass implements some of them; each gets the Run.

    >>> class Print(gg.train.Callback):
    ...     def end_of_epoch(self, run):
    ...         print(run.epoch, run.step)
    >>> step = lambda x: gg.sum(x)
    >>> _ = gg.train.fit(step, [np.ones(2)] * 3, epochs=2, callbacks=[Print()], progress=False)
    1 3
    2 6
    """

    on_every_rank = True
    """Whether all ranks of `gg.distributed` call it: those that write files are rank 0's alone."""

    def begin(self, run: Any) -> None:
        """Before the first epoch."""

    def begin_epoch(self, run: Any) -> None:
        """Before the first step of an epoch."""

    def end_of_step(self, run: Any) -> None:
        """After a step."""

    def end_of_epoch(self, run: Any) -> None:
        """After an epoch and its validation, with ``run.logs``.

        Numbers that a callback adds to the logs also appear in ``run.history``, and later callbacks
        see them.
        """

    def end(self, run: Any) -> None:
        """After the run, also if an exception or a signal has ended it."""


@contextlib.contextmanager
def going_on(name: str, path: Path) -> Iterator[None]:
    """Warn if a file cannot be written, as on a full disk: that is no reason to end a run."""
    try:
        yield
    except OSError as error:
        warnings.warn(
            f"{name}: {path} cannot be written: {error.strerror or error}. The run goes on.",
            GpugradWarning,
            stacklevel=4,
        )


class Progress(Callback):
    """A progress bar of each epoch on stderr, by tqdm; without tqdm, a line for each epoch.

    Args:
        whole: whether one bar shows the whole run, for runs of many short epochs.

    >>> bar = gg.train.Progress(whole=True)  # gg.train.fit(..., progress=bar)
    """

    on_every_rank = False

    @takes(whole=FLAG)
    def __init__(self, *, whole: bool = False) -> None:
        self.whole = whole
        try:
            self._tqdm: Any = importlib.import_module("tqdm.auto").tqdm
        except ImportError:
            self._tqdm = None
        self._bar: Any = None

    def begin_epoch(self, run: Any) -> None:
        """Open the bar of an epoch."""
        if self._tqdm is None or self._bar is not None:
            return
        title, total, done = f"epoch {run.epoch + 1}/{run.epochs}", run.steps_per_epoch, run.batch
        if self.whole:
            title, done = "training", run.step
            total = total and total * run.epochs
        self._bar = self._tqdm(total=total, initial=done, desc=title, unit="step")

    def end_of_step(self, run: Any) -> None:
        """Move the bar on."""
        if self._bar is not None:
            self._bar.update()
            if run.logs and not self.whole:
                self._bar.set_postfix_str(_text(run.logs), refresh=False)

    def end_of_epoch(self, run: Any) -> None:
        """Show the epoch's numbers."""
        if self._bar is not None:
            self._bar.set_postfix_str(_text(run.logs))
            if not self.whole:
                self._close()
        else:
            print(f"epoch {run.epoch}/{run.epochs}: {_text(run.logs)}", file=sys.stderr)

    def end(self, run: Any) -> None:
        """Close a bar that is still open."""
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _text(logs: dict[str, float]) -> str:
    return ", ".join(f"{k} {v:.4g}" for k, v in logs.items() if k != "seconds")


class EarlyStopping(Callback):
    """End the run when a number has not improved for some epochs.

    A run that resumes from a checkpoint counts its earlier epochs, too. With `restore_best`, also
    make this callback a part of `Checkpoints`, which then keep the weights of the best epoch.

    Args:
        monitor: the number's name in ``run.logs``.
        patience: epochs without improvement before the run ends.
        mode: ``"min"`` or ``"max"``; by default max for names that contain accuracy, top or f1.
        min_delta: smallest change that is an improvement.
        restore_best: whether the model gets the weights of its best epoch at the end; not after
            Ctrl-C, so that such a run can continue.

    Raises:
        ArgumentError: `mode` is unknown; at the first epoch's end, the logs lack `monitor`, or
            `restore_best` is set and the run has no model, or continues without the best weights.

    Attributes:
        best_epoch: the number of the best epoch, from 1; 0 before the first has ended.

    >>> stop = gg.train.EarlyStopping("loss", patience=2)
    >>> same = lambda x: gg.sum(x)
    >>> gg.train.fit(same, [np.ones(2)], epochs=9, callbacks=[stop], progress=False).epoch
    3
    """

    @takes(monitor=TEXT, patience=WHOLE, mode=one_of("min", "max", None))
    @takes(min_delta=NOT_NEGATIVE, restore_best=FLAG)
    def __init__(
        self,
        monitor: str = "val_loss",
        patience: int = 5,
        *,
        mode: str | None = None,
        min_delta: float = 0.0,
        restore_best: bool = False,
    ) -> None:
        guess = "max" if any(word in monitor for word in ("acc", "top", "f1")) else "min"
        self.monitor, self.patience, self.min_delta = monitor, patience, min_delta
        self._sign = -1.0 if (mode or guess) == "max" else 1.0
        self._restores = restore_best
        self.best_epoch, self._weights_epoch, self._weights = 0, 0, dict[str, Any]()

    def begin(self, run: Any) -> None:
        """Check that there is a model to restore."""
        if self._restores and run.model is None:
            raise ArgumentError(
                "EarlyStopping: restore_best needs a model: fit((model, loss), ...)."
            )

    def begin_epoch(self, run: Any) -> None:
        """Go on from the history of a run that continues."""
        self._find_best(run)
        if self._restores and self._weights_epoch != self.best_epoch:
            if self.best_epoch != run.epoch or run.batch:
                raise ArgumentError(
                    "EarlyStopping: the run continues without the weights of its best epoch, "
                    f"{self.best_epoch}. Save them: Checkpoints(folder, stopping=stopping, ...)."
                )
            self._keep_weights(run)
        self._stop_if_due(run)

    def end_of_epoch(self, run: Any) -> None:
        """Compare with the best epoch, and stop."""
        if self.monitor not in run.logs:
            raise ArgumentError(
                f"EarlyStopping: there is no {self.monitor!r} among {sorted(run.logs)}."
            )
        self._find_best(run)
        if self.best_epoch == run.epoch:
            self._keep_weights(run)
        self._stop_if_due(run)

    def end(self, run: Any) -> None:
        """Restore the weights of the best epoch, unless a signal ended the run."""
        if run.interrupted:
            return  # callbacks that end later may save the weights
        if self._weights:
            run.model.load_state(self._weights)
        self._weights_epoch, self._weights = 0, {}

    def state_dict(self) -> dict[str, Any]:
        """The weights of the best epoch, for `Checkpoints`."""
        return {"epoch": self._weights_epoch, **self._weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load what `state_dict` returned."""
        self._weights = {k: v for k, v in state.items() if k != "epoch"}
        self._weights_epoch = int(state["epoch"])

    def _find_best(self, run: Any) -> None:
        self.best_epoch, best = 0, math.inf
        for epoch, logs in enumerate(run.history, 1):
            value = self._sign * logs.get(self.monitor, math.nan)
            if value < best - self.min_delta:
                self.best_epoch, best = epoch, value

    def _keep_weights(self, run: Any) -> None:
        if self._restores:
            self._weights = {k: v.numpy().copy() for k, v in run.model.state().items()}
            self._weights_epoch = run.epoch

    def _stop_if_due(self, run: Any) -> None:
        if run.epoch - self.best_epoch >= max(self.patience, 1):
            run.stop()


class Plot(Callback):
    """A plot of all numbers by epoch, drawn again after each epoch; needs matplotlib.

    Args:
        path: the file; its suffix is the format, such as .png or .svg.

    Raises:
        ArgumentError: the format is unknown; at the run's begin, the file cannot be written.

    >>> plot = gg.train.Plot("loss.svg")  # gg.train.fit(..., callbacks=[plot])
    """

    on_every_rank = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = PATH("Plot", "path", path)
        try:
            self._figure: Any = importlib.import_module("matplotlib.figure").Figure
        except ImportError as error:
            raise ArgumentError("Plot: needs matplotlib: pip install matplotlib.") from error
        formats = self._figure().canvas.get_supported_filetypes()
        if self.path.suffix and self.path.suffix[1:].lower() not in formats:
            raise ArgumentError(
                f"Plot: {self.path} must end in one of {', '.join(f'.{x}' for x in formats)}."
            )

    def begin(self, run: Any) -> None:
        """Create the folder."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        except OSError as error:
            raise ArgumentError(f"Plot: {self.path} cannot be written: {error.strerror}") from error

    def end_of_epoch(self, run: Any) -> None:
        """Draw a number and its ``val_`` partner into one panel."""
        names = list(dict.fromkeys(n.removeprefix("val_") for n in run.logs if n != "seconds"))
        if not names:
            return
        figure = self._figure(figsize=(6.4, 2.6 * len(names)), layout="constrained")
        epochs = range(1, len(run.history) + 1)
        for axes, name in zip(figure.subplots(len(names), squeeze=False)[:, 0], names, strict=True):
            for series, label in ((name, "training"), (f"val_{name}", "validation")):
                values = [logs.get(series, math.nan) for logs in run.history]
                if not all(map(math.isnan, values)):
                    axes.plot(epochs, values, marker="." if len(values) < 30 else "", label=label)
            axes.set_ylabel(name)
            axes.set_xlabel("epoch")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.grid(alpha=0.3)
            if axes.lines:
                axes.legend(frameon=False)
        with going_on("Plot", self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(self.path, dpi=120)
