"""`implicit_diff`: derivatives of a solver by the equation that its solution satisfies."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import nest
from gpugrad.core.arguments import CALLABLE
from gpugrad.core.backend import TENSOR, is_inexact
from gpugrad.core.listening import recorders, threads
from gpugrad.core.tensor import Tensor, tensor_with_id
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, saying_where
from gpugrad.trace.listener import Listener
from gpugrad.trace.tracing import Tracing
from gpugrad.transforms.accesses import Accesses
from gpugrad.transforms.custom import Function, custom_gradient
from gpugrad.transforms.derivatives import grad

P = ParamSpec("P")
R = TypeVar("R")


def _of_fixed_point(f: Function) -> Function:
    """The residual x - f(x), which is 0 at a fixed point."""

    def residual(x: Any, *params: Any) -> Any:
        pairs = zip(nest.flatten(x), nest.flatten(f(x, *params)), strict=True)
        return nest.pack(x, [a - b for a, b in pairs])

    return residual


_RESIDUALS: dict[str, Callable[[Function], Function]] = {
    "root": lambda condition: condition,
    "fixed_point": _of_fixed_point,
    "argmin": grad,
}


class ClosedOver(Listener):
    """Finds the watched Tensors that a function reads beside its arguments.

    An op notes the serial numbers of its arguments, not the Tensors, so each of `tensors` stands
    for one of them: it has its number, and no value.
    """

    def __init__(self, params: Any) -> None:
        self.tensors: list[Tensor] = []
        self.known = self
        self.listeners = [r for r in threads.stack if not isinstance(r, Accesses)]
        self._outer = [listener.known for listener in self.listeners]
        self._own = {p._id for p in nest.flatten(params) if isinstance(p, Tensor)}

    def __contains__(self, serial: int) -> bool:
        return serial in self._own or any(serial in known for known in self._outer)

    def take(self, entry: Any, outs: Any) -> None:
        """Note the arguments of an op that were not computed inside."""
        for serial in entry[2]:
            if serial and serial not in self._own and serial in self:
                self.tensors.append(tensor_with_id(np.zeros(()), serial))
                self._own.add(serial)
        self._own.update(out._id for out in (outs if isinstance(outs, (tuple, list)) else (outs,)))

    def touched(self, variable: Variable) -> None:
        """Leave Variables to `Accesses`."""
        self._own.add(variable._id)

    def __enter__(self) -> ClosedOver:
        return self.listen()

    def __exit__(self, *exc: object) -> None:
        self.leave()


@saying_where
def implicit_diff(
    condition: Function,
    *,
    kind: str = "root",
    solve: Callable[[Function, Tensor], Tensor] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Differentiate a solver through the equation that its solution satisfies; a decorator.

    With F(x, *params) = 0 the implicit function theorem gives dx = -(dF/dx)^-1 dF/dparams:
    the gradient costs one linear system, however many steps the solver takes.

    Args:
        condition: function of the solution and the solver's arguments.
        kind: ``"root"``: the condition is 0; ``"fixed_point"``: it returns the solution itself;
            ``"argmin"``: it is a scalar whose gradient with respect to the solution is 0.
        solve: ``solve(matvec, b)`` returns the vector x with ``matvec(x) = b``, for example by
            conjugate gradients. None computes the matrix and calls `gg.linalg.solve`.

    Returns:
        A decorator for a function ``solver(*params)``, which may use any control flow. It returns a
        Tensor or a nest of them. Derivatives work in both modes, to any order. They are with
        respect to the parameters, and to Variables and watched Tensors that the condition closes
        over.

    Raises:
        ArgumentError: there is no such kind.
        SingularMatrixError: dF/dx is singular, so the solution has no derivative.

    >>> @gg.implicit_diff(lambda x, a: x * x - a)
    ... def square_root(a):
    ...     x = a
    ...     for _ in range(20):
    ...         x = 0.5 * (x + a / x)
    ...     return x
    >>> round(gg.grad(square_root)(4.0).item(), 4)
    0.25
    """
    CALLABLE("implicit_diff", "condition", condition)
    if kind not in _RESIDUALS:
        raise ArgumentError(f"implicit_diff: kind must be one of {list(_RESIDUALS)}, got {kind!r}.")
    residual = _RESIDUALS[kind](condition)

    def declare(solver: Function) -> Function:
        @functools.wraps(solver)
        @custom_gradient
        def solved(*params: Any) -> Any:
            closed_over = ClosedOver(params)
            with recording_stopped(keep=(Accesses, Tracing)):
                x = solver(*params)
                if closed_over.listeners:
                    with closed_over:
                        residual(x, *params)

            def grad_fn(*upstream: Any, variables: Sequence[Variable] = ()) -> Any:
                # for the gradient's own derivative, the solution depends on params
                solution = solved(*params) if _is_recorded() else x
                others = [*variables, *closed_over.tensors]
                grads = _adjoint(residual, solve, solution, params, upstream, others)
                n = len(grads) - len(others)
                by_params = grads[:n] + grads[n + len(variables) :]
                return (by_params, grads[n : n + len(variables)]) if variables else by_params

            grad_fn.closed_over = closed_over.tensors  # type: ignore[attr-defined]
            return x, grad_fn

        return solved

    return declare


def _is_recorded() -> bool:
    return bool(recorders)


def _vector(leaves: Sequence[Tensor]) -> Tensor:
    return TENSOR.concat([TENSOR.ravel(leaf) for leaf in leaves])


def _leaves(vector: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    ends = np.cumsum([leaf.size for leaf in like]).tolist()
    return [
        TENSOR.reshape(TENSOR.getitem(vector, index=slice(end - leaf.size, end)), leaf.shape)
        for leaf, end in zip(like, ends, strict=True)
    ]


def _adjoint(
    residual: Function,
    solve: Any,
    x: Any,
    params: Any,
    upstream: Sequence[Tensor],
    others: Sequence[Tensor],
) -> list[Any]:
    """Gradients of parameters, and of others that F reads: -(dF/dparams)^H u, (dF/dx)^H u = g."""
    leaves = nest.flatten(x)

    def of_vector(v: Tensor, *params: Any) -> Tensor:
        return _vector(nest.flatten(residual(nest.pack(x, _leaves(v, leaves)), *params)))

    point, b = _vector(leaves), _vector(upstream)
    inputs = [p for p in nest.flatten(params) if isinstance(p, Tensor)]
    sources = [TENSOR.positive(p) if is_inexact(p.dtype) else p for p in inputs]
    rest = iter(sources)
    copies = nest.map_structure(lambda p: next(rest) if isinstance(p, Tensor) else p, params)
    held = TENSOR.positive(point)  # under the tape x does not depend on params
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch([held, *(s for s in sources if is_inexact(s.dtype)), *others])
        value = of_vector(held, *copies)
    if solve is None:
        if point.size == 1:
            matrix = TENSOR.reshape(tape.gradient(value, held, None, "zero"), (1, 1))
        else:
            matrix = tape.jacobian(value, held, "zero")
        adjoint = TENSOR.matrix_transpose(TENSOR.conj(matrix))
        u = TENSOR.squeeze(TENSOR.solve(adjoint, TENSOR.expand_dims(b, axis=-1)), axis=-1)
    else:
        u = solve(lambda v: tape.gradient(value, held, v, "zero"), b)
    return list(tape.gradient(value, [*sources, *others], -u))
