"""The backward loop.

A tape's log is a list in execution order, which is a topological order, so backward is one
reversed loop: no recursion and no sort. An entry holds what the op's rules name, as bare arrays:

    (op, out, ids, fits, saved, params)

`out` is the serial number of the result (for several results a tuple of (number, shape,
dtype)), `ids` those of the inputs (0: not recorded), `fits` the shape and dtype that an
input's gradient must be summed and cast to, or None where it has them already.

If nobody records, the rules run on bare arrays; otherwise the same rules run on Tensors made
again from array and number, so an outer tape sees them: that is all there is to higher order.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from gpugrad.core.backend import (
    ARRAYS,
    EXAMPLES,
    NUMPY,
    READINGS,
    SCALARS,
    TENSOR,
    as_array,
    reading,
)
from gpugrad.core.devices import formulas_on, full_beside, gpu_count
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, index_parts, made_of, wrap
from gpugrad.errors import reraise
from gpugrad.kernels.codegen import for_ops

__all__ = ["Entry", "backward", "crossings", "finished", "flat", "plus", "refit", "revive", "zeros"]

Entry = tuple[Any, Any, tuple[int, ...], Any, Any, Any]


crossings: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""By number, what was the same for all examples of a vmap where it met some: see `batched`.

Made again as a Tensor it has a value for each example, so that it does not cross again and its
gradient, which the crossing sums, is that of one example.
"""


def revive(op: Any, saved: Any, out: Any, ids: Sequence[int]) -> list[Any]:
    """Saved arrays as the Tensors they were, by array and serial number."""
    on_device = any(type(v) in ARRAYS and type(v) is not np.ndarray for v in flat(saved))

    def made(array: Any, serial: int) -> Any:
        if array is None or type(array) in SCALARS:
            return array
        if on_device and isinstance(array, np.generic):  # a number beside bfloat16
            return array.item()
        if serial in crossings:
            array = crossings[serial].inside(array)
        return made_of(array, serial)

    alive: list[Any] = []
    for value, origin in zip(saved, op.origins, strict=True):
        if origin is None:
            alive.append(value)
        elif origin == "out":
            alive.append(
                made(value, out) if type(out) is int
                else tuple(made(v, o[0]) for v, o in zip(value, out, strict=True))
            )  # fmt: skip
        elif origin == "all":
            alive.append([made(v, i) for v, i in zip(value, ids, strict=True)])
        else:
            alive.append(made(value, ids[origin]))
    return alive


def refit(xp: Any, g: Any, fit: tuple[tuple[int, ...], Any]) -> Any:
    """Sum and cast a gradient to the shape and dtype of the input it belongs to."""
    shape, dtype = fit
    if g.dtype != dtype:
        if g.dtype.kind == "c" and dtype.kind != "c":
            g = xp.real(g)
        g = xp.astype(g, dtype)
    return g if g.shape == shape else xp.sum_to(g, shape=shape)


def plus(xp: Any, a: Any, b: Any) -> Any:
    """The sum of two gradients; rows stay rows while both are rows."""
    if type(a) is IndexedSlices and type(b) is IndexedSlices:
        return IndexedSlices(
            xp.concat([a.values, b.values], axis=0),
            xp.concat([a.indices, b.indices], axis=0),
            a.dense_shape,
        )
    a = a.to_dense(xp) if type(a) is IndexedSlices else a
    b = b.to_dense(xp) if type(b) is IndexedSlices else b
    return xp.add(a, b)


def backward(
    log: Sequence[Entry],
    grads: dict[int, Any],
    keep: set[int],
    need: Any,
    xp: Any,
    stops: set[int],
    masked: bool,
    traced: bool,
) -> None:
    """Pull `grads` (by serial number) back through `log`, in place.

    Gradients of `keep` stay in the dict. Only inputs in `need` get one. Nothing passes
    through the numbers in `stops`. With `masked` a gradient of exactly 0 stays 0 in every
    product, also beside an infinite factor. If not `traced`, no array is of what is written down.
    """
    raw = xp is not TENSOR
    mixed = raw and len(ARRAYS) > 1  # of several libraries, or of vmap
    several = mixed and gpu_count() > 1
    plain = not traced and not EXAMPLES
    owned: set[int] = set()  # sums that only this loop can see: added to in place
    for op, out, ids, fits, saved, params in reversed(log):
        if type(out) is int:
            g = grads.get(out) if out in keep else grads.pop(out, None)
            if g is None or out in stops:
                continue
            if type(g) is IndexedSlices:
                g = g.to_dense(_beside(xp, g))
        else:
            g = _many(xp, out, grads, keep, stops, getattr(op, "unused", ()))
            if g is None:
                continue
        rules = (op.masked if masked else op.rules) or op.spread(len(ids))
        if mixed:
            if plain and type(g) is not tuple:
                xp = READINGS.get(type(g), NUMPY)
            else:  # an index may be traced where the gradient is a constant
                index = index_parts(params["index"]) if params and "index" in params else ()
                xp = reading(*(g if type(g) is tuple else (g,)), *flat(saved), *index)
            if getattr(op, "kind", None) == "elementwise" and xp is not NUMPY and not xp.nesting:
                wanted = [r is not None and i in need for i, r in zip(ids, rules, strict=True)]
                rules, fits = for_ops.gradients(op, rules, g, saved, fits, wanted)
        elif not raw:
            saved = revive(op, saved, out, ids)
        for i, rule, fit in zip(ids, rules, fits, strict=False):
            if rule is None or i not in need:
                continue
            try:
                if several:  # the rule's own * and + need the GPU of its arrays
                    some = g if type(g) is tuple else (g,)
                    with formulas_on(next(x for x in some if x is not None)):
                        gi = rule(xp, g, saved, params)
                else:
                    gi = rule(xp, g, saved, params)
            except Exception as error:
                if not op.rules:  # a custom_gradient's own function: its errors are the user's
                    raise
                reraise(error, f"gradient of {op.name}", {"g": g}, params or {})
            if gi is None:
                continue
            old = grads.get(i)
            if fit is None and old is None:
                grads[i] = gi
                continue
            at = reading(*_arrays(gi), *_arrays(old)) if mixed else xp  # to_device's goes elsewhere
            if fit is not None and type(gi) is not IndexedSlices:
                gi = refit(at, gi, fit)
            if old is None:
                grads[i] = gi
            elif i in owned and type(gi) is type(old) and gi.dtype == old.dtype:
                old += gi
            else:
                grads[i] = total = plus(at, old, gi)
                if raw and type(total) is np.ndarray:
                    owned.add(i)
                else:  # += would not change what wraps an array, and a kernel of CuPy's is no gain
                    owned.discard(i)


def flat(saved: Any) -> Iterator[Any]:
    """Saved values, those in lists and tuples one by one."""
    for value in saved:
        if type(value) in (list, tuple):
            yield from value
        else:
            yield value


def _many(xp: Any, out: Any, grads: dict[int, Any], keep: set[int], stops: Any, unused: Any) -> Any:
    """Gradients of an op's several results, in their dtypes; None if all lack.

    Those that have none are zeros, or None at the positions `unused`.
    """
    found = [grads.get(i) if i in keep else grads.pop(i, None) for i, _, _ in out]
    found = [None if o[0] in stops else g for o, g in zip(out, found, strict=True)]
    found = [g.to_dense(_beside(xp, g)) if type(g) is IndexedSlices else g for g in found]
    like = next((g for g in found if g is not None), None)
    if like is None:
        return None
    made: list[Any] = []
    for k, (g, (_, shape, dtype)) in enumerate(zip(found, out, strict=True)):
        if g is None:
            made.append(None if k in unused else zeros(xp, like, shape, dtype))
        else:  # a rule of 16-bit floats may give float32, which a user's function does not expect
            made.append(g if g.dtype == dtype else refit(_beside(xp, g), g, (g.shape, dtype)))
    return tuple(made)


def _beside(xp: Any, g: Any) -> Any:
    """The reading of a gradient, which may be on another device than what was read before."""
    return xp if xp is TENSOR else reading(*_arrays(g))


def _arrays(g: Any) -> tuple[Any, ...]:
    return (g.values, g.indices) if type(g) is IndexedSlices else (g,)


def zeros(xp: Any, like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros in a reading, on the device of another array."""
    made = full_beside(like._data if xp is TENSOR else like, shape, dtype)
    return wrap(made) if xp is TENSOR else made


def finished(xp: Any, g: Any, source: Tensor) -> Any:
    """A gradient as the user gets it: a Tensor of the source's dtype, or IndexedSlices."""
    if g is None:
        return None
    if type(g) is IndexedSlices:
        own = copy if xp is TENSOR else wrap
        return IndexedSlices(own(g.values), own(g.indices), g.dense_shape)
    if g.dtype != source.dtype:
        g = xp.astype(g, source.dtype)
    if xp is TENSOR:
        return copy(g)  # other gradients may be this very Tensor, and ``g[i] = v`` changes it
    return wrap(as_array(g, type(source._data)))
