"""Compares arrays and printed text, with the op and sample in the error message."""

from __future__ import annotations

import contextlib
import doctest
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpugrad.core import backend, devices
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor
from gpugrad.errors import saying_where

Array = np.ndarray[Any, Any]

TOLERANCES: dict[str, tuple[float, float]] = {
    "float64": (1e-10, 1e-12),
    "complex128": (1e-10, 1e-12),
    "float32": (1e-5, 1e-6),
    "complex64": (1e-5, 1e-6),
    "float16": (2e-3, 1e-3),
    "bfloat16": (2e-2, 1e-2),
}
"""Relative and absolute tolerance of `assert_close` by dtype; other dtypes compare exactly."""


class GradientCheckError(AssertionError):
    """A derivative is wrong, or an op does not keep a promise of its record.

    >>> wrong = gg.custom_gradient(lambda x: (x * x, lambda g: g))
    >>> try:
    ...     gg.testing.check_grads(wrong, (gg.constant(3.0, "float64"),))
    ... except gg.testing.GradientCheckError as error:
    ...     print(str(error)[:30])
    <lambda>: the gradient by argu
    """


def as_numpy(x: Any) -> Array:
    """Convert a Tensor, IndexedSlices, an array of any library, or numbers to a NumPy array."""
    if isinstance(x, IndexedSlices):
        x = x.to_dense()
    if isinstance(x, Tensor):
        return x.numpy()
    return devices.host(x) if backend.is_array(x) else np.asarray(x)


def to_double(x: Array) -> Array:
    """The values in double precision, where differences of narrower floats are exact."""
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


@saying_where
def assert_close(
    actual: Any, desired: Any, *, rtol: float | None = None, atol: float | None = None
) -> None:
    """Assert that two arrays have the same shape, the same dtype and nearly the same values.

    Args:
        actual: computed Tensor, array or number.
        desired: expected value. For plain numbers and lists of them the dtype is not compared.
        rtol, atol: tolerances, relative to `desired` and absolute; None takes the one of the dtype
            in `TOLERANCES`. NaN equals NaN, an infinity equals itself.

    Raises:
        AssertionError: they differ; the message shows the element with the largest error.

    >>> gg.testing.assert_close(gg.sqrt([4.0, 9.0]), [2.0, 3.0])
    """
    typed = isinstance(desired, (Tensor, IndexedSlices)) or hasattr(desired, "dtype")
    a, d = as_numpy(actual), as_numpy(desired)
    if a.shape != d.shape:
        raise AssertionError(f"The shape is {a.shape}, expected {d.shape}.")
    if typed and a.dtype != d.dtype:
        raise AssertionError(f"The dtype is {a.dtype}, expected {d.dtype}.")
    own = TOLERANCES.get(a.dtype.name, (0.0, 0.0))
    rtol, atol = own[0] if rtol is None else rtol, own[1] if atol is None else atol
    with np.errstate(invalid="ignore"):
        equal = (a == d) | (np.isnan(a) & np.isnan(d))
        error = np.where(equal, 0.0, np.abs(to_double(a) - to_double(d)))
        allowed = atol + rtol * np.where(np.isfinite(d), np.abs(to_double(d)), 0.0)
        bad = ~equal & ~((error <= allowed) & (allowed > 0))  # float64 does not hold every int64
    if not bad.any():
        return
    excess = np.where(bad, np.where(np.isnan(error), np.inf, error - allowed), -np.inf)
    worst = np.unravel_index(int(np.argmax(excess)), a.shape)
    at = f" at {tuple(int(i) for i in worst)}" if a.ndim else ""
    raise AssertionError(
        f"{int(bad.sum())} of {a.size} elements differ, most{at}: {a[worst]!r}, expected "
        f"{d[worst]!r}. The difference is {error[worst]:.3g}, the limit {allowed[worst]:.3g} "
        f"(rtol={rtol:g}, atol={atol:g})."
    )


@contextlib.contextmanager
def name_failure(title: str, what: str) -> Iterator[None]:
    """Turn an exception into a GradientCheckError that names the op and the sample."""
    try:
        yield
    except GradientCheckError:
        raise
    except AssertionError as error:
        raise GradientCheckError(f"{title}: {what}. {error}") from error
    except Exception as error:
        raise GradientCheckError(
            f"{title}: {what} raised {type(error).__name__}: {error}"
        ) from error


def assert_same(
    title: str,
    what: str,
    names: Sequence[str],
    actual: Sequence[Any],
    desired: Sequence[Any],
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """`assert_close` for several arrays, which may be None in the same places."""
    if len(actual) != len(desired):
        raise GradientCheckError(
            f"{title}: {what}: got {len(actual)} arrays, expected {len(desired)}."
        )
    for name, a, d in zip(names, actual, desired, strict=True):
        if (a is None) != (d is None):
            raise GradientCheckError(f"{title}: {what}, {name}: got {a!r:.60}, expected {d!r:.60}.")
        if a is not None:
            with name_failure(title, f"{what}, {name}"):
                assert_close(a, d, rtol=rtol, atol=atol)


def assert_near(
    title: str,
    what: str,
    names: Sequence[str],
    actual: Sequence[Any],
    desired: Sequence[Any],
    rtol: float,
    atol: float,
) -> None:
    """`assert_same` with an `atol` that is relative to the largest element."""
    for name, a, d in zip(names, actual, desired, strict=True):
        finite = to_double(d)[np.isfinite(to_double(d))] if d is not None else np.zeros(0)
        scale = max(1.0, float(np.max(np.abs(finite), initial=0.0)))
        assert_same(title, what, [name], [a], [d], rtol, atol * scale)


def result_names(results: Sequence[Any]) -> list[str]:
    """The names of results in messages."""
    return [f"result {k}" for k in range(len(results))]


class NearNumbers(doctest.OutputChecker):
    """Compares printed text; numbers may differ in the last digits, as they do between CPUs."""

    _NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Whether the printed text matches the expected text."""
        if super().check_output(want, got, optionflags):
            return True
        a, b = (self._NUMBER.findall(text) for text in (want, got))
        rest = [" ".join(self._NUMBER.sub("#", text).split()) for text in (want, got)]
        return rest[0] == rest[1] and np.allclose(
            np.array(a, float), np.array(b, float), rtol=1e-5, atol=1e-7
        )
