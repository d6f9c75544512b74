"""Arguments as TensorFlow reads them, and functions that read them so."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.compat.tf.errors import ConversionError
from gpugrad.compat.tf.shapes import numpys
from gpugrad.core.from_python import numbers_only
from gpugrad.core.tensor import Tensor, holds_tensor
from gpugrad.errors import ArgumentError, DTypeError, NumberOverflowError


def tensor(value, dtype=None, like=None) -> Tensor:
    """A Tensor of `value`: Python ints are int32, floats float32, complex numbers complex128.

    Args:
        value: a number, nested lists, an array, a Tensor, or an object with ``__tf_tensor__``.
        dtype: of the result; a Tensor of another one is refused.
        like: a dtype that Python numbers take instead, if they fit it.

    Raises:
        ConversionError: no number, or a Tensor of another dtype.
        NumberOverflowError: a Python int beyond int32.
    """
    try:
        return _tensor(value, dtype, like)
    except DTypeError as error:
        raise ConversionError(str(error)) from None


def _tensor(value, dtype, like) -> Tensor:
    if hasattr(value, "__tf_tensor__"):
        value = value.__tf_tensor__(dtype)
    if isinstance(value, (Tensor, gg.IndexedSlices)) or holds_tensor(value):
        if isinstance(value, (list, tuple)):
            dtypes = [x.dtype for x in gg.core.nest.flatten(value) if isinstance(x, Tensor)]
            return gg.stack([tensor(x, dtype, dtypes[0]) for x in value])
        return gg.convert_to_tensor(value, dtype)
    if isinstance(value, (str, bytes)) or getattr(value, "dtype", np.dtype(bool)).kind in "SUO":
        raise DTypeError(
            f"gpugrad.compat.tf: {value!r:.60} is no number, and strings have no Tensor."
        )
    if dtype is not None:
        dtype = numpys(dtype)
        return gg.constant(np.asarray(value) if isinstance(value, range) else value, dtype)
    if isinstance(value, range):
        value = list(value)
    result = gg.constant(value)
    if not numbers_only(value):
        return result
    if like is not None and (result.dtype.kind in "biu" or like.kind in "fc"):
        return gg.constant(value, like)
    if result.dtype.kind == "c":
        return gg.constant(value, "complex128")
    if result.dtype == np.int64:
        if np.any(np.abs(np.asarray(value)) > np.iinfo(np.int32).max):
            raise NumberOverflowError(
                f"gpugrad.compat.tf: {value!r:.60} does not fit int32, TensorFlow's dtype of "
                "Python ints: give dtype=tf.int64."
            )
        return gg.astype(result, "int32")
    return result


def together(*values) -> list[Tensor]:
    """Tensors of arguments of one dtype: numbers take that of the first array.

    Of numbers alone, all are complex, or all floats, if one is.
    """
    like = next((v.dtype for v in values if hasattr(v, "dtype")), None)
    if like is None and len(values) > 1:
        like = max((tensor(v).dtype for v in values), key=lambda d: "biufc".find(d.kind))
    return [tensor(v, like=like) for v in values]


def keeping(x: Tensor, result: Tensor) -> Tensor:
    """A result in the dtype of `x` if that is an integer: TensorFlow sums and averages in it."""
    keeps = x.dtype.kind in "iu" and result.dtype.kind in "iuf"
    return gg.astype(result, x.dtype) if keeps and result.dtype != x.dtype else result


def ints(value: Any) -> tuple[int, ...]:
    """A shape, axes or sizes as ints: of ints, of Tensors, or in a Tensor."""
    if isinstance(value, Tensor) or hasattr(value, "dtype"):
        value = np.asarray(value.numpy() if isinstance(value, Tensor) else value).tolist()
    several = value if isinstance(value, (list, tuple)) else [value]
    try:
        return tuple(int(n) for n in several)
    except (TypeError, ValueError):
        raise ConversionError(f"gpugrad.compat.tf: {value!r:.60} is no int, nor ints.") from None


def axes(value: Any) -> Any:
    """An axis or several, None for all."""
    if value is None or isinstance(value, int):
        return value
    found = ints(value)
    several = isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) > 0
    return found if several else found[0]


def _table(value: Any) -> Tensor:
    """A Tensor, or a Variable itself, whose gradient is then by its rows."""
    return value if isinstance(value, gg.Variable) else tensor(value)


_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("shape", "dims", "multiples", "perm", "begin", "size", "batch_shape"), ints),
    **dict.fromkeys(("axis", "axes", "shift"), axes),
    **dict.fromkeys(("indices", "ids", "segment_ids", "mask", "condition", "lengths"), tensor),
    "k": lambda k: ints(k) if isinstance(k, (list, tuple)) else int(k),
    **dict.fromkeys(("num", "num_rows", "num_columns", "num_lower", "num_upper"), int),
    **dict.fromkeys(("depth", "num_segments", "num_classes", "num_samples", "maxlen"), int),
    **dict.fromkeys(("dtype", "out_type", "output_type", "index_type", "out_idx"), numpys),
    **dict.fromkeys(("keepdims", "transpose_a", "transpose_b", "adjoint"), bool),
    "params": _table,
}
"""How a parameter of a name is read. Others are Tensors if they have no default."""
_AXIS = ("reduction_indices", "dim", "dimension", "squeeze_dims", "axes")
_RENAMED = {"keep_dims": "keepdims", "filter": "filters", "stride": "strides", "value": "input"}
_KNOWN_AS = {**_RENAMED, **dict.fromkeys(_AXIS, "axis")}
"""TensorFlow 1's names of parameters."""
_WITHOUT_EFFECT = """name layout validate_args validate_indices alg partition_strategy a_is_sparse
b_is_sparse use_cudnn_on_gpu grad_a grad_b fast"""
_NAME = (str, type(None))
_IGNORED = frozenset(_WITHOUT_EFFECT.split())
"""Parameters without effect, also where a function does not list them."""


def op(f: Callable[..., Any], name: str = "", parameters: dict[str, Any] | None = None) -> Any:
    """`f` with its arguments read as TensorFlow does, and with ``name=``, which is ignored.

    The name of a parameter says how it is read (`_READ`). Parameters without a default are Tensors
    otherwise, of one dtype; with the default ``...`` they must be given and are passed as they are.
    TensorFlow 1's names of parameters are understood, too.

    Args:
        f: a function of positional parameters.
        name: of the function, by default its own.
        parameters: their names and defaults, if they are not those of `f`.
    """
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    if parameters is None:
        parameters = {n: p.default for n, p in inspect.signature(f).parameters.items()}
    n, places = len(parameters), {name: i for i, name in enumerate(parameters)}
    required = [empty if d is ... else d for d in parameters.values()]
    shown = {**dict(zip(parameters, required, strict=True)), "name": None}
    signature = inspect.Signature([inspect.Parameter(k, kind, default=d) for k, d in shown.items()])
    read = {places[k]: _READ[k] for k, d in parameters.items() if k in _READ and d is not ...}
    arrays = [i for i, d in enumerate(parameters.values()) if d is empty and i not in read]

    @functools.wraps(f)
    def call(*args, **keywords) -> Any:
        values = [*args[:n], *required[len(args) :]]
        wrong = len(args) > n and not (len(args) == n + 1 and isinstance(args[n], _NAME))
        for key, value in keywords.items():
            i = places.get(key, places.get(_KNOWN_AS.get(key, "")))
            if i is not None and i >= len(args):
                values[i] = value
            elif i is not None or key not in _IGNORED:
                wrong = True
        if wrong or any(v is empty for v in values[len(args) :]):
            try:
                signature.bind(*args, **keywords)
                problem = "the arguments do not fit"
            except TypeError as error:
                problem = str(error)
            raise TypeError(f"{call.__name__}{signature}: {problem}")
        for i, reader in read.items():
            if values[i] is not None:
                values[i] = reader(values[i])
        for i, x in zip(arrays, together(*[values[i] for i in arrays]), strict=True):
            values[i] = x
        return f(*values)

    if name:
        call.__name__ = call.__qualname__ = name
    if name or f.__doc__ is None:
        call.__doc__ = f"TensorFlow's ``{call.__name__}{signature}``."
    call.__signature__ = signature  # type: ignore[attr-defined]  # what help() shows
    return call


def ops(text: str = "", /, **formulas: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Functions of TensorFlow by their names.

    Args:
        text: lines ``parameters: name name=gpugrad's.name ...`` of functions that differ from
            gpugrad's in names alone: those of parameters, of which ``axis`` and those with a
            default have the same name there, and of functions.
        formulas: functions for `op`.
    """
    found = {name: op(f, name) for name, f in formulas.items()}
    parameters: dict[str, Any] = {}
    for line in text.splitlines():
        before, _, names = line.rpartition(":")
        if before:  # a line without goes on with the one above
            pairs = [token.partition("=") for token in before.split()]
            parameters = {
                key: ast.literal_eval(default) if equals else inspect.Parameter.empty
                for key, equals, default in pairs
            }
        keys = [
            key
            for key, d in parameters.items()
            if key == "axis" or d is not inspect.Parameter.empty
        ]
        for entry in names.split():
            name, _, own = entry.partition("=")
            f: Any = functools.reduce(getattr, (own or name).split("."), gg)
            found[name] = op(_with_keywords(f, keys) if keys else f, name, parameters)
    return found


def _with_keywords(f: Any, keys: list[str]) -> Callable[..., Any]:
    """A function of positional arguments alone, the last of which `f` takes by keywords."""
    return lambda *args: f(*args[: -len(keys)], **dict(zip(keys, args[-len(keys) :], strict=True)))


def layout(name: str, data_format: str | None) -> bool:
    """Whether an argument's channels are its last axis."""
    data_format = data_format or "NHWC"
    if data_format.upper() not in ("NWC", "NHWC", "NDHWC", "NCW", "NCHW", "NCDHW"):
        raise ArgumentError(f"{name}: data_format={data_format!r} is not 'NHWC' or 'NCHW'.")
    return data_format.upper().endswith("C")
