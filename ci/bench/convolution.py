"""The convolutions of ResNet-18, forward and backward, against torch, jax and a hand-written one.

python ci/bench/convolution.py [--device cuda] [--rounds N] [--examples N] [NAME ...]

The table shows the medians of interleaved rounds and floating-point operations per second. On a GPU
the dtypes are float16 and float32 rounded to TensorFloat-32, and the peers use channels last. Our
own kernels, which run where cuDNN is not installed, do not round. On a CPU there is one example in
float32.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any

import peers

parser = peers.options(__doc__, rounds=15, threads=1)
parser.add_argument("names", nargs="*", metavar="NAME", help="of the layers to run (all)")
parser.add_argument("--examples", type=int, help="of a batch (128; 1 on a CPU)")
args = peers.parse_args(parser)

import numpy as np

import gpugrad as gg

ON_GPU = gg.device().kind == "cuda"
BIG = ON_GPU and not args.small
EXAMPLES = args.examples or (128 if BIG else 1)
DTYPES = ("float16", "float32") if ON_GPU else ("float32",)
REACH = {"torch": 1 / 0.95} if ON_GPU else None

LAYERS = {
    "first": (3, 64, 224, 7, 2), "stage 1": (64, 64, 56, 3, 1), "to stage 2": (64, 128, 56, 3, 2),
    "stage 2": (128, 128, 28, 3, 1), "to stage 3": (128, 256, 28, 3, 2),
    "stage 3": (256, 256, 14, 3, 1), "to stage 4": (256, 512, 14, 3, 2),
    "stage 4": (512, 512, 7, 3, 1), "shortcut 2": (64, 128, 56, 1, 2),
}  # fmt: skip
"""Channels in, channels out, side, side of the kernel, stride; He et al. 2016, table 1."""

Function = Callable[[], Any]


def gpugrad(
    x: Any, w: Any, g: Any, dtype: str, window: Any
) -> dict[str, tuple[Function, Function]]:
    gg.set_matmul_precision("high")
    variables = [gg.Variable(gg.asarray(a, dtype=dtype)) for a in (x, w)]
    upstream = gg.asarray(g, dtype=dtype)

    def forward() -> Any:
        return gg.nn.conv2d(*variables, **window)

    def both() -> Any:
        with gg.GradientTape() as tape:
            y = forward()
        return [y, *tape.gradient(y, variables, output_gradients=upstream)]

    return {"gpugrad": (forward, both)}


def torch(x: Any, w: Any, g: Any, dtype: str, window: Any) -> dict[str, tuple[Function, Function]]:
    import torch as t

    t.backends.cudnn.allow_tf32 = t.backends.cudnn.benchmark = True
    layout = {"memory_format": t.channels_last} if ON_GPU else {}
    device = "cuda" if ON_GPU else "cpu"
    put = lambda a: t.from_numpy(a).to(device, getattr(t, dtype), **layout)  # noqa: E731
    leaves, upstream = [put(a).requires_grad_() for a in (x, w)], put(g)

    eager = functools.partial(t.nn.functional.conv2d, **window)

    def by(conv2d: Callable[..., Any]) -> tuple[Function, Function]:
        def forward() -> Any:
            with t.no_grad():
                return conv2d(*leaves)

        def both() -> Any:
            y = conv2d(*leaves)
            return [y, *t.autograd.grad(y, leaves, upstream)]

        return forward, both

    runs = {"torch": by(eager)}
    if ON_GPU and peers.torch_compiles(ON_GPU):
        runs["torch.compile"] = by(peers.torch_compile(eager))
    return runs


def jax(x: Any, w: Any, g: Any, dtype: str, window: Any) -> dict[str, tuple[Function, Function]]:
    import jax as j

    put = lambda a, *axes: j.numpy.asarray(a.transpose(axes), dtype)  # noqa: E731
    leaves, upstream = [put(x, 0, 2, 3, 1), put(w, 2, 3, 1, 0)], put(g, 0, 2, 3, 1)
    step, edge = (window["stride"],) * 2, ((window["padding"],) * 2,) * 2

    @j.jit
    def run(x: Any, w: Any) -> Any:  # on a GPU jax rounds float32 to TF32 by default
        names = ("NHWC", "HWIO", "NHWC")
        return j.lax.conv_general_dilated(x, w, step, edge, dimension_numbers=names)

    @j.jit
    def both(leaves: Any, g: Any) -> Any:
        y, pull = j.vjp(run, *leaves)
        return [y, *pull(g)]

    return {
        "jax.jit": (
            lambda: j.block_until_ready(run(*leaves)),
            lambda: j.block_until_ready(both(leaves, upstream)),
        )
    }


def by_hand(
    x: Any, w: Any, g: Any, dtype: str, window: Any
) -> dict[str, tuple[Function, Function]]:
    """A matrix product with all windows of the image."""
    name, lib = peers.by_hand_in(ON_GPU)
    x, w, g = (lib.asarray(a, dtype) for a in (x, w, g))
    k, stride, edge = w.shape[-1], window["stride"], window["padding"]
    edges = ((0, 0), (0, 0), (edge, edge), (edge, edge))
    n, _, rows, columns = g.shape

    def windows() -> Any:
        padded = lib.pad(x, edges)  # CuPy's sliding_window_view would wait for the GPU
        *outer, down, across = padded.strides
        shape = (n, x.shape[1], rows, columns, k, k)
        strides = (*outer, down * stride, across * stride, down, across)
        return padded, lib.lib.stride_tricks.as_strided(padded, shape, strides)

    def product(patches: Any) -> Any:
        return lib.tensordot(patches, w, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)

    def both() -> Any:
        padded, patches = windows()
        gw = lib.tensordot(g, patches, ((0, 2, 3), (0, 2, 3)))
        by_window = lib.tensordot(g, w, (1, 0)).transpose(0, 3, 1, 2, 4, 5)
        gx = lib.zeros_like(padded)
        for i, j in itertools.product(range(k), repeat=2):
            at = slice(i, i + stride * rows, stride), slice(j, j + stride * columns, stride)
            gx[:, :, *at] += by_window[..., i, j]
        inside = slice(edge, padded.shape[-1] - edge)
        return [product(patches), gx[:, :, inside, inside], gw]

    return {name: (lambda: product(windows()[1]), both)}


def _results(runs: dict[str, tuple[Function, Function]]) -> dict[str, Function]:
    """Functions that return the result and the gradients, in our layout."""
    runs = {who: both for who, (_, both) in runs.items()}
    if theirs := runs.get("jax.jit"):
        axes = (0, 3, 1, 2), (0, 3, 1, 2), (3, 2, 0, 1)
        runs["jax.jit"] = lambda: [
            a.transpose(order) for a, order in zip(theirs(), axes, strict=True)
        ]
    return runs


def main() -> int:
    """Print the table."""
    good = True
    if unknown := set(args.names) - set(LAYERS):
        parser.error(f"no layers {sorted(unknown)}; there are {list(LAYERS)}")
    makers = peers.with_peers([gpugrad, by_hand], torch, jax, ON_GPU)
    rng = np.random.default_rng(0)
    for name in args.names or LAYERS:
        c, filters, side, kernel, stride = LAYERS[name]
        window, out_side = {"stride": stride, "padding": kernel // 2}, -(-side // stride)
        x = rng.standard_normal((EXAMPLES, c, side, side), np.float32)
        w = rng.standard_normal((filters, c, kernel, kernel), np.float32)
        g = rng.standard_normal((EXAMPLES, filters, out_side, out_side), np.float32)
        work = 2.0 * g.size * c * kernel * kernel
        for dtype in DTYPES:
            runs = peers.select(peers.run_makers(makers, x, w, g, dtype, window), args.only)
            rtol = 2e-2 if ON_GPU else 1e-4
            peers.agree(_results(runs), rtol, atol=rtol * g[:, 0].size ** 0.5)
            for what, at in (("forward", 0), ("forward and backward", 1)):
                medians = peers.race({who: both[at] for who, both in runs.items()}, args.rounds,
                               wait=gg.cuda.synchronize if ON_GPU else None)  # fmt: skip
                rounded = " as TF32" if ON_GPU and dtype == "float32" else ""
                title = f"{name} of ResNet-18, {EXAMPLES} examples, {dtype}{rounded}, {what}"
                amount = work * (3 if at else 1) / 1e12, "TFLOP"
                good &= peers.table(title, medians, REACH, work=amount)
    return peers.status(good)


if __name__ == "__main__":
    sys.exit(main())
