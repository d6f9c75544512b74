"""A program without mistakes, for mypy and pyright; see tests/test_types.py."""

from typing import assert_type

import numpy as np

import gpugrad as gg
import gpugrad.numpy as gnp
from gpugrad.typing import ArrayLike


class Network(gg.nn.Module):
    """Two layers and a slope."""

    def __init__(self, width: int) -> None:
        self.layers = gg.nn.Sequential(
            gg.nn.Dense(3, width, activation=gg.tanh), gg.nn.LeakyReLU(0.1), gg.nn.Dense(width, 1)
        )
        self.slope = gg.Variable(1.0)

    def forward(self, x: ArrayLike) -> gg.Tensor:
        """The prediction."""
        return self.slope * gg.asarray(self.layers(x))


@gg.function
def energy(x: gg.Tensor, scale: float = 1.0) -> gg.Tensor:
    """A scalar."""
    return scale * gg.sum(gg.square(x), axis=(0, 1), keepdims=False)


@gg.function(static="power")
def raised(x: gg.Tensor, power: int) -> gg.Tensor:
    """A power."""
    return x**power


@gg.custom_gradient
def clipped(x: gg.Tensor) -> tuple[gg.Tensor, object]:
    """The identity with a clipped gradient."""
    return x, lambda dy: gg.clip(dy, -1.0, 1.0)


x = gg.constant(np.ones((4, 3), np.float32))
assert_type(gg.ones(3), gg.Tensor)
assert_type(x.reshape(12).sum(), gg.Tensor)
assert_type(x[0] @ [1.0, 2.0, 3.0] + 2 * x.T[0, :1], gg.Tensor)
assert_type(gg.top_k(x, 2), tuple[gg.Tensor, gg.Tensor])
assert_type(gg.split(x, 2), list[gg.Tensor])
assert_type(gg.linalg.eigh(x @ x.T).eigenvalues, gg.Tensor)
assert_type(gg.random.normal((2, 3), stddev=0.1), gg.Tensor)
assert_type(gnp.exp(x), gg.Tensor)
assert_type(energy(x, scale=2.0), gg.Tensor)
assert_type(raised(x, 2), gg.Tensor)
assert_type(clipped(x), gg.Tensor)
assert_type(gg.value_and_grad(energy)(x)[0], gg.Tensor)
assert_type(gg.vmap(lambda row: gg.sum(row * row))(x), gg.Tensor)
lowered = energy.lower(x)
gg.mean(x, 0, dtype=gg.float64)
gg.add(x, 1, out=gg.zeros((4, 3)))
gg.concat([x, x], axis=1)
gg.softmax([[1, 2], [3, 4]], axis=-1)
gg.full((2, 3), float("inf"), dtype="float32", device="cpu")
gg.nn.conv2d(gg.ones((1, 3, 8, 8)), gg.ones((4, 3, 3, 3)), padding="same")
print(gg.scipy.linalg.expm(gg.eye(2)), gg.special.gammaln(x), gg.fft.fft(x, n=8))
print(gg.numpy.sum(x, axis=0), gg.distributed.rank(), gg.data.augment, gg.train.Checkpoints)

model, loss = Network(8), gg.zeros(())
optimizer = gg.optim.AdamW(1e-3, weight_decay=0.1)
for _ in range(2):
    with gg.GradientTape() as tape:
        loss = gg.mean(gg.square(model(x) - gg.zeros((4, 1))))
    variables = model.trainable_variables
    gradients = tape.gradient(loss, variables)
    assert_type(gradients, list[gg.Tensor | None])
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
print(f"{loss:.3f}", model.summary(x))

with gg.GradientTape(persistent=True) as tape:
    tape.watch(x)
    y = gg.sum(gg.log(x + 1.0))
assert_type(tape.gradient(y, x), gg.Tensor | None)
assert_type(tape.gradient(y, [x, model.slope]), list[gg.Tensor | None])
assert_type(tape.gradient(y, (x, x)), tuple[gg.Tensor | None, ...])
assert_type(tape.gradient(y, {"x": x}), dict[str, gg.Tensor | None])
