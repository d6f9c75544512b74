"""DataLoader: batches in seeded order, made ahead of time by threads or processes."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core.arguments import ABOVE_0, COUNT, FLAG, FUNCTION, WHOLE, optional, takes
from gpugrad.core.ranks import ranks
from gpugrad.core.replaceable import raised_by_handler
from gpugrad.data.batches import NoItems, Work, numbers_of, stack, text_of
from gpugrad.data.workers import InProcess, InThread, end_all
from gpugrad.errors import ArgumentError, DataError, saying_where
from gpugrad.trace.profiling import timed_batches


class LoaderState(NamedTuple):
    """Where a loader is: what `DataLoader.load_state` needs to go on.

    >>> loader = gg.data.DataLoader(np.arange(4), batch_size=2)
    >>> loader.state()
    LoaderState(epoch=0, batch=0)
    """

    epoch: int
    """The number of epochs that have ended."""
    batch: int
    """The number of batches of the next or current epoch that were returned."""


@dataclasses.dataclass
class _Task:
    """A batch that a worker makes; a second worker does if the first one dies."""

    arguments: tuple[int, int, Sequence[Any]]  # of `Work.batch`
    worker: InThread | InProcess
    future: Future[Any]
    again: bool = False
    process: int = dataclasses.field(default_factory=os.getpid)


class DataLoader:
    """Batches of a dataset; each iteration over the loader is one epoch.

    Args:
        dataset: an object with a length that returns an example for an index, such as `Arrays`, a
            list, a dataset of torch or of Hugging Face; or any iterable, such as their
            `IterableDataset`, which is iterated anew in each epoch, after a call of ``set_epoch``
            if it has that. A method ``__getitems__`` gets the indices of a batch and returns a list
            of examples.
        batch_size: examples of a batch.
        shuffle: whether each epoch has a new order, which depends only on `seed` and the epoch. An
            iterable is shuffled within a buffer of `shuffle_buffer` examples.
        seed: of the order, and of the generators that maps get.
        drop_last: whether a last batch that is smaller is left out.
        map: function that is applied to each example. If it has a parameter `rng`, it is passed a
            `numpy.random.Generator` that depends only on seed, epoch and index: workers and
            resuming do not change results.
        batch_map: function that is applied to each batch, such as those in `gg.data.augment`; `rng`
            as for `map`.
        num_workers: how many workers prepare batches ahead of time; 0 prepares them on demand.
        processes: whether workers are processes instead of threads, for Python code that holds the
            interpreter's lock. The dataset and the functions must then be picklable.
        prefetch: the most batches that each worker prepares ahead.
        collate_fn: function of a list of examples; by default leaves are stacked into arrays.
        shuffle_buffer: see `shuffle`.
        shard: whether each rank of `gg.distributed` gets its part of each batch of `batch_size`
            examples. The batches of one process are divided, so each rank gets equally many
            batches, and no example occurs twice. If a last batch has fewer examples than there are
            ranks, some ranks get empty arrays. The position is that of one process, so a run can
            resume with another number of ranks.
        timeout: seconds that your loop waits for a batch of a worker; None waits for ever.

    Raises:
        ArgumentError: the dataset is empty; a number is wrong; `drop_last` would leave nothing.
        DataError: while iterating, an exception of the dataset or of a map, with the item's index;
            a batch took longer than `timeout`, or ended a worker process twice.

    A worker process that dies is replaced, and its batch is prepared again.

    An iteration that ends early, such as ``next(iter(loader))``, uses up its epoch: the next
    iteration is a new epoch. `state` and `load_state` resume exactly, even in the middle of an
    epoch. ``gg.prefetch_to_device`` copies the batches to a GPU ahead of time.

    >>> loader = gg.data.DataLoader(range(5), batch_size=2, map=lambda k: k * 10)
    >>> [batch.tolist() for batch in loader], len(loader)
    ([[0, 10], [20, 30], [40]], 3)
    """

    @saying_where
    @takes(batch_size=COUNT, shuffle=FLAG, seed=WHOLE, drop_last=FLAG, processes=FLAG)
    @takes(map=optional(FUNCTION), batch_map=optional(FUNCTION), collate_fn=FUNCTION)
    @takes(num_workers=WHOLE, prefetch=COUNT, shuffle_buffer=COUNT, timeout=optional(ABOVE_0))
    @takes(shard=FLAG)
    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        seed: int = 0,
        drop_last: bool = False,
        map: Callable[..., Any] | None = None,
        batch_map: Callable[..., Any] | None = None,
        num_workers: int = 0,
        processes: bool = False,
        prefetch: int = 2,
        collate_fn: Callable[[list[Any]], Any] = stack,
        shuffle_buffer: int = 1024,
        shard: bool = False,
        timeout: float | None = None,
    ) -> None:
        self.batch_size, self.shuffle, self.seed = batch_size, shuffle, seed
        self.drop_last, self.num_workers, self.processes = drop_last, num_workers, processes
        self.prefetch, self._buffer = prefetch, shuffle_buffer
        self._indexed = _is_indexed(dataset)
        self._work = Work(dataset, map, batch_map, collate_fn, self.seed)
        self._position, self._resumes = LoaderState(0, 0), False
        self.timeout, self.shard = timeout, shard
        self._workers: list[InThread | InProcess] = []
        self._owner = os.getpid()
        if self._indexed and not len(dataset):
            raise ArgumentError("DataLoader: the dataset is empty.")
        if self._indexed and drop_last and len(dataset) < batch_size:
            raise ArgumentError(
                f"DataLoader: the dataset has {len(dataset)} examples, fewer than batch_size="
                f"{batch_size}, so with drop_last=True there is no batch."
            )

    def __len__(self) -> int:
        if not self._indexed:
            raise TypeError("DataLoader: the length of an iterable is not known.")
        n = len(self._work.dataset)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    # ---- state

    def state(self) -> LoaderState:
        """The position after the last batch that your loop got, also through prefetching."""
        return self._position

    def upcoming(self) -> LoaderState:
        """The position at which the next iteration will begin.

        That is a new epoch, unless `load_state` was called since the last iteration began.
        """
        epoch, batch = self._position
        if batch and (not self._resumes or (self._indexed and batch == len(self))):
            return LoaderState(epoch + 1, 0)
        return self._position

    def note_returned(self, position: LoaderState) -> None:
        """Set `state`: called by prefetchers, which take batches before your loop gets them."""
        self._position = position

    @saying_where
    def load_state(self, state: Sequence[int]) -> None:
        """Continue at a position that `state` returned, with the rest of its epoch.

        >>> loader = gg.data.DataLoader(range(6), batch_size=2, shuffle=True)
        >>> batches = iter(loader)
        >>> _ = next(batches)
        >>> other = gg.data.DataLoader(range(6), batch_size=2, shuffle=True)
        >>> other.load_state(loader.state())
        >>> [b.tolist() for b in other] == [b.tolist() for b in batches]
        True
        """
        if not isinstance(state, Sequence) or len(state) != 2:
            raise ArgumentError(f"DataLoader: expected a pair (epoch, batch), got {state!r:.60}.")
        epoch, batch = map(WHOLE, ["DataLoader"] * 2, LoaderState._fields, state)
        if self._indexed and batch > len(self):
            raise ArgumentError(
                f"DataLoader: the state is at batch {batch}, but an epoch has {len(self)}: it is "
                "of other data or of another batch_size."
            )
        self._position, self._resumes = LoaderState(epoch, batch), True

    # ---- iteration

    def __iter__(self) -> Iterator[Any]:
        epoch, done = self._position = self.upcoming()
        self._resumes = False
        if not self._indexed and hasattr(self._work.dataset, "set_epoch"):
            self._work.dataset.set_epoch(epoch)
        first, step = (ranks.rank, ranks.size) if self.shard else (0, 1)  # maps draw other numbers
        numbers = itertools.count(first, step)
        numbered = itertools.islice(zip(numbers, self._items(epoch), strict=False), done, None)
        with contextlib.closing(self._made(epoch, numbered)) as batches:
            for batch in timed_batches("DataLoader", batches):
                done += 1
                self._position = LoaderState(epoch, done)
                yield batch
        if not done:
            raise ArgumentError("DataLoader: the iterable is empty, or has less than a batch.")
        self._position = LoaderState(epoch + 1, 0)

    def _items(self, epoch: int) -> Iterator[Sequence[Any]]:
        rng = np.random.default_rng([self.seed, epoch])
        pairs = self._from_iterable(rng)
        chunks = iter(lambda: list(itertools.islice(pairs, self.batch_size)), [])
        for chunk in self._indices(rng) if self._indexed else chunks:
            if len(chunk) == self.batch_size or not self.drop_last:
                yield self._part(chunk) if self.shard else chunk

    def _part(self, chunk: list[Any]) -> list[Any]:
        """The items of this rank in a batch of all."""
        start, stop = (len(chunk) * r // ranks.size for r in (ranks.rank, ranks.rank + 1))
        return chunk[start:stop] or NoItems(chunk[:1])

    def _indices(self, rng: np.random.Generator) -> Iterator[list[int]]:
        """The indices of each batch; a list of all would take 36 bytes an example."""
        n = len(self._work.dataset)
        order = rng.permutation(n) if self.shuffle else None
        for start in range(0, n, self.batch_size):
            stop = min(start + self.batch_size, n)
            yield list(range(start, stop)) if order is None else order[start:stop].tolist()

    def _from_iterable(self, rng: np.random.Generator) -> Iterator[tuple[int, Any]]:
        pairs = enumerate(self._work.dataset)
        if not self.shuffle:
            yield from pairs
            return
        buffer: list[tuple[int, Any]] = []
        for pair in pairs:
            if len(buffer) < self._buffer:
                buffer.append(pair)
                continue
            k = rng.integers(len(buffer))
            yield buffer[k]
            buffer[k] = pair
        rng.shuffle(buffer)
        yield from buffer

    def _made(self, epoch: int, numbered: Iterator[tuple[int, Any]]) -> Generator[Any]:
        """The batches, in order; at most `prefetch` for each worker are made ahead."""
        if not self.num_workers:
            for number, items in numbered:
                yield self._work.batch(epoch, number, items)
            return
        tasks: deque[_Task] = deque()
        try:
            for number, items in numbered:
                self._submit((epoch, number, items), tasks)
                if len(tasks) > self.prefetch * self.num_workers:
                    yield self._result(tasks)
            while tasks:
                yield self._result(tasks)
        finally:
            for task in tasks:
                if task.process == os.getpid():
                    task.future.cancel()

    def _go_on_in_fork(self, tasks: deque[_Task]) -> None:
        """Start new workers for the tasks in a fork, which has none of the old ones."""
        if self._owner != os.getpid():
            self._workers, self._owner = [], os.getpid()
        if tasks and tasks[0].process != self._owner:
            begun = [task.arguments for task in tasks]
            tasks.clear()
            for arguments in begun:
                self._submit(arguments, tasks)

    def _submit(self, arguments: tuple[int, int, Sequence[Any]], tasks: deque[_Task]) -> None:
        """Give a batch to the worker that has the fewest."""
        self._go_on_in_fork(tasks)
        if len(self._workers) < self.num_workers:
            self._workers.append((InProcess if self.processes else InThread)(self._work))
        busy = [task.worker for task in tasks if not task.future.done()]
        worker = min(reversed(self._workers), key=busy.count)
        tasks.append(_Task(arguments, worker, self._begun(worker, arguments)))

    def _begun(self, worker: InThread | InProcess, arguments: Any) -> Future[Any]:
        try:
            return worker.submit(*arguments)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            self.close()
            raise ArgumentError(
                "DataLoader: processes=True pickles the dataset and the functions, which failed: "
                f"{error}. Define them at the top of a module, or use threads."
            ) from error

    def _result(self, tasks: deque[_Task]) -> Any:
        self._go_on_in_fork(tasks)
        task = tasks.popleft()
        batch = f"the batch of {numbers_of(task.arguments[2])}"
        try:
            return task.future.result(self.timeout)
        except DataError:
            raise
        except Exception as error:
            if raised_by_handler(error):
                raise
            if isinstance(error, BrokenExecutor):
                self._leave(task.worker)
                if not task.again:
                    return self._result(self._repeated(task, tasks))
                raise DataError(
                    f"DataLoader: a worker process died, and with it {batch}, twice. Processes "
                    "import the main script anew, which must start its work below `if __name__ == "
                    '"__main__":`; functions of a notebook must be in a module. Or the memory did '
                    "not suffice."
                ) from error
            if not task.future.done():
                self._leave(task.worker)
                raise DataError(
                    f"DataLoader: a worker has not made {batch} within timeout={self.timeout} "
                    "seconds. The next iteration has a new worker."
                ) from error
            raise DataError(  # all others are of the way back
                f"DataLoader: a worker process cannot return {batch}, which must be picklable: "
                f"{text_of(error)}"
            ) from error

    def _leave(self, worker: InThread | InProcess) -> None:
        """End a worker at once; the next batch starts a new one."""
        if worker in self._workers:
            self._workers.remove(worker)
        end_all([worker], 0.0)

    def _repeated(self, first: _Task, tasks: deque[_Task]) -> deque[_Task]:
        """The tasks, of which a new worker makes those of one that died."""
        died, worker = first.worker, InProcess(self._work)
        self._workers.append(worker)
        first.again = True
        for task in (first, *tasks):
            if task.worker is died:
                task.worker, task.future = worker, self._begun(worker, task.arguments)
        tasks.appendleft(first)
        return tasks

    def close(self) -> None:
        """Stop the workers; the next iteration starts new ones.

        A busy worker has one second to end. After that a process is killed, and a thread is left
        alone.
        """
        workers, self._workers = self._workers, []
        end_all(workers)


def _is_indexed(dataset: Any) -> bool:
    """Whether a dataset has a length and examples by index, and not only an iterator."""
    if isinstance(dataset, Mapping) and 0 not in dataset:
        raise ArgumentError(
            "DataLoader: a dict has no examples 0, 1, ...; if it holds arrays of one length, pass "
            "gg.data.Arrays(dict)."
        )
    # those of torch inherit a __getitem__ that raises, and may have a length
    is_stream = any(kind.__name__ == "IterableDataset" for kind in type(dataset).__mro__)
    if not is_stream and hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__"):
        if getattr(dataset, "shape", None) == ():
            raise ArgumentError(f"DataLoader: an array of shape () has no examples: {dataset!r}.")
        return True
    if not hasattr(dataset, "__iter__"):
        raise ArgumentError(
            "DataLoader: dataset must have a length and examples by index, such as gg.data.Arrays, "
            f"or be iterable, got {dataset!r:.60}."
        )
    if iter(dataset) is dataset:
        raise ArgumentError(
            "DataLoader: an iterator can be read only once. Pass what makes one, such as a list or "
            "a class with __iter__."
        )
    return False
