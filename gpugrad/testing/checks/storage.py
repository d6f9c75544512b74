"""Checks of an op in other dtypes and memory layouts, and that it does not modify its inputs."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from gpugrad.autodiff.tape import GradientTape
from gpugrad.core.backend import BFLOAT16, is_inexact
from gpugrad.core.tensor import wrap
from gpugrad.errors import DTypeError
from gpugrad.testing.checks.subject import Sample, Subject, narrow_dtype
from gpugrad.testing.close import (
    Array,
    as_numpy,
    assert_near,
    assert_same,
    name_failure,
    result_names,
)


def _strided(x: Array) -> Array:
    """The same values as every second element along the last axis of a longer array."""
    if not x.ndim:
        return x
    longer = np.full((*x.shape[:-1], 2 * x.shape[-1]), 7, x.dtype)
    longer[..., ::2] = x
    return longer[..., ::2]


def _transposed(x: Array) -> Array:
    """The same values with the axes in reverse order in memory."""
    return x.T.copy().T


def _reversed(x: Array) -> Array:
    """The same values with a negative stride."""
    return x[::-1].copy()[::-1] if x.ndim else x


def check_layout(s: Subject) -> None:
    """Check arrays with gaps, and transposed, reversed and broadcast arrays."""
    for sample in s.samples:
        case = sample.case()
        results = sample.results()
        cts = s.cotangents(results)
        gradients = case.gradients(cts) if cts and case.point else []
        for relayout in (_strided, _transposed, _reversed):
            leaves = [relayout(a) if isinstance(a, np.ndarray) else a for a in sample.leaves]
            other = sample.replace(leaves, f" ({relayout.__name__[1:]} in memory)")
            with name_failure(other.title, "the op"):
                ys = other.results()
                assert_same(other.title, "the forward", result_names(results), ys, results)
                if gradients:
                    gs = other.case().gradients([relayout(ct) for ct in cts])
                    assert_same(other.title, "the gradient by", case.names, gs, gradients)
        if gradients:  # a sum's backward pass gives one read-only number with stride 0
            ones = [np.broadcast_to(ct.dtype.type(1), ct.shape) for ct in cts]
            with name_failure(sample.title, "the backward pass of a broadcast cotangent"):
                gs = case.gradients(ones)
                desired = case.gradients([o.copy() for o in ones])
                assert_same(sample.title, "the gradient by", case.names, gs, desired)


def check_float32(s: Subject) -> None:
    """Check that float32 gives float32 results, and gradients of each input's shape and dtype."""
    _check_narrow(s, s.samples, np.float32, rtol=1e-3, atol=1e-4)
    if s.op.kind == "elementwise" and len(s.op.arrays) > 1:
        _check_numbers(s.samples[0].astype(np.float32))


def _check_numbers(sample: Sample) -> None:
    floats = sample.inexact_leaves
    for k in floats if len(floats) > 1 else ():  # a float with ints is float64
        array = sample.leaves[k]
        full = np.full_like(array, array.flat[0])
        both = [
            sample.replace([*sample.leaves[:k], x, *sample.leaves[k + 1 :]], " (with a number)")
            for x in (full.flat[0].item(), full)
        ]
        with name_failure(both[0].title, "the op"):
            results, desired = both[0].results(), both[1].results()
            assert_same(both[0].title, "the forward", result_names(results), results, desired)


def _check_narrow(s: Subject, samples: Any, real: Any, rtol: float, atol: float) -> None:
    for sample in samples:
        if not sample.inexact_leaves:
            continue
        narrow = sample.astype(real)
        # the narrow values in double precision, so that only the op's own rounding is compared
        exact = sample.replace(
            [
                a.astype(d.dtype) if isinstance(a, np.ndarray) else a
                for a, d in zip(narrow.leaves, sample.leaves, strict=True)
            ]
        )
        with name_failure(narrow.title, "the op"):
            try:
                results = narrow.results()
            except DTypeError:
                if real is np.float32:
                    raise
                continue  # an op may refuse 16-bit floats, but not compute wrong results with them
            desired = [as_numpy(y) for y in exact.results()]
            if sample.keywords.get("dtype") is None:  # it would decide the dtype of the results
                to = np.float32 if s.op.native_half == "wide" else real
                desired = [y.astype(narrow_dtype(y.dtype, to)) for y in desired]
                if s.op.native_half:  # further results, which are statistics, may stay float32
                    desired[1:] = [
                        d.astype(np.float32) if r.dtype == np.float32 else d
                        for r, d in zip(results[1:], desired[1:], strict=True)
                    ]
            assert_near(
                narrow.title, "the forward", result_names(results), results, desired, rtol, atol
            )
            cts = s.cotangents(results)
            if not cts or not s.op.differentiable:
                continue
            grads = narrow.case().gradients(cts)
            wide = [
                ct.astype(y.dtype)
                for ct, y in zip(
                    cts, [y for y in exact.results() if is_inexact(y.dtype)], strict=True
                )
            ]
            expected = [
                None if g is None else as_numpy(g).astype(x.dtype)
                for g, x in zip(exact.case().gradients(wide), narrow.case().point, strict=True)
            ]
            assert_near(
                narrow.title, "the gradient by", exact.case().names, grads, expected, rtol, atol
            )


def check_half(s: Subject) -> None:
    """Check that float16 and bfloat16 give the rounded results of wider floats, or a DTypeError."""
    if "f" in s.op.kinds:
        _check_narrow(s, s.real_samples, np.float16, rtol=1e-2, atol=1e-2)
        _check_narrow(s, s.real_samples, BFLOAT16, rtol=8e-2, atol=8e-2)


def check_mutation(s: Subject) -> None:
    """Check that neither the op nor its backward pass writes to its inputs or results."""
    for sample in s.samples:
        leaves = [a.copy() if isinstance(a, np.ndarray) else a for a in sample.leaves]
        own = sample.replace(leaves)
        case = own.case()
        xs = case.tensors(case.point)
        with GradientTape(persistent=True) as tape:
            tape.watch(xs)
            ys = case.function(xs)
        cts = s.cotangents(ys)
        before = [y.numpy() for y in ys], [ct.copy() for ct in cts]
        if s.op.differentiable and cts and xs:
            for outer in (False, True):
                with contextlib.ExitStack() as stack:
                    if outer:
                        stack.enter_context(GradientTape()).watch(xs)
                    tape.gradient(ys, xs, output_gradients=[wrap(ct) for ct in cts])
        original = [a for a in sample.leaves if isinstance(a, np.ndarray)]
        current = [a for a in leaves if isinstance(a, np.ndarray)]
        for what, after, was in (
            ("input", current, original),
            ("result", ys, before[0]),
            ("cotangent", cts, before[1]),
        ):
            names = [f"{what} {k}" for k in range(len(was))]
            assert_same(sample.title, "the op has written to its", names, after, was, 0.0, 0.0)
