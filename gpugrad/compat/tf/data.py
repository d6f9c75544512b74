"""tf.data.Dataset: chains of Python generators over nested structures of Tensors."""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf.convert import tensor
from gpugrad.compat.tf.errors import OutOfRangeError
from gpugrad.compat.tf.shapes import TensorSpec
from gpugrad.core import nest
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError

AUTOTUNE = -1
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2


class OwnedIterator:
    """The iterator of a Dataset."""

    def __init__(self, elements: Iterable[Any]) -> None:
        self._elements = iter(elements)

    def __iter__(self) -> OwnedIterator:
        return self

    def __next__(self) -> Any:
        return next(self._elements)

    next = __next__

    def get_next(self, name=None) -> Any:
        """The next element.

        Raises:
            OutOfRangeError: there is none.
        """
        for x in self._elements:
            return x
        raise OutOfRangeError("get_next: the Dataset has no more elements.")


class Dataset:
    """Elements that can be iterated over again and again; its methods return other Datasets.

    >>> import gpugrad.compat.tf as tf
    >>> numbers = tf.data.Dataset.range(5).map(lambda x: x * 2).batch(2)
    >>> [batch.numpy().tolist() for batch in numbers]
    [[0, 2], [4, 6], [8]]
    """

    def __init__(self, begin: Callable[[], Iterable[Any]], length=UNKNOWN_CARDINALITY) -> None:
        self._begin, self._length = begin, length

    def __iter__(self) -> OwnedIterator:
        return OwnedIterator(self._begin())

    def __len__(self) -> int:
        if self._length < 0:
            raise ArgumentError("len: the length of this Dataset is infinite or unknown.")
        return self._length

    def cardinality(self) -> Tensor:
        """The number of elements; -1 if it is infinite, -2 if it is unknown."""
        return gg.constant(self._length, "int64")

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of an element."""
        return nest.map_structure(TensorSpec.from_tensor, next(iter(self)))

    @staticmethod
    def from_tensor_slices(tensors, name=None) -> Dataset:
        """The parts along the first axis of a structure of arrays."""
        arrays = _arrays(tensors)
        lengths = {x.shape[0] if x.ndim else -1 for x in nest.flatten(arrays)}
        if len(lengths) != 1 or -1 in lengths:
            raise ShapeError(
                f"from_tensor_slices: first axes of lengths {lengths} are not one length."
            )
        (n,) = lengths
        part = lambda i: nest.map_structure(lambda x: x[i], arrays)  # noqa: E731
        return Dataset(lambda: map(part, _count(n)), n)

    @staticmethod
    def from_tensors(tensors, name=None) -> Dataset:
        """One element."""
        arrays = _arrays(tensors)
        return Dataset(lambda: [arrays], 1)

    @staticmethod
    def from_generator(
        generator, output_types=None, output_shapes=None, args=(), output_signature=None, name=None
    ) -> Dataset:
        """The elements that a function's generator yields."""
        types = output_signature if output_signature is not None else output_types

        def begin() -> Iterator[Any]:
            for value in generator(*args):
                if types is None:
                    yield _arrays(value)
                else:
                    leaves = nest.flatten(value) if nest.children(types) is not None else [value]
                    specs = nest.flatten(types)
                    made = [
                        tensor(v, getattr(s, "dtype", s))
                        for v, s in zip(leaves, specs, strict=True)
                    ]
                    yield nest.pack(types, made)

        return Dataset(begin)

    @staticmethod
    def range(*args, output_type="int64", name=None) -> Dataset:
        """Numbers as of Python's ``range``."""
        numbers = range(*map(int, args))
        return Dataset(lambda: (gg.constant(i, output_type) for i in numbers), len(numbers))

    @staticmethod
    def zip(*datasets, name=None) -> Dataset:
        """Tuples of elements of several Datasets, up to the end of the shortest."""
        each = (
            datasets[0] if len(datasets) == 1 and not isinstance(datasets[0], Dataset) else datasets
        )
        lengths = [d._length for d in each if d._length != INFINITE_CARDINALITY]
        length = INFINITE_CARDINALITY if not lengths else min(lengths)
        return Dataset(lambda: zip(*each, strict=False), length)

    def map(self, map_func, *others, **options) -> Dataset:
        """A function of each element; the parts of a tuple are its arguments."""
        return Dataset(lambda: (_made(_call(map_func, x)) for x in self), self._length)

    def filter(self, predicate, name=None) -> Dataset:
        """The elements for which a function is true."""
        return Dataset(lambda: (x for x in self if bool(_call(predicate, x))))

    def flat_map(self, map_func, name=None) -> Dataset:
        """The elements of the Datasets that a function makes of each element."""
        return Dataset(lambda: itertools.chain.from_iterable(_call(map_func, x) for x in self))

    def interleave(self, map_func, cycle_length=None, block_length=1, **options) -> Dataset:
        """Elements of several of a function's Datasets in turn, `block_length` of each."""

        def begin() -> Iterator[Any]:
            sources = (iter(_call(map_func, x)) for x in self)
            open_ = deque(itertools.islice(sources, int(cycle_length or 1)))
            while open_:
                source = open_.popleft()
                block = list(itertools.islice(source, int(block_length)))
                yield from block
                if len(block) == int(block_length):
                    open_.append(source)
                else:
                    open_.extend(itertools.islice(sources, 1))

        return Dataset(begin)

    def enumerate(self, start=0, name=None) -> Dataset:
        """Pairs of a number and an element."""
        numbered = lambda: ((gg.constant(i, "int64"), x) for i, x in enumerate(self, start))  # noqa: E731
        return Dataset(numbered, self._length)

    def scan(self, initial_state, scan_func, name=None) -> Dataset:
        """The results of a function of the state so far and of each element."""

        def begin() -> Iterator[Any]:
            state = initial_state
            for x in self:
                state, result = scan_func(state, x)
                yield _made(result)

        return Dataset(begin, self._length)

    def reduce(self, initial_state, reduce_func, name=None) -> Any:
        """The last state of a function of the state so far and of each element."""
        state = _arrays(initial_state)
        for x in self:
            state = reduce_func(state, x)
        return state

    def take(self, count, name=None) -> Dataset:
        """The first elements; all for -1."""
        n = int(count)
        if n < 0:
            return self
        length = n if self._length == INFINITE_CARDINALITY else min(n, self._length)
        return Dataset(lambda: itertools.islice(self, n), length)

    def skip(self, count, name=None) -> Dataset:
        """Without the first elements."""
        n = int(count)
        length = self._length if self._length < 0 else max(self._length - n, 0)
        return Dataset(lambda: itertools.islice(self, n, None), length)

    def shard(self, num_shards, index, name=None) -> Dataset:
        """Each `num_shards`-th element from number `index` on."""
        n, first = int(num_shards), int(index)
        length = self._length if self._length < 0 else max(-(-(self._length - first) // n), 0)
        return Dataset(lambda: itertools.islice(self, first, None, n), length)

    def take_while(self, predicate, name=None) -> Dataset:
        """The elements before the first for which a function is false."""
        return Dataset(lambda: itertools.takewhile(lambda x: bool(_call(predicate, x)), self))

    def repeat(self, count=None, name=None) -> Dataset:
        """All elements several times; for ever by default."""
        if count is None or int(count) < 0:
            return Dataset(lambda: _for_ever(self), INFINITE_CARDINALITY)
        n = int(count)
        length = self._length if self._length < 0 else self._length * n
        return Dataset(lambda: itertools.chain.from_iterable(self for _ in _count(n)), length)

    def concatenate(self, dataset: Dataset, name=None) -> Dataset:
        """The elements of both."""
        lengths = (self._length, dataset._length)
        length = min(lengths) if min(lengths) < 0 else sum(lengths)
        return Dataset(lambda: itertools.chain(self, dataset), length)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None) -> Dataset:
        """In random order: each is drawn from the next `buffer_size` elements."""
        rng = np.random.default_rng(_seed() if seed is None else int(seed))
        fixed = int(rng.integers(2**31))

        def begin() -> Iterator[Any]:
            own = np.random.default_rng(fixed) if reshuffle_each_iteration is False else rng
            buffer: list[Any] = []
            for x in self:
                if len(buffer) < int(buffer_size):
                    buffer.append(x)
                    continue
                i = int(own.integers(len(buffer)))
                yield buffer[i]
                buffer[i] = x
            yield from (buffer[i] for i in own.permutation(len(buffer)))

        return Dataset(begin, self._length)

    def batch(self, batch_size, drop_remainder=False, *others, **options) -> Dataset:
        """Elements stacked, `batch_size` at a time."""
        size = int(batch_size)
        full, rest = divmod(self._length, size)
        length = self._length if self._length < 0 else full + (rest > 0 and not drop_remainder)
        return Dataset(lambda: map(_stack, _chunks(self, size, drop_remainder)), length)

    def padded_batch(
        self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None
    ) -> Dataset:
        """Elements of several lengths padded and stacked."""
        fill = 0 if padding_values is None else padding_values

        def stack(elements: list[Any]) -> Any:
            columns = zip(*map(nest.flatten, elements), strict=True)
            padded = []
            for column in columns:
                shape = np.max([x.shape for x in column], axis=0).tolist()
                padded.append([_pad(x, shape, fill) for x in column])
            return nest.pack(elements[0], [gg.stack(column) for column in padded])

        return Dataset(lambda: map(stack, _chunks(self, int(batch_size), drop_remainder)))

    def unbatch(self, name=None) -> Dataset:
        """The parts of each element along the first axis."""
        return self.flat_map(lambda *x: Dataset.from_tensor_slices(x[0] if len(x) == 1 else x))

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None) -> Dataset:
        """Datasets of `size` elements, each `shift` after the one before."""
        size, step = int(size), int(size if shift is None else shift)

        def begin() -> Iterator[Any]:
            elements = list(self)
            for start in range(0, len(elements), step):
                part = elements[start : start + size * int(stride) : int(stride)]
                if drop_remainder and len(part) < size:
                    return
                columns = zip(*map(nest.flatten, part), strict=True)
                each = [Dataset(functools.partial(list, column), len(column)) for column in columns]
                yield nest.pack(part[0], each)

        return Dataset(begin)

    def cache(self, filename="", name=None) -> Dataset:
        """Elements kept from the first pass on."""
        kept: list[Any] = []

        def begin() -> Iterator[Any]:
            if kept:
                yield from kept[0]
                return
            elements = []
            for x in self:
                elements.append(x)
                yield x
            kept.append(elements)

        return Dataset(begin, self._length)

    def prefetch(self, buffer_size=None, name=None) -> Dataset:
        """Itself: `gpugrad.prefetch_to_device` reads ahead."""
        return self

    with_options = prefetch

    def apply(self, transformation_func) -> Dataset:
        """A function of the Dataset."""
        made: Dataset = transformation_func(self)
        return made

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Elements as NumPy arrays."""
        return (nest.map_structure(lambda t: t.numpy()[()], x) for x in self)

    def get_single_element(self, name=None) -> Any:
        """The only element."""
        (element,) = self
        return element


class experimental:
    """Names of tf.data.experimental."""

    AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -1, -2
    cardinality = staticmethod(Dataset.cardinality)


def _seed() -> int:
    return int(gg.random.integers((), 0, 2**31 - 1))


def _count(n: int) -> range:
    return range(n)


def _for_ever(dataset: Dataset) -> Iterator[Any]:
    while (block := iter(dataset)) and (first := list(itertools.islice(block, 1))):
        yield from itertools.chain(first, block)


def _arrays(structure) -> Any:
    """Tensors of a structure whose lists are arrays, as TensorFlow takes it."""
    if isinstance(structure, tuple):
        parts = [_arrays(x) for x in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    if isinstance(structure, dict):
        return {key: _arrays(x) for key, x in structure.items()}
    if hasattr(structure, "to_numpy"):  # pandas
        structure = structure.to_numpy()
    return structure if isinstance(structure, Dataset) else tensor(structure)


def _made(result) -> Any:
    return tuple(map(_arrays, result)) if isinstance(result, list) else _arrays(result)


def _call(f, x) -> Any:
    return f(*x) if isinstance(x, tuple) and not hasattr(x, "_fields") else f(x)


def _chunks(elements: Iterable[Any], size: int, drop_remainder: bool) -> Iterator[list[Any]]:
    source = iter(elements)
    while chunk := list(itertools.islice(source, size)):
        if len(chunk) < size and drop_remainder:
            return
        yield chunk


def _stack(elements: list[Any]) -> Any:
    columns = zip(*map(nest.flatten, elements), strict=True)
    return nest.pack(elements[0], [gg.stack(list(column)) for column in columns])


def _pad(x: Tensor, shape: list[int], fill) -> Tensor:
    widths = [(0, n - m) for n, m in zip(shape, x.shape, strict=True)]
    return gg.pad(x, widths, constant_values=fill) if any(map(any, widths)) else x


__getattr__, __dir__ = forwarding(__name__, own=globals())
