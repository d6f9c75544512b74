"""Custom derivatives: override the gradient that would follow from the operations."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np

from gpugrad.autodiff.batched import Batched
from gpugrad.autodiff.borders import give_each, give_each_example, inside_levels_of, meet_levels
from gpugrad.autodiff.recorder import RecordedCall, number
from gpugrad.autodiff.tape import GradientTape
from gpugrad.autodiff.upstream import zeros_for
from gpugrad.core import nest
from gpugrad.core.arguments import CALLABLE
from gpugrad.core.backend import ARRAYS, NUMPY, TENSOR, as_array, is_inexact
from gpugrad.core.holders import opened
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.listening import graphs, recorders
from gpugrad.core.settings import is_training, training
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, StructureError, saying_where
from gpugrad.trace.array import current_trace
from gpugrad.transforms.accesses import Accesses, is_number, watched_in_objects

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", covariant=True)
F = TypeVar("F", bound=Function)


class _CustomCall:
    """One call of a custom_gradient function."""

    def __init__(
        self,
        name: str,
        grad_fn: Function,
        inputs: list[Tensor],
        n_positional: int,
        variables: list[Variable],
        is_input: list[bool],
        closed_over: int,
        on_arrays: Function | None = None,
    ) -> None:
        self.name, self._grad_fn, self._n_positional = name, grad_fn, n_positional
        self._on_arrays = on_arrays
        self._inputs: list[Any] = [(x.shape, x.dtype) for x in inputs]  # they may be freed
        self._inputs += [(None, None)] * closed_over
        self._variables = variables
        self._is_input = is_input + [True] * closed_over  # for each leaf: others are text, or None
        self._trains = is_training()

    def gradients(self, xp: Any, g: tuple[Any, ...]) -> list[Any]:
        """The result of the user's gradient function for the upstream gradients."""
        if xp is NUMPY and self._on_arrays is not None and not recorders:
            found = self._on_arrays(*g) if all(type(x) is np.ndarray for x in g) else None
            if found is not None:
                pairs = zip(found, self._inputs, strict=True)
                return [self._fit_array(a, shape, dtype) for a, (shape, dtype) in pairs]
        upstream = [copy(x) if xp is TENSOR else wrap(as_array(x, np.ndarray)) for x in g]
        with inside_levels_of(*upstream), training(self._trains):  # it may recompute layers
            return self._fitted(xp, upstream, *self._call(upstream))

    def _call(self, upstream: list[Tensor]) -> tuple[list[Any], list[Any]]:
        """The user's gradients by the inputs and by the Variables."""
        if not self._variables:
            return self._by_inputs(self._grad_fn(*upstream)), []
        pair = self._grad_fn(*upstream, variables=self._variables)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise StructureError(
                f"{self.name}: with `variables`, the gradient function must return "
                "(gradients of the arguments, gradients of the variables)."
            )
        by_variables = nest.flatten(pair[1])
        if len(by_variables) != len(self._variables):
            raise StructureError(
                f"{self.name}: the gradient function returned {len(by_variables)} gradients for "
                f"{len(self._variables)} variables."
            )
        return self._by_inputs(pair[0]), by_variables

    def _by_inputs(self, returned: Any) -> list[Any]:
        """One gradient for each input; keyword-only arguments may have been left out."""
        grads = nest.flatten(returned)
        if len(grads) == len(self._is_input):  # one for each argument, as in TensorFlow
            grads = [g for g, is_one in zip(grads, self._is_input, strict=True) if is_one]
        if len(grads) == self._n_positional and self._n_positional:
            grads += [None] * (len(self._inputs) - len(grads))
        if len(grads) != len(self._inputs):
            raise StructureError(
                f"{self.name}: the gradient function returned {len(grads)} gradients for "
                f"{len(self._inputs)} arguments; return one each (None for no gradient)."
            )
        return grads

    def _fitted(
        self, xp: Any, upstream: list[Tensor], by_inputs: list[Any], by_variables: list[Any]
    ) -> list[Any]:
        """All gradients in the reading `xp`, each in the dtype of its input or Variable."""
        for x in upstream:
            if type(x._data) is Batched:  # each example has its own gradient, even if all are equal
                by_inputs = [
                    None if g is None else give_each(tensor(g), x._data) for g in by_inputs
                ]
        inputs = [*self._inputs, *((v.shape, v.dtype) for v in self._variables)]
        pairs = zip([*by_inputs, *by_variables], inputs, strict=True)
        return [self._fit(xp, g, shape, dtype) for g, (shape, dtype) in pairs]

    def _fit_array(self, g: Any, shape: tuple[int, ...] | None, dtype: Any) -> Any:
        if g is None or (type(g) is np.ndarray and g.shape == shape and g.dtype == dtype):
            return g
        return self._fit(NUMPY, wrap(np.asarray(g)), shape, dtype)

    def _fit(self, xp: Any, g: Any, shape: tuple[int, ...] | None, dtype: Any) -> Any:
        if g is None:
            return None
        if not isinstance(g, IndexedSlices):
            g = tensor(g)
            if dtype is not None and g.dtype != dtype:
                g = TENSOR.astype(g, dtype)
        if shape is not None and g.shape != shape:
            raise ShapeError(
                f"{self.name}: the gradient function returned shape {g.shape} for an argument of "
                f"shape {shape}."
            )
        if xp is TENSOR:
            return g
        if isinstance(g, IndexedSlices):
            return IndexedSlices(g.values._data, g.indices._data, g.dense_shape)
        return g._data


@overload
def custom_gradient(f: Callable[P, tuple[R, Any]]) -> Callable[P, R]: ...
@overload
def custom_gradient(f: None = None) -> Callable[[Callable[P, tuple[R, Any]]], Callable[P, R]]: ...
def custom_gradient(f: Function | None = None) -> Function:
    """Give a function its own gradient; a decorator.

    Args:
        f: function of any nested arguments that returns ``(result, grad_fn)``. A Variable among its
            arguments is passed as a Tensor with its value at the call. ``grad_fn(*upstream)``
            receives one gradient for each Tensor of the result (zeros for unused ones). It returns
            one gradient for each numeric argument, in order (None for no gradient); or one for
            every argument, with None for those that are not numeric. If `f` reads trainable
            Variables that are not arguments, ``grad_fn(*upstream, variables=...)`` receives them,
            and must return ``(gradients of arguments, gradients of variables)``.

    Keyword arguments count like positional ones; keyword-only ones come last, and their gradients
    may be left out. The gradient applies in forward mode, too. The second derivative differentiates
    `grad_fn`. In the branches and loop bodies of a traced function `grad_fn` is traced with `f`, up
    to three derivatives.

    Raises:
        DTypeError: `f` reads a watched Tensor in an object among its arguments.
        StructureError: `grad_fn` takes no `variables` though `f` reads some, or it returned the
            wrong number of gradients.
        ShapeError: it returned a gradient whose shape is not the argument's.

    >>> @gg.custom_gradient
    ... def log1pexp(x):
    ...     e = gg.exp(x)
    ...     return gg.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    >>> round(gg.grad(log1pexp)(30.0).item(), 4)
    1.0
    """
    if f is None:
        return custom_gradient
    CALLABLE("custom_gradient", "f", f)
    signature = inspect.signature(f)
    name = getattr(f, "__name__", type(f).__name__)

    @functools.wraps(f)
    def with_own_gradient(*args: Any, **keywords: Any) -> Any:
        # no more: cloudpickle copies this function, and all globals that it reads, as `recorders`
        bound = signature.bind(*args, **keywords)
        return _with_own_gradient(f, name, bound.args, bound.kwargs)

    return with_own_gradient


def _with_own_gradient(
    f: Function, name: str, args: Any, keywords: Any, jvp: Function | None = None
) -> Any:
    """The result of a custom_gradient function, recorded with its own gradient, and its `jvp`."""
    if not keywords and all(type(x) is Tensor for x in args):  # no nests to walk
        args = positional = inputs = [_as_input(x) for x in args]
        is_input = [True] * len(inputs)
    else:
        args, keywords = nest.map_structure(_as_input, (args, keywords))
        positional = [x for x in nest.flatten(args) if isinstance(x, Tensor)]
        inputs = positional + [x for x in nest.flatten(keywords) if isinstance(x, Tensor)]
        leaves = nest.flatten((args, keywords))
        is_input = [isinstance(x, Tensor) for x in leaves]
        # the values of Variables now: a later assign must not reach grad_fn
        values = [x._read() if isinstance(x, Variable) else x for x in leaves]
        args, keywords = nest.pack((args, keywords), values)
    held = {}
    if recorders and not all(is_input):
        held = watched_in_objects(f, args, keywords)
    with Accesses(held) as read:
        pair = f(*args, **keywords)
    for i in read.used - read.variables.keys() - {x._id for x in inputs}:
        raise DTypeError(
            f"{name}: it reads a Tensor in {held[i]}, which a tape watches: the gradient would be "
            "lost. Pass the Tensor itself, or in a list, tuple, dict or dataclass; or let the "
            f"class of {held[i]} return it by `__gpugrad_tensor__(self, dtype)`."
        )
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not callable(pair[1]):
        raise StructureError(f"{name}: a custom_gradient function must return (result, grad_fn).")
    result, grad_fn = pair
    outs = [wrap(tensor(leaf)._data) for leaf in nest.flatten(result)]
    arguments = {x._id for x in inputs if isinstance(x, Variable)}
    variables = [v for i, v in sorted(read.variables.items()) if i not in arguments]
    if variables and not _takes_variables(grad_fn):
        raise StructureError(
            f"{name}: it reads the Variables {[v.name for v in variables]}, so its "
            "gradient function must take a keyword argument `variables`."
        )
    if recorders:
        others = getattr(grad_fn, "closed_over", [])  # `implicit_diff` finds them
        call = _CustomCall(name, grad_fn, inputs, len(positional), variables, is_input, len(others))
        push = None if jvp is None else functools.partial(_push, jvp, args)
        outs = _record(call, outs, [*inputs, *others], variables, push)
    return nest.pack(result, outs)


def record_primitive(
    name: str,
    outs: list[Tensor],
    inputs: list[Tensor],
    grad_fn: Function | None = None,
    on_arrays: Function | None = None,
    jvp: Function | None = None,
) -> list[Tensor]:
    """Tensors like `outs`, recorded as results of a function of `inputs` that reads nothing else.

    What `custom_gradient` and `custom_jvp` do for a function that has run already, in a third of
    the time.

    Args:
        name: the function's name.
        outs, inputs: floating-point Tensors.
        grad_fn: as `custom_gradient` takes it.
        on_arrays: the same for NumPy arrays while nothing is recorded, or None if it cannot say.
        jvp: a rule of `custom_jvp`, for forward mode, and for both if there is no `grad_fn`.
    """
    push = None if jvp is None else functools.partial(_push, jvp, inputs)
    if grad_fn is None:
        assert jvp is not None
        grad_fn = functools.partial(_transposed, jvp, inputs)
    everything = [True] * len(inputs)
    call = _CustomCall(name, grad_fn, inputs, len(inputs), [], everything, 0, on_arrays)
    return _record(call, [wrap(out._data) for out in outs], inputs, [], push)


def _takes_variables(grad_fn: Function) -> bool:
    accepted = inspect.signature(grad_fn).parameters
    return "variables" in accepted or any(p.kind is p.VAR_KEYWORD for p in accepted.values())


def _as_input(leaf: Any) -> Any:
    """A number or array among the arguments, as a Tensor that only `f` and `grad_fn` see."""
    leaf = opened(leaf)
    if not is_number(leaf) or isinstance(leaf, Variable):
        return leaf
    x = tensor(leaf)
    if graphs:
        number(x)
    return copy(x)  # grad_fn reads it later: ``leaf[i] = v`` must not reach it


def _push(jvp: Function, args: Any, tangents: Sequence[Any]) -> list[Tensor]:
    """The tangents of the results by a rule of `custom_jvp`."""
    _, pushed = jvp(args, _beside(args, tangents))
    return [tensor(t) for t in nest.flatten(pushed)]


def _transposed(jvp: Function, args: Any, *upstream: Any) -> list[Tensor | None]:
    """The gradients by the arguments by a rule of `custom_jvp`, which is linear in the tangents."""
    leaves = [x for x in nest.flatten(args) if isinstance(x, Tensor)]
    tangents = [zeros_for(x) if is_inexact(x.dtype) else None for x in leaves]
    watched = [t for t in tangents if t is not None]
    structure = _beside(args, tangents)
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(watched)
        _, pushed = jvp(args, structure)
    grads = iter(tape.gradient(nest.flatten(pushed), watched, list(upstream), "zero"))
    return [None if t is None else next(grads) for t in tangents]


def _beside(args: Any, tangents: Sequence[Any]) -> Any:
    """Tangents in the structure of arguments, zeros for missing ones; None beside integers."""
    rest = iter(tangents)

    def tangent(x: Any) -> Any:
        t = next(rest) if isinstance(x, Tensor) else None
        return zeros_for(x) if t is None and isinstance(x, Tensor) and is_inexact(x.dtype) else t

    return nest.map_structure(tangent, args)


def _record(
    call: _CustomCall,
    outs: list[Tensor],
    inputs: list[Tensor],
    variables: list[Variable],
    push: Function | None,
) -> list[Tensor]:
    """The results of a call, offered to the recorders of this thread."""
    sources = [*inputs, *variables]
    for x in sources:
        x._read()  # if recording was stopped, no tape knows of a Variable yet
    if graphs:
        for x in inputs:
            number(x)
    if trace := current_trace():
        outs = trace.with_gradient(call.name, outs, sources, call.gradients)
    if Batched in ARRAYS:  # each example may get its own gradient with respect to a shared value
        outs = [wrap(give_each_example(out._data)) for out in outs]
        sources = meet_levels(*sources, *outs)[: len(sources)]
        push = None
    RecordedCall(call.name, call.gradients, push=push).record(outs, sources)
    return outs


class WithRule(Protocol[P, C]):
    """A function as `custom_jvp` returns it."""

    def __call__(self, *args: P.args, **keywords: P.kwargs) -> C:
        """The function's result."""

    def defjvp(self, rule: F) -> F:
        """Set the rule of the derivative; a decorator."""


def custom_jvp(f: Callable[P, R]) -> WithRule[P, R]:
    """Give a function its own derivative in forward mode; a decorator, as in JAX.

    ``f.defjvp(rule)`` sets the rule: ``rule(primals, tangents)`` returns the result and its
    tangent, which must be linear in the tangents. Reverse mode transposes the rule; both modes
    work, to any order.

    Args:
        f: function of nested arguments that returns a nest of Tensors.

    Raises:
        ArgumentError: the function is called before it has a rule.

    >>> @gg.custom_jvp
    ... def log1pexp(x):
    ...     return gg.log(1 + gg.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), gg.sigmoid(x) * t
    >>> gg.grad(log1pexp)(50.0).item()
    1.0
    """
    CALLABLE("custom_jvp", "f", f)
    rules: list[Function] = []
    function: Function = f
    name = getattr(f, "__name__", type(f).__name__)

    def transposed(*args: Any) -> Any:
        return function(*args), functools.partial(_transposed, rules[-1], args)

    @functools.wraps(f)
    def with_own_jvp(*args: Any) -> Any:
        if not rules:
            raise ArgumentError(f"custom_jvp: {name} has no rule yet; set it with @{name}.defjvp.")
        return _with_own_gradient(transposed, name, args, {}, rules[-1])

    def defjvp(rule: Function) -> Function:
        rules.append(rule)
        return rule

    with_own_jvp.defjvp = defjvp  # type: ignore[attr-defined]  # the decorator for the rule
    return cast(WithRule[P, R], with_own_jvp)


@saying_where
def grad_pass_through(f: Callable[P, R]) -> Callable[P, R]:
    """Make a function with the values of `f` and the gradient of the identity (straight-through).

    >>> gg.grad(lambda x: gg.grad_pass_through(gg.round)(x) ** 2)(1.3).item()
    2.0
    """
    CALLABLE("grad_pass_through", "f", f)

    @functools.wraps(f)
    @custom_gradient
    def passed(*args: Any, **keywords: Any) -> Any:
        def grad_fn(*upstream: Any, variables: Sequence[Variable] | None = None) -> Any:
            return upstream if variables is None else (upstream, [None] * len(variables))

        return f(*args, **keywords), grad_fn

    return passed
