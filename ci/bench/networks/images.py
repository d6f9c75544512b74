"""Models of images: a ResNet, a MobileNet, a vision transformer, a denoising U-Net and a VAE."""

from __future__ import annotations

import numpy as np

from networks.model import Model, sizes
from networks.sequences import block, block_shapes


def norms(shapes):
    """The shapes of the normalizations after convolutions."""
    return {f"{name} norm": (2, s[0]) for name, s in shapes.items() if len(s) > 3}


class Classifier(Model):
    """A model of images and their labels."""

    rate, by_adam = 0.05, False

    def batch(self, rng):
        shape = (self.size, self.colours, self.pixels, self.pixels)
        return rng.standard_normal(shape, np.float32), rng.integers(0, 10, self.size)


class ResNet(Classifier):
    """A classifier with two residual convolutions a stage."""

    reach = ("torch, eager", 0.8)
    wide = sizes(channels=(16, 32, 64), colours=1, pixels=8, size=64)
    narrow = sizes(channels=(16,), size=8)

    def shapes(self):
        first, *_, last = *self.channels, self.channels[-1]
        shapes = {"first": (first, self.colours, 3, 3), "last": (last, 10)}
        for k, n in enumerate(self.channels):
            before = self.channels[max(k - 1, 0)]
            shapes |= {f"{k} a": (n, before, 3, 3), f"{k} b": (n, n, 3, 3)}
            shapes |= {f"{k} c": (n, before, 1, 1)} if k else {}
        return shapes | norms(shapes)

    def loss(self, lib, w, images, labels):
        def layer(x, name, stride=1):
            return lib.batch_norm(lib.conv(x, w[name], stride), w[f"{name} norm"])

        x = lib.relu(layer(images, "first"))
        for k in range(len(self.channels)):
            y = lib.relu(layer(x, f"{k} a", 1 + (k > 0)))
            y = layer(y, f"{k} b")
            x = lib.relu(y + (layer(x, f"{k} c", 2) if k else x))
        return lib.cross_entropy(lib.mean(x, (2, 3)) @ w["last"], labels)


class MobileNet(Classifier):
    """Inverted residual blocks with convolutions by channel: Sandler et al. 2018."""

    wide = sizes(channels=(16, 24, 32), colours=3, pixels=32, size=32)
    narrow = sizes(channels=(4,), pixels=8, size=8)

    def shapes(self):
        first, *_, last = *self.channels, self.channels[-1]
        shapes = {"first": (first, self.colours, 3, 3), "last": (last, 10)}
        for k, n in enumerate(self.channels):
            before = self.channels[max(k - 1, 0)]
            middle = 4 * before
            shapes |= {f"{k} up": (middle, before, 1, 1), f"{k} each": (middle, 1, 3, 3)}
            shapes |= {f"{k} down": (n, middle, 1, 1)}
        return shapes | norms(shapes)

    def loss(self, lib, w, images, labels):
        def layer(x, name, stride=1, groups=1):
            return lib.batch_norm(lib.conv(x, w[name], stride, groups), w[f"{name} norm"])

        x = lib.relu6(layer(images, "first", 2))
        for k in range(len(self.channels)):
            y = lib.relu6(layer(x, f"{k} up"))
            y = lib.relu6(layer(y, f"{k} each", 1 + (k > 0), y.shape[1]))
            y = layer(y, f"{k} down")
            x = y if k else x + y
        return lib.cross_entropy(lib.mean(x, (2, 3)) @ w["last"], labels)


class ViT(Classifier):
    """A vision transformer over patches of 4 x 4 pixels: Dosovitskiy et al. 2021."""

    rate, by_adam, scale = 1e-3, True, 0.05
    reach = ("torch, eager", 0.9)
    wide = sizes(layers=4, width=128, heads=4, colours=3, pixels=32, size=16)
    narrow = sizes(layers=1, width=16, pixels=8, size=4)

    def shapes(self):
        n = (self.pixels // 4) ** 2
        shapes = {"patches": (16 * self.colours, self.width), "places": (n, self.width)}
        for k in range(self.layers):
            shapes |= block_shapes(k, self.width)
        return shapes | {"norm": (2, self.width), "last": (self.width, 10)}

    def loss(self, lib, w, images, labels):
        n = self.pixels // 4
        x = lib.reshape(images, (self.size, self.colours, n, 4, n, 4))
        x = lib.reshape(lib.permute(x, (0, 2, 4, 1, 3, 5)), (self.size, n * n, -1))
        x = x @ w["patches"] + w["places"]
        for k in range(self.layers):
            x = block(lib, w, k, x, self.heads, is_causal=False)
        return lib.cross_entropy(lib.mean(lib.norm(x, w["norm"]), 1) @ w["last"], labels)


class UNet(Model):
    """The noise in images, from the images and its strength: the model of Ho et al. 2020."""

    wide = sizes(channels=(32, 64), groups=8, pixels=16, size=16)
    narrow = sizes(channels=(8, 16), groups=4, pixels=8, size=2)

    def shapes(self):
        n, m = self.channels
        shapes = {
            "first": (n, 1, 3, 3), "down a": (n, n, 3, 3), "down b": (m, n, 3, 3),
            "middle a": (m, m, 3, 3), "middle b": (m, m, 3, 3), "up a": (m, 2 * m, 3, 3),
            "up b": (n, m + n, 3, 3), "last": (1, n, 3, 3),
        }  # fmt: skip
        more = {"qkv": (m, 3 * m), "out": (m, m), "time": (32, m), "time bias": (m,)}
        return (
            shapes | norms({k: s for k, s in shapes.items() if k not in ("first", "last")}) | more
        )

    def batch(self, rng):
        images = np.linspace(-1, 1, self.size * self.pixels**2, dtype=np.float32)
        images = images.reshape(self.size, 1, self.pixels, self.pixels)
        strength = rng.uniform(0.1, 0.9, self.size).astype(np.float32)
        noise = rng.standard_normal(images.shape, np.float32)
        mixed = images + strength[:, None, None, None] * noise
        waves = strength[:, None] * np.exp(np.linspace(0, 5, 16, dtype=np.float32))
        return mixed, np.concatenate([np.sin(waves), np.cos(waves)], 1), noise

    def loss(self, lib, w, images, waves, noise):
        def layer(x, name, stride=1):
            y = lib.group_norm(lib.conv(x, w[name], stride), w[f"{name} norm"], self.groups)
            return lib.silu(y)

        time = lib.silu(waves @ w["time"] + w["time bias"])
        first = lib.conv(images, w["first"], 1)
        high = layer(first, "down a")
        low = layer(high, "down b", 2)
        x = layer(low, "middle a") + lib.reshape(time, (self.size, -1, 1, 1))
        x = x + self._attention(lib, w, x)
        x = layer(x, "middle b")
        x = layer(lib.concat([x, low]), "up a")
        x = layer(lib.concat([lib.twice_as_large(x), high]), "up b")
        return lib.mean((lib.conv(x, w["last"], 1) - noise) ** 2)

    def _attention(self, lib, w, x):
        b, c, h, _ = x.shape
        y = lib.permute(lib.reshape(x, (b, c, h * h)), (0, 2, 1)) @ w["qkv"]
        y = lib.permute(lib.reshape(y, (b, h * h, 3, 1, c)), (2, 0, 3, 1, 4))
        y = lib.reshape(lib.attention(y[0], y[1], y[2], False), (b, h * h, c)) @ w["out"]
        return lib.reshape(lib.permute(y, (0, 2, 1)), (b, c, h, h))


class VAE(Model):
    """The negative evidence lower bound of a variational autoencoder with two hidden layers."""

    reach = ("torch, eager", 0.5)
    wide = sizes(pixels=784, latent=16, hidden=256, size=128)
    narrow = sizes(pixels=20, latent=3, hidden=32, size=16)

    def shapes(self):
        shapes = {"in": (self.pixels, self.hidden), "code": (self.hidden, 2 * self.latent)}
        shapes |= {"hidden": (self.latent, self.hidden), "out": (self.hidden, self.pixels)}
        return {k: s for n, s in shapes.items() for k, s in ((n, s), (f"{n} bias", s[1:]))}

    def batch(self, rng):
        pixels = rng.uniform(size=(self.size, self.pixels)).round().astype(np.float32)
        return pixels, rng.standard_normal((self.size, self.latent), np.float32)

    def loss(self, lib, w, x, noise):
        y = lib.relu(x @ w["in"] + w["in bias"]) @ w["code"] + w["code bias"]
        mean, log_variance = y[:, : self.latent], y[:, self.latent :]
        code = mean + noise * lib.exp(log_variance * 0.5)
        y = lib.relu(code @ w["hidden"] + w["hidden bias"]) @ w["out"] + w["out bias"]
        errors = lib.softplus(y) - y * x  # the cross entropy of pixels that are 1 with this logit
        divergence = mean * mean + lib.exp(log_variance) - log_variance - 1
        return lib.mean(errors) + lib.mean(divergence) * (self.latent / 2 / self.pixels)
