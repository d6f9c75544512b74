"""The public problems of GradBench, in formulas of our own: values and gradients beside torch, jax.

python ci/bench/gradbench.py [--problems NAME ...] [--small] [--threads N] [--rounds N]

A problem is written once, of functions that each library has under a name of its own, in float64.
gpugrad runs under `gg.function`, jax under `jax.jit`, torch eagerly, as its GradBench tool. The
results are compared first.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import sys
from typing import Any

from peers import agree, installed, jax_runs, options, parse_args, race, status, table

parser = options(__doc__, rounds=15, threads=1)
parser.add_argument("--problems", nargs="+", metavar="NAME", help="which of them (all)")
args = parse_args(parser)
os.environ.setdefault("GPUGRAD_DEVICE", "cpu")
os.environ.setdefault("XLA_FLAGS", f"--xla_cpu_multi_thread_eigen={str(args.threads > 1).lower()}")

import numpy as np

import gpugrad as gg

RNG = np.random.default_rng(0)
SMALL = args.small

# ---- problems: the loss, and its arguments; the first ones are differentiated ---------------


def gmm(lib: Any, alphas: Any, means: Any, factors: Any, x: Any, places: Any) -> Any:
    """The log likelihood of a mixture of Gaussians with a Wishart prior."""
    d = x.shape[1]
    logs, rest = factors[:, :d], factors[:, d:]
    lower = lib.concat([rest[:, :1] * 0, rest], 1)[:, places]
    apart = x[:, None] - means
    y = lib.exp(logs) * apart + lib.einsum("kij,nkj->nki", lower, apart)
    scores = lib.logsumexp(alphas + lib.sum(logs, 1) - 0.5 * lib.sum(y**2, 2), 1)
    prior = 0.5 * (lib.sum(lib.exp(2 * logs)) + lib.sum(rest**2)) - lib.sum(logs)
    return lib.sum(scores) - x.shape[0] * lib.logsumexp(alphas, 0) - prior


def kmeans(lib: Any, centres: Any, points: Any) -> Any:
    """The squared distances of points to their nearest centre."""
    squares = lib.sum(points**2, 1)[:, None] + lib.sum(centres**2, 1)
    return lib.sum(lib.min(squares - 2 * points @ centres.T, 1))


def llsq(lib: Any, x: Any, t: Any, s: Any) -> Any:
    """The squares of what a polynomial with coefficients x misses."""
    return 0.5 * lib.sum((s - lib.polynomials(t, x.shape[0]) @ x) ** 2)


def lse(lib: Any, x: Any) -> Any:
    """The logarithm of a sum of exponentials."""
    return lib.logsumexp(x, 0)


def ode(lib: Any, x: Any) -> Any:
    """The last state of y_0' = x_0, y_i' = x_i y_(i-1), by steps of Runge and Kutta."""
    steps = 3 if SMALL else 50
    h = 2.0 / steps

    def slope(y: Any) -> Any:
        return x * lib.concat([x[:1] * 0 + 1, y[:-1]], 0)

    def step(y: Any) -> Any:
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + h * k3))

    return lib.sum(lib.repeat(step, x * 0, steps))


def lstm(lib: Any, main: Any, extra: Any, state: Any, sequence: Any) -> Any:
    """The loss of predicting characters by LSTMs whose weights are diagonal, as in ADBench."""

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        new = []
        x = x * extra[0]
        for k in range(main.shape[0]):
            h, c = carry[k]
            w, b = main[k, :4], main[k, 4:]
            forget, give = lib.sigmoid(x * w[0] + b[0]), lib.sigmoid(x * w[2] + b[2])
            take, change = lib.sigmoid(h * w[1] + b[1]), lib.tanh(h * w[3] + b[3])
            c = c * forget + take * change
            x = h = give * lib.tanh(c)
            new.append((h, c))
        scores = x * extra[1] + extra[2]
        return tuple(new), scores - lib.logsumexp(scores, 0)

    first = tuple((state[2 * k], state[2 * k + 1]) for k in range(main.shape[0]))
    logs = lib.scan(step, first, sequence[:-1])
    return -lib.sum(sequence[1:] * logs) / sequence.shape[0]


def rotated(lib: Any, r: Any, x: Any) -> Any:
    """A point, turned by a rotation vector: the formula of Rodrigues."""
    angle = lib.sqrt(lib.sum(r * r))
    axis = r / angle
    cos, sin = lib.cos(angle), lib.sin(angle)
    return x * cos + lib.cross(axis, x) * sin + axis * (lib.sum(axis * x) * (1 - cos))


def ba(lib: Any, cameras: Any, points: Any, weights: Any, seen: Any) -> Any:
    """Reprojection errors of a bundle adjustment, and their Jacobian by camera and point."""

    def error(p: Any, weight: Any, seen: Any) -> Any:
        x = rotated(lib, p[:3], p[11:] - p[3:6])
        x = x[:2] / x[2]
        square = lib.sum(x * x)
        x = x * (1 + p[9] * square + p[10] * square * square) * p[6] + p[7:9]
        return weight * (x - seen)

    each = lib.vmap(lib.jacobian(error))(lib.concat([cameras, points], 1), weights, seen)
    return lib.sum(each**2)


def ht(lib: Any, pose: Any, bones: Any, shares: Any, vertices: Any, seen: Any) -> Any:
    """How far the vertices of a hand are from where they are seen; bones turn one another."""
    at, placed = pose[:3], []
    turn = lib.eye(3)
    for k in range(bones.shape[0]):
        if k % 4 == 0:  # the next finger
            at, turn = pose[:3], lib.eye(3)
        c, s = lib.cos(pose[3 + k]), lib.sin(pose[3 + k])
        row = [lib.stack([c, -s, s * 0]), lib.stack([s, c, s * 0]), lib.eye(3)[2]]
        turn = turn @ lib.stack(row)
        at = at + turn @ bones[k]
        placed.append(vertices @ turn.T + at)
    mixed = lib.einsum("bni,nb->ni", lib.stack(placed), shares)
    return lib.sum((mixed - seen) ** 2)


def det(lib: Any, a: Any) -> Any:
    """A determinant by minors, number by number."""
    n = a.shape[0]
    numbers = [[a[i, j] for j in range(n)] for i in range(n)]

    def minor(row: int, columns: tuple[int, ...]) -> Any:
        if len(columns) == 1:
            return numbers[row][columns[0]]
        total = None
        for k, j in enumerate(columns):
            term = numbers[row][j] * minor(row + 1, columns[:k] + columns[k + 1 :])
            total = term if total is None else (total - term if k % 2 else total + term)
        return total

    return minor(0, tuple(range(n)))


def saddle(lib: Any, start: Any) -> Any:
    """A minimum of maxima: descents, each step of which is the end of ascents."""
    steps = 3 if SMALL else 25

    def loss(x: Any, y: Any) -> Any:
        return lib.sum(x * x) - lib.sum(y * y) + 0.1 * lib.sum(x * y)

    def highest(x: Any) -> Any:
        up = lib.grad(lambda y: loss(x, y))
        return loss(x, lib.repeat(lambda y: y + 0.1 * up(y), start, steps))

    down = lib.grad(highest)
    return lib.sum(lib.repeat(lambda x: x - 0.1 * down(x), start, steps) ** 2)


def particle(lib: Any, w: Any, charges: Any) -> Any:
    """The slope of where a charged particle arrives, by the strength of the field: Euler."""
    steps, dt = (3 if SMALL else 60), 0.02

    def potential(x: Any, w: Any) -> Any:
        apart = charges - x
        return lib.sum(w[0] / lib.sqrt(lib.sum(apart * apart, 1)))

    def arrives(w: Any) -> Any:
        force = lib.grad(lambda x: potential(x, w))
        first = charges[0] * 0.5

        def step(state: Any) -> Any:
            x, v = state[:2], state[2:]
            return lib.concat([x + dt * v, v - dt * force(x)], 0)

        state = lib.repeat(step, lib.concat([first, first * 0], 0), steps)
        return lib.sum(state[:2] ** 2)

    return lib.sum(lib.grad(arrives)(w))


def of(*shape: int) -> np.ndarray:
    """Normal numbers."""
    return RNG.standard_normal(shape)


def problems() -> dict[str, tuple[Any, tuple[np.ndarray, ...], int]]:
    """The problems by name: the loss, its arguments, and how many are differentiated."""
    d, k, n = (2, 3, 5) if SMALL else (10, 25, 1000)
    places = np.zeros((d, d), int)
    places[np.tril_indices(d, -1)] = np.arange(d * (d - 1) // 2) + 1
    points, centres = (of(20, 3), of(4, 3)) if SMALL else (of(10_000, 10), of(1000, 10))
    t = np.linspace(-1, 1, 9 if SMALL else 2000)
    c, b, m = (4, 3, 2) if SMALL else (50, 14, 4)
    letters = np.eye(b)[RNG.integers(0, b, c)]
    seen = 5 if SMALL else 5000
    bones, vertices = (4, 6) if SMALL else (20, 500)
    shares = RNG.uniform(size=(vertices, bones))
    return {
        "gmm": (gmm, (of(k), of(k, d), of(k, d * (d + 1) // 2) / 5, of(n, d), places), 3),
        "kmeans": (kmeans, (centres, points), 1),
        "llsq": (llsq, (of(4 if SMALL else 64), t, np.sign(t)), 1),
        "lse": (lse, (of(9 if SMALL else 1_000_000),), 1),
        "ode": (ode, (of(5 if SMALL else 10_000) / 3,), 1),
        "lstm": (lstm, (of(m, 8, b) / 3, of(3, b) / 3, of(2 * m, b), letters), 2),
        "ba": (ba, (of(seen, 11) / 3, of(seen, 3) + 4, of(seen), of(seen, 2)), 2),
        "ht": (
            ht,
            (of(3 + bones), of(bones, 3), shares / shares.sum(1)[:, None], of(vertices, 3),
             of(vertices, 3)), 1,
        ),
        "det": (det, (of(*((3,) * 2 if SMALL else (6,) * 2)),), 1),
        "saddle": (saddle, (of(2 if SMALL else 10),), 1),
        "particle": (particle, (np.array([7.5]) / 10, np.array([[10.0, 9.0], [9.0, 0.0]])), 1),
    }  # fmt: skip


# ---- libraries ------------------------------------------------------------------------------


def with_gpugrad(loss: Any, arrays: Any, count: int) -> dict[str, Any]:
    """Ours: value and gradient in one `gg.function`."""

    class Ours:
        exp, sum, min, logsumexp, einsum = gg.exp, gg.sum, gg.min, gg.logsumexp, gg.einsum
        sqrt, cos, sin, cross, stack = gg.sqrt, gg.cos, gg.sin, gg.cross, gg.stack
        sigmoid, tanh, grad, vmap, jacobian = gg.sigmoid, gg.tanh, gg.grad, gg.vmap, gg.jacobian
        eye = functools.partial(gg.eye, dtype="float64")

        def concat(arrays, axis):
            return gg.concat(arrays, axis=axis)

        def polynomials(t, n):
            return t[:, None] ** gg.arange(n)

        def repeat(step, x, times):
            return gg.scan(lambda x, _: (step(x), None), x, gg.arange(times))[0]

        def scan(step, first, xs):
            return gg.scan(step, first, xs)[1]

    both = gg.value_and_grad(functools.partial(loss, Ours), argnums=tuple(range(count)))
    step, given = gg.function(lambda *given: both(*given)), [gg.asarray(a) for a in arrays]

    def run():
        value, grads = step(*given)
        return [value, *grads]

    return {"gpugrad": run}


def with_torch(loss: Any, arrays: Any, count: int) -> dict[str, Any]:
    """torch, eager."""
    import torch

    torch.set_num_threads(args.threads)

    class Torch:
        exp, einsum, sqrt, cos, sin = torch.exp, torch.einsum, torch.sqrt, torch.cos, torch.sin
        sigmoid, tanh, stack, logsumexp = torch.sigmoid, torch.tanh, torch.stack, torch.logsumexp
        cross, min, sum, concat = torch.linalg.cross, torch.amin, torch.sum, torch.cat
        grad, vmap, jacobian = torch.func.grad, torch.func.vmap, torch.func.jacrev
        eye = functools.partial(torch.eye, dtype=torch.float64)

        def polynomials(t, n):
            return t[:, None] ** torch.arange(n)

        def repeat(step, x, times):
            return functools.reduce(lambda x, _: step(x), range(times), x)

        def scan(step, first, xs):
            ys = []
            for x in xs:
                first, y = step(first, x)
                ys.append(y)
            return torch.stack(ys)

    both = torch.func.grad_and_value(functools.partial(loss, Torch), tuple(range(count)))
    given = [torch.from_numpy(a) for a in arrays]

    def run():
        grads, value = both(*given)
        return [value, *grads]

    return {"torch, eager": run}


def with_jax(loss: Any, arrays: Any, count: int) -> dict[str, Any]:
    """jax.jit."""
    import jax
    from jax import numpy as jnp

    jax.config.update("jax_enable_x64", True)

    class Jax:
        exp, sum, min, einsum, sqrt = jnp.exp, jnp.sum, jnp.min, jnp.einsum, jnp.sqrt
        cos, sin, cross, stack, eye = jnp.cos, jnp.sin, jnp.cross, jnp.stack, jnp.eye
        logsumexp, sigmoid, tanh = jax.nn.logsumexp, jax.nn.sigmoid, jnp.tanh
        grad, vmap, jacobian = jax.grad, jax.vmap, jax.jacrev
        concat = jnp.concatenate

        def polynomials(t, n):
            return t[:, None] ** jnp.arange(n)

        def repeat(step, x, times):
            return jax.lax.scan(lambda x, _: (step(x), None), x, None, times)[0]

        def scan(step, first, xs):
            return jax.lax.scan(step, first, xs)[1]

    both = jax.jit(jax.value_and_grad(functools.partial(loss, Jax), tuple(range(count))))
    given = [jnp.asarray(a) for a in arrays]

    def run():
        value, grads = jax.block_until_ready(both(*given))
        return [value, *grads]

    return {"jax.jit": run}


def main() -> int:
    """Print a table a problem, then the ratios."""
    ratios: dict[str, list[float]] = {}
    good = True
    makers = [with_gpugrad]
    makers += [with_torch] if installed("torch") else []
    makers += [with_jax] if jax_runs(False) else []
    for name, problem in problems().items():
        if args.problems and name not in args.problems:
            continue
        runs = dict(itertools.chain.from_iterable(make(*problem).items() for make in makers))
        agree(runs, 1e-6, 1e-9)
        medians = race(runs, args.rounds)
        reach = {"jax.jit": 1.0} if name in ("kmeans", "ode") else None
        good &= table(f"{name}: {problem[0].__doc__}", medians, reach)
        for peer, seconds in medians.items():
            ratios.setdefault(peer, []).append(medians["gpugrad"] / seconds)
    print()
    for peer, each in ratios.items():
        if peer != "gpugrad":
            mean = math.exp(sum(map(math.log, each)) / len(each))
            print(f"geometric mean over {peer}: {mean:.2f}; the worst {max(each):.2f}")
    return status(good)


if __name__ == "__main__":
    sys.exit(main())
