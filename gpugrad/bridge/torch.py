"""Functions of torch as functions of Tensors, and the reverse."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any

from gpugrad.autodiff.tape import GradientTape
from gpugrad.bridge.call import Call, Function, inexact, replaced
from gpugrad.core.arguments import CALLABLE
from gpugrad.core.backend import is_inexact
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError
from gpugrad.transforms.accesses import Accesses
from gpugrad.transforms.custom import custom_gradient


def to_torch(f: Function) -> Function:
    """Turn a function of Tensors into one of torch tensors, which torch differentiates.

    Args:
        f: function of nested arguments, Tensors among them, that returns a nest with Tensors.

    Returns:
        A function that takes and returns torch tensors in their place, of the same memory, dtype
        and device. Results are copied if gpugrad's tape needs them for the backward pass. With
        ``create_graph=True`` the backward pass calls `f` again.

    Raises:
        DTypeError, DeviceError: at a call, a tensor that gpugrad does not hold, such as a sparse
            one, or one on another device than the CPU or CUDA.
        ArgumentError: torch asks for a gradient, and `f` reads trainable Variables.

    >>> f = gg.bridge.to_torch(lambda x: gg.sum(gg.logsumexp(x, axis=-1)))  # doctest: +SKIP
    >>> x = torch.zeros(2, 3, requires_grad=True)  # doctest: +SKIP
    >>> torch.autograd.grad(f(x), x)  # doctest: +SKIP
    """
    CALLABLE("to_torch", "f", f)
    import torch

    @functools.wraps(f)
    def on_torch(*args: Any, **keywords: Any) -> Any:
        call = Call("to_torch", f, args, keywords, torch.Tensor)
        outs = _torch_node().apply(call, torch.is_grad_enabled(), *call.arrays)
        return call.packed(outs)

    return on_torch


@functools.cache
def _torch_node() -> Any:
    """The autograd.Function behind `to_torch`, whose first argument is the `Call`."""
    import torch

    class FromGpugrad(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, call: Call, records: bool, *xs: Any) -> Any:
            ours = [call.ours("argument", k, x.detach().resolve_conj()) for k, x in enumerate(xs)]
            ctx.wanted = [k for k, x in enumerate(xs) if records and x.requires_grad]
            ctx.sources = [ours[k] for k in ctx.wanted]
            ctx.tape = GradientTape(persistent=True, watch_accessed_variables=False)
            with ctx.tape if ctx.wanted else contextlib.nullcontext(), Accesses() as read:
                if ctx.wanted:
                    ctx.tape.watch(ctx.sources)
                outs = [y._read() for y in call(ours, Tensor)]
            if ctx.wanted:
                call.no_variables(read)
            ctx.call, ctx.outs = call, [y for y in outs if is_inexact(y.dtype)]
            ctx.save_for_backward(*xs)  # torch raises if one is written to
            theirs = [torch.from_dlpack(y) for y in outs]
            ctx.mark_non_differentiable(
                *[t for t, y in zip(theirs, outs, strict=True) if not is_inexact(y.dtype)]
            )
            return tuple(theirs)

        @staticmethod
        def backward(ctx: Any, *gs: Any) -> Any:
            xs, call = ctx.saved_tensors, ctx.call
            slopes = [g for g in gs if g.is_floating_point() or g.is_complex()]
            if torch.is_grad_enabled():  # create_graph=True
                grads = to_torch(call.pull(ctx.wanted))(list(xs), slopes)
            else:
                up = [call.ours("gradient", k, g.resolve_conj()) for k, g in enumerate(slopes)]
                pulled = ctx.tape.gradient(ctx.outs, ctx.sources, up, "zero")
                grads = [torch.from_dlpack(tensor(g)) for g in pulled]
            return None, None, *replaced([None] * len(xs), ctx.wanted, grads)

    return FromGpugrad


def from_torch(f: Function) -> Function:
    """Turn a function of torch tensors, such as a torch Module, into one of Tensors.

    Args:
        f: function of nested arguments, torch tensors among them, that returns a nest with torch
            tensors. It must not write to its arguments.

    Returns:
        A function that takes and returns Tensors in their place, of the same memory, dtype and
        device, and that tapes differentiate to any order. The graph of torch lives as long as the
        tape does.

    Raises:
        DTypeError, DeviceError: at a call, a tensor that the other side does not hold.
        ArgumentError: a tape records, and the result depends on tensors that require a gradient and
            are no arguments, such as the parameters of a Module.
        TraceError: it is called inside `gg.function` or `gg.vmap`.

    >>> gelu = gg.bridge.from_torch(torch.nn.functional.gelu)  # doctest: +SKIP
    >>> gg.grad(gelu)(0.0)  # doctest: +SKIP
    """
    CALLABLE("from_torch", "f", f)
    import torch

    @functools.wraps(f)
    def on_tensors(*args: Any, **keywords: Any) -> Any:
        call = Call("from_torch", f, args, keywords, Tensor)
        xs, records = call.arrays, bool(threads.stack)
        ts = [call.lent("argument", k, x._read(), torch.from_dlpack) for k, x in enumerate(xs)]
        for k in inexact(xs) if records else ():
            ts[k].requires_grad_()
        with torch.set_grad_enabled(records):
            outs = call(ts, torch.Tensor)
        if records:
            _depends_on_arguments(call, outs, ts)
        return call.packed(_recorded(call, xs, ts, outs))

    return on_tensors


def _depends_on_arguments(call: Call, outs: Sequence[Any], ts: Sequence[Any]) -> None:
    """Raise if results of torch depend on others than the arguments that require a gradient."""
    nodes, seen = [t.grad_fn for t in outs if t.grad_fn is not None], set()
    while nodes:
        node = nodes.pop()
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and not any(leaf is t for t in ts):
            raise ArgumentError(
                f"{call.title}: the result depends on a torch tensor of shape {tuple(leaf.shape)} "
                "that requires a gradient and is no argument: its gradient would be lost. Pass it "
                "as an argument, as by torch.func.functional_call, or call requires_grad_(False)."
            )
        nodes += [n for n, _ in node.next_functions if n is not None and n not in seen]


def _recorded(
    call: Call, xs: Sequence[Tensor], ts: Sequence[Any], outs: Sequence[Any]
) -> list[Tensor]:
    """Results that torch computed from `ts`, as Tensors that follow from `xs`."""
    import torch

    ours = [call.ours("result", k, y.detach().resolve_conj()) for k, y in enumerate(outs)]
    places = [k for k, y in enumerate(outs) if y.requires_grad]
    wanted = [k for k, t in enumerate(ts) if t.requires_grad]
    if not places or not wanted:
        return ours

    @custom_gradient
    def node(*xs: Tensor) -> Any:
        def back(*gs: Tensor) -> list[Any]:
            again = bool(threads.stack)
            mine = [gs[k] for k in places]
            up = [call.lent("gradient", k, g, torch.from_dlpack) for k, g in enumerate(mine)]
            for g in up if again else ():
                g.requires_grad_()
            options = {"retain_graph": True, "create_graph": again, "allow_unused": True}
            sources = [ts[k] for k in wanted]
            got = torch.autograd.grad([outs[k] for k in places], sources, up, **options)
            there = [k for k, g in zip(wanted, got, strict=True) if g is not None]
            values = [g for g in got if g is not None]
            grads = _recorded(call, [*xs, *mine], [*ts, *up], values)
            return replaced([None] * len(xs), there, grads)

        return ours, back

    return node(*xs)
