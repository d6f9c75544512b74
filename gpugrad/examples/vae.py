"""Train a variational autoencoder on handwritten digits, and draw new ones.

The data are scikit-learn's 1,797 digits of 8 x 8 pixels, of which a fifth is held out. The encoder
maps a digit to a normal distribution in the plane, the decoder a point of the plane to a digit:
Kingma and Welling 2014, "Auto-Encoding Variational Bayes". After 100 epochs,
8 seconds of one core of a shared machine, held-out digits take 24.6 nats each. The picture shows
the plane: what the decoder draws at each place, and where the encoder puts held-out digits.
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


def load_data() -> tuple[Array, Array, Array]:
    """Images of shape (n, 64) to train on and to test, with values from 0 to 1; test labels."""
    digits = common.import_optional("sklearn.datasets", "scikit-learn").load_digits()
    images = (digits.data / 16).astype(np.float32)
    is_test = np.arange(len(images)) % 5 == 0
    return images[~is_test], images[is_test], digits.target[is_test]


class VAE(nn.Module):
    """A digit's reconstruction (logits of pixels), and mean and log variance in the plane."""

    def __init__(self, width: int, generator: gg.random.Generator) -> None:
        def net(units_in: int, units_out: int) -> nn.Module:
            return nn.Sequential(
                nn.Dense(units_in, width, gg.gelu, generator=generator),
                nn.Dense(width, width, gg.gelu, generator=generator),
                nn.Dense(width, units_out, generator=generator),
            )

        self.encoder, self.decoder = net(64, 4), net(2, 64)

    def forward(self, images: Any) -> tuple[gg.Tensor, gg.Tensor, gg.Tensor]:
        """Decode a random point of each digit's distribution."""
        code = self.encoder(images)
        mean, log_variance = code[:, :2], code[:, 2:]
        noise = gg.random.normal(mean.shape)
        return self.decoder(mean + gg.exp(log_variance / 2) * noise), mean, log_variance


def negative_bound(outputs: Any, images: Any) -> gg.Tensor:
    """The negative evidence lower bound, in nats per digit."""
    logits, mean, log_variance = outputs
    pixels = gg.sum(gg.softplus(logits) - images * logits, axis=-1)  # of Bernoulli pixels
    divergence = gg.sum(mean**2 + gg.exp(log_variance) - log_variance - 1, axis=-1) / 2
    return gg.mean(pixels + divergence)


def plot(args: argparse.Namespace, model: VAE, images: Array, labels: Array, loss: float) -> None:
    """Draw the plane."""
    figure = common.new_figure(12, 6)
    left, right = figure.subplots(1, 2)
    n, steps = 15, np.linspace(-2.25, 2.25, 15, dtype=np.float32)
    points = np.stack(np.meshgrid(steps, steps[::-1]), -1).reshape(-1, 2)
    decoded = gg.sigmoid(model.decoder(gg.constant(points))).numpy().reshape(n, n, 8, 8)
    tiles = np.pad(decoded, ((0, 0), (0, 0), (1, 1), (1, 1))).transpose(0, 2, 1, 3)
    left.imshow(tiles.reshape(10 * n, 10 * n), cmap="magma", extent=[-2.4, 2.4] * 2)
    left.set_title("What the decoder draws at each place", loc="left", fontweight="bold")
    means = model.encoder(gg.constant(images)).numpy()[:, :2]
    dots = right.scatter(*means.T, c=labels, cmap="tab10", vmin=-0.5, vmax=9.5, s=22)
    right.set_title("Where the encoder puts held-out digits", loc="left", fontweight="bold")
    right.set_aspect("equal")
    right.grid(alpha=0.25)
    figure.colorbar(dots, ax=right, ticks=range(10), shrink=0.8)
    figure.suptitle(f"A plane of digits: {loss:.2f} nats per held-out digit")
    common.save_figure(figure, args, "vae")


def run(args: argparse.Namespace) -> None:
    """Train or resume, and draw."""
    training, test, labels = load_data()
    model = VAE(args.width, gg.random.Generator(args.seed))
    loader = gg.data.DataLoader(
        gg.data.Arrays(training, training), args.batch_size, shuffle=True, seed=args.seed
    )
    rate = optim.schedules.cosine(args.learning_rate, args.epochs * len(loader))
    optimizer = optim.Adam(rate)
    history = common.fit(
        args, (model, negative_bound), loader, optimizer=optimizer, validation=[(test, test)]
    ).history
    loss = history[-1]["val_loss"]
    plot(args, model, test, labels, loss)
    print(f"Held-out digits: {loss:.2f} nats each, after {len(history)} epochs.")


main = common.command(
    "vae",
    __doc__,
    run,
    epochs=100,
    width=(256, "units of hidden layers"),
    batch_size=(64, "digits per step"),
    learning_rate=(0.002, "initial learning rate; it falls along a cosine"),
)


if __name__ == "__main__":
    sys.exit(main())
