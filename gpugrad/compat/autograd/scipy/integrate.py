"""Solutions of differential equations, with the gradient of the adjoint equation."""

from __future__ import annotations

from typing import Any

import numpy as _np
import scipy.integrate as _plain

import gpugrad.compat.autograd.numpy as np
from gpugrad.compat.autograd.core import defvjp_argnums, make_vjp, primitive
from gpugrad.compat.autograd.misc.flatten import flatten
from gpugrad.compat.names import forwarding

odeint: Any = primitive(_plain.odeint)


def _odeint_vjps(argnums: Any, yt: Any, args: Any, kwargs: Any) -> Any:
    """Gradients by the initial state, the times and the arguments of the equation.

    The cotangent u of the state obeys du/dt = -u df/dy backwards in time, and those of time and of
    arguments are integrals of u df/dt and u df/dargs (Pontryagin et al. 1962; Chen et al. 2018,
    "Neural Ordinary Differential Equations"). All are one system.
    """
    func, _, t, *more = args
    func_args = more[0] if more else kwargs.get("args", ())
    others = {k: v for k, v in kwargs.items() if k != "args"}
    flat_args, unflatten = flatten(func_args)
    n = _np.shape(yt)[1]

    def flat_func(y: Any, t: Any, flat: Any) -> Any:
        return func(y, t, *unflatten(flat))

    def backwards(state: Any, t: Any, flat: Any) -> Any:
        y, u = state[:n], state[n : 2 * n]
        vjp, velocity = make_vjp(lambda x: flat_func(*x), (y, t, flat))
        by_y, by_t, by_args = vjp(-u)
        return np.hstack([velocity, by_y, by_t, np.ravel(by_args)])

    def vjps(g: Any) -> tuple[Any, ...]:
        u, by_start, by_args = g[-1], 0.0, np.zeros(np.size(flat_args))
        by_times = []
        for k in range(len(t) - 1, 0, -1):
            moved = np.dot(func(yt[k], t[k], *func_args), g[k])  # by a later look at the state
            by_times.append(moved)
            state = np.hstack([yt[k], u, by_start - moved, by_args])
            span = np.array([t[k], t[k - 1]])
            state = odeint(backwards, state, span, (flat_args,), **others)[1]
            u, by_start, by_args = state[n : 2 * n] + g[k - 1], state[2 * n], state[2 * n + 1 :]
        times = np.hstack([*by_times, by_start])[::-1]
        each = (None, u, times, unflatten(by_args))
        return tuple(each[k] for k in argnums)

    return vjps


defvjp_argnums(odeint, _odeint_vjps)


__getattr__, __dir__ = forwarding(__name__, _plain, own=globals())
