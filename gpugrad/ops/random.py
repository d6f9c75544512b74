"""Random tensors from counter-based generators.

Bits come from NumPy's Philox generator on the host and are copied to the device, so a seed
gives the same numbers on every device.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from gpugrad import backend
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.tensor import Tensor, tensor, wrap

__all__ = [
    "Generator",
    "default_generator",
    "integers",
    "normal",
    "permutation",
    "set_seed",
    "uniform",
]

Shape = int | tuple[int, ...] | list[int]


class Generator:
    """A stream of random numbers.

    Args:
        seed: int; generators of the same seed give the same numbers. None for a seed from the
            operating system.

    `state` can be read, stored (it is made of ints and lists) and set. `split` gives
    independent streams. A generator may be used from several threads.

    >>> import gpugrad as gg
    >>> g = gg.random.Generator(0)
    >>> g.normal((2, 3)).shape
    (2, 3)
    """

    def __init__(self, seed: int | None = None) -> None:
        if seed is not None and (not isinstance(seed, (int, np.integer)) or seed < 0):
            raise ArgumentError(f"Generator: a seed is a whole number from 0 up, got {seed!r}.")
        self._sequence = np.random.SeedSequence(None if seed is None else int(seed))
        self._host = np.random.Generator(np.random.Philox(self._sequence))
        self._lock = threading.Lock()

    def split(self, n: int = 2) -> list[Generator]:
        """`n` generators whose numbers are independent of this one's and of each other's."""
        made = []
        for sequence in self._sequence.spawn(n):
            g = Generator(0)
            g._sequence = sequence
            g._host = np.random.Generator(np.random.Philox(sequence))
            made.append(g)
        return made

    @property
    def state(self) -> dict[str, Any]:
        """Where the stream is, in ints and lists; assign it to go back there."""
        raw = self._host.bit_generator.state
        return {
            **{k: v for k, v in raw.items() if k not in ("state", "buffer")},
            "state": {k: v.tolist() for k, v in raw["state"].items()},
            "buffer": raw["buffer"].tolist(),
        }

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        try:
            self._host.bit_generator.state = {
                **value,
                "state": {k: np.array(v, np.uint64) for k, v in value["state"].items()},
                "buffer": np.array(value["buffer"], np.uint64),
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ArgumentError(f"Generator: this is no state of a generator: {error}") from error

    def __reduce__(self) -> Any:
        return _restore, (self.state,)

    def normal(
        self, shape: Shape = (), mean: float = 0.0, stddev: float = 1.0, *, dtype: Any = None,
        device: Any = None,
    ) -> Tensor:  # fmt: skip
        """Normal numbers of a mean and a standard deviation; float32 unless `dtype` says else."""
        draw = self._host.standard_normal
        return self._real("normal", draw, shape, stddev, mean, dtype, device)

    def uniform(
        self, shape: Shape = (), low: float = 0.0, high: float = 1.0, *, dtype: Any = None,
        device: Any = None,
    ) -> Tensor:  # fmt: skip
        """Numbers from `low` up to but without `high`; float32 unless `dtype` says else."""
        if not low <= high:
            raise ArgumentError(f"uniform: low={low} is not below high={high}.")
        return self._real("uniform", self._host.random, shape, high - low, low, dtype, device)

    def _real(
        self,
        name: str,
        draw: Any,
        shape: Shape,
        scale: float,
        shift: float,
        dtype: Any,
        device: Any,
    ) -> Tensor:
        made = backend.as_dtype(np.float32 if dtype is None else dtype)
        if not backend.is_inexact(made) or made.kind == "c":
            raise ArgumentError(f"{name}: dtype must be a real floating-point one, got {made}.")
        drawn_as = np.float64 if made == np.float64 else np.float32
        with self._lock:
            values = draw(_shape(name, shape), drawn_as)
        if (scale, shift) != (1.0, 0.0):
            values = values * drawn_as(scale) + drawn_as(shift)
        return _new(values.astype(made, copy=False), device)

    def integers(
        self, shape: Shape = (), low: int = 0, high: int | None = None, *, dtype: Any = None,
        device: Any = None,
    ) -> Tensor:  # fmt: skip
        """Whole numbers from `low` up to but without `high`; int64 unless `dtype` says else."""
        if high is None:
            raise ArgumentError("integers: high= is needed: integers(shape, low, high).")
        if low >= high:
            raise ArgumentError(f"integers: low={low} is not below high={high}.")
        made = backend.as_dtype(np.int64 if dtype is None else dtype)
        with self._lock:
            values = self._host.integers(low, high, _shape("integers", shape), np.int64)
        return _new(values.astype(made, copy=False), device)

    def permutation(self, x: Any, *, device: Any = None) -> Tensor:
        """The numbers below `x` in random order; or the rows of an array `x` in random order."""
        if isinstance(x, (int, np.integer)):
            with self._lock:
                return _new(self._host.permutation(int(x)), device)
        t = tensor(x)
        if not t.ndim:
            raise ShapeError("permutation: a whole number or an array with rows is needed.")
        with self._lock:
            order = self._host.permutation(t.shape[0])
        return t[_new(order, t.device)]


def _restore(state: dict[str, Any]) -> Generator:
    g = Generator(0)
    g.state = state
    return g


def _shape(name: str, shape: Shape) -> tuple[int, ...]:
    made = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if any(n < 0 for n in made):
        raise ShapeError(f"{name}: a shape has no negative lengths, got {made}.")
    return tuple(int(n) for n in made)


def _new(values: Any, device: Any) -> Tensor:
    d = backend.device(device)
    return wrap(np.asarray(values) if d == "cpu" else backend.put(np.asarray(values), d))


_default = Generator()


def default_generator() -> Generator:
    """The generator that the functions of this module use."""
    return _default


def set_seed(seed: int) -> None:
    """Start the default generator anew: from here on, random numbers repeat.

    >>> import gpugrad as gg
    >>> gg.set_seed(1)
    >>> a = gg.random.normal(3)
    >>> gg.set_seed(1)
    >>> bool(gg.all(a == gg.random.normal(3)))
    True
    """
    fresh = Generator(seed)
    with _default._lock:
        _default._sequence, _default._host = fresh._sequence, fresh._host


def normal(
    shape: Shape = (), mean: float = 0.0, stddev: float = 1.0, *, dtype: Any = None,
    device: Any = None, generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Normal random numbers of a mean and a standard deviation.

    Args:
        shape: int or tuple of ints.
        mean, stddev: of the distribution.
        dtype: float32 if None.
        device: the default device if None.
        generator: the default generator if None.

    >>> import gpugrad as gg
    >>> gg.random.normal((2, 3)).dtype.name
    'float32'
    """
    return (generator or _default).normal(shape, mean, stddev, dtype=dtype, device=device)


def uniform(
    shape: Shape = (), low: float = 0.0, high: float = 1.0, *, dtype: Any = None,
    device: Any = None, generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Random numbers from `low` up to but without `high`; other arguments as `normal`.

    >>> import gpugrad as gg
    >>> bool(gg.all(gg.random.uniform(5, 2.0, 3.0) >= 2))
    True
    """
    return (generator or _default).uniform(shape, low, high, dtype=dtype, device=device)


def integers(
    shape: Shape = (), low: int = 0, high: int | None = None, *, dtype: Any = None,
    device: Any = None, generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Random whole numbers from `low` up to but without `high`, int64 if `dtype` is None.

    >>> import gpugrad as gg
    >>> bool(gg.all(gg.random.integers(5, 0, 3) < 3))
    True
    """
    return (generator or _default).integers(shape, low, high, dtype=dtype, device=device)


def permutation(x: Any, *, device: Any = None, generator: Generator | None = None) -> Tensor:
    """The numbers below `x` in random order, or the rows of an array `x` (differentiable).

    >>> import gpugrad as gg
    >>> sorted(gg.random.permutation(4).tolist())
    [0, 1, 2, 3]
    """
    return (generator or _default).permutation(x, device=device)
