"""Generated kernels, run on the CPU by the shim, match the formulas.

Every elementwise op runs forward and backward on its own samples; kernels of one dtype are compiled
together. Memory layouts are tested on one op, in test_kernels_layouts.py.
"""

import re

import numpy as np
import pytest
from needs import needs_shim

import gpugrad as gg
from gpugrad.autodiff.backward import refit
from gpugrad.core.backend import BFLOAT16, NUMPY
from gpugrad.kernels.codegen.code import NoCodeError
from gpugrad.testing.cuda import shim
from gpugrad.testing.cuda.kernels import call_forward, call_gradients

pytestmark = needs_shim

OPS = {op.name: op for op in gg.OPS.values() if op.kind == "elementwise"}

_INTEGRAL = "its formula integrates along an axis of its own"
FORWARD_COMPOSED = {
    "stop_gradient": "it changes nothing",
    **dict.fromkeys(
        ("gamma_moment", "beta_moment", "elliptic_moment", "carlson_moment"), _INTEGRAL
    ),
}
"""Ops whose forward has no kernel of its own, and why."""

BACKWARD_COMPOSED = {
    **dict.fromkeys(
        ("gamma_moment", "beta_moment", "elliptic_moment", "gammainc", "gammaincc"), _INTEGRAL
    ),
    **dict.fromkeys(("gammaincinv", "gammainccinv", "carlson_moment"), _INTEGRAL),
    **dict.fromkeys(("elliprc", "elliprd", "elliprf", "elliprg", "elliprj"), _INTEGRAL),
}
"""Ops with a gradient that has no kernel, and why."""

_ORDERED = "complex numbers are ordered by CuPy's own kernel"
_REAL = "CuPy runs its own complex kernel, or raises"
COMPLEX_COMPOSED = {
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), _ORDERED),
    **dict.fromkeys(("exp2", "xlogy", "xlog1py"), _REAL),
    **dict.fromkeys(("erf", "erfc", "erfcx", "ndtr", "log_ndtr"), _REAL),
}
"""Ops that have no kernel for complex numbers, and why."""

REAL_ORDERS = {"hankel1", "hankel1e", "hankel2", "hankel2e"}
"""Ops of a real and a complex number, which CUDA's library of special functions lacks anyway."""

KINDS = {
    "float64": ("f", np.float64, 1e-10),
    "float32": ("f", np.float32, 2e-5),
    "complex128": ("c", np.complex128, 1e-10),
    "float16": ("f", np.float16, 4e-3),
    "bfloat16": ("f", BFLOAT16, 3e-2),
    "complex64": ("c", np.complex64, 1e-4),
    "int32": ("i", np.int32, 0),
    "uint8": ("i", np.uint8, 0),
    "bool": ("b", np.bool_, 0),
}
_SLOW = {"float32", "float16", "bfloat16", "complex64"}


def as_kind(kind, dtype, x, rng):
    """A sample's array in another dtype, if it holds floats."""
    if isinstance(x, (int, float, bool)) or x.dtype.kind not in "f":
        return np.asarray(x).astype(dtype) if kind == "b" and not isinstance(x, int) else x
    if kind == "c":
        return np.asarray(x + 1j * rng.uniform(-0.7, 0.7, x.shape)).astype(dtype)
    if kind == "i":
        x = np.sign(x) * np.ceil(np.abs(x))
        return np.asarray(np.abs(x) if np.dtype(dtype).kind == "u" else x).astype(dtype)
    return x.astype(dtype)


def samples(op, kind, dtype):
    """Arguments of an op in one dtype, arrays of size 0 included."""
    if kind == "c" and op.name in REAL_ORDERS:
        return
    rng = np.random.default_rng(1)
    for args, _ in op.samples(np.random.default_rng(0)):
        args = [a if type(a) in (int, float, bool) else np.asarray(a) for a in args]
        if any(isinstance(a, np.ndarray) for a in args):
            yield [as_kind(kind, dtype, a, rng) for a in args]


def exact(x):
    """A wider array with the same values, so that the reference does not round."""
    wider = {"e": np.float64, "E": np.float64, "f": np.float64, "F": np.complex128}
    return x.astype(wider.get(x.dtype.char, x.dtype)) if isinstance(x, np.ndarray) else x


def reference(function, args, dtype):
    """A formula's result on NumPy arrays in higher precision, rounded to a dtype."""
    with np.errstate(all="ignore"):
        return np.asarray(function(*map(exact, args))).astype(dtype)


def forwards(op, kind, dtype):
    """(title, results, reference) of the forward."""
    for args in samples(op, kind, dtype):
        actual = call_forward(op, args)
        with np.errstate(all="ignore"):
            own = op.bare(NUMPY)(*args)
        assert (actual.dtype, actual.shape) == (own.dtype, own.shape), op.name
        yield op.name, actual, reference(op.bare(NUMPY), args, own.dtype)


def backwards(op, kind, dtype, masked):
    """(title, gradient, reference) of the gradients of all inputs, by one kernel."""
    rules = op.masked if masked else op.rules
    for args in samples(op, kind, dtype):
        for k, (gradient, g, saved) in call_gradients(op, args, masked).items():
            own = args[k].dtype
            assert (gradient.shape, gradient.dtype) == (args[k].shape, own), op.name
            fit = args[k].shape, np.dtype(np.complex128 if own.kind == "c" else np.float64)
            with np.errstate(all="ignore"):
                want = rules[k](NUMPY, exact(g), [exact(s) for s in saved], None)
                want = refit(NUMPY, np.asarray(want), fit)
            yield f"{op.name} by {op.arrays[k]}", gradient, want.astype(own)


def compare(jobs, tolerance):
    """Run the kernels of all jobs in every schedule, and compare."""
    with shim.deferred() as launches:
        results = list(jobs)
    assert results
    for schedule in shim.SCHEDULES:
        launches.run(schedule)
        wrong = [title for title, a, d in results if not near(a, d, tolerance)]
        assert not wrong, f"threads {schedule}: {sorted(set(wrong))}"


def near(a, d, tolerance):
    """Whether arrays agree; errors are relative to the largest element."""
    if a.dtype.kind in "biu":
        return bool((a == d).all())
    a, d = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (a, d))
    finite = np.abs(d[np.isfinite(d)])
    scale = max(1.0, finite.max(initial=0))
    return np.allclose(a, d, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def kinds(*skipped):
    """The rows of KINDS as parameters."""
    return [
        pytest.param(*row, id=name, marks=[pytest.mark.slow] if name in _SLOW else [])
        for name, row in KINDS.items()
        if row[0] not in skipped
    ]


def each(jobs_of, composed):
    """All jobs of all ops; asserts that the ops without a kernel are in the table.

    Those that call a function of scipy.special that CUDA lacks need not be.
    """
    lacking = set()
    for op in OPS.values():
        try:
            yield from list(jobs_of(op))
        except NoCodeError as error:
            if not re.search(r"special\.\w+ has no CUDA|scipy\.special lacks", str(error)):
                lacking.add(f"{op.name}: {error}")
    unknown = [text for text in lacking if text.partition(":")[0] not in composed]
    assert not unknown, f"without a kernel: {sorted(unknown)}"


@pytest.mark.parametrize(("kind", "dtype", "tolerance"), kinds())
def test_forwards_match_the_formulas(kind, dtype, tolerance):
    def jobs_of(op):
        return forwards(op, kind, dtype) if kind in op.kinds else ()

    also = ["nextafter"] if dtype in (np.float16, BFLOAT16) else []
    also += COMPLEX_COMPOSED if kind == "c" else []
    compare(each(jobs_of, [*FORWARD_COMPOSED, "real", *also]), tolerance)


@pytest.mark.parametrize(("kind", "dtype", "tolerance"), kinds("i", "b"))
def test_gradients_match_the_rules(kind, dtype, tolerance):
    def jobs_of(op):
        return backwards(op, kind, dtype, False) if op.differentiable and kind in op.kinds else ()

    also = COMPLEX_COMPOSED if kind == "c" else []
    compare(each(jobs_of, [*BACKWARD_COMPOSED, *also]), tolerance)


def test_masked_gradients_match_their_rules():
    def jobs_of(op):
        if op.partials is None or not op.differentiable:  # sheltered rules look at the whole array
            return ()
        return backwards(op, "f", np.float64, True)

    compare(each(jobs_of, BACKWARD_COMPOSED), 1e-10)
