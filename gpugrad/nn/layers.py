"""Dense, embedding and dropout layers, Flatten, Identity and Sequential."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, cast

from gpugrad.autodiff.tape import GradientTape
from gpugrad.core.arguments import COUNT, FLAG, FRACTION, FUNCTION, Kind, one_of, optional, takes
from gpugrad.core.backend import TENSOR
from gpugrad.core.convert import constant
from gpugrad.core.known_as import table
from gpugrad.core.listening import threads
from gpugrad.core.settings import is_training, mode_is_chosen
from gpugrad.core.tensor import Tensor, argument
from gpugrad.core.user_code import user_level
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, GpugradWarning, ShapeError
from gpugrad.nn import functional
from gpugrad.nn.initializers import Initializer, glorot_uniform, normal, uniform, zeros
from gpugrad.nn.module import Module, beside
from gpugrad.ops.random.generator import Generator

Activation = Callable[[Any], Any] | str | None


def _activation(value: Any) -> Callable[[Any], Any]:
    """A function, or the one of that name in `gg.nn`, which takes one array, as in Keras."""
    if isinstance(value, str):
        value = getattr(functional, table("gg.nn").get(value, value))
        parameters = inspect.signature(value).parameters.values()
        if sum(p.default is p.empty for p in parameters) != 1:
            raise ValueError
    return cast(Callable[[Any], Any], FUNCTION("", "", value))


ACTIVATION = Kind(_activation, 'a function such as gg.relu, or a name such as "relu"')


def activation_suffix(activation: Activation) -> str:
    """The activation as an argument in the repr of a layer, after the others."""
    name = getattr(activation, "__name__", None)
    return f", activation={name}" if name else ""


_warned: set[str] = set()
"""The layer classes that have warned."""


def warn_without_training(layer: Any) -> None:
    """Warn, once for each class of layers, if a tape records and nobody has chosen a mode."""
    name = type(layer).__name__
    if name in _warned or mode_is_chosen():
        return
    if any(isinstance(recorder, GradientTape) for recorder in threads.stack):
        _warned.add(name)
        warnings.warn(
            f"{name} runs in inference mode under a GradientTape. To train, put the step in "
            "`with gg.nn.training():`; if inference is meant, in `with gg.nn.training(False):`.",
            GpugradWarning,
            stacklevel=user_level(),
        )


def times_kernel(layer: Any, x: Any) -> Tensor:
    """The input of shape (..., units_in) times the kernel of a layer."""
    x = layer._input(x, layer.kernel)
    if not x.ndim or x.shape[-1] != layer.units_in:
        raise ShapeError(
            f"{type(layer).__name__}: the last axis of x must have length {layer.units_in}, but "
            f"its shape is {x.shape}."
        )
    return TENSOR.matmul(x, layer.kernel)


class Dense(Module):
    """activation(x @ kernel + bias).

    Args:
        units_in: length of the input's last axis.
        units_out: length of the output's last axis.
        activation: function of a Tensor, such as ``gg.relu``, its name ``"relu"``, or None.
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

    @takes(units_in=COUNT, units_out=COUNT, activation=optional(ACTIVATION), use_bias=FLAG)
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
        self.units_in, self.units_out = units_in, units_out
        self.activation: Any = activation
        how = {"generator": generator, "dtype": dtype}
        self.kernel = Variable(kernel_initializer((units_in, units_out), **how))
        self.bias = Variable(bias_initializer((units_out,), **how)) if use_bias else None

    def forward(self, x: Any) -> Tensor:
        """Map x of shape (..., units_in) to (..., units_out).

        Raises:
            ShapeError: the last axis of x does not have length units_in.
        """
        y = times_kernel(self, x)
        if self.bias is not None:
            y = TENSOR.add(y, *beside(y, self.bias))
        return y if self.activation is None else self.activation(y)

    def _repr_args(self) -> str:
        return f"{self.units_in}, {self.units_out}{activation_suffix(self.activation)}"


class Bilinear(Module):
    """x1 @ weight[k] @ x2 + bias[k] for each output k.

    Args:
        units_in1, units_in2: lengths of the inputs' last axes.
        units_out: length of the output's last axis.
        use_bias, bias_initializer, generator, dtype: as for `Dense`.
        weight_initializer: as for `Dense`; by default uniform numbers within
            1 / sqrt(units_in1) of 0.

    Attributes:
        weight: Variable of shape (units_out, units_in1, units_in2).
        bias: Variable of shape (units_out,), or None.

    >>> gg.nn.Bilinear(2, 3, 4)(gg.ones((5, 2)), gg.ones((5, 3))).shape
    (5, 4)
    """

    @takes(units_in1=COUNT, units_in2=COUNT, units_out=COUNT, use_bias=FLAG)
    def __init__(
        self,
        units_in1: int,
        units_in2: int,
        units_out: int,
        use_bias: bool = True,
        *,
        weight_initializer: Initializer | None = None,
        bias_initializer: Initializer = zeros,
        generator: Generator | None = None,
        dtype: Any = "float32",
    ) -> None:
        shape, bound = (units_out, units_in1, units_in2), units_in1**-0.5
        how = {"generator": generator, "dtype": dtype}
        initializer = weight_initializer or functools.partial(uniform, low=-bound, high=bound)
        self.weight = Variable(initializer(shape, **how))
        self.bias = Variable(bias_initializer(shape[:1], **how)) if use_bias else None

    def forward(self, x1: Any, x2: Any) -> Tensor:
        """Map (..., units_in1) and (..., units_in2) to (..., units_out)."""
        x1, x2 = self._input(x1, self.weight), self._input(x2, self.weight)
        return functional.bilinear(x1, x2, self.weight, self.bias)

    def _repr_args(self) -> str:
        n, n1, n2 = self.weight.shape
        return f"{n1}, {n2}, {n}"


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

    _shown = ("rows", "width")

    @takes(rows=COUNT, width=COUNT, sparse=FLAG)
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
        self.rows, self.width, self.padding_idx, self.sparse = rows, width, padding_idx, sparse
        how = {"generator": generator, "dtype": dtype}
        self.weight = _table("Embedding", (rows, width), padding_idx, initializer, **how)

    def forward(self, indices: Any) -> Tensor:
        """Map indices of any shape to (*shape, width); raises as `gg.nn.embedding` does."""
        return functional.embedding(
            argument("Embedding", indices),
            self.weight,
            padding_idx=self.padding_idx,
            sparse=self.sparse,
        )


def _table(
    layer: str, shape: tuple[int, int], padding_idx: Any, initializer: Initializer, **how: Any
) -> Variable:
    """The Variable of an embedding, whose row `padding_idx` is 0."""
    rows = shape[0]
    if padding_idx is not None and padding_idx not in range(-rows, rows):
        raise ArgumentError(
            f"{layer}: padding_idx={padding_idx!r:.60} is out of bounds for {rows} rows."
        )
    weight = constant(initializer(shape, **how))
    if padding_idx is not None:
        weight[padding_idx] = 0.0  # `constant` has copied what may be a user's array
    return Variable(weight)


class EmbeddingBag(Module):
    """Means, sums or maxima of the rows that each bag of indices reads from a table.

    Args:
        rows: number of rows.
        width: length of a row.
        mode: ``"mean"``, ``"sum"`` or ``"max"``.
        padding_idx, sparse, initializer, generator, dtype: as for `Embedding`.

    Attributes:
        weight: Variable of shape (rows, width).

    >>> gg.nn.EmbeddingBag(100, 8)(gg.constant([[1, 99, 1]])).shape
    (1, 8)
    """

    _shown = ("rows", "width")

    @takes(rows=COUNT, width=COUNT, sparse=FLAG, mode=one_of("mean", "sum", "max"))
    def __init__(
        self,
        rows: int,
        width: int,
        *,
        mode: str = "mean",
        padding_idx: int | None = None,
        sparse: bool = False,
        initializer: Initializer = normal,
        generator: Generator | None = None,
        dtype: Any = "float32",
    ) -> None:
        how = {"generator": generator, "dtype": dtype}
        self.rows, self.width, self.mode = rows, width, mode
        self.padding_idx, self.sparse = padding_idx, sparse
        self.weight = _table("EmbeddingBag", (rows, width), padding_idx, initializer, **how)

    def forward(self, indices: Any, per_sample_weights: Any = None) -> Tensor:
        """Map indices of shape (n, m) to (n, width); raises as `gg.nn.embedding_bag` does."""
        factors = per_sample_weights
        if factors is not None:
            factors = self._input(factors, self.weight, "per_sample_weights")
        return functional.embedding_bag(
            argument("EmbeddingBag", indices),
            self.weight,
            factors,
            mode=self.mode,
            padding_idx=self.padding_idx,
            sparse=self.sparse,
        )

    def _repr_args(self) -> str:
        return f"{super()._repr_args()}, mode={self.mode!r}"


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

    _shown = ("p",)

    @takes(p=FRACTION)
    def __init__(
        self, p: float = 0.5, *, noise_shape: Any = None, generator: Generator | None = None
    ) -> None:
        self.p, self.noise_shape, self.generator = p, noise_shape, generator

    def forward(self, x: Any) -> Tensor:
        """Apply dropout in training; otherwise return `x` itself."""
        warn_without_training(self)
        return functional.dropout(
            x,
            self.p,
            training=is_training(),
            noise_shape=self.noise_shape,
            generator=self.generator,
        )


class AlphaDropout(Module):
    """In `gg.nn.training`, dropout that keeps mean and variance, for layers with SELU.

    Args:
        p, generator: as for `Dropout`.

    >>> print(gg.nn.AlphaDropout(0.5)(gg.ones(3)))
    [1. 1. 1.]
    """

    _shown = ("p",)

    @takes(p=FRACTION)
    def __init__(self, p: float = 0.5, *, generator: Generator | None = None) -> None:
        self.p, self.generator = p, generator

    def forward(self, x: Any) -> Tensor:
        """Apply `gg.nn.alpha_dropout` in training; otherwise return `x` itself."""
        warn_without_training(self)
        return functional.alpha_dropout(x, self.p, training=is_training(), generator=self.generator)


class Identity(Module):
    """Return the input, as a placeholder for a layer.

    >>> print(gg.nn.Identity()(gg.ones(2)))
    [1. 1.]
    """

    def forward(self, x: Any) -> Tensor:
        """`x` as a Tensor."""
        return argument("Identity", x)


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

    def __getitem__(self, index: int | slice) -> Any:
        """A layer; for a slice a Sequential of these layers, whose Variables keep their names."""
        if not isinstance(index, slice):
            return self.layers[index]
        part = Sequential.__new__(Sequential)
        part.layers = self.layers[index]
        return part


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
