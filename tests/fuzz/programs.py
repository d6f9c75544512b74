"""Random programs: hypothesis strategies that write Python source, line by line.

A line runs as soon as it is drawn, so that the next one can use its shape and dtype. A line that
raises an error of gpugrad, or gives NaN or infinity, is dropped. Arguments are mapped into the op's
domain, as its samples in the registry show it.
"""

import dataclasses
import functools
import itertools
import string
import textwrap
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np

import gpugrad as gg
from gpugrad.core.devices import CPU, Device
from gpugrad.core.views import View
from gpugrad.errors import GpugradError
from gpugrad.testing.checks.subject import Sample, Subject

DIFFERENT_WITHOUT_ELEMENTS = {  # from NumPy
    *("standardize", "rms_standardize"),  # the mean is 0, and NaN in NumPy
    *("nanquantile", "nanpercentile"),  # NumPy's result lacks the axes of q
}

NOT_DRAWN = {
    "stop_gradient": "the programs call it `frozen`",
    "window_argmax": "it needs the windows' maxima",
    "tanh_slope": "its second argument must be tanh of the first",
    "sigmoid_slope": "its second argument must be sigmoid of the first",
    "searchsorted": "its samples have ties, which the rounding of other ops breaks",
}

HELPERS = '''
def like(y, x):
    """`y` in the shape and dtype of `x`: its elements are repeated or cut."""
    return gg.astype(gg.resize(y, x.shape), x.dtype)


def within(x, low, high):
    """`x`, mapped smoothly into an interval."""
    return low + (high - low) * gg.sigmoid(x)


def near(array, x):
    """An array of an op's sample, changed a little by `x`; a symmetric one stays symmetric."""
    change = gg.sigmoid(gg.resize(x, array.shape))
    if array.ndim > 1 and np.array_equal(array, np.conj(np.swapaxes(array, -1, -2))):
        change = (change + gg.matrix_transpose(change)) / 2
    return gg.asarray(array, x.dtype if array.dtype.kind == "f" else None) * (1 - 0.05 * change)


@gg.custom_gradient
def custom_square(x):
    return x * x, lambda g: 2 * x * g


def by_variable(f, v):
    with gg.GradientTape() as tape:
        y = gg.sum(f(v))
    return tape.gradient(y, v, unconnected_gradients="zero")
'''


@dataclasses.dataclass
class Program:
    """Source of a program, with what stands before it.

    Attributes:
        inputs, variables, constants: their values, by name.
        snapshots: names of Variables whose values are kept before an assignment, by name.
        views: expressions of `a0` and of earlier views, by name. The function makes them of a copy
            of `a0`, unless it gets them, and writes to one before it reads it.
        lines: source, and the name of the Variable that it assigns to, or "".
        results: the names that the function returns.
        choice: a random number, by which the oracles choose options.
    """

    inputs: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    variables: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    constants: dict[str, Any] = dataclasses.field(default_factory=dict)
    snapshots: dict[str, str] = dataclasses.field(default_factory=dict)
    views: dict[str, str] = dataclasses.field(default_factory=dict)
    lines: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    results: list[str] = dataclasses.field(default_factory=list)
    choice: int = 0

    def function(self, hooks: bool) -> str:
        """The source of the program's function; with `hooks`, it reports what it assigns to."""
        lines = [line + f"\nwrote({v})" * bool(hooks and v) for line, v in self.lines]
        made = ["a0 = gg.positive(a0)", *(f"{w} = {view}" for w, view in self.views.items())]
        lines = [f"if {w} is None: {'; '.join(made)}" for w in [*self.views][:1]] + lines
        body = "\n".join([*lines, f"return [{', '.join(self.results)}]"])
        parameters = ", ".join([*self.inputs, *(f"{w}=None" for w in self.views)])
        return f"def program({parameters}):\n{textwrap.indent(body, '    ')}\n"

    @functools.cached_property
    def code(self) -> Any:
        """The compiled source."""
        return compile(HELPERS + self.function(hooks=True), "<program>", "exec")

    def script(self) -> str:
        """A script that runs the program."""
        head = ["import numpy as np\nimport gpugrad as gg\n"]
        head += [f"{k} = {_literal(v)}" for k, v in self.constants.items()]
        head += [f"{k} = gg.constant({_literal(v)})" for k, v in self.inputs.items()]
        head += [f"{k} = gg.Variable({_literal(v)})" for k, v in self.variables.items()]
        for name, v in self.snapshots.items():
            head += [f"{name} = {v}.value()", f"{v}.assign({v} * 0.5)"]
        call = f"\nfor x in program({', '.join(self.inputs)}):\n    print(x)\n"
        frozen = "frozen = gg.stop_gradient"
        return "\n".join(["", *head, HELPERS, frozen, "\n", self.function(hooks=False), call])


def _literal(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"np.array({x.tolist()!r}, {x.dtype.name!r}).reshape({x.shape})"
    if isinstance(x, Device):
        return f"gg.{x!r}"
    return f"np.{x.__name__}" if isinstance(x, type) else repr(x)


class _Source(str):
    """Source text that stands in the place of an argument."""

    __repr__ = str.__str__


# ---- what the registry says -------------------------------------------------------------


def _domains(samples: list[Sample]) -> list[tuple[float, float]] | None:
    """The interval of each array's values in the samples of an op."""
    full = [s for s in samples if all(np.size(a) for a in s.leaves)]
    differentiable = (len(s.inexact_leaves) == len(s.leaves) for s in full)
    if not full or not all(differentiable):
        return None
    columns = zip(*(s.leaves for s in full), strict=True)
    every = [np.concatenate([np.ravel(a) for a in column]) for column in columns]
    ends = [np.round([v[np.isfinite(v)].min(), v[np.isfinite(v)].max()], 3) for v in every]
    return [(float(low), float(high)) for low, high in ends]


@functools.cache
def registry() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """By name: elementwise ops with domains, ops along axes with domains, samples of all ops."""
    elementwise, along_axis, samples = {}, {}, {}
    for name, op in sorted(gg.OPS.items()):
        if name in NOT_DRAWN:
            continue
        subject = Subject(op, 0, 1, CPU)
        samples[name] = subject.samples
        if op.variadic or not (real := subject.real_samples):
            continue
        if op.kind == "elementwise":
            elementwise[name] = _domains(real)
        elif "axis" in op.params and len(op.arrays) == 1:
            along_axis[name] = real, _domains(real)
    return (
        {k: v for k, v in elementwise.items() if v},
        {k: v for k, v in along_axis.items() if v[1]},
        {k: v for k, v in samples.items() if v},
    )


def _eager(name: str) -> str:
    return f"gg.{name}" if getattr(gg, name) is gg.OPS[name].eager else f"gg.OPS[{name!r}].eager"


# ---- writing a program ------------------------------------------------------------------


class Writer:
    """A program while it is drawn, and the values of its names so far."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw, self.program = draw, Program()
        self.scope: dict[str, Any] = {"gg": gg, "np": np, "frozen": gg.stop_gradient}
        exec(HELPERS, self.scope)
        self.names: list[str] = []
        self.numbers = itertools.count()

    def pick(self, choices: Any) -> Any:
        """One of some choices; failures shrink to the first."""
        return self.draw(st.sampled_from(list(choices)))

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def array(self, shape: tuple[int, ...], dtype: str = "float64") -> np.ndarray:
        """Random values, with few digits so that they print short."""
        rng = np.random.default_rng(self.integer(0, 999))
        x = np.round(rng.uniform(-1.5, 1.5, shape), 3)
        if dtype == "complex128":
            x = x + 1j * np.round(rng.uniform(-1, 1, shape), 3)
        return np.asarray(x, dtype)

    def shape(self) -> tuple[int, ...]:
        return tuple(self.draw(st.lists(st.sampled_from([2, 3, 1, 4, 0]), max_size=3)))

    def value(self, name: str) -> Any:
        return self.scope[name]

    def constant(self, x: Any) -> str:
        """A name for a constant of the program."""
        name = f"c{len(self.program.constants)}"
        self.program.constants[name] = self.scope[name] = x
        return name

    def literal(self, x: Any) -> str:
        """Source of an argument; what has none becomes a constant."""
        if isinstance(x, (list, tuple)):
            inner = "".join(self.literal(v) + ", " for v in x)
            return f"[{inner}]" if isinstance(x, list) else f"({inner})"
        if isinstance(x, (float, complex)) and not np.isfinite(x):
            return f"{type(x).__name__}('{x}')"
        plain = isinstance(x, (_Source, int, float, complex, str, slice, type(None)))
        return repr(x) if plain or x is Ellipsis else self.constant(x)

    def call(self, name: str, args: Any, keywords: Any) -> str:
        texts = [self.literal(a) for a in args]
        texts += [f"{k}={self.literal(v)}" for k, v in keywords.items()]
        text = f"{_eager(name)}({', '.join(texts)})"
        op = gg.OPS[name]
        return text if op.differentiable or op.outputs > 1 else f"frozen({text})"

    def some(self) -> str:
        """The name of a value."""
        return self.pick(self.names[::-1])

    def real(self) -> str:
        """An expression of real values."""
        name = self.some()
        return f"gg.real({name})" if self.value(name).dtype.kind == "c" else name

    def fitting(self, x: str) -> str:
        """An expression of real values that broadcasts with the value `x`."""
        y, shape = self.real(), self.value(x).shape
        try:
            fits = len(np.broadcast_shapes(shape, eval(y, self.scope).shape)) < 4
        except ValueError:
            fits = False
        return y if fits else f"gg.resize({y}, {shape})"

    def add(self, *texts: str) -> None:
        """Add ``name = text`` with one of some texts, made small enough for the lines after it."""
        text, name = self.pick(texts), f"x{next(self.numbers)}"
        result = eval(text, self.scope)
        if isinstance(result, (tuple, list)):
            k = self.integer(0, len(result) - 1)
            text, result = f"{text}[{k}]", result[k]
        lines = [f"{name} = {text}"]
        if not isinstance(result, gg.Tensor):
            raise GpugradError("no Tensor")
        constant = text.startswith("frozen") and result.dtype.kind != "c"  # one_hot gives float32
        if constant or result.dtype.kind not in "fc":
            lines.append(f"{name} = gg.astype({name}, 'float64')")
        if result.size > 40:
            lines.append(f"{name} = gg.reshape({name}, -1)[:: {result.size // 12}]")
        if result.dtype.kind in "fc" and result.size and np.abs(result.numpy()).max() > 6:
            lines.append(f"{name} = {name} / (1 + gg.abs({name}))")
        self.run("\n".join(lines), name)

    def run(self, text: str, name: str, assigns: str = "") -> None:
        """Run lines that give `name` a value; keep them if it is finite."""
        exec(text, self.scope)
        if not np.all(np.isfinite(self.value(name).numpy())) or self.value(name).dtype.itemsize < 4:
            raise GpugradError("not finite")
        self.program.lines.append((text, assigns))
        if not assigns and name not in self.names:
            self.names.append(name)

    # ---- the families of steps ------------------------------------------------------

    def elementwise(self) -> None:
        """An op of the registry on values of any shapes that broadcast."""
        op = self.pick(registry()[0])
        x, domains = self.some(), registry()[0][op]
        args = [self.into(self.fitting(x), d) for d in domains]
        k = self.integer(0, len(args) - 1)
        kinds = ["array", "array", "complex", *(["number"] if len(args) > 1 else [])]
        kind = self.pick(kinds)
        if kind == "complex" and "c" in gg.OPS[op].kinds:
            source = x if self.value(x).dtype.kind == "c" else args[k]
            args[k] = f"({source} + (0.3 + 0.4j))"  # off the branch cuts, where signs of 0 decide
        elif kind == "number" and k < len(domains):
            low, high = domains[k]
            numbers = [n for n in (2, 3, -1, 0.5, 1.5, -0.7, low, high) if low <= n <= high]
            args[k] = self.literal(self.pick(numbers))
        self.add(self.call(op, map(_Source, args), {}))

    def into(self, x: str, domain: tuple[float, float]) -> str:
        low, high = domain
        return x if low < -1.8 and high > 1.8 else f"within({x}, {low}, {high})"

    def axis(self, ndim: int, default: Any = 0) -> Any:
        axes = st.integers(-ndim, ndim - 1)
        if default is None:
            axes = axes | st.none()
        return self.draw(axes)

    def along_axis(self) -> None:
        """An op along an axis, with the other arguments of one of its samples."""
        name = self.pick(registry()[1])
        samples, (domain,) = registry()[1][name]
        sample, op, x = self.pick(samples), gg.OPS[name], self.real()
        value = eval(x, self.scope)
        args, keywords = sample.bind_leaves([_Source(self.into(x, domain))])
        names = list(op.signature.parameters)
        keywords |= dict(zip(names[1:], args[1:], strict=False))
        if not value.ndim or (not value.size and name in DIFFERENT_WITHOUT_ELEMENTS):
            raise GpugradError("there is nothing to compare")
        keywords["axis"] = self.axis(value.ndim, op.params["axis"])
        if "keepdims" in op.params:
            keywords["keepdims"] = self.pick([False, True])
        self.add(self.call(name, args[:1], keywords))

    def sample(self) -> None:
        """Any op of the registry on the arrays of one of its samples, changed by values."""
        sample = self.pick(registry()[2][self.pick(registry()[2])])
        leaves = [
            _Source(f"near({self.constant(leaf)}, {self.real()})")
            if k in sample.inexact_leaves and np.isfinite(leaf).all()
            else leaf
            for k, leaf in enumerate(sample.leaves)
        ]
        args, keywords = sample.bind_leaves(leaves)
        self.add(self.call(sample.op.name, args, keywords))

    def reshaped(self) -> None:
        """A value in another shape, or with its axes in another order."""
        name = self.some()
        x = self.value(name)
        n, axes = x.ndim, self.draw(st.permutations(range(x.ndim)))
        self.add(
            f"gg.reshape({name}, (-1,))",
            f"{name}.T",
            f"gg.permute_dims({name}, {tuple(axes)})",
            f"gg.expand_dims({name}, {self.axis(n + 1)})",
            f"gg.squeeze({name})",
            f"gg.broadcast_to({name}, {(2, *x.shape)})",
            f"gg.resize({name}, {self.shape()})",
            f"gg.tile({name}, {(2,) * max(n, 1)})",
            f"gg.stack([{name}, {name}], {self.axis(n + 1)})",
            f"gg.reshape({name}, {(*x.shape[:-1], 1, *x.shape[-1:])})",
            f"gg.flip({name})",
            f"gg.concat([{name}, {self.fitting(name)}])",
            f"{self.pick([2, 0.5, 1 - 2j])} * {name} + {self.pick([1, -1.5, 0.5j])}",
            f"{name} ** {self.pick([2, 3, 0.0, 1, 2.0])}",
            f"{self.pick([2, 0.5, 1 + 1j])} ** {name}",
            f"{name}.mT",
            f"gg.atleast_2d({name})",
        )

    def index(self, shape: tuple[int, ...], basic: bool = False) -> str:
        """Source of an index for an array of that shape."""
        parts = []
        for n in shape[: self.integer(0, len(shape))]:
            kinds = ["::2", ":", "1:", "::-1", ":-1", "None, :"]
            if n:
                i, j = self.integer(0, n - 1), self.integer(0, n - 1)
                kinds += [str(i), str(i - n), f"{i}:{j + 1}"]
                if not basic:
                    kinds += [f"[{i}, {j}, {i}]", f"np.array([[{i}], [{j}]])"]
                    kinds += [f"np.arange({n}) % 2 == {i % 2}"]
            parts.append(self.pick(kinds))
        if self.pick([False, False, True]):
            parts.insert(self.integer(0, len(parts)), "...")
        return f"{', '.join(parts)}" or "..."

    def indexed(self) -> None:
        name = self.some()
        shape = self.value(name).shape
        masked = f"gg.resize({name}[gg.real({name}) > 0.1], (2, 2))"  # one shape for all values
        plain = f"{name}[{self.index(shape)}]"
        self.add(plain, plain, masked)

    def product(self) -> None:
        """Products and einsum, of operands in shapes that fit."""
        name = self.some()
        x, y, k = self.value(name), self.real(), self.integer(1, 3)
        letters = string.ascii_lowercase[: x.ndim]
        chosen = "".join(self.draw(st.permutations(letters + "z")))[: self.integer(1, 3)]
        result = "".join(self.draw(st.permutations(sorted(set(letters + chosen)))))
        result = result[: self.integer(0, len(result))]
        sizes = dict(zip(letters, x.shape, strict=True), z=k)
        operand = f"gg.resize({y}, {tuple(sizes[c] for c in chosen)})"
        right = f"gg.resize({y}, {(*x.shape[-1:], k)})"
        self.add(
            f"{name} @ {right}",
            f"gg.tensordot({name}, {right}, 1)",
            f"gg.outer({name}, {y})",
            f"gg.einsum('{letters},{chosen}->{result}', {name}, {operand})",
            f"gg.vecdot({name}, gg.resize({y}, {x.shape}))",
            f"gg.kron({name}, gg.resize({y}, (2,)))",
        )

    def read(self) -> None:
        """A Variable, old values of one, or a constant of the gradient."""
        v = self.pick(self.program.variables)
        self.add(
            f"{v}.value()",
            f"gg.sin({v})",
            f"{v} * {self.fitting(v)}",
            f"gg.convert_to_tensor({v})",
            f"{v}[{self.index(self.value(v).shape)}]",
            f"gg.mean({v})",
            f"frozen({self.some()})",
            *(f"{old} * {v}" for old, of in self.program.snapshots.items() if of == v),
        )

    def assign(self) -> None:
        v = self.pick(self.program.variables)
        shape = self.value(v).shape
        new = f"gg.tanh(like({self.real()}, {v}))"
        texts = [
            f"{v}.assign({new})",
            f"{v}.assign_add({new})",
            f"{v}.assign_sub(0.5 * {new})",
            f"{v}.assign({v} * 0.9 + 0.1 * {new})",
        ]
        if shape and shape[0]:
            row = self.integer(0, shape[0] - 1)
            rows = f"gg.IndexedSlices(like({self.real()}, {v}[:1]), [{row}])"
            texts += [f"{v}.scatter_{how}({rows})" for how in ("add", "sub", "update")]
            part = f"{v}[{self.index(shape, basic=True)}]"
            texts.append(f"{part}.assign(gg.tanh(like({self.real()}, {part})))")
        self.run(self.pick(texts), v, assigns=v)

    def write(self) -> None:
        """Element assignment to a copy of a value, and to views of one."""
        x, y, name = self.some(), self.real(), f"x{next(self.numbers)}"
        part = f"[{self.index(self.value(x).shape, basic=True)}]"
        how = self.pick(["=", "+=", "*=", "-="])
        copy = f"{name} = gg.positive({x})\n"
        lines = [f"{copy}{name}{part} {how} like({y}, {name}{part})"]
        whole = part if "..." in part else f"{part[:-1]}, ...]"  # NumPy's elements are no views
        view = self.pick([".T", whole, ".reshape(-1)", "[None]", "[..., ::-1]"])
        augmented = how if how != "=" else "+="
        write = f"view[...] {how} like({y}, view)"
        lines += [
            f"{copy}view = {name}{view}\n{write}",
            f"{copy}view = {name}{view}\nview {augmented} like({y}, view)",
            f"{copy}alias = {name}\nalias {augmented} like({y}, alias)",
            f"{copy}view, other = {name}{view}, {name}[..., None]\n{write}\nother += other[::-1]",
            f"{copy}view = {name}[None]{view}[...]\n{name} *= 0.5\n{write}",
        ]
        if self.value(x).ndim > 1:
            lines.append(f"{copy}for row in {name}:\n    row[...] {how} like({y}, row)")
        self.run(self.pick(lines), name)

    def write_to_view(self) -> None:
        """A write to the input `a0`, through a view that may be older than the recorders."""
        view, y = self.pick(["a0", *self.program.views, *self.program.views]), self.real()
        part, value = f"{view}[{self.index(self.value(view).shape, basic=True)}]", f"gg.tanh({y})"
        how = self.pick(["+=", "*=", "-="])
        lines = [
            f"{part} = like({value}, {part})",
            f"{part} {how} like({value}, {part})",
            f"{view}[...] = like({value}, {view})",
            f"alias = {view}\nalias {how} like({value}, alias)",
            f"for row in {view}:\n    row {how} like({value}, row)",
            f"for row in {view}:\n    row[...] = like({value}, row)",
            f"{part}[...] = like({value}, {part})",
            f"np.multiply({view}, 0.5, out={view})",
            f"np.copyto({view}, like({value}, {view}), where={view} > 0.3)",
            f"np.put({view}, [0], like({value}, {view})[..., :1])",
            f"{view}.sort()",
        ]
        if not self.value(view).ndim:
            lines = lines[:4]
        elif not self.value(view).size:
            lines = lines[:-2]
        self.run(self.pick(lines), view)

    def views(self) -> None:
        """Names of views of the input `a0`."""
        base = "a0"
        for k in range(self.integer(1, 2)):
            index = self.index(self.value(base).shape, basic=True)
            view = self.pick([f"[{index}]", ".T", ".reshape(-1)", "[None]", "[::-1]", "[..., 1:]"])
            try:
                made = eval(base + view, self.scope)
            except GpugradError:  # of an index that `...` moves to another axis
                continue
            if type(made) is View:
                self.program.views[f"w{k}"], self.scope[f"w{k}"] = base + view, made
                base = self.pick(["a0", f"w{k}"])

    def body(self, t: str, depth: int = 2) -> str:
        """An expression of `t`, in its shape and dtype."""
        if depth and self.pick([False, True]):
            t = self.body(t, depth - 1)
        scale = f"like({self.real()}, t)"
        v = self.pick(self.program.variables)
        return self.pick(
            [
                f"gg.sin({t})",
                f"gg.tanh({t}) * {scale}",
                f"gg.exp(-({t}) ** 2)",
                f"0.5 * {t} + {scale}",
                f"gg.sigmoid({t}) * gg.mean({t})",
                f"custom_square({t})",
                f"{t} * like({v}, t)",
                f"gg.recompute_grad(lambda s: gg.cos(s) * s)({t})",
            ]
        )

    def control(self) -> None:
        """Branches, loops and vmap."""
        x = self.real()
        f, g = (f"(lambda t: {self.body('t')})" for _ in range(2))
        self.add(
            f"gg.cond(gg.sum({x}) > 0.3, {f}, {g}, {x})",
            f"gg.while_loop(lambda c: c[1] < 3, lambda c: [{f}(c[0]), c[1] + 1], [{x}, 0])[0]",
            f"gg.scan(lambda t, s: (gg.tanh({f}(t) + s), {g}(s)), {x}, gg.stack([{x}, {x}]))",
            f"gg.vmap({f})({x})",
        )

    def derivative(self) -> None:
        """A derivative within the program, so that its own derivatives are of higher order."""
        x = self.real()
        f = f"lambda t: {self.body('t')}"
        total, tangent = f"lambda t: gg.sum(({f})(t))", f"[like({self.real()}, {x})]"
        self.add(
            f"gg.grad({total})({x})",
            f"gg.jvp({f}, [{x}], {tangent})[1]",
            f"gg.vmap(gg.grad({total}))({x})",
            f"gg.hvp({total}, [{x}], {tangent})",
            f"by_variable({f}, {self.pick(self.program.variables)})",
            f"gg.jacobian({f})(gg.reshape({x}, -1)[:3])",
            f"gg.hessian({total})(gg.reshape({x}, -1)[:3])",
        )


_FAMILIES = [
    *("elementwise", "along_axis", "sample", "reshaped", "indexed", "product", "read", "assign"),
    *("write", "control", "derivative", "elementwise", "sample"),
]


@st.composite
def programs(draw: Callable[[Any], Any]) -> Program:
    """A program, with inputs, Variables and up to ten lines."""
    w = Writer(draw)
    program = w.program
    program.choice = w.integer(0, 9999)
    narrow = w.pick(["float64", "float64", "float32"])
    for k in range(w.integer(1, 3)):
        dtype = w.pick(["float64", "float64", narrow, "complex128"] if k else ["float64", narrow])
        program.inputs[f"a{k}"] = w.array(w.shape(), dtype)
        w.scope[f"a{k}"] = gg.constant(program.inputs[f"a{k}"])
        w.names.append(f"a{k}")
    for k in range(w.integer(1, 2)):
        program.variables[f"v{k}"] = w.array(w.shape(), w.pick(["float64", narrow]))
        w.scope[f"v{k}"] = gg.Variable(program.variables[f"v{k}"])
        if w.pick([False, True]):
            program.snapshots[f"old{k}"] = f"v{k}"
            w.scope[f"old{k}"] = w.scope[f"v{k}"].value()
            w.scope[f"v{k}"].assign(w.scope[f"v{k}"] * 0.5)
    families = _FAMILIES
    if w.pick([False, True]) and w.value("a0").ndim:
        w.views()
    if program.views:
        families = [*families, *["write_to_view"] * 6]
    with np.errstate(all="ignore"):
        for family in draw(st.lists(st.sampled_from(families), min_size=2, max_size=10)):
            try:
                getattr(w, family)()
            except (GpugradError, NotImplementedError):
                continue
    program.results = [*w.names[len(program.inputs) :], "a0 * 1"]
    return program
