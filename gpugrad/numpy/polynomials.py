"""`poly1d`, and NumPy's functions of polynomials, which take and return it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError
from gpugrad.numpy.creation import array, asarray
from gpugrad.numpy.namespace import of_tensors


class poly1d:
    """A polynomial of one variable, as NumPy's ``poly1d``: highest power first.

    >>> import gpugrad.numpy as np
    >>> p = np.poly1d([1.0, 2.0, 3.0])
    >>> p(2.0).item(), (p * p).order
    (11.0, 4)
    """

    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 2000.0  # Tensors and arrays leave operators to this class

    def __init__(self, c_or_r: Any, r: bool = False, variable: str | None = None) -> None:
        if isinstance(c_or_r, (poly1d, np.poly1d)):
            variable = variable or c_or_r.variable
            c_or_r = c_or_r.coeffs
        x = of_tensors(np.poly)(c_or_r) if r else array(c_or_r, ndmin=1)
        if x.ndim > 1:
            raise ArgumentError(f"poly1d: coefficients have one axis, not the shape {x.shape}.")
        self._coeffs = _trimmed(x)
        self.variable: str = variable or "x"

    @property
    def coeffs(self) -> Tensor:
        """The coefficients."""
        return self._coeffs

    @coeffs.setter
    def coeffs(self, value: Any) -> None:
        if value is not self._coeffs:
            raise AttributeError("Cannot set attribute")

    c = coef = coefficients = coeffs

    @property
    def order(self) -> int:
        """The highest power."""
        return self._coeffs.size - 1

    o = order

    @property
    def roots(self) -> Any:
        """Where the polynomial is zero."""
        return of_tensors(np.roots)(self._coeffs)

    r = roots

    def __call__(self, value: Any) -> Any:
        """The value at a number, an array, or another polynomial."""
        return polyval(self, value)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._coeffs.__array__(dtype, copy)

    def __len__(self) -> int:
        return self.order

    def __iter__(self) -> Iterator[Any]:
        return iter(self._coeffs)

    def __repr__(self) -> str:
        return f"poly1d({self._coeffs.tolist()})"

    def __str__(self) -> str:
        return str(np.poly1d(self._coeffs.numpy(), variable=self.variable))

    def __getitem__(self, power: int) -> Any:
        if power < 0 or power > self.order:
            return asarray(0)
        return self._coeffs[self.order - power]

    def __setitem__(self, power: int, value: Any) -> None:
        if power < 0:
            raise ArgumentError(f"poly1d: there is no negative power {power}.")
        if power > self.order:
            zeros = asarray(np.zeros(power - self.order, self._coeffs.dtype))
            self._coeffs = TENSOR.concat([zeros, self._coeffs], axis=0)
        self._coeffs[self.order - power] = value

    def __pos__(self) -> poly1d:
        return self

    def __neg__(self) -> poly1d:
        return poly1d(-self._coeffs)

    def __add__(self, other: Any) -> Any:
        return polyadd(self, poly1d(other))

    def __sub__(self, other: Any) -> Any:
        return polysub(self, poly1d(other))

    def __rsub__(self, other: Any) -> Any:
        return polysub(poly1d(other), self)

    def __mul__(self, other: Any) -> Any:
        return polymul(self, poly1d(other))

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Any:
        return poly1d(self._coeffs / other) if np.ndim(other) == 0 else polydiv(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return polydiv(poly1d(other), self)

    def __pow__(self, power: int) -> poly1d:
        if not isinstance(power, (int, np.integer)) or power < 0:
            raise ArgumentError(f"poly1d: the power must be an int of at least 0, got {power!r}.")
        result = poly1d([1])
        for _ in range(power):
            result = result * self
        return result

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, poly1d):
            return NotImplemented
        same = self._coeffs.shape == other._coeffs.shape
        return same and bool(TENSOR.all(TENSOR.equal(self._coeffs, other._coeffs)))

    def deriv(self, m: int = 1) -> Any:
        """The derivative of order `m`."""
        return polyder(self, m)

    def integ(self, m: int = 1, k: Any = 0) -> Any:
        """The integral of order `m`, with the constants `k`."""
        return polyint(self, m, k)

    def get(self, *args: Any, **keywords: Any) -> Any:
        """NumPy's ``poly1d`` of the values."""
        return np.poly1d(self._coeffs.get(*args, **keywords), variable=self.variable)

    def set(self, polyin: Any, stream: Any = None) -> None:
        """Write the coefficients of NumPy's ``poly1d`` of the same order."""
        if not isinstance(polyin, np.poly1d):
            raise TypeError(f"poly1d.set: numpy.poly1d is needed, got {type(polyin).__name__}.")
        self.variable = polyin.variable
        self._coeffs.set(polyin.coeffs)


def _trimmed(x: Tensor) -> Tensor:
    """Coefficients without leading zeros, but one of them."""
    nonzero = np.flatnonzero(x.numpy())
    return x[nonzero[0] :] if nonzero.size else x[-1:] if x.size else asarray(np.zeros(1, x.dtype))


def _polynomials(numpys: Any) -> Any:
    """A function of NumPy that returns a `poly1d` if it gets one."""
    function = of_tensors(numpys)

    @functools.wraps(numpys)
    def call(*args: Any, **keywords: Any) -> Any:
        is_poly = any(isinstance(x, (poly1d, np.poly1d)) for x in args)
        coefficients = [x.coeffs if isinstance(x, (poly1d, np.poly1d)) else x for x in args]
        result = function(*coefficients, **keywords)
        if not is_poly:
            return result
        return tuple(map(poly1d, result)) if isinstance(result, tuple) else poly1d(result)

    return call


polyadd, polysub, polymul = map(_polynomials, (np.polyadd, np.polysub, np.polymul))
polydiv, polyder, polyint = map(_polynomials, (np.polydiv, np.polyder, np.polyint))


def roots(p: Any) -> Any:
    """The roots of a polynomial, also of a `poly1d`."""
    return of_tensors(np.roots)(p.coeffs if isinstance(p, (poly1d, np.poly1d)) else p)


def polyval(p: Any, x: Any) -> Any:
    """The value of a polynomial at numbers, or at a `poly1d`."""
    if isinstance(x, (poly1d, np.poly1d)):
        result = poly1d(np.zeros(1))
        for c in p:
            result = result * x + tensor(c)
        return result
    return of_tensors(np.polyval)(p.coeffs if isinstance(p, (poly1d, np.poly1d)) else p, x)
