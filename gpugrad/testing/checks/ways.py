"""Checks that vmap, gg.function, CUDA kernels and the GPU give an op's eager results."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.autodiff.tape import GradientTape
from gpugrad.core.backend import BFLOAT16, NUMPY, TENSOR, is_inexact
from gpugrad.core.devices import CPU
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.errors import ArgumentError, DeviceError
from gpugrad.function import function
from gpugrad.testing.checks.phases import comparable
from gpugrad.testing.checks.subject import Sample, Subject, as_list
from gpugrad.testing.close import (
    Array,
    GradientCheckError,
    as_numpy,
    assert_near,
    assert_same,
    name_failure,
    result_names,
)
from gpugrad.testing.cuda import shim
from gpugrad.transforms.vmap import vmap

_EXAMPLES = 2


def check_vmap(s: Subject) -> None:
    """Compare results and gradients under vmap with a loop over the examples."""
    for sample in s.samples:
        arrays = [i for i, a in enumerate(sample.leaves) if isinstance(a, np.ndarray)]
        choices = [arrays] if len(arrays) < 2 else [arrays, *([i] for i in arrays)]
        for chosen in choices if arrays else ():
            with name_failure(sample.title, f"vmap over {[sample.names[i] for i in chosen]}"):
                _compare_vmap(s, sample, chosen)


def _compare_vmap(s: Subject, sample: Sample, chosen: list[int]) -> None:
    def vary(x: Array, k: int) -> Array:  # distinct examples within the domain
        return x * x.dtype.type(1 - 0.05 * k) if is_inexact(x.dtype) else x

    stacked = [
        np.stack([vary(a, k) for k in range(_EXAMPLES)]) if i in chosen else a
        for i, a in enumerate(sample.leaves)
    ]
    axes = [0 if i in chosen else None for i in range(len(stacked))]
    loops = [
        sample.replace([vary(a, k) if i in chosen else a for i, a in enumerate(sample.leaves)])
        for k in range(_EXAMPLES)
    ]
    tolerance = {"rtol": 1e-8, "atol": 1e-9}
    tensors = [sample.put(a) for a in stacked]
    try:
        results = vmap(lambda *leaves: sample.call(leaves), tuple(axes))(*tensors)
    except ArgumentError as error:
        if "vmap" in str(error):  # the op refuses vmap and says why
            return
        raise
    rows = [loop.results() for loop in loops]
    desired = [np.stack([as_numpy(y) for y in column]) for column in zip(*rows, strict=True)]
    assert_same(sample.title, "vmap", result_names(results), results, desired, **tolerance)
    inexact_leaves = sample.inexact_leaves
    if not inexact_leaves or not s.op.differentiable:
        return
    cts = s.cotangents(rows[0])
    if not cts:
        return

    def gradients(*leaves: Tensor) -> list[Tensor]:
        own = list(leaves)
        for i in inexact_leaves:
            own[i] = TENSOR.positive(own[i])
        with GradientTape() as tape:
            tape.watch([own[i] for i in inexact_leaves])
            ys = [y for y in sample.call(own) if is_inexact(y.dtype)]
        grads = tape.gradient(ys, [own[i] for i in inexact_leaves], [wrap(c) for c in cts], "zero")
        return [tensor(g) for g in grads]

    names = [sample.names[i] for i in inexact_leaves]
    expected = [gradients(*[loop.put(a) for a in loop.leaves]) for loop in loops]
    desired = [np.stack([as_numpy(g) for g in column]) for column in zip(*expected, strict=True)]
    grads = vmap(gradients, tuple(axes))(*tensors)
    assert_same(sample.title, "gradients under vmap, by", names, grads, desired, **tolerance)
    for i in inexact_leaves:
        tensors[i] = TENSOR.positive(tensors[i])
    with GradientTape() as tape:
        tape.watch([tensors[i] for i in inexact_leaves])
        ys = vmap(lambda *leaves: sample.call(leaves), tuple(axes))(*tensors)
        ys = [y for y in ys if is_inexact(y.dtype)]
    seeds = [wrap(np.broadcast_to(c, (_EXAMPLES, *c.shape))) for c in cts]
    outside = tape.gradient(ys, [tensors[i] for i in inexact_leaves], seeds, "zero")
    summed = [d if i in chosen else d.sum(0) for i, d in zip(inexact_leaves, desired, strict=True)]
    outside = [tensor(g) for g in outside]
    assert_same(sample.title, "the gradient of vmap, by", names, outside, summed, **tolerance)


def check_function(s: Subject) -> None:
    """Compare results and gradients of gg.function, traced and replayed, with eager calls."""
    for sample in s.samples:
        if not sample.inexact_leaves:
            continue
        both = functools.partial(Sample.with_gradients, sample)
        traced: Any = function(both)
        with name_failure(sample.title, "gg.function"):
            for k in range(3):  # traced, then replayed twice
                leaves = [sample.leaves[i] for i in sample.inexact_leaves]
                xs = [sample.put(np.asarray(a * a.dtype.type(1 - 0.05 * k))) for a in leaves]
                actual, desired = traced(*xs), both(*xs)
                for what, a, d in zip(("results", "gradients"), actual, desired, strict=True):
                    names = [f"{what} {n}" for n in range(len(d))]
                    assert_same(sample.title, f"run {k} of gg.function", names, a, d, 1e-12, 1e-12)
        if traced.cache_info().traces != 1:
            raise GradientCheckError(f"{sample.title}: gg.function traced it more than once.")


_KERNEL_TOLERANCES = {np.float64: 1e-10, np.float32: 2e-5, np.float16: 4e-3, BFLOAT16: 3e-2}


def check_kernel(s: Subject) -> None:
    """Compare the op's CUDA kernel, run on the CPU in three schedules, with its formula."""
    if s.op.cuda is None or shim.unavailable() or hasattr(s.op.cuda, "library"):
        return  # a call of an NVIDIA library has no source that the CPU could run
    with shim.deferred() as launches:  # compiling all together is faster than one by one
        for real in _KERNEL_TOLERANCES:
            for sample in s.samples:
                arrays, params = sample.astype(real).bind()
                with contextlib.suppress(Exception):  # raised again below
                    s.op.cuda(NUMPY, *arrays, **params)
    with contextlib.suppress(shim.ShimError):
        launches.compile()
    ran = False
    for real, tolerance in _KERNEL_TOLERANCES.items():
        for sample in s.samples:
            narrow = sample.astype(real)
            with name_failure(narrow.title, "the formula"):
                desired = narrow.bare()
            for schedule in shim.SCHEDULES:
                title = f"{narrow.title}, threads {schedule}"
                arrays, params = narrow.bind()
                with name_failure(title, "its kernel"), shim.running(schedule):
                    results = s.op.cuda(NUMPY, *arrays, **params)
                if results is NotImplemented:
                    break
                ran, results = True, as_list(results)
                names = result_names(results)
                if [a.dtype for a in results] != [d.dtype for d in desired]:
                    raise GradientCheckError(f"{title}: the kernel gives another dtype.")
                assert_near(title, "its kernel", names, results, desired, tolerance, tolerance)
    if not ran:
        raise GradientCheckError(f"{s.op.name}: its kernel declines samples sample.")


def check_device(s: Subject) -> None:
    """Check that results and gradients on the GPU equal those on the CPU, and stay on the GPU."""
    if s.device == CPU or "device" in s.op.params:
        return
    tolerance = {"rtol": 1e-8, "atol": 1e-10}
    for sample in map(comparable, s.samples):
        there = sample.replace(sample.leaves, f" (on {s.device})", s.device)
        desired = sample.results()
        cts = s.cotangents(desired) if s.op.differentiable and sample.inexact_leaves else []
        with name_failure(there.title, "the op"):
            try:
                results = there.results()
            except DeviceError as error:  # the op says that the device lacks a function
                if s.op.name in str(error):
                    return
                raise
            _assert_on(s.device, there.title, results)
            if s.op.ref is not None:  # without one the op is random
                names = result_names(results)
                assert_same(there.title, "the forward", names, results, desired, **tolerance)
            for outer in (False, True) if cts else ():
                case = there.case()
                grads = case.gradients(cts, outer=outer)
                _assert_on(s.device, there.title, grads)
                expected = sample.case().gradients(cts, outer=outer)
                assert_same(
                    there.title, "the gradient by", case.names, grads, expected, **tolerance
                )


def _assert_on(device: Any, title: str, arrays: Sequence[Any]) -> None:
    for a in arrays:
        if a is not None and a.device != device:
            raise GradientCheckError(f"{title}: a result is on {a.device}.")
