"""Steps in which each rank keeps and computes a part of the optimizer's averages.

With ``shard="optimizer"`` each rank has whole Variables, with ``shard="parameters"`` its part of
them only. These are ZeRO 1 and ZeRO 3 of Rajbhandari et al. 2020, "ZeRO: Memory Optimizations
Toward Training Trillion Parameter Models".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.backend import TENSOR
from gpugrad.core.devices import copy_array, full_on_device_of
from gpugrad.core.ranks import Shard, join_shards
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.distributed.buckets import effect
from gpugrad.distributed.ops import all_gather, all_reduce, reduce_scatter
from gpugrad.distributed.world import World
from gpugrad.errors import ArgumentError
from gpugrad.optim.clip import all_finite
from gpugrad.optim.optimizer import Optimizer
from gpugrad.optim.step import Stepping
from gpugrad.trace.array import current_trace
from gpugrad.trace.tracing import Tracing


class Part(NamedTuple):
    """A stretch of a Variable's elements that belongs to one rank.

    Attributes:
        place: the position of the Variable.
        start, stop: the elements, of the flat Variable.
    """

    place: int
    start: int
    stop: int


def cut_evenly(sizes: Sequence[int], ranks: int) -> list[list[Part]]:
    """The parts of each rank if all get equally many elements.

    >>> cut_evenly([3, 3], 2)
    [[Part(place=0, start=0, stop=3)], [Part(place=1, start=0, stop=3)]]
    """
    most = -(-sum(sizes) // ranks)
    parts: list[list[Part]] = [[] for _ in range(ranks)]
    at = 0
    for k, n in enumerate(sizes):
        start = 0
        while start < n:
            rank = (at + start) // most
            stop = min(n, most * (rank + 1) - at)
            parts[rank].append(Part(k, start, stop))
            start = stop
        at += n
    return parts


def deal_whole(sizes: Sequence[int], ranks: int) -> list[list[Part]]:
    """The parts of each rank if a Variable belongs to one rank: the largest first, to the emptiest.

    >>> [[part.place for part in parts] for parts in deal_whole([5, 2, 2], 2)]
    [[0], [1, 2]]
    """
    parts: list[list[Part]] = [[] for _ in range(ranks)]
    for k in sorted(range(len(sizes)), key=lambda k: -sizes[k]):
        min(parts, key=lambda own: sum(p.stop for p in own)).append(Part(k, 0, sizes[k]))
    return parts


class Layout:
    """The elements of some Variables that belong to each rank.

    Attributes:
        parts: of each rank.
        length: of the longest part of a rank, to which the others are padded.
    """

    def __init__(self, parts: list[list[Part]], variables: Sequence[Variable]) -> None:
        self.parts, self._like = parts, variables[0]
        self._shapes = [v.shape for v in variables]
        self.length = max(sum(p.stop - p.start for p in own) for own in parts)

    def padded(self, own: Sequence[Tensor]) -> list[Tensor]:
        """The flat pieces of a rank, and zeros."""
        n = self.length - sum(piece.size for piece in own)
        return [*own, wrap(full_on_device_of(self._like._data, (n,), self._like.dtype))]

    def gathered(self, own: Sequence[Tensor]) -> dict[int, Tensor]:
        """Whole arrays by place, from the flat pieces of each rank."""
        flat = all_gather(TENSOR.concat(self.padded(own), axis=0))
        pieces: dict[int, list[Tensor]] = {}
        for rank, parts in enumerate(self.parts):
            at = rank * self.length
            for p in parts:
                pieces.setdefault(p.place, []).append(flat[at : at + p.stop - p.start])
                at += p.stop - p.start
        return {
            k: TENSOR.reshape(
                some[0] if len(some) == 1 else TENSOR.concat(some, axis=0), self._shapes[k]
            )
            for k, some in pieces.items()
        }


class Sharded:
    """The steps of an optimizer on the parts of this rank, and its state as if it were whole.

    Args:
        name: of the optimizer, in messages.
        inner: steps the Variables that hold the parts of this rank.
        variables: the whole ones.
    """

    def __init__(
        self, name: str, inner: Optimizer, variables: Sequence[Variable], world: World
    ) -> None:
        if inner.limits.get("clipnorm") is not None:
            raise ArgumentError(
                f"{name}: shard= goes without clipnorm=. Clip by global_clipnorm= or clipvalue=."
            )
        if any(state.step for state in inner._states.values()):
            raise ArgumentError(f"{name}: the inner optimizer has stepped before shard= was set.")
        self._name, self._inner, self._world, self._variables = name, inner, world, variables
        self._clipnorm, self._skips = inner.limits.get("global_clipnorm"), inner.skip_nonfinite
        if self._clipnorm is not None:
            inner.limits = {}  # the norm is that of all ranks
        inner.skip_nonfinite = False
        inner._states.clear()  # averages of whole Variables, which `build` has begun
        self._sizes = {v._id: v.size for v in variables}
        self._own: dict[int, tuple[Variable, Part]] = {}  # by id of the whole Variable

    def _keep_groups(self, chosen: Mapping[int, Any]) -> None:
        """Let Variables belong to groups that their whole ones were chosen for."""
        for group in self._inner.groups:
            group.selector = lambda _, v, group=group: chosen.get(v._id) is group

    def _apply(self, own: Sequence[Any], others: Sequence[Any], when: Any) -> None:
        """Step with gradients of own parts, and with `others`, which all ranks have.

        Args:
            own, others: pairs of a gradient and a Variable.
            when: whether to step, the same on all ranks.
        """
        like = self._variables[0]
        with recording_stopped(keep=Tracing):
            grads = [g for g, _ in (*own, *others)]
            one = wrap(full_on_device_of(like._data, (), np.dtype("float64"), 1.0))
            if self._skips:
                finite = TENSOR.astype(all_finite(grads), "float64") if grads else one
                finite = all_reduce(finite, "mean") == 1
                when = finite if when is True else TENSOR.logical_and(finite, when)
            if self._clipnorm is not None:
                norm = TENSOR.sqrt(all_reduce(_squares(own, one)) + _squares(others, one))
                factor = self._clipnorm / TENSOR.maximum(norm, self._clipnorm)
                own, others = (
                    [(g * TENSOR.astype(factor, g.dtype), v) for g, v in pairs]
                    for pairs in (own, others)
                )
        if own or others:
            options = {} if when is True else {"when": when}
            self._inner.apply_gradients([*own, *others], **options)
            return
        # this rank has no part of so few elements, and counts the step

        def count(*condition: Any) -> list[Any]:
            self._inner._take([], *(condition or (when,)))
            return []

        conditions = [when] if isinstance(when, Tensor) else []
        effect(like.device, "count_step", count, conditions, captured=False)

    # -- state

    def _named(self, names: Mapping[str, Variable] | None) -> tuple[Any, dict[str, Variable]]:
        """The whole Variables by name, and those that hold the parts of this rank."""
        named = names or {self._inner._paths.get(v._id, v.name): v for v in self._variables}
        return named, {n: self._own[v._id][0] for n, v in named.items() if v._id in self._own}

    def shards(self, names: Mapping[str, Variable] | None) -> dict[str, Any]:
        """The state of this rank: a Tensor, or of one Variable a `Shard`, by name."""
        named, own = self._named(names)
        state: dict[str, Any] = {}
        for key, value in self._inner.state_dict(own).items():
            name = _owner(key, own)
            array, n, start = value.numpy(), 0, 0
            if name is None:
                state[key] = value
                continue
            shape = array.shape
            whole, (variable, part) = self._sizes[named[name]._id], self._own[named[name]._id]
            if array.ndim and variable.size < whole:
                n = array.size // variable.size  # 2 if complex
                start, shape = part.start * n, (whole * n,)
            state[key] = Shard(array.reshape(-1), start, shape)
        return state

    def state_dict(self, names: Mapping[str, Variable] | None) -> dict[str, Tensor]:
        """The state as if one process had stepped whole Variables; all ranks call it."""
        state = self.shards(names)
        shards = {k: s for k, s in state.items() if isinstance(s, Shard)}
        joined = join_shards(self._world.gather(shards))
        return state | {k: wrap(a) for k, a in joined.items()}

    def load_state_dict(
        self, state: Mapping[str, Any], names: Mapping[str, Variable] | None
    ) -> None:
        """Load a state of whole Variables, whatever number of ranks it is from."""
        (named, used), own = self._named(names), {}
        for key, value in state.items():
            array = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
            name = _owner(key, named)
            if name is None:
                own[key] = array
            elif name in used:
                whole, (variable, part) = self._sizes[named[name]._id], self._own[named[name]._id]
                n = array.size // whole if array.ndim and variable.size < whole else 0
                own[key] = array[part.start * n : part.stop * n] if n else array
        self._inner.load_state_dict(own, used)


class ShardedOptimizer(Sharded):
    """Each rank has the averages of a part of the elements, and steps that part."""

    def __init__(
        self, name: str, inner: Optimizer, variables: Sequence[Variable], world: World, _: Any
    ) -> None:
        super().__init__(name, inner, variables, world)
        dtypes = {v.dtype for v in variables}
        if len(dtypes) > 1:
            raise ArgumentError(
                f"{name}: shard='optimizer' takes Variables of one dtype, got "
                f"{sorted(map(str, dtypes))}."
            )
        whole = reads_whole(inner)
        parts = (deal_whole if whole else cut_evenly)([v.size for v in variables], world.size)
        self._layout = Layout(parts, variables)
        chosen = {}
        for part in parts[world.rank]:
            parent = variables[part.place]
            value = copy_array(parent._data.reshape(-1)[part.start : part.stop])
            value = value.reshape(parent.shape) if whole else value
            own = Variable(wrap(value), name=parent.name, device=parent.device)
            inner._paths[own._id] = inner.path_of(parent)
            self._own[parent._id] = own, part
            chosen[own._id] = inner._group_of(parent)
        self._keep_groups(chosen)

    def step(self, grads: Sequence[Any], share: Tensor, when: Any) -> None:
        """Step with means of dense gradients; those of a rank without data may all be None."""
        held = [v for v, _ in self._own.values()]
        if current_trace() is None or self._variables[0].device.kind == "cpu":
            self._refresh()
        with recording_stopped(keep=Tracing):
            mean, at, pairs = reduce_scatter(self._flat(grads, share)), 0, []
            for v in held:
                pairs.append((TENSOR.reshape(mean[at : at + v.size], v.shape), v))
                at += v.size
        self._apply(pairs, (), when)
        with recording_stopped(keep=Tracing):
            new = self._layout.gathered([TENSOR.reshape(v.value(), (v.size,)) for v in held])
            for k, value in new.items():
                self._variables[k].assign(value)

    def _refresh(self) -> None:
        """Take the values of the whole Variables, to which others may have written.

        A CUDA graph updates the parts in place, so it cannot: there, `load_state_dict` does.
        """
        with recording_stopped(keep=Tracing):
            for v, part in self._own.values():
                flat = TENSOR.reshape(self._variables[part.place].value(), (-1,))
                v.assign(TENSOR.reshape(flat[part.start : part.stop], v.shape))

    def load_state_dict(
        self, state: Mapping[str, Any], names: Mapping[str, Variable] | None
    ) -> None:
        """Load a state of whole Variables, and take their values."""
        super().load_state_dict(state, names)
        self._refresh()

    def _flat(self, grads: Sequence[Any], share: Tensor) -> Tensor:
        """The shares of this rank in the means, part by part."""
        lacking = [v.name for v, g in zip(self._variables, grads, strict=True) if g is None]
        like = self._variables[0]
        if len(lacking) == len(grads):
            n = self._layout.length * self._world.size
            return wrap(full_on_device_of(like._data, (n,), like.dtype))
        if lacking:
            raise ArgumentError(
                f"{self._name}: with shard= every Variable needs a gradient; None for {lacking}."
            )
        factor = TENSOR.astype(share, like.dtype)
        flat = [
            TENSOR.where(TENSOR.equal(share, 0.0), 0.0, TENSOR.reshape(g, (g.size,)) * factor)
            for g in grads
        ]
        pieces = []
        for parts in self._layout.parts:
            pieces += self._layout.padded([flat[p.place][p.start : p.stop] for p in parts])
        return TENSOR.concat(pieces, axis=0)


def reads_whole(inner: Optimizer) -> bool:
    """Whether an optimizer reads whole Variables."""
    return type(inner).by_array is not Stepping.by_array


def _squares(pairs: Sequence[Any], one: Tensor) -> Tensor:
    """The sum of squares of gradients, in float64."""
    total = one * 0
    for g, _ in pairs:
        wide = TENSOR.astype(g, "float32") if g.dtype.itemsize == 2 else g
        total = total + TENSOR.astype(TENSOR.sum(TENSOR.square(TENSOR.abs(wide))), "float64")
    return total


def _owner(key: str, names: Mapping[str, Any]) -> str | None:
    """The name that a key of a state begins with, the longest of several."""
    return max((n for n in names if key.startswith(f"{n}.")), key=len, default=None)
