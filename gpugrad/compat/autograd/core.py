"""Primitives and their rules."""

# ruff: noqa: F401  # autograd has its vector spaces and nodes here
from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpugrad
from gpugrad.compat.autograd.boxes import (
    ArrayBox,
    Box,
    as_tensor,
    box,
    conj,
    getval,
    holds_box,
    in_rule,
    isbox,
    leaves_of,
    lowered,
    map_leaves,
    pack,
    unbox,
    value_for_rules,
)
from gpugrad.compat.autograd.derivatives import calls_with_rules, cotangent, fit, in_forward_mode
from gpugrad.compat.autograd.derivatives import make_jvp as make_jvp
from gpugrad.compat.autograd.derivatives import make_vjp as make_vjp
from gpugrad.compat.autograd.nodes import JVPNode, SparseObject, VJPNode
from gpugrad.compat.autograd.vector_spaces import VSpace, vspace
from gpugrad.compat.names import forwarding
from gpugrad.errors import GpugradWarning
from gpugrad.transforms.custom import record_primitive

gg: Any = gpugrad
Tensor = gpugrad.Tensor
Function = Callable[..., Any]

primitive_vjps: dict[Any, Function] = {}
"""For each primitive ``(argnums, ans, args, kwargs) -> (g -> gradients)``."""
primitive_jvps: dict[Any, Function] = {}
"""For each primitive ``(argnums, tangents, ans, args, kwargs) -> tangent``."""


def primitive(f_raw: Function) -> Function:
    """A function whose derivatives are given by `defvjp` or `defjvp`; it gets plain values.

    Arguments and results may be nested lists, tuples and dicts. One of the two rules serves both
    modes, to any order; with both, each mode has its own. Keyword arguments are not differentiated.

    Raises:
        NotImplementedError: an argument is differentiated, and no rule is for it.
        TypeError: an object among the arguments has a differentiated value as an attribute.

    >>> from gpugrad.compat.autograd import grad
    >>> from gpugrad.compat.autograd.extend import defvjp, primitive
    >>> square = primitive(lambda x: x * x)
    >>> defvjp(square, lambda ans, x: lambda g: 2 * x * g)
    >>> print(grad(square)(3.0), grad(grad(square))(3.0))
    6.0 2.0
    """

    @functools.wraps(f_raw, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        if not holds_box(args):
            _refuse_owners(f_raw, args)
            return f_raw(*args, **kwargs)
        return call_with_rules(f_wrapped, args, kwargs)

    f_wrapped.fun = f_raw  # type: ignore[attr-defined]
    f_wrapped._is_autograd_primitive = True  # type: ignore[attr-defined]
    return f_wrapped


def has_rules(f: Function) -> bool:
    """Whether a library has set rules for a function that is differentiable without."""
    return f in primitive_vjps or (f in primitive_jvps and in_forward_mode.get())


def call_with_rules(primitive: Any, args: Any, kwargs: Any) -> Any:
    """A call with boxes of a function, its attribute `fun` of plain values, by its rules."""
    argnums: list[int] = []
    sources: list[Tensor] = []
    for k, a in enumerate(args):
        found = _differentiated(a)
        if found:
            argnums.append(k)
            sources += found
    values = tuple([map_leaves(value_for_rules, a) for a in args])
    if not argnums:
        return primitive.fun(*values, **kwargs)
    return _Call(primitive, argnums, args, values, kwargs).run(sources)


def _refuse_owners(f_raw: Function, args: Any) -> None:
    """Raise if an object among the arguments of a primitive has a box, whose rule nobody asks."""
    for k, a in enumerate(args):
        attributes = {} if isinstance(a, type) or callable(a) else getattr(a, "__dict__", {})
        for name, value in attributes.items():
            if holds_box(value):
                raise TypeError(
                    f"{_name(f_raw)}: argument {k}, a {type(a).__name__}, has a differentiated "
                    f"value as its attribute {name!r}, to which the primitive's rules do not "
                    "apply. Pass it as an argument, or in a list, tuple or dict."
                )


def _differentiated(nest: Any) -> list[Tensor]:
    """The floating Tensors of the boxes in an argument."""
    found = [leaf._tensor for leaf in leaves_of(nest) if isinstance(leaf, Box)]
    return [t for t in found if t.dtype.kind in "fc"]


def _whole(leaf: Any) -> Any:
    """A result of a primitive that was not told of all boxes, such as those in an object."""
    return ArrayBox(as_tensor(leaf)) if isinstance(leaf, np.ndarray) and holds_box(leaf) else leaf


class _Call:
    """One call of a primitive with boxes."""

    def __init__(
        self, primitive: Any, argnums: list[int], args: Any, values: Any, kwargs: Any
    ) -> None:
        self.primitive, self.argnums, self.args, self.kwargs = primitive, argnums, args, kwargs
        self.values = values
        self.ans = map_leaves(_whole, primitive.fun(*values, **kwargs))
        self.outs: Any = None  # the Tensors of `ans`, once the call is recorded

    def run(self, sources: list[Tensor]) -> Any:
        calls_with_rules.set(calls_with_rules.get() + 1)
        by_vjp, by_jvp = self.primitive in primitive_vjps, self.primitive in primitive_jvps
        outs = record_primitive(
            _name(self.primitive),
            self._results(),
            sources,
            None if by_jvp and not by_vjp else self._gradients,
            self._on_arrays if by_vjp else None,
            self._tangents if by_jvp else None,
        )
        self.outs = outs if by_vjp else None
        return box(pack(self.ans, outs))

    def _results(self) -> list[Tensor]:
        return [unbox(x) if isbox(x) else gg.asarray(np.asarray(x)) for x in leaves_of(self.ans)]

    def _now(self) -> tuple[Any, Any]:
        """The arguments, and the result as a function of those that an outer derivative reads."""
        args = lowered(self.args)
        if not holds_box(args):
            return args, self.ans
        if self.outs is not None:  # the outer tape has recorded the call, too
            return args, lowered(pack(self.ans, self.outs))
        return args, self.primitive(*args, **self.kwargs)

    def _gradients(self, *upstream: Tensor) -> list[Any]:
        args, ans = self._now()
        g = lowered(pack(self.ans, [conj(u) for u in upstream]))
        return self._by_rule(ans, args, g)

    def _on_arrays(self, *upstream: Any) -> list[Any] | None:
        """The same for NumPy arrays, while nothing is differentiated."""
        if holds_box(self.ans):
            return None
        g = pack(
            self.ans, [np.array(np.conj(u) if u.dtype.kind == "c" else u)[()] for u in upstream]
        )
        return self._by_rule(self.ans, self.values, g)

    def _by_rule(self, ans: Any, args: Any, g: Any) -> list[Any]:
        rule = primitive_vjps.get(self.primitive)
        if rule is None:
            raise NotImplementedError(f"VJP of {_name(self.primitive)} not defined")
        before = in_rule.set(True)
        try:
            grads = rule(tuple(self.argnums), ans, args, self.kwargs)(g)
        finally:
            in_rule.reset(before)
        found: list[Any] = []
        for k, grad in zip(self.argnums, grads, strict=True):
            self._keep(found, self.args[k], grad)
        return found

    def _keep(self, found: list[Any], leaf: Any, g: Any) -> None:
        """Keep the gradients by the leaves of an argument; None is 0, others are ignored."""
        if isinstance(leaf, (list, tuple, dict)):
            for k, part in leaf.items() if isinstance(leaf, dict) else enumerate(leaf):
                self._keep(found, part, None if g is None else g[k])
            return
        if not isinstance(leaf, ArrayBox) or leaf.dtype.kind not in "fc":
            return
        if g is None:
            found.append(None)
            return
        t = unbox(g) if isbox(g) else np.asarray(g)
        if t.shape != leaf.shape and t.size == leaf.size:  # a number for an array of one element
            t = t.reshape(leaf.shape)
        if t.dtype.kind == "c":
            t = conj(t) if isinstance(t, Tensor) else np.conj(t)
        found.append(t)

    def _tangents(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        args, ans = self._now()
        left, by_argument = iter(tangents), []
        for k in self.argnums:
            nest = map_leaves(
                lambda leaf: (
                    ArrayBox(next(left))
                    if isinstance(leaf, ArrayBox) and leaf.dtype.kind in "fc"
                    else leaf
                ),
                self.args[k],
            )
            by_argument.append(lowered(nest))
        rule = primitive_jvps[self.primitive]
        before = in_forward_mode.set(False)  # the rule may be transposed, and call this primitive
        try:
            moved = rule(tuple(self.argnums), by_argument, ans, args, self.kwargs)
        finally:
            in_forward_mode.reset(before)
        results = self._results() if ans is self.ans else [as_tensor(x) for x in leaves_of(ans)]
        pairs = zip(map(cotangent, leaves_of(moved)), results, strict=True)
        return results, [fit(t, r) for t, r in pairs]


def _name(function: Any) -> str:
    return getattr(function, "__name__", "[unknown name]")


def defvjp(
    fun: Function, *vjpmakers: Function | None, argnums: Sequence[int] | None = None
) -> None:
    """Set the rules ``(ans, *args, **kwargs) -> (g -> gradient)`` of a primitive's arguments.

    None: the gradient is 0.
    """
    numbers = range(len(vjpmakers)) if argnums is None else argnums
    rules = dict(zip(numbers, vjpmakers, strict=True))

    def vjp_argnum(argnum: int, ans: Any, args: Any, kwargs: Any) -> Function:
        if argnum not in rules:
            raise NotImplementedError(f"VJP of {_name(fun)} wrt argnum {argnum} not defined")
        maker = rules[argnum]
        if maker is None:
            return lambda g: vspace(args[argnum]).zeros()
        made: Function = maker(ans, *args, **kwargs)
        return made

    defvjp_argnum(fun, vjp_argnum)


def defvjp_argnum(fun: Function, vjpmaker: Function) -> None:
    """Set the rule ``(argnum, ans, args, kwargs) -> (g -> gradient)`` of a primitive."""

    def vjps(argnums: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Function:
        makers = [vjpmaker(k, ans, args, kwargs) for k in argnums]
        return lambda g: tuple(vjp(g) for vjp in makers)

    defvjp_argnums(fun, vjps)


def defvjp_argnums(fun: Function, vjpmaker: Function) -> None:
    """Set the rule ``(argnums, ans, args, kwargs) -> (g -> gradients)`` of a primitive."""
    primitive_vjps[fun] = vjpmaker


def defjvp(
    fun: Function, *jvpfuns: Function | str | None, argnums: Sequence[int] | None = None
) -> None:
    """Set the rules ``(g, ans, *args, **kwargs) -> tangent`` of a primitive's arguments.

    None: the tangent is 0. "same": the primitive is linear in the argument.
    """
    numbers = range(len(jvpfuns)) if argnums is None else argnums
    rules = dict(zip(numbers, jvpfuns, strict=True))

    def jvp_argnum(argnum: int, g: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        if argnum not in rules:
            raise NotImplementedError(f"JVP of {_name(fun)} wrt argnum {argnum} not defined")
        rule = rules[argnum]
        if rule is None:
            return vspace(ans).zeros()
        if rule == "same":
            return fun(*args[:argnum], g, *args[argnum + 1 :], **kwargs)
        return rule(g, ans, *args, **kwargs)  # type: ignore[operator]

    defjvp_argnum(fun, jvp_argnum)


def defjvp_argnum(fun: Function, jvpmaker: Function) -> None:
    """Set the rule ``(argnum, g, ans, args, kwargs) -> tangent`` of a primitive."""

    def jvps(argnums: Sequence[int], gs: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        moved = [jvpmaker(k, g, ans, args, kwargs) for k, g in zip(argnums, gs, strict=True)]
        return functools.reduce(lambda a, b: vspace(ans).add(a, b), moved)

    defjvp_argnums(fun, jvps)


def defjvp_argnums(fun: Function, jvpmaker: Function) -> None:
    """Set the rule ``(argnums, gs, ans, args, kwargs) -> tangent`` of a primitive."""
    primitive_jvps[fun] = jvpmaker


def def_linear(fun: Function) -> None:
    """Say that a primitive is linear in each of its arguments."""

    def jvp(argnum: int, g: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        return fun(*args[:argnum], g, *args[argnum + 1 :], **kwargs)

    defjvp_argnum(fun, jvp)


def notrace_primitive(f_raw: Function) -> Function:
    """A function that gets the values of boxes, and whose result is not differentiated."""

    @functools.wraps(f_raw, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        return f_raw(*map(getval, args), **kwargs)

    return f_wrapped


__getattr__, __dir__ = forwarding(__name__, own=globals())
