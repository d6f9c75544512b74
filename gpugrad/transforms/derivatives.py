"""Derivatives of functions: `grad`, `vjp`, `jvp` and others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gpugrad.autodiff.forward import ForwardAccumulator
from gpugrad.autodiff.gradients import differentiate, pack_tensors
from gpugrad.autodiff.recorder import number_any
from gpugrad.autodiff.tape import GradientTape
from gpugrad.autodiff.upstream import zeros_for
from gpugrad.core import nest
from gpugrad.core.arguments import CALLABLE
from gpugrad.core.backend import TENSOR, is_inexact
from gpugrad.core.from_python import numbers_only
from gpugrad.core.holders import opened
from gpugrad.core.known_as import answering
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.core.variable import Variable
from gpugrad.errors import (
    ArgumentError,
    DTypeError,
    ShapeError,
    StructureError,
    reraise,
    saying_where,
)

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


def _name(f: Function) -> str:
    return str(getattr(f, "__name__", f))


def _sources(f: Function, n: int, structure: Any) -> tuple[Any, Any]:
    """Argument `n` of `f` as it is passed on, and the Tensors to differentiate by in its structure.

    These are new, so that equal ones stay distinct. The function gets copies, which it may write
    to. In the place of a Module are its trainable Variables by name.
    """
    if type(structure) is Tensor and is_inexact(structure.dtype):  # most
        source = TENSOR.positive(structure)
        number_any(source)
        return copy(source), source
    if isinstance(structure, (list, tuple)) and numbers_only(structure):
        structure = tensor(structure)  # a list of plain numbers is one array, not a structure
    leaves = nest.flatten(structure)
    try:
        sources = [_source(leaf, leaf is structure) for leaf in leaves]
    except DTypeError as error:
        reraise(error, f"derivative of {_name(f)}: argument {n}", {}, {})
    passed = [
        copy(source) if isinstance(source, Tensor) and source is not leaf else leaf
        for source, leaf in zip(sources, leaves, strict=True)
    ]
    return nest.pack(structure, passed), nest.pack(structure, sources)


def _source(leaf: Any, alone: bool) -> Any:
    """The Tensor to differentiate by in place of a leaf; a constant beside others stays."""
    leaf = opened(leaf)
    if hasattr(leaf, "named_variables"):
        return {name: v for name, v in leaf.named_variables() if v.trainable}
    if nest.is_constant(leaf) and not alone:
        return leaf
    x = leaf if isinstance(leaf, Variable) else TENSOR.positive(tensor(leaf))
    if not is_inexact(x.dtype):
        raise DTypeError(f"{x.dtype} has no gradient: pass a float, or leave it out.")
    number_any(x)
    return x


def tensors_in(structure: Any) -> list[Tensor]:
    """The Tensors among the leaves."""
    if isinstance(structure, Tensor):
        return [structure]
    return [leaf for leaf in nest.flatten(structure) if isinstance(leaf, Tensor)]


def results_of(y: Any) -> list[Any]:
    """The leaves of a result that must be Tensors."""
    return [leaf for leaf in nest.flatten(y) if leaf is y or not nest.is_constant(leaf)]


def split(
    f: Function, args: tuple[Any, ...], argnums: int | Sequence[int]
) -> tuple[list[Any], Any]:
    """The arguments to pass, and the sources among them at `argnums`."""
    arguments, sources = list(args), []
    numbers = tuple(argnums) if isinstance(argnums, (list, tuple, range)) else (argnums,)
    for n in numbers:
        if not isinstance(n, (int, np.integer)):
            raise DTypeError(f"argnums: must be an int or a tuple of ints, got {argnums!r:.60}.")
        if not -len(args) <= n < len(args):
            raise ArgumentError(f"argnums: {n} is out of range for {len(args)} arguments.")
        arguments[n], source = _sources(f, int(n), args[n])
        sources.append(source)
    return arguments, tuple(sources) if isinstance(argnums, (list, tuple, range)) else sources[0]


def _scalar(y: Any, f: Function) -> Tensor:
    y = opened(y)
    if isinstance(y, Tensor) and not y.ndim and is_inexact(y.dtype):
        return y
    about = f"a Tensor of {y.dtype} {y.shape}" if isinstance(y, Tensor) else f"a {type(y).__name__}"
    raise ShapeError(
        f"gradient of {_name(f)}: it must return one floating-point Tensor, it "
        f"returned {about}. For others see gg.vjp and gg.jacobian, for more results has_aux=True."
    )


def _dense(g: Any, source: Tensor) -> Tensor:
    """A gradient as a Tensor, which is None for an unconnected source or IndexedSlices."""
    return g if type(g) is Tensor else zeros_for(source) if g is None else tensor(g)


def _pair(y: Any, f: Function) -> Any:
    if isinstance(y, (tuple, list)) and len(y) == 2:
        return y
    raise StructureError(
        f"gradient of {_name(f)}: with has_aux=True it must return a pair, of one "
        f"number and anything else; it returned {y!r:.80}."
    )


@answering
def value_and_grad(
    f: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[P, tuple[R, Any]]:
    """Make a function that returns ``(f(...), gradient)``.

    Args:
        f: function that returns a 0-d Tensor (with `has_aux`, a pair of it and anything else).
        argnums: position, or positions, of the arguments to differentiate by; each may be a nested
            structure. Leaves that are not numbers, such as None or a name in a dataclass, appear
            unchanged in the gradient. The gradient by a `Module` is a dict of the gradients of its
            trainable Variables by name.
        has_aux: whether `f` returns a pair of that number and anything else.

    Raises:
        ShapeError: `f` returned something other than one number.
        StructureError: with `has_aux`, it did not return a pair.

    >>> value, g = gg.value_and_grad(lambda x: x * x)(3.0)
    >>> value.item(), g.item()
    (9.0, 6.0)
    """
    return _value_and_grad("value_and_grad", f, argnums, has_aux)


def _value_and_grad(name: str, f: Function, argnums: Any, has_aux: bool) -> Function:
    CALLABLE(name, "f", f)

    @functools.wraps(f)
    def with_grad(*args: Any, **keywords: Any) -> Any:
        arguments, wanted = split(f, args, argnums)
        sources = tensors_in(wanted)
        with GradientTape(watch_accessed_variables=False) as tape:
            for source in sources:
                tape.watch(source)
            y = f(*arguments, **keywords)
            value, aux = _pair(y, f) if has_aux else (y, None)
        # tape.gradient checks its arguments first
        grads = differentiate(tape, [_scalar(value, f)], [None], sources)
        g = pack_tensors(wanted, list(map(_dense, grads, sources)))
        return (y, g) if not has_aux else ((value, aux), g)

    return saying_where(with_grad, name)


@answering
def grad(
    f: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[P, Any]:
    """Make a function that returns the gradient of `f`; see `value_and_grad`.

    >>> gg.grad(gg.grad(lambda x: x * x * x))(2.0).item()
    12.0
    """
    both = _value_and_grad("grad", f, argnums, has_aux)

    @functools.wraps(f)
    def only_grad(*args: Any, **keywords: Any) -> Any:
        value, g = both(*args, **keywords)
        return (g, value[1]) if has_aux else g

    return only_grad


@saying_where
def vjp(f: Callable[..., R], *primals: Any) -> tuple[R, Function]:
    """Return ``(f(*primals), pull)``; ``pull(cotangent)`` returns a tuple, one gradient per primal.

    >>> y, pull = gg.vjp(lambda x: x * x, gg.constant([1.0, 2.0]))
    >>> pull(gg.constant([1.0, 10.0]))[0].tolist()
    [2.0, 40.0]
    """
    CALLABLE("vjp", "f", f)
    arguments, sources = split(f, primals, range(len(primals)))
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(tensors_in(sources))
        y = f(*arguments)
        target = nest.map_structure(lambda t: t if isinstance(t, Variable) else copy(t), y)

    def pull(cotangent: Any) -> Any:
        pairs = zip(
            nest.flatten(target), nest.flatten_like(target, cotangent, "cotangent"), strict=True
        )
        upstream = [g for leaf, g in pairs if leaf is target or not nest.is_constant(leaf)]
        grads = tape.gradient(results_of(target), tensors_in(sources), upstream, "zero")
        return pack_tensors(sources, [tensor(grad) for grad in grads])

    return y, saying_where(pull, "vjp")


@saying_where
def jvp(f: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[R, R]:
    """Return ``(f(*primals), J @ tangents)``, by forward mode.

    >>> y, t = gg.jvp(lambda x: x * x, [3.0], [1.0])
    >>> y.item(), t.item()
    (9.0, 6.0)
    """
    CALLABLE("jvp", "f", f)
    for what, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, (list, tuple)):
            raise StructureError(
                f"{what}: pass a list with one entry for each argument of the function, such as "
                f"[x]; got a {type(value).__name__}."
            )
    arguments, sources = split(f, tuple(primals), range(len(primals)))
    directions = nest.flatten_like(sources, tangents, "tangents")
    leaves = zip(nest.flatten(sources), directions, strict=True)
    pairs = [(x, t) for x, t in leaves if isinstance(x, Tensor)]
    with ForwardAccumulator([x for x, _ in pairs], [t for _, t in pairs]) as acc:
        y = f(*arguments)
    return y, pack_tensors(y, acc.jvp(results_of(y), unconnected_gradients="zero"))


@saying_where
def linearize(f: Callable[..., R], *primals: Any) -> tuple[R, Callable[..., R]]:
    """Return ``(f(*primals), push)``; ``push(*tangents)`` is J @ tangents, without running `f`.

    It is the gradient of g -> vjp(g), which is linear in g: a tape records that once.

    Args:
        f: function of any nested arguments that returns a nest of Tensors.
        primals: its arguments.

    >>> y, push = gg.linearize(lambda x: gg.sin(x) * x, gg.constant(0.0))
    >>> push(gg.constant(1.0)).item()
    0.0
    """
    CALLABLE("linearize", "f", f)
    y, pull = vjp(f, *primals)
    seeds = nest.map_structure(zeros_for, y)
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch([s for s in nest.flatten(seeds) if is_inexact(s.dtype)])
        pulled = pull(seeds)

    def push(*tangents: Any) -> Any:
        upstream = tuple(nest.map_structure(tensor, t) for t in tangents)
        return tape.gradient(pulled, seeds, upstream, "zero")

    return y, saying_where(push, "linearize")


@saying_where
def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Hessian of a scalar function times a vector: forward mode over reverse mode.

    >>> gg.hvp(lambda x: gg.sum(x * x * x), [[1.0, 2.0]], [[1.0, 0.0]])[0].tolist()
    [6.0, 0.0]
    """
    CALLABLE("hvp", "f", f)
    positions = tuple(range(len(primals))) if isinstance(primals, (list, tuple)) else 0
    return jvp(grad(f, positions), primals, tangents)[1]
