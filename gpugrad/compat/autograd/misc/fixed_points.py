"""Fixed points, with the gradient of the condition rather than of the iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpugrad.compat.autograd.boxes import getval, map_leaves
from gpugrad.compat.autograd.core import defvjp, make_vjp, primitive
from gpugrad.compat.autograd.vector_spaces import vspace
from gpugrad.compat.names import forwarding


@primitive
def fixed_point(
    f: Callable[[Any], Any], a: Any, x0: Any, distance: Callable[..., Any], tol: float
) -> Any:
    """The `x` with ``x == f(a)(x)``, by iteration from `x0` until two are within `tol`."""
    step = f(a)
    x, before = step(x0), x0
    while distance(x, before) > tol:
        x, before = step(x), x
    return x


def _fixed_point_vjp(ans: Any, f: Any, a: Any, x0: Any, distance: Any, tol: Any) -> Any:
    """By the implicit function theorem: a fixed point of the adjoint iteration."""

    def adjoint(params: Any) -> Any:
        a, x, g = params
        vjp_x, _ = make_vjp(f(a), x)
        return lambda u: vspace(x).add(vjp_x(u), g)

    vjp_a, _ = make_vjp(lambda a: f(a)(ans), a)
    start = vspace(map_leaves(getval, x0)).zeros()
    return lambda g: vjp_a(fixed_point(adjoint, (a, ans, g), start, distance, tol))


defvjp(fixed_point, None, _fixed_point_vjp, None)

__getattr__, __dir__ = forwarding(__name__, own=globals())
