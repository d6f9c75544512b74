"""Formulas of distributions on Tensors, and modules that have them beside SciPy's functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats

import gpugrad as gg
from gpugrad.compat.autograd.numpy.wrapping import wrapped
from gpugrad.compat.names import forwarding

special: Any = gg.special
LOG_2PI = float(np.log(2 * np.pi))


def tensors(*args: Any) -> list[Any]:
    """The arguments as Tensors, numbers as float64."""
    return [x if isinstance(x, gg.Tensor) else gg.asarray(np.asarray(x, float)) for x in args]


def _of_result(f: Callable[..., Any], formula: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **keywords: f(formula(*args, **keywords))


def _same(x: Any) -> Any:
    return x


def distribution(module: dict[str, Any], kind: str, **formulas: Callable[..., Any]) -> None:
    """Give a module the functions of a distribution of SciPy's; `formulas` take Tensors.

    ``exp`` of a logarithm is added where SciPy has it, and a missing ``logcdf`` is made of ``cdf``.
    """
    plain = getattr(scipy.stats, kind)
    made = dict(formulas)
    for known, name, of in (
        ("logpdf", "pdf", gg.exp),
        ("logpmf", "pmf", gg.exp),
        ("cdf", "logcdf", gg.log),
    ):
        if known in made and name not in made:
            made[name] = _of_result(of, made[known])
    for name, formula in made.items():
        module[name] = wrapped(name, getattr(plain, name), functools.partial(_same, formula))
    module["__getattr__"], module["__dir__"] = forwarding(module["__name__"], plain, own=made)
