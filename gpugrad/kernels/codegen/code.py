"""Nodes of formulas that are written as code: `Code` values note what is computed with them.

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
from collections.abc import Callable, Iterable, Set
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, SCALARS
from gpugrad.kernels.codegen.cuda import CUDA, FUNCTIONS
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

    Args:
        lib: the array library on Codes, which their operators call.

    Attributes:
        codes: the values, in order.
        reductions: reductions over rows.
        halves: whether an input is a 16-bit float.
    """

    def __init__(self, lib: Any) -> None:
        self.lib = lib
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
        part: Code = self.body.lib.real(self)
        return part

    @property
    def imag(self) -> Code:
        """The imaginary part."""
        part: Code = self.body.lib.imag(self)
        return part

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


def _operator(name: str, reflected: bool = False) -> Callable[..., Any]:
    def method(self: Code, *other: Any) -> Any:
        if other and not (type(other[0]) is Code or isinstance(other[0], (*SCALARS, np.generic))):
            return NotImplemented
        return getattr(self.body.lib, name)(*((*other, self) if reflected else (self, *other)))

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
