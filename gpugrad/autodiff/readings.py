"""Readings of derivative rules in one backward pass: on Tensors, and on arrays of several kinds.

If no recorder is active, the rules run on the arrays that the log holds. Otherwise the same rules
run on Tensors created from array and serial number, so an outer tape sees them. Higher-order
derivatives need nothing else. Fused GPU kernels, several GPUs, `vmap` and traces are handled here,
so that neither the backward loop nor the rules need to know of them.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Container, Iterator, Sequence
from typing import Any

import numpy as np

from gpugrad.autodiff.backward import LogReading, Prepared
from gpugrad.autodiff.recordable import Entry, Recordable, Rule
from gpugrad.core import backend
from gpugrad.core.backend import ARRAYS, EXAMPLES, NUMPY, READINGS, SCALARS, TENSOR, Reading
from gpugrad.core.devices import formulas_on, gpu_count
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import index_parts, tensor_with_id
from gpugrad.kernels.codegen import for_ops
from gpugrad.trace.array import current_trace
from gpugrad.trace.numerics import check, line_of_gradient, unchecked


class OnTensors(LogReading):
    """Rules on Tensors, which an outer recorder sees."""

    def of(self, entry: Entry, g: Any, needed: Container[int]) -> Prepared:
        """The rules of an entry, and its saved arrays as Tensors."""
        op, out, ids, shapes_and_dtypes, saved, _ = entry
        rules = getattr(op, self._which) or op.rules_for(len(ids))
        return TENSOR, rules, shapes_and_dtypes, revive(op, saved, out, ids)


class OnMixedArrays(LogReading):
    """Rules on arrays of several libraries and devices, of `vmap`, or of a trace."""

    def __init__(self, xp: Reading, which: str) -> None:
        super().__init__(xp, which)
        self._plain = current_trace() is None and not EXAMPLES  # no array wraps another
        self._several_gpus = gpu_count() > 1

    def of(self, entry: Entry, g: Any, needed: Container[int]) -> Prepared:
        """The rules of an entry in the reading of its own arrays, fused on a GPU."""
        op, _, ids, shapes_and_dtypes, saved, params = entry
        rules = getattr(op, self._which) or op.rules_for(len(ids))
        xp = self._reading(g, saved, params)
        if op.kind == "elementwise" and xp is not NUMPY and not xp.nesting:
            wanted = [r is not None and i in needed for i, r in zip(ids, rules, strict=True)]
            rules, shapes_and_dtypes = for_ops.gradients(
                op, rules, g, saved, shapes_and_dtypes, wanted
            )
        if self._several_gpus:
            rules = [rule and functools.partial(_on_device_of_g, rule) for rule in rules]
        return xp, rules, shapes_and_dtypes, saved

    def _reading(self, g: Any, saved: Any, params: Any) -> Reading:
        if self._plain and type(g) is not tuple:
            return READINGS.get(type(g), NUMPY)
        # the gradient may be a constant while a saved array or an index is traced
        index = index_parts(params["index"]) if params and "index" in params else ()
        return backend.reading(*(g if type(g) is tuple else (g,)), *each_saved(saved), *index)

    def for_grads(self, *grads: Any) -> Reading:
        """The reading of these gradients."""
        arrays: list[Any] = []
        for g in grads:
            arrays += (g.values, g.indices) if type(g) is IndexedSlices else (g,)
        return backend.reading(*arrays)


class CheckedReading(LogReading):
    """Rules whose results are checked: see `gg.debug.nans`."""

    def __init__(self, reading: LogReading) -> None:
        super().__init__(reading.xp, reading._which)
        self._reading, self.for_grads = reading, reading.for_grads  # type: ignore[method-assign]

    def of(self, entry: Entry, g: Any, needed: Container[int]) -> Prepared:
        """The rules of an entry, each followed by a check of its result."""
        op, out, *_ = entry
        xp, rules, shapes_and_dtypes, saved = self._reading.of(entry, g, needed)
        line = line_of_gradient(op.name, out)
        rules = [rule and functools.partial(self._run, op, line, rule) for rule in rules]
        return xp, rules, shapes_and_dtypes, saved

    def _run(
        self, op: Recordable, line: str, rule: Rule, xp: Any, g: Any, saved: Any, params: Any
    ) -> Any:
        # a call without rules of its own runs what the user has written: each op is checked
        with unchecked() if op.rules else contextlib.nullcontext():
            result = rule(xp, g, saved, params)
        names = getattr(op, "saves", None) or [f"saved {k}" for k in range(len(saved or ()))]
        inputs = {"g": g, **dict(zip(names, saved or (), strict=False))}
        check(f"gradient of {op.name}", result, inputs, params, line)
        return result

    def check_sum(self, total: Any, *parts: Any) -> None:
        """Raise NumericsError for a NaN or an infinity in `total`."""
        check("sum of gradients", total, {"parts": parts})


def _on_device_of_g(rule: Rule, xp: Any, g: Any, saved: Any, params: Any) -> Any:
    """Call a rule with the GPU of its arrays current, because ``*`` and ``+`` run on that one."""
    grads = g if type(g) is tuple else (g,)
    with formulas_on(next(x for x in grads if x is not None)):
        return rule(xp, g, saved, params)


crossings: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""By serial number, the crossings of `batched`: Tensors that all examples share met Batched ones.

`revive` gives such a Tensor a value for each example. So it does not cross again, and its gradient
is that of one example; the crossing sums them.
"""


def revive(op: Recordable, saved: Any, out: Any, ids: Sequence[int]) -> list[Any]:
    """Saved arrays as the Tensors they were, by array and serial number."""
    on_device = any(type(v) in ARRAYS and type(v) is not np.ndarray for v in each_saved(saved))

    def revived(array: Any, serial: int) -> Any:
        if array is None or type(array) in SCALARS:
            return array
        if on_device and isinstance(array, np.generic):  # a number next to bfloat16
            return array.item()
        if serial in crossings:
            array = crossings[serial].inside(array)
        return tensor_with_id(array, serial)

    alive: list[Any] = []
    for value, origin in zip(saved, op.origins, strict=True):
        if origin is None:
            alive.append(value)
        elif origin == "all":
            alive.append([revived(v, i) for v, i in zip(value, ids, strict=True)])
        elif origin != "out":
            alive.append(revived(value, ids[origin]))
        elif type(out) is int:
            alive.append(revived(value, out))
        else:
            alive.append(tuple(revived(v, o[0]) for v, o in zip(value, out, strict=True)))
    return alive


def each_saved(saved: Any) -> Iterator[Any]:
    """Saved values, with lists and tuples flattened."""
    for value in saved:
        if type(value) in (list, tuple):
            yield from value
        else:
            yield value
