"""Traced: an array that logs the ops on it while they run. Also each thread's current trace.

A `Traced` array wraps the array that an op has computed and holds its `Value` in a `Program`. It
has its own reading of the formulas: a composite runs unchanged, any other op runs on the wrapped
arrays and logs one `Step`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from gpugrad.core.backend import READINGS, Reading, reading
from gpugrad.core.operators import Wrapper, add_operators
from gpugrad.core.tensor import Tensor, tensor_with_id
from gpugrad.core.user_code import user_line
from gpugrad.errors import TraceError
from gpugrad.trace.program import Value


class _TracedReading(Reading):
    """Runs an op on the wrapped arrays and writes a step; a composite becomes its body's steps."""

    nesting = 1

    @property
    def add_reduce(self) -> Any:
        return self.sum

    @property
    def lib(self) -> Any:
        """Raises TraceError: code that uses the array library directly needs values."""
        return Traced._refuse(None)  # type: ignore[arg-type]

    def function_of(self, op: Any) -> Callable[..., Any]:
        """The body of a composite, unless the op says that it is one step."""
        step, body = traced_reading(op), op.body(self) if op.is_opened else None
        if body is None or not callable(op.opens):
            return body if body is not None and op.opens == "traced" else step

        def either(*args: Any, **params: Any) -> Any:
            opens = op.opens(*args, **params) == "traced"
            return (body if opens else step)(*args, **params)

        return either


TRACED = _TracedReading("traced")

LEFT = (
    "a value from inside a function that gg.function has traced is used outside of it: a list, an "
    "object, a global or a generator has kept it. Only the arrays that a call returns have values: "
    "return it, in tuples, lists, dicts or dataclasses, or keep it in a Variable."
)

# ---- the logging array -------------------------------------------------------------------


class Traced(Wrapper):
    """A plain array and its value in the program that is being traced."""

    __slots__ = ("inner", "value")

    def __init__(self, inner: Any, value: Value) -> None:
        self.inner, self.value = inner, value

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """The array in another dtype, logged as a step."""
        return TRACED.astype(self, dtype)

    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The largest elements along axes, logged as a step."""
        return TRACED.max(self, axis=axis, keepdims=keepdims)

    def _refuse(self, *args: Any, **keywords: Any) -> Any:
        if current_trace() is None:
            raise TraceError(f"{user_line()}: {LEFT}")
        raise TraceError(
            f"{user_line()}: a value was asked for while gg.function traces the function, which "
            "runs only once: whatever depends on the value would be fixed for all later calls. "
            "Choose between values with gg.where, between computations with gg.cond, loop with "
            "gg.while_loop or gg.scan, print values with gg.debug.print, or compute this outside "
            "of the function."
        )

    __str__ = _refuse  # print(x) would print once; debuggers call __repr__

    def __repr__(self) -> str:
        return f"<traced {self.dtype}{list(self.shape)}>"


add_operators(Traced, TRACED)


def traced_reading(op: Any) -> Callable[..., Any]:
    """An op's function on plain arrays, some of them Traced."""
    names = tuple(op.signature.parameters)

    def run(*args: Any, **keywords: Any) -> Any:
        bound = {**op.params, **dict(zip(names, args, strict=False)), **keywords}
        arrays = [bound.pop(n, None) for n in op.arrays]
        xp = reading(*(arrays[0] if op.variadic else arrays))
        if xp.nesting > TRACED.nesting:  # one became Batched inside the formula
            return getattr(xp, op.name)(*args, **keywords)
        trace = current_trace()
        if trace is None:
            raise TraceError(f"{user_line()}: {op.name}: {LEFT}")
        return trace.step(op, arrays, bound)

    return run


# ---- the trace that a thread is in --------------------------------------------------------


class _Current(threading.local):
    trace: Any = None


current = _Current()


def current_trace() -> Any:
    """The `Tracing` that this thread is in, or None."""
    return current.trace


class pause_trace:
    """Pause this thread's trace in a ``with`` block."""

    def __enter__(self) -> None:
        self._trace, current.trace = current.trace, None

    def __exit__(self, *exc: object) -> None:
        current.trace = self._trace


def unwrap_to_traced(array: Any) -> Any:
    """The Traced array inside other wrappers, or else the library's array."""
    while type(array) is not Traced and hasattr(array, "inner"):
        array = array.inner
    return array


def is_traced(array: Any) -> bool:
    """Whether a plain array is Traced, perhaps inside other wrappers."""
    return type(unwrap_to_traced(array)) is Traced


def place_beside_traced(x: Tensor, arrays: Sequence[Any]) -> Tensor:
    """`x`, or a constant of the program if `x` is plain and any of `arrays` is Traced."""
    trace = current_trace()
    if trace is None or READINGS[type(x._data)].nesting or not any(map(is_traced, arrays)):
        return x
    return tensor_with_id(Traced(x._data, trace.place(x._data)), x._id)
