"""Generation: a token of a small GPT by its key-value cache, against torch, on the CPU.

python ci/bench/decode.py [--small] [--threads N] [--rounds N] [--json PATH]

Every contestant has the same weights and must write the same tokens. Torch does as its users do:
it assigns keys and values to slices of a preallocated cache, and `scaled_dot_product_attention`
reads the positions in use. A prompt fills 128 positions of each cache, whatever its length, so a
token costs the same in all of them if nothing reads or copies the rest.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from peers import in_turns, installed, options, parse_args, start_all, status, table

args = parse_args(options(__doc__, rounds=40, threads=1))

import numpy as np

import gpugrad as gg

LAYERS, WIDTH, HEADS, WORDS, USED, TOKENS = 4, 256, 4, 96, 128, 100
LENGTHS = (256, 4096)
if args.small:
    LAYERS, WIDTH, HEADS, USED, TOKENS, LENGTHS = 1, 16, 2, 4, 4, (16, 32)
REACH, GROWTH = 0.9, 1.2


def weights() -> dict[str, np.ndarray]:
    """The weights of all layers, for products ``x @ w``."""
    rng, d = np.random.default_rng(0), WIDTH
    w = {"tokens": rng.standard_normal((WORDS, d)), "last": rng.standard_normal((d, WORDS)) / 16}
    for k in range(LAYERS):
        shapes = {"in": (d, 3 * d), "out": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
        for name, shape in shapes.items():
            w[f"{k} {name}"] = rng.standard_normal(shape) / shape[0] ** 0.5
    return {name: a.astype(np.float32) for name, a in w.items()}


class Generator:
    """Writes one token at each call; after `TOKENS` of them it begins again at the prompt."""

    def __init__(self, step: Any, start: Any) -> None:
        self._step, self._start, self._written = step, start, 0

    def __call__(self) -> int:
        if self._written % TOKENS == 0:
            self._token, self._cache = self._start()
        self._token, self._cache = self._step(self._token, self._cache)
        self._written += 1
        return int(self._token[0])


def with_gpugrad(length: int, traced: bool) -> Any:
    """Ours: `gg.nn.TransformerBlock` with its cache, eager or as a `gg.function`."""
    w = weights()
    tokens, last = gg.Variable(w["tokens"]), gg.Variable(w["last"])
    blocks = [gg.nn.TransformerBlock(WIDTH, HEADS, causal=True) for _ in range(LAYERS)]
    for k, block in enumerate(blocks):
        dense = (block.attention.in_proj, block.attention.out_proj, block.hidden, block.out)
        for layer, name in zip(dense, ("in", "out", "up", "down"), strict=True):
            layer.kernel.assign(w[f"{k} {name}"])

    def step(token: Any, caches: Any) -> Any:
        x, after = gg.expand_dims(tokens[token], axis=-2), []
        for block, cache in zip(blocks, caches, strict=True):
            x, cache = block(x, cache=cache)
            after.append(cache)
        return gg.argmax(x[:, -1] @ last, axis=-1), after

    run = gg.function(step, donate=("caches",)) if traced else step
    rng = np.random.default_rng(1)
    prompt = gg.asarray(rng.standard_normal((1, USED, WIDTH), np.float32))

    def start() -> Any:
        x, caches = prompt, []
        for block in blocks:
            x, cache = block(x, cache=block.attention.new_cache(1, length))
            caches.append(cache)
        return gg.argmax(x[:, -1] @ last, axis=-1), caches

    return Generator(run, start)


def with_torch(length: int) -> Any:
    """The same in torch, without gradients."""
    import torch
    from torch.nn import functional as F

    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    w = {name: torch.from_numpy(a) for name, a in weights().items()}
    one, zero = torch.ones(WIDTH), torch.zeros(WIDTH)
    linear = {}
    for name, a in w.items():
        if name[0].isdigit():
            linear[name] = torch.nn.Linear(*a.shape)
            linear[name].weight.copy_(a.T)
            linear[name].bias.zero_()

    def layers(x: Any, caches: Any, at: int) -> Any:
        n = x.shape[1]
        for k, (keys, values) in enumerate(caches):
            y = linear[f"{k} in"](F.layer_norm(x, (WIDTH,), one, zero))
            q, key, value = y.view(1, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            keys[:, :, at : at + n], values[:, :, at : at + n] = key, value
            seen = keys[:, :, : at + n], values[:, :, : at + n]
            y = F.scaled_dot_product_attention(q, *seen, is_causal=n > 1)
            x = x + linear[f"{k} out"](y.transpose(1, 2).reshape(1, n, WIDTH))
            y = F.gelu(linear[f"{k} up"](F.layer_norm(x, (WIDTH,), one, zero)))
            x = x + linear[f"{k} down"](y)
        return (x[:, -1] @ w["last"]).argmax(-1)

    prompt = torch.from_numpy(
        np.random.default_rng(1).standard_normal((1, USED, WIDTH), np.float32)
    )

    def start() -> Any:
        shape = (1, HEADS, length, WIDTH // HEADS)
        caches = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(LAYERS)]
        return layers(prompt, caches, 0), (caches, USED)

    def step(token: Any, state: Any) -> Any:
        caches, at = state
        return layers(w["tokens"][token][:, None], caches, at), (caches, at + 1)

    return Generator(step, start)


def main() -> int:
    """Print a table for each length of the cache, and how the time grows with it."""
    good, ours = True, []
    for length in LENGTHS:
        makers: dict[str, Any] = {
            "gpugrad": functools.partial(with_gpugrad, length, True),
            "gpugrad, eager": functools.partial(with_gpugrad, length, False),
        }
        if installed("torch"):
            makers["torch, eager"] = functools.partial(with_torch, length)
        racing = start_all(makers, inner=4)
        seconds = in_turns({name: one.pipe for name, one in racing.items()}, args.rounds)
        title = f"a token, {USED} of {length} positions in use"
        good &= table(title, seconds, {"torch, eager": REACH}, work=(1.0, "token"))
        good &= len({tuple(one.results) for one in racing.values()}) == 1
        ours.append(seconds["gpugrad"])
    growth = ours[-1] / ours[0]
    kept = f"at most {GROWTH}: {'reached' if growth <= GROWTH else 'MISSED'}"
    print(f"\n{LENGTHS[-1]} over {LENGTHS[0]} positions: {growth:.2f}, {kept}")
    return status(good and growth <= GROWTH)


if __name__ == "__main__":
    sys.exit(main())
