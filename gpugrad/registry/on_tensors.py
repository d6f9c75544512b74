"""The function that users call, written out at its first call, and what its text names."""

from __future__ import annotations

import functools
import inspect
import linecache
import types
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from gpugrad.autodiff.batched import Batched
from gpugrad.autodiff.borders import give_each, meet_levels
from gpugrad.autodiff.dead_branches import when_many
from gpugrad.autodiff.recorder import (
    block,
    number,
    open_with_parameters,
    record,
    record_many,
    refuse_complex,
    refuse_parameters,
    watched_in,
)
from gpugrad.core.arguments import check_op_flag, check_unusual
from gpugrad.core.backend import (
    ARRAYS,
    HALF,
    NUMPY,
    OPS,
    READINGS,
    SCALARS,
    TENSOR,
    as_array,
    is_inexact,
)
from gpugrad.core.devices import adopt, device_of, meet, meet_arrays
from gpugrad.core.forking import import_module
from gpugrad.core.from_python import numbers_only, to_numpy
from gpugrad.core.listening import graphs, recorders
from gpugrad.core.settings import as_written, mixed_dtype, mixed_modes, numerics
from gpugrad.core.tensor import Tensor, glance, index_parts, new, operand, promoted, tensor, wrap
from gpugrad.core.views import Element, View, view_or_copy
from gpugrad.errors import ArgumentError, reraise
from gpugrad.kernels.cpu.large import on_threads
from gpugrad.registry.function_text import source, text_of
from gpugrad.registry.numpys_form import numpys_form, numpys_function, refuse_others
from gpugrad.trace.array import place_beside_traced
from gpugrad.trace.numerics import check_op, checked_composite, checks
from gpugrad.trace.profiling import Span, profiles

_rule_files: list[str] = []


@functools.cache
def compiled(text: str, mode: str) -> Any:
    """The code of a generated text, which ops share that differ only in what its names mean."""
    if mode == "exec":  # each op gives its copy of the code a file of its own
        return compile(text, "<gpugrad>", mode)
    file = f"<gpugrad rule {len(_rule_files)}>"
    _rule_files.append(file)
    _show_in_tracebacks(file, text)
    return compile(text, file, mode)


def _show_in_tracebacks(file: str, text: str) -> None:
    """Let tracebacks show the lines of a generated text."""
    # without a modification time: else linecache would drop a file that is not on disk
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file


def eager_function(op: Any) -> Callable[..., Any]:
    """The function that users call, for exactly this op's signature.

    Its text is generated and compiled at the first call: compiling functions that are never called
    would take half the time of ``import gpugrad``.
    """
    scope: dict[str, Any] = {}
    function: Any = types.FunctionType(_unwritten.__code__, scope, op.name)
    scope["write"] = functools.partial(_write, function)
    # for pickle, which looks functions up
    function.__module__ = "gpugrad" if op.home.startswith("gpugrad.") else op.home
    function.__qualname__ = op.name
    function.__signature__, function.op, function.__doc__ = op.signature, op, op.doc
    if op.ufunc is not None and op.home.startswith("gpugrad."):
        for name in UFUNC_METHODS:
            setattr(function, name, functools.partial(_by_ufunc, op.ufunc, name))
    return cast(Callable[..., Any], function)


def follow(function: Any, op: Any) -> None:
    """Make an eager function that of another record of its op."""
    function.op = op
    function.__defaults__ = function.__kwdefaults__ = None
    function.__code__ = _unwritten.__code__


def rewrite() -> None:
    """Write all functions again that have been written, because what their text asks has changed.

    That is `profiles`, `mixed_modes`, or whether C runs small arrays.
    """
    for op in list(dict.values(OPS)):
        if op.eager.__code__ is not _unwritten.__code__:
            _write(op.eager)
    for write in list(_others):
        write()


def _scope(op: Any) -> dict[str, Any]:
    """The names that the text of an op's function uses."""
    scope = {
        **_SCOPE, "NAME": op.name, "forward": op.forward, "impl": op.impl, "op": op,
        **_defaults(op.signature),
    }  # fmt: skip
    if op.is_opened:
        scope["opened"] = op.body(TENSOR)
    scope["by_numpy"] = functools.partial(_by_numpy, op, numpys_function(op))
    small = None if _small_op is None else _small_op(op)
    if small is not None:  # else the former stays, for a thread that is about to call it
        scope["small"] = small
    if op.ufunc is not None:
        scope["ufunc"] = op.ufunc
        scope["large"] = op.impl[np.ndarray] if op.cpu else functools.partial(on_threads, op.ufunc)
    return scope


def _write(function: Any) -> Any:
    """Give an eager function the code of its op."""
    op, scope, written = function.op, function.__globals__, dict[str, Any]()
    names = _scope(op)
    has_small = "small" in names
    scope |= names
    exec(compiled(text_of(op, has_small=has_small), "exec"), scope, written)
    code = written["_op"]
    function.__defaults__, function.__kwdefaults__ = code.__defaults__, code.__kwdefaults__
    file = f"<gpugrad {op.name}>"
    _show_in_tracebacks(file, source(op, has_small))
    function.__code__ = code.__code__.replace(
        co_name=op.name, co_qualname=op.name, co_filename=file
    )
    if profiles:
        _write_timed(function, scope)
    return function


def function_with(op: Any, keywords: tuple[str, ...], names: dict[str, Any]) -> Any:
    """Another function of the op, from the same text.

    Args:
        op: the record.
        keywords: those of NumPy's ufuncs that it takes.
        names: other meanings of names of the text. `by_numpy` is also called while `gg.profile`
            or mixed precision wants another text.
    """
    function: Any = types.FunctionType(_unwritten.__code__, {}, op.name)
    _write_with(function, op, keywords, names)
    _others.append(functools.partial(_write_with, function, op, keywords, names))
    return function


def _write_with(function: Any, op: Any, keywords: tuple[str, ...], names: dict[str, Any]) -> None:
    scope, written = _scope(op), dict[str, Any]()
    text = text_of(op, keywords, has_small="small" in scope)
    if profiles or mixed_modes:  # all calls are unusual
        head, line, rest = text.split("\n", 2)
        text = "\n".join((head, line.replace(":", " or True:", 1), rest))
    function.__globals__.update(scope | names)
    exec(compiled(text, "exec"), function.__globals__, written)
    code = written["_op"]
    function.__defaults__, function.__kwdefaults__ = code.__defaults__, code.__kwdefaults__
    function.__code__ = code.__code__


_others: list[Callable[[], None]] = []
"""Functions that write those of `function_with` again."""

_small_op: Callable[[Any], Any] | None = None


def use_in_c(small_op: Callable[[Any], Any] | None, recording: Callable[..., None]) -> None:
    """Write all functions again, for other ways to run small arrays and to record.

    Args:
        small_op: returns for an op its function of small arrays, which returns None for others; or
            None.
        recording: `record`, in Python or in C.
    """
    global _small_op
    _small_op, _SCOPE["record"] = small_op, recording
    rewrite()


BY_NUMPY: dict[str, Callable[..., Any]] = {}
"""How NumPy's call forms run, ``"function"`` and ``"ufunc"``.

`gpugrad.array_api.numpy_protocols` adds them: they call ops, which are declared below this module.
"""


def _by_numpy(
    op: Any, function: Any, arrays: Any, params: Any, given: dict[str, Any], others: Any = ()
) -> Any:
    """A call of an op with arguments that only NumPy's function takes; `others`, no function."""
    refuse_others(op, others)
    return BY_NUMPY["function"](op, function, arrays, params, given)


UFUNC_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")


def _by_ufunc(ufunc: Any, method: str, *args: Any, **keywords: Any) -> Any:
    """``gg.add.reduce`` and the like."""
    return BY_NUMPY["ufunc"](getattr(ufunc, method), *args, **keywords)


def _write_timed(function: Any, scope: dict[str, Any]) -> None:
    """Let an eager function that has been written be timed.

    For ``tanh(x)`` it becomes::

        def tanh(x, /):
            return timed(op, plain, (x,), {})
    """
    op, written = function.op, dict[str, Any]()
    plain = types.FunctionType(function.__code__, scope, op.name, function.__defaults__)
    plain.__kwdefaults__ = function.__kwdefaults__
    scope |= {"timed": _timed, "plain": plain}
    params = ", ".join(f"{k!r}: {k}" for k in op.params)
    parameters, others = numpys_form(op)
    text = (
        f"def _op{parameters}:\n    {''.join(others) or 'pass'}\n"
        f"    return timed(op, plain, ({' '.join(f'{n},' for n in op.arrays)}), {{{params}}})\n"
    )
    exec(compiled(text, "exec"), scope, written)
    function.__code__ = written["_op"].__code__.replace(
        co_name=op.name, co_qualname=op.name, co_filename=f"<gpugrad {op.name}>"
    )


def _load_c() -> None:
    import_module("gpugrad.registry.in_c").load()


when_many.append(_load_c)


def _timed(op: Any, plain: Any, arrays: tuple[Any, ...], params: dict[str, Any]) -> Any:
    with Span("op", op.name) as span:
        out = plain(*arrays, **params)
        span.note(out, arrays)
    return out


def _unwritten(*args: Any, **keywords: Any) -> Any:
    """The code of an op's function until its first call."""
    try:
        return write()(*args, **keywords)  # type: ignore[name-defined]  # noqa: F821  # in its scope
    except BaseException as error:
        # without this frame; a bare `raise` does not add it again
        error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]
        raise


def _defaults(signature: inspect.Signature) -> dict[str, Any]:
    return {
        f"_d_{p.name}": p.default for p in signature.parameters.values() if p.default is not p.empty
    }


def _beside_numbers(body: Callable[..., Any], *values: Any) -> Callable[..., Any]:
    """A composite's body, whose ops put Python numbers on the device of its arrays."""
    if SCALARS.isdisjoint(map(type, values)):
        return body
    home = device_of(next(v for v in values if type(v) in ARRAYS))

    def on_their_device(*args: Any, **params: Any) -> Any:
        with home:
            return body(*args, **params)

    return on_their_device


def _own(x: Tensor) -> Tensor:
    """A Tensor of its own for a result that is an argument: neither shares the other's number."""
    return TENSOR.reshape(x, x.shape)


def _no_view(out: Any) -> Any:
    """The results of a composite's body, whose last op may return a View, as copies."""
    if type(out) is tuple:
        return tuple([_no_view(x) for x in out])
    return out._read() if type(out) is View else out


def _in_mixed_precision(op: Any, *arrays: Any, **params: Any) -> Any:
    """Call an op with the arguments cast as its record says; a composite's body casts no more."""
    half = mixed_dtype()
    sources, target = ((_FLOAT32,), half) if op.mixed == "half" else (HALF, _FLOAT32)

    def cast(x: Any) -> Any:
        if isinstance(x, (list, tuple)) and op.variadic:
            return [cast(part) for part in x]
        dtype = getattr(x, "dtype", None)
        return TENSOR.astype(x, target) if dtype in sources else x

    with as_written():
        if op.mixed is not None:
            arrays = tuple(map(cast, arrays))
        return op.eager(*arrays, **params)


_FLOAT32 = np.dtype(np.float32)


def _split(x: Any) -> tuple[Any, int]:
    return (x._data, x._id) if isinstance(x, Tensor) else (x, 0)


def _beside(x: Any, index: Any) -> Any:
    """`x` in the reading of an index with arrays of `vmap` or `function` in it."""
    parts = index_parts(index)
    if READINGS.keys().isdisjoint({*map(type, parts)} - _LIBRARY) or not isinstance(x, Tensor):
        return x
    return place_beside_traced(give_each(x, index), parts)


_LIBRARY = {np.ndarray}
_TENSORS = {Tensor}


def _tensors(name: str, values: Any) -> list[Tensor]:
    if type(values) is list and {*map(type, values)} == _TENSORS:  # most calls
        return values
    if isinstance(values, Tensor) or type(values) in ARRAYS:
        values = list(values)
    if not isinstance(values, (list, tuple)) or not values:
        raise ArgumentError(f"{name}: a list of at least one array is needed, got {values!r:.60}.")
    home = next((v for v in values if isinstance(v, Tensor) or type(v) in ARRAYS), None)
    typed = [v if numbers_only(v) else operand(v, home) for v in values]
    arrays = [v for v in typed if isinstance(v, Tensor)]
    if not arrays or len(arrays) == len(typed):
        return [v if isinstance(v, Tensor) else tensor(v) for v in typed]
    return [v if isinstance(v, Tensor) else _weak(v, arrays) for v in typed]


def _weak(numbers: Any, arrays: list[Tensor]) -> Tensor:
    """Python numbers, or lists of them, in the dtype that a number takes beside the arrays."""
    dtype, exact = np.result_type(*(a.dtype for a in arrays)), np.asarray(numbers)
    if exact.dtype.kind == "c" and dtype.kind != "c":
        dtype = np.result_type(dtype, 1j)
    elif exact.dtype.kind == "f" and not is_inexact(dtype):
        dtype = np.result_type(dtype, 1.0)
    elif not is_inexact(dtype) or not exact.size:  # integers keep their dtype beside integers
        return tensor(numbers)
    return wrap(adopt(to_numpy(numbers, dtype).astype(dtype), arrays[0].device))


_PLAIN = SCALARS | {type(None), str, slice, type(Ellipsis), np.dtype, type}
"""Types of parameters that hold no Tensor."""

_REAL = frozenset((float, int, bool, Tensor))
_AXES = frozenset((int, tuple, type(None), Tensor))
_USUAL = (_PLAIN | _REAL | {tuple, list, np.ndarray}) - {complex}

_SCOPE = {
    "AXES": _AXES, "REAL": _REAL, "USUAL": _USUAL, "USUAL_COMPLEX": _USUAL | {complex},
    "check_flag": check_op_flag, "check_unusual": check_unusual,
    "ARRAYS": ARRAYS, "Batched": Batched, "PLAIN": _PLAIN, "READINGS": READINGS,
    "NUMPY": NUMPY, "SCALARS": SCALARS, "Tensor": Tensor, "View": View, "asarray": as_array,
    "Element": Element,
    "beside": _beside, "beside_numbers": _beside_numbers, "block": block,
    "meet_levels": meet_levels, "glance": glance,
    "graphs": graphs, "in_mixed_precision": _in_mixed_precision, "meet": meet,
    "meet_arrays": meet_arrays, "ndarray": np.ndarray, "new": new,
    "check_op": check_op, "checked_composite": checked_composite, "checks": checks,
    "mixed_dtype": mixed_dtype, "no_view": _no_view, "number": number, "numerics": numerics,
    "open_with_parameters": open_with_parameters, "record": record,
    "record_many": record_many, "recorders": recorders, "refuse_complex": refuse_complex,
    "refuse_parameters": refuse_parameters, "watched_in": watched_in,
    "reraise": reraise, "split": _split, "operand": operand, "promoted": promoted,
    "own": _own, "tensors": _tensors,
    "view_or_copy": view_or_copy, "wrap": wrap,
}  # fmt: skip
"""Names that every generated text may use."""

TAKEN = frozenset(_SCOPE).union(
    ("NAME", "forward", "impl", "large", "op", "opened", "small", "ufunc"),  # see `_write`
    ("body", "fits", "ids", "kind", "parent", "sized"),  # local names
    ("Exception", "any", "complex", "len", "map", "tuple", "type"),
)
"""Names that an argument of an op cannot have, as the generated text uses them."""
