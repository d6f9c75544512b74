"""The compiled modules of SciPy's signal processing, as ops of Tensors."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.scipy.calling import holds, on_values
from gpugrad.scipy.namespaces import NUMPY, Names
from gpugrad.scipy.signal import splines

_SAME, _FULL = 1, 2
_BOUNDARIES = {0: "constant", 4: "symmetric", 8: "wrap"}


def _valid(x: Tensor, k: Tensor) -> Tensor:
    dtype = NUMPY.result_type(x, k)
    return xp.correlate_windows(xp.astype(x, dtype), xp.astype(k, dtype))


def _refuse(x: Any, k: Any, message: str) -> None:
    if NUMPY.result_type(x, k).char in "?e":
        raise ValueError(message)


def _correlate_nd(x: Tensor, k: Tensor, out: Tensor, mode: int) -> Tensor:
    """`_sigtools._correlateND`, whose `x` has as many zeros behind it as a full result needs."""
    _refuse(x, k, "Unsupported type")
    if mode:
        lengths = [n - m + 1 for n, m in zip(x.shape, k.shape, strict=True)]
        x = x[tuple(slice(0, n) for n in lengths)]
        x = NUMPY.pad(x, [_margin(m, mode) for m in k.shape])
    if x.dtype.kind == "c" or k.dtype.kind == "c":
        k = NUMPY.conj(k)
    return _valid(x, k)


def _margin(m: int, mode: int) -> tuple[int, int]:
    """The elements before and after an axis that a kernel of `m` elements reads."""
    if mode == _FULL:
        return m - 1, m - 1
    return (m - 1 - (m - 1) // 2, (m - 1) // 2) if mode == _SAME else (0, 0)


def _convolve_2d(x: Any, k: Any, flip: int, mode: int, boundary: int, fill: Any) -> Tensor:
    """`_sigtools._convolve2d`."""
    _refuse(x, k, "convolve2d not available for this type.")
    if mode:
        margins = [_margin(m, mode) for m in k.shape]
        if not flip:
            margins = [(after, before) for before, after in margins]
        values = {} if boundary else {"constant_values": fill}
        x = NUMPY.pad(x, margins, mode=_BOUNDARIES[boundary], **values)
    return _valid(x, k[::-1, ::-1] if flip else k)


def _medfilt_2d(image: Tensor, size: Any) -> Tensor:
    """`_sigtools._medfilt2d`."""
    size = tuple(int(n) for n in size)
    return _rank_filter(image, size[0] * size[1] // 2, size=size)


def _linear_filter(b: Tensor, a: Tensor, x: Tensor, axis: int = -1, zi: Any = None) -> Any:
    """`_sigtools._linear_filter`: the result, and the last state if `zi` is there."""
    dtype = NUMPY.result_type(*(y for y in (b, a, x, zi) if y is not None))
    if dtype.char not in "fdFD":
        raise NotImplementedError(f"input type '{dtype}' not supported")
    b, a, x = (y if y.dtype == dtype else xp.astype(y, dtype) for y in (b, a, x))
    k = max(b.size, a.size)
    if not holds(xp.not_equal(a[0], 0)):
        raise ValueError("BUG: filter coefficient a[0] == 0 not supported yet")
    b, a = (NUMPY.pad(y, (0, k - y.size)) / a[0] for y in (b, a))
    if zi is None:
        x = NUMPY.moveaxis(x, axis, -1)
        start = NUMPY.zeros(k - 1, dtype=dtype)
    else:
        _check_state(zi.shape, x.shape, axis, k - 1)
        x, start = (NUMPY.moveaxis(y, axis, -1) for y in (x, xp.astype(zi, dtype)))
    y = xp.linear_filter(b, a, x, start)
    if zi is None:
        return NUMPY.moveaxis(y, -1, axis)
    return NUMPY.moveaxis(y, -1, axis), NUMPY.moveaxis(_last_state(b, a, x, y, start), -1, axis)


def _check_state(found: Any, shape: Any, axis: int, n: int) -> None:
    """Raises as SciPy does if a state does not broadcast to the lines of an array."""
    if len(found) != len(shape):
        depth = "of too small depth" if len(found) < len(shape) else "too deep"
        raise ValueError(f"object {depth} for desired array")
    expected = list(shape)
    expected[axis] = n
    fits = [m in (1, n) for m, n in zip(found, expected, strict=True)]
    if found[axis] != n or not all(fits):
        texts = (",".join(map(str, dims)) for dims in (expected, found))
        raise ValueError("Unexpected shape for zi:  expected ({}), found ({}).".format(*texts))


def _last_state(b: Tensor, a: Tensor, x: Tensor, y: Tensor, zi: Tensor) -> Tensor:
    """The state after the last element: sums over j of b_(m+1+j) x_(-1-j) - a_(m+1+j) y_(-1-j)."""
    k, n = b.size, x.shape[-1]
    reach = min(k - 1, n)
    state = NUMPY.zeros((*x.shape[:-1], k - 1), dtype=y.dtype)
    if n < k - 1:
        state[..., : k - 1 - n] = zi[..., n:]
    for j in range(reach):
        part = x[..., n - 1 - j, None] * b[j + 1 :] - y[..., n - 1 - j, None] * a[j + 1 :]
        state[..., : k - 1 - j] += part
    return state


def _sosfilt(sos: Tensor, x: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """`_sosfilt._sosfilt`, which returns the result and the last states instead of writing them."""
    states = []
    for i in range(sos.shape[0]):
        x, state = _linear_filter(sos[i, :3], sos[i, 3:], x, -1, zi[:, i])
        states.append(state)
    return x, NUMPY.stack(states, axis=1)


def frames(x: Tensor, n: int, hop: int, count: int) -> Tensor:
    """Parts of `n` elements of the last axis, each `hop` after the one before: (..., count, n).

    They are put together from blocks of `hop` elements, so that the gradient is a sum of blocks.
    """
    blocks = -(-n // hop)
    missing = (count + blocks - 1) * hop - x.shape[-1]
    x = NUMPY.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, max(missing, 0))])
    x = x[..., : (count + blocks - 1) * hop].reshape((*x.shape[:-1], -1, hop))
    parts = [x[..., j : j + count, :] for j in range(blocks)]
    return NUMPY.concatenate(parts, axis=-1)[..., :n]


def overlap_added(parts: Tensor, hop: int, start: int, n: int) -> Tensor:
    """The sum of parts (..., count, m) that begin `hop` elements apart: `n` elements from `start`.

    It is the transpose of `frames`.
    """
    *lead, count, m = parts.shape
    blocks = -(-m // hop)
    sides = [(0, 0)] * len(lead)
    parts = NUMPY.pad(parts, [*sides, (0, 0), (0, blocks * hop - m)])
    parts = parts.reshape((*lead, count, blocks, hop))
    total = sum(
        NUMPY.pad(parts[..., j, :], [*sides, (j, blocks - 1 - j), (0, 0)]) for j in range(blocks)
    )
    x = total.reshape((*lead, -1))[..., max(start, 0) : max(start + n, 0)]
    before = min(max(-start, 0), n)
    return NUMPY.pad(x, [*sides, (before, n - before - x.shape[-1])])


def states(a: Tensor, first: Tensor, inputs: Tensor) -> Tensor:
    """Rows x_0 = first, x_i = x_(i-1) a + inputs_(i-1): in a few ops for each doubling of rows."""
    return _recurrence(a, NUMPY.concatenate([first[None], inputs]))


def _recurrence(a: Tensor, f: Tensor) -> Tensor:
    n = f.shape[0]
    if n == 1:
        return f
    odd = _recurrence(a @ a, f[1::2] + f[: n - 1 : 2] @ a)
    even = NUMPY.concatenate([f[:1], f[2::2] + odd[: (n - 1) // 2] @ a])
    pairs = NUMPY.stack([even[: n // 2], odd], axis=1).reshape((-1, f.shape[1]))
    return NUMPY.concatenate([pairs, even[n // 2 :]])


def _upfirdn(
    x: Any, flipped: Any, out: Any, up: int, down: int, axis: int, mode: int, value: Any
) -> None:
    """`_upfirdn_apply._apply`, whose filter is reversed in each of its `up` phases."""
    h = NUMPY.reshape(NUMPY.reshape(flipped, (up, -1))[:, ::-1].T, (-1,))
    x = NUMPY.moveaxis(x, axis, -1)
    start = 0
    extension = _extensions()[mode]
    if extension != "constant" or value:
        reach = -(-h.size // (up * down)) * down
        start = reach * up // down
        x = _extended(x, reach, extension, value)
    y = xp.rate_filter(h, x, up=up, down=down)[..., start : start + out.shape[axis]]
    out[...] = NUMPY.moveaxis(y, -1, axis)


@functools.cache
def _extensions() -> dict[int, str]:
    from scipy.signal._upfirdn import _upfirdn_modes, mode_enum

    return {mode_enum(name): name for name in _upfirdn_modes}


def _extended(x: Tensor, reach: int, mode: str, value: Any) -> Tensor:
    """`x` with `reach` more elements at both ends of the last axis."""
    n = x.shape[-1]
    sides = [(0, 0)] * (x.ndim - 1) + [(reach, reach)]
    if mode == "constant":
        return NUMPY.pad(x, sides, constant_values=value)
    if mode in ("smooth", "line"):
        if mode == "smooth":
            steps = [x[..., 1:2] - x[..., :1], x[..., -1:] - x[..., -2:-1]] if n > 1 else [0.0, 0.0]
        else:
            steps = [(x[..., -1:] - x[..., :1]) / max(n - 1, 1)] * 2
        far = NUMPY.arange(1, reach + 1)
        left, right = x[..., :1] - steps[0] * far[::-1], x[..., -1:] + steps[1] * far
        return NUMPY.concatenate([left, x, right], axis=-1)
    if mode not in ("antisymmetric", "antireflect"):
        return NUMPY.pad(x, sides, mode=mode)
    done = 0
    while done < reach:
        if mode == "antisymmetric":
            k = min(x.shape[-1], reach - done)
            left, right = -x[..., :k][..., ::-1], -x[..., -k:][..., ::-1]
        else:
            k = min(max(x.shape[-1] - 1, 1), reach - done)
            left = 2 * x[..., :1] - x[..., 1 : k + 1][..., ::-1] if n > 1 else x[..., :1]
            right = 2 * x[..., -1:] - x[..., -k - 1 : -1][..., ::-1] if n > 1 else x[..., :1]
        x = NUMPY.concatenate([left, x, right], axis=-1)
        done += k
    return x


def _rank_filter(
    x: Tensor, rank: int, size: Any = None, footprint: Any = None, mode: str = "constant"
) -> Tensor:
    """`ndimage.rank_filter` with zeros around the array."""
    if footprint is None:
        footprint = NUMPY.ones([size] * x.ndim if NUMPY.ndim(size) == 0 else size, dtype=bool)
    inside = np.asarray(footprint).astype(bool)
    x = NUMPY.pad(NUMPY.asarray(x), [(m // 2, (m - 1) // 2) for m in inside.shape])
    return xp.ranked_windows(x, footprint=inside, rank=rank)


_MODES = {"mirror": "reflect", "constant": "constant", "nearest": "edge", "wrap": "wrap"}


def _convolve_1d(
    x: Tensor, weights: Tensor, axis: int = -1, mode: str = "constant", cval: float = 0.0
) -> Tensor:
    """`ndimage.convolve1d` in the modes of `savgol_filter`."""
    m = weights.size
    x = NUMPY.moveaxis(x, axis, -1)
    sides = [(0, 0)] * (x.ndim - 1) + [((m - 1) // 2, m // 2)]
    values = {"constant_values": cval} if mode == "constant" else {}
    x = NUMPY.pad(x, sides, mode=_MODES[mode], **values)
    y = xp.rate_filter(xp.astype(weights, x.dtype), x)
    return NUMPY.moveaxis(y[..., m - 1 : x.shape[-1]], -1, axis)


def modules() -> dict[str, Any]:
    """The modules that stand for SciPy's compiled ones."""
    ours: dict[str, dict[str, Any]] = {
        "_sigtools": {
            "_correlateND": _correlate_nd,
            "_convolve2d": _convolve_2d,
            "_medfilt2d": _medfilt_2d,
            "_linear_filter": _linear_filter,
        },
        "_sosfilt": {"_sosfilt": _sosfilt},
        "_upfirdn_apply": {"_apply": _upfirdn},
        "_spline": {
            "symiirorder1_ic": splines.first_order_start,
            "symiirorder2_ic_fwd": splines.second_order_start,
            "symiirorder2_ic_bwd": splines.second_order_end,
            "sepfir2d": splines.separable_filter,
        },
    }
    of_images = {"rank_filter": _rank_filter, "convolve1d": _convolve_1d}
    result: dict[str, Any] = {
        "scipy.ndimage": Names("ndimage", of_images),
        "scipy.interpolate": importlib.import_module("gpugrad.scipy.interpolate"),
    }
    for name, functions in ours.items():
        title = f"scipy.signal.{name}"
        module = importlib.import_module(title)
        others = {k: on_values(v) for k, v in vars(module).items() if not k.startswith("__")}
        result[title] = Names(title, {**others, **functions})
    return result
