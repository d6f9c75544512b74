"""Settings of the process and of a thread, and one key that represents all of them.

============================  ===============================================================
the process                   `set_matmul_precision`, `set_deterministic`, `gg.set_device`
a thread, in a ``with``       `training`, `gg.device`, `gg.debug.nans`
============================  ===============================================================

A traced function depends on all of them: it asks for `key` at each call, so the key is cached
until a setting changes. What no traced function depends on is kept elsewhere:
`gg.cuda.check_indices` in `gpugrad.core.index_checks`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from gpugrad.errors import ArgumentError

__all__ = [
    "Key",
    "deterministic",
    "enter_device",
    "enter_numerics",
    "exit_device",
    "exit_numerics",
    "explicit_device",
    "get_matmul_precision",
    "is_training",
    "key",
    "numerics",
    "set_default_device",
    "set_deterministic",
    "set_matmul_precision",
    "training",
]

MATMUL_PRECISIONS = ("highest", "high", "medium")


class _Process:
    """The settings that all threads share."""

    def __init__(self) -> None:
        self.device: Any = None
        self.matmul_precision = MATMUL_PRECISIONS[0]
        self.deterministic = False
        self.version = object()  # replaced by every change


class _ThreadSettings(threading.local):
    """The settings of one thread: a stack for each kind of ``with`` statement."""

    def __init__(self) -> None:
        self.devices: list[Any] = []
        self.training = [False]
        self.numerics = [""]
        self.cached: tuple[object, Any] = None, None  # the version that a key is of, and the key


_process = _Process()
_thread = _ThreadSettings()


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
    )

    def __init__(self, values: tuple[Any, str, bool, bool, str]) -> None:
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
    version, cached = _thread.cached
    return cached if version is _process.version else _renewed_key(choose_device)


def _renewed_key(choose_device: Callable[[], Any]) -> Key:
    device = choose_device()
    version = _process.version  # read before the values: a change meanwhile makes the key stale
    process, thread = _process, _thread
    values = (
        device, process.matmul_precision, process.deterministic, thread.training[-1],
        thread.numerics[-1],
    )  # fmt: skip
    result = _keys.get(values) or _keys.setdefault(values, Key(values))
    _thread.cached = version, result
    return result


def _set_process(name: str, value: Any) -> None:
    setattr(_process, name, value)
    _process.version = object()


def _enter(stack: list[Any], value: Any) -> None:
    stack.append(value)
    _thread.cached = None, None


def _exit(stack: list[Any]) -> None:
    stack.pop()
    _thread.cached = None, None


# ---- the default device: gpugrad.core.devices chooses it ---------------------------------


def explicit_device() -> Any:
    """The innermost ``with`` statement's device, or else the process's; None if neither is set."""
    return _thread.devices[-1] if _thread.devices else _process.device


def set_default_device(device: Any) -> None:
    """Make a Device the default of all threads; None removes it."""
    _set_process("device", device)


def enter_device(device: Any) -> None:
    """Make a Device the default of this thread until `exit_device`."""
    _enter(_thread.devices, device)


def exit_device() -> None:
    """Undo the last `enter_device`."""
    _exit(_thread.devices)


# ---- the precision of matrix products ----------------------------------------------------


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


# ---- determinism -------------------------------------------------------------------------


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


def enter_numerics(mode: str) -> None:
    """Check results of this thread until `exit_numerics`: see `gpugrad.trace.numerics`."""
    _enter(_thread.numerics, mode)


def exit_numerics() -> None:
    """Undo the last `enter_numerics`."""
    _exit(_thread.numerics)


def numerics() -> str:
    """What this thread's results are checked for: "nan", "inf" for both, or ""."""
    return _thread.numerics[-1]


# ---- training ----------------------------------------------------------------------------


class training:  # it reads as a statement
    """Put layers in training mode, in this thread, inside a ``with`` block.

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

    def __enter__(self) -> None:
        _enter(_thread.training, self.on)

    def __exit__(self, *exc: object) -> None:
        _exit(_thread.training)

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function, decorated to run in such a block."""

        @functools.wraps(f)
        def run(*args: Any, **keywords: Any) -> Any:
            with training(self.on):
                return f(*args, **keywords)

        return run


def is_training() -> bool:
    """Whether this thread is inside a `training` block.

    >>> gg.nn.is_training()
    False
    """
    return _thread.training[-1]
