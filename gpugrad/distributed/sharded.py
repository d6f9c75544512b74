"""Steps in which each rank keeps and computes a part of the optimizer's averages (ZeRO 1 and 2).

Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models".
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.backend import TENSOR
from gpugrad.core.convert import constant
from gpugrad.core.devices import full_on_device_of
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.core.variable import Variable
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
    loads = [0] * ranks
    for k in sorted(range(len(sizes)), key=lambda k: -sizes[k]):
        rank = loads.index(min(loads))
        loads[rank] += sizes[k]
        parts[rank].append(Part(k, 0, sizes[k]))
    return parts


class Sharded:
    """The steps of an optimizer on the part of this rank, and its state as if it were whole.

    Args:
        name: of the optimizer, in messages.
        inner: steps Variables that hold the parts of this rank, in the groups of their parents.
        variables: of one dtype; those that the parts are taken from.
    """

    def __init__(
        self, name: str, inner: Optimizer, variables: Sequence[Variable], world: World
    ) -> None:
        dtypes = {v.dtype for v in variables}
        if len(dtypes) > 1 or inner.limits.get("clipnorm") is not None:
            raise ArgumentError(
                f"{name}: shard='optimizer' takes Variables of one dtype and no clipnorm=, got "
                f"{sorted(map(str, dtypes))}. Clip by global_clipnorm= or clipvalue=."
            )
        self._name, self._inner, self._world = name, inner, world
        self._variables = variables
        whole = type(inner).by_array is not Stepping.by_array  # which reads whole Variables
        self._parts = (deal_whole if whole else cut_evenly)([v.size for v in variables], world.size)
        self._length = max(sum(p.stop - p.start for p in parts) for parts in self._parts)
        self._clipnorm = inner.limits.get("global_clipnorm")
        self._skips = inner.skip_nonfinite
        if self._clipnorm is not None:
            inner.limits = {}  # the norm is that of all ranks
        inner.skip_nonfinite = False
        self._own = [self._own_variable(p, whole) for p in self._parts[world.rank]]
        parents = dict(zip([v._id for v, _ in self._own], [p for _, p in self._own], strict=True))
        for group in inner.groups:
            selects = copy.copy(group).selects  # by the selector of before
            group.selector = lambda path, v, selects=selects: selects(path, parents.get(v._id, v))

    def _own_variable(self, part: Part, whole: bool) -> tuple[Variable, Variable]:
        """A Variable that holds a part, and the one that it is a part of."""
        parent = self._variables[part.place]
        value = parent._data.reshape(-1)[part.start : part.stop].copy()
        value = value.reshape(parent.shape) if whole else value
        own = Variable(wrap(value), name=parent.name, device=parent.device)
        self._inner._paths[own._id] = self._inner.path_of(parent)
        return own, parent

    def step(self, grads: Sequence[Any], weight: Any, when: Any) -> None:
        """Step with means of dense gradients; those of a rank with weight 0 may be None."""
        with recording_stopped(keep=Tracing):
            own = reduce_scatter(self._flat(grads, weight))
            if self._skips:
                finite = all_reduce(TENSOR.astype(all_finite([own]), own.dtype), "mean") == 1
                when = finite if when is True else TENSOR.logical_and(finite, when)
            if self._clipnorm is not None:
                norm = TENSOR.sqrt(all_reduce(TENSOR.sum(own * own)))
                own = own * (self._clipnorm / TENSOR.maximum(norm, self._clipnorm))
            pairs, at = [], 0
            for variable, _ in self._own:
                stop = at + variable.size
                pairs.append((TENSOR.reshape(own[at:stop], variable.shape), variable))
                at = stop
        options = {} if when is True else {"when": when}
        if pairs:
            self._inner.apply_gradients(pairs, **options)
        with recording_stopped(keep=Tracing):
            held = [TENSOR.reshape(v.value(), (v.size,)) for v, _ in self._own]
            new = all_gather(TENSOR.concat(self._padded(held), axis=0))
            self._assign(new)

    def _flat(self, grads: Sequence[Any], weight: Any) -> Tensor:
        """The shares of this rank in the means, part by part."""
        none = isinstance(weight, (int, float)) and weight == 0
        lacking = [v.name for v, g in zip(self._variables, grads, strict=True) if g is None]
        if lacking and not none:
            raise ArgumentError(
                f"{self._name}: with shard= every Variable needs a gradient; None for {lacking}."
            )
        like = self._variables[0]
        total = all_reduce(
            TENSOR.astype(weight, like.dtype)
            if isinstance(weight, Tensor)
            else constant(weight, like.dtype, device=like.device)
        )
        if current_trace() is None and not float(total) > 0:
            raise ArgumentError(
                f"{self._name}: no rank has data: the sum of all weights is {float(total):g}."
            )
        if none:
            data = full_on_device_of(like._data, (self._length * self._world.size,), like.dtype)
            return wrap(data)
        flat = [TENSOR.reshape(g, (g.size,)) * (weight / total) for g in grads]
        pieces = [
            piece
            for parts in self._parts
            for piece in self._padded([flat[p.place][p.start : p.stop] for p in parts])
        ]
        return TENSOR.concat(pieces, axis=0)

    def _padded(self, pieces: list[Tensor]) -> list[Tensor]:
        """Flat pieces, and zeros up to the length of a rank's part."""
        like = self._variables[0]
        n = self._length - sum(p.size for p in pieces)
        return [*pieces, wrap(full_on_device_of(like._data, (n,), like.dtype))]

    def _assign(self, new: Tensor) -> None:
        """Give the Variables the values of all ranks' parts."""
        pieces: dict[int, list[Tensor]] = {}
        for rank, parts in enumerate(self._parts):
            at = rank * self._length
            for p in parts:
                pieces.setdefault(p.place, []).append(new[at : at + p.stop - p.start])
                at += p.stop - p.start
        for k, variable in enumerate(self._variables):
            own = pieces.get(k, [])
            if own:
                value = own[0] if len(own) == 1 else TENSOR.concat(own, axis=0)
                variable.assign(TENSOR.reshape(value, variable.shape))

    # -- state

    def _names(self, names: Mapping[str, Variable] | None) -> dict[str, Variable]:
        if names is None:
            return {self._inner._paths.get(v._id, v.name): v for v in self._variables}
        return dict(names)

    def state_dict(self, names: Mapping[str, Variable] | None) -> dict[str, Tensor]:
        """The state as if one process had stepped whole Variables; all ranks call it."""
        of_parent = {p._id: v for v, p in self._own}
        state: dict[str, Tensor] = {}
        for name, variable in self._names(names).items():
            own = of_parent.get(variable._id)
            part = {} if own is None else self._inner.state_dict({name: own})
            arrays = {key: value.numpy() for key, value in part.items()}
            for key, pieces in _by_key(self._world.gather(arrays)).items():
                joins = len(pieces) > 1 and pieces[0].ndim == 1 and key.startswith(f"{name}.")
                state[key] = wrap(np.concatenate(pieces) if joins else pieces[0])
        return state

    def load_state_dict(
        self, state: Mapping[str, Any], names: Mapping[str, Variable] | None
    ) -> None:
        """Load a state of whole Variables, whatever number of ranks it is from."""
        of_parent = {p._id: v for v, p in self._own}
        parts = {self._variables[p.place]._id: p for p in self._parts[self._world.rank]}
        named = self._names(names)
        own, used = {}, {}
        for key, value in state.items():
            array = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
            name = max((n for n in named if key.startswith(f"{n}.")), key=len, default=None)
            if name is None:
                own[key] = array
                continue
            variable = named[name]
            if variable._id in of_parent:
                used[name] = of_parent[variable._id]
                part, n = parts[variable._id], array.size // variable.size if array.ndim else 0
                cut = n and part.stop - part.start < variable.size
                own[key] = array[part.start * n : part.stop * n] if cut else array
        self._inner.load_state_dict(own, used)


def _by_key(states: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The values of each key, in the order of ranks."""
    found: dict[str, list[Any]] = {}
    for state in states:
        for key, value in state.items():
            found.setdefault(key, []).append(value)
    return found
