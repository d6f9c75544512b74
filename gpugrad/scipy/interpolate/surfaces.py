"""FITPACK's surfaces on Tensors; where one is smoothed, SciPy chooses the knots."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import scipy.interpolate as scipys

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.scipy.calling import holds, plain_values
from gpugrad.scipy.interpolate import fitpack, smoothed, splines
from gpugrad.scipy.interpolate.smoothed import host, prepared
from gpugrad.scipy.namespaces import NUMPY

HOME = types.SimpleNamespace()
"""The functions that the classes call, which are read when they are first asked for."""


class BivariateSpline:
    """`scipy.interpolate.BivariateSpline`, from knots and coefficients."""

    def __init__(self, tck: Any, shift: tuple[int, int] = (0, 0), residual: Any = 0.0) -> None:
        self._tck, self._shift, self._residual = tck, shift, residual

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Tensor:
        """The values, or those of a derivative, on a grid or at points."""
        *tc, kx, ky = self._tck
        if not any(self._shift) and (plain := plain_values(x, y, *tc)) is not None:
            known = scipys.BivariateSpline._from_tck((*plain[2:4], plain[4].ravel(), kx, ky))
            return NUMPY.asarray(known(*plain[:2], dx, dy, grid))
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
        """The weighted sum of squared residuals."""
        return self._residual

    def partial_derivative(self, dx: int, dy: int) -> BivariateSpline:
        """A derivative, to be evaluated as the spline itself."""
        return BivariateSpline(self._tck, (self._shift[0] + dx, self._shift[1] + dy))

    def integral(self, xa: Any, xb: Any, ya: Any, yb: Any) -> Tensor:
        """The integral over a rectangle."""
        tx, ty, c, kx, ky = self._tck

        def along(a: Any, b: Any, t: Any, k: int) -> Tensor:
            n = t.shape[0] - k - 1
            units = np.eye(n)
            return NUMPY.stack(
                [
                    splines.splint(a, b, (t, NUMPY.asarray(units[i]), k), HOME.functions.splantider)
                    for i in range(n)
                ]
            )

        left, right = along(xa, xb, tx, kx), along(ya, yb, ty, ky)
        return left @ NUMPY.reshape(c, (left.shape[0], -1)) @ right


class RectBivariateSpline(BivariateSpline):
    """`scipy.interpolate.RectBivariateSpline`; smoothed, it has gradients as in `smoothed`."""

    def __init__(
        self,
        x: Any,
        y: Any,
        z: Any,
        bbox: Any = (None,) * 4,
        kx: int = 3,
        ky: int = 3,
        s: Any = 0,
        maxit: int = 20,
    ) -> None:
        at = tuple(NUMPY.asarray(v, dtype=float) for v in (x, y, z))
        if s or any(v is not None for v in bbox):
            made = scipys.RectBivariateSpline(*map(host, at), list(bbox), kx, ky, s, maxit)
            tck = (*made.tck, kx, ky)
            c = made.tck[2] if _known(*at) else smoothed.on_grid(at, tck, made.fp)
            super().__init__(_tensors(tck, c), residual=made.fp)
            return
        first = HOME.make(at[0], at[2], k=kx)
        second = HOME.make(at[1], first.c.T, k=ky)
        super().__init__((first.t, second.t, second.c.T, kx, ky))


def _known(*args: Any) -> bool:
    """Whether nothing follows the arguments, so that SciPy's coefficients need no derivative."""
    return plain_values(*args) is not None


def _tensors(tck: Any, c: Any) -> Any:
    tx, ty, _, kx, ky = tck
    c = NUMPY.reshape(NUMPY.asarray(c), (len(tx) - kx - 1, len(ty) - ky - 1))
    return NUMPY.asarray(tx), NUMPY.asarray(ty), c, kx, ky


class SmoothBivariateSpline(BivariateSpline):
    """`scipy.interpolate.SmoothBivariateSpline`; gradients as in `smoothed`."""

    def __init__(
        self,
        x: Any,
        y: Any,
        z: Any,
        w: Any = None,
        bbox: Any = (None,) * 4,
        kx: int = 3,
        ky: int = 3,
        s: Any = None,
        eps: Any = 1e-16,
    ) -> None:
        values = map(host, (x, y, z, w))
        made = scipys.SmoothBivariateSpline(*values, list(bbox), kx, ky, s, eps)
        super().__init__(_scattered(x, y, z, w, (*made.tck, kx, ky), made.fp), residual=made.fp)


def _scattered(x: Any, y: Any, z: Any, w: Any, tck: Any, fp: float, basis: Any = None) -> Any:
    if _known(x, y, z, w):
        return _tensors(tck, tck[2])
    x, y, w = prepared(x, y, w)
    z = NUMPY.asarray(z, dtype=float)
    return _tensors(tck, smoothed.scattered(x, y, z, w, tck, fp, basis))


class _Sphere(BivariateSpline):
    """A bicubic spline on the sphere; angles are theta from 0 to pi, and phi."""

    def __call__(
        self, theta: Any, phi: Any, dtheta: int = 0, dphi: int = 0, grid: bool = True
    ) -> Tensor:
        """The values, or those of a derivative, on a grid or at points."""
        if not holds(NUMPY.all((NUMPY.asarray(theta) >= 0) & (NUMPY.asarray(theta) <= np.pi))):
            raise ValueError("requested theta out of bounds.")
        if not self._turns and not holds(
            NUMPY.all((NUMPY.asarray(phi) >= 0) & (NUMPY.asarray(phi) <= 2 * np.pi))
        ):
            raise ValueError("requested phi out of bounds.")
        return super().__call__(theta, phi, dtheta, dphi, grid)

    def ev(self, theta: Any, phi: Any, dtheta: int = 0, dphi: int = 0) -> Tensor:
        """The values at points."""
        return self(theta, phi, dtheta, dphi, grid=False)

    _turns = False

    def _take(self, theta: Any, phi: Any, r: Any, w: Any, made: Any) -> None:
        basis = None if _known(theta, phi, r, w) else smoothed.on_sphere(*made.tck[:2])
        tck = _scattered(theta, phi, r, w, (*made.tck, 3, 3), made.fp, basis)
        BivariateSpline.__init__(self, tck, residual=made.fp)


class SmoothSphereBivariateSpline(_Sphere):
    """`scipy.interpolate.SmoothSphereBivariateSpline`; gradients as in `smoothed`."""

    def __init__(
        self, theta: Any, phi: Any, r: Any, w: Any = None, s: float = 0.0, eps: float = 1e-16
    ) -> None:
        values = map(host, (theta, phi, r, w))
        self._take(theta, phi, r, w, scipys.SmoothSphereBivariateSpline(*values, s, eps))


class LSQSphereBivariateSpline(_Sphere):
    """`scipy.interpolate.LSQSphereBivariateSpline`; no gradients by the knots."""

    def __init__(
        self, theta: Any, phi: Any, r: Any, tt: Any, tp: Any, w: Any = None, eps: float = 1e-16
    ) -> None:
        values, knots = map(host, (theta, phi, r)), map(np.asarray, (tt, tp))
        made = scipys.LSQSphereBivariateSpline(*values, *knots, host(w), eps)
        self._take(theta, phi, r, w, made)


class RectSphereBivariateSpline(_Sphere):
    """`scipy.interpolate.RectSphereBivariateSpline`; gradients by the values if ``s=0``.

    The coefficients are linear in the values: SciPy fits once for each value.
    """

    def __init__(
        self,
        u: Any,
        v: Any,
        r: Any,
        s: float = 0.0,
        pole_continuity: Any = False,
        pole_values: Any = None,
        pole_exact: Any = False,
        pole_flat: Any = False,
    ) -> None:
        grid, self._turns = (np.asarray(u), np.asarray(v)), True
        pair = pole_values if isinstance(pole_values, (tuple, list)) else (pole_values,) * 2
        poles = [p for p in pair if p is not None]

        def fitted(flat: Any) -> Any:
            rest = iter(flat[flat.size - len(poles) :])
            ends = tuple(None if p is None else float(next(rest)) for p in pair)
            z = flat[: flat.size - len(poles)].reshape(np.shape(r))
            return scipys.RectSphereBivariateSpline(
                *grid, z, s, pole_continuity, ends, pole_exact, pole_flat
            )

        parts = [NUMPY.reshape(NUMPY.asarray(p, dtype=float), (-1,)) for p in (r, *poles)]
        flat = NUMPY.concatenate(parts)
        made = fitted(np.asarray(flat) if s else host(flat))  # raises if s cuts a gradient
        c = made.tck[2]
        if not _known(flat):
            near = host(flat) + np.eye(flat.size)
            units = np.stack([fitted(values).tck[2] - made.tck[2] for values in near], axis=1)
            found = NUMPY.asarray(units) @ flat
            c = NUMPY.asarray(c) + (found - xp.stop_gradient(found))
        super().__init__(_tensors((*made.tck, 3, 3), c), residual=made.fp)


class LSQBivariateSpline(BivariateSpline):
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
        x, y, w = prepared(x, y, w)
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
