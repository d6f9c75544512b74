"""Derivatives of functions: `grad`, `vjp`, `jvp`, `jacobian` and others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from gpugrad.autodiff.arguments import zeros_for
from gpugrad.autodiff.forward import ForwardAccumulator
from gpugrad.autodiff.recorder import number_any
from gpugrad.autodiff.tape import CHUNK_BYTES, GradientTape
from gpugrad.core import nest
from gpugrad.core.backend import TENSOR, is_inexact
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, StructureError, reraise

__all__ = [
    "batch_jacobian",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "linearize",
    "value_and_grad",
    "vjp",
]

Function = Callable[..., Any]


def _name(f: Function) -> str:
    return str(getattr(f, "__name__", f))


def _tensors(f: Function, n: int, structure: Any) -> Any:
    """Argument `n` of `f` with new Tensors for its leaves, so that equal ones stay distinct."""
    try:
        return _fresh(structure)
    except DTypeError as error:
        reraise(error, f"derivative of {_name(f)}: argument {n}", {}, {})


def _fresh(structure: Any) -> Any:
    """New Tensors for the leaves; a list of plain numbers is one array, not a structure."""
    if isinstance(structure, (list, tuple)) and not any(
        isinstance(leaf, Tensor) or hasattr(leaf, "shape") for leaf in nest.flatten(structure)
    ):
        structure = tensor(structure)

    def fresh(leaf: Any) -> Tensor:
        x = leaf if isinstance(leaf, Variable) else TENSOR.positive(tensor(leaf))
        if not is_inexact(x.dtype):
            raise DTypeError(f"{x.dtype} has no gradient: pass a float, or leave it out.")
        number_any(x)
        return x

    return nest.map_structure(fresh, structure)


def _copies(structure: Any) -> Any:
    """Copies of the Tensors for the function to write to; the originals do not change."""
    return nest.map_structure(lambda t: t if isinstance(t, Variable) else copy(t), structure)


def _split(
    f: Function, args: tuple[Any, ...], argnums: int | Sequence[int]
) -> tuple[list[Any], Any]:
    """Arguments with new Tensors at `argnums`, and these new arguments alone."""
    arguments = list(args)
    numbers = tuple(argnums) if isinstance(argnums, Sequence) else (argnums,)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise ArgumentError(f"argnums: {n} is out of range for {len(args)} arguments.")
        arguments[n] = _tensors(f, n, arguments[n])
    wanted = tuple(arguments[n] for n in numbers)
    for n, w in zip(numbers, wanted, strict=True):
        arguments[n] = _copies(w)
    return arguments, wanted if isinstance(argnums, Sequence) else wanted[0]


def _scalar(y: Any, f: Function) -> Tensor:
    if isinstance(y, Tensor) and not y.ndim and is_inexact(y.dtype):
        return y
    about = f"a Tensor of {y.dtype} {y.shape}" if isinstance(y, Tensor) else f"a {type(y).__name__}"
    raise ShapeError(
        f"gradient of {_name(f)}: it must return one floating-point Tensor, it "
        f"returned {about}. For others see gg.vjp and gg.jacobian, for more results has_aux=True."
    )


def _pair(y: Any, f: Function) -> Any:
    if isinstance(y, (tuple, list)) and len(y) == 2:
        return y
    raise StructureError(
        f"gradient of {_name(f)}: with has_aux=True it must return a pair, of one "
        f"number and anything else; it returned {y!r:.80}."
    )


def value_and_grad(
    f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function:
    """Make a function that returns ``(f(...), gradient)``.

    Args:
        f: function that returns a 0-d Tensor (with `has_aux`, a pair of it and anything else).
        argnums: position, or positions, of the arguments to differentiate by; each may be a
            nested structure.
        has_aux: whether `f` returns more than that number.

    Raises:
        ShapeError: `f` returned something other than one number.
        StructureError: with `has_aux`, it did not return a pair.

    >>> value, g = gg.value_and_grad(lambda x: x * x)(3.0)
    >>> value.item(), g.item()
    (9.0, 6.0)
    """

    @functools.wraps(f)
    def with_grad(*args: Any, **keywords: Any) -> Any:
        arguments, wanted = _split(f, args, argnums)
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(wanted)
            y = f(*arguments, **keywords)
            value, aux = _pair(y, f) if has_aux else (y, None)
        g = tape.gradient(_scalar(value, f), wanted, unconnected_gradients="zero")
        g = nest.map_structure(tensor, g)  # IndexedSlices of a gathered argument become dense
        return (y, g) if not has_aux else ((value, aux), g)

    return with_grad


def grad(f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """Make a function that returns the gradient of `f`; see `value_and_grad`.

    >>> gg.grad(gg.grad(lambda x: x * x * x))(2.0).item()
    12.0
    """
    both = value_and_grad(f, argnums, has_aux)

    @functools.wraps(f)
    def only_grad(*args: Any, **keywords: Any) -> Any:
        value, g = both(*args, **keywords)
        return (g, value[1]) if has_aux else g

    return only_grad


def vjp(f: Function, *primals: Any) -> tuple[Any, Function]:
    """Return ``(f(*primals), pull)``; ``pull(cotangent)`` gives a tuple, one for each primal.

    >>> y, pull = gg.vjp(lambda x: x * x, gg.constant([1.0, 2.0]))
    >>> pull(gg.constant([1.0, 10.0]))[0].tolist()
    [2.0, 40.0]
    """
    fresh = tuple(_tensors(f, n, p) for n, p in enumerate(primals))
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(fresh)
        y = f(*_copies(fresh))
    target = _copies(y)

    def pull(cotangent: Any) -> Any:
        g = tape.gradient(target, fresh, output_gradients=cotangent, unconnected_gradients="zero")
        return nest.map_structure(tensor, g)

    return y, pull


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return ``(f(*primals), J @ tangents)``, by forward mode.

    >>> y, t = gg.jvp(lambda x: x * x, [3.0], [1.0])
    >>> y.item(), t.item()
    (9.0, 6.0)
    """
    for what, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, (list, tuple)):
            raise StructureError(
                f"{what}: pass a list with one entry for each argument of the function, such as "
                f"[x]; got a {type(value).__name__}."
            )
    fresh = [_tensors(f, n, p) for n, p in enumerate(primals)]
    with ForwardAccumulator(fresh, list(tangents)) as acc:
        y = f(*fresh)
    return y, acc.jvp(y, unconnected_gradients="zero")


def linearize(f: Function, *primals: Any) -> tuple[Any, Function]:
    """Return ``(f(*primals), push)``; ``push(*tangents)`` is J @ tangents, without running `f`.

    It is the gradient of g -> vjp(g), which is linear in g: a tape records that once.

    Args:
        f: function of any nested arguments that returns a nest of Tensors.
        primals: its arguments.

    >>> y, push = gg.linearize(lambda x: gg.sin(x) * x, gg.constant(0.0))
    >>> push(gg.constant(1.0)).item()
    0.0
    """
    y, pull = vjp(f, *primals)
    seeds = nest.map_structure(zeros_for, y)
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch([s for s in nest.flatten(seeds) if is_inexact(s.dtype)])
        pulled = pull(seeds)

    def push(*tangents: Any) -> Any:
        upstream = tuple(nest.map_structure(tensor, t) for t in tangents)
        return tape.gradient(pulled, seeds, upstream, "zero")

    return y, push


def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Hessian of a scalar function times a vector: forward mode over reverse mode.

    >>> gg.hvp(lambda x: gg.sum(x * x * x), [[1.0, 2.0]], [[1.0, 0.0]])[0].tolist()
    [6.0, 0.0]
    """
    positions = tuple(range(len(primals))) if isinstance(primals, (list, tuple)) else 0
    return jvp(grad(f, positions), primals, tangents)[1]


def jacobian(
    f: Function, argnums: int | Sequence[int] = 0, *, chunk_bytes: int = CHUNK_BYTES
) -> Function:
    """Make a function that returns the Jacobian: output's shape + argument's shape.

    Args:
        f: function that returns a Tensor or a nest of Tensors. The Jacobian has that nest, with the
            argument's nest in place of each Tensor.
        argnums: position, or positions, of the arguments to differentiate by; each may be a
            nested structure.
        chunk_bytes: roughly how much memory one batched backward pass may take.

    >>> gg.jacobian(lambda x: x * x)(gg.constant([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _with_jacobian(f, argnums, GradientTape.jacobian, chunk_bytes)


def _with_jacobian(f: Function, argnums: Any, take: Any, chunk_bytes: int) -> Function:
    @functools.wraps(f)
    def with_jacobian(*args: Any, **keywords: Any) -> Any:
        arguments, wanted = _split(f, args, argnums)
        with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(wanted)
            y = f(*arguments, **keywords)
        return nest.map_structure(
            lambda t: take(tape, t, wanted, "zero", chunk_bytes=chunk_bytes), y
        )

    return with_jacobian


def batch_jacobian(f: Function, argnums: int = 0, *, chunk_bytes: int = CHUNK_BYTES) -> Function:
    """Make a function that returns the Jacobian of each example of a batch.

    Args:
        f: function whose result and argument have the batch axis first. An example of the result
            may only depend on the same example of the argument, which is not checked.
        argnums: position of the argument.
        chunk_bytes: as for `jacobian`.

    Returns:
        Function whose result has the shape (batch, result's axes..., argument's axes...).

    >>> gg.batch_jacobian(lambda x: x * x)(gg.constant([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
    """
    return _with_jacobian(f, argnums, GradientTape.batch_jacobian, chunk_bytes)


def hessian(
    f: Function, argnums: int | Sequence[int] = 0, *, chunk_bytes: int = CHUNK_BYTES
) -> Function:
    """Make a function that returns the Hessian of a scalar function.

    Args:
        f: function that returns a 0-d Tensor.
        argnums, chunk_bytes: as for `jacobian`. If the arguments are nests, the result is a nest
            of nests: ``hessian(loss)(params)["w"]["b"]``.

    >>> gg.hessian(lambda x: gg.sum(x * x * x))(gg.constant([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacobian(grad(f, argnums), argnums, chunk_bytes=chunk_bytes)
