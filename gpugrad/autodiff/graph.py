"""Graph and gradients(): TensorFlow's tf.gradients, on a log of every op."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from gpugrad.autodiff.gradients import (
    UnconnectedGradients,
    as_unconnected,
    differentiate,
    fill_unconnected,
)
from gpugrad.autodiff.recorder import Recorder
from gpugrad.autodiff.upstream import check_upstream
from gpugrad.core.holders import opened
from gpugrad.core.listening import graphs, threads
from gpugrad.core.nest import flatten_like
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, DTypeError, TapeError, saying_where
from gpugrad.trace.array import current_trace
from gpugrad.trace.listener import EndOfBlock


class GraphNeeded(TapeError):
    """`gradients` was called in a traced function: it is traced again, inside a Graph."""


class _Everything:
    """The set of all serial numbers but 0."""

    def __contains__(self, i: int) -> bool:
        return i != 0

    def add(self, i: int) -> None:
        """Do nothing: every number is in the set already."""

    def update(self, ids: Any) -> None:
        """Do nothing: every number is in the set already."""

    def discard(self, i: int) -> None:
        """Do nothing: nobody can ask for a number that is dropped."""

    def difference_update(self, ids: Any) -> None:
        """Do nothing: nobody can ask for a number that is dropped."""


class Graph(Recorder):
    """Records every op inside ``with gg.Graph().as_default():``, for `gradients`.

    Nothing needs watching: sources may be constants and intermediates too. What `gradients`
        computes is recorded as well, so it can be differentiated again.

    >>> with gg.Graph().as_default():
    ...     a = gg.constant(2.0)
    ...     b = a ** 2
    ...     print(gg.gradients(b, a)[0].item())
    4.0
    """

    def __init__(self) -> None:
        super().__init__()
        self.known = _Everything()

    def as_default(self) -> AbstractContextManager[Graph]:
        """Record in this thread or asyncio task until the block ends."""
        return contextlib.nullcontext(self) if self in threads.stack else _Default(self)

    def listen(self, place: int | None = None) -> Graph:
        """Follow this thread's ops; let ops number everything that they read."""
        try:
            graphs.append(self)
            return super().listen(place)
        except BaseException:  # Ctrl-C: no `with` block will call `leave`
            self._forget()
            raise

    def leave(self) -> None:
        """Stop following."""
        try:
            self._forget()
        except BaseException:  # Ctrl-C in the middle of it
            self._forget()
            raise

    def _forget(self) -> None:
        super()._forget()
        if self in graphs:
            graphs.remove(self)


class _Default:
    """Listens for `Graph.as_default`, unless the Graph records already: a log has each op once."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __enter__(self) -> Graph:
        return self._graph.listen()

    def _end_block(self, *exc: object) -> None:
        self._graph.leave()

    __exit__ = EndOfBlock(_end_block)

    def _set_block(self, block: Any) -> None:
        self._graph._block = block

    _block = property(fset=_set_block)


def in_graph(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, run inside a Graph of its own."""

    @functools.wraps(f)
    def run(*args: Any, **keywords: Any) -> Any:
        with Graph().as_default():
            return f(*args, **keywords)

    return run


@saying_where
def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:
    """Sum of dy/dx over `ys` for each x, from the log of an enclosing Graph or tape.

    Args:
        ys, xs: a Tensor, or nested lists of them. With a `Graph` and inside `gg.function`, any
            tensor can be an x; with a `GradientTape`, tensors that it watches and tensors computed
            from them.
        grad_ys: upstream gradients, one per y; None (also as an entry) means ones.
        stop_gradients: tensors to treat as constants.
        unconnected_gradients: ``"none"`` or ``"zero"``.
        name, colocate_gradients_with_ops, gate_gradients, aggregation_method: accepted for
            compatibility with TensorFlow; they change nothing (the last is checked).

    Returns:
        A list with one entry for each x.

    Raises:
        TapeError: no Graph or tape is recording.
        ShapeError, DTypeError, StructureError: arguments that do not fit.

    >>> with gg.Graph().as_default():
    ...     a = gg.constant(0.0)
    ...     b = 2 * a
    ...     [g.item() for g in gg.gradients(a + b, [a, b])]
    [3.0, 1.0]
    """
    if aggregation_method not in (None, 0, 1, 2):
        raise ArgumentError(
            f"gradients: aggregation_method must be 0, 1 or 2, got {aggregation_method!r}."
        )
    as_unconnected(unconnected_gradients)
    active = [r for r in reversed(threads.stack) if isinstance(r, Recorder)]
    recorder = next((r for r in active if isinstance(r, Graph)), active[0] if active else None)
    is_traced = current_trace() is not None and not isinstance(recorder, Graph)
    if recorder is None or is_traced:
        raise (GraphNeeded if is_traced else TapeError)(
            "gradients: nothing is being recorded here. Compute ys inside `with "
            "gg.Graph().as_default():` (records everything) or a GradientTape, and call it there."
        )

    def as_list(what: str, value: Any) -> list[Any]:
        if isinstance(value, (list, tuple)):
            return [leaf for part in value for leaf in as_list(what, part)]
        if isinstance(value, dict) or value is None:
            raise DTypeError(f"gradients: {what} must be a Tensor or a list of Tensors.")
        value = opened(value)
        return [value if isinstance(value, Tensor) else tensor(value)]

    targets, sources = as_list("ys", ys), as_list("xs", xs)
    seeds: list[Any] = [None] * len(targets)
    if grad_ys is not None:
        parts = list(ys) if isinstance(ys, (list, tuple)) else [ys]
        upstream = list(grad_ys) if isinstance(grad_ys, (list, tuple)) else [grad_ys]
        if len(upstream) != len(parts):
            raise ArgumentError(f"gradients: {len(upstream)} grad_ys for {len(parts)} ys.")
        upstream = flatten_like(parts, upstream, "grad_ys")
        seeds = check_upstream("grad_ys", targets, upstream)
    for target, seed in zip(targets, seeds, strict=True):
        if target.dtype.kind == "c" and seed is None:
            raise DTypeError(
                f"gradients: y is {target.dtype}; the gradient of a complex number needs grad_ys."
            )
    stops = as_list("stop_gradients", stop_gradients) if stop_gradients is not None else []
    grads = differentiate(recorder, targets, seeds, sources, stops)
    return fill_unconnected(grads, sources, unconnected_gradients)
