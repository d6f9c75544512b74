"""Log likelihood of a Gaussian process and its gradient by three parameters, against the peers.

python ci/bench/gp.py [--device cuda] [--points N] [--rounds N] [--json PATH]

4096 points in float64, 256 on a CPU. `gg.gaussian_log_likelihood` has its own gradient. The formula
with a Cholesky factor, as in torch and jax, differentiates the factor. The hand-written contestant
computes the gradient from the inverse, as textbooks do.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import peers

parser = peers.options(__doc__, rounds=10, threads=1)
parser.add_argument("--points", type=int, help="observed points (4096; 256 on a CPU)")
args = peers.parse_args(parser)

import numpy as np

import gpugrad as gg

ON_GPU = gg.device().kind == "cuda"
BIG = ON_GPU and not args.small
POINTS = args.points or (4096 if BIG else 256)


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Squared distances of points, noisy observations at them, logarithms of the parameters.

    The parameters are length scale, amplitude and noise.
    """
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (POINTS, 2))
    y = np.sin(x).sum(1) + 0.1 * rng.standard_normal(POINTS)
    return ((x[:, None] - x[None]) ** 2).sum(-1), y, np.log([0.7, 1.2, 0.3])


def with_gpugrad(by_factor: bool, traced: bool = True) -> Any:
    """Ours, by the op or by the formula."""
    squared, y, start = map(gg.asarray, data())
    eye = gg.eye(POINTS, dtype="float64")

    def likelihood(logs: gg.Tensor) -> gg.Tensor:
        length, amplitude, noise = gg.unstack(gg.exp(2 * logs))
        cov = amplitude * gg.exp(-0.5 * squared / length) + noise * eye
        if not by_factor:
            return gg.gaussian_log_likelihood(y, gg.zeros_like(y), cov)
        factor = gg.linalg.cholesky(cov)
        scaled = gg.linalg.solve_triangular(factor, y[:, None], lower=True)
        roots = gg.sum(gg.log(gg.diagonal(factor)))
        return -0.5 * gg.sum(scaled * scaled) - roots - POINTS / 2 * math.log(2 * math.pi)

    both = gg.value_and_grad(likelihood)
    both = gg.function(both) if traced else both
    return lambda: both(start)


def with_torch(by_inductor: bool = False) -> Any:
    """The formula in torch."""
    import torch

    if args.threads:
        torch.set_num_threads(args.threads)
    device = "cuda" if ON_GPU else "cpu"
    squared, y, logs = (torch.from_numpy(a).to(device) for a in data())
    eye = torch.eye(POINTS, dtype=torch.float64, device=device)
    logs.requires_grad_()

    def likelihood(logs: Any) -> Any:
        length, amplitude, noise = torch.exp(2 * logs)
        cov = amplitude * torch.exp(-0.5 * squared / length) + noise * eye
        factor = torch.linalg.cholesky(cov)
        scaled = torch.linalg.solve_triangular(factor, y[:, None], upper=False)
        roots = torch.log(torch.diagonal(factor)).sum()
        return -0.5 * (scaled * scaled).sum() - roots - POINTS / 2 * math.log(2 * math.pi)

    formula = peers.torch_compile(likelihood) if by_inductor else likelihood

    def run() -> Any:
        value = formula(logs)
        return [value, *torch.autograd.grad(value, logs)]

    return run


def with_jax() -> Any:
    """The formula in jax.jit."""
    import jax

    jax.config.update("jax_enable_x64", True)
    squared, y, start = map(jax.numpy.asarray, data())

    def likelihood(logs: Any) -> Any:
        length, amplitude, noise = jax.numpy.exp(2 * logs)
        cov = amplitude * jax.numpy.exp(-0.5 * squared / length) + noise * jax.numpy.eye(POINTS)
        factor = jax.numpy.linalg.cholesky(cov)
        scaled = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        roots = jax.numpy.log(jax.numpy.diagonal(factor)).sum()
        return -0.5 * (scaled * scaled).sum() - roots - POINTS / 2 * math.log(2 * math.pi)

    both = jax.jit(jax.value_and_grad(likelihood))
    return lambda: jax.block_until_ready(both(start))


def by_hand() -> Any:
    """Value and gradient as a user of CuPy or NumPy would write them."""
    _, lib = peers.by_hand_in(ON_GPU)
    squared, y, logs = map(lib.asarray, data())
    eye = lib.eye(POINTS)

    def run() -> Any:
        length, amplitude, noise = lib.exp(2 * logs)
        smooth = amplitude * lib.exp(-0.5 * squared / length)
        cov = smooth + noise * eye
        roots = lib.log(lib.diagonal(lib.linalg.cholesky(cov))).sum()
        inverse = lib.linalg.inv(cov)
        solved = inverse @ y
        value = -0.5 * (y @ solved) - roots - POINTS / 2 * math.log(2 * math.pi)
        by_cov = 0.5 * (solved[:, None] * solved - inverse)
        by_smooth = by_cov * smooth
        slopes = [(by_smooth * squared).sum() / length, 2 * by_smooth.sum(),
                  2 * noise * lib.trace(by_cov)]  # fmt: skip
        return value, lib.stack(slopes)

    return run


def main() -> int:
    """Print the table."""
    makers = {
        "gpugrad": lambda: with_gpugrad(by_factor=False),
        "gpugrad, eager": lambda: with_gpugrad(by_factor=False, traced=False),
        "gpugrad, by the factor": lambda: with_gpugrad(by_factor=True),
        peers.by_hand_in(ON_GPU)[0]: by_hand,
    }
    if peers.installed("torch"):
        makers["torch"] = with_torch
    if ON_GPU and peers.torch_compiles(ON_GPU):
        makers["torch.compile"] = lambda: with_torch(by_inductor=True)
    if peers.jax_runs(ON_GPU):
        makers["jax.jit"] = with_jax
    runs: dict[str, Any] = {}
    for name, make in peers.select(makers, args.only).items():
        with peers.record_failure(name):
            runs[name] = make()
    peers.agree(runs, rtol=1e-7)
    wait = gg.cuda.synchronize if ON_GPU else None
    good = peers.table(
        f"Gaussian process, {POINTS} points in float64, log likelihood and gradient",
        peers.race(runs, args.rounds, wait=wait),
        {"torch": 0.5} if ON_GPU else None,
        work=(POINTS**3 / 1e12, "TFLOP"),
        most=6e-3 if ON_GPU and POINTS == 4096 else None,
    )
    return peers.status(good)


if __name__ == "__main__":
    sys.exit(main())
