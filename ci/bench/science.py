"""gg.scipy beside SciPy and torch: forward, and value with gradient, on a CPU.

python ci/bench/science.py [--rounds N] [--small] [--json PATH] [NAME ...]

A row is a function of a namespace and its arrays. It runs with SciPy's and with our namespace, and
then with its gradient by all of the arrays. Targets: at most 1.2 of SciPy's time, and at most 4 of
our own forward for value and gradient.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import peers

parser = peers.options(__doc__, rounds=7, threads=2)
parser.add_argument("names", nargs="*", metavar="NAME", help="of the rows to run (all)")
args = peers.parse_args(parser)

import numpy as np
from scipy import signal

import gpugrad as gg

SIDE = 64 if args.small else 1000
RNG = np.random.default_rng(0)
IMAGE = RNG.standard_normal((SIDE, SIDE))
POINTS = np.stack(np.meshgrid(*[np.arange(SIDE) * 0.99 + 0.3] * 2, indexing="ij"))
LINE, TAPS = RNG.standard_normal(SIDE * SIDE), RNG.standard_normal(64)
B, A = signal.butter(4, 0.2)
KNOTS, AT = np.linspace(0, 1, 100), RNG.uniform(0, 1, SIDE * SIDE)
LABELS = RNG.integers(0, 100, IMAGE.shape)
POINTS_3D = RNG.standard_normal((SIDE, 3)), RNG.standard_normal((SIDE, 3))
TIMES = np.linspace(0, 4, 10 * SIDE)
DECAY = 2 * np.exp(-0.5 * TIMES) + 0.1 * RNG.standard_normal(TIMES.size)


def fitted(s: Any, t: Any, y: Any) -> Any:
    """The parameters of a decay."""
    return s.curve_fit(lambda t, a, b: a * np.exp(-b * t), t, y)[0]


Row = tuple[str, Callable[..., Any], list[np.ndarray]]
"""The namespace, a function of it and of the arrays, and the arrays."""

ROWS: dict[str, Row] = {
    "gaussian_filter": ("ndimage", lambda s, x: s.gaussian_filter(x, 2.0), [IMAGE]),
    "uniform_filter": ("ndimage", lambda s, x: s.uniform_filter(x, 5), [IMAGE]),
    "median_filter": ("ndimage", lambda s, x: s.median_filter(x, 3), [IMAGE]),
    "maximum_filter": ("ndimage", lambda s, x: s.maximum_filter(x, 5), [IMAGE]),
    "sobel": ("ndimage", lambda s, x: s.sobel(x), [IMAGE]),
    "map_coordinates": ("ndimage", lambda s, x: s.map_coordinates(x, POINTS), [IMAGE]),
    "rotate": ("ndimage", lambda s, x: s.rotate(x, 20.0, reshape=False), [IMAGE]),
    "zoom": ("ndimage", lambda s, x: s.zoom(x, 1.5), [IMAGE]),
    "mean of labels": ("ndimage", lambda s, x: s.mean(x, LABELS, np.arange(100)), [IMAGE]),
    "lfilter": ("signal", lambda s, x, b, a: s.lfilter(b, a, x), [LINE, B, A]),
    "sosfilt": ("signal", lambda s, x, sos: s.sosfilt(sos, x), [LINE, signal.tf2sos(B, A)]),
    "convolve": ("signal", lambda s, x, h: s.convolve(x, h, "same"), [LINE, TAPS]),
    "fftconvolve": ("signal", lambda s, x, h: s.fftconvolve(x, h, "same"), [LINE, TAPS]),
    "cdist": ("spatial.distance", lambda s, x, y: s.cdist(x, y), [*POINTS_3D]),
    "cdist cityblock": (
        "spatial.distance",
        lambda s, x, y: s.cdist(x, y, "cityblock"),
        [*POINTS_3D],
    ),
    "curve_fit": ("optimize", fitted, [TIMES, DECAY]),
    "CubicSpline": ("interpolate", lambda s, x, y: s.CubicSpline(KNOTS, y)(x), [AT, KNOTS**2]),
    "RegularGridInterpolator": (
        "interpolate",
        lambda s, v, p: s.interpn((KNOTS, KNOTS), v, p),
        [KNOTS[:, None] * KNOTS, np.stack([AT, AT[::-1]], axis=-1)],
    ),
    "stft": ("signal", lambda s, x: abs(s.stft(x, nperseg=256)[2]), [LINE]),
}


TORCH: dict[str, Callable[..., Any]] = {
    "cdist": lambda torch, x, y: torch.cdist(x, y),
    "cdist cityblock": lambda torch, x, y: torch.cdist(x, y, p=1.0),
}
"""Rows that torch has as one function."""


def with_torch(name: str, arrays: list[np.ndarray]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The forward, and the value with its gradient, of torch, if it is installed."""
    if name not in TORCH or not peers.installed("torch"):
        return {}, {}
    import torch

    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]

    def forward() -> Any:
        with torch.no_grad():
            return [TORCH[name](torch, *tensors)]

    def both() -> Any:
        value = TORCH[name](torch, *tensors)
        return [value, *torch.autograd.grad(value.sum(), tensors)]

    return {"torch": forward}, {"torch": both}


def race(name: str, row: Row) -> bool:
    """Print the two tables of a row."""
    namespace, function, arrays = row
    theirs, ours = (importlib.import_module(f"{p}scipy.{namespace}") for p in ("", "gpugrad."))
    tensors = [gg.asarray(a) for a in arrays]

    def both() -> Any:
        with gg.GradientTape() as tape:
            tape.watch(tensors)
            value = function(ours, *tensors)
        return [value, *tape.gradient(value, tensors)]

    runs = {
        "gpugrad": lambda: [function(ours, *tensors)],
        "SciPy": lambda: [function(theirs, *arrays)],
    }
    forward, value_and_gradient = with_torch(name, arrays)
    runs |= forward
    peers.agree(runs, rtol=1e-7, atol=1e-9)
    slopes = {f"both {k}": v for k, v in {"gpugrad": both, **value_and_gradient}.items()}
    medians = peers.race({**runs, **slopes}, args.rounds)
    taken = {k.removeprefix("both "): medians.pop(k) for k in slopes}
    size = arrays[0].size
    good = peers.table(f"{name}, {size} elements", medians, {"SciPy": 1.2})
    taken["forward alone"] = medians["gpugrad"]
    return peers.table(f"{name}, value and gradient", taken, {"forward alone": 4.0}) and good


def many_systems(count: int) -> bool:
    """Print the times of `count` independent systems in one vmap, and of a loop over some."""
    starts = gg.asarray(RNG.uniform(0.5, 1.5, (count, 2)))

    def solve(y0: Any) -> Any:
        fun = lambda t, y: gg.stack([y[0] * (1.5 - y[1]), -y[1] * (1.0 - y[0])])  # noqa: E731
        return gg.scipy.integrate.solve_ivp(fun, (0.0, 3.0), y0, t_eval=[1.0, 3.0]).y

    share = 10 if args.small else 100
    runs = {
        "vmap": lambda: [gg.vmap(solve)(starts)],
        "part of a loop": lambda: [solve(starts[i]) for i in range(count // share)],
    }
    medians = peers.race(runs, args.rounds)
    medians["loop"] = medians.pop("part of a loop") * share
    named = {"gpugrad": medians["vmap"], "loop": medians["loop"]}
    return peers.table(f"solve_ivp of {count} systems in vmap", named, {"loop": 1 / 20})


def main() -> int:
    """Print the tables of all rows."""
    good = [race(name, ROWS[name]) for name in args.names or ROWS]
    if not args.names:
        good.append(many_systems(200 if args.small else 10000))
    return peers.status(all(good))


if __name__ == "__main__":
    sys.exit(main())
