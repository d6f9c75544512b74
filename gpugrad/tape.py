"""The tape: recording what is done to tensors, and asking for gradients of it."""

from __future__ import annotations

import contextlib
import enum
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gpugrad import nest
from gpugrad.backend import NAMESPACES, TENSOR, formulas_on, is_inexact
from gpugrad.backward import Entry, backward, finished, plus
from gpugrad.errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    GpugradError,
    ShapeError,
    TapeError,
    reraise,
)
from gpugrad.explain import Barrier, why
from gpugrad.tensor import (
    IndexedSlices,
    Tensor,
    constant,
    next_id,
    recorders,
    tensor,
    threads,
    wrap,
)
from gpugrad.variable import Variable

__all__ = [
    "AggregationMethod",
    "GradientTape",
    "Graph",
    "UnconnectedGradients",
    "block",
    "gradients",
    "graphs",
    "number",
    "record",
    "record_many",
    "recording_stopped",
]


graphs: list[Graph] = []
"""Every active Graph, in all threads: while there is one, ops number all that they read."""


class UnconnectedGradients(enum.Enum):
    """What `gradient` returns for a source that the target does not depend on."""

    NONE = "none"
    ZERO = "zero"


class AggregationMethod:
    """Accepted for TensorFlow's sake: gradients are added in place, whichever is named."""

    ADD_N = DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


# ---- what ops call ----------------------------------------------------------------------


def number(x: Any) -> int:
    """The serial number of an op's argument, given now if it had none; 0 if not recordable."""
    if not isinstance(x, Tensor) or not is_inexact(x.dtype):
        return 0
    if not x._id:
        x._id = next_id()
    return x._id


def record(op: Any, out: Tensor, ids: tuple[int, ...], fits: Any, saved: Any, params: Any) -> None:
    """Offer an executed op to every recorder of this thread, the outermost first.

    `out` has a dtype with gradients: an op whose result may have none calls `block` then.
    """
    entry = None
    for recorder in threads.stack:
        known = recorder.known
        for i in ids:
            if i in known:
                if entry is None:
                    if not out._id:
                        out._id = next_id()
                    entry = (op, out._id, ids, fits, saved, params)
                log = recorder.log
                if log is None:  # a ForwardAccumulator
                    recorder.take(entry, out)
                else:
                    log.append(entry)
                    known.add(out._id)
                break
        else:
            if recorder.dead:
                recorder.bury(op.name, ids, out)


def record_many(
    op: Any, outs: Sequence[Tensor], ids: tuple[int, ...], fits: Any, saved: Any, params: Any
) -> None:
    """`record` for an op with several results."""
    entry = None
    for recorder in threads.stack:
        if any(i in recorder.known for i in ids):
            if entry is None:
                for out in outs:
                    out._id = out._id or next_id()
                about = tuple((out._id, out.shape, out.dtype) for out in outs)
                entry = (op, about, ids, fits, saved, params)
            recorder.take(entry, outs)


def block(name: str, out: Tensor, ids: Sequence[int]) -> None:
    """Note that an op without a gradient read something recorded, so `explain` can say so."""
    for recorder in threads.stack:
        if any(i in recorder.known or i in recorder.dead for i in ids):
            out._id = out._id or next_id()
            recorder.barrier(name, ids, out._id)


def _where() -> str:
    """file:line of the code that called into gpugrad."""
    home = str(Path(__file__).parent)
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        inside = name.startswith((home, "<gpugrad>")) and "examples" not in name
        if not inside:
            break
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


@contextlib.contextmanager
def recording_stopped(keep: type | tuple[type, ...] = ()) -> Iterator[None]:
    """Pause every recorder of this thread but those of a kind to `keep`."""
    stack = threads.stack
    threads.stack = [r for r in stack if isinstance(r, keep)]
    try:
        yield
    finally:
        threads.stack = stack


# ---- recorders --------------------------------------------------------------------------


class _Recorder:
    """What a tape and a graph share: a log, and differentiating it."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.known: Any = set()
        self.log: list[Entry] = []
        self.leaves: set[int] = set()
        self.variables: dict[int, Variable] = {}
        self.dead: set[int] = set()  # results of ops without a gradient, for explain
        self.barriers: list[Barrier] = []

    def take(self, entry: Entry, out: Any) -> None:
        self.log.append(entry)
        serial = entry[1]
        if type(serial) is int:
            self.known.add(serial)
        else:
            self.known.update(i for i, _, dtype in serial if is_inexact(dtype))

    def bury(self, name: str, ids: Sequence[int], out: Tensor) -> None:
        """Follow what an op without a gradient made, so that `explain` finds the way back."""
        if any(i in self.dead for i in ids):
            out._id = out._id or next_id()
            self.dead.add(out._id)
            self.barriers.append((len(self.log), "", out._id, tuple(ids), ""))

    def barrier(self, name: str, ids: Sequence[int], out: int) -> None:
        """A gradient stops here: at `name`, called from the user's line."""
        if any(i in self.known or i in self.dead for i in ids):
            self.dead.add(out)
            self.barriers.append((len(self.log), name, out, tuple(ids), _where()))

    def touched(self, variable: Variable) -> None:
        """A Variable was read."""

    def _pull(
        self, targets: list[Tensor], seeds: list[Any], sources: list[Tensor],
        stops: Sequence[Tensor] = (),
    ) -> list[Any]:  # fmt: skip
        """Gradients of the sum of `targets` (Tensor, IndexedSlices or None), one a source."""
        wanted = {number_any(s) for s in sources}
        raw = not threads.stack
        first = targets[0]._data if targets else None
        if first is None:
            return [None] * len(sources)
        xp = NAMESPACES[type(first)] if raw else TENSOR
        if self.leaves <= wanted and type(self.known) is set:
            need: Any = self.known
        else:
            need = {i for i in wanted if i in self.known}
            for _, out, ids, _, _, _ in self.log:
                if any(i in need for i in ids):
                    need.update((out,) if type(out) is int else (o[0] for o in out))
        grads: dict[int, Any] = {}
        with formulas_on(first):
            for target, seed in zip(targets, seeds, strict=True):
                i = number_any(target)
                if seed is None:
                    seed = NAMESPACES[type(target._data)].lib.ones_like(target._data)
                    seed = seed if raw else wrap(seed)
                elif raw:
                    seed = seed._data
                grads[i] = plus(xp, grads[i], seed) if i in grads else seed
            stopped = {number_any(s) for s in stops}
            backward(self.log, grads, wanted, need, xp, stopped)
            return [finished(xp, grads.get(s._id), s) for s in sources]


def number_any(x: Tensor) -> int:
    """The serial number of a target or source of any dtype, given now if it had none."""
    if not x._id:
        x._id = next_id()
    return x._id


def leaves_of(what: str, structure: Any) -> list[Tensor]:
    """The Tensors of a structure; DTypeError for anything else."""
    found = nest.flatten(structure)
    for leaf in found:
        if isinstance(leaf, IndexedSlices):
            raise DTypeError(f"{what}: IndexedSlices have no gradient of their own; use .values.")
        if not isinstance(leaf, Tensor):
            raise DTypeError(
                f"{what}: expected Tensors and Variables, or nested lists, tuples and dicts of "
                f"them; got {type(leaf).__name__} {leaf!r:.60}."
            )
    return found


def seeds_of(what: str, targets: list[Tensor], given: Sequence[Any]) -> list[Any]:
    """Upstream gradients as Tensors of their targets' shape and dtype; None stands for ones."""
    seeds: list[Any] = []
    for k, (target, seed) in enumerate(zip(targets, given, strict=True)):
        if seed is None:
            seeds.append(None)
            continue
        try:
            if not hasattr(seed, "dtype"):
                seed = constant(seed, target.dtype, device=target.device)
            seed = tensor(seed)
        except GpugradError as error:
            reraise(error, f"{what}[{k}]", {}, {})
        if seed.shape != target.shape:
            raise ShapeError(
                f"{what}[{k}]: the target's shape is {target.shape}, its upstream gradient's "
                f"{seed.shape}. They must be the same; broadcast it with gg.broadcast_to."
            )
        if seed.dtype != target.dtype:
            raise DTypeError(
                f"{what}[{k}]: the target is {target.dtype}, its upstream gradient {seed.dtype}. "
                "Cast it with gg.astype(g, dtype)."
            )
        if seed.device != target.device:
            raise DeviceError(
                f"{what}[{k}]: the target is on {target.device}, its upstream gradient on "
                f"{seed.device}. Move it with g.to_device(device)."
            )
        seeds.append(seed)
    return seeds


def filled(results: list[Any], sources: list[Tensor], unconnected: Any) -> list[Any]:
    """Results with zeros for None, if `unconnected` says so."""
    if _unconnected(unconnected) is UnconnectedGradients.NONE:
        return results
    return [
        wrap(zeros_beside(s, s.shape, s.dtype)) if g is None else g
        for g, s in zip(results, sources, strict=True)
    ]


def zeros_beside(t: Tensor, shape: tuple[int, ...], dtype: Any) -> Any:
    """A bare array of zeros on the device of `t`."""
    with formulas_on(t._data):
        return NAMESPACES[type(t._data)].lib.zeros(shape, dtype=dtype)


def _unconnected(value: Any) -> UnconnectedGradients:
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ArgumentError(
            f"unconnected_gradients: {value!r} is neither 'none' nor 'zero'."
        ) from None


class GradientTape(_Recorder):
    """Records what is done to the tensors it watches, and differentiates it.

    Args:
        persistent: whether gradients can be asked for more than once; if not, the record is
            freed by the first `gradient` (or `jacobian`).
        watch_accessed_variables: whether trainable Variables are watched when they are read.

    A tape records in the thread that entered it. TensorFlow's semantics, with the
    differences that the README lists.

    >>> import gpugrad as gg
    >>> x = gg.constant(3.0)
    >>> with gg.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x).item()
    6.0
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        super().__init__()
        self._persistent, self._auto = bool(persistent), bool(watch_accessed_variables)
        self._stack: list[Any] | None = None  # the thread's, while recording
        self._entered = self._usable = self._explains = False

    def __enter__(self) -> GradientTape:
        if self._stack is not None:
            raise TapeError("The tape is recording already; it cannot be entered again.")
        if not self._usable:
            self._clear()
            self._usable = True
        self._entered = True
        self._start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._entered = False
        self._stop()

    def _start(self) -> None:
        self._stack = threads.stack
        self._stack.append(self)
        recorders.append(self)

    def _stop(self) -> None:
        if self._stack is not None:
            self._stack.remove(self)
            recorders.remove(self)
            self._stack = None

    def watch(self, tensor: Any) -> None:
        """Record what is done from now on to `tensor`: a Tensor, a Variable, or a nest of them.

        Raises:
            TapeError: the tape is not recording in this thread (nothing would be recorded).
            DTypeError: something that is neither a Tensor nor a Variable.
        """
        found = [
            leaf.values if isinstance(leaf, IndexedSlices) else leaf
            for leaf in nest.flatten(tensor)
        ]
        for leaf in leaves_of("watch", found):
            elsewhere = self._stack is not None and self._stack is not threads.stack
            if elsewhere or not (self._entered and self._usable):
                raise TapeError(
                    "watch: the tape is not recording here. Call it inside the tape's `with` "
                    "block, in the thread that entered it."
                )
            if not is_inexact(leaf.dtype):
                warnings.warn(
                    f"watch: a {leaf.dtype} tensor has no gradient; cast it to a float first.",
                    stacklevel=2,
                )
            else:
                self.leaves.add(number_any(leaf))
                self.known.add(leaf._id)
            if isinstance(leaf, Variable):
                self.variables[leaf._id] = leaf

    def touched(self, variable: Variable) -> None:
        """Watch a Variable that was read, if it is trainable and the tape does so."""
        if self._auto and variable._trainable and variable._id not in self.variables:
            self.variables[variable._id] = variable
            if is_inexact(variable._data.dtype):
                self.leaves.add(variable._id)
                self.known.add(variable._id)

    def watched_variables(self) -> tuple[Variable, ...]:
        """The Variables watched so far, in the order in which they were made."""
        return tuple(self.variables[i] for i in sorted(self.variables))

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Pause this tape (no other) inside a `with` block."""
        if self._stack is None:
            raise TapeError("stop_recording: the tape is not recording.")
        self._stop()
        try:
            yield
        finally:
            if self._stack is None and self._usable:
                self._entered = True
                self._start()

    def reset(self) -> None:
        """Forget all that was recorded and watched; only while recording."""
        if self._stack is None:
            raise TapeError("reset: the tape is not recording.")
        self._clear()

    def _begin(self, what: str) -> None:
        """Check that a gradient can be taken; a non-persistent tape stops recording now."""
        if not self._usable:
            raise TapeError(
                f"{what}: this tape has recorded nothing, or gave its gradient already. A tape "
                "that is not persistent gives one: use GradientTape(persistent=True) for more."
            )
        if not self._persistent:
            self._stop()

    def _end(self, results: list[Any]) -> None:
        """Free what a non-persistent tape holds, but for numbers where a None is to explain."""
        if self._persistent:
            return
        self._usable = False
        self._explains = any(g is None for g in results)
        if self._explains:
            self.log = [
                (e[0] if e[0].rules else None, e[1], e[2], None, None, None) for e in self.log
            ]
        else:
            self.log, self.dead, self.barriers = [], set(), []

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
            sources: a Tensor or Variable, or a nested structure of them.
            output_gradients: upstream gradients, in the structure of `target`, each of its
                target's shape and dtype; None means ones.
            unconnected_gradients: ``"none"`` or ``"zero"``: what a source gets that the
                target does not depend on. `explain` tells why there is a None.

        Returns:
            In the structure of `sources`: Tensors of the source's shape and dtype,
            IndexedSlices for sources that were only gathered from, or None.

        Raises:
            TapeError: a second call on a tape that is not persistent.
            StructureError, ShapeError, DTypeError: arguments that do not fit each other.
            NoGradientError: an op on the way has no derivative.

        >>> import gpugrad as gg
        >>> v = gg.Variable([1.0, 2.0])
        >>> with gg.GradientTape() as tape:
        ...     y = v * v
        >>> tape.gradient(y, v, output_gradients=gg.constant([1.0, 10.0])).tolist()
        [2.0, 40.0]
        """
        _unconnected(unconnected_gradients)
        targets, found = leaves_of("target", target), leaves_of("sources", sources)
        seeds = [None] * len(targets)
        if output_gradients is not None:
            given = nest.flatten_like(target, output_gradients, "output_gradients")
            seeds = seeds_of("output_gradients", targets, given)
        self._begin("gradient")
        results = self._pull(targets, seeds, found)
        self._end(results)
        return nest.pack(sources, filled(results, found, unconnected_gradients))

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: Any = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivative of every element of `target`: target.shape + source.shape, a source.

        The last two arguments are accepted for TensorFlow's sake and change nothing.

        >>> import gpugrad as gg
        >>> x = gg.Variable([1.0, 2.0])
        >>> with gg.GradientTape() as tape:
        ...     y = x * x
        >>> tape.jacobian(y, x).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
        """
        zero = _unconnected(unconnected_gradients) is UnconnectedGradients.ZERO
        if not isinstance(target, Tensor):
            raise DTypeError(f"jacobian: one Tensor is needed as target, got {target!r:.60}.")
        found = leaves_of("sources", sources)
        self._begin("jacobian")
        rows = []
        for k in range(max(target.size, 1)):  # an empty target too says which are connected
            seed = zeros_beside(target, (target.size,), target.dtype)
            seed[k : k + 1] = 1
            rows.append(self._pull([target], [wrap(seed.reshape(target.shape))], found))
        results: list[Any] = []
        for column, source in zip(zip(*rows, strict=True), found, strict=True):
            shape = target.shape + source.shape
            if all(g is None for g in column) and not zero:
                results.append(None)
            elif column[0] is None or not target.size:
                results.append(wrap(zeros_beside(source, shape, source.dtype)))
            else:
                results.append(TENSOR.reshape(TENSOR.stack([tensor(g) for g in column]), shape))
        self._end(results)
        return nest.pack(sources, results)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: Any = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Jacobians of each example: target (b, y...), source (b, x...) give (b, y..., x...).

        An example must depend on no other one; that is not checked.

        >>> import gpugrad as gg
        >>> x = gg.Variable([[1.0, 2.0], [3.0, 4.0]])
        >>> with gg.GradientTape() as tape:
        ...     y = x * x
        >>> tape.batch_jacobian(y, x).tolist()
        [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
        _unconnected(unconnected_gradients)
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
        b, shape = target.shape[0], target.shape + source.shape[1:]
        columns = []
        for k in range(target.size // b if b else 0):
            seed = zeros_beside(target, (b, target.size // b), target.dtype)
            seed[:, k] = 1
            columns += self._pull([target], [wrap(seed.reshape(target.shape))], [source])
        if not columns or columns[0] is None:
            result = wrap(zeros_beside(target, shape, target.dtype))
        else:
            result = TENSOR.reshape(TENSOR.stack([tensor(g) for g in columns], axis=1), shape)
        self._end([result])
        return result

    def explain(self, target: Tensor, source: Tensor) -> str:
        """Say in a sentence why the gradient of `target` by `source` is None, or that it is not.

        Works after `gradient` too, if that returned a None.

        >>> import gpugrad as gg
        >>> x = gg.constant(3.0)
        >>> with gg.GradientTape() as tape:
        ...     y = x * x
        >>> tape.explain(y, x)[:27]
        'The source was not watched:'
        """
        for t in leaves_of("explain", [target, source]):
            number_any(t)
        if not (self._usable or self._explains):
            raise TapeError(
                "explain: the record was freed by `gradient`, which found no None to explain. Use "
                "GradientTape(persistent=True) to ask more."
            )
        return why(target, source, self.log, self.barriers, self.leaves, self.known)


class _Everything:
    """The set of all serial numbers but 0."""

    def __contains__(self, i: int) -> bool:
        return i != 0

    def add(self, i: int) -> None:
        """Everything is in already."""

    def update(self, ids: Any) -> None:
        """Everything is in already."""


class Graph(_Recorder):
    """Records all that is done inside ``with gg.Graph().as_default():``, for `gradients`.

    Nothing needs watching: constants and intermediates can be asked for too. What
    `gradients` computes is recorded as well, so it can be differentiated again.

    >>> import gpugrad as gg
    >>> with gg.Graph().as_default():
    ...     a = gg.constant(2.0)
    ...     b = a ** 2
    ...     print(gg.gradients(b, a)[0].item())
    4.0
    """

    def __init__(self) -> None:
        super().__init__()
        self.known = _Everything()

    @contextlib.contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Record in this thread until the block ends."""
        stack = threads.stack
        for registry in (stack, recorders, graphs):
            registry.append(self)
        try:
            yield self
        finally:
            for registry in (stack, recorders, graphs):
                registry.remove(self)


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
    """Sum of dy/dx over `ys` for each x, from what an enclosing Graph or tape has recorded.

    Args:
        ys, xs: a Tensor, or a flat list of them. Any tensor of a `Graph` can be an x; of a
            `GradientTape`, what it watches and what comes of that.
        grad_ys: upstream gradients, one a y; None (also as an entry) means ones.
        stop_gradients: tensors to treat as constants.
        unconnected_gradients: ``"none"`` or ``"zero"``.
        name, colocate_gradients_with_ops, gate_gradients, aggregation_method: accepted for
            TensorFlow's sake; they change nothing (but the last is checked).

    Returns:
        A list with one entry for each x.

    Raises:
        TapeError: nothing records around the call.
        ShapeError, DTypeError, StructureError: arguments that do not fit.

    >>> import gpugrad as gg
    >>> with gg.Graph().as_default():
    ...     a = gg.constant(0.0)
    ...     b = 2 * a
    ...     [g.item() for g in gg.gradients(a + b, [a, b])]
    [3.0, 1.0]
    """
    if aggregation_method not in (None, 0, 1, 2):
        raise ArgumentError(f"gradients: no aggregation_method {aggregation_method!r}; 0, 1 or 2.")
    _unconnected(unconnected_gradients)
    active = [r for r in reversed(threads.stack) if isinstance(r, _Recorder)]
    recorder = next((r for r in active if isinstance(r, Graph)), active[0] if active else None)
    if recorder is None:
        raise TapeError(
            "gradients: nothing is being recorded here. Compute ys inside `with "
            "gg.Graph().as_default():` (records everything) or a GradientTape, and call it there."
        )

    def as_list(what: str, value: Any) -> list[Any]:
        found = list(value) if isinstance(value, (list, tuple)) else [value]
        for leaf in found:
            if isinstance(leaf, (dict, list, tuple)) or leaf is None:
                raise DTypeError(f"gradients: {what} is a Tensor or a flat list of them.")
        return [leaf if isinstance(leaf, Tensor) else tensor(leaf) for leaf in found]

    targets, found = as_list("ys", ys), as_list("xs", xs)
    seeds: list[Any] = [None] * len(targets)
    if grad_ys is not None:
        given = list(grad_ys) if isinstance(grad_ys, (list, tuple)) else [grad_ys]
        if len(given) != len(targets):
            raise ArgumentError(f"gradients: {len(given)} grad_ys for {len(targets)} ys.")
        seeds = seeds_of("grad_ys", targets, given)
    for target, seed in zip(targets, seeds, strict=True):
        if target.dtype.kind == "c" and seed is None:
            raise DTypeError(
                f"gradients: y is {target.dtype}; the gradient of a complex number needs grad_ys."
            )
    stops = as_list("stop_gradients", stop_gradients) if stop_gradients is not None else []
    return filled(recorder._pull(targets, seeds, found, stops), found, unconnected_gradients)
