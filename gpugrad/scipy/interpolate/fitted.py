"""FITPACK's classes on Tensors; where a spline is smoothed, SciPy chooses the knots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.interpolate as scipys

from gpugrad.core.tensor import Tensor
from gpugrad.scipy.calling import plain_values
from gpugrad.scipy.interpolate import fitpack, smoothed, splines, surfaces
from gpugrad.scipy.interpolate.smoothed import host, prepared
from gpugrad.scipy.interpolate.surfaces import HOME
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
        return self._changed(HOME.functions.splder, n)

    def antiderivative(self, n: int = 1) -> Univariate:
        """The spline of an integral."""
        return self._changed(HOME.functions.splantider, n)

    def integral(self, a: Any, b: Any) -> Tensor:
        """The integral between two points."""
        return splines.splint(a, b, self._padded(), HOME.functions.splantider)


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
        x, y, w = prepared(x, y, w)
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
        x, y, w = prepared(x, y, w)
        low, high = (x[i] if v is None else v for i, v in zip((0, -1), bbox, strict=True))
        ends = [NUMPY.ones(k + 1) * low, NUMPY.asarray(t, dtype=float)]
        knots = NUMPY.concatenate([*ends, NUMPY.ones(k + 1) * high])
        made = HOME.least_squares(x, y, knots, k, w=w)
        super().__init__((made.t, made.c, k), ext, (x, y, w))


class UnivariateSpline(Univariate):
    """`scipy.interpolate.UnivariateSpline`; gradients as in `smoothed`."""

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
        """The spline through all points if ``s=0``."""
        if s is not None and s == 0:
            return InterpolatedUnivariateSpline(x, y, w, bbox, k, ext, check_finite)
        return super().__new__(cls)

    def __getnewargs__(self) -> Any:
        """The arguments of `__new__` for a copy, whose attributes are set afterwards."""
        return None, None

    def __init__(
        self,
        x: Any,
        y: Any,
        w: Any = None,
        bbox: Any = (None, None),
        k: int = 3,
        s: Any = None,
        ext: Any = 0,
        check_finite: bool = False,
    ) -> None:
        values = map(host, (x, y, w))
        self._scipys = scipys.UnivariateSpline(*values, list(bbox), k, s, ext, check_finite)
        self._points, self._fits = prepared(x, y, w), plain_values(x, y, w) is None
        self._take(ext)

    def _take(self, ext: Any) -> None:
        tck, fp = self._scipys._eval_args, self._scipys.get_residual()
        if self._fits:
            tck = smoothed.curve(*self._points, tck, fp)
        t, c, k = tck
        super().__init__((NUMPY.asarray(t), NUMPY.asarray(c), k), ext, self._points)

    def set_smoothing_factor(self, s: float) -> None:
        """Smooth again, from the knots found before."""
        self._scipys.set_smoothing_factor(s)
        self._take(self.ext)


def classes(make: Any, least_squares: Any, functions: Any) -> dict[str, Any]:
    """The classes, by name.

    Args:
        make: `make_interp_spline`.
        least_squares: `make_lsq_spline`.
        functions: the module with `splder` and `splantider`.
    """
    vars(HOME).update(make=make, least_squares=least_squares, functions=functions)
    kinds: tuple[type, ...] = (
        InterpolatedUnivariateSpline,
        LSQUnivariateSpline,
        UnivariateSpline,
        surfaces.BivariateSpline,
        surfaces.RectBivariateSpline,
        surfaces.SmoothBivariateSpline,
        surfaces.LSQBivariateSpline,
        surfaces.SmoothSphereBivariateSpline,
        surfaces.LSQSphereBivariateSpline,
        surfaces.RectSphereBivariateSpline,
    )
    return {cls.__name__: cls for cls in kinds}
