"""Batch norms joined with the relu that follows, and with its gradient.

A convolutional block is a convolution, a batch norm, perhaps an addition of the block's input, and
relu. The kernel of the norm can add and apply relu on the way; that of its gradient can multiply by
relu's slope. So a block reads and writes its arrays two times less in each direction.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpugrad.core.backend import Reading
from gpugrad.function.passes.rewrite import FusedStep, Readers, is_addition
from gpugrad.kernels.by_hand.channel_norms import with_relu, with_relu_grads
from gpugrad.trace.program import Program, Step, Value

_NORM, _GRADIENT = "standardize_affine", "standardize_affine_grads"
_HOW = "axis", "along", "eps"


class _NormAndRelu(FusedStep):
    """The arguments are x, weight, bias and perhaps an array to add before relu."""

    __slots__ = ()

    def __init__(self, norm: Step, add: Step | None, relu: Step, added: list[Value]) -> None:
        steps = [s for s in (norm, add, relu) if s is not None]
        outs, name = [relu.outs[0], *norm.outs[1:]], " + ".join(s.name for s in steps)
        launch = functools.partial(with_relu, **{k: norm.params[k] for k in _HOW})
        super().__init__(name, [*norm.args, *added], steps, outs, launch)


def _relu_and_norm_grads(
    steps: list[Step], g: list[Value], relu: Value, bias: Value | None
) -> FusedStep:
    """The step of the norm's bias, g, relu's result, and the others of the norm's gradient.

    One more may follow: an array to add to g. The bias is None if relu's argument is more than the
    result of the norm, or other steps read the product of g and the mask, which is a result then.
    """
    *_, mask, gradient = steps
    args = [bias, g[0], relu, *gradient.args[1:], *g[1:]]
    outs = [*gradient.outs, *(mask.outs if bias is None else ())]
    how = {k: gradient.params[k] for k in _HOW}

    def launch(xp: Reading, bias: Any, *arrays: Any) -> Any:
        return with_relu_grads(xp, *arrays, **how, bias=bias)

    step = FusedStep(" + ".join(s.name for s in steps), args, steps, outs, launch)
    step.params = gradient.params
    return step


def join_relus(program: Program) -> Program:
    """Join batch norms with relu and its gradient."""
    for join in (_with_relu, _with_mask):
        readers = Readers(program)
        for step in program.steps:
            joined = join(step, readers)
            moved = None if joined is None else _moved(program, joined)
            if moved is not None:
                program, readers = moved, Readers(moved)
    return program


def _moved(program: Program, joined: FusedStep) -> Program | None:
    """The program with a fused step at the place of its last part.

    Steps that read a result in between move behind it; None if one of them may have effects.
    """
    parts = {id(s) for s in joined.unfused.steps}
    last = id(joined.unfused.steps[-1])
    steps: list[Step] = []
    waiting: list[Step] = []
    results = {id(v) for v in joined.outs}
    for step in program.steps:
        if id(step) == last:
            steps += [joined, *waiting]
            waiting, results = [], set()
        elif id(step) in parts:
            continue
        elif any(id(v) in results for v in step.inputs):
            if (step.op is None and not isinstance(step, FusedStep)) or any(
                id(v) in {id(a) for a in joined.inputs} for v in step.outs
            ):
                return None
            waiting.append(step)
            results |= {id(v) for v in step.outs}
        else:
            steps.append(step)
    new = program.copy()
    new.steps = steps
    return new


# ---- forward -----------------------------------------------------------------------------


def _with_relu(norm: Step, readers: Readers) -> FusedStep | None:
    if norm.name != _NORM or not _is_by_channel(norm) or None in norm.args:
        return None
    y = norm.outs[0]
    reader = readers.only(y)
    add, added = None, []
    if reader is not None and is_addition(reader):
        add, added = reader, [v for v in reader.inputs if v is not y]
        if len(added) != 1 or len(reader.inputs) != 2 or not _alike(added[0], y):
            return None
        maker = readers.maker.get(id(added[0]))
        later = maker is not None and readers.place[id(maker)] > readers.place[id(norm)]
        if later and maker is not None and maker.name == _NORM:  # that one is joined instead
            return None
        y = add.outs[0]
        reader = readers.only(y)
    if reader is None or reader.name != "relu" or not _alike(reader.outs[0], y):
        return None
    return _NormAndRelu(norm, add, reader, added)


# ---- backward ----------------------------------------------------------------------------


def _with_mask(gradient: Step, readers: Readers) -> FusedStep | None:
    if gradient.name != _GRADIENT or not _is_by_channel(gradient):
        return None
    masked = gradient.args[0]
    multiply = readers.maker.get(id(masked))
    if multiply is None or multiply.name != "multiply":
        return None
    place = readers.place[id(gradient)]
    if any(readers.place[id(s)] < place for s in readers.of(masked)):
        return None  # an earlier step needs the cotangent
    for g, mask in (multiply.args, multiply.args[::-1]):
        greater = readers.maker.get(id(mask)) if isinstance(mask, Value) else None
        if greater is None or greater.name != "greater" or not _is_zero(greater.args[1]):
            continue
        relu = greater.args[0]
        if not (_alike(relu, masked) and _alike(g, masked)) or relu is masked:
            return None
        steps, terms = [greater, multiply, gradient], [g]
        add = readers.maker.get(id(g))
        if add is not None and add.op is not None and add.op.view == "broadcast":
            return None  # the kernel would need a copy
        adds = is_addition(add) and readers.only(g) is multiply
        if add is not None and adds and all(_alike(a, g) for a in add.args):
            steps, terms = [add, *steps], [*add.args]
        if readers.only(mask) is not multiply:
            return None
        return _relu_and_norm_grads(steps, terms, relu, _bias(relu, gradient, readers))
    return None


def _bias(relu: Value, gradient: Step, readers: Readers) -> Value | None:
    """The bias of a norm whose relu can be computed again instead of read."""
    norm, (masked, x, mean, var, *_, weight) = readers.maker.get(id(relu)), gradient.args
    if not isinstance(norm, _NormAndRelu) or readers.only(masked) is not gradient:
        return None
    own = (*norm.args[:2], *norm.outs[1:])
    same = all(a is b for a, b in zip(own, (x, weight, mean, var), strict=True))
    if not same or any(norm.params[k] != gradient.params[k] for k in _HOW):
        return None
    return norm.args[2] if len(norm.args) == 3 else None  # nothing is added before relu


def _is_by_channel(step: Step) -> bool:
    """Whether a norm goes over other axes than the last ones, for which kernels are generated."""
    x = step.args[0] if step.name == _NORM else step.args[1]
    n, axis = len(x.shape), step.params["axis"]
    axes = sorted(a % n for a in (axis if isinstance(axis, tuple) else (axis,)))
    return bool(step.params["centered"]) and axes != list(range(n - len(axes), n))


def _alike(a: Any, b: Value) -> bool:
    return isinstance(a, Value) and (a.shape, a.dtype) == (b.shape, b.dtype)


def _is_zero(value: Any) -> bool:
    constant = value.constant if isinstance(value, Value) else value
    return constant is not None and np.ndim(constant) == 0 and bool(constant == 0)
