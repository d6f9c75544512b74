"""gg.scipy beside SciPy, torch and jax: forward, and value with gradient, on a CPU.

python ci/bench/science.py [--rounds N] [--small] [--json PATH] [NAME ...]
python ci/bench/science.py --laws [--shapes] [--minutes N]

A row is a function of a namespace and its arrays. With --laws, each distribution of SciPy's own
tests has a row for each method, by the point, the location and the scale, and with --shapes by
its other parameters, too. They run in a fixed shuffled order for at most --minutes, with a line of
progress on stderr; what is left is counted. A row runs with SciPy's
and with our namespace, and then with its gradient by all of the arrays. Targets: at most 1.2 of
SciPy's time, 1.1 for sparse arrays, at most 4 of our own forward for value and gradient, and 0.9 of
torch's and jax's times, where they have the function. The memory of sparse products and solutions
must be linear in the entries: torch's gradient of a sparse product allocates the full matrix, and
fails. On a loaded machine, compare ratios alone.
"""

from __future__ import annotations

import importlib
import os
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import peers

parser = peers.options(__doc__, rounds=7, threads=2)
parser.add_argument("names", nargs="*", metavar="NAME", help="of the rows to run (all)")
parser.add_argument("--laws", action="store_true", help="run the rows of all distributions")
parser.add_argument("--shapes", action="store_true", help="gradients of --laws by shapes, too")
parser.add_argument("--minutes", type=float, default=30.0, help="the most for --laws (30)")
args = peers.parse_args(parser)

import numpy as np
from scipy import signal, sparse, stats
from scipy.stats._distr_params import distcont

import gpugrad as gg

os.environ["JAX_ENABLE_X64"] = "1"
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
NEAR = POINTS * 0.9


def laplacian(side: int) -> Any:
    """The matrix of a grid's Laplace operator, and some of the identity."""
    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sparse.eye_array(side)
    return (sparse.kron(line, eye) + sparse.kron(eye, line) + sparse.eye_array(side**2)).tocsr()


GRID, SMALL_GRID = laplacian(SIDE * 9 // 20), laplacian(SIDE // 8)
HEAT, SMALL_HEAT = RNG.standard_normal(GRID.shape[0]), RNG.standard_normal(SMALL_GRID.shape[0])
OURS = {id(a): gg.scipy.sparse.csr_array(a) for a in (GRID, SMALL_GRID)}


def matrix(s: Any, a: Any, data: Any) -> Any:
    """The sparse array with other data, in the namespace of the data."""
    if isinstance(data, gg.Tensor):
        return OURS[id(a)].with_data(data)
    return s.csr_array((data, a.indices, a.indptr), shape=a.shape)


DECAY = 2 * np.exp(-0.5 * TIMES) + 0.1 * RNG.standard_normal(TIMES.size)


def fitted(s: Any, t: Any, y: Any) -> Any:
    """The parameters of a decay."""
    return s.curve_fit(lambda t, a, b: a * np.exp(-b * t), t, y)[0]


Row = tuple[str, Callable[..., Any], Sequence[np.ndarray]]
"""The namespace, a function of it and of the arrays, and the arrays."""

ROWS: dict[str, Row] = {
    "gaussian_filter": ("ndimage", lambda s, x: s.gaussian_filter(x, 2.0), [IMAGE]),
    "uniform_filter": ("ndimage", lambda s, x: s.uniform_filter(x, 5), [IMAGE]),
    "median_filter": ("ndimage", lambda s, x: s.median_filter(x, 3), [IMAGE]),
    "maximum_filter": ("ndimage", lambda s, x: s.maximum_filter(x, 5), [IMAGE]),
    "sobel": ("ndimage", lambda s, x: s.sobel(x), [IMAGE]),
    "map_coordinates": ("ndimage", lambda s, x: s.map_coordinates(x, POINTS), [IMAGE]),
    "map_coordinates, both": ("ndimage", lambda s, x, p: s.map_coordinates(x, p), [IMAGE, POINTS]),
    "rotate": (
        "ndimage",
        lambda s, x, angle: s.rotate(x, angle, reshape=False),
        [IMAGE, np.array(20.0)],
    ),
    "zoom": ("ndimage", lambda s, x: s.zoom(x, 1.5), [IMAGE]),
    "mean of labels": ("ndimage", lambda s, x: s.mean(x, LABELS, np.arange(100)), [IMAGE]),
    "lfilter": ("signal", lambda s, x, b, a: s.lfilter(b, a, x), [LINE, B, A]),
    "sosfilt": ("signal", lambda s, x, sos: s.sosfilt(sos, x), [LINE, signal.tf2sos(B, A)]),
    "symiirorder2": ("signal", lambda s, x: s.symiirorder2(x, 0.5, 0.3), [LINE]),
    "convolve": ("signal", lambda s, x, h: s.convolve(x, h, "same"), [LINE, TAPS]),
    "fftconvolve": ("signal", lambda s, x, h: s.fftconvolve(x, h, "same"), [LINE, TAPS]),
    "cdist": ("spatial.distance", lambda s, x, y: s.cdist(x, y), [*POINTS_3D]),
    "cdist cityblock": (
        "spatial.distance",
        lambda s, x, y: s.cdist(x, y, "cityblock"),
        [*POINTS_3D],
    ),
    "cdist chebyshev": (
        "spatial.distance",
        lambda s, x, y: s.cdist(x, y, "chebyshev"),
        [*POINTS_3D],
    ),
    "pdist": ("spatial.distance", lambda s, x: s.pdist(x), POINTS_3D[:1]),
    "curve_fit": ("optimize", fitted, [TIMES, DECAY]),
    "CubicSpline": ("interpolate", lambda s, x, y: s.CubicSpline(KNOTS, y)(x), [AT, KNOTS**2]),
    "RegularGridInterpolator": (
        "interpolate",
        lambda s, v, p: s.interpn((KNOTS, KNOTS), v, p),
        [KNOTS[:, None] * KNOTS, np.stack([AT, AT[::-1]], axis=-1)],
    ),
    "stft": ("signal", lambda s, x: abs(s.stft(x, nperseg=256)[2]), [LINE]),
    "map_coordinates, linear": (
        "ndimage",
        lambda s, x: s.map_coordinates(x, NEAR, order=1, mode="nearest"),
        [IMAGE],
    ),
    "sparse product": ("sparse", lambda s, d, x: matrix(s, GRID, d) @ x, [GRID.data, HEAT]),
    "sparse solution": (
        "sparse",
        lambda s, d, x: s.linalg.spsolve(matrix(s, SMALL_GRID, d).tocsc(), x),
        [SMALL_GRID.data, SMALL_HEAT],
    ),
}

SECONDS = 0.001 if args.small else 0.2
"""The most that SciPy's own method of a distribution may take, and a tenth of our most with the
gradient; slow ones get fewer points."""
LAWS = {name: shapes for name, shapes in distcont if isinstance(name, str)}
METHODS = {"pdf": "", "logpdf": "log_prob", "cdf": "cdf", "sf": "", "ppf": "icdf"}
"""Methods of distributions, and torch's names of them."""


def with_gradient(function: Callable[..., Any], ours: Any, tensors: Any) -> Callable[[], Any]:
    """The value of a row with its gradients."""

    def both() -> Any:
        with gg.GradientTape() as tape:
            tape.watch(tensors)
            value = function(ours, *tensors)
        return [value, *tape.gradient(value, tensors)]

    return both


def of_law(title: str) -> Row:
    """The row of a distribution's method, of points at its own quantiles, loc and scale."""
    name, method = title.split(".")
    law, shapes = getattr(stats, name), LAWS[name]
    q = RNG.uniform(0.01, 0.99, SIDE * SIDE)
    few = q[:100] if method == "ppf" else law.ppf(q[:100], *shapes)
    seconds = min(peers.race({"SciPy": lambda: [getattr(law, method)(few, *shapes)]}, 1).values())
    n = max(10, int(min(q.size, 100 * SECONDS / seconds)))
    points = q if method == "ppf" else np.resize(few, q.size)
    fixed = () if args.shapes else shapes
    call = lambda s, x, *p: getattr(getattr(s, name), method)(x, *fixed, *p)  # noqa: E731
    by = [np.array(float(p)) for p in (*(shapes if args.shapes else ()), 0.0, 1.0)]
    some = [gg.asarray(a) for a in (points[: min(n, 2000)], *by)]
    both = with_gradient(call, gg.scipy.stats, some)
    seconds = min(peers.race({"gpugrad": both}, 1).values())
    n = max(10, int(min(n, some[0].size * 10 * SECONDS / seconds)))
    return "stats", call, [points[:n], *by]


def distances(x: Any, a: Any) -> Any:
    """A function with one minimum, which moves with `a`."""
    return ((x - a) ** 2).sum() + ((x[1:] * x[:-1]) ** 2).sum()


AIM, START = RNG.uniform(0.5, 1.5, 20), np.zeros(20)
TALL, WIDE = RNG.standard_normal((5 * SIDE, 20)), RNG.standard_normal(5 * SIDE)
ROWS |= {
    name: ("optimize", call, arrays)
    for name, call, arrays in (
        ("minimize", lambda s, a: s.minimize(distances, START, args=(a,)).x, [AIM]),
        ("least_squares", lambda s, a: s.least_squares(lambda x: x + x**3 - a, START).x, [AIM]),
        ("root", lambda s, a: s.root(lambda x: x + x**3 - a, START).x, [AIM]),
        ("brentq", lambda s, a: s.brentq(lambda x, a: x + x**3 - a, 0.0, 9.0, (a,)), [AIM[0]]),
        ("newton", lambda s, a: s.newton(lambda x: x + x**3 - a, np.ones(SIDE**2)), [AT + 1]),
        ("lsq_linear", lambda s, a, b: s.lsq_linear(a, b).x, [TALL, WIDE]),
        ("nnls", lambda s, a, b: s.nnls(a, b)[0], [TALL, WIDE]),
    )
}

TORCH: dict[str, Callable[..., Any]] = {
    "cdist": lambda torch, x, y: torch.cdist(x, y),
    "cdist cityblock": lambda torch, x, y: torch.cdist(x, y, p=1.0),
    "stft": lambda torch, x: _torch_stft(torch, x),
    "sparse product": lambda torch, d, x: (
        torch.sparse_csr_tensor(*map(torch.as_tensor, (GRID.indptr, GRID.indices)), d, GRID.shape)
        @ x
    ),
}
"""Rows that torch has as one function."""

JAX: dict[str, Callable[..., Any]] = {
    "convolve": lambda scipy, x, h: scipy.signal.convolve(x, h, "same"),
    "fftconvolve": lambda scipy, x, h: scipy.signal.fftconvolve(x, h, "same"),
    "stft": lambda scipy, x: abs(scipy.signal.stft(x, nperseg=256)[2]),
    "map_coordinates, linear": lambda scipy, x, near: scipy.ndimage.map_coordinates(
        x, near, order=1, mode="nearest"
    ),
    "RegularGridInterpolator": lambda scipy, v, p: importlib.import_module(
        "jax.scipy.interpolate"
    ).RegularGridInterpolator((KNOTS, KNOTS), v)(p),
}
"""Rows that jax.scipy has; they are compiled."""
FIXED = {"map_coordinates, linear": [NEAR]}
"""Further arguments of these: of a constant the compiler would compute the gradient itself."""


def of_peer(table: dict[str, Callable[..., Any]], name: str) -> Callable[..., Any] | None:
    """A row of torch or jax, or None: the table's own, or a method of a distribution."""
    law, _, method = name.partition(".")
    if law not in LAWS:
        return table.get(name)
    if table is TORCH:
        kind = {"norm": "Normal", "cauchy": "Cauchy", "laplace": "Laplace"}.get(law)
        if kind is None or not METHODS[method]:
            return None
        return lambda torch, x, *p: getattr(
            getattr(torch.distributions, kind)(*p), METHODS[method]
        )(x)
    module = getattr(importlib.import_module("jax.scipy.stats"), law, None)
    call = getattr(module, method, None)
    fixed = () if args.shapes else LAWS[law]
    return call and (lambda scipy, x, *p: call(x, *fixed, *p))


def _torch_stft(torch: Any, x: Any) -> Any:
    window = (
        torch.hann_window(256, dtype=x.dtype) / 128
    )  # SciPy's scaling, and its zeros at the ends
    ends = torch.nn.functional.pad(x, (128, 128 + -x.shape[0] % 128))
    return abs(torch.stft(ends, 256, 128, window=window, center=False, return_complex=True))


def with_jax(name: str, arrays: list[np.ndarray]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The forward, and the value with its gradient, of jax, if it is installed."""
    call = of_peer(JAX, name) if peers.installed("jax") else None
    if call is None:
        return {}, {}
    import jax

    scipy = importlib.import_module("jax.scipy")
    given = [jax.numpy.asarray(a) for a in (*arrays, *FIXED.get(name, ()))]
    function = jax.jit(lambda *a: call(scipy, *a))
    slopes = jax.grad(lambda *a: function(*a).sum(), argnums=tuple(range(len(arrays))))
    both = jax.jit(lambda *a: (function(*a), *slopes(*a)))
    wait = jax.block_until_ready
    return {"jax": lambda: [wait(function(*given))]}, {"jax": lambda: list(wait(both(*given)))}


def with_torch(name: str, arrays: list[np.ndarray]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The forward, and the value with its gradient, of torch, if it is installed."""
    call = of_peer(TORCH, name) if peers.installed("torch") else None
    if call is None:
        return {}, {}
    import torch

    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]

    def forward() -> Any:
        with torch.no_grad():
            return [call(torch, *tensors)]

    def both() -> Any:
        value = call(torch, *tensors)
        return [value, *torch.autograd.grad(value.sum(), tensors)]

    return {"torch": forward}, {"torch": both}


def race(name: str, row: Row) -> bool:
    """Print the two tables of a row."""
    namespace, function, arrays = row
    theirs, ours = (importlib.import_module(f"{p}scipy.{namespace}") for p in ("", "gpugrad."))
    tensors = [gg.asarray(a) for a in arrays]

    both = with_gradient(function, ours, tensors)
    runs = {
        "gpugrad": lambda: [function(ours, *tensors)],
        "SciPy": lambda: [function(theirs, *arrays)],
    }
    value_and_gradient = {}
    for forward, both_of in (with_torch(name, arrays), with_jax(name, arrays)):
        runs |= forward
        value_and_gradient |= both_of
    peers.agree(runs, rtol=1e-5 if namespace == "optimize" else 1e-7, atol=1e-9)
    slopes = {f"both {k}": v for k, v in {"gpugrad": both, **value_and_gradient}.items()}
    medians = peers.race({**runs, **slopes}, args.rounds)
    taken = {k.removeprefix("both "): medians.pop(k) for k in slopes if k in medians}
    size = arrays[0].size
    others = dict.fromkeys(value_and_gradient, 0.9)
    most = 1.1 if namespace == "sparse" else 1.2
    good = peers.table(f"{name}, {size} elements", medians, {"SciPy": most, **others})
    taken["forward alone"] = medians["gpugrad"]
    targets = {"forward alone": 4.0, **others}
    return peers.table(f"{name}, value and gradient", taken, targets) and good


def memory_of_sparse() -> bool:
    """Print the bytes for each entry of a product's and a solution's value and gradient."""
    peak: dict[tuple[str, int], float] = {}
    for side in (SIDE // 16, SIDE // 4):
        a, b = gg.scipy.sparse.csr_array(laplacian(side)), gg.ones(side**2, dtype="float64")
        for name, f in {
            "product": lambda d, a=a, b=b: a.with_data(d) @ b,
            "cg": lambda d, a=a, b=b: gg.scipy.sparse.linalg.cg(a.with_data(d), b)[0],
        }.items():
            slope = gg.grad(lambda d, f=f: gg.sum(f(d) ** 2))
            slope(a.data)  # what is kept with the pattern
            tracemalloc.start()
            slope(a.data)
            peak[name, side] = tracemalloc.get_traced_memory()[1] / a.nnz
            tracemalloc.stop()
            print(f"  {name} of {a.nnz} entries: {peak[name, side]:.0f} bytes for each")
    few, many = (
        max(v for (_, side), v in peak.items() if side == s) for s in (SIDE // 16, SIDE // 4)
    )
    print(f"  linear in the entries: {'reached' if many < 1.5 * few else 'MISSED'}")
    return many < 1.5 * few


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


def laws() -> Iterator[str]:
    """Names of the rows of distributions, until the time is over; prints the progress."""
    names = [f"{name}.{method}" for name in LAWS for method in METHODS]
    random.Random(0).shuffle(names)  # a part of them is a sample
    start, limit = time.monotonic(), 60 * args.minutes
    for k, name in enumerate(names):
        spent = time.monotonic() - start
        if spent > limit:
            print(f"{len(names) - k} of {len(names)} rows of distributions were not run.")
            return
        left = spent / max(k, 1) * (len(names) - k)
        print(f"[{k}/{len(names)}] {name}, about {left / 60:.0f} min left", file=sys.stderr)
        yield name


def main() -> int:
    """Print the tables of all rows."""
    good = []
    for name in laws() if args.laws else args.names or ROWS:
        with peers.record_failure(name):
            good.append(race(name, of_law(name) if "." in name else ROWS[name]))
    if not args.laws and not args.names:
        good.append(memory_of_sparse())
        good.append(many_systems(200 if args.small else 10000))
    return peers.status(all(good))


if __name__ == "__main__":
    sys.exit(main())
