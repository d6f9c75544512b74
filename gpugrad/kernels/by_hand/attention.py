"""Attention that never stores its scores: `flash_attention` and its gradients.

16-bit floats run on tensor cores from sm_80 on, everything else on multiply-adds. Where cuDNN is
installed, it is tried first. Results lie in memory as the queries do, gradients as their arguments
do, so that neither a model that splits its heads from one array nor its gradient makes copies.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core.backend import HALF, SCALARS
from gpugrad.core.settings import deterministic
from gpugrad.kernels.by_hand.rows import FLOATS
from gpugrad.kernels.libraries import cudnn
from gpugrad.kernels.runtime.launch import architecture, cpp_bool, launch, pointer, type_name
from gpugrad.kernels.runtime.new_arrays import all_like, like
from gpugrad.kernels.runtime.spare import Spare

_LONGEST = 256
"""Longest query or value: longer ones do not fit into shared memory."""

_SHAPE = np.dtype(
    [(n, np.int64) for n in ("m", "n", "k", "l", "heads", "group", "causal")]
    + [(n, np.int64, (3,)) for n in ("query", "key", "value")]
    + [("mask", np.int64, (4,))]
    + [(n, np.int64, (3,)) for n in ("g", "out", "by_key", "by_value")]
)
"""The struct Attention of attention.cu."""


class _Call(NamedTuple):
    """The arrays as (outer, heads, lines, columns), and the parameters of the kernels."""

    query: Any
    key: Any
    value: Any
    mask: Any
    stack: tuple[int, ...]  # the result's axes before (m, l)
    outer: tuple[int, ...]
    shape: Any
    packed: int  # elements per access

    def with_strides(self, **arrays: Any) -> Any:
        """The struct with the strides of more arrays, by name."""
        shape = self.shape.copy()
        for name, x in arrays.items():
            shape[name] = [s // x.itemsize for s in x.strides[:3]]
        return shape


def _prepare(
    xp: Any, query: Any, key: Any, value: Any, mask: Any, is_causal: bool, enable_gqa: bool
) -> _Call | None:
    """The arguments of the kernels; None for wrong arrays and those that they do not support."""
    arrays = [query, key, value] if mask is None else [query, key, value, mask]
    if any(type(a) in SCALARS or (a.ndim < 2 and a is not mask) for a in arrays):
        return None
    (m, k), (n, width) = query.shape[-2:], value.shape[-2:]
    if key.shape[-2:] != (n, k) or not 0 < k <= _LONGEST or not 0 < width <= _LONGEST:
        return None
    dtype = query.dtype
    if dtype not in FLOATS or {key.dtype, value.dtype} != {dtype}:
        return None
    if mask is not None and mask.dtype not in (np.bool_, dtype):
        return None
    lib = xp.lib
    try:
        if mask is not None:
            lines = np.broadcast_shapes(mask.shape, (m, n))
            if lines[-2:] != (m, n):
                return None
            mask = lib.broadcast_to(mask, lines)
        of_mask = () if mask is None else mask.shape[:-2]
        outer, heads, shared = _stacks(query, key, value, of_mask, enable_gqa)
    except ValueError:
        return None
    query = _as_4d(lib, query, outer, heads)
    key, value = _as_4d(lib, key, outer, shared), _as_4d(lib, value, outer, shared)
    if mask is not None:
        mask = _as_4d(lib, mask, outer, heads, lines_in_order=False)
    packed = 16 // dtype.itemsize
    if k % packed or width % packed or not all(_aligned(x, packed) for x in (query, key, value)):
        packed = 1
    shape = np.zeros((), _SHAPE)
    numbers = (m, n, k, width, heads, max(heads // max(shared, 1), 1), is_causal)
    for name, number in zip(_SHAPE.names or (), numbers, strict=False):
        shape[name] = number
    for name, x in (("query", query), ("key", key), ("value", value)):
        shape[name] = [s // x.itemsize for s in x.strides[:3]]
    if mask is not None:
        shape["mask"] = [s // mask.itemsize for s in mask.strides]
    stack = outer if max(x.ndim for x in arrays) == 2 else (*outer, heads)
    return _Call(query, key, value, mask, stack, outer, shape[()], packed)


def _stacks(
    query: Any, key: Any, value: Any, of_mask: tuple[int, ...], enable_gqa: bool
) -> tuple[tuple[int, ...], int, int]:
    """The axes before the heads, the number of query heads, and the number of key heads.

    Raises:
        ValueError: the shapes do not broadcast.
    """
    each = [x.shape[-3] if x.ndim > 2 else 1 for x in (query, key, value)]
    outer = np.broadcast_shapes(query.shape[:-3], key.shape[:-3], value.shape[:-3], of_mask[:-1])
    (heads,) = np.broadcast_shapes(
        *((h,) for h in (each[:1] if enable_gqa else each)), of_mask[-1:], (1,)
    )
    if not enable_gqa:
        return outer, heads, 1 if each[1] == each[2] == 1 else heads
    shared = each[1]
    fits = shared and each[2] == shared and each[0] == heads and not heads % shared
    if not fits or min(query.ndim, key.ndim, value.ndim) < 3:
        raise ValueError
    return outer, heads, shared


def _as_4d(lib: Any, x: Any, outer: Any, heads: int, lines_in_order: bool = True) -> Any:
    """The array as (outer, heads, lines, columns), if possible without a copy."""
    if lines_in_order and x.shape[-1] > 1 and x.strides[-1] != x.itemsize:
        x = lib.ascontiguousarray(x)
    x = lib.broadcast_to(x, (*outer, heads, *x.shape[-2:]))
    return x.reshape(math.prod(outer), heads, *x.shape[-2:])


def _aligned(x: Any, packed: int) -> bool:
    """Whether every line begins at a multiple of 16 bytes."""
    strides = (s for s, n in zip(x.strides[:3], x.shape, strict=False) if n > 1)
    return pointer(x) % 16 == 0 and all(s % (packed * x.itemsize) == 0 for s in strides)


# ---- the engine and the size of its tiles ------------------------------------------------

_TENSOR_CORES = ((128, 64), (64, 64), (64, 32), (64, 16))
_MULTIPLY_ADDS = ((64, 64), (64, 32), (32, 32), (32, 16), (16, 16))


def _engine(
    dtype: Any, longest: int, resident: int, sm: str, drops: bool = False
) -> tuple[str, int, int, int] | None:
    """Name of the engine, lines per block, threads, and bytes of shared memory.

    Args:
        dtype: dtype of the arrays.
        longest: length of a query or a value, whichever is longer.
        resident: number of matrices whose lines stay in shared memory; of two others a block
            holds one tile each.
        sm: the architecture, as ``"sm_90"``.
        drops: whether there is dropout.
    """
    size = 4 if dtype in HALF else dtype.itemsize
    matrix = dtype in HALF and int(sm[3:]) >= 80
    limit = 1024 * (64 if int(sm[3:]) < 80 else 99)
    split = 2 if longest > 128 else 1  # warps that share rows: SPLIT of tiles.cuh
    step = 16 * split if matrix else 32
    d = -(-longest // step) * step
    for bm, bn in _TENSOR_CORES if matrix else _MULTIPLY_ADDS:
        if matrix:
            warp_rows = max(resident, split)
            if (warp_rows > 1 and bm > 64) or d * bn > 8192 // warp_rows:  # registers
                continue
            shared = (resident * bm + 2 * bn) * (d + 8) * 2
        else:
            shared = (resident * bm + 2 * bn) * (d * size + 16) + bm * (bn * size + 16)
        if drops:  # the struct Kept: bits, with lines for the queries or for the keys
            shared += max(bm * (bn // 8 + 1), bn * (bm // 8 + 1))
        if shared <= limit:
            name = f"{'Mma' if matrix else 'Simt'}<{type_name(dtype)}, {d}, {bm}, {bn}>"
            return name, bm, bm * 2 * split if matrix else 256, shared
    return None


def _mask_name(mask: Any) -> str:
    return "NoMask" if mask is None else type_name(mask.dtype)


_MOST_BLOCKS = 2**31 - 1


def forward(
    xp: Any,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    stream: Any = None,
    *,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
    dropout_p: float = 0.0,
) -> Any:
    """The launcher of `flash_attention`."""
    call = _prepare(xp, query, key, value, attn_mask, is_causal, enable_gqa)
    if call is None or not _is_stream(stream, dropout_p):
        return NotImplemented
    m, k, width, heads = (int(call.shape[n]) for n in ("m", "k", "l", "heads"))
    if call.mask is None and stream is None and call.packed > 1:
        arrays = call.query, call.key, call.value
        results = cudnn.attention(xp.lib, *arrays, _scale(scale, k), is_causal)
        if results is not NotImplemented:
            out, lse = results
            return out.reshape(*call.stack, m, width), lse.reshape(*call.stack, m)
    engine = _engine(query.dtype, max(k, width), 1, architecture(), stream is not None)
    stacks = math.prod(call.outer) * heads
    if engine is None or (blocks := -(-m // engine[1]) * stacks) > _MOST_BLOCKS:
        return NotImplemented
    name, _, threads, shared = engine
    wide = _sum_dtype(query.dtype)
    out = like(xp.lib, call.query, (*call.query.shape[:3], width), query.dtype)
    lse = xp.lib.ndarray((*call.stack, m), wide)
    if blocks:
        types = f"{name}, {call.packed}, {_mask_name(call.mask)}"
        kernel = f"attention_forward<{types}, {cpp_bool(stream is not None)}>"
        args = [call.query, call.key, call.value, call.mask, stream, out, lse]
        args += [call.with_strides(out=out), wide.type(_scale(scale, k))]
        args += _dropout(dropout_p, wide)
        launch("attention.cu", kernel, blocks, threads, args, shared)
    return out.reshape(*call.stack, m, width), lse


def grad(
    xp: Any,
    g: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    lse: Any,
    g_lse: Any = None,
    attn_mask: Any = None,
    stream: Any = None,
    *,
    of: str,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
    dropout_p: float = 0.0,
) -> Any:
    """The launcher of `flash_attention_grad`, except for the gradient by the mask."""
    call = _prepare(xp, query, key, value, attn_mask, is_causal, enable_gqa)
    if call is None or not _is_stream(stream, dropout_p):
        return NotImplemented
    if of not in ("query", "key", "value") or g.dtype != query.dtype:
        return NotImplemented
    m, k, width = (int(call.shape[name]) for name in ("m", "k", "l"))
    if g.shape != (*call.stack, m, width) or lse.shape != (*call.stack, m) or out.dtype != g.dtype:
        return NotImplemented
    if out.shape != g.shape:
        return NotImplemented
    target = {"query": query, "key": key, "value": value}[of]
    if g_lse is None and stream is None and call.mask is None and call.packed > 1:
        arrays = call.query, call.key, call.value
        asked = g, query, key, value, out, lse
        d = cudnn.attention_grad(xp.lib, of, asked, *arrays, _scale(scale, k), is_causal)
        if d is not NotImplemented:
            return _sum_to_shape(xp, d.reshape(*call.outer, *d.shape[1:]), target)
    d, saved = NotImplemented, (g, out, lse, g_lse)
    if stream is None and (name := _joint_engine(call, architecture())):
        every = [x for x in (g, query, key, value, out, lse, g_lse) if x is not None]
        problem = name, len(every), float(_scale(scale, k)), is_causal, enable_gqa
        launched = functools.partial(_launch_grads, xp, call, saved, name, _scale(scale, k))
        d = _spare_grads.take(of, every, problem, launched)
    if d is NotImplemented:
        d = _launch_grad(xp, call, saved, stream, of, _scale(scale, k), dropout_p)
    if d is NotImplemented:
        return d
    return _sum_to_shape(xp, d.reshape(*call.outer, *d.shape[1:]), target)


def _launch_grad(
    xp: Any, call: _Call, saved: Any, stream: Any, of: str, scale: float, dropout_p: float
) -> Any:
    """The gradient before it is summed over broadcast axes; `saved` is g, out, lse and g_lse."""
    g, out, lse, g_lse = saved
    m, n, k, width, heads, group = (
        int(call.shape[name]) for name in ("m", "n", "k", "l", "heads", "group")
    )
    resident = 1 if of == "value" else 2
    engine = _engine(g.dtype, max(k, width), resident, architecture(), stream is not None)
    lines, stacks = (m, heads) if of == "query" else (n, heads // group)
    if engine is None:
        return NotImplemented
    name, bm, threads, shared = engine
    blocks = -(-lines // bm) * stacks * math.prod(call.outer)
    if blocks > _MOST_BLOCKS:
        return NotImplemented
    lib, wide = xp.lib, _sum_dtype(g.dtype)
    lse = lib.ascontiguousarray(lse, dtype=wide)
    g = _as_4d(lib, g, call.outer, heads)
    length = width if of == "value" else k
    target = {"query": call.query, "key": call.key, "value": call.value}[of]
    d = like(lib, target, (math.prod(call.outer), stacks, lines, length), g.dtype)
    packed = call.packed if _aligned(g, call.packed) else 1
    if blocks:
        delta = None if of == "value" else _delta(xp, call, g, out, g_lse, wide)
        types = f"{name}, {packed}, {_mask_name(call.mask)}, {of.upper()}"
        kernel = f"attention_grad<{types}, {cpp_bool(stream is not None)}>"
        args = [g, call.query, call.key, call.value, lse, delta, call.mask, stream, d]
        args += [call.with_strides(g=g, out=d), wide.type(scale), *_dropout(dropout_p, wide)]
        launch("attention.cu", kernel, blocks, threads, args, shared)
    return d


# ---- all gradients at once ---------------------------------------------------------------

_JOINT = 64
"""Longest query or value of `attention_grads`, and the lines of its tiles."""

_spare_grads = Spare()


def _joint_engine(call: _Call, sm: str) -> str:
    """The engine that computes all gradients in one launch, or an empty string.

    It adds up the gradient by the queries atomically, in any order.
    """
    longest = max(call.query.shape[3], call.value.shape[3])
    if call.mask is not None or call.packed == 1 or longest > _JOINT or deterministic():
        return ""
    return _joint_name(call.query.dtype, longest) if int(sm[3:]) >= 80 else ""


def _joint_name(dtype: Any, longest: int) -> str:
    if dtype not in HALF:
        return ""
    return f"Mma<{type_name(dtype)}, {-(-longest // 16) * 16}, {_JOINT}, {_JOINT}>"


def _launch_grads(
    xp: Any, call: _Call, saved: Any, name: str, scale: float
) -> dict[str, Any] | None:
    """All gradients before they are summed over broadcast axes; `saved` is g, out, lse, g_lse."""
    g, out, lse, g_lse = saved
    lib, f4 = xp.lib, np.dtype(np.float32)
    m, n, k, width, heads, group = (
        int(call.shape[each]) for each in ("m", "n", "k", "l", "heads", "group")
    )
    g, lse = _as_4d(lib, g, call.outer, heads), lib.ascontiguousarray(lse, dtype=f4)
    stacks = math.prod(call.outer) * heads // group
    blocks = -(-n // _JOINT) * stacks
    if not 0 < blocks <= _MOST_BLOCKS or not m or not _aligned(g, call.packed):
        return None
    counts = -(-m // _JOINT)  # of the blocks that have added to a tile of queries
    sums = lib.ndarray((math.prod(call.outer) * heads, m * k + -(-counts // 4) * 4), f4)
    delta = _delta(xp, call, g, out, g_lse, f4, zeros=sums)
    arrays = call.query, call.key, call.value
    by_query, by_key, by_value = grads = all_like(lib, arrays)
    shape = call.with_strides(g=g, out=by_query, by_key=by_key, by_value=by_value)
    args = [g, *arrays, lse, delta, sums, *grads, shape, f4.type(scale)]
    d = -(-max(k, width) // 16) * 16
    shared = 4 * _JOINT * (d + 8) * 2 + _JOINT * (_JOINT + 8) * 2 + 2 * _JOINT * 4
    kernel = f"attention_grads<{name}, {call.packed}>"
    launch("attention.cu", kernel, blocks, 2 * _JOINT, args, shared)
    return dict(zip(("query", "key", "value"), grads, strict=True))


def _sum_to_shape(xp: Any, d: Any, target: Any) -> Any:
    """A gradient in the shape of an array that may have been broadcast against the others."""
    return d.reshape(target.shape) if d.size == target.size else xp.sum_to(d, target.shape)


def _is_stream(stream: Any, p: float) -> bool:
    valid = stream is None or (
        getattr(stream, "shape", None) == (4,)
        and stream.dtype == np.uint64
        and stream.flags.c_contiguous
    )
    return valid and 0 <= p < 1


def _dropout(p: float, wide: np.dtype[Any]) -> tuple[Any, Any]:
    return np.float32(p), wide.type(1 / (1 - p))


_WARPS = 8


def _delta(xp: Any, call: _Call, g: Any, out: Any, g_lse: Any, wide: Any, zeros: Any = None) -> Any:
    """rowsum(g * out) - g_lse; `g` has four axes. The array `zeros` is set to 0."""
    lib, width, zero_packs = xp.lib, g.shape[-1], 0 if zeros is None else zeros.size // 4
    out = _as_4d(lib, out, call.outer, int(call.shape["heads"]))
    g_lse = None if g_lse is None else lib.ascontiguousarray(g_lse, dtype=wide)
    delta = lib.ndarray(g.shape[:-1], wide)
    arrays, packed = (g, out, g_lse, delta, zeros), 16 // g.itemsize
    if width % packed or not all(_aligned(x, packed) for x in (g, out)):
        packed = 1
    launch(
        "attention.cu",
        f"attention_delta<{type_name(g.dtype)}, {packed}>",
        -(-delta.size // _WARPS),
        32 * _WARPS,
        [*arrays, call.with_strides(g=g, out=out), np.int64(delta.size), np.int64(zero_packs)],
    )
    return delta


def _sum_dtype(dtype: Any) -> np.dtype[Any]:
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def _scale(scale: Any, k: int) -> float:
    return k**-0.5 if scale is None else float(scale)


_LENGTHS = {
    ("sm_75", "float"): (64, 128), ("sm_75", "double"): (64,),
    ("sm_75", "__half"): (64,), ("sm_75", "__nv_bfloat16"): (64,),
    ("sm_80", "float"): (64, 128, 256), ("sm_80", "double"): (64, 128),
    ("sm_80", "__half"): (64, 128), ("sm_80", "__nv_bfloat16"): (64, 80, 128, 256),
}  # fmt: skip
"""Lengths of queries and values whose kernels ci/compile_kernels compiles."""


def _instances() -> dict[str, set[str]]:
    """Names of instances, each with the architectures of `_LENGTHS` that run it."""
    architectures: dict[str, set[str]] = {}
    dtypes = {type_name(dtype): dtype for dtype in FLOATS}
    for (sm, name), lengths in _LENGTHS.items():
        dtype, packed = dtypes[name], 16 // dtypes[name].itemsize
        names = [f"attention_delta<{name}, {packed}>"]
        for n in lengths:
            if sm == "sm_80" and n <= _JOINT and (joint := _joint_name(dtype, n)):
                names.append(f"attention_grads<{joint}, {packed}>")
            for mask in ("NoMask", "bool", name) if n == 64 else ("NoMask",):
                if engine := _engine(dtype, n, 1, sm):
                    names.append(f"attention_forward<{engine[0]}, {packed}, {mask}, false>")
            for of, resident in (("QUERY", 2), ("KEY", 2), ("VALUE", 1)):
                if engine := _engine(dtype, n, resident, sm):
                    names.append(f"attention_grad<{engine[0]}, {packed}, NoMask, {of}, false>")
                if n <= 128 and (engine := _engine(dtype, n, resident, sm, drops=True)):
                    names.append(f"attention_grad<{engine[0]}, {packed}, NoMask, {of}, true>")
            if n <= 128 and (engine := _engine(dtype, n, 1, sm, drops=True)):
                names.append(f"attention_forward<{engine[0]}, {packed}, NoMask, true>")
        for each in names:
            architectures.setdefault(each, set()).add(sm)
    return architectures


ARCHITECTURES = _instances()
"""By instance, the architectures that run it, sm_75 or sm_80 and later: their tiles differ."""

INSTANCES = tuple(("attention.cu", name) for name in ARCHITECTURES)
"""Kernels that ci/compile_kernels compiles: (source, name). Other lengths have more."""

VECTOR = tuple(name for _, name in INSTANCES if "double" not in name)
"""Kernels that must copy 16 bytes at a time, including copies straight to shared memory."""
