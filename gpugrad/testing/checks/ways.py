"""Checks that an op computes the same in the other ways to run it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.autodiff.tape import GradientTape
from gpugrad.core.backend import BFLOAT16, NUMPY, TENSOR, is_inexact
from gpugrad.core.devices import CPU
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.errors import ArgumentError, DeviceError
from gpugrad.function import function
from gpugrad.testing.checks.subject import Sample, Subject, several
from gpugrad.testing.close import (
    Array,
    GradientCheckError,
    about,
    as_numpy,
    assert_near,
    assert_same,
    numbered,
)
from gpugrad.testing.cuda import shim
from gpugrad.transforms.vmap import vmap

__all__ = ["check_device", "check_function", "check_kernel", "check_vmap"]


_EXAMPLES = 3


def check_vmap(s: Subject) -> None:
    """Under vmap results and gradients are those of a loop over the examples."""
    for sample in s.every:
        arrays = [i for i, a in enumerate(sample.leaves) if isinstance(a, np.ndarray)]
        choices = [arrays] if len(arrays) < 2 else [arrays, *([i] for i in arrays)]
        for chosen in choices if arrays else ():
            with about(sample.title, f"vmap over {[sample.names[i] for i in chosen]}"):
                _compare_vmap(s, sample, chosen)


def _compare_vmap(s: Subject, sample: Sample, chosen: list[int]) -> None:
    def varied(x: Array, k: int) -> Array:  # in the domain, and no two alike
        return x * x.dtype.type(1 - 0.05 * k) if is_inexact(x.dtype) else x

    stacked = [
        np.stack([varied(a, k) for k in range(_EXAMPLES)]) if i in chosen else a
        for i, a in enumerate(sample.leaves)
    ]
    axes = [0 if i in chosen else None for i in range(len(stacked))]
    loops = [
        sample.replace([varied(a, k) if i in chosen else a for i, a in enumerate(sample.leaves)])
        for k in range(_EXAMPLES)
    ]
    tolerance = {"rtol": 1e-8, "atol": 1e-9}
    given = [sample.put(a) for a in stacked]
    try:
        results = vmap(lambda *leaves: sample.call(leaves), tuple(axes))(*given)
    except ArgumentError as error:
        if "vmap" in str(error):  # it says that it cannot, and why
            return
        raise
    rows = [loop.results() for loop in loops]
    desired = [np.stack([as_numpy(y) for y in column]) for column in zip(*rows, strict=True)]
    assert_same(sample.title, "vmap", numbered(results), results, desired, **tolerance)
    moved = sample.moved
    if not moved or not s.op.differentiable:
        return
    cts = s.cotangents(rows[0])
    if not cts:
        return

    def gradients(*leaves: Tensor) -> list[Tensor]:
        own = list(leaves)
        for i in moved:
            own[i] = TENSOR.positive(own[i])
        with GradientTape() as tape:
            tape.watch([own[i] for i in moved])
            ys = [y for y in sample.call(own) if is_inexact(y.dtype)]
        found = tape.gradient(ys, [own[i] for i in moved], [wrap(c) for c in cts], "zero")
        return [tensor(g) for g in found]

    names = [sample.names[i] for i in moved]
    expected = [gradients(*[loop.put(a) for a in loop.leaves]) for loop in loops]
    desired = [np.stack([as_numpy(g) for g in column]) for column in zip(*expected, strict=True)]
    found = vmap(gradients, tuple(axes))(*given)
    assert_same(sample.title, "gradients under vmap, by", names, found, desired, **tolerance)
    for i in moved:
        given[i] = TENSOR.positive(given[i])
    with GradientTape() as tape:
        tape.watch([given[i] for i in moved])
        ys = vmap(lambda *leaves: sample.call(leaves), tuple(axes))(*given)
        ys = [y for y in ys if is_inexact(y.dtype)]
    seeds = [wrap(np.broadcast_to(c, (_EXAMPLES, *c.shape))) for c in cts]
    outside = tape.gradient(ys, [given[i] for i in moved], seeds, "zero")
    summed = [d if i in chosen else d.sum(0) for i, d in zip(moved, desired, strict=True)]
    outside = [tensor(g) for g in outside]
    assert_same(sample.title, "the gradient of vmap, by", names, outside, summed, **tolerance)


def check_function(s: Subject) -> None:
    """Traced and replayed with other values, results and gradients are those of eager calls."""
    for sample in s.every:
        moved = sample.moved
        if not moved:
            continue

        def both(*xs: Tensor, sample: Sample = sample, moved: list[int] = moved) -> Any:
            leaves = [sample.put(a) for a in sample.leaves]
            for i, x in zip(moved, xs, strict=True):
                leaves[i] = x
            with GradientTape() as tape:
                tape.watch(xs)
                ys = sample.call(leaves)
                inexact = [y for y in ys if is_inexact(y.dtype)]
            if not inexact or not s.op.differentiable:
                return ys, []
            return ys, [tensor(g) for g in tape.gradient(inexact, list(xs), None, "zero")]

        traced = function(both)
        with about(sample.title, "gg.function"):
            for k in range(3):  # traced, then replayed twice
                leaves = [sample.leaves[i] for i in moved]
                xs = [sample.put(np.asarray(a * a.dtype.type(1 - 0.05 * k))) for a in leaves]
                found, desired = traced(*xs), both(*xs)
                for what, a, d in zip(("results", "gradients"), found, desired, strict=True):
                    named = [f"{what} {n}" for n in range(len(d))]
                    assert_same(sample.title, f"run {k} of gg.function", named, a, d, 1e-12, 1e-12)
        if traced.cache_info().traces != 1:
            raise GradientCheckError(f"{sample.title}: gg.function traced it more than once.")


_KERNEL_TOLERANCES = {np.float64: 1e-10, np.float32: 2e-5, np.float16: 4e-3, BFLOAT16: 3e-2}


def check_kernel(s: Subject) -> None:
    """Its CUDA kernel, run on the CPU in three schedules, gives what its formula gives."""
    if s.op.cuda is None or shim.unavailable() or hasattr(s.op.cuda, "library"):
        return  # what calls a library of NVIDIA's has no source that the CPU could run
    with shim.deferred() as launches:  # compiled at once, which is faster than one by one
        for real in _KERNEL_TOLERANCES:
            for sample in s.every:
                arrays, params = sample.astype(real).bound()
                with contextlib.suppress(Exception):  # which come again below
                    s.op.cuda(NUMPY, *arrays, **params)
    with contextlib.suppress(shim.ShimError):
        launches.compile()
    ran = False
    for real, tolerance in _KERNEL_TOLERANCES.items():
        for sample in s.every:
            narrow = sample.astype(real)
            with about(narrow.title, "the formula"):
                desired = narrow.bare()
            for schedule in shim.SCHEDULES:
                title = f"{narrow.title}, threads {schedule}"
                arrays, params = narrow.bound()
                with about(title, "its kernel"), shim.running(schedule):
                    made = s.op.cuda(NUMPY, *arrays, **params)
                if made is NotImplemented:
                    break
                ran, results = True, several(made)
                names = numbered(results)
                if [a.dtype for a in results] != [d.dtype for d in desired]:
                    raise GradientCheckError(f"{title}: the kernel gives another dtype.")
                assert_near(title, "its kernel", names, results, desired, tolerance, tolerance)
    if not ran:
        raise GradientCheckError(f"{s.op.name}: its kernel declines every sample.")


def check_device(s: Subject) -> None:
    """On the GPU, results and gradients are those of the CPU, and stay there."""
    if s.device == CPU or "device" in s.op.params:
        return
    tolerance = {"rtol": 1e-8, "atol": 1e-10}
    for sample in s.every:
        there = sample.replace(sample.leaves, f" (on {s.device})", s.device)
        desired = sample.results()
        cts = s.cotangents(desired) if s.op.differentiable and sample.moved else []
        with about(there.title, "the op"):
            try:
                results = there.results()
            except DeviceError as error:  # it says that its device lacks a function
                if s.op.name in str(error):
                    return
                raise
            _assert_on(s.device, there.title, results)
            if s.op.ref is not None:  # else it is random
                names = numbered(results)
                assert_same(there.title, "the forward", names, results, desired, **tolerance)
            for outer in (False, True) if cts else ():
                case = there.case()
                found = case.gradients(cts, outer=outer)
                _assert_on(s.device, there.title, found)
                expected = sample.case().gradients(cts, outer=outer)
                assert_same(
                    there.title, "the gradient by", case.names, found, expected, **tolerance
                )


def _assert_on(device: Any, title: str, arrays: Sequence[Any]) -> None:
    for a in arrays:
        if a is not None and a.device != device:
            raise GradientCheckError(f"{title}: a result is on {a.device}.")
