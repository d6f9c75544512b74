"""Gradients of targets with respect to sources, from a recorder's log.

Prepares the backward loop: the seeds, and the part of the log that is needed. Runs a second pass
with masked products if a gradient on the CPU is NaN.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Sequence
from copy import copy
from typing import Any

import numpy as np

from gpugrad.autodiff.backward import CheckedGradients, Gradients, backward
from gpugrad.autodiff.readings import LogReading, checked_reading, reading_of
from gpugrad.autodiff.recorder import Recorder, number_any
from gpugrad.autodiff.scaled_losses import mark_gradients, scales
from gpugrad.core import backend, devices
from gpugrad.core.backend import TENSOR, as_array, is_inexact
from gpugrad.core.devices import formulas_on
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.settings import as_written, numerics
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import NumericsError, reraise
from gpugrad.kernels.cpu.large import LARGE, kernels
from gpugrad.trace.array import current_trace, is_traced, unwrap_to_traced
from gpugrad.trace.numerics import checks
from gpugrad.trace.profiling import TimedLog, profiles
from gpugrad.trace.program import NotReplayable


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
    if recorder.watched:
        sources = [recorder.source(s) for s in sources]
    trace = current_trace()
    start = len(trace.program.steps) if trace is not None else 0
    try:
        grads = _differentiate(recorder, targets, seeds, sources, stops, trace)
    except MemoryError as error:
        reraise(error, "gradient", {}, {})
    if trace is not None:
        for step in trace.program.steps[start:]:
            step.backward = True
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
    """One backward pass, and one with masked products if a gradient of the first is NaN."""
    keep = {number_any(s) for s in sources}
    stopped = {number_any(s) for s in stops}
    needed = _needed(recorder, keep)
    first = targets[0]._data
    here = formulas_on(first)
    with here, _quiet(here), as_written():
        for masked in _passes(first) if checks else (False, True):
            reading = reading_of(masked, first, *(s._data for s in seeds[:1] if s is not None))
            if checks:
                reading = checked_reading(reading)
            grads = (CheckedGradients if checks else Gradients)(reading, keep, stopped)
            for target, seed in zip(targets, seeds, strict=True):
                grads.add(number_any(target), _seed(reading, target, seed))
            log: Any = recorder.log
            plain = log
            if trace is not None:
                log = trace.entries(log)
            if profiles:
                log = TimedLog(log, grads)
            try:
                backward(log, grads, needed, reading)
                results = [_result(reading.xp, grads.get(s._id), s) for s in sources]
                if checks:
                    for result, s in zip(results, sources, strict=True):
                        reading.check_sum(result, grads.get(s._id))  # it may be a cast
            except NumericsError:
                if masked or type(backend.innermost_array(first)) is not np.ndarray:
                    raise
                continue  # the NaN may be one that masked products do not have
            finally:
                if log is not plain:
                    log.close()  # also after an error, which would hold it
            if masked or not _any_nan(results, recorder.log):
                break
    return results


def _passes(target: Any) -> tuple[bool, ...]:
    """Whether products are masked, in each pass. What `gg.debug.nans` traces is masked at once.

    A replay of it could not tell a NaN that masked products do not have.
    """
    on_host = type(backend.innermost_array(target)) is np.ndarray
    if numerics() and current_trace() is not None and on_host:
        return (True,)
    return False, True


def _needed(recorder: Recorder, wanted: set[int]) -> Container[int]:
    """Serial numbers of `wanted`, and of everything that the log computes from them."""
    if recorder.leaves <= wanted and type(recorder.known) is set:
        return recorder.known
    needed = {i for i in wanted if i in recorder.known}
    for _, out, ids, _, _, _ in recorder.log:
        if any(i in needed for i in ids):
            needed.update((out,) if type(out) is int else (o[0] for o in out))
    return needed


def _quiet(here: Any) -> contextlib.AbstractContextManager[Any]:
    """Silence NumPy's inf and NaN warnings, unless `here` does so already."""
    return _NOTHING if type(here) is np.errstate else np.errstate(all="ignore")


_NOTHING = contextlib.nullcontext()


def _seed(reading: LogReading, target: Tensor, seed: Tensor | None) -> Any:
    """The gradient at a target: ones if `seed` is None."""
    if seed is not None:
        return seed if reading.xp is TENSOR else seed._data
    ones = devices.full_on_device_of(target._data, target.shape, target.dtype, 1)
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


def _any_nan(results: Sequence[Any], log: Sequence[Any]) -> bool:
    """Whether a gradient on the CPU has a NaN, which may come of 0 * inf in a masked branch.

    Checking the gradients costs less than masking every product, so the masked pass only runs if
    there is a NaN. On a GPU the check would wait for the device.
    """
    grads = [g.values if type(g) is IndexedSlices else g for g in results if g is not None]
    trace = current_trace()
    if trace is not None and trace.nested:  # a replay cannot choose: always mask
        return any(is_traced(g._data) for g in grads)
    if trace is None or not trace.abstract:
        for g in grads:
            if is_nan(backend.innermost_array(g._data), log):
                return True
    if trace is None:
        return False
    if trace.moved:  # too late to call the function instead
        return True
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
    if type(array) is not np.ndarray or not is_inexact(array.dtype):
        return False
    if array.size >= LARGE:
        if log is not None and _is_linear(log):
            return False
        result = kernels("nan").has_nan(array)
        if result is not NotImplemented:
            return result
    if 0 in array.strides:  # of a broadcast array, a row is enough
        array = array[tuple([slice(1) if s == 0 else slice(None) for s in array.strides])]
    top = np.maximum.reduce(array, axis=None, initial=0)
    return bool(top != top)


def _refuse_nan(*grads: Tensor) -> list[Tensor]:
    if any(is_nan(g._data) for g in grads):
        raise NotReplayable("a gradient is NaN, so it is computed with masked products")
    return []
