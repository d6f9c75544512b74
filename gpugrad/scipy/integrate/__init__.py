"""`scipy.integrate` on Tensors: SciPy's names, signatures, defaults and errors.

The solvers are SciPy's own, read on Tensors: see `gpugrad.scipy.reading`. The gradient goes through
the steps that a solver took, whose sizes count as constants: by the initial state, by what the
right-hand side reads, by the limits and by `t_eval`. To keep less in memory, pass
``gradient="checkpoints"`` or ``gradient="adjoint"`` to `solve_ivp`.

In `gg.function` and `gg.vmap`, RK23, RK45 and DOP853 are one loop over all examples, each with
steps of its own. Functions without a derivative here, as `solve_bvp`, are SciPy's on values and
raise under a tape.

>>> def at_1(rate):
...     solved = gg.scipy.integrate.solve_ivp(lambda t, y: -rate * y, (0, 1), [1.0], rtol=1e-8)
...     return solved.y[0, -1]
>>> print(gg.round(gg.grad(at_1)(gg.constant(1.0, dtype="float64")), 6))  # -exp(-1)
-0.367879
"""

from __future__ import annotations

from typing import Any

from scipy import integrate as _scipys

from gpugrad.scipy.calling import public
from gpugrad.scipy.integrate import initial_values, quadrature
from gpugrad.scipy.integrate.initial_values import read
from gpugrad.scipy.integrate.sampled import weighted
from gpugrad.scipy.signatures import lazy

_SAMPLED = ["cumulative_simpson", "cumulative_trapezoid", "fixed_quad", "newton_cotes", "romb"]
_SAMPLED += ["simpson", "trapezoid"]
_SOLVERS = ("BDF", "DOP853", "OdeSolver", "RK23", "RK45", "Radau")
_OLD = ("dop", "lsoda", "odepack", "quadpack", "test", "vode")

__all__ = sorted(n for n in _scipys.__all__ if n not in _OLD)


def _found(name: str) -> Any:
    for module in (initial_values, quadrature):
        if name in vars(module):
            return vars(module)[name]
    scipys = getattr(_scipys, name)
    if name in _SAMPLED:
        function = getattr(read("_quadrature"), name)
        if name in ("romb", "simpson", "trapezoid"):
            function = weighted(function, scipys)
        return function if name == "fixed_quad" else public(function, scipys)
    if name in _SOLVERS:
        return getattr(read("_ivp.ivp"), name)
    if name in ("DenseOutput", "OdeSolution"):
        return getattr(read("_ivp.base" if name == "DenseOutput" else "_ivp.common"), name)
    return scipys if isinstance(scipys, type) else quadrature.passing(scipys)


__getattr__, __dir__ = lazy(globals(), _found)
