"""Compares the derivatives of a function with numerical differences."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from gpugrad.autodiff.forward import ForwardAccumulator
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import nest
from gpugrad.core.arguments import CALLABLE
from gpugrad.core.backend import is_inexact
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import ArgumentError, describe, saying_where
from gpugrad.testing.close import Array, GradientCheckError, as_numpy, name_failure, to_double

EPS, RTOL, ATOL = 1e-4, 1e-6, 1e-7
"""Step of the differences, and the tolerances of a derivative."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A function of Tensors and the point where its derivatives are checked.

    `function` takes one Tensor for each array of `point` and returns a list of inexact Tensors;
    `put` moves an array to the function's device; `total` adds up a number over all processes that
    the function's results depend on.
    """

    title: str
    names: Sequence[str]
    function: Callable[[list[Tensor]], list[Tensor]]
    point: list[Array]
    put: Callable[[Array], Tensor] = wrap
    total: Callable[[float], float] = float

    def tensors(self, arrays: Sequence[Array]) -> list[Tensor]:
        """The arrays as Tensors on the device of the case."""
        return [self.put(np.asarray(a)) for a in arrays]

    def values(self, point: Sequence[Array]) -> list[Array]:
        """The function's results as NumPy arrays."""
        return [as_numpy(y) for y in self.function(self.tensors(point))]

    def difference(self, direction: Sequence[Array], eps: float) -> list[Array]:
        """The derivative along a direction, by central differences of fourth order."""
        total: list[Array] = []
        for k, weight in ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0)):
            inexact = [x + k * eps * t for x, t in zip(self.point, direction, strict=True)]
            terms = [weight * to_double(y) for y in self.values(inexact)]
            total = [a + b for a, b in zip(total, terms, strict=True)] if total else terms
        return [y / (12 * eps) for y in total]

    def gradients(self, cotangents: Sequence[Array], *, outer: bool = False) -> list[Any]:
        """Gradients of ``<ct, f(x)>``: a Tensor or None for each argument.

        The backward pass runs on plain arrays; with `outer` on Tensors, as for second order.
        """
        xs = self.tensors(self.point)
        with contextlib.ExitStack() as stack:
            if outer:
                stack.enter_context(GradientTape()).watch(xs)
            with GradientTape() as tape:
                tape.watch(xs)
                ys = self.function(xs)
            return list(tape.gradient(ys, xs, output_gradients=self.tensors(cotangents)))

    def tangents(self, direction: Sequence[Array]) -> list[Array]:
        """``J @ t`` in forward mode."""
        xs = self.tensors(self.point)
        with ForwardAccumulator(xs, self.tensors(direction)) as acc:
            ys = self.function(xs)
        return [as_numpy(t) for t in acc.jvp(ys, unconnected_gradients="zero")]

    def gradient_case(self, cotangents: list[Array]) -> Case:
        """The gradient of ``<ct, f(x)>`` as a function of x and ct."""
        n = len(self.point)

        def gradient(both: list[Tensor]) -> list[Tensor]:
            xs = both[:n]
            with GradientTape() as tape:
                tape.watch(xs)
                ys = self.function(xs)
            grads = tape.gradient(ys, xs, output_gradients=both[n:], unconnected_gradients="zero")
            return [g.to_dense() if isinstance(g, IndexedSlices) else g for g in grads]

        names = [*self.names, *(f"the cotangent of result {k}" for k in range(len(cotangents)))]
        title = self.title + ", gradient"
        return Case(title, names, gradient, [*self.point, *cotangents], self.put, self.total)


def _inner_product(a: Sequence[Array], b: Sequence[Array]) -> float:
    return sum(float(np.sum(np.real(np.conj(x) * y))) for x, y in zip(a, b, strict=True))


def random_like(rng: np.random.Generator, x: Array) -> Array:
    """Normal random numbers in the shape of `x`, complex if `x` is."""
    real = np.asarray(rng.standard_normal(x.shape))
    if x.dtype.kind == "c":
        return np.asarray(real + 1j * rng.standard_normal(x.shape))
    return real


def _direction(rng: np.random.Generator, x: Array) -> Array:
    """A random direction, Hermitian if `x` is."""
    t = random_like(rng, x)
    return (t + np.conj(np.swapaxes(t, -1, -2))) / 2 if is_hermitian(x) else t


def is_hermitian(x: Array) -> bool:
    """Whether `x` consists of Hermitian matrices larger than 1 x 1."""
    square = x.ndim >= 2 and x.shape[-1] == x.shape[-2] > 1
    return square and np.array_equal(x, np.conj(np.swapaxes(x, -1, -2)))


def _format(arrays: Any) -> str:
    arrays = arrays if isinstance(arrays, (list, tuple)) else [arrays]
    texts = [
        np.array2string(to_double(as_numpy(a)), precision=6, threshold=24, separator=", ")
        for a in arrays
    ]
    return ", ".join(" ".join(t.split()) for t in texts)


def fail(case: Case, what: str, facts: dict[str, Any]) -> NoReturn:
    """Raise an error with everything that is needed to reproduce the failure."""
    args = describe(dict(zip(case.names, case.point, strict=True)))
    lines = [f"{case.title}: {what}", f"  arguments: {args}", f"  values: {_format(case.point)}"]
    lines += [f"  {name}: {value}" for name, value in facts.items()]
    raise GradientCheckError("\n".join(lines))


# ---- derivatives against differences ----------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Limits:
    """Step of the differences, and the tolerances of a derivative."""

    eps: float = EPS
    rtol: float = RTOL
    atol: float = ATOL

    def agree(self, a: float, b: float) -> bool:
        """Whether two directional derivatives count as equal."""
        return abs(a - b) <= self.atol + self.rtol * max(abs(a), abs(b))


def check_reverse(case: Case, rng: np.random.Generator, limits: Limits) -> None:
    """Compare each gradient with differences along a random direction."""
    cts = [random_like(rng, y) for y in case.values(case.point)]
    if not cts or not case.point:
        return
    with name_failure(case.title, "the backward pass"):
        grads = case.gradients(cts)
    for k, (name, x, g) in enumerate(zip(case.names, case.point, grads, strict=True)):
        t = [_direction(rng, x) if i == k else np.zeros_like(v) for i, v in enumerate(case.point)]
        numerical = case.total(_inner_product(cts, case.difference(t, limits.eps)))
        g = None if g is None else as_numpy(g)
        alike = g is None or (g.shape == x.shape and g.dtype == x.dtype)
        exact = case.total(_inner_product([g], [t[k]]) if g is not None and alike else 0.0)
        if alike and limits.agree(exact, numerical):
            continue
        facts: dict[str, Any] = {"cotangent": _format(cts)}
        facts[f"direction of {name}"] = _format(t[k])
        if g is not None and not alike:
            fail(case, f"the gradient by {name} is {g.dtype} {g.shape}", facts)
        facts["gradient"] = None if g is None else _format(g)
        facts["<gradient, direction>"] = exact
        facts[f"<cotangent, differences> with eps={limits.eps:g}"] = numerical
        fail(case, f"the gradient by {name} is wrong", facts)


def check_forward_mode(case: Case, rng: np.random.Generator, limits: Limits) -> None:
    """Compare ``J @ t`` with differences and with reverse mode, which computes the transpose."""
    cts = [random_like(rng, y) for y in case.values(case.point)]
    if not cts or not case.point:
        return
    t = [_direction(rng, x) for x in case.point]
    with name_failure(case.title, "forward mode"):
        tangents = case.tangents(t)
    numerical = case.difference(t, limits.eps)
    for k, (j, d) in enumerate(zip(tangents, numerical, strict=True)):
        scale = float(np.max(np.abs(d), initial=0.0))
        alike = j.shape == d.shape and j.dtype == cts[k].dtype
        if alike and np.all(np.abs(j - d) <= limits.atol + limits.rtol * scale):
            continue
        facts = {"directions": _format(t), "tangent": _format(j), "differences": _format(d)}
        if not alike:
            fail(case, f"the tangent of result {k} is {j.dtype} {j.shape}", facts)
        fail(case, f"the tangent of result {k} is wrong (eps={limits.eps:g})", facts)
    gs = case.gradients(cts)
    pairs = [(as_numpy(g), ti) for g, ti in zip(gs, t, strict=True) if g is not None]
    for g, ti in pairs:
        if g.shape != ti.shape:
            fail(case, f"a gradient has the shape {g.shape}, not {ti.shape}", {})
    forward = case.total(_inner_product(cts, tangents))
    reverse = case.total(_inner_product(*zip(*pairs, strict=True)) if pairs else 0.0)
    if not limits.agree(forward, reverse):
        fail(
            case,
            "forward mode and reverse mode disagree",
            {
                "cotangent": _format(cts),
                "directions": _format(t),
                "<cotangent, J t>": forward,
                "<transposed J cotangent, t>": reverse,
            },
        )


_MODES = {"rev": check_reverse, "fwd": check_forward_mode}


def check_orders(
    case: Case, orders: range, modes: Sequence[str], rng: np.random.Generator, limits: Limits
) -> None:
    """Check derivatives of several orders, each as a derivative of the gradient one order below."""
    for order in range(1, orders.stop):
        if order in orders:
            for mode in modes:
                _MODES[mode](case, rng, limits)
        if order + 1 < orders.stop:
            cts = [random_like(rng, y) for y in case.values(case.point)]
            if not cts:
                return
            case = case.gradient_case(cts)


_HIGHEST = 8  # order of a derivative: each costs several times the one before


@saying_where
def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    *,
    order: int = 2,
    modes: Sequence[str] = ("rev", "fwd"),
    eps: float = EPS,
    rtol: float = RTOL,
    atol: float = ATOL,
    seed: int = 0,
) -> None:
    """Compare the derivatives of a function with numerical differences.

    Args:
        f: deterministic function of Tensors that returns Tensors, both possibly in nested
            structures.
        args: its arguments. Floating-point arrays of any dtype are converted to float64 (complex
            ones to complex128) and differentiated by; everything else is passed unchanged.
        order: highest order of derivative; 2 also checks the derivatives of the gradient.
        modes: ``"rev"`` for tapes, ``"fwd"`` for ForwardAccumulator.
        eps: step of the differences, which are of fourth order.
        rtol, atol: tolerances of <gradient, direction>.
        seed: seed of the random directions.

    Raises:
        GradientCheckError: a derivative is wrong; the message shows all numbers.
        ArgumentError: a mode is unknown, or no argument is a floating-point array.

    >>> gg.testing.check_grads(lambda x, y: gg.sin(x) * y, (gg.constant([0.5, 1.0]), 2.0))
    """
    CALLABLE("check_grads", "f", f)
    if type(order) is not int or not 1 <= order <= _HIGHEST:
        raise ArgumentError(f"check_grads: order must be an int from 1 to {_HIGHEST}, got {order}.")
    for mode in modes:
        if mode not in _MODES:
            raise ArgumentError(f"check_grads: no mode {mode!r}; the modes are {list(_MODES)}.")
    leaves = [as_numpy(a) if isinstance(a, Tensor) else a for a in nest.flatten(list(args))]
    inexact = [i for i, a in enumerate(leaves) if isinstance(a, np.ndarray) and is_inexact(a.dtype)]
    if not inexact:
        raise ArgumentError("check_grads: none of the arguments is a floating-point array.")

    def function(xs: list[Tensor]) -> list[Tensor]:
        own = list(leaves)
        for i, x in zip(inexact, xs, strict=True):
            own[i] = x
        results = nest.flatten(f(*nest.pack(list(args), own)))
        return [y for y in results if isinstance(y, Tensor) and is_inexact(y.dtype)]

    name = getattr(f, "__name__", repr(f))
    names = [f"argument {i}" for i in inexact]
    case = Case(name, names, function, [to_double(leaves[i]) for i in inexact])
    rng, limits = np.random.default_rng(seed), Limits(eps, rtol, atol)
    check_orders(case, range(1, order + 1), modes, rng, limits)
