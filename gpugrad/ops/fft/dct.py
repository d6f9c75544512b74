"""Discrete cosine and sine transforms of types 1 to 4, with SciPy's names and scales.

All eight are one formula: y_k = 2 sum over j of x_j cos(pi (k + a) (j + b) / p), or sin. With
orthonormal edge terms the matrices of types 1 and 4 are symmetric, and those of types 2 and 3
are the transposes of each other (M. Puschel and J. Moura, "The algebraic
approach to the discrete cosine and sine transforms and their fast algorithms", 2003).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, TENSOR
from gpugrad.core.samples import shaped
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, AxisError, ShapeError, saying_where
from gpugrad.ops.fft.complex import (
    ADJOINT_NORM,
    checked_norm,
    computed,
    from_end,
    lengths_and_axes,
    resized,
    wide,
)
from gpugrad.registry.record import op

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}  # also the type of the transpose


_EDGES = {  # (sine, type): which of the first and last input, and first and last output
    (False, 1): ((True, True), (True, True)),
    (False, 2): ((False, False), (True, False)),
    (False, 3): ((True, False), (False, False)),
    (True, 2): ((False, False), (False, True)),
    (True, 3): ((False, True), (False, False)),
}


def _edges(sine, variant):
    """The edges with a factor sqrt(1/2) before, or sqrt(2) after, the orthonormal transform."""
    return _EDGES.get((bool(sine), variant), ((False, False), (False, False)))


def _scaled_edges(xp, x, axis, edges, factor):
    """`x` with its first, its last, or both elements along a negative axis scaled."""
    first, last = edges
    if not (first or last):
        return x
    rest = (slice(None),) * (-axis - 1)
    start, stop = int(first), x.shape[axis] - int(last)
    parts = [xp.getitem(x, index=(Ellipsis, slice(start, stop), *rest))]
    if first:
        parts.insert(0, factor * xp.getitem(x, index=(Ellipsis, slice(0, 1), *rest)))
    if last:
        parts.append(factor * xp.getitem(x, index=(Ellipsis, slice(stop, None), *rest)))
    return xp.concat(parts, axis=axis)


def _trigonometric_vjp(xp, g, sine, variant, axis, norm, orthogonalize):
    how = {"sine": sine, "variant": _INVERSE[variant], "norm": norm, "orthogonalize": True}
    if orthogonalize:
        return xp.trigonometric_transform(g, axis=axis, **how)
    axis = axis - g.ndim if axis >= 0 else axis
    before, after = _edges(sine, variant)
    g = _scaled_edges(xp, g, axis, after, math.sqrt(2))
    g = xp.trigonometric_transform(g, axis=axis, **how)
    return _scaled_edges(xp, g, axis, before, math.sqrt(0.5))


def _trigonometric_reference(x, sine, variant, **how):
    if x.dtype.kind == "c":
        real, imag = (_trigonometric_reference(p, sine, variant, **how) for p in (x.real, x.imag))
        return real + 1j * imag
    return computed(NUMPY, "dst" if sine else "dct", x, variant, **how)


def _by_fft(xp, x, sine, variant, norm, orthogonalize):
    """Along the last axis, by one Fourier transform of 2 p points: CuPy has types 2 and 3 only.

    In (k + a)(j + b) = k j + k b + a j + a b, k j makes a Fourier transform; the other terms
    are factors before and after it.
    """
    lib, n = xp.lib, x.shape[-1]
    a, b, p = {
        (False, 1): (0, 0, n - 1),
        (False, 2): (0, 0.5, n),
        (False, 3): (0.5, 0, n),
        (True, 1): (1, 1, n + 1),
        (True, 2): (1, 0.5, n),
        (True, 3): (0.5, 1, n),
    }.get((bool(sine), variant), (0.5, 0.5, n))
    before, after = _edges(sine, variant)
    k = lib.arange(n, dtype=np.float64)
    counted = lib.full(n, 2.0)  # an edge of the input counts once, or sqrt(2) times
    once = math.sqrt(0.5) if orthogonalize else 0.5
    counted[0] *= once if before[0] else 1
    counted[-1] *= once if before[1] else 1
    turned = lib.exp(-1j * math.pi * (k * b + a * b) / p)
    if orthogonalize:
        turned[0] *= math.sqrt(0.5) if after[0] else 1
        turned[-1] *= math.sqrt(0.5) if after[1] else 1
    dtype = np.result_type(x.dtype, np.complex64)
    start = (counted * lib.exp(-1j * math.pi * a * k / p)).astype(dtype)
    points = lib.fft.fft(x * start, n=2 * p, axis=-1)[..., :n] * turned.astype(dtype)
    y = -points.imag if sine else points.real
    return y / {"backward": 1, "ortho": math.sqrt(2 * p), "forward": 2 * p}[norm]


_COSINE, _SINE = {"sine": False}, {"sine": True}
_CASES = (
    _COSINE | {"variant": 1},
    _COSINE | {"variant": 2, "norm": "forward"},
    _COSINE | {"variant": 3, "norm": "ortho", "orthogonalize": True},
    _SINE | {"variant": 2},
    _SINE | {"variant": 3, "orthogonalize": True},
)


@op(
    vjp=[_trigonometric_vjp],
    linear=True,
    kinds="fc",
    native_half="wide",
    batch="axis",
    ref=_trigonometric_reference,
    samples=shaped(
        *(([(4,)], how) for how in _CASES), ([(3, 2)], _SINE | {"variant": 4, "axis": 0})
    ),
    errors=[
        ([np.ones(3)], _COSINE | {"variant": 5}, ArgumentError, "no type 5"),
        ([np.ones(3)], _COSINE | {"variant": 2, "axis": 1}, AxisError, "axis 1"),
        ([np.ones(1)], _COSINE | {"variant": 1}, ShapeError, "at least 2"),
    ],
)
def trigonometric_transform(
    xp, x, /, *, sine, variant, axis=-1, norm="backward", orthogonalize=False
):
    """Cosine or sine transform along an axis; `dct`, `dst` and their inverses call it.

    Args:
        sine: whether to compute the sine transform.
        variant: the type, 1, 2, 3 or 4.

    Returns:
        Tensor of the shape and dtype of `x`; 16-bit floats give float32, integers float64.
    """
    name = "trigonometric_transform"
    _need_type(name, variant)
    norm, (axis,) = checked_norm(name, norm), from_end(name, x, (axis,))
    least = 2 if variant == 1 and not sine else 1
    if x.shape[axis] < least:
        raise ShapeError(
            f"{name}: type {variant} needs at least {least} points, not {x.shape[axis]}."
        )
    x = wide(name, "biufc", x)
    if not x.size:
        return xp.lib.zeros(x.shape, dtype=x.dtype)
    how = (sine, variant, axis, norm, orthogonalize)
    if x.dtype.kind == "c":  # SciPy 1.17 scales the edges of complex arrays wrongly
        return _real_transform(xp, x.real, *how) + 1j * _real_transform(xp, x.imag, *how)
    return _real_transform(xp, x, *how)


def _real_transform(xp, x, sine, variant, axis, norm, orthogonalize):
    if xp is NUMPY:
        name, how = "dst" if sine else "dct", {"norm": norm, "orthogonalize": orthogonalize}
        return computed(xp, name, x, variant, axis=axis, **how)
    lines = xp.lib.moveaxis(x, axis, -1)
    return xp.lib.moveaxis(_by_fft(xp, lines, sine, variant, norm, orthogonalize), -1, axis)


def _several(one: Callable[..., Tensor], example: str) -> Callable[..., Tensor]:
    """The transform along several axes that is `one` along each."""

    def transform(
        x: Any,
        /,
        type: int = 2,
        s: Any = None,
        axes: Any = None,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        orthogonalize: bool | None = None,
    ) -> Tensor:
        x = tensor(x)
        pairs = lengths_and_axes(transform.__name__, x, s, axes)
        if len({axis for _, axis in pairs}) < len(pairs):
            raise ArgumentError(f"{transform.__name__}: axes={axes} names an axis twice.")
        for n, axis in pairs:
            x = one(x, type, n, axis, norm, orthogonalize=orthogonalize)
        return x

    transform.__name__ = transform.__qualname__ = f"{one.__name__}n"
    transform.__doc__ = f"""`{one.__name__}` along several axes.

    Args:
        x: array, real or complex.
        type: 1, 2, 3 or 4.
        s: number of points along each of the axes; None: the shape of `x`.
        axes: int or ints; None: the last len(s) axes, or all without `s`.
        norm: as for `{one.__name__}`; likewise the other arguments.

    Returns:
        Tensor of the dtype of `x`.

    Raises:
        AxisError, ShapeError, ArgumentError: as `dct`; an axis is named twice.

    >>> print(gg.fft.{one.__name__}n([[2.0, 2.0]]))
    {example}
    """
    return saying_where(transform)


def _need_type(name, type):
    if type not in _INVERSE:
        raise ArgumentError(f"{name}: no type {type!r}; choose 1, 2, 3 or 4.")


def _named(name: str, doc: str) -> Callable[..., Tensor]:
    def transform(
        x: Any,
        /,
        type: int = 2,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        orthogonalize: bool | None = None,
    ) -> Tensor:
        x = tensor(x)
        _need_type(name, type)
        norm, (axis,) = checked_norm(name, norm), from_end(name, x, (axis,))
        orthogonalize = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
        if name.startswith("i"):
            type, norm = _INVERSE[type], ADJOINT_NORM[norm]
        x = resized(TENSOR, name, x, x.shape[axis] if n is None else n, axis)
        how = {"sine": name.endswith("dst"), "variant": type, "axis": axis, "norm": norm}
        return TENSOR.trigonometric_transform(x, orthogonalize=orthogonalize, **how)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = doc
    return saying_where(transform)


dct = _named(
    "dct",
    """Discrete cosine transform along an axis, as SciPy's.

    Type 2 is y_k = 2 sum over j of x_j cos(pi k (2 j + 1) / (2 n)).

    Args:
        x: array of at least one axis; real or complex.
        type: 1, 2, 3 or 4.
        n: number of points: `x` is cut, or padded with zeros at the end; its length if None.
        axis: int: the axis to work along.
        norm: ``"backward"`` (no scale here), ``"ortho"`` (divided by sqrt(2 n)) or
            ``"forward"`` (divided by 2 n); 2 (n - 1) instead of 2 n for type 1. None is
            ``"backward"``.
        overwrite_x: without effect, as `workers`: `x` is never overwritten.
        orthogonalize: whether edge terms are scaled so that ``"ortho"`` makes the matrix
            orthogonal; None: with ``"ortho"`` only.

    Returns:
        Tensor of the dtype of `x`, with `n` points along the axis.

    Raises:
        AxisError: there is no such axis.
        ShapeError: too few points.
        ArgumentError: another `type` or `norm`.

    >>> print(gg.fft.dct([4.0, 2.0]))
    [12.        2.828427]
    """,
)
idct = _named(
    "idct",
    """Inverse of `dct` with the same arguments; ``"backward"`` divides, ``"forward"`` does not.

    Raises:
        AxisError, ShapeError, ArgumentError: as `dct`.

    >>> print(gg.fft.idct([4.0, 0.0]))
    [1. 1.]
    """,
)
dst = _named(
    "dst",
    """Discrete sine transform along an axis, as SciPy's; arguments as `dct`.

    Type 2 is y_k = 2 sum over j of x_j sin(pi (k + 1) (2 j + 1) / (2 n)). `norm` has
    2 (n + 1) instead of 2 n for type 1.

    Raises:
        AxisError, ShapeError, ArgumentError: as `dct`.

    >>> print(gg.fft.dst([1.0, 0.0]))
    [1.4142135 2.       ]
    """,
)
idst = _named(
    "idst",
    """Inverse of `dst` with the same arguments.

    Raises:
        AxisError, ShapeError, ArgumentError: as `dct`.

    >>> print(gg.fft.idst([4.0, 0.0]))
    [1.4142135 1.4142135]
    """,
)
dctn = _several(dct, "[[16.  0.]]")
idctn = _several(idct, "[[ 0.6035534  -0.10355338]]")
dstn = _several(dst, "[[11.313708  0.      ]]")
idstn = _several(idst, "[[0.6035534  0.10355338]]")
