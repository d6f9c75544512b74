"""Functions of functions: derivatives, and ways to say what a derivative is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from gpugrad import nest
from gpugrad.backend import NAMESPACES, TENSOR, is_array, is_inexact
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, StructureError
from gpugrad.forward import ForwardAccumulator
from gpugrad.recorder import (
    UnconnectedGradients,
    graphs,
    number,
    number_any,
    record_many,
    recording_stopped,
)
from gpugrad.tape import GradientTape
from gpugrad.tensor import IndexedSlices, Tensor, recorders, tensor, threads, wrap
from gpugrad.variable import Variable

__all__ = [
    "custom_gradient",
    "grad",
    "grad_pass_through",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "recompute_grad",
    "value_and_grad",
    "vjp",
]

Function = Callable[..., Any]


# ---- derivatives of functions -----------------------------------------------------------


def _tensors(structure: Any) -> Any:
    """A structure with new Tensors for its leaves, so that each is a variable of its own.

    A list of plain numbers is one array, not a structure.
    """
    if isinstance(structure, (list, tuple)) and not any(
        isinstance(leaf, Tensor) or hasattr(leaf, "shape") for leaf in nest.flatten(structure)
    ):
        structure = tensor(structure)

    def fresh(leaf: Any) -> Tensor:
        made = leaf if isinstance(leaf, Variable) else TENSOR.positive(tensor(leaf))
        if not is_inexact(made.dtype):
            raise DTypeError(f"An argument of dtype {made.dtype} has no gradient: give a float.")
        number_any(made)
        return made

    return nest.map_structure(fresh, structure)


def _lent(structure: Any) -> Any:
    """What the function gets for its variables: it may write to them, they stay what they are."""
    return nest.map_structure(lambda t: t if isinstance(t, Variable) else copy(t), structure)


def _split(args: tuple[Any, ...], argnums: int | Sequence[int]) -> tuple[list[Any], Any]:
    """Arguments with fresh Tensors at `argnums`, and those alone."""
    given = list(args)
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not -len(given) <= n < len(given):
            raise ArgumentError(f"argnums: {n} is no position among {len(given)} arguments.")
        given[n] = _tensors(given[n])
    wanted = tuple(given[n] for n in numbers)
    for n, w in zip(numbers, wanted, strict=True):
        given[n] = _lent(w)
    return given, wanted[0] if isinstance(argnums, int) else wanted


def _scalar(y: Any, f: Function) -> Tensor:
    if isinstance(y, Tensor) and not y.ndim and is_inexact(y.dtype):
        return y
    about = f"a Tensor of {y.dtype} {y.shape}" if isinstance(y, Tensor) else f"a {type(y).__name__}"
    raise ShapeError(
        f"gradient of {getattr(f, '__name__', f)}: it must return one floating-point Tensor, it "
        f"returned {about}. See gg.vjp and gg.jacobian for others, has_aux=True for more results."
    )


def value_and_grad(
    f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function:
    """Make a function that returns ``(f(...), gradient)``.

    Args:
        f: function that returns a 0-d Tensor (with `has_aux`, a pair of it and anything).
        argnums: position, or positions, of the arguments to differentiate by; each may be a
            nested structure.
        has_aux: whether `f` returns more than the number.

    Raises:
        ShapeError: `f` returned something that is not one number.

    >>> import gpugrad as gg
    >>> value, g = gg.value_and_grad(lambda x: x * x)(3.0)
    >>> value.item(), g.item()
    (9.0, 6.0)
    """

    @functools.wraps(f)
    def with_grad(*args: Any, **keywords: Any) -> Any:
        given, wanted = _split(args, argnums)
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(wanted)
            y = f(*given, **keywords)
            value, aux = y if has_aux else (y, None)
        g = tape.gradient(_scalar(value, f), wanted, unconnected_gradients="zero")
        g = nest.map_structure(tensor, g)  # rows of a gathered argument become a dense array
        return (y, g) if not has_aux else ((value, aux), g)

    return with_grad


def grad(f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """Make a function that returns the gradient of `f`; see `value_and_grad`.

    >>> import gpugrad as gg
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

    >>> import gpugrad as gg
    >>> y, pull = gg.vjp(lambda x: x * x, gg.constant([1.0, 2.0]))
    >>> pull(gg.constant([1.0, 10.0]))[0].tolist()
    [2.0, 40.0]
    """
    fresh = tuple(_tensors(p) for p in primals)
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(fresh)
        y = f(*_lent(fresh))
    target = _lent(y)

    def pull(cotangent: Any) -> Any:
        g = tape.gradient(target, fresh, output_gradients=cotangent, unconnected_gradients="zero")
        return nest.map_structure(tensor, g)

    return y, pull


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return ``(f(*primals), J @ tangents)``, by forward mode.

    >>> import gpugrad as gg
    >>> y, t = gg.jvp(lambda x: x * x, [3.0], [1.0])
    >>> y.item(), t.item()
    (9.0, 6.0)
    """
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (list, tuple)):
            raise StructureError(
                f"{what}: a list with one entry for each argument of the function is needed, as "
                f"[x]; got a {type(given).__name__}."
            )
    fresh = [_tensors(p) for p in primals]
    with ForwardAccumulator(fresh, list(tangents)) as acc:
        y = f(*fresh)
    return y, acc.jvp(y, unconnected_gradients="zero")


def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Hessian of a scalar function times a vector: forward mode over reverse mode.

    >>> import gpugrad as gg
    >>> gg.hvp(lambda x: gg.sum(x * x * x), [[1.0, 2.0]], [[1.0, 0.0]])[0].tolist()
    [6.0, 0.0]
    """
    positions = tuple(range(len(primals))) if isinstance(primals, (list, tuple)) else 0
    return jvp(grad(f, positions), primals, tangents)[1]


def jacobian(f: Function, argnums: int | Sequence[int] = 0) -> Function:
    """Make a function that returns the Jacobian: output's shape + argument's shape.

    >>> import gpugrad as gg
    >>> gg.jacobian(lambda x: x * x)(gg.constant([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    @functools.wraps(f)
    def with_jacobian(*args: Any, **keywords: Any) -> Any:
        given, wanted = _split(args, argnums)
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(wanted)
            y = f(*given, **keywords)
        return tape.jacobian(y, wanted, unconnected_gradients="zero")

    return with_jacobian


def hessian(f: Function, argnums: int = 0) -> Function:
    """Make a function that returns the Hessian of a scalar function by one argument.

    >>> import gpugrad as gg
    >>> gg.hessian(lambda x: gg.sum(x * x * x))(gg.constant([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacobian(grad(f, argnums), argnums)


# ---- ways to say what a derivative is ---------------------------------------------------


class _Accesses:
    """A recorder that notes which trainable Variables are read, and records nothing."""

    known: frozenset[int] = frozenset()
    dead: frozenset[int] = frozenset()
    log = None

    def __init__(self) -> None:
        self.variables: dict[int, Variable] = {}

    def touched(self, variable: Variable) -> None:
        if variable.trainable:
            self.variables[variable._id] = variable

    def barrier(self, name: str, ids: Any, out: int) -> None:
        """Nothing is recorded, so nothing stops."""

    def __enter__(self) -> _Accesses:
        self._stack = threads.stack
        self._stack.append(self)
        recorders.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.remove(self)
        recorders.remove(self)


class _CustomOp:
    """What the tape logs for one call of a custom_gradient function: an op with its own rules."""

    rules = saves = origins = arrays = ()
    partials = jvps = None
    linear = variadic = False
    outputs = 0  # its gradient is always a tuple

    def __init__(
        self, name: str, grad_fn: Function, inputs: list[Tensor], n_positional: int,
        variables: list[Variable],
    ) -> None:  # fmt: skip
        self.name, self._grad_fn, self._n_positional = name, grad_fn, n_positional
        self._inputs = [(x.shape, x.dtype) for x in inputs]  # not the tensors: they may be freed
        self._variables = variables

    def spread(self, n: int) -> list[Function]:
        """One rule for each input; the first that is asked runs the user's function for all."""
        made: list[list[Any]] = []

        def rule(xp: Any, g: Any, saved: Any, params: Any, i: int) -> Any:
            if not made:
                made.append(self._gradients(xp, g))
            return made[0][i]

        return [functools.partial(rule, i=i) for i in range(n)]

    def _gradients(self, xp: Any, g: tuple[Any, ...]) -> list[Any]:
        upstream = [copy(x) if xp is TENSOR else wrap(_bare(x)) for x in g]
        if self._variables:
            pair = self._grad_fn(*upstream, variables=self._variables)
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise StructureError(
                    f"{self.name}: with `variables`, the gradient function must return "
                    "(gradients of the arguments, gradients of the variables)."
                )
            returned, more = pair
            more = nest.flatten(more)
            if len(more) != len(self._variables):
                raise StructureError(
                    f"{self.name}: the gradient function returned {len(more)} gradients for "
                    f"{len(self._variables)} variables."
                )
        else:
            returned, more = self._grad_fn(*upstream), []
        flat = nest.flatten(returned)
        if len(flat) == self._n_positional and self._n_positional:
            flat += [None] * (len(self._inputs) - len(flat))
        if len(flat) != len(self._inputs):
            raise StructureError(
                f"{self.name}: the gradient function returned {len(flat)} gradients for "
                f"{len(self._inputs)} arguments; return one each (None for no gradient)."
            )
        inputs = [*self._inputs, *((v.shape, v.dtype) for v in self._variables)]
        return [self._fit(xp, g, *x) for g, x in zip([*flat, *more], inputs, strict=True)]

    def _fit(self, xp: Any, g: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        if g is None:
            return None
        if not isinstance(g, IndexedSlices):
            g = tensor(g)
            if g.dtype != dtype:
                g = TENSOR.astype(g, dtype)
        if g.shape != shape:
            raise ShapeError(
                f"{self.name}: the gradient function returned shape {g.shape} for an argument of "
                f"shape {shape}."
            )
        if xp is TENSOR:
            return g
        if isinstance(g, IndexedSlices):
            return IndexedSlices(g.values._data, g.indices._data, g.dense_shape)
        return g._data


def _bare(x: Any) -> Any:
    return x if type(x) in NAMESPACES else np.asarray(x)


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, (Tensor, int, float, complex, np.generic)) or is_array(leaf)


def custom_gradient(f: Function | None = None) -> Function:
    """Give a function its own gradient; a decorator.

    Args:
        f: function of any nested arguments that returns ``(result, grad_fn)``.
            ``grad_fn(*upstream)`` gets one gradient for each Tensor of the result (zeros for
            those that were not used) and returns one for each number among the arguments, in
            order (None for no gradient). If `f` reads trainable Variables that are no
            arguments, ``grad_fn(*upstream, variables=...)`` gets them, and must return
            ``(gradients of arguments, gradients of variables)``.

    Keyword arguments count like positional ones; keyword-only ones come last, and their
    gradients may be left out. The gradient holds in forward mode too. Its own gradient, for
    second order, is that of what `grad_fn` computes.

    Raises:
        StructureError: `grad_fn` takes no `variables` though some were read, or returned
            another number of gradients.
        ShapeError: it returned a gradient of another shape than the argument's.

    >>> import gpugrad as gg
    >>> @gg.custom_gradient
    ... def log1pexp(x):
    ...     e = gg.exp(x)
    ...     return gg.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    >>> round(gg.grad(log1pexp)(30.0).item(), 4)
    1.0
    """
    if f is None:
        return custom_gradient
    signature = inspect.signature(f)
    name = getattr(f, "__name__", type(f).__name__)

    @functools.wraps(f)
    def with_own_gradient(*args: Any, **keywords: Any) -> Any:
        bound = signature.bind(*args, **keywords)

        def as_input(leaf: Any) -> Any:
            if not _is_number(leaf) or isinstance(leaf, Variable):
                return leaf
            made = tensor(leaf)
            if graphs:
                number(made)
            return copy(made)  # grad_fn reads it later: ``leaf[i] = v`` must not reach it

        given, named = nest.map_structure(as_input, (bound.args, bound.kwargs))
        positional = [x for x in nest.flatten(given) if isinstance(x, Tensor)]
        inputs = positional + [x for x in nest.flatten(named) if isinstance(x, Tensor)]
        with _Accesses() as read:
            pair = f(*given, **named)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not callable(pair[1]):
            raise StructureError(
                f"{name}: a custom_gradient function must return (result, grad_fn)."
            )
        result, grad_fn = pair
        outs = [wrap(tensor(leaf)._data) for leaf in nest.flatten(result)]
        arguments = {x._id for x in inputs if isinstance(x, Variable)}
        variables = [v for i, v in sorted(read.variables.items()) if i not in arguments]
        if variables and not _takes_variables(grad_fn):
            raise StructureError(
                f"{name}: it reads the Variables {[v.name for v in variables]}, so its "
                "gradient function must take a keyword argument `variables`."
            )
        if recorders:
            for x in (*inputs, *variables):
                x._read()  # where recording was stopped, no tape knows of a Variable yet
            op = _CustomOp(name, grad_fn, inputs, len(positional), variables)
            if graphs:
                for x in inputs:
                    number(x)
            ids = tuple(x._id for x in (*inputs, *variables))
            record_many(op, tuple(outs), ids, (None,) * len(ids), (), None)
        return nest.pack(result, outs)

    return with_own_gradient


def _takes_variables(grad_fn: Function) -> bool:
    ps = inspect.signature(grad_fn).parameters
    return "variables" in ps or any(p.kind is p.VAR_KEYWORD for p in ps.values())


def recompute_grad(f: Function) -> Function:
    """Make a function that keeps no activations: they are computed again for the gradient.

    Args:
        f: function of any nested arguments that returns a nest of Tensors. It is called once
            forward and once for each backward pass; if it is random, with other numbers.

    >>> import gpugrad as gg
    >>> gg.grad(gg.recompute_grad(lambda x: gg.sin(x) * x))(0.0).item()
    0.0
    """

    @functools.wraps(f)
    @custom_gradient
    def recomputed(*args: Any, **keywords: Any) -> Any:
        with recording_stopped(keep=_Accesses):
            result = f(*args, **keywords)

        def grad_fn(*upstream: Any, variables: Sequence[Variable] = ()) -> Any:
            inputs = [x for x in nest.flatten((args, keywords)) if isinstance(x, Tensor)]
            # one given twice is asked for once: its gradient is that of all its uses
            wanted: dict[int, Tensor] = {}
            for k, x in enumerate((*inputs, *variables), 1):
                if is_inexact(x.dtype):
                    wanted.setdefault(x._id or -k, x)
            with GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(list(wanted.values()))
                again = nest.flatten(f(*args, **keywords))
            zero = UnconnectedGradients.ZERO
            found = tape.gradient(again, list(wanted.values()), list(upstream), zero)
            by_source = dict(zip(map(id, wanted.values()), found, strict=True))
            of_inputs = [by_source.pop(id(x), None) for x in inputs]
            of_variables = [by_source.pop(id(v), None) for v in variables]
            return (of_inputs, of_variables) if variables else of_inputs

        return result, grad_fn

    recomputed.__wrapped__ = f
    return recomputed


def grad_pass_through(f: Function) -> Function:
    """Make a function with `f`'s values and the identity's gradient (straight-through).

    >>> import gpugrad as gg
    >>> gg.grad(lambda x: gg.grad_pass_through(gg.round)(x) ** 2)(1.3).item()
    2.0
    """

    @functools.wraps(f)
    @custom_gradient
    def passed(*args: Any, **keywords: Any) -> Any:
        def grad_fn(*upstream: Any, variables: Sequence[Variable] | None = None) -> Any:
            return upstream if variables is None else (upstream, [None] * len(variables))

        return f(*args, **keywords), grad_fn

    return passed
