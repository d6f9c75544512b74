"""tf.function and control flow."""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.compat.tf.arrays import constant
from gpugrad.compat.tf.convert import tensor
from gpugrad.compat.tf.debugging import assert_greater, assert_less_equal
from gpugrad.compat.tf.errors import OutOfRangeError
from gpugrad.compat.tf.shapes import TensorSpec, numpys
from gpugrad.core import nest
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, DTypeError, GpugradWarning, TraceError


class ConcreteFunction:
    """A function of fixed shapes and dtypes, as `Function.get_concrete_function` gives it."""

    def __init__(self, function: Function, specs) -> None:
        self._function, self._specs = function, specs
        self.name = function.__name__

    def __call__(self, *args, **keywords) -> Any:
        """The result for Tensors; the other arguments, which may be left out, are fixed."""
        positional, named = self._specs
        given, bound = list(args), []
        for spec in positional:
            is_tensor = isinstance(spec, _OF_TENSORS)
            take = bool(given) and (is_tensor or _is_equal(given[0], spec))
            value = given.pop(0) if take else spec
            bound.append(value if is_tensor else spec)
        names = [k for k, v in named.items() if isinstance(v, _OF_TENSORS) and k not in keywords]
        for name in names[: len(given)]:  # in the order in which they were named
            keywords[name] = given.pop(0)
        fixed = {k: v for k, v in named.items() if not isinstance(v, _OF_TENSORS)}
        wrong = {k: v for k, v in keywords.items() if not _is_equal(v, fixed.get(k, v))}
        wrong.update({k: v for k, v in keywords.items() if k not in named})
        if given or wrong:
            raise DTypeError(f"{self.name}: {[*given, wrong]!r:.90} does not fit {self._specs}.")
        return self._function(*bound, **{**fixed, **keywords})

    structured_input_signature = property(lambda self: self._specs)

    @property
    def graph(self) -> Any:
        """The program: see `gpugrad.function`'s ``lower``."""
        args = nest.map_structure(_example, self._specs[0])
        return self._function.traced.lower(*args, **nest.map_structure(_example, self._specs[1]))


_OF_TENSORS = (TensorSpec, Tensor, np.ndarray)


def _is_equal(a, b) -> bool:
    return a is b or (not isinstance(a, Tensor) and bool(np.all(a == b)))


def _example(spec) -> Any:
    if not isinstance(spec, TensorSpec):
        return spec
    return gg.zeros(tuple(n or 1 for n in spec.shape or ()), dtype=spec.dtype)


class Function:
    """`tf.function`: traced once for each signature and replayed, on `gpugrad.function`.

    Python's ``if`` and ``while`` on values of Tensors cannot be traced, and are not rewritten as
    AutoGraph does. A function with them runs eagerly from then on; a warning says so, once.
    """

    def __init__(self, f: Callable[..., Any], input_signature=None) -> None:
        functools.update_wrapper(self, f)
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        self.python_function, self.input_signature = f, input_signature
        self.traced = gg.function(f)
        self._eager = False

    def __call__(self, *args, **keywords) -> Any:
        """The result, by a replay or a new trace."""
        if self.input_signature is not None:
            own = len(args) - len(self.input_signature)  # `self` of a method
            pairs = zip(self.input_signature, args[own:], strict=True)
            args = (*args[:own], *(self._checked(spec, value) for spec, value in pairs))
        if not (self._eager or _run_eagerly[0]):
            given = nest.map_structure(_argument, (args, keywords))
            try:
                return _values(self.traced(*given[0], **given[1]))
            except TraceError as error:
                self._eager = True
                name = self.__name__
                message = f"tf.function: {name} runs eagerly, because it cannot be traced. {error}"
                warnings.warn(message, GpugradWarning, stacklevel=2)
        return _values(self.python_function(*args, **keywords))

    def _checked(self, spec, value) -> Any:
        """An argument as a Tensor that fits its spec."""
        if not isinstance(spec, TensorSpec):
            return value
        x = tensor(value, spec.dtype)
        if not spec.is_compatible_with(x):
            raise DTypeError(
                f"{self.__name__}: an argument of shape {x.shape} and dtype {x.dtype} does not fit "
                f"{spec}."
            )
        return x

    def __get__(self, instance, owner=None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def get_concrete_function(self, *args, **keywords) -> ConcreteFunction:
        args = args or tuple(self.input_signature or ())
        return ConcreteFunction(self, (args, keywords))

    def experimental_get_tracing_count(self) -> int:
        return int(self.traced.cache_info().traces)

    def pretty_printed_concrete_signatures(self) -> str:
        return f"{self.__name__}: {self.traced.cache_info().traces} traces"

    def __repr__(self) -> str:
        return f"<tf.function {self.__name__}>"


_run_eagerly = [False]


def run_functions_eagerly(run_eagerly: bool) -> None:
    _run_eagerly[0] = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Whether `run_functions_eagerly` is on."""
    return _run_eagerly[0]


def _argument(x) -> Any:
    return tensor(x) if isinstance(x, np.ndarray) else x


def _values(result) -> Any:
    """A result with the value of each Variable, and Tensors of arrays and numbers."""
    return nest.map_structure(_value, result)


def _value(x) -> Any:
    if isinstance(x, gg.Variable):
        return x.value()
    return tensor(x) if isinstance(x, (np.ndarray, np.number, int, float, complex)) else x


def function(func=None, input_signature=None, autograph=True, *others, **options) -> Any:
    """A traced function; see `Function`.

    >>> import gpugrad.compat.tf as tf
    >>> @tf.function
    ... def f(x):
    ...     return tf.reduce_sum(x ** 2)
    >>> f(tf.constant([1.0, 2.0])).numpy().item()
    5.0
    """
    if func is None:
        return functools.partial(function, input_signature=input_signature, autograph=autograph)
    return Function(func, input_signature)


def cond(pred, true_fn=None, false_fn=None, name=None) -> Any:
    return gg.cond(tensor(pred), true_fn, false_fn)


def pairs_of(pred_fn_pairs) -> list[tuple[Any, Callable[[], Any]]]:
    """The pairs of a condition and a function, which may be in a dict."""
    return list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)


def check_predicates(predicates, default=None, exclusive=False) -> Tensor:
    """How many conditions of `case` hold: with no default at least one, if exclusive at most."""
    n = gg.sum(gg.stack([gg.astype(tensor(p), "int32") for p in predicates]))
    if default is None:
        assert_greater(n, 0, "case: no condition holds, and there is no default.")
    if exclusive:
        assert_less_equal(n, 1, "case: several conditions hold, with exclusive=True.")
    return n


def choose(cond, pairs, default=None) -> Any:
    """The function of the first condition that holds; by default that of the last one."""
    (pred, f), *rest = pairs
    if not rest:
        return cond(pred, f, f if default is None else default)
    return cond(pred, f, lambda: choose(cond, rest, default))


def case(pred_fn_pairs, default=None, exclusive=False, strict=False, name=None) -> Any:
    pairs = pairs_of(pred_fn_pairs)
    if default is None:
        check_predicates([p for p, _ in pairs])
    return choose(cond, pairs, default)


def branches(equals, branch_fns, default) -> tuple[list[tuple[Any, Any]], Any]:
    """The pairs for `choose` of functions by number, and the default, which is the last one."""
    pairs = list(branch_fns.items() if isinstance(branch_fns, dict) else enumerate(branch_fns))
    pairs = [p[1] if isinstance(p[1], tuple) else p for p in pairs]  # of (number, function)
    return [(equals(i), f) for i, f in pairs], default or pairs[-1][1]


def switch_case(branch_index, branch_fns, default=None, name=None) -> Any:
    index = tensor(branch_index)
    return choose(cond, *branches(lambda i: index == i, branch_fns, default))


def while_loop(
    cond,
    body,
    loop_vars,
    shape_invariants=None,
    parallel_iterations=10,
    back_prop=True,
    swap_memory=False,
    maximum_iterations=None,
    name=None,
) -> Any:
    start = nest.map_structure(lambda v: v if isinstance(v, TensorArray) else tensor(v), loop_vars)
    arrays = any(isinstance(v, TensorArray) for v in nest.flatten(start))
    call: Any = (lambda f, v: f(**v)) if isinstance(start, dict) else (lambda f, v: f(*v))

    def advance(values) -> Any:
        new = call(body, values)
        new = new if isinstance(new, (list, tuple, dict)) else [new]
        leaves = [v if isinstance(v, TensorArray) else tensor(v) for v in nest.flatten(new)]
        if len(leaves) != len(nest.flatten(start)):
            raise ArgumentError(f"while_loop: {new!r:.60} has not the structure of loop_vars.")
        return nest.pack(start, leaves)

    if not arrays and maximum_iterations is None and shape_invariants is None:
        return gg.while_loop(lambda v: tensor(call(cond, v)), advance, start)
    values, most = start, np.inf if maximum_iterations is None else int(maximum_iterations)
    n = 0
    while n < most and bool(call(cond, values)):
        values, n = advance(values), n + 1
    return values


def map_fn(
    fn,
    elems,
    dtype=None,
    parallel_iterations=None,
    back_prop=True,
    swap_memory=False,
    infer_shape=True,
    name=None,
    fn_output_signature=None,
) -> Any:
    elems = nest.map_structure(tensor, elems)
    n = nest.flatten(elems)[0].shape[0]
    results = [fn(nest.map_structure(lambda x, i=i: x[i], elems)) for i in np.arange(n).tolist()]
    if not results:
        spec = fn_output_signature or dtype or nest.flatten(elems)[0].dtype
        shape = getattr(spec, "shape", None) or ()
        return gg.zeros((0, *shape), dtype=getattr(spec, "dtype", spec))
    columns = zip(*map(nest.flatten, results), strict=True)
    return nest.pack(results[0], [gg.stack([tensor(x) for x in column]) for column in columns])


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True) -> Any:
    return gg.vectorized_map(fn, nest.map_structure(tensor, elems))


def scan(
    fn,
    elems,
    initializer=None,
    parallel_iterations=10,
    back_prop=True,
    swap_memory=False,
    infer_shape=True,
    reverse=False,
    name=None,
) -> Any:
    elems = nest.map_structure(tensor, elems)
    if initializer is None:
        first = nest.map_structure(lambda x: x[-1 if reverse else 0], elems)
        rest = nest.map_structure(lambda x: x[:-1] if reverse else x[1:], elems)
        later = scan(fn, rest, first, reverse=reverse)
        join = lambda a, b: gg.concat([b, a[None]] if reverse else [a[None], b])
        both = zip(nest.flatten(first), nest.flatten(later), strict=True)
        return nest.pack(first, [join(a, b) for a, b in both])

    def step(carry, x) -> Any:
        new = nest.pack(carry, [tensor(v) for v in nest.flatten(fn(carry, x))])
        return new, new

    return gg.scan(step, nest.map_structure(tensor, initializer), elems, reverse=reverse)[1]


def _fold(reverse: bool) -> Callable[..., Any]:
    def fold(
        fn,
        elems,
        initializer=None,
        parallel_iterations=10,
        back_prop=True,
        swap_memory=False,
        name=None,
    ) -> Any:
        results = scan(fn, elems, initializer, reverse=reverse)
        return nest.map_structure(lambda x: x[0 if reverse else -1], results)

    return fold


foldl, foldr = _fold(False), _fold(True)


def py_function(func=None, inp=None, Tout=None, name=None) -> Any:
    """A Python function of Tensors, which is differentiated; without a function a decorator."""
    if func is None:
        return lambda f: lambda *inputs: py_function(f, inputs, Tout)
    return func(*(() if inp is None else inp))


def numpy_function(func=None, inp=None, Tout=None, *others, **options) -> Any:
    """A function of NumPy arrays, which has no gradient; without a function a decorator."""
    if func is None:
        return lambda f: lambda *inputs: numpy_function(f, inputs, Tout)
    result = func(*(np.asarray(tensor(x).numpy()) for x in inp))
    return nest.map_structure(constant, result)


custom_gradient = gg.custom_gradient


def group(*inputs, name=None, **options) -> None:
    """Nothing: in TensorFlow 2 operations have run already."""


def hessians(ys, xs, gate_gradients=False, aggregation_method=None, name=None) -> list[Any]:
    found = []
    for x in xs if isinstance(xs, (list, tuple)) else [xs]:
        (slope,) = gg.gradients(ys, [x])
        flat = gg.ravel(slope)
        rows = [gg.gradients(flat[i], [x])[0] for i in np.arange(flat.size).tolist()]
        rows = [gg.zeros_like(x) if row is None else row for row in rows]
        found.append(gg.reshape(gg.stack(rows), (*x.shape, *x.shape)))
    return found


class TensorArray:
    """A list of Tensors that grows; its methods return it, as in TensorFlow.

    >>> import gpugrad.compat.tf as tf
    >>> array = tf.TensorArray(tf.float32, size=2)
    >>> array.write(0, 1.0).write(1, 2.0).stack().numpy().tolist()
    [1.0, 2.0]
    """

    def __init__(
        self, dtype, size=0, dynamic_size=False, *others, element_shape=None, **options
    ) -> None:
        self.dtype, self.element_shape = numpys(dtype), element_shape
        self.dynamic_size = dynamic_size
        self._items: list[Any] = [None] * int(size)

    def write(self, index, value, name=None) -> TensorArray:
        index, value, n = int(index), tensor(value, like=self.dtype), len(self._items)
        if value.dtype != self.dtype:
            raise DTypeError(
                f"TensorArray.write: the value is {value.dtype}, the array {self.dtype}."
            )
        if index >= n and not self.dynamic_size:
            raise OutOfRangeError(
                f"TensorArray.write: index {index} of an array of size {n}: give dynamic_size=True."
            )
        self._items += [None] * (index + 1 - n)
        self._items[index] = value
        return self

    def read(self, index, name=None) -> Tensor:
        if not 0 <= int(index) < len(self._items):
            raise OutOfRangeError(
                f"TensorArray.read: index {int(index)} of an array of size {len(self._items)}."
            )
        return self._filled()[int(index)]

    def _filled(self) -> list[Any]:
        known = next((x for x in self._items if x is not None), None)
        shape = known.shape if known is not None else tuple(self.element_shape or ())
        return [gg.zeros(shape, dtype=self.dtype) if x is None else x for x in self._items]

    def stack(self, name=None) -> Tensor:
        return gg.stack(self._filled())

    def concat(self, name=None) -> Tensor:
        return gg.concat(self._filled())

    def gather(self, indices, name=None) -> Tensor:
        return gg.take(self.stack(), tensor(indices), axis=0)

    def unstack(self, value, name=None) -> TensorArray:
        self._items = list(gg.unstack(tensor(value, like=self.dtype)))
        return self

    def split(self, value, lengths, name=None) -> TensorArray:
        ends = np.cumsum(np.asarray(lengths))[:-1].tolist()
        self._items = list(gg.split(tensor(value), ends))
        return self

    def size(self, name=None) -> Tensor:
        return gg.constant(len(self._items), "int32")

    def __len__(self) -> int:
        return len(self._items)
