"""Settings of the process and of a task, and one key that represents all of them.

============================  ===============================================================
the process                   `set_matmul_precision`, `set_deterministic`, `gg.set_device`,
                              `Variable.trainable`
a task, in a ``with``         `training`, `gg.device`, `gg.debug.nans`, `gg.mixed_precision`
============================  ===============================================================

A task is a thread or an asyncio task. Tasks and threads that start with a copy of a task's context
(`asyncio.create_task` and `asyncio.to_thread` copy it) start with its settings.

A traced function depends on all of them: it asks for `key` at each call, so the key is cached
until a setting changes. What no traced function depends on is kept elsewhere:
`gg.cuda.check_indices` in `gpugrad.core.index_checks`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, NamedTuple

from gpugrad.errors import ArgumentError, saying_where

MATMUL_PRECISIONS = ("highest", "high", "medium")


class _Process:
    """The settings that all threads share."""

    def __init__(self) -> None:
        self.device: Any = None
        self.matmul_precision = MATMUL_PRECISIONS[0]
        self.deterministic = False
        self.switched: frozenset[int] = frozenset()
        """The serial numbers of Variables whose `trainable` has changed, and not back."""
        self.version = object()  # replaced by every change


class _TaskSettings(NamedTuple):
    """The settings of a task, replaced by every change: a stack for each kind of ``with``."""

    devices: tuple[Any, ...] = ()
    training: tuple[bool, ...] = (False,)
    numerics: tuple[str, ...] = ("",)
    mixed: tuple[Any, ...] = (None,)


class _Task:
    """The settings of a task, and their key once somebody has asked for it."""

    __slots__ = ("cached", "settings")

    def __init__(self, settings: _TaskSettings) -> None:
        self.settings = settings
        self.cached: tuple[object, Any] = None, None  # the version that a key is of, and the key


_process = _Process()
_outside = _TaskSettings()
_nothing_entered = _Task(_outside)
_task: ContextVar[_Task] = ContextVar("gpugrad settings", default=_nothing_entered)


# ---- all of them -------------------------------------------------------------------------


class Key:
    """All settings in force. Equal settings share one object, which is compared by identity."""

    __slots__ = ("values",)
    NAMES = (
        "the default device",
        "the matmul precision",
        "set_deterministic",
        "nn.training",
        "debug.nans",
        "Variable.trainable",
        "mixed_precision",
    )

    def __init__(self, values: tuple[Any, str, bool, bool, str, frozenset[int], Any]) -> None:
        self.values = values

    def changes(self, other: Key) -> list[tuple[str, Any, Any]]:
        """Each setting that differs in another key: its public name and both values."""
        pairs = zip(self.NAMES, self.values, other.values, strict=True)
        return [(name, mine, its) for name, mine, its in pairs if mine != its]


_keys: dict[tuple[Any, ...], Key] = {}


def key(choose_device: Callable[[], Any]) -> Key:
    """The settings in force, as one object to hash and compare.

    Args:
        choose_device: called for the default device if no device has been set or entered yet.
    """
    version, cached = _task.get().cached
    return cached if version is _process.version else _renewed_key(choose_device)


def _renewed_key(choose_device: Callable[[], Any]) -> Key:
    device = choose_device()
    version = _process.version  # read before the values: a change meanwhile makes the key stale
    process, task = _process, _task.get()
    entered = task.settings
    values = (
        device, process.matmul_precision, process.deterministic, entered.training[-1],
        entered.numerics[-1], process.switched, entered.mixed[-1],
    )  # fmt: skip
    result = _keys.get(values) or _keys.setdefault(values, Key(values))
    task.cached = version, result
    return result


def _set_process(name: str, value: Any) -> None:
    setattr(_process, name, value)
    _process.version = object()


def enter(name: str, value: Any) -> None:
    """Begin a ``with`` statement of this task: `value` holds until `leave`."""
    before = _task.get().settings
    _task.set(_Task(before._replace(**{name: (*getattr(before, name), value)})))


def leave(name: str) -> None:
    """End the last ``with`` statement of a kind."""
    before = _task.get().settings
    values = getattr(before, name)[:-1] or getattr(_outside, name)
    _task.set(_Task(before._replace(**{name: values})))


class Block:
    """A ``with`` block in which a setting of this task has a value; it also decorates functions."""

    def __init__(self, setting: str, value: Any, name: str = "") -> None:
        self._setting, self._value, self._name = setting, value, name

    def __enter__(self) -> None:
        enter(self._setting, self._value)

    def __exit__(self, *exc: object) -> None:
        leave(self._setting)

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function, or ``async def`` function, decorated to run in such a block at each call.

        Raises:
            ArgumentError: `f` is a generator function: its body runs when its caller iterates.
        """
        if inspect.isgeneratorfunction(f) or inspect.isasyncgenfunction(f):
            raise ArgumentError(
                f"{self._name}: {f!r:.60} is a generator function, whose body runs after the call. "
                f"Write `with {self._name}(...):` inside it, around lines without yield."
            )

        @functools.wraps(f)
        def run(*args: Any, **keywords: Any) -> Any:
            with self:
                return f(*args, **keywords)

        @functools.wraps(f)
        async def run_async(*args: Any, **keywords: Any) -> Any:
            with self:
                return await f(*args, **keywords)

        return run_async if inspect.iscoroutinefunction(f) else run


# ---- the default device: gpugrad.core.devices chooses it ---------------------------------


def explicit_device() -> Any:
    """The innermost ``with`` statement's device, or else the process's; None if neither is set."""
    entered = _task.get().settings.devices
    return entered[-1] if entered else _process.device


def set_default_device(device: Any) -> None:
    """Make a Device the default of all threads; None removes it."""
    _set_process("device", device)


# ---- the precision of matrix products ----------------------------------------------------


@saying_where
def set_matmul_precision(precision: str) -> None:
    """Choose how products of float32 matrices are computed on a GPU; the names are torch's.

    Args:
        precision: ``"highest"``: in float32. ``"high"``: factors are rounded to TensorFloat-32 (10
            bits of mantissa instead of 23) and sums kept in float32, on tensor cores. ``"medium"``:
            factors are rounded to bfloat16 (7 bits). Other dtypes, and the CPU, are not affected.

    Raises:
        ArgumentError: `precision` is not one of the three.

    >>> gg.set_matmul_precision("highest")
    """
    if precision not in MATMUL_PRECISIONS:
        names = ", ".join(map(repr, MATMUL_PRECISIONS))
        raise ArgumentError(f"set_matmul_precision: {precision!r} is not one of {names}.")
    _set_process("matmul_precision", precision)


def get_matmul_precision() -> str:
    """How products of float32 matrices are computed on a GPU: see `set_matmul_precision`.

    >>> gg.get_matmul_precision()
    'highest'
    """
    return _process.matmul_precision


# ---- mixed precision: see `gpugrad.registry.mixed_precision` ------------------------------

mixed_modes: list[bool] = []
"""Not empty once `gg.mixed_precision` was entered: only then do ops ask for `mixed_dtype`."""


def mixed_dtype() -> Any:
    """The 16-bit dtype that this task computes products in, or None."""
    return _task.get().settings.mixed[-1]


def as_written() -> AbstractContextManager[Any]:
    """A block that computes in the dtypes of the arguments: a rule, or the body of a composite."""
    return Block("mixed", None) if mixed_modes else _NOTHING


_NOTHING = contextlib.nullcontext()


# ---- determinism -------------------------------------------------------------------------


@saying_where
def set_deterministic(on: bool = True) -> None:
    """Choose for all threads whether results on a GPU must be bitwise the same in every run.

    Gradients of `take`, `gather`, embeddings and indexing sum all values that were read from one
    place, and SGD updates a row once for each time that a gradient names it. By default a GPU adds
    with atomics, in the order in which they happen to arrive, and the last digits of a float
    differ from run to run. If on, the indices are sorted first and each sum is computed in an order
    that depends on the indices alone, which takes longer. Integers, and the CPU, always give the
    same results.

    Args:
        on: whether results must be the same in every run.

    >>> gg.set_deterministic()
    >>> gg.deterministic()
    True
    >>> gg.set_deterministic(False)
    """
    _set_process("deterministic", bool(on))


def deterministic() -> bool:
    """Whether results on a GPU must be bitwise the same in every run: see `set_deterministic`.

    >>> gg.deterministic()
    False
    """
    return _process.deterministic


# ---- checks for NaN ----------------------------------------------------------------------


def numerics() -> str:
    """Values that raise in this task: "nan", "inf" for both, or "" for none.

    See `gpugrad.trace.numerics`.
    """
    return _task.get().settings.numerics[-1]


# ---- which Variables are trainable: see `Variable.trainable` -----------------------------


def switch_trainable(number: int) -> None:
    """Note that a Variable, by its serial number, has become trainable or ceased to be."""
    _set_process("switched", _process.switched ^ {number})


# ---- training ----------------------------------------------------------------------------


class training(Block):  # it reads as a statement
    """Put layers in training mode, in this thread or asyncio task, inside a ``with`` block.

    There `gg.nn.Dropout` drops, and `gg.nn.BatchNorm` uses the statistics of the batch. Outside
    such a block they are in inference mode. A `gg.function` is traced once for each of the two
    modes, and a gradient that recomputes values does so in the mode they were computed in. It also
    decorates functions.

    Args:
        on: whether layers train; ``training(False)`` evaluates within a training step.

    Raises:
        ArgumentError: `on` is not a bool: as a decorator it is ``@gg.nn.training()``.

    >>> with gg.nn.training():
    ...     gg.nn.is_training()
    True
    >>> gg.nn.is_training()
    False
    """

    def __init__(self, on: bool = True) -> None:
        if not isinstance(on, bool):
            raise ArgumentError(
                f"nn.training: on must be True or False, got {on!r:.60}. As a decorator write "
                "@gg.nn.training()."
            )
        self.on = on
        super().__init__("training", on, "nn.training")


def is_training() -> bool:
    """Whether this thread or asyncio task is inside a `training` block.

    >>> gg.nn.is_training()
    False
    """
    return _task.get().settings.training[-1]


def mode_is_chosen() -> bool:
    """Whether this thread or asyncio task is inside a `training` block, with either mode."""
    return len(_task.get().settings.training) > 1
