"""`scipy.signal` on Tensors: SciPy's names, signatures, defaults and errors, on either device.

The formulas are SciPy's own, read on Tensors: see `gpugrad.scipy.reading`. So each function is a
composite of ops, and has gradients by all floating-point arguments that the formula uses.
Functions without a derivative, as `find_peaks`, compute with values and raise under a tape.

>>> b, a = gg.scipy.signal.butter(2, 0.2)
>>> print(gg.scipy.signal.lfilter(b, a, np.ones(4)))
[0.06745527 0.27946588 0.56139951 0.79612582]
"""

from __future__ import annotations

import importlib
from typing import Any

from scipy import signal as _signal

from gpugrad.scipy.calling import on_values, public
from gpugrad.scipy.reading import Reader, made_once
from gpugrad.scipy.signal import splines
from gpugrad.scipy.signal.compiled import frames, modules, overlap_added, states
from gpugrad.scipy.signal.edits import EDITS
from gpugrad.scipy.signatures import lazy

__all__ = sorted(n for n in _signal.__all__ if n != "test")

_ON_VALUES = frozenset(
    (
        "argrelextrema",
        "argrelmax",
        "argrelmin",
        "find_peaks",
        "find_peaks_cwt",
        "max_len_seq",
        "peak_prominences",
        "peak_widths",
        "place_poles",
    )
)
"""Functions whose results are positions, or that search: SciPy's own, of the values."""


@made_once
def _reader() -> Reader:
    evaluations = {
        name: splines.evaluation(name, order)
        for name, order in (("cspline1d_eval", 3), ("qspline1d_eval", 2))
    }
    return Reader(
        "scipy.signal",
        modules(),
        EDITS,
        {"scipy.signal._spline_filters": evaluations},
        frames=frames,
        overlap_added=overlap_added,
        states=states,
    )


def _found(name: str) -> Any:
    if name == "windows":
        return importlib.import_module(f"{__name__}.windows")
    if name in _ON_VALUES:
        value = on_values(getattr(_signal, name))
    else:
        value = public(
            getattr(_reader().read("scipy.signal._signal_api"), name), getattr(_signal, name)
        )
    return value


__getattr__, __dir__ = lazy(globals(), _found)
