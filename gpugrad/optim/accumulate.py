"""Sums of gradients over several calls, for steps with the mean of their gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpugrad.core import devices
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import wrap
from gpugrad.core.variable import Variable
from gpugrad.kernels.codegen.update_kernel import StepKernel
from gpugrad.optim.arrays import ravel_reals
from gpugrad.optim.checks import Gradient
from gpugrad.optim.state import SUM, State

_BEGIN = StepKernel("begin_sum", lambda xp, s, p, g: (s.one * g,), ("one",), 0)
_ADD = StepKernel("add_to_sum", lambda xp, s, p, g: (p + s.one * g,), ("one",), 0)
_DIVIDE = StepKernel("divide_sum", lambda xp, s, p, g: (g / s.count,), ("count",), 0)
KERNELS = (_BEGIN, _ADD, _DIVIDE)


def add_gradients(states: Sequence[State], gradients: Sequence[Any]) -> None:
    """Add gradients to the sums of their Variables, in float32 or wider."""
    work: dict[StepKernel, list[Any]] = {_BEGIN: [], _ADD: []}
    for state, g in zip(states, gradients, strict=True):
        total = state.averages.get(SUM)
        if total is None:
            total = state.add(SUM, state.size)
        dense = g.to_dense() if isinstance(g, IndexedSlices) else g
        work[_ADD if state.summed else _BEGIN].append((total, ravel_reals(dense._data)))
        state.summed = True
    for kernel, pairs in work.items():
        passes = np.add if kernel is _ADD else lambda p, g, out: np.copyto(out, g)
        _run(kernel, passes, pairs, 1.0)


def mean_gradients(states: Iterable[State], count: int) -> list[tuple[Gradient, Variable]]:
    """The sums divided by `count`, and their Variables; the sums are empty afterwards."""
    summed = [s for s in states if s.summed]
    sums = [s.averages[SUM] for s in summed]
    _run(_DIVIDE, lambda p, g, out: np.divide(g, count, out), [(a, a) for a in sums], count)
    pairs: list[tuple[Gradient, Variable]] = []
    for state, array in zip(summed, sums, strict=True):
        v = state.variable
        shaped = array.view(v.dtype) if v.dtype.kind == "c" else array
        pairs.append((wrap(shaped.reshape(v.shape)), v))
        state.summed = False
    return pairs


def _run(kernel: StepKernel, passes: Any, work: Sequence[tuple[Any, Any]], setting: float) -> None:
    """Update arrays p from g: by a function of NumPy arrays, or one launch per dtype and GPU."""
    on_gpu: dict[Any, list[tuple[Any, Any]]] = {}
    with np.errstate(all="ignore"):
        for p, g in work:
            if type(p) is np.ndarray:
                passes(p, g.astype(p.dtype, copy=False), p)
            else:
                on_gpu.setdefault((p.dtype, devices.device_of(p)), []).append((p, g))
    for pairs in on_gpu.values():
        with devices.formulas_on(pairs[0][0]):
            kernel.step(list(zip(*pairs, strict=True)), (setting,))
