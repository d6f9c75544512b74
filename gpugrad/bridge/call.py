"""A call with arrays of one library, of a function of arrays of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core import nest
from gpugrad.core.backend import BFLOAT16, READINGS, is_inexact
from gpugrad.core.dlpack import from_dlpack
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import ArgumentError, DeviceError, DTypeError, GpugradError, TraceError
from gpugrad.transforms.accesses import Accesses
from gpugrad.transforms.derivatives import vjp

Function = Callable[..., Any]


class Call:
    """A call of a function with nested arguments, as a function of the arrays among them.

    Attributes:
        title: what errors begin with.
        arrays: the leaves of the arguments that are arrays.
    """

    def __init__(self, bridge: str, f: Function, args: Any, keywords: Any, kinds: Any) -> None:
        self.title = f"{bridge}({getattr(f, '__name__', type(f).__name__)})"
        self._f, self._arguments = f, (args, keywords)
        self._leaves = nest.flatten(self._arguments)
        self._places = [k for k, x in enumerate(self._leaves) if isinstance(x, kinds)]
        self.arrays = [self._leaves[k] for k in self._places]
        self._result: Any = None

    def __call__(self, arrays: Sequence[Any], kinds: Any) -> list[Any]:
        """The arrays in the result of the function for other arrays."""
        leaves = list(self._leaves)
        for k, x in zip(self._places, arrays, strict=True):
            leaves[k] = x
        args, keywords = nest.pack(self._arguments, leaves)
        self._result = self._f(*args, **keywords)
        self._kinds = kinds
        return [x for x in nest.flatten(self._result) if isinstance(x, kinds)]

    def packed(self, outs: Sequence[Any]) -> Any:
        """The last result, with other arrays in it."""
        rest = iter(outs)
        leaves = nest.flatten(self._result)
        return nest.pack(
            self._result, [next(rest) if isinstance(x, self._kinds) else x for x in leaves]
        )

    def ours(self, what: str, k: int, x: Any) -> Tensor:
        """An array of another library as a Tensor of the same memory, which no write reaches."""
        try:
            return wrap(from_dlpack(x)._data)  # it has a base: a write copies first
        except (GpugradError, BufferError, RuntimeError, TypeError, ValueError) as error:
            about = f"{x.dtype} {tuple(x.shape)} on {x.device}"
            kind = DeviceError if isinstance(error, (DeviceError, ValueError)) else DTypeError
            raise kind(f"{self.title}: {what} {k} ({about}): {error}") from error

    def lent(self, what: str, k: int, x: Tensor, read: Function) -> Any:
        """A Tensor as another library's array of the same memory, which `read` makes.

        A write to `x` copies first: the array has a reference to its memory.
        """
        data = x._data
        if READINGS[type(data)].nesting:
            raise TraceError(
                f"{self.title}: another library cannot run inside gg.function or gg.vmap. Call it "
                "outside, or write this part with gpugrad's ops."
            )
        try:
            if type(data) is not np.ndarray:
                return read(data.view())
            if data.dtype == BFLOAT16:
                return read(wrap(data.copy()))
            if any(n < 0 for n in data.strides):  # torch has none
                data = data.copy()
            try:
                return read(data.view())
            except BufferError:  # JAX's DLPack does not know of arrays that are read-only
                return read(data.copy())
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            about = f"{x.dtype} {x.shape} on {x.device}"
            raise DTypeError(f"{self.title}: {what} {k} ({about}): {error}") from error

    def pull(self, wanted: Sequence[int]) -> Function:
        """The function of arguments and upstream gradients that returns the gradients."""

        def pulled(xs: Sequence[Tensor], gs: Sequence[Tensor]) -> list[Tensor]:
            def of_wanted(*ws: Tensor) -> list[Tensor]:
                return [y for y in self(replaced(xs, wanted, ws), Tensor) if is_inexact(y.dtype)]

            with Accesses() as read:
                _, back = vjp(of_wanted, *[xs[k] for k in wanted])
            self.no_variables(read)
            return list(back(list(gs)))

        return pulled

    def no_variables(self, read: Accesses) -> None:
        """Raise if a function that is differentiated has read Variables: their gradient is lost."""
        if names := [v.name for v in read.variables.values()]:
            raise ArgumentError(
                f"{self.title}: it reads the Variables {names!s:.60}, whose gradient would be "
                "lost. Pass their values as arguments, as by gg.nn.functional_call, or freeze them."
            )


def replaced(xs: Sequence[Any], places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """A list with other values in some places."""
    by_place = dict(zip(places, values, strict=True))
    return [by_place.get(k, x) for k, x in enumerate(xs)]


def inexact(arrays: Sequence[Any]) -> list[int]:
    """The positions of Tensors that have gradients."""
    return [k for k, x in enumerate(arrays) if is_inexact(x.dtype)]
