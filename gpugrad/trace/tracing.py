"""Tracing: writes a `Program` while a function runs on `Traced` arrays.

Shapes and dtypes come from the arrays themselves, so no op needs a shape rule. Tapes and their
backward passes are traced as well, since derivative rules are formulas too.

Anything that is not a function of arrays (random numbers, an optimizer's update in place) becomes
an *effect*: a step that calls Python at each replay, in the order of the steps.

The traced values of Variables are in a scope of the thread. What the function has assigned becomes
visible to other threads at the end, all at once. Nothing does if one of them has changed a Variable
that the function has read: its effects are undone then, and the caller replays the program on the
values of now.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, Self

from gpugrad.core.backend import ARRAYS, READINGS
from gpugrad.core.listening import graphs, threads
from gpugrad.core.replaceable import SignalsDeferred, read_together, write_together
from gpugrad.core.scopes import Scope, scopes, updating
from gpugrad.core.tensor import Tensor, next_id
from gpugrad.core.user_code import user_line
from gpugrad.core.variable import Variable
from gpugrad.core.views import View
from gpugrad.errors import TraceError
from gpugrad.trace.array import LEFT, TRACED, Traced, current, is_traced
from gpugrad.trace.program import NotReplayable, Value
from gpugrad.trace.writer import Writer, in_order, inner_of


class Tracing(Writer):
    """Traces what runs in its ``with`` statement; a listener, to see reads of Variables."""

    nested = False  # whether its program is part of another one, as a branch or a loop body
    masks = False  # whether gradients have masked products at once, also without a NaN
    boxes = True  # whether a value may be a loop's gradient function, which no pass looks into
    sees_reads = False  # whether `numbered` is called with the Tensors that ops read

    def __init__(
        self, pure: bool = False, trial: bool = False, passes: Sequence[str] | None = None
    ) -> None:
        super().__init__(pure, undoes=trial)
        self.trial = trial  # everything is restored at the end
        self.passes = passes  # for the functions that it calls
        self.makes: Variable | None = None  # one that the function itself creates
        self.committed = False  # whether the call has taken effect; set at the end
        self._born = next_id()
        self._refreshed: list[weakref.ref[View]] = []
        self._variables: dict[int, tuple[Variable, Any]] = {}
        self._scope = self._new_scope()
        self._values = self._scope.values
        self._outer, self._open = current.trace, False
        self._written: dict[int, tuple[weakref.ref[Tensor], Any, str]] = {}
        if Traced not in ARRAYS:  # ops do not check for the type before the first trace
            READINGS[Traced] = TRACED
            ARRAYS.add(Traced)

    def __enter__(self) -> Self:
        self._open = True
        self._scope.__enter__()
        self.listen()
        current.trace = self
        return self

    def listen(self, place: int | None = None) -> Self:
        """Follow this thread's ops, and their reads if it sees these."""
        if self.sees_reads:
            graphs.append(self)
        return super().listen(place)

    def __exit__(self, kind: Any, *exc: object) -> None:
        try:
            self._close(kind)
        finally:
            self.end()

    def end(self) -> None:
        """Go back to the values and the trace outside; undo what is not committed.

        Called once more by who has used a ``with`` statement: Ctrl-C may have ended that before the
        first line of `__exit__`.
        """
        if not self._open:
            return
        self._leave()
        for undo in reversed(self._undo):
            undo()
        self._undo = []
        if self._updates:
            self._updates = False
            updating.release()
        self._open = False

    def _leave(self) -> None:
        if self in graphs:
            graphs.remove(self)
        for weak in self._refreshed:  # from a write outside: their arrays are this trace's
            if (view := weak()) is not None:
                view.forget()
        current.trace = self._outer
        self._scope.__exit__()
        stack = threads.stack
        if not self.committed and self in stack:  # tapes inside that Ctrl-C has kept from ending
            for listener in stack[stack.index(self) + 1 :]:
                listener.leave()
        self.leave()

    def _takes_effect(self) -> bool:
        """Whether the call that was traced counts, so that it needs no replay."""
        return True

    def _close(self, kind: Any) -> None:
        where = self._undo_writes() if self._written else ""
        moved = self._moved_variables()
        self.program.writes += [(variable, value) for variable, value, _ in moved]
        if kind is None and not where and not self.trial and self._takes_effect():
            self._commit([variable for variable, _, _ in moved], [array for _, _, array in moved])
        if where and kind is None:
            raise TraceError(
                f"{where} writes to a Tensor that is an argument of the traced function or was "
                "created outside of it: later calls would not. For x += v write x = x + v. For "
                "x[i] = v write to a copy and return that: x = x.copy(). Or use a Variable."
            )

    def _moved_variables(self) -> list[tuple[Variable, Value, Any]]:
        """The Variables that have another value now: the Value, and its plain array."""
        by_effects = {var._id for step in self.program.steps for var in step.variables}
        moved = []
        for variable, before in self._variables.values():
            now = self._values.get(variable._id, before)
            value = self.place(now)  # it may be a constant
            if variable._id in by_effects or all(
                v is not value for var, v in self.program.reads if var is variable
            ):
                moved.append((variable, value, inner_of(now)))
        return moved

    def _commit(self, moved: Sequence[Variable], arrays: Sequence[Any]) -> None:
        """Give Variables their new arrays, unless one that was read has changed meanwhile."""
        read = [variable for variable, _ in self._variables.values()]
        self._scope.__exit__()
        with updating, SignalsDeferred():
            pairs = zip(self._variables.values(), read_together(read), strict=True)
            if all(before is now for (_, before), now in pairs):
                write_together(moved, arrays)
                self.committed, self._undo = True, []

    def _new_scope(self) -> Scope:
        return Scope(dict(scopes.get(get_ident(), ())))

    def touched(self, variable: Variable) -> None:
        """Make the value of a Variable an input when it is first read."""
        if variable._id in self._variables:
            if not is_traced(variable._data):  # a constant was assigned
                variable._data = Traced(variable._data, self.place(variable._data))
            return
        if variable._id > self._born:
            self.makes = variable
        data = variable._data
        if type(data) is Traced:  # it was created from a traced value
            self._variables[variable._id] = variable, variable._value
            return
        value = Value(data)
        self._variables[variable._id] = variable, data
        self.program.reads.append((variable, value))
        variable._data = Traced(in_order(data), value)

    def assigned(self, variable: Variable) -> None:
        """Follow a Variable that gets another value."""
        if self.trial and variable._id > self._born:
            raise NotReplayable("the making of a Variable")
        if self.pure:
            error = NotReplayable(f"the Variable '{variable.name}' is assigned to")
            error.once = variable._id > self._born  # the function created it
            raise error
        self.touched(variable)

    def writes(self, x: Tensor) -> None:
        """Called before elements of a Tensor are set."""
        known = self._written.get(id(x))
        if known is None or known[0]() is not x:
            self._written[id(x)] = weakref.ref(x), x._data, user_line()

    def refreshed(self, view: View) -> None:
        """Remember a view that has got an array of this trace."""
        self._refreshed.append(weakref.ref(view))

    def _undo_writes(self) -> str:
        """Give the Tensors that were written to their old arrays back.

        Returns:
            The line of the first write to a Tensor that is still alive, so is not the function's
            own; or "".
        """
        if any(x() is not None for x, _, _ in self._written.values()):
            gc.collect()  # frees the function's own Tensors in cycles
        written = [(x(), *rest) for x, *rest in self._written.values()]
        for x, before, _ in written:
            if x is not None:
                x._data = before
        return next((line for x, _, line in written if x is not None), "")

    def numbered(self, x: Tensor) -> None:
        """Called when an op reads `x` while a recorder follows all reads."""

    def with_gradient(
        self, name: str, outs: list[Tensor], inputs: Sequence[Tensor], gradients: Callable[..., Any]
    ) -> list[Tensor]:
        """The results of a call with its own gradient, for tapes that only see the trace."""
        return outs

    def returned(self, arrays: Sequence[Any]) -> None:
        """Set the outputs of the program; TraceError if a value comes from another trace."""
        program = self.program
        program.outputs = [self.place(a) for a in arrays]
        own = {id(v) for v in (*program.inputs, *(v for _, v in program.reads))}
        own |= {id(v) for step in program.steps for v in step.outs}
        now = [var._data.value for var, _ in self._variables.values() if type(var._data) is Traced]
        if any(v.constant is None and id(v) not in own for v in (*program.values(), *now)):
            raise TraceError(LEFT)
