"""Control flow of TensorFlow 1's graphs: its functions are called once, with Nodes."""

from __future__ import annotations

import copy
import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import control
from gpugrad.compat.tf.convert import tensor
from gpugrad.compat.tf.v1.graph import Node, Run, Zeros, get_default_graph, nodes_of, numbers
from gpugrad.core import nest
from gpugrad.errors import ArgumentError


class Inner(Node):
    """An argument of a function in control flow."""

    stands_for = True

    def __init__(self, like) -> None:
        super().__init__(Inner, (), name="argument", like=like)

    def value(self, run: Run) -> Any:
        """An error: the control flow gives it."""
        raise ArgumentError(f"{self.name} has a value only inside its loop.")


class Part:
    """The Nodes that a function makes, and the ones around that they need.

    Args:
        f: the function.
        inputs: structures of Nodes that are its arguments.
    """

    def __init__(self, f: Callable[..., Any], *inputs: Any) -> None:
        self.inputs = nest.flatten(inputs)
        first = next(numbers)
        self.result = f(*inputs)
        self.leaves = [_unwrapped(x) for x in nest.flatten(self.result)]
        self.outer: list[Node] = []
        waiting, seen = nodes_of(self.leaves), {id(x) for x in self.inputs}
        while waiting:
            node = waiting.pop()
            if id(node) not in seen:
                seen.add(id(node))
                if node.number > first:
                    waiting += node.needs
                else:
                    self.outer.append(node)

    def on(self, run: Run) -> Callable[..., list[Any]]:
        """The function of values that gives the leaves of the result."""

        def compute(*values: Any) -> list[Any]:
            known = zip(map(id, self.inputs), nest.flatten(values), strict=True)
            inside = run.within(dict(known))
            return [tensor(x) if _is_value(x) else x for x in inside.of(self.leaves)]

        return compute


def _is_value(x: Any) -> bool:
    return x is not None and not isinstance(x, (gg.IndexedSlices, control.TensorArray))


def _flow(name: str, needs, compute: Callable[[Run], list[Any]], structure, like=None) -> Any:
    """A structure of Nodes of what control flow gives as a list.

    Args:
        needs: Nodes that are computed before.
        compute: the function of a run.
        structure: of the result.
        like: for each leaf a Node of its shape, if zeros would not tell.
    """
    flow = _Flow(compute, (list(needs),), name=name)
    leaves = nest.flatten(structure)
    like = like or [None] * len(leaves)
    items = [Node(operator.getitem, (flow, i), like=x) for i, x in enumerate(like)]
    return nest.pack(structure, items)


class _Flow(Node):
    """The list that control flow gives."""

    def value(self, run: Run) -> list[Any]:
        return self._f(run)


def cond(pred, true_fn=None, false_fn=None, strict=False, name=None, fn1=None, fn2=None) -> Any:
    yes, no = Part(true_fn or fn1), Part(false_fn or fn2)
    if len(yes.leaves) != len(no.leaves):
        raise ArgumentError(
            f"cond: true_fn gives {len(yes.leaves)} values, false_fn {len(no.leaves)}."
        )

    def compute(run: Run) -> list[Any]:
        if isinstance(run, Zeros):  # which must see both
            return [_either(a, b) for a, b in zip(yes.on(run)(), no.on(run)(), strict=True)]
        return list(gg.cond(tensor(run.of(pred)), yes.on(run), no.on(run)))

    structure = yes.result
    if isinstance(structure, (list, tuple)) and len(structure) == 1 and not strict:
        structure = structure[0]
    return _flow(name or "cond", [*nodes_of([pred]), *yes.outer, *no.outer], compute, structure)


def _either(a: Any, b: Any) -> Any:
    """A value like the first that depends on both, so that both have gradients."""
    if not (_is_value(a) and _is_value(b)) or a.dtype.kind not in "fc":
        return a
    return a + gg.astype(gg.sum(b) * 0, a.dtype)


def case(
    pred_fn_pairs, default=None, exclusive=False, strict=False, allow_python_preds=False, name=None
) -> Any:
    pairs = control.pairs_of(pred_fn_pairs)
    predicates = [p for p, _ in pairs]
    check = Node(control.check_predicates, (predicates, default and True, exclusive))
    with get_default_graph().control_dependencies([check] if exclusive or default is None else []):
        return control.choose(cond, pairs, default)


def switch_case(branch_index, branch_fns, default=None, name=None) -> Any:
    index = branch_index if isinstance(branch_index, Node) else Node(tensor, (branch_index,))
    equal = lambda i: Node(gg.equal, (index, i))
    return control.choose(cond, *control.branches(equal, branch_fns, default))


def while_loop(
    cond,
    body,
    loop_vars,
    shape_invariants=None,
    parallel_iterations=10,
    back_prop=True,
    swap_memory=False,
    name=None,
    maximum_iterations=None,
    return_same_structure=False,
) -> Any:
    own = nest.flatten(loop_vars)
    start = [_node(_unwrapped(x)) for x in own]
    inputs = list(map(Inner, start))

    def call(f: Callable[..., Any]) -> Callable[..., Any]:
        def with_structure(*nodes: Node) -> Any:
            given = [_wrapped(x, like) for x, like in zip(nodes, own, strict=True)]
            values = nest.pack(loop_vars, given)
            return f(**values) if isinstance(values, dict) else f(*values)

        return with_structure

    test, step = Part(call(cond), *inputs), Part(call(body), *inputs)
    if len(step.leaves) != len(start):
        raise ArgumentError(f"while_loop: {step.result!r:.60} has not the structure of loop_vars.")

    def compute(run: Run) -> list[Any]:
        first = [tensor(x) if _is_value(x) else x for x in run.of(start)]
        advance = step.on(run)
        if isinstance(run, Zeros):  # on which the loop might never end
            once = advance(*first) if run.whole else first
            return once if back_prop else list(map(_stopped, once))
        goes_on, most = test.on(run), run.of(maximum_iterations)
        found = control.while_loop(
            lambda *v: goes_on(*v)[0], advance, first, shape_invariants, maximum_iterations=most
        )
        return list(found) if back_prop else list(map(_stopped, found))

    needs = [*start, *test.outer, *step.outer, *nodes_of([maximum_iterations])]
    several = isinstance(loop_vars, dict) or len(loop_vars) > 1 or return_same_structure
    like = start if shape_invariants is None else None
    items = nest.flatten(_flow(name or "while", needs, compute, start, like))
    results = [_wrapped(x, one) for x, one in zip(items, own, strict=True)]
    return nest.pack(loop_vars, results) if several else results[0]


def _stopped(x: Any) -> Any:
    return gg.stop_gradient(x) if _is_value(x) else x


class TensorArray:
    """A list of Tensors in a graph; a loop may carry it.

    Args:
        arguments: those of `gpugrad.compat.tf.TensorArray`.
        node: the Node whose value is the list.
    """

    def __init__(self, *arguments: Any, node: Node | None = None, **options: Any) -> None:
        self.node = Node(control.TensorArray, arguments, options) if node is None else node

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "_":
            raise AttributeError(name)
        method = getattr(control.TensorArray, name)

        def call(*args: Any, **keywords: Any) -> Any:
            node = Node(
                lambda array, *a, **k: method(_copied(array), *a, **k), (self.node, *args), keywords
            )
            return (
                TensorArray(node=node) if name in ("write", "unstack", "split", "scatter") else node
            )

        return call


def _copied(array: control.TensorArray) -> control.TensorArray:
    new = copy.copy(array)
    new._items = list(array._items)
    return new


def _unwrapped(x: Any) -> Any:
    return x.node if isinstance(x, TensorArray) else x


def _wrapped(node: Node, like: Any) -> Any:
    return TensorArray(node=node) if isinstance(like, TensorArray) else node


def _given(own: Callable[..., Any], args: Any, keywords: Any) -> dict[str, Any]:
    """The arguments of a call by the names of TensorFlow 2's function, with defaults."""
    bound = inspect.signature(own).bind(*args, **keywords)
    bound.apply_defaults()
    return bound.arguments


@functools.wraps(control.map_fn)
def map_fn(*args: Any, **keywords: Any) -> Any:
    given = _given(control.map_fn, args, keywords)
    nodes = nest.map_structure(_node, given["elems"])
    part = Part(given["fn"], nest.map_structure(lambda x: Inner(x[0]), nodes))

    def compute(run: Run) -> list[Any]:
        spec = given["fn_output_signature"] or given["dtype"]
        found = nest.flatten(control.map_fn(part.on(run), run.of(nodes), spec))
        return found if given["back_prop"] else list(map(_stopped, found))

    needs = [*nodes_of([nodes]), *part.outer]
    return _flow(given["name"] or "map", needs, compute, part.result)


def _node(x) -> Node:
    return x if isinstance(x, Node) else Node(tensor, (x,))


def _folding(own: Callable[..., Any]) -> Callable[..., Any]:
    """`scan` or a fold, whose function gets the result so far and an element."""

    @functools.wraps(own)
    def call(*args: Any, **keywords: Any) -> Any:
        given = _given(own, args, keywords)
        initializer = given["initializer"]
        nodes = nest.map_structure(_node, given["elems"])
        element = nest.map_structure(lambda x: Inner(x[0]), nodes)
        start = None if initializer is None else nest.map_structure(_node, initializer)
        carry = element if start is None else start
        inputs = nest.map_structure(Inner, carry)
        part = Part(given["fn"], inputs, element)

        def compute(run: Run) -> list[Any]:
            step = part.on(run)
            f = lambda a, x: nest.pack(carry, step(a, x))
            first = None if start is None else run.of(start)
            direction = {key: x for key, x in given.items() if key == "reverse"}
            found = nest.flatten(own(f, run.of(nodes), first, **direction))
            return found if given["back_prop"] else list(map(_stopped, found))

        needs = [*nodes_of([nodes, start]), *part.outer]
        return _flow(given["name"] or "scan", needs, compute, carry)

    return call


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """`tf.custom_gradient` of a function of Nodes."""

    def call(*args: Any) -> Any:
        nodes = list(map(_node, args))
        inputs = list(map(Inner, nodes))
        slopes: list[Any] = []

        def both(*inside: Node) -> Any:
            result, slope = f(*inside)
            slopes.extend([slope, [Inner(x) for x in nest.flatten(result)]])
            return result

        forward = Part(both, *inputs)
        slope, of_results = slopes
        backward = Part(lambda *dy: slope(*dy), *of_results)

        def compute(run: Run) -> list[Any]:
            @gg.custom_gradient
            def own(*values: Any) -> Any:
                inside = run.within(dict(zip(map(id, inputs), values, strict=True)))
                result = tuple(forward.on(run)(*values))
                one = len(result) == 1
                return result[0] if one else result, lambda *dy: tuple(backward.on(inside)(*dy))

            result = own(*run.of(nodes))
            return list(result) if isinstance(result, tuple) else [result]

        outer = [x for x in backward.outer if x not in inputs and x not in forward.outer]
        needs = [*nodes, *forward.outer, *[x for x in outer if x.number < inputs[0].number]]
        return _flow(getattr(f, "__name__", "custom"), needs, compute, forward.result)

    return functools.wraps(f)(call)


scan, foldl, foldr = map(_folding, (control.scan, control.foldl, control.foldr))
__getattr__, __dir__ = forwarding(__name__, own=globals())
