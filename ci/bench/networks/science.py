"""Nearest neighbours, volumes, planets and heat: steps whose time is not in matrix products."""

from __future__ import annotations

import numpy as np

from networks.images import norms
from networks.model import Model, sizes


class Neighbours(Model):
    """A map under which the nearest points predict a value: Goldberger et al. 2004, of k points."""

    rate, scale = 0.01, 0.3
    reach = ("torch, eager", 1.0)
    wide = sizes(points=4000, size=1000, numbers=32, width=16, k=10)
    narrow = sizes(points=40, size=8, numbers=6, width=4, k=3)

    def shapes(self):
        return {"map": (self.numbers, self.width)}

    def batch(self, rng):
        points = rng.standard_normal((self.points, self.numbers), np.float32)
        x = rng.standard_normal((self.size, self.numbers), np.float32)
        return points, np.sin(points[:, 0]), x, np.sin(x[:, 0])

    def loss(self, lib, w, points, values, x, y):
        points, x = points @ w["map"], x @ w["map"]
        squares = lib.sum(x * x, 1)[:, None] + lib.sum(points * points, 1)
        near, places = lib.top_k(2 * x @ lib.permute(points, (1, 0)) - squares, self.k)
        return lib.mean((lib.sum(lib.softmax(near) * values[places], 1) - y) ** 2)


class Conv3d(Model):
    """A classifier of volumes by convolutions along three axes."""

    rate, by_adam = 0.05, False
    reach = ("torch, eager", 1.0)
    wide = sizes(channels=(16, 32, 32), pixels=16, size=8)
    narrow = sizes(channels=(4, 8), pixels=4, size=4)

    def shapes(self):
        before = (1, *self.channels)
        shapes = {str(k): (n, before[k], 3, 3, 3) for k, n in enumerate(self.channels)}
        return {**shapes, **norms(shapes), "last": (self.channels[-1], 10)}

    def batch(self, rng):
        shape = (self.size, 1, *(self.pixels,) * 3)
        return rng.standard_normal(shape, np.float32), rng.integers(0, 10, self.size)

    def loss(self, lib, w, x, labels):
        for k in range(len(self.channels)):
            x = lib.batch_norm(lib.conv(x, w[str(k)], 1 + (k > 0)), w[f"{k} norm"])
            x = lib.relu(x)
        return lib.cross_entropy(lib.mean(x, (2, 3, 4)) @ w["last"], labels)


class NBody(Model):
    """The first velocities of bodies that attract one another, from where they are in the end."""

    rate = 0.01
    reach = ("jax.jit", 1.0)
    wide, narrow = sizes(bodies=128, steps=50), sizes(bodies=6, steps=3)

    def shapes(self):
        return {"velocities": (self.bodies, 3)}

    def batch(self, rng):
        start = rng.standard_normal((self.bodies, 3), np.float32)
        times = np.full(self.steps, 1 / self.steps, np.float32)
        return start, start + rng.standard_normal((self.bodies, 3), np.float32), times

    def loss(self, lib, w, x, target, times):
        def step(state, dt):
            x, v = state
            apart = x - x[:, None]
            squares = lib.sum(apart * apart, 2) + 0.1
            forces = apart / (squares * lib.sqrt(squares))[..., None]
            v = v + dt * lib.mean(forces, 1)
            return x + dt * v, v

        x, _ = lib.scan(step, (x, w["velocities"]), times)
        return lib.mean((x - target) ** 2)


class HeatEquation(Model):
    """How well a plate conducts heat at each place, from its temperatures in the end."""

    rate = 0.01
    reach = ("jax.jit", 1.0)
    wide, narrow = sizes(side=128, steps=100), sizes(side=8, steps=3)

    def shapes(self):
        return {"bias of places": (self.side, self.side)}

    def batch(self, rng):
        start = rng.standard_normal((self.side, self.side), np.float32)
        times = np.full(self.steps, 0.2, np.float32)
        return start, start * np.float32(0.5), times

    def loss(self, lib, w, u, target, times):
        conducts = lib.sigmoid(w["bias of places"])[1:-1, 1:-1]

        def step(u, dt):
            around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            inner = u[1:-1, 1:-1]
            return lib.pad(inner + dt * conducts * (around - 4 * inner))

        return lib.mean((lib.scan(step, u, times) - target) ** 2)
