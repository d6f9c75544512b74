"""Oracles of a random program: NumPy, itself in `gg.function`, and finite differences."""

import copy
import importlib
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from programs import Program

import gpugrad as gg
from gpugrad.errors import GpugradError, OutOfMemoryError
from gpugrad.function.passes import pass_names
from gpugrad.function.plan import MEMORY
from gpugrad.testing import assert_close
from gpugrad.testing.close import as_numpy
from gpugrad.testing.grads import random_like

Arrays = list[np.ndarray]


class Loaded:
    """A program that can be run: its function, and its inputs and Variables as Tensors.

    `double` makes all of them double precision. A program is run again from the same start:
    Variables have their first values, and snapshots of them are constants.
    """

    def __init__(self, program: Program, double: bool = False) -> None:
        def tensor(x: np.ndarray) -> gg.Tensor:
            wide = np.complex128 if x.dtype.kind == "c" else np.float64
            return gg.constant(x.astype(wide) if double else x)

        self.program = program
        self.inputs = [tensor(x) for x in program.inputs.values()]
        self.variables = {k: gg.Variable(tensor(x)) for k, x in program.variables.items()}
        snapshots = {k: self.variables[v].value() for k, v in program.snapshots.items()}
        for v in program.snapshots.values():
            self.variables[v].assign(self.variables[v] * 0.5)
        self.start = [as_numpy(v) for v in self.variables.values()]
        self.scope: dict[str, Any] = {
            "gg": gg,
            "np": np,
            "frozen": gg.stop_gradient,
            "wrote": lambda v: None,
            **self.variables,
            **program.constants,
            **snapshots,
        }
        exec(program.code, self.scope)

    def reset(self, start: Arrays | None = None) -> None:
        for v, x in zip(self.variables.values(), start or self.start, strict=True):
            v.assign(x)

    def __call__(self, *inputs: gg.Tensor, **views: gg.Tensor) -> list[gg.Tensor]:
        return self.scope["program"](*inputs, **views)

    def copied(self) -> list[gg.Tensor]:
        """The inputs as Tensors that the program may write to."""
        return [gg.positive(x) for x in self.inputs]

    def views(self, inputs: list[gg.Tensor]) -> dict[str, gg.Tensor]:
        """The program's views of inputs."""
        names = {"a0": inputs[0]}
        for name, view in self.program.views.items():
            names[name] = eval(view, names)
        return {name: names[name] for name in self.program.views}

    def values(self) -> Arrays:
        """The Variables' values."""
        return [as_numpy(v) for v in self.variables.values()]

    @property
    def sources(self) -> list[Any]:
        return [*self.inputs, *self.variables.values()]


def compare(what: str, actual: Any, desired: Any, rtol: float = 1e-9) -> None:
    """Assert that lists of arrays are equal up to rounding relative to the largest element."""
    assert len(actual) == len(desired), what
    for k, (a, d) in enumerate(zip(actual, desired, strict=True)):
        if a is None or d is None:
            assert a is d, f"{what}, result {k}: {a} is not {d}"
            continue
        d = as_numpy(d)
        with np.errstate(all="ignore"):
            scale = max(1.0, np.abs(d[np.isfinite(d)]).max(initial=0.0))
        try:
            assert_close(a, d, rtol=rtol, atol=rtol * scale)
        except AssertionError as error:
            raise AssertionError(f"{what}, result {k}: {error}") from None


# ---- NumPy ------------------------------------------------------------------------------


class Unsupported(Exception):
    """NumPy has no such function."""


class NumpyPart(np.ndarray):
    """A copy of a part of an array, which can be assigned to."""

    def assign(self, x: Any) -> None:
        array, index = self.origin
        array[index] = x


class NumpyVariable(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that is read as a copy."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def value(self) -> np.ndarray:
        return np.array(self.array)

    def __array__(self, *args: Any, **keywords: Any) -> np.ndarray:
        return self.value()

    def __array_ufunc__(self, ufunc: Any, method: str, *xs: Any) -> Any:
        return ufunc(*(x.value() if isinstance(x, NumpyVariable) else x for x in xs))

    def __getitem__(self, index: Any) -> NumpyPart:
        part = np.array(self.array[index]).view(NumpyPart)
        part.origin = self.array, index
        return part

    def assign(self, x: Any) -> Self:
        self.array[...] = x
        return self

    def assign_add(self, x: Any) -> Self:
        return self.assign(self + x)

    def assign_sub(self, x: Any) -> Self:
        return self.assign(self - x)

    def scatter_add(self, rows: Any) -> None:
        np.add.at(self.array, rows[1], rows[0])

    def scatter_sub(self, rows: Any) -> None:
        np.subtract.at(self.array, rows[1], rows[0])

    def scatter_update(self, rows: Any) -> None:
        self.array[rows[1]] = rows[0]


def _while(goes_on: Any, body: Any, carry: Any) -> Any:
    while goes_on(carry):
        carry = body(carry)
    return carry


def _scan(f: Any, carry: Any, xs: Any) -> Any:
    ys = []
    for x in xs:
        carry, y = f(carry, x)
        ys.append(y)
    return carry, np.stack(ys)


def _vmap(f: Any) -> Any:
    return lambda x: np.stack([f(row) for row in x]) if len(x) else _unsupported()


def _unsupported() -> Any:
    raise Unsupported


class NumpyReading:
    """The names of gpugrad that a program uses, as functions of NumPy arrays."""

    cond = staticmethod(lambda p, f, g, *xs: f(*xs) if p else g(*xs))
    while_loop, scan, vmap = staticmethod(_while), staticmethod(_scan), staticmethod(_vmap)
    recompute_grad = staticmethod(lambda f: f)
    custom_gradient = staticmethod(lambda f: lambda x: f(x)[0])
    IndexedSlices = staticmethod(lambda values, indices: (values, indices))
    asarray = staticmethod(lambda x, dtype=None: np.asarray(x, dtype))
    convert_to_tensor = staticmethod(np.array)

    def __init__(self) -> None:
        self.OPS = self

    def __getitem__(self, name: str) -> Any:
        return type("", (), {"eager": staticmethod(self.of_op(name))})

    def __getattr__(self, name: str) -> Any:
        if name not in gg.OPS:  # a derivative
            raise Unsupported(name)
        return self.of_op(name) if getattr(gg, name) is gg.OPS[name].eager else getattr(np, name)

    def of_op(self, name: str) -> Any:
        """The reference of an op, whose result is a view only if the op's is."""
        ref = gg.OPS[name].ref
        if isinstance(ref, str):
            home, _, last = ref.rpartition(".")
            ref = getattr(importlib.import_module(home), last)

        def copied(*args: Any, **keywords: Any) -> Any:
            result = ref(*args, **keywords)
            if isinstance(result, (tuple, list)):
                return [np.array(x, order="C") for x in result]
            if gg.OPS[name].writes and isinstance(result, np.ndarray):
                return result
            return np.array(result, order="C")  # 1j ** np.float64(2) is Python's, without a dtype

        return copied


def check_values(program: Program) -> None:
    """Run the program on NumPy arrays."""
    loaded = Loaded(program, double=True)
    variables = {k: NumpyVariable(np.array(v)) for k, v in loaded.variables.items()}
    snapshots = {k: as_numpy(loaded.scope[k]) for k in program.snapshots}
    scope = loaded.scope | variables | snapshots | {"gg": NumpyReading(), "frozen": np.array}
    try:
        with warnings.catch_warnings(action="ignore"):
            exec(program.code, scope)
            results = scope["program"](*map(as_numpy, loaded.inputs))
    except (Unsupported, ValueError, IndexError):  # NumPy refuses some arrays without elements
        return
    compare("eager against NumPy", loaded(*loaded.inputs), results)
    compare("Variables, eager against NumPy", loaded.values(), list(variables.values()))


# ---- gg.function ------------------------------------------------------------------------


def options(choice: int) -> dict[str, Any]:
    every = (*pass_names(), *MEMORY)
    one = choice % len(every)
    return [
        {},
        {"passes": []},
        {"passes": [*every[:one], *every[one + 1 :]]},
        {"passes": [every[one]]},
        {"donate": 0},
        {"steps_per_call": 2},
        {"remat": "auto"},
    ][choice % 7]


def with_gradient(loaded: Loaded) -> Callable[..., Any]:
    """The program with a tape inside."""

    def f(*inputs: gg.Tensor) -> list[Any]:
        sources = [*inputs, *loaded.variables.values()]
        with gg.GradientTape() as tape:
            tape.watch(inputs)
            ys = loaded(*inputs)
            loss = total(ys)
        return [*ys, *dense(tape.gradient(loss, sources, unconnected_gradients="zero"))]

    return f


def total(ys: list[gg.Tensor]) -> gg.Tensor:
    """A number that depends on all results, differently on each element."""
    parts = [gg.real(y) + gg.imag(y) if y.dtype.kind == "c" else y for y in ys]
    weights = [np.cos(np.arange(y.size) + k).reshape(y.shape) for k, y in enumerate(parts)]
    terms = [gg.sum(gg.astype(y, "float64") * w) for y, w in zip(parts, weights, strict=True)]
    return sum(terms, gg.constant(0.0, "float64"))


def dense(gs: Any) -> list[Any]:
    return [g.to_dense() if isinstance(g, gg.IndexedSlices) else g for g in gs]


def three_calls(loaded: Loaded, f: Callable[..., Any], donated: bool, steps: int) -> list[Any]:
    """Results of three calls with other values, and the Variables' values after each."""
    loaded.reset()
    results = []
    for k in range(3):
        xs = [x * (1 - 0.25 * k) for x in loaded.inputs]
        if steps:
            xs = [gg.stack([x, x * 0.5]) for x in xs]
        elif donated:
            xs[0] = gg.positive(xs[0])
        results += [*f(*xs), *[v.value() for v in loaded.variables.values()]]
        for v in loaded.variables.values():
            v.assign(v * -0.5)
    return results  # compared last: a later call must not change the results of an earlier one


def one_by_one(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same steps as ``steps_per_call``, one by one."""

    def several(*xs: gg.Tensor) -> list[gg.Tensor]:
        steps = [f(*(x[k] for x in xs)) for k in range(2)]
        return [gg.stack(list(ys)) for ys in zip(*steps, strict=True)]

    return several


def check_function(program: Program) -> None:
    """Compare eager runs with those of `gg.function`, alone and with a tape inside or outside."""
    loaded, chosen = Loaded(program), options(program.choice)
    steps, donated = chosen.get("steps_per_call", 0), "donate" in chosen
    narrow = any(x.dtype == np.float32 for x in loaded.sources)
    rtol = 1e-3 if narrow else 1e-9
    for name, f in (("alone", loaded), ("with a tape inside", with_gradient(loaded))):
        if "remat" in chosen:
            loaded.reset()
            peak = gg.function(f).memory(*loaded.inputs).peak
            chosen |= {"memory_limit": int(peak * 0.9)}
        traced = gg.function(f, **chosen)
        eager = one_by_one(f) if steps else f
        wanted = three_calls(loaded, eager, donated, steps)
        try:
            compare(f"{chosen} {name}", three_calls(loaded, traced, donated, steps), wanted, rtol)
        except OutOfMemoryError:
            return
    if "remat" in chosen or steps:
        return

    def taped(f: Callable[..., Any]) -> list[Any]:
        loaded.reset()
        results = []
        for _ in range(2):
            with gg.GradientTape() as tape:
                tape.watch(loaded.inputs)
                loss = total(f(*loaded.inputs))
            results += dense(tape.gradient(loss, loaded.sources, unconnected_gradients="zero"))
        return [*results, *loaded.values()]

    compare(f"{chosen} on a tape", taped(gg.function(loaded, **chosen)), taped(loaded), rtol)


# ---- differences ------------------------------------------------------------------------


class Difference(NamedTuple):
    """A slope by differences, an estimate of its error, and by how much its two sides differ."""

    slope: float
    error: float
    bend: float


class Frozen:
    """Runs in which what has no gradient is that of the first run, plus the Variables' shifts.

    A tape differentiates by each read of a Variable and not through assignments. So differences
    take the values after each assignment from the first run, and add the shift to them.
    """

    def __init__(self, loaded: Loaded) -> None:
        self.loaded, self.log = loaded, []
        loaded.scope["wrote"], loaded.scope["frozen"] = self.wrote, self.frozen
        self.recording, self.position, self.shifts = True, 0, {}

    def frozen(self, x: gg.Tensor) -> gg.Tensor:
        return gg.constant(self.next(as_numpy(x)))

    def wrote(self, v: gg.Variable) -> None:
        value = self.next(as_numpy(v))
        v.assign(value + self.shifts.get(id(v), 0.0))

    def next(self, value: np.ndarray) -> np.ndarray:
        if self.recording:
            self.log.append(value)
        self.position += 1
        return self.log[self.position - 1]

    def run(self, f: Callable[..., Any], directions: Arrays, h: float) -> float:
        """The number that `f` gives where all sources are shifted by `h` times a direction."""
        loaded, n = self.loaded, len(self.loaded.inputs)
        shifted = [
            gg.constant(as_numpy(x) + h * t)
            for x, t in zip(loaded.inputs, directions[:n], strict=True)
        ]
        shifts = [h * t for t in directions[n:]]
        self.position = 0
        self.shifts = {id(v): s for v, s in zip(loaded.variables.values(), shifts, strict=True)}
        loaded.reset([x + s for x, s in zip(loaded.start, shifts, strict=True)])
        result = float(f(*shifted))
        self.recording = False
        return result

    def difference(self, f: Callable[..., Any], directions: Arrays, wanted: float) -> Difference:
        """The derivative of a number along directions; no error estimate where it is `wanted`."""
        start = self.run(f, directions, 0.0)
        slopes, bends = [], []
        for h in (2.5e-4, 1e-3):
            a, b, c, d = (self.run(f, directions, k * h) for k in (1, -1, 2, -2))
            slopes.append((8 * (a - b) - (c - d)) / (12 * h))
            bends.append(abs((4 * a - c - 3 * start) - (3 * start - 4 * b + d)) / (2 * h))
            if abs(slopes[0] - wanted) <= 1e-6 * max(1.0, abs(wanted)):
                return Difference(slopes[0], 0.0, bends[0])
        return Difference(slopes[0], abs(slopes[0] - slopes[1]), bends[0])


def random_directions(loaded: Loaded, seed: int) -> Arrays:
    rng = np.random.default_rng(seed)
    return [random_like(rng, as_numpy(x)) for x in loaded.sources]


def along(gradients: Any, directions: Arrays) -> gg.Tensor:
    """The directional derivative, as a Tensor."""
    pairs = [(g, t) for g, t in zip(dense(gradients), directions, strict=True) if g is not None]
    terms = [gg.sum(gg.real(gg.conj(g) * t)) for g, t in pairs]
    return sum(terms, gg.constant(0.0, "float64"))


def slope(loaded: Loaded, f: Callable[..., gg.Tensor], directions: Arrays, xs: Any) -> gg.Tensor:
    """The derivative of `f` along directions, in reverse mode."""
    with gg.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return along(tape.gradient(y, [*xs, *loaded.variables.values()]), directions)


def tangent(loaded: Loaded, f: Callable[..., gg.Tensor], directions: Arrays) -> float:
    """The derivative of `f` along directions, in forward mode."""
    loaded.reset()
    with gg.ForwardAccumulator(loaded.sources, [gg.constant(t) for t in directions]) as acc:
        y = f(*loaded.inputs)
    return float(acc.jvp(y, unconnected_gradients="zero"))


def pushed(loaded: Loaded, f: Callable[..., gg.Tensor], directions: Arrays) -> Callable[..., Any]:
    """The function that gives the derivative of `f` along directions, in forward mode."""

    def g(*xs: gg.Tensor) -> gg.Tensor:
        tangents = [gg.constant(t) for t in directions]
        with gg.ForwardAccumulator([*xs, *loaded.variables.values()], tangents) as acc:
            y = f(*xs)
        return acc.jvp(y, unconnected_gradients="zero")

    return g


def by_recorders(loaded: Loaded, directions: Arrays) -> dict[str, float]:
    """The derivative along directions, with views from before, between and in recorders."""
    variables = [*loaded.variables.values()]

    def start() -> tuple[list[gg.Tensor], dict[str, gg.Tensor]]:
        loaded.reset()
        xs = loaded.copied()
        return xs, loaded.views(xs)

    def slope_by(tape: Any, y: gg.Tensor, xs: Any) -> float:
        return float(along(tape.gradient(y, [*xs, *variables]), directions))

    numbers, tangents = {}, [gg.constant(t) for t in directions]
    xs, _ = start()
    with gg.GradientTape() as outer:
        outer.watch(xs)
        views = loaded.views(xs)
        with gg.GradientTape() as inner:
            inner.watch(xs)
            y = total(loaded(*xs, **views))
        numbers["the inner tape, views between"] = slope_by(inner, y, xs)
    numbers["the outer tape, its views"] = slope_by(outer, y, xs)

    xs, views = start()
    with gg.GradientTape() as tape:
        tape.watch(xs)
        between = loaded.views(xs)
        with gg.ForwardAccumulator([*xs, *variables], tangents) as acc:
            y = total(loaded(*xs, **between))
        numbers["an accumulator in a tape"] = float(acc.jvp(y, unconnected_gradients="zero"))
    numbers["a tape around an accumulator"] = slope_by(tape, y, xs)

    loaded.reset()
    with gg.Graph().as_default():
        xs = loaded.copied()
        first = [copy.copy(x) for x in xs]
        y = total(loaded(*xs, **loaded.views(xs)))
        gs = gg.gradients(y, [*first, *variables])
    numbers["a Graph and its own views"] = float(along(gs, directions))

    if not loaded.program.views:  # the others would be the same runs
        return numbers

    xs, views = start()
    with gg.GradientTape() as tape:
        tape.watch(xs)
        y = total(loaded(*xs, **views))
    numbers["a tape, older views"] = slope_by(tape, y, xs)

    xs, views = start()
    with gg.GradientTape() as outer, gg.GradientTape() as inner:
        outer.watch(xs)
        with inner.stop_recording():
            inside = loaded.views(xs) if loaded.program.choice % 2 else views
        inner.watch(xs)
        y = total(loaded(*xs, **inside))
    numbers["the inner tape, views while it was paused"] = slope_by(inner, y, xs)
    numbers["the outer tape, views while the inner was paused"] = slope_by(outer, y, xs)

    xs, views = start()
    with gg.ForwardAccumulator([*xs, *variables], tangents) as acc:
        y = total(loaded(*xs, **views))
    numbers["an accumulator, older views"] = float(acc.jvp(y, unconnected_gradients="zero"))

    xs, views = start()
    with gg.Graph().as_default():
        first = [copy.copy(x) for x in xs]
        y = total(loaded(*xs, **views))
        gs = gg.gradients(y, [*first, *variables])
    numbers["a Graph, older views"] = float(along(gs, directions))
    return numbers


STATISTICS = {"derivatives": 0, "kinks": 0}
"""How many derivatives were compared, and at how many of them differences do not converge."""


def agree(what: str, numbers: dict[str, float], difference: Callable[[float], Difference]) -> None:
    """Assert that ways to a derivative agree; differences only where they converge.

    At a tie of a quantile they converge, but to the mean of the slopes on the two sides.
    """
    first = next(iter(numbers.values()))
    for name, x in numbers.items():
        limit = 1e-8 * max(1.0, abs(first))
        assert abs(x - first) <= limit, f"{what}: {name} disagrees: {numbers}"
    STATISTICS["derivatives"] += 1
    value, error, bend = difference(first)
    scale = max(1.0, abs(value), abs(first))
    near = abs(first - value) <= 1e-6 * scale + 20 * error
    if not error < 1e-4 * scale or (bend > 1e-3 * scale and not near):
        STATISTICS["kinks"] += 1
    else:
        assert near, f"{what}: {numbers}, by differences {value} (error {error:.1g})"


def check_derivatives(program: Program, second: bool = True) -> None:
    """Compare derivatives along a random direction with differences: both modes, both orders."""
    loaded, loose = Loaded(program, double=True), Loaded(program, double=True)
    if not loaded.sources:
        return
    frozen = Frozen(loose)
    one, two = (random_directions(loaded, program.choice + k) for k in range(2))

    def value(which: Loaded) -> Callable[..., gg.Tensor]:
        return lambda *xs: total(which(*xs))

    def gradient(which: Loaded) -> Callable[..., gg.Tensor]:
        return lambda *xs: slope(which, value(which), one, xs)

    loaded.reset()
    numbers = {
        "reverse": float(slope(loaded, value(loaded), one, loaded.inputs)),
        "forward": tangent(loaded, value(loaded), one),
        **by_recorders(loaded, one),
    }
    agree("first derivative", numbers, lambda x: frozen.difference(value(loose), one, x))
    if not second:
        return
    loaded.reset()
    numbers = {
        "reverse over reverse": float(slope(loaded, gradient(loaded), two, loaded.inputs)),
        "forward over reverse": tangent(loaded, gradient(loaded), two),
        "forward over forward": tangent(loaded, pushed(loaded, value(loaded), one), two),
    }
    loaded.reset()
    numbers["reverse over forward"] = float(
        slope(loaded, pushed(loaded, value(loaded), one), two, loaded.inputs)
    )
    agree("second derivative", numbers, lambda x: frozen.difference(gradient(loose), two, x))


def check_vmap(program: Program) -> None:
    """Compare `gg.vmap` of the program and of its gradient with a loop."""
    loaded = Loaded(program, double=True)
    if any(v for _, v in program.lines):
        return
    for f in (
        loaded,
        gg.grad(lambda *xs: total(loaded(*xs)), argnums=tuple(range(len(loaded.inputs)))),
    ):
        stacked = [gg.stack([x, x * 0.5]) for x in loaded.inputs]
        try:
            mapped = gg.vmap(lambda *xs, f=f: list(f(*xs)))(*stacked)
        except GpugradError as error:
            if "vmap" in str(error) or "assign" in str(error):
                return
            raise
        compare("vmap", mapped, one_by_one(lambda *xs, f=f: list(f(*xs)))(*stacked))
