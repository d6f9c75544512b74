"""The backward loop: how reverse mode works here. `differentiate` calls it, a tape calls that.

A tape's log is a list in execution order, which is a topological order. So a backward pass is
one loop over the log in reverse: no recursion and no sort. An entry is one executed op, a tuple of

    op                 its record, which has a gradient rule for each input: see `Recordable`
    out                serial number of the result; of several, a tuple of (number, shape, dtype)
    ids                serial numbers of the inputs, 0 for one that is not recorded
    shapes_and_dtypes  for each input what its gradient must be summed and cast to, or None
    saved, params      what the rules read: arrays, and the metadata of the call
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from gpugrad.autodiff.recordable import Entry, Recordable, Rule
from gpugrad.core.backend import NUMPY, TENSOR, Reading
from gpugrad.core.devices import full_on_device_of
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import wrap
from gpugrad.errors import reraise
from gpugrad.kernels.cpu.large import LARGE, on_threads


def backward(
    walk: Iterable[Entry], grads: Gradients, needed: Container[int], reading: LogReading
) -> None:
    """Pull `grads` back through a log, in place.

    Args:
        walk: the entries, the last one first: ``reversed(log)``.
        grads: gradients by serial number; in the beginning, those of the targets.
        needed: serial numbers of the sources and of everything between them and a target.
        reading: what the rules run on: arrays or Tensors. It provides each entry's rules.
    """
    take, add, prepare = grads.take, grads.add, reading.of
    for entry in walk:
        op, out, ids, _, _, params = entry
        g = take(out, op)
        if g is None:  # no target depends on this result
            continue
        xp, rules, shapes_and_dtypes, saved = prepare(entry, g, needed)
        for i, rule, shape_and_dtype in zip(ids, rules, shapes_and_dtypes):  # noqa: B905  # strict= is slow
            if rule is None or i not in needed:
                continue
            try:
                g_input = rule(xp, g, saved, params)
            except Exception as error:
                if not op.rules:  # a user's own gradient function: its errors stay as they are
                    raise
                rule_failed(error, op, g, params)
            if g_input is not None and shape_and_dtype is None and i not in grads:
                grads[i] = g_input  # `add`, without a call
            elif g_input is not None:
                add(i, g_input, shape_and_dtype)


def rule_failed(error: Exception, op: Recordable, g: Any, params: Any) -> NoReturn:
    """Raise the error of a rule, with the op's name."""
    reraise(error, f"gradient of {op.name}", {"g": g}, params or {})


in_c: list[Callable[..., None]] = []
"""`backward` of a log, gradients, what is needed and a reading, in C, once that is compiled."""


def run_in_c(pull: Callable[..., None] | None) -> None:
    """Let backward passes that fit run by a function in C; None for none."""
    in_c[:] = [] if pull is None else [pull]


def fits_c(grads: Gradients, reading: LogReading) -> bool:
    """Whether a backward pass with the rules `plain` can run in C: on NumPy arrays, unchecked."""
    is_usual = type(grads) is Gradients and type(reading) is LogReading
    return bool(in_c) and is_usual and reading.xp is NUMPY


class Gradients(dict[int, Any]):
    """Gradients by serial number during one backward pass; each is the sum of its contributions.

    Args:
        reading: what they are: arrays or Tensors.
        keep: serial numbers whose gradients `take` does not remove: the sources.
        stops: serial numbers that nothing passes through.
    """

    __slots__ = ("_keep", "_not_popped", "_owned", "_reading", "_stops")

    def __init__(self, reading: LogReading, keep: set[int], stops: set[int]) -> None:
        self._reading, self._keep, self._stops = reading, keep, stops
        self._not_popped = keep | stops
        self._owned: set[int] = set()  # sums that nobody else can see: added to in place

    def take(self, out: Any, op: Recordable) -> Any:
        """An op's upstream gradient, dense; a tuple for several results; None if missing."""
        if type(out) is not int:
            return self._take_all(out, op)
        if out not in self._not_popped:
            g = self.pop(out, None)
        else:
            g = None if out in self._stops else self.get(out)
        return g.to_dense(self._reading.for_grads(g)) if type(g) is IndexedSlices else g

    def _take_all(self, outs: Any, op: Recordable) -> tuple[Any, ...] | None:
        """Gradients of several results, each in its dtype; None if all are missing.

        A missing one is zeros, or None at the positions `op.unused`.
        """
        grads = [self.take(i, op) for i, _, _ in outs]
        like = next((g for g in grads if g is not None), None)
        if like is None:
            return None
        for k, (g, (_, shape, dtype)) in enumerate(zip(grads, outs, strict=True)):
            if g is None:
                grads[k] = None if k in op.unused else zeros(self._reading.xp, like, shape, dtype)
            elif g.dtype != dtype:  # float32 for 16-bit floats, which a user's rule may not expect
                grads[k] = refit(self._reading.for_grads(g), g, (g.shape, dtype))
        return tuple(grads)

    def add(self, i: int, g: Any, shape_and_dtype: Any = None) -> None:
        """Add `g`, summed and cast to a shape and dtype, to the gradient of number `i`."""
        if shape_and_dtype is None and i not in self:
            self[i] = g
            return
        old = self.get(i)
        if shape_and_dtype is not None and type(g) is not IndexedSlices:
            g = refit(self._reading.for_grads(g, old), g, shape_and_dtype)
        if old is None:
            self[i] = g
        elif i in self._owned and type(g) is type(old) and g.dtype == old.dtype:
            if old.size >= LARGE:
                on_threads(np.add, old, g, out=old)
            else:
                old += g
        else:
            self[i] = total = plus(self._reading.for_grads(g, old), old, g)
            if type(total) is np.ndarray:
                self._owned.add(i)
            else:  # += would rebind wrapped arrays, and CuPy's kernel is no faster
                self._owned.discard(i)


class CheckedGradients(Gradients):
    """Gradients whose sums and casts are checked: see `gg.debug.nans`."""

    def add(self, i: int, g: Any, shape_and_dtype: Any = None) -> None:
        """Add `g`, and check the sum."""
        old = self.get(i)
        self._owned.discard(i)  # `old` is compared with the sum
        super().add(i, g, shape_and_dtype)
        if self[i] is not g:
            self._reading.check_sum(self[i], g, old)


Prepared = tuple[Reading, Sequence[Rule | None], Sequence[Any], Any]
"""(xp, rules, shapes_and_dtypes, saved): the rules of an entry, and their arguments."""


class LogReading:
    """The reading of one backward pass: its rules run on plain arrays of one library.

    Args:
        xp: the reading of the targets' gradients.
        which: the rules of an op: "plain", "rules" or "masked".
    """

    def __init__(self, xp: Reading, which: str) -> None:
        self.xp, self._which = xp, which

    def of(self, entry: Entry, g: Any, needed: Container[int]) -> Prepared:
        """The rules of an entry and their arguments, given the gradient of its result."""
        op, _, ids, shapes_and_dtypes, saved, _ = entry
        named = op.plain if self._which == "plain" else getattr(op, self._which)  # the common one
        rules = named or op.rules_for(len(ids))
        return self.xp, rules, shapes_and_dtypes, saved

    def check_sum(self, total: Any, *parts: Any) -> None:
        """Check a sum of gradients, or a cast of one, if `gg.debug.nans` asks for that."""

    def for_grads(self, *grads: Any) -> Reading:
        """The reading for some gradients, which may be on another device than the targets."""
        return self.xp


def refit(xp: Any, g: Any, shape_and_dtype: tuple[tuple[int, ...], Any]) -> Any:
    """Sum and cast a gradient to the shape and dtype of the input it belongs to."""
    shape, dtype = shape_and_dtype
    if g.dtype != dtype:
        if g.dtype.kind == "c" and dtype.kind != "c":
            g = xp.real(g)
        g = xp.astype(g, dtype)
    return g if g.shape == shape else xp.sum_to(g, shape=shape)


def plus(xp: Any, a: Any, b: Any) -> Any:
    """The sum of two gradients: IndexedSlices if both are, else dense."""
    if type(a) is IndexedSlices and type(b) is IndexedSlices:
        return IndexedSlices(
            xp.concat([a.values, b.values], axis=0),
            xp.concat([a.indices, b.indices], axis=0),
            a.dense_shape,
        )
    a = a.to_dense(xp) if type(a) is IndexedSlices else a
    b = b.to_dense(xp) if type(b) is IndexedSlices else b
    if xp is NUMPY and a.size >= LARGE:
        return on_threads(np.add, a, b)
    return xp.add(a, b)


def zeros(xp: Any, like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros in a reading, on the device of another array."""
    array = full_on_device_of(like._data if xp is TENSOR else like, shape, dtype)
    return wrap(array) if xp is TENSOR else array
