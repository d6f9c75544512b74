"""SciPy's functions on Tensors: which of them run, on what, and what comes back."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.array_api import numpy_results
from gpugrad.array_api.numpy_results import as_tensors
from gpugrad.core.backend import SCALARS
from gpugrad.core.devices import adopt, default_device, device
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import GpugradError
from gpugrad.numpy.random import seeded_rng


def holds(condition: Any) -> bool:
    """A check of values; true if they are not known, in a trace or under `vmap`."""
    try:
        return bool(condition)
    except GpugradError:
        return True


def known(condition: Callable[[], Any]) -> bool:
    """A condition on values; false if they are not known, in a trace or under `vmap`."""
    try:
        return bool(condition())
    except GpugradError:
        return False


@functools.cache
def _signature_of(thing: Any) -> inspect.Signature | None:
    """The signature of a function of SciPy's that draws random numbers; None of all others."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):  # a compiled function
        return None
    return signature if set(_RNG) & set(signature.parameters) else None


_RNG = ("rng", "random_state")


def _seeded(thing: Any, args: Any, keywords: Any) -> tuple[Any, Any]:
    """The arguments of a function of SciPy's, with a seeded generator where it would choose one."""
    signature = _signature_of(thing)
    if signature is None:
        return args, keywords
    bound = signature.bind_partial(*args, **keywords)
    if any(bound.arguments.get(name) is not None for name in _RNG):
        return args, keywords
    for name in _RNG:
        bound.arguments.pop(name, None)
    bound.arguments[next(n for n in _RNG if n in signature.parameters)] = seeded_rng()
    return bound.args, bound.kwargs


def on_values(thing: Any) -> Any:
    """A compiled function that gets the values of Tensors; raises if that cuts a gradient."""
    if isinstance(thing, type) or not callable(thing):
        return thing

    @functools.wraps(thing)
    def call(*args: Any, **keywords: Any) -> Any:
        args, keywords = _seeded(thing, args, keywords)
        title = f"{getattr(thing, '__module__', 'scipy')}.{thing.__name__}"
        return _tensors(numpy_results.on_values(title, thing, args, keywords))

    call.passes_through = True  # type: ignore[attr-defined]  # ci/scipy_page asks
    return call


def from_gpu(x: Any) -> Any:
    """A Tensor on the host, for SciPy's compiled functions; others as they are."""
    return x.to_device("cpu") if isinstance(x, Tensor) and x.device.kind != "cpu" else x


def _tensors(result: Any, given: Sequence[Any] = ()) -> Any:
    """A result with Tensors for arrays, also in dictionaries; copies of the `given` ones."""
    if isinstance(result, dict):
        return type(result)({key: _tensors(value, given) for key, value in result.items()})
    if type(result) is tuple:
        return tuple(_tensors(value, given) for value in result)
    return as_tensors(result, given)


_PLAIN = (*SCALARS, str, bytes, type(None), np.ndarray, np.generic)


def _values(x: Any) -> Any:
    """An argument of SciPy's own functions; raises TypeError for what they must not get."""
    if isinstance(x, Tensor):
        array = x._read()._data
        if threads.stack or type(array) is not np.ndarray or array.dtype.kind not in "biufc":
            raise TypeError
        return array if array.ndim else array[()]  # SciPy asks np.isscalar
    if isinstance(x, (list, tuple)):
        return type(x)(map(_values, x))
    if not isinstance(x, _PLAIN):
        raise TypeError
    return x


def new_tensor(result: Any) -> Tensor:
    """A Tensor of a number or an array of NumPy's that nobody else has: on the CPU no copy."""
    return wrap(adopt(np.asarray(result), default_device()))


def plain_values(*args: Any) -> list[Any] | None:
    """The NumPy arrays of arguments that no tape, trace or vmap follows; else None."""
    try:
        return [_values(x) for x in args]
    except TypeError:
        return None


def public(function: Any, scipys: Any) -> Any:
    """A function of Tensors that creates its constants on the device of its arguments.

    SciPy's own runs on numbers, and on NumPy arrays where no tape, trace or vmap follows: it takes
    less time.
    """
    if isinstance(function, type) or not callable(function):
        return function

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        values = (*args, *keywords.values())
        if (plain := plain_values(*values)) is not None:
            named = dict(zip(keywords, plain[len(args) :], strict=True))
            return _tensors(scipys(*plain[: len(args)], **named), plain)
        for x in values:
            if isinstance(x, Tensor):
                with device(x.device):
                    return _tensors(function(*args, **keywords))
        return _tensors(function(*args, **keywords))

    call.__module__ = function.__module__.replace("scipy.", "gpugrad.scipy.", 1)
    return call
