"""How a batch is made of examples: maps, the default `collate_fn`, errors that name the item."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core import nest
from gpugrad.core.dlpack import from_dlpack
from gpugrad.core.replaceable import raised_by_handler
from gpugrad.core.tensor import Tensor
from gpugrad.data.datasets import Dataset
from gpugrad.errors import DataError, StructureError


class NoItems(list[Any]):
    """Stands for no items: a batch is made of this one, and then its first 0 rows are taken."""


class Work(NamedTuple):
    """Makes a batch from its indices or items; each worker process gets it once."""

    dataset: Any
    map: Callable[..., Any] | None
    batch_map: Callable[..., Any] | None
    collate_fn: Callable[[list[Any]], Any]
    seed: int

    def batch(self, epoch: int, number: int, items: Sequence[Any]) -> Any:
        """The batch of these indices, or of these (position, item) pairs of an iterable."""
        if self.map is None and self.collate_fn is stack and _takes(self.dataset):
            batch = self._checked(items, lambda: self.dataset.take(np.asarray(items)))
        else:
            batch = self._checked(items, lambda: self.collate_fn(self._examples(epoch, items)))
        if self.batch_map is not None:
            rng = np.random.default_rng([self.seed, 1, epoch, number])
            batch = self._checked(items, lambda: _called(self.batch_map, batch, rng))
        if isinstance(items, NoItems):
            return nest.map_structure(lambda a: a[:0] if np.ndim(a) else a, batch)
        return batch

    def _examples(self, epoch: int, items: Sequence[Any]) -> list[Any]:
        results = []
        if not isinstance(items[0], tuple) and hasattr(self.dataset, "__getitems__"):
            items = _together(self.dataset, list(items))
        for item in items:
            index, example = item if isinstance(item, tuple) else (item, None)
            try:
                if not isinstance(item, tuple):
                    example = self.dataset[index]
                if self.map is not None:
                    example = _called(
                        self.map, example, np.random.default_rng([self.seed, 0, epoch, index])
                    )
            except Exception as error:
                if raised_by_handler(error):
                    raise
                raise DataError(f"DataLoader: item {index}: {text_of(error)}") from error
            results.append(example)
        return results

    def _checked(self, items: Sequence[Any], make: Callable[[], Any]) -> Any:
        try:
            return make()
        except DataError:
            raise
        except Exception as error:
            if raised_by_handler(error):
                raise
            raise DataError(
                f"DataLoader: the batch of {numbers_of(items)}: {text_of(error)}"
            ) from error


def numbers_of(items: Sequence[Any]) -> str:
    """The first and the last of indices, or of (position, item) pairs."""
    first, last = (i[0] if isinstance(i, tuple) else i for i in (items[0], items[-1]))
    return f"items {first}...{last}"


def _takes(dataset: Any) -> bool:
    """Whether `dataset.take(indices)` makes a batch, as `gg.data.Dataset` says.

    In other libraries `take` counts elements of an array, or examples from the first one on.
    """
    is_ours = Dataset in type(dataset).__mro__
    return is_ours and hasattr(dataset, "take") and not hasattr(dataset, "__getitems__")


def _together(dataset: Any, indices: list[int]) -> list[tuple[int, Any]]:
    """The (index, example) pairs of a dataset that reads several examples at once."""
    examples = dataset.__getitems__(indices)
    if len(examples) != len(indices):
        raise StructureError(
            f"{type(dataset).__name__}.__getitems__ returned {len(examples)} examples for "
            f"{len(indices)} indices."
        )
    return list(zip(indices, examples, strict=True))


def text_of(error: Exception) -> str:
    """The class and the message of an exception."""
    return f"{type(error).__name__}: {error}"


def _called(f: Any, value: Any, rng: np.random.Generator) -> Any:
    """The result of a map, which gets a generator if it has a parameter `rng`."""
    try:
        takes_rng = "rng" in inspect.signature(f).parameters
    except (TypeError, ValueError):  # some built-in functions have no signature
        takes_rng = False
    return f(value, rng=rng) if takes_rng else f(value)


def stack(examples: list[Any]) -> Any:
    """Stack the leaves of examples of one structure: the default `collate_fn`."""
    return nest.pack(examples[0], [_stacked(column) for column in _columns(examples)])


def _columns(examples: list[Any]) -> Iterator[list[Any]]:
    """The values of each leaf; StructureError if the examples have different structures."""
    first = examples[0]
    pairs = nest.children(first)
    if pairs is None:
        yield examples
        return
    if type(first) is dict and all(type(e) is dict and e.keys() == first.keys() for e in examples):
        inner = [[e[key] for e in examples] for key, _ in pairs]
    elif type(first) is tuple and all(type(e) is tuple and len(e) == len(first) for e in examples):
        inner = [list(column) for column in zip(*examples, strict=True)]
    else:
        rows = [nest.flatten_like(first, e, "an example") for e in examples]
        inner = [list(column) for column in zip(*rows, strict=True)]
    for column in inner:
        yield from _columns(column)


def _stacked(column: list[Any]) -> Any:
    if isinstance(column[0], (str, bytes)) or column[0] is None:
        return column
    return np.stack([_on_host(leaf) for leaf in column])


def _on_host(leaf: Any) -> Any:
    """A leaf that NumPy stacks: Tensors, and those of other libraries, become NumPy arrays."""
    if isinstance(leaf, Tensor):
        return leaf.numpy()
    is_foreign = hasattr(leaf, "__dlpack__") and not isinstance(leaf, np.ndarray)
    return np.asarray(from_dlpack(leaf, device="cpu")) if is_foreign else leaf
