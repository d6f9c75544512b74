"""One AdamW step of GPT-2, against torch compiled and eager on the same weights and tokens.

python ci/bench/gpt2.py [--device cuda] [--products DTYPE] [--rounds N] [--json PATH]

On a GPU the model is GPT-2 small on 8 x 1024 tokens, with products in bfloat16, and weights,
residual stream and losses in float32, as under torch.autocast. On a CPU it has two layers of width
64 on 2 x 32 tokens in float32.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any, NamedTuple

from peers import options, parse_args, status, torch_weights

parser = options(__doc__, rounds=20)
parser.add_argument("--products", help="dtype of products (bfloat16; float32 on a CPU)")
args = parse_args(parser)

import numpy as np
from training import compare, makers

import gpugrad as gg

ON_GPU = gg.device().kind == "cuda"
BIG = ON_GPU and not args.small
RATE, DECAY = 6e-4, 0.1


class Size(NamedTuple):
    """The model's layers, width, heads and vocabulary, and the batch's size and length."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    batch: int
    length: int


SIZE = Size(12, 768, 12, 50304, 8, 1024) if BIG else Size(2, 64, 4, 128, 2, 32)
PRODUCTS = args.products or ("bfloat16" if ON_GPU else "float32")


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Tokens of a repetitive text, and the token that follows each."""
    phrase = np.random.default_rng(0).integers(0, SIZE.vocabulary, 3 * SIZE.length // 4)
    text = np.resize(phrase, SIZE.batch * SIZE.length + 1)
    return tuple(text[i : i + SIZE.batch * SIZE.length].reshape(SIZE[-2:]) for i in (0, 1))


# ---- gpugrad ----------------------------------------------------------------------------


def normal(scale: float) -> Any:
    """An initializer with this standard deviation."""
    return functools.partial(gg.nn.initializers.normal, stddev=scale)


class Linear(gg.nn.Dense):
    """A dense layer with float32 Variables whose product is in PRODUCTS."""

    def __init__(self, units_in: int, units_out: int, scale: float = 0.02) -> None:
        super().__init__(units_in, units_out, kernel_initializer=normal(scale))

    def forward(self, x: gg.Tensor) -> gg.Tensor:
        x, kernel, bias = (gg.astype(a, PRODUCTS) for a in (x, self.kernel, self.bias))
        return x @ kernel + bias


class Attention(gg.nn.Module):
    """Causal self-attention."""

    def __init__(self, size: Size) -> None:
        self.heads = size.heads
        self.qkv = Linear(size.width, 3 * size.width)
        self.out = Linear(size.width, size.width, 0.02 / math.sqrt(2 * size.layers))

    def forward(self, x: gg.Tensor) -> gg.Tensor:
        n, length, width = x.shape
        parts = gg.reshape(self.qkv(x), (n, length, 3, self.heads, width // self.heads))
        q, k, v = gg.unstack(gg.permute_dims(parts, (2, 0, 3, 1, 4)))
        y = gg.nn.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(gg.reshape(gg.permute_dims(y, (0, 2, 1, 3)), x.shape))


class Block(gg.nn.Module):
    """Attention and two dense layers, each with a residual connection."""

    def __init__(self, size: Size) -> None:
        width = size.width
        self.norm_1, self.attention = gg.nn.LayerNorm(width), Attention(size)
        self.norm_2, self.up = gg.nn.LayerNorm(width), Linear(width, 4 * width)
        self.down = Linear(4 * width, width, 0.02 / math.sqrt(2 * size.layers))

    def forward(self, x: gg.Tensor) -> gg.Tensor:
        x = x + self.attention(self.norm_1(x))
        return x + self.down(gg.nn.gelu(self.up(self.norm_2(x)), "tanh"))


class GPT2(gg.nn.Module):
    """The loss of predicting the next tokens. The token embedding is also the last kernel."""

    def __init__(self, size: Size) -> None:
        table = functools.partial(gg.nn.Embedding, initializer=normal(0.02))
        self.tokens = table(size.vocabulary, size.width)
        self.places = table(size.length, size.width)
        self.blocks = [Block(size) for _ in range(size.layers)]
        self.norm = gg.nn.LayerNorm(size.width)

    def forward(self, tokens: gg.Tensor, following: gg.Tensor) -> gg.Tensor:
        x = self.tokens(tokens) + self.places(gg.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        x, table = (gg.astype(a, PRODUCTS) for a in (self.norm(x), self.tokens.weight))
        scores = gg.astype(gg.nn.linear(x, table), "float32")
        classes = scores.shape[-1]
        return gg.nn.cross_entropy(gg.reshape(scores, (-1, classes)), gg.ravel(following))


def fresh() -> GPT2:
    """The model with the initial weights of all contestants."""
    gg.set_seed(0)
    return GPT2(SIZE)


def weights() -> dict[str, np.ndarray]:
    """The initial weights, by name."""
    with gg.device("cpu"):
        return {name: v.numpy() for name, v in fresh().state_dict().items()}


def with_gpugrad() -> Any:
    """Ours: the whole step is one `gg.function`."""
    model = fresh()
    optimizer = gg.optim.AdamW(RATE, weight_decay=DECAY, beta_2=0.95)
    variables = model.trainable_variables

    @gg.function
    def step(tokens: gg.Tensor, following: gg.Tensor) -> gg.Tensor:
        with gg.GradientTape() as tape:
            loss = model(tokens, following)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return functools.partial(step, *map(gg.asarray, batch()))


# ---- torch ------------------------------------------------------------------------------


def with_torch(compiled: bool) -> Any:
    """The same model of torch's layers, under autocast, with its fused AdamW."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    if args.threads:
        torch.set_num_threads(args.threads)
    device = torch.device("cuda" if ON_GPU else "cpu")

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(SIZE.width, 3 * SIZE.width)
            self.out = nn.Linear(SIZE.width, SIZE.width)

        def forward(self, x):
            n, length, width = x.shape
            parts = self.qkv(x).view(n, length, 3, SIZE.heads, width // SIZE.heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(n, length, width))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            width = SIZE.width
            self.norm_1, self.attention = nn.LayerNorm(width), Attention()
            self.norm_2, self.up = nn.LayerNorm(width), nn.Linear(width, 4 * width)
            self.down = nn.Linear(4 * width, width)

        def forward(self, x):
            x = x + self.attention(self.norm_1(x))
            return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))

    class GPT2(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(SIZE.vocabulary, SIZE.width)
            self.places = nn.Embedding(SIZE.length, SIZE.width)
            self.blocks = nn.ModuleList(Block() for _ in range(SIZE.layers))
            self.norm = nn.LayerNorm(SIZE.width)

        def forward(self, tokens, following):
            places = torch.arange(tokens.shape[1], device=tokens.device)
            x = self.tokens(tokens) + self.places(places)
            for block in self.blocks:
                x = block(x)
            scores = F.linear(self.norm(x), self.tokens.weight)
            return F.cross_entropy(scores.flatten(0, 1), following.flatten())

    model = GPT2()
    model.load_state_dict(torch_weights(weights()))
    model.to(device)
    forward = torch.compile(model) if compiled else model
    adam = torch.optim.AdamW(
        model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=DECAY, fused=True
    )
    tokens, following = (torch.from_numpy(a).to(device) for a in batch())

    def step():
        adam.zero_grad()
        with torch.autocast(device.type, getattr(torch, PRODUCTS), enabled=PRODUCTS != "float32"):
            loss = forward(tokens, following)
        loss.backward()
        adam.step()
        return loss.detach()

    return step


# ---- both -------------------------------------------------------------------------------


def flops() -> float:
    """Operations of a step: six per weight of a product and token, and causal attention."""
    weights = SIZE.layers * 12 * SIZE.width**2 + SIZE.vocabulary * SIZE.width
    attention = SIZE.layers * 6 * SIZE.length * SIZE.width
    return (6 * weights + attention) * SIZE.batch * SIZE.length


def main() -> int:
    """Print the tables."""
    what = f"GPT-2, {SIZE.layers} layers of {SIZE.width}, {SIZE.batch} x {SIZE.length} tokens"
    good = compare(
        f"{what}, {PRODUCTS} products, AdamW step on {gg.device()}",
        makers(with_gpugrad, with_torch, ON_GPU),
        args,
        tolerance=1e-3 if PRODUCTS == "float32" else 3e-2,
        wait=gg.cuda.synchronize if ON_GPU else None,
        work=(flops() / 1e12, "TFLOP"),
    )
    return status(good)


if __name__ == "__main__":
    sys.exit(main())
