"""Training steps on a CPU, beside torch and jax: models of text, sequences, images, graphs, tables.

python ci/bench/models.py [--models NAME ...] [--small] [--threads N] [--rounds N] [--json PATH]

A model is written once (networks/), of functions that every library has under a name of its own,
and starts with the same weights. Contestants run in their own processes and take turns after a
pause, in which threads fall asleep. The losses of ten steps are compared first. The first model
also runs beside a busy process: threads that wait in loops then keep the cores from work.
"""

from __future__ import annotations

import functools
import multiprocessing
import sys
from typing import Any

from networks import MODELS, Model, libraries
from peers import installed, jax_runs, options, parse_args, status, torch_compiles

parser = options(__doc__, rounds=20)
parser.add_argument("--models", nargs="+", choices=MODELS, metavar="NAME", help="which (all)")
args = parse_args(parser)

import numpy as np
from training import compare

import gpugrad as gg

BETAS, EPSILON, DECAY = (0.9, 0.999), 1e-8, 0.01


def start(name: str) -> tuple[Model, dict[str, np.ndarray], tuple[np.ndarray, ...]]:
    """A model, its first weights and its batch."""
    model = MODELS[name](args.small)
    return model, model.weights(), model.batch(np.random.default_rng(1))


# ---- gpugrad ----------------------------------------------------------------------------


def with_gpugrad(name: str, traced: bool = True) -> Any:
    """Ours: the whole step is one `gg.function`, or eager."""
    model, arrays, batch = start(name)
    w = {name: gg.Variable(a) for name, a in arrays.items()}
    lib = libraries.of_gpugrad()
    loss = functools.partial(model.loss, lib, w)
    return _step_of(model, list(w.values()), loss, batch, traced)


def layer_with_gpugrad(name: str) -> Any:
    """The layer `gg.nn.LSTM` or `gg.nn.GRU` and the loss of its last output."""
    model, w, batch = start(name)
    layer = getattr(gg.nn, name.split()[0])(model.hidden, model.hidden)
    (cell,) = layer.cells
    cell.kernel.assign(w["kernel"][: model.hidden])
    cell.recurrent_kernel.assign(w["kernel"][model.hidden :])
    cell.bias.assign(w["bias"])

    def loss(x: gg.Tensor, y: gg.Tensor) -> gg.Tensor:
        return gg.mean((layer(x)[0][:, -1] - y) ** 2)

    return _step_of(model, layer.trainable_variables, loss, batch)


def _step_of(
    model: Model, variables: list[Any], loss_of: Any, batch: Any, traced: bool = True
) -> Any:
    optimizer: Any = gg.optim.SGD(model.rate)
    if model.by_adam:
        optimizer = gg.optim.AdamW(model.rate, weight_decay=DECAY)

    def step(*batch: gg.Tensor) -> gg.Tensor:
        with gg.GradientTape() as tape:
            loss = loss_of(*batch)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return functools.partial(gg.function(step) if traced else step, *map(gg.asarray, batch))


# ---- torch ------------------------------------------------------------------------------


def with_torch(name: str, compiled: bool) -> Any:
    """The same in torch."""
    import torch

    model, arrays, batch = start(name)
    # weights of torch.lstm are transposed
    arrays = {k: a.T.copy() if " lstm " in k else a for k, a in arrays.items()}
    w = {k: torch.nn.Parameter(torch.from_numpy(a)) for k, a in arrays.items()}
    forward: Any = functools.partial(model.loss, libraries.of_torch(), w)
    forward = torch.compile(forward) if compiled else forward
    return _torch_step_of(model, list(w.values()), forward, batch)


def layer_with_torch(name: str) -> Any:
    """The same by `torch.nn.LSTM` or `torch.nn.GRU`."""
    import torch

    model, arrays, batch = start(name)
    kind, n = name.split()[0].rstrip(","), model.hidden
    layer = getattr(torch.nn, kind)(n, n, batch_first=True)
    w = {name: torch.from_numpy(a) for name, a in arrays.items()}
    with torch.no_grad():
        layer.weight_ih_l0.copy_(w["kernel"][:n].T)
        layer.weight_hh_l0.copy_(w["kernel"][n:].T)
        layer.bias_ih_l0.copy_(w["bias"])
        layer.bias_hh_l0.zero_()
    layer.bias_hh_l0.requires_grad_(kind == "GRU")  # an LSTM would learn one bias twice

    def forward(x, y):
        return torch.mean((layer(x)[0][:, -1] - y) ** 2)

    return _torch_step_of(model, [p for p in layer.parameters() if p.requires_grad], forward, batch)


def _torch_step_of(model: Model, parameters: Any, forward: Any, arrays: Any) -> Any:
    import torch

    if args.threads:
        torch.set_num_threads(args.threads)
    optimizer: Any = torch.optim.SGD(parameters, model.rate)
    if model.by_adam:
        optimizer = torch.optim.AdamW(parameters, model.rate, weight_decay=DECAY, fused=True)
    batch = [torch.from_numpy(np.ascontiguousarray(a)) for a in arrays]

    def step():
        optimizer.zero_grad()
        loss = forward(*batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


# ---- jax --------------------------------------------------------------------------------


def with_jax(name: str) -> Any:
    """The same in jax: the whole step is one `jax.jit`."""
    import jax
    from jax import numpy as jnp

    model, arrays, batch = start(name)
    lib = libraries.of_jax()

    def adam(w, g, m, v, k):
        (b1, b2), rate = BETAS, model.rate
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        move = m / (1 - b1**k) / (jnp.sqrt(v / (1 - b2**k)) + EPSILON)
        return w * (1 - rate * DECAY) - rate * move, m, v

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def step(w, m, v, k, *batch):
        loss, g = jax.value_and_grad(lambda w: model.loss(lib, w, *batch))(w)
        if not model.by_adam:
            return loss, {n: w[n] - model.rate * g[n] for n in w}, m, v
        new = {n: adam(w[n], g[n], m[n], v[n], k) for n in w}
        return loss, *({n: a[i] for n, a in new.items()} for i in range(3))

    w = {name: jnp.asarray(a) for name, a in arrays.items()}
    zeros = [jax.tree.map(jnp.zeros_like, w) if model.by_adam else {} for _ in range(2)]
    state, batch = [w, *zeros, 0], tuple(map(jnp.asarray, batch))

    def run():
        state[3] += 1
        loss, *state[:3] = step(*state[:3], float(state[3]), *batch)
        return loss.block_until_ready()

    return run


# ---- all --------------------------------------------------------------------------------


def makers(name: str) -> dict[str, Any]:
    """The contestants."""
    kind = name.split()[0].rstrip(",")
    layers: dict[str, Any] = {}
    if kind in ("LSTM", "GRU") and installed("torch"):
        layers[f"torch.nn.{kind}"] = functools.partial(layer_with_torch, name)
    if name.endswith("layer"):
        return {"gpugrad": functools.partial(layer_with_gpugrad, name), **layers}
    contestants = {"gpugrad": functools.partial(with_gpugrad, name)}
    if name == "GPT":
        contestants["gpugrad, eager"] = functools.partial(with_gpugrad, name, traced=False)
    if name == "LSTM, scan":
        contestants["gpugrad, loop"] = functools.partial(with_gpugrad, "LSTM")
    if installed("torch"):
        contestants["torch, eager"] = functools.partial(with_torch, name, compiled=False)
    # it compiles no gradient inside of a loss, no sparse one, and long loops for minutes
    if torch_compiles(False) and name not in ("PINN", "DLRM", "n-body", "heat equation"):
        contestants["torch.compile"] = functools.partial(with_torch, name, compiled=True)
    if jax_runs(False):
        contestants["jax.jit"] = functools.partial(with_jax, name)
    return contestants | layers


def _be_busy() -> None:
    while True:
        pass


def main() -> int:
    """Print the tables."""
    chosen = args.models or list(MODELS)
    how = {"args": args, "tolerance": 1e-3, "wait": None, "work": (1.0, "step")}
    good = True
    for name in chosen:
        title = f"{name}, one training step"
        good &= compare(title, makers(name), **how, reach=dict([MODELS[name].reach]))
    busy = multiprocessing.get_context("spawn").Process(target=_be_busy, daemon=True)
    busy.start()
    title = f"{chosen[0]}, one training step beside a busy process"
    good &= compare(title, makers(chosen[0]), **how)
    busy.terminate()
    return status(good)


if __name__ == "__main__":
    sys.exit(main())
