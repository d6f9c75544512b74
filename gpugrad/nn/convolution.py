"""Convolutions and transposed convolutions over one, two or three axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gpugrad.core.arguments import COUNT, FLAG, optional, takes
from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import Tensor
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError
from gpugrad.nn import functional
from gpugrad.nn.initializers import Initializer, glorot_uniform, zeros
from gpugrad.nn.layers import ACTIVATION, Activation, activation_suffix
from gpugrad.nn.module import Module
from gpugrad.ops.random.generator import Generator

Lengths = int | tuple[int, ...]

_DEFAULTS = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1, "groups": 1}


class _Convolution(Module):
    """The base of the six layers. A subclass says the function and its number of axes."""

    _function: ClassVar[Callable[..., Any]]
    _axes: ClassVar[int]
    _options: ClassVar[tuple[str, ...]] = ("stride", "padding", "dilation", "groups")
    _transposed: ClassVar[bool] = False

    @takes(channels_in=COUNT, channels_out=COUNT, groups=COUNT)
    @takes(activation=optional(ACTIVATION), use_bias=FLAG)
    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        size: Lengths,
        activation: Activation = None,
        use_bias: bool = True,
        *,
        stride: Lengths = 1,
        padding: Lengths | str = 0,
        output_padding: Lengths = 0,
        dilation: Lengths = 1,
        groups: int = 1,
        weight_initializer: Initializer = glorot_uniform,
        bias_initializer: Initializer = zeros,
        generator: Generator | None = None,
        dtype: Any = "float32",
    ) -> None:
        name = type(self).__name__
        self.size = _window(name, size, self._axes)
        if channels_in % groups or channels_out % groups:
            raise ArgumentError(
                f"{name}: groups={groups} must divide channels_in={channels_in} and "
                f"channels_out={channels_out}."
            )
        if output_padding != 0 and not self._transposed:
            raise ArgumentError(
                f"{name}: output_padding={output_padding!r:.60} is for transposed convolutions."
            )
        self.channels_in, self.channels_out = channels_in, channels_out
        self.activation: Any = activation
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.output_padding = output_padding
        how = {"generator": generator, "dtype": dtype}
        shape = (*self.size, channels_in // groups, channels_out)
        # to (out, in, *size), or for a transposed convolution (in, out / groups, *size)
        weight = weight_initializer(shape, **how)
        if self._transposed:
            each = channels_out // groups
            weight = TENSOR.reshape(weight, (*self.size, channels_in // groups, groups, each))
            n = self._axes
            weight = TENSOR.permute_dims(weight, axes=(n + 1, n, n + 2, *range(n)))
            weight = TENSOR.reshape(weight, (channels_in, each, *self.size))
        else:
            weight = TENSOR.permute_dims(
                weight, axes=(self._axes + 1, self._axes, *range(self._axes))
            )
        self.weight = Variable(weight)
        self.bias = Variable(bias_initializer((channels_out,), **how)) if use_bias else None

    def forward(self, x: Any) -> Tensor:
        """Map x of shape (..., channels_in, *lengths); raises as the function of the name does."""
        options = {name: getattr(self, name) for name in self._options}
        y = type(self)._function(self._input(x, self.weight), self.weight, self.bias, **options)
        return y if self.activation is None else self.activation(y)

    def _repr_args(self) -> str:
        options = {name: getattr(self, name) for name in self._options}
        how = "".join(f", {k}={v!r}" for k, v in options.items() if v != _DEFAULTS[k])
        sizes = f"{self.channels_in}, {self.channels_out}, {self.size}"
        return f"{sizes}{how}{activation_suffix(self.activation)}"


def _window(layer: str, size: Any, axes: int) -> tuple[int, ...]:
    lengths = tuple(size) if isinstance(size, (tuple, list)) else (size,) * axes
    if len(lengths) != axes:
        raise ArgumentError(f"{layer}: size must be an int or {axes} ints, got {size!r:.60}.")
    return tuple(COUNT(layer, f"size[{k}]", n) for k, n in enumerate(lengths))


class Conv1d(_Convolution):
    """activation(conv1d(x, weight, bias)), for sequences with channels first: see `Conv2d`.

    >>> gg.nn.Conv1d(3, 8, 5, padding="same")(gg.ones((1, 3, 32))).shape
    (1, 8, 32)
    """

    _function, _axes = staticmethod(functional.conv1d), 1


class Conv2d(_Convolution):
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
        size, stride, padding, dilation, groups, activation: the arguments.

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

    _function, _axes = staticmethod(functional.conv2d), 2


class Conv3d(_Convolution):
    """activation(conv3d(x, weight, bias)), for volumes with channels first: see `Conv2d`.

    >>> gg.nn.Conv3d(1, 2, 3)(gg.ones((1, 1, 5, 5, 5))).shape
    (1, 2, 3, 3, 3)
    """

    _function, _axes = staticmethod(functional.conv3d), 3


class _Transposed(_Convolution):
    _options = ("stride", "padding", "output_padding", "dilation", "groups")
    _transposed = True


class ConvTranspose1d(_Transposed):
    """The transposed convolution over one axis: see `ConvTranspose2d`.

    >>> gg.nn.ConvTranspose1d(3, 8, 4, stride=2, padding=1)(gg.ones((1, 3, 16))).shape
    (1, 8, 32)
    """

    _function, _axes = staticmethod(functional.conv_transpose1d), 1


class ConvTranspose2d(_Transposed):
    """activation(conv_transpose2d(x, weight, bias)): the gradient of a `Conv2d` by its input.

    The arguments are those of `Conv2d`, and `output_padding`: see `gg.nn.conv_transpose2d`.

    Attributes:
        weight: Variable of shape (channels_in, channels_out / groups, height, width).
        bias: Variable of shape (channels_out,), or None.

    >>> gg.nn.ConvTranspose2d(3, 8, 4, stride=2, padding=1)(gg.ones((1, 3, 16, 16))).shape
    (1, 8, 32, 32)
    """

    _function, _axes = staticmethod(functional.conv_transpose2d), 2


class ConvTranspose3d(_Transposed):
    """The transposed convolution over three axes: see `ConvTranspose2d`.

    >>> gg.nn.ConvTranspose3d(1, 2, 2, stride=2)(gg.ones((1, 1, 3, 3, 3))).shape
    (1, 2, 6, 6, 6)
    """

    _function, _axes = staticmethod(functional.conv_transpose3d), 3
