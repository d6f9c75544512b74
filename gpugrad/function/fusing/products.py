"""Products with what follows them: a bias, an activation, its gradient, sums over the rows.

cuBLASLt does these at the end of a product of matrices, before the result leaves the chip: a dense
layer is one launch, and so is the gradient by its input with the activation before it and that
layer's bias. Activations are relu and, of 16-bit floats, gelu by a tanh. cuDNN does a bias and relu
at the end of a convolution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.backend import HALF, NUMPY, Namespace
from gpugrad.function.fusing.fuse import axes_of
from gpugrad.function.fusing.joined import Joined
from gpugrad.function.passes.dead import remove_dead
from gpugrad.function.readers import Readers
from gpugrad.kernels import cublaslt, cudnn
from gpugrad.kernels.rows import FLOATS
from gpugrad.ops.convolution import launch_with_bias
from gpugrad.program import Program, Step, Value

__all__ = ["Convolved", "Product", "find_products"]


class Product(Step):
    """``a @ b``, and what is done to it at once.

    The arguments are a, b, then the bias; or what the slope is told from, relu's result or gelu's
    argument, and of relu what its product kept. The results are the product, then the sums, then
    what is kept, if there are such.

    Attributes:
        bias: whether a bias is added to each row.
        activation: "relu" or "gelu" if that follows, else "".
        slope: the activation by whose derivative the result is multiplied, or "".
        keeps: whether others read what the activation keeps for its gradient: bits of relu, the
            argument of gelu.
        sums: ``"out"`` if the sum over all rows of the result is a second result, ``"b"`` if
            that of the second factor is, else ``""``. The first is of one with a slope, the
            second of one with nothing else.
    """

    __slots__ = ("activation", "bias", "keeps", "slope", "sums")

    def __init__(
        self, args: Sequence[Any], outs: list[Value], *, bias: bool, activation: str, slope: str,
        sums: str, keeps: bool,
    ) -> None:  # fmt: skip
        self.bias, self.activation, self.slope, self.sums = bias, activation, slope, sums
        self.keeps = keeps
        parts = ["matmul", "bias" * bias, activation, slope and f"{slope}_grad"]
        parts.append(sums and f"sum of {sums}")
        super().__init__(None, args, {}, outs, name=" + ".join(filter(None, parts)))

    def share(self, masked: Product) -> None:
        """Let another product read what this one keeps of its relu."""
        if not self.keeps:
            self.keeps = True
            *stack, columns = self.outs[0].shape
            shape = cublaslt.relu_aux_shape(math.prod(stack), columns)
            bits = np.broadcast_to(np.uint8(0), shape)
            self.outs = [*self.outs, Value(bits)]
        masked.args = (*masked.args, self.outs[-1])

    def run(self, xp: Namespace, a: Any, b: Any, *rest: Any) -> list[Any]:
        """On bare arrays: in one launch where cuBLASLt can."""
        made = NotImplemented if xp is NUMPY else self._in_one(xp.lib, a, b, *rest)
        return self._one_by_one(xp, a, b, *rest) if made is NotImplemented else made

    def _one_by_one(self, xp: Namespace, a: Any, b: Any, *rest: Any) -> list[Any]:
        out = xp.matmul(a, b)
        out = kept = xp.add(out, rest[0]) if self.bias else out
        if self.activation == "relu":
            out = kept = xp.relu(out)  # no bits then
        elif self.activation == "gelu":
            out = xp.gelu(out, approximate="tanh")
        if self.slope == "relu":
            out = xp.multiply(out, xp.greater(rest[0], 0))
        elif self.slope == "gelu":
            out = xp.multiply(out, xp.gelu_tanh_slope(rest[0]))
        made, summed = [out], {"out": out, "b": b}.get(self.sums)
        if summed is not None:
            made.append(xp.sum_to(summed, summed.shape[-1:]))
        return [*made, kept] if self.keeps else made

    def _in_one(self, lib: Any, a: Any, b: Any, *rest: Any) -> Any:
        shape, n = (*a.shape[:-1], b.shape[1]), b.shape[1]
        a = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
        bias = lib.empty(n, dtype=a.dtype) if self.sums or self.slope else None
        aux: Any = None
        name = "bgrad_b" if self.sums else "default"
        if self.slope:
            aux, name = rest[-1], f"d{self.slope}_bgrad"
            if self.slope == "gelu":
                aux = lib.ascontiguousarray(aux).reshape(len(a), n)
            elif aux.dtype != np.uint8:
                return NotImplemented
        elif self.bias:
            bias, name = lib.ascontiguousarray(rest[0]), "bias"  # its numbers are read in a row
            if self.activation:
                name = f"{self.activation}_aux_bias" if self.keeps else f"{self.activation}_bias"
            if self.keeps:
                gelu = self.activation == "gelu"
                aux = (
                    cublaslt.gelu_aux(lib, len(a), n, a.dtype) if gelu
                    else cublaslt.relu_aux(lib, len(a), n)
                )  # fmt: skip
        made = cublaslt.product(lib, a, b, epilogue=name, bias=bias, aux=aux)
        if made is NotImplemented:
            return made
        made = made.reshape(shape)
        found = [made, bias] if self.sums else [made]
        if self.keeps:
            found.append(aux.reshape(shape) if self.activation == "gelu" else aux)
        return found


class Convolved(Joined):
    """A convolution, a bias for each channel, and relu, if that follows: where cuDNN is installed.

    The arguments are x, w and the bias, which is as long as there are channels along one axis and
    1 along the others. The metadata is the convolution's.

    Attributes:
        relu: whether relu follows.
        last: whether the channels of the result are its last axis, not its second.
    """

    __slots__ = ("last", "relu")

    def __init__(self, args: Sequence[Any], steps: list[Step], *, relu: bool, last: bool) -> None:
        self.relu, self.last = relu, last
        super().__init__("convolution + bias" + " + relu" * relu, args, steps, steps[-1].outs)

    def run(self, xp: Namespace, *arrays: Any) -> Any:
        """As of a `Joined`: cuDNN may decline."""
        made = launch_with_bias(xp, *arrays, relu=self.relu, last=self.last, **self.params)
        return made if made is NotImplemented else [made]


def _is(step: Step | None, *names: str) -> bool:
    return step is not None and step.op is not None and step.op.name in names


def _row_sum(readers: Readers, v: Value) -> Step | None:
    """The step that sums a matrix, or a stack of them, over all rows."""
    for same in readers.alike(v):
        for step in readers.of(same):
            whole = axes_of(step) if _is(step, "sum", "sum_to") else ()
            if whole == tuple(range(len(same.shape) - 1)) and step.outs[0].shape == v.shape[-1:]:
                return step
    return None


def _other(step: Step, v: Value) -> Any:
    x, y = step.args
    return y if x is v else x


def find_products(program: Program) -> Program:
    """Join products of matrices, and convolutions, with the steps that follow them."""
    readers = Readers(program)
    gone: set[int] = set()  # steps that are part of a product now
    made: dict[int, Step] = {}  # by the step in whose place they stand
    for step in program.steps:
        if _is(step, "matmul") and _is_tall(*step.args):
            _join(step, readers, gone, made)
        elif _is(step, "convolution") and cudnn.binding() is not None:
            _join_convolution(step, readers, gone, made)
    products = [p for p in made.values() if isinstance(p, Product)]
    by_result = {id(p.outs[0]): p for p in products if p.activation == "relu"}
    for product in products:
        forward = by_result.get(id(product.args[2])) if product.slope == "relu" else None
        if forward is not None and forward.bias:
            forward.share(product)
    joined = program.copy()
    joined.steps = [made.get(id(s), s) for s in program.steps if id(s) not in gone]
    return remove_dead(joined)


def _join(step: Step, readers: Readers, gone: set[int], made: dict[int, Step]) -> None:
    args, taken, v = list(step.args), [step], step.outs[0]
    slope, kept = "", []
    bias, relu, v = _bias_and_relu(v, -1, readers, taken)
    activation = "relu" * relu
    after = readers.only(v)
    if bias is not None:
        args.append(bias)
        gelu = None if relu else _gelu_of(readers, v)
        if gelu is not None:
            activation, kept = "gelu", [v] * (after is None)
            v = _take(gelu, taken)
    elif _is(after, "multiply"):
        slope, of = _slope(readers, _other(after, v))  # type: ignore[arg-type]
        if of is not None and of.shape == v.shape:
            args.append(of)
            v = _take(after, taken)
        else:
            slope = ""
    sums, summed = "", None
    if slope and (summed := _row_sum(readers, v)):
        sums = "out"
    elif len(taken) == 1 and (summed := _row_sum(readers, step.args[1])):
        at = readers.place[id(taken[-1])]
        late = all(readers.place[id(s)] > at for s in readers.of(summed.outs[0]))
        sums, summed = ("b", summed) if late and id(summed) not in gone else ("", None)
    if (len(taken) == 1 and not sums) or any(id(s) in made or id(s) in gone for s in taken):
        return  # what adds two products of one row is part of the first
    outs = [v, *([] if summed is None else summed.outs), *kept]
    gone.update(id(s) for s in taken[:-1])
    if summed is not None:
        gone.add(id(summed))
    made[id(taken[-1])] = Product(
        args, outs, bias=bias is not None, activation=activation, slope=slope, sums=sums,
        keeps=bool(kept),
    )  # fmt: skip


def _join_convolution(
    step: Step, readers: Readers, gone: set[int], made: dict[int, Step]
) -> None:  # fmt: skip
    """Join it with a bias, and relu behind that: relu alone cuDNN refuses for channels first."""
    taken, v = [step], step.outs[0]
    after = readers.only(v)
    if last := _puts_channels_last(after, v):
        v = _take(after, taken)
    bias, relu, _ = _bias_and_relu(v, -1 if last else 1, readers, taken)
    if any(id(s) in made for s in taken):
        return
    if bias is not None and v.dtype in FLOATS and all(x.dtype == v.dtype for x in step.inputs):
        gone.update(id(s) for s in taken[:-1])
        made[id(taken[-1])] = Convolved((*step.args, bias), taken, relu=relu, last=last)


def _bias_and_relu(
    v: Value, axis: int, readers: Readers, taken: list[Step]
) -> tuple[Value | None, bool, Value]:
    """What is added to a value along an axis, whether relu follows, and the result of both."""
    after = readers.only(v)
    bias = _other(after, v) if _is(after, "add") else None  # type: ignore[arg-type]
    if not _is_bias(bias, v, axis):
        return None, False, v
    v = _take(after, taken)
    after = readers.only(v)
    return (bias, True, _take(after, taken)) if _is(after, "relu") else (bias, False, v)


def _take(step: Any, taken: list[Step]) -> Value:
    taken.append(step)
    out: Value = step.outs[0]
    return out


def _is_tall(a: Any, b: Any) -> bool:
    """Whether a product is of one matrix by another, or of a stack, which is one tall matrix."""
    return isinstance(a, Value) and isinstance(b, Value) and len(a.shape) > 1 == len(b.shape) - 1


def _is_bias(bias: Any, v: Value, axis: int) -> bool:
    """Whether a value has one number for each place along an axis of another."""
    if not isinstance(bias, Value) or bias.dtype != v.dtype:
        return False
    along = [1] * len(v.shape)
    along[axis] = v.shape[axis]
    return [1] * (len(along) - len(bias.shape)) + [*bias.shape] == along


def _puts_channels_last(step: Any, v: Value) -> bool:
    """Whether a step makes of an array (N, C, *spatial) a view (N, *spatial, C)."""
    if not _is(step, "moveaxis", "permute_dims", "swapaxes", "matrix_transpose"):
        return False
    n = len(v.shape)
    axes = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), v.shape, range(n))
    moved = step.op.bare(NUMPY)(axes, **step.params)  # whose strides say which axis is where
    return bool(moved.strides == (0, *range(2, n), 1))


def _gelu_of(readers: Readers, v: Value) -> Step | None:
    """The gelu of a value, if cuBLASLt has it and nothing reads the value before it."""
    if not _has_gelu(v):
        return None
    first = min(readers.of(v), key=lambda s: readers.place[id(s)], default=None)
    if first is None or not _is(first, "gelu") or first.params["approximate"] != "tanh":
        return None
    return first


def _has_gelu(v: Value) -> bool:
    """Whether cuBLASLt has gelu, rounded as 16-bit floats are, for rows that are whole packs."""
    return cublaslt.binding() is not None and v.dtype in HALF and v.shape[-1] % 8 == 0


def _slope(readers: Readers, factor: Any) -> tuple[str, Value | None]:
    """Of which activation a factor is the derivative, and of which value it is told."""
    step = readers.made.get(id(factor))
    if _is(step, "gelu_tanh_slope") and _has_gelu(step.inputs[0]):  # type: ignore[union-attr]
        return "gelu", step.inputs[0]  # type: ignore[union-attr]
    return "relu", _positive(readers, factor)


def _positive(readers: Readers, mask: Any) -> Value | None:
    """The relu's result that a mask is made of: ``mask = out > 0``."""
    step = readers.made.get(id(mask))
    if step is None or not _is(step, "greater") or not isinstance(step.args[0], Value):
        return None
    zero: Any = step.args[1]
    if isinstance(zero, Value):
        zero = zero.constant
    of: Value = step.args[0]
    made = readers.made.get(id(of))
    return (
        of if made is not None and _is(made, "relu") and np.ndim(zero) == 0 and zero == 0 else None
    )
