"""Random tensors: ``gg.random``.

Every number is a function of a generator's key, a counter and a position (see
`ops.random.philox`): a seed gives the same numbers on every device, and the state can be saved and
restored. Bits, integers, and uniform, normal, exponential, Laplace, Gumbel and logistic numbers are
bitwise the same; numbers that other ops derive from them are the same up to rounding.

The functions draw from a default generator. In a forked process it starts anew with numbers of its
own, see `set_seed`. Any other `Generator` continues with the same numbers in parent and child.
"""

from __future__ import annotations

import functools
from typing import Any

from gpugrad.core.known_as import answer_missing
from gpugrad.ops.random import gradients as _sampling_gradients  # noqa: F401  # declares ops
from gpugrad.ops.random.compound import (
    f,
    noncentral_chisquare,
    noncentral_f,
    power,
    rayleigh,
    triangular,
    vonmises,
    wald,
)
from gpugrad.ops.random.continuous import (
    beta,
    cauchy,
    chisquare,
    dirichlet,
    exponential,
    gamma,
    gumbel,
    laplace,
    logistic,
    lognormal,
    multivariate_normal,
    normal,
    pareto,
    student_t,
    truncated_normal,
    uniform,
    weibull,
)
from gpugrad.ops.random.discrete import (
    bernoulli,
    binomial,
    bits,
    categorical,
    choice,
    geometric,
    hypergeometric,
    integers,
    logseries,
    multinomial,
    multivariate_hypergeometric,
    negative_binomial,
    permutation,
    poisson,
    rademacher,
    zipf,
)
from gpugrad.ops.random.generator import Generator, default_generator, set_seed

__all__ = [
    "Generator",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "default_generator",
    "dirichlet",
    "exponential",
    "f",
    "gamma",
    "geometric",
    "gumbel",
    "hypergeometric",
    "integers",
    "laplace",
    "logistic",
    "lognormal",
    "logseries",
    "multinomial",
    "multivariate_hypergeometric",
    "multivariate_normal",
    "negative_binomial",
    "noncentral_chisquare",
    "noncentral_f",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "power",
    "rademacher",
    "rayleigh",
    "set_seed",
    "student_t",
    "triangular",
    "truncated_normal",
    "uniform",
    "vonmises",
    "wald",
    "weibull",
    "zipf",
]

answer_missing(__name__)


def __dir__() -> list[str]:
    return __all__


class _GeneratorMethod:
    """A function of this module as a method of `Generator`: with ``generator=self``."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, generator: Any, owner: Any = None) -> Any:
        if generator is None:
            return self.function
        return functools.partial(self.function, generator=generator)


for _name in set(__all__) - {"Generator", "default_generator", "set_seed"}:
    setattr(Generator, _name, _GeneratorMethod(globals()[_name]))
