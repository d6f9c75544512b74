"""The modules of scipy.stats, read on Tensors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.stats
from scipy.stats._distn_infrastructure import rv_generic

from gpugrad.scipy.calling import holds, on_values
from gpugrad.scipy.namespaces import NUMPY, Names
from gpugrad.scipy.reading import Reader, made_once
from gpugrad.scipy.stats.base import rv_continuous
from gpugrad.scipy.stats.common import stream
from gpugrad.scipy.stats.discrete import rv_discrete
from gpugrad.scipy.stats.formulas import COMPILED, FORMULAS, log_difference, log_gauss_mass, zeta
from gpugrad.scipy.stats.matrices import KERNELS, LINALG, covariance_class, inverse_wishart
from gpugrad.scipy.stats.searched import normmax


def _lazyselect(conditions: Any, choices: Any, arrays: Any, default: Any = 0) -> Any:
    result = default
    for cond, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = NUMPY.where(cond, choice(*arrays), result)
    return result


def _get_nan(*data: Any, **options: Any) -> Any:
    kinds = [x for x in data if x is not None]
    return NUMPY.asarray(np.nan, dtype=NUMPY.result_type(*kinds, 1.0) if kinds else np.float64)


def _contains_nan(a: Any, nan_policy: str = "propagate", **options: Any) -> bool:
    """Whether there is a NaN; False in a trace, where it is not known."""
    if nan_policy not in ("propagate", "raise", "omit"):
        raise ValueError("nan_policy must be one of {'propagate', 'raise', 'omit'}.")
    a = NUMPY.asarray(a)
    found = a.dtype.kind in "fc" and not holds(NUMPY.all(NUMPY.logical_not(NUMPY.isnan(a))))
    if found and nan_policy == "raise":
        raise ValueError("The input contains nan values")
    return found


_UTILITIES = {
    "_contains_nan": _contains_nan,
    "_get_nan": _get_nan,
    "_lazyselect": _lazyselect,
    "check_random_state": stream,
}


def _modules(package: Any) -> dict[str, Any]:
    import scipy.special._ufuncs as ufuncs
    from scipy._lib import _util
    from scipy.stats import _distn_infrastructure as infrastructure

    own: dict[str, Any] = {"zeta": zeta}
    given = Reader("scipy.special", {}, {}).given
    functions = Names("special", own, given["scipy.special"])
    given_stats = Reader("scipy.stats._stats", {}, {}).read("scipy.stats._stats")
    compiled = own["_ufuncs"] = Names("_ufuncs", COMPILED, functions, ufuncs)
    functions.__dict__.update(own)
    return {
        **{  # everything else is SciPy's own
            name: module
            for name, module in sys.modules.items()
            if name.startswith("scipy.stats.")
            and name not in READ | _HELPERS
            and getattr(module, "__file__", "").endswith(".py")
        },
        "scipy.stats.distributions": package,
        "scipy.stats": package,
        "scipy.linalg": Names("linalg", LINALG, given["scipy.linalg"]),
        "scipy.stats._stats": Names("_stats", KERNELS, given_stats),
        "scipy.special": functions,
        "scipy.special._ufuncs": compiled,
        "scipy._lib._util": Names("_util", _UTILITIES, _util),
        "scipy.stats._distn_infrastructure": Names(
            "_distn_infrastructure",
            {"rv_continuous": rv_continuous, "rv_discrete": rv_discrete},
            infrastructure,
        ),
    }


class _Package:
    """The names of scipy.stats that its modules ask for."""

    def __init__(self) -> None:
        self.reader: Any = None

    def __getattr__(self, name: str) -> Any:
        found = None if name.startswith("_") else getattr(scipy.stats, name, None)
        if found is None:
            raise AttributeError(name)
        home = (type(found) if isinstance(found, rv_generic) else found).__module__
        is_read = home in READ or isinstance(found, rv_generic)
        return getattr(self.reader.read(home), name) if is_read else found


READ = frozenset(
    f"scipy.stats.{name}"
    for name in (
        "_correlation",
        "_entropy",
        "_kde",
        "_morestats",
        "_multivariate",
        "_quantile",
        "_stats_mstats_common",
        "_stats_py",
        "_variation",
    )
)
"""Modules of functions that are read on Tensors. All others compute with values."""

_HELPERS = frozenset(
    f"scipy.stats.{name}"
    for name in ("_axis_nan_policy", "_continuous_distns", "_covariance", "_discrete_distns")
)
_EDITS = {
    "scipy.stats._multivariate": {
        "dirichlet_multinomial_gen": {
            "np.place(out, n != x.sum(axis=-1), -np.inf)": (
                "out = np.where(n != x.sum(axis=-1), -np.inf, out)"
            )
        }
    },
    "scipy.stats._stats_py": {
        "_cdf_distance": {"all_values.sort(kind='mergesort')": "all_values = np.sort(all_values)"}
    },
}


def _ranks(x: Any, method: str, return_ties: bool = False, xp: Any = None) -> Any:
    """Ranks have no derivative, so that functions of ranks raise under a tape."""
    ranks = on_values(scipy.stats._stats_py._rankdata)
    return ranks(x, method, return_ties=return_ties, xp=np)


@made_once
def reader() -> Reader:
    """The modules of scipy.stats on Tensors."""
    source = _Package()
    reader = source.reader = Reader(
        "scipy.stats", _modules(Names("scipy.stats", {}, source)), _EDITS
    )
    for name in sorted(_HELPERS | READ):
        _take_formulas(reader.read(name))
    functions = {"_log_gauss_mass": log_gauss_mass, "_log_diff": log_difference}
    reader.read("scipy.stats._continuous_distns").__dict__.update(functions)
    reader.read("scipy.stats._stats_py").__dict__.update(_rankdata=_ranks)
    transforms = reader.read("scipy.stats._morestats")
    transforms.__dict__.update(normmax(transforms))
    multivariate = reader.read("scipy.stats._multivariate")
    multivariate._PSD = covariance_class(multivariate._PSD)
    multivariate.invwishart_gen._logpdf = inverse_wishart
    reader.read("scipy.stats._kde")._get_output_dtype = lambda *arrays: (np.float64, "double")
    return reader


def _take_formulas(module: Any) -> None:
    """Give a module's distributions the formulas that are not SciPy's."""
    for kind in list(vars(module).values()):
        if isinstance(kind, type) and issubclass(kind, rv_discrete) and kind is not rv_discrete:
            for method in {"_ppf", "_isf"} & set(vars(kind)):
                delattr(kind, method)  # they have no derivative: SciPy's own values are used
    for title, formulas in FORMULAS.items():
        kind = vars(module).get(title)
        for method, formula in {**formulas, "laws": module}.items() if kind else ():
            setattr(kind, method, formula)
