"""The classes that SciPy's distributions are derived from here: all methods from a few formulas.

A distribution is SciPy's class, read on Tensors: its formulas of the standard form (`_logpdf`,
`_cdf`, `_ppf`, `_stats`, ...) are ops. The methods of this base apply location and scale, and look
up nothing by value, so that they work in traces and in `vmap`. A formula that SciPy lacks follows
by a rule that has derivatives: an integral of the density, or a root of the distribution function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.stats

from gpugrad.autodiff.recorder import watched_in
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.devices import device
from gpugrad.core.tensor import Tensor
from gpugrad.numpy.creation import asarray
from gpugrad.ops.scipy import stats as _declares_ops  # noqa: F401
from gpugrad.scipy.calling import holds
from gpugrad.scipy.stats.common import Method, attached, double, located, log_of_part, stream
from gpugrad.scipy.stats.frozen import Frozen
from gpugrad.scipy.stats.integrals import are_constants, at_the_end, in_pieces, integral, lifted
from gpugrad.scipy.stats.moments import Moments

_OUTSIDE = {
    "pdf": (0.0, 0.0),
    "logpdf": (-np.inf, -np.inf),
    "pmf": (0.0, 0.0),
    "logpmf": (-np.inf, -np.inf),
    "cdf": (0.0, 1.0),
    "logcdf": (-np.inf, 0.0),
    "sf": (1.0, 0.0),
    "logsf": (0.0, -np.inf),
}
"""Values below and above the support."""


def point_method(name: str) -> Any:
    """A method of a point and the parameters."""

    def method(self: Distribution, x: Any, *args: Any, **keywords: Any) -> Tensor:
        return self._of_point(name, x, args, keywords)

    method.__name__ = method.__qualname__ = name
    return Method(method)


def _probability_method(name: str) -> Any:
    def method(self: Distribution, q: Any, *args: Any, **keywords: Any) -> Tensor:
        return self._of_probability(name, q, args, keywords)

    method.__name__ = method.__qualname__ = name
    return Method(method)


class Distribution(Moments):
    """A distribution with SciPy's methods on Tensors."""

    discrete = False
    laws: Any = None
    """The module of the continuous distributions, for formulas by means of another one."""

    a: Any = -np.inf
    b: Any = np.inf

    def __init__(
        self, a: Any = None, b: Any = None, name: str = "", shapes: Any = None, **others: Any
    ) -> None:
        self.scipys = getattr(scipy.stats, name)
        self.name = name
        self.a = self.a if a is None else a
        self.b = self.b if b is None else b

    def __getattr__(self, name: str) -> Any:
        if name == "scipys" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.scipys, name)

    def __repr__(self) -> str:
        return f"<distribution {self.name} of gpugrad.scipy.stats>"

    def __call__(self, *args: Any, **keywords: Any) -> Frozen:
        """The distribution with its parameters."""
        return Frozen(self, args, keywords)

    freeze = __call__

    def _parsed(self, args: Any, keywords: Any, *points: Any) -> tuple[Any, ...]:
        """Points, shapes, location, scale, and a function for the result; SciPy's TypeErrors.

        SciPy's formulas expect at least one axis; the function removes an axis that was added, and
        writes NaN where the parameters are not valid.
        """
        shapes, loc, scale = self.scipys._parse_args(*args, **keywords)
        arrays = [double(x) for x in (*points, *shapes, loc, scale)]
        shape = np.broadcast_shapes(*(x.shape for x in arrays))
        arrays = [x if x.ndim else x[None] for x in arrays]
        n = len(points)
        lifted_points, shapes, (loc, scale) = arrays[:n], arrays[n:-2], arrays[-2:]
        good = xp.astype(asarray(self._argcheck(*shapes)), bool)
        good = xp.logical_and(xp.logical_and(good, scale > 0), loc == loc)

        def finish(value: Any) -> Tensor:
            value = xp.where(good, value, np.nan)
            if value.shape == shape:
                return value
            return xp.broadcast_to(value, shape) if shape else xp.reshape(value, ())

        return *lifted_points, shapes, loc, scale, finish

    def _argcheck(self, *shapes: Any) -> Any:
        return functools.reduce(xp.logical_and, [s > 0 for s in shapes], asarray(True))

    def _get_support(self, *shapes: Any) -> Any:
        return self.a, self.b

    def _ends(self, *shapes: Any) -> Any:
        """The ends of integrals over the distribution."""
        return self._get_support(*shapes)

    def _values(self, method: str, *args: Any, order: int | None = None) -> Tensor:
        """SciPy's values of a method of the standard form, without a derivative."""
        if not args:
            return double(getattr(self.scipys, method)(*([] if order is None else [order])))
        arrays = [xp.stop_gradient(double(x)) for x in args]
        shape = np.broadcast_shapes(*(x.shape for x in arrays))
        points = xp.stack([xp.broadcast_to(x, shape) for x in arrays], axis=-1)
        return xp.distribution_values(points, distribution=self.name, method=method, order=order)

    def _of_point(self, name: str, x: Any, args: Any, keywords: Any) -> Tensor:
        x, shapes, loc, scale, finish = self._parsed(args, keywords, x)
        y = (x - loc) / scale
        a, b = self._get_support(*shapes)
        y, inside = self._inside(y, shapes, name in ("pdf", "logpdf", "pmf", "logpmf"))
        value = getattr(self, f"_{name}")(xp.where(inside, y, _between(a, b)), *shapes)
        if name == "pdf":
            value = value / scale
        elif name == "logpdf":
            value = value - xp.log(scale)
        elif self.discrete and not name.startswith("log"):
            value = xp.clip(value, 0.0, 1.0)
        below, above = _OUTSIDE[name]
        value = xp.where(inside, value, xp.where(y >= b, above, below))
        return finish(xp.where(y == y, value, np.nan))

    def _inside(self, y: Tensor, shapes: Any, density: bool) -> tuple[Tensor, Tensor]:
        return y, (self._support_mask if density else self._open_support_mask)(y, *shapes)

    def _support_mask(self, y: Any, *shapes: Any) -> Any:
        a, b = self._get_support(*shapes)
        return xp.logical_and(y >= a, y <= b)

    def _open_support_mask(self, y: Any, *shapes: Any) -> Any:
        a, b = self._get_support(*shapes)
        return xp.logical_and(y > a, y < b)

    pdf, logpdf = point_method("pdf"), point_method("logpdf")
    cdf, logcdf = point_method("cdf"), point_method("logcdf")
    sf, logsf = point_method("sf"), point_method("logsf")

    def _pdf(self, x: Any, *shapes: Any) -> Any:
        return xp.exp(self._logpdf(x, *shapes))

    def _logpdf(self, x: Any, *shapes: Any) -> Any:
        return xp.log(self._pdf(x, *shapes))

    def _area(self, x: Any, *shapes: Any) -> Any:
        """An integral with the derivatives of the distribution function, not with its value."""
        if are_constants(shapes):
            return at_the_end(lambda t: self._pdf(t, *shapes), x)
        return self._integral(x, *shapes)

    @in_pieces
    def _integral(self, x: Any, *shapes: Any) -> Any:
        a, _ = self._get_support(*shapes)
        return integral(lambda t: self._pdf(t, *lifted(shapes)), self, shapes, a, x)

    def _cdf(self, x: Any, *shapes: Any) -> Any:
        return attached(self._values("cdf", x, *shapes), self._area(x, *shapes))

    def _sf(self, x: Any, *shapes: Any) -> Any:
        return 1.0 - self._cdf(x, *shapes)

    def _scipys_sf(self, x: Any, *shapes: Any) -> Any:
        """SciPy's values, which are exact where 1 - cdf would cancel."""
        return attached(self._values("sf", x, *shapes), -self._area(x, *shapes))

    def _logcdf(self, x: Any, *shapes: Any) -> Any:
        return log_of_part(self._cdf(x, *shapes), self._sf(x, *shapes))

    def _logsf(self, x: Any, *shapes: Any) -> Any:
        return log_of_part(self._sf(x, *shapes), self._cdf(x, *shapes))

    def _of_probability(self, name: str, q: Any, args: Any, keywords: Any) -> Tensor:
        q, shapes, loc, scale, finish = self._parsed(args, keywords, q)
        a, b = self._get_support(*shapes)
        a, b = located(a - 1 if self.discrete else a, loc, scale), located(b, loc, scale)
        inside = xp.logical_and(q > 0, q < 1)
        value = getattr(self, f"_{name}")(xp.where(inside, q, 0.5), *shapes) * scale + loc
        if name == "isf":
            a, b = b, a
        value = xp.where(inside, value, xp.where(q == 0, a, xp.where(q == 1, b, np.nan)))
        return finish(value)

    ppf, isf = _probability_method("ppf"), _probability_method("isf")

    def _ppf(self, q: Any, *shapes: Any) -> Any:
        x = self._values("ppf", q, *shapes)
        low = q < 0.5
        return self._root(
            x,
            shapes,
            lambda x: xp.where(low, self._cdf(x, *shapes) - q, (1.0 - q) - self._sf(x, *shapes)),
        )

    def _isf(self, q: Any, *shapes: Any) -> Any:
        return self._ppf(1.0 - q, *shapes)

    def _scipys_isf(self, q: Any, *shapes: Any) -> Any:
        x = self._values("isf", q, *shapes)
        return self._root(x, shapes, lambda x: q - self._sf(x, *shapes))

    def _root(self, x: Tensor, shapes: Sequence[Any], residual: Callable[[Any], Any]) -> Tensor:
        """The root x of a residual whose derivative is the density, with its derivatives.

        Each of Newton's steps doubles the order of the derivatives that are right: after two
        steps, those up to the third are. The value stays.
        """
        root = x
        for _ in range(2):
            step = residual(root) / self._pdf(root, *shapes)
            root = root - step
        return attached(x, root)

    def rvs(
        self, *args: Any, size: Any = None, random_state: Any = None, **keywords: Any
    ) -> Tensor:
        """Samples from gpugrad's streams, with gradients by the parameters.

        A sample is the quantile of a probability that stays fixed (implicit reparametrisation).
        Discrete samples have no gradient.

        Args:
            args, keywords: shapes, `loc` and `scale`.
            size: shape of the result; None for that of the parameters.
            random_state: int, or a generator of `gpugrad.numpy.random`; None for the default one.

        Raises:
            ValueError: parameters that are not valid, as SciPy's.
        """
        tensors = [x for x in (*args, *keywords.values()) if isinstance(x, Tensor)]
        if tensors:
            with device(tensors[0].device):
                return self._samples(args, keywords, size, random_state)
        return self._samples(args, keywords, size, random_state)

    def _samples(self, args: Any, keywords: Any, size: Any, random_state: Any) -> Tensor:
        shapes, loc, scale = self.scipys._parse_args(*args, **keywords)
        shapes, loc, scale = [double(s) for s in shapes], double(loc), double(scale)
        good = xp.astype(asarray(self._argcheck(*shapes)), bool)
        _check_values(self.name, xp.logical_and(good, scale >= 0))
        common = np.broadcast_shapes(*(x.shape for x in (*shapes, loc, scale)))
        size = common if size is None else tuple(np.atleast_1d(np.asarray(size)).tolist())
        if len(common) > len(size) or any(
            n not in (1, m) for n, m in zip(common[::-1], size[::-1], strict=False)
        ):
            raise ValueError(
                "size does not match the broadcast shape of the parameters. "
                f"{size}, {size}, {common}"
            )
        fixed = [xp.stop_gradient(s) for s in shapes]
        drawn = double(self._rvs(*fixed, size=size, random_state=stream(random_state)))
        drawn = xp.broadcast_to(drawn, size) if drawn.shape != size else drawn
        if not self.discrete and shapes:
            drawn = self._moved(drawn, shapes, fixed)
        drawn = drawn * scale + loc
        return xp.astype(xp.stop_gradient(drawn), np.int64) if self.discrete else drawn

    def _rvs(self, *shapes: Any, size: Any = None, random_state: Any = None) -> Any:
        return self._ppf(random_state.uniform(size=size), *shapes)

    def _moved(self, x: Tensor, shapes: Sequence[Tensor], fixed: Sequence[Tensor]) -> Tensor:
        """Samples as functions of the shapes, at a fixed probability."""
        if not watched_in(*shapes):
            return x
        x = xp.stop_gradient(x)
        p = xp.stop_gradient(self._cdf(x, *fixed))
        return self._root(x, shapes, lambda x: self._cdf(x, *shapes) - p)


class rv_continuous(Distribution):  # SciPy's name
    """The base of SciPy's continuous distributions."""


def _between(a: Any, b: Any) -> Tensor:
    """A point of the support, for formulas whose result is not used."""
    a, b = xp.stop_gradient(double(a)), xp.stop_gradient(double(b))
    low, high = xp.isfinite(a), xp.isfinite(b)
    a, b = xp.where(low, a, xp.where(high, b - 2, -1.0)), xp.where(high, b, 0.0)
    return xp.where(high, 0.5 * (a + b), a + 1)


def _check_values(name: str, good: Tensor) -> None:
    if not holds(xp.all(good)):
        raise ValueError(
            "Domain error in arguments. The `scale` parameter must be positive for all "
            "distributions, and many distributions have restrictions on shape parameters. "
            f"Please see the `scipy.stats.{name}` documentation for details."
        )
