"""All that is promised of an op, checked from the samples in its record."""

from __future__ import annotations

import contextlib
import dataclasses
import doctest
import functools
import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad import backend, nest
from gpugrad.backend import BFLOAT16, CPU, NUMPY, SCALARS, TENSOR, is_inexact
from gpugrad.errors import ArgumentError, DeviceError, DTypeError
from gpugrad.function import function
from gpugrad.op import OPS, Op
from gpugrad.tape import GradientTape
from gpugrad.tensor import Tensor, tensor, wrap
from gpugrad.testing import shim
from gpugrad.testing.close import Array, GradientCheckError, as_numpy, assert_close, wide
from gpugrad.testing.grads import (
    Case,
    Limits,
    about,
    check_forward_mode,
    check_orders,
    check_reverse,
    fail,
    is_hermitian,
    random_like,
)
from gpugrad.vectorize import vmap


@dataclasses.dataclass(frozen=True)
class _Sample:
    """One call of an op: as the record gives it, and its arrays laid out flat in `leaves`."""

    op: Op
    title: str
    args: list[Any]
    keywords: dict[str, Any]
    arrays: dict[str, Any]  # the array arguments that are given, by name
    leaves: list[Any]
    device: Any = CPU

    @functools.cached_property
    def names(self) -> list[str]:
        """What each leaf is called in messages."""
        found = []
        for name, value in self.arrays.items():
            n = len(nest.flatten(value))
            is_list = isinstance(value, (list, tuple))
            found += [f"{name}[{i}]" for i in range(n)] if is_list else [name]
        return found

    @functools.cached_property
    def moved(self) -> list[int]:
        """Positions of the leaves that a gradient can be asked for."""
        rules = dict(zip(self.op.arrays, self.op.rules, strict=False))
        return [
            i
            for i, (name, leaf) in enumerate(zip(self.names, self.leaves, strict=True))
            if isinstance(leaf, np.ndarray) and is_inexact(leaf.dtype)
            and not getattr(rules.get(name), "is_missing", False)
        ]  # fmt: skip

    def replace(self, leaves: list[Any], note: str = "", device: Any = CPU) -> _Sample:
        return dataclasses.replace(self, leaves=leaves, title=self.title + note, device=device)

    def astype(self, real: Any) -> _Sample:
        """The same sample with its float64 arrays in another dtype, complex128 in its complex."""

        def cast(leaf: Any) -> Any:
            if isinstance(leaf, np.ndarray) and leaf.dtype in _WIDE:
                return leaf.astype(_narrowed(leaf.dtype, real))
            return leaf

        return self.replace([cast(a) for a in self.leaves], f" ({np.dtype(real).name})")

    def filled(self, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments and keywords with `leaves` in the places of the sample's own."""
        arrays = nest.pack(self.arrays, list(leaves))
        positional = zip(self.op.signature.parameters, self.args, strict=False)
        keywords = {n: arrays.get(n, v) for n, v in self.keywords.items()}
        return [arrays.get(n, v) for n, v in positional], keywords

    def put(self, leaf: Any) -> Any:
        """A leaf as the op gets it: a Tensor around an array, with no copy on the CPU."""
        if not isinstance(leaf, np.ndarray):
            return leaf
        return wrap(leaf if self.device == CPU else backend.put(leaf, self.device))

    def call(self, leaves: Sequence[Any]) -> list[Tensor]:
        """All results of the op's eager function."""
        args, keywords = self.filled(leaves)
        return _several(self.op.eager(*args, **keywords))

    def results(self) -> list[Tensor]:
        return self.call([self.put(a) for a in self.leaves])

    def bare(self) -> list[Any]:
        """All results of the op's function on bare NumPy arrays."""
        arrays, params = self.bound()
        return _several(self.op.bare(NUMPY)(*arrays, **params))

    def bound(self) -> tuple[list[Any], dict[str, Any]]:
        """Array arguments and parameters, as the op's forward gets them."""
        leaves = self.leaves
        if self.op.kind == "primitive":  # whose arguments are arrays, never numbers
            leaves = [tensor(a)._data if type(a) in SCALARS else a for a in leaves]
        args, keywords = self.filled(leaves)
        bound = self.op.signature.bind(*args, **keywords)
        bound.apply_defaults()
        arrays = [bound.arguments[n] for n in self.op.arrays]
        return arrays, {n: bound.arguments[n] for n in self.op.params}

    def case(self) -> Case:
        """The op as a function of the arrays that can be moved."""
        moved = self.moved

        def function(xs: list[Tensor]) -> list[Tensor]:
            leaves = [self.put(a) for a in self.leaves]
            for i, x in zip(moved, xs, strict=True):
                leaves[i] = x
            return [y for y in self.call(leaves) if is_inexact(y.dtype)]

        names = [self.names[i] for i in moved]
        return Case(self.title, names, function, [self.leaves[i] for i in moved], self.put)


_WIDE = (np.float64, np.complex128)


def _narrowed(dtype: np.dtype[Any], real: Any) -> np.dtype[Any]:
    """What a float64 or complex128 is where `real` is computed with; others stay."""
    if dtype not in _WIDE or real == np.float64:
        return dtype
    return np.dtype(np.complex64 if dtype.kind == "c" else real)


def _several(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


class _Subject:
    """An op under test: its samples, and the random numbers of one check."""

    def __init__(self, op: Op, seed: int, orders: int, device: Any) -> None:
        self.op, self.orders, self.device = op, orders, device
        self.rng = np.random.default_rng((seed, 1))
        self._draws = np.random.default_rng((seed, 0))

    @functools.cached_property
    def calls(self) -> list[Any]:
        """The samples as the record gives them: (arguments, keywords)."""
        return list(self.op.samples(self._draws)) if callable(self.op.samples) else []

    @functools.cached_property
    def every(self) -> list[_Sample]:
        """The samples in their own dtypes, and complex ones for an op on complex numbers."""
        op, given = self.op, []
        for k, (args, keywords) in enumerate(self.calls):
            bound = op.signature.bind(*args, **keywords).arguments
            arrays = {n: bound[n] for n in op.arrays if n in bound}
            leaves = [np.asarray(a) if isinstance(a, np.generic) else a
                      for a in nest.flatten(arrays)]  # fmt: skip
            title = f"{op.name}, sample {k}"
            given.append(_Sample(op, title, list(args), keywords, arrays, leaves))
        real = [s for s in given if not s.moved or "f" in op.kinds]
        return real + ([self._complex(s) for s in given if s.moved] if "c" in op.kinds else [])

    @property
    def whole(self) -> list[_Sample]:
        """The samples in integers and booleans, for an op that takes them; none is 0."""
        made = []
        for kind, note in ((np.int64, " (int64)"), (np.bool_, " (bool)")):
            for sample in self.real if np.dtype(kind).kind in self.op.kinds else ():
                leaves = list(sample.leaves)
                for i in sample.moved:
                    x = leaves[i]
                    leaves[i] = np.asarray(np.sign(x) * np.ceil(np.abs(x))).astype(kind)
                if sample.moved:
                    made.append(sample.replace(leaves, note))
        return made

    @property
    def real(self) -> list[_Sample]:
        return [s for s in self.every if not any(np.iscomplexobj(a) for a in s.leaves)]

    @property
    def differentiable(self) -> list[_Sample]:
        return [s for s in self.every if s.moved and self.op.differentiable]

    def _complex(self, sample: _Sample) -> _Sample:
        leaves = list(sample.leaves)
        for i in sample.moved:
            x = leaves[i]
            y = self._draws.uniform(-0.7, 0.7, x.shape)
            if is_hermitian(x):
                y = y - np.swapaxes(y, -1, -2)
            leaves[i] = x if x.dtype.kind == "c" else np.asarray(x + 1j * y)
        return sample.replace(leaves, " (complex)")

    def cotangents(self, results: Sequence[Tensor]) -> list[Array]:
        """Random ones for the inexact results, in their dtypes."""
        hosts = [as_numpy(y) for y in results]
        return [random_like(self.rng, y).astype(y.dtype) for y in hosts if is_inexact(y.dtype)]


def _assert_same(
    title: str, what: str, names: Sequence[str], actual: Sequence[Any], desired: Sequence[Any],
    rtol: float | None = None, atol: float | None = None,
) -> None:  # fmt: skip
    """`assert_close` of several arrays, or Nones in the same places."""
    if len(actual) != len(desired):
        raise GradientCheckError(f"{title}: {what}: {len(actual)} instead of {len(desired)}.")
    for name, a, d in zip(names, actual, desired, strict=True):
        if (a is None) != (d is None):
            raise GradientCheckError(f"{title}: {what}, {name}: {a!r:.60} instead of {d!r:.60}.")
        if a is not None:
            with about(title, f"{what}, {name}"):
                assert_close(a, d, rtol=rtol, atol=atol)


def _numbered(results: Sequence[Any]) -> list[str]:
    return [f"result {k}" for k in range(len(results))]


# ---- the checks of an op, one function each ---------------------------------------------


def _check_record(s: _Subject) -> None:
    """The record is complete: kinds, samples, a reference, calls that must fail."""
    op, missing = s.op, []
    if not op.kinds or not set(op.kinds) <= set("fcib"):
        missing.append(f"kinds ({op.kinds!r} are not among 'f', 'c', 'i', 'b')")
    if not s.calls:
        missing.append("samples")
    if op.ref is None and not op.home.endswith((".random", ".creation")):
        missing.append("ref, the function that its forward must equal")
    if not op.errors:
        missing.append("errors, calls that must fail")
    if missing:
        raise GradientCheckError(f"{op.name}: its record lacks {'; '.join(missing)}.")


class NearNumbers(doctest.OutputChecker):
    """Printed numbers may differ in the last digits, as processors do."""

    _NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Whether what was printed is what is wanted."""
        if super().check_output(want, got, optionflags):
            return True
        a, b = (self._NUMBER.findall(text) for text in (want, got))
        rest = [" ".join(self._NUMBER.sub("#", text).split()) for text in (want, got)]
        return rest[0] == rest[1] and np.allclose(
            np.array(a, float), np.array(b, float), rtol=1e-5, atol=1e-7
        )


def _check_documentation(s: _Subject) -> None:
    """There is a docstring that names every argument, and its example runs."""
    op = s.op
    if not op.doc:
        raise GradientCheckError(f"{op.name}: it has no docstring.")
    unnamed = [n for n in (*op.arrays, *op.params) if not re.search(rf"\b{n}\b", op.doc)]
    if unnamed:
        raise GradientCheckError(f"{op.name}: its docstring does not say what {unnamed} are.")
    example = doctest.DocTestParser().get_doctest(op.doc, {}, op.name, None, 0)
    if not example.examples:
        raise GradientCheckError(f"{op.name}: its docstring has no example (>>> ...).")
    said: list[str] = []
    if doctest.DocTestRunner(NearNumbers(), verbose=False).run(example, out=said.append).failed:
        raise GradientCheckError(f"{op.name}: the example in its docstring fails.\n{''.join(said)}")


def _check_errors(s: _Subject) -> None:
    """Each call in `errors` fails with its class, in words that name the op."""
    op = s.op
    for k, (args, keywords, expected, words) in enumerate(op.errors):
        title = f"{op.name}, error {k}"
        try:
            result = op.eager(*args, **keywords)
        except Exception as error:
            raised = error
        else:
            raise GradientCheckError(
                f"{title}: the call returned {result!r:.80}, it should raise {expected.__name__}."
            )
        if not isinstance(raised, expected):
            raise GradientCheckError(
                f"{title}: {type(raised).__name__} instead of {expected.__name__}: {raised}"
            ) from raised
        # a composite fails in one of the ops that it calls, which is then the one to name
        names = OPS if op.kind == "composite" else (op.name,)
        text = str(raised)
        if not any(name in text for name in names) or not re.search(words, text):
            raise GradientCheckError(
                f"{title}: the message should name {op.name} and match {words!r}. It is: {text}"
            )


def _check_forward(s: _Subject) -> None:
    """The results equal those of the reference."""
    if s.op.ref is None:
        return
    ref = s.op.ref
    if isinstance(ref, str):
        home, _, name = ref.rpartition(".")
        ref = getattr(importlib.import_module(home), name)
    for sample in (*s.every, *s.whole):
        args, keywords = sample.filled(
            [a.copy() if isinstance(a, np.ndarray) else a for a in sample.leaves]
        )
        with about(sample.title, "the forward"):
            results = sample.results()
        with np.errstate(all="ignore"):
            desired = ref(*args, **keywords)
        desired = _several(desired) if s.op.outputs > 1 else [desired]
        _assert_same(sample.title, "the forward and ref", _numbered(results), results, desired)


def _check_bare(s: _Subject) -> None:
    """The function on bare arrays and on Tensors, recorded or not, gives the same."""
    for sample in s.every:
        with about(sample.title, "the forward"):
            bare, eager = sample.bare(), sample.results()
            case = sample.case()
            with GradientTape() as tape:
                xs = case.tensors(case.point)
                tape.watch(xs)
                recorded = case.function(xs)
        names, inexact = _numbered(eager), [y for y in eager if is_inexact(y.dtype)]
        _assert_same(sample.title, "on bare arrays and on Tensors", names, bare, eager)
        _assert_same(sample.title, "recorded and unrecorded", _numbered(inexact), recorded, inexact)


def _check_vjp(s: _Subject) -> None:
    """Every gradient against differences; none at all if the op is declared without."""
    for sample in s.differentiable:
        check_reverse(sample.case(), s.rng, Limits())
    for sample in s.every:
        if s.op.differentiable or not sample.moved:
            continue
        case = sample.case()
        cts = s.cotangents(case.function(case.tensors(case.point)))
        found = case.gradients(cts) if cts else []
        if any(g is not None for g in found):
            fail(case, "the op is declared without a gradient and has one", {"gradients": found})


def _check_jvp(s: _Subject) -> None:
    """Forward mode against differences, and against reverse mode."""
    for sample in s.differentiable:
        check_forward_mode(sample.case(), s.rng, Limits())


def _check_second_order(s: _Subject) -> None:
    """The derivative of the gradient, in both modes, against differences of the gradient."""
    for sample in s.differentiable:
        check_orders(sample.case(), range(2, s.orders + 1), ("rev", "fwd"), s.rng, Limits())


def _check_readings(s: _Subject) -> None:
    """The rules read on bare arrays and on Tensors give the same gradient."""
    for sample in s.differentiable:
        case = sample.case()
        cts = s.cotangents(case.function(case.tensors(case.point)))
        if not cts:
            continue
        with about(sample.title, "the backward pass"):
            bare, recorded = case.gradients(cts), case.gradients(cts, outer=True)
        what = "gradients on Tensors and on bare arrays, by"
        _assert_same(sample.title, what, case.names, recorded, bare)


def _strided(x: Array) -> Array:
    """The same values, every second along the last axis of a longer array."""
    if not x.ndim:
        return x
    longer = np.full((*x.shape[:-1], 2 * x.shape[-1]), 7, x.dtype)
    longer[..., ::2] = x
    return longer[..., ::2]


def _transposed(x: Array) -> Array:
    """The same values, with the axes in memory the other way round."""
    return x.T.copy().T


def _reversed(x: Array) -> Array:
    """The same values, with a negative step."""
    return x[::-1].copy()[::-1] if x.ndim else x


def _check_layout(s: _Subject) -> None:
    """Arrays with gaps, transposed, reversed or stretched in memory give the same."""
    for sample in s.every:
        case = sample.case()
        results = sample.results()
        cts = s.cotangents(results)
        gradients = case.gradients(cts) if cts and case.point else []
        for relaid in (_strided, _transposed, _reversed):
            leaves = [relaid(a) if isinstance(a, np.ndarray) else a for a in sample.leaves]
            other = sample.replace(leaves, f" ({relaid.__name__[1:]} in memory)")
            with about(other.title, "the op"):
                found = other.results()
                _assert_same(other.title, "the forward", _numbered(results), found, results)
                if gradients:
                    gs = other.case().gradients([relaid(ct) for ct in cts])
                    _assert_same(other.title, "the gradient by", case.names, gs, gradients)
        if gradients:  # as the backward pass of a sum makes it: one number, step 0, read-only
            ones = [np.broadcast_to(ct.dtype.type(1), ct.shape) for ct in cts]
            with about(sample.title, "the backward pass of a broadcast cotangent"):
                found = case.gradients(ones)
                desired = case.gradients([o.copy() for o in ones])
                _assert_same(sample.title, "the gradient by", case.names, found, desired)


def _asked_dtype(sample: _Sample) -> bool:
    """Whether the sample itself says what dtype its results have."""
    return sample.keywords.get("dtype") is not None


def _check_float32(s: _Subject) -> None:
    """float32 in gives float32 out, and gradients of each input's shape and dtype."""
    _check_narrow(s, s.every, np.float32, rtol=1e-3, atol=1e-4)


def _check_narrow(s: _Subject, samples: Any, real: Any, rtol: float, atol: float) -> None:
    for sample in samples:
        if not sample.moved:
            continue
        narrow = sample.astype(real)
        # values that the narrow dtype holds, so that only the op's own rounding is compared
        exact = sample.replace([
            a.astype(d.dtype) if isinstance(a, np.ndarray) else a
            for a, d in zip(narrow.leaves, sample.leaves, strict=True)
        ])  # fmt: skip
        with about(narrow.title, "the op"):
            try:
                results = narrow.results()
            except DTypeError:
                if real is np.float32:
                    raise
                continue  # an op may refuse 16-bit floats; it may not compute wrong with them
            desired = [as_numpy(y) for y in exact.results()]
            if not _asked_dtype(sample):
                desired = [y.astype(_narrowed(y.dtype, real)) for y in desired]
                if s.op.keeps_half:  # then the op may say that statistics stay wide
                    desired[1:] = [
                        d.astype(np.float32) if r.dtype == np.float32 else d
                        for r, d in zip(results[1:], desired[1:], strict=True)
                    ]
            _assert_near(
                narrow.title, "the forward", _numbered(results), results, desired, rtol, atol
            )
            cts = s.cotangents(results)
            if not cts or not s.op.differentiable:
                continue
            found = narrow.case().gradients(cts)
            wide = [
                ct.astype(y.dtype)
                for ct, y in zip(
                    cts, [y for y in exact.results() if is_inexact(y.dtype)], strict=True
                )
            ]
            expected = [
                None if g is None else as_numpy(g).astype(x.dtype)
                for g, x in zip(exact.case().gradients(wide), narrow.case().point, strict=True)
            ]
            _assert_near(
                narrow.title, "the gradient by", exact.case().names, found, expected, rtol, atol
            )


def _assert_near(
    title: str, what: str, names: Sequence[str], actual: Sequence[Any], desired: Sequence[Any],
    rtol: float, atol: float,
) -> None:  # fmt: skip
    """As `_assert_same`; `atol` is relative to the largest element."""
    for name, a, d in zip(names, actual, desired, strict=True):
        finite = wide(d)[np.isfinite(wide(d))] if d is not None else np.zeros(0)
        scale = max(1.0, float(np.max(np.abs(finite), initial=0.0)))
        _assert_same(title, what, [name], [a], [d], rtol, atol * scale)


def _check_half(s: _Subject) -> None:
    """float16 and bfloat16 give what wider floats give, rounded; or a DTypeError."""
    if "f" in s.op.kinds:
        _check_narrow(s, s.real, np.float16, rtol=1e-2, atol=1e-2)
        _check_narrow(s, s.real, BFLOAT16, rtol=8e-2, atol=8e-2)


def _check_mutation(s: _Subject) -> None:
    """Neither the op nor its backward pass writes to what it is given or has returned."""
    for sample in s.every:
        leaves = [a.copy() if isinstance(a, np.ndarray) else a for a in sample.leaves]
        own = sample.replace(leaves)
        case = own.case()
        xs = case.tensors(case.point)
        with GradientTape(persistent=True) as tape:
            tape.watch(xs)
            ys = case.function(xs)
        cts = s.cotangents(ys)
        before = [y.numpy() for y in ys], [ct.copy() for ct in cts]
        if s.op.differentiable and cts and xs:
            for outer in (False, True):
                with contextlib.ExitStack() as stack:
                    if outer:
                        stack.enter_context(GradientTape()).watch(xs)
                    tape.gradient(ys, xs, output_gradients=[wrap(ct) for ct in cts])
        given = [a for a in sample.leaves if isinstance(a, np.ndarray)]
        now = [a for a in leaves if isinstance(a, np.ndarray)]
        for what, after, was in (
            ("input", now, given), ("result", ys, before[0]), ("cotangent", cts, before[1])
        ):  # fmt: skip
            names = [f"{what} {k}" for k in range(len(was))]
            _assert_same(sample.title, "the op has written to its", names, after, was, 0.0, 0.0)


_EXAMPLES = 3


def _check_vmap(s: _Subject) -> None:
    """Under vmap results and gradients are those of a loop over the examples."""
    for sample in s.every:
        arrays = [i for i, a in enumerate(sample.leaves) if isinstance(a, np.ndarray)]
        choices = [arrays] if len(arrays) < 2 else [arrays, *([i] for i in arrays)]
        for chosen in choices if arrays else ():
            with about(sample.title, f"vmap over {[sample.names[i] for i in chosen]}"):
                _compare_vmap(s, sample, chosen)


def _compare_vmap(s: _Subject, sample: _Sample, chosen: list[int]) -> None:
    def varied(x: Array, k: int) -> Array:  # in the domain, and no two alike
        return x * x.dtype.type(1 - 0.05 * k) if is_inexact(x.dtype) else x

    stacked = [
        np.stack([varied(a, k) for k in range(_EXAMPLES)]) if i in chosen else a
        for i, a in enumerate(sample.leaves)
    ]
    axes = [0 if i in chosen else None for i in range(len(stacked))]
    loops = [
        sample.replace([varied(a, k) if i in chosen else a for i, a in enumerate(sample.leaves)])
        for k in range(_EXAMPLES)
    ]
    tolerance = {"rtol": 1e-8, "atol": 1e-9}
    given = [sample.put(a) for a in stacked]
    try:
        results = vmap(lambda *leaves: sample.call(leaves), tuple(axes))(*given)
    except ArgumentError as error:
        if "vmap" in str(error):  # it says that it cannot, and why
            return
        raise
    rows = [loop.results() for loop in loops]
    desired = [np.stack([as_numpy(y) for y in column]) for column in zip(*rows, strict=True)]
    _assert_same(sample.title, "vmap", _numbered(results), results, desired, **tolerance)
    moved = sample.moved
    if not moved or not s.op.differentiable:
        return
    cts = s.cotangents(rows[0])
    if not cts:
        return

    def gradients(*leaves: Tensor) -> list[Tensor]:
        own = list(leaves)
        for i in moved:
            own[i] = TENSOR.positive(own[i])
        with GradientTape() as tape:
            tape.watch([own[i] for i in moved])
            ys = [y for y in sample.call(own) if is_inexact(y.dtype)]
        zero = "zero"
        found = tape.gradient(ys, [own[i] for i in moved], [wrap(c) for c in cts], zero)
        return [tensor(g) for g in found]

    names = [sample.names[i] for i in moved]
    expected = [gradients(*[loop.put(a) for a in loop.leaves]) for loop in loops]
    desired = [np.stack([as_numpy(g) for g in column]) for column in zip(*expected, strict=True)]
    found = vmap(gradients, tuple(axes))(*given)
    _assert_same(sample.title, "gradients under vmap, by", names, found, desired, **tolerance)
    for i in moved:
        given[i] = TENSOR.positive(given[i])
    with GradientTape() as tape:
        tape.watch([given[i] for i in moved])
        ys = vmap(lambda *leaves: sample.call(leaves), tuple(axes))(*given)
        ys = [y for y in ys if is_inexact(y.dtype)]
    seeds = [wrap(np.broadcast_to(c, (_EXAMPLES, *c.shape))) for c in cts]
    outside = tape.gradient(ys, [given[i] for i in moved], seeds, "zero")
    summed = [d if i in chosen else d.sum(0) for i, d in zip(moved, desired, strict=True)]
    outside = [tensor(g) for g in outside]
    _assert_same(sample.title, "the gradient of vmap, by", names, outside, summed, **tolerance)


def _check_function(s: _Subject) -> None:
    """Traced and replayed with other values, results and gradients are those of eager calls."""
    for sample in s.every:
        moved = sample.moved
        if not moved:
            continue

        def both(*xs: Tensor, sample: _Sample = sample, moved: list[int] = moved) -> Any:
            leaves = [sample.put(a) for a in sample.leaves]
            for i, x in zip(moved, xs, strict=True):
                leaves[i] = x
            with GradientTape() as tape:
                tape.watch(xs)
                ys = sample.call(leaves)
                inexact = [y for y in ys if is_inexact(y.dtype)]
            if not inexact or not s.op.differentiable:
                return ys, []
            return ys, [tensor(g) for g in tape.gradient(inexact, list(xs), None, "zero")]

        traced = function(both)
        with about(sample.title, "gg.function"):
            for k in range(3):  # traced, then replayed twice
                leaves = [sample.leaves[i] for i in moved]
                xs = [sample.put(np.asarray(a * a.dtype.type(1 - 0.05 * k))) for a in leaves]
                found, desired = traced(*xs), both(*xs)
                for what, a, d in zip(("results", "gradients"), found, desired, strict=True):
                    named = [f"{what} {n}" for n in range(len(d))]
                    _assert_same(sample.title, f"run {k} of gg.function", named, a, d, 1e-12, 1e-12)
        if traced.cache_info().traces != 1:
            raise GradientCheckError(f"{sample.title}: gg.function traced it more than once.")


def _check_kernel(s: _Subject) -> None:
    """Its CUDA kernel, run on the CPU in three schedules, gives what its formula gives."""
    if s.op.cuda is None or shim.unavailable() or hasattr(s.op.cuda, "library"):
        return  # what calls a library of NVIDIA's has no source that the CPU could run
    with shim.deferred() as launches:  # compiled at once, which is faster than one by one
        for real in _KERNEL_TOLERANCES:
            for sample in s.every:
                arrays, params = sample.astype(real).bound()
                with contextlib.suppress(Exception):  # which come again below
                    s.op.cuda(NUMPY, *arrays, **params)
    with contextlib.suppress(shim.ShimError):
        launches.compile()
    ran = False
    for real, tolerance in _KERNEL_TOLERANCES.items():
        for sample in s.every:
            narrow = sample.astype(real)
            with about(narrow.title, "the formula"):
                desired = narrow.bare()
            for schedule in shim.SCHEDULES:
                title = f"{narrow.title}, threads {schedule}"
                arrays, params = narrow.bound()
                with about(title, "its kernel"), shim.running(schedule):
                    made = s.op.cuda(NUMPY, *arrays, **params)
                if made is NotImplemented:
                    break
                ran, results = True, _several(made)
                names = _numbered(results)
                if [a.dtype for a in results] != [d.dtype for d in desired]:
                    raise GradientCheckError(f"{title}: the kernel gives another dtype.")
                _assert_near(title, "its kernel", names, results, desired, tolerance, tolerance)
    if not ran:
        raise GradientCheckError(f"{s.op.name}: its kernel declines every sample.")


_KERNEL_TOLERANCES = {np.float64: 1e-10, np.float32: 2e-5, np.float16: 4e-3, BFLOAT16: 3e-2}


def _check_device(s: _Subject) -> None:
    """On the GPU, results and gradients are those of the CPU, and stay there."""
    if s.device == CPU or "device" in s.op.params:
        return
    tolerance = {"rtol": 1e-8, "atol": 1e-10}
    for sample in s.every:
        there = sample.replace(sample.leaves, f" (on {s.device})", s.device)
        desired = sample.results()
        cts = s.cotangents(desired) if s.op.differentiable and sample.moved else []
        with about(there.title, "the op"):
            try:
                results = there.results()
            except DeviceError as error:  # it says that its device lacks a function
                if s.op.name in str(error):
                    return
                raise
            _assert_on(s.device, there.title, results)
            if s.op.ref is not None:  # else it is random
                names = _numbered(results)
                _assert_same(there.title, "the forward", names, results, desired, **tolerance)
            for outer in (False, True) if cts else ():
                case = there.case()
                found = case.gradients(cts, outer=outer)
                _assert_on(s.device, there.title, found)
                expected = sample.case().gradients(cts, outer=outer)
                _assert_same(
                    there.title, "the gradient by", case.names, found, expected, **tolerance
                )


def _assert_on(device: Any, title: str, arrays: Sequence[Any]) -> None:
    for a in arrays:
        if a is not None and a.device != device:
            raise GradientCheckError(f"{title}: a result is on {a.device}.")


_CHECKS: dict[str, Callable[[_Subject], None]] = {
    "record": _check_record,
    "documentation": _check_documentation,
    "errors": _check_errors,
    "forward": _check_forward,
    "bare": _check_bare,
    "vjp": _check_vjp,
    "jvp": _check_jvp,
    "second_order": _check_second_order,
    "readings": _check_readings,
    "layout": _check_layout,
    "float32": _check_float32,
    "half": _check_half,
    "mutation": _check_mutation,
    "vmap": _check_vmap,
    "function": _check_function,
    "kernel": _check_kernel,
    "device": _check_device,
}
CHECKS = tuple(_CHECKS)
"""The names of the checks that `check_op` makes, in its order."""


def check_op(
    op: str | Op | Callable[..., Any],
    *,
    checks: Sequence[str] = CHECKS,
    orders: int = 2,
    device: Any = None,
    seed: int = 0,
) -> None:
    """Check all that is promised of an op, from the samples in its record.

    Args:
        op: its name, its record, or the function that declaring it gave.
        checks: which of `CHECKS` to make.
        orders: highest order of derivative to hold against differences.
        device: where its results must be those of the CPU; the first GPU if None, and
            nothing is compared where there is none.
        seed: of the samples and the random directions.

    Raises:
        GradientCheckError: a promise does not hold. The message has the op, the number of
            the sample, the shapes, the numbers on both sides and how they were made.
        ArgumentError: there is no op, or no check, of that name.

    >>> import gpugrad as gg
    >>> gg.testing.check_op("tanh")
    >>> gg.testing.check_op(gg.matmul, checks=["vjp", "jvp"])
    """
    record = op if isinstance(op, Op) else getattr(op, "op", None)
    if record is None:
        if not isinstance(op, str) or op not in OPS:
            raise ArgumentError(f"check_op: there is no op {op!r:.60}; gg.OPS has their names.")
        record = OPS[op]
    if device is None:
        device = "cuda:0" if backend.gpu_count() else CPU
    for name in checks:
        if name not in _CHECKS:
            raise ArgumentError(f"check_op: there is no check {name!r}; there are {CHECKS}.")
        with about(record.name, f"the check {name!r}"):
            _CHECKS[name](_Subject(record, seed, orders, backend.device(device)))
