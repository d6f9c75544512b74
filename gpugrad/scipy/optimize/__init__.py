"""`scipy.optimize` on Tensors: SciPy's methods, with our gradients, and differentiable solutions.

SciPy calls a user's function with Tensors, and gets its gradient, Jacobian or products with its
Hessian where the user gives none. A solution has derivatives in both modes and to any order by
all that the function reads: `args`, Variables, and watched Tensors that it closes over. They come
from the equation that the solution satisfies, not from the steps. Functions without a derivative,
as `linprog`, compute with values and raise if a tape watches an argument.

>>> def width(a):
...     return gg.scipy.optimize.brentq(lambda x: gg.exp(x) - a, 0, 5)
>>> print(f"{gg.grad(width)(gg.asarray(np.array(2.0))):.4f}")
0.5000
"""

from __future__ import annotations

from typing import Any

from scipy import optimize as _optimize

from gpugrad.scipy.optimize import differences, fits, minima, roots
from gpugrad.scipy.signatures import lazy

__all__ = sorted(n for n in _optimize.__all__ if n != "test")


def _found(name: str) -> Any:
    named = {*minima.GLOBAL, *roots.BRACKETING}
    for module in (minima, roots, fits, differences):
        function = vars(module).get(name)
        if name in named and hasattr(module, name):
            function = getattr(module, name)
        if function is not None and function.__module__ == module.__name__:
            break
    else:
        function = differences.without_derivative(name)
    return function


__getattr__, __dir__ = lazy(globals(), _found)
