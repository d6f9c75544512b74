"""tf.debugging: checks that raise ArgumentError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf.convert import op, ops, tensor, together
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError


def _check(name: str, holds, message, *values) -> None:
    if not gg.all(holds):
        text = ", ".join(f"{v!r:.60}" for v in values)
        raise ArgumentError(f"tf.debugging.{name}: {message or 'it does not hold'}. {text}")


def _pair(name: str, test: Callable[..., Any]) -> Callable[..., None]:
    def check(x=..., y=..., message=None, summarize=None) -> None:
        x, y = together(x, y)
        _check(name, test(x, y), message, x, y)

    def other_order(x=..., y=..., summarize=None, message=None) -> None:
        check(x, y, message)

    return other_order if name == "assert_none_equal" else check


def _one(name: str, test: Callable[..., Any]) -> Callable[..., None]:
    return lambda x, message=None, summarize=None: _check(name, test(x), message, x)


@op
def assert_near(x=..., y=..., rtol=None, atol=None, message=None, summarize=None) -> None:
    """Raise if numbers differ by more than ``atol + rtol * abs(y)``, ten steps by default."""
    x, y = together(x, y)
    least = 10 * gg.finfo(x.dtype).eps
    rtol, atol = (least if t is None else float(t) for t in (rtol, atol))
    _check("assert_near", abs(x - y) <= atol + rtol * abs(y), message, x, y)


@op
def check_numerics(tensor, message="") -> Tensor:
    _check("check_numerics", gg.isfinite(tensor), f"{message} : Tensor had NaN or Inf", tensor)
    return tensor


def assert_all_finite(x, message="", name=None) -> Tensor:
    return check_numerics(x, message)


def Assert(condition, data, summarize=None, name=None) -> None:
    _check("Assert", tensor(condition), None, *data)


@op
def assert_shapes(shapes=..., data=None, summarize=None, message=None) -> None:
    known: dict[Any, int] = {}
    for x, shape in shapes.items() if isinstance(shapes, dict) else shapes:
        own = tensor(x.deref() if hasattr(x, "deref") else x).shape
        fits = len(own) == len(shape) and all(
            want in (None, ".") or known.setdefault(want, want if isinstance(want, int) else n) == n
            for want, n in zip(shape, own, strict=True)
        )
        _check("assert_shapes", fits, message or f"the shape is {own}, not {tuple(shape)}")


def enable_check_numerics(*args, **options) -> None:
    """Nothing: see `gpugrad.debug.nans`."""


set_log_device_placement = enable_check_numerics

_PAIRS = "equal none_equal=not_equal less less_equal greater greater_equal"
_SINGLE: dict[str, Callable[..., Any]] = {
    "positive": lambda x: x > 0,
    "negative": lambda x: x < 0,
    "non_negative": lambda x: x >= 0,
    "non_positive": lambda x: x <= 0,
}
_OPS = ops(
    **{
        f"assert_{name}": _pair(f"assert_{name}", getattr(gg, own or name))
        for name, _, own in (each.partition("=") for each in _PAIRS.split())
    },
    **{f"assert_{name}": _one(f"assert_{name}", test) for name, test in _SINGLE.items()},
    assert_rank=lambda x, rank=..., message=None: _check(
        "assert_rank", x.ndim == int(rank), message, x
    ),
    assert_rank_at_least=lambda x, rank=..., message=None: _check(
        "assert_rank_at_least", x.ndim >= int(rank), message, x
    ),
    assert_type=lambda tensor, tf_type=..., message=None: _check(
        "assert_type", tensor.dtype == tf_type, message, tensor
    ),
    assert_integer=lambda x, message=None: _check(
        "assert_integer", x.dtype.kind in "iu", message, x
    ),
    assert_scalar=lambda tensor, message=None: _check(
        "assert_scalar", tensor.ndim == 0, message, tensor
    ),
    is_numeric_tensor=lambda tensor: tensor.dtype != bool,
)
__getattr__, __dir__ = forwarding(__name__, _OPS, own=globals())
