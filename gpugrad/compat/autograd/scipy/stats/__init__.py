"""The distributions of ``scipy.stats`` that autograd differentiates."""

# ruff: noqa: F401
from gpugrad.compat.autograd.scipy.stats import (
    beta,
    chi2,
    dirichlet,
    gamma,
    multivariate_normal,
    norm,
    poisson,
    t,
)
from gpugrad.compat.names import forwarding

__getattr__, __dir__ = forwarding(__name__, own=globals())
