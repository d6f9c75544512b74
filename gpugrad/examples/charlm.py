"""Train a small GPT on Python's own documentation, and let it write some.

The text is what Python's help() says about its 79 topics, 460 kB that every Python brings along.
Tokens are bytes. The last twentieth is held out: 2.17 bits per character after the first of six
epochs and 1.48 after the last, 200 seconds of one core of a shared machine. Then the model
continues --prompt. The picture shows the losses, and the bits of each character of held-out text.

The recipe is the usual one: AdamW without decay of biases and norms, warm-up and a cosine, clipping
by the global norm, an exponential average of the weights, and if you ask for them 16-bit products
and accumulated gradients. A run that was killed at any time and resumed ends exactly as one that
was not.

mpiexec, torchrun or srun start several processes, which share each batch; --shard lets them share
the optimizer's averages or all parameters, too: mpiexec -n 2 python -m gpugrad.examples.charlm
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pydoc_data import topics
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad import nn, optim, train
from gpugrad.examples import common

Array = np.ndarray[Any, Any]


def load_text() -> tuple[Array, Array]:
    """The bytes of the training text and of the held-out text."""
    text = "\n".join(topics.topics[key] for key in sorted(topics.topics))
    data = np.frombuffer(text.encode(), np.uint8)
    split = len(data) * 19 // 20
    return data[:split], data[split:]


class GPT(nn.Module):
    """Logits for the next byte from bytes of shape (batch, length)."""

    def __init__(
        self,
        width: int,
        layers: int,
        heads: int,
        generator: gg.random.Generator,
        dtype: str = "float32",
    ) -> None:
        how: dict[str, Any] = {"generator": generator, "dtype": dtype}
        block: dict[str, Any] = {"causal": True, "rotary": True, "norm": nn.RMSNorm, **how}
        self.embedding = nn.Embedding(256, width, **how)
        self.blocks = [nn.TransformerBlock(width, heads, **block) for _ in range(layers)]
        self.norm = nn.RMSNorm(width, dtype=dtype)
        self.head = nn.Dense(width, 256, **how)

    def forward(self, tokens: Any, caches: Any = None) -> Any:
        """The logits; with a cache for each block, the pair (logits, next caches)."""
        x = self.embedding(tokens)
        after = []
        for block, cache in zip(self.blocks, caches or [None] * len(self.blocks), strict=True):
            x = block(x, cache=cache)
            if cache is not None:
                x, cache = x
                after.append(cache)
        logits = self.head(self.norm(x))
        return (logits, after) if caches else logits


def cross_entropy(logits: Any, targets: Any) -> gg.Tensor:
    """The mean cross entropy, in nats."""
    return gg.mean(gg.sparse_softmax_cross_entropy(logits, targets))


def bits(logits: Any, targets: Any) -> gg.Tensor:
    """The mean cross entropy, in bits."""
    return cross_entropy(logits, targets) / math.log(2)


def make_optimizer(args: argparse.Namespace, model: GPT, steps: int) -> Any:
    """AdamW with warm-up and cosine; matrices decay, biases and norms do not."""
    warm_up = min(args.warm_up, max(steps // 2, 1))
    cosine = optim.schedules.cosine(args.learning_rate, max(steps - warm_up, 1))
    optimizer = optim.AdamW(
        optim.schedules.warmup(warm_up, then=cosine),
        weight_decay=0.1,
        beta_2=0.99,
        groups=[(lambda name, variable: variable.ndim < 2, {"weight_decay": 0.0})],
        global_clipnorm=1.0,
        accumulate=args.accumulate,
    )
    optimizer.build(model)
    return optim.LossScaleOptimizer(optimizer) if args.precision == "float16" else optimizer


def make_step(model: GPT, optimizer: Any, ema: optim.EMA) -> Callable[[Any, Any], gg.Tensor]:
    """The training step: a function of tokens and next tokens that returns the loss in nats."""
    is_scaled = hasattr(optimizer, "scale_loss")
    weighs = hasattr(optimizer, "takes_weight") and getattr(optimizer, "accumulate", 1) == 1

    def step(tokens: Any, targets: Any) -> gg.Tensor:
        with gg.GradientTape() as tape, nn.training():
            loss = cross_entropy(model(tokens), targets)
            scaled = optimizer.scale_loss(loss) if is_scaled else loss
        variables = model.trainable_variables
        gradients = tape.gradient(scaled, variables)
        weight = {"weight": len(tokens)} if weighs else {}  # parts of a batch may be uneven
        optimizer.apply_gradients(zip(gradients, variables, strict=True), **weight)
        ema.update()
        return loss

    return step


class Validation(train.Callback):
    """After each epoch, the bits per character of the averaged weights on held-out text."""

    def __init__(self, model: GPT, ema: optim.EMA, data: gg.data.DataLoader) -> None:
        self.model, self.ema, self.data = model, ema, data

    def end_of_epoch(self, run: train.Run) -> None:
        """Evaluate."""
        with self.ema.apply():
            metrics = [train.Mean(bits, "bits")]
            run.logs["val_bits"] = train.evaluate(self.model, self.data, metrics)["bits"]


def generate(
    model: GPT, prompt: str, length: int, window: int, temperature: float, seed: int
) -> str:
    """Continue a prompt by `length` characters, one token a call, with key-value caches.

    The model knows positions below `window`. When the caches are full, they are filled again with
    the last half of the text in them.
    """
    rng, written = np.random.default_rng(seed), bytearray(prompt.encode())
    step, used = gg.function(model), window
    for _ in range(length):
        tokens = np.frombuffer(written[-1:], np.uint8)
        if used == window:
            caches = [block.attention.new_cache(1, window) for block in model.blocks]
            tokens, used = np.frombuffer(written[-max(window // 2, 1) :], np.uint8), 0
        logits, caches = step(gg.constant(tokens[None].astype(np.int32)), caches)
        used += len(tokens)
        scores = logits.numpy()[0, -1].astype(np.float64) / temperature
        p = np.exp(scores - scores.max())
        written.append(rng.choice(256, p=p / p.sum()))
    return written.decode(errors="replace")


# ---- report ------------------------------------------------------------------------------


def surprise(model: GPT, text: Array, window: int) -> Array:
    """The bits for each character of a text after the first half window, from those before it."""
    half = max(window // 2, 1)
    values = []
    for tokens, targets in gg.data.Windows(text, window, stride=half):
        losses = gg.sparse_softmax_cross_entropy(
            model(gg.constant(tokens[None])), gg.constant(targets[None])
        )
        values.append(losses.numpy()[0, half - 1 :][:half] / math.log(2))
    return np.concatenate(values)


def draw_losses(axes: Any, history: list[dict[str, float]]) -> None:
    """Draw the bits per character by epoch."""
    epochs = np.arange(1, len(history) + 1)
    training = [logs["loss"] / math.log(2) for logs in history]
    valid = [logs["val_bits"] for logs in history]
    axes.plot(epochs, training, color=common.BLUE, marker=".", label="training")
    label = f"held out: {valid[-1]:.2f} at the end"
    axes.plot(epochs, valid, color=common.ORANGE, marker=".", label=label)
    common.tidy(axes, "Bits per character", "epoch")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)


def draw_surprise(axes: Any, text: str, values: Array, columns: int = 80, rows: int = 26) -> Any:
    """Draw a text, the background of each character by its bits."""
    grid, i, j = np.full((rows, columns), np.nan), 0, 0
    for char, value in zip(text, values, strict=True):
        if char == "\n" or j == columns:
            i, j = (i + 1, 0) if j else (i, 0)
        if i == rows:
            break
        if char != "\n":
            grid[i, j] = value
            axes.text(j, i, char, family="monospace", fontsize=7.5, ha="center", va="center")
            j += 1
    axes.set_title("Held-out text, and the bits of each character", loc="left", fontweight="bold")
    axes.axis("off")
    return axes.imshow(grid, cmap="YlOrRd", vmin=0, vmax=10, aspect="auto", alpha=0.75)


def plot(
    args: argparse.Namespace, model: GPT, history: list[dict[str, float]], text: Array
) -> None:
    """Draw the losses, and what surprises the model."""
    figure = common.new_figure(13, 5.5)
    left, right = figure.subplots(1, 2, width_ratios=(1, 2))
    draw_losses(left, history)
    values = surprise(model, text, args.length)
    start = max(args.length // 2, 1)
    shown = text[start : start + len(values)]
    printable = "".join(chr(c) if c < 128 else "·" for c in shown)
    image = draw_surprise(right, printable, values)
    figure.colorbar(image, ax=right, label="bits", shrink=0.6)
    common.save_figure(figure, args, "charlm")


def join_ranks() -> None:
    """Join the other processes, if a launcher has started several."""
    try:
        gg.distributed.size()
    except gg.errors.DistributedError:  # several, which have not met
        gg.distributed.init()


def run(args: argparse.Namespace) -> None:
    """Train or resume, write some text, and draw."""
    training, held_out = load_text()
    training, held_out = training[: args.characters], held_out[: args.characters]
    join_ranks()
    dtype = "float64" if args.precision == "float64" else "float32"
    model = GPT(args.width, args.layers, args.heads, gg.random.Generator(args.seed), dtype)
    windows = gg.data.Windows(training, args.length)
    loader = gg.data.DataLoader(
        windows, args.batch_size, shuffle=True, seed=args.seed, drop_last=True, shard=True
    )
    validation = gg.data.DataLoader(gg.data.Windows(held_out, args.length), 64, shard=True)
    optimizer = make_optimizer(args, model, args.epochs * len(loader) // args.accumulate)
    if gg.distributed.size() > 1 or args.shard != "none":
        shard = None if args.shard == "none" else args.shard
        optimizer = gg.distributed.Optimizer(optimizer, model, shard=shard)
    ema = optim.EMA(model, lambda n: min(0.99, (1 + n) / (10 + n)))
    is_mixed = args.precision.endswith("16")
    precision = gg.mixed_precision(args.precision if is_mixed else None)
    step = gg.function(make_step(model, optimizer, ema))
    with precision:
        history = common.fit(
            args,
            step,
            loader,
            parts={"model": model, "optimizer": optimizer, "ema": ema, "loader": loader},
            callbacks=[Validation(model, ema, validation)],
            every_steps=args.save_every,
            free=("prompt", "write", "temperature", "save_every", "shard"),
            whole_bar=False,
        ).history
        ema.assign()
        plot(args, model, history, held_out[-2000:])
        options = (args.write, args.length, args.temperature, args.seed)
        text = generate(model, args.prompt or "\n", *options)
    if gg.distributed.rank() == 0:
        print(text)
        print(f"Validation loss {history[-1]['val_bits']:.3f} bits per character.")


main = common.command(
    "charlm",
    __doc__,
    run,
    epochs=6,
    width=(128, "features of a token"),
    layers=(4, "Transformer blocks"),
    heads=(4, "heads of attention"),
    length=(128, "tokens of a window"),
    batch_size=(16, "windows per call of the step"),
    accumulate=(1, "calls that make one step of the optimizer"),
    learning_rate=(0.003, "largest learning rate"),
    warm_up=(100, "steps until the learning rate is at its largest"),
    characters=(None, "characters of the text"),
    save_every=(100, "steps between checkpoints"),
    write=(600, "characters to write at the end"),
    temperature=(0.7, "lower is more cautious"),
    prompt=("The ", "how the text begins (%(default)r)"),
    precision=(
        "float32",
        "dtype of products (%(default)s); 16 bits are fast on a GPU",
        ("float32", "bfloat16", "float16", "float64"),
    ),
    shard=(
        "none",
        "what several processes have parts of (%(default)s)",
        ("none", "optimizer", "parameters"),
    ),
)


if __name__ == "__main__":
    sys.exit(main())
