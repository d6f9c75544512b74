"""Recompute activations in the backward pass instead of keeping them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, ParamSpec, TypeVar

from gpugrad.autodiff.gradients import UnconnectedGradients
from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import nest
from gpugrad.core.arguments import CALLABLE
from gpugrad.core.backend import is_inexact
from gpugrad.core.decorated import public_name
from gpugrad.core.listening import graphs, threads
from gpugrad.core.scopes import Scope, scopes
from gpugrad.core.tensor import Tensor
from gpugrad.core.user_code import user_line
from gpugrad.core.variable import Variable
from gpugrad.errors import TapeError
from gpugrad.ops.random.draws import noting, repeating
from gpugrad.trace.tracing import Tracing
from gpugrad.transforms.accesses import Accesses
from gpugrad.transforms.custom import custom_gradient

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


def recompute_grad(f: Callable[P, R]) -> Callable[P, R]:
    """Make a function that keeps no activations: the backward pass recomputes them.

    Args:
        f: function of any nested arguments that returns a nest of Tensors. It is called once
            forward and once in each backward pass, where it draws the same random numbers. A
            Variable among its arguments is passed as a Tensor with its value at the call. Its
            arguments and the Variables that it reads have gradients. In the backward pass Variables
            have the values from before the call, and what `f` assigns to them has no effect. Do not
            write to Tensors that it closes over before the backward pass: it would read the new
            values.

    Raises:
        TapeError: `f` closes over a Tensor that a tape watches: make it an argument. (TensorFlow
            loses its gradient silently.)
        ArgumentError: in the backward pass, `f` drew other random numbers than before.

    >>> gg.grad(gg.recompute_grad(lambda x: gg.sin(x) * x))(0.0).item()
    0.0
    """
    CALLABLE("recompute_grad", "f", f)
    return _Recomputed(f)


class _Recomputed:
    """The result of `recompute_grad`; copying or pickling it copies or pickles the function."""

    def __init__(self, f: Function) -> None:
        functools.update_wrapper(self, f)
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        self._call = custom_gradient(functools.partial(_recomputed, f))

    def __call__(self, /, *args: Any, **keywords: Any) -> Any:
        return self._call(*args, **keywords)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __reduce__(self) -> Any:
        return public_name(self) or (recompute_grad, (self.__wrapped__,))  # type: ignore[attr-defined]


class _Outside(Accesses):
    """Also notes where ops read Tensors that an enclosing recorder watches.

    Attributes:
        before: the arrays of all Variables that are read or assigned to, from before that, by
            serial number.
    """

    def __init__(self) -> None:
        super().__init__()
        tapes = (r.known for r in threads.stack if r not in graphs)  # a Graph knows every Tensor
        self.known = frozenset().union(*tapes)
        self.read: dict[int, str] = {}
        self.before: dict[int, Any] = {}

    def touched(self, variable: Variable) -> None:
        """Note a Variable that is read, and its value."""
        super().touched(variable)
        self.assigned(variable)

    def assigned(self, variable: Variable) -> None:
        """Note the value of a Variable before it gets another one."""
        self.before.setdefault(variable._id, variable._data)

    def take(self, entry: Any, out: Any) -> None:
        """Note the serial numbers that an op reads, with the user's line."""
        op, _, ids, _, _, _ = entry
        for i in self.known.intersection(ids) - self.read.keys():
            self.read[i] = f"{user_line()} ({op.name})"


def _recomputed(f: Function, /, *args: Any, **keywords: Any) -> Any:
    """The value, and the gradient function, which calls `f` again."""
    inputs = [x for x in nest.flatten((args, keywords)) if isinstance(x, Tensor)]
    outside = _Outside()
    with recording_stopped(keep=(Accesses, Tracing)), noting() as drawn, outside:
        result = f(*args, **keywords)
    lost = outside.read.keys() - {x._id for x in inputs} - outside.variables.keys()
    if lost:
        raise TapeError(
            f"recompute_grad: {getattr(f, '__name__', f)} reads at {outside.read[min(lost)]} a "
            "Tensor that a tape watches and that is not an argument: its gradient would be "
            "lost. Make it an argument, or read gg.stop_gradient of it."
        )

    asks_for_all = any(r in graphs for r in threads.stack)  # a Graph's sources come later

    def grad_fn(*upstream: Any, variables: Sequence[Variable] = ()) -> Any:
        # a Tensor that is passed twice counts once: its gradient covers all its uses
        wanted: dict[int, Tensor] = {}
        followed = [x for x in inputs if asks_for_all or x._id in outside.known]
        for k, x in enumerate((*followed, *variables), 1):
            if is_inexact(x.dtype):
                wanted.setdefault(x._id or -k, x)
        start = Scope(scopes.get(get_ident(), {}) | outside.before)
        with start, GradientTape(watch_accessed_variables=False) as tape, repeating(drawn):
            tape.watch(list(wanted.values()))
            again = nest.flatten(f(*args, **keywords))
        zero = UnconnectedGradients.ZERO
        grads = tape.gradient(again, list(wanted.values()), list(upstream), zero)
        by_source = dict(zip(map(id, wanted.values()), grads, strict=True))
        by_inputs = [by_source.pop(id(x), None) for x in inputs]
        by_variables = [by_source.pop(id(v), None) for v in variables]
        return (by_inputs, by_variables) if variables else by_inputs

    return result, grad_fn
