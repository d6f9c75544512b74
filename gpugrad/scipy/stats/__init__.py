"""`scipy.stats` on Tensors: distributions, summaries and tests, with SciPy's names and arguments.

Distributions are SciPy's own formulas, read on Tensors: see `gpugrad.scipy.stats.base`. They have
gradients by the point or the probability, and by shapes, `loc` and `scale`; those of discrete
distributions are by real parameters. `rvs` draws from gpugrad's streams, with gradients by
implicit reparametrisation. Functions without a derivative, as `rankdata`, compute with values and
raise under a tape.

>>> gamma = gg.scipy.stats.gamma
>>> print(gg.grad(lambda a: gamma.logpdf(2.0, a, scale=1.5))(3.0))
-0.6351022600214655
>>> gamma(3.0).rvs(size=(2, 4)).shape
(2, 4)
"""

from __future__ import annotations

import inspect
from typing import Any

from scipy import stats as _stats
from scipy.stats._distn_infrastructure import rv_generic as _rv_generic
from scipy.stats._multivariate import multi_rv_generic as _multi_rv_generic

from gpugrad.numpy.random import seeded_rng
from gpugrad.scipy.calling import on_values, public
from gpugrad.scipy.signatures import lazy
from gpugrad.scipy.stats import searched
from gpugrad.scipy.stats.modules import READ, reader

__all__ = sorted(n for n in _stats.__all__ if n != "test")


_ON_VALUES = frozenset(
    (
        "anderson",
        "cumfreq",
        "kendalltau",
        "ks_1samp",
        "ks_2samp",
        "kstest",
        "ppcc_max",
        "relfreq",
        "shapiro",
        "wasserstein_distance_nd",
        "weightedtau",
        "wilcoxon",
    )
)
"""Functions of `READ` modules that rank, count, or search: SciPy's own, of the values."""


_SEARCHED = {"expectile": searched.expectile, "siegelslopes": searched.siegelslopes}


class _Multivariate:
    """A multivariate distribution: SciPy's formulas on Tensors, and its own for plain values."""

    def __init__(self, ours: Any, scipys: Any) -> None:
        self._ours, self._scipys = ours, scipys

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._scipys)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._ours(*args, **keywords)

    def __getattr__(self, name: str) -> Any:
        ours = getattr(self._ours, name)
        if not callable(ours) or name == "rvs":  # samples are from gpugrad's streams
            return ours
        return public(ours, getattr(self._scipys, name))


class _Compiled:
    """A distribution that SciPy computes in compiled code, of values; `gg.set_seed` repeats it."""

    def __init__(self, scipys: Any) -> None:
        self._scipys = scipys

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._scipys)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        frozen = self._scipys(*args, **keywords)
        frozen.random_state = seeded_rng()
        return frozen

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # while it is unpickled
            raise AttributeError(name)
        return on_values(getattr(self._scipys, name))

    def rvs(self, *args: Any, random_state: Any = None, **keywords: Any) -> Any:
        """SciPy's samples."""
        rng = seeded_rng() if random_state is None else random_state
        return on_values(self._scipys.rvs)(*args, random_state=rng, **keywords)


def _found(name: str) -> Any:
    scipys = getattr(_stats, name)
    home = getattr(scipys, "__module__", "") or ""
    if isinstance(scipys, _rv_generic):
        home = type(scipys).__module__
        value = getattr(reader().read(home), name)
        value = _Compiled(scipys) if value is scipys else value
    elif name in ("random_correlation", "random_table"):  # they draw by loops over memory
        value = _Compiled(scipys)
    elif name in _SEARCHED:
        value = public(_SEARCHED[name], scipys)
    elif home in READ and name not in _ON_VALUES:
        ours = getattr(reader().read(home), name)
        several = isinstance(scipys, _multi_rv_generic)
        value = _Multivariate(ours, scipys) if several else public(ours, scipys)
    else:
        value = on_values(scipys)
    return value


__getattr__, __dir__ = lazy(globals(), _found)
