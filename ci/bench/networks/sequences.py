"""A GPT, LSTMs, and a translator of sequences by LSTMs and attention."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from networks.model import Arrays, Model, sizes


def block(lib: Any, w: Arrays, k: int, x: Any, heads: int, is_causal: bool) -> Any:
    """A layer of a transformer: attention and two products, each of a normalized input."""
    batch, length, width = x.shape
    y = lib.norm(x, w[f"{k} norm"]) @ w[f"{k} qkv"]
    y = lib.permute(lib.reshape(y, (batch, length, 3, heads, -1)), (2, 0, 3, 1, 4))
    y = lib.permute(lib.attention(y[0], y[1], y[2], is_causal), (0, 2, 1, 3))
    x = x + lib.reshape(y, (batch, length, width)) @ w[f"{k} out"]
    y = lib.gelu(lib.norm(x, w[f"{k} norm 2"]) @ w[f"{k} up"] + w[f"{k} bias"])
    return x + y @ w[f"{k} down"]


def block_shapes(k: int, width: int) -> dict[str, tuple[int, ...]]:
    """The shapes of a layer's weights."""
    return {
        f"{k} qkv": (width, 3 * width), f"{k} out": (width, width), f"{k} up": (width, 4 * width),
        f"{k} down": (4 * width, width), f"{k} norm": (2, width), f"{k} norm 2": (2, width),
        f"{k} bias": (4 * width,),
    }  # fmt: skip


class GPT(Model):
    """The next token, by a small GPT."""

    reach = ("torch, eager", 0.75)
    wide = sizes(layers=4, width=128, heads=4, length=64, words=96, size=32)
    narrow = sizes(layers=1, width=16, length=8, size=4)
    scale = 0.02

    def shapes(self):
        shapes = {"tokens": (self.words, self.width), "places": (self.length, self.width)}
        shapes["last"] = (self.width, self.words)
        for k in range(self.layers):
            shapes |= block_shapes(k, self.width)
        return shapes | {"norm": (2, self.width)}

    def batch(self, rng):
        n = self.size * self.length
        text = np.resize(rng.integers(0, self.words, 3 * self.length // 4), n + 1)
        return tuple(text[i : i + n].reshape(self.size, self.length) for i in (0, 1))

    def loss(self, lib, w, tokens, following):
        x = w["tokens"][tokens] + w["places"]
        for k in range(self.layers):
            x = block(lib, w, k, x, self.heads, is_causal=True)
        scores = lib.norm(x, w["norm"]) @ w["last"]
        scores = lib.reshape(scores, (-1, self.words))
        return lib.cross_entropy(scores, lib.reshape(following, (-1,)))


class LSTM(Model):
    """The squared error of the last state, from a loop over the steps."""

    rate, by_adam = 0.5, False
    reach = ("torch.nn.LSTM", 1.0)
    wide, narrow = sizes(hidden=64, steps=50, size=32), sizes(hidden=8, steps=3, size=4)

    def shapes(self):
        return {"kernel": (2 * self.hidden, 4 * self.hidden), "bias": (4 * self.hidden,)}

    def batch(self, rng):
        x = rng.standard_normal((self.size, self.steps, self.hidden), np.float32)
        return x, rng.standard_normal((self.size, self.hidden), np.float32) * np.float32(0.1)

    def loss(self, lib, w, x, y):
        state = (x[:, 0] * 0,) * 2
        for k in range(self.steps):
            state = self.cell(lib, w, state, x[:, k])
        return lib.mean((state[0] - y) ** 2)

    def cell(self, lib, w, state, x):
        """The next output and cell state."""
        h, c = state
        z = lib.concat([x, h]) @ w["kernel"] + w["bias"]
        i, f, g, o = (z[:, k * self.hidden : (k + 1) * self.hidden] for k in range(4))
        c = lib.sigmoid(f) * c + lib.sigmoid(i) * lib.tanh(g)
        return lib.sigmoid(o) * lib.tanh(c), c


class LSTMScan(LSTM):
    """The same by `scan`; torch has none, and runs the loop."""

    def loss(self, lib, w, x, y):
        step = functools.partial(self.cell, lib, w)
        h, _ = lib.scan(step, (x[:, 0] * 0,) * 2, lib.permute(x, (1, 0, 2)))
        return lib.mean((h - y) ** 2)


class LSTMLayer(LSTM):
    """The same by the libraries' own classes."""

    reach = ("torch.nn.LSTM", 0.9)


class GRULayer(LSTM):
    """The same with a gated recurrent unit."""

    reach = ("torch.nn.GRU", 0.5)

    def shapes(self):
        return {"kernel": (2 * self.hidden, 3 * self.hidden), "bias": (3 * self.hidden,)}


class Seq2Seq(Model):
    """The next word of a translation: two LSTMs and attention to the source: Luong et al. 2015."""

    reach = ("torch, eager", 0.9)
    wide = sizes(words=256, width=128, length=24, size=32)
    narrow = sizes(words=12, width=8, length=4, size=3)

    def shapes(self):
        n = self.width
        shapes = {"source": (self.words, n), "target": (self.words, n), "mix": (2 * n, n)}
        for part in ("encoder", "decoder"):
            shapes |= {f"{part} lstm x": (n, 4 * n), f"{part} lstm h": (n, 4 * n)}
            shapes[f"{part} bias"] = (4 * n,)
        return shapes | {"last": (n, self.words)}

    def batch(self, rng):
        source = rng.integers(0, self.words, (self.size, self.length))
        return source, (source[:, ::-1] + 1) % self.words  # a language of its own

    def loss(self, lib, w, source, target):
        zeros = (w["source"][source[:, 0]] * 0,) * 2
        keys, state = self._lstm(lib, w, "encoder", w["source"][source], zeros)
        y, _ = self._lstm(lib, w, "decoder", w["target"][target[:, :-1]], state)
        shares = lib.softmax(y @ lib.permute(keys, (0, 2, 1)))
        y = lib.tanh(lib.concat([y, shares @ keys], 2) @ w["mix"])
        scores = lib.reshape(y @ w["last"], (-1, self.words))
        return lib.cross_entropy(scores, lib.reshape(target[:, 1:], (-1,)))

    def _lstm(self, lib, w, part, x, state):
        weights = (w[f"{part} {name}"] for name in ("lstm x", "lstm h", "bias"))
        return lib.lstm(x, *weights, state)
