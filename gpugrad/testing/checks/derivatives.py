"""Checks of an op's rules, against differences and against each other."""

from __future__ import annotations

from numpy.exceptions import ComplexWarning

from gpugrad.autodiff.tape import GradientTape
from gpugrad.core.backend import is_inexact
from gpugrad.errors import GpugradError
from gpugrad.testing.checks.subject import Subject
from gpugrad.testing.close import about, assert_same, numbered
from gpugrad.testing.grads import Limits, check_forward_mode, check_orders, check_reverse, fail

__all__ = [
    "check_bare",
    "check_complex",
    "check_jvp",
    "check_readings",
    "check_second_order",
    "check_vjp",
]


def check_bare(s: Subject) -> None:
    """The function on bare arrays and on Tensors, recorded or not, gives the same."""
    for sample in s.every:
        with about(sample.title, "the forward"):
            bare, eager = sample.bare(), sample.results()
            case = sample.case()
            with GradientTape() as tape:
                xs = case.tensors(case.point)
                tape.watch(xs)
                recorded = case.function(xs)
        names, inexact = numbered(eager), [y for y in eager if is_inexact(y.dtype)]
        assert_same(sample.title, "on bare arrays and on Tensors", names, bare, eager)
        assert_same(sample.title, "recorded and unrecorded", numbered(inexact), recorded, inexact)


def check_vjp(s: Subject) -> None:
    """Every gradient against differences; none at all if the op is declared without."""
    for sample in s.differentiable:
        check_reverse(sample.case(), s.rng, Limits())
    for sample in s.every:
        if s.op.differentiable or not sample.moved:
            continue
        case = sample.case()
        cts = s.cotangents(case.function(case.tensors(case.point)))
        found = case.gradients(cts) if cts else []
        if any(g is not None for g in found):
            fail(case, "the op is declared without a gradient and has one", {"gradients": found})


def check_complex(s: Subject) -> None:
    """An op that is not declared for complex numbers refuses them under a tape, or is right."""
    if "c" in s.op.kinds or not s.op.differentiable:
        return
    for sample in map(s.made_complex, s.differentiable):
        case = sample.case()
        try:
            cts = s.cotangents(case.function(case.tensors(case.point)))
            case.gradients(cts)
        except (GpugradError, ComplexWarning):  # NumPy warns that it drops the imaginary part
            continue
        if cts:
            check_reverse(case, s.rng, Limits())


def check_jvp(s: Subject) -> None:
    """Forward mode against differences, and against reverse mode."""
    for sample in s.differentiable:
        check_forward_mode(sample.case(), s.rng, Limits())


def check_second_order(s: Subject) -> None:
    """The derivative of the gradient, in both modes, against differences of the gradient."""
    for sample in s.differentiable:
        check_orders(sample.case(), range(2, s.orders + 1), ("rev", "fwd"), s.rng, Limits())


def check_readings(s: Subject) -> None:
    """The rules read on bare arrays and on Tensors give the same gradient."""
    for sample in s.differentiable:
        case = sample.case()
        cts = s.cotangents(case.function(case.tensors(case.point)))
        if not cts:
            continue
        with about(sample.title, "the backward pass"):
            bare, recorded = case.gradients(cts), case.gradients(cts, outer=True)
        what = "gradients on Tensors and on bare arrays, by"
        assert_same(sample.title, what, case.names, recorded, bare)
