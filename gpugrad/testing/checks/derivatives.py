"""Checks of an op's derivative rules, against differences and against each other."""

from __future__ import annotations

from numpy.exceptions import ComplexWarning

from gpugrad.autodiff.tape import GradientTape
from gpugrad.core.backend import is_inexact
from gpugrad.errors import GpugradError
from gpugrad.testing.checks.subject import Subject
from gpugrad.testing.close import GradientCheckError, assert_same, name_failure, result_names
from gpugrad.testing.grads import Limits, check_forward_mode, check_orders, check_reverse, fail


def check_bare(s: Subject) -> None:
    """Check that plain arrays, Tensors and recorded Tensors give the same results."""
    for sample in s.samples:
        with name_failure(sample.title, "the forward"):
            plain, eager = sample.bare(), sample.results()
            case = sample.case()
            with GradientTape() as tape:
                xs = case.tensors(case.point)
                tape.watch(xs)
                recorded = case.function(xs)
        names, inexact = result_names(eager), [y for y in eager if is_inexact(y.dtype)]
        assert_same(sample.title, "on plain arrays and on Tensors", names, plain, eager)
        assert_same(
            sample.title, "recorded and unrecorded", result_names(inexact), recorded, inexact
        )


def check_vjp(s: Subject) -> None:
    """Compare each gradient with differences; an op declared without one must have none."""
    for sample in s.differentiable:
        check_reverse(sample.case(), s.rng, Limits())
    for sample in s.samples:
        if s.op.differentiable or not sample.inexact_leaves:
            continue
        case = sample.case()
        cts = s.cotangents(case.function(case.tensors(case.point)))
        grads = case.gradients(cts) if cts else []
        if any(g is not None for g in grads):
            fail(case, "the op is declared without a gradient but has one", {"gradients": grads})


def check_complex(s: Subject) -> None:
    """Check that an op not declared for complex numbers refuses them under a tape, or is right."""
    if "c" in s.op.kinds or not s.op.differentiable:
        return
    for sample in map(s.make_complex, s.differentiable):
        case = sample.case()
        try:
            cts = s.cotangents(case.function(case.tensors(case.point)))
            case.gradients(cts)
        except (GpugradError, ComplexWarning):  # NumPy warns that it drops the imaginary part
            continue
        if cts:
            check_reverse(case, s.rng, Limits())


def check_jvp(s: Subject) -> None:
    """Compare forward mode with differences and with reverse mode."""
    for sample in s.differentiable:
        check_forward_mode(sample.case(), s.rng, Limits())


def check_second_order(s: Subject) -> None:
    """Compare the gradient's derivative, in both modes, with differences of the gradient."""
    for case in (sample.case() for sample in s.differentiable):
        orders = range(2, s.orders + 1)
        try:  # forward mode is compared with differences, and reverse mode with forward mode
            check_orders(case, orders, ("fwd",), s.rng, Limits())
        except GradientCheckError:
            check_orders(case, orders, ("rev",), s.rng, Limits())  # names the argument
            raise


def check_readings(s: Subject) -> None:
    """Check that the rules give the same gradients on plain arrays and on Tensors."""
    for sample in s.differentiable:
        case = sample.case()
        cts = s.cotangents(case.function(case.tensors(case.point)))
        if not cts:
            continue
        with name_failure(sample.title, "the backward pass"):
            plain, recorded = case.gradients(cts), case.gradients(cts, outer=True)
        what = "gradients on Tensors and on plain arrays, by"
        assert_same(sample.title, what, case.names, recorded, plain)
