"""Means over ranks of the gradients of many Variables, in few collectives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core import devices
from gpugrad.core.backend import READINGS
from gpugrad.core.variable import Variable
from gpugrad.distributed.world import world
from gpugrad.errors import ArgumentError, DistributedError
from gpugrad.kernels.runtime.launch import is_captured


class Bucket(NamedTuple):
    """Variables of one dtype whose gradients are one array on their way.

    Attributes:
        dtype: of the array.
        parts: the position of each Variable, and where its gradient starts and ends.
        length: of the array.
    """

    dtype: Any
    parts: list[tuple[int, int, int]]
    length: int


def make_buckets(variables: Sequence[Variable], nbytes: int, compress: Any = None) -> list[Bucket]:
    """Buckets of about `nbytes` bytes, in the reverse order of the Variables.

    Backward passes make gradients in that order.

    Args:
        compress: a 16-bit dtype in which float32 and float64 gradients travel; None keeps theirs.
    """
    buckets: list[Bucket] = []
    current: dict[Any, Bucket] = {}  # the last bucket of each dtype
    for k in reversed(range(len(variables))):
        v = variables[k]
        dtype = compress if compress is not None and v.dtype.kind == "f" else v.dtype
        bucket = current.get(dtype)
        if bucket is None or (bucket.length + v.size) * dtype.itemsize > nbytes:
            bucket = Bucket(dtype, [], 0)
            buckets.append(bucket)
        place = buckets.index(bucket)
        bucket.parts.append((k, bucket.length, bucket.length + v.size))
        current[dtype] = buckets[place] = bucket._replace(length=bucket.length + v.size)
    return buckets


class Averager:
    """Makes gradients of this rank's data those of all ranks' data.

    A header tells first: the weights of the ranks, whether all of them step, and how many have a
    gradient of each Variable. Then the buckets follow. These are the same collectives whether a
    rank runs eagerly or replays a program, and whatever gradients it has.
    """

    def __init__(self, variables: Sequence[Variable], nbytes: int, compress: Any) -> None:
        self._variables = variables
        self._buckets = make_buckets(variables, nbytes, compress)
        self._headers: dict[Any, Any] = {}  # headers on a device, by what they say

    def __call__(
        self, arrays: Sequence[Any], weight: Any, when: Any, expected: bool = False
    ) -> tuple[list[Any], Any]:
        """The means of all Variables' gradients, and whether all ranks step.

        Args:
            arrays: a plain array or None for each Variable.
            weight: of this rank's gradients: a number, or a plain array of one element.
            when: whether this rank wants to step: a bool, or a plain array of one element.
            expected: whether a rank may lack gradients only if all do: others are of another model.

        Returns:
            The means, with None where no rank has a gradient; a bool or, on a GPU that captures, a
            plain array.
        """
        has = [a is not None for a in arrays]
        like = next((a for a in arrays if a is not None), None)
        like = self._variables[0]._data if like is None else like
        with devices.formulas_on(like):
            head = self._header(like, has, weight, when)
            world().run(f"header of {len(has)} gradients", lambda e: e.sum_in_place(head))
            steps: Any = head[1] == world().size
            captured = is_captured(like)
            if not captured:  # else an earlier run has seen that all ranks have these gradients
                counts = devices.host(head)
                steps = bool(counts[1] == world().size)
                self._check(has, counts, expected)
                has = [n > 0 for n in counts[2:]]
            results: list[Any] = [None] * len(arrays)
            for k, bucket in enumerate(self._buckets):
                self._reduce(k, bucket, arrays, has, weight, head, results)
        return results, steps

    def _header(self, like: Any, has: list[bool], weight: Any, when: Any) -> Any:
        """The array ``[weight, whether to step, has a gradient...]``."""
        is_number = isinstance(weight, (int, float)) and isinstance(when, bool)
        key = (
            devices.device_of(like),
            tuple(has),
            weight if is_number else 0.0,
            is_number and when,
        )
        kept = self._headers.get(key)
        if kept is None:
            values = [float(key[2]), float(key[3]), *map(float, has)]
            kept = self._headers[key] = READINGS[type(like)].lib.asarray(np.array(values))
            if len(self._headers) > 64:  # weights that differ from step to step
                self._headers.pop(next(iter(self._headers)))
        head = kept.copy()
        if not is_number:
            head[0:1], head[1:2] = _one(weight), _one(when)
        return head

    def _check(self, has: list[bool], counts: Any, expected: bool) -> None:
        if counts[0] <= 0:
            raise ArgumentError(
                f"distributed.Optimizer: no rank has data: the sum of all weights is {counts[0]:g}."
            )
        if not math.isfinite(counts[0]):
            raise ArgumentError(f"distributed.Optimizer: the sum of all weights is {counts[0]:g}.")
        if expected:
            for v, own, n in zip(self._variables, has, counts[2:], strict=True):
                if not own and n:
                    raise DistributedError(
                        f"distributed.Optimizer: {int(n)} of {world().size} ranks have a gradient "
                        f"of '{v.name}', but the traced step of rank {world().rank} has none. Call "
                        "the same function on all ranks, or step eagerly."
                    )

    def _reduce(
        self,
        number: int,
        bucket: Bucket,
        arrays: Sequence[Any],
        has: list[bool],
        weight: Any,
        head: Any,
        results: list[Any],
    ) -> None:
        """Replace the results of one bucket's Variables by means."""
        parts, at = [], 0
        for k, start, stop in bucket.parts:
            if has[k]:
                parts.append((k, at, at + stop - start))
                at += stop - start
        if not at:
            return
        lib = READINGS[type(head)].lib
        flat, share = lib.zeros(at, dtype=bucket.dtype), weight / head[:1]
        no_data = isinstance(weight, (int, float)) and weight == 0
        for k, start, stop in parts:
            if arrays[k] is not None and not no_data:
                flat[start:stop] = _times(lib, arrays[k].reshape(-1), share, weight)
        text = f"bucket {number + 1} of {len(self._buckets)}, {flat.dtype}[{at}]"
        world().run(text, lambda engine: engine.sum_in_place(flat))
        for k, start, stop in parts:
            variable = self._variables[k]
            mean = flat[start:stop].astype(variable.dtype)
            results[k] = mean.reshape(variable.shape)


def _one(value: Any) -> Any:
    """A number, or an array of one element, as what a slice of one element takes."""
    return value if isinstance(value, (bool, int, float)) else value.reshape(1)


def _times(lib: Any, g: Any, share: Any, weight: Any) -> Any:
    """A gradient times this rank's share of the weights; 0 for a share of 0, whatever `g` is."""
    product = g * share.astype(g.real.dtype)
    return product if isinstance(weight, (int, float)) else lib.where(share == 0, 0, product)
