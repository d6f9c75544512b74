"""bfloat16 on a device: each op accepts it and returns the dtypes and shapes of the CPU."""

import warnings

import numpy as np

import gpugrad as gg
from gpugrad.core.backend import BFLOAT16, is_inexact
from gpugrad.errors import DeviceError
from gpugrad.testing.checks.subject import Subject


def types(results):
    return [(y.dtype, y.shape) for y in results]


def differences(op, device):
    """Where results or gradients of an op differ in dtype or shape from those on the CPU."""
    for k, sample in enumerate(Subject(op, 0, 1, device).real_samples[:2]):
        here = sample.astype(BFLOAT16)
        try:
            desired = here.results()
        except Exception:  # the op does not accept bfloat16
            continue
        there = here.replace(here.leaves, device=device)
        try:
            results = there.results()
        except DeviceError:  # the error says that the device lacks a function
            continue
        if types(results) != types(desired):
            yield f"{here.title}: {types(results)} for {types(desired)}"
        xs = [there.put(there.leaves[i]) for i in there.inexact_leaves]
        if k == 0 and op.differentiable and xs and any(is_inexact(y.dtype) for y in desired):
            with gg.GradientTape() as tape:
                tape.watch(xs)
                leaves = [there.put(a) for a in there.leaves]
                for i, x in zip(there.inexact_leaves, xs, strict=True):
                    leaves[i] = x
                ys = [y for y in there.call(leaves) if is_inexact(y.dtype)]
            gradients = [g for g in tape.gradient(ys, xs) if g is not None]
            if any(g.dtype != BFLOAT16 for g in gradients):
                yield f"{here.title}: gradients {types(gradients)}"


def test_every_op_accepts_bfloat16(cuda):
    failed = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, op in gg.OPS.items():
            if "f" in op.kinds and "device" not in op.params:
                try:
                    failed += differences(op, gg.device(cuda))
                except Exception as error:
                    failed.append(f"{name}: {type(error).__name__}: {error}")
    assert failed == []


def test_unique_accepts_bfloat16(cuda):
    x = gg.constant(np.array([3, 1, 3], BFLOAT16)).to_device(cuda)
    values, counts = gg.unique(x, return_counts=True)
    assert values.dtype == BFLOAT16
    assert values.numpy().tolist() == [1, 3]
    assert counts.numpy().tolist() == [1, 2]
