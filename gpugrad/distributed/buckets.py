"""Means over ranks of the gradients of many Variables, in few collectives."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core import devices
from gpugrad.core.backend import READINGS
from gpugrad.core.devices import Device
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.distributed.world import world
from gpugrad.errors import ArgumentError, DistributedError
from gpugrad.kernels.runtime.launch import is_captured
from gpugrad.trace.array import current_trace
from gpugrad.trace.repeated import Repeated, nothing_to_undo


class Bucket(NamedTuple):
    """Variables of one dtype whose gradients are one array on their way."""

    dtype: Any  # of the array
    places: list[int]  # the positions of the Variables
    nbytes: int  # of the array, if all of them have gradients


def make_buckets(
    variables: Sequence[Variable],
    nbytes: int,
    compress: Any = None,
    places: Collection[int] | None = None,
) -> list[Bucket]:
    """Buckets of about `nbytes` bytes, in the reverse order of the Variables.

    Backward passes make gradients in that order.

    Args:
        compress: a 16-bit dtype in which float32 and float64 gradients travel; None keeps theirs.
        places: positions of the Variables that buckets hold; None for all.
    """
    buckets: list[Bucket] = []
    for k in sorted(range(len(variables)) if places is None else places, reverse=True):
        v = variables[k]
        dtype = compress if compress is not None and v.dtype.kind == "f" else v.dtype
        own = v.size * dtype.itemsize
        at = max((j for j, b in enumerate(buckets) if b.dtype == dtype), default=len(buckets))
        if at < len(buckets) and buckets[at].nbytes + own <= nbytes:
            _, some, held = buckets[at]
            buckets[at] = Bucket(dtype, [*some, k], held + own)
        else:
            buckets.append(Bucket(dtype, [k], own))
    return buckets


def effect(
    device: Device,
    name: str,
    function: Callable[..., list[Any]],
    tensors: Sequence[Tensor],
    about: Sequence[Any] = (),
    captured: bool = True,
    **how: Any,
) -> list[Tensor]:
    """Results of a function of plain arrays, now or at each replay.

    Args:
        about: shapes and dtypes of the results.
        captured, how: as for `Repeated`.
    """
    trace = current_trace()
    if trace is None:
        return [*map(wrap, function(*[t._data for t in tensors]))]
    call = Repeated(function, device, captured, **how)
    return trace.effect(name, call, tensors, (), nothing_to_undo, about)


class Averager:
    """Makes gradients of this rank's data those of all ranks' data.

    A header tells first: the weights of the ranks, whether all of them step, and how many have a
    gradient of each Variable, dense or as rows. Then the buckets follow, and rows. These are the
    same collectives whether a rank runs eagerly or replays a program, and whatever gradients it
    has. In a trace each bucket is two effects: the first starts the sum, the second waits for it.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        nbytes: int,
        compress: Any = None,
        places: Collection[int] | None = None,
    ) -> None:
        self._variables, self._is_part = variables, places is not None
        self._effect = functools.partial(effect, variables[0].device)
        self._buckets = make_buckets(variables, nbytes, compress, places)
        self._headers: dict[Any, Any] = {}  # headers on a device, by what they say
        self._waiting: dict[int, Any] = {}  # what ends the sum of a bucket
        self._sends_rows = False  # whether the step of now may: see `_header`

    def __call__(self, grads: Sequence[Any], weight: Any, when: Any) -> tuple[list[Any], Any]:
        """The means of all Variables' gradients, and whether all ranks step.

        Args:
            grads: a Tensor, IndexedSlices or None for each Variable.
            weight, when: as for `header`.

        Returns:
            The means, with None where no rank has a gradient; rows where all ranks have rows.
        """
        share, steps, kinds = self.header(grads, weight, when)
        traced = current_trace() is not None
        results: list[Any] = [None] * len(grads)
        waits = []
        for number, bucket in enumerate(self._buckets):
            parts = [k for k in bucket.places if kinds[k] == _DENSE]
            if parts:
                waits.append(self._start(number, bucket.dtype, parts, grads, share, weight))
                if not traced:  # the memory of a bucket at a time
                    waits.pop()(results)
        for wait in waits:
            wait(results)
        for k, kind in enumerate(kinds):
            if kind == _ROWS:
                results[k] = self._rows(k, grads[k], share, weight)
        return results, steps

    def header(
        self, grads: Sequence[Any], weight: Any, when: Any
    ) -> tuple[Tensor, Any, Sequence[int]]:
        """The share of this rank in all weights, whether all ranks step, and kinds of gradients.

        Args:
            weight: of this rank's gradients: a number, or a Tensor of one element.
            when: whether this rank wants to step: a bool, or a Tensor of one element.

        Returns:
            A float64 Tensor of one element; a bool, or in a trace what `when` is; numbers of kinds.
        """
        own = [*map(_kind, grads)]
        rows = [g.indices.size + 1 if isinstance(g, IndexedSlices) else 0 for g in grads]
        traced, found = current_trace() is not None, list[Any]()
        on_gpu = self._variables[0].device.kind == "cuda"

        def share_of(*conditions: Any) -> list[Any]:
            left = iter(conditions)
            own_weight = next(left).reshape(1) if isinstance(weight, Tensor) else weight
            wanted = next(left).reshape(()) if isinstance(when, Tensor) else when
            like = self._variables[0]._data
            with devices.formulas_on(like):
                head = self._head(like, own, rows, own_weight, wanted, traced and on_gpu)
                world().run(f"header of {len(own)} gradients", "sum_in_place", head)
                steps: Any = head[3:4].reshape(()) == world().size
                kinds: Sequence[int] = own
                if not is_captured(like):  # else an earlier run has seen that all ranks agree
                    counts = devices.host(head)
                    kinds = self._kinds(own, counts, when, traced)
                    self._sends_rows = not counts[0]
                    steps = bool(counts[3] == world().size)
                lib = READINGS[type(head)].lib
                share = lib.where(head[1:2] > 0, own_weight / head[1:2], 0.0)
                found[:] = [steps, kinds]
                return [share, lib.asarray(steps)] if isinstance(when, Tensor) else [share]

        conditions = [x for x in (weight, when) if isinstance(x, Tensor)]
        about = [((1,), np.dtype(float)), ((), np.dtype(bool))][: 1 + isinstance(when, Tensor)]
        on_host = isinstance(when, Tensor)  # which reads the condition
        share, *steps = self._effect(
            "share_of_weights", share_of, conditions, about, captured=not on_host, early=True
        )
        if not traced:
            return share, found[0], found[1]
        return share, steps[0] if steps else when, own

    def _head(
        self, like: Any, kinds: list[int], rows: list[int], weight: Any, when: Any, dense: bool
    ) -> Any:
        """``[only dense gradients, weight, its square, whether to step, is dense..., rows...]``."""
        is_number = isinstance(weight, (int, float)) and isinstance(when, bool)
        numbers = (weight, weight**2, when) if is_number else (0.0, 0.0, False)
        key = (devices.device_of(like), dense, *numbers, *kinds, *rows)
        kept = self._headers.get(key)
        if kept is None:
            values = [dense, *numbers, *(kind == _DENSE for kind in kinds), *rows]
            kept = READINGS[type(like)].lib.asarray(np.array(values, float))
            self._headers[key] = kept
            if len(self._headers) > 64:  # weights that differ from step to step
                self._headers.pop(next(iter(self._headers)))
        head = kept.copy()
        if not is_number:
            head[1:2], head[2:3], head[3:4] = weight, weight**2, when
        return head

    def _kinds(self, own: list[int], counts: Any, when: Any, traced: bool) -> Sequence[int]:
        """The kinds of the gradients of all ranks together."""
        total, size = counts[1], world().size
        if not 0 < total < math.inf:
            why = f"the sum of all weights is {total:g}."
            no_data = "no rank has data: " if total == 0 else ""
            raise ArgumentError(f"distributed.Optimizer: {no_data}{why}")
        if self._is_part and abs(size * counts[2] - total**2) > 1e-9 * total**2:
            raise ArgumentError(
                "distributed.Optimizer: with shard='parameters' the backward pass sums gradients, "
                "so all ranks need equal weights: batches that the ranks divide evenly, as by "
                "DataLoader(..., drop_last=True)."
            )
        dense, rows = counts[4:].reshape(2, -1)
        kinds = np.where(rows > 0, _ROWS, np.where(dense > 0, _DENSE, _NONE)).tolist()
        if traced and when is True and counts[3] < size:
            raise DistributedError(
                f"distributed.Optimizer: a rank skips this step, which the traced step of rank "
                f"{world().rank} cannot. Pass when= on all ranks."
            )
        for v, mine, kind in zip(self._variables, own, kinds, strict=True) if traced else ():
            if mine != kind:
                raise DistributedError(
                    f"distributed.Optimizer: other ranks have {_WORDS[kind]} of '{v.name}', but "
                    f"the traced step of rank {world().rank} has {_WORDS[mine]}. Call the same "
                    "function on all ranks, or step eagerly."
                )
        return kinds

    def _start(
        self, number: int, dtype: Any, parts: list[int], grads: Any, share: Tensor, weight: Any
    ) -> Callable[[list[Any]], None]:
        """Begin the sum of a bucket; returns the function that waits for the means."""
        variables = [self._variables[k] for k in parts]
        ends = np.cumsum([0, *(v.size for v in variables)]).tolist()
        spans = [*itertools.pairwise(ends)]
        own_spans = [s for s, k in zip(spans, parts, strict=True) if grads[k] is not None]

        def start(own: Any, *arrays: Any) -> list[Any]:
            lib = READINGS[type(own)].lib
            with devices.formulas_on(own):
                flat = lib.zeros(ends[-1], dtype=dtype)
                for (at, end), g in zip(own_spans, arrays, strict=True):
                    flat[at:end] = _times(lib, g.reshape(-1), own, weight)
                text = f"bucket {number + 1} of {len(self._buckets)}, {dtype}[{ends[-1]}]"
                self._waiting[number] = world().run(text, "start_sum", flat)
            return [flat]

        def means(flat: Any) -> list[Any]:
            with devices.formulas_on(flat):
                world().engine.wait(self._waiting[number])
                return [
                    flat[at:end].astype(v.dtype, copy=False).reshape(v.shape)
                    for (at, end), v in zip(spans, variables, strict=True)
                ]

        dense = [grads[k] for k in parts if grads[k] is not None]
        about = [((ends[-1],), dtype)]
        (flat,) = self._effect("start_mean", start, [share, *dense], about, early=True, forks=True)

        def wait(results: list[Any]) -> None:
            about = [(v.shape, v.dtype) for v in variables]
            found = self._effect("wait_for_mean", means, [flat], about, forks=True)
            for k, mean in zip(parts, found, strict=True):
                results[k] = mean

        return wait

    def _rows(self, k: int, g: Any, share: Tensor, weight: Any) -> Any:
        """The mean of gradients of which some are rows: of rows, if fewer bytes travel then."""
        variable, found = self._variables[k], list[Any]()
        is_rows, traced = isinstance(g, IndexedSlices), current_trace() is not None
        tensors = [g.values, g.indices] if is_rows else [] if g is None else [g]

        def mean(own: Any, *arrays: Any) -> list[Any]:
            xp, shape, dtype = READINGS[type(own)], variable.shape, variable.dtype
            lib = xp.lib
            with devices.formulas_on(own):
                nothing = lib.zeros((0, *shape[1:]), dtype=dtype), lib.zeros(0, dtype=np.int64)
                values, indices = arrays if is_rows else nothing
                values = _times(lib, values, own, weight).astype(dtype, copy=False)
                indices = indices.astype(np.int64, copy=False)
                most, all_rows = 0, False
                if self._sends_rows and not is_captured(own):
                    mine = lib.asarray(np.array([len(indices), bool(arrays) and not is_rows]))
                    about = f"rows of '{variable.name}'"
                    counts = devices.host(world().run(about, "all_gather", mine))
                    most, all_rows = int(counts[:, 0].max()), not counts[:, 1].any()
                per_row = dtype.itemsize * math.prod(shape[1:]) + 8
                if all_rows and most * world().size * per_row < 2 * variable.nbytes:
                    values, indices = (
                        _gathered(lib, a, most, counts[:, 0]) for a in (values, indices)
                    )
                    if not traced:
                        found[:] = [wrap(values), wrap(indices)]
                        return []
                    return [xp.scatter_rows(values, indices, shape=shape)]
                whole = xp.scatter_rows(values, indices, shape=shape)
                if arrays and not is_rows:
                    whole += _times(lib, arrays[0], own, weight)
                text = f"'{variable.name}', {dtype}{list(shape)}"
                world().run(text, "sum_in_place", whole)
                return [whole]

        about = [(variable.shape, variable.dtype)]
        dense = self._effect("mean_of_rows", mean, [share, *tensors], about)
        return dense[0] if dense else IndexedSlices(found[0], found[1], variable.shape)


_NONE, _DENSE, _ROWS = range(3)
_WORDS = ("no gradient", "a dense gradient", "rows as gradient")


def _kind(g: Any) -> int:
    return _NONE if g is None else _ROWS if isinstance(g, IndexedSlices) else _DENSE


def _gathered(lib: Any, array: Any, most: int, counts: Any) -> Any:
    """The rows of all ranks, of which none has more than `most`."""
    padded = lib.zeros((most, *array.shape[1:]), dtype=array.dtype)
    padded[: len(array)] = array
    text = f"{most} rows {array.dtype}{list(array.shape[1:])}"
    parts = world().run(text, "all_gather", padded)
    return lib.concatenate([part[:n] for part, n in zip(parts, counts.tolist(), strict=True)])


def _times(lib: Any, g: Any, share: Any, weight: Any) -> Any:
    """A gradient times this rank's share of the weights; 0 for a share of 0, whatever `g` is."""
    product = g * share.astype(g.real.dtype)
    is_above_0 = isinstance(weight, (int, float)) and weight > 0
    return product if is_above_0 else lib.where(share == 0, g.dtype.type(0), product)
