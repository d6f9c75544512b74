"""TensorFlow 1's graphs, which are trees of calls, and the sessions that run them.

A `Node` notes a function and its arguments, among which are other Nodes; a `Run` computes each
once. ``Session.run`` computes what is fetched as one `gpugrad.function`, traced once for each set
of fetches and shapes of feeds.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.compat.tf import arrays, control, state
from gpugrad.compat.tf.convert import tensor
from gpugrad.compat.tf.errors import ConversionError, FailedPreconditionError
from gpugrad.compat.tf.shapes import TensorShape, as_dtype, numpys
from gpugrad.core import nest
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError, TapeError


class Graph:
    """The Variables and names that have been declared."""

    def __init__(self) -> None:
        self.variables: dict[str, RefVariable] = {}
        self.collections: dict[str, list[Any]] = {}
        self.names: dict[str, int] = {}

    def unique_name(self, name: str) -> str:
        self.names[name] = n = self.names.get(name, 0) + 1
        return name if n == 1 else f"{name}_{n - 1}"

    @contextlib.contextmanager
    def as_default(self) -> Iterator[Graph]:
        graphs.append(self)
        try:
            yield self
        finally:
            graphs.remove(self)

    def get_collection(self, name: str, scope=None) -> list[Any]:
        own = self.collections.get(name, [])
        variables = list(self.variables.values())
        if name == "trainable_variables":
            own = [v for v in variables if v.trainable]
        elif name in ("variables", "global_variables"):
            own = variables
        return [v for v in own if scope is None or v.name.startswith(scope)]

    def finalize(self) -> None:
        """Nothing: a graph may grow."""


graphs = [Graph()]
sessions: list[Any] = []
scopes: list[str] = []


def get_default_graph() -> Graph:
    """The graph in which things are declared."""
    return graphs[-1]


def get_default_session() -> Any:
    if not sessions:
        raise ArgumentError("No session is the default one: use `with tf.Session():` or session=.")
    return sessions[-1]


def reset_default_graph() -> None:
    graphs[-1] = Graph()
    shapes.clear()


class Node:
    """A call that a Session makes: a function and its arguments, among which are other Nodes."""

    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(self, f: Callable[..., Any], args=(), keywords=None) -> None:
        self._f, self._args, self._keywords = f, args, keywords or {}
        name = self._keywords.get("name") or getattr(f, "__name__", "node")
        self.name = f"{get_default_graph().unique_name('/'.join([*scopes, str(name)]))}:0"

    def value(self, run: Run) -> Any:
        """The result of the call."""
        args, keywords = run.of((self._args, self._keywords))
        return self._f(*args, **keywords)

    shape = property(lambda self: TensorShape(static(self)[0]))
    dtype = property(lambda self: as_dtype(static(self)[1]))
    op = property(lambda self: self)
    graph = property(lambda self: get_default_graph())

    def get_shape(self) -> TensorShape:
        return TensorShape(static(self)[0])

    def set_shape(self, shape) -> None:
        """Nothing: shapes are computed."""

    def eval(self, feed_dict=None, session=None) -> Any:
        """The value in a session, by default the one in whose block this is."""
        return (session or get_default_session()).run(self, feed_dict)

    def run(self, feed_dict=None, session=None) -> None:
        self.eval(feed_dict, session)

    def __getitem__(self, index) -> Node:
        return Node(operator.getitem, (self, index))

    def __iter__(self) -> Iterator[Node]:
        n = self.shape[0]
        if n is None:
            raise ConversionError("A first axis that depends on a feed cannot be iterated over.")
        return (self[i] for i in range(n))

    def __bool__(self) -> bool:
        raise ConversionError(
            "A Tensor of a graph has no value before a Session runs it: use tf.cond."
        )

    def __repr__(self) -> str:
        return f"<tf.Tensor {self.name!r}>"


def _add_operators() -> None:
    """Give Nodes the operators of Tensors."""
    for name in "add sub mul truediv floordiv mod pow matmul and or xor lt le gt ge".split():  # noqa: SIM905
        f = getattr(operator, f"__{name}__")
        setattr(Node, f"__{name}__", lambda a, b, f=f: Node(f, (a, b)))
        if name not in ("lt", "le", "gt", "ge"):
            setattr(Node, f"__r{name}__", lambda a, b, f=f: Node(f, (_like(b, a), a)))
    for name in ["neg", "abs", "invert"]:
        f = getattr(operator, name)
        setattr(Node, f"__{name}__", lambda a, f=f: Node(f, (a,)))


def _like(value, node: Node) -> Any:
    return value if isinstance(value, (Node, int, float, complex, bool)) else Node(tensor, (value,))


_add_operators()


class Placeholder(Node):
    """A value that ``feed_dict`` gives."""

    def __init__(self, dtype, shape=None, name=None, default=None) -> None:
        super().__init__(Placeholder, (), {"name": name or "Placeholder"})
        self._dtype, self._default = numpys(dtype), default
        self._shape = None if shape is None else TensorShape(shape)

    def value(self, run: Run) -> Any:
        """The default; a feed comes before it."""
        if self._default is None:
            raise ArgumentError(
                f"Session.run: the placeholder {self.name!r} has no value: give feed_dict=."
            )
        return run.of(self._default)

    def check(self, value) -> Tensor:
        """A feed as a Tensor of the placeholder's dtype, if it fits the shape."""
        x = value
        if not isinstance(x, Tensor):
            try:
                x = gg.asarray(np.asarray(value).astype(self._dtype))
            except (TypeError, ValueError) as error:
                message = f"Session.run: the feed of {self.name!r} is no array of numbers: {error}."
                raise ConversionError(message) from None
        if self._shape is not None and not self._shape.is_compatible_with(x.shape):
            raise ShapeError(
                f"Session.run: the feed of {self.name!r} has shape {x.shape}, the placeholder "
                f"{self._shape}."
            )
        return x

    def example(self, length: int) -> Tensor:
        """A Tensor of zeros, with a length for None."""
        lengths = () if self._shape is None else self._shape
        return gg.zeros(tuple(length if n is None else n for n in lengths), dtype=self._dtype)


class Effect(Node):
    """A Node whose value is a function of the run."""

    def __init__(self, do: Callable[[Run], Any], name: str) -> None:
        super().__init__(Effect, (), {"name": name})
        self._do, self.starts = do, name.startswith("init")

    def value(self, run: Run) -> Any:
        return self._do(run)


def _update(how: str) -> Callable[..., Effect]:
    """The method of a Variable that updates it when it runs; its value is the new one."""

    def method(self, value, use_locking=None, name=None, read_value=True) -> Effect:
        def do(run: Run) -> Any:
            getattr(run.of(self), how)(run.of(value))
            return self.variable.value()

        return Effect(do, how)

    return method


class RefVariable(Node):
    """A Variable, which has a value once its initializer has run."""

    def __init__(
        self, initial_value=None, trainable=True, collections=None, *others, **options
    ) -> None:
        options = state.named(others, options)
        super().__init__(RefVariable, (), {"name": options.get("name") or "Variable"})
        self.trainable, self._dtype = trainable, options.get("dtype")
        self._initial = initial_value
        self.variable: Any = None
        get_default_graph().variables[self.name] = self

    def start(self, run: Run) -> None:
        value = self._initial() if callable(self._initial) else self._initial
        value = run.of(value)
        self.restore(tensor(value) if self._dtype is None else arrays.cast(value, self._dtype))

    def value(self, run: Run | None = None) -> Any:
        if run is None:
            return self
        if self.variable is None:
            if run.abstract:
                self.start(run)
                made: Any = self.variable
                self.variable = None
                return made.value()
            raise FailedPreconditionError(
                f"Session.run: the Variable {self.name!r} has no value: run "
                "tf.global_variables_initializer() first."
            )
        return self.variable

    initializer = property(lambda self: Effect(lambda run: self.start(run), "init"))

    def initialized_value(self) -> Node:
        return Node(arrays._OPS["identity"], (self._initial,))

    assign, assign_add, assign_sub = map(_update, ("assign", "assign_add", "assign_sub"))

    def load(self, value, session=None) -> None:
        self.variable.assign(tensor(value, like=self.variable.dtype))

    def restore(self, value) -> None:
        """Give it a value, which may be the first one."""
        if self.variable is None:
            self.variable = state.Variable(value, self.trainable, name=self.name)
        else:
            self.variable.assign(value)


class Run:
    """The values of Nodes in one run, each computed once.

    Args:
        feed: values of Nodes that are given.
        abstract: whether only shapes matter, so that Variables need no value.
    """

    def __init__(self, feed: dict[Node, Any], abstract=False) -> None:
        self._values: dict[int, Any] = {id(node): value for node, value in feed.items()}
        self.abstract = abstract

    def of(self, structure) -> Any:
        """A structure with the value of each Node."""
        if isinstance(structure, Node):
            if id(structure) not in self._values:
                self._values[id(structure)] = structure.value(self)
            return self._values[id(structure)]
        if isinstance(structure, slice):
            return slice(*map(self.of, (structure.start, structure.stop, structure.step)))
        if nest.children(structure) is None or isinstance(structure, TensorShape):
            return structure
        return nest.pack(structure, [self.of(leaf) for leaf in nest.flatten(structure)])

    def all(self, effects: Iterable[Any]) -> None:
        for _ in effects:
            pass


shapes: dict[int, Any] = {}


def static(node: Node) -> tuple[tuple[Any, ...], Any]:
    """The shape and dtype of a Node, by two runs on zeros with other lengths for None."""
    if id(node) not in shapes:
        found = []
        for length in (2, 3):
            run = Zeros(length)
            with gg.Graph().as_default():
                x = run.of(node)
            found.append(x if hasattr(x, "shape") else tensor(x))
        a, b = found
        if len(a.shape) != len(b.shape):
            raise ShapeError(f"{node.name}: the number of axes depends on a feed.")
        shape = tuple(m if m == n else None for m, n in zip(a.shape, b.shape, strict=True))
        shapes[id(node)] = shape, a.dtype, node
    return shapes[id(node)][:2]


class Zeros(Run):
    """A run on zeros, for shapes."""

    def __init__(self, length: int) -> None:
        super().__init__({}, abstract=True)
        self._length = length

    def of(self, structure) -> Any:
        if isinstance(structure, Placeholder):
            return structure.example(self._length)
        return super().of(structure)


class Session:
    """Runs Nodes."""

    def __init__(self, target="", graph=None, config=None) -> None:
        self.graph = graph or get_default_graph()
        self._functions: Any = {}
        self._blocks: list[Any] = []

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None) -> Any:
        """The values of Nodes in lists, tuples and dicts, as NumPy arrays.

        Raises:
            ShapeError: a feed does not fit its placeholder.
            ArgumentError: a placeholder or a Variable has no value.
        """
        for node in feed_dict if isinstance(feed_dict, dict) else [feed_dict]:
            if feed_dict is not None and not isinstance(node, Node):
                raise ConversionError(f"Session.run: {node!r:.60} in feed_dict= is no Tensor.")
        if self._functions is None:
            raise TapeError("Session.run: the Session is closed.")
        feed = {
            node: node.check(value) if isinstance(node, Placeholder) else tensor(value)
            for node, value in (feed_dict or {}).items()
        }
        leaves = nest.flatten(fetches)
        for leaf in leaves:
            if not isinstance(leaf, Node):
                raise ConversionError(f"Session.run: {leaf!r:.60} cannot be fetched.")
        nodes = tuple(feed)
        key = tuple(map(id, leaves)), tuple(map(id, nodes))
        if key not in self._functions:  # which keeps the nodes, so that no other has their id
            self._functions[key] = self._function(leaves, nodes), leaves, nodes
        results = self._functions[key][0](list(feed.values()))
        return nest.pack(fetches, [_fetched(x) for x in results])

    def _function(self, leaves: list[Node], nodes: tuple[Node, ...]) -> Callable[..., Any]:
        def compute(values: list[Any]) -> list[Any]:
            run = Run(dict(zip(nodes, values, strict=True)))
            with gg.Graph().as_default():
                return [_read(run.of(leaf)) for leaf in leaves]

        starts = any(isinstance(leaf, Effect) and leaf.starts for leaf in leaves)
        return compute if starts else control.Function(compute)

    def __enter__(self) -> Session:
        block = self.graph.as_default()
        block.__enter__()
        self._blocks.append(block)
        sessions.append(self)
        return self

    def __exit__(self, *exception) -> None:
        sessions.remove(self)
        self._blocks.pop().__exit__(None, None, None)

    def as_default(self) -> Session:
        """Itself, for a ``with`` block."""
        return self

    def close(self) -> None:
        self._functions = None


class InteractiveSession(Session):
    """A Session that is the default one from the start."""

    def __init__(self, target="", graph=None, config=None) -> None:
        super().__init__(target, graph, config)
        sessions.append(self)


def _read(x) -> Any:
    return x.value() if isinstance(x, gg.Variable) else x


def _fetched(x) -> Any:
    return nest.map_structure(lambda v: v.numpy()[()] if isinstance(v, Tensor) else v, x)
