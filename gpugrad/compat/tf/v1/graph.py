"""TensorFlow 1's graphs, which are trees of calls, and their runs.

A `Node` notes a function and its arguments, among which are other Nodes; a `Run` computes each
once. `variables` has the Nodes that change something, `session` the runs that programs start.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.compat.tf.convert import tensor
from gpugrad.compat.tf.errors import ConversionError
from gpugrad.compat.tf.shapes import TensorShape, as_dtype, numpys
from gpugrad.core import nest
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError


class GraphKeys:
    """Names of collections."""

    GLOBAL_VARIABLES, LOCAL_VARIABLES = "variables", "local_variables"
    TRAINABLE_VARIABLES, MODEL_VARIABLES = "trainable_variables", "model_variables"
    MOVING_AVERAGE_VARIABLES, GLOBAL_STEP = "moving_average_variables", "global_step"
    LOSSES, REGULARIZATION_LOSSES = "losses", "regularization_losses"
    UPDATE_OPS, TRAIN_OP, SUMMARIES = "update_ops", "train_op", "summaries"
    WEIGHTS, BIASES, ACTIVATIONS = "weights", "biases", "activations"


class Graph:
    """The Variables, collections and names that have been declared.

    Attributes:
        scope: the names of the blocks around, as ``"net/layer"``.
        variable_scope: that of `get_variable`, see `scopes`.
        after: Nodes that run before each that is made now: `control_dependencies`.
    """

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}
        self.collections: dict[str, list[Any]] = {}
        self.names: dict[str, int] = {}
        self.nodes: dict[str, Node] = {}
        self.scope = ""
        self.variable_scope: Any = None
        self.after: tuple[Node, ...] = ()

    def unique_name(self, name: str) -> str:
        """The name itself the first time, then with numbers."""
        n = self.names.get(name, 0)
        unique = name
        while unique in self.names:
            unique, n = f"{name}_{n}", n + 1
        self.names[name] = max(n, 1)
        self.names.setdefault(unique, 1)
        return unique

    @contextlib.contextmanager
    def as_default(self) -> Iterator[Graph]:
        graphs.append(self)
        try:
            yield self
        finally:
            graphs.remove(self)

    @contextlib.contextmanager
    def setting(self, **values) -> Iterator[None]:
        """A block in which attributes have other values."""
        before = {name: getattr(self, name) for name in values}
        self.__dict__.update(values)
        try:
            yield
        finally:
            self.__dict__.update(before)

    def control_dependencies(self, control_inputs) -> Any:
        """A block whose Nodes run after these; with None after nothing."""
        if control_inputs is None:
            return self.setting(after=())
        first = [x for x in nest.flatten(list(control_inputs)) if isinstance(x, Node)]
        return self.setting(after=(*self.after, *first))

    def get_collection(self, name: str, scope=None) -> list[Any]:
        own = self.collections.get(name, [])
        return [v for v in own if scope is None or v.name.startswith(scope)]

    def add_to_collection(self, name: str, value) -> None:
        self.collections.setdefault(name, []).append(value)

    def get_tensor_by_name(self, name: str) -> Node:
        """The Node of a name such as ``"loss:0"``."""
        if name not in self.nodes:
            raise MissingTensorError(f"The graph has no Tensor {name!r}.")
        return self.nodes[name]

    def get_operation_by_name(self, name: str) -> Operation:
        return self.get_tensor_by_name(f"{name}:0").op

    def get_operations(self) -> list[Operation]:
        return [node.op for node in self.nodes.values()]

    def finalize(self) -> None:
        """Nothing: a graph may grow."""


class MissingTensorError(ArgumentError, KeyError):
    """A graph has no Tensor of a name."""

    __str__ = ArgumentError.__str__


graphs = [Graph()]
sessions: list[Any] = []
"""The sessions in whose blocks the program is."""
numbers = itertools.count()
"""The numbers of Nodes."""


def get_default_graph() -> Graph:
    """The graph in which things are declared."""
    return graphs[-1]


def get_default_session() -> Any:
    if not sessions:
        raise ArgumentError("No session is the default one: use `with tf.Session():` or session=.")
    return sessions[-1]


def reset_default_graph() -> None:
    graphs[-1] = Graph()


class Node:
    """A call that a Session makes: a function and its arguments, among which are other Nodes.

    Attributes:
        inputs: the Nodes that it is computed from.
        needs: those, after the ones of the `control_dependencies` around.
        like: a Node or Tensor whose shape and dtype it has, if computing zeros would not tell.
        number: Nodes that were made later have larger ones.
        stands_for: whether zeros take the value of `like` and never compute it.
    """

    stands_for = False
    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(self, f: Callable[..., Any], args=(), keywords=None, name=None, like=None) -> None:
        self._f, self._args, self._keywords = f, args, keywords or {}
        self.graph, self.like, self.number = get_default_graph(), like, next(numbers)
        name = name or self._keywords.get("name") or getattr(f, "__name__", "node")
        scope = self.graph.scope
        self.name = f"{self.graph.unique_name(f'{scope}/{name}' if scope else str(name))}:0"
        self.inputs = nodes_of((args, self._keywords))
        self.needs = (*self.graph.after, *self.inputs)
        self.known: Any = None  # its value for zeros
        self.graph.nodes[self.name] = self

    def value(self, run: Run) -> Any:
        """The result of the call."""
        args, keywords = run.of((self._args, self._keywords))
        return self._f(*args, **keywords)

    @property
    def static(self) -> tuple[Any, Any]:
        """The value for zeros, once with 2 and once with 3 in place of a None in shapes."""
        if self.known is None:
            a, b = runs = Zeros(2), Zeros(3)
            values = [run.of(self) for run in runs]
            for node, *both in zip(a.computed, a.values(), b.values(), strict=True):
                node.known = tuple(map(_light, both))
            self.known = self.known or tuple(map(_light, values))
        return self.known

    @property
    def shape(self) -> TensorShape:
        a, b = (tensor(x).shape for x in self.static)
        if len(a) != len(b):
            raise ShapeError(f"{self.name}: the number of axes depends on a feed.")
        return TensorShape(tuple(m if m == n else None for m, n in zip(a, b, strict=True)))

    dtype = property(lambda self: as_dtype(tensor(self.static[0]).dtype))
    op = property(lambda self: Operation(self))

    def get_shape(self) -> TensorShape:
        return self.shape

    def set_shape(self, shape) -> None:
        """Nothing: shapes are computed."""

    def eval(self, feed_dict=None, session=None) -> Any:
        """The value in a session, by default the one in whose block this is."""
        return (session or get_default_session()).run(self, feed_dict)

    def run(self, feed_dict=None, session=None) -> None:
        self.eval(feed_dict, session)

    def __getitem__(self, index) -> Node:
        return Node(operator.getitem, (self, index))

    def __len__(self) -> int:
        value = self.static[0]
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"{self.name} is one Tensor, which has no len(): use tf.shape.")
        return len(value)

    def __getattr__(self, name: str) -> Any:
        fields = () if name[:1] == "_" else getattr(self.static[0], "_fields", ())
        if name not in fields:
            raise AttributeError(f"{self!r} has no attribute {name!r}", name=name)
        return self[fields.index(name)]

    def __iter__(self) -> Iterator[Node]:
        value = self.static[0]
        n = len(value) if isinstance(value, (list, tuple)) else self.shape[0]
        if n is None:
            raise ConversionError("A first axis that depends on a feed cannot be iterated over.")
        return (self[i] for i in range(n))

    def __bool__(self) -> bool:
        raise ConversionError(
            "A Tensor of a graph has no value before a Session runs it: use tf.cond."
        )

    def __repr__(self) -> str:
        return f"<tf.Tensor {self.name!r}>"


class Operation:
    """The operation of a Node, whose name has no output number."""

    def __init__(self, node: Node) -> None:
        self.name, self.type, self.graph = node.name.split(":")[0], type(node).__name__, node.graph
        self.outputs, self.run = [node], node.run


def nodes_of(structure) -> list[Node]:
    """The Nodes in nested arguments."""
    found: list[Node] = []
    for leaf in nest.flatten(structure):
        if isinstance(leaf, Node):
            found.append(leaf)
        elif isinstance(leaf, slice):
            found += nodes_of([leaf.start, leaf.stop, leaf.step])
    return found


def _light(value) -> Any:
    """A structure whose large Tensors are zeros that take no memory."""

    def light(x) -> Any:
        if isinstance(x, gg.Variable):
            x = x.value()
        if not isinstance(x, Tensor) or x.size <= 4096:
            return x
        return gg.broadcast_to(gg.zeros((), dtype=x.dtype), x.shape)

    return nest.map_structure(light, value)


def _add_operators() -> None:
    """Give Nodes the operators of Tensors."""
    for name in "add sub mul truediv floordiv mod pow matmul and or xor lt le gt ge".split():  # noqa: SIM905
        f = getattr(operator, f"__{name}__")
        setattr(Node, f"__{name}__", lambda a, b, f=f: Node(f, (a, _operand(b))))
        if name not in ("lt", "le", "gt", "ge"):
            setattr(Node, f"__r{name}__", lambda a, b, f=f: Node(f, (_operand(b), a)))
    for name in ["neg", "abs", "invert"]:
        f = getattr(operator, name)
        setattr(Node, f"__{name}__", lambda a, f=f: Node(f, (a,)))


def _operand(value) -> Any:
    return value if isinstance(value, (Node, int, float, complex, bool)) else Node(tensor, (value,))


_add_operators()


class Placeholder(Node):
    """A value that ``feed_dict`` gives."""

    def __init__(self, dtype, shape=None, name=None, default=None) -> None:
        super().__init__(Placeholder, (), name=name or "Placeholder")
        self._dtype, self._default = numpys(dtype), default
        self._shape = None if shape is None else TensorShape(shape)
        self.inputs = nodes_of([default])
        self.needs = tuple(self.inputs)

    def value(self, run: Run) -> Any:
        """The default; a feed comes before it."""
        if isinstance(run, Zeros):
            lengths = () if self._shape is None else self._shape
            shape = tuple(run.length if n is None else n for n in lengths)
            return gg.zeros(shape, dtype=self._dtype)
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


class Run:
    """The values of Nodes in one run, each computed once.

    Args:
        known: values of Nodes that are given, with the Nodes' ids.
    """

    def __init__(self, known: dict[int, Any]) -> None:
        self._values = known

    def of(self, structure) -> Any:
        """A structure with the value of each Node."""
        if isinstance(structure, Node):
            if id(structure) not in self._values:
                self._compute(structure)
            return self._values[id(structure)]
        if isinstance(structure, slice):
            return slice(*map(self.of, (structure.start, structure.stop, structure.step)))
        if nest.children(structure) is None or isinstance(structure, TensorShape):
            return structure
        return nest.pack(structure, [self.of(leaf) for leaf in nest.flatten(structure)])

    def _compute(self, node: Node) -> None:
        """Compute a Node after those that it needs: by a list, since chains may be long."""
        waiting = [node]
        while waiting:
            top = waiting[-1]
            first = [n for n in self._needs(top) if id(n) not in self._values]
            if first and id(top) not in self._values:
                waiting.extend(reversed(first))
                continue
            waiting.pop()
            if id(top) not in self._values:
                self._values[id(top)] = self._value(top)

    def _needs(self, node: Node) -> Iterable[Node]:
        return node.needs

    def _value(self, node: Node) -> Any:
        return node.value(self)

    def within(self, known: dict[int, Any]) -> Run:
        """A run of a part that sees these values."""
        return Run({**self._values, **known})


class Zeros(Run):
    """A run on zeros, for shapes.

    Args:
        length: what stands for None in the shapes of placeholders.
        whole: whether each Node is computed, as gradients need it, also if its value is known.
    """

    def __init__(self, length: int, whole=False, known: dict[int, Any] | None = None) -> None:
        super().__init__({} if known is None else known)
        self.length, self.whole = length, whole
        self.computed: list[Node] = []

    def values(self) -> list[Any]:
        """The values of the Nodes that were computed here."""
        return [self._values[id(node)] for node in self.computed]

    def _stands_for(self, node: Node) -> bool:
        """Whether the value is that of another Node."""
        return node.stands_for or (node.like is not None and not self.whole)

    def _needs(self, node: Node) -> Iterable[Node]:
        if self._stands_for(node):
            return nodes_of([node.like])
        return () if self._is_known(node) else node.inputs

    def _is_known(self, node: Node) -> bool:
        return node.known is not None and not self.whole

    def _value(self, node: Node) -> Any:
        if self._stands_for(node):
            return self.of(node.like)
        if self._is_known(node):
            return node.known[self.length - 2]
        value = node.value(self)
        self.computed.append(node)
        return value

    def within(self, known: dict[int, Any]) -> Run:
        return Zeros(self.length, self.whole, {**self._values, **known})


_eager = [True]


def executing_eagerly() -> bool:
    """Whether functions compute at once: until a graph is begun or eager execution disabled."""
    return _eager[0] and len(graphs) == 1


def disable_eager_execution() -> None:
    _eager[0] = False


def enable_eager_execution(*args, **options) -> None:
    """Let functions compute at once."""
    _eager[0] = True


def deferred(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes a Node in a graph, and computes at once outside."""
    try:
        place = list(inspect.signature(f).parameters).index("name")
    except ValueError:  # it has no name, or Python cannot tell
        place = sys.maxsize

    @functools.wraps(f)
    def call(*args, **keywords) -> Any:
        if executing_eagerly():
            return f(*args, **keywords)
        return Node(f, args, keywords, args[place] if len(args) > place else None)

    return call
