"""Where the frequencies of a Fourier transform are: their values, and 0 in the middle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core import backend, devices
from gpugrad.core.samples import shaped
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import ArgumentError, AxisError, DTypeError, saying_where
from gpugrad.ops.fft.complex import from_end
from gpugrad.registry.record import op


def _frequencies(
    name: str, points: str, length: str, what: tuple[str, str]
) -> Callable[..., Tensor]:
    """NumPy's function of that name, with a dtype and on a device."""

    def frequencies(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
        if not isinstance(n, (int, np.integer)) or n < 1:
            raise ArgumentError(f"{name}: n={n!r} must be an int from 1.")
        if d == 0:
            raise ArgumentError(f"{name}: the spacing d must not be 0.")
        kind = backend.as_dtype(np.float32 if dtype is None else dtype)
        if kind.kind not in "fV":
            raise DTypeError(f"{name}: dtype {kind} is not floating-point.")
        values = getattr(np.fft, name)(n, d)
        return wrap(devices.put(values.astype(kind), devices.device(device)))

    frequencies.__name__ = frequencies.__qualname__ = name
    frequencies.__doc__ = f"""Make the frequencies of the points of {what[0]}, divided by n d.

    Args:
        n: number of points of the {what[1]}.
        d: distance of its samples.
        dtype: float32 if None.
        device: the default device if None.

    Returns:
        Tensor of shape ({length},).

    Raises:
        ArgumentError: `n` is not a positive int, or `d` is 0.
        DTypeError: a dtype that is not floating-point.

    >>> print(gg.fft.{name}(4))
    {points}
    """
    return saying_where(frequencies)


fftfreq = _frequencies(
    "fftfreq", "[ 0.    0.25 -0.5  -0.25]", "n", ("`fft`: 0, 1, ..., -2, -1", "transform")
)
rfftfreq = _frequencies(
    "rfftfreq", "[0.   0.25 0.5 ]", "n // 2 + 1", ("`rfft`: 0, 1, ...", "real array")
)


def _shift(name, what, example, places):
    """Roll each axis by `places` of its length."""

    def shift(xp, x, /, axes=None):
        axes = range(x.ndim) if axes is None else axes
        axes = from_end(name, x, axes if isinstance(axes, (tuple, list, range)) else (axes,))
        return xp.roll(x, tuple(places(x.shape[a]) for a in axes), axis=axes) if axes else x

    shift.__doc__ = f"""{what}

    Args:
        axes: int or tuple of ints, along which; all if None.

    >>> print(gg.fft.{name}({example[0]}))
    {example[1]}
    """
    samples = shaped(
        [(5,)], ([(4, 3)], {"axes": 0}), ([(2, 3, 2)], {"axes": (1, -1)}), [(2, 3)], [(0, 2)]
    )
    errors = [([np.ones(3)], {"axes": 1}, AxisError, "axis 1")]
    more = {"name": name, "ref": f"numpy.fft.{name}", "native_half": True, "kinds": "fc"}
    return op(samples=samples, errors=errors, **more)(shift)


fftshift = _shift(
    "fftshift",
    "Move the frequency 0 of a transform from the start to the middle.",
    ("[0.0, 1.0, 2.0, -2.0, -1.0]", "[-2. -1.  0.  1.  2.]"),
    lambda n: n // 2,
)
ifftshift = _shift(
    "ifftshift",
    "Move the frequency 0 from the middle back to the start; the inverse of `fftshift`.",
    ("[-2.0, -1.0, 0.0, 1.0, 2.0]", "[ 0.  1.  2. -2. -1.]"),
    lambda n: -(n // 2),
)
