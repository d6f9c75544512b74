"""Checks everything that an op's record promises, on the samples in the record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpugrad.core import devices
from gpugrad.core.devices import CPU
from gpugrad.errors import ArgumentError, saying_where
from gpugrad.registry.record import OPS, Op
from gpugrad.testing.checks.declared import (
    check_documentation,
    check_errors,
    check_forward,
    check_record,
)
from gpugrad.testing.checks.derivatives import (
    check_bare,
    check_complex,
    check_jvp,
    check_readings,
    check_second_order,
    check_vjp,
)
from gpugrad.testing.checks.storage import check_float32, check_half, check_layout, check_mutation
from gpugrad.testing.checks.subject import Subject
from gpugrad.testing.checks.ways import check_device, check_function, check_kernel, check_vmap
from gpugrad.testing.close import name_failure

_CHECKS: dict[str, Callable[[Subject], None]] = {
    "record": check_record,
    "documentation": check_documentation,
    "errors": check_errors,
    "forward": check_forward,
    "bare": check_bare,
    "vjp": check_vjp,
    "complex": check_complex,
    "jvp": check_jvp,
    "second_order": check_second_order,
    "readings": check_readings,
    "layout": check_layout,
    "float32": check_float32,
    "half": check_half,
    "mutation": check_mutation,
    "vmap": check_vmap,
    "function": check_function,
    "kernel": check_kernel,
    "device": check_device,
}
CHECKS = tuple(_CHECKS)
"""The names of the checks of `check_op`, in order."""


@saying_where
def check_op(
    op: str | Op | Callable[..., Any],
    *,
    checks: Sequence[str] = CHECKS,
    orders: int = 2,
    device: Any = None,
    seed: int = 0,
) -> None:
    """Check everything that an op's record promises, on the samples in the record.

    Args:
        op: the op's name, its record, or the function that its declaration returned.
        checks: which of `CHECKS` to run.
        orders: highest order of derivative to compare with differences.
        device: device whose results must equal those of the CPU. If None, this is the first GPU,
            or without one the comparison is skipped.
        seed: seed of the samples and the random directions.

    Raises:
        GradientCheckError: a promise does not hold. The message names the op and the sample, and
            shows the shapes and the numbers on both sides.
        ArgumentError: there is no op or no check of that name.

    >>> gg.testing.check_op("tanh")
    >>> gg.testing.check_op(gg.matmul, checks=["vjp", "jvp"])
    """
    record = op if isinstance(op, Op) else getattr(op, "op", None)
    if record is None:
        if not isinstance(op, str) or op not in OPS:
            raise ArgumentError(f"check_op: there is no op {op!r:.60}; gg.OPS lists them.")
        record = OPS[op]
    if device is None:
        device = "cuda:0" if devices.gpu_count() else CPU
    for name in checks:
        if name not in _CHECKS:
            raise ArgumentError(f"check_op: there is no check {name!r}; the checks are {CHECKS}.")
        with name_failure(record.name, f"the check {name!r}"):
            _CHECKS[name](Subject(record, seed, orders, devices.device(device)))
