"""Tracing on shapes: writes a program without holding its values.

An op runs once, on placeholders, so its own formula says which shapes and dtypes it returns, and no
op needs a shape rule. Its results become placeholders in turn: zeros that take no memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core import devices
from gpugrad.core.backend import NUMPY, READINGS, Reading, may_share
from gpugrad.core.for_shapes import for_shapes
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.trace.array import Traced, is_traced
from gpugrad.trace.program import NotReplayable, Program, Undo
from gpugrad.trace.tracing import Tracing

Specs = Sequence[tuple[tuple[int, ...], Any]]
"""Shape and dtype of each of several arrays."""

_SMALL = 1 << 12  # bytes of an array that is kept as it is


def blank_arrays(specs: Specs, device: devices.Device) -> list[Any]:
    """Zeros on a device, as placeholders for arrays of those shapes and dtypes."""
    arrays = [np.zeros(shape, dtype) for shape, dtype in specs]
    return [a if a.dtype == object else devices.put(a, device) for a in arrays]


def run_for_shapes(
    function: Callable[..., Any], arrays: list[Any], params: dict[str, Any]
) -> tuple[Any, bool]:
    """An op's results on these arrays, or on harmless values if it rejects the arrays.

    Returns:
        The results, and whether they are those of these arrays.
    """
    with np.errstate(all="ignore"):
        try:
            return function(*arrays, **params), True
        except Exception:
            try:
                return function(*_harmless(arrays), **_harmless(params)), False
            except Exception:  # it rejects something else
                pass
            raise


def _harmless(x: Any) -> Any:
    """Replacements for the values of `x` that no op rejects: 0, 1, and the identity."""
    if isinstance(x, dict):
        return {k: _harmless(v) if k == "index" else v for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(_harmless(v) for v in x)
    if type(x) is not np.ndarray:
        return x
    if x.dtype.kind in "iub":
        return np.zeros_like(x)
    is_square = x.ndim > 1 and x.shape[-1] == x.shape[-2]
    value = np.eye(x.shape[-1], dtype=x.dtype) if is_square else x.dtype.type(1)
    return np.broadcast_to(value, x.shape).copy()


def _of_one_element(function: Callable[..., Any], arrays: list[Any], params: Any) -> Any:
    """The result of an elementwise op on the first elements, broadcast; None for a small one."""
    plain = [a for a in arrays if type(a) is np.ndarray]
    shape = plain[0].shape if plain else ()
    if any(a.shape != shape for a in plain):
        try:
            shape = np.broadcast_shapes(*(a.shape for a in plain))
        except ValueError:  # the op raises it
            return None
    if math.prod(shape) * 16 < _SMALL:
        return None
    first = [a[(slice(1),) * a.ndim] if type(a) is np.ndarray else a for a in arrays]
    with np.errstate(all="ignore"):
        result = function(*first, **params)
    fits = type(result) is np.ndarray and result.shape == (1,) * len(shape)
    return np.broadcast_to(result, shape) if fits and math.prod(shape) else None


def _like(op: Any, arrays: list[Any], params: dict[str, Any]) -> Any:
    """A key that calls with results of one shape and dtype share; None if there is none."""

    def of(a: Any) -> Any:
        if isinstance(a, (list, tuple)):
            return (*map(of, a),)
        return (a.shape, a.dtype, a.strides) if type(a) is np.ndarray else (type(a), a)

    key = (op.name, of(arrays), of([*params.items()]))
    try:
        hash(key)
    except TypeError:  # a slice
        return None
    return None if op.length_by_values else key


class ShapeTrace(Tracing):
    """Traces a function without holding its values, and without its side effects.

    The peak is that of the largest op, so the memory limit of a program holds while it is traced.
    Raises NotReplayable where shapes do not suffice: a length that depends on values, or an op that
    rejects every placeholder.
    """

    abstract = True

    def __init__(self, passes: Sequence[str] | None = None) -> None:
        super().__init__(trial=True, passes=passes)
        self.undoes = False  # no effect happens
        self._folds = False  # whether the step has only constants, and so is computed
        self._known: dict[Any, Any] = {}  # blank results, by op and arguments
        self._zeros: dict[devices.Device, Any] = {}  # the bytes of all placeholders on a device
        self.created: list[Variable] = []  # by the function

    def _made(self, variable: Variable) -> None:
        """Note a Variable that the function creates.

        It is not refused: its owner may say already that it is complete, and then would not create
        it again in a trace on values.
        """
        self.makes = variable
        self.created.append(variable)

    def assigned(self, variable: Variable) -> None:
        """Follow a Variable that gets another value, also a new one."""
        self.touched(variable)

    def step(self, op: Any, arrays: Sequence[Any], params: dict[str, Any]) -> Any:
        """Log an op; its results are replaced by placeholders, unless they may be folded."""
        flat = arrays[0] if op.variadic else arrays
        self._folds = all(type(a) is not Traced or id(a.value) in self._foldable for a in flat)
        results = super().step(op, arrays, params)
        for out in results if isinstance(results, tuple) else (results,):
            if type(out) is Traced and not out.value.view and id(out.value) not in self._foldable:
                out.inner = self._placeholder(out.inner)
        return results

    def _placeholder(self, array: Any) -> Any:
        """Zeros of the array's shape and dtype. Nobody writes to the arrays of a trace."""
        if array.nbytes < _SMALL or array.dtype.hasobject:
            return array
        device = devices.device_of(array)
        zeros = self._zeros.get(device)
        if zeros is None or zeros.nbytes < array.nbytes:
            with devices.formulas_on(array):
                lib = READINGS[type(array)].lib
                zeros = self._zeros[device] = lib.zeros(array.nbytes, dtype=np.uint8)
        return zeros[: array.nbytes].view(array.dtype).reshape(array.shape)

    def computed(
        self, op: Any, xp: Reading, arrays: list[Any], params: dict[str, Any]
    ) -> tuple[Any, bool]:
        """An op's results on placeholders, or blank ones if an op like it has run."""
        function = getattr(xp, op.name)
        try:
            if self._folds:
                return run_for_shapes(function, arrays, params)
            if xp is not NUMPY or op.outputs > 1:
                with for_shapes(op):
                    return run_for_shapes(function, arrays, params)
            key = _like(op, arrays, params)
            if key in self._known:
                return self._known[key], True
            with for_shapes(op):
                result = _of_one_element(function, arrays, params) if op.by_element else None
                if result is None:
                    result, real = run_for_shapes(function, arrays, params)
                    if not real:
                        return result, real
        except Exception as error:  # of the user's, or of a placeholder: only values tell
            raise NotReplayable("an op needs values") from error
        flat = arrays[0] if op.variadic else arrays
        is_view = any(type(a) is np.ndarray and may_share(result, a) for a in flat)
        if (
            key is not None
            and type(result) is np.ndarray
            and result.nbytes >= _SMALL
            and not is_view
        ):
            result = self._known[key] = np.broadcast_to(np.zeros((), result.dtype), result.shape)
        return result, True

    def in_order(self, array: Any) -> Any:
        """A result; `step` puts a placeholder in the place of a large one."""
        is_blank = not self._folds and type(array) is np.ndarray and array.nbytes >= _SMALL
        return array if is_blank else super().in_order(array)

    def _check_lengths(self, name: str, outs: list[Traced]) -> list[Traced]:
        raise NotReplayable(f"{name}: the length depends on values")

    def _make_undoable(self, name: str, variables: Sequence[Variable], undo: Undo | None) -> None:
        pass

    def _performed(
        self,
        call: Callable[..., Any],
        tensors: Sequence[Any],
        variables: Sequence[Variable],
        about: Specs,
    ) -> tuple[list[Tensor], list[Any]]:
        results = blank_arrays(about, devices.device(getattr(call, "device", None)))
        now = [v._data for v in variables]
        return [*map(wrap, results)], [a.inner if type(a) is Traced else a for a in now]

    def values_of_created(self) -> tuple[list[Variable], Program]:
        """The Variables that the function has created, and the program of their values so far."""
        now = [(v, self._values.get(v._id)) for v in self.created]
        traced = [(v, array) for v, array in now if array is not None and is_traced(array)]
        program = Program()
        program.inputs, program.reads = list(self.program.inputs), list(self.program.reads)
        program.outputs = [self.place(array) for _, array in traced]
        needed = {id(value) for value in program.outputs}
        for step in reversed(self.program.steps):
            if not needed.isdisjoint(map(id, step.outs)):
                needed.update(map(id, step.inputs))
                program.steps.insert(0, step)
        return [v for v, _ in traced], program
