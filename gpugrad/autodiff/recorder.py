"""What a tape and a graph share: recording what ops do, and differentiating the record."""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpugrad.autodiff.backward import Entry, backward, finished, plus
from gpugrad.autodiff.explain import Barrier
from gpugrad.core import backend, devices, nest
from gpugrad.core.backend import TENSOR, is_inexact
from gpugrad.core.devices import formulas_on
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, constant, next_id, tensor, threads, wrap
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, DeviceError, DTypeError, GpugradError, ShapeError, reraise
from gpugrad.trace.array import running, tracing, unwrapped, user_line
from gpugrad.trace.listener import Listener
from gpugrad.trace.program import NotReplayable

__all__ = [
    "AggregationMethod",
    "Recorder",
    "UnconnectedGradients",
    "block",
    "filled",
    "fitted",
    "graphs",
    "leaves_of",
    "number",
    "number_any",
    "record",
    "record_many",
    "recording_stopped",
    "refuse_complex",
    "seeds_of",
    "unconnected",
    "zeros_beside",
]

graphs: list[Any] = []
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


_numbering = threading.Lock()


def _new_number(x: Tensor) -> int:
    with _numbering:  # two threads may give the same tensor its first number
        x._id = x._id or next_id()
    return x._id


def number(x: Any) -> int:
    """The serial number of an op's argument, given now if it had none; 0 if not recordable."""
    if not isinstance(x, Tensor) or not is_inexact(x.dtype):
        return 0
    serial = x._id or _new_number(x)
    trace = running()
    if trace is not None:
        trace.numbered(x)
    return serial


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
                recorder.bury(ids, out)


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


def refuse_complex(name: str, ids: Sequence[int], *arrays: Any) -> None:
    """Refuse to record an op of complex numbers whose rules would give a wrong gradient."""
    if any(i in recorder.known for recorder in threads.stack for i in ids):
        dtypes = [a.dtype for a in arrays if hasattr(a, "dtype") and a.dtype.kind == "c"]
        raise DTypeError(
            f"{name}: its gradient is that of real numbers, and a tape is to record it of "
            f"{dtypes[0] if dtypes else 'complex'} ones. Give it gg.real(x), gg.imag(x) or "
            "gg.abs(x); or gg.stop_gradient(x), if no gradient is needed."
        )


def block(name: str, out: Tensor, ids: Sequence[int]) -> None:
    """Note that an op without a gradient read something recorded, so `explain` can say so."""
    for recorder in threads.stack:
        if any(i in recorder.known or i in recorder.dead for i in ids):
            out._id = out._id or next_id()
            recorder.barrier(name, ids, out._id)


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


class Recorder(Listener):
    """What a tape and a graph share: a log, and differentiating it."""

    passive = False

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
        """Log an execution; its results are known from now on."""
        self.log.append(entry)
        serial = entry[1]
        if type(serial) is int:
            self.known.add(serial)
        else:
            self.known.update(i for i, _, dtype in serial if is_inexact(dtype))

    def bury(self, ids: Sequence[int], out: Tensor) -> None:
        """Follow what an op without a gradient made, so that `explain` finds the way back."""
        if any(i in self.dead for i in ids):
            out._id = out._id or next_id()
            self.dead.add(out._id)
            self.barriers.append((len(self.log), "", out._id, tuple(ids), ""))

    def barrier(self, name: str, ids: Sequence[int], out: int) -> None:
        """A gradient stops here: at `name`, called from the user's line."""
        if any(i in self.known or i in self.dead for i in ids):
            self.dead.add(out)
            self.barriers.append((len(self.log), name, out, tuple(ids), user_line()))

    def pull(
        self, targets: list[Tensor], seeds: list[Any], sources: list[Tensor],
        stops: Sequence[Tensor] = (),
    ) -> list[Any]:  # fmt: skip
        """Gradients of the sum of `targets` (Tensor, IndexedSlices or None), one a source."""
        if not targets:
            return [None] * len(sources)
        try:
            return self._pull(targets, seeds, sources, stops)
        except MemoryError as error:
            reraise(error, "gradient", {}, {})

    def _pull(
        self, targets: list[Tensor], seeds: list[Any], sources: list[Tensor],
        stops: Sequence[Tensor],
    ) -> list[Any]:  # fmt: skip
        wanted = {number_any(s) for s in sources}
        raw = not threads.stack or all(recorder.passive for recorder in threads.stack)
        first = targets[0]._data
        trace, xp = running(), TENSOR
        if raw:  # the seed of a constant may be Traced
            xp = backend.reading(first, *(s._data for s in seeds[:1] if s is not None))
        start = len(trace.program.steps) if trace is not None else 0
        if self.leaves <= wanted and type(self.known) is set:
            need: Any = self.known
        else:
            need = {i for i in wanted if i in self.known}
            for _, out, ids, _, _, _ in self.log:
                if any(i in need for i in ids):
                    need.update((out,) if type(out) is int else (o[0] for o in out))
        stopped = {number_any(s) for s in stops}
        here = formulas_on(first)
        quiet = contextlib.nullcontext() if type(here) is np.errstate else np.errstate(all="ignore")
        with here, quiet:  # some of it may be on the CPU
            for masked in (False, True):  # 0 * inf is 0 in the second pass: see `_any_nan`
                grads: dict[int, Any] = {}
                for target, seed in zip(targets, seeds, strict=True):
                    i = number_any(target)
                    if seed is None:
                        seed = devices.full_beside(target._data, target.shape, target.dtype, 1)
                        seed = seed if raw else wrap(seed)
                    elif raw:
                        seed = seed._data
                    grads[i] = plus(xp, grads[i], seed) if i in grads else seed
                backward(self.log, grads, wanted, need, xp, stopped, masked, trace is not None)
                results = [finished(xp, grads.get(s._id), s) for s in sources]
                if masked or not _any_nan(results):
                    break
        if trace is not None:
            for step in trace.program.steps[start:]:
                step.backward = True
        return results


def _any_nan(results: Sequence[Any]) -> bool:
    """Whether a gradient on the CPU is NaN somewhere; it may be of 0 * inf in a masked branch.

    To look at the gradients costs less than to mask every product on the way, and a pass with
    masked products is only run where one is NaN. On a GPU looking would wait for the device.
    """
    arrays = [g.values if type(g) is IndexedSlices else g for g in results if g is not None]
    trace = running()
    if trace is not None and trace.abstract:  # there is no other way to go in a later run
        return any(tracing(g._data) for g in arrays)
    for g in arrays:
        if _is_nan(backend.bottom(g._data)):
            return True
    if trace is not None and trace.moved:  # too late to call the function instead
        return True
    if trace is not None:  # in a later run one may be, and then this is not what to do
        on_host = (g for g in arrays if type(backend.bottom(g._data)) is np.ndarray)
        seen = [wrap(unwrapped(g._data)) for g in on_host if tracing(g._data)]
        if seen:
            trace.effect("no_nan", _no_nan, seen, undo=lambda: lambda: None)
    return False


def _is_nan(array: Any) -> bool:
    """Whether an array of NumPy's has NaN in it; the sum would say so too, in twice the time."""
    if type(array) is not np.ndarray or not is_inexact(array.dtype):
        return False
    top = np.maximum.reduce(array, axis=None, initial=0)
    return bool(top != top)


def _no_nan(*gradients: Tensor) -> list[Tensor]:
    if any(_is_nan(g._data) for g in gradients):
        raise NotReplayable("a gradient is NaN, so it is taken with masked products")
    return []


def number_any(x: Tensor) -> int:
    """The serial number of a target or source of any dtype, given now if it had none."""
    return x._id or _new_number(x)


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
    """Upstream gradients as Tensors that fit their targets; None stands for ones."""
    return [
        None if seed is None else fitted(f"{what}[{k}]", "target", target, seed)
        for k, (target, seed) in enumerate(zip(targets, given, strict=True))
    ]


def fitted(what: str, role: str, like: Tensor, value: Any) -> Tensor:
    """`value` as a Tensor of the shape, dtype and device of `like`, which is called `role`."""
    try:
        if not hasattr(value, "dtype"):
            value = constant(value, like.dtype, device=like.device)
        value = tensor(value)
    except GpugradError as error:
        reraise(error, what, {}, {})
    if value.shape != like.shape:
        raise ShapeError(
            f"{what}: the {role}'s shape is {like.shape}, this has {value.shape}. They must be "
            "the same; broadcast it with gg.broadcast_to."
        )
    if value.dtype != like.dtype:
        raise DTypeError(
            f"{what}: the {role} is {like.dtype}, this is {value.dtype}. Cast it with "
            "gg.astype(x, dtype)."
        )
    if value.device != like.device:
        raise DeviceError(
            f"{what}: the {role} is on {like.device}, this is on {value.device}. Move it with "
            "x.to_device(device)."
        )
    return value


def filled(results: list[Any], sources: list[Tensor], how: Any) -> list[Any]:
    """Results with zeros for None, if `how` says so."""
    if unconnected(how) is UnconnectedGradients.NONE:
        return results
    return [zeros_beside(s) if g is None else g for g, s in zip(results, sources, strict=True)]


def zeros_beside(t: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    """Zeros of the dtype of `t`, where that is, and of its shape if none is given."""
    return wrap(devices.full_beside(t._data, t.shape if shape is None else shape, t.dtype))


def unconnected(value: Any) -> UnconnectedGradients:
    """The choice that `value` names; ArgumentError if it names none."""
    if isinstance(value, UnconnectedGradients):
        return value
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ArgumentError(
            f"unconnected_gradients: {value!r} is neither 'none' nor 'zero'."
        ) from None
