"""Ways to say what a derivative is, where the derivative of the operations is not what is meant."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from gpugrad.autodiff.arguments import zeros_for
from gpugrad.autodiff.batched import (
    Batched,
    give_each,
    give_each_example,
    inside_levels_of,
    meet_levels,
)
from gpugrad.autodiff.recorded_call import RecordedCall
from gpugrad.autodiff.recorder import graphs, number, recording_stopped
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import nest
from gpugrad.core.backend import ARRAYS, TENSOR, is_array, is_inexact
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, recorders, tensor, wrap
from gpugrad.core.training import is_training, training
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, ShapeError, StructureError
from gpugrad.trace.array import running
from gpugrad.trace.listener import Listener
from gpugrad.trace.tracing import Tracing
from gpugrad.transforms.derivatives import grad, jacobian, vjp

__all__ = ["Accesses", "custom_gradient", "custom_jvp", "grad_pass_through", "implicit_diff"]

Function = Callable[..., Any]


class Accesses(Listener):
    """A recorder that notes which trainable Variables are read, and records nothing."""

    def __init__(self) -> None:
        self.variables: dict[int, Variable] = {}

    def touched(self, variable: Variable) -> None:
        """Note it."""
        if variable.trainable:
            self.variables[variable._id] = variable

    def __enter__(self) -> Accesses:
        self.listen()
        return self

    def __exit__(self, *exc: object) -> None:
        self.leave()


class _CustomCall(RecordedCall):
    """One call of a custom_gradient function."""

    def __init__(
        self, name: str, grad_fn: Function, inputs: list[Tensor], n_positional: int,
        variables: list[Variable],
    ) -> None:  # fmt: skip
        super().__init__(name)
        self._grad_fn, self._n_positional = grad_fn, n_positional
        self._inputs = [(x.shape, x.dtype) for x in inputs]  # not the tensors: they may be freed
        self._variables = variables
        self._trains = is_training()

    def gradients(self, xp: Any, g: tuple[Any, ...]) -> list[Any]:
        """What the user's function returns for them."""
        upstream = [copy(x) if xp is TENSOR else wrap(_bare(x)) for x in g]
        with inside_levels_of(*upstream), training(self._trains):  # it may compute something again
            return self._called(xp, upstream)

    def _called(self, xp: Any, upstream: list[Tensor]) -> list[Any]:
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
        for x in upstream:
            if type(x._data) is Batched:  # a gradient of its own for each example, also if alike
                flat = [None if g is None else give_each(tensor(g), x._data) for g in flat]
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
    return x if type(x) in ARRAYS else np.asarray(x)


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
    second order, is that of what `grad_fn` computes. In the branches and bodies of a traced
    function `grad_fn` is traced with `f`, up to three derivatives.

    Raises:
        StructureError: `grad_fn` takes no `variables` though some were read, or returned
            another number of gradients.
        ShapeError: it returned a gradient of another shape than the argument's.

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
        with Accesses() as read:
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
            op = _CustomCall(name, grad_fn, inputs, len(positional), variables)
            if graphs:
                for x in inputs:
                    number(x)
            if trace := running():
                outs = trace.with_gradient(name, outs, [*inputs, *variables], op.gradients)
            if Batched in ARRAYS:  # what is the same for all examples may get a gradient of each
                outs = [wrap(give_each_example(out._data)) for out in outs]
                given_and_made = meet_levels(*inputs, *variables, *outs)
                op.record(outs, given_and_made[: len(inputs) + len(variables)])
            else:
                op.record(outs, [*inputs, *variables])
        return nest.pack(result, outs)

    return with_own_gradient


def _takes_variables(grad_fn: Function) -> bool:
    ps = inspect.signature(grad_fn).parameters
    return "variables" in ps or any(p.kind is p.VAR_KEYWORD for p in ps.values())


def custom_jvp(f: Function) -> Function:
    """Give a function its own derivative in forward mode; a decorator, as in JAX.

    ``f.defjvp(rule)`` sets the rule: ``rule(primals, tangents)`` returns the result and its
    tangent, which must be linear in the tangents. Gradients are the rule transposed; both
    modes work, to any order.

    Args:
        f: function of nested arguments that returns a nest of Tensors.

    Raises:
        ArgumentError: it is called before it has a rule.

    >>> @gg.custom_jvp
    ... def log1pexp(x):
    ...     return gg.log(1 + gg.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), gg.sigmoid(x) * t
    >>> gg.grad(log1pexp)(50.0).item()
    1.0
    """
    rules: list[Function] = []

    @custom_gradient
    def transposed(*args: Any) -> Any:
        def grad_fn(*upstream: Any) -> Any:
            leaves = nest.flatten(args)
            tangents = [
                zeros_for(x)
                if isinstance(x, Tensor) and is_inexact(x.dtype) else None
                for x in leaves
            ]  # fmt: skip
            moved = [t for t in tangents if t is not None]
            with GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(moved)
                _, pushed = rules[-1](args, nest.pack(args, tangents))
            found = iter(tape.gradient(nest.flatten(pushed), moved, list(upstream), "zero"))
            return [
                None if t is None else next(found)
                for x, t in zip(leaves, tangents, strict=True) if isinstance(x, Tensor)
            ]  # fmt: skip

        return f(*args), grad_fn

    @functools.wraps(f)
    def with_own_jvp(*args: Any) -> Any:
        if not rules:
            name = getattr(f, "__name__", type(f).__name__)
            raise ArgumentError(f"custom_jvp: {name} has no rule yet; set it with @{name}.defjvp.")
        return transposed(*args)

    def defjvp(rule: Function) -> Function:
        rules.append(rule)
        return rule

    with_own_jvp.defjvp = defjvp  # type: ignore[attr-defined]  # the decorator for the rule
    return with_own_jvp


_RESIDUALS: dict[str, Callable[[Function], Function]] = {
    "root": lambda condition: condition,
    "fixed_point": lambda condition: lambda x, *params: nest.pack(x, [
        a - b for a, b in zip(nest.flatten(x), nest.flatten(condition(x, *params)), strict=True)
    ]),
    "argmin": lambda condition: grad(condition),
}  # fmt: skip


def implicit_diff(
    condition: Function,
    *,
    kind: str = "root",
    solve: Callable[[Function, Tensor], Tensor] | None = None,
) -> Callable[[Function], Function]:
    """Differentiate a solver by what its solution satisfies, not through its steps; a decorator.

    With F(x, *params) = 0 the implicit function theorem gives dx = -(dF/dx)^-1 dF/dparams:
    the gradient costs one linear system, however many steps were taken.

    Args:
        condition: function of the solution and the solver's arguments.
        kind: ``"root"``: the condition is 0; ``"fixed_point"``: it returns the solution itself;
            ``"argmin"``: it is a scalar whose gradient by the solution is 0.
        solve: ``solve(matvec, b)`` returns the x with ``matvec(x) = b`` for vectors, by
            conjugate gradients, say. None makes the matrix and calls `gg.linalg.solve`.

    Returns:
        A decorator for a function ``solver(*params)``, which may loop and stop as it likes. It
        returns a Tensor or a nest of them. Derivatives work in both modes, to any order.

    Raises:
        ArgumentError: no such kind.
        SingularMatrixError: dF/dx is singular, so that the solution has no derivative.

    >>> @gg.implicit_diff(lambda x, a: x * x - a)
    ... def square_root(a):
    ...     x = a
    ...     for _ in range(20):
    ...         x = 0.5 * (x + a / x)
    ...     return x
    >>> round(gg.grad(square_root)(4.0).item(), 4)
    0.25
    """
    if kind not in _RESIDUALS:
        raise ArgumentError(f"implicit_diff: kind is one of {list(_RESIDUALS)}, not {kind!r}.")
    residual = _RESIDUALS[kind](condition)

    def declare(solver: Function) -> Function:
        @functools.wraps(solver)
        @custom_gradient
        def solved(*params: Any) -> Any:
            with recording_stopped(keep=(Accesses, Tracing)):
                x = solver(*params)

            def grad_fn(*upstream: Any, variables: Sequence[Variable] = ()) -> Any:
                # a recorder wants the gradient's own derivative: the solution depends on params
                at = solved(*params) if recorders else x
                found = _adjoint(residual, solve, at, params, upstream, variables)
                inputs = len(found) - len(variables)
                return (found[:inputs], found[inputs:]) if variables else found

            return x, grad_fn

        return solved

    return declare


def _vector(leaves: Sequence[Tensor]) -> Tensor:
    return TENSOR.concat([TENSOR.ravel(leaf) for leaf in leaves])


def _leaves(vector: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    ends = np.cumsum([leaf.size for leaf in like]).tolist()
    return [
        TENSOR.reshape(TENSOR.getitem(vector, index=slice(end - leaf.size, end)), leaf.shape)
        for leaf, end in zip(like, ends, strict=True)
    ]


def _adjoint(
    residual: Function, solve: Any, x: Any, params: Any, upstream: Sequence[Tensor],
    variables: Sequence[Variable],
) -> list[Any]:  # fmt: skip
    """Gradients of the parameters: -(dF/dparams)^H u, where (dF/dx)^H u is the upstream one."""
    leaves = nest.flatten(x)

    def of_vector(v: Tensor) -> Tensor:
        return _vector(nest.flatten(residual(nest.pack(x, _leaves(v, leaves)), *params)))

    point, b = _vector(leaves), _vector(upstream)
    if solve is None:
        matrix = jacobian(of_vector)(point)
        adjoint = TENSOR.matrix_transpose(TENSOR.conj(matrix))
        u = TENSOR.solve(adjoint, TENSOR.expand_dims(b, axis=-1))
        u = TENSOR.squeeze(u, axis=-1)
    else:
        _, pull = vjp(of_vector, point)
        u = solve(lambda v: pull(v)[0], b)
    # F is linear in what follows only through params: x stays what it is here
    inputs = [p for p in nest.flatten(params) if isinstance(p, Tensor)]
    sources = [TENSOR.positive(p) if is_inexact(p.dtype) else p for p in inputs]
    given = iter(sources)
    moved = nest.map_structure(lambda p: next(given) if isinstance(p, Tensor) else p, params)
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([s for s in sources if is_inexact(s.dtype)])
        tape.watch(list(variables))
        held = nest.map_structure(TENSOR.positive, x)  # a number of its own: not a path to params
        value = _vector(nest.flatten(residual(held, *moved)))
    return list(tape.gradient(value, [*sources, *variables], -u))


def grad_pass_through(f: Function) -> Function:
    """Make a function with `f`'s values and the identity's gradient (straight-through).

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
