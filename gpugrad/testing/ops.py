"""All that is promised of an op, checked from the samples in its record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpugrad.core import devices
from gpugrad.core.devices import CPU
from gpugrad.errors import ArgumentError
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
from gpugrad.testing.close import about

__all__ = ["CHECKS", "check_op"]

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
"""The names of the checks that `check_op` makes, in its order."""


def check_op(
    op: str | Op | Callable[..., Any],
    *,
    checks: Sequence[str] = CHECKS,
    orders: int = 2,
    device: Any = None,
    seed: int = 0,
) -> None:
    """Check all that is promised of an op, from the samples in its record.

    Args:
        op: its name, its record, or the function that declaring it gave.
        checks: which of `CHECKS` to make.
        orders: highest order of derivative to hold against differences.
        device: where its results must be those of the CPU; the first GPU if None, and
            nothing is compared where there is none.
        seed: of the samples and the random directions.

    Raises:
        GradientCheckError: a promise does not hold. The message has the op, the number of
            the sample, the shapes, the numbers on both sides and how they were made.
        ArgumentError: there is no op, or no check, of that name.

    >>> gg.testing.check_op("tanh")
    >>> gg.testing.check_op(gg.matmul, checks=["vjp", "jvp"])
    """
    record = op if isinstance(op, Op) else getattr(op, "op", None)
    if record is None:
        if not isinstance(op, str) or op not in OPS:
            raise ArgumentError(f"check_op: there is no op {op!r:.60}; gg.OPS has their names.")
        record = OPS[op]
    if device is None:
        device = "cuda:0" if devices.gpu_count() else CPU
    for name in checks:
        if name not in _CHECKS:
            raise ArgumentError(f"check_op: there is no check {name!r}; there are {CHECKS}.")
        with about(record.name, f"the check {name!r}"):
            _CHECKS[name](Subject(record, seed, orders, devices.device(device)))
