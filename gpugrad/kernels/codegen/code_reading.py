"""The reading of formulas that writes code: NumPy's and SciPy's functions on `Code` values."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import SCALARS, Reading
from gpugrad.kernels.codegen.code import Body, Code, NoCodeError, cast, compute_dtype
from gpugrad.kernels.codegen.cuda import FUNCTIONS, IN_C_ALONE, SPECIAL
from gpugrad.kernels.codegen.powers import by_products

_FLOAT32 = np.dtype(np.float32)


def _kind(value: Any) -> Any:
    """The dtype of a value, or the type of a Python number: it decides promotion."""
    if type(value) is Code:
        return value.weak or value.dtype
    return type(value) if type(value) in SCALARS else compute_dtype(value.dtype)


def _body(args: Sequence[Any]) -> Body | None:
    return next((a.body for a in args if type(a) is Code), None)


def _write(name: str, args: Sequence[Any], dtypes: Sequence[Any], out: Any) -> Code:
    """Add the line of a function in FUNCTIONS for arguments cast to these dtypes."""
    body = _body(args)
    assert body is not None
    dtypes = [compute_dtype(d) for d in dtypes]
    if {d.kind for d in dtypes} == {"i", "u"}:
        raise NoCodeError(f"{name} of signed and unsigned integers has no CUDA")
    if (name, dtypes[0].kind) not in FUNCTIONS or (
        name in ("nextafter", "spacing") and body.halves
    ):
        raise NoCodeError(f"{name} of {dtypes[0]} has no CUDA")
    codes = [cast(body, a, d) for a, d in zip(args, dtypes, strict=True)]
    weak = all((type(a) is Code and a.weak) or type(a) in SCALARS for a in args)
    out = compute_dtype(out)
    result = body.add(name, out, *codes)
    if weak and out.kind != "b":
        result.weak = {"f": float, "i": int, "c": complex}[out.kind]
    return result


def _apply(name: str, *args: Any) -> Any:
    """Apply a NumPy ufunc with its dtype rules."""
    ufunc = getattr(np, name)
    if _body(args) is None:
        return ufunc(*args)
    kinds = [*map(_kind, args)]
    if SCALARS.issuperset(kinds):  # NumPy compares two Python ints as objects
        kinds = [*map(np.dtype, kinds)]
    try:
        *dtypes, out = ufunc.resolve_dtypes((*kinds, None))
    except TypeError as error:
        raise NoCodeError(str(error)) from error
    if name == "square":
        name, args, dtypes = "multiply", args * 2, dtypes * 2
    return _write(name, args, dtypes, out)


class _Library:
    """The ``xp.lib`` of formulas that are read as code."""

    def __getattr__(self, name: str) -> Any:
        numpys = getattr(np, name, None)
        if isinstance(numpys, np.ufunc) and numpys.nout == 1:
            value: Any = functools.partial(_apply, numpys.__name__)
        elif isinstance(numpys, (type, float)):
            value = numpys  # a dtype, inf, pi
        else:
            raise NoCodeError(f"{name} has no CUDA")
        setattr(self, name, value)
        return value

    def power(self, x: Any, y: Any) -> Any:
        """`x` to the power `y`; whole and half powers become products and roots."""
        if type(y) is Code and y.weak and x.dtype.kind == "f":
            dtype = self.result_type(x, y)
            return _write("uniform_power", (x, y), (dtype, dtype), dtype)
        is_float = type(x) is Code and x.dtype.kind in "fc"
        product = by_products(self, x, y) if is_float else None
        return _apply("power", x, y) if product is None else product

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """`x` where the condition holds, else `y`, in their common dtype."""
        body = _body((condition, x, y))
        if body is None:
            return np.where(condition, x, y)
        dtype = self.result_type(x, y)
        condition = cast(body, condition, np.dtype(np.bool_))
        result = _write("where", (condition, x, y), (condition.dtype, dtype, dtype), dtype)
        if all(type(v) in SCALARS or (type(v) is Code and v.weak) for v in (x, y)):
            result.weak = {"f": float, "i": int, "c": complex, "b": bool}[dtype.kind]
        return result

    def result_type(self, *values: Any) -> np.dtype[Any]:
        """The common dtype of Codes, numbers and dtypes."""
        if all(type(v) is Code and v.weak for v in values):
            return np.result_type(*(v.dtype for v in values))
        return np.result_type(*map(_promotion_type, values))

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        """The value, cast to `dtype` unless that is None."""
        if dtype is None:
            return value
        return value.astype(dtype) if type(value) is Code else np.dtype(dtype).type(value)

    def astype(self, value: Code, dtype: Any, copy: bool = True) -> Code:
        """The value in another dtype."""
        return value.astype(dtype)

    def full_like(self, value: Code, fill: Any, dtype: Any = None) -> Code:
        """A number in the dtype of the value, or in `dtype`."""
        dtype = value.dtype if dtype is None else compute_dtype(dtype)
        return cast(value.body, fill, dtype)

    def zeros_like(self, value: Code, dtype: Any = None) -> Code:
        """0 in the dtype of the value."""
        return self.full_like(value, 0, dtype)

    def ones_like(self, value: Code, dtype: Any = None) -> Code:
        """1 in the dtype of the value."""
        return self.full_like(value, 1, dtype)

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        """`x` limited to the range from `low` to `high`."""
        return self.minimum(self.maximum(x, low), high)

    def round(self, x: Code, decimals: int = 0) -> Code:
        """`x` rounded to whole numbers; decimals are not supported."""
        if decimals or x.dtype.kind not in "f":
            raise NoCodeError("round to decimals has no CUDA")
        return self.rint(x)

    around = round

    def sinc(self, x: Code) -> Code:
        """sin(pi x) / (pi x), and 1 at 0."""
        y = math.pi * self.where(self.equal(x, 0), 1e-20, x)
        return self.sin(y) / y

    def real(self, x: Any) -> Any:
        """The real part; a real number itself."""
        return self._part(x, "real")

    def imag(self, x: Any) -> Any:
        """The imaginary part; 0 for a real number."""
        return self._part(x, "imag")

    def _part(self, x: Code, name: str) -> Code:
        if x.dtype.kind == "c":
            return _write(name, (x,), (x.dtype,), np.dtype(f"f{x.dtype.itemsize // 2}"))
        return x if name == "real" else self.zeros_like(x)


def _promotion_type(value: Any) -> Any:
    if type(value) is Code:
        return value.weak(1) if value.weak else value.dtype
    if type(value) in SCALARS or isinstance(value, (np.dtype, type)):
        return value
    return compute_dtype(value.dtype)


class _Special:
    """The ``xp.special`` of formulas read as code: functions of floats of one dtype."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)

    def __getattr__(self, name: str) -> Any:
        if name not in self._names:
            raise NoCodeError(f"special.{name} has no CUDA")
        return functools.partial(self._call, name)

    def _call(self, name: str, *args: Any) -> Any:
        body = _body(args)
        if body is None:
            raise NoCodeError(f"special.{name} of Python numbers only")
        dtype = np.result_type(*map(_promotion_type, args), _FLOAT32)
        return _write(name, args, [dtype] * len(args), dtype)


LIB: Any = _Library()


class _CodeReading(Reading):
    """Notes nodes instead of computing: the arrays are Codes."""

    nesting = 3
    lib, special = LIB, _Special(SPECIAL)

    def function_of(self, op: Any) -> Callable[..., Any]:
        """The library's function of that name, or the op's formula, on Codes."""
        if op.is_library_function:
            return getattr(LIB, op.forward.name)
        if op.name == "complex":  # its forward fills an array part by part
            return _complex
        return op.body(self) if op.is_opened else functools.partial(op.forward, self)


CODE = _CodeReading("code")
"""The reading whose arrays are Codes."""


class _CCodeReading(_CodeReading):
    special = _Special(SPECIAL | IN_C_ALONE)


C_CODE = _CCodeReading("c_code")
"""The same for the loops in C of eager ops, which have more functions than CUDA."""


def _complex(x: Any, y: Any) -> Code:
    part = LIB.result_type(x, y, _FLOAT32)
    return _write("complex", (x, y), (part, part), np.result_type(part, np.complex64))
