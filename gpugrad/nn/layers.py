"""Dense, convolution, embedding, dropout and flatten layers, and Sequential."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from gpugrad.core.backend import TENSOR
from gpugrad.core.checks import require_callable
from gpugrad.core.convert import constant
from gpugrad.core.settings import is_training
from gpugrad.core.tensor import Tensor, argument
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, ShapeError, saying_where
from gpugrad.nn import functional
from gpugrad.nn.initializers import Initializer, glorot_uniform, normal, zeros
from gpugrad.nn.module import Module
from gpugrad.ops.nn.dropout import check_probability
from gpugrad.ops.random.generator import Generator

__all__ = ["Conv2d", "Dense", "Dropout", "Embedding", "Flatten", "Sequential", "whole_numbers"]

Activation = Callable[[Any], Any] | None


def whole_numbers(layer: str, **lengths: Any) -> list[int]:
    """Convert lengths to ints; raise an ArgumentError that names one that is not a positive int."""
    numbers = []
    for what, n in lengths.items():
        try:
            numbers.append(operator.index(n))
        except TypeError:
            numbers.append(0)
        if numbers[-1] < 1:
            raise ArgumentError(f"{layer}: {what} must be a whole number above 0, got {n!r:.60}.")
    return numbers


def _check_activation(layer: str, activation: Any) -> None:
    if activation is not None and not callable(activation):
        raise ArgumentError(
            f"{layer}: activation must be a function such as gg.relu, got {activation!r}."
        )


def _activation_suffix(activation: Activation) -> str:
    name = getattr(activation, "__name__", None)
    return f", activation={name}" if name else ""


class Dense(Module):
    """activation(x @ kernel + bias).

    Args:
        units_in: length of the input's last axis.
        units_out: length of the output's last axis.
        activation: function of a Tensor, such as ``gg.relu``, or None.
        use_bias: whether there is a bias.
        kernel_initializer, bias_initializer: functions of (shape, generator, dtype), such as
            those in `gg.nn.initializers`.
        generator: random generator of the initializers; the default generator if None.
        dtype: dtype of the Variables.

    Attributes:
        kernel: Variable of shape (units_in, units_out).
        bias: Variable of shape (units_out,), or None.

    >>> layer = gg.nn.Dense(3, 2, activation=gg.relu)
    >>> layer
    Dense(3, 2, activation=relu)
      kernel: float32 (3, 2)
      bias: float32 (2,)
    >>> layer(gg.ones((5, 3))).shape
    (5, 2)
    """

    @saying_where
    def __init__(
        self,
        units_in: int,
        units_out: int,
        activation: Activation = None,
        use_bias: bool = True,
        *,
        kernel_initializer: Initializer = glorot_uniform,
        bias_initializer: Initializer = zeros,
        generator: Generator | None = None,
        dtype: Any = "float32",
    ) -> None:
        units_in, units_out = whole_numbers("Dense", units_in=units_in, units_out=units_out)
        _check_activation("Dense", activation)
        require_callable(
            "Dense", kernel_initializer=kernel_initializer, bias_initializer=bias_initializer
        )
        self.units_in, self.units_out, self.activation = units_in, units_out, activation
        self.kernel = Variable(
            kernel_initializer((units_in, units_out), generator=generator, dtype=dtype),
            name="kernel",
        )
        self.bias: Variable | None = None
        if use_bias:
            bias = bias_initializer((units_out,), generator=generator, dtype=dtype)
            self.bias = Variable(bias, name="bias")

    def forward(self, x: Any) -> Tensor:
        """Map x of shape (..., units_in) to (..., units_out).

        Raises:
            ShapeError: the last axis of x does not have length units_in.
        """
        x = argument("Dense", x)
        if not x.ndim or x.shape[-1] != self.units_in:
            raise ShapeError(
                f"Dense: the last axis of x must have length {self.units_in}, but its shape is "
                f"{x.shape}."
            )
        y: Tensor = TENSOR.matmul(x, self.kernel)
        if self.bias is not None:
            y = TENSOR.add(y, self.bias)
        return y if self.activation is None else self.activation(y)

    def _repr_args(self) -> str:
        return f"{self.units_in}, {self.units_out}{_activation_suffix(self.activation)}"


class Conv2d(Module):
    """activation(conv2d(x, weight, bias)), for images with channels first.

    Args:
        channels_in, channels_out: channels of the input and of the output.
        size: height and width of a window: a pair, or an int for both.
        activation: function of a Tensor, such as ``gg.relu``, or None.
        use_bias: whether there is a bias.
        stride, padding, dilation, groups: see `gg.nn.conv2d`.
        weight_initializer, bias_initializer, generator, dtype: as for `Dense`. The weight's
            initializer gets the shape (height, width, in, out), to compute fans from.

    Attributes:
        weight: Variable of shape (channels_out, channels_in / groups, height, width).
        bias: Variable of shape (channels_out,), or None.

    Raises:
        ArgumentError: a length is not a positive int, or `groups` does not divide both channels.

    >>> layer = gg.nn.Conv2d(3, 8, 3, gg.relu, stride=2, padding="same")
    >>> layer
    Conv2d(3, 8, (3, 3), stride=2, padding='same', activation=relu)
      weight: float32 (8, 3, 3, 3)
      bias: float32 (8,)
    >>> layer(gg.ones((1, 3, 32, 32))).shape
    (1, 8, 16, 16)
    """

    @saying_where
    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        size: int | tuple[int, int],
        activation: Activation = None,
        use_bias: bool = True,
        *,
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        weight_initializer: Initializer = glorot_uniform,
        bias_initializer: Initializer = zeros,
        generator: Generator | None = None,
        dtype: Any = "float32",
    ) -> None:
        pair = tuple(size) if isinstance(size, (tuple, list)) else (size, size)
        if len(pair) != 2:
            raise ArgumentError(f"Conv2d: size must be an int or a pair, got {size!r:.60}.")
        channels_in, channels_out, height, width, groups = whole_numbers(
            "Conv2d",
            channels_in=channels_in,
            channels_out=channels_out,
            height=pair[0],
            width=pair[1],
            groups=groups,
        )
        _check_activation("Conv2d", activation)
        require_callable(
            "Conv2d", weight_initializer=weight_initializer, bias_initializer=bias_initializer
        )
        if channels_in % groups or channels_out % groups:
            raise ArgumentError(
                f"Conv2d: groups={groups} must divide channels_in={channels_in} and "
                f"channels_out={channels_out}."
            )
        self.channels_in, self.channels_out, self.activation = channels_in, channels_out, activation
        self.size = (height, width)
        self.how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        shape = (height, width, channels_in // groups, channels_out)
        weight = weight_initializer(shape, generator=generator, dtype=dtype)
        self.weight = Variable(TENSOR.permute_dims(weight, axes=(3, 2, 0, 1)), name="weight")
        self.bias: Variable | None = None
        if use_bias:
            bias = bias_initializer((channels_out,), generator=generator, dtype=dtype)
            self.bias = Variable(bias, name="bias")

    def forward(self, x: Any) -> Tensor:
        """Map x of shape (..., channels_in, height, width); raises as `gg.nn.conv2d` does."""
        y: Tensor = functional.conv2d(x, self.weight, self.bias, **self.how)
        return y if self.activation is None else self.activation(y)

    def _repr_args(self) -> str:
        defaults = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
        how = "".join(f", {k}={v!r}" for k, v in self.how.items() if v != defaults[k])
        sizes = f"{self.channels_in}, {self.channels_out}, {self.size}"
        return f"{sizes}{how}{_activation_suffix(self.activation)}"


class Embedding(Module):
    """A table with a trainable row for each index, such as a token or a user.

    Args:
        rows: number of rows.
        width: length of a row.
        padding_idx: index of a row that is 0 and gets no gradient, or None.
        sparse: whether the table's gradient is `gg.IndexedSlices` of the rows that were read. The
            gradient of a traced function, by a tape outside it, is dense.
        initializer, generator, dtype: as for `Dense`.

    Attributes:
        weight: Variable of shape (rows, width).

    >>> gg.nn.Embedding(100, 8)(gg.constant([[1, 99, 1]])).shape
    (1, 3, 8)
    """

    @saying_where
    def __init__(
        self,
        rows: int,
        width: int,
        *,
        padding_idx: int | None = None,
        sparse: bool = False,
        initializer: Initializer = normal,
        generator: Generator | None = None,
        dtype: Any = "float32",
    ) -> None:
        rows, width = whole_numbers("Embedding", rows=rows, width=width)
        require_callable("Embedding", initializer=initializer)
        if padding_idx is not None and padding_idx not in range(-rows, rows):
            raise ArgumentError(
                f"Embedding: padding_idx={padding_idx!r:.60} is out of bounds for {rows} rows."
            )
        self.padding_idx, self.sparse = padding_idx, sparse
        weight = constant(initializer((rows, width), generator=generator, dtype=dtype))
        if padding_idx is not None:
            weight[padding_idx] = 0.0  # `constant` has copied what may be a user's array
        self.weight = Variable(weight, name="weight")

    def forward(self, indices: Any) -> Tensor:
        """Map indices of any shape to (*shape, width); raises as `gg.nn.embedding` does."""
        y: Tensor = functional.embedding(
            argument("Embedding", indices),
            self.weight,
            padding_idx=self.padding_idx,
            sparse=self.sparse,
        )
        return y


class Dropout(Module):
    """In `gg.nn.training`, zero elements with probability `p` and scale others by 1 / (1 - p).

    Args:
        p: probability, from 0 to 1.
        noise_shape, generator: see `gg.nn.dropout`.

    >>> layer = gg.nn.Dropout(0.5)
    >>> print(layer(gg.ones(3)))
    [1. 1. 1.]
    >>> with gg.nn.training():
    ...     sorted(set(layer(gg.ones(1000)).tolist()))
    [0.0, 2.0]
    """

    @saying_where
    def __init__(
        self, p: float = 0.5, *, noise_shape: Any = None, generator: Generator | None = None
    ) -> None:
        check_probability("Dropout", "p", p)
        self.p, self.noise_shape, self.generator = p, noise_shape, generator

    def forward(self, x: Any) -> Tensor:
        """Apply dropout in training; otherwise return `x` itself."""
        y: Tensor = functional.dropout(
            x,
            self.p,
            training=is_training(),
            noise_shape=self.noise_shape,
            generator=self.generator,
        )
        return y

    def _repr_args(self) -> str:
        return f"{self.p}"


class Sequential(Module):
    """Layers, or any functions of a Tensor, one after the other.

    Args:
        layers: the layers as arguments, or as one list.

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
                raise ArgumentError(f"Sequential: layer {i} is not callable: {layer!r:.60}.")
        self.layers = list(layers)

    def forward(self, x: Any) -> Any:
        """The result of the last layer."""
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
    """Join all axes but the first: (n, ...) becomes (n, m).

    >>> gg.nn.Flatten()(gg.ones((2, 3, 4))).shape
    (2, 12)
    """

    def forward(self, x: Any) -> Tensor:
        """Map x of shape (n, ...) to (n, m)."""
        x = argument("Flatten", x)
        if not x.ndim:
            raise ShapeError("Flatten: x must have a batch axis, but it is 0-d.")
        return TENSOR.reshape(x, (x.shape[0], math.prod(x.shape[1:])))
