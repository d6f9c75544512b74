"""Explains in a sentence why a gradient is None."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Sequence
from typing import Any
from weakref import ref

from gpugrad.autodiff.recordable import Entry
from gpugrad.core.backend import is_inexact
from gpugrad.core.tensor import Tensor
from gpugrad.core.user_code import is_library, user_level
from gpugrad.core.variable import Variable
from gpugrad.core.views import View
from gpugrad.errors import GpugradWarning

Barrier = tuple[int, str, int, tuple[int, ...], str]
"""Where a gradient stops: (length of the log then, op, result, inputs, file:line)."""


def why(
    target: Tensor,
    source: Tensor,
    log: Sequence[Entry],
    barriers: Sequence[Barrier],
    leaves: set[int],
    known: Any,
) -> str:
    """Say why the gradient of `target` by `source` is None, or that it is not None.

    Args:
        log, barriers: the recorded entries, and where gradients stop.
        leaves: serial numbers that are watched.
        known: serial numbers that are watched, or computed from watched ones.
    """
    if target is source or target._id == source._id:
        return "The target is the source: its gradient is not None, but ones."
    barrier = _barrier_between(source._id, target._id, log, barriers)
    if barrier is not None:
        return _through(barrier) or (
            "The target depends on the source; its gradient is not None."
            f"{_view_not_recorded(source, known)}"
        )
    return _unconnected(target, source, leaves, known)


def _barrier_between(
    source: int, target: int, log: Sequence[Entry], barriers: Sequence[Barrier]
) -> str | None:
    """The first barrier between a source and a target: "" if no barrier, None if no path.

    A path without a barrier takes precedence.
    """
    reached = {source: ""}  # number: the first barrier on the way to it, or ""
    for outs, ids, barrier in _edges(log, barriers):
        ways = [reached[i] for i in ids if i in reached]
        for out in outs:
            if ways and reached.get(out, "?"):
                reached[out] = min((way or barrier for way in ways), key=len)
    return reached.get(target)


def _edges(
    log: Sequence[Entry], barriers: Sequence[Barrier]
) -> list[tuple[Sequence[int], Sequence[int], str]]:
    """(results, inputs, barrier or "") of each record, in the order of execution."""
    edges: list[Any] = []  # with the place in the log, and the rank within one place
    for k, (op, out, ids, *_) in enumerate(log):
        outs = (out,) if type(out) is int else [number for number, _, _ in out]
        rules = (op.rules if op else ()) or [...] * len(ids)
        passing = [i for i, rule in zip(ids, rules, strict=False) if rule is not None]
        lacking = [i for i, rule in zip(ids, rules, strict=False) if rule is None]
        edges.append((k, 1, outs, passing, ""))
        if any(lacking):
            edges.append((k, 2, outs, lacking, f"an argument of {op.name}"))
    for k, name, out, ids, line in barriers:
        edges.append((k, 0, (out,), ids, f"{name} ({line})" if name else ""))
    edges.sort(key=lambda edge: edge[:2])
    return [edge[2:] for edge in edges]


def _through(barrier: str) -> str:
    """The sentence about a barrier on the only path; "" if there is none."""
    if not barrier:
        return ""
    if barrier.startswith("stop_gradient"):
        return f"The target depends on the source only through {barrier}, which stops gradients."
    if barrier.startswith("assign"):
        return (
            f"The target depends on the source only through {barrier}: a Variable's new value "
            "carries no gradient. Compute with the value itself before you assign it."
        )
    return (
        f"The target depends on the source only through {barrier}, which has no gradient: "
        "its result is an integer, a boolean or a step, or the op was declared without one."
    )


def _unconnected(target: Tensor, source: Tensor, leaves: set[int], known: Any) -> str:
    """Why no recorded op leads from the source to the target."""
    if not is_inexact(source.dtype):
        return f"The source is {source.dtype}, which has no gradient: cast it to a float first."
    if source._id not in leaves and source._id not in known:
        if isinstance(source, Variable):
            return (
                f"The Variable '{source.name}' was not read while the tape recorded"
                f"{'' if source.trainable else ' (and trainable=False: watch it)'}."
            )
        return (
            "The source was not watched: call tape.watch(x) inside the `with` block, before "
            "x is used. (A new tensor of equal value is another tensor.) If its name held a "
            f"Variable: {_WAY}"
        )
    older = _view_not_recorded(source, known)
    if target._id not in known:
        return (
            "The target was not recorded: it was computed outside the tape, or from tensors that "
            f"the tape does not watch.{older}"
        )
    return f"Nothing that was recorded leads from the source to the target.{older}"


_WAY = (
    "`v = v - lr * g` makes v the name of a Tensor. Write v.assign_sub(lr * g), or let an "
    "optimizer step."
)
_PLACES = 1000
_NOTED = 16
"""Calls with the same sources, one after the other, whose places are noted: a frame takes 3 us."""

_sources = _calls = 0
_variables_at: dict[tuple[str, int, int], list[Any]] = {}
"""References to the sources that were Variables at the last call of a place in the user's code."""


def warn_if_rebound(sources: Sequence[Any], grads: Sequence[Any], watched: set[int]) -> None:
    """Warn of a gradient that is None because a name that held a Variable holds a Tensor now.

    The sign of it is that the same place had a Variable there before, which is gone. It is called
    by `gradient`, whose caller is that place.

    Args:
        sources, grads: those of one call of `gradient`.
        watched: serial numbers that the tape watches.
    """
    global _sources, _calls
    lacking = _variables_at and [g for g in grads if g is None]
    serials = hash(tuple([x._id for x in sources]))  # a tape counts references to the numbers
    _calls = _calls + 1 if serials == _sources else 0
    _sources = serials
    if _calls > _NOTED and not lacking:
        return
    variables = [ref(x) if isinstance(x, Variable) else None for x in sources]
    some = any(variables)
    asking = sys._getframe(1)  # `gradient`
    if asking.f_back is None or not (some or lacking):  # at the start of a thread
        return
    caller = asking.f_back
    code = caller.f_code
    place = code.co_filename, code.co_firstlineno, caller.f_lasti
    before = _variables_at.get(place, ()) if lacking else ()
    for k, (x, g, was) in enumerate(zip(sources, grads, before)):  # noqa: B905  # strict= is slow
        gone = was is not None and was() is None
        if gone and g is None and type(x) is Tensor and x._id not in watched:
            if place[0] == "<stdin>" or is_library(place[0]):  # a place of several programs
                break
            warnings.warn(
                f"gradient: source {k} was a Variable when this line ran before. Now it is a "
                f"Tensor that the tape does not watch, so its gradient is None. {_WAY}",
                GpugradWarning,
                stacklevel=user_level(),
            )
    if some:
        if len(_variables_at) >= _PLACES:
            _variables_at.clear()
        _variables_at[place] = variables


def _view_not_recorded(source: Tensor, known: Any) -> str:
    """A sentence about a view of the source that is older than its watch; "" without one."""
    for view in gc.get_referrers(source):
        if type(view) is View and view.root is source and view._number not in known:
            return (
                f" A view of the source by {view.op.name}, of shape {view.shape}, is older than "
                "the watch: what is read of it is a constant. Make it again after tape.watch(x)."
            )
    return ""
