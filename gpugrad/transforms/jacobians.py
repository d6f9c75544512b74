"""Jacobians of functions: row by row in reverse mode, or column by column in forward mode."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec

from gpugrad.autodiff.batched import Level
from gpugrad.autodiff.borders import unwrap_level, wrap_level
from gpugrad.autodiff.forward import ForwardAccumulator
from gpugrad.autodiff.gradients import pack_tensors
from gpugrad.autodiff.tape import CHUNK_BYTES, GradientTape
from gpugrad.core import nest
from gpugrad.core.arguments import CALLABLE, one_of
from gpugrad.core.backend import TENSOR
from gpugrad.core.known_as import answering
from gpugrad.core.tensor import Tensor
from gpugrad.errors import DTypeError, saying_where
from gpugrad.ops.arrays.creation import eye
from gpugrad.transforms.derivatives import grad, results_of, split, tensors_in

Function = Callable[..., Any]
P = ParamSpec("P")

_MODE = one_of("reverse", "forward", "auto")
_FIRST = 32
"""Columns of the first pass in forward mode; it tells how much memory a column takes."""


@answering
def jacobian(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    *,
    mode: str = "reverse",
    chunk_bytes: int = CHUNK_BYTES,
) -> Callable[P, Any]:
    """Make a function that returns the Jacobian: output's shape + argument's shape.

    Args:
        f: function that returns a Tensor or a nest of Tensors. The Jacobian has that nest, with the
            argument's nest in place of each Tensor.
        argnums: position, or positions, of the arguments to differentiate by; each may be a
            nested structure.
        mode: ``"reverse"`` runs `f` once, and a batched backward pass for all elements of its
            result, like jax.jacrev. ``"forward"`` runs `f` on a batch of tangents, one for each
            element of the arguments, like jax.jacfwd: that takes less time and memory if the
            arguments have fewer elements than the result. It runs `f` again for each chunk.
            ``"auto"`` runs `f` once in reverse mode, and changes to forward mode if that is smaller
            and nothing is complex.
        chunk_bytes: roughly how much memory one batched pass may take.

    Raises:
        ArgumentError: another mode.
        DTypeError: complex arguments or results in forward mode.

    >>> gg.jacobian(lambda x: x * x)(gg.constant([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    >>> residuals = lambda p: p[0] * gg.arange(3.0) + p[1]  # more results than arguments
    >>> print(gg.jacobian(residuals, mode="forward")(gg.constant([5.0, 7.0])))
    [[0. 1.]
     [1. 1.]
     [2. 1.]]
    """
    return _with_jacobian(
        "jacobian", f, argnums, _rows, chunk_bytes, _MODE("jacobian", "mode", mode)
    )


def _rows(tape: GradientTape, target: Any, sources: Any, *options: Any, **more: Any) -> Any:
    return pack_tensors(sources, tape.jacobian(target, tensors_in(sources), *options, **more))


def _with_jacobian(
    name: str, f: Function, argnums: Any, take: Any, chunk_bytes: int, mode: str = "reverse"
) -> Function:
    CALLABLE(name, "f", f)

    @functools.wraps(f)
    def with_jacobian(*args: Any, **keywords: Any) -> Any:
        if mode == "forward":
            return _by_columns(f, argnums, args, keywords, chunk_bytes)
        arguments, wanted = split(f, args, argnums)
        with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(tensors_in(wanted))
            y = f(*arguments, **keywords)
        if mode == "auto" and _is_tall(tensors_in(wanted), results_of(y)):
            del tape
            return _by_columns(f, argnums, args, keywords, chunk_bytes)

        def derivatives(leaf: Any) -> Any:
            if leaf is not y and nest.is_constant(leaf):
                return leaf
            return take(tape, leaf, wanted, "zero", chunk_bytes=chunk_bytes)

        return nest.map_structure(derivatives, y)

    return saying_where(with_jacobian, name)


def _is_tall(sources: Sequence[Tensor], results: Sequence[Any]) -> bool:
    """Whether there are more elements of real results than of real arguments."""
    if any(not isinstance(t, Tensor) or t.dtype.kind == "c" for t in (*sources, *results)):
        return False
    return sum(t.size for t in results) > sum(t.size for t in sources)


def _by_columns(f: Function, argnums: Any, args: Any, keywords: Any, chunk_bytes: int) -> Any:
    """The Jacobian from tangents of the result, for chunks of the sources' elements."""
    _, wanted = split(f, args, argnums)
    sources = tensors_in(wanted)
    size, start, step = sum(s.size for s in sources), 0, _FIRST
    chunks: list[list[Tensor]] = []

    while start < size or not chunks:
        level = Level(max(1, min(step, size - start)), randomness="same")
        try:
            with level:
                arguments, wanted = split(f, args, argnums)  # anew: `f` may write to them
                tangents = [wrap_level(t, level, 0) for t in _basis(sources, level.size, start)]
                with ForwardAccumulator(tensors_in(wanted), tangents) as accumulator:
                    y = f(*arguments, **keywords)
                results = results_of(y)
                _check_columns(sources, results)
                pushed = accumulator.jvp(results, unconnected_gradients="zero")
                chunks.append([unwrap_level(t, level, 0) for t in pushed])
        except BaseException:  # Ctrl-C may have kept the `with` statement from ending it
            level.__exit__()
            raise
        bytes_each = sum(t.nbytes for t in accumulator.known.values())
        start, step = start + level.size, max(1, chunk_bytes // max(bytes_each, 1))
    columns = iter([TENSOR.concat(list(parts)) for parts in zip(*chunks, strict=True)])

    def derivatives(leaf: Any) -> Any:
        if leaf is not y and nest.is_constant(leaf):
            return leaf
        behind, blocks, at = TENSOR.moveaxis(next(columns), 0, -1), [], 0
        for source in sources:
            block = behind[..., at : at + source.size]
            block = TENSOR.reshape(block, (*behind.shape[:-1], *source.shape))
            is_same = block.dtype == source.dtype
            blocks.append(block if is_same else TENSOR.astype(block, source.dtype))
            at += source.size
        return pack_tensors(wanted, blocks)

    return nest.map_structure(derivatives, y)


def _basis(sources: Sequence[Tensor], n: int, start: int) -> Iterator[Tensor]:
    """Tangents of the sources, all 0 but for one element: the elements from `start` on, in turn."""
    for source in sources:
        ones = eye(n, source.size, start, source.dtype, device=source.device)
        yield TENSOR.reshape(ones, (n, *source.shape))
        start -= source.size


def _check_columns(sources: Sequence[Tensor], results: Sequence[Any]) -> None:
    for t in (*sources, *results):
        if not isinstance(t, Tensor):
            raise DTypeError(f"jacobian: the function must return Tensors, got {t!r:.60}.")
        if t.dtype.kind == "c":
            raise DTypeError(
                'jacobian: mode="forward" takes real arguments and results; use mode="reverse".'
            )


@answering
def batch_jacobian(
    f: Callable[P, Any], argnums: int = 0, *, chunk_bytes: int = CHUNK_BYTES
) -> Callable[P, Any]:
    """Make a function that returns the Jacobian of each example of a batch.

    Args:
        f: function whose result and argument have the batch axis first. An example of the result
            may only depend on the same example of the argument, which is not checked.
        argnums: position of the argument.
        chunk_bytes: as for `jacobian`.

    Returns:
        Function whose result has the shape (batch, result's axes..., argument's axes...).

    >>> gg.batch_jacobian(lambda x: x * x)(gg.constant([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
    """
    return _with_jacobian("batch_jacobian", f, argnums, GradientTape.batch_jacobian, chunk_bytes)


@answering
def hessian(
    f: Callable[P, Any], argnums: int | Sequence[int] = 0, *, chunk_bytes: int = CHUNK_BYTES
) -> Callable[P, Any]:
    """Make a function that returns the Hessian of a scalar function.

    Args:
        f: function that returns a 0-d Tensor.
        argnums, chunk_bytes: as for `jacobian`. If the arguments are nests, the result is a nest
            of nests: ``hessian(loss)(params)["w"]["b"]``.

    >>> gg.hessian(lambda x: gg.sum(x * x * x))(gg.constant([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    CALLABLE("hessian", "f", f)
    return _with_jacobian("hessian", grad(f, argnums), argnums, _rows, chunk_bytes)
