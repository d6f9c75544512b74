"""The names of ``scipy.linalg``; those that autograd differentiates take boxes too."""

from typing import Any

import numpy as _np
import scipy.linalg as _plain

import gpugrad as gg
import gpugrad.compat.autograd.numpy as np
from gpugrad.compat.autograd.core import defvjp, primitive
from gpugrad.compat.autograd.numpy.wrapping import wrapped_names
from gpugrad.errors import NoGradientError


def _solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, **others: Any) -> Any:
    if trans in (1, "T", 2, "C"):
        a, lower = gg.matrix_transpose(gg.conj(a) if trans in (2, "C") else a), not lower
    is_vector = len(b.shape) == 1
    x = gg.linalg.solve_triangular(a, b[:, None] if is_vector else b, lower=lower)
    return x[:, 0] if is_vector else x


def _cholesky(a: Any, lower: bool = False, **others: Any) -> Any:
    factor = gg.linalg.cholesky(a)
    return factor if lower else gg.matrix_transpose(factor)


def _sqrtm(a: Any) -> Any:
    if a.dtype.kind == "f" and _np.any(_np.linalg.eigvals(a.numpy()).real < 0):
        a = gg.astype(a, _np.result_type(a.dtype, _np.complex64))  # SciPy's root is complex
    return gg.linalg.sqrtm(a)


# SciPy's arguments and results differ from those of `gg.linalg`
_OWN = {"solve_triangular": _solve_triangular, "cholesky": _cholesky, "sqrtm": _sqrtm}


def _ours(name: str) -> Any:
    found = _OWN.get(name) or getattr(gg.linalg, name, None)
    if found is None:
        raise NoGradientError(f"scipy.linalg.{name} has no derivative in gpugrad.")
    return found


__getattr__, __dir__ = wrapped_names(__name__, _plain, _ours)
solve_banded: Any = primitive(_plain.solve_banded)


def _transposed_bands(bands: Any, ab: Any) -> Any:
    """The bands of the transposed matrix, each shifted to its columns."""
    lower, upper = bands
    columns = _np.arange(ab.shape[1])
    rows = []
    for offset in range(-lower, upper + 1):  # of the diagonal in the transposed matrix's order
        band = ab[upper - offset]
        rows.append(
            np.where(
                (columns >= -offset) & (columns < len(columns) - offset),
                np.roll(band, -offset),
                0.0,
            )
        )
    return (upper, lower), np.stack(rows)


def _solve_banded_vjp(argnum: int) -> Any:
    def rule(ans: Any, bands: Any, ab: Any, b: Any) -> Any:
        lower, upper = bands

        def vjp(g: Any) -> Any:
            u = solve_banded(*_transposed_bands(bands, ab), g)
            if argnum == 2:
                return u
            rows = []
            for k in range(lower + upper + 1):  # ab[k, j] is the element (j + k - upper, j)
                down, n = k - upper, _np.shape(ans)[0]
                first, last = max(0, -down), n - max(0, down)
                product = -u[first + down : last + down] * ans[first:last]
                product = product if np.ndim(product) == 1 else np.sum(product, axis=1)
                rows.append(np.concatenate([_np.zeros(first), product, _np.zeros(n - last)]))
            return np.stack(rows)

        return vjp

    return rule


defvjp(solve_banded, _solve_banded_vjp(1), _solve_banded_vjp(2), argnums=(1, 2))
