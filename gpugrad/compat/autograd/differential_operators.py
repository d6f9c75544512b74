"""Autograd's operators: from a function to its gradient, Jacobian, Hessian and the like."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as onp

import gpugrad as gg
import gpugrad.compat.autograd.numpy as np
from gpugrad.compat.autograd.boxes import as_tensor, box, holds_box, leaves_of, map_leaves, pack
from gpugrad.compat.autograd.derivatives import make_jvp as _make_jvp
from gpugrad.compat.autograd.derivatives import make_vjp as _make_vjp
from gpugrad.compat.autograd.vector_spaces import vspace
from gpugrad.compat.autograd.wrap_util import unary_to_nary
from gpugrad.compat.names import forwarding
from gpugrad.errors import GpugradWarning

Function = Callable[..., Any]

make_vjp, make_jvp = unary_to_nary(_make_vjp), unary_to_nary(_make_jvp)


@unary_to_nary
def grad(fun: Function, x: Any) -> Any:
    """Returns a function which computes the gradient of `fun` by its argument `argnum`.

    The gradient has the structure of the argument, a number, an array or nested lists, tuples and
    dicts of them.

    Raises:
        TypeError: the value of `fun` is not one real number.

    >>> import gpugrad.compat.autograd.numpy as np
    >>> from gpugrad.compat.autograd import grad
    >>> print(grad(lambda x, y: np.sum(x * y), argnum=1)(np.array([2.0, 3.0]), 4.0))
    5.0
    """
    return _value_and_grad("Grad", fun, x)[1]


@unary_to_nary
def value_and_grad(fun: Function, x: Any) -> Any:
    """Returns a function that returns the value and the gradient, as `scipy.optimize` wants."""
    return _value_and_grad("value_and_grad", fun, x)


def _value_and_grad(name: str, fun: Function, x: Any) -> tuple[Any, Any]:
    vjp, ans = _make_vjp(fun, x)
    if type(ans) is onp.float64:  # most
        return ans, vjp.of_sum()
    space = vspace(ans)
    if space.size != 1:
        raise TypeError(
            f"{name} only applies to real scalar-output functions. Try jacobian, elementwise_grad "
            "or holomorphic_grad."
        )
    return ans, vjp(space.ones()) if space.iscomplex else vjp.of_sum()


@unary_to_nary
def elementwise_grad(fun: Function, x: Any) -> Any:
    """Returns a function that computes the sum of each column of the Jacobian of `fun`."""
    vjp, ans = _make_vjp(fun, x)
    if vspace(ans).iscomplex:
        raise TypeError("Elementwise_grad only applies to real-output functions.")
    return vjp.of_sum()


@unary_to_nary
def deriv(fun: Function, x: Any) -> Any:
    """Returns the sum of each row of the Jacobian, by forward mode."""
    return _make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def jacobian(fun: Function, x: Any) -> Any:
    """Returns a function that computes the Jacobian, of shape ``value.shape + x.shape``."""
    vjp, ans = _make_vjp(fun, x)
    space = vspace(ans)
    together = vjp.rows() if space.size > 2 else None  # few rows are faster one by one
    if together is not None:
        return together
    rows = [vjp(vector) for vector in space.standard_basis()]
    shape = (*space.shape, *vspace(x).shape)
    return np.reshape(np.stack(rows), shape) if rows else np.zeros(shape)


@unary_to_nary
def holomorphic_grad(fun: Function, x: Any) -> Any:
    """Returns a function that computes the derivative of a holomorphic function."""
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", GpugradWarning, stacklevel=3)
    return grad(lambda z: np.real(fun(z)))(x)


def grad_named(fun: Function, argname: str) -> Function:
    """The gradient by the argument of that name."""
    return grad(fun, inspect.getfullargspec(fun).args.index(argname))


@unary_to_nary
def hessian(fun: Function, x: Any) -> Any:
    """Returns a function that computes the Hessian."""
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def make_hvp(fun: Function, x: Any) -> Any:
    """Returns a function that prepares products of the Hessian and vectors at a point."""
    return _make_vjp(grad(fun), x)


def hessian_tensor_product(fun: Function, argnum: int = 0) -> Function:
    """The product of the Hessian and a tensor, which is the last argument."""
    gradient = grad(fun, argnum)

    def dot_gradient(*args: Any, **kwargs: Any) -> Any:
        *others, vector = args
        return np.tensordot(gradient(*others, **kwargs), vector, np.ndim(vector))

    return grad(dot_gradient, argnum)


def tensor_jacobian_product(fun: Function, argnum: int = 0) -> Function:
    """The product of a tensor, which is the last argument, and the Jacobian."""

    def dot_value(*args: Any, **kwargs: Any) -> Any:
        *others, vector = args
        return np.tensordot(vector, fun(*others, **kwargs), axes=np.ndim(vector))

    return jacobian(dot_value, argnum)


hessian_vector_product, vector_jacobian_product = hessian_tensor_product, tensor_jacobian_product


@unary_to_nary
def make_jvp_reversemode(fun: Function, x: Any) -> Any:
    """Returns a function for products of the Jacobian and vectors, by reverse mode twice."""
    vjp, y = _make_vjp(fun, x)
    return _make_vjp(vjp, vspace(y).zeros())[0]


def make_ggnvp(
    f: Function, g: Function = lambda x: 0.5 * np.sum(x**2, axis=-1), f_argnum: int = 0
) -> Function:
    """Products of the generalized Gauss-Newton matrix of ``g(f(x))`` and vectors."""

    @unary_to_nary
    def prepared(f: Function, x: Any) -> Function:
        f_vjp, f_x = _make_vjp(f, x)
        g_hvp, grad_g_x = _make_vjp(grad(g), f_x)
        f_jvp, _ = _make_vjp(f_vjp, vspace(grad_g_x).zeros())
        return lambda v: f_vjp(g_hvp(f_jvp(v)))

    return prepared(f, f_argnum)


@unary_to_nary
def grad_and_aux(fun: Function, x: Any) -> Any:
    """Returns a function with the gradient of the first output, and the second output as it is."""
    vjp, (ans, aux) = _make_vjp(lambda x: tuple(fun(x)), x)
    return vjp((vspace(ans).ones(), vspace(aux).zeros())), aux


def multigrad_dict(fun: Function) -> Function:
    """The gradients by all arguments, in a dict by their names."""
    signature = inspect.signature(fun)

    def gradients(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_dict(values: dict[str, Any]) -> Any:
            again = inspect.BoundArguments(signature, dict(values))
            return fun(*again.args, **again.kwargs)

        return dict(grad(of_dict)(dict(bound.arguments)))

    return gradients


def checkpoint(fun: Function) -> Function:
    """The function, whose intermediate values the backward pass computes once more."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if not holds_box(args):
            return fun(*args, **kwargs)
        nests: list[Any] = []

        def on_tensors(*tensors: Any) -> Any:
            nests.append(fun(*box(pack(args, tensors)), **kwargs))
            return [as_tensor(leaf) for leaf in leaves_of(nests[-1])]

        outs = gg.recompute_grad(on_tensors)(*map_leaves(as_tensor, leaves_of(args)))
        return box(pack(nests[-1], outs))

    return run


__getattr__, __dir__ = forwarding(__name__, own=globals())
