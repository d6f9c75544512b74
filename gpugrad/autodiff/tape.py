"""GradientTape: records operations on the tensors that it watches, and differentiates them."""

from __future__ import annotations

import math
import warnings
import weakref
from contextlib import AbstractContextManager
from threading import get_ident
from types import NoneType
from typing import Any, Literal, TypeVar, overload

from gpugrad.autodiff.batched import Level
from gpugrad.autodiff.borders import unwrap_level, wrap_level
from gpugrad.autodiff.explain import warn_if_rebound, why
from gpugrad.autodiff.gradients import (
    UnconnectedGradients,
    as_unconnected,
    differentiate,
    fill_unconnected,
    flatten_tensors,
    pack_tensors,
)
from gpugrad.autodiff.readings import each_saved
from gpugrad.autodiff.recorder import Recorder, link, note_view, number_any
from gpugrad.autodiff.upstream import check_upstream, zeros_for
from gpugrad.core import nest
from gpugrad.core.backend import TENSOR, innermost_array, is_inexact, reading
from gpugrad.core.devices import formulas_on, full_on_device_of
from gpugrad.core.holders import opened
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.known_as import TapeNamesElsewhere
from gpugrad.core.listening import current_stack, threads
from gpugrad.core.tensor import Tensor, tensor, tensor_with_id, wrap
from gpugrad.core.variable import Variable
from gpugrad.core.views import View
from gpugrad.errors import DTypeError, GpugradWarning, ShapeError, TapeError, saying_where
from gpugrad.trace.listener import EndOfBlock

K = TypeVar("K")
V = TypeVar("V", bound=Tensor)

CHUNK_BYTES = 2**28
"""Approximate memory limit of one batched backward pass of a Jacobian, in bytes."""


_NEVER_REBOUND = {Tensor, View}
"""Classes of which no Variable is."""


class _Paused:
    """The context manager of `GradientTape.stop_recording`.

    No generator: one whose start is interrupted ends when it is freed, and the tape would listen
    again after its own end.
    """

    def __init__(self, tape: GradientTape) -> None:
        self._tape = tape

    def __enter__(self) -> None:
        self._place = self._tape._pause()

    def __exit__(self, *exc: object) -> None:
        self._tape._resume(self._place)


class GradientTape(Recorder, TapeNamesElsewhere):
    """Records operations on the tensors that it watches, and differentiates them.

    Args:
        persistent: whether `gradient` (or `jacobian`) can be called more than once; if not, the
            first call frees the log.
        watch_accessed_variables: whether trainable Variables are watched when they are read.

    A tape records in the thread and the asyncio task that entered it, so tasks that interleave
    inside their tapes record only their own operations. It also records tasks that start inside
    its block, until the block ends, but no other thread, not even one of `asyncio.to_thread`.
    TensorFlow's semantics, with the differences that docs/coming-from-tensorflow.md lists.

    >>> x = gg.constant(3.0)
    >>> with gg.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x).item()
    6.0
    """

    @saying_where
    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        super().__init__()
        self._persistent, self._auto = bool(persistent), bool(watch_accessed_variables)
        self._entered = self._usable = self._used = self._explains = False

    def source(self, x: Tensor) -> Tensor:
        """The Tensor to differentiate by: `x`, or its value when it was watched."""
        watched = self.watched.get(id(x))
        if watched is None or watched[1] == x._id or watched[0]() is not x:
            return x
        return tensor_with_id(x._data, watched[1])

    def __enter__(self) -> GradientTape:
        if self._stack is not None:
            raise TapeError("The tape is recording already; it cannot be entered again.")
        if not self._usable:
            if self._used:
                self._clear()
            self._usable = self._used = True
        self._entered = True
        return self.listen()  # last: Ctrl-C after it is Ctrl-C in the `with` block

    def _end_block(self, *exc: object) -> None:
        self.leave()
        self._entered = False

    __exit__ = EndOfBlock(_end_block)

    def watch(self, tensor: Any) -> None:
        """Record operations on `tensor` from now on: a Tensor, a Variable, or a nest of them.

        The gradient by a watched Tensor is taken at the value that it had when it was watched: a
        later ``x[i] = v`` or ``x += v`` is an operation on that value. A view such as ``x[1:]``
        that was made before is a constant where it is read, until `x` or the view is written.
        `explain` says so.

        Raises:
            TapeError: the tape is not recording in this thread or task (nothing would be recorded).
            DTypeError: something that is neither a Tensor nor a Variable.
        """
        leaves = [tensor]
        if not isinstance(tensor, Tensor):
            leaves = nest.flatten(tensor)
            values = [x.values if isinstance(x, IndexedSlices) else x for x in leaves]
            leaves = flatten_tensors("watch", values, with_none=tensor is not None)
        stack = self._stack
        elsewhere = stack is not None and (
            stack.thread != get_ident() or self not in current_stack()
        )
        if leaves and (elsewhere or not (self._entered and self._usable)):
            raise TapeError(
                "watch: the tape is not recording here. Call it inside the tape's `with` "
                "block, in the thread and the asyncio task that entered it."
            )
        for leaf in leaves:
            if not is_inexact(leaf.dtype):
                warnings.warn(
                    f"watch: a {leaf.dtype} tensor has no gradient; cast it to a float first.",
                    GpugradWarning,
                    stacklevel=2,
                )
            else:
                self.leaves.add(number_any(leaf))
                self.known.add(leaf._id)
                self.watched[id(leaf)] = weakref.ref(leaf), leaf._id
                note_view(self, leaf)
            if isinstance(leaf, Variable):
                self.variables[leaf._id] = leaf

    def touched(self, variable: Variable) -> None:
        """Watch a Variable that was read, if it is trainable and the tape watches on access."""
        if self._auto and variable._trainable and variable._id not in self.variables:
            self.variables[variable._id] = variable
            if is_inexact(variable._data.dtype):
                self.leaves.add(variable._id)
                self.known.add(variable._id)

    def watched_variables(self) -> tuple[Variable, ...]:
        """The Variables watched so far, in the order in which they were created."""
        return tuple(self.variables[i] for i in sorted(self.variables))

    def stop_recording(self) -> AbstractContextManager[None]:
        """Pause this tape (no other) inside a `with` block."""
        return _Paused(self)

    def _pause(self) -> int:
        """Stop listening; return the place to listen at later."""
        stack = threads.stack
        if self not in stack:
            raise TapeError(
                "stop_recording: the tape is not recording in this thread or asyncio task."
            )
        place = stack.index(self)
        self.leave()
        return place

    def _resume(self, place: int) -> None:
        if self._stack is None and self._usable:
            self._entered = True
            self.listen(place)

    def reset(self) -> None:
        """Forget everything recorded and watched. Allowed only while recording."""
        if self._stack is None:
            raise TapeError("reset: the tape is not recording.")
        self._clear()

    def _begin(self, what: str) -> None:
        """Check that a gradient can be computed; a non-persistent tape stops recording now."""
        if not self._usable:
            raise TapeError(
                f"{what}: this tape has recorded nothing, or has returned its gradient. A tape "
                "that is not persistent returns one: use GradientTape(persistent=True) for more."
            )
        if not self._persistent:
            self.leave()
            self._entered = False  # also if the gradient fails

    def _end(self, results: list[Any]) -> None:
        """Free what a non-persistent tape holds, except the numbers that `explain` needs."""
        if self._persistent:
            return
        self._usable = False
        self._explains = NoneType in map(type, results)
        if self._explains:
            self.log = [
                (op if op.rules else None, out, ids, None, None, None)
                for op, out, ids, _, _, _ in self.log
            ]
        else:
            self.log, self.dead, self.barriers = [], set(), []

    # fmt: off
    @overload
    def gradient(
        self, target: Any, sources: Tensor, output_gradients: Any = None, *,
        unconnected_gradients: Literal["zero"],
    ) -> Tensor: ...
    @overload
    def gradient(
        self, target: Any, sources: list[V], output_gradients: Any = None, *,
        unconnected_gradients: Literal["zero"],
    ) -> list[Tensor]: ...
    @overload
    def gradient(
        self, target: Any, sources: Tensor, output_gradients: Any = None,
        unconnected_gradients: Any = ...,
    ) -> Tensor | None: ...
    @overload
    def gradient(
        self, target: Any, sources: list[V], output_gradients: Any = None,
        unconnected_gradients: Any = ...,
    ) -> list[Tensor | None]: ...
    @overload
    def gradient(
        self, target: Any, sources: tuple[V, ...], output_gradients: Any = None,
        unconnected_gradients: Any = ...,
    ) -> tuple[Tensor | None, ...]: ...
    @overload
    def gradient(
        self, target: Any, sources: dict[K, V], output_gradients: Any = None,
        unconnected_gradients: Any = ...,
    ) -> dict[K, Tensor | None]: ...
    @overload
    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None,
        unconnected_gradients: Any = ...,
    ) -> Any: ...
    # fmt: on
    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """Differentiate the sum of all elements of `target` with respect to `sources`.

        Args:
            target: a Tensor, or a nested structure of them (their gradients add up).
            sources: a Tensor or Variable, or a nested structure of them, and of None.
            output_gradients: upstream gradients, in the structure of `target`, each of its
                target's shape and dtype; None means ones.
            unconnected_gradients: ``"none"`` or ``"zero"``: the gradient of a source that the
                target does not depend on. `explain` says why a gradient is None.

        Returns:
            In the structure of `sources`: Tensors of the source's shape and dtype,
            IndexedSlices for sources that were only gathered from, or None.

        Raises:
            TapeError: a second call on a tape that is not persistent.
            StructureError, ShapeError, DTypeError: arguments that do not fit each other.
            NoGradientError: an op on the way has no derivative.

        >>> v = gg.Variable([1.0, 2.0])
        >>> with gg.GradientTape() as tape:
        ...     y = v * v
        >>> tape.gradient(y, v, output_gradients=gg.constant([1.0, 10.0])).tolist()
        [2.0, 40.0]
        """
        unconnected = as_unconnected(unconnected_gradients)
        targets = flatten_tensors("target", target)
        leaves = flatten_tensors("sources", sources, with_none=True)
        seeds = [None] * len(targets)
        if output_gradients is not None:
            upstream = nest.flatten_like(target, output_gradients, "output_gradients")
            seeds = check_upstream("output_gradients", targets, upstream)
        self._begin("gradient")
        grads = differentiate(self, targets, seeds, leaves)
        self._end(grads)
        if unconnected is not UnconnectedGradients.NONE:
            grads = fill_unconnected(grads, leaves, unconnected)
        elif NoneType in map(type, grads) or not _NEVER_REBOUND.issuperset(map(type, leaves)):
            warn_if_rebound(leaves, grads, self.leaves)
        return pack_tensors(sources, grads)

    @saying_where
    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: Any = None,
        experimental_use_pfor: bool = True,
        *,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> Any:
        """The derivatives of all elements of `target`, of shape target.shape + source.shape.

        Args:
            target: one Tensor.
            sources: a Tensor or Variable, or a nested structure of them.
            unconnected_gradients: as for `gradient`.
            parallel_iterations, experimental_use_pfor: accepted for compatibility with TensorFlow;
                they change nothing.
            chunk_bytes: approximate memory limit of one batched backward pass; a lower limit
                means more passes.

        >>> x = gg.Variable([1.0, 2.0])
        >>> with gg.GradientTape() as tape:
        ...     y = x * x
        >>> tape.jacobian(y, x).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
        """
        zero = as_unconnected(unconnected_gradients) is UnconnectedGradients.ZERO
        target = opened(target)
        if not isinstance(target, Tensor):
            raise DTypeError(f"jacobian: one Tensor is needed as target, got {target!r:.60}.")
        leaves = flatten_tensors("sources", sources, with_none=True)
        self._begin("jacobian")
        rows = self._rows(target, (), leaves, chunk_bytes)
        results: list[Any] = []
        for g, source in zip(rows, leaves, strict=True):
            shape = target.shape + source.shape
            if g is not None:
                results.append(TENSOR.reshape(g, shape))
            else:
                results.append(zeros_for(source, shape) if zero else None)
        self._end(results)
        return pack_tensors(sources, results)

    def _rows(
        self, target: Tensor, lead: tuple[int, ...], sources: list[Tensor], chunk_bytes: int
    ) -> list[Any]:
        """Gradients of each element of `target` behind its axes `lead`, stacked, for each source.

        One backward pass computes as many elements as fit `chunk_bytes`; each takes about as much
        memory as the tape has saved.
        """
        size = target.size // max(math.prod(lead), 1)
        saved = {
            id(a): a.nbytes
            for _, _, _, _, values, _ in self.log
            for a in each_saved(values)
            if hasattr(a, "nbytes")
        }
        bytes_each = sum(saved.values()) + target.nbytes + sum(s.nbytes for s in sources)
        chunk = max(1, min(size, chunk_bytes // max(bytes_each, 1)))
        chunks = []
        for start in range(0, max(size, 1), chunk):  # an empty target still tells connections
            level = Level(min(chunk, size - start), randomness="same")
            try:
                chunks.append(self._chunk(level, start, target, lead, sources))
            except BaseException:  # Ctrl-C may have kept its `with` statement from ending it
                level.__exit__()
                raise
        return [
            None if parts[0] is None else parts[0] if len(parts) == 1 else TENSOR.concat(parts)
            for parts in zip(*chunks, strict=True)
        ]

    def _chunk(
        self, level: Level, start: int, target: Tensor, lead: tuple[int, ...], sources: list[Tensor]
    ) -> list[Tensor | None]:
        """As many of the gradients of `_rows` as the level has examples, from number `start`."""
        size = target.size // max(math.prod(lead), 1)
        with level:
            shape = (level.size, *(1,) * len(lead), size)
            seed = full_on_device_of(innermost_array(target._data), shape, target.dtype)
            with formulas_on(seed):
                for k in range(level.size):
                    seed[k, ..., start + k] = 1
                seed = reading(seed).broadcast_to(seed, (level.size, *lead, size))
                seed = seed.reshape(level.size, *target.shape)
            seeds = [wrap_level(wrap(seed), level, 0)]
            grads = differentiate(self, [target], seeds, sources)
            return [g if g is None else unwrap_level(tensor(g), level, 0) for g in grads]

    @saying_where
    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: Any = None,
        experimental_use_pfor: bool = True,
        *,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> Any:
        """The Jacobian of each example: target (b, y...), source (b, x...) give (b, y..., x...).

        No example may depend on another one, which is not checked. The arguments are those of
        `jacobian`, but an unconnected result is always zeros, as in TensorFlow.

        >>> x = gg.Variable([[1.0, 2.0], [3.0, 4.0]])
        >>> with gg.GradientTape() as tape:
        ...     y = x * x
        >>> tape.batch_jacobian(y, x).tolist()
        [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
        as_unconnected(unconnected_gradients)
        target, source = opened(target), opened(source)
        for what, t in (("target", target), ("source", source)):
            if not isinstance(t, Tensor):
                raise DTypeError(f"batch_jacobian: one Tensor is needed as {what}, got {t!r:.60}.")
            if t.ndim < 2:
                raise ShapeError(
                    f"batch_jacobian: the {what} needs a batch axis and one more; its shape is "
                    f"{t.shape}."
                )
        if target.shape[0] != source.shape[0]:
            raise ShapeError(
                f"batch_jacobian: the batches differ: target {target.shape}, source {source.shape}."
            )
        self._begin("batch_jacobian")
        shape = target.shape + source.shape[1:]
        (rows,) = self._rows(target, target.shape[:1], [source], chunk_bytes)
        if rows is None:
            result = zeros_for(source, shape)
        else:
            result = TENSOR.reshape(TENSOR.moveaxis(rows, 0, 1), shape)
        self._end([result])
        return result

    @saying_where
    def explain(self, target: Tensor, source: Tensor) -> str:
        """Say in a sentence whether the gradient of `target` by `source` is None, and why.

        Also works after `gradient`, if that returned a None.

        >>> x = gg.constant(3.0)
        >>> with gg.GradientTape() as tape:
        ...     y = x * x
        >>> tape.explain(y, x)[:27]
        'The source was not watched:'
        """
        target, source = flatten_tensors("explain", [target, source])
        for t in (target, source):
            number_any(t)
        if not (self._usable or self._explains):
            raise TapeError(
                "explain: this tape has recorded nothing, or `gradient` has freed its log, because "
                "no gradient was None. Use GradientTape(persistent=True) to ask more."
            )
        target = link(self, target)
        return why(target, self.source(source), self.log, self.barriers, self.leaves, self.known)
