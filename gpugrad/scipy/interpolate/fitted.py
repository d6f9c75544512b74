"""FITPACK's classes on Tensors, for splines through all points or with given knots.

Smoothed ones are SciPy's, of values: which knots it keeps has no derivative.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.tensor import Tensor
from gpugrad.scipy.interpolate import fitpack, splines
from gpugrad.scipy.namespaces import NUMPY

_EXTRAPOLATION = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}


class Univariate:
    """The methods of `scipy.interpolate.UnivariateSpline`, from knots and coefficients."""

    def __init__(self, tck: Any, ext: Any = 0, data: Any = ()) -> None:
        t, c, k = tck
        self._tck = t, c[: t.shape[0] - k - 1], k
        self.ext, self._data = _EXTRAPOLATION.get(ext, ext), data
        if self.ext not in (0, 1, 2, 3):
            raise ValueError(f"Unknown extrapolation mode {ext}.")

    def __call__(self, x: Any, nu: int = 0, ext: Any = None) -> Tensor:
        """The values, or those of a derivative."""
        ext = self.ext if ext is None else _EXTRAPOLATION.get(ext, ext)
        result: Tensor = splines.splev(x, self._padded(), nu, ext)
        return result

    def _padded(self) -> Any:
        t, c, k = self._tck
        return t, NUMPY.concatenate([c, NUMPY.zeros(k + 1, dtype=c.dtype)]), k

    def get_knots(self) -> Tensor:
        """The knots, without the repeated ones at the ends."""
        t, _, k = self._tck
        return t[k : t.shape[0] - k]

    def get_coeffs(self) -> Tensor:
        """The coefficients."""
        return self._tck[1]

    def get_residual(self) -> Tensor:
        """The weighted sum of squared residuals."""
        x, y, w = self._data
        return NUMPY.sum((w * (y - self(x))) ** 2)

    def derivatives(self, x: Any) -> Tensor:
        """All derivatives at a point."""
        return fitpack.spalde(x, self._padded())

    def roots(self) -> Tensor:
        """The zeros of a cubic spline."""
        if self._tck[2] != 3:
            raise NotImplementedError("finding roots unsupported for non-cubic splines")
        return fitpack.sproot(self._padded())

    def _changed(self, function: Callable[..., Any], n: int) -> Univariate:
        return Univariate(function(self._padded(), n), 1 if self.ext == 3 and n else self.ext)

    def derivative(self, n: int = 1) -> Univariate:
        """The spline of a derivative."""
        return self._changed(self.module.splder, n)

    def antiderivative(self, n: int = 1) -> Univariate:
        """The spline of an integral."""
        return self._changed(self.module.splantider, n)

    def integral(self, a: Any, b: Any) -> Tensor:
        """The integral between two points."""
        return splines.splint(a, b, self._padded(), self.module.splantider)

    module: Any = None


class Surface:
    """The methods of `scipy.interpolate.RectBivariateSpline`, from knots and coefficients."""

    def __init__(self, tck: Any, shift: tuple[int, int] = (0, 0)) -> None:
        self._tck, self._shift = tck, shift

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Tensor:
        """The values, or those of a derivative, on a grid or at points."""
        x, y = (NUMPY.asarray(v, dtype=float) for v in (x, y))
        dx, dy = dx + self._shift[0], dy + self._shift[1]
        if grid:
            shape: Any = (*x.shape, *y.shape)
            z = fitpack.surface(NUMPY.reshape(x, (-1,)), NUMPY.reshape(y, (-1,)), self._tck, dx, dy)
            return NUMPY.reshape(z, (x.size, y.size) if x.ndim and y.ndim else shape or (1, 1))
        x, y = NUMPY.broadcast_arrays(x, y)
        left, right = (NUMPY.reshape(v, (-1,)) for v in (x, y))
        return NUMPY.reshape(fitpack.surface(left, right, self._tck, dx, dy, False), x.shape)

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Tensor:
        """The values at points."""
        return self(xi, yi, dx, dy, grid=False)

    def get_knots(self) -> tuple[Tensor, Tensor]:
        """The knots along both axes."""
        return self._tck[0], self._tck[1]

    def get_coeffs(self) -> Tensor:
        """The coefficients."""
        return NUMPY.reshape(self._tck[2], (-1,))

    def get_residual(self) -> Any:
        """The sum of squared residuals: the spline goes through all points."""
        return 0.0

    def partial_derivative(self, dx: int, dy: int) -> Surface:
        """A derivative, to be evaluated as the spline itself."""
        return Surface(self._tck, (self._shift[0] + dx, self._shift[1] + dy))

    def integral(self, xa: Any, xb: Any, ya: Any, yb: Any) -> Tensor:
        """The integral over a rectangle."""
        tx, ty, c, kx, ky = self._tck

        def along(a: Any, b: Any, t: Any, k: int) -> Tensor:
            n = t.shape[0] - k - 1
            units = np.eye(n)
            return NUMPY.stack(
                [
                    splines.splint(a, b, (t, NUMPY.asarray(units[i]), k), self.module.splantider)
                    for i in range(n)
                ]
            )

        left, right = along(xa, xb, tx, kx), along(ya, yb, ty, ky)
        return left @ NUMPY.reshape(c, (left.shape[0], -1)) @ right

    module: Any = None


HOME = types.SimpleNamespace()
"""The functions that the classes call, which are read when they are first asked for."""


def _prepared(x: Any, y: Any, w: Any) -> tuple[Tensor, Tensor, Tensor]:
    x, y = (NUMPY.asarray(v, dtype=float) for v in (x, y))
    return x, y, NUMPY.ones(x.shape[0]) if w is None else NUMPY.asarray(w, dtype=float)


class InterpolatedUnivariateSpline(Univariate):
    """`scipy.interpolate.InterpolatedUnivariateSpline`."""

    def __init__(
        self,
        x: Any,
        y: Any,
        w: Any = None,
        bbox: Any = (None, None),
        k: int = 3,
        ext: Any = 0,
        check_finite: bool = False,
    ) -> None:
        x, y, w = _prepared(x, y, w)
        if any(v is not None for v in bbox):
            raise ValueError("bbox= is not supported: the ends are the first and last point.")
        if not bool(NUMPY.all(NUMPY.diff(x) > 0)):
            raise ValueError("x must be strictly increasing")
        made = HOME.make(x, y, k=k)
        super().__init__((made.t, made.c, k), ext, (x, y, w))


class LSQUnivariateSpline(Univariate):
    """`scipy.interpolate.LSQUnivariateSpline`."""

    def __init__(
        self,
        x: Any,
        y: Any,
        t: Any,
        w: Any = None,
        bbox: Any = (None, None),
        k: int = 3,
        ext: Any = 0,
        check_finite: bool = False,
    ) -> None:
        x, y, w = _prepared(x, y, w)
        low, high = (x[i] if v is None else v for i, v in zip((0, -1), bbox, strict=True))
        ends = [NUMPY.ones(k + 1) * low, NUMPY.asarray(t, dtype=float)]
        knots = NUMPY.concatenate([*ends, NUMPY.ones(k + 1) * high])
        made = HOME.least_squares(x, y, knots, k, w=w)
        super().__init__((made.t, made.c, k), ext, (x, y, w))


class UnivariateSpline(InterpolatedUnivariateSpline):
    """`scipy.interpolate.UnivariateSpline`: with ``s=0``, else SciPy's of values."""

    def __new__(
        cls,
        x: Any,
        y: Any,
        w: Any = None,
        bbox: Any = (None, None),
        k: int = 3,
        s: Any = None,
        ext: Any = 0,
        check_finite: bool = False,
    ) -> Any:
        """The spline through all points, or SciPy's smoothed one."""
        if s == 0:
            return InterpolatedUnivariateSpline(x, y, w, bbox, k, ext)
        return HOME.scipys.UnivariateSpline(x, y, w, list(bbox), k, s, ext, check_finite)


class RectBivariateSpline(Surface):
    """`scipy.interpolate.RectBivariateSpline`: with ``s=0``, else SciPy's of values."""

    def __new__(
        cls,
        x: Any,
        y: Any,
        z: Any,
        bbox: Any = (None,) * 4,
        kx: int = 3,
        ky: int = 3,
        s: Any = 0,
        maxit: int = 20,
    ) -> Any:
        """The spline through all points, or SciPy's smoothed one."""
        if s or any(v is not None for v in bbox):
            return HOME.scipys.RectBivariateSpline(x, y, z, list(bbox), kx, ky, s, maxit)
        first = HOME.make(NUMPY.asarray(x, dtype=float), NUMPY.asarray(z, dtype=float), k=kx)
        second = HOME.make(NUMPY.asarray(y, dtype=float), first.c.T, k=ky)
        return Surface((first.t, second.t, second.c.T, kx, ky))


class LSQBivariateSpline(Surface):
    """`scipy.interpolate.LSQBivariateSpline`; gradients by values, weights, points and knots.

    Where the points do not determine a coefficient, the result is that of least norm.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        z: Any,
        tx: Any,
        ty: Any,
        w: Any = None,
        bbox: Any = (None,) * 4,
        kx: int = 3,
        ky: int = 3,
        eps: Any = None,
    ) -> None:
        x, y, w = _prepared(x, y, w)
        z = NUMPY.asarray(z, dtype=float)
        if not x.size == y.size == z.size:
            raise ValueError("x, y, and z should have a same length")
        if x.size < (kx + 1) * (ky + 1):
            raise ValueError("The length of x, y and z should be at least (kx+1) * (ky+1)")
        knots, sides = [], []
        for at, inner, k, ends in ((x, tx, kx, bbox[:2]), (y, ty, ky, bbox[2:])):
            low, high = (
                v if e is None else e for v, e in zip((at.min(), at.max()), ends, strict=True)
            )
            inner = NUMPY.asarray(inner, dtype=float)
            knots.append(
                NUMPY.concatenate([NUMPY.ones(k + 1) * low, inner, NUMPY.ones(k + 1) * high])
            )
            sides.append(fitpack.basis_matrix(knots[-1], k, at, 0))
        rows = NUMPY.reshape(sides[0][:, :, None] * sides[1][:, None, :], (x.shape[0], -1))
        self._rest = w * z, w[:, None] * rows
        c = NUMPY.linalg.lstsq(self._rest[1], self._rest[0], rcond=eps)[0]
        super().__init__((*knots, NUMPY.reshape(c, (sides[0].shape[1], -1)), kx, ky))

    def get_residual(self) -> Any:
        """The weighted sum of squared residuals."""
        z, rows = self._rest
        return NUMPY.sum((z - rows @ self.get_coeffs()) ** 2)


def classes(make: Any, least_squares: Any, functions: Any, scipys: Any) -> dict[str, Any]:
    """The classes, by name.

    Args:
        make: `make_interp_spline`.
        least_squares: `make_lsq_spline`.
        functions: the module with `splder` and `splantider`.
        scipys: SciPy's classes, of values, for smoothed splines.
    """
    Univariate.module = Surface.module = functions
    vars(HOME).update(make=make, least_squares=least_squares, scipys=scipys)
    kinds: tuple[type, ...] = (
        InterpolatedUnivariateSpline,
        LSQUnivariateSpline,
        UnivariateSpline,
        RectBivariateSpline,
        LSQBivariateSpline,
    )
    return {cls.__name__: cls for cls in kinds}
