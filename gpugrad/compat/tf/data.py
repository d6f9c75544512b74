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
from gpugrad.compat.tf.errors import ConversionError, DataLossError, OutOfRangeError
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
        for x in self._elements:
            return x
        raise OutOfRangeError("get_next: the Dataset has no more elements.")


def _lazily(length: Any = None) -> Any:
    """A function of a Dataset that returns an iterator, as a method that returns a Dataset.

    Args:
        length: of the result, a function of that of the Dataset and of the method's arguments;
            by default it is unknown.
    """

    def decorate(f: Callable[..., Iterable[Any]]) -> Callable[..., Dataset]:
        @functools.wraps(f)
        def method(self, *args, name=None, **options) -> Dataset:
            n = UNKNOWN_CARDINALITY if length is None else self._length
            n = n if n < 0 else length(n, *args, **options)
            return Dataset(lambda: f(self, *args, **options), n)

        return method

    return decorate


_same_length = _lazily(lambda n, *args, **options: n)


def _positive(batch_size) -> int:
    if int(batch_size) < 1:
        raise ArgumentError(f"tf.data: batch_size={int(batch_size)} is not positive.")
    return int(batch_size)


def _number_of_batches(n: int, batch_size, drop_remainder=False, *others, **options) -> int:
    size = _positive(batch_size)
    return n // size if drop_remainder else -(-n // size)


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
            raise ConversionError("len: the length of this Dataset is infinite or unknown.")
        return self._length

    def cardinality(self) -> Tensor:
        return gg.constant(self._length, "int64")

    @property
    def element_spec(self) -> Any:
        return nest.map_structure(TensorSpec.from_tensor, next(iter(self)))

    @staticmethod
    def from_tensor_slices(tensors, name=None) -> Dataset:
        arrays = _arrays(tensors)
        lengths = {x.shape[0] if x.ndim else -1 for x in nest.flatten(arrays)}
        if len(lengths) != 1 or -1 in lengths:
            raise ShapeError(
                f"from_tensor_slices: first axes of lengths {lengths} are not one length."
            )
        (n,) = lengths
        part = lambda i: nest.map_structure(lambda x: x[i], arrays)
        return Dataset(lambda: map(part, _count(n)), n)

    @staticmethod
    def from_tensors(tensors, name=None) -> Dataset:
        arrays = _arrays(tensors)
        return Dataset(lambda: [arrays], 1)

    @staticmethod
    def from_generator(
        generator, output_types=None, output_shapes=None, args=(), output_signature=None, name=None
    ) -> Dataset:
        types = output_signature if output_signature is not None else output_types

        def element(value) -> Any:
            if types is None:
                return _arrays(value)
            one = nest.children(types) is None
            parts = [value] if one else nest.flatten_like(types, value, "from_generator")
            pairs = zip(parts, nest.flatten(types), strict=True)
            return nest.pack(types, [tensor(v, getattr(s, "dtype", s)) for v, s in pairs])

        return Dataset(lambda: map(element, generator(*args)))

    @staticmethod
    def range(*args, output_type="int64", name=None) -> Dataset:
        numbers = range(*map(int, args))
        return Dataset(lambda: (gg.constant(i, output_type) for i in numbers), len(numbers))

    @staticmethod
    def zip(*datasets, name=None) -> Dataset:
        if len(datasets) == 1 and not isinstance(datasets[0], Dataset):
            (datasets,) = datasets
        lengths = [d._length for d in datasets if d._length != INFINITE_CARDINALITY]
        length = INFINITE_CARDINALITY if not lengths else min(lengths)
        return Dataset(lambda: zip(*datasets, strict=False), length)

    @_same_length
    def map(self, map_func, *others, **options) -> Any:
        return (_made(_call(map_func, x)) for x in self)

    @_lazily()
    def filter(self, predicate) -> Any:
        return (x for x in self if bool(_call(predicate, x)))

    @_lazily()
    def flat_map(self, map_func) -> Any:
        return itertools.chain.from_iterable(_call(map_func, x) for x in self)

    @_lazily()
    def interleave(self, map_func, cycle_length=None, block_length=1, **options) -> Any:
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

    @_same_length
    def enumerate(self, start=0) -> Any:
        return ((gg.constant(i, "int64"), x) for i, x in enumerate(self, start))

    @_same_length
    def scan(self, initial_state, scan_func) -> Any:
        state = initial_state
        for x in self:
            state, result = scan_func(state, x)
            yield _made(result)

    def reduce(self, initial_state, reduce_func, name=None) -> Any:
        state = _arrays(initial_state)
        for x in self:
            state = reduce_func(state, x)
        return state

    def take(self, count, name=None) -> Dataset:
        n = int(count)
        if n < 0:
            return self
        length = n if self._length == INFINITE_CARDINALITY else min(n, self._length)
        return Dataset(lambda: itertools.islice(self, n), length)

    @_lazily(lambda n, count: max(n - int(count), 0))
    def skip(self, count) -> Any:
        return itertools.islice(self, int(count), None)

    @_lazily(lambda n, num_shards, index: max(-(-(n - int(index)) // int(num_shards)), 0))
    def shard(self, num_shards, index) -> Any:
        return itertools.islice(self, int(index), None, int(num_shards))

    @_lazily()
    def take_while(self, predicate) -> Any:
        return itertools.takewhile(lambda x: bool(_call(predicate, x)), self)

    def repeat(self, count=None, name=None) -> Dataset:
        if count is None or int(count) < 0:
            return Dataset(lambda: _for_ever(self), INFINITE_CARDINALITY)
        n = int(count)
        length = self._length if self._length < 0 else self._length * n
        return Dataset(lambda: itertools.chain.from_iterable(self for _ in _count(n)), length)

    def concatenate(self, dataset: Dataset, name=None) -> Dataset:
        lengths = (self._length, dataset._length)
        length = min(lengths) if min(lengths) < 0 else sum(lengths)
        return Dataset(lambda: itertools.chain(self, dataset), length)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None) -> Dataset:
        seed = gg.random.integers((), 0, 2**31 - 1) if seed is None else seed
        rng = np.random.default_rng(int(seed))
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

    @_lazily(_number_of_batches)
    def batch(self, batch_size, drop_remainder=False, *others, **options) -> Any:
        return map(_stack, _chunks(self, batch_size, drop_remainder))

    @_lazily()
    def padded_batch(
        self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False
    ) -> Any:
        for chunk in _chunks(self, batch_size, drop_remainder):
            n = len(nest.flatten(chunk[0]))
            given = (_for_parts(x, chunk[0], n) for x in (padded_shapes, padding_values))
            settings = zip(*given, strict=True)
            yield _stack(chunk, lambda column: _padded(column, *next(settings)))  # noqa: B023

    def unbatch(self, name=None) -> Dataset:
        return self.flat_map(lambda *x: Dataset.from_tensor_slices(x[0] if len(x) == 1 else x))

    @_lazily()
    def window(self, size, shift=None, stride=1, drop_remainder=False) -> Any:
        size, stride, elements = int(size), int(stride), list(self)
        for start in range(0, len(elements), int(size if shift is None else shift)):
            part = elements[start : start + size * stride : stride]
            if drop_remainder and len(part) < size:
                return
            yield _stack(part, lambda column: Dataset(lambda: column, len(column)))

    def cache(self, filename="", name=None) -> Dataset:
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
        return transformation_func(self)

    def as_numpy_iterator(self) -> Iterator[Any]:
        return (nest.map_structure(lambda t: t.numpy()[()], x) for x in self)

    def get_single_element(self, name=None) -> Any:
        (element,) = self
        return element


class experimental:
    """Names of tf.data.experimental."""

    AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -1, -2
    cardinality = staticmethod(Dataset.cardinality)


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


def _chunks(elements: Iterable[Any], batch_size, drop_remainder: bool) -> Iterator[list[Any]]:
    size = _positive(batch_size)
    source = iter(elements)
    while chunk := list(itertools.islice(source, size)):
        if len(chunk) < size and drop_remainder:
            return
        yield chunk


def _stack(elements: list[Any], join: Callable[[list[Any]], Any] = gg.stack) -> Any:
    """Elements as one, in each part of which they are joined."""
    columns = zip(*map(nest.flatten, elements), strict=True)
    return nest.pack(elements[0], [join(list(column)) for column in columns])


def _for_parts(given, element, n: int) -> list[Any]:
    """The settings of the n parts of an element; one alone is for all."""
    if isinstance(given, dict):
        return [given[key] for key in element]
    if isinstance(given, tuple) and isinstance(element, tuple):
        return list(given)
    return [given] * n if given is None or n == 1 or np.ndim(given) == 0 else list(given)


def _padded(column: list[Tensor], shape, fill) -> Tensor:
    """Elements as one Tensor, with `fill` at their ends up to a shape, whose None is the most."""
    most = np.max([x.shape for x in column], axis=0).tolist()
    pairs = zip(most if shape is None else shape, most, strict=True)
    lengths = [m if n is None or int(n) == -1 else int(n) for n, m in pairs]
    if any(n < m for n, m in zip(lengths, most, strict=True)):
        raise DataLossError(f"padded_batch: an element of shape {most} is larger than {lengths}.")
    widths = [[(0, n - m) for n, m in zip(lengths, x.shape, strict=True)] for x in column]
    fill = 0 if fill is None else fill
    return gg.stack(
        [gg.pad(x, w, constant_values=fill) for x, w in zip(column, widths, strict=True)]
    )


__getattr__, __dir__ = forwarding(__name__, own=globals())
