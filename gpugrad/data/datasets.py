"""Datasets: objects with a length that return one example for an index."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gpugrad.core import nest
from gpugrad.core.arguments import COUNT, PATH, optional, takes
from gpugrad.core.backend import as_dtype
from gpugrad.errors import (
    ArgumentError,
    DataError,
    DTypeError,
    IndexOutOfBoundsError,
    ShapeError,
    saying_where,
)

Array = np.ndarray[Any, Any]


class Dataset(Protocol):
    """The protocol of datasets for `DataLoader`: lists follow it, and so do torch's datasets.

    A dataset that has ``__getitems__(indices)``, as torch's and Hugging Face's may, is asked for
    the list of examples of a batch. A subclass of this class may have ``take(indices)`` instead,
    which returns a whole batch. In other libraries `take` has other meanings and is not called.

    >>> class Squares(gg.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, i):
    ...         return np.float32(i * i)
    >>> [batch.tolist() for batch in gg.data.DataLoader(Squares(), batch_size=2)]
    [[0.0, 1.0], [4.0, 9.0]]
    """

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Any: ...


class Arrays(Dataset):
    """Arrays of equal length, such as images and labels; an example has one element of each.

    Args:
        arrays: arrays, also memory-mapped ones; or one nested structure of them, such as a dict.

    Raises:
        ArgumentError: there is no array.
        ShapeError: first axes differ in length, or there is a number in place of an array.

    >>> gg.data.Arrays({"x": np.ones((3, 2)), "y": np.arange(3)})[1]["y"].item()
    1
    """

    def __init__(self, *arrays: Any) -> None:
        self.arrays = arrays[0] if len(arrays) == 1 else arrays
        leaves = nest.flatten(self.arrays)
        if not leaves:
            raise ArgumentError("Arrays: no array was passed.")
        shapes = [np.shape(leaf) for leaf in leaves]
        if any(not shape for shape in shapes):
            raise ShapeError(
                "Arrays: each array needs a first axis, the axis of the examples. A list is a "
                "structure of arrays here: pass np.asarray(list)."
            )
        if len({shape[0] for shape in shapes}) > 1:
            raise ShapeError(f"Arrays: first axes must have one length; the shapes are {shapes}.")
        self._length = shapes[0][0]

    def __len__(self) -> int:
        return int(self._length)

    def __getitem__(self, index: int) -> Any:
        return nest.map_structure(lambda a: a[index], self.arrays)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def take(self, indices: Array) -> Any:
        """The examples at the indices, stacked."""
        return nest.map_structure(lambda a: a[indices], self.arrays)


class Windows(Dataset):
    """Pairs of a window of tokens and the same window one token later, for language models.

    Args:
        tokens: array of one axis, also memory-mapped: see `open_text` and `open_npy`; or a list.
        length: tokens in a window.
        stride: distance between the starts of windows; by default `length`.
        dtype: dtype of the results; indices are int32 or int64.

    Raises:
        ShapeError: `tokens` is not one-dimensional, or has fewer than length + 1 elements.
        ArgumentError: `length` or `stride` is not above 0.
        DTypeError: `tokens` are floats and `dtype` is not.
        DataError: while indexing, `dtype` cannot hold a token.

    >>> dataset = gg.data.Windows(np.arange(10), length=4)
    >>> len(dataset), [a.tolist() for a in dataset[1]]
    (2, [[4, 5, 6, 7], [5, 6, 7, 8]])
    """

    @saying_where
    @takes(length=COUNT, stride=optional(COUNT))
    def __init__(
        self, tokens: Any, length: int, stride: int | None = None, dtype: Any = "int32"
    ) -> None:
        stride = length if stride is None else stride
        tokens, dtype = np.asarray(tokens) if isinstance(tokens, list) else tokens, as_dtype(dtype)
        if np.ndim(tokens) != 1 or len(tokens) <= length:
            raise ShapeError(
                f"Windows: tokens must have one axis with more than length={length} elements, got "
                f"the shape {np.shape(tokens)}."
            )
        if dtype.kind in "iu" and as_dtype(tokens.dtype).kind not in "iub":
            raise DTypeError(
                f"Windows: tokens are {tokens.dtype}, and dtype={dtype} would drop their "
                "fractions. Pass dtype='float32', or convert the tokens."
            )
        self.tokens, self.length, self.stride, self.dtype = tokens, length, stride, dtype

    def __len__(self) -> int:
        return int((len(self.tokens) - 1 - self.length) // self.stride + 1)

    def __getitem__(self, index: int) -> tuple[Array, Array]:
        x, y = self.take(np.array([index]))
        return x[0], y[0]

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        return (self[k] for k in range(len(self)))

    def take(self, indices: Array) -> tuple[Array, Array]:
        """The windows at the indices, stacked."""
        if np.any((indices < 0) | (indices >= len(self))):
            raise IndexOutOfBoundsError(f"Windows: an index is out of bounds for {len(self)}.")
        starts = np.asarray(indices)[:, None] * self.stride + np.arange(self.length + 1)
        tokens = np.asarray(self.tokens[starts])
        both = tokens.astype(self.dtype, copy=False)
        if self.dtype.kind in "iu" and (both != tokens).any():
            raise DataError(
                f"Windows: dtype={self.dtype} cannot hold tokens from {tokens.min()} to "
                f"{tokens.max()}. Pass a wider dtype=."
            )
        return both[:, :-1], both[:, 1:]


class Lines(Sequence[str]):
    r"""The lines of a text file in UTF-8, without their ends; the file is memory-mapped.

    Args:
        path: the file. Where lines begin is found once, by reading it in pieces.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = file.write("one\ntwo\n")
    ...     file.flush()
    ...     list(gg.data.Lines(file.name))
    ['one', 'two']
    """

    _PIECE = 1 << 24

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._bytes = map_bytes("Lines", path)
        pieces = range(0, len(self._bytes), self._PIECE)
        ends = [
            np.flatnonzero(self._bytes[at : at + self._PIECE] == ord("\n")) + at for at in pieces
        ]
        self._ends = np.concatenate(ends)
        if not len(self._ends) or self._ends[-1] != len(self._bytes) - 1:
            self._ends = np.append(self._ends, len(self._bytes))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexOutOfBoundsError(f"Lines: index {index} is out of bounds for {len(self)}.")
        index %= len(self)
        start = self._ends[index - 1] + 1 if index else 0
        return self._bytes[start : self._ends[index]].tobytes().decode().removesuffix("\r")


# ---- arrays in files that may be larger than memory: they are read where they are indexed -----

Path_ = str | os.PathLike[str]


def open_npy(path: Path_) -> Array:
    """The array of an ``.npy`` file, memory-mapped and read-only.

    Raises:
        ArgumentError: there is no such file, or it is not an ``.npy`` file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(6).reshape(3, 2))
    ...     gg.data.open_npy(f"{folder}/x.npy")[2].tolist()
    [4, 5]
    """
    try:
        array: Array = np.lib.format.open_memmap(_existing("open_npy", path), "r")
    except (OverflowError, ValueError) as error:
        raise ArgumentError(f"open_npy: {path} is not an .npy file: {error}.") from error
    return array


def open_text(path: Path_) -> Array:
    """The bytes of a file as uint8, memory-mapped and read-only; `Windows` cuts them into examples.

    Raises:
        ArgumentError: there is no such file, or it is empty.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "text.txt")
    ...     written = path.write_text("abc")
    ...     gg.data.open_text(path).tolist()
    [97, 98, 99]
    """
    return map_bytes("open_text", path)


def map_bytes(name: str, path: Path_) -> Array:
    """`open_text` for the function `name`."""
    return np.memmap(_existing(name, path), np.uint8, "r")


def _existing(name: str, path: Path_) -> Path:
    file: Path = PATH(name, "path", path)
    if not file.is_file():
        raise ArgumentError(f"{name}: there is no file {file}.")
    if not file.stat().st_size:
        raise ArgumentError(f"{name}: {file} is empty.")
    return file
