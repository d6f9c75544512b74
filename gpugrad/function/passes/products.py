"""Finds products with the steps that follow: a bias, an activation, its gradient, sums over rows.

So a dense layer is one launch, and so is the gradient with respect to its input, with the
activation before it and the bias of the layer before. Activations are relu and, for 16-bit floats,
gelu with tanh. A convolution takes a bias and relu. A product that is added to another, such as the
gradients of a weight that is used twice, accumulates into it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from gpugrad.core.backend import HALF
from gpugrad.function.passes.epilogues import Product
from gpugrad.function.passes.fuse import axes_of
from gpugrad.function.passes.rewrite import FusedStep, Readers, axis_order, is_addition, is_product
from gpugrad.function.passes.simplify import remove_dead
from gpugrad.kernels.by_hand.rows import FLOATS
from gpugrad.kernels.libraries import cublaslt, cudnn
from gpugrad.ops.nn.convolution import launch_with_bias
from gpugrad.trace.program import Program, Step, Value


def find_products(program: Program) -> Program:
    """Fuse matrix products and convolutions with the steps that follow them."""
    readers = Readers(program)
    removed: set[int] = set()  # steps that are now part of a fused step
    fused: dict[int, Step] = {}  # fused steps, by the id of the step that they replace
    for step in program.steps:
        if is_product(step) and _is_tall(*step.args):
            steps, joined = _product(step, readers, removed, fused)
        elif _is(step, "convolution") and cudnn.binding() is not None:
            steps, joined = _convolved(step, readers)
        else:
            continue
        if joined is None or any(id(s) in fused or id(s) in removed for s in steps):
            continue  # an addition of two products belongs to the first
        removed.update(id(s) for s in steps[:-1])
        fused[id(steps[-1])] = joined
    _share_bits([p for p in fused.values() if isinstance(p, Product)])
    new = program.copy()
    new.steps = [fused.get(id(s), s) for s in program.steps if id(s) not in removed]
    return remove_dead(new)


def _share_bits(products: Sequence[Product]) -> None:
    """Let products with relu's slope read the bits that the product before that relu keeps."""
    by_result = {id(p.outs[0]): p for p in products if p.activation == "relu"}
    for product in products:
        if product.slope == "relu" and id(product.args[2]) in by_result:
            by_result[id(product.args[2])].share(product)


class _Tail(NamedTuple):
    """Steps after a product that its epilogue can do.

    Attributes:
        steps: in order.
        read: their other argument: a bias, what determines the slope, or what is added.
        activation, slope, adds: see `Product`.
        kept: the argument of gelu, if others read it.
    """

    steps: list[Step]
    read: list[Value]
    activation: str = ""
    slope: str = ""
    adds: bool = False
    kept: Sequence[Value] = ()


def _product(
    step: Step, readers: Readers, removed: set[int], fused: dict[int, Step]
) -> tuple[list[Step], Step | None]:
    """The steps that a fused product replaces, at the place of the last, and that product."""
    (out,) = step.outs
    tail = _activated(out, readers) or _multiplied(out, readers)
    summed = None if tail else _late_sum(step, readers, removed)
    if tail is None:
        tail = (_added(step, readers, fused) if summed is None else None) or _Tail([], [])
    steps = [step, *tail.steps]
    outs, sums = [*steps[-1].outs], ""
    if tail.slope:
        summed = _row_sum(readers, outs[0])
    if summed is not None:
        steps, outs, sums = [summed, *steps], [*outs, *summed.outs], "out" if tail.slope else "b"
    if len(steps) == 1:
        return steps, None
    return steps, Product(
        [*step.args, *tail.read],
        [*outs, *tail.kept],
        bias=bool(tail.read) and not (tail.slope or tail.adds),
        activation=tail.activation,
        slope=tail.slope,
        adds=tail.adds,
        sums=sums,
        keeps=bool(tail.kept),
    )


def _activated(v: Value, readers: Readers) -> _Tail | None:
    """A bias that is added to a product, and an activation after it."""
    bias, steps = _bias_and_relu(v, -1, readers)
    if bias is None:
        return None
    if len(steps) == 2:
        return _Tail(steps, [bias], activation="relu")
    (out,) = steps[-1].outs
    gelu = _gelu_of(readers, out)
    if gelu is None:
        return _Tail(steps, [bias])
    kept = [out] if readers.only(out) is None else []
    return _Tail([*steps, gelu], [bias], activation="gelu", kept=kept)


def _multiplied(v: Value, readers: Readers) -> _Tail | None:
    """A multiplication of a product by the derivative of an activation."""
    multiply = readers.only(v)
    if not _is(multiply, "multiply"):
        return None
    slope, of = _slope(readers, _other(multiply, v))
    if of is None or of.shape != v.shape:
        return None
    return _Tail([multiply], [of], slope=slope)


def _added(step: Step, readers: Readers, fused: dict[int, Step]) -> _Tail | None:
    (out,) = step.outs
    add = readers.only(out)
    if add is None or not is_addition(add):
        return None
    other = _other(add, out)
    maker = readers.maker.get(id(other))
    if maker is None or readers.place[id(maker)] > readers.place[id(step)]:
        return None
    same = other.shape == out.shape and other.dtype == out.dtype
    multiplies = is_product(maker) or isinstance(fused.get(id(maker)), Product)
    return _Tail([add], [other], adds=True) if same and multiplies else None


def _late_sum(step: Step, readers: Readers, removed: set[int]) -> Step | None:
    """The step that sums a product's second factor, if nothing needs it before the product."""
    summed = _row_sum(readers, step.args[1])
    if summed is None or id(summed) in removed:
        return None
    at = readers.place[id(step)]
    late = all(readers.place[id(s)] > at for s in readers.of(summed.outs[0]))
    return summed if late else None


def _convolved(step: Step, readers: Readers) -> tuple[list[Step], Step | None]:
    """Like `_product`, for a convolution. cuDNN refuses relu without a bias, channels first."""
    steps, v = [step], step.outs[0]
    moved = readers.only(v)
    last = axis_order(moved) == (0, *range(2, len(v.shape)), 1)  # as (N, *spatial, C)
    if moved is not None and last:
        steps, v = [step, moved], moved.outs[0]
    bias, more = _bias_and_relu(v, -1 if last else 1, readers)
    steps += more
    if bias is None or v.dtype not in FLOATS or any(x.dtype != v.dtype for x in step.inputs):
        return steps, None
    relu, args = len(more) == 2, (*step.args, bias)
    launch = functools.partial(launch_with_bias, relu=relu, last=last, **step.params)
    name = "convolution + bias" + " + relu" * relu
    return steps, FusedStep(name, args, steps, steps[-1].outs, launch)


def _bias_and_relu(v: Value, axis: int, readers: Readers) -> tuple[Value | None, list[Step]]:
    """The bias that is added to a value along an axis; the addition, and relu if that follows."""
    add = readers.only(v)
    if add is None or not is_addition(add):
        return None, []
    bias = _other(add, v)
    if not _is_bias(bias, v, axis):
        return None, []
    relu = readers.only(add.outs[0])
    return bias, [add, relu] if _is(relu, "relu") else [add]


def _is(step: Step | None, *names: str) -> TypeGuard[Step]:
    return step is not None and step.op is not None and step.op.name in names


def _row_sum(readers: Readers, v: Value) -> Step | None:
    for same in readers.same_rows(v):
        for step in readers.of(same):
            if step.op is None or step.op.reduces != "sum" or step.outs[0].dtype != v.dtype:
                continue
            every = axes_of(step) == tuple(range(len(same.shape) - 1))
            if every and step.outs[0].shape == v.shape[-1:]:
                return step
    return None


def _other(step: Step, v: Value) -> Any:
    x, y = step.args
    return y if x is v else x


def _is_tall(a: Any, b: Any) -> bool:
    """Whether the first factor is a matrix or a stack (one tall matrix), the second a matrix."""
    return isinstance(a, Value) and isinstance(b, Value) and len(a.shape) > 1 == len(b.shape) - 1


def _is_bias(bias: Any, v: Value, axis: int) -> bool:
    """Whether `bias` has one element per position along an axis of `v`, and broadcasts."""
    if not isinstance(bias, Value) or bias.dtype != v.dtype:
        return False
    along = [1] * len(v.shape)
    along[axis] = v.shape[axis]
    return [1] * (len(along) - len(bias.shape)) + [*bias.shape] == along


def _gelu_of(readers: Readers, v: Value) -> Step | None:
    """The gelu of a value, if cuBLASLt supports it and nothing reads the value before it."""
    if not _has_gelu(v):
        return None
    first = min(readers.of(v), key=lambda s: readers.place[id(s)], default=None)
    if first is None or not _is(first, "gelu") or first.params["approximate"] != "tanh":
        return None
    return first


def _has_gelu(v: Value) -> bool:
    """Whether cuBLASLt has gelu for a value: 16-bit floats, in rows of a multiple of 8."""
    return cublaslt.binding() is not None and v.dtype in HALF and v.shape[-1] % 8 == 0


def _slope(readers: Readers, factor: Any) -> tuple[str, Value | None]:
    """The activation whose derivative a factor is, and the value that determines it."""
    step = readers.maker.get(id(factor))
    if _is(step, "gelu_tanh_slope") and _has_gelu(step.inputs[0]):
        return "gelu", step.inputs[0]
    return "relu", _positive(readers, factor)


def _positive(readers: Readers, mask: Any) -> Value | None:
    """The result of relu that a mask is computed from: ``mask = out > 0``."""
    step = readers.maker.get(id(mask))
    if not _is(step, "greater"):
        return None
    out, zero = step.args
    if isinstance(zero, Value):
        zero = zero.constant
    of_relu = isinstance(out, Value) and _is(readers.maker.get(id(out)), "relu")
    return out if of_relu and np.ndim(zero) == 0 and zero == 0 else None
