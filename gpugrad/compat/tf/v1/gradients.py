"""tf.gradients in a graph."""

from __future__ import annotations

import operator
from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf.v1.graph import Node, Run, Zeros


class _Gradients(Node):
    """The list of gradients, on a Graph that records the whole run."""

    def __init__(self, sources, ys, grad_ys, stop_gradients, unconnected_gradients) -> None:
        super().__init__(gg.gradients, (sources, ys, grad_ys, stop_gradients), name="gradients")
        self._unconnected = unconnected_gradients

    def value(self, run: Run) -> list[Any]:
        sources, ys, grad_ys, stop = self._args
        values = run.of(sources)  # before the targets, so that these are computed from them
        return list(
            gg.gradients(
                run.of(ys),
                values,
                run.of(grad_ys),
                stop_gradients=run.of(stop),
                unconnected_gradients=self._unconnected,
            )
        )


def gradients(
    ys,
    xs,
    grad_ys=None,
    name="gradients",
    colocate_gradients_with_ops=False,
    gate_gradients=False,
    aggregation_method=None,
    stop_gradients=None,
    unconnected_gradients="none",
) -> list[Any]:
    """The gradients of a sum of `ys` by each of `xs`; None where there is no path."""
    sources = list(xs) if isinstance(xs, (list, tuple)) else [xs]
    both = _Gradients(sources, ys, grad_ys, stop_gradients, unconnected_gradients)
    with gg.Graph().as_default():
        found = Zeros(2, whole=True).of(both)
    items = [Node(operator.getitem, (both, i), like=x) for i, x in enumerate(sources)]
    return [None if g is None else item for g, item in zip(found, items, strict=True)]


__getattr__, __dir__ = forwarding(__name__, own=globals())
