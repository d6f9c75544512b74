"""A differential equation by a network, a recommender with a large table, and a graph network."""

from __future__ import annotations

import numpy as np

from networks.model import Model, layers, run_layers, sizes


class PINN(Model):
    """How far a small network is from u'' = f with u = 0 at the ends: mean of squares."""

    reach = ("jax.jit", 1.5)
    wide, narrow = sizes(points=1024, hidden=64), sizes(points=16, hidden=8)

    def shapes(self):
        shapes = {"in": (1, self.hidden), "hidden": (self.hidden,) * 2, "out": (self.hidden, 1)}
        return {k: s for n, s in shapes.items() for k, s in ((n, s), (f"{n} bias", s[1:]))}

    def batch(self, rng):
        x = np.linspace(0, 1, self.points, dtype=np.float32)[:, None]
        x[[1, -1]] = x[[-1, 1]]  # the ends first
        return x, np.sin(np.pi * x)

    def loss(self, lib, w, x, f):
        def u(x):
            y = lib.tanh(x @ w["in"] + w["in bias"])
            y = lib.tanh(y @ w["hidden"] + w["hidden bias"])
            return y @ w["out"] + w["out bias"]

        second = lib.derivative(lambda x: lib.derivative(u, x), x)
        return lib.mean((second - f) ** 2) + lib.mean(u(x[:2]) ** 2)


class DLRM(Model):
    """Clicks, from numbers and rows of a table of a million: Naumov et al. 2019.

    torch and gpugrad have sparse gradients of the table; jax's is as large as the table.
    """

    rate, by_adam = 0.1, False
    wide = sizes(rows=1_000_000, width=16, slots=8, numbers=13, hidden=64, size=512)
    narrow = sizes(rows=50, width=4, hidden=8, size=8)

    def shapes(self):
        top = self.width + (self.slots + 1) ** 2
        return {
            "table": (self.rows, self.width),
            **layers("bottom", (self.numbers, self.hidden, self.width)),
            **layers("top", (top, self.hidden, 1)),
        }

    def batch(self, rng):
        numbers = rng.standard_normal((self.size, self.numbers), np.float32)
        rows = rng.integers(0, self.rows, (self.size, self.slots))
        return numbers, rows, (numbers[:, 0] > 0).astype(np.float32)

    def loss(self, lib, w, numbers, rows, clicks):
        x = run_layers(lib, w, "bottom", numbers)
        parts = lib.concat([lib.reshape(x, (self.size, 1, -1)), lib.rows(w["table"], rows)])
        products = parts @ lib.permute(parts, (0, 2, 1))
        x = lib.concat([x, lib.reshape(products, (self.size, -1))])
        logits = lib.reshape(run_layers(lib, w, "top", x), (-1,))
        return lib.mean(lib.softplus(logits) - logits * clicks)


class GraphNetwork(Model):
    """Two rounds of messages along a million edges, each a sum at its node."""

    rate, by_adam = 0.05, False
    wide = sizes(nodes=100_000, edges=1_000_000, width=16, kinds=4)
    narrow = sizes(nodes=20, edges=60, width=4)

    def shapes(self):
        n = self.width
        return {
            "0 self": (n, n), "0 other": (n, n), "1 self": (n, n), "1 other": (n, n),
            "last": (n, self.kinds),
        }  # fmt: skip

    def batch(self, rng):
        x = rng.standard_normal((self.nodes, self.width), np.float32)
        edges = rng.integers(0, self.nodes, (2, self.edges))
        return x, edges[0], edges[1], x[:, : self.kinds].argmax(1)

    def loss(self, lib, w, x, start, end, kinds):
        for k in range(2):
            sums = lib.segment_sum(x[start], end, self.nodes)
            x = lib.relu(x @ w[f"{k} self"] + sums @ w[f"{k} other"] * 0.1)
        return lib.cross_entropy(x @ w["last"], kinds)
