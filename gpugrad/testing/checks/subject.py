"""What the checks of an op work on: its samples, in several dtypes and laid out flat."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core import devices, nest
from gpugrad.core.backend import NUMPY, SCALARS, is_inexact
from gpugrad.core.devices import CPU
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.registry.record import Op
from gpugrad.testing.close import Array, as_numpy
from gpugrad.testing.grads import Case, is_hermitian, random_like

__all__ = ["Sample", "Subject", "narrowed", "several"]


@dataclasses.dataclass(frozen=True)
class Sample:
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
            if isinstance(leaf, np.ndarray)
            and is_inexact(leaf.dtype)
            and not getattr(rules.get(name), "is_missing", False)
        ]

    def replace(self, leaves: list[Any], note: str = "", device: Any = CPU) -> Sample:
        """The same call of other arrays, named so in messages."""
        return dataclasses.replace(self, leaves=leaves, title=self.title + note, device=device)

    def astype(self, real: Any) -> Sample:
        """The same sample with its float64 arrays in another dtype, complex128 in its complex."""

        def cast(leaf: Any) -> Any:
            if isinstance(leaf, np.ndarray) and leaf.dtype in _WIDE:
                return leaf.astype(narrowed(leaf.dtype, real))
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
        return wrap(leaf if self.device == CPU else devices.put(leaf, self.device))

    def call(self, leaves: Sequence[Any]) -> list[Tensor]:
        """All results of the op's eager function."""
        args, keywords = self.filled(leaves)
        return several(self.op.eager(*args, **keywords))

    def results(self) -> list[Tensor]:
        """All results for the sample's own arrays."""
        return self.call([self.put(a) for a in self.leaves])

    def bare(self) -> list[Any]:
        """All results of the op's function on bare NumPy arrays."""
        arrays, params = self.bound()
        return several(self.op.bare(NUMPY)(*arrays, **params))

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


def narrowed(dtype: np.dtype[Any], real: Any) -> np.dtype[Any]:
    """What a float64 or complex128 is where `real` is computed with; others stay."""
    if dtype not in _WIDE or real == np.float64:
        return dtype
    return np.dtype(np.complex64 if dtype.kind == "c" else real)


def several(result: Any) -> list[Any]:
    """All results of a call, also if it is one."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


class Subject:
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
    def every(self) -> list[Sample]:
        """The samples in their own dtypes, and complex ones for an op on complex numbers."""
        op, given = self.op, []
        for k, (args, keywords) in enumerate(self.calls):
            bound = op.signature.bind(*args, **keywords).arguments
            arrays = {n: bound[n] for n in op.arrays if n in bound}
            leaves = [
                np.asarray(a) if isinstance(a, np.generic) else a for a in nest.flatten(arrays)
            ]
            title = f"{op.name}, sample {k}"
            given.append(Sample(op, title, list(args), keywords, arrays, leaves))
        real = [s for s in given if not s.moved or "f" in op.kinds]
        return real + ([self.made_complex(s) for s in given if s.moved] if "c" in op.kinds else [])

    @property
    def whole(self) -> list[Sample]:
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
    def real(self) -> list[Sample]:
        """Those in which nothing is complex."""
        return [s for s in self.every if not any(np.iscomplexobj(a) for a in s.leaves)]

    @property
    def differentiable(self) -> list[Sample]:
        """Those that have gradients."""
        return [s for s in self.every if s.moved and self.op.differentiable]

    def made_complex(self, sample: Sample) -> Sample:
        """It with an imaginary part where it is real; Hermitian where it is symmetric."""
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
