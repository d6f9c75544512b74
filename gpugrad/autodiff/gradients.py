"""Gradients of targets with respect to sources, from a recorder's log.

Checks the arguments and prepares the backward loop: the seeds, and the part of the log that is
needed. Runs a second pass with masked products if a gradient on the CPU is NaN: see `masked_pass`.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Container, Sequence
from copy import copy
from typing import Any

import numpy as np

from gpugrad.autodiff.backward import (
    CheckedGradients,
    Gradients,
    LogReading,
    backward,
    fits_c,
    in_c,
)
from gpugrad.autodiff.masked_pass import MaskedPass, NotingPass
from gpugrad.autodiff.readings import CheckedReading, OnMixedArrays, OnTensors
from gpugrad.autodiff.recorder import RecordedCall, Recorder, link, number_any
from gpugrad.autodiff.scaled_losses import mark_gradients, scales
from gpugrad.autodiff.upstream import zeros_for
from gpugrad.core import backend, nest
from gpugrad.core.backend import ARRAYS, NUMPY, TENSOR, as_array, is_inexact
from gpugrad.core.devices import formulas_on, full_on_device_of
from gpugrad.core.holders import opened
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.listening import recorders, threads
from gpugrad.core.ranks import ranks
from gpugrad.core.settings import as_written, mixed_modes, numerics
from gpugrad.core.tensor import Tensor, holds_tensor, next_id, wrap
from gpugrad.core.views import View
from gpugrad.errors import ArgumentError, DTypeError, NumericsError, reraise
from gpugrad.kernels.cpu.large import LARGE, MIDDLE, kernels
from gpugrad.trace.array import Traced, current, is_traced, unwrap_to_traced
from gpugrad.trace.numerics import checks
from gpugrad.trace.profiling import profiles, timed_entries
from gpugrad.trace.program import NotMasked


def differentiate(
    recorder: Recorder,
    targets: Sequence[Tensor],
    seeds: Sequence[Any],
    sources: Sequence[Tensor],
    stops: Sequence[Tensor] = (),
) -> list[Any]:
    """Gradients of the sum of `targets`: a Tensor, IndexedSlices or None for each source.

    Args:
        seeds: upstream gradients as Tensors; None stands for ones.
        stops: Tensors to treat as constants.
    """
    if not targets:
        return [None] * len(sources)
    targets = [link(recorder, t) if type(t) is View else t for t in targets]
    if recorder.watched:
        sources = [recorder.source(s) for s in sources]
    trace = current.trace
    start = len(trace.program.steps) if trace is not None else 0
    first = next_id()
    try:
        grads = _differentiate(recorder, targets, seeds, sources, stops, trace)
    except MemoryError as error:
        reraise(error, "gradient", {}, {})
    if trace is not None:
        for step in trace.program.steps[start:]:
            step.backward = True
    if recorders:
        for outer in threads.stack:
            if isinstance(outer, Recorder):
                outer.passes.append((first, next_id()))
    if scales:
        mark_gradients(recorder.log, targets, grads)
    return grads


def _differentiate(
    recorder: Recorder,
    targets: Sequence[Tensor],
    seeds: Sequence[Any],
    sources: Sequence[Tensor],
    stops: Sequence[Tensor],
    trace: Any,
) -> list[Any]:
    """One backward pass, and others with masked products if a gradient of the first is NaN."""
    first = targets[0]._data
    on_host = type(backend.innermost_array(first)) is np.ndarray
    run = Passes(recorder, targets, seeds, sources, stops, trace)
    with np.errstate(all="ignore"):
        if on_host and not mixed_modes:
            return _passes(run, recorder, trace, on_host)
        with contextlib.nullcontext() if on_host else formulas_on(first), as_written():
            return _passes(run, recorder, trace, on_host)


def _passes(run: Passes, recorder: Recorder, trace: Any, on_host: bool) -> list[Any]:
    if ranks.size > 1 and _may_communicate(recorder.log):
        run.traces_seeds = trace is not None
        return run.once("masked" if on_host else "rules")
    if on_host and trace is not None:
        if trace.masks:
            return run.once("masked", run.telling)
        if checks and numerics():  # a replay could not tell a NaN that a mask absorbs
            return run.once("masked")
    nan: bool | None = True
    try:
        results = run.once("plain" if on_host else "rules")
        nan = _any_nan(results, recorder.log, trace)
    except NumericsError:
        if not on_host:
            raise  # else the NaN may be one that masked products do not have
    if nan is False:
        return results
    if nan and trace is None and not checks:
        results = run.once("masked", run.noting)
        if not run.has_live_zeros():
            return results
    return run.once("masked", run.telling if nan else None)


class Passes:
    """The backward passes of one gradient call, with the arguments of `differentiate`.

    Attributes:
        traces_seeds: whether a trace follows gradients that are constants, as collectives of such
            must be replayed, too.
    """

    traces_seeds = False

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
        self._keep = {s._id or number_any(s) for s in sources}
        self._stopped = {number_any(s) for s in stops} if stops else set[int]()
        self._needed = _needed(recorder, self._keep)
        self._noted: NotingPass | None = None

    def once(self, which: str, wrap_reading: Callable[..., LogReading] | None = None) -> list[Any]:
        """The gradients by one pass with the rules `which`, on another reading if one is given."""
        recorder, trace, sources = self._recorder, self._trace, self._sources
        seed = self._seeds[0]
        reading = reading_of(which, self._first, *(() if seed is None else (seed._data,)))
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
            if which == "plain" and trace is None and not profiles and fits_c(grads, reading):
                in_c[0](recorder.log, grads, self._needed, reading)
            else:
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
        begin = [(t._id or number_any(t), _seed(reading, t, seed)) for t, seed in pairs]
        return [(i, self._followed(g)) for i, g in begin] if self.traces_seeds else begin

    def _followed(self, g: Any) -> Any:
        if isinstance(g, Tensor):
            return wrap(self._followed(g._data))
        return g if is_traced(g) else Traced(g, self._trace.place(g))

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
    if len(ARRAYS) > 1:
        return OnMixedArrays(backend.reading(*arrays), which)
    if ARRAYS.issuperset(map(type, arrays)):
        return _on_numpys.get(which) or _on_numpys.setdefault(which, LogReading(NUMPY, which))
    return LogReading(backend.reading(*arrays), which)


_on_numpys: dict[str, LogReading] = {}


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


# ---- NaN, which may come of 0 * inf --------------------------------------------------------


def _may_communicate(log: Sequence[Any]) -> bool:
    """Whether a pass may run collectives, so that a NaN of one rank must not make it run another.

    Nobody knows what the rules of a user's own gradient do, as those of `recompute_grad`.
    """
    return any(
        isinstance(op, RecordedCall) or getattr(op, "opens", None) == "effect" for op, *_ in log
    )


def _any_nan(results: Sequence[Any], log: Sequence[Any], trace: Any) -> bool | None:
    """Whether a gradient on the CPU has a NaN, which may come of 0 * inf in a masked branch.

    None if only a replay can know, and cannot act on it.

    Checking the gradients costs less than masking every product, so the masked pass only runs if
    there is a NaN. On a GPU the check would wait for the device.
    """
    grads = [g.values if type(g) is IndexedSlices else g for g in results if g is not None]
    if trace is not None and trace.nested:  # a replay cannot choose: always mask
        return None if any(is_traced(g._data) for g in grads) else False
    if trace is None or not trace.abstract:
        for g in grads:
            if is_nan(backend.innermost_array(g._data), log):
                return True
    if trace is None:
        return False
    if _is_linear(log):
        return False
    if trace.moved:  # too late to call the function instead
        return None
    on_host = [g for g in grads if type(backend.innermost_array(g._data)) is np.ndarray]
    if traced := [wrap(unwrap_to_traced(g._data)) for g in on_host if is_traced(g._data)]:
        # a replay that finds a NaN calls the function instead
        trace.effect("no_nan", _refuse_nan, traced, undo=lambda: lambda: None)
    return False


def _is_linear(log: Sequence[Any]) -> bool:
    """Whether no rule multiplies a gradient by a saved value: there is nothing to mask."""
    return all(
        op.linear is True or (hasattr(op, "saves") and not _holds_floats((saved, params)))
        for op, _, _, _, saved, params in log
    )


def _holds_floats(value: Any) -> bool:
    """Whether there is a floating-point number among saved values or metadata."""
    if isinstance(value, (list, tuple)):
        return any(map(_holds_floats, value))
    if isinstance(value, dict):
        return any(map(_holds_floats, value.values()))
    if isinstance(value, (float, complex)):
        return True
    dtype = getattr(value, "dtype", None)
    return dtype is not None and is_inexact(dtype)


def is_nan(array: Any, log: Sequence[Any] | None = None) -> bool:
    """Whether a NumPy array has a NaN; summing the array would take twice the time.

    A large one is not read if all ops of the log are linear.
    """
    if type(array) is not np.ndarray:
        return False
    kind, size = array.dtype.kind, array.size
    if kind not in "fcV" or not size:
        return False
    if size >= LARGE:
        if log is not None and _is_linear(log):
            return False
        result = kernels("nan").has_nan(array)
        if result is not NotImplemented:
            return result
    if size >= MIDDLE and 0 in array.strides:  # of a broadcast array, a row is enough
        array = array[tuple([slice(1) if s == 0 else slice(None) for s in array.strides])]
    if kind == "V":
        return bool(np.isnan(array).any())
    top = array.item(array.argmax())  # a NaN, if there is one; in a third of the time of maximum
    return bool(top != top)


def _refuse_nan(*grads: Tensor) -> list[Tensor]:
    if any(is_nan(g._data) for g in grads):
        raise NotMasked
    return []


# ---- arguments of gradient calls, and sources that are not connected ---------------------


class UnconnectedGradients(enum.Enum):
    """The result of `gradient` for a source that the target does not depend on.

    >>> x, y = gg.Variable(2.0), gg.Variable(3.0)
    >>> with gg.GradientTape() as tape:
    ...     z = x * x
    >>> print(*tape.gradient(z, [x, y], unconnected_gradients=gg.UnconnectedGradients.ZERO))
    4.0 0.0
    """

    NONE = "none"
    ZERO = "zero"


class AggregationMethod:
    """Accepted for compatibility with TensorFlow; gradients are always added in place.

    >>> x = gg.constant(2.0)
    >>> method = gg.AggregationMethod.ADD_N
    """

    ADD_N = DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def flatten_tensors(what: str, structure: Any, with_none: bool = False) -> list[Tensor]:
    """The Tensors of a structure, which may hold None `with_none`; DTypeError for others."""
    if isinstance(structure, Tensor):
        return [structure]
    leaves = nest.flatten(structure)
    if nest.TENSORS.issuperset(map(type, leaves)):
        return leaves
    if with_none and structure is not None:
        leaves = [leaf for leaf in leaves if leaf is not None]
    for k, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            continue
        if isinstance(leaf, IndexedSlices):
            raise DTypeError(f"{what}: IndexedSlices have no gradient of their own; use .values.")
        leaves[k] = held = opened(leaf)
        if not isinstance(held, Tensor):
            is_module = hasattr(leaf, "trainable_variables")
            raise DTypeError(
                f"{what}: expected Tensors and Variables, or nested lists, tuples and dicts of "
                f"them; got {type(leaf).__name__} {leaf!r:.60}."
                f"{' Pass its trainable_variables.' if is_module else ''}"
            )
    return leaves


def pack_tensors(structure: Any, values: Sequence[Any]) -> Any:
    """A structure with other leaves in the places of its Tensors."""
    if isinstance(structure, Tensor):
        return values[0]
    leaves = nest.flatten(structure)
    if len(leaves) > len(values):  # some are None
        rest = iter(values)
        values = [next(rest) if holds_tensor(x) else x for x in leaves]
    return nest.pack(structure, values)


def as_unconnected(value: Any) -> UnconnectedGradients:
    """The choice that `value` names; ArgumentError if it names none."""
    if isinstance(value, UnconnectedGradients):
        return value
    try:
        return UnconnectedGradients(value)
    except (TypeError, ValueError):  # NumPy refuses to compare some arrays
        raise ArgumentError(
            f"unconnected_gradients: {value!r} is neither 'none' nor 'zero'."
        ) from None


def fill_unconnected(grads: list[Any], sources: Sequence[Tensor], how: Any) -> list[Any]:
    """Gradients with zeros in place of None, if `how` says so."""
    if as_unconnected(how) is UnconnectedGradients.NONE:
        return grads
    return [zeros_for(s) if g is None else g for g, s in zip(grads, sources, strict=True)]
