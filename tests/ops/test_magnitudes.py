"""Small and large magnitudes: f(2**k x) is 2**(nk) f(x) for homogeneous ops, also where squares of
x overflow or vanish. Gradients are homogeneous too, one degree lower."""

import dataclasses

import numpy as np
import pytest
from taping import taped

import gpugrad as gg
from gpugrad.core.devices import CPU
from gpugrad.errors import GpugradError
from gpugrad.testing.checks.subject import Subject

FAR = {np.float32: 80, np.float64: 640}  # 1e24 and 1e192: their squares overflow

_INVERSE = "its gradient multiplies inverses"
_WEIGHTS = "multiplies by weights, which are scaled too, before it divides by their sum"
_WINDOWS = "scales for each window would take one pass over x per element of a window"
OTHER = {
    "csr_solve": "iterates up to a tolerance that is relative to norms",
    "csr_lstsq": "iterates up to a tolerance that is relative to norms",
    "adjugate": _INVERSE, "lstsq": _INVERSE, "average": _WEIGHTS, "nll_loss": _WEIGHTS,
    "cholesky_grad": "multiplies a gradient, which has another magnitude, by the factor",
    "gradient_along": "divides by products of distances",
    "cosine_embedding_loss": "adds 1e-12 to squares, as torch does",
    "ctc_loss": "takes scores far below -1e30 for impossible",
    "lp_pool1d": _WINDOWS, "lp_pool2d": _WINDOWS, "lp_pool3d": _WINDOWS,
}  # fmt: skip


def with_no_eps(sample):
    """The sample without the constant that breaks the homogeneity."""
    if "eps" not in sample.op.signature.parameters:
        return sample
    return dataclasses.replace(sample, keywords={**sample.keywords, "eps": 0.0})


def random_like(y, seed):
    real = np.zeros((), y.dtype).real.dtype
    return gg.constant(np.random.default_rng(seed).normal(size=y.shape).astype(real))


def derivatives(sample, scale):
    """Results, gradients and gradients of gradients at `scale` times the sample's arrays."""
    leaves, values = [sample.put(a) for a in sample.leaves], {}
    for i in sample.inexact_leaves:
        leaves[i] = gg.constant(sample.leaves[i] * sample.leaves[i].real.dtype.type(scale))
    xs = [leaves[i] for i in sample.inexact_leaves]

    def results():
        return [y for y in sample.call(leaves) if y.dtype.kind in "fc"]

    for k in range(len(results())):
        with gg.GradientTape() as second:
            second.watch(xs)
            with gg.GradientTape() as first:
                first.watch(xs)
                y = results()[k]
            gs = first.gradient(y, xs, output_gradients=random_like(y, k))
        values["result", k] = y.numpy()
        known = [g for g in gs if g is not None]
        hs = second.gradient(known, xs, [random_like(g, i) for i, g in enumerate(known)])
        values |= {("gradient", k, i): g.numpy() for i, g in enumerate(gs) if g is not None}
        values |= {("second", k, i): h.numpy() for i, h in enumerate(hs) if h is not None}
    return values


def degree(values, key):
    """The n for which all values are homogeneous of that degree; None if there is none."""
    one = values[1.0].get(key)
    if one is None or not one.size or not np.isfinite(one).all() or not one.any():
        return None
    for n in (-1, 0, 1):  # others leave the range of the dtype
        scaled = [(v.get(key), one * s**n) for s, v in values.items()]
        if all(
            v is not None and v.shape == w.shape and np.allclose(v, w, 1e-4, 1e-5 * abs(w).max())
            for v, w in scaled
        ):
            return n
    return None


def near_one(sample):
    """Values at scale 1 and their degrees; none if a result has no degree."""
    near, degrees = {}, {}
    try:
        for scale in (1.0, 4.0, 0.0625, 0.25, 16.0):  # most ops end at the second
            near[scale] = derivatives(sample, scale)
            degrees = {key: degree(near, key) for key in near[1.0]}
            if any(n is None for (what, *_), n in degrees.items() if what == "result"):
                return {}, {}
    except (GpugradError, np.linalg.LinAlgError):
        return {}, {}  # a scaled sample is outside of the domain
    return near[1.0], degrees


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("dtype", "samples"),
    [
        (np.float32, slice(1)),
        pytest.param(np.float32, slice(1, None), marks=pytest.mark.slow),
        pytest.param(np.float64, slice(None), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", sorted({*gg.OPS} - {*OTHER}))
@pytest.mark.thin(3)
def test_homogeneous_op_keeps_its_digits_at_every_magnitude(name, dtype, samples):
    op = gg.OPS[name]
    for sample in Subject(op, 0, 1, CPU).samples[samples] if op.differentiable else ():
        sample = with_no_eps(sample.astype(dtype))
        if not sample.inexact_leaves:
            continue
        near, degrees = near_one(sample)
        for exponent in (-FAR[dtype], FAR[dtype]) if degrees else ():
            far = derivatives(sample, 2.0**exponent)
            for key, n in degrees.items():
                if n is None:
                    continue
                expected = near[key] * 2.0 ** (exponent * n)
                error = np.abs(far[key] - expected).max() / np.abs(expected).max()
                assert error < 1e-4, f"{sample.title}: {key} times 2**{exponent}: {error}"


NORMS = {
    "layer_norm": gg.layer_norm,
    "rms_norm": gg.rms_norm,
    "group_norm": lambda x: gg.group_norm(x, num_groups=2),
    "instance_norm": lambda x: gg.instance_norm(gg.reshape(x, (4, 2, 3))),
    "batch_norm": lambda x: gg.batch_norm(x, training=True)[0],
    "normalize": gg.normalize,
    "clip_by_global_norm": lambda x: gg.optim.clip_by_global_norm([x], 1.0)[0][0],
}


@pytest.mark.parametrize("scale", [1e20, 1e30])
@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_norm_of_large_float32_is_that_of_float64(norm, scale, rng):
    x, g = scale * rng.normal(size=(4, 6)).astype(np.float32), rng.normal(size=24)
    results = []
    for dtype in (np.float32, np.float64):
        a = gg.constant(x, dtype)
        tape, y = taped(lambda a: gg.reshape(norm(a), (-1,)), a)
        gradient = tape.gradient(y, a, output_gradients=gg.constant(g, dtype))
        results.append((y.numpy(), gradient.numpy()))
    for actual, desired in zip(*results, strict=True):
        np.testing.assert_allclose(actual, desired, 1e-4, 1e-5 * abs(desired).max())
