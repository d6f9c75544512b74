"""Common parts of the examples: options, exit codes, runs that resume, and pictures."""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import gpugrad as gg
from gpugrad import train
from gpugrad.errors import GpugradError

BLUE, ORANGE = "#1f5fa8", "#d9641e"


class UsageError(Exception):
    """An error that the user can fix, reported in one line without a traceback."""


def import_optional(module: str, package: str) -> Any:
    """Import a module of an optional package, or raise an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"this example needs {package}, which is not installed ({error}).\n"
            "Install the examples' packages: pip install 'gpugrad[examples]'"
        ) from error


# ---- command line ------------------------------------------------------------------------


def positive(text: str) -> float:
    """A number above 0, of an option."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be above 0, got {text}")
    return value


def count(text: str) -> int:
    """A whole number above 0, of an option."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be above 0, got {text}")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be 0 or above, got {text}")
    return value


def _parser(name: str, doc: str | None, epochs: int) -> argparse.ArgumentParser:
    """The options that all examples have."""
    parser = argparse.ArgumentParser(
        prog=f"python -m gpugrad.examples.{name}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--epochs",
        type=count,
        metavar="N",
        default=epochs,
        help="passes over the data, including those before --resume (%(default)s)",
    )
    parser.add_argument(
        "--seed", type=_seed, metavar="N", default=0, help="of all random numbers (%(default)s)"
    )
    parser.add_argument(
        "--device", metavar="NAME", help="cpu, cuda or cuda:1 (default: a GPU if there is one)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        default=Path(f"{name}-run"),
        help=f"folder of {name}.png, settings.json and the checkpoints (%(default)s)",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the run in --output, which is overwritten otherwise",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser


def command(
    name: str,
    doc: str | None,
    run: Callable[[argparse.Namespace], None],
    *,
    epochs: int,
    **options: tuple[Any, ...],
) -> Callable[..., int]:
    """The ``main`` of an example: it returns 0, 2 for an error that the user can fix, or 130.

    Its argument is the command line; that of the process if None.

    Args:
        name: the example.
        doc: its docstring, which ``--help`` shows.
        run: what it does with its options.
        epochs: the default number of epochs.
        options: its own options: the default, which is None for all, the help, and for a text
            perhaps the choices. A number must be above 0, and whole if the default is.
    """

    def main(argv: Sequence[str] | None = None) -> int:
        parser = _parser(name, doc, epochs)
        for option, (default, text, *choices) in options.items():
            how: dict[str, Any] = {"help": text, "choices": choices[0] if choices else None}
            if not isinstance(default, str):
                kind = positive if isinstance(default, float) else count
                shown = "all" if default is None else default
                how = {"help": f"{text} ({shown})", "type": kind, "metavar": "N"}
            parser.add_argument(f"--{option.replace('_', '-')}", default=default, **how)
        args = parser.parse_args(argv)
        try:
            for package in ("tqdm", "matplotlib"):
                import_optional(package, package)  # fail before the training, not after it
            with gg.device(args.device):
                gg.set_seed(args.seed)
                run(args)
        except (UsageError, GpugradError, OSError) as error:  # such as a full disk
            print(f"{name}: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("\nStopped. Continue with --resume.", file=sys.stderr)
            return 130
        return 0

    return main


# ---- runs --------------------------------------------------------------------------------

_FREE = ("device", "output", "quiet", "resume")
"""The options that may differ when a run is resumed."""


class _Announce(train.Callback):
    """Says where a run continues."""

    on_every_rank = False

    def begin(self, run: train.Run) -> None:
        if run.step:
            print(f"Going on after epoch {run.epoch}, at step {run.step}.")


def fit(
    args: argparse.Namespace,
    step: Any,
    data: Iterable[Any],
    *,
    parts: dict[str, Any] | None = None,
    callbacks: Sequence[train.Callback] = (),
    every_steps: int | None = None,
    free: Sequence[str] = (),
    whole_bar: bool = True,
    **options: Any,
) -> train.Run:
    """Train with checkpoints in --output; with --resume, continue the run that is there.

    Args:
        args: the options; they are written to settings.json, and a resumed run must have the same.
        step, data, callbacks, **options: as for `gg.train.fit`.
        parts, every_steps: as for `gg.train.Checkpoints`; by default the model, the optimizer and
            the loader are parts.
        free: more options that may differ when the run is resumed.
        whole_bar: whether one progress bar shows the whole run, or one each epoch.

    Raises:
        UsageError: there is no run to resume, it has other options, or --output is not writable.
        KeyboardInterrupt: Ctrl-C ended the run, after a checkpoint.
    """
    if parts is None:
        parts = {"model": step[0], "optimizer": options["optimizer"], "loader": data}
    checkpoints = train.Checkpoints(args.output / "checkpoints", every_steps=every_steps, **parts)
    settings = {k: v for k, v in vars(args).items() if k not in (*_FREE, *free)}
    path = args.output / "settings.json"
    if args.resume:
        _check_settings(path, settings)
    elif gg.distributed.rank() == 0:
        _write_settings(path, settings)
        for old in checkpoints.folder.glob("*.safetensors"):
            old.unlink()
    gg.distributed.barrier()
    listeners: list[train.Callback] = [*callbacks, checkpoints, _Announce()]
    if not args.quiet:
        listeners.append(train.Progress(whole=whole_bar))
    run = train.fit(step, data, args.epochs, callbacks=listeners, progress=False, **options)
    if run.interrupted:
        raise KeyboardInterrupt
    return run


def _check_settings(path: Path, settings: dict[str, Any]) -> None:
    try:
        before = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"--resume: there is no run in {path.parent} ({error}).") from error
    differing = [k for k in settings if before.get(k) != settings[k]]
    if differing:
        right = " ".join(f"--{k.replace('_', '-')} {before.get(k)}" for k in differing)
        raise UsageError(f"the run in {path.parent} has other settings; resume it with: {right}")


def _write_settings(path: Path, settings: dict[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(settings, indent=1) + "\n")
        os.replace(new, path)  # a run that is killed here leaves the old file or the new one
    except OSError as error:
        raise UsageError(f"--output {path.parent}: {error.strerror}") from error


# ---- pictures ----------------------------------------------------------------------------


def new_figure(width: float, height: float) -> Any:
    """An empty figure of this size in inches."""
    figure = import_optional("matplotlib.figure", "matplotlib").Figure
    return figure(figsize=(width, height), layout="constrained")


def tidy(axes: Any, title: str, xlabel: str = "", ylabel: str = "") -> None:
    """Title, labels and a light grid."""
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def photograph(side: int) -> Any:
    """A temple's roof in grey: a square of scikit-learn's sample image, with values in [0, 1]."""
    image = import_optional("sklearn.datasets", "scikit-learn").load_sample_image("china.jpg")
    if side > 300:
        raise UsageError(f"--side {side}: the photograph has a square of 300 pixels.")
    return image[40 : 40 + side, 160 : 160 + side].mean(axis=2) / 255


def show(axes: Any, image: Any, title: str, **how: Any) -> None:
    """Draw an image in grey without ticks."""
    axes.imshow(image, **({"cmap": "gray", "vmin": 0, "vmax": 1} | how))
    axes.set_title(title, loc="left", fontweight="bold")
    axes.axis("off")


def save_figure(figure: Any, args: argparse.Namespace, name: str) -> None:
    """Write --output/name.png, and say so."""
    if gg.distributed.rank():  # the first of several processes does
        return
    path = args.output / f"{name}.png"
    figure.savefig(path, dpi=150)
    print(f"Wrote {path} and {args.output / 'checkpoints'}.")
