"""Convolutions of n-d arrays, with autograd's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpugrad as gg
import gpugrad.compat.autograd.numpy as np
import gpugrad.numpy as _gnp
from gpugrad.compat.autograd.boxes import box, holds_box, unbox
from gpugrad.compat.names import forwarding

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def convolve(A: Any, B: Any, axes: Any = None, dot_axes: Any = ((), ()), mode: str = "full") -> Any:
    """The convolution along `axes`, summed over `dot_axes`, and an outer product over all others.

    Args:
        A, B: arrays.
        axes: the axes of `A` and those of `B` that are convolved; all of them if None.
        dot_axes: the axes of both over which products are summed.
        mode: "full", "valid" or "same" (of A's size).

    Returns:
        An array with the other axes of `A`, then those of `B`, then the convolved ones.

    Raises:
        ValueError: another mode, or ``mode="valid"`` where neither array is the larger one along
            all convolved axes.
    """
    if mode not in ("valid", "full", "same"):
        raise ValueError(f"convolve: mode must be 'valid', 'full' or 'same', got {mode!r}.")
    shapes = np.shape(A), np.shape(B)
    axes = [list(range(len(s))) for s in shapes] if axes is None else [list(a) for a in axes]
    args = [unbox(x) if holds_box(x) else gg.asarray(x) for x in (A, B)]
    result = _convolved(args, shapes, axes, [list(d) for d in dot_axes], mode)
    return box(result) if holds_box((A, B)) else result.numpy()


def _convolved(args: list[Any], shapes: Any, axes: Any, dots: Any, mode: str) -> Any:
    """Windows of the larger array times the other one, turned around: one einsum."""
    pairs = [(shapes[0][a], shapes[1][b]) for a, b in zip(*axes, strict=True)]
    a_slides = mode != "valid" or all(a >= b for a, b in pairs)
    if not a_slides and not all(b >= a for a, b in pairs):
        raise ValueError(
            "convolve: with mode='valid' one array must be larger along all convolved axes, the "
            f"sizes are {pairs}."
        )
    slides, turns = (0, 1) if a_slides else (1, 0)
    moving, still = args[slides], args[turns]
    widths = [(0, 0)] * moving.ndim
    for s, t in zip(axes[slides], axes[turns], strict=True):
        k = shapes[turns][t]
        full, same = (k - 1, k - 1), (k - 1 - (k - 1) // 2, (k - 1) // 2)
        widths[s] = {"valid": (0, 0), "full": full, "same": same}[mode]
    moving = _gnp.pad(moving, widths)
    windows = gg.sliding_window_view(moving, [shapes[turns][t] for t in axes[turns]], axes[slides])
    still = _gnp.flip(still, axes[turns]) if axes[turns] else still
    return _product(windows, still, axes, dots, slides, turns)


def _product(windows: Any, still: Any, axes: Any, dots: Any, slides: int, turns: int) -> Any:
    letters = iter(_LETTERS)
    places = [next(letters) for _ in axes[slides]]  # of the result
    within = [next(letters) for _ in axes[slides]]
    shared = [next(letters) for _ in dots[slides]]
    names: list[Sequence[str]] = [(), ()]
    others: list[list[str]] = [[], []]
    for which, ndim in ((slides, windows.ndim - len(within)), (turns, still.ndim)):
        named = dict(zip(axes[which], places if which == slides else within, strict=True))
        named |= dict(zip(dots[which], shared, strict=True))
        others[which] = [named.setdefault(k, next(letters)) for k in range(ndim) if k not in named]
        names[which] = [named[k] for k in range(ndim)]
    first, second = "".join([*names[slides], *within]), "".join(names[turns])
    out = "".join([*others[0], *others[1], *places])
    return _gnp.einsum(f"{first},{second}->{out}", windows, still)


def __getattr__(name: str) -> Any:
    import scipy.signal

    return forwarding(__name__, scipy.signal, own=globals())[0](name)
