"""Recurrent layers and their cells: RNN, LSTM and GRU."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gpugrad.core import nest
from gpugrad.core.arguments import COUNT, FLAG, FRACTION, takes, whole
from gpugrad.core.backend import TENSOR
from gpugrad.core.convert import constant
from gpugrad.core.tensor import Tensor, argument
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.function.control.api import scan
from gpugrad.nn import functional
from gpugrad.nn.initializers import Initializer, glorot_uniform, orthogonal, zeros
from gpugrad.nn.layers import ACTIVATION, Dropout, times_kernel
from gpugrad.nn.module import Module
from gpugrad.ops.arrays.creation import arange
from gpugrad.ops.random.generator import Generator


class Cell(Module):
    """One step of a recurrent layer. The gates' columns stand side by side in the kernels."""

    _gates: ClassVar[int]
    _state: ClassVar[tuple[str, ...]] = ("h",)
    _shown = ("units_in", "units")
    _without_result = "in a loop"  # of a layer, which calls its parts

    @takes(units_in=COUNT, units=COUNT, use_bias=FLAG)
    def __init__(
        self,
        units_in: int,
        units: int,
        *,
        use_bias: bool = True,
        kernel_initializer: Initializer = glorot_uniform,
        recurrent_initializer: Initializer = orthogonal,
        bias_initializer: Initializer = zeros,
        generator: Generator | None = None,
        dtype: Any = "float32",
    ) -> None:
        self.units_in, self.units = units_in, units
        n, how = self._gates * self.units, {"generator": generator, "dtype": dtype}
        self.kernel = Variable(kernel_initializer((self.units_in, n), **how))
        self.recurrent_kernel = Variable(recurrent_initializer((self.units, n), **how))
        self.bias = Variable(bias_initializer((n,), **how)) if use_bias else None

    def initial_state(self, batch: tuple[int, ...]) -> Any:
        """Zeros of the batch's shape, as the state before the first step."""
        return constant(0, self.kernel.dtype, (*batch, self.units), device=self.kernel.device)

    def as_state(self, state: Any, batch: tuple[int, ...]) -> Any:
        """The user's state before the first step, or zeros if it is None.

        Raises:
            ArgumentError: it has not the parts of this cell's state.
            ShapeError, DTypeError: a part does not fit the batch or the weights.
        """
        if state is None:
            return self.initial_state(batch)
        name, names = type(self).__name__, self._state
        if len(names) == 1:
            return self._as_part(state, batch, "state")
        if not isinstance(state, (tuple, list)) or len(state) != len(names):
            raise ArgumentError(
                f"{name}: state must be ({', '.join(names)}), got {type(state).__name__} "
                f"{state!r:.60}."
            )
        return tuple(self._as_part(part, batch, n) for part, n in zip(state, names, strict=True))

    def _as_part(self, part: Any, batch: tuple[int, ...], what: str) -> Tensor:
        part = self._input(part, self.kernel, what)
        if part.shape != (*batch, self.units):
            raise ShapeError(
                f"{type(self).__name__}: {what} must have the shape {(*batch, self.units)}, got "
                f"{part.shape}."
            )
        return part

    def project(self, x: Any) -> Tensor:
        """The input's part of the gates, for one step or for all at once."""
        y = times_kernel(self, x)
        if self.bias is not None:
            y = TENSOR.add(y, self.bias)
        # with mixed precision products are 16-bit, but the state is not
        return y if y.dtype == self.kernel.dtype else TENSOR.astype(y, self.kernel.dtype)

    def step(self, projected: Tensor, state: Any) -> Any:
        """The next state, from the input's part of the gates."""
        raise NotImplementedError

    def output(self, state: Any) -> Tensor:
        """The output of a step: the state, or a part of it."""
        return state

    def forward(self, x: Any, state: Any = None) -> Any:
        """The next state, from x of shape (..., units_in) and the state; by default zeros."""
        projected = self.project(x)
        return self.step(projected, self.as_state(state, projected.shape[:-1]))


class RNNCell(Cell):
    """h = activation(x @ kernel + h @ recurrent_kernel + bias).

    Args:
        units_in: length of the input's last axis.
        units: length of the state's last axis.
        activation: function of a Tensor.
        use_bias: whether there is a bias.
        kernel_initializer, recurrent_initializer, bias_initializer, generator, dtype: as for
            `Dense`.

    Attributes:
        kernel: Variable of shape (units_in, units).
        recurrent_kernel: Variable of shape (units, units).
        bias: Variable of shape (units,), or None.

    >>> gg.nn.RNNCell(3, 4)(gg.ones((2, 3))).shape
    (2, 4)
    """

    _gates = 1

    @takes(activation=ACTIVATION)
    def __init__(
        self, units_in: int, units: int, *, activation: Any = functional.tanh, **keywords: Any
    ) -> None:
        super().__init__(units_in, units, **keywords)
        self.activation = activation

    def step(self, projected: Tensor, state: Any) -> Any:
        """The next state."""
        return self.activation(projected + TENSOR.matmul(state, self.recurrent_kernel))


class LSTMCell(Cell):
    """The cell of a long short-term memory: Hochreiter and Schmidhuber 1997.

    The state is a pair (h, c). With i, f, g and o, four columns of
    ``x @ kernel + h @ recurrent_kernel + bias``: c = sigmoid(f) c + sigmoid(i) tanh(g), and
    h = sigmoid(o) tanh(c). The order is torch's and Keras's.

    Args and attributes are those of `RNNCell`, without the activation, but kernels and bias have
    4 units columns. The part of the bias for f begins at 1 with `unit_forget_bias`.

    >>> h, c = gg.nn.LSTMCell(3, 4)(gg.ones((2, 3)))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    _gates = 4
    _state = ("h", "c")

    @takes(unit_forget_bias=FLAG)
    def __init__(
        self, units_in: int, units: int, *, unit_forget_bias: bool = True, **keywords: Any
    ) -> None:
        super().__init__(units_in, units, **keywords)
        if unit_forget_bias and self.bias is not None:
            n = self.units
            bias = self.bias.value().copy()
            bias[n : 2 * n] = 1.0
            self.bias.assign(bias)

    def initial_state(self, batch: tuple[int, ...]) -> Any:
        """Zeros of the batch's shape, as the pair (h, c) before the first step."""
        return super().initial_state(batch), super().initial_state(batch)

    def step(self, projected: Tensor, state: Any) -> Any:
        """The next state."""
        h, c = state
        n = self.units
        gates = projected + TENSOR.matmul(h, self.recurrent_kernel)
        i, f, g, o = (gates[..., k * n : (k + 1) * n] for k in range(4))
        c = TENSOR.sigmoid(f) * c + TENSOR.sigmoid(i) * TENSOR.tanh(g)
        return TENSOR.sigmoid(o) * TENSOR.tanh(c), c

    def output(self, state: Any) -> Tensor:
        """H."""
        return state[0]


class GRUCell(Cell):
    """The cell of a gated recurrent unit: Cho et al. 2014.

    With r, z and n, three columns of x @ kernel + bias, and of h @ recurrent_kernel +
    recurrent_bias (marked '): r = sigmoid(r + r'), z = sigmoid(z + z'),
    h = z h + (1 - z) tanh(n + r n'). The order and the place of r are torch's; in Keras they are
    those of ``reset_after=True``, with z before r.

    Args and attributes are those of `RNNCell`, without the activation, but kernels and biases have
    3 units columns, and there is a `recurrent_bias`.

    >>> gg.nn.GRUCell(3, 4)(gg.ones((2, 3))).shape
    (2, 4)
    """

    _gates = 3

    def __init__(
        self,
        units_in: int,
        units: int,
        *,
        use_bias: bool = True,
        bias_initializer: Initializer = zeros,
        generator: Generator | None = None,
        dtype: Any = "float32",
        **keywords: Any,
    ) -> None:
        how = {"generator": generator, "dtype": dtype}
        super().__init__(
            units_in, units, use_bias=use_bias, bias_initializer=bias_initializer, **how, **keywords
        )
        shape = (3 * self.units,)
        self.recurrent_bias = Variable(bias_initializer(shape, **how)) if use_bias else None

    def step(self, projected: Tensor, state: Any) -> Any:
        """The next state."""
        n, own = self.units, TENSOR.matmul(state, self.recurrent_kernel)
        if self.recurrent_bias is not None:
            own = own + self.recurrent_bias
        gates = TENSOR.sigmoid(projected[..., : 2 * n] + own[..., : 2 * n])
        r, z = gates[..., :n], gates[..., n:]
        new = TENSOR.tanh(projected[..., 2 * n :] + r * own[..., 2 * n :])
        return new + z * (state - new)


class Recurrent(Module):
    """Layers of cells that run along the time axis."""

    _cell: ClassVar[type[Cell]]

    @takes(units_in=COUNT, units=COUNT, layers=whole(1, 1000), bidirectional=FLAG, dropout=FRACTION)
    def __init__(
        self,
        units_in: int,
        units: int,
        layers: int = 1,
        *,
        bidirectional: bool = False,
        dropout: float = 0.0,
        **keywords: Any,
    ) -> None:
        self.units_in, self.units, self.bidirectional = units_in, units, bidirectional
        both = 2 if bidirectional else 1
        widths = [units_in, *[both * units] * (layers - 1)]
        self.cells = [self._cell(n, units, **keywords) for n in widths]
        self.reverse_cells = (
            [self._cell(n, units, **keywords) for n in widths] if bidirectional else []
        )
        self.dropout = Dropout(dropout) if dropout and layers > 1 else None

    def forward(
        self, x: Any, state: Any = None, *, lengths: Any = None
    ) -> tuple[Tensor, list[Any]]:
        """Run over x of shape (batch..., time, units_in).

        Args:
            x: the input.
            state: the states before the first step, as they are returned; by default zeros.
            lengths: integers of shape (batch...), for sequences that are padded at their ends:
                later steps change no state, and their outputs are 0. With a mask of the padding,
                they are ``gg.sum(mask, axis=-1)``.

        Returns:
            The outputs of the last layer, of shape (batch..., time, units), twice as wide if
            bidirectional; and the last state of each layer, for a bidirectional layer a pair.

        Raises:
            ShapeError: `x` has fewer than two axes, its last is not `units_in` long, or `lengths`
                or a state does not fit the batch.
            DTypeError: `lengths` are no integers, or a state is 64-bit and the weights are not.
            ArgumentError: `state` has not one entry for each layer.
        """
        name = type(self).__name__
        if state is not None and len(state) != len(self.cells):
            raise ArgumentError(
                f"{name}: state must be a list of the states of {len(self.cells)} layers, its "
                f"length is {len(state)}."
            )
        last: list[Any] = []
        for k, cell in enumerate(self.cells):
            if k and self.dropout is not None:
                x = self.dropout(x)
            before = None if state is None else state[k]
            if not self.bidirectional:
                x, after = _run(cell, x, before, lengths)
            else:
                before = (None, None) if before is None else before
                if not isinstance(before, (tuple, list)) or len(before) != 2:
                    raise ArgumentError(
                        f"{name}: the state of a bidirectional layer must be the pair (forwards, "
                        f"backwards), got {type(before).__name__} {before!r:.60}."
                    )
                y, after_there = _run(cell, x, before[0], lengths)
                z, after_back = _run(self.reverse_cells[k], x, before[1], lengths, reverse=True)
                x, after = TENSOR.concat([y, z], axis=-1), (after_there, after_back)
            last.append(after)
        return x, last

    def _repr_args(self) -> str:
        layers = f", {len(self.cells)}" if len(self.cells) > 1 else ""
        both = ", bidirectional=True" if self.bidirectional else ""
        return f"{self.units_in}, {self.units}{layers}{both}"


def _run(cell: Cell, x: Any, state: Any, lengths: Any, reverse: bool = False) -> tuple[Tensor, Any]:
    """The outputs of a cell along the time axis, and its last state."""
    name = type(cell).__name__
    steps = _projected(cell, cell._input(x, cell.kernel))
    batch = steps.shape[1:-1]
    first = cell.as_state(state, batch)
    if lengths is None:

        def step(carry: Any, part: Any) -> tuple[Any, Tensor]:
            carry = cell.step(part, carry)
            return carry, cell.output(carry)

        state, ys = scan(step, first, steps, reverse=reverse)
    else:

        def masked_step(carry: Any, part: Any) -> tuple[Any, Tensor]:
            projected, inside = part
            new = cell.step(projected, carry)
            y = cell.output(new)
            pairs = zip(nest.flatten(new), nest.flatten(carry), strict=True)
            kept = nest.pack(carry, [TENSOR.where(inside, n, c) for n, c in pairs])
            return kept, TENSOR.where(inside, y, 0)

        inside = _inside(name, lengths, len(steps), batch)
        state, ys = scan(masked_step, first, (steps, inside), reverse=reverse)
    return TENSOR.moveaxis(ys, source=0, destination=-2), state


def _projected(cell: Cell, x: Tensor) -> Tensor:
    """The input's part of the gates, of shape (steps, *batch, columns), in one product.

    The steps come first before the product: it has several times as many columns to move.
    """
    if x.ndim < 2 or x.shape[-1] != cell.units_in:
        cell.project(x)  # raises if the features do not fit
        raise ShapeError(
            f"{type(cell).__name__}: x needs a time axis, but it has only {cell.units_in} features."
        )
    x = TENSOR.moveaxis(x, source=-2, destination=0)
    rows = TENSOR.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
    projected = cell.project(rows)
    return TENSOR.reshape(projected, (*x.shape[:-1], projected.shape[-1]))


def _inside(name: str, lengths: Any, steps: int, batch: tuple[int, ...]) -> Tensor:
    """Booleans of shape (steps, *batch, 1): whether a step is before the end of its sequence."""
    lengths = argument(name, lengths)
    if lengths.dtype.kind not in "iu":
        raise DTypeError(f"{name}: lengths must be integers, got {lengths.dtype}.")
    if lengths.shape != batch:
        raise ShapeError(f"{name}: lengths must have the shape {batch}, got {lengths.shape}.")
    times = arange(steps, dtype=lengths.dtype, device=lengths.device)
    times = TENSOR.reshape(times, (steps, *(1,) * (len(batch) + 1)))
    return times < TENSOR.expand_dims(lengths, axis=-1)


class RNN(Recurrent):
    """A recurrent layer of `RNNCell` along the second-to-last axis.

    Args:
        units_in: length of the input's last axis.
        units: length of the state's and output's last axis.
        layers: number of layers, each of which reads the outputs of the one before.
        bidirectional: whether cells of their own run backwards, too, and outputs are joined.
        dropout: probability with which `gg.nn.training` drops outputs between layers.
        keywords: arguments of the cell, such as `activation`, `use_bias`, `generator` and `dtype`.

    Attributes:
        cells, reverse_cells: the cell of each layer, forwards and backwards.

    >>> y, state = gg.nn.RNN(3, 4)(gg.ones((2, 7, 3)))
    >>> y.shape, state[0].shape
    ((2, 7, 4), (2, 4))
    """

    _cell = RNNCell


class LSTM(Recurrent):
    """A recurrent layer of `LSTMCell`; args and attributes are those of `RNN`.

    >>> y, [(h, c)] = gg.nn.LSTM(3, 4)(gg.ones((2, 7, 3)))
    >>> y.shape, h.shape, c.shape
    ((2, 7, 4), (2, 4), (2, 4))
    """

    _cell = LSTMCell


class GRU(Recurrent):
    """A recurrent layer of `GRUCell`; args and attributes are those of `RNN`.

    >>> y, state = gg.nn.GRU(3, 4, layers=2, bidirectional=True)(gg.ones((2, 7, 3)))
    >>> y.shape, len(state)
    ((2, 7, 8), 2)
    """

    _cell = GRUCell
