"""Shared parts of the functions of `gg.random`: arguments, checks, noise, rounding."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from gpugrad.core import backend
from gpugrad.core.backend import TENSOR
from gpugrad.core.holders import opened
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, ShapeError, saying_where
from gpugrad.ops.random.draws import Drawn
from gpugrad.ops.random.generator import Generator, default_generator
from gpugrad.registry.on_tensors import compiled

F = TypeVar("F", bound=Callable[..., Any])
Shape = int | tuple[int, ...] | list[int] | None
Source = Generator | None
"""A generator; the default generator if None."""

Test = tuple[Callable[[Any], Any], str]

finite: Test = (np.isfinite, "finite")
not_negative: Test = (lambda v: v >= 0, "0 or more")
positive: Test = (lambda v: v > 0, "above 0")
probability: Test = (lambda v: (v >= 0) & (v <= 1), "from 0 to 1")


def check(name: str, test: Test, **arguments: Any) -> None:
    """Raise ArgumentError if a value of an argument fails the test.

    Values on a GPU are not checked: the host would have to wait for them. There, wrong ones give
    NaN (-1 where the results are integers).
    """
    for what, value in arguments.items():
        if isinstance(value, (int, float)) and test[0](value):
            continue
        value = opened(value)
        data = value._data if isinstance(value, Tensor) else value
        if isinstance(value, Tensor) and type(data) is not np.ndarray:
            continue
        values = np.asarray(data)
        holds = np.asarray(test[0](values))
        if not holds.all():
            worst = values[~holds].flat[0]
            raise ArgumentError(f"{name}: {what} must be {test[1]}, got {worst}.")


def as_shape(name: str, shape: Any) -> tuple[int, ...]:
    """A shape as a tuple; ShapeError if a length is negative."""
    if type(shape) is tuple and all(type(n) is int and n >= 0 for n in shape):
        return shape
    lengths = shape if isinstance(shape, (tuple, list)) or np.ndim(shape) else (shape,)
    try:
        lengths = tuple(operator.index(n) for n in lengths)
    except TypeError:
        raise ArgumentError(
            f"{name}: shape={shape!r:.60} must be an int or a tuple of ints. See "
            f"help(gg.random.{name}) for the order of the arguments: most take the shape first."
        ) from None
    if any(n < 0 for n in lengths):
        raise ShapeError(f"{name}: a shape has no negative lengths, got {lengths}.")
    return lengths


def shape_first(function: F) -> F:
    """Decorate a random function: its errors name it, and it refuses NumPy's order of arguments.

    ``normal(0, 1, 3)`` is three numbers in NumPy and would be none here, without a word.
    """
    parameters = inspect.signature(function).parameters.values()
    first, *others = (p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
    name = function.__name__

    @functools.wraps(function)
    def draw(*args: Any, **keywords: Any) -> Any:
        if len(args) > 1 and isinstance(args[0], (int, np.integer)) and not args[0]:
            has_size = len(args) > len(others)
            size = f"{args[-1]!r:.60}" if has_size else "()"
            values = args[:-1] if has_size else args
            named = ", ".join(f"{n}={v!r:.60}" for n, v in zip(others, values, strict=False))
            raise ArgumentError(
                f"{name}: the shape comes first here, and it is 0. If you mean NumPy's order, "
                f"write {name}({size}, {named}); for an empty result, {first}=(0,)."
            )
        return function(*args, **keywords)

    return saying_where(cast(F, draw))


def distribution(
    *checks: tuple[Any, ...], dtype: Any = None, wide: bool = False
) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Declare a random function by a formula ``(call, parameters...)`` of a `Call`; a decorator.

    Args:
        checks: each a test, and the names of parameters that must pass it.
        dtype: of the result, if the caller chooses none. None: results are real, as for `Call`.
        wide: as for `Call`.
    """

    def declare(formula: Callable[..., Tensor]) -> Callable[..., Tensor]:
        name, (_, *parameters) = formula.__name__, inspect.signature(formula).parameters.values()
        names = [p.name for p in parameters]

        def draw(shape: Shape, of: Any, device: Any, generator: Source, *values: Any) -> Tensor:
            given = dict(zip(names, values, strict=True))
            for test, *tested in checks:
                check(name, test, **{n: given[n] for n in tested})
            call = Call(name, shape, of or dtype, device, generator, *values, wide=wide)
            return formula(call if dtype else call.real(), *call.parameters)

        text = (
            f"lambda shape=None, {', '.join(map(str, parameters))}, *, dtype=None, device=None, "
            f"generator=None: draw(shape, dtype, device, generator, {', '.join(names)})"
        )
        function = eval(compiled(text, "eval"), {"draw": draw})
        function.__name__ = function.__qualname__ = name
        function.__doc__, function.__module__ = formula.__doc__, formula.__module__
        function.__annotations__ = {"shape": Shape, "generator": Source, "return": Tensor}
        return shape_first(function)

    return declare


class Call:
    """One call of a random function.

    Args:
        name: of the function, for messages.
        shape: of the result, without the axes of an event; None for that of the parameters.
        dtype: of the result; None for that of the parameters, float32 if they are numbers.
        device: None for that of the parameters.
        generator: the default generator if None.
        parameters: numbers, arrays or Tensors.
        events: numbers of axes at the end of each parameter that belong to one sample; 0 by
            default.
        wide: compute in float64 and round at the end.

    Attributes:
        parameters: numbers, and Tensors of the dtype of the computation.
        shape: of the result, without the axes of an event.
    """

    def __init__(
        self, name, shape, dtype, device, generator, *parameters, events=(), wide=False
    ) -> None:
        self.name, self.generator = name, generator or default_generator()
        self._before = Drawn()
        values = [p if isinstance(p, (int, float, np.number)) else tensor(p) for p in parameters]
        self._arrays = arrays = [p for p in values if isinstance(p, Tensor)]
        self.device = arrays[0].device if device is None and arrays else device
        floats = [p.dtype for p in arrays if backend.is_inexact(p.dtype)]
        if dtype is None:
            dtype = np.result_type(*floats) if floats else np.float32
        self.dtype = backend.as_dtype(dtype)
        inexact = floats[0] if self.dtype.kind in "biu" and floats else self.dtype
        self.work = np.dtype(np.float64 if wide or inexact == np.float64 else np.float32)
        self.parameters = [self._ready(p) for p in values]
        self.shape = self._shape(shape, [*events, *[0] * len(values)])

    def _ready(self, parameter: Any) -> Any:
        if not isinstance(parameter, Tensor):
            return float(parameter)
        return parameter if parameter.dtype == self.work else TENSOR.astype(parameter, self.work)

    def _shape(self, shape: Shape, events: list[int]) -> tuple[int, ...]:
        wanted = None if shape is None else as_shape(self.name, shape)
        if wanted is not None and not self._arrays:
            return wanted
        own = [
            p.shape[: p.ndim - e] if isinstance(p, Tensor) else ()
            for p, e in zip(self.parameters, events, strict=False)
        ]
        if wanted is not None and not any(own):
            return wanted
        try:
            common = np.broadcast_shapes(*own, *([] if wanted is None else [wanted]))
        except ValueError:
            common = None
        if common is None or wanted not in (None, common):
            raise ShapeError(
                f"{self.name}: parameters of shapes {own} do not broadcast to "
                f"{'each other' if wanted is None else wanted}."
            )
        return common

    def real(self) -> Call:
        """The call itself; ArgumentError if its dtype is not real floating point."""
        if not backend.is_inexact(self.dtype) or self.dtype.kind == "c":
            raise ArgumentError(
                f"{self.name}: dtype must be real floating point, got {self.dtype}."
            )
        return self

    def noise(self, kind: str, *parameters: Any, event: tuple[int, ...] = ()) -> Tensor:
        """Noise of a kind, in the shape of the result and the dtype of the computation.

        The first noise of a call must be the one that takes the most counters.
        """
        return self.generator._draw(
            kind, self.shape + event, self.work, self.device, *parameters, before=self._before
        )

    def gamma(self, alpha: Any, *, log: bool = False, event: tuple[int, ...] = ()) -> Tensor:
        """Gamma samples or their logarithms, with the implicit gradient by `alpha`."""
        kind = "log_gamma" if log else "gamma"
        if not isinstance(alpha, Tensor):
            return self.noise(kind, alpha, event=event)
        alpha = TENSOR.broadcast_to(alpha, self.shape + event)
        fixed = TENSOR.stop_gradient(alpha)
        sample = self.noise(kind, fixed, event=event)
        return TENSOR.gamma_reparameterized(alpha, fixed, sample, log=log)

    def located(self, noise: Tensor, loc: Any, scale: Any) -> Tensor:
        """Noise times a scale, plus a location, in the dtype of the result."""
        if not (isinstance(scale, float) and scale == 1):
            noise = scale * noise
        if not (isinstance(loc, float) and loc == 0):
            noise = loc + noise
        return self.rounded(noise)

    def rounded(self, x: Tensor) -> Tensor:
        """The result in its dtype."""
        return x if x.dtype == self.dtype else TENSOR.astype(x, self.dtype)
