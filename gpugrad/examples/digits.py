"""Train a network to read handwritten digits, in seconds.

The data are scikit-learn's 1,797 digits of 8 x 8 pixels. 360 of them, about 36 of each digit, are
held out for the test. As augmentation, some images are shifted by a pixel. The default network has
two hidden layers and reads 99.2 % of the test digits after 3 seconds. With --model cnn --epochs 30,
three convolutions read 99.7 % after 25 seconds. (Measured on one core of a shared machine.)
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad import nn, optim, train
from gpugrad.examples import common

Array = np.ndarray[Any, Any]

HELD_OUT = 360
MOVES = np.array([(0, 0)] * 6 + [(0, 1), (0, -1), (1, 0), (-1, 0)])  # down, right
DECAY = 0.95  # factor of the learning rate per epoch


@dataclass
class Data:
    """Images of shape (n, 8, 8) with values from 0 to 1, their labels and their indices."""

    images: Array
    labels: Array
    indices: Array


def load_data() -> tuple[Data, Data]:
    """The training and the test digits; the split does not depend on the seed."""
    datasets = common.import_optional("sklearn.datasets", "scikit-learn")
    selection = common.import_optional("sklearn.model_selection", "scikit-learn")
    digits = datasets.load_digits()
    images = (digits.images / 16).astype(np.float32)
    parts = selection.train_test_split(
        np.arange(len(images)), test_size=HELD_OUT, stratify=digits.target, random_state=0
    )
    training, test = (Data(images[i], digits.target[i], i) for i in parts)
    return training, test


def shift(batch: tuple[Array, Array], rng: np.random.Generator) -> tuple[Array, Array]:
    """Shift some images by a pixel.

    More shifts reduce the accuracy: with 8 x 8 pixels, digits touch the edge and lose a part.
    """
    images, labels = batch
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (8, 8), axis=(1, 2))
    down, right = MOVES[rng.integers(len(MOVES), size=len(images))].T
    return windows[np.arange(len(images)), 1 - down, 1 - right], labels


def make_model(kind: str, seed: int) -> nn.Module:
    """Logits for ten digits from images of shape (n, 8, 8)."""
    g = gg.random.Generator(seed)
    if kind == "mlp":
        return nn.Sequential(
            nn.Flatten(),
            nn.Dense(64, 256, gg.relu, generator=g),
            nn.Dense(256, 128, gg.relu, generator=g),
            nn.Dense(128, 10, generator=g),
        )
    return nn.Sequential(
        lambda images: images[:, None],
        nn.Conv2d(1, 32, 3, padding=1, generator=g),
        nn.BatchNorm(32, axis=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1, generator=g),
        nn.BatchNorm(64, axis=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1, generator=g),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Dense(64 * 4 * 4, 10, generator=g),
    )


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


def plot(history: list[dict[str, float]], args: argparse.Namespace) -> None:
    """Draw loss and accuracy over the epochs."""
    figure = common.new_figure(10, 4)
    epochs = np.arange(1, len(history) + 1)
    style = {"linewidth": 1.8, "marker": "o" if len(epochs) < 15 else None, "markersize": 4}
    left, right = figure.subplots(1, 2)
    for axes, name in ((left, "loss"), (right, "accuracy")):
        for key, color, label in (
            (name, common.BLUE, "training"),
            (f"val_{name}", common.ORANGE, "test"),
        ):
            axes.plot(epochs, [logs[key] for logs in history], color=color, label=label, **style)
        common.tidy(axes, name.capitalize(), "epoch")
        axes.set_xlim(1 if len(epochs) > 1 else 0, max(len(epochs), 2))
        axes.xaxis.get_major_locator().set_params(integer=True)
    left.set_yscale("log")
    left.yaxis.set_major_formatter("{x:g}")
    left.set_ylabel("cross entropy (log scale)")
    left.legend(frameon=False)
    right.set_ylim(top=1.0)
    right.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    last = history[-1]["val_accuracy"]
    right.legend(frameon=False, loc="lower right", title=f"test at the end: {last:.2%}")
    figure.suptitle("Handwritten digits: 1,437 to train on, 360 to test")
    common.save_figure(figure, args, "digits")


def loss(logits: Any, labels: Any) -> Any:
    """The mean cross entropy."""
    return gg.mean(gg.sparse_softmax_cross_entropy(logits, labels))


def run(args: argparse.Namespace) -> None:
    """Train or resume, and report."""
    training, test = load_data()
    model = make_model(args.model, args.seed)
    loader = gg.data.DataLoader(
        gg.data.Arrays(training.images, training.labels),
        args.batch_size,
        shuffle=True,
        seed=args.seed,
        batch_map=shift,
    )
    rate = optim.schedules.step(args.learning_rate, every=len(loader), factor=DECAY)
    optimizer = optim.AdamW(rate, weight_decay=0.05)
    history = common.fit(
        args,
        (model, loss),
        loader,
        free=["epochs"],
        optimizer=optimizer,
        metrics=[train.Accuracy()],
        validation=[(test.images, test.labels)],
    ).history
    probabilities = gg.softmax(model(gg.constant(test.images))).numpy()
    accuracy = float((probabilities.argmax(axis=1) == test.labels).mean())
    print(mistakes(test, probabilities))
    print()
    last = history[-1]["val_loss"]
    print(f"Test accuracy {accuracy:.2%}, loss {last:.4f}, after {len(history)} epochs.")
    plot(history, args)


main = common.command(
    "digits",
    __doc__,
    run,
    epochs=60,
    model=("mlp", "the network (%(default)s)", ("mlp", "cnn")),
    batch_size=(32, "digits per step"),
    learning_rate=(0.003, "initial learning rate; times 0.95 after each epoch"),
)


if __name__ == "__main__":
    sys.exit(main())
