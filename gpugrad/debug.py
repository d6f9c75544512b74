"""Debugging: print values inside traced functions, and find where a NaN comes from."""

from __future__ import annotations

import builtins
import contextlib
from typing import Any

from gpugrad.autodiff.batched import levels_running
from gpugrad.autodiff.borders import examples
from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.known_as import answer_missing
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.core.user_code import user_line
from gpugrad.errors import NumericsError, saying_where
from gpugrad.trace.array import current_trace, unwrap_to_traced
from gpugrad.trace.numerics import checking, has_nan_or_inf, summary

__all__ = ["check_numerics", "nans", "print"]

answer_missing(__name__)


def __dir__() -> list[str]:
    return __all__


@saying_where
def nans(*, infinities: bool = True) -> contextlib.AbstractContextManager[None]:
    """Raise at the first NaN or infinity that arises in a ``with`` block, naming its origin.

    It arises in an op whose result has one while its inputs have none: in the forward pass, in a
    gradient or in an optimizer's step. The error names that op, the range of its inputs, and your
    line. A NaN or an infinity that comes from outside passes (a mask of ``-inf``, missing data):
    `check_numerics` refuses these too. Gradients that would be NaN only in elements that `gg.where`
    has masked are no error, as they are none outside of the block.

    A `gg.function` is traced again for the block, and its steps run one by one, without fusion and
    without a CUDA graph. If one raises, Variables, optimizers and random generators are what they
    were before the call. Results are the same as outside, but everything takes longer, because on
    a GPU the host waits for each op. Other threads and asyncio tasks are not checked.

    ``np.errstate(all="raise")`` does not find what this finds: it raises in eager ops on the CPU,
    but a GPU, gradients, optimizers and replays of a `gg.function` ignore it.

    Args:
        infinities: whether an infinity raises, too.

    Raises:
        NumericsError: something arises; it is also a FloatingPointError.

    >>> x = gg.constant([0.0, 1.0])
    >>> try:
    ...     with gg.debug.nans():
    ...         y = gg.sum(gg.exp(gg.log(x)))
    ... except FloatingPointError as error:
    ...     str(error).partition(",")[0]
    'log: a NaN or an infinity arises here'
    """
    return checking("inf" if infinities else "nan")


@saying_where
def check_numerics(x: Tensor, message: str) -> Tensor:
    """Return `x`, or raise if it has a NaN or an infinity; in a traced function at each replay.

    The gradient flows through and is not checked, as in TensorFlow.

    Args:
        x: Tensor.
        message: begins the error's message.

    Raises:
        NumericsError: `x` has one; it is also a FloatingPointError.

    >>> @gg.function
    ... def f(x):
    ...     return gg.debug.check_numerics(gg.log(x), "log of the input")
    >>> f(gg.constant([1.0])).tolist()
    [0.0]
    >>> try:
    ...     y = f(gg.constant([0.0]))
    ... except FloatingPointError as error:
    ...     str(error).partition(";")[0]
    'log of the input: float32 (1,) on cpu, 0 NaN, 1 infinite'
    """
    where, x = user_line(), tensor(x)

    def check(value: Tensor) -> list[Tensor]:
        if has_nan_or_inf(value._data):
            raise NumericsError(f"{message}: {summary(value._data)}; checked at {where}.")
        return []

    value, trace = wrap(unwrap_to_traced(x._data)), current_trace()
    with recording_stopped():
        if trace is None:
            check(value)
        else:
            trace.effect("check_numerics", check, [value], undo=lambda: lambda: None)
    return x


@saying_where
def print(format: str, /, *args: Any, **keywords: Any) -> None:
    """Print values; in a traced function at each replay, in the order of the calls.

    Args:
        format: a format string, as for `str.format`: ``"{} {name:.3f}"``.
        args, keywords: values for its fields. A Tensor is formatted as a NumPy array, one of shape
            ``()`` as a Python number; other values are those at the time of tracing.

    Under `gg.vmap` there is a line for each example, and the innermost vmap varies fastest.
    Gradients are not affected. Under a tape, a traced function that prints is called instead of
    replayed. When `gg.cond` or a loop is differentiated twice in a traced function, what it
    recomputes is printed again.

    >>> @gg.function
    ... def f(x):
    ...     gg.debug.print("x is {x}, its sum {:.2f}", gg.sum(x), x=x)
    ...     return x * 2
    >>> y = f(gg.constant([1.0, 2.0]))
    x is [1. 2.], its sum 3.00
    >>> y = f(gg.constant([3.0, 4.0]))
    x is [3. 4.], its sum 7.00
    """
    names = list(keywords)
    arguments = [*args, *keywords.values()]
    positions = [k for k, value in enumerate(arguments) if isinstance(value, Tensor)]

    def print_line(*tensors: Tensor) -> list[Tensor]:
        values = list(arguments)
        for k, t in zip(positions, tensors, strict=True):
            values[k] = t.numpy() if t.ndim else t.item()
        n = len(args)
        builtins.print(format.format(*values[:n], **dict(zip(names, values[n:], strict=True))))
        return []

    values = [wrap(arguments[k]._read()._data) for k in positions]
    trace = current_trace()
    with recording_stopped():
        for line in _examples(values):
            if trace is None:
                print_line(*line)
            else:
                trace.effect("print", print_line, line)


def _examples(tensors: list[Tensor]) -> list[list[Tensor]]:
    """The Tensors of each example of the running vmaps, the outermost vmap varying slowest."""
    lines = [tensors]
    for level in levels_running():
        if any(level.is_in(t._data) for line in lines for t in line):
            parts = [[examples(t, level) for t in line] for line in lines]
            lines = [list(each) for columns in parts for each in zip(*columns, strict=True)]
    return lines
