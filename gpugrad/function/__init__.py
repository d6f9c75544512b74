"""`gpugrad.function`: a function of Tensors, traced once for each signature and then replayed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

from gpugrad.core.arguments import CALLABLE
from gpugrad.core.known_as import answering
from gpugrad.function.callable import Function, P, R
from gpugrad.function.signature import Names
from gpugrad.function.steps_per_call import Steps


@overload
def function(
    f: Callable[P, R],
    *,
    static: Names = (),
    donate: Names = (),
    steps_per_call: int | None = None,
    remat: str | None = None,
    memory_limit: int | None = None,
    passes: Sequence[str] | None = None,
) -> Function[P, R]: ...
@overload
def function(
    f: None = None,
    *,
    static: Names = (),
    donate: Names = (),
    steps_per_call: int | None = None,
    remat: str | None = None,
    memory_limit: int | None = None,
    passes: Sequence[str] | None = None,
) -> Callable[[Callable[P, R]], Function[P, R]]: ...
@answering
def function(
    f: Callable[..., Any] | None = None,
    *,
    static: Names = (),
    donate: Names = (),
    steps_per_call: int | None = None,
    remat: str | None = None,
    memory_limit: int | None = None,
    passes: Sequence[str] | None = None,
) -> Any:
    """Make a function that is traced once per signature and replayed afterwards; a decorator.

    Args:
        f: function of Tensors, Variables and hashable values, in any nested structure. Its results
            may depend only on the values of its Tensor arguments and of Variables; other values
            that it reads, and its own branches, are frozen in the first call. `gg.cond`,
            `gg.while_loop` and `gg.scan` branch and loop in every call. Tapes, optimizers and
            random numbers work inside it as they do outside. If `f` returns a Variable, the call
            returns that Variable; return ``v.value()`` for its value.
        static: names or positions of arguments that are compared by value and passed to `f`
            unchanged. This is the default for everything except Tensors and arrays. If a Tensor or
            an array is declared static, `f` may read its values (its bytes are compared in every
            call, and each new value is traced).
        donate: names or positions of arguments whose memory a call may reuse: it is freed after
            the last step that reads it, unless something else sees the array. The Tensors passed
            are empty afterwards, and raise when they are used. Under a tape, inside a `vmap` or
            another traced function nothing is freed.
        steps_per_call: K, for K steps in one call. Each Tensor and array among the arguments has
            a new first axis of length K, with one part per step; Variables, static arguments and
            other values are the same in all steps. Tensors in the result are stacked along a new
            first axis, and other values come from the first step. If a step raises, the steps
            before it have taken effect.
        remat: "auto" to recompute values that a backward pass would keep, as many as needed to fit
            `memory_limit`; None to recompute nothing. Results are the same bit for bit.
        memory_limit: bytes that a replay may take, including its arguments, Variables and what
            optimizers keep, as `Function.memory` reports them. The first call keeps to it as well:
            it traces shapes, and replays. It takes more under a tape, where the length of a result
            depends on values, and for what `cond`, `while_loop` and `scan` keep for their
            gradient: neither is counted, and `remat` does not recompute it.
        passes: the optimizations to run; all if None. ``("constants", "transposes", "outer",
            "identities", "ones", "common", "dead")`` run on all programs; "groups" fuses steps,
            on a GPU together with "narrow", "losses", "pieces", "norms", "products", "casts",
            "axes" and "recompute", and in C kernels on a CPU with "pieces", "norms", "rows", "axes"
            and "vectors"; "arena" and "in place" reuse memory.

    On a CPU, a program that computes a million elements or more is compiled by the C++ compiler, if
    there is one and the function has no `memory_limit`; so is a `scan` with 64 steps or more in all
    its iterations together. The last bits of its results may differ from those of eager ops; all
    calls give the same bits, unless the first one prints. `gg.about` names the compiler.

    If a replay raises, no Variable is assigned. An optimizer's step runs after everything that does
    not depend on it; Variables that it has updated before an error stay updated, as in the Python
    function.

    Threads may call functions that share Variables, and assign to them meanwhile: the values are
    those of some order of the calls. If a Variable changes while a function that reads it is
    traced, the effects of that call are undone where they can be, and its program is replayed.
    Calls that change Variables run one after the other.

    A signature is the structure of the arguments, the shapes, dtypes and devices of their Tensors,
    which of them are the same object, and the other values. Under a tape the gradient is traced
    with the function, and the call is one entry of the log. Inside a `vmap`, a ForwardAccumulator
    or another traced function, and under a tape if it has effects, the Python function is called
    instead.

    Raises:
        TraceError: a value is read while the function is traced, for example by ``if x > 0``; or a
            Tensor argument, or a Tensor from outside, is written to, for example by ``x[i] = v``.
        ArgumentError: an argument is neither a Tensor nor hashable; a static argument is a
            Variable, or not a parameter of `f`; `remat` lacks a limit; a donated Tensor is used
            again.
        ShapeError: an argument does not have length `steps_per_call` along its first axis.
        OutOfMemoryError: a replay would take more than `memory_limit`. Nothing has changed.
        DTypeError: a static Tensor is watched by a tape, which would lose its gradient.

    >>> @gg.function
    ... def step(x):
    ...     return gg.sum(x * x)
    >>> step(gg.constant([1.0, 2.0])).item(), step(gg.constant([2.0, 2.0])).item()
    (5.0, 8.0)
    >>> step.cache_info().traces
    1
    """
    if f is not None:
        CALLABLE("function", "f", f)
    else:
        return functools.partial(
            function,
            static=static,
            donate=donate,
            steps_per_call=steps_per_call,
            remat=remat,
            memory_limit=memory_limit,
            passes=passes,
        )
    if steps_per_call is None:
        return Function(f, passes, static, remat, memory_limit, donate)
    return Steps(steps_per_call, f, passes, static, remat, memory_limit, donate)
