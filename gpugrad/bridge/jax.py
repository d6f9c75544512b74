"""Functions of JAX as functions of Tensors, and the reverse."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.bridge.call import Call, Function, inexact, replaced
from gpugrad.core.arguments import CALLABLE
from gpugrad.core.backend import is_inexact
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor
from gpugrad.errors import DTypeError
from gpugrad.transforms.custom import custom_gradient


def to_jax(f: Function) -> Function:
    """Turn a function of Tensors into one of JAX arrays, which JAX differentiates and compiles.

    Args:
        f: function of nested arguments, Tensors among them, that returns a nest with Tensors. It
            must be pure, and shapes of results must follow from shapes of arguments.

    Returns:
        A function that takes and returns JAX arrays in their place. Under `jax.jit` it is a
        callback to the host, under `jax.vmap` one for each example. It has gradients (`jax.grad`,
        `jax.vjp`, to any order) that call `f` again; forward mode raises, as of any `custom_vjp`.

    Raises:
        DTypeError: at a call, a dtype that the other side does not hold, such as float64 results
            without ``jax_enable_x64``.
        ArgumentError: JAX asks for a gradient, and `f` reads trainable Variables.

    >>> f = gg.bridge.to_jax(lambda x: gg.sum(gg.special.gammaln(x)))  # doctest: +SKIP
    >>> jax.jit(jax.grad(f))(jax.numpy.ones(3))  # doctest: +SKIP
    """
    CALLABLE("to_jax", "f", f)
    import jax

    @functools.wraps(f)
    def on_jax(*args: Any, **keywords: Any) -> Any:
        call = Call("to_jax", f, args, keywords, jax.Array)

        def run(*xs: Any) -> list[Any]:
            ours = [call.ours("argument", k, x) for k, x in enumerate(xs)]
            return [_for_jax(call, "result", k, y) for k, y in enumerate(call(ours, Tensor))]

        def whole(*xs: Any) -> Any:
            if not _is_traced(xs):
                return run(*xs)
            there = run(*[np.ones(x.shape, x.dtype) for x in xs])
            there = [jax.ShapeDtypeStruct(y.shape, y.dtype) for y in there]

            def host(*xs: Any) -> list[Any]:
                return [np.asarray(y) for y in run(*map(jax.numpy.asarray, xs))]

            return jax.pure_callback(host, there, *xs, vmap_method="sequential")

        node = jax.custom_vjp(whole)

        def backward(xs: Any, gs: Any) -> Any:
            wanted = inexact(xs)
            up = [g.conj() for g in gs if g.dtype != jax.dtypes.float0]
            grads = to_jax(call.pull(wanted))(list(xs), up)
            return tuple(replaced([None] * len(xs), wanted, [g.conj() for g in grads]))

        node.defvjp(lambda *xs: (node(*xs), xs), backward)
        return call.packed((node if _is_traced(call.arrays) else run)(*call.arrays))

    return on_jax


def _is_traced(xs: Sequence[Any]) -> bool:
    import jax

    return any(isinstance(x, jax.core.Tracer) for x in xs)


def from_jax(f: Function) -> Function:
    """Turn a function of JAX arrays, such as a result of `jax.jit`, into one of Tensors.

    Args:
        f: function of nested arguments, JAX arrays among them, that returns a nest with arrays.

    Returns:
        A function that takes and returns Tensors in their place, of the same memory where JAX
        accepts it (aligned to 64 bytes on the CPU), and that tapes differentiate to any order.

    Raises:
        DTypeError: at a call, a dtype that the other side does not hold, such as float64 without
            ``jax_enable_x64``.
        TraceError: it is called inside `gg.function` or `gg.vmap`.

    >>> f = gg.bridge.from_jax(jax.nn.softplus)  # doctest: +SKIP
    >>> gg.grad(f)(0.0)  # doctest: +SKIP
    """
    CALLABLE("from_jax", "f", f)
    import jax

    @functools.wraps(f)
    def on_tensors(*args: Any, **keywords: Any) -> Any:
        call = Call("from_jax", f, args, keywords, Tensor)
        xs, wanted = call.arrays, inexact(call.arrays)
        js = [_for_jax(call, "argument", k, x._read()) for k, x in enumerate(xs)]

        def differentiated(js: Sequence[Any]) -> Any:
            def of_wanted(*ws: Any) -> list[Any]:
                return call(replaced(js, wanted, ws), (jax.Array, np.ndarray))

            return jax.vjp(of_wanted, *[js[k] for k in wanted])

        def pulled(js: Sequence[Any], gs: Sequence[Any]) -> list[Any]:
            outs, pull = differentiated(js)
            return _jax_gradients(outs, pull, gs)

        if not (threads.stack and wanted):
            outs = call(js, (jax.Array, np.ndarray))
            return call.packed([call.ours("result", k, y) for k, y in enumerate(outs)])
        outs, pull = differentiated(js)
        places = inexact(outs)

        @custom_gradient
        def node(*xs: Tensor) -> Any:
            def back(*gs: Tensor) -> list[Any]:
                mine = [gs[k] for k in places]
                if threads.stack:  # the gradient is differentiated too
                    grads = from_jax(pulled)(list(xs), mine)
                else:
                    up = [_for_jax(call, "gradient", k, g) for k, g in enumerate(mine)]
                    grads = _jax_gradients(outs, pull, up)
                    grads = [call.ours("gradient", k, g) for k, g in enumerate(grads)]
                return replaced([None] * len(xs), wanted, grads)

            return [call.ours("result", k, y) for k, y in enumerate(outs)], back

        return call.packed(node(*xs))

    return on_tensors


def _jax_gradients(outs: Sequence[Any], pull: Function, gs: Sequence[Any]) -> list[Any]:
    """The gradients by `pull` of JAX, from one upstream gradient for each floating-point result.

    JAX does not conjugate: its gradient of a real function is the conjugate of ours.
    """
    import jax

    rest = iter(gs)
    none = jax.dtypes.float0
    up = [next(rest).conj() if is_inexact(y.dtype) else np.zeros(y.shape, none) for y in outs]
    return [g.conj() for g in pull(up)]


def _for_jax(call: Call, what: str, k: int, x: Tensor) -> Any:
    """A Tensor as a JAX array; int64 becomes int32, as everywhere in JAX, but floats raise."""
    import jax

    dtype = jax.dtypes.canonicalize_dtype(x.dtype)
    if dtype != x.dtype and is_inexact(x.dtype):
        raise DTypeError(
            f"{call.title}: {what} {k} ({x.dtype} {x.shape}) would become {dtype} in JAX. Cast it, "
            "or call jax.config.update('jax_enable_x64', True) first."
        )
    return call.lent(what, k, x if dtype == x.dtype else x.astype(dtype), jax.dlpack.from_dlpack)
