"""A formula of elements as one loop in C, for large arrays of eager ops.

NumPy reads and writes memory for each function of a formula; here vectors stay in registers. For
``silu`` of float32 the text is::

    extern "C" void gpugrad_kernel(char** p, long from, long to, char* part) {
      constexpr int N = LANES<4>;
      const float* p0 = (const float*)p[0];
      float* o0 = (float*)p[1];
      each_vector<N>(from, to, [&](float* o0, const float* p0) __attribute__((always_inline)) {
        const V<float, N> x0 = load<N, N>(p0);
        const V<float, N> v0 = x0;
        const V<float, N> v1 = expit(v0);
        const V<float, N> v2 = v0 * v1;
        store<N>(o0, v2);
      }, o0, p0);
    }

A library is compiled for each formula, dtype and metadata, but not for each shape.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import SCALARS
from gpugrad.core.for_shapes import shapes_suffice
from gpugrad.kernels.codegen.c_kernel import CKernel
from gpugrad.kernels.codegen.code import Body, Code, NoCodeError, cast, read
from gpugrad.kernels.codegen.code_reading import C_CODE, LIB
from gpugrad.kernels.codegen.cpp import prelude
from gpugrad.kernels.codegen.kernel import Input, Kernel, Result
from gpugrad.kernels.codegen.powers import MOST
from gpugrad.kernels.cpu import compiler, pool
from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import errors_raise

Formula = Callable[[Sequence[Any], Mapping[str, Any]], Any]
"""A function of arrays, or of Codes, and of metadata."""

_GRAIN = 1 << 14  # elements of a piece for a thread
_PIECE = 1 << 17  # elements for which arrays are repeated at a time
_KINDS = (np.dtype(np.float32), np.dtype(np.float64))


def forward_of(op: Any) -> Loops:
    """The loops of an op whose result's elements are a formula of elements."""
    return Loops(op, lambda codes, params: getattr(C_CODE, op.name)(*codes, **params))


def rule_of(op: Any, rule: Callable[..., Any]) -> Loops:
    """The loops of a gradient: of arrays (g, *saved)."""

    def formula(codes: Sequence[Any], params: Mapping[str, Any]) -> Any:
        return rule(C_CODE, codes[0], codes[1:], params)

    return Loops(op, formula)


class Loops:
    """The loops of a formula, compiled when they are first needed.

    They are for default metadata and for strings: a number that changes from call to call would
    need a loop for each.

    Args:
        op: the op that the formula computes, or a gradient of.
        formula: the formula.
    """

    def __init__(self, op: Any, formula: Formula) -> None:
        self.formula = formula
        self._op, self._kernels, self._of_one = op, dict[Any, Any](), dict[Any, Any]()

    def __call__(self, arrays: Sequence[Any], params: Mapping[str, Any] | None) -> Any:
        """A new array; NotImplemented unless all arrays are floats of one dtype.

        One is an array. Others may be Python numbers, or None for a value that nobody reads. Arrays
        of no axes beside others are numbers, too.
        """
        if errors_raise():
            return NotImplemented
        first = arrays[0]
        if type(first) is not np.ndarray or not first.ndim:
            own = [a for a in arrays if type(a) is np.ndarray]
            first = next((a for a in own if a.ndim), own[0])
        if len(arrays) == 1:
            try:
                kernel = self._of_one[
                    (first.dtype.char, *params.values()) if params else first.dtype.char
                ]
            except (KeyError, TypeError):  # it may be an array
                kernel = None
            if kernel is not None:
                return run(kernel, arrays)
        dtype, shape = first.dtype, first.shape
        inputs: list[Any] = []
        in_step, has_numbers = True, False
        for a in arrays:
            kind = type(a)
            if kind is np.ndarray:
                if a.dtype != dtype:
                    return NotImplemented
                if a.ndim or not shape:
                    in_step &= a.shape == shape
                    inputs.append(dtype.char)
                else:
                    has_numbers = True
                    inputs.append(float)
            elif kind in (float, int, type(None)):
                inputs.append(_given(a))
            else:
                return NotImplemented
        for k, v in params.items() if params else ():
            if type(v) is str or v is self._op.params[k]:
                continue
            if type(v) not in SCALARS or v != self._op.params[k]:
                return NotImplemented
        key = (*inputs, *params.values()) if params else (*inputs,)
        try:
            kernel = self._kernels[key]
        except KeyError:
            if shapes_suffice():
                return NotImplemented
            inputs = [dtype if type(k) is str else k for k in inputs]
            kernel = self._kernels[key] = self._kernel(dtype, inputs, params or {})
            if len(arrays) == 1:
                self._of_one[key if params else dtype.char] = kernel
        if kernel is None:
            return NotImplemented
        if has_numbers:
            arrays = [a.item() if type(a) is np.ndarray and not a.ndim else a for a in arrays]
        return run(kernel, arrays) if in_step else run_broadcast(kernel, arrays)

    def _kernel(
        self, dtype: np.dtype[Any], inputs: Sequence[Any], params: Mapping[str, Any]
    ) -> Any:
        """The address of the compiled loop, or None."""
        if dtype not in _KINDS or pool.library() is None:
            return None
        try:
            source = text(self.formula, dtype, inputs, params)
        except NoCodeError:
            return None
        library = compiler.load(source, what=self._op.name)
        return library and ctypes.cast(library.gpugrad_kernel, ctypes.c_void_p)


def _given(value: Any) -> Any:
    """The part of a value that the text of a loop depends on: a small number, perhaps a power."""
    is_small = value is None or (abs(value) <= MOST and value * 2 % 1 == 0)
    return value if is_small else float


def run(kernel: Any, arrays: Sequence[Any]) -> Any:
    """Fill a new array by a kernel that reads arrays of the same shape and dtype, and numbers."""
    if len(arrays) == 1:  # without the lists below, which take a third of a small array's time
        (first,) = arrays
        library: Any = pool.library()
        first = first if first.flags.forc else row_major(first)
        out = np.empty_like(first)
        library.gpugrad_run_few(kernel, out.size, _GRAIN, 2, first, out, None, None)
        return out
    own = [a for a in arrays if type(a) is np.ndarray]
    if not own[0].flags.forc or not all(a.strides == own[0].strides for a in own):
        arrays = [row_major(a) if type(a) is np.ndarray else a for a in arrays]
        own = [a for a in arrays if type(a) is np.ndarray]
    out = np.empty_like(own[0])
    _fill(kernel, arrays, out)
    return out


def run_broadcast(kernel: Any, arrays: Sequence[Any]) -> Any:
    """The same of arrays that are broadcast: they are repeated for a piece of the result at a time.

    Returns:
        The new array; NotImplemented if their shapes do not match.
    """
    try:
        shape = np.broadcast(*(a for a in arrays if type(a) is np.ndarray)).shape
    except ValueError:
        return NotImplemented
    whole = [np.broadcast_to(a, shape) if type(a) is np.ndarray else a for a in arrays]
    out = np.empty(shape, next(a.dtype for a in arrays if type(a) is np.ndarray))
    axis, inner = 0, out.size  # pieces are along this axis
    while axis < len(shape) and inner // shape[axis] > _PIECE:
        inner //= shape[axis]
        axis += 1
    rows = max(1, _PIECE * shape[axis] // inner)
    for before in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], rows):
            part = (*before, slice(start, start + rows))
            some = [row_major(a[part]) if type(a) is np.ndarray else a for a in whole]
            _fill(kernel, some, out[part])
    return out


def _fill(kernel: Any, arrays: Sequence[Any], out: Any) -> None:
    library: Any = pool.library()
    given: list[Any] = []
    for a in arrays:  # nobody reads the elements of None
        if type(a) is np.ndarray:
            given.append(a)
        else:
            given.append(out if a is None else np.array(a, np.float64))
    given.append(out)
    if len(given) <= pool.FEW:
        few = (None,) * (pool.FEW - len(given))
        library.gpugrad_run_few(kernel, out.size, _GRAIN, len(given), *given, *few)
    else:
        library.gpugrad_run(kernel, None, out.size, _GRAIN, pool.addresses(given), None, 0)


def text(
    formula: Formula, dtype: np.dtype[Any], given: Sequence[Any], params: Mapping[str, Any]
) -> str:
    """The kernel of a formula of arrays of a dtype.

    Args:
        formula: the formula.
        dtype: of all arrays, and of the result.
        given: for each argument `dtype`, ``float`` for any Python number, one such number, or None
            for nothing.
        params: metadata.

    Raises:
        NoCodeError: the formula cannot be written.
    """
    body = Body(LIB)
    like, number = np.empty(0, dtype), np.empty(0)
    inputs = [
        Input(k, number, column=0) if kind is float else Input(k, like)
        for k, kind in enumerate(given)
    ]
    codes = [
        kind if kind is None or type(kind) in SCALARS else body.input(f"x{k}", kind)
        for k, kind in enumerate(given)
    ]
    code = read(formula, codes, params)
    if type(code) not in (Code, *SCALARS):
        raise NoCodeError("the result is not of elements")
    result = Result(0, cast(body, code, dtype), like)
    kernel = CKernel(Kernel(body, inputs, [result], [], rows=1, columns=0), any_length=True)
    return prelude() + kernel.text.replace("NAME", "gpugrad_kernel")
