"""Matrices that SciPy builds from vectors, and its constant ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.devices import adopt, default_device
from gpugrad.core.samples import shaped
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.ops._scipy import of_numbers
from gpugrad.registry.record import op


def _need_length(name, x, least):
    if x.ndim < 1 or x.shape[-1] < least:
        raise ShapeError(f"{name}: vectors of at least {least} elements are needed, not {x.shape}.")


def _gathered(xp, values, index):
    """Matrices of the values at `index`; -1 stands for 0 and -2 for 1, which are appended."""
    around = ((0, 0),) * (values.ndim - 1)
    values = xp.pad(values, (*around, (0, 1)), constant_values=1)
    return xp.getitem(xp.pad(values, (*around, (0, 1))), index=(Ellipsis, index))


def _monic(xp, a):
    """The coefficients after the first, divided by minus the first."""
    first = xp.getitem(a, index=(Ellipsis, slice(0, 1)))
    return -xp.getitem(a, index=(Ellipsis, slice(1, None))) / first


def _short(name):
    return [([np.ones(1)], {}, ShapeError, f"{name}.*2 elements")]


_COEFFICIENTS: dict[str, Any] = {"kinds": "fc", "samples": shaped([(4,)], [(2, 5)], domain=(1, 2))}


@op(ref="scipy.linalg.companion", errors=_short("companion"), **_COEFFICIENTS)
def companion(xp, a, /):
    """Companion matrices of polynomials: their eigenvalues are the roots.

    Args:
        a: array of shape (..., n), the coefficients from the highest power down.

    Returns:
        Tensor of shape (..., n - 1, n - 1).

    >>> print(gg.linalg.companion([1.0, -3.0, 2.0]))
    [[ 3. -2.]
     [ 1.  0.]]
    """
    _need_length("companion", a, 2)
    n = a.shape[-1]
    index = np.full((n - 1, n - 1), -1)
    index[0] = np.arange(n - 1)
    index[np.arange(1, n - 1), np.arange(n - 2)] = -2
    return _gathered(xp, _monic(xp, a), index)


@op(
    ref=np.vectorize(lambda a: NUMPY.linalg.fiedler_companion(a), signature="(n)->(m,m)"),
    errors=_short("fiedler_companion"),
    **_COEFFICIENTS,
)
def fiedler_companion(xp, a, /):
    """Companion matrices of five diagonals.

    M. Fiedler, "A note on companion matrices", Linear Algebra and its Applications 372 (2003) 325.

    Args:
        a: array of shape (..., n), the coefficients from the highest power down.

    Returns:
        Tensor of shape (..., n - 1, n - 1).

    >>> print(gg.linalg.fiedler_companion([1.0, -3.0, 2.0]))
    [[ 3. -2.]
     [ 1.  0.]]
    """
    _need_length("fiedler_companion", a, 2)
    n = a.shape[-1] - 1
    index = np.full((n, n), -1)
    index[range(3, n, 2), range(1, n - 2, 2)] = -2
    index[range(2, n, 2), range(1, n - 1, 2)] = np.arange(2, n, 2)
    index[range(0, n - 2, 2), range(2, n, 2)] = -2
    index[range(0, n - 1, 2), range(1, n, 2)] = np.arange(1, n, 2)
    index[:2, 0] = (0, -2)[:n]
    return _gathered(xp, _monic(xp, a), index)


@op(
    kinds="fc",
    ref="scipy.linalg.leslie",
    samples=shaped([(3,), (2,)], [(2,), (1,)]),
    errors=[([np.ones(3), np.ones(3)], {}, ShapeError, r"leslie.*\(3,\)")],
)
def leslie(xp, f, s, /):
    """Leslie matrices of populations by age.

    Args:
        f: array of shape (..., n), the fecundities: the first row.
        s: array of shape (..., n - 1), the survivals: below the diagonal.

    Returns:
        Tensor of shape (..., n, n).

    >>> print(gg.linalg.leslie([1.0, 2.0], [0.5]))
    [[1.  2. ]
     [0.5 0. ]]
    """
    _need_length("leslie", f, 2)
    n = f.shape[-1]
    if s.shape != (*f.shape[:-1], n - 1):
        raise ShapeError(f"leslie: s {s.shape} must be one shorter than f {f.shape}.")
    index = np.full((n, n), -1)
    index[0] = np.arange(n)
    index[np.arange(1, n), np.arange(n - 1)] = np.arange(n, 2 * n - 1)
    return _gathered(xp, xp.concat([f, s], axis=-1), index)


@op(
    ref="scipy.linalg.fiedler",
    samples=shaped([(3,)], [(2, 4)], [(1,)]),
    errors=[([np.ones(())], {}, ShapeError, "fiedler.*1 elements")],
)
def fiedler(xp, a, /):
    """Symmetric matrices of the distances between numbers.

    Args:
        a: array of shape (..., n).

    Returns:
        Tensor of shape (..., n, n).

    >>> print(gg.linalg.fiedler([1.0, 4.0]))
    [[0. 3.]
     [3. 0.]]
    """
    _need_length("fiedler", a, 1)
    return xp.abs(xp.expand_dims(a, axis=-1) - xp.expand_dims(a, axis=-2))


@op(
    kinds="fc",
    ref="scipy.linalg.convolution_matrix",
    samples=shaped(
        ([(3,)], {"n": 4}),
        ([(4,)], {"n": 2, "mode": "same"}),
        ([(2, 3)], {"n": 5, "mode": "valid"}),
    ),
    errors=[
        ([np.ones(2)], {"n": 2, "mode": "x"}, ArgumentError, "'x'"),
        ([np.ones(2)], {"n": 0}, ArgumentError, "n=0"),
    ],
)
def convolution_matrix(xp, a, /, n, mode="full"):
    """Matrix whose product with a vector is the convolution with `a`.

    Args:
        a: array of shape (..., m).
        n: int, the length of the vector.
        mode: ``"full"``, ``"same"`` or ``"valid"``, as for `gg.convolve`.

    Returns:
        Tensor of shape (..., m + n - 1, n), with fewer rows in the other modes.

    >>> print(gg.linalg.convolution_matrix([1.0, 2.0], 2))
    [[1. 0.]
     [2. 1.]
     [0. 2.]]
    """
    _need_length("convolution_matrix", a, 1)
    if n < 1 or mode not in ("full", "same", "valid"):
        raise ArgumentError(
            f"convolution_matrix: n={n}, mode={mode!r}; n is at least 1, and mode "
            "'full', 'same' or 'valid'."
        )
    m = a.shape[-1]
    less = min(m, n) - 1
    top, bottom = {"full": (0, 0), "same": (less // 2, less - less // 2)}.get(mode, (less, less))
    index = np.subtract.outer(np.arange(top, m + n - 1 - bottom), np.arange(n))
    return _gathered(xp, a, np.where((index < 0) | (index >= m), -1, index))


def _constant(name: str, like: Callable[..., Any], example: str) -> Callable[..., Tensor]:
    def matrix(*args: Any, **keywords: Any) -> Tensor:
        return tensor(adopt(getattr(NUMPY.linalg, name)(*args, **keywords), default_device()))

    matrix.__name__ = matrix.__qualname__ = name
    matrix.__doc__ = f"""SciPy's matrix of the name, with its arguments, on the default device.

    >>> gg.linalg.{name}(2).shape
    {example}
    """
    signature = inspect.signature(like).replace(return_annotation=Tensor)
    matrix.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it
    return of_numbers(matrix)


hadamard = _constant("hadamard", lambda n, dtype=int: None, "(2, 2)")
helmert = _constant("helmert", lambda n, full=False: None, "(1, 2)")
hilbert = _constant("hilbert", lambda n: None, "(2, 2)")
invhilbert = _constant("invhilbert", lambda n, exact=False: None, "(2, 2)")
dft = _constant("dft", lambda n, scale=None: None, "(2, 2)")
pascal = _constant("pascal", lambda n, kind="symmetric", exact=True: None, "(2, 2)")
invpascal = _constant("invpascal", lambda n, kind="symmetric", exact=True: None, "(2, 2)")


@of_numbers
def bandwidth(a: Any) -> tuple[int, int]:
    """Numbers of diagonals below and above the main one that are not 0.

    Args:
        a: matrix, whose values are read on the host.

    >>> gg.linalg.bandwidth([[1.0, 2.0], [0.0, 3.0]])
    (0, 1)
    """
    lower, upper = NUMPY.linalg.bandwidth(np.asarray(tensor(a).numpy()))
    return int(lower), int(upper)
