"""Where the first NaN or infinity of a computation comes from, within `gg.debug.nans`.

`checks` is empty otherwise, so that nothing costs time. Within the block every op that the user
calls checks its results, and so does every rule of a gradient. If a result has a NaN while the
inputs have none, the NaN arises there. A check inside of a formula would be wrong: formulas compute
infinities and select other values afterwards. In a trace a check becomes a step.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from threading import get_ident
from typing import Any

import numpy as np

from gpugrad.core import devices
from gpugrad.core.backend import ARRAYS, READINGS, innermost_array, is_inexact
from gpugrad.core.forking import drop_other_entries, in_child
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.listening import recorders
from gpugrad.core.settings import Block, enter, leave, numerics
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.core.user_code import user_line
from gpugrad.errors import NumericsError
from gpugrad.trace.array import Traced, current_trace, is_traced, unwrap_to_traced
from gpugrad.trace.program import Step

checks: list[_Block] = []
"""One entry for each `checking` block of any thread. Ops look at this list, then at `numerics`."""

in_child(functools.partial(drop_other_entries, checks))

_MOST_LINES = 100_000


_no_lines: dict[int, str] = {}
_lines: ContextVar[dict[int, str]] = ContextVar("gpugrad lines", default=_no_lines)
"""By serial number, where a result was computed; each outermost `checking` block has its own."""


class _Block:
    """A `checking` block, as an entry of `checks` and `recorders`."""

    def __init__(self) -> None:
        self._thread = get_ident()


@contextlib.contextmanager
def checking(mode: str) -> Iterator[None]:
    """Check what this task computes for "nan", or for "inf", which means both."""
    over: Any = "ignore" if mode == "inf" else None  # the error says more than NumPy's warning
    block, lines = _Block(), _lines.get()
    if not numerics():
        _lines.set({})
    enter("numerics", mode)
    checks.append(block)
    recorders.append(block)  # ops look at `checks` only if there are recorders
    try:
        with np.errstate(invalid="ignore", divide=over, over=over):
            yield
    finally:
        recorders.remove(block)
        checks.remove(block)
        leave("numerics")
        _lines.set(lines)


def unchecked() -> Block:
    """Check nothing in a ``with`` block, in this task."""
    return Block("numerics", "")


# ---- what ops and rules call -------------------------------------------------------------


def check_op(op: Any, out: Any, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    """Check what an op of the user has computed; remember its line for its gradient."""
    if not numerics():
        return
    line, lines = user_line(), _lines.get()
    for result in out if isinstance(out, tuple) else (out,):
        if result._id:
            lines[result._id] = line
            if len(lines) > _MOST_LINES:
                del lines[next(iter(lines))]
    check(op.name, out, inputs, params, line)


def checked_composite(op: Any, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Any:
    """The result of a composite op, which is checked as a whole."""
    with unchecked():
        out = op.eager(*inputs.values(), **params)
    check_op(op, out, inputs, params)
    return out


def line_of_gradient(name: str, out: Any) -> str:
    """The user's line, and that of the op `name` whose gradient is computed.

    Args:
        name: the op's name.
        out: as in the entry of a log.
    """
    line = _lines.get().get(out if type(out) is int else out[0][0])
    return f"{user_line()}, in the gradient of {name}" + (f" at {line}" if line else "")


def check(
    name: str,
    results: Any,
    inputs: Mapping[str, Any],
    params: Mapping[str, Any] | None = None,
    line: str = "",
) -> None:
    """Check results if this thread is in a `checking` block; in a trace at each replay.

    Args:
        name: of the op that has computed them.
        results: arrays or Tensors, or a tuple or list of them.
        inputs: the same by name, or numbers.
        params: other arguments of the op.
        line: the line that called it; the user's if "".

    Raises:
        NumericsError: a NaN or an infinity arises.
    """
    if not numerics():
        return
    named = [("result", a) for a in _arrays(results)]
    n = len(named)
    named += [(key, a) for key, value in inputs.items() for a in _arrays(value)]
    others = [a for value in (params or {}).values() for a in _arrays(value)]
    explained = any(has_nan_or_inf(innermost_array(a)) for a in others)
    run = Check(name, [key for key, _ in named], n, explained, line or user_line())
    trace, arrays = current_trace(), [a for _, a in named]
    if trace is None or not any(map(is_traced, arrays[:n])):
        run(*[wrap(innermost_array(a)) for a in arrays])
        return
    if not trace.abstract:
        run(*[wrap(innermost_array(a)) for a in arrays])
    log_check(trace, run, [wrap(unwrap_to_traced(a)) for a in arrays])


class Check:
    """One check, as a function of the results and the inputs.

    Args:
        name: of the op.
        names: of the results and the inputs.
        n: the number of results.
        explained: whether a parameter of the op is the reason for infinities.
        line: the user's.
    """

    def __init__(self, name: str, names: list[str], n: int, explained: bool, line: str) -> None:
        self._name, self._names, self._n, self._line = name, names, n, line
        self._explained, self._mode = explained, numerics()

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Raise if something arises; there are no results."""
        arrays = [t._data for t in tensors]
        if self._arises(arrays[: self._n], arrays[self._n :]):
            described = zip(self._names, arrays, strict=True)
            text = "\n".join(f"  {name}: {summary(a)}" for name, a in described)
            raise NumericsError(
                f"{self._name}: a NaN or an infinity arises here, at {self._line}.\n{text}\n"
                "Where the formula does not apply, replace its inputs with gg.where first. If an "
                "infinity is meant, use gg.debug.nans(infinities=False)."
            )
        return []

    def _arises(self, results: list[Any], inputs: list[Any]) -> bool:
        if any(_any("isnan", a) for a in results):
            return not any(_any("isnan", a) for a in inputs)
        if self._mode == "inf" and any(_any("isinf", a) for a in results):
            return not self._explained and not any(map(has_nan_or_inf, inputs))
        return False


def log_check(trace: Any, run: Check, tensors: list[Tensor]) -> None:
    """Add a check to the program that is being traced. It is no effect: it changes nothing."""
    args = [trace.place(t._data) for t in tensors]
    step = Step(None, args, {}, [], name="check", call=run, undo=lambda: lambda: None)
    trace.program.steps.append(step)


# ---- arrays ------------------------------------------------------------------------------


def _arrays(value: Any) -> Iterator[Any]:
    """The arrays in a value, also in lists and Tensors; NumPy's for a number."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _arrays(part)
    elif isinstance(value, IndexedSlices):
        yield from _arrays(value.values)
    elif isinstance(value, Tensor):
        yield value._data
    elif type(value) in ARRAYS or type(value) is Traced:
        yield value
    elif isinstance(value, (float, complex, np.generic)):
        yield np.asarray(value)


def _any(test: str, array: Any) -> bool:
    if not is_inexact(array.dtype):
        return False
    xp = READINGS[type(array)]
    with devices.formulas_on(array):
        return bool(xp.any(getattr(xp, test)(array)))


def has_nan_or_inf(array: Any) -> bool:
    """Whether a plain array has a NaN or an infinity."""
    return _any("isnan", array) or _any("isinf", array)


def summary(array: Any) -> str:
    """The dtype, shape, device and range of an array, and how many elements are not finite."""
    values = devices.host(array)
    if values.dtype.kind == "V":  # bfloat16
        values = values.astype(np.float32)
    text = f"{array.dtype} {tuple(array.shape)} on {devices.device_of(array)}"
    finite = values[np.isfinite(values)] if values.dtype.kind in "fc" else values.reshape(-1)
    if finite.dtype.kind == "c":
        text += ", absolute values"
        finite = np.abs(finite)
    if finite.size:
        text += f" from {finite.min():g} to {finite.max():g}"
    if values.dtype.kind in "fc":
        text += f", {np.isnan(values).sum()} NaN, {np.isinf(values).sum()} infinite"
    return text
