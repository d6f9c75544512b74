"""One Adam step of an MLP 784-512-256-10 at batch 128, against the peers.

python ci/bench/mlp.py [--device cuda] [--threads N] [--rounds N] [--json PATH]

Every contestant runs in its own process, with its library's default threads, and they take turns:
see `race_apart`.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Sequence
from typing import Any

import peers

args = peers.parse_args(peers.options(__doc__, rounds=60))

import numpy as np

import gpugrad as gg

ON_GPU = gg.device().kind == "cuda"
SIZES, BATCH, RATE = (784, 512, 256, 10), 128, 1e-3


def data(sizes=SIZES):
    """A batch and its labels."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((BATCH, sizes[0])).astype(np.float32)
    return x, rng.integers(0, sizes[-1], BATCH)


def weights():
    """Kernel and bias of each layer."""
    rng = np.random.default_rng(1)
    pairs = itertools.pairwise(SIZES)
    return [(rng.normal(0, 0.05, p).astype(np.float32), np.zeros(p[1], np.float32)) for p in pairs]


def with_gpugrad(traced: bool):
    """gpugrad's step, eager or as one `gg.function`."""
    model = gg.nn.Sequential(
        gg.nn.Dense(784, 512, activation=gg.relu),
        gg.nn.Dense(512, 256, activation=gg.relu),
        gg.nn.Dense(256, 10),
    )
    optimizer = gg.optim.Adam(learning_rate=RATE)
    variables = model.trainable_variables

    def step(x, labels):
        with gg.GradientTape() as tape:
            loss = gg.mean(gg.sparse_softmax_cross_entropy(model(x), labels))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return functools.partial(gg.function(step) if traced else step, *map(gg.asarray, data()))


def with_torch(
    compiled: bool = False,
    sizes: Sequence[int] = SIZES,
    device: str = "cuda" if ON_GPU else "cpu",
    **options: Any,
):
    """Torch's modules, with its Adam; `compiled` keeps the passes as CUDA graphs."""
    import torch

    if args.threads:
        torch.set_num_threads(args.threads)
    layers = []
    for i, o in itertools.pairwise(sizes):
        layers += [torch.nn.Linear(i, o), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers[:-1]).to(device)
    forward = torch.compile(net, mode="reduce-overhead") if compiled else net
    adam = torch.optim.Adam(net.parameters(), lr=RATE, **options)
    x, labels = (torch.from_numpy(a).to(device) for a in data(sizes))

    def step():
        adam.zero_grad()
        loss = torch.nn.functional.cross_entropy(forward(x), labels)
        loss.backward()
        adam.step()
        return loss.detach()

    return step


def with_jax():
    """Adam's formulas in jax.jit, which may reuse the memory of its arguments."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_default_matmul_precision", "float32")  # on a GPU it would round to TF32

    def loss_of(params, x, labels):
        for k, (w, b) in enumerate(params):
            x = x @ w + b
            x = jax.nn.relu(x) if k + 1 < len(params) else x
        picked = jnp.take_along_axis(x, labels[:, None], 1)[:, 0]
        return jnp.mean(jax.nn.logsumexp(x, axis=1) - picked)

    @functools.partial(jax.jit, donate_argnums=(0,))
    def step(state, x, labels):
        params, m, v, t = state
        loss, g = jax.value_and_grad(loss_of)(params, x, labels)
        t += 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        rate, root = RATE / (1 - 0.9**t), jnp.sqrt(1 - 0.999**t)
        params = jax.tree.map(
            lambda p, m, v: p - rate * m / (jnp.sqrt(v) / root + 1e-8), params, m, v
        )
        return (params, m, v, t), loss

    params = jax.tree.map(jnp.asarray, weights())
    zeros = functools.partial(jax.tree.map, jnp.zeros_like)
    state = [(params, zeros(params), zeros(params), jnp.float32(0))]
    x, labels = map(jnp.asarray, data())

    def run():
        state[0], loss = step(state[0], x, labels)
        return jax.block_until_ready((state, loss))[1]

    return run


def with_tensorflow():
    """Variables, the tape and Keras's Adam in one tf.function."""
    import tensorflow as tf

    layers = [tuple(map(tf.Variable, pair)) for pair in weights()]
    variables = [v for pair in layers for v in pair]
    adam = tf.keras.optimizers.Adam(RATE)
    adam.build(variables)
    x, labels = map(tf.constant, data())

    @tf.function
    def step(x, labels):
        with tf.GradientTape() as tape:
            for k, (w, b) in enumerate(layers):
                x = x @ w + b
                x = tf.nn.relu(x) if k + 1 < len(layers) else x
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)
            )
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return functools.partial(step, x, labels)


def adam(t: int, params: Any, grads: Any, m: Any, v: Any, lib: Any = np) -> None:
    """Adam's formulas, in place."""
    for p, g, m_, v_ in zip(params, grads, m, v, strict=True):
        m_ *= 0.9
        m_ += 0.1 * g
        v_ *= 0.999
        v_ += 0.001 * g * g
        p -= RATE / (1 - 0.9**t) * m_ / (lib.sqrt(v_ / (1 - 0.999**t)) + 1e-8)


def with_autograd():
    """HIPS autograd, and Adam written out in NumPy."""
    import autograd
    import autograd.numpy as anp

    x, labels = data()
    params = [a for pair in weights() for a in pair]
    m, v = ([np.zeros_like(p) for p in params] for _ in range(2))
    steps = itertools.count(1)

    def loss_of(params):
        y = x
        for k in range(0, len(params), 2):
            y = y @ params[k] + params[k + 1]
            y = anp.maximum(y, 0) if k + 2 < len(params) else y
        y = y - anp.max(y, axis=1, keepdims=True)
        picked = y[anp.arange(BATCH), labels]
        return anp.mean(anp.log(anp.sum(anp.exp(y), axis=1)) - picked)

    both = autograd.value_and_grad(loss_of)

    def step():
        loss, grads = both(params)
        adam(next(steps), params, grads, m, v)
        return loss

    return step


def by_hand():
    """Forward, backward and Adam as a user of CuPy or NumPy would write them."""
    _, lib = peers.by_hand_in(ON_GPU)
    x, labels = map(lib.asarray, data())
    layers = [tuple(map(lib.asarray, pair)) for pair in weights()]
    params = [a for pair in layers for a in pair]
    m, v = ([lib.zeros_like(p) for p in params] for _ in range(2))
    rows, steps = lib.arange(BATCH), itertools.count(1)

    def step():
        inputs, y = [], x
        for k, (w, b) in enumerate(layers):
            inputs.append(y)
            y = y @ w + b
            y = lib.maximum(y, 0) if k + 1 < len(layers) else y
        y = y - y.max(1, keepdims=True)
        e = lib.exp(y)
        total = e.sum(1)
        loss = (lib.log(total) - y[rows, labels]).mean()
        g = e / total[:, None]
        g[rows, labels] -= 1
        g /= BATCH
        grads = []
        for k in reversed(range(len(layers))):
            grads = [inputs[k].T @ g, g.sum(0), *grads]
            if k:
                g = (g @ layers[k][0].T) * (inputs[k] > 0)
        adam(next(steps), params, grads, m, v, lib)
        return loss

    return step


def contestants():
    """Makers of the steps by name, for gpugrad and installed peers."""
    runs = {
        "gpugrad": functools.partial(with_gpugrad, traced=True),
        "gpugrad, eager": functools.partial(with_gpugrad, traced=False),
        peers.by_hand_in(ON_GPU)[0]: by_hand,
    }
    if peers.installed("torch"):
        runs["torch, default Adam"] = with_torch
        runs["torch, fused Adam"] = functools.partial(with_torch, fused=True)
        if ON_GPU and peers.torch_compiles(ON_GPU):
            runs["torch.compile"] = functools.partial(with_torch, compiled=True, fused=True)
    if peers.jax_runs(ON_GPU):
        runs["jax.jit"] = with_jax
    if peers.installed("tensorflow") and not ON_GPU:
        runs["tf.function"] = with_tensorflow
    if peers.installed("autograd") and not ON_GPU:
        runs["HIPS autograd"] = with_autograd
    return runs


def main() -> int:
    """Print the table."""
    where = gg.device() if ON_GPU else f"{args.threads or 'default'} threads"
    title = f"MLP {'-'.join(map(str, SIZES))}, batch {BATCH}, Adam step, {where}"
    reach = {"torch, default Adam": 0.4, "torch, fused Adam": 1.1, "jax.jit": 0.9}
    raced = peers.race_apart(
        peers.select(contestants(), args.only), args.rounds, inner=20 if ON_GPU else 5,
        wait=gg.cuda.synchronize if ON_GPU else None,
    )  # fmt: skip
    return peers.status(peers.table(title, raced, None if ON_GPU else reach))


if __name__ == "__main__":
    sys.exit(main())
