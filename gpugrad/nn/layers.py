"""The layers that every model has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gpugrad.backend import TENSOR
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.nn.initializers import Initializer, glorot_uniform, zeros
from gpugrad.nn.module import Module
from gpugrad.ops.generator import Generator
from gpugrad.tensor import Tensor, tensor
from gpugrad.variable import Variable

__all__ = ["Dense", "Flatten", "Sequential"]


class Dense(Module):
    """activation(x @ kernel + bias).

    Args:
        units_in: length of the last axis of what comes in.
        units_out: of what goes out.
        activation: function of a Tensor, such as ``gg.relu``; None for none.
        use_bias: whether there is a bias.
        kernel_initializer, bias_initializer: functions of (shape, generator, dtype), such as
            those of `gg.nn.initializers`.
        generator: random generator of the initializers; the default generator if None.
        dtype: of the Variables.

    Attributes:
        kernel: Variable of shape (units_in, units_out).
        bias: Variable of shape (units_out,), or None.

    >>> import gpugrad as gg
    >>> layer = gg.nn.Dense(3, 2, activation=gg.relu)
    >>> layer
    Dense(3, 2, activation=relu)
      kernel: float32 (3, 2)
      bias: float32 (2,)
    >>> layer(gg.ones((5, 3))).shape
    (5, 2)
    """

    def __init__(
        self,
        units_in: int,
        units_out: int,
        activation: Callable[[Any], Any] | None = None,
        use_bias: bool = True,
        *,
        kernel_initializer: Initializer = glorot_uniform,
        bias_initializer: Initializer = zeros,
        generator: Generator | None = None,
        dtype: Any = "float32",
    ) -> None:
        for what, n in (("units_in", units_in), ("units_out", units_out)):
            if not isinstance(n, int) or n < 1:
                raise ArgumentError(f"Dense: {what} must be a whole number above 0, got {n!r}.")
        if activation is not None and not callable(activation):
            raise ArgumentError(
                f"Dense: activation must be a function such as gg.relu, got {activation!r}."
            )
        self.units_in, self.units_out, self.activation = units_in, units_out, activation
        self.kernel = Variable(
            kernel_initializer((units_in, units_out), generator=generator, dtype=dtype),
            name="kernel",
        )
        self.bias: Variable | None = None
        if use_bias:
            made = bias_initializer((units_out,), generator=generator, dtype=dtype)
            self.bias = Variable(made, name="bias")

    def forward(self, x: Any) -> Tensor:
        """Map x of shape (..., units_in) to (..., units_out).

        Raises:
            ShapeError: the last axis of x is not units_in long.
        """
        x = tensor(x)
        if not x.ndim or x.shape[-1] != self.units_in:
            raise ShapeError(
                f"Dense: the last axis of x must be {self.units_in} long, its shape is {x.shape}."
            )
        y: Tensor = TENSOR.matmul(x, self.kernel)
        if self.bias is not None:
            y = TENSOR.add(y, self.bias)
        return y if self.activation is None else self.activation(y)

    def _said(self) -> str:
        name = getattr(self.activation, "__name__", None)
        return f"{self.units_in}, {self.units_out}" + (f", activation={name}" if name else "")


class Sequential(Module):
    """Layers, or any functions of a Tensor, one after the other.

    Args:
        layers: as arguments, or one list of them.

    >>> import gpugrad as gg
    >>> model = gg.nn.Sequential(gg.nn.Flatten(), gg.nn.Dense(4, 3, gg.tanh), gg.nn.Dense(3, 1))
    >>> model(gg.ones((7, 2, 2))).shape
    (7, 1)
    >>> [name for name, _ in model.named_variables()]
    ['layers.1.kernel', 'layers.1.bias', 'layers.2.kernel', 'layers.2.bias']
    """

    def __init__(self, *layers: Any) -> None:
        if len(layers) == 1 and isinstance(layers[0], (list, tuple)):
            layers = tuple(layers[0])
        for i, layer in enumerate(layers):
            if not callable(layer):
                raise ArgumentError(f"Sequential: layer {i} is no function, but {layer!r:.60}.")
        self.layers = list(layers)

    def forward(self, x: Any) -> Any:
        """What the last layer gives."""
        for layer in self.layers:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)

    def __getitem__(self, index: int) -> Any:
        return self.layers[index]


class Flatten(Module):
    """Every axis but the first made one: (n, ...) to (n, m).

    >>> import gpugrad as gg
    >>> gg.nn.Flatten()(gg.ones((2, 3, 4))).shape
    (2, 12)
    """

    def forward(self, x: Any) -> Tensor:
        """Map x of shape (n, ...) to (n, m)."""
        x = tensor(x)
        if not x.ndim:
            raise ShapeError("Flatten: x needs a first axis, of the examples; it is 0-d.")
        n = x.shape[0]
        size = 1
        for length in x.shape[1:]:
            size *= length
        return TENSOR.reshape(x, (n, size))
