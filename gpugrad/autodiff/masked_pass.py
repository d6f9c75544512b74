"""The second backward pass after a NaN: tells the zeros of a mask from those of a flat slope.

Where `where` takes the other branch, or an index leaves an element out, the gradient is 0 whatever
the values of the sources are. Such an element is *blocked*: 0 times an infinite slope is 0 there.
All others are *live*. If a live gradient happens to be 0, as that of ``square`` at 0, its product
with an infinite slope has no value: it becomes NaN.

The rules with masked products take every 0 for a blocked one. A rule is linear in the gradient, so
three more calls of it, on plain arrays, tell which are:

- With a positive number for each live element, first on the saved values, then with a small number
  in place of each saved 0 that a source changes. The zeros of both results are blocked. So are the
  zeros that jump in the second, as relu's at 0: a kink takes the side without a gradient.
- With a one for each live 0: where the result is not finite, the gradient is NaN.

Most NaNs are a mask's, and few entries lie between them and the targets. So a `NotingPass` takes
every 0 for a mask's and notes where one has absorbed a NaN; then only the entries in between are
asked. What is traced has no values to look at: there, every entry is.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import numpy as np

from gpugrad.autodiff.backward import Gradients, LogReading, Prepared
from gpugrad.autodiff.readings import each_saved
from gpugrad.autodiff.recordable import Entry
from gpugrad.autodiff.recorder import Recorder
from gpugrad.core.backend import SCALARS, is_inexact
from gpugrad.core.dtypes import finfo
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.trace.numerics import unchecked


class NotingPass(LogReading):
    """Rules with masked products, that notes the entries where one has absorbed a NaN.

    Args:
        reading: the reading with masked products.
        plain: the reading of arrays without them.
    """

    def __init__(self, reading: LogReading, plain: LogReading) -> None:
        super().__init__(reading.xp, "masked")
        self._reading, self._plain = reading, plain
        self.for_grads = reading.for_grads  # type: ignore[method-assign]
        self._noted: list[Entry] = []

    def of(self, entry: Entry, g: Any, needed: Container[int]) -> Prepared:
        """The rules of an entry, and whether a product of theirs meets 0 * inf."""
        op = entry[0]
        if op.masked and op.masked is not op.plain and self._absorbs(entry, g, needed):
            self._noted.append(entry)
        return self._reading.of(entry, g, needed)

    def _absorbs(self, entry: Entry, g: Any, needed: Container[int]) -> bool:
        """Whether a plain rule of the entry makes a NaN of a gradient with zeros."""
        op, _, ids, _, saved, params = entry
        parts = [_plain(part) for part in _parts(g) if part is not None]
        if any(isinstance(part, IndexedSlices) or not _is_known(part) for part in parts):
            return True
        if all(map(np.all, parts)):
            return False
        wanted = [k for k, i in enumerate(ids) if i in needed]
        if all(getattr(op.masked[k], "is_sheltered", False) for k in wanted):
            return not any(map(np.any, parts))  # a whole 0, and nothing else
        g = tuple(p if p is None else _plain(p) for p in g) if type(g) is tuple else _plain(g)
        xp, rules, _, saved = self._plain.of(entry, g, ids)
        for k, rule in enumerate(rules):
            if k in wanted and rule is not None:
                with unchecked():
                    result = rule(xp, g, saved, params)
                if result is not None and not (_is_known(result) and not np.isnan(result).any()):
                    return True
        return False

    def between(self, log: Iterable[Entry]) -> set[int]:
        """Serial numbers of the inputs of noted entries, and of all values computed from them."""
        outs = {o for entry in self._noted for o in _serials(entry[1])}
        for _, out, ids, *_ in log if outs else ():
            if any(i in outs for i in ids):
                outs.update(_serials(out))
        return outs.union(*(entry[2] for entry in self._noted))


class MaskedPass(LogReading):
    """Rules with masked products, whose results are NaN where a live 0 meets an infinite slope.

    Second derivatives do not see which zeros were blocked in the pass that they differentiate. From
    the entries of such a pass on, every 0 counts as blocked.

    Args:
        reading: the reading with masked products.
        arrays: the same on arrays, which no outer recorder sees.
        seeds: serial numbers and gradients that the pass begins with. Their zeros are blocked.
        recorder: its log is walked.
        sources: serial numbers of the sources.

    Attributes:
        found: whether a live 0 may have met an infinite slope.
    """

    found = False

    def __init__(
        self,
        reading: LogReading,
        arrays: LogReading,
        seeds: Iterable[tuple[int, Any]],
        recorder: Recorder,
        sources: Iterable[int],
    ) -> None:
        super().__init__(reading.xp, "masked")
        self._reading, self._arrays, self._passes = reading, arrays, recorder.passes
        self.for_grads = reading.for_grads  # type: ignore[method-assign]
        self._live = Gradients(arrays, set(), set())
        """Positive numbers for live elements, 0 for blocked ones, by serial number."""
        for i, g in seeds:
            self._live.add(i, self._positive(_plain(g)))
        self._sources = {i: 1 << k for k, i in enumerate(sources)}
        """The sources that a value depends on, as the bits of an int, by serial number."""
        for _, out, ids, *_ in recorder.log:
            every = 0
            for i in ids:
                every |= self._sources.get(i, 0)
            for o in _serials(out):
                self._sources[o] = self._sources.get(o, 0) | every

    def of(self, entry: Entry, g: Any, needed: Container[int]) -> Prepared:
        """The rules of an entry, each followed by the calls that tell the zeros apart."""
        xp, rules, fits, saved = self._reading.of(entry, g, needed)
        if any(first < _serials(entry[1])[0] < last for first, last in self._passes):
            self._live.clear()
        live = self._live.take(entry[1], entry[0])
        if live is None:  # every 0 is blocked
            return xp, rules, fits, saved
        zeros = self._live_zeros(live, g)

        def told(k: int, rule: Any) -> Any:
            def run(xp: Any, g: Any, saved: Any, params: Any) -> Any:
                result = rule(xp, g, saved, params)
                return result if result is None else self._told(result, entry, k, live, zeros)

            return run

        return xp, [r and told(k, r) for k, r in enumerate(rules)], fits, saved

    def _told(self, result: Any, entry: Entry, k: int, live: Any, zeros: Any) -> Any:
        """The gradient of input `k`, NaN where it has no value; notes which elements are live."""
        here = reached = self._call(entry, k, live, entry[4])
        changed = self._near(entry, k)
        if any(a is not b for a, b in zip(each_saved(changed), each_saved(entry[4]), strict=True)):
            near = self._call(entry, k, live, changed)
            xp = self._arrays.for_grads(here, near)
            jumps = xp.logical_and(xp.equal(here, 0), xp.abs(near) > _small(near.dtype) ** 0.25)
            reached = xp.where(jumps, 0, near)
        self._live.add(entry[2][k], self._positive(reached), entry[3][k])
        if type(result) is IndexedSlices or not any(map(_may_hold, _parts(zeros))):
            return result
        reached = self._call(entry, k, zeros, entry[4])
        xp = self._arrays.for_grads(reached)
        finite = xp.isfinite(reached)
        if _is_known(finite) and finite.all():
            return result
        self.found = True
        factor = xp.astype(xp.where(finite, 1.0, np.nan), result.dtype)
        return result * wrap(factor) if isinstance(result, Tensor) else result * factor

    def _call(self, entry: Entry, k: int, g: Any, saved: Any) -> Any:
        """The rule of input `k` on another gradient and other saved values; dense."""
        op, out, ids, fits, _, params = entry
        xp, rules, _, saved = self._arrays.of((op, out, ids, fits, saved, params), g, ids)
        rule: Any = list(rules)[k]  # a new list: rules of a joint one remember its result
        with unchecked():
            result = rule(xp, g, saved, params)
        return result.to_dense(xp) if type(result) is IndexedSlices else result

    def _near(self, entry: Entry, k: int) -> Any:
        """Saved values, a small number for each 0 that changes with a source of input `k`.

        A factor that does not change with them blocks: `a` in the gradient of ``a * sqrt(x)`` by x.
        """
        op, out, ids, _, saved, _ = entry
        sources = self._sources.get(ids[k], 0)

        def near(value: Any, i: int) -> Any:
            if value is None or type(value) in SCALARS or not is_inexact(value.dtype):
                return value
            if not self._sources.get(i, 0) & sources:
                return value
            if isinstance(value, (np.ndarray, np.generic)) and np.all(value):
                return value
            xp = self._arrays.for_grads(value)
            return xp.astype(xp.where(xp.equal(value, 0), _small(value.dtype), value), value.dtype)

        def near_all(value: Any, origin: Any) -> Any:
            if origin is None:
                return value
            if origin == "all" or (origin == "out" and type(out) is not int):
                serials = ids if origin == "all" else _serials(out)
                return type(value)(near(v, i) for v, i in zip(value, serials, strict=True))
            return near(value, out if origin == "out" else ids[origin])

        return list(map(near_all, saved, op.origins)) if op.origins else saved

    def _positive(self, g: Any) -> Any:
        """Positive numbers where `g` is not 0, so unlike that no differences of them are 0."""
        xp = self._arrays.for_grads(g)
        numbers = np.resize(_NUMBERS, g.shape) * (1 + 0.7j if g.dtype.kind == "c" else 1)
        return xp.where(xp.equal(g, 0), 0, numbers.astype(g.dtype))

    def _live_zeros(self, live: Any, g: Any) -> Any:
        """Ones where `g` is 0 and live; of several results, a tuple."""
        if type(live) is tuple:
            return tuple(map(self._live_zeros, live, g))
        if live is None or g is None:
            return None
        g = _plain(g)
        xp = self._arrays.for_grads(live, g)
        return xp.astype(xp.logical_and(xp.not_equal(live, 0), xp.equal(g, 0)), g.dtype)


_NUMBERS = 0.5 + np.arange(4093) * 0.6180339887498949 % 1


def _plain(g: Any) -> Any:
    return g._data if isinstance(g, Tensor) else g


def _serials(out: Any) -> tuple[int, ...]:
    """The serial numbers of an entry's results."""
    return (out,) if type(out) is int else tuple(o[0] for o in out)


def _is_known(array: Any) -> bool:
    """Whether values of an array can be asked for; not those of a traced or batched one."""
    return isinstance(array, (np.ndarray, np.generic))


def _parts(g: Any) -> tuple[Any, ...]:
    return g if type(g) is tuple else (g,)


def _may_hold(g: Any) -> bool:
    """Whether an array may hold a number that is not 0."""
    return g is not None and (not _is_known(g) or bool(g.any()))


def _small(dtype: Any) -> float:
    """A number of that dtype whose square is a normal number."""
    return float(finfo(dtype).smallest_normal ** 0.5)
