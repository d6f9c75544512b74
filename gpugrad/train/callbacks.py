"""Callbacks of `fit`: the progress bar, early stopping and plots."""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import sys
from typing import Any

from gpugrad.core.arguments import check_choice, check_flag, check_number, check_path, check_whole
from gpugrad.errors import ArgumentError

__all__ = ["Callback", "EarlyStopping", "Plot", "Progress"]


class Callback:
    """What `fit` calls in a run. A subclass implements some of the methods; each gets the Run.

    >>> class Print(gg.train.Callback):
    ...     def end_of_epoch(self, run):
    ...         print(run.epoch, run.step)
    >>> step = lambda x: gg.sum(x)
    >>> _ = gg.train.fit(step, [np.ones(2)] * 3, epochs=2, callbacks=[Print()], progress=False)
    1 3
    2 6
    """

    def begin(self, run: Any) -> None:
        """Before the first epoch."""

    def begin_epoch(self, run: Any) -> None:
        """Before the first step of an epoch."""

    def end_of_step(self, run: Any) -> None:
        """After a step."""

    def end_of_epoch(self, run: Any) -> None:
        """After an epoch and its validation, with ``run.logs``.

        Numbers that a callback adds to them stand in ``run.history``, too, and later callbacks see
        them.
        """

    def end(self, run: Any) -> None:
        """After the run, also if an exception or Ctrl-C has ended it."""


class Progress(Callback):
    """A progress bar of each epoch on stderr, by tqdm; without tqdm, a line for each epoch.

    Args:
        whole: whether one bar shows the whole run, for runs of many short epochs.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self.whole = check_flag("Progress", "whole", whole)
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

    Args:
        monitor: the number's name in ``run.logs``.
        patience: epochs without improvement before the run ends.
        mode: ``"min"`` or ``"max"``; by default max for names that contain accuracy, top or f1.
        min_delta: smallest change that is an improvement.
        restore_best: whether the model gets the weights of its best epoch at the end.

    Raises:
        ArgumentError: `mode` is unknown; at the first epoch's end, the logs lack `monitor`, or
            `restore_best` is set and the run has no model.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        patience: int = 5,
        *,
        mode: str | None = None,
        min_delta: float = 0.0,
        restore_best: bool = False,
    ) -> None:
        if not isinstance(monitor, str):
            raise ArgumentError(f"EarlyStopping: monitor must be a name, got {monitor!r:.60}.")
        guess = "max" if any(word in monitor for word in ("acc", "top", "f1")) else "min"
        check_choice("EarlyStopping", "mode", mode, ("min", "max", None))
        self.monitor, self.patience = monitor, check_whole("EarlyStopping", "patience", patience)
        self.min_delta = check_number(
            "EarlyStopping", "min_delta", min_delta, lambda x: 0 <= x < math.inf, "0 or above"
        )
        self._sign = -1.0 if (mode or guess) == "max" else 1.0
        self._restores = check_flag("EarlyStopping", "restore_best", restore_best)
        self._clear()

    def _clear(self) -> None:
        self.best_epoch, self._best, self._weights = 0, math.inf, dict[str, Any]()

    def begin(self, run: Any) -> None:
        """Forget an earlier run."""
        self._clear()
        if self._restores and run.model is None:
            raise ArgumentError(
                "EarlyStopping: restore_best needs a model: fit((model, loss), ...)."
            )

    def end_of_epoch(self, run: Any) -> None:
        """Compare with the best epoch, and stop."""
        if self.monitor not in run.logs:
            raise ArgumentError(
                f"EarlyStopping: there is no {self.monitor!r} among {sorted(run.logs)}."
            )
        value = self._sign * run.logs[self.monitor]
        if value < self._best - self.min_delta:
            self._best, self.best_epoch = value, run.epoch
            if self._restores:
                self._weights = {k: v.numpy().copy() for k, v in run.model.state().items()}
        elif run.epoch - self.best_epoch >= self.patience:
            run.stop()

    def end(self, run: Any) -> None:
        """Restore the weights of the best epoch."""
        if self._weights:
            run.model.load_state(self._weights)


class Plot(Callback):
    """A picture of all numbers by epoch, written anew after each: needs matplotlib.

    Args:
        path: the file; its suffix is the format, such as .png or .svg.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = check_path("Plot", "path", path)
        try:
            self._figure: Any = importlib.import_module("matplotlib.figure").Figure
        except ImportError as error:
            raise ArgumentError("Plot: needs matplotlib: pip install matplotlib.") from error

    def end_of_epoch(self, run: Any) -> None:
        """Draw a number and its ``val_`` partner into one panel."""
        names = [n for n in run.logs if n != "seconds" and not n.startswith("val_")]
        figure = self._figure(figsize=(6.4, 2.6 * len(names)), layout="constrained")
        epochs = range(1, len(run.history) + 1)
        for axes, name in zip(figure.subplots(len(names), squeeze=False)[:, 0], names, strict=True):
            for series, label in ((name, "training"), (f"val_{name}", "validation")):
                values = [logs.get(series, math.nan) for logs in run.history]
                if not all(map(math.isnan, values)):
                    axes.plot(epochs, values, marker="." if len(values) < 30 else "", label=label)
            axes.set_ylabel(name)
            axes.set_xlabel("epoch")
            axes.grid(alpha=0.3)
            axes.legend(frameon=False)
        with contextlib.suppress(FileExistsError):
            self.path.parent.mkdir(parents=True)
        figure.savefig(self.path, dpi=120)
