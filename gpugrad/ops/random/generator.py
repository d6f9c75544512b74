"""Streams of random numbers: a key, and a counter that only goes up.

`Generator._draw` makes all noise. It takes counters under a lock, then calls a kernel on the GPU.
Noise without a kernel comes from `philox` or `rejection` on the host, and is copied to the device.
The numbers depend only on (key, counter, position), so they are the same on every device, for
every thread, and however many are drawn at once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpugrad.autodiff.batched import Level, levels_of, levels_running, levels_stopped
from gpugrad.autodiff.borders import unwrap_level, wrap_level
from gpugrad.core import devices
from gpugrad.core.backend import TENSOR
from gpugrad.core.forking import before_fork, in_child, new_lock
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import ArgumentError
from gpugrad.kernels.by_hand.random import draws, noise_on, state_of
from gpugrad.kernels.cpu import random as cpu_kernels
from gpugrad.ops.random import philox
from gpugrad.ops.random.draws import Drawn, once
from gpugrad.ops.random.kinds import KINDS, OWN, blocks
from gpugrad.trace.array import current_trace, pause_trace

Array = np.ndarray[Any, Any]
_ALGORITHM = "philox4x64-10"
# counter word 3 where keys are derived; it is 0 where numbers are drawn
_SPLIT, _FOLD, _FORK = 1, 2, 3
_COUNTERS = 1 << 64
_MOST_CHILDREN = 1 << 17  # of one call; each is an object


def _natural(name: str, what: str, value: Any, end: int | None = None) -> int:
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64)
    if not is_whole or value < 0 or (end and value >= end):
        below = f" and below {end}" if end else ""
        raise ArgumentError(f"{name}: {what} must be an int of at least 0{below}, got {value!r}.")
    return int(value)


if TYPE_CHECKING:  # the methods that gpugrad.random adds, in a stub
    from gpugrad.ops.random.generator_methods import Draws
else:
    Draws = object


class Generator(Draws):
    """A stream of random numbers, with the functions of `gg.random` as methods.

    Args:
        seed: int of at least 0, or NumPy's ``SeedSequence``; generators with the same seed produce
            the same numbers. None for a seed from the operating system.

    A draw takes the next counters of the stream, as many as it needs. The first ten numbers of a
    draw of a thousand are the numbers of a draw of ten (except in permutations, which depend on
    all elements). Threads may share a generator: no two draws share a counter. Copies and pickles
    continue with the same numbers as the original. So do the copies in forked processes: give each
    process ``g.fold_in(i)``. Only the default generator starts anew there: see `set_seed`.

    >>> g = gg.random.Generator(0)
    >>> g.normal((2, 3)).shape
    (2, 3)
    """

    def __init__(self, seed: int | np.random.SeedSequence | None = None) -> None:
        sequence = seed if isinstance(seed, np.random.SeedSequence) else None
        if sequence is None and seed is not None:
            seed = _natural("Generator", "a seed", seed)
        self._lock = new_lock()

        def start() -> None:
            words = sequence or np.random.SeedSequence(seed)  # type: ignore[arg-type]
            k0, k1 = words.generate_state(2, np.uint64)
            self._start((int(k0), int(k1)))

        self._now_and_at_replay("Generator", start)

    def _start(self, key: philox.Key, counter: int = 0, children: int = 0, forks: int = 0) -> None:
        with self._lock:
            self._key, self._counter, self._children, self._forks = key, counter, children, forks

    def _now_and_at_replay(self, name: str, do: Callable[[], None]) -> None:
        """Start this generator or others; in a traced function, at each replay too."""
        trace = current_trace()
        if trace is None:
            do()
        else:
            trace.effect(name, lambda: do() or [], undo=self._undo)  # type: ignore[func-returns-value]

    def _undo(self) -> Callable[[], None]:
        """A function that resets the stream to its present state."""
        if not hasattr(self, "_key"):  # under construction
            return lambda: None
        return functools.partial(self._start, self._key, self._counter, self._children, self._forks)

    def _derived(self, words: tuple[int, int, int, int]) -> philox.Key:
        return philox.block(self._key, words)[:2]

    def _unstarted(self) -> Generator:
        generator = object.__new__(type(self))
        generator._lock = new_lock()
        return generator

    def split(self, n: int = 2) -> list[Generator]:
        """`n` generators with numbers independent of this generator's and of each other's.

        The key of child i, counted over all calls, is words 0 and 1 of the block of counter
        (i, 0, 0, 1), which no draw reads. Drawing and splitting do not affect each other.

        >>> a, b = gg.random.Generator(0).split(2)
        >>> bool(gg.any(a.normal(3) == b.normal(3)))
        False
        """
        n = _natural("split", "n", n, _MOST_CHILDREN)
        children = [self._unstarted() for _ in range(n)]

        def start() -> None:
            with self._lock:
                first, self._children = self._children, self._children + n
            for i, child in enumerate(children, first):
                child._start(self._derived((i, 0, 0, _SPLIT)))

        self._now_and_at_replay("split", start)
        return children

    def fold_in(self, data: int) -> Generator:
        """The generator of this key and a number, such as the number of a step or of a replica.

        It does not depend on earlier draws and splits. Its key is words 0 and 1 of the block of
        counter (low word of `data`, high word, 0, 2).

        >>> g = gg.random.Generator(0)
        >>> bool(gg.all(g.fold_in(7).normal(3) == g.fold_in(7).normal(3)))
        True
        """
        data = _natural("fold_in", "data", data, 1 << 128)
        child, words = self._unstarted(), (data % _COUNTERS, data >> 64, 0, _FOLD)
        self._now_and_at_replay("fold_in", lambda: child._start(self._derived(words)))
        return child

    @property
    def state(self) -> dict[str, Any]:
        """The state of the stream, in ints, lists and strings; assign it to return to it."""
        with self._lock:
            counts = {"counter": self._counter, "children": self._children}
            return {"algorithm": _ALGORITHM, "key": list(self._key), **counts}

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        try:
            if not isinstance(value, Mapping):
                raise TypeError(f"{value!r:.60}")
            if value["algorithm"] != _ALGORITHM:
                raise ValueError(f"its algorithm is {value['algorithm']!r}, not {_ALGORITHM!r}")
            k0, k1 = (_natural("key", "a word", k, 1 << 64) for k in value["key"])
            counter = _natural("state", "the counter", value["counter"], _COUNTERS)
            children = _natural("state", "children", value["children"], 1 << 64)
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(f"Generator: this is not a generator's state: {error}") from error
        self._now_and_at_replay("generator state", lambda: self._start((k0, k1), counter, children))

    def __reduce__(self) -> Any:
        return _restore, (self.state,)

    def _take(self, blocks: int, about: Any = None) -> tuple[philox.Key, int]:
        """The key, and the first of `blocks` counters for one draw, which `about` describes."""

        def take() -> tuple[philox.Key, int]:
            with self._lock:
                first, after = self._counter, self._counter + blocks
                if after >= _COUNTERS:
                    raise ArgumentError(
                        f"Generator: a draw of {blocks} blocks of 256 bits is larger than what the "
                        "stream has left. Draw less, or from a generator of its own: split()."
                    )
                self._counter = after
                return self._key, first

        return once((blocks, about), take)

    def _give_back(self, blocks: int) -> None:
        """Return the counters of the last draw, which took `blocks`."""
        with self._lock:
            self._counter -= blocks

    def _place(self, n: int, bits: int) -> tuple[philox.Key, int] | None:
        """The key and first counter of a draw of `n` words, for callers that make the numbers.

        None in a trace, where each replay draws, and under vmap, where each example draws.
        """
        if current_trace() is not None or levels_running():
            return None
        return self._take(-(-n * bits // 256), n)

    def _stream(self, n: int, device: Any) -> Tensor | None:
        """The position of `n` 32-bit words: a uint64 Tensor (4,), for ops that make the numbers.

        None under vmap, where each example may have numbers of its own.
        """
        if levels_running():
            return None
        written, trace = _Place(self, n, device), current_trace()
        if trace is None:
            return written()[0]
        about = [((4,), np.dtype(np.uint64))]

        def write() -> Tensor:
            return trace.effect("random stream", written, [], undo=self._undo, about=about)[0]

        return once(("stream", n), write)

    def _draw(self, kind, shape, dtype, device, *parameters, before=None) -> Tensor:
        """Noise of one of `KINDS`, in `shape`, on `device`.

        `parameters` are numbers or, for samplers by rejection, also Tensors that broadcast to
        `shape`. `before` (a `Drawn` or None) holds earlier draws of the same call: the next draw
        has the counters of the first with another word 2, so that it does not depend on its length.
        """
        trace, levels = current_trace(), _levels_with_own_numbers(kind)
        if trace is not None and levels_running():  # a replay runs without these levels
            lead = tuple(level.size for level in levels)
            parameters = tuple(_with_examples(p, shape, levels) for p in parameters)
            with levels_stopped():
                noise = self._draw(kind, lead + shape, dtype, device, *parameters, before=before)
            return functools.reduce(lambda t, level: wrap_level(t, level, 0), levels, noise)
        if trace is not None:  # other numbers at each replay, in the order of the calls
            written = _Written(self, kind, shape, dtype, device, parameters, before)
            tensors = [p for p in parameters if isinstance(p, Tensor)]

            def write() -> Tensor:
                options = {"undo": self._undo, "about": [(shape, dtype)]}
                return trace.effect(f"random {kind}", written, tensors, **options)[0]

            return once((kind, shape), write)
        bits, make = KINDS[kind]
        whole = (*(level.size for level in levels), *shape) if levels else shape
        n, dtype = math.prod(whole), np.dtype(dtype)
        d = devices.require(devices.device(device))  # a call that fails takes no numbers
        key, first = self._counters(kind, n, dtype, before)
        if d.kind == "cpu":
            values = cpu_kernels.noise(kind, key, first, n, dtype)
        else:
            values = noise_on(d, kind, key, first, n, dtype, *parameters)
        if values is NotImplemented:
            on_host = [_on_host(p, shape, levels) if bits == OWN else p for p in parameters]
            values = make(key, first, n, dtype, *on_host)
            values = values if d.kind == "cpu" else devices.put(values, d)
        noise = wrap(values.reshape(whole))
        for level in levels:
            noise = wrap_level(noise, level, 0)
        return noise

    def _counters(
        self, kind: str, n: int, dtype: np.dtype[Any], before: Drawn | None
    ) -> tuple[philox.Key, int]:
        """The key and first counter of a draw of `n` numbers; `before` as for `_draw`."""
        if before is not None and before.places:
            key, first = before.places[0]
            first += len(before.places) << 128
        else:
            key, first = self._take(blocks(kind, n, dtype), (kind, n, dtype))
        if before is not None:
            before.places.append((key, first))
        return key, first


class _Written:
    """A draw as a step of a trace: it makes other numbers at each replay."""

    version = 0

    def __init__(self, generator, kind, shape, dtype, device, parameters, before) -> None:
        self._generator, self._kind, self._parameters = generator, kind, parameters
        self._shape, self._dtype, self.device = shape, np.dtype(dtype), devices.device(device)
        self._before, self._is_first = before, before is not None and before.traced == 0
        if before is not None:
            before.traced += 1

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        left = iter(tensors)
        parameters = [next(left) if isinstance(p, Tensor) else p for p in self._parameters]
        self._begin()
        draw, about = self._generator._draw, (self._kind, self._shape, self._dtype, self.device)
        return [draw(*about, *parameters, before=self._before)]

    def _begin(self) -> None:
        if self._is_first and self._before is not None:
            self._before.places.clear()

    @property
    def launched(self) -> _Written | None:
        """Itself, if it is a kernel."""
        on_host = self.device.kind == "cpu" or any(isinstance(p, Tensor) for p in self._parameters)
        return None if on_host or not draws(self._kind, self._dtype) else self

    def numbers(self) -> list[Array]:
        """The stream's key and counter, which moves on."""
        self._begin()
        n = math.prod(self._shape)
        return [state_of(*self._generator._counters(self._kind, n, self._dtype, self._before))]

    def uncount(self) -> None:
        """Undo the last call of `numbers`."""
        if self._before is not None:
            self._before.places.pop()
        if self._before is None or not self._before.places:
            n = math.prod(self._shape)
            self._generator._give_back(blocks(self._kind, n, self._dtype))

    def launch(self, arrays: list[Any], values: list[Any], live: list[Any]) -> list[Any]:
        """The numbers, from the key and counter on the device."""
        about = self._kind, (0, 0), 0, math.prod(self._shape), self._dtype
        noise = noise_on(self.device, *about, *self._parameters, state=live[0])
        return [noise.reshape(self._shape)]


class _Place:
    """A position in the stream as a step of a trace: another one at each replay."""

    version = 0

    def __init__(self, generator: Generator, n: int, device: Any) -> None:
        self._generator, self._blocks = generator, -(-n * 32 // 256)
        self.device = devices.device(device)

    def __call__(self) -> list[Tensor]:
        return [wrap(devices.put(self.numbers()[0], self.device))]

    @property
    def launched(self) -> _Place | None:
        """Itself, on a GPU."""
        return None if self.device.kind == "cpu" else self

    def numbers(self) -> list[Array]:
        """The key and the counter, which moves on."""
        return [state_of(*self._generator._take(self._blocks))]

    def uncount(self) -> None:
        """Undo the last call of `numbers`."""
        self._generator._give_back(self._blocks)

    def launch(self, arrays: list[Any], values: list[Any], live: list[Any]) -> list[Any]:
        """The key and counter, which are on the device already."""
        return [live[0]]


def _levels_with_own_numbers(kind: str) -> list[Level]:
    """The running vmaps, outermost first, whose examples get different numbers."""
    levels = levels_running()
    if not levels:
        return []
    if any(level.randomness == "error" for level in levels):
        raise ArgumentError(
            f"random: {kind} numbers under vmap. Choose whether each example gets its own: "
            "vmap(..., randomness='different'), or all get the same: randomness='same'."
        )
    return [level for level in levels if level.randomness == "different"]


def _with_examples(parameter: Any, shape: tuple[int, ...], levels: Sequence[Level]) -> Any:
    """A parameter broadcast to each element, examples first; a number is returned unchanged."""
    if isinstance(parameter, Tensor):
        parameter = TENSOR.broadcast_to(parameter, shape)
        for level in reversed(levels):
            parameter = unwrap_level(parameter, level, 0)
        if levels_of(parameter._data):
            raise ArgumentError(
                "random: under vmap with randomness='same' the parameters of these numbers must "
                "be the same for all examples too. Use vmap(..., randomness='different')."
            )
    return parameter


def _on_host(parameter: Any, shape: tuple[int, ...], levels: Sequence[Level]) -> Array:
    """The values of a parameter for each element, examples first, on the host."""
    parameter = _with_examples(parameter, shape, levels)
    if isinstance(parameter, Tensor):
        parameter = devices.host(parameter._data)
    lead = tuple(level.size for level in levels)
    values = np.asarray(parameter, np.float64)
    return np.broadcast_to(values, lead + shape).reshape(-1)


def _restore(state: dict[str, Any]) -> Generator:
    generator = Generator(0)
    generator.state = state
    return generator


with pause_trace():  # the import may be in a traced function, which would start it at each replay
    _default = Generator()


def _count_fork() -> None:
    _default._forks += 1


def _restart_in_child() -> None:
    """Give the child of the i-th fork, from 0, the key of the block of counter (i, 0, 0, 3)."""
    _default._start(_default._derived((_default._forks - 1, 0, 0, _FORK)))


before_fork(_count_fork)
in_child(_restart_in_child)


def default_generator() -> Generator:
    """The generator that the functions of `gg.random` use by default.

    In a forked process it starts anew, with numbers of its own: see `set_seed`.

    >>> generator = gg.random.default_generator()
    >>> generator.normal((2,)).shape
    (2,)
    """
    return _default


def set_seed(seed: int) -> None:
    """Restart the default generator, so that random numbers repeat from here on.

    A forked process gets other numbers than its parent and all other children. They depend only on
    the seed and on how many forks came between `set_seed` and this one, so the workers of a data
    loader repeat their numbers too. A process that does not start as a fork has a random seed.

    Args:
        seed: int of at least 0.

    >>> gg.set_seed(1)
    >>> a = gg.random.normal(3)
    >>> gg.set_seed(1)
    >>> bool(gg.all(a == gg.random.normal(3)))
    True
    """
    _default.state = Generator(seed).state
