"""The reading of formulas that writes code: run on `Code` values, they note what they compute.

A `Code` is the value of one element: a node with an op, arguments and a dtype, that of NumPy's
result. Each operation on it adds a node to its `Body`. A formula that is not straight-line code (it
reads a shape, branches on a value or calls a function that CUDA lacks) raises `NoCodeError` and
runs on arrays instead. `cuda.py` writes a line of CUDA for each node, `cpp.py` a line of C++. For
``x * xp.tanh(y)`` with float32 `x` and bfloat16 `y` CUDA's lines are::

    const float v0 = x0;
    const float v1 = (float)x1;
    const float v2 = tanh(v1);
    const float v3 = v0 * v2;

16-bit floats are converted to float32 when read and rounded once, when a result is written.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, SCALARS, Reading
from gpugrad.kernels.codegen.cuda import CUDA, FUNCTIONS, SPECIAL
from gpugrad.kernels.runtime.launch import TYPES

_FLOAT32 = np.dtype(np.float32)
_WEAK = {
    float: np.dtype(np.float64),
    int: np.dtype(np.int64),
    complex: np.dtype(np.complex128),
    bool: np.dtype(np.bool_),
}


class NoCodeError(AttributeError):
    """A formula that is not straight-line CUDA; an AttributeError, so that hasattr is False."""


def read(function: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """The result of a formula on Codes; any error is a `NoCodeError`.

    A real error is raised again when the formula runs on arrays.
    """
    try:
        return function(*args, **params)
    except Exception as error:
        raise NoCodeError(str(error)) from error


def compute_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype of computations: float32 for 16-bit floats, otherwise the dtype itself."""
    dtype = np.dtype(dtype)
    if dtype not in TYPES:
        raise NoCodeError(f"CUDA has no {dtype}")
    return _FLOAT32 if dtype in HALF else dtype


class Body:
    """Straight-line code under construction: one line for each `Code`.

    Attributes:
        codes: the values, in order.
        reductions: reductions over rows.
        halves: whether an input is a 16-bit float.
    """

    def __init__(self) -> None:
        self.codes: list[Code] = []
        self.reductions: list[Reduction] = []
        self.halves = False
        self._seen: dict[Any, Code] = {}

    def input(self, name: str, dtype: Any) -> Code:
        """An element of an array; or a weak number, if `dtype` is a Python type as `float`."""
        if dtype in SCALARS:
            return self.add("input", _WEAK[dtype], value=name, weak=dtype)
        is_half = np.dtype(dtype) in HALF
        self.halves |= is_half
        return self.add("half" if is_half else "input", compute_dtype(dtype), value=name)

    def add(
        self,
        op: str,
        dtype: np.dtype[Any],
        *args: Code,
        value: Any = None,
        weak: Any = None,
        how: Any = None,
    ) -> Code:
        """The node of an op; equal ones are one node."""
        if args and how is None:
            how = FUNCTIONS.get((op, args[0].dtype.kind))
        number = value.tobytes() if isinstance(value, np.generic) else value
        key = how or op, dtype, args, number
        if key not in self._seen:
            name = f"v{len(self.codes)}"
            code = self._seen[key] = Code(self, name, op, args, dtype, value, how, weak)
            self.codes.append(code)
        return self._seen[key]

    def reduce(self, kind: str, of: Code) -> Code:
        """The ``"sum"``, ``"max"`` or ``"min"`` of a value over its row, the last axis.

        The result is a value like any other, so that formulas can express normalizations.
        """
        for reduction in self.reductions:
            if reduction.kind == kind and reduction.of is of:
                return reduction.code
        stage = max(
            (r.stage + 1 for r in self.reductions if r.code in _with_dependencies(of)), default=0
        )
        code = self.add("reduced", of.dtype, value=f"u{len(self.reductions)}")
        self.reductions.append(Reduction(kind, of, code, stage))
        return code

    def needed(self, results: Iterable[Code], known: Set[Code] = frozenset()) -> list[Code]:
        """The nodes that compute the results, in order, without those that are known."""
        needed = set(results) - known
        for code in reversed(self.codes):
            if code in needed:
                needed.update(c for c in code.args if c not in known)
        return [c for c in self.codes if c in needed]

    def lines(self, results: Iterable[Code]) -> list[str]:
        """The lines of CUDA that compute the results, without the others."""
        return [CUDA.line(c) for c in self.needed(results)]


@dataclasses.dataclass(frozen=True)
class Reduction:
    """A reduction over rows.

    Attributes:
        kind: ``"sum"``, ``"max"`` or ``"min"``.
        of: the value that is reduced.
        code: the result.
        stage: how many other reductions must come first, one after the other.
    """

    kind: str
    of: Code
    code: Code
    stage: int

    @property
    def functor(self) -> str:
        """The name of the functor of CUDA and of C++ that combines two values."""
        return self.kind.title()

    def neutral(self, t: str) -> str:
        """The value of a type that changes no result."""
        return {"max": f"-infinity<{t}>()", "min": f"infinity<{t}>()"}.get(self.kind, f"({t})0")


def _with_dependencies(code: Code) -> set[Code]:
    """A value and everything that it depends on."""
    codes, stack = {code}, [code]
    while stack:
        new = set(stack.pop().args) - codes
        codes |= new
        stack += new
    return codes


@dataclasses.dataclass(eq=False, repr=False, slots=True)
class Code:
    """The value of an expression, a node of a formula.

    Attributes:
        body: the nodes of the formula.
        name: the variable.
        op: the name of a function in `FUNCTIONS`; or ``"input"``, ``"half"`` for an input of 16
            bits, ``"reduced"``, ``"literal"``, ``"cast"``, ``"rounded"`` to 16 bits, ``"strong"``
            for a weak number with a dtype, ``"call"`` of a user's function.
        args: the nodes that it reads.
        dtype: the dtype that NumPy computes it in.
        value: the name of an input or of a reduction's result, the number of a literal, the dtype
            that it is rounded to.
        how: the entry of a function in `FUNCTIONS`, or as one; else None.
        weak: the Python type if it is a Python number, or None.
    """

    body: Body
    name: str
    op: str
    args: tuple[Code, ...]
    dtype: np.dtype[Any]
    value: Any
    how: Any
    weak: Any

    __array_ufunc__ = None  # a NumPy number * Code must come to Code.__rmul__
    __hash__ = object.__hash__

    @property
    def is_input(self) -> bool:
        """Whether it is an element of an array, or a number that a kernel is given."""
        return self.op in ("input", "half")

    def astype(self, dtype: Any, copy: bool = True) -> Code:
        """The value in another dtype."""
        return cast(self.body, self, compute_dtype(dtype))

    def rounded(self, dtype: Any) -> Code:
        """The value rounded as if stored in an array of that dtype, 16 bits included."""
        code = self.astype(dtype)
        if np.dtype(dtype) not in HALF:
            return code
        return self.body.add("rounded", code.dtype, code, value=np.dtype(dtype))

    def copy(self) -> Code:
        """Itself."""
        return self

    @property
    def real(self) -> Code:
        """The real part."""
        return LIB.real(self)

    @property
    def imag(self) -> Code:
        """The imaginary part."""
        return LIB.imag(self)

    def __getattr__(self, name: str) -> Any:
        raise NoCodeError(f"a single element has no attribute {name}")

    def _refuse(self, *args: Any, **keywords: Any) -> Any:
        raise NoCodeError("the value of an element is known only on the device")

    __bool__ = __float__ = __int__ = __index__ = __iter__ = __array__ = _refuse
    __getitem__ = __setitem__ = __len__ = _refuse

    def __repr__(self) -> str:
        return f"<{CUDA.line(self)}>"


def cast(body: Body, value: Any, dtype: np.dtype[Any]) -> Code:
    """A value of exactly that dtype."""
    if type(value) is not Code:
        return body.add("literal", dtype, value=_number(value, dtype))
    if value.dtype == dtype:
        return value if value.weak is None else body.add("strong", dtype, value)
    return body.add("cast", dtype, value)


def _number(value: Any, dtype: np.dtype[Any]) -> Any:
    """A Python or NumPy number in a dtype."""
    try:
        return np.asarray(value, dtype)[()] if type(value) is int else dtype.type(value)
    except OverflowError as error:
        raise NoCodeError(str(error)) from error


# ---- the array library on Codes ----------------------------------------------------------


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
    try:
        *dtypes, out = ufunc.resolve_dtypes((*map(_kind, args), None))
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
        simple = _POWERS.get(y) if type(y) in (int, float) else None
        if simple is None or type(x) is not Code or x.dtype.kind not in "fc":
            return _apply("power", x, y)
        return simple(self, x)

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


_POWERS: dict[Any, Callable[[Any, Any], Any]] = {
    2: lambda lib, x: lib.square(x),
    1: lambda lib, x: lib.positive(x),
    0.5: lambda lib, x: lib.sqrt(x),
    -1: lambda lib, x: lib.reciprocal(x),
    3: lambda lib, x: lib.square(x) * x,
    -2: lambda lib, x: lib.reciprocal(lib.square(x)),
    4: lambda lib, x: lib.square(lib.square(x)),
}


class _Special:
    """The ``xp.special`` of formulas read as code: functions of floats of one dtype."""

    def __getattr__(self, name: str) -> Any:
        if name not in SPECIAL:
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
    lib, special = LIB, _Special()

    def function_of(self, op: Any) -> Callable[..., Any]:
        """The library's function of that name, or the op's formula, on Codes."""
        if op.is_library_function:
            return getattr(LIB, op.forward.name)
        if op.name == "complex":  # its forward fills an array part by part
            return _complex
        return op.body(self) if op.is_opened else functools.partial(op.forward, self)


CODE = _CodeReading("code")
"""The reading whose arrays are Codes."""


def _complex(x: Any, y: Any) -> Code:
    part = LIB.result_type(x, y, _FLOAT32)
    return _write("complex", (x, y), (part, part), np.result_type(part, np.complex64))


def _operator(name: str, reflected: bool = False) -> Callable[..., Any]:
    def method(self: Code, *other: Any) -> Any:
        if other and not (type(other[0]) is Code or isinstance(other[0], (*SCALARS, np.generic))):
            return NotImplemented
        return getattr(LIB, name)(*((*other, self) if reflected else (self, *other)))

    return method


for _symbol, _name in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}.items():  # fmt: skip
    setattr(Code, f"__{_symbol}__", _operator(_name))
    setattr(Code, f"__r{_symbol}__", _operator(_name, reflected=True))
for _symbol, _name in {
    "neg": "negative", "invert": "invert", "pos": "positive", "abs": "absolute", "lt": "less",
    "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}.items():  # fmt: skip
    setattr(Code, f"__{_symbol}__", _operator(_name))
