"""The namespaces that SciPy's formulas see: `numpy`, `math` and SciPy's own, on Tensors."""

from __future__ import annotations

import builtins
import functools
import importlib
import math
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import gpugrad.fft
import gpugrad.linalg
import gpugrad.numpy
import gpugrad.special
from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import Tensor
from gpugrad.numpy.creation import empty
from gpugrad.scipy.calling import on_values


class Names(types.ModuleType):
    """A module with the names of `given`, and else those of the first source that has one."""

    def __init__(self, name: str, given: Mapping[str, Any], *sources: Any) -> None:
        super().__init__(name)
        self.__dict__.update(given, _sources=sources)

    def __getattr__(self, name: str) -> Any:
        for source in self._sources:
            value = getattr(source, name, self)
            if value is not self:
                self.__dict__[name] = value
                return value
        raise AttributeError(f"{self.__name__} has no {name!r}.")


def _of_numbers(name: str) -> Callable[..., Any]:
    """A function of `math` that runs the op on Tensors."""
    function = getattr(math, name)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        if any(isinstance(x, Tensor) for x in args):
            return getattr(gpugrad.numpy, name)(*args)
        return function(*args)

    return call


_MATH = [
    "acosh",
    "asinh",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "hypot",
    "log",
    "log10",
    "log2",
    "sin",
    "sinh",
    "sqrt",
    "tan",
]


class _FloatType(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, builtins.float)


class Float(metaclass=_FloatType):
    """`float` in SciPy's formulas: keeps a Tensor, whose gradient a Python number would cut."""

    dtype = np.dtype(np.float64)

    def __new__(cls, value: Any = 0.0) -> Any:
        """The number, or the Tensor with no axes and a floating-point dtype."""
        if not isinstance(value, Tensor):
            return builtins.float(value)
        if value.size != 1:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        value = TENSOR.reshape(value, ())
        return value if value.dtype.kind in "fc" else TENSOR.astype(value, "float64")


class _ArrayType(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor)


class _Array(metaclass=_ArrayType):
    """`numpy.ndarray` in SciPy's formulas."""

    def __new__(cls, shape: Any) -> Any:
        return empty(shape)


class _Polynomial:
    """`numpy.polynomial.Polynomial` in SciPy's formulas: products and sums of Tensors."""

    def __init__(self, coef: Any) -> None:
        self.coef = NUMPY.asarray(coef)

    def __mul__(self, other: Any) -> _Polynomial:
        if isinstance(other, _Polynomial):
            return _Polynomial(NUMPY.convolve(self.coef, other.coef))
        return _Polynomial(self.coef * other)

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> _Polynomial:
        return _Polynomial(self.coef / number)

    def __pow__(self, n: int) -> _Polynomial:
        return functools.reduce(_Polynomial.__mul__, [self] * n, _Polynomial([1.0]))

    def __radd__(self, other: Any) -> _Polynomial:
        if not isinstance(other, _Polynomial):  # the 0 that a sum begins with
            return self
        return _Polynomial(self.coef + other.coef)

    __add__ = __radd__


def _windows(x: Any, window_shape: Any, axis: Any = None, writeable: bool = False) -> Any:
    return TENSOR.sliding_window_view(x, window_shape, axis=axis)


_STRIDE_TRICKS = {  # SciPy asks for strides of 0 alone
    "as_strided": lambda x, shape, strides: TENSOR.broadcast_to(x, shape),
    "sliding_window_view": _windows,
}


def _is_scalar(x: Any) -> bool:
    return np.isscalar(x) or (isinstance(x, Tensor) and not x.ndim)


NUMPY = Names(
    "numpy",
    {
        "ndarray": _Array,
        "isscalar": _is_scalar,
        "iterable": lambda x: bool(x.ndim) if isinstance(x, Tensor) else np.iterable(x),
        "lib": Names("lib", {"stride_tricks": Names("stride_tricks", _STRIDE_TRICKS)}),
        "polynomial": Names("polynomial", {"Polynomial": _Polynomial}, gpugrad.numpy.polynomial),
    },
    gpugrad.numpy,
    np,
)


def _without(function: Any, *names: str) -> Callable[..., Any]:
    """A function that ignores keywords about SciPy's own algorithms."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        return function(*args, **{k: v for k, v in keywords.items() if k not in names})

    return call


def _either(ours: Any, theirs: Any) -> Callable[..., Any]:
    """Our function of Tensors, and SciPy's of Python's numbers, which are float64 there."""

    @functools.wraps(theirs)
    def call(*args: Any, **keywords: Any) -> Any:
        function = ours if any(isinstance(x, Tensor) for x in args) else theirs
        return function(*args, **keywords)

    return call


def _companion(a: Any) -> Tensor:
    """`scipy.linalg.companion`."""
    a = NUMPY.asarray(a)
    below = NUMPY.eye(a.size - 2, a.size - 1, dtype=a.dtype)
    return NUMPY.concatenate([(-a[1:] / a[0])[None], below])


def _apply_where(
    cond: Any,
    args: Any,
    f1: Callable[..., Any],
    f2: Any = None,
    *,
    fill_value: Any = None,
    kwargs: Any = None,
    xp: Any = None,
) -> Any:
    """`array_api_extra.apply_where`, which looks up no values."""
    args = args if isinstance(args, tuple) else (args,)
    keywords = kwargs or {}
    other = fill_value if f2 is None else f2(*args, **keywords)
    return NUMPY.where(cond, f1(*args, **keywords), other)


def vendored(name: str) -> Any:
    """A library that SciPy carries along; before 1.18 it was in another package."""
    try:
        return importlib.import_module(f"scipy._external.{name}")
    except ModuleNotFoundError:
        return importlib.import_module(f"scipy._lib.{name}")


def _modules() -> dict[str, Any]:
    """The modules that imports in SciPy's modules get."""
    from scipy import fft, linalg, special
    from scipy._lib import _array_api_override

    compat, extra = vendored("array_api_compat"), vendored("array_api_extra")
    transforms = {
        name: _without(getattr(gpugrad.numpy.fft, name), "workers", "overwrite_x", "plan")
        for name in gpugrad.numpy.fft.__all__
    }
    functions = {
        name: _either(getattr(gpugrad.special, name), getattr(special, name))
        for name in gpugrad.special.__all__
        if hasattr(special, name)
    }
    options = ("assume_a", "check_finite", "cond", "lapack_driver", "overwrite_a", "overwrite_b")
    solvers = {
        name: _without(getattr(gpugrad.numpy.linalg, name), *options)
        for name in ("inv", "lstsq", "solve")
    }
    solvers |= {"companion": _companion, "expm": gpugrad.linalg.expm}
    values = {name: on_values(getattr(linalg, name)) for name in linalg.__all__}
    others = {name: on_values(getattr(special, name)) for name in special.__all__}
    override = {"array_namespace": lambda *arrays, **options: NUMPY}
    return {
        "numpy": NUMPY,
        "math": Names("math", {name: _of_numbers(name) for name in _MATH}, math),
        compat.__name__: Names("compat", {"numpy": NUMPY}, compat),
        extra.__name__: Names("extra", {"apply_where": _apply_where}, extra),
        "scipy._lib._array_api_override": Names("override", override, _array_api_override),
        "scipy.fft": Names("fft", transforms, fft),
        "scipy.special": Names("special", {**others, **functions}, special),
        "scipy.linalg": Names("linalg", {**values, **solvers}, linalg),
    }


MODULES = _modules()
