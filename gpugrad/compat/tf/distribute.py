"""tf.distribute: strategies of one replica, the default device of this process.

A program for several devices runs as it does in TensorFlow on a machine with one.
`gpugrad.distributed` trains with several processes.

>>> import gpugrad.compat.tf as tf
>>> strategy = tf.distribute.MirroredStrategy()
>>> with strategy.scope():
...     v = tf.Variable(2.0)
>>> each = strategy.run(lambda x: x * v, args=(tf.constant([1.0, 2.0]),))
>>> strategy.reduce(tf.distribute.ReduceOp.MEAN, each, axis=0).numpy().item()
3.0
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf.convert import tensor
from gpugrad.errors import ArgumentError

ReduceOp = enum.Enum("ReduceOp", {"SUM": "SUM", "MEAN": "MEAN"})
NcclAllReduce = HierarchicalCopyAllReduce = ReductionToOneDevice = SimpleNamespace


class InputContext:
    """The part of the data that a replica reads: all."""

    num_input_pipelines = num_replicas_in_sync = 1
    input_pipeline_id = 0

    def get_per_replica_batch_size(self, global_batch_size) -> int:
        return int(global_batch_size)


class Strategy:
    """Runs a function on one replica.

    Raises:
        ArgumentError: several devices are named.
    """

    num_replicas_in_sync = 1

    def __init__(self, devices=None, *others, **options) -> None:
        if isinstance(devices, (list, tuple)) and len(devices) > 1:
            raise ArgumentError(
                f"tf.distribute: {len(devices)} devices, but a process has one replica. "
                "gpugrad.distributed trains with several processes."
            )
        self.extended = self

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        _scopes.append(self)
        try:
            yield self
        finally:
            _scopes.pop()

    def run(self, fn, args=(), kwargs=None, options=None) -> Any:
        return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op, value, axis=None) -> Any:
        """The value of the only replica, reduced over an axis if one is given."""
        if axis is None:
            return value
        mean = ReduceOp.MEAN in (reduce_op, ReduceOp.__members__.get(str(reduce_op).upper()))
        return (gg.mean if mean else gg.sum)(tensor(value), axis=axis)

    def gather(self, value, axis) -> Any:
        return tensor(value)

    def experimental_local_results(self, value) -> tuple[Any, ...]:
        return (value,)

    def experimental_distribute_dataset(self, dataset, options=None) -> Any:
        return dataset

    def distribute_datasets_from_function(self, dataset_fn, options=None) -> Any:
        return dataset_fn(InputContext())


class MirroredStrategy(Strategy):
    """A Strategy; in TensorFlow with a replica on each device."""


class OneDeviceStrategy(Strategy):
    """A Strategy on a device."""


class MultiWorkerMirroredStrategy(Strategy):
    """A Strategy; in TensorFlow with replicas in several processes."""


_scopes = [Strategy()]


def get_strategy() -> Strategy:
    """The Strategy in whose scope this is, else one for the default device."""
    return _scopes[-1]


def has_strategy() -> bool:
    return len(_scopes) > 1


def in_cross_replica_context() -> bool:
    return has_strategy()


__getattr__, __dir__ = forwarding(__name__, own=globals())
