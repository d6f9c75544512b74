"""Checkpoints: named arrays in a safetensors file that is written completely or not at all.

The module is also callable, as JAX's transform of that name: ``gg.checkpoint(f)`` is
`gg.recompute_grad(f)`, a function that keeps no activations for its gradient.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import types
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import safetensors
import safetensors.numpy

from gpugrad.core.backend import BFLOAT16
from gpugrad.core.convert import constant
from gpugrad.core.tensor import Tensor
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, CheckpointError, DTypeError, GpugradError
from gpugrad.transforms.recompute import recompute_grad

__all__ = ["load", "restore", "save"]

Array = np.ndarray[Any, Any]


class _Module(Protocol):
    """The part of a `gg.nn.Module` that checkpoints use."""

    def state_dict(self) -> dict[str, Variable]: ...


class _Optimizer(Protocol):
    """The part of a `gg.optim.Optimizer` that checkpoints use."""

    def state_dict(self, names: Mapping[str, Variable]) -> dict[str, Tensor]: ...
    def load_state_dict(self, state: Mapping[str, Any], names: Mapping[str, Variable]) -> None: ...


_CHECKSUM = "gpugrad.crc32"  # metadata key of a checksum, which the format itself lacks
_OPTIMIZER = "optimizer/"  # prefix of an optimizer's state; dotted names contain no slash
_DTYPES = {
    "BOOL": "bool",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "BF16": BFLOAT16,
}


def save(
    path: str | os.PathLike[str],
    tensors: _Module | Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    *,
    optimizer: _Optimizer | None = None,
) -> None:
    """Write arrays to a safetensors file, which any reader of that format can open.

    The file is written under a temporary name and then renamed, so that after a crash there is
    either the old file or the new one.

    Args:
        path: the file; its folder must exist.
        tensors: Tensors, Variables or arrays by name; or a Module, for its Variables.
        metadata: strings by name, stored in the file.
        optimizer: optimizer whose state for these Variables is written too, or None.

    Raises:
        ArgumentError, DTypeError: names or metadata are not strings, or a value is complex128,
            which the format lacks.
        CheckpointError: the file cannot be written; an older one is unchanged.

    >>> import gpugrad as gg, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gg.checkpoint.save(f"{folder}/a.safetensors", {"w": gg.ones(2)}, {"epoch": "3"})
    ...     gg.checkpoint.load(f"{folder}/a.safetensors")
    ({'w': array([1., 1.], dtype=float32)}, {'epoch': '3'})
    """
    values = dict(tensors if isinstance(tensors, Mapping) else tensors.state_dict())
    if optimizer is not None:
        named = {k: v for k, v in values.items() if isinstance(v, Variable)}
        values |= {_OPTIMIZER + k: v for k, v in optimizer.state_dict(named).items()}
    strings = dict(metadata or {})
    for what in (*values, *strings, *strings.values()):
        if not isinstance(what, str):
            raise ArgumentError(f"save: names and metadata must be strings, got {what!r:.60}.")
    arrays = {name: _to_numpy(name, value) for name, value in values.items()}
    strings[_CHECKSUM] = _checksum(arrays)
    _write(Path(path), safetensors.numpy.save(arrays, strings))


def _to_numpy(name: str, value: Any) -> Array:
    # in C order: safetensors 0.8.0 writes memory of any layout without reordering it
    data = value.numpy() if isinstance(value, Tensor) else constant(value, device="cpu").numpy()
    array = np.asarray(data, data.dtype.newbyteorder("="), order="C")
    if array.dtype not in [np.dtype(d) for d in _DTYPES.values()]:
        raise DTypeError(f"save: '{name}' is {array.dtype}, which safetensors does not support.")
    return array


def _checksum(arrays: Mapping[str, Array]) -> str:
    total = 0
    for name in sorted(arrays):
        data: Any = arrays[name].reshape(-1).view(np.uint8)
        total = zlib.crc32(data, zlib.crc32(name.encode(), total))
    return f"{total:08x}"


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    with contextlib.suppress(OSError):  # the new name must survive a power cut as well
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def load(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, str]]:
    """Read a safetensors file.

    Returns:
        NumPy arrays by name, and the metadata.

    Raises:
        CheckpointError: the file is missing, damaged or not a safetensors file.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f"There is no checkpoint {path}.") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        parts = safetensors.deserialize(content)  # type: ignore[no-untyped-call]
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        arrays = {
            name: np.frombuffer(part["data"], _DTYPES[part["dtype"]]).reshape(part["shape"]).copy()
            for name, part in parts
        }
        metadata = {str(k): str(v) for k, v in header.get("__metadata__", {}).items()}
    except KeyError as error:
        raise CheckpointError(
            f"{path} holds values of dtype {error}, which is not supported."
        ) from error
    except (safetensors.SafetensorError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged or not a safetensors file: {error}.") from error
    checksum = metadata.pop(_CHECKSUM, None)
    if checksum is not None and checksum != _checksum(arrays):
        raise CheckpointError(f"{path} is damaged: its checksum does not match its values.")
    return arrays, metadata


def restore(
    path: str | os.PathLike[str],
    module: _Module | Mapping[str, Variable],
    optimizer: _Optimizer | None = None,
) -> dict[str, str]:
    """Load the values that `save` wrote into a model and an optimizer: all, or on an error none.

    Args:
        path: the file.
        module: a Module, or Variables by name, with the names, shapes and dtypes in the file.
        optimizer: optimizer that gets the state in the file. If None, that state is ignored.

    Returns:
        The metadata.

    Raises:
        CheckpointError: the file is missing, damaged, or of another model or optimizer; the
            message lists the differences.
        DTypeError: a value of the mapping `module` is not a Variable.
    """
    arrays, metadata = load(path)
    state = {k.removeprefix(_OPTIMIZER): v for k, v in arrays.items() if k.startswith(_OPTIMIZER)}
    values = {k: v for k, v in arrays.items() if not k.startswith(_OPTIMIZER)}
    variables = module if isinstance(module, Mapping) else module.state_dict()
    for name, variable in variables.items():
        if not isinstance(variable, Variable):
            raise DTypeError(
                f"restore: expected Variables, but '{name}' is a {type(variable).__name__}."
            )
    differences = _differences(variables, values)
    if differences:
        listed = "".join(f"\n  {line}" for line in differences[:12])
        more = f"\n  and {len(differences) - 12} more" if len(differences) > 12 else ""
        raise CheckpointError(f"{path} is of another model:{listed}{more}")
    ready = {name: constant(values[name], device=v.device) for name, v in variables.items()}
    if optimizer is not None:
        if not state:
            raise CheckpointError(f"{path} holds no optimizer state.")
        try:
            optimizer.load_state_dict(state, variables)
        except GpugradError as error:
            raise CheckpointError(f"{path}: {error}") from error
    for name, variable in variables.items():
        variable.assign(ready[name])
    return metadata


def _differences(variables: Mapping[str, Variable], values: Mapping[str, Array]) -> list[str]:
    """Differences between the model and the file, a line for each name."""

    def text_of(x: Any) -> str:
        return f"{x.dtype} {tuple(x.shape)}"

    lines = []
    for name in dict.fromkeys((*variables, *values)):
        if name not in values:
            lines.append(f"{name}: missing in the file; the model has {text_of(variables[name])}")
        elif name not in variables:
            lines.append(f"{name}: {text_of(values[name])} in the file; the model has no such name")
        elif text_of(variables[name]) != text_of(values[name]):
            in_file, in_model = text_of(values[name]), text_of(variables[name])
            lines.append(f"{name}: {in_file} in the file, {in_model} in the model")
    return lines


class _Callable(types.ModuleType):
    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """Make a function that keeps no activations and recomputes them for the gradient.

        >>> gg.grad(gg.checkpoint(lambda x: gg.sin(x) * x))(0.0).item()
        0.0
        """
        return recompute_grad(f)


sys.modules[__name__].__class__ = _Callable
