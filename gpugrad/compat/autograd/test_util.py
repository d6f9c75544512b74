"""Checks of derivatives by differences, as autograd's own tests use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from gpugrad.compat.autograd.core import make_jvp, make_vjp
from gpugrad.compat.autograd.vector_spaces import vspace
from gpugrad.compat.autograd.wrap_util import get_name, unary_to_nary
from gpugrad.compat.names import forwarding

TOL = RTOL = EPS = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers are equal up to 1e-6, absolute or relative."""
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def make_numerical_jvp(f: Callable[..., Any], x: Any) -> Callable[[Any], Any]:
    """The function ``v -> J v`` by differences."""
    x_space, y_space = vspace(x), vspace(f(x))

    def jvp(v: Any) -> Any:
        ahead = f(x_space.add(x, x_space.scalar_mul(v, EPS / 2)))
        behind = f(x_space.add(x, x_space.scalar_mul(v, -EPS / 2)))
        apart = y_space.add(ahead, y_space.scalar_mul(behind, -1.0))
        return y_space.scalar_mul(apart, 1.0 / EPS)

    return jvp


def check_vjp(f: Callable[..., Any], x: Any) -> None:
    """Compare a gradient with differences along a random vector."""
    vjp, y = make_vjp(f, x)
    x_space, y_space = vspace(x), vspace(y)
    x_v, y_v = x_space.randn(), y_space.randn()
    back = x_space.covector(vjp(y_space.covector(y_v)))
    assert vspace(back) == x_space
    exact = x_space.inner_prod(x_v, back)
    numeric = y_space.inner_prod(y_v, make_numerical_jvp(f, x)(x_v))
    assert scalar_close(numeric, exact), (
        f"Derivative (VJP) check of {get_name(f)} failed with arg {x}:\n"
        f"analytic: {exact}\nnumeric:  {numeric}"
    )


def check_jvp(f: Callable[..., Any], x: Any) -> None:
    """Compare a forward derivative with differences along a random vector."""
    v = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(v)[1], make_numerical_jvp(f, x)(v))


def check_equivalent(x: Any, y: Any) -> None:
    """Check that two values are of one vector space, and close along a random vector."""
    x_space, y_space = vspace(x), vspace(y)
    assert x_space == y_space, f"VSpace mismatch:\nx: {x_space}\ny: {y_space}"
    v = x_space.randn()
    close = scalar_close(x_space.inner_prod(x, v), x_space.inner_prod(y, v))
    assert close, f"Value mismatch:\nx: {x}\ny: {y}"


@unary_to_nary
def check_grads(
    f: Callable[..., Any], x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2
) -> None:
    """Check derivatives of both modes by differences, up to an order."""
    assert all(m in ("fwd", "rev") for m in modes), modes

    def again(kind: str, derivative: Callable[..., Any], vector: Any) -> None:
        derivative.__name__ = f"{kind}_{get_name(f)}"
        check_grads(derivative, (0, 1), modes, order=order - 1)(x, vector)

    if "fwd" in modes:
        check_jvp(f, x)
        if order > 1:
            again("jvp", lambda x, v: make_jvp(f, x)(v)[1], vspace(x).randn())
    if "rev" in modes:
        check_vjp(f, x)
        if order > 1:
            again("vjp", lambda x, v: make_vjp(f, x)[0](v), vspace(f(x)).randn())


def combo_check(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., None]:
    """Check derivatives with all combinations of arguments."""
    check = check_grads(fun, *args, **kwargs)

    def of_all(*choices: Any, **keyword_choices: Any) -> None:
        keywords = [[(k, x) for x in xs] for k, xs in keyword_choices.items()]
        for chosen in product(*choices):
            for chosen_keywords in product(*keywords):
                check(*chosen, **dict(chosen_keywords))

    return of_all


__getattr__, __dir__ = forwarding(__name__, own=globals())
