"""Forward mode: carries tangents along with the values, from the same op records.

An op with one result computes its tangent by the first that exists: its partials; the op itself, if
linear; a JVP rule; its VJP, if it multiplies each element of g by a real slope; its VJP transposed
(g -> vjp(g) is linear in g, so the gradient of <vjp(g), t> with respect to g is the JVP of t). An
op with several results transposes its VJP.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from types import NoneType
from typing import Any

import numpy as np

from gpugrad.autodiff.backward import refit, zeros
from gpugrad.autodiff.dead_branches import ForwardGrowing
from gpugrad.autodiff.gradients import (
    UnconnectedGradients,
    fill_unconnected,
    flatten_tensors,
    pack_tensors,
)
from gpugrad.autodiff.readings import each_saved, revive
from gpugrad.autodiff.recorder import link, note_view, number_any
from gpugrad.autodiff.tape import GradientTape
from gpugrad.autodiff.upstream import check_like, zeros_for
from gpugrad.core import nest
from gpugrad.core.backend import NUMPY, SCALARS, TENSOR, as_array, is_inexact, reading
from gpugrad.core.devices import formulas_on
from gpugrad.core.float_errors import no_errors
from gpugrad.core.listening import current_stack, nobody, set_stack, threads
from gpugrad.core.settings import as_written
from gpugrad.core.tensor import Tensor, index_parts, tensor, wrap
from gpugrad.errors import ArgumentError, DTypeError, TapeError
from gpugrad.trace.listener import EndOfBlock
from gpugrad.trace.numerics import check, checks, unchecked


class ForwardAccumulator(ForwardGrowing):
    """Computes Jacobian-vector products while the program runs.

    Args:
        primals: Tensors and Variables, or a nested structure of them.
        tangents: directions, in the same structure, each of its primal's shape.

    It nests with itself and with tapes, in either order: a recorder also sees the computations of
    the recorders entered after it.

    Raises:
        StructureError, ShapeError, DTypeError: tangents that do not fit the primals.
        ArgumentError: the same primal twice.

    >>> x = gg.constant(3.0)
    >>> with gg.ForwardAccumulator(x, gg.constant(1.0)) as acc:
    ...     y = x * x
    >>> acc.jvp(y).item()
    6.0
    """

    def __init__(self, primals: Any, tangents: Any) -> None:
        leaves = flatten_tensors("primals", primals)
        directions = nest.flatten_like(primals, tangents, "tangents")
        self.known: dict[int, Tensor] = {}
        self.dead: set[int] = set()
        self._views = []
        for primal, t in zip(leaves, directions, strict=True):
            if number_any(primal) in self.known:
                raise ArgumentError("ForwardAccumulator: a tensor is passed twice as a primal.")
            if not is_inexact(primal.dtype):
                raise DTypeError(
                    f"ForwardAccumulator: a {primal.dtype} primal has no tangent; cast it first."
                )
            # a copy: ``t[i] = v`` on the user's object must not change the tangent
            note_view(self, primal)
            self.known[primal._id] = copy(check_like("tangents: the primal", "tangent", primal, t))
        self._primals = tuple(self.known)  # a reference to each number: its tangent stays

    def __enter__(self) -> ForwardAccumulator:
        if self._stack is not None:
            raise TapeError("The accumulator is recording already; it cannot be entered again.")
        return self.listen()

    def _end_block(self, *exc: object) -> None:
        self.leave()

    __exit__ = EndOfBlock(_end_block)

    def jvp(self, primals: Any, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        """Tangents of Tensors that were computed from the primals, in the same structure.

        Args:
            primals: a Tensor or Variable, or a nested structure of them.
            unconnected_gradients: ``"none"`` or ``"zero"``: the tangent of a Tensor that does not
                depend on the primals.
        """
        leaves = [link(self, t) for t in flatten_tensors("jvp", primals)]
        tangents = [copy(self.known[t._id]) if t._id in self.known else None for t in leaves]
        return pack_tensors(primals, fill_unconnected(tangents, leaves, unconnected_gradients))

    def take(self, entry: Any, out: Any) -> None:
        """Compute the tangent of an op's result; only enclosing recorders see the computation."""
        stack = current_stack()
        outs = out if type(out) is tuple else (out,)
        if stack[0] is self:
            set_stack(nobody)
        else:
            threads.stack = stack[: stack.index(self)]
        try:
            if type(out) is Tensor and type(out._data) is np.ndarray and not checks:  # most
                with no_errors():
                    (t,) = self._tangents(entry, outs)
                if t is not None:
                    self.known[out._id] = t
                else:
                    self.known.pop(out._id, None)
                return
            with formulas_on(outs[0]._data):
                if checks:
                    tangents = self._checked_tangents(entry, outs)
                else:
                    tangents = self._tangents(entry, outs)
                for o, t in zip(outs, tangents, strict=True):
                    if t is not None:
                        self.known[o._id] = t
                    else:
                        self.known.pop(o._id, None)
        finally:
            set_stack(stack)

    def _checked_tangents(self, entry: Any, outs: Sequence[Tensor]) -> Sequence[Tensor | None]:
        """The tangents, checked: see `gg.debug.nans`."""
        op, _, ids, _, saved, params = entry
        with unchecked():
            tangents = self._tangents(entry, outs)
        inputs = {"tangents": [self.known.get(i) for i in ids], "saved": saved}
        check(f"tangent of {op.name}", tangents, inputs, params)
        return tangents

    def _tangents(self, entry: Any, outs: Sequence[Tensor]) -> Sequence[Tensor | None]:
        """The tangents of an op's results: computed on Tensors if a recorder encloses this one."""
        op, serial, ids, shapes_and_dtypes, saved, params = entry
        tangents = [self.known.get(i) for i in ids]
        if op.push is not None:
            pairs = zip(op.push(tangents), outs, strict=True)
            return [t if t.dtype == o.dtype else TENSOR.astype(t, o.dtype) for t, o in pairs]
        how = tangent_by(op)
        if how == "VJP" and any(t is not None and t.dtype.kind == "c" for t in (*tangents, *outs)):
            how = "transposed"
        if how == "transposed":
            alive = revive(op, saved, serial, ids)
            return _transpose(op, tangents, shapes_and_dtypes, alive, params, outs)
        (out,) = outs
        stack = threads.stack
        if stack and not all(recorder.passive for recorder in stack):
            alive = revive(op, saved, serial, ids)
            with as_written():
                return [_push(op, how, TENSOR, tangents, alive, params, out)]
        arrays, of = [t if t is None else t._data for t in tangents], out._data
        if type(of) is np.ndarray and _PLAIN.issuperset(map(type, arrays)):
            t = _push(op, how, NUMPY, arrays, saved, params, of)
            return [None if t is None else wrap(as_array(t, np.ndarray))]
        index = index_parts(params["index"]) if params and "index" in params else ()
        xp = reading(*arrays, *each_saved(saved), *index)
        t = _push(op, how, xp, arrays, saved, params, of)
        return [None if t is None else wrap(as_array(t, type(of)))]


_PLAIN = {np.ndarray, NoneType}


def tangent_by(op: Any) -> str:
    """How: by ``"partials"``, ``"itself"``, ``"rule"``, ``"VJP"`` or ``"transposed"``."""
    if op.partials is not None:
        return "partials"
    if op.outputs != 1:  # the other two give one tangent
        return "transposed"
    if op.linear == "each" or (op.linear and len(op.arrays) == 1):
        return "itself"
    if op.jvps is not None:
        return "rule"
    return "VJP" if op.by_element and op.rules else "transposed"


def _push(
    op: Any, how: str, xp: Any, tangents: list[Any], saved: Any, params: Any, out: Any
) -> Any:
    """The tangent of an op's only result, by its partials, its linearity or its JVP rule."""
    if how == "itself":
        if op.linear is True:
            return _apply_linear(op, xp, tangents, saved, params)
    elif how == "VJP":
        tangents = [None if t is None else _like(xp, t, out) for t in tangents]
    total = None
    for k, t in enumerate(tangents):
        term = None if t is None else _term(op, how, xp, k, t, saved, params)
        if term is not None:
            total = term if total is None else total + term
    if total is None:
        return None
    return _like(xp, total, out)


def _like(xp: Any, t: Any, out: Any) -> Any:
    """A tangent in the dtype and the shape of a result."""
    t = xp.astype(t, out.dtype) if t.dtype != out.dtype else t
    return t if t.shape == out.shape else xp.broadcast_to(t, out.shape)


def _apply_linear(op: Any, xp: Any, tangents: list[Any], saved: Any, params: Any) -> Any:
    """The tangent of an op that is jointly linear in its arrays: the op of the tangents."""
    if not op.variadic:
        return getattr(xp, op.name)(tangents[0], **params or {})
    shapes = saved[op.saves.index(op.arrays[0] + "_shape")]
    like = next(t for t in tangents if t is not None)
    arrays = [
        zeros(xp, like, shape, like.dtype) if t is None else t
        for t, shape in zip(tangents, shapes, strict=True)
    ]
    return getattr(xp, op.name)(arrays, **params or {})


def _term(op: Any, how: str, xp: Any, k: int, t: Any, saved: Any, params: Any) -> Any:
    """The contribution of input `k` with tangent `t` to the result's tangent; None for nothing."""
    if how in ("rule", "VJP"):
        rule = (op.jvps if how == "rule" else op.rules)[k]
        return None if rule is None else rule(xp, t, saved, params)
    if how == "partials":
        d = op.partials[k]
        d = d(xp, t, saved, params) if callable(d) else d
        if op.singular:
            return xp.masked_multiply(t, d)
        if type(d) not in SCALARS and d.dtype.kind == "b":  # a mask: 0 also for an infinite t
            return xp.where(d, t, 0)
        return t if type(d) in SCALARS and d == 1 else t * d
    if op.variadic:  # linear in each array: the op, with the tangent in place of that array
        arrays = list(saved[op.saves.index(op.arrays[0])])
    else:
        arrays = [saved[op.saves.index(n)] if n in op.saves else None for n in op.arrays]
    arrays[k] = t
    return getattr(xp, op.name)(*([arrays] if op.variadic else arrays), **params or {})


def _transpose(
    op: Any,
    tangents: list[Any],
    shapes_and_dtypes: Any,
    saved: Any,
    params: Any,
    outs: Sequence[Tensor],
) -> list[Tensor | None]:
    """The JVP, as the gradient of <vjp(g), t> with respect to g at g = 0: it is linear in g."""
    seeds = [zeros_for(o) for o in outs]
    with GradientTape() as tape:
        for seed in seeds:
            if is_inexact(seed.dtype):
                tape.watch(seed)
        g = seeds[0] if op.outputs == 1 else tuple(seeds)
        dot = None
        rules = op.rules or op.rules_for(len(tangents))
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
