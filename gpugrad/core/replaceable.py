"""Arrays that are replaced while other threads read them: of one Variable, and of several at once.

Several are read and replaced without bytecode in between: no interrupt comes, and no other thread
runs. Handlers of signals wait until an update in place has ended.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # without conversions to enums, ten times as fast
import threading
from _thread import interrupt_main
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import is_
from threading import get_ident
from typing import Any

from gpugrad.core.scopes import Scope, scopes, updating
from gpugrad.core.tensor import Tensor


class Replaceable(Tensor):
    """A Tensor whose array can be replaced, in all threads or in the scope of one."""

    __slots__ = ("_value",)

    _value: Any  # the array that all threads see

    @property
    def _data(self) -> Any:
        """The array: this thread's own, or the one that all threads see."""
        if scopes:
            values = scopes.get(get_ident())
            if values is not None:
                array = values.get(self._id)
                if array is not None:
                    return array
        try:
            return self._value
        except AttributeError:  # it was taken, to be written to: by another thread, or by this one
            return _read_locked([self])[0]

    @_data.setter
    def _data(self, array: Any) -> None:
        if scopes:
            values = scopes.get(get_ident())
            if values is not None:
                values[self._id] = array
                return
        self._value = array


_slot: Any = vars(Replaceable)["_value"]
_value_of, _set_value, _delete_value = _slot.__get__, _slot.__set__, _slot.__delete__


def read_together(variables: Sequence[Replaceable]) -> list[Any]:
    """The arrays of several Variables at one moment; in a scope of this thread, its own."""
    if get_ident() in scopes:
        return [variable._data for variable in variables]
    try:
        return list(map(_value_of, variables))
    except AttributeError:  # as in `Variable._data`
        return _read_locked(variables)


def still_hold(variables: Sequence[Replaceable], arrays: Sequence[Any]) -> bool:
    """Whether Variables have these very arrays, and no others in a scope of this thread.

    The caller holds the lock `updating`.
    """
    return get_ident() not in scopes and all(map(is_, map(_value_of, variables), arrays))


def _read_locked(variables: Sequence[Replaceable]) -> list[Any]:
    """The arrays of Variables, once no other thread writes to them."""
    with updating:
        by_this_thread = (zip(*some, strict=True) for some in _locked)
        locked = {v._id: array for pairs in by_this_thread for v, array in pairs}
        return [locked[v._id] if v._id in locked else _value_of(v) for v in variables]


def write_together(variables: Sequence[Replaceable], arrays: Sequence[Any]) -> None:
    """Set the arrays of several Variables at one moment; in a scope of this thread, its own."""
    if get_ident() in scopes:
        scopes[get_ident()].update(zip([v._id for v in variables], arrays, strict=True))
    else:
        _run(map(_set_value, variables, arrays))


_locked: list[tuple[Sequence[Replaceable], list[Any]]] = []  # what `lock_arrays` has taken


def lock_arrays(variables: Sequence[Replaceable]) -> list[Any]:
    """Take the arrays from Variables, so that nobody else sees what is written to them.

    Other threads that read the Variables wait for the lock `updating`, which the caller holds. It
    also defers signals, until it has called `unlock_arrays`.
    """
    arrays = list(map(_value_of, variables))
    _locked.append((variables, arrays))
    _run(map(_delete_value, variables))
    return arrays


def unlock_arrays(variables: Sequence[Replaceable], arrays: Sequence[Any]) -> None:
    """Give Variables their arrays back, or new ones."""
    _run(map(_set_value, variables, arrays))
    _locked.pop()


def _run(calls: Iterable[Any]) -> None:
    deque(calls, maxlen=0)


_NUMBERS = sorted(_signal.valid_signals())


def handled() -> list[tuple[int, Any]]:
    """The signals that have a handler in Python, and the handlers."""
    # a default is 0 or None; to ignore a signal is 1
    pairs = [
        (n, _signal.getsignal(n)) for n in compress(_NUMBERS, map(_signal.getsignal, _NUMBERS))
    ]
    return [pair for pair in pairs if callable(pair[1])]


def raised_by_handler(error: BaseException) -> bool:
    """Whether a handler of a signal raised an exception, and not the code that it came to."""
    functions = (getattr(handler, "func", handler) for _, handler in handled())  # of a partial
    codes = {getattr(function, "__code__", None) for function in functions}
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code not in codes:
        trace = trace.tb_next
    return trace is not None


class SignalsDeferred:
    """Lets the handlers of signals wait until its ``with`` block has ended.

    For updates in place, which a handler that raises would leave half done: Ctrl-C, or SIGTERM with
    `sys.exit`. Python runs handlers in the main thread only.

    A signal may come between any two lines below. Its handler then runs as if there were no block,
    also through a `_wait` that nothing has replaced: the next block does that.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._waiting: list[Any] = []
        self._active = False

    def __enter__(self) -> None:
        if self._active or threading.main_thread().ident != get_ident():
            return
        try:
            self._replace()
            self._active = True
        except BaseException:  # of a handler
            self.__exit__()
            raise

    def _replace(self) -> None:
        for number, handler in handled():
            other = getattr(handler, "__self__", None)
            if type(other) is SignalsDeferred:
                if other._active:
                    continue  # it waits for the end of that block
                handler = other._handlers[number]
            self._handlers[number] = handler
            _signal.signal(number, self._wait)

    def __exit__(self, *exc: object) -> None:
        if not self._handlers:
            return
        restored = map(_signal.signal, self._handlers, self._handlers.values())
        arriving = map(interrupt_main, self._waiting)
        self._active = False
        try:
            deque(restored, maxlen=0)
        finally:
            deque(arriving, maxlen=0)  # at once: the first handler may raise

    def _wait(self, number: int, frame: Any) -> Any:
        if self._active:
            self._waiting.append(number)
            return None
        return self._handlers[number](number, frame)


class Update:
    """The updates of Variables in place by a replay, which holds the lock `updating`.

    It takes the arrays from the Variables into a scope of this thread, where nobody else sees what
    is written to them. In the end all Variables have their new arrays at once. Signals wait for
    that: an update cannot be undone, and new arrays would add three passes over memory to the
    seven of Adam.
    """

    def __init__(self) -> None:
        self._deferred, self._scope = SignalsDeferred(), Scope({})
        self._variables: dict[int, Replaceable] = {}

    def hold(self, variables: Sequence[Replaceable]) -> None:
        """Take the arrays of Variables, except those that it has already."""
        self._deferred.__enter__()
        if self._scope.outer is not None:
            return  # nobody else sees the values in it
        self._scope.__enter__()
        held = self._variables
        new = [v for v in variables if v._id not in held] if held else variables
        numbers = [v._id for v in new]
        self._scope.values.update(zip(numbers, map(_value_of, new), strict=True))
        held.update(zip(numbers, new, strict=True))
        _run(map(_delete_value, new))

    def finish(self, variables: Sequence[Replaceable], arrays: Sequence[Any]) -> None:
        """Give these Variables, with all that it holds among them, their new arrays."""
        try:
            if self._variables:
                self._scope.__exit__()
            write_together(variables, arrays)
        finally:
            self._deferred.__exit__()

    def fail(self) -> None:
        """Give the Variables what they have been updated to before an error."""
        held = self._variables
        self.finish([*held.values()], [self._scope.values[i] for i in held])
