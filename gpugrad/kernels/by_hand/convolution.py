"""Convolution and its gradients, as matrix products with an implicit matrix of windows.

Where cuDNN is installed, it is tried first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF
from gpugrad.kernels.by_hand.rows import FLOATS
from gpugrad.kernels.libraries import cudnn
from gpugrad.kernels.runtime.launch import architecture, launch, type_name

_SHAPE = np.dtype(
    [(n, np.int32) for n in ("examples", "groups", "channels", "filters")]
    + [(n, np.int32, (3,)) for n in ("in", "kernel", "places", "stride", "before", "dilation")]
    + [(n, np.int32) for n in ("inside", "window", "outside")]
)
"""The struct Convolution of convolution.cu."""

_DIRECT = 4  # most rows of a matrix product for which one thread sums a whole element
_BLOCKS = 1024  # blocks that the gradient by the weights is split into, if it is deep enough
_STEPS = 8  # least steps of depth in a part of a split sum
_MOST = 2**31 - 1


def convolution(xp: Any, x: Any, w: Any, *, geometry: Any, groups: int) -> Any:
    """The convolution of x and w, or NotImplemented."""
    return _run(xp, "RESULT", w, x, x.shape, w.shape, geometry, groups)


def with_bias(xp: Any, x: Any, w: Any, bias: Any, *, geometry: Any, relu: bool, last: bool) -> Any:
    """The convolution of x and w plus a bias per channel, or NotImplemented.

    `relu` applies relu to it; `last` makes the channels the result's last axis. Only cuDNN does
    this in one launch.
    """
    if 0 in x.shape or 0 in (w.shape[0], *geometry.places):
        return NotImplemented
    return cudnn.convolution(
        xp.lib, "RESULT", x, w, x.shape, w.shape, geometry, bias=bias, relu=relu, last=last
    )


def input_grad(xp: Any, g: Any, w: Any, *, shape: Any, geometry: Any, groups: int) -> Any:
    """The gradient of a convolution by its input, of shape `shape`, or NotImplemented."""
    return _run(xp, "INPUT", w, g, shape, w.shape, geometry, groups)


def weight_grad(xp: Any, x: Any, g: Any, *, shape: Any, geometry: Any, groups: int) -> Any:
    """The gradient of a convolution by its weights, of shape `shape`, or NotImplemented."""
    return _run(xp, "WEIGHT", g, x, x.shape, shape, geometry, groups)


def _run(
    xp: Any, of: str, a: Any, x: Any, x_shape: Any, w_shape: Any, geometry: Any, groups: int
) -> Any:
    """The result or one gradient; `a` and `x` are the factors as named in convolution.cu."""
    dtype = a.dtype
    if dtype not in FLOATS or x.dtype != dtype or len(x_shape) > 5:
        return NotImplemented
    places = geometry.places
    filters, channels = w_shape[0] // groups, w_shape[1]
    g_shape = (x_shape[0], w_shape[0], *places)
    out_shape = {"RESULT": g_shape, "INPUT": x_shape, "WEIGHT": w_shape}[of]
    # offsets are ints in the kernels, and a place outside an array may lie this far beyond it
    if max(math.prod(x_shape), math.prod(g_shape), math.prod(w_shape)) >= 2**30:
        return NotImplemented
    lib = xp.lib
    if 0 in x_shape or 0 in g_shape:
        return lib.zeros(out_shape, dtype=dtype)
    if (out := cudnn.convolution(lib, of, x, a, x_shape, w_shape, geometry)) is not NotImplemented:
        return out
    a, x = lib.ascontiguousarray(a), lib.ascontiguousarray(x)
    out = lib.ndarray(out_shape, dtype)
    shape = _shape(x_shape, groups, channels, filters, w_shape[2:], geometry)
    window = math.prod(w_shape[2:])
    pixels = x_shape[0] * math.prod(x_shape[2:] if of == "INPUT" else places)
    rows = channels if of == "INPUT" else filters
    lines = channels * window if of == "WEIGHT" else pixels
    if rows <= _DIRECT and of != "WEIGHT":
        name = f"convolution_direct<{type_name(dtype)}, {of}>"
        launch("convolution.cu", name, -(-out.size // 256), 256, [a, x, out, shape])
        return out
    if of == "WEIGHT" and rows <= _DIRECT and lines <= 32:
        name = f"convolution_direct_weight<{type_name(dtype)}>"
        launch("convolution.cu", name, out.size, 256, [a, x, out, shape])
        return out
    engine, bm, bn, d, threads, shared = _engine(dtype, rows, architecture())
    tiles = -(-lines // bn), -(-rows // bm)
    splits, wide = 1, np.dtype(np.float64 if dtype == np.float64 else np.float32)
    if of == "WEIGHT":
        steps = -(-pixels // d)
        splits = min(-(-_BLOCKS // (tiles[0] * tiles[1] * groups)), max(steps // _STEPS, 1))
    if max(tiles[1], groups * splits) > 65535 or tiles[0] > _MOST:
        return NotImplemented
    target = out if splits == 1 else lib.ndarray((splits, *out_shape), wide)
    name = f"convolution_product<{engine}, {of}, {type_name(target.dtype)}>"
    args = [a, x, target, shape, np.int32(splits)]
    launch("convolution.cu", name, (*tiles, groups * splits), threads, args, shared)
    if splits > 1:
        args = [target, out, np.int64(out.size), np.int32(splits)]
        name = f"convolution_sum<{type_name(dtype)}>"
        launch("convolution.cu", name, -(-out.size // 256), 256, args)
    return out


def _shape(
    x_shape: Any, groups: int, channels: int, filters: int, kernel: Any, geometry: Any
) -> Any:
    stride, padding, dilation, places = geometry
    shape = np.zeros((), _SHAPE)

    def three(values: Any, fill: int) -> list[int]:
        return [fill] * (3 - len(values)) + [int(v) for v in values]

    shape["examples"], shape["groups"] = x_shape[0], groups
    shape["channels"], shape["filters"] = channels, filters
    shape["in"], shape["kernel"] = three(x_shape[2:], 1), three(kernel, 1)
    shape["places"], shape["stride"] = three(places, 1), three(stride, 1)
    shape["before"] = three([before for before, _ in padding], 0)
    shape["dilation"] = three(dilation, 1)
    shape["inside"], shape["window"] = math.prod(x_shape[2:]), math.prod(kernel)
    shape["outside"] = math.prod(places)
    return shape[()]


def _engine(dtype: Any, rows: int, sm: str) -> tuple[str, int, int, int, int, int]:
    """Engine's name, rows and lines of a tile, depth, threads, bytes of shared memory."""
    size = 4 if dtype in HALF else dtype.itemsize
    if dtype in HALF and int(sm[3:]) >= 80:
        bm, bn, d, size = (128 if rows > 64 else 64), 64, 32, 2
        threads, line = bm * 2, (d + 8) * size
    else:
        bm = 64 if rows > 32 else 32 if rows > 16 else 16
        bn, d, threads = (64 if size == 8 else 128), 16, 256
        line = d * size + 16
    shared = 2 * (bm + bn) * line + (bn + 2 * d) * 16 + 2 * d * 4
    kind = "Mma" if size == 2 else "Simt"
    return f"{kind}<{type_name(dtype)}, {d}, {bm}, {bn}>", bm, bn, d, threads, shared


def _instances() -> dict[str, set[str]]:
    """Names of instances, each with the architectures that run it."""
    architectures: dict[str, set[str]] = {}
    for sm in ("sm_75", "sm_80"):
        for dtype in FLOATS:
            name, names = type_name(dtype), []
            names += [f"convolution_sum<{name}>", f"convolution_direct_weight<{name}>"]
            for of in ("RESULT", "INPUT", "WEIGHT"):
                if of != "WEIGHT":
                    names.append(f"convolution_direct<{name}, {of}>")
                for rows in (64, 256):
                    engine = _engine(dtype, rows, sm)[0]
                    names.append(f"convolution_product<{engine}, {of}, {name}>")
                    if of == "WEIGHT" and dtype in HALF:
                        names.append(f"convolution_product<{engine}, {of}, float>")
            for each in names:
                architectures.setdefault(each, set()).add(sm)
    return architectures


ARCHITECTURES = _instances()
"""By instance, the architectures that run it: sm_75, or sm_80 and later with tensor cores."""

INSTANCES = tuple(("convolution.cu", name) for name in ARCHITECTURES)
"""Every kernel that may be launched, except products of fewer than 33 rows: (source, name)."""

VECTOR = ()
"""None: the elements of a window need not be adjacent in memory, so they are read one by one."""
