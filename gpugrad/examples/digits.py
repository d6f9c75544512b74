"""Train a small network to read handwritten digits, in seconds.

The data are scikit-learn's 1,797 digits of 8 x 8 pixels. 360 of them, about 36 of each digit, are
held out for the test. The network has two hidden layers and is trained with AdamW. As
augmentation, some images are shifted by a pixel.

Run ``python -m gpugrad.examples.digits --help`` for the options. All random numbers depend only on
(seed, epoch), so a run that was stopped and resumed ends exactly like an uninterrupted one.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad import checkpoint, nn, optim
from gpugrad.errors import CheckpointError, GpugradError

__all__ = ["main"]

Array = np.ndarray[Any, Any]

NAME = "gpugrad.examples.digits"
HELD_OUT = 360
MOVES = np.array([(0, 0)] * 6 + [(0, 1), (0, -1), (1, 0), (-1, 0)])  # down, right
DECAY = 0.95  # factor of the learning rate per epoch


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


# ---- data --------------------------------------------------------------------------------


@dataclass
class Data:
    """Images of shape (n, 8, 8) with values from 0 to 1, their labels and their indices."""

    images: Array
    labels: Array
    indices: Array


def load_data() -> tuple[Data, Data]:
    """The training and the test digits; the split does not depend on the seed."""
    datasets = import_optional("sklearn.datasets", "scikit-learn")
    selection = import_optional("sklearn.model_selection", "scikit-learn")
    digits = datasets.load_digits()
    images = (digits.images / 16).astype(np.float32)
    train, test = selection.train_test_split(
        np.arange(len(images)), test_size=HELD_OUT, stratify=digits.target, random_state=0
    )
    return tuple(Data(images[i], digits.target[i], i) for i in (train, test))  # type: ignore[return-value]


def batches(data: Data, size: int, seed: int, epoch: int) -> Iterator[tuple[Array, Array]]:
    """The images of an epoch in random order, some shifted by a pixel.

    More shifts reduce the accuracy: with 8 x 8 pixels, digits touch the edge and lose a part.
    """
    rng = np.random.default_rng((seed, epoch))
    order = rng.permutation(len(data.images))
    padded = np.pad(data.images, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (8, 8), axis=(1, 2))
    down, right = MOVES[rng.integers(0, len(MOVES), len(order))].T
    shifted = windows[order, 1 - down, 1 - right]
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        yield shifted[start : start + size], data.labels[chosen]


# ---- model and training ------------------------------------------------------------------


def make_model(seed: int) -> nn.Module:
    """Logits for ten digits from images of shape (n, 8, 8)."""
    generator = gg.random.Generator(seed)
    return nn.Sequential(
        nn.Flatten(),
        nn.Dense(64, 256, gg.relu, generator=generator),
        nn.Dense(256, 128, gg.relu, generator=generator),
        nn.Dense(128, 10, generator=generator),
    )


@dataclass
class History:
    """Loss and accuracy of each finished epoch."""

    train_loss: list[float] = field(default_factory=list)
    test_loss: list[float] = field(default_factory=list)
    train_accuracy: list[float] = field(default_factory=list)
    test_accuracy: list[float] = field(default_factory=list)

    @property
    def epochs(self) -> int:
        """The number of finished epochs."""
        return len(self.train_loss)


def train_epoch(
    model: nn.Module, optimizer: optim.Optimizer, steps: Iterator[tuple[Array, Array]]
) -> tuple[float, float]:
    """Take a step for each batch; return the mean loss and the accuracy during training."""
    loss_sum, correct, seen = 0.0, 0, 0
    for images, labels in steps:
        x, y = gg.constant(images), gg.constant(labels)
        with gg.GradientTape() as tape:
            logits = model(x)
            loss = gg.mean(gg.sparse_softmax_cross_entropy(logits, y))
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        loss_sum += float(loss) * len(labels)
        correct += int((logits.numpy().argmax(axis=1) == labels).sum())
        seen += len(labels)
    return loss_sum / seen, correct / seen


def predict(model: nn.Module, data: Data) -> tuple[float, Array]:
    """The mean loss, and the probability of each digit for each image."""
    logits = model(gg.constant(data.images))
    losses = gg.sparse_softmax_cross_entropy(logits, gg.constant(data.labels))
    return float(gg.mean(losses)), gg.softmax(logits).numpy()


def train(
    args: argparse.Namespace,
    model: nn.Module,
    optimizer: optim.Optimizer,
    history: History,
    data: tuple[Data, Data],
    path: Path,
) -> None:
    """Train the remaining epochs with a progress bar, and save after each."""
    tqdm = import_optional("tqdm", "tqdm").tqdm
    train_data, test_data = data
    bar = tqdm(
        range(history.epochs, args.epochs),
        initial=history.epochs,
        total=args.epochs,
        desc="training",
        unit="epoch",
        disable=args.quiet,
    )
    for epoch in bar:
        optimizer.learning_rate = args.learning_rate * DECAY**epoch
        loss, accuracy = train_epoch(
            model, optimizer, batches(train_data, args.batch_size, args.seed, epoch)
        )
        test_loss, probabilities = predict(model, test_data)
        history.train_loss.append(loss)
        history.train_accuracy.append(accuracy)
        history.test_loss.append(test_loss)
        history.test_accuracy.append(float((probabilities.argmax(1) == test_data.labels).mean()))
        bar.set_postfix_str(f"loss {loss:.4f}, test accuracy {history.test_accuracy[-1]:.2%}")
        save(args, model, optimizer, history, path)


# ---- checkpoints -------------------------------------------------------------------------

_MUST_AGREE = ("batch_size", "learning_rate", "seed")


def save(
    args: argparse.Namespace,
    model: nn.Module,
    optimizer: optim.Optimizer,
    history: History,
    path: Path,
) -> None:
    """Write everything that is needed to resume."""
    settings = {name: getattr(args, name) for name in _MUST_AGREE}
    metadata = {
        "example": NAME,
        "settings": json.dumps(settings),
        "history": json.dumps(vars(history)),
    }
    checkpoint.save(path, model, metadata, optimizer=optimizer)


def resume(
    args: argparse.Namespace, model: nn.Module, optimizer: optim.Optimizer, path: Path
) -> History:
    """Restore model and optimizer; return the history so far.

    Raises:
        CheckpointError: the file is missing, damaged, of another model, or of other settings.
    """
    _, metadata = checkpoint.load(path)
    try:
        if metadata.get("example") != NAME:
            raise CheckpointError(f"{path} was not written by {NAME}.")
        settings = json.loads(metadata["settings"])
        history = History(**json.loads(metadata["history"]))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{path} lacks the settings of its run: {error}.") from error
    differing = [n for n in _MUST_AGREE if settings.get(n) != getattr(args, n)]
    if differing:
        options = " ".join(f"--{n.replace('_', '-')} {settings.get(n)}" for n in differing)
        raise CheckpointError(f"{path} is of a run with other settings; resume with: {options}")
    checkpoint.restore(path, model, optimizer)
    return history


# ---- report ------------------------------------------------------------------------------

_SHADES = " .:-=+*#%@"


def picture(image: Array) -> list[str]:
    """An image as lines of text, two characters a pixel."""
    levels = np.clip((image * len(_SHADES)).astype(int), 0, len(_SHADES) - 1)
    return ["".join(_SHADES[v] * 2 for v in row) for row in levels]


def mistakes(data: Data, probabilities: Array) -> str:
    """A table of the misread digits, each with its picture."""
    predicted = probabilities.argmax(axis=1)
    wrong = np.flatnonzero(predicted != data.labels)
    if not len(wrong):
        return "Every test digit is read rightly."
    lines = [
        f"{len(wrong)} of {len(predicted)} test digits are read wrongly:",
        "",
        f"{'index':>5}  {'true':>4}  {'predicted':>9}  {'probability':>11}",
    ]
    for i in wrong:
        row_text = f"{data.indices[i]:>5}  {data.labels[i]:>4}  {predicted[i]:>9}"
        lines.append(f"{row_text}  {probabilities[i].max():>11.1%}")
    for start in range(0, len(wrong), 4):
        row = wrong[start : start + 4]
        titles = (f"{data.indices[i]}: {data.labels[i]}, not {predicted[i]}" for i in row)
        lines += ["", "   ".join(f"{t:<16}" for t in titles).rstrip()]
        pictures = [picture(data.images[i]) for i in row]
        lines += ["   ".join(parts).rstrip() for parts in zip(*pictures, strict=True)]
    return "\n".join(lines)


def plot(history: History, path: Path) -> None:
    """Draw loss and accuracy over the epochs into a PNG file."""
    matplotlib = import_optional("matplotlib", "matplotlib")
    matplotlib.use("Agg")
    plt = import_optional("matplotlib.pyplot", "matplotlib")
    epochs = np.arange(1, history.epochs + 1)
    blue, orange = "#1f5fa8", "#d9641e"
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    marker = "o" if history.epochs < 15 else None
    for axes, what, train_values, test_values in (
        (left, "loss", history.train_loss, history.test_loss),
        (right, "accuracy", history.train_accuracy, history.test_accuracy),
    ):
        style = {"linewidth": 1.8, "marker": marker, "markersize": 4}
        axes.plot(epochs, train_values, color=blue, label="training", **style)
        axes.plot(epochs, test_values, color=orange, label="test", **style)
        axes.set_title(what.capitalize(), loc="left", fontweight="bold")
        axes.set_xlabel("epoch")
        axes.set_xlim(1 if history.epochs > 1 else 0, max(history.epochs, 2))
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    left.set_yscale("log")
    left.yaxis.set_major_formatter("{x:g}")
    left.set_ylabel("cross entropy (log scale)")
    left.legend(frameon=False)
    right.set_ylim(top=1.0)
    right.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    last = history.test_accuracy[-1]
    right.legend(frameon=False, loc="lower right", title=f"test at the end: {last:.2%}")
    figure.suptitle("Handwritten digits: 1,437 to train on, 360 to test")
    figure.savefig(path, dpi=150)
    plt.close(figure)


# ---- command line ------------------------------------------------------------------------


def _positive(kind: type) -> Any:
    def parse(text: str) -> Any:
        value = kind(text)
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"must be above 0, got {text}")
        return value

    parse.__name__ = kind.__name__
    return parse


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be 0 or above, got {text}")
    return value


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {NAME}",
        description="Train a small network on scikit-learn's handwritten digits.",
    )

    def option(name: str, kind: Any, metavar: str, text: str, **more: Any) -> None:
        parser.add_argument(name, type=kind, metavar=metavar, help=text, **more)

    default = " (%(default)s)"
    option(
        "--epochs",
        _positive(int),
        "N",
        f"passes over the training digits, including those before --resume{default}",
        default=60,
    )
    option("--batch-size", _positive(int), "N", f"digits per step{default}", default=32)
    option(
        "--learning-rate",
        _positive(float),
        "X",
        f"initial learning rate; it falls by 5 percent per epoch{default}",
        default=0.003,
    )
    option("--seed", _seed, "N", f"random seed of everything but the split{default}", default=0)
    option("--device", str, "NAME", "cpu, cuda or cuda:1 (default: a GPU if there is one)")
    option(
        "--output",
        Path,
        "DIR",
        f"folder for digits.safetensors and digits.png{default}",
        default=Path("digits-run"),
    )
    option(
        "--resume",
        Path,
        "PATH",
        "resume from this checkpoint (without PATH: the one in --output)",
        nargs="?",
        const=Path(),
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser.parse_args(argv)


def run(args: argparse.Namespace) -> None:
    """Train or resume, and report."""
    for module, package in (("tqdm", "tqdm"), ("matplotlib", "matplotlib")):
        import_optional(module, package)  # fail before the training, not after it
    data = load_data()
    path = args.output / "digits.safetensors"
    model = make_model(args.seed)
    optimizer = optim.AdamW(args.learning_rate, weight_decay=0.05)
    history = History()
    if args.resume is not None:
        history = resume(args, model, optimizer, path if args.resume == Path() else args.resume)
        print(f"Going on after epoch {history.epochs}.")
    try:
        args.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--output {args.output}: {error.strerror}") from error
    train(args, model, optimizer, history, data, path)
    test_loss, probabilities = predict(model, data[1])
    accuracy = float((probabilities.argmax(axis=1) == data[1].labels).mean())
    plot(history, args.output / "digits.png")
    print(mistakes(data[1], probabilities))
    print()
    print(f"Test accuracy {accuracy:.2%}, loss {test_loss:.4f}, after {history.epochs} epochs.")
    print(f"Wrote {path} and {args.output / 'digits.png'}.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example; return the exit code: 0, 2 for an error that the user can fix, or 130."""
    args = parse(argv)
    try:
        with gg.device(args.device):
            run(args)
    except (UsageError, GpugradError) as error:
        print(f"digits: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "\nStopped. The last finished epoch is saved; continue with --resume.", file=sys.stderr
        )
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
