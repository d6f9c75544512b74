"""An op's function on the plain arrays of one library."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core import devices
from gpugrad.core.backend import ARRAYS, HALF, NUMPY, SCALARS, Reading
from gpugrad.errors import DeviceError
from gpugrad.kernels.codegen import for_ops
from gpugrad.kernels.cpu.large import LARGE, elements, kernels, on_threads


def bare_function(op: Any, xp: Reading) -> Callable[..., Any]:
    """The library's own function or the op's formula, and before it a kernel if there is one."""
    function: Callable[..., Any]
    if op.is_library_function:
        function = getattr(xp.lib, op.forward.name)
    elif op.numpy is not None and xp is NUMPY:
        function = op.numpy
    else:
        function = op.body(xp)
    if op.kind == "elementwise" and xp is not NUMPY:
        function = for_ops.kernel_first(op, function)
    if op.cuda is not None and xp is not NUMPY:
        function = _kernel_first(functools.partial(op.cuda, xp), function)
    if op.cpu is not None and xp is NUMPY:
        formula = function
        if op.ufunc is not None:
            formula = functools.partial(_numpys, function)
        elif not op.is_library_function:
            formula = functools.partial(op.forward, xp)
        size = elements if op.kind == "elementwise" and len(op.arrays) > 1 else _first
        launcher = _loop_in_c(op) if op.cpu is True else functools.partial(op.cpu, xp)
        small = function if op.is_library_function else formula
        function = _kernel_first(launcher, formula, op.large, small, size)
        if not (op.native_half or op.is_library_function):
            function = through_float32(function, op.values, op.widens)
    if xp is not NUMPY and devices.gpu_count() > 1:
        function = _on_one_gpu(op.name, function)
    return function


def _kernel_first(
    kernel: Callable[..., Any],
    formula: Callable[..., Any],
    large: int = 0,
    small: Callable[..., Any] | None = None,
    size: Callable[[Sequence[Any]], int] = elements,
) -> Callable[..., Any]:
    """The kernel's launcher, or the formula if the launcher declines or the array is not large.

    `small` is the formula where it need not look at the size, which `size` gives.
    """
    small = small or formula

    def kernel_first(*args: Any, **params: Any) -> Any:
        try:
            result = kernel(*args, **params)
        except ctypes.ArgumentError:  # C does not take a parameter: the formula says why
            result = NotImplemented
        return formula(*args, **params) if result is NotImplemented else result

    def kernel_of_large(*args: Any, **params: Any) -> Any:
        return kernel_first(*args, **params) if size(args) >= large else small(*args, **params)

    return kernel_of_large if large else kernel_first


def _first(args: Sequence[Any]) -> int:
    """The size of the first argument, if that is an array of NumPy."""
    return args[0].size if type(args[0]) is np.ndarray else 0


def _numpys(ufunc: Any, *args: Any, **params: Any) -> Any:
    """A ufunc where the loop in C declines: on threads if its arrays are as large as that needs."""
    is_large = not params and elements(args) >= LARGE
    return on_threads(ufunc, *args) if is_large else ufunc(*args, **params)


def _loop_in_c(op: Any) -> Callable[..., Any]:
    """The launcher of an op's formula in C."""
    own: Any = None

    def loop(*args: Any, **params: Any) -> Any:
        nonlocal own
        if own is None:
            own = kernels("elementwise").forward_of(op)
        return own(args, params)

    return loop


def with_loop(op: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
    """A bound rule of an elementwise op, which is a loop in C for large arrays."""
    own, large = functools.cache(lambda: kernels("elementwise").rule_of(op, rule)), op.large

    def rule_of_large(xp: Any, g: Any, saved: Any, params: Any) -> Any:
        if type(g) is np.ndarray and g.size >= large and xp is NUMPY:
            result = own()((g, *saved), params)
            if result is not NotImplemented:
                return result
        return rule(xp, g, saved, params)

    return rule_of_large


_NEVER_HALF = frozenset((*SCALARS, type(None), str))
_SHORT = (np.dtype(np.int16), np.dtype(np.uint16))


_EXACT = frozenset("fdFDlqi?")
"""Dtypes, by their letters, in which formulas compute as they are written."""
_SMALL = frozenset("bBhHILQ")
"""Integers whose differences and sums would wrap around in a formula: 3 - 5 is 254 in uint8."""


def widened(x: Any) -> Any:
    """An array of integers that would wrap around as int64, or float64; anything else as it is."""
    if type(x) is np.ndarray and x.dtype.kind == "f":  # most
        return x
    if isinstance(x, (list, tuple)):
        return [widened(v) for v in x]
    dtype = getattr(x, "dtype", None)
    if dtype is None or (dtype.char not in _SMALL and dtype.char != "i"):
        return x
    is_long = dtype.char in "LQ" and type(x) is np.ndarray
    return x.astype(float if is_long and x.size and x.max() >> 63 else np.int64)


def through_float32(
    function: Callable[..., Any], values: Sequence[int] = (), widens: bool = False
) -> Callable[..., Any]:
    """Compute with 16-bit floats as a GPU kernel does: in float32, rounded once at the end.

    All ops do so except those with ``native_half``. The arguments at the positions `values` are not
    indices: with ints of 16 bits, which a 16-bit float cannot hold, the result stays float32. If it
    `widens`, a function that makes floats of integers gets integers that do not wrap around.
    """

    def half(x: Any) -> bool:
        if isinstance(x, (list, tuple)):
            for v in x:  # noqa: SIM110  # `any` would take longer
                if (type(v) is not ndarray or v.itemsize == 2) and half(v):
                    return True
            return False
        return getattr(x, "dtype", None) in HALF

    def widen(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return [widen(v) for v in x]
        return x.astype(np.float32) if half(x) else x

    def dtypes(args: Any) -> set[Any]:
        inner = (dtypes(a) if isinstance(a, (list, tuple)) else {getattr(a, "dtype", None)}
                 for a in args)  # fmt: skip
        return set().union(*inner)

    def narrow(r: Any, dtype: Any) -> Any:
        if isinstance(r, tuple):
            return tuple(narrow(v, dtype) for v in r)
        return r.astype(dtype) if r.dtype == np.float32 else r

    ndarray = np.ndarray

    def wraps(x: Any) -> bool:
        if isinstance(x, (list, tuple)):
            return any(map(wraps, x))
        dtype = getattr(x, "dtype", None)
        return dtype is not None and dtype.char in _SMALL

    def rounded_once(*args: Any, **params: Any) -> Any:
        for a in args:
            if type(a) is ndarray:
                if a.dtype.char not in _EXACT:
                    break
            elif type(a) not in _NEVER_HALF and (half(a) or (widens and wraps(a))):
                break
        else:
            return function(*args, **params)
        if not half(args):
            result = function(*args, **params)
            if not widens or any(map(_is_float, args)):  # beside a float they are indices
                return result
            again = wraps(args) and _is_float(result)
            return function(*map(widened, args), **params) if again else result
        floats = {d for d in dtypes(args) if d is not None and d.kind in "fcV"}
        result = function(*(widen(a) for a in args), **params)
        if len(floats) > 1 or not dtypes(args[i] for i in values if i < len(args)).isdisjoint(
            _SHORT
        ):
            return result
        return narrow(result, floats.pop())

    return rounded_once


def _is_float(x: Any) -> bool:
    """Whether an array, or the first one of several, holds floats."""
    first = x[0] if isinstance(x, (list, tuple)) and x else x
    return getattr(getattr(first, "dtype", None), "kind", None) in ("f", "c", "V")


def beside_number(function: Callable[..., Any], x: Any, y: Any) -> Any:
    """The result of an elementwise function, which a Python number does not widen from bfloat16.

    For composites with ``native_half``; in the others 16-bit floats are float32.
    """
    if type(x) in SCALARS or type(y) in SCALARS:
        function = through_float32(function)
    return function(x, y)


def wide(xp: Reading, x: Any) -> Any:
    """A 16-bit array as float32, for formulas that do their own widening; None stays None."""
    return xp.astype(x, "float32") if x is not None and x.dtype in HALF else x


def typed(*args: Any) -> tuple[Any, ...]:
    """Arrays and Python numbers, which get the dtype that a ufunc's result would have.

    For formulas that apply a function to a number: ``np.exp(0.5)`` is a float64, no longer a weak
        number.
    """
    if SCALARS.isdisjoint(map(type, args)):
        return args
    dtype = np.result_type(*(getattr(a, "dtype", a) for a in args))
    return tuple(dtype.type(a) if type(a) in SCALARS else a for a in args)


def _on_one_gpu(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """With several GPUs: run on the GPU of the arrays, and refuse arrays on two GPUs."""

    def on_one_gpu(*args: Any, **params: Any) -> Any:
        lists = (a if isinstance(a, (list, tuple)) else (a,) for a in args)
        arrays = [a for part in lists for a in part if type(a) in ARRAYS]
        if len({int(a.device.id) for a in arrays}) > 1:
            where = " and ".join(str(devices.device_of(a)) for a in arrays)
            raise DeviceError(
                f"{name}: its arrays are on {where}. Move one with x.to_device(device)."
            )
        if not arrays:  # numbers
            return function(*args, **params)
        with devices.formulas_on(arrays[0]):
            return function(*args, **params)

    return on_one_gpu
