"""Compares an op on a GPU with the same op on the CPU, in several dtypes and under gg.function.

Unlike the other checks it goes on after a difference: `differences` yields all that it finds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpugrad.autodiff.tape import GradientTape
from gpugrad.core.backend import BFLOAT16, is_inexact
from gpugrad.core.devices import CPU
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import DeviceError
from gpugrad.function import function
from gpugrad.registry.record import Op
from gpugrad.testing.checks.phases import comparable
from gpugrad.testing.checks.subject import Sample, Subject
from gpugrad.testing.close import as_numpy, to_double

PHASES: dict[str, Any] = {
    "native": None,
    "function": None,
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": BFLOAT16,
}
"""The dtype that each phase casts the samples to; ``"function"`` runs them under gg.function."""

_TOLERANCES = {
    "float64": (1e-8, 1e-10),
    "complex128": (1e-8, 1e-10),
    "float32": (2e-4, 2e-5),
    "complex64": (2e-4, 2e-5),
    "float16": (8e-3, 4e-3),
    "bfloat16": (6e-2, 3e-2),
}
"""Relative and absolute, by dtype: CUDA's functions round otherwise than NumPy's."""


_VALUES = "values:"


@dataclass(frozen=True)
class Difference:
    """One sample whose result on the GPU is not that on the CPU.

    Attributes:
        phase: one of `PHASES`.
        sample: the sample's title.
        what: ``"forward"``, ``"gradient"``, ``"gradient, recorded"`` or ``"run 0"``.
        message: the two values, or the exception.
        is_about_values: whether values or shapes differ, not dtypes.
    """

    phase: str
    sample: str
    what: str
    message: str
    is_about_values: bool = False


def differences(op: Op, phase: str, device: Any, seed: int = 0) -> Iterator[Difference]:
    """The differences between an op on a GPU and on the CPU."""
    dtype = PHASES[phase]
    subject = Subject(op, seed, 1, device)
    samples = subject.samples if dtype is None else subject.real_samples[:2]
    if "device" in op.params or (dtype is not None and "f" not in op.kinds):
        return
    for sample in map(comparable, samples[:1] if phase == "function" else samples):
        here = sample if dtype is None else sample.astype(dtype)
        there = here.replace(here.leaves, device=device)
        for what, run in _runs(op, phase):
            message = _compare(op, run, here, there)
            if message is None:  # the op says that the device lacks it
                return
            if message:
                yield Difference(phase, here.title, what, message, message.startswith(_VALUES))


_Run = Callable[[Sample], list[Tensor]]


def _runs(op: Op, phase: str) -> list[tuple[str, _Run]]:
    """The runs of an op, by name; those that do not apply are left out."""
    if phase == "function":
        return [("gg.function", _replayed)]
    runs: list[tuple[str, _Run]] = [("forward", lambda sample: sample.results())]
    if op.differentiable:
        runs.append(("gradient", lambda sample: _gradients(sample, False)))
    if op.differentiable and phase == "native":
        runs.append(("gradient, recorded", lambda sample: _gradients(sample, True)))
    return runs


def _compare(op: Op, run: _Run, here: Sample, there: Sample) -> str | None:
    """The difference of a run on both devices, if any; None if the device lacks the op."""
    try:
        desired = run(here)
    except Exception:  # the other checks say whether that is right
        return ""
    try:
        actual = run(there)
    except DeviceError as error:
        return None if op.name in str(error) else f"DeviceError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    away = [y.device for y in actual if y.device != there.device]
    if away and run is not _replayed:
        return f"a result is on {away[0]}"
    return _difference(actual, desired, compare_values=op.ref is not None)


def _difference(actual: Sequence[Tensor], desired: Sequence[Tensor], compare_values: bool) -> str:
    dtypes, expected = ([str(y.dtype) for y in ys] for ys in (actual, desired))
    if dtypes != expected:
        return f"dtypes {dtypes}, expected {expected}"
    shapes, expected_shapes = ([y.shape for y in ys] for ys in (actual, desired))
    if shapes != expected_shapes:
        return f"{_VALUES} {shapes}, expected {expected_shapes}"
    for k, (a, d) in enumerate(zip(map(as_numpy, actual), map(as_numpy, desired), strict=True)):
        rtol, atol = _TOLERANCES.get(d.dtype.name, (0.0, 0.0))
        if is_inexact(d.dtype):
            equal = np.allclose(to_double(a), to_double(d), rtol, atol, equal_nan=True)
        else:
            equal = np.array_equal(a, d)
        if compare_values and not equal:  # without a reference the op is random
            return f"{_VALUES} result {k} is {a.ravel()[:4]}, expected {d.ravel()[:4]}"
    return ""


def _gradients(sample: Sample, recorded: bool) -> list[Tensor]:
    """The gradients of the sum of all results; `recorded` under a tape of their own."""
    case = sample.case()
    if not case.point:
        return []
    xs = case.tensors(case.point)
    with GradientTape(persistent=recorded) as tape:
        tape.watch(xs)
        ys = case.function(xs)
        if recorded and ys:
            return [tensor(g) for g in tape.gradient(ys, xs, None, "zero")]
    return [tensor(g) for g in tape.gradient(ys, xs, None, "zero")] if ys else []


def _replayed(sample: Sample) -> list[Tensor]:
    """Results and gradients, eagerly on the CPU and on a GPU as the third call of gg.function."""
    chosen = sample.inexact_leaves
    if not chosen:
        return []
    both = functools.partial(Sample.with_gradients, sample)
    run: Any = both if sample.device == CPU else function(both)
    for _ in range(1 if sample.device == CPU else 3):
        results = run(*[sample.put(sample.leaves[i]) for i in chosen])
    return [y for part in results for y in part]
