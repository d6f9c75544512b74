"""Functions of scipy.special that SciPy defines in Python: values, gradients, keywords."""

import inspect

import numpy as np
import pytest
from scipy import special

import gpugrad as gg
import gpugrad.special as ours

X = np.array([0.4, 0.7, 1.3])
BEFORE = {  # arguments before the one that has a gradient
    **dict.fromkeys(["h1vp", "h2vp", "ivp", "jvp", "kvp", "yvp", "lmbda"], (2,)),
    **dict.fromkeys(["lqmn", "assoc_legendre_p", "assoc_legendre_p_all"], (1, 2)),
    **dict.fromkeys(["sph_legendre_p", "sph_legendre_p_all"], (2, 1)),
    **dict.fromkeys(["sph_harm_y", "sph_harm_y_all"], (2, 1, 0.3)),
    **dict.fromkeys(["lqn", "riccati_jn", "riccati_yn", "polygamma"], (2,)),
    **dict.fromkeys(["legendre_p", "legendre_p_all"], (2,)),
    **dict.fromkeys([f"spherical_{kind}n" for kind in "jyik"], (2,)),
    "zeta": (2.5,),
}
AFTER = {"assoc_laguerre": (2.0,), "diric": (3,), "multigammaln": (1,)}
OF_NUMBERS = {"lmbda", "lqmn", "lqn", "riccati_jn", "riccati_yn"}
NAMES = [
    name
    for name in special.__all__
    if (hasattr(ours, name) and inspect.isroutine(getattr(special, name))) or name in BEFORE
]


def total(function, before, x, after):
    """The sum of all results, real parts only."""
    results = function(*before, x, *after)
    results = results if isinstance(results, (tuple, list)) else [results]
    return sum(gg.sum(gg.real(gg.asarray(r))) for r in results)


@pytest.mark.parametrize("name", NAMES)
def test_it_has_scipys_values_and_a_gradient(name):
    x = X[0] if name in OF_NUMBERS else X
    before, after, step = BEFORE.get(name, ()), AFTER.get(name, ()), 1e-5
    theirs = [total(getattr(special, name), before, x + k * step, after) for k in (-1, 0, 1)]
    t = gg.asarray(x)
    with gg.GradientTape() as tape:
        tape.watch(t)
        result = total(getattr(gg.scipy.special, name), before, t, after)
    np.testing.assert_allclose(result.numpy(), theirs[1], rtol=1e-10)
    slope = gg.sum(tape.gradient(result, t))
    np.testing.assert_allclose(slope, (theirs[2] - theirs[0]) / (2 * step), rtol=1e-6, atol=1e-8)


def test_all_arguments_may_be_named_as_in_scipy():
    t = gg.asarray(X)
    with gg.GradientTape() as tape:
        tape.watch(t)
        result = gg.scipy.special.diric(x=t, n=3)
    np.testing.assert_allclose(result.numpy(), special.diric(x=X, n=3))
    assert tape.gradient(result, t) is not None
