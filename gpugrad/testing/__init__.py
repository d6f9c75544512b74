"""Checks of derivatives, for gpugrad's ops and for your own.

- `assert_close` compares the shapes, dtypes and values of two arrays.
- `check_grads` compares the derivatives of any function with numerical differences.
- `check_op` checks everything that an op's record promises, on the samples in the record.

Every derivative is checked along a random direction ``t``: the gradient g of ``<ct, f(x)>`` is
right if ``<g, t>`` equals the difference quotient of ``<ct, f(x + eps * t)>``. Complex numbers
count as pairs of real ones: ``<a, b>`` is the real part of ``sum(conj(a) * b)``, and the gradient
is ``dL/dRe + i dL/dIm``. Differences are of fourth order and in float64, so the check detects a
rule that is wrong in the seventh digit.

An exactly symmetric (Hermitian) array in a sample is perturbed only in symmetric directions, since
an op on symmetric matrices may read only one of their triangles.
"""

from gpugrad.testing.close import TOLERANCES, GradientCheckError, assert_close
from gpugrad.testing.grads import check_grads
from gpugrad.testing.ops import CHECKS, check_op

__all__ = ["CHECKS", "TOLERANCES", "GradientCheckError", "assert_close", "check_grads", "check_op"]


def __dir__() -> list[str]:
    return __all__
