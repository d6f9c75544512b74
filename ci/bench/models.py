"""Training steps on a CPU: a small GPT, a ResNet on 8 x 8 images, an LSTM by hand (a loop or a
`scan`), layers LSTM and GRU, a VAE and a PINN.

python ci/bench/models.py [--models NAME ...] [--small] [--threads N] [--rounds N] [--json PATH]

Each model is written once, of functions that every library has under a name of its own, and starts
with the same weights. Contestants run in their own processes and take turns after a pause, in which
threads fall asleep. The losses of ten steps are compared first. The first model also runs beside a
busy process: threads that wait in loops then keep the cores from work.
"""

from __future__ import annotations

import functools
import math
import multiprocessing
import sys
from collections.abc import Callable
from typing import Any

from peers import installed, jax_runs, options, parse_args, status, torch_compiles

parser = options(__doc__, rounds=20)
parser.add_argument("--models", nargs="+", help="which of them (all)")
args = parse_args(parser)

import numpy as np
from training import compare

import gpugrad as gg

LAYERS, WIDTH, HEADS, LENGTH, WORDS, BATCH = 4, 128, 4, 64, 96, 32
CHANNELS, HIDDEN, STEPS = (16, 32, 64), 64, 50
if args.small:
    LAYERS, WIDTH, LENGTH, BATCH, CHANNELS, HIDDEN, STEPS = 1, 16, 8, 4, (16,), 8, 3
PIXELS, LATENT, POINTS = 784, 16, 1024
if args.small:
    PIXELS, LATENT, POINTS = 20, 3, 16
RATE = {"GPT": 1e-3, "ResNet": 0.05}
RATE |= {"LSTM": 0.5, "LSTM, scan": 0.5, "GRU": 0.5, "VAE": 1e-3, "PINN": 1e-3}
# targets on two cores: the largest ratios of our time to a peer's
REACH = {"GPT": {"torch, eager": 0.75}, "VAE": {"torch, eager": 0.5}, "PINN": {"jax.jit": 1.5}}
REACH |= {"ResNet": {"torch, eager": 0.9}, "GRU layer": {"torch.nn.GRU": 0.5}}
REACH |= {name: {"torch.nn.LSTM": 1.0} for name in ("LSTM", "LSTM, scan")}
REACH |= {"LSTM layer": {"torch.nn.LSTM": 0.9}}
ADAM = (0.9, 0.999, 1e-8, 0.01)
BY_ADAM = ("GPT", "VAE", "PINN")

Arrays = dict[str, Any]

# ---- the models -------------------------------------------------------------------------


def gpt(lib: Any, w: Arrays, tokens: Any, following: Any) -> Any:
    """The loss of predicting the next token."""
    x = w["tokens"][tokens] + w["places"]
    for k in range(LAYERS):
        y = lib.norm(x, w[f"{k} norm"]) @ w[f"{k} qkv"]
        y = lib.permute(lib.reshape(y, (BATCH, LENGTH, 3, HEADS, -1)), (2, 0, 3, 1, 4))
        y = lib.permute(lib.attention(y[0], y[1], y[2]), (0, 2, 1, 3))
        x = x + lib.reshape(y, (BATCH, LENGTH, WIDTH)) @ w[f"{k} out"]
        y = lib.gelu(lib.norm(x, w[f"{k} norm 2"]) @ w[f"{k} up"] + w[f"{k} bias"])
        x = x + y @ w[f"{k} down"]
    scores = lib.norm(x, w["norm"]) @ w["last"]
    return lib.cross_entropy(lib.reshape(scores, (-1, WORDS)), lib.reshape(following, (-1,)))


def resnet(lib: Any, w: Arrays, images: Any, labels: Any) -> Any:
    """The loss of a classifier with two residual convolutions a stage."""

    def layer(x: Any, name: str, stride: int = 1) -> Any:
        return lib.batch_norm(lib.conv(x, w[name], stride), w[f"{name} norm"])

    x = lib.relu(layer(images, "first"))
    for k in range(len(CHANNELS)):
        y = lib.relu(layer(x, f"{k} a", 1 + (k > 0)))
        y = layer(y, f"{k} b")
        x = lib.relu(y + (layer(x, f"{k} c", 2) if k else x))
    return lib.cross_entropy(lib.mean(x, (2, 3)) @ w["last"], labels)


def lstm(lib: Any, w: Arrays, x: Any, y: Any) -> Any:
    """The squared error of the last state, from a loop over the steps."""
    state = (x[:, 0] * 0,) * 2
    for k in range(STEPS):
        state = lstm_cell(lib, w, state, x[:, k])
    return lib.mean((state[0] - y) ** 2, (0, 1))


def lstm_scan(lib: Any, w: Arrays, x: Any, y: Any) -> Any:
    """The same by `scan`; torch has none, and runs the loop."""
    state = (x[:, 0] * 0,) * 2
    h, _ = lib.scan(functools.partial(lstm_cell, lib, w), state, lib.permute(x, (1, 0, 2)))
    return lib.mean((h - y) ** 2, (0, 1))


def lstm_cell(lib: Any, w: Arrays, state: Any, x: Any) -> Any:
    """The next output and cell state."""
    h, c = state
    z = lib.concat([x, h]) @ w["kernel"] + w["bias"]
    i, f, g, o = (z[:, k * HIDDEN : (k + 1) * HIDDEN] for k in range(4))
    c = lib.sigmoid(f) * c + lib.sigmoid(i) * lib.tanh(g)
    return lib.sigmoid(o) * lib.tanh(c), c


def vae(lib: Any, w: Arrays, x: Any, noise: Any) -> Any:
    """The negative evidence lower bound of a variational autoencoder with two hidden layers."""
    y = lib.relu(x @ w["in"] + w["in bias"]) @ w["code"] + w["code bias"]
    mean, log_variance = y[:, :LATENT], y[:, LATENT:]
    code = mean + noise * lib.exp(log_variance * 0.5)
    y = lib.relu(code @ w["hidden"] + w["hidden bias"]) @ w["out"] + w["out bias"]
    errors = lib.softplus(y) - y * x  # the cross entropy of pixels that are 1 with this logit
    divergence = mean * mean + lib.exp(log_variance) - log_variance - 1
    return lib.mean(errors, (0, 1)) + lib.mean(divergence, (0, 1)) * (LATENT / 2 / PIXELS)


def pinn(lib: Any, w: Arrays, x: Any, f: Any) -> Any:
    """How far a small network is from u'' = f with u = 0 at the ends: mean of squares."""

    def u(x: Any) -> Any:
        y = lib.tanh(x @ w["in"] + w["in bias"])
        y = lib.tanh(y @ w["hidden"] + w["hidden bias"])
        return y @ w["out"] + w["out bias"]

    second = lib.derivative(lambda x: lib.derivative(u, x), x)
    return lib.mean((second - f) ** 2, (0, 1)) + lib.mean(u(x[:2]) ** 2, (0, 1))


MODELS: dict[str, Callable[..., Any]] = {
    "GPT": gpt,
    "ResNet": resnet,
    "LSTM": lstm,
    "LSTM, scan": lstm_scan,
    "LSTM layer": lstm,  # by classes of the libraries
    "GRU layer": lstm,
    "VAE": vae,
    "PINN": pinn,
}


def weights(model: str) -> Arrays:
    """The initial weights."""
    rng, shapes = np.random.default_rng(0), dict[str, tuple[int, ...]]()
    if model == "GPT":
        shapes = {"tokens": (WORDS, WIDTH), "places": (LENGTH, WIDTH), "last": (WIDTH, WORDS)}
        for k in range(LAYERS):
            shapes |= {f"{k} qkv": (WIDTH, 3 * WIDTH), f"{k} out": (WIDTH, WIDTH)}
            shapes |= {f"{k} up": (WIDTH, 4 * WIDTH), f"{k} down": (4 * WIDTH, WIDTH)}
            shapes |= {f"{k} norm": (2, WIDTH), f"{k} norm 2": (2, WIDTH)}
            shapes[f"{k} bias"] = (4 * WIDTH,)
        shapes["norm"] = (2, WIDTH)
    elif model == "ResNet":
        shapes = {"first": (CHANNELS[0], 1, 3, 3), "last": (CHANNELS[-1], 10)}
        for k, n in enumerate(CHANNELS):
            before = CHANNELS[max(k - 1, 0)]
            shapes |= {f"{k} a": (n, before, 3, 3), f"{k} b": (n, n, 3, 3)}
            shapes |= {f"{k} c": (n, before, 1, 1)} if k else {}
        shapes |= {f"{name} norm": (2, s[0]) for name, s in shapes.items() if len(s) == 4}
    elif model[:4] in ("LSTM", "GRU"):
        gates = 3 if model == "GRU" else 4
        shapes = {"kernel": (2 * HIDDEN, gates * HIDDEN), "bias": (gates * HIDDEN,)}
    else:
        sizes = {"in": (1, HIDDEN), "hidden": (HIDDEN, HIDDEN), "out": (HIDDEN, 1)}
        if model == "VAE":
            sizes = {"in": (PIXELS, 4 * HIDDEN), "code": (4 * HIDDEN, 2 * LATENT)}
            sizes |= {"hidden": (LATENT, 4 * HIDDEN), "out": (4 * HIDDEN, PIXELS)}
        shapes = {k: s for n, s in sizes.items() for k, s in ((n, s), (f"{n} bias", s[1:]))}

    def initial(name: str, shape: tuple[int, ...]) -> np.ndarray:
        if "norm" in name:
            return np.stack([np.ones(shape[1:]), np.zeros(shape[1:])])
        if "bias" in name:
            return np.zeros(shape)
        n = math.prod(shape[1:]) if len(shape) == 4 else shape[0]
        return rng.standard_normal(shape) * (0.02 if model == "GPT" else (2 / n) ** 0.5)

    return {name: initial(name, shape).astype(np.float32) for name, shape in shapes.items()}


def batch(model: str) -> tuple[np.ndarray, np.ndarray]:
    """The arguments of a step."""
    rng = np.random.default_rng(1)
    if model == "GPT":
        text = np.resize(rng.integers(0, WORDS, 3 * LENGTH // 4), BATCH * LENGTH + 1)
        return tuple(text[i : i + BATCH * LENGTH].reshape(BATCH, LENGTH) for i in (0, 1))
    if model == "ResNet":
        return rng.standard_normal((2 * BATCH, 1, 8, 8), np.float32), rng.integers(0, 10, 2 * BATCH)
    if model == "VAE":
        pixels = rng.uniform(size=(4 * BATCH, PIXELS)).round()
        return pixels.astype("f4"), rng.standard_normal((4 * BATCH, LATENT), np.float32)
    if model == "PINN":
        x = np.linspace(0, 1, POINTS, dtype="f4")[:, None]
        x[[1, -1]] = x[[-1, 1]]  # the ends first
        return x, np.sin(np.pi * x)
    x, y = (rng.standard_normal(s, np.float32) for s in ((BATCH, STEPS, HIDDEN), (BATCH, HIDDEN)))
    return x, y * np.float32(0.1)


# ---- gpugrad ----------------------------------------------------------------------------


class Ours:
    """The functions of the models in gpugrad."""

    reshape, permute, mean = staticmethod(gg.reshape), staticmethod(gg.permute_dims), gg.mean
    relu, sigmoid, tanh, exp, softplus = gg.nn.relu, gg.sigmoid, gg.tanh, gg.exp, gg.nn.softplus
    cross_entropy = staticmethod(gg.nn.cross_entropy)

    @staticmethod
    def norm(x: Any, w: Any) -> Any:
        return gg.nn.layer_norm(x, w[0], w[1])

    @staticmethod
    def batch_norm(x: Any, w: Any) -> Any:
        return gg.nn.batch_norm(x, None, None, w[0], w[1], training=True)[0]

    @staticmethod
    def conv(x: Any, w: Any, stride: int) -> Any:
        return gg.nn.conv2d(x, w, stride=stride, padding=w.shape[-1] // 2)

    @staticmethod
    def attention(*qkv: Any) -> Any:
        return gg.nn.scaled_dot_product_attention(*qkv, is_causal=True)

    @staticmethod
    def gelu(x: Any) -> Any:
        return gg.nn.gelu(x, "tanh")

    @staticmethod
    def concat(arrays: list[Any]) -> Any:
        return gg.concat(arrays, axis=1)

    @staticmethod
    def derivative(f: Callable[..., Any], x: Any) -> Any:
        return gg.grad(lambda x: gg.sum(f(x)))(x)

    @staticmethod
    def scan(f: Callable[..., Any], state: Any, xs: Any) -> Any:
        return gg.scan(lambda state, x: (f(state, x), None), state, xs)[0]


def with_gpugrad(model: str) -> Any:
    """Ours: the whole step is one `gg.function`."""
    w = {name: gg.Variable(a) for name, a in weights(model).items()}
    optimizer: Any = gg.optim.SGD(RATE[model])
    if model in BY_ADAM:
        optimizer = gg.optim.AdamW(RATE[model], weight_decay=ADAM[3])
    variables = list(w.values())

    @gg.function
    def step(x: gg.Tensor, y: gg.Tensor) -> gg.Tensor:
        with gg.GradientTape() as tape:
            loss = MODELS[model](Ours, w, x, y)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return functools.partial(step, *map(gg.asarray, batch(model)))


def layer_with_gpugrad(kind: str) -> Any:
    """The layer `gg.nn.LSTM` or `gg.nn.GRU` and the loss of its last output."""
    layer, w = getattr(gg.nn, kind)(HIDDEN, HIDDEN), weights(kind)
    (cell,) = layer.cells
    cell.kernel.assign(w["kernel"][:HIDDEN])
    cell.recurrent_kernel.assign(w["kernel"][HIDDEN:])
    cell.bias.assign(w["bias"])
    optimizer, variables = gg.optim.SGD(RATE[kind]), layer.trainable_variables

    @gg.function
    def step(x: gg.Tensor, y: gg.Tensor) -> gg.Tensor:
        with gg.GradientTape() as tape:
            outputs, _ = layer(x)
            loss = gg.mean((outputs[:, -1] - y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return functools.partial(step, *map(gg.asarray, batch(kind)))


# ---- torch ------------------------------------------------------------------------------


def with_torch(model: str, compiled: bool) -> Any:
    """The same in torch."""
    import torch
    from torch.nn import functional as F

    if args.threads:
        torch.set_num_threads(args.threads)

    class Torch:
        reshape, permute, mean = torch.reshape, torch.permute, torch.mean
        relu, sigmoid, tanh, exp = torch.relu, torch.sigmoid, torch.tanh, torch.exp
        softplus = staticmethod(F.softplus)
        cross_entropy = staticmethod(F.cross_entropy)
        attention = staticmethod(functools.partial(F.scaled_dot_product_attention, is_causal=True))
        gelu = staticmethod(functools.partial(F.gelu, approximate="tanh"))
        concat = staticmethod(functools.partial(torch.cat, dim=1))

        @staticmethod
        def norm(x, w):
            return F.layer_norm(x, x.shape[-1:], w[0], w[1])

        @staticmethod
        def batch_norm(x, w):
            return F.batch_norm(x, None, None, w[0], w[1], training=True)

        @staticmethod
        def conv(x, w, stride):
            return F.conv2d(x, w, stride=stride, padding=w.shape[-1] // 2)

        @staticmethod
        def derivative(f, x):
            x = x if x.requires_grad else x.detach().requires_grad_()
            return torch.autograd.grad(f(x).sum(), x, create_graph=True)[0]

        @staticmethod
        def scan(f, state, xs):
            return functools.reduce(f, xs, state)

    w = {name: torch.nn.Parameter(torch.from_numpy(a)) for name, a in weights(model).items()}
    optimizer: Any = torch.optim.SGD(w.values(), RATE[model])
    if model in BY_ADAM:
        optimizer = torch.optim.AdamW(w.values(), RATE[model], weight_decay=ADAM[3], fused=True)
    forward: Any = functools.partial(MODELS[model], Torch)
    forward = torch.compile(forward) if compiled else forward
    x, y = map(torch.from_numpy, batch(model))

    def step():
        optimizer.zero_grad()
        loss = forward(w, x, y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def layer_with_torch(kind: str) -> Any:
    """The same by `torch.nn.LSTM` or `torch.nn.GRU`."""
    import torch

    if args.threads:
        torch.set_num_threads(args.threads)
    layer = getattr(torch.nn, kind)(HIDDEN, HIDDEN, batch_first=True)
    w = {name: torch.from_numpy(a) for name, a in weights(kind).items()}
    with torch.no_grad():
        layer.weight_ih_l0.copy_(w["kernel"][:HIDDEN].T)
        layer.weight_hh_l0.copy_(w["kernel"][HIDDEN:].T)
        layer.bias_ih_l0.copy_(w["bias"])
        layer.bias_hh_l0.zero_()
    layer.bias_hh_l0.requires_grad_(kind == "GRU")  # an LSTM would learn one bias twice
    optimizer = torch.optim.SGD([p for p in layer.parameters() if p.requires_grad], RATE[kind])
    x, y = map(torch.from_numpy, batch(kind))

    def step():
        optimizer.zero_grad()
        outputs, _ = layer(x)
        loss = torch.mean((outputs[:, -1] - y) ** 2)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


# ---- jax --------------------------------------------------------------------------------


def with_jax(model: str) -> Any:
    """The same in jax: the whole step is one `jax.jit`."""
    import jax
    from jax import numpy as jnp

    class Jax:
        reshape, permute, mean = staticmethod(jnp.reshape), staticmethod(jnp.transpose), jnp.mean
        relu, sigmoid, tanh = staticmethod(jax.nn.relu), staticmethod(jax.nn.sigmoid), jnp.tanh
        exp, softplus = jnp.exp, staticmethod(jax.nn.softplus)
        gelu = staticmethod(jax.nn.gelu)  # by tanh, unless told otherwise
        concat = staticmethod(functools.partial(jnp.concatenate, axis=1))

        @staticmethod
        def _standardized(x, w, axes, shape):
            mean = jnp.mean(x, axes, keepdims=True)
            y = (x - mean) * jax.lax.rsqrt(jnp.var(x, axes, keepdims=True) + 1e-5)
            return y * w[0].reshape(shape) + w[1].reshape(shape)

        @staticmethod
        def norm(x, w):
            return Jax._standardized(x, w, -1, -1)

        @staticmethod
        def batch_norm(x, w):
            return Jax._standardized(x, w, (0, 2, 3), (1, -1, 1, 1))

        @staticmethod
        def conv(x, w, stride):
            return jax.lax.conv_general_dilated(
                x, w, (stride, stride), [(w.shape[-1] // 2,) * 2] * 2
            )

        @staticmethod
        def attention(q, k, v):
            scores = q @ jnp.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
            kept = jnp.tril(jnp.ones(scores.shape[-2:], bool))
            return jax.nn.softmax(jnp.where(kept, scores, -jnp.inf)) @ v

        @staticmethod
        def cross_entropy(scores, labels):
            rows = jax.nn.log_softmax(scores)
            return -jnp.mean(jnp.take_along_axis(rows, labels[:, None], 1))

        @staticmethod
        def derivative(f, x):
            return jax.grad(lambda x: f(x).sum())(x)

        @staticmethod
        def scan(f, state, xs):
            return jax.lax.scan(lambda state, x: (f(state, x), None), state, xs)[0]

    def adam(w, g, m, v, k):
        b1, b2, eps, decay = ADAM
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        move = m / (1 - b1**k) / (jnp.sqrt(v / (1 - b2**k)) + eps)
        return w * (1 - RATE[model] * decay) - RATE[model] * move, m, v

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def step(w, m, v, k, x, y):
        loss, g = jax.value_and_grad(lambda w: MODELS[model](Jax, w, x, y))(w)
        if model not in BY_ADAM:
            return loss, {n: w[n] - RATE[model] * g[n] for n in w}, m, v
        new = {n: adam(w[n], g[n], m[n], v[n], k) for n in w}
        return loss, *({n: a[i] for n, a in new.items()} for i in range(3))

    w = {name: jnp.asarray(a) for name, a in weights(model).items()}
    x, y = map(jnp.asarray, batch(model))
    state = [w, jax.tree.map(jnp.zeros_like, w), jax.tree.map(jnp.zeros_like, w), 0]

    def run():
        state[3] += 1
        loss, *state[:3] = step(*state[:3], float(state[3]), x, y)
        return loss.block_until_ready()

    return run


# ---- all --------------------------------------------------------------------------------


def makers(model: str) -> dict[str, Any]:
    """The contestants."""
    kind = model.split()[0].rstrip(",")
    layers: dict[str, Any] = {}
    if kind in ("LSTM", "GRU") and installed("torch"):
        layers[f"torch.nn.{kind}"] = functools.partial(layer_with_torch, kind)
    if model.endswith("layer"):
        return {"gpugrad": functools.partial(layer_with_gpugrad, kind), **layers}
    contestants = {"gpugrad": functools.partial(with_gpugrad, model)}
    if model == "LSTM, scan":
        contestants["gpugrad, loop"] = functools.partial(with_gpugrad, "LSTM")
    if installed("torch"):
        contestants["torch, eager"] = functools.partial(with_torch, model, compiled=False)
    if torch_compiles(False) and model != "PINN":  # it compiles no gradient inside of a loss
        contestants["torch.compile"] = functools.partial(with_torch, model, compiled=True)
    if jax_runs(False):
        contestants["jax.jit"] = functools.partial(with_jax, model)
    return contestants | layers


def _be_busy() -> None:
    while True:
        pass


def main() -> int:
    """Print the tables."""
    chosen = args.models or list(MODELS)
    how = {"args": args, "tolerance": 1e-3, "wait": None, "work": (1.0, "step")}
    good = True
    for model in chosen:
        title = f"{model}, one training step"
        good &= compare(title, makers(model), **how, reach=REACH[model])
    busy = multiprocessing.get_context("spawn").Process(target=_be_busy, daemon=True)
    busy.start()
    title = f"{chosen[0]}, one training step beside a busy process"
    good &= compare(title, makers(chosen[0]), **how)
    busy.terminate()
    return status(good)


if __name__ == "__main__":
    sys.exit(main())
