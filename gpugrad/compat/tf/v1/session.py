"""Sessions, which run graphs.

``Session.run`` computes what is fetched as one `gpugrad.function`, traced once for each set of
fetches and shapes of feeds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpugrad as gg
from gpugrad.compat.tf import control
from gpugrad.compat.tf.convert import tensor
from gpugrad.compat.tf.v1.graph import Effect, Node, Placeholder, Run, get_default_graph, sessions
from gpugrad.core import nest
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError


class Session:
    """Runs Nodes."""

    def __init__(self, target="", graph=None, config=None) -> None:
        self.graph = graph or get_default_graph()
        self._functions: dict[Any, Any] = {}
        self._blocks: list[Any] = []

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None) -> Any:
        """The values of Nodes in lists, tuples and dicts, as NumPy arrays.

        Raises:
            ShapeError: a feed does not fit its placeholder.
            ArgumentError: a placeholder or a Variable has no value.
        """
        feed = {
            node: node.check(value) if isinstance(node, Placeholder) else tensor(value)
            for node, value in (feed_dict or {}).items()
        }
        leaves = nest.flatten(fetches)
        for leaf in leaves:
            if not isinstance(leaf, Node):
                raise ArgumentError(f"Session.run: {leaf!r:.60} cannot be fetched.")
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

        starts = any(
            isinstance(leaf, Effect) and leaf.name.split(":")[0].split("_")[0] == "init"
            for leaf in leaves
        )
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
        self._functions.clear()


class InteractiveSession(Session):
    """A Session that is the default one from the start."""

    def __init__(self, target="", graph=None, config=None) -> None:
        super().__init__(target, graph, config)
        sessions.append(self)


def _read(x) -> Any:
    return x.value() if isinstance(x, gg.Variable) else x


def _fetched(x) -> Any:
    return nest.map_structure(lambda v: v.numpy()[()] if isinstance(v, Tensor) else v, x)
