"""Recording: how executed ops get into the logs of tapes and graphs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

from gpugrad.autodiff.dead_branches import STRIDE, LogGrowing, grow
from gpugrad.autodiff.explain import Barrier
from gpugrad.autodiff.recordable import Entry, Recordable, Rule, split_rule
from gpugrad.core.backend import is_inexact
from gpugrad.core.holders import opened
from gpugrad.core.listening import current_stack, recorders, threads
from gpugrad.core.tensor import Tensor, new_number, next_id
from gpugrad.core.user_code import user_line
from gpugrad.core.variable import Variable
from gpugrad.core.views import Shared, View
from gpugrad.errors import DTypeError
from gpugrad.trace.array import current_trace

# ---- what ops call ----------------------------------------------------------------------


def number(x: Any) -> int:
    """The serial number of an op's argument, assigned now if missing; 0 if not recordable."""
    if not isinstance(x, Tensor) or not is_inexact(x.dtype):
        return 0
    serial = x._id or new_number(x)
    trace = current_trace()
    if trace is not None:
        trace.numbered(x)
    return serial


def number_any(x: Tensor) -> int:
    """The serial number of a target or source of any dtype, assigned now if missing."""
    return x._id or new_number(x)


def note_view(recorder: Any, x: Tensor) -> None:
    """Note a watched Tensor if others write to its memory, with the number of its elements now."""
    if type(x) is View:
        number_any(x.root)  # a write to the root is recorded from now on
    if type(x) in (View, Shared):
        recorder._views.append((weakref.ref(x), x._id))


def link(recorder: Any, x: Tensor) -> Tensor:
    """`x`, a target; a view whose root was written to runs its op again for the recorder.

    It may have done so when it was first read after the write, outside of the recorder's block.
    """
    if type(x) is View and x._id not in recorder.known and x.root._id in recorder.known:
        for each in x.line:
            each.forget()
        stack = threads.stack
        if recorder not in stack:
            threads.stack = [*stack, recorder]
        recorders.append(recorder)
        try:
            x._refresh()
        finally:
            recorders.remove(recorder)
            threads.stack = stack
    return x


_next_look = STRIDE  # the number of a result


def record(
    op: Any, out: Tensor, ids: tuple[int, ...], shapes_and_dtypes: Any, saved: Any, params: Any
) -> None:
    """Offer an executed op to every recorder of this task, the outermost first.

    `out` must have a dtype with gradients; for other results ops call `block`.
    """
    global _next_look
    stack = current_stack()
    if stack.thread != get_ident():
        return
    entry = None
    for recorder in stack:
        known = recorder.known
        for i in ids:
            if i in known:
                if entry is None:
                    serial = out._number
                    if not serial:
                        out._number = serial = next_id()
                        if serial >= _next_look:  # a look at the logs' growth now and then
                            _next_look = serial + STRIDE
                            grow(out)
                    entry = (op, serial, ids, shapes_and_dtypes, saved, params)
                log = recorder.log
                if log is None:  # a ForwardAccumulator
                    recorder.take(entry, out)
                else:
                    log.append(entry)
                    known.add(serial)
                break
        else:
            if recorder.dead:
                recorder.bury(ids, out)


def record_many(
    op: Any,
    outs: Sequence[Tensor],
    ids: tuple[int, ...],
    shapes_and_dtypes: Any,
    saved: Any,
    params: Any,
) -> None:
    """`record` for an op with several results."""
    entry = None
    for recorder in threads.stack:
        if any(i in recorder.known for i in ids):
            if entry is None:
                for out in outs:
                    out._id = serial = out._id or next_id()
                    if not serial % STRIDE:
                        grow(out)
                numbered = tuple((out._id, out.shape, out.dtype) for out in outs)
                entry = (op, numbered, ids, shapes_and_dtypes, saved, params)
            recorder.take(entry, outs)


def refuse_complex(name: str, ids: Sequence[int], *arrays: Any) -> None:
    """Refuse to record a complex call of an op whose rules would give a wrong gradient."""
    if any(i in recorder.known for recorder in threads.stack for i in ids):
        dtypes = [a.dtype for a in arrays if hasattr(a, "dtype") and a.dtype.kind == "c"]
        raise DTypeError(
            f"{name}: its gradient is only defined for real numbers, but a tape records it with "
            f"{dtypes[0] if dtypes else 'complex'} arguments. Give it gg.real(x), gg.imag(x) or "
            "gg.abs(x); or gg.stop_gradient(x), if no gradient is needed."
        )


def watched_in(*values: Any) -> list[Tensor]:
    """The Tensors in an op's parameters, also in lists, that a recorder of this thread knows."""
    watched: list[Tensor] = []
    for value in values:
        value = opened(value)
        if isinstance(value, (tuple, list)):
            watched += watched_in(*value)
        elif isinstance(value, Tensor) and is_inexact(value.dtype):
            serial = value._read()._id  # a tape that watches Variables on first use sees this one
            if serial and any(serial in recorder.known for recorder in threads.stack):
                watched.append(value)
    return watched


def refuse_parameters(name: str, params: dict[str, Any]) -> None:
    """Refuse a call that would lose the gradient of a watched Tensor among its parameters."""
    for parameter, value in params.items():
        if watched_in(value):
            raise DTypeError(
                f"{name}: a tape watches a Tensor in {parameter}=, which gets no gradient here. "
                f"Write the formula with ops that take {parameter} as an array; or say that it is "
                f"a constant: gg.stop_gradient({parameter}), or {parameter}.item()."
            )


def open_with_parameters(name: str, body: Any, arrays: Any, params: dict[str, Any]) -> Any:
    """The result of a composite's body on Tensors, with watched Tensors among its parameters.

    Its ops differentiate a parameter that they take as an array. A parameter that none of them
    takes would lose its gradient: the call is refused.
    """
    witnesses = {}
    for parameter, value in params.items():
        for t in watched_in(value):
            witnesses[t._id] = parameter, Recorder()
            witnesses[t._id][1].known.add(t._id)
    stack = threads.stack
    threads.stack = [*stack, *(recorder for _, recorder in witnesses.values())]
    try:
        out = body(*arrays, **params)
    finally:
        threads.stack = stack
    serials = {o._id for o in (out if isinstance(out, tuple) else (out,))}
    for parameter, recorder in witnesses.values():
        if serials.isdisjoint(recorder.known):
            refuse_parameters(name, {parameter: params[parameter]})
    return out


def block(name: str, out: Tensor, ids: Sequence[int]) -> None:
    """Note that an op without a gradient read something recorded, so `explain` can say so."""
    for recorder in threads.stack:
        if any(i in recorder.known or i in recorder.dead for i in ids):
            out._id = out._id or next_id()
            recorder.barrier(name, ids, out._id)


class recording_stopped:
    """Pauses every recorder of this thread, except those of the classes `keep`."""

    def __init__(self, keep: type | tuple[type, ...] = ()) -> None:
        self._keep, self._stack = keep, threads.stack

    def __enter__(self) -> None:
        threads.stack = [r for r in self._stack if isinstance(r, self._keep)]

    def __exit__(self, *exc: object) -> None:
        threads.stack = self._stack


# ---- recorders --------------------------------------------------------------------------


class Recorder(LogGrowing):
    """The base of tapes and graphs: a log of the executed ops.

    Attributes:
        known: serial numbers of watched Tensors, and of everything computed from them.
        log: the entries, in execution order.
        leaves: serial numbers of watched Tensors.
        variables: the watched Variables, by serial number.
        watched: the watched Tensors, by id, and their serial numbers then: a write changes them.
        dead: serial numbers of results behind an op without a gradient.
        barriers: those ops, for `explain`.
        passes: the backward passes that it has recorded, each by two serial numbers around its own.
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.known: Any = set()
        self.log: list[Entry] = []
        self.leaves: set[int] = set()
        self.variables: dict[int, Variable] = {}
        self.dead: set[int] = set()
        self.barriers: list[Barrier] = []
        self.watched: dict[int, tuple[weakref.ref[Tensor], int]] = {}
        self._views: list[tuple[weakref.ref[Tensor], int]] = []
        self.passes: list[tuple[int, int]] = []
        self._bytes = self._new_bytes = 0

    def source(self, x: Tensor) -> Tensor:
        """The Tensor to differentiate by, if the user asks for a gradient by `x`."""
        return x

    def take(self, entry: Entry, out: Any) -> None:
        """Log an executed op; its results are known from now on."""
        self.log.append(entry)
        _, serial, *_ = entry
        if type(serial) is int:
            self.known.add(serial)
        else:
            self.known.update(i for i, _, dtype in serial if is_inexact(dtype))

    def bury(self, ids: Sequence[int], out: Tensor) -> None:
        """Note that `out` was computed from a dead result, so that `explain` finds the way back."""
        if any(i in self.dead for i in ids):
            out._id = out._id or next_id()
            self.dead.add(out._id)
            self.barriers.append((len(self.log), "", out._id, tuple(ids), ""))

    def barrier(self, name: str, ids: Sequence[int], out: int) -> None:
        """Note that a gradient stops at the op `name`, which the user's line calls."""
        if any(i in self.known or i in self.dead for i in ids):
            self.dead.add(out)
            self.barriers.append((len(self.log), name, out, tuple(ids), user_line()))


class RecordedCall(Recordable):
    """A call that is not an op, but of a function whose gradients all come from one function.

    Args:
        name: the function's name.
        gradients: function of a reading and of one gradient for each result, that returns one for
            each input.
        unused, push: see `Recordable`.
    """

    outputs = 0  # `g` is a tuple even for one result

    def __init__(
        self,
        name: str,
        gradients: Callable[..., Sequence[Any]],
        unused: Sequence[int] = (),
        push: Callable[[Sequence[Any]], Sequence[Any]] | None = None,
    ) -> None:
        self.name, self._gradients, self.unused, self.push = name, gradients, unused, push

    def rules_for(self, n: int) -> Sequence[Rule]:
        """One rule for each input; the first that runs computes the gradients of all."""
        return split_rule(lambda xp, g, saved, params: self._gradients(xp, g), n)

    def record(self, outs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        """Offer the call to the recorders of this thread."""
        ids = tuple(x._id for x in inputs)
        record_many(self, tuple(outs), ids, (None,) * len(ids), (), None)
