"""Checkpoints: named arrays in a safetensors file that is written completely or not at all.

The module is also callable, as JAX's transform of that name: ``gg.checkpoint(f)`` is
`gg.recompute_grad(f)`, a function that keeps no activations for its gradient.

>>> block = gg.checkpoint(lambda x: gg.tanh(gg.tanh(x)))
>>> print(gg.grad(block)(0.0))
1.0
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import operator
import os
import re
import secrets
import stat
import sys
import types
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from gpugrad.core.arguments import PATH
from gpugrad.core.backend import BFLOAT16
from gpugrad.core.convert import constant
from gpugrad.core.known_as import answer_missing
from gpugrad.core.ranks import ranks
from gpugrad.core.tensor import Tensor
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, CheckpointError, DTypeError, GpugradError, saying_where
from gpugrad.transforms.recompute import recompute_grad

try:
    import fcntl
except ImportError:  # on Windows; `save` then keeps the temporary files of killed processes
    fcntl = None  # type: ignore[assignment]

__all__ = ["load", "restore", "save"]

answer_missing(__name__)


def __dir__() -> list[str]:
    return __all__


Array = np.ndarray[Any, Any]


class _UnsupportedError(Exception):
    """A file holds a dtype that NumPy lacks."""


class _Module(Protocol):
    """The part of a `gg.nn.Module` that checkpoints use."""

    def state_dict(self) -> dict[str, Variable]: ...


class _Optimizer(Protocol):
    """The part of a `gg.optim.Optimizer` that checkpoints use."""

    def state_dict(self, names: Mapping[str, Variable]) -> dict[str, Tensor]: ...
    def load_state_dict(self, state: Mapping[str, Any], names: Mapping[str, Variable]) -> None: ...


_CHECKSUM = "gpugrad.crc32"  # metadata key of a checksum, which the format itself lacks
_MARK = f"{_CHECKSUM}="  # begins its value, so that a damaged key is noticed; older files lack it
_METADATA = "__metadata__"
_DAMAGE = (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError)
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
_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}


@saying_where
def save(
    path: str | os.PathLike[str],
    tensors: _Module | Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    *,
    optimizer: _Optimizer | None = None,
) -> None:
    """Write arrays to a safetensors file, which any reader of that format can open.

    The file is written under a temporary name and then renamed, so that after a crash there is
    either the old file or the new one. A file that is replaced keeps its mode, and a symbolic link
    keeps pointing to it. Equal values and metadata give equal bytes.

    Args:
        path: the file; its folder must exist.
        tensors: Tensors, Variables or arrays by name; or a Module, for its Variables.
        metadata: strings by name, stored in the file.
        optimizer: optimizer whose state for these Variables is written too, or None.

    Raises:
        ArgumentError, DTypeError: names or metadata are not strings, a name is ``__metadata__``,
            or a value is complex128, which the format lacks.
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
        if any("\ud800" <= c <= "\udfff" for c in what):
            raise ArgumentError(f"save: {what!r:.60} is not valid Unicode.")
    if _METADATA in values:
        raise ArgumentError(f"save: the format reserves the name {_METADATA!r}; use another.")
    arrays = {name: _to_numpy(name, values[name]) for name in sorted(values)}
    strings[_CHECKSUM] = _MARK + _checksum(arrays, strings)
    _write(Path(path), _serialize(arrays, strings))


def _to_numpy(name: str, value: Any) -> Array:
    if isinstance(value, Variable) and value._id in ranks.parts:
        raise CheckpointError(
            f"save: '{name}' is sharded: each rank has a part of it. Use gg.train.Checkpoints."
        )
    # in C order: the file holds the bytes as they lie in memory
    data = value.numpy() if isinstance(value, Tensor) else constant(value, device="cpu").numpy()
    array = np.asarray(data, data.dtype.newbyteorder("="), order="C")
    if array.dtype not in _NAMES:
        raise DTypeError(f"save: '{name}' is {array.dtype}, which safetensors does not support.")
    return array


def _bytes(array: Array) -> Any:
    return array.reshape(-1).view(np.uint8)


def _serialize(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    """The content of a file. `safetensors.serialize` orders the metadata differently each time."""
    header: dict[str, Any] = {_METADATA: dict(sorted(metadata.items()))}
    parts, end = [], 0
    for name in sorted(arrays, key=lambda n: -arrays[n].itemsize):  # so that each is aligned
        array = arrays[name]
        start, end = end, end + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": array.shape,
            "data_offsets": (start, end),
        }
        parts.append(_bytes(array))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def _checksum(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> str:
    """A checksum of all that a file says, in whatever order."""
    kept = sorted((k, v) for k, v in metadata.items() if k != _CHECKSUM)
    total = zlib.crc32(json.dumps(kept).encode())
    for name in sorted(arrays):
        array = arrays[name]
        about = json.dumps([name, _NAMES[array.dtype], array.shape])
        total = zlib.crc32(_bytes(array), zlib.crc32(about.encode(), total))
    return f"{total:08x}"


def _write(path: Path, content: bytes) -> None:
    try:
        path = Path(os.path.realpath(path))  # a link stays, its file is replaced
        mode = _mode_of(path)
        _remove_temporary_files(path)
        with _temporary_file(path) as file:
            file.write(content)
            file.flush()
            if mode is not None and mode != stat.S_IMODE(os.fstat(file.fileno()).st_mode):
                os.chmod(file.name, mode)
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows does not rename an open file
            os.replace(file.name, path)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be written: {error.strerror}.") from error
    with contextlib.suppress(OSError):  # the new name must survive a power cut as well
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _mode_of(path: Path) -> int | None:
    """The permissions of a file that will be replaced; None if there is none yet."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise CheckpointError(f"{path} cannot be written: it is not a regular file.")
    return stat.S_IMODE(mode)


@contextlib.contextmanager
def _temporary_file(path: Path) -> Iterator[BinaryIO]:
    """A new file beside `path`, locked while it is open and removed unless it was renamed."""
    while True:
        name = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            with open(name, "xb") as file:
                if fcntl is not None:
                    with contextlib.suppress(OSError):  # of a file system without locks
                        fcntl.flock(file, fcntl.LOCK_EX)
                if name.exists():  # else another save removed it before it was locked
                    yield file
                    return
        finally:
            with contextlib.suppress(OSError):
                os.unlink(name)


def _remove_temporary_files(path: Path) -> None:
    """Remove what killed processes left beside `path`; the files of running ones are locked."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.tmp")
    for entry in os.scandir(path.parent) if fcntl is not None else ():
        if not pattern.fullmatch(entry.name):
            continue
        with contextlib.suppress(OSError), open(entry.path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(entry.path)


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to read, whose errors name it."""
    path = PATH("load", "path", path)  # `open` takes a number for a descriptor, and would close it
    try:
        with open(path, "rb") as file:
            yield file
    except FileNotFoundError:
        raise CheckpointError(f"There is no checkpoint {path}.") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
    except _UnsupportedError as error:
        raise CheckpointError(
            f"{path} holds values of dtype {error}, which is not supported."
        ) from error
    except _DAMAGE as error:
        raise CheckpointError(f"{path} is damaged or not a safetensors file: {error}.") from error


def _header(file: BinaryIO) -> tuple[int, dict[str, Any]]:
    """Where the values begin in a file, and its header, a dict with one of strings as metadata."""
    length, size = int.from_bytes(file.read(8), "little"), os.fstat(file.fileno()).st_size
    if 8 + length > size:
        raise ValueError("it ends before its header does")
    header = json.loads(file.read(length))
    metadata = header.get(_METADATA, {})
    if not all(isinstance(text, str) for text in metadata.values()):
        raise ValueError("its metadata are not strings")
    return 8 + length, header


def _entries(
    header: Mapping[str, Any], size: int
) -> Iterator[tuple[str, np.dtype[Any], tuple[int, ...], int]]:
    """Name, dtype, shape and offset of each array: one begins where the one before it ends."""
    end = 0
    parts = [(name, part) for name, part in header.items() if name != _METADATA]
    for name, part in sorted(parts, key=lambda item: item[1]["data_offsets"]):
        if part["dtype"] not in _DTYPES:
            raise _UnsupportedError(repr(part["dtype"]))
        dtype = np.dtype(_DTYPES[part["dtype"]])
        start, stop = map(operator.index, part["data_offsets"])
        shape = tuple(map(operator.index, part["shape"]))
        if start != end or min(shape, default=0) < 0:
            raise ValueError(f"the values of {name!r:.60} do not begin where others end")
        end += math.prod(shape) * dtype.itemsize
        if stop != end:
            raise ValueError(f"{name!r:.60} has other bytes than its shape and dtype")
        yield name, dtype, shape, start
    if end != size:
        raise ValueError(f"its arrays have {end} bytes, it holds {size}")


def _read(file: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    array: Array = np.empty(shape, dtype)
    if file.readinto(_bytes(array)) != array.nbytes:  # type: ignore[attr-defined]  # BinaryIO's
        raise ValueError("it ends before its values do")
    return array


def metadata_of(path: str | os.PathLike[str]) -> dict[str, str]:
    """The metadata of a file, without a look at its values; CheckpointError as in `load`."""
    with _opened(path) as file:
        return dict(_header(file)[1].get(_METADATA, {}))


@saying_where
def load(
    path: str | os.PathLike[str], *, mmap: bool = False
) -> tuple[dict[str, Array], dict[str, str]]:
    """Read a safetensors file.

    Args:
        path: the file.
        mmap: whether arrays are read only where they are indexed, for files larger than memory.
            They are read-only then, and the checksum is not verified, which would read all.

    Returns:
        NumPy arrays by name, and the metadata.

    Raises:
        CheckpointError: the file is missing, damaged or not a safetensors file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/model.safetensors"
    ...     gg.checkpoint.save(path, gg.nn.Dense(2, 1), metadata={"step": "7"})
    ...     arrays, metadata = gg.checkpoint.load(path)
    >>> sorted(arrays), metadata["step"]
    (['bias', 'kernel'], '7')
    """
    with _opened(path) as file:
        start, header = _header(file)
        entries = list(_entries(header, os.fstat(file.fileno()).st_size - start))
        metadata = dict(header.get(_METADATA, {}))
        if mmap:
            content = np.memmap(file, np.uint8, "r")
            arrays = {
                name: content[start + begin :][: math.prod(shape) * dtype.itemsize]
                .view(dtype)
                .reshape(shape)
                for name, dtype, shape, begin in entries
            }
        else:
            arrays = {name: _read(file, dtype, shape) for name, dtype, shape, _ in entries}
    if not mmap and not _is_intact(arrays, metadata):
        raise CheckpointError(f"{path} is damaged: its checksum does not match its content.")
    metadata.pop(_CHECKSUM, None)
    return arrays, metadata


def _is_intact(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> bool:
    """Whether the checksum is right; files of other writers have none."""
    checksum = metadata.get(_CHECKSUM)
    if checksum is None:
        return not any(value.startswith(_MARK) for value in metadata.values())
    if checksum.startswith(_MARK):
        return checksum == _MARK + _checksum(arrays, metadata)
    total = 0
    for name in sorted(arrays):
        total = zlib.crc32(_bytes(arrays[name]), zlib.crc32(name.encode(), total))
    return checksum == f"{total:08x}"


@saying_where
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

    >>> import tempfile
    >>> first, second = gg.nn.Dense(2, 1), gg.nn.Dense(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gg.checkpoint.save(f"{folder}/model.safetensors", first)
    ...     metadata = gg.checkpoint.restore(f"{folder}/model.safetensors", second)
    >>> bool(gg.all(first.kernel == second.kernel))
    True
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

    def __reduce__(self) -> Any:
        """By name, as cloudpickle does with modules of the plain type."""
        return importlib.import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Callable
