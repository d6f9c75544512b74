"""SciPy's solvers on the host, called with functions of Tensors; differentiable solutions."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize as scipys
from scipy.optimize import OptimizeWarning

from gpugrad.array_api.numpy_results import as_tensors
from gpugrad.autodiff.recorder import recording_stopped, watched_in
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import nest
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.devices import Device, default_device, put
from gpugrad.core.listening import recorders, threads
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.errors import ArgumentError, DTypeError, GpugradError
from gpugrad.errors.classes import warning_like
from gpugrad.scipy.signatures import with_signature
from gpugrad.transforms.custom import custom_gradient
from gpugrad.transforms.derivatives import grad, jvp
from gpugrad.transforms.implicit import implicit_diff
from gpugrad.transforms.jacobians import jacobian

Function = Callable[..., Any]


def as_scipy(formula: Function) -> Function:
    """The function with the signature of SciPy's of that name; it gets a dict of all arguments."""
    return with_signature(formula, scipys, lambda bound: formula(bound.arguments))


def solve(name: str, given: dict[str, Any]) -> Any:
    """SciPy's result for arguments that are NumPy arrays and functions of them."""
    function, passed = getattr(scipys, name), {}
    for key, is_rest, default in _parameters(function):
        if is_rest:
            passed.update(given.get(key, {}))
        elif key in given and given[key] is not default:  # deprecated ones warn if they are given
            passed[key] = given[key]
    with recording_stopped():
        return function(**passed)


@functools.cache
def _parameters(function: Any) -> list[tuple[str, bool, Any]]:
    """The names of parameters, whether each is ``**keywords``, and defaults."""
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind is p.VAR_KEYWORD, p.default) for p in parameters]


def arguments(given: dict[str, Any]) -> tuple[Any, ...]:
    """The further arguments of the user's function, which SciPy need not pass on."""
    args = given.pop("args", ())
    return args if isinstance(args, tuple) else (args,)


def home_of(*values: Any) -> Device:
    """The device of the first Tensor."""
    for x in values:
        if isinstance(x, Tensor):
            return x.device
        if isinstance(x, (tuple, list)) and any(isinstance(v, Tensor) for v in x):
            return home_of(*x)
    return default_device()


def on_host(name: str, x: Any) -> Any:
    """NumPy arrays for the Tensors in an argument; raises if their values are not known."""
    if isinstance(x, Tensor):
        if not recorders and type(x._data) is np.ndarray:
            return x.numpy()
        with recording_stopped():
            try:
                return x.numpy()
            except GpugradError as error:
                raise ArgumentError(
                    f"{name}: the solver's steps depend on values, which are not known in "
                    f"gg.function and gg.vmap. Call it outside of them. {error}"
                ) from None
    if type(x) in (tuple, list):
        return type(x)(on_host(name, v) for v in x)
    return x


def for_scipy(name: str, f: Any, home: Device) -> Any:
    """A user's function with NumPy arrays as its arguments and results; others as they are."""
    if not callable(f) or isinstance(f, type) or type(f).__module__.startswith("scipy."):
        return f

    @functools.wraps(f)
    def call(*args: Any, **keywords: Any) -> Any:
        y = f(*[on_device(x, home) if isinstance(x, _ARRAYS) else x for x in args], **keywords)
        if threads.stack and watched_in(y):  # not in `solve`, which stops all recorders
            raise DTypeError(
                f"{name}: has no derivative, and a tape watches what its function reads. Say that "
                "these are constants with gg.stop_gradient(x), or call minimize, root, "
                "least_squares or curve_fit."
            )
        y = on_host(name, y)
        return y[()] if isinstance(y, np.ndarray) else y

    return call


_ARRAYS = (float, np.ndarray, np.generic)


def wrap_functions(name: str, given: dict[str, Any], keys: str, args: Any, home: Device) -> None:
    """Replace the user's functions among the arguments by ones for SciPy, without `args`."""
    for key in keys.split():
        f = given[key]
        if callable(f) and not isinstance(f, type):
            given[key] = for_scipy(name, functools.partial(_with_args, f, args), home)


def _with_args(f: Function, args: tuple[Any, ...], *x: Any) -> Any:
    return f(*x, *args)


def on_device(x: Any, home: Device) -> Tensor:
    """A Tensor of a NumPy array or a number, which is float64."""
    return x if isinstance(x, Tensor) else wrap(put(np.asarray(x), home))


def scalar(f: Function) -> Function:
    """An objective whose result is one 0-d Tensor; raises SciPy's error for other shapes."""

    def objective(x: Tensor) -> Tensor:
        y = f(x)
        if not isinstance(y, Tensor):
            return y
        if y.size != 1:
            raise ValueError("The user-provided objective function must return a scalar value.")
        return xp.reshape(y, ()) if y.ndim else y

    return objective


def vector(f: Function) -> Function:
    """A function whose result is one Tensor, also of a list of Tensors."""

    def function(*args: Any) -> Any:
        y = f(*args)
        if isinstance(y, (list, tuple)) and any(isinstance(v, Tensor) for v in y):
            return xp.stack([tensor(v) for v in y])
        return y

    return function


class _Strict(GradientTape):
    """A tape that does not let `math` compute with what it watches."""

    _strict = True


def has_gradient(f: Function, x: Tensor) -> bool:
    """Whether a function computes with Tensors, so that it need not be differenced.

    Raises:
        DTypeError: it has no derivative by `x`, but by Tensors that somebody watches.
    """
    # raises if the function itself cuts a gradient
    by_others = bool(threads.stack) and watched_in(f(x))
    if x.dtype.kind != "f":
        return False
    with recording_stopped(), _Strict(watch_accessed_variables=False) as tape:
        tape.watch(x)
        try:
            return isinstance(f(x), Tensor)
        except DTypeError as error:  # it would cut a gradient
            if by_others:
                raise DTypeError(
                    "A solution has no gradient if its function has none by its first argument: "
                    f"write it with gg's functions, not with those of math. {error}"
                ) from None
            return False


def slopes(f: Function) -> Function:
    """The Jacobian of a function of a vector; by columns, if these are few, as in fits."""
    by_rows, by_columns = jacobian(f), jacobian(f, mode="forward")
    has_batches = True

    def matrix(x: Tensor) -> Tensor:
        nonlocal has_batches
        if x.ndim != 1 or not 0 < x.size <= FEW:
            return by_rows(x)
        if x.size > FEWEST and has_batches:
            try:
                return by_columns(x)
            except GpugradError:  # it has an op that takes one tangent at a time
                has_batches = False
        units = on_device(np.eye(x.size, dtype=x.dtype), x.device)
        return xp.stack([jvp(f, [x], [unit])[1] for unit in units], axis=-1)

    return matrix


FEW = 20
"""The number of unknowns up to which a Jacobian is computed by columns."""
FEWEST = 2
"""The number up to which each of the columns is computed alone: a batch takes as long as three."""


def tensors_in(result: Any, home: Device) -> Any:
    """A result of SciPy with Tensors for its arrays, in place if it is an OptimizeResult."""
    if isinstance(result, dict):
        for key, value in result.items():
            result[key] = tensors_in(value, home)
        return result
    if isinstance(result, (np.ndarray, np.floating, np.complexfloating)):
        return on_device(result, home) if result.dtype.kind in "biufc" else result
    if isinstance(result, tuple):
        return tuple(tensors_in(v, home) for v in result)
    return result.item() if isinstance(result, np.generic) else as_tensors(result)


def solution(
    name: str, x: Any, residual: Function, *, failure: str | None = None, solve: Any = None
) -> Any:
    """A solution of ``residual(x) == 0`` with the derivatives of the implicit function theorem.

    They are by all that the residual reads. Without a tape or another recorder it is the Tensor.

    Args:
        name: SciPy's function.
        x: a Tensor, or a nest of them.
        residual: a function of it.
        failure: SciPy's message, if it did not converge.
        solve: as for `implicit_diff`.
    """
    if not threads.stack:
        return x
    solved = implicit_diff(residual, solve=solve)(lambda: x)()
    if failure is None:
        return solved
    with recording_stopped():
        size = max(float(xp.max(xp.abs(leaf))) for leaf in nest.flatten(residual(x)))
    failure = " ".join(failure.split()).rstrip(".")
    message = (
        f"{name}: did not converge: {failure}. The condition of its solution misses 0 by "
        f"{size:.3g}, so its gradient, which assumes 0, may be wrong."
    )
    warnings.warn(message, warning_like(OptimizeWarning), stacklevel=4)
    return nest.map_structure(lambda x: _doubtful(x, message), solved)


def _doubtful(x: Any, message: str) -> Any:
    """The Tensor, whose backward pass warns."""

    @custom_gradient
    def warned(x: Tensor) -> Any:
        def backward(g: Tensor) -> Tensor:
            kind = warning_like(OptimizeWarning)
            warnings.warn(f"gradient of {message}", kind, stacklevel=2)
            return g

        return xp.positive(x), backward

    return warned(x)


def stationary(f: Function, x: Tensor, bounds: Sequence[Tensor] | None) -> Function:
    """The residual of a minimum: the gradient, or the distance to the bound that `x` lies on."""
    slope = grad(f)
    if bounds is None:
        return slope
    (lower, upper), (at_lower, at_upper) = bounds, on_bounds(x, bounds)

    def residual(x: Tensor) -> Tensor:
        return xp.where(at_lower, x - lower, xp.where(at_upper, x - upper, slope(x)))

    return residual


def on_bounds(x: Tensor, bounds: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Masks of the elements on the lower and on the upper bounds, which solvers reach exactly."""
    with recording_stopped():
        near = 1e-9 * xp.maximum(1.0, xp.abs(x))
        lower, upper = bounds
        return xp.less_equal(x, lower + near), xp.greater_equal(x, upper - near)


def conjugate_gradients(matvec: Function, b: Tensor) -> Tensor:
    """Solves a symmetric system by products, for more unknowns than a matrix should have."""
    x, r = b * 0, b
    p, rr = r, xp.sum(r * r)
    stop = 1e-24 * float(rr)
    for _ in range(10 * b.size):
        if float(rr) <= stop:
            break
        q = matvec(p)
        step = rr / xp.sum(p * q)
        x, r = x + step * p, r - step * q
        rr, before = xp.sum(r * r), rr
        p = r + rr / before * p
    return x


DENSE = 1000
"""The number of unknowns up to which a gradient solves with a matrix of second derivatives."""
