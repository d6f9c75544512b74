"""Variables of TensorFlow 1's graphs, and the Nodes that change them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import arrays, state
from gpugrad.compat.tf.convert import tensor
from gpugrad.compat.tf.errors import FailedPreconditionError
from gpugrad.compat.tf.shapes import numpys
from gpugrad.compat.tf.v1.graph import GraphKeys, Node, Run, Zeros
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError


class Effect(Node):
    """A Node whose value is a function of the run.

    Args:
        do: the function.
        uses: what it reads, in which Nodes are computed before it.
        starts: whether it gives Variables their first values.
        like: as for `Node`; None if it has no value. Zeros never run an Effect.
    """

    stands_for = True

    def __init__(
        self, do: Callable[[Run], Any], name: str, uses=(), starts=False, like: Any = None
    ) -> None:
        super().__init__(Effect, (uses,), name=name, like=like)
        self._do, self.starts = do, starts

    def value(self, run: Run) -> Any:
        return self._do(run)

    @property
    def static(self) -> tuple[Any, Any]:
        """The values of `like`: zeros must not change a Variable."""
        if self.like is None:
            raise ArgumentError(f"{self.name} is an operation, which has no shape.")
        return super().static


def _update(how: str) -> Callable[..., Effect]:
    """The method of a Variable that updates it when it runs; its value is the new one."""

    def method(self, value, use_locking=None, name=None, read_value=True) -> Effect:
        def do(run: Run) -> Any:
            getattr(run.of(self), how)(run.of(value))
            return self.variable.value()

        return Effect(do, name or how, (self, value), like=self)

    return method


def _scatter(f: str) -> Callable[..., Effect]:
    """The method of a Variable that updates rows of it."""

    def method(self, indices, updates, use_locking=None, name=None) -> Effect:
        def do(run: Run) -> Any:
            rows, values = tensor(run.of(indices)), tensor(run.of(updates), like=self.dtype)
            new = arrays._OPS[f](run.of(self), rows[..., None], values)
            self.variable.assign(new)
            return self.variable.value()

        return Effect(do, name or f, (self, indices, updates), like=self)

    return method


class RefVariable(Node):
    """A Variable, which has a value once its initializer has run."""

    def __init__(
        self,
        initial_value=None,
        trainable=None,
        collections=None,
        validate_shape=True,
        caching_device=None,
        name=None,
        variable_def=None,
        dtype=None,
        expected_shape=None,
        import_scope=None,
        constraint=None,
        full_name=None,
        **options,
    ) -> None:
        super().__init__(RefVariable, (), name=name or "Variable")
        if full_name is not None:
            del self.graph.nodes[self.name]
            self.name = f"{full_name}:0"
            self.graph.nodes[self.name] = self
        self.needs, self.trainable = (), trainable is None or bool(trainable)
        self.inputs = []
        self._dtype = None if dtype is None else numpys(dtype)
        self._initial, self.constraint = initial_value, constraint
        self.variable: Any = None
        if initial_value is None:
            raise ArgumentError("Variable: an initial_value is needed.")
        self.graph.variables[self.name] = self
        kinds = list(collections or [GraphKeys.GLOBAL_VARIABLES])
        if self.trainable and GraphKeys.TRAINABLE_VARIABLES not in kinds:
            kinds.append(GraphKeys.TRAINABLE_VARIABLES)
        for kind in kinds:
            self.graph.add_to_collection(kind, self)

    @property
    def initial_value(self) -> Any:
        """The value that its initializer gives it."""
        if callable(self._initial) and not isinstance(self._initial, Tensor):
            self._initial = self._initial()
        return self._initial

    def _first(self, run: Run) -> Tensor:
        value = run.of(self.initial_value)
        return tensor(value) if self._dtype is None else arrays.cast(value, self._dtype)

    def start(self, run: Run) -> None:
        """Give it its first value."""
        self.restore(self._first(run))

    def value(self, run: Run | None = None) -> Any:
        if run is None:
            return self
        if isinstance(run, Zeros):
            return self._first(run)
        if self.variable is None:
            raise FailedPreconditionError(
                f"Session.run: the Variable {self.name!r} has no value: run "
                "tf.global_variables_initializer() first."
            )
        return self.variable

    read_value = value
    initializer = property(lambda self: Effect(self.start, "init", starts=True))

    def initialized_value(self) -> Node:
        return Node(arrays._OPS["identity"], (self.initial_value,))

    assign, assign_add, assign_sub = map(_update, ("assign", "assign_add", "assign_sub"))
    scatter_add = _scatter("tensor_scatter_nd_add")
    scatter_sub = _scatter("tensor_scatter_nd_sub")
    scatter_update = _scatter("tensor_scatter_nd_update")

    def load(self, value, session=None) -> None:
        self.restore(tensor(value, like=numpys(self.dtype)))

    def restore(self, value) -> None:
        """Give it a value, which may be the first one."""
        if self.variable is None:
            self.variable = state.Variable(value, self.trainable, name=self.name)
        else:
            self.variable.assign(value)


__getattr__, __dir__ = forwarding(__name__, own=globals())
