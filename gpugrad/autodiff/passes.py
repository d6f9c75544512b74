"""The backward passes of one gradient call: which entries they need, their seeds and results."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from copy import copy
from typing import Any

from gpugrad.autodiff.backward import CheckedGradients, Gradients, LogReading, backward
from gpugrad.autodiff.masked_pass import MaskedPass, NotingPass
from gpugrad.autodiff.readings import CheckedReading, OnMixedArrays, OnTensors
from gpugrad.autodiff.recorder import Recorder, number_any
from gpugrad.core import backend
from gpugrad.core.backend import ARRAYS, TENSOR, as_array
from gpugrad.core.devices import full_on_device_of
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.listening import recorders, threads
from gpugrad.core.settings import numerics
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.trace.numerics import checks
from gpugrad.trace.profiling import profiles, timed_entries


class Passes:
    """The backward passes of one gradient call, with the arguments of `differentiate`."""

    def __init__(
        self,
        recorder: Recorder,
        targets: Sequence[Tensor],
        seeds: Sequence[Any],
        sources: Sequence[Tensor],
        stops: Sequence[Tensor],
        trace: Any,
    ) -> None:
        self._recorder, self._trace = recorder, trace
        self._targets, self._seeds, self._sources = targets, seeds, sources
        self._first = targets[0]._data
        self._keep = {number_any(s) for s in sources}
        self._stopped = {number_any(s) for s in stops}
        self._needed = _needed(recorder, self._keep)
        self._noted: NotingPass | None = None

    def once(self, which: str, wrap_reading: Callable[..., LogReading] | None = None) -> list[Any]:
        """The gradients by one pass with the rules `which`, on another reading if one is given."""
        recorder, trace, sources = self._recorder, self._trace, self._sources
        reading = reading_of(
            which, self._first, *(s._data for s in self._seeds[:1] if s is not None)
        )
        begin = self._begin(reading)
        if wrap_reading is not None:
            reading = wrap_reading(reading, begin)
        if checks and numerics():
            reading = CheckedReading(reading)
        grads = (CheckedGradients if checks else Gradients)(reading, self._keep, self._stopped)
        for serial, g in begin:
            grads.add(serial, g)
        walk: Any = reversed(recorder.log)
        if trace is not None:
            walk = trace.entries(walk)
        if profiles:
            walk = timed_entries(walk, grads)
        try:
            backward(walk, grads, self._needed, reading)
            results = [_result(reading.xp, grads.get(s._id), s) for s in sources]
            if checks:
                for result, s in zip(results, sources, strict=True):
                    reading.check_sum(result, grads.get(s._id))  # it may be a cast
        finally:
            if trace is not None or profiles:
                walk.close()  # also after an error, which would hold it
        return results

    def _begin(self, reading: LogReading) -> list[tuple[int, Any]]:
        pairs = zip(self._targets, self._seeds, strict=True)
        return [(number_any(target), _seed(reading, target, seed)) for target, seed in pairs]

    def telling(self, reading: LogReading, begin: list[tuple[int, Any]]) -> MaskedPass:
        """The reading that tells a mask's zeros from others."""
        arrays = array_reading("masked", self._first)
        return MaskedPass(reading, arrays, begin, self._recorder, self._keep)

    def noting(self, reading: LogReading, begin: list[tuple[int, Any]]) -> NotingPass:
        """The reading that notes where a mask absorbs a NaN."""
        self._noted = NotingPass(reading, array_reading("plain", self._first))
        return self._noted

    def has_live_zeros(self) -> bool:
        """Whether a zero that absorbed a NaN in the pass with `noting` was not a mask's.

        Only what lies between there and the targets is walked again.
        """
        assert self._noted is not None
        needed = {i for i in self._noted.between(self._recorder.log) if i in self._needed}
        if not needed:
            return False
        arrays = array_reading("masked", self._first)
        begin = self._begin(arrays)
        reading = self.telling(arrays, begin)
        grads = Gradients(reading, set(), self._stopped)
        for serial, g in begin:
            grads.add(serial, g)
        backward(reversed(self._recorder.log), grads, needed, reading)
        return reading.found


def _needed(recorder: Recorder, wanted: set[int]) -> Container[int]:
    """Serial numbers of `wanted`, and of everything that the log computes from them."""
    if recorder.leaves <= wanted and type(recorder.known) is set:
        return recorder.known
    needed = {i for i in wanted if i in recorder.known}
    for _, out, ids, _, _, _ in recorder.log:
        if any(i in needed for i in ids):
            needed.update((out,) if type(out) is int else (o[0] for o in out))
    return needed


def reading_of(which: str, *arrays: Any) -> LogReading:
    """The LogReading of a backward pass that begins with `arrays`."""
    if recorders and any(not recorder.passive for recorder in threads.stack):
        return OnTensors(TENSOR, which)
    return array_reading(which, *arrays)


def array_reading(which: str, *arrays: Any) -> LogReading:
    """The same for a pass that no outer recorder sees."""
    kind = OnMixedArrays if len(ARRAYS) > 1 else LogReading
    return kind(backend.reading(*arrays), which)


def _seed(reading: LogReading, target: Tensor, seed: Tensor | None) -> Any:
    """The gradient at a target: ones if `seed` is None."""
    if seed is not None:
        return seed if reading.xp is TENSOR else seed._data
    ones = full_on_device_of(target._data, target.shape, target.dtype, 1)
    return wrap(ones) if reading.xp is TENSOR else ones


def _result(xp: Any, g: Any, source: Tensor) -> Any:
    """A gradient as returned to the user: a Tensor of the source's dtype, or IndexedSlices."""
    if g is None:
        return None
    if type(g) is IndexedSlices:
        own = copy if xp is TENSOR else wrap
        return IndexedSlices(own(g.values), own(g.indices), g.dense_shape)
    if g.dtype != source.dtype:
        g = xp.astype(g, source.dtype)
    if xp is TENSOR:
        return copy(g)  # other gradients may be this very Tensor, and ``g[i] = v`` changes it
    return wrap(as_array(g, type(source._data)))
