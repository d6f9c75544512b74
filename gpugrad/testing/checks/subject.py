"""The samples of an op under test, in several dtypes and with their arrays in a flat list."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import devices, nest
from gpugrad.core.backend import NUMPY, SCALARS, is_inexact
from gpugrad.core.devices import CPU
from gpugrad.core.forking import cached_property
from gpugrad.core.ranks import ranks
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.registry.record import Op
from gpugrad.testing.close import Array, as_numpy
from gpugrad.testing.grads import Case, is_hermitian, random_like


@dataclasses.dataclass(frozen=True)
class Sample:
    """One call of an op: the arguments in the record, and their arrays as a flat list, `leaves`."""

    op: Op
    title: str
    args: list[Any]
    keywords: dict[str, Any]
    arrays: dict[str, Any]  # array arguments of this call, by name
    leaves: list[Any]
    device: Any = CPU

    @cached_property
    def names(self) -> list[str]:
        """The name of each leaf in messages."""
        names = []
        for name, value in self.arrays.items():
            n = len(nest.flatten(value))
            is_list = isinstance(value, (list, tuple))
            names += [f"{name}[{i}]" for i in range(n)] if is_list else [name]
        return names

    @cached_property
    def inexact_leaves(self) -> list[int]:
        """Indices of the leaves that may have a gradient."""
        rules = dict(zip(self.op.arrays, self.op.rules, strict=False))
        return [
            i
            for i, (name, leaf) in enumerate(zip(self.names, self.leaves, strict=True))
            if isinstance(leaf, np.ndarray)
            and is_inexact(leaf.dtype)
            and not getattr(rules.get(name), "is_missing", False)
        ]

    def replace(self, leaves: list[Any], note: str = "", device: Any = CPU) -> Sample:
        """The same call with other arrays; messages show `note`."""
        return dataclasses.replace(self, leaves=leaves, title=self.title + note, device=device)

    def astype(self, real: Any) -> Sample:
        """The same call with float64 arrays cast to `real`, and complex128 to its complex dtype."""

        def cast(leaf: Any) -> Any:
            if isinstance(leaf, np.ndarray) and leaf.dtype in _WIDE:
                return leaf.astype(narrow_dtype(leaf.dtype, real))
            return leaf

        return self.replace([cast(a) for a in self.leaves], f" ({np.dtype(real).name})")

    def bind_leaves(self, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments and keywords, with `leaves` in the place of the sample's own."""
        arrays = nest.pack(self.arrays, list(leaves))
        positional = zip(self.op.signature.parameters, self.args, strict=False)
        keywords = {n: arrays.get(n, v) for n, v in self.keywords.items()}
        return [arrays.get(n, v) for n, v in positional], keywords

    def put(self, leaf: Any) -> Any:
        """A leaf as an argument of the op: an array becomes a Tensor, without a copy on the CPU."""
        if not isinstance(leaf, np.ndarray):
            return leaf
        return wrap(leaf if self.device == CPU else devices.put(leaf, self.device))

    def call(self, leaves: Sequence[Any]) -> list[Tensor]:
        """All results of the op's eager function."""
        args, keywords = self.bind_leaves(leaves)
        return as_list(self.op.eager(*args, **keywords))

    def _call_with(self, xs: Sequence[Tensor]) -> list[Tensor]:
        leaves = [self.put(a) for a in self.leaves]
        for i, x in zip(self.inexact_leaves, xs, strict=True):
            leaves[i] = x
        return self.call(leaves)

    def results(self) -> list[Tensor]:
        """All results for the sample's own arrays."""
        return self.call([self.put(a) for a in self.leaves])

    def bare(self) -> list[Any]:
        """All results of the op's function on plain NumPy arrays."""
        arrays, params = self.bind()
        return as_list(self.op.bare(NUMPY)(*arrays, **params))

    def bind(self) -> tuple[list[Any], dict[str, Any]]:
        """Array arguments and parameters of the op's forward."""
        leaves = self.leaves
        if self.op.kind == "primitive":  # its forward takes arrays only
            leaves = [tensor(a)._data if type(a) in SCALARS else a for a in leaves]
        args, keywords = self.bind_leaves(leaves)
        bound = self.op.signature.bind(*args, **keywords)
        bound.apply_defaults()
        arrays = [bound.arguments[n] for n in self.op.arrays]
        return arrays, {n: bound.arguments[n] for n in self.op.params}

    def with_gradients(self, *xs: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """All results, and the gradients of their sum by the arrays that may have one, `xs`."""
        with GradientTape() as tape:
            tape.watch(xs)
            ys = self._call_with(xs)
            inexact = [y for y in ys if is_inexact(y.dtype)]
        if not inexact or not self.op.differentiable:
            return ys, []
        return ys, [tensor(g) for g in tape.gradient(inexact, list(xs), None, "zero")]

    def case(self) -> Case:
        """The op as a function of the arrays that may have a gradient."""

        def function(xs: list[Tensor]) -> list[Tensor]:
            return [y for y in self._call_with(xs) if is_inexact(y.dtype)]

        indices = self.inexact_leaves
        names, point = [self.names[i] for i in indices], [self.leaves[i] for i in indices]
        total: Any = float
        if self.op.opens == "effect":  # in which processes communicate
            total = lambda number: sum(ranks.gather(number))  # noqa: E731
        return Case(self.title, names, function, point, self.put, total)


_WIDE = (np.float64, np.complex128)


def narrow_dtype(dtype: np.dtype[Any], real: Any) -> np.dtype[Any]:
    """The dtype that float64 or complex128 becomes when computing in `real`; others stay."""
    if dtype not in _WIDE or real == np.float64:
        return dtype
    return np.dtype(np.complex64 if dtype.kind == "c" else real)


def as_list(result: Any) -> list[Any]:
    """The results of a call as a list, also if there is only one."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


class Subject:
    """An op under test, with its samples and the random numbers of one check."""

    def __init__(self, op: Op, seed: int, orders: int, device: Any) -> None:
        self.op, self.orders, self.device = op, orders, device
        self.rng = np.random.default_rng((seed, 1))
        self._draws = np.random.default_rng((seed, 0))

    @cached_property
    def calls(self) -> list[Any]:
        """The samples in the record: (arguments, keywords)."""
        return list(self.op.samples(self._draws)) if callable(self.op.samples) else []

    @cached_property
    def samples(self) -> list[Sample]:
        """The samples in their own dtypes, and complex copies if the op takes complex numbers."""
        op, samples = self.op, []
        for k, (args, keywords) in enumerate(self.calls):
            bound = op.signature.bind(*args, **keywords).arguments
            arrays = {n: bound[n] for n in op.arrays if n in bound}
            leaves = [
                np.asarray(a) if isinstance(a, np.generic) else a for a in nest.flatten(arrays)
            ]
            title = f"{op.name}, sample {k}"
            samples.append(Sample(op, title, list(args), keywords, arrays, leaves))
        real = [s for s in samples if not s.inexact_leaves or "f" in op.kinds]
        if "c" not in op.kinds:
            return real
        return real + [self.make_complex(s) for s in samples if s.inexact_leaves]

    @property
    def integer_samples(self) -> list[Sample]:
        """Nonzero integer and boolean copies of the samples, if the op takes them."""
        samples = []
        for kind, note in ((np.int64, " (int64)"), (np.bool_, " (bool)")):
            for sample in self.real_samples if np.dtype(kind).kind in self.op.kinds else ():
                leaves = list(sample.leaves)
                for i in sample.inexact_leaves:
                    x = leaves[i]
                    leaves[i] = np.asarray(np.sign(x) * np.ceil(np.abs(x))).astype(kind)
                if sample.inexact_leaves:
                    samples.append(sample.replace(leaves, note))
        return samples

    @property
    def real_samples(self) -> list[Sample]:
        """The samples without complex arrays."""
        return [s for s in self.samples if not any(np.iscomplexobj(a) for a in s.leaves)]

    @property
    def differentiable(self) -> list[Sample]:
        """The samples that have gradients."""
        return [s for s in self.samples if s.inexact_leaves and self.op.differentiable]

    def make_complex(self, sample: Sample) -> Sample:
        """The sample with random imaginary parts added; symmetric arrays become Hermitian."""
        leaves = list(sample.leaves)
        for i in sample.inexact_leaves:
            x = leaves[i]
            y = self._draws.uniform(-0.7, 0.7, x.shape)
            if is_hermitian(x):
                y = y - np.swapaxes(y, -1, -2)
            leaves[i] = x if x.dtype.kind == "c" else np.asarray(x + 1j * y)
        return sample.replace(leaves, " (complex)")

    def cotangents(self, results: Sequence[Tensor]) -> list[Array]:
        """Random cotangents for the inexact results, in their dtypes."""
        hosts = [as_numpy(y) for y in results]
        return [random_like(self.rng, y).astype(y.dtype) for y in hosts if is_inexact(y.dtype)]
