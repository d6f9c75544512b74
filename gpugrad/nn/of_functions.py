"""Layers that only call a function of `gg.nn`, which defines them by `layer_of`; and PReLU."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from gpugrad.core.arguments import COUNT, takes
from gpugrad.core.backend import as_dtype
from gpugrad.core.convert import constant
from gpugrad.core.known_as import keyword_error
from gpugrad.core.tensor import Tensor
from gpugrad.core.variable import Variable
from gpugrad.nn import functional
from gpugrad.nn.module import Module


class FunctionLayer(Module):
    """A function of one array with fixed options, which are attributes of the layer."""

    _function: ClassVar[Callable[..., Any]]
    _parameters: ClassVar[inspect.Signature]

    def _set_options(self, *args: Any, **keywords: Any) -> None:
        name = type(self).__name__
        if (wrong := keyword_error(name, self._parameters.parameters, keywords)) is not None:
            raise wrong
        try:
            options = self._parameters.bind(*args, **keywords)
        except TypeError as error:
            raise TypeError(f"{name}: {error}.") from None
        options.apply_defaults()
        self.__dict__.update(options.arguments)

    def forward(self, x: Any) -> Tensor:
        """Call the function."""
        options = {name: getattr(self, name) for name in self._parameters.parameters}
        return type(self)._function(x, **options)

    def _repr_args(self) -> str:
        return ", ".join(
            f"{name}={getattr(self, name)!r}"
            for name, p in self._parameters.parameters.items()
            if getattr(self, name) is not p.default
        )


def layer_of(name: str, function: Callable[..., Any]) -> type[FunctionLayer]:
    """The layer class that calls a function; its options are the function's, without the array."""
    _, *options = inspect.signature(function).parameters.values()

    def init(self: FunctionLayer, *args: Any, **keywords: Any) -> None:
        self._set_options(*args, **keywords)

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    init.__name__, init.__qualname__ = "__init__", f"{name}.__init__"
    init.__signature__ = inspect.Signature([own, *options])  # type: ignore[attr-defined]  # editors
    doc = f"The layer that calls `gg.nn.{function.__name__}`, whose options it takes.\n"
    return type(
        name,
        (FunctionLayer,),
        {
            "__doc__": doc + _example(name, function),
            "__init__": init,
            "__module__": "gpugrad.nn",  # which defines it
            "_function": staticmethod(function),
            "_parameters": inspect.Signature(options),
        },
    )


def _example(name: str, function: Callable[..., Any]) -> str:
    """The function's example as the layer's: ``pool(x, 2)`` becomes ``Pool(2)(x)``."""
    code, _, shown = (function.__doc__ or "").partition(">>> print(gg.")[2].partition("\n")
    called, _, arguments = code.partition("(")
    if not called.endswith(function.__name__):
        return ""
    depth, end = 0, 0
    for end, letter in enumerate(arguments):  # noqa: B007  # of the array, the first argument
        depth += (letter in "([") - (letter in ")]")
        if depth < 0 or (depth == 0 and letter == ","):
            break
    options = arguments[end + 1 : -2].strip()
    return f"\n>>> print(gg.nn.{name}({options})({arguments[:end]}))\n{shown}"


class PReLU(Module):
    """max(x, 0) + weight * min(x, 0), with a trainable slope for each channel or one for all.

    He et al. 2015, "Delving Deep into Rectifiers".

    Args:
        channels: number of slopes: 1, or the length of the channels' axis.
        initial: first value of the slopes.
        axis: axis of the channels.
        dtype: dtype of the Variable.

    Attributes:
        weight: Variable of shape (channels,).

    >>> print(gg.nn.PReLU()([-4.0, 4.0]))
    [-1.  4.]
    """

    @takes(channels=COUNT)
    def __init__(
        self, channels: int = 1, initial: float = 0.25, *, axis: int = 1, dtype: Any = "float32"
    ) -> None:
        self.axis = axis
        self.weight = Variable(constant(initial, as_dtype(dtype), (channels,)))

    def forward(self, x: Any) -> Tensor:
        """Apply `gg.nn.prelu`; raises as it does."""
        x = self._input(x, self.weight)
        axis = self.axis if self.weight.size > 1 else -1
        return functional.prelu(x, self.weight, axis=axis)
