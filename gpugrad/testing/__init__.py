"""Checks of derivatives, for gpugrad's own ops and for yours.

- `assert_close` compares arrays: shape, dtype, values.
- `check_grads` holds the derivatives of any function against numerical differences.
- `check_op` runs all that is promised of an op, from the samples in its own record.

Every check is of numbers along a random direction ``t``: the gradient g of ``<ct, f(x)>`` is
right if ``<g, t>`` is the difference quotient of ``<ct, f(x + eps * t)>``, whatever the
shapes. Complex numbers count as pairs of real ones: ``<a, b>`` is the real part of
``sum(conj(a) * b)``, and the gradient is ``dL/dRe + i dL/dIm``. Differences are of fourth
order, computed in float64, so a rule that is wrong in the seventh digit is found.

An array of a sample that is exactly symmetric (Hermitian) stays so: it is moved in symmetric
directions only, since an op on symmetric matrices may read one triangle of them.
"""

from gpugrad.testing.close import TOLERANCES, GradientCheckError, assert_close
from gpugrad.testing.grads import check_grads
from gpugrad.testing.ops import CHECKS, check_op

__all__ = ["CHECKS", "TOLERANCES", "GradientCheckError", "assert_close", "check_grads", "check_op"]
