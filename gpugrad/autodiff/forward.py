"""Forward mode: tangents carried along with the values, from the same op records.

The JVP of an op of one result is found in this order: its partials; itself, where it is linear;
a written rule; else its VJP transposed: g -> vjp(g) is linear in g, so differentiating
<vjp(g), t> by g gives the JVP of t. That of an op of several is its VJP transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from gpugrad.autodiff.arguments import (
    UnconnectedGradients,
    check_like,
    fill_unconnected,
    flatten_tensors,
    zeros_for,
)
from gpugrad.autodiff.backward import refit, zeros
from gpugrad.autodiff.readings import each_saved, revive
from gpugrad.autodiff.recorder import number_any
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import nest
from gpugrad.core.backend import SCALARS, TENSOR, as_array, is_inexact, reading
from gpugrad.core.devices import formulas_on
from gpugrad.core.tensor import Tensor, index_parts, tensor, threads, wrap
from gpugrad.errors import ArgumentError, DTypeError, TapeError
from gpugrad.trace.listener import Listener

__all__ = ["ForwardAccumulator", "tangent_by"]


class ForwardAccumulator(Listener):
    """Computes Jacobian-vector products while the program runs.

    Args:
        primals: Tensors and Variables, or a nested structure of them.
        tangents: directions, in the same structure, each of its primal's shape.

    Nests in itself and in tapes both ways: what is entered first sees what the later ones
    compute.

    Raises:
        StructureError, ShapeError, DTypeError: tangents that do not fit the primals.
        ArgumentError: the same primal twice.

    >>> x = gg.constant(3.0)
    >>> with gg.ForwardAccumulator(x, gg.constant(1.0)) as acc:
    ...     y = x * x
    >>> acc.jvp(y).item()
    6.0
    """

    passive = False

    def __init__(self, primals: Any, tangents: Any) -> None:
        found = flatten_tensors("primals", primals)
        self.known: dict[int, Tensor] = {}
        self.dead: set[int] = set()
        for primal, t in zip(
            found, nest.flatten_like(primals, tangents, "tangents"), strict=True
        ):  # fmt: skip
            if number_any(primal) in self.known:
                raise ArgumentError("ForwardAccumulator: a tensor is there twice as a primal.")
            if not is_inexact(primal.dtype):
                raise DTypeError(
                    f"ForwardAccumulator: a {primal.dtype} primal has no tangent; cast it first."
                )
            # a copy: ``t[i] = v`` on the user's object must not change the tangent
            self.known[primal._id] = copy(check_like("tangents", "primal", primal, t))

    def __enter__(self) -> ForwardAccumulator:
        if self._stack is not None:
            raise TapeError("The accumulator is recording already; it cannot be entered again.")
        self.listen()
        return self

    def __exit__(self, *exc: object) -> None:
        self.leave()

    def jvp(self, primals: Any, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        """Tangents of Tensors that were computed from the primals, in the same structure.

        Args:
            primals: a Tensor or Variable, or a nested structure of them.
            unconnected_gradients: ``"none"`` or ``"zero"``: what there is for one that does
                not depend on the primals.
        """
        found = flatten_tensors("jvp", primals)
        results = [copy(self.known[t._id]) if t._id in self.known else None for t in found]
        return nest.pack(primals, fill_unconnected(results, found, unconnected_gradients))

    def take(self, entry: Any, out: Any) -> None:
        """Compute the tangent of an op's result, seen only by recorders that enclose this one."""
        op, serial, ids, shapes_and_dtypes, saved, params = entry
        stack = threads.stack
        below = stack[: stack.index(self)]
        outs = out if isinstance(out, tuple) else (out,)
        threads.stack = below
        try:
            with formulas_on(outs[0]._data):
                raw = all(recorder.passive for recorder in below)
                how = tangent_by(op)
                tangents = [self.known.get(i) for i in ids]
                if raw and how != "transposed":
                    given = [t if t is None else t._data for t in tangents]
                    index = index_parts(params["index"]) if params and "index" in params else ()
                    xp = reading(*given, *each_saved(saved), *index)  # as in backward
                    made = _push(op, how, xp, given, saved, params, outs[0]._data)
                    self._keep(
                        outs[0], None if made is None else wrap(as_array(made, type(outs[0]._data)))
                    )
                    return
                alive = revive(op, saved, serial, ids)
                if how == "transposed":
                    results = _transpose(op, tangents, shapes_and_dtypes, alive, params, outs)
                    for o, result in zip(outs, results, strict=True):
                        self._keep(o, result)
                else:
                    self._keep(outs[0], _push(op, how, TENSOR, tangents, alive, params, outs[0]))
        finally:
            threads.stack = stack

    def _keep(self, out: Tensor, t: Tensor | None) -> None:
        if t is not None:
            self.known[out._id] = t
        else:
            self.known.pop(out._id, None)


def tangent_by(op: Any) -> str:
    """What makes an op's tangents: ``"partials"``, ``"itself"``, a ``"rule"``, or its VJP."""
    if op.partials is not None:
        return "partials"
    if op.outputs != 1:  # the other two give one tangent
        return "transposed"
    if op.linear == "each" or (op.linear and len(op.arrays) == 1):
        return "itself"
    return "transposed" if op.jvps is None else "rule"


def _push(
    op: Any, how: str, xp: Any, tangents: list[Any], saved: Any, params: Any, out: Any
) -> Any:
    """The tangent of an op's one result, by its partials, its linearity or its written rule."""
    keywords = params or {}
    if how == "itself" and op.linear is True:
        if op.variadic:
            shapes = saved[op.saves.index(op.arrays[0] + "_shape")]
            like = next(t for t in tangents if t is not None)
            given = [
                zeros(xp, like, shape, like.dtype) if t is None else t
                for t, shape in zip(tangents, shapes, strict=True)
            ]
            return getattr(xp, op.name)(given, **keywords)
        return getattr(xp, op.name)(tangents[0], **keywords)
    terms = []
    for k, t in enumerate(tangents):
        if t is None:
            continue
        if how == "itself":
            if op.variadic:
                others = list(saved[op.saves.index(op.arrays[0])])
            else:
                others = [saved[op.saves.index(n)] if n in op.saves else None for n in op.arrays]
            others[k] = t
            terms.append(getattr(xp, op.name)(*([others] if op.variadic else others), **keywords))
        elif how == "rule":
            if op.jvps[k] is not None:
                terms.append(op.jvps[k](xp, t, saved, params))
        else:
            d = op.partials[k]
            d = d(xp, t, saved, params) if callable(d) else d
            if op.singular:
                terms.append(xp.masked_multiply(t, d))
            else:
                terms.append(t if type(d) in SCALARS and d == 1 else t * d)
    if not terms:
        return None
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    if total.dtype != out.dtype:
        total = xp.astype(total, out.dtype)
    return total if total.shape == out.shape else xp.broadcast_to(total, out.shape)


def _transpose(
    op: Any,
    tangents: list[Any],
    shapes_and_dtypes: Any,
    saved: Any,
    params: Any,
    outs: Sequence[Tensor],
) -> list[Tensor | None]:
    """JVP as the gradient of <vjp(g), t> by g, at g = 0 (it is linear in g)."""
    seeds = [zeros_for(o) for o in outs]
    with GradientTape() as tape:
        for seed in seeds:
            if is_inexact(seed.dtype):
                tape.watch(seed)
        g = seeds[0] if op.outputs == 1 else tuple(seeds)
        dot = None
        rules = op.rules or op.spread(len(tangents))
        for t, rule, shape_and_dtype in zip(tangents, rules, shapes_and_dtypes, strict=False):
            if t is None or rule is None:
                continue
            pulled = rule(TENSOR, g, saved, params)
            if pulled is None:
                continue
            pulled = tensor(pulled)
            if shape_and_dtype is not None:
                pulled = refit(TENSOR, pulled, shape_and_dtype)
            if pulled.dtype.kind == "c":
                term = TENSOR.sum(TENSOR.real(TENSOR.conj(pulled) * t))
            else:
                term = TENSOR.sum(pulled * TENSOR.real(t))
            dot = term if dot is None else dot + term
    if dot is None:
        return [None] * len(outs)
    return list(tape.gradient(dot, seeds))
