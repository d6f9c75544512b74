"""Sessions, which compute what is fetched of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import control
from gpugrad.compat.tf.convert import tensor
from gpugrad.compat.tf.errors import ConversionError
from gpugrad.compat.tf.v1.graph import (
    Node,
    Operation,
    Placeholder,
    Run,
    get_default_graph,
    sessions,
)
from gpugrad.compat.tf.v1.variables import Effect
from gpugrad.core import nest
from gpugrad.core.tensor import Tensor
from gpugrad.errors import TapeError


class Session:
    """Runs Nodes."""

    def __init__(self, target="", graph=None, config=None) -> None:
        self.graph = graph or get_default_graph()
        self._functions: Any = {}
        self._constants: dict[int, Node] = {}
        self._blocks: list[Any] = []

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None) -> Any:
        """The values of Nodes in lists, tuples and dicts, as NumPy arrays.

        Raises:
            ShapeError: a feed does not fit its placeholder.
            ArgumentError: a placeholder or a Variable has no value.
        """
        if self._functions is None:
            raise TapeError("Session.run: the Session is closed.")
        if not isinstance(feed_dict, (dict, type(None))):
            raise ConversionError(f"Session.run: feed_dict={feed_dict!r:.60} is no dict.")
        feed = {}
        for key, value in (feed_dict or {}).items():
            node = self.graph.nodes.get(key, key) if isinstance(key, str) else key
            if not isinstance(node, Node):
                raise ConversionError(f"Session.run: {key!r:.60} in feed_dict= is no Tensor.")
            feed[node] = node.check(value) if isinstance(node, Placeholder) else tensor(value)
        leaves = [self._node(leaf) for leaf in nest.flatten(fetches)]
        nodes = tuple(feed)
        key = tuple(map(id, leaves)), tuple(map(id, nodes))
        if key not in self._functions:  # which keeps the nodes, so that no other has their id
            self._functions[key] = self._function(leaves, nodes), leaves, nodes
        results = self._functions[key][0](list(feed.values()))
        return nest.pack(fetches, [_fetched(x) for x in results])

    def _node(self, leaf) -> Node:
        if isinstance(leaf, str):
            leaf = self.graph.nodes.get(leaf, self.graph.nodes.get(f"{leaf}:0", leaf))
        if isinstance(leaf, Operation):
            return leaf.outputs[0]
        if isinstance(leaf, Tensor):
            if id(leaf) not in self._constants:
                self._constants[id(leaf)] = Node(lambda: leaf)  # which keeps the Tensor
            return self._constants[id(leaf)]
        if not isinstance(leaf, Node):
            raise ConversionError(f"Session.run: {leaf!r:.60} cannot be fetched.")
        return leaf

    def _function(self, leaves: list[Node], nodes: tuple[Node, ...]) -> Callable[..., Any]:
        def compute(values: list[Any]) -> list[Any]:
            run = Run({id(node): value for node, value in zip(nodes, values, strict=True)})
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


__getattr__, __dir__ = forwarding(__name__, own=globals())
