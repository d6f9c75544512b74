"""Sharpen a photograph that is blurred and noisy.

The sharp image x is unknown. Blurred by `gaussian_filter`, it must look as the measured one, and
its total variation must be small, which forbids noise and ringing but allows edges: Rudin, Osher
and Fatemi 1992, "Nonlinear total variation based noise removal algorithms". L-BFGS minimises the
sum of both over all pixels, with the gradient through the filter. After 12 epochs, 16 seconds of
one core of a shared machine, the error of 19.7 dB has become 20.7 dB. The picture shows the three
images and their errors.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad import nn, optim
from gpugrad.examples import common

Array = np.ndarray[Any, Any]


class Sharp(nn.Module):
    """The unknown image, and the blur that it is seen through."""

    def __init__(self, start: Array, blur: float) -> None:
        self.image, self.blur = gg.Variable(start), blur

    def forward(self) -> gg.Tensor:
        """The image as the camera sees it."""
        return gg.scipy.ndimage.gaussian_filter(self.image, self.blur)


def total_variation(x: Any) -> gg.Tensor:
    """The sum of the lengths of the image's slopes, smooth where they are 0."""
    down, right = x[1:, :-1] - x[:-1, :-1], x[:-1, 1:] - x[:-1, :-1]
    return gg.sum(gg.sqrt(down**2 + right**2 + 1e-6))


def decibels(image: Array, truth: Array) -> float:
    """The peak signal-to-noise ratio."""
    return float(-10 * np.log10(np.mean((image - truth) ** 2)))


def plot(args: argparse.Namespace, images: dict[str, Array], history: list[Any]) -> None:
    """Draw the images beside each other, and the loss."""
    figure = common.new_figure(15, 4.2)
    *parts, right = figure.subplots(1, len(images) + 1)
    for axes, (title, image) in zip(parts, images.items(), strict=True):
        common.show(axes, image, title)
    losses = [epoch["loss"] for epoch in history]
    right.semilogy(range(1, len(losses) + 1), losses, color=common.BLUE)
    common.tidy(right, "Loss", "epoch")
    common.save_figure(figure, args, "deblur")


def run(args: argparse.Namespace) -> None:
    """Blur a photograph, and sharpen it."""
    truth = common.photograph(args.side)
    rng = np.random.default_rng(args.seed)
    measured = gg.scipy.ndimage.gaussian_filter(truth, args.blur).numpy()
    measured = measured + args.noise * rng.normal(size=truth.shape)
    model, optimizer = (
        Sharp(measured, args.blur),
        optim.LBFGS(max_iterations=5, tolerance_change=0.0),
    )

    target = gg.asarray(measured)

    @gg.function
    def loss() -> gg.Tensor:
        return gg.sum((model() - target) ** 2) + args.smooth * total_variation(model.image)

    def step(_: Any) -> gg.Tensor:
        return optimizer.minimize(loss, model.trainable_variables)

    history = common.fit(
        args,
        step,
        [np.zeros(1)],  # a step needs all data
        free=["epochs"],
        parts={"model": model, "optimizer": optimizer},
    ).history
    sharp = model.image.numpy()
    before, after = decibels(measured, truth), decibels(sharp, truth)
    titles = ("Photograph", f"Measured: {before:.1f} dB", f"Sharpened: {after:.1f} dB")
    plot(args, dict(zip(titles, (truth, measured, sharp), strict=True)), history)
    print(f"Measured: {before:.1f} dB. Sharpened: {after:.1f} dB, after {len(history)} epochs.")


main = common.command(
    "deblur",
    __doc__,
    run,
    epochs=12,
    side=(160, "pixels of the photograph's sides"),
    blur=(1.5, "standard deviation of the blur, in pixels"),
    noise=(0.005, "standard deviation of the noise; white is 1"),
    smooth=(0.001, "weight of the total variation"),
)


if __name__ == "__main__":
    sys.exit(main())
