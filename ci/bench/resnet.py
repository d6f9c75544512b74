"""One SGD step of ResNet-18 on images of 32 x 32, against torch compiled and eager.

python ci/bench/resnet.py [--device cuda] [--dtype DTYPE ...] [--rounds N] [--json PATH]

All contestants start with the same weights and see the same images. On a GPU a batch is 1024
images, once in float32, with products that may round to TensorFloat-32, and once with convolutions
in float16; on a CPU it is 8 images in float32.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from peers import options, parse_args, status, torch_weights

parser = options(__doc__, rounds=10)
parser.add_argument("--batch", type=int, help="images (1024; 8 on a CPU)")
parser.add_argument("--dtype", nargs="+", help="of convolutions (float32 float16; float32)")
args = parse_args(parser)

import numpy as np
from training import compare, makers

import gpugrad as gg

ON_GPU = gg.device().kind == "cuda"
BIG = ON_GPU and not args.small
BATCH = args.batch or (1024 if BIG else 8)
DTYPES = args.dtype or (["float32", "float16"] if ON_GPU else ["float32"])
STAGES, CLASSES, RATE, MOMENTUM = (64, 128, 256, 512), 10, 0.02, 0.9
FLOPS = 6 * 555_422_720
"""Operations per image: for each product, two forward (multiply, add) and four backward."""


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Images and their classes."""
    rng = np.random.default_rng(0)
    images = rng.standard_normal((BATCH, 3, 32, 32), np.float32)
    return images, rng.integers(0, CLASSES, BATCH)


# ---- gpugrad ----------------------------------------------------------------------------


class Conv(gg.nn.Conv2d):
    """A convolution in the dtype of its input, without bias."""

    def __init__(self, channels_in: int, channels_out: int, side: int, stride: int = 1) -> None:
        super().__init__(
            channels_in, channels_out, side, use_bias=False, stride=stride, padding=side // 2,
            weight_initializer=gg.nn.initializers.he_normal,
        )  # fmt: skip

    def forward(self, x: gg.Tensor) -> gg.Tensor:
        weight = gg.astype(self.weight, x.dtype)
        return gg.nn.conv2d(x, weight, stride=self.stride, padding=self.padding)


class Block(gg.nn.Module):
    """Two convolutions with a residual connection."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        self.conv_1, self.norm_1 = Conv(channels_in, channels, 3, stride), gg.nn.BatchNorm(channels)
        self.conv_2, self.norm_2 = Conv(channels, channels, 3), gg.nn.BatchNorm(channels)
        self.past = []
        if stride != 1:
            self.past = [Conv(channels_in, channels, 1, stride), gg.nn.BatchNorm(channels)]

    def forward(self, x: gg.Tensor) -> gg.Tensor:
        y = gg.nn.relu(self.norm_1(self.conv_1(x)))
        y = self.norm_2(self.conv_2(y))
        for layer in self.past:
            x = layer(x)
        return gg.nn.relu(x + y)


class ResNet(gg.nn.Module):
    """He et al. 2015, "Deep Residual Learning for Image Recognition", for small images."""

    def __init__(self) -> None:
        self.conv, self.norm = Conv(3, STAGES[0], 3), gg.nn.BatchNorm(STAGES[0])
        self.blocks = []
        before = STAGES[0]
        for channels in STAGES:
            self.blocks += [Block(before, channels, 1 if channels == before else 2)]
            self.blocks += [Block(channels, channels, 1)]
            before = channels
        self.dense = gg.nn.Dense(STAGES[-1], CLASSES)

    def forward(self, x: gg.Tensor) -> gg.Tensor:
        x = gg.nn.relu(self.norm(self.conv(x)))
        for block in self.blocks:
            x = block(x)
        return self.dense(gg.astype(gg.mean(x, axis=(2, 3)), "float32"))


def fresh() -> ResNet:
    """The model with the initial weights of all contestants."""
    gg.set_seed(0)
    return ResNet()


def weights() -> dict[str, np.ndarray]:
    """The initial weights, by name."""
    with gg.device("cpu"):
        return {name: v.numpy() for name, v in fresh().state_dict().items()}


def with_gpugrad(dtype: str) -> Any:
    """Ours: the whole step is one `gg.function`."""
    gg.set_matmul_precision("high")
    model = fresh()
    optimizer = gg.optim.SGD(RATE, momentum=MOMENTUM)
    variables = model.trainable_variables

    @gg.function
    def step(images: gg.Tensor, labels: gg.Tensor) -> gg.Tensor:
        with gg.nn.training(), gg.GradientTape() as tape:
            loss = gg.nn.cross_entropy(model(gg.astype(images, dtype)), labels)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return functools.partial(step, *map(gg.asarray, batch()))


# ---- torch ------------------------------------------------------------------------------


def with_torch(dtype: str, compiled: bool) -> Any:
    """The same model of torch's layers, under autocast, channels last on a GPU."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    if args.threads:
        torch.set_num_threads(args.threads)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if ON_GPU else "cpu")

    def conv(channels_in, channels_out, side, stride=1):
        return nn.Conv2d(channels_in, channels_out, side, stride, side // 2, bias=False)

    class Block(nn.Module):
        def __init__(self, channels_in, channels, stride):
            super().__init__()
            self.conv_1, self.norm_1 = conv(channels_in, channels, 3, stride), norm(channels)
            self.conv_2, self.norm_2 = conv(channels, channels, 3), norm(channels)
            self.past = nn.Sequential()
            if stride != 1:
                self.past = nn.Sequential(conv(channels_in, channels, 1, stride), norm(channels))

        def forward(self, x):
            y = F.relu(self.norm_1(self.conv_1(x)))
            return F.relu(self.past(x) + self.norm_2(self.conv_2(y)))

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = conv(3, STAGES[0], 3), norm(STAGES[0])
            before, blocks = STAGES[0], []
            for channels in STAGES:
                blocks += [Block(before, channels, 1 if channels == before else 2)]
                blocks += [Block(channels, channels, 1)]
                before = channels
            self.blocks = nn.Sequential(*blocks)
            self.dense = nn.Linear(STAGES[-1], CLASSES)

        def forward(self, x):
            x = self.blocks(F.relu(self.norm(self.conv(x))))
            return self.dense(x.mean((2, 3)))

    norm = nn.BatchNorm2d
    model = ResNet()
    model.load_state_dict(torch_weights(weights()), strict=False)  # torch counts batches too
    layout = torch.channels_last if ON_GPU else torch.contiguous_format
    model.to(device, memory_format=layout)
    forward = torch.compile(model) if compiled else model
    sgd = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    images, labels = (torch.from_numpy(a).to(device) for a in batch())
    images = images.to(memory_format=layout)

    def step():
        sgd.zero_grad()
        with torch.autocast(device.type, getattr(torch, dtype), enabled=dtype != "float32"):
            loss = F.cross_entropy(forward(images), labels)
        loss.backward()
        sgd.step()
        return loss.detach()

    return step


def main() -> int:
    """Print the tables."""
    good = True
    for dtype in DTYPES:
        good &= compare(
            f"ResNet-18, {BATCH} images of 32 x 32, {dtype}, SGD step on {gg.device()}",
            makers(
                functools.partial(with_gpugrad, dtype), functools.partial(with_torch, dtype), ON_GPU
            ),
            args,
            tolerance=3e-2 if ON_GPU or dtype != "float32" else 1e-3,
            wait=gg.cuda.synchronize if ON_GPU else None,
            work=(BATCH * FLOPS / 1e12, "TFLOP"),
        )  # fmt: skip
    return status(good)


if __name__ == "__main__":
    sys.exit(main())
