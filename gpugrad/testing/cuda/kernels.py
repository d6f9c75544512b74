"""Calls of generated kernels, for tests and for ``ci/compile_kernels``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, NUMPY
from gpugrad.kernels.by_hand.rows import FLOATS
from gpugrad.kernels.codegen import for_ops
from gpugrad.kernels.codegen.update_kernel import StepKernel
from gpugrad.kernels.runtime.launch import type_name


def call_forward(op: Any, args: Sequence[Any]) -> Any:
    """Run the forward of an elementwise op as a generated kernel.

    Args:
        op: the record.
        args: NumPy arrays and numbers.

    Raises:
        NoCodeError: the op has no kernel for these arguments.
    """
    return for_ops.forward_of(op, [for_ops.kind_of(a) for a in args])(*args)[0]


def call_gradients(op: Any, args: Sequence[Any], masked: bool = False) -> dict[int, Any]:
    """Run all gradients of an elementwise op as one generated kernel.

    Args:
        op, args: as for `call_forward`.
        masked: whether to use the rules of a masked pass.

    Returns:
        By the index of the input: the gradient, and the rule's arguments ``g`` and ``saved``.

    Raises:
        NoCodeError: the gradients have no kernel.
    """
    rules = op.masked if masked else op.rules
    at = [
        k
        for k, (a, rule) in enumerate(zip(args, rules, strict=True))
        if isinstance(a, np.ndarray)
        and a.dtype.kind in "fcV"
        and rule is not None
        and not getattr(rule, "is_missing", False)
    ]
    if not at:
        return {}
    with np.errstate(all="ignore"):
        out = np.asarray(op.bare(NUMPY)(*args))
    values = dict(zip(op.arrays, args, strict=True)) | {"out": out}
    saved = [_saved_value(values, name) for name in op.saves]
    rng = np.random.default_rng(2)
    g = np.asarray(rng.normal(size=out.shape) + (1j if out.dtype.kind == "c" else 0))
    g = g.astype(out.dtype)
    kinds = [for_ops.saved_kind(s) for s in saved]
    kernel = for_ops.gradients_of(op, rules, at, g.dtype, kinds, [args[k].dtype for k in at])
    arrays = [s for s, kind in zip(saved, kinds, strict=True) if type(kind) is not tuple]
    grads = kernel(g, *arrays, shapes=[args[k].shape for k in at])
    return {k: (gradient, g, saved) for k, gradient in zip(at, grads, strict=True)}


def _saved_value(values: dict[str, Any], name: str) -> Any:
    """The value that a tape saves under a name: an array, its shape or its dtype."""
    if name in values:
        return values[name]
    array, _, what = name.rpartition("_")
    return getattr(values[array], what)


def contiguous(op: Any, dtype: Any, n: int = 64) -> list[Any]:
    """Contiguous arguments of `n` ones for an elementwise op; floating ones have this dtype."""
    args, _ = next(iter(op.samples(np.random.default_rng(0))))
    return [
        np.ones(n, np.asarray(a).dtype if np.asarray(a).dtype.kind in "biu" else dtype)
        for a in args
    ]


def step_kernels(kernels: Iterable[StepKernel]) -> list[tuple[str, str]]:
    """The sources and names of the kernels of update rules: dtypes, 16-bit gradients and copies."""
    instances = []
    for kernel in kernels:
        for dtype in FLOATS:
            wide = kernel.source(np.float32)
            for name in kernel.names:
                instances.append((kernel.source(dtype), f"{name}<{type_name(dtype)}>"))
                if dtype in HALF:
                    instances.append((wide, f"{name}<float, {type_name(dtype)}>"))
                if dtype in HALF and kernel.rounds:
                    for gradient in ("float", type_name(dtype)):
                        own = f"{name}_rounded<float, {gradient}, {type_name(dtype)}>"
                        instances.append((wide, own))
    return list(dict.fromkeys(instances))
