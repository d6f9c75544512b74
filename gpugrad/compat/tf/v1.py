"""tf.compat.v1: graphs, sessions and TensorFlow 1's names.

Functions compute at once until `disable_eager_execution` or ``with tf.Graph().as_default():``; from
then on each returns a `Node`, which a `Session` runs.

>>> from gpugrad.compat.tf import v1 as tf
>>> with tf.Graph().as_default():
...     x = tf.placeholder(tf.float32, [None])
...     total = tf.reduce_sum(x * 2.0)
>>> with tf.Session() as session:
...     print(session.run(total, {x: [1.0, 2.0]}))
6.0
"""

# ruff: noqa: F401  # TensorFlow's names
from __future__ import annotations

import contextlib
import functools
import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import gpugrad as gg
from gpugrad.compat import tf
from gpugrad.compat.tf import arrays, control, random, state
from gpugrad.compat.tf.convert import ints, tensor
from gpugrad.compat.tf.graph import (
    Effect,
    Graph,
    InteractiveSession,
    Node,
    Placeholder,
    RefVariable,
    Run,
    Session,
    Zeros,
    get_default_graph,
    get_default_session,
    graphs,
    reset_default_graph,
    scopes,
)
from gpugrad.core import nest
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError


def placeholder(dtype, shape=None, name=None) -> Placeholder:
    """A value that ``feed_dict`` gives."""
    return Placeholder(dtype, shape, name)


def placeholder_with_default(input, shape, name=None) -> Placeholder:
    """A value that ``feed_dict`` may give."""
    default = tensor(input) if not isinstance(input, Node) else input
    return Placeholder(default.dtype, shape, name, default)


class Variable(RefVariable):
    """A Variable of a graph; with eager execution `gpugrad.compat.tf.Variable`."""

    def __new__(cls, *args, **keywords) -> Any:
        """A Variable of either kind."""
        return state.Variable(*args, **keywords) if executing_eagerly() else super().__new__(cls)


def get_variable(
    name: str,
    shape=None,
    dtype="float32",
    initializer=None,
    regularizer=None,
    trainable=True,
    *others,
    **options,
) -> RefVariable:
    """The Variable of a name in the current scope, which is declared if it is new."""
    path = "/".join([*scopes, name])
    known = get_default_graph().variables.get(f"{path}:0")
    if known is not None:
        if _reuse[-1]:
            return known
        raise ArgumentError(f"get_variable: {path!r} exists; use variable_scope(reuse=True).")
    initializer = initializer or glorot_uniform_initializer()
    value = initializer
    if callable(initializer):
        lengths = ints(shape)
        value = Node(lambda: initializer(lengths, dtype=dtype))
    return RefVariable(value, trainable, name=name, dtype=dtype)


_reuse: list[Any] = [False]
AUTO_REUSE = True


@contextlib.contextmanager
def variable_scope(
    name_or_scope, default_name=None, values=None, reuse=None, **options
) -> Iterator[Any]:
    """Prefix names, and let `get_variable` find Variables again if `reuse` is set."""
    scopes.append(str(name_or_scope or default_name))
    _reuse.append(_reuse[-1] if reuse is None else reuse)
    try:
        yield "/".join(scopes)
    finally:
        scopes.pop()
        _reuse.pop()


@contextlib.contextmanager
def name_scope(name, default_name=None, values=None) -> Iterator[Any]:
    """Prefix names."""
    scopes.append(str(name or default_name))
    try:
        yield "/".join(scopes) + "/"
    finally:
        scopes.pop()


def control_dependencies(control_inputs) -> Any:
    """A context that does nothing: effects run in the order of fetches."""
    return contextlib.nullcontext()


def _each(run: Run, variables: Any) -> None:
    for variable in variables:
        variable.start(run)


def global_variables_initializer() -> Node:
    """Gives all Variables of the graph their initial values."""
    graph = get_default_graph()
    return Effect(lambda run: _each(run, graph.variables.values()), "init")


initialize_all_variables = local_variables_initializer = global_variables_initializer
variables_initializer: Callable[..., Node] = lambda var_list, name="init": Effect(  # noqa: E731
    lambda run: _each(run, var_list), "init"
)


def trainable_variables(scope=None) -> list[Any]:
    """The Variables that optimizers train."""
    return get_default_graph().get_collection("trainable_variables", scope)


def global_variables(scope=None) -> list[Any]:
    """All Variables."""
    return get_default_graph().get_collection("global_variables", scope)


def get_collection(key: str, scope=None) -> list[Any]:
    """Variables by the name of their collection."""
    return get_default_graph().get_collection(key, scope)


def is_tensor(x) -> bool:
    """Whether something is a Tensor or a Node."""
    return isinstance(x, Node) or arrays.is_tensor(x)


class GraphKeys:
    """Names of collections."""

    GLOBAL_VARIABLES, TRAINABLE_VARIABLES = "variables", "trainable_variables"
    REGULARIZATION_LOSSES, UPDATE_OPS = "regularization_losses", "update_ops"


def assign(ref, value, *others, **options) -> Node:
    """Replace a Variable's value."""
    return ref.assign(value)


def assign_add(ref, value, *others, **options) -> Node:
    """Add to a Variable's value."""
    return ref.assign_add(value)


def assign_sub(ref, value, *others, **options) -> Node:
    """Subtract from a Variable's value."""
    return ref.assign_sub(value)


def group(*inputs, **options) -> Node:
    """One operation that runs several."""
    return Effect(lambda run: [run.of(x) for x in nest.flatten(list(inputs))], "group")


def no_op(name=None) -> Node:
    """An operation that does nothing."""
    return group()


class _Gradients(Node):
    """The gradients of a sum by several Nodes, as one list."""

    def __init__(self, ys, xs: list[Any], grad_ys, stop) -> None:
        super().__init__(_Gradients, (), {"name": "gradients"})
        self._of = ys, xs, grad_ys, stop

    def value(self, run: Run) -> list[Any]:
        """Compute them, on a Graph that records the whole run."""
        ys, xs, grad_ys, stop = self._of
        sources = run.of(list(xs))  # before the targets, so that these are computed from them
        targets = run.of(ys)
        found = gg.gradients(targets, sources, run.of(grad_ys), stop_gradients=run.of(stop))
        return list(found)


def gradients(
    ys, xs, grad_ys=None, name="gradients", *others, stop_gradients=None, **options
) -> list[Any]:
    """The gradients of a sum of `ys` by each of `xs`; None where there is no path."""
    several = isinstance(xs, (list, tuple))
    both = _Gradients(ys, list(xs) if several else [xs], grad_ys, stop_gradients)
    n = len(xs) if several else 1
    return [None if _is_none(both, i) else Node(operator.getitem, (both, i)) for i in range(n)]


def _is_none(both: Node, i: int) -> bool:
    run = Zeros(2)
    with gg.Graph().as_default():
        return run.of(both)[i] is None


class Optimizer:
    """An optimizer of a graph: `minimize` returns what a Session runs for a step."""

    def __init__(self, own) -> None:
        self._own = own

    def compute_gradients(self, loss, var_list=None, *others, **options) -> list[Any]:
        """Pairs of a gradient and a Variable."""
        variables = list(var_list or trainable_variables())
        return list(zip(gradients(loss, variables), variables, strict=True))

    def apply_gradients(self, grads_and_vars, global_step=None, name=None) -> Node:
        """A step by such pairs."""
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise ArgumentError("apply_gradients: no Variable has a gradient.")

        def step(run: Run) -> None:
            values = [(run.of(g), run.of(v)) for g, v in pairs]
            self._own.apply_gradients(values)
            if global_step is not None:
                run.of(global_step).assign_add(1)

        return Effect(step, name or "step")

    def minimize(self, loss, global_step=None, var_list=None, *others, **options) -> Node:
        """A step down a loss."""
        return self.apply_gradients(self.compute_gradients(loss, var_list), global_step)


class GradientDescentOptimizer(Optimizer):
    """Steps of the learning rate times the gradient."""

    def __init__(self, learning_rate, *others, **options) -> None:
        super().__init__(gg.optim.SGD(learning_rate))


class MomentumOptimizer(Optimizer):
    """Gradient descent with momentum."""

    def __init__(
        self, learning_rate, momentum, use_locking=None, name=None, use_nesterov=False
    ) -> None:
        super().__init__(gg.optim.SGD(learning_rate, momentum, nesterov=use_nesterov))


class AdamOptimizer(Optimizer):
    """Adam."""

    def __init__(
        self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, *others, **options
    ) -> None:
        super().__init__(gg.optim.Adam(learning_rate, beta1, beta2, epsilon))


class RMSPropOptimizer(Optimizer):
    """RMSprop."""

    def __init__(
        self, learning_rate, decay=0.9, momentum=0.0, epsilon=1e-10, *others, **options
    ) -> None:
        super().__init__(
            gg.optim.RMSprop(learning_rate, rho=decay, momentum=momentum, epsilon=epsilon)
        )


class AdagradOptimizer(Optimizer):
    """Adagrad."""

    def __init__(self, learning_rate, initial_accumulator_value=0.1, *others, **options) -> None:
        super().__init__(
            gg.optim.Adagrad(learning_rate, initial_accumulator_value=initial_accumulator_value)
        )


def _glorot(make: Any) -> Callable[..., Any]:
    """An initializer that takes one axis, too, as both fans."""
    return lambda shape: make(shape * 2)[0] if len(shape) == 1 else make(shape)


def _initializer(make: Callable[..., Any], **defaults) -> Callable[..., Any]:
    def initializer(*args, **keywords) -> Callable[..., Any]:
        settings = {**defaults, **dict(zip(defaults, args, strict=False)), **keywords}
        settings.pop("seed", None)
        settings.pop("dtype", None)
        return lambda shape, dtype="float32", **others: gg.astype(
            make(ints(shape), **settings), dtype
        )

    return initializer


random_normal_initializer = _initializer(random.normal, mean=0.0, stddev=1.0)
random_uniform_initializer = _initializer(random.uniform, minval=0.0, maxval=None)
truncated_normal_initializer = _initializer(random.truncated_normal, mean=0.0, stddev=1.0)
zeros_initializer, ones_initializer = _initializer(arrays.zeros), _initializer(arrays.ones)
constant_initializer = _initializer(arrays.fill, value=0)
glorot_uniform_initializer = _initializer(_glorot(gg.nn.initializers.glorot_uniform))
glorot_normal_initializer = _initializer(_glorot(gg.nn.initializers.glorot_normal))


_eager = [True]


def executing_eagerly() -> bool:
    """Whether functions compute at once: until a graph is begun or eager execution disabled."""
    return _eager[-1] and len(graphs) == 1


def disable_eager_execution() -> None:
    """Let functions declare what a Session runs."""
    _eager[-1] = False


disable_v2_behavior = disable_eager_execution


def enable_eager_execution(*args, **options) -> None:
    """Let functions compute at once."""
    _eager[-1] = True


enable_v2_behavior = enable_eager_execution


def _deferred(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def call(*args, **keywords) -> Any:
        return f(*args, **keywords) if executing_eagerly() else Node(f, args, keywords)

    return call


def install() -> None:
    """Let ``import tensorflow`` find this module, for programs of TensorFlow 1."""
    tf.install()
    disable_eager_execution()
    own = sys.modules[__name__]
    sys.modules["tensorflow"] = own
    for name in ("nn", "math", "linalg", "random", "train"):
        sys.modules[f"tensorflow.{name}"] = getattr(own, name)


class _Names:
    """A namespace of compat.tf whose functions make Nodes."""

    def __init__(self, module, **own) -> None:
        self._module, self._own = module, own

    def __getattr__(self, name: str) -> Any:
        if name in self._own:
            return self._own[name]
        value = getattr(self._module, name)
        return _deferred(value) if callable(value) and not isinstance(value, type) else value


class Saver:
    """Saves and restores the Variables of a graph in a safetensors file."""

    def __init__(self, var_list=None, *others, **options) -> None:
        self._variables = var_list

    def _named(self, session: Session) -> dict[str, RefVariable]:
        chosen = self._variables or session.graph.variables.values()
        named = chosen if isinstance(chosen, dict) else {v.name.split(":")[0]: v for v in chosen}
        return dict(named)

    def save(self, sess: Session, save_path: str, global_step=None, **options) -> str:
        """Write all values; the path, with the step's number if there is one."""
        path = save_path if global_step is None else f"{save_path}-{int(global_step)}"
        gg.checkpoint.save(path, {k: v.variable for k, v in self._named(sess).items()})
        return path

    def restore(self, sess: Session, save_path: str) -> None:
        """Give all Variables the values of a file."""
        values, _ = gg.checkpoint.load(save_path)
        for name, node in self._named(sess).items():
            node.restore(values[name])


class _Summary:
    """Declares nothing: use `gpugrad.train`'s loggers."""

    def __init__(self, *args, **options) -> None:
        self.add_summary = self.add_graph = self.flush = self.close = _nothing

    def __enter__(self) -> _Summary:
        return self

    def __exit__(self, *exception) -> None:
        return None


def _nothing(*args, **options) -> None:
    """Nothing."""


def _no_summary(*args, **options) -> Node:
    """An operation that does nothing."""
    return group()


summary = types.SimpleNamespace(
    scalar=_no_summary,
    histogram=_no_summary,
    image=_no_summary,
    merge=_no_summary,
    merge_all=_no_summary,
    FileWriter=_Summary,
)
logging = types.SimpleNamespace(set_verbosity=_nothing, info=_nothing, ERROR=40, INFO=20, WARN=30)


def _global_step() -> Any:
    known = get_default_graph().variables.get("global_step:0")
    if known is not None:
        return known
    return RefVariable(0, trainable=False, name="global_step")


train = _Names(
    control,
    Saver=Saver,
    get_global_step=_global_step,
    get_or_create_global_step=_global_step,
    create_global_step=_global_step,
    Optimizer=Optimizer,
    AdamOptimizer=AdamOptimizer,
    AdagradOptimizer=AdagradOptimizer,
    GradientDescentOptimizer=GradientDescentOptimizer,
    MomentumOptimizer=MomentumOptimizer,
    RMSPropOptimizer=RMSPropOptimizer,
)

ConfigProto = GPUOptions = dict


_RENAMED = """
    random.normal = random_normal; random.uniform = random_uniform; random.shuffle = random_shuffle
    linalg.inv = matrix_inverse; linalg.det = matrix_determinant; linalg.solve = matrix_solve
    linalg.triangular_solve = matrix_triangular_solve; linalg.cholesky = cholesky
    linalg.tensor_diag = diag; linalg.tensor_diag_part = diag_part; linalg.diag = matrix_diag
    linalg.diag_part = matrix_diag_part; linalg.matmul = batch_matmul; linalg.svd = svd
    linalg.eigh = self_adjoint_eig; linalg.band_part = matrix_band_part
    math.argmax = arg_max; math.argmin = arg_min
    math.multiply = mul; math.subtract = sub; math.negative = neg; math.divide = div
"""
_OLD = {
    old.strip(): new.strip()
    for new, _, old in (each.partition("=") for each in _RENAMED.replace("\n", ";").split(";"))
}
_NOW = ("set_random_seed", "device")
_NAMESPACES = ("nn", "math", "linalg", "random")


def __getattr__(name: str) -> Any:
    if name in ("to_float", "to_double", "to_int32", "to_int64"):
        dtype = {"to_float": "float32", "to_double": "float64"}.get(name, name[3:])
        return functools.partial(_deferred(arrays.cast), dtype=dtype)
    value = functools.reduce(getattr, _OLD.get(name, name).split("."), tf)
    if name in _NAMESPACES:
        return _Names(value)
    f: Any = value
    keeps = isinstance(value, type) or not callable(value) or name in _NOW
    return value if keeps else _deferred(f)
