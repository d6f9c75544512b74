"""Calls of generated kernels, for tests and for ``ci/compile_kernels``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.kernels.codegen import for_ops

__all__ = ["call_forward", "call_gradients", "contiguous"]


def call_forward(op: Any, args: Sequence[Any]) -> Any:
    """The forward of an elementwise op by its kernel.

    Args:
        op: the record.
        args: NumPy arrays and numbers.

    Raises:
        NoCodeError: it has no kernel for these.
    """
    return for_ops.forward_of(op, [for_ops.kind_of(a) for a in args])(*args)[0]


def call_gradients(op: Any, args: Sequence[Any], masked: bool = False) -> dict[int, Any]:
    """All gradients of an elementwise op by one kernel.

    Args:
        op, args: as for `call_forward`.
        masked: by the rules of a masked pass.

    Returns:
        By the position of the input: the gradient, and the rule's arguments ``(g, saved)``.

    Raises:
        NoCodeError: they have no kernel.
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
    with np.errstate(all="ignore"):
        out = np.asarray(op.bare(NUMPY)(*args))
    values = dict(zip(op.arrays, args, strict=True)) | {"out": out}
    saved = [_saved(values, name) for name in op.saves]
    rng = np.random.default_rng(2)
    g = np.asarray(rng.normal(size=out.shape) + (1j if out.dtype.kind == "c" else 0))
    g = g.astype(out.dtype)
    kinds = [for_ops.saved_kind(s) for s in saved]
    kernel = for_ops.gradients_of(op, rules, at, g.dtype, kinds, [args[k].dtype for k in at])
    given = [s for s, kind in zip(saved, kinds, strict=True) if type(kind) is not tuple]
    made = kernel(g, *given, shapes=[args[k].shape for k in at])
    return {k: (gradient, g, saved) for k, gradient in zip(at, made, strict=True)}


def _saved(values: dict[str, Any], name: str) -> Any:
    """What a tape saves under a name: an array, or its shape or dtype."""
    if name in values:
        return values[name]
    array, _, what = name.rpartition("_")
    return getattr(values[array], what)


def contiguous(op: Any, dtype: Any, n: int = 64) -> list[Any]:
    """Arguments of an elementwise op: `n` numbers each, of a dtype if the op's samples are."""
    args, _ = next(iter(op.samples(np.random.default_rng(0))))
    return [
        np.ones(n, np.asarray(a).dtype if np.asarray(a).dtype.kind in "biu" else dtype)
        for a in args
    ]
