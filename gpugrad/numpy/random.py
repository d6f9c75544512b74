"""`numpy.random` on Tensors: NumPy's names and arguments on the streams of `gpugrad.random`.

Each distribution has NumPy's signature, `dtype` after `size` as in CuPy, and ``device=``. The
numbers are not NumPy's, but the same on every device; samples are differentiable by parameters
where those of `gpugrad.random` are. `gg.set_seed` and `seed` restart the same generator.

>>> import gpugrad.numpy as np
>>> rng = np.random.default_rng(0)
>>> rng.normal([0.0, 5.0], 1.0, size=(3, 2)).shape
(3, 2)
"""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from collections.abc import Callable, MutableSequence
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from gpugrad.array_api.writes import begin_write, setitem, write
from gpugrad.core.backend import TENSOR, as_dtype, is_inexact
from gpugrad.core.tensor import Tensor
from gpugrad.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    GpugradWarning,
    ShapeError,
    SingularMatrixError,
)
from gpugrad.numpy.creation import asarray
from gpugrad.ops.random import compound, continuous, discrete
from gpugrad.ops.random.generator import Generator as Stream
from gpugrad.ops.random.generator import default_generator
from gpugrad.ops.random.sampling import check, positive
from gpugrad.registry.on_tensors import compiled
from gpugrad.trace.array import pause_trace

_OURS = {  # where gpugrad.random has another name
    "random": "uniform",
    "random_sample": "uniform",
    "standard_cauchy": "cauchy",
    "standard_exponential": "exponential",
    "standard_gamma": "gamma",
    "standard_normal": "normal",
    "standard_t": "student_t",
}
_ALIASES = {"ranf": "random_sample", "sample": "random_sample"}


@functools.cache
def _function(name: str) -> tuple[Callable[..., Tensor], list[str], bool]:
    """The function that draws, the names of its parameters, and whether it gives integers."""
    ours = _OURS.get(name, name)
    homes = [vars(m) for m in (discrete, continuous, compound) if ours in vars(m)]
    function = homes[0][ours]
    parameters = inspect.signature(function).parameters.values()
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "shape"]
    return function, names, homes[0] is vars(discrete)


class BitGenerator:
    """A stream of random bits. All of NumPy's and CuPy's names of bit generators are this one.

    Args:
        seed: int, sequence of ints or ``SeedSequence``; None for one from the operating system.
    """

    def __init__(self, seed: Any = None) -> None:
        if isinstance(seed, np.bool_):
            seed = int(seed)
        value = np.asarray(seed) if isinstance(seed, Tensor) else seed
        self.seed_seq = value if isinstance(value, SeedSequence) else SeedSequence(value)
        self._stream = Stream(self.seed_seq)

    @property
    def state(self) -> Any:
        """The position of the stream; assign it to return to it."""
        return self._stream.state

    @state.setter
    def state(self, value: Any) -> None:
        self._stream.state = value

    def random_raw(self, size: Any = None) -> Any:
        """Random integers of uint64; an int if `size` is None."""
        bits = discrete.bits(() if size is None else size, dtype=np.uint64, generator=self._stream)
        return bits.item() if size is None else bits

    def spawn(self, n_children: int) -> list[BitGenerator]:
        """Bit generators with numbers independent of this one's and of each other's."""
        return [BitGenerator(seed) for seed in self.seed_seq.spawn(n_children)]


MT19937 = PCG64 = PCG64DXSM = Philox = SFC64 = XORWOW = MRG32k3a = Philox4x3210 = BitGenerator


class _Distributions:
    """The methods that `Generator` and `RandomState` share."""

    def __init__(self, seed: Any = None) -> None:
        self._bit_generator = seed if isinstance(seed, BitGenerator) else BitGenerator(seed)

    @property
    def _stream(self) -> Stream:
        return self._bit_generator._stream

    def _draw(self, name: str, size: Any, dtype: Any, out: Any, on: Any, *given: Any) -> Tensor:
        function, names, whole = _function(name)
        dtype = as_dtype(dtype or (np.int64 if whole else np.float64))
        if dtype.kind == "c" or not (whole or is_inexact(dtype)):
            what = "real" if whole else "real floating point"
            raise DTypeError(f"random.{name}: dtype must be {what}, got {dtype}.")
        if out is not None:
            if not isinstance(out, Tensor) or out.dtype != dtype:
                found = getattr(out, "dtype", type(out).__name__)
                raise DTypeError(f"random.{name}: out must be a Tensor of {dtype}, got {found}.")
            flags: Any = out.flags
            if not flags.c_contiguous:
                raise ArgumentError(f"random.{name}: out must have row-major order.")
            size = out.shape if size is None else size
        values = {
            n: v if isinstance(v, (int, float, np.number, Tensor)) else asarray(v, device=on)
            for n, v in zip(names, given, strict=False)
        }
        if name == "hypergeometric" and isinstance(self, RandomState):
            check("random.hypergeometric", positive, nsample=values["nsample"])
        options = {"dtype": dtype, "device": on, "generator": self._stream}
        drawn = function(shape=size, **values, **options)
        if name == "pareto":
            drawn = drawn - 1
        return drawn if out is None else write(f"random.{name}", out, drawn)

    def _whole(self, low: Any, high: Any, size: Any, dtype: Any, endpoint: bool, on: Any) -> Tensor:
        dtype = as_dtype(dtype or np.int64)
        if dtype.kind not in "biu":
            raise DTypeError(f"random integers: dtype must be an integer dtype, got {dtype}.")
        low, high = (0, low) if high is None else (low, high)
        options = {"device": on, "generator": self._stream}
        if np.ndim(low) == np.ndim(high) == 0:
            low, high = int(low), int(high) + endpoint
            if dtype.kind == "b" and not 0 <= low < high <= 2:
                raise ArgumentError(f"random integers: {low} to {high} does not fit bool.")
            wide = np.int8 if dtype.kind == "b" else dtype
            shape = () if size is None else size
            drawn = discrete.integers(shape=shape, low=low, high=high, dtype=wide, **options)
            return TENSOR.astype(drawn, dtype)
        first, end = (TENSOR.astype(asarray(x, device=on), np.int64) for x in (low, high))
        span = end + int(endpoint) - first
        if not span.size or int(TENSOR.min(span)) < 1 or int(TENSOR.max(span)) > 2**53:
            raise ArgumentError(
                "random integers: low must be below high, and by at most 2^53 if they are arrays."
            )
        shape = span.shape if size is None else size
        part = continuous.uniform(shape, dtype=np.float64, **options) * span
        part = TENSOR.minimum(TENSOR.floor(part), TENSOR.astype(span - 1, np.float64))
        return TENSOR.astype(first + TENSOR.astype(part, np.int64), dtype)

    def bytes(self, length: int) -> bytes:
        """Random bytes."""
        return discrete.bits(-(-length // 4), generator=self._stream).numpy().tobytes()[:length]

    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Any = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        method: str = "svd",
        dtype: Any = None,
        *,
        device: Any = None,
    ) -> Tensor:
        """Normal vectors of a mean and a covariance matrix, which may be singular.

        The factor is Cholesky's if the matrix has one, whatever the `method`.
        """
        if method not in ("svd", "eigh", "cholesky") or check_valid not in _CHECKS:
            raise ArgumentError(
                "random.multivariate_normal: method must be svd, eigh or cholesky, and check_valid "
                f"warn, raise or ignore, got {method!r} and {check_valid!r}."
            )
        mean, cov = asarray(mean, device=device), asarray(cov, np.float64, device=device)
        options = {"dtype": dtype or np.float64, "device": device, "generator": self._stream}
        if mean.ndim != 1 or cov.shape != 2 * mean.shape:
            raise ShapeError(
                "random.multivariate_normal: mean and cov must be (n,) and (n, n), got "
                f"{mean.shape} and {cov.shape}."
            )
        try:
            return continuous.multivariate_normal(mean, cov, size, **options)
        except SingularMatrixError:
            if method == "cholesky":
                raise
        values, vectors = TENSOR.eigh(cov)
        if check_valid != "ignore" and float(TENSOR.min(values)) < -tol * float(values[-1]):
            text = "covariance is not symmetric positive-semidefinite."
            if check_valid == "raise":
                raise ArgumentError(f"random.multivariate_normal: {text}")
            warnings.warn(text, GpugradWarning, stacklevel=2)
        factor = vectors * TENSOR.sqrt(TENSOR.maximum(values, 0.0))
        return continuous.multivariate_normal(mean, shape=size, scale_tril=factor, **options)

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
        *,
        device: Any = None,
    ) -> Tensor:
        """Random elements of an array along an axis, or random integers below an int."""
        items = asarray(0.0 if a is None else a, device=device)
        if items.ndim == 0 and items.dtype.kind not in "iu":
            raise ArgumentError(f"random.choice: a must be an int or a sequence, got {a!r:.60}.")
        n = int(items) if items.ndim == 0 else items.shape[axis]
        p = None if p is None else asarray(p, np.float64, device=device)
        options = {"device": device, "generator": self._stream}
        index = discrete.choice(n, () if size is None else size, replace=replace, p=p, **options)
        return index if items.ndim == 0 else TENSOR.take(items, index, axis=axis)

    def permutation(self, x: Any, axis: int = 0, *, device: Any = None) -> Tensor:
        """The integers below an int in random order, or an array in random order along an axis."""
        if not isinstance(x, (int, np.integer)):
            x = asarray(x, device=device)
            if not x.ndim:
                raise AxisError("random.permutation: x must be an int or have an axis.")
        return discrete.permutation(x, axis=axis, device=device, generator=self._stream)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Write an array, a Tensor or a list in random order along an axis; a recorded write."""
        if isinstance(x, MutableSequence):
            order = discrete.permutation(len(x), device="cpu", generator=self._stream)
            x[:] = [x[i] for i in order.tolist()]
        elif not isinstance(x, (Tensor, np.ndarray)) or not x.ndim:
            raise DTypeError("random.shuffle: x must be an array with an axis, or a list.")
        else:
            order = self.permutation(x.shape[axis], device=getattr(x, "device", None))
            if isinstance(x, Tensor):
                begin_write(x)
                setitem(x, ..., TENSOR.take(x, order, axis=axis))
            else:
                x[...] = np.take(x, order.numpy(), axis=axis)


_CHECKS = ("warn", "raise", "ignore")


class Generator(_Distributions):
    """NumPy's ``Generator``, of a `BitGenerator` or a seed."""

    def __init__(self, bit_generator: Any = None) -> None:
        super().__init__(bit_generator)

    @property
    def bit_generator(self) -> BitGenerator:
        """The stream of bits."""
        return self._bit_generator

    @bit_generator.setter
    def bit_generator(self, value: BitGenerator) -> None:
        self._bit_generator = value

    def spawn(self, n_children: int) -> list[Generator]:
        """Generators with numbers independent of this one's and of each other's."""
        return [Generator(bits) for bits in self._bit_generator.spawn(n_children)]

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = np.int64,
        endpoint: bool = False,
        *,
        device: Any = None,
    ) -> Tensor:
        """Random integers from `low` up to `high`, which only `endpoint` includes."""
        return self._whole(low, high, size, dtype, endpoint, device)

    def permuted(self, x: Any, *, axis: int | None = None, out: Any = None) -> Any:
        """A copy with all elements in random order, or those of each slice along an axis."""
        begin_write(out)
        x = asarray(x)
        t = TENSOR.ravel(x) if axis is None else TENSOR.moveaxis(x, axis, -1)
        order = self._stream._draw("permutation", t.shape, np.int64, t.device, t.shape[-1])
        t = TENSOR.take_along_axis(t, order, axis=-1)
        t = TENSOR.reshape(t, x.shape) if axis is None else TENSOR.moveaxis(t, -1, axis)
        return t if out is None else write("random.permuted", out, t)


class RandomState(_Distributions):
    """NumPy's ``RandomState``, of a seed or a `BitGenerator`."""

    def choice(  # type: ignore[override]  # NumPy's too
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, *, device: Any = None
    ) -> Tensor:
        """Random elements of an array of one axis, or random integers below an int."""
        if np.ndim(a) > 1:
            raise ShapeError(f"random.choice: a must be 1-dimensional, got {np.shape(a)}.")
        return super().choice(a, size, replace, p, device=device)

    def seed(self, seed: Any = None) -> None:
        """Restart the stream."""
        self._stream.state = BitGenerator(seed).state

    def get_state(self, legacy: bool = True) -> Any:
        """The position of the stream, for `set_state`."""
        return self._stream.state

    def set_state(self, state: Any) -> None:
        """Return to a position of the stream."""
        self._stream.state = state

    def rand(self, *args: int, dtype: Any = None, device: Any = None) -> Tensor:
        """Numbers from 0 up to 1; the arguments are the shape."""
        return self._draw("uniform", args, dtype, None, device)

    def randn(self, *args: int, dtype: Any = None, device: Any = None) -> Tensor:
        """Normal numbers; the arguments are the shape."""
        return self._draw("normal", args, dtype, None, device)

    def randint(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = int, *, device: Any = None
    ) -> Tensor:
        """Random integers from `low` up to, but not including, `high`."""
        return self._whole(low, high, size, dtype, False, device)

    def random_integers(self, low: Any, high: Any = None, size: Any = None) -> Tensor:
        """Random integers from `low`, or 1, up to and including `high`."""
        low, high = (1, low) if high is None else (low, high)
        return self._whole(low, high, size, None, True, None)

    def tomaxint(self, size: Any = None) -> Tensor:
        """Random integers of at least 0 that int64 holds."""
        return self._whole(0, 2**63 - 1, size, None, True, None)


def _method(numpys: type, name: str) -> Callable[..., Tensor]:
    """A method with the signature that NumPy's docstring gives, `dtype` and `device`."""
    documented = getattr(numpys, name).__doc__
    signature = " ".join(re.search(rf"{name}\((.*?)\)\n", documented, re.DOTALL)[1].split())  # type: ignore[index]
    before, size, after = signature.partition("size=None")
    if "dtype" not in after:
        after += ", dtype=None"
    values = ", ".join(p.partition("=")[0] for p in before.split(", ") if p)
    out = "out" if "out=" in after else "None"
    text = (
        f"lambda self, {before}{size}{after}, *, device=None: "
        f"self._draw({name!r}, size, dtype, {out}, device, {values})"
    )
    method: Callable[..., Tensor] = eval(compiled(text, "eval"), {"np": np})
    method.__name__, method.__doc__ = name, f"NumPy's ``{name}``: {_function(name)[0].__doc__}"
    return method


def _add_distributions(ours: type, numpys: type) -> None:
    for name in dir(numpys):
        documented = getattr(numpys, name).__doc__ or ""
        if "size=None" in documented and not hasattr(ours, name):
            setattr(
                ours,
                name,
                _method(numpys, _ALIASES.get(name, name) if ours is RandomState else name),
            )


_add_distributions(Generator, np.random.Generator)
_add_distributions(RandomState, np.random.RandomState)


def seeded_rng() -> np.random.Generator:
    """NumPy's generator for a function of SciPy's that draws, seeded by gpugrad's default stream.

    So `gg.set_seed` repeats what it draws. In a trace it raises: each replay would draw the same.
    """
    return np.random.default_rng(discrete.integers((4,), 0, 1 << 31, device="cpu").tolist())


def default_rng(seed: Any = None) -> Generator:
    """A `Generator` of a seed, a `BitGenerator`, or that of a `Generator` or `RandomState`."""
    if isinstance(seed, Generator):
        return seed
    return Generator(seed._bit_generator if isinstance(seed, RandomState) else seed)


with pause_trace():  # the import may be in a traced function, which would start it at each replay
    _default = RandomState(0)
_default._bit_generator._stream = default_generator()


def get_random_state() -> RandomState:
    """The state from which the functions of this module draw, as CuPy's function."""
    return _default


def set_random_state(rs: RandomState) -> None:
    """Let the functions of this module draw from another state, as CuPy's function."""
    global _default
    if not isinstance(rs, RandomState):
        raise DTypeError(f"set_random_state: a RandomState is needed, got a {type(rs).__name__}.")
    _default = rs


def reset_states() -> None:
    """Seed the state of this module anew from the operating system, as CuPy's function."""
    _default.seed()


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not hasattr(RandomState, _ALIASES.get(name, name)):
        raise AttributeError(f"gpugrad.numpy.random has no {name!r}.")
    return getattr(_default, _ALIASES.get(name, name))


def __dir__() -> list[str]:
    return __all__


__all__ = sorted({*np.random.__all__, "MRG32k3a", "Philox4x3210", "XORWOW"})
