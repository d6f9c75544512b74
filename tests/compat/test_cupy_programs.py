"""Programs of the kind of CuPy's examples, with one import changed: on both devices."""

import numpy as np
import pytest
from needs import needs_shim

import gpugrad as gg
import gpugrad.compat.cupy as cupy
from gpugrad.testing import check_grads

pytestmark = needs_shim
RNG = np.random.default_rng(0)


@pytest.fixture(params=["cpu", "cuda:0"], autouse=True)
def on(request):
    with gg.device(request.param):
        yield request.param


between = cupy.ElementwiseKernel(
    "T x, T y, T cx, T cy", "T far", "T u = x - cx, v = y - cy; far = u * u + v * v", "between",
    d=[lambda xp, x, cx: 2 * (x - cx), lambda xp, y, cy: 2 * (y - cy),
       lambda xp, x, cx: 2 * (cx - x), lambda xp, y, cy: 2 * (cy - y)],
)  # fmt: skip
total = cupy.ReductionKernel(
    "T x, S chosen", "T sum", "chosen ? x : 0", "a + b", "sum = a", "0", "total",
    d={"x": lambda xp, x, chosen: xp.astype(chosen, x.dtype), "chosen": None},
)  # fmt: skip
number = cupy.ReductionKernel(
    "T chosen", "float64 n", "chosen ? 1.0 : 0.0", "a + b", "n = a", "0.0", "number"
)


def check(f, x, order=2):
    """Check the derivatives of a function of a Tensor on the device of the test."""

    def on_cpu(x):
        results = f(x.to_device(gg.device()))
        return [y.to_device("cpu") for y in (results if type(results) is tuple else (results,))]

    check_grads(on_cpu, (x,), order=order if gg.device() == "cpu" else 1)


def kmeans(points, steps=3):
    """Centers and labels, by kernels of CUDA C++."""
    centers = points[:2]
    for _ in range(steps):
        far = between(
            points[:, None, 0], points[:, None, 1], centers[None, :, 0], centers[None, :, 1]
        )
        labels = cupy.argmin(far, axis=1)
        chosen = labels == cupy.arange(2)[:, None]
        count = number(chosen, axis=1).reshape(2, 1)
        centers = total(points, chosen[:, :, None], axis=1) / count
    return centers, labels, far


def test_kmeans_moves_its_centers_with_their_points():
    points = np.concatenate([RNG.normal(1, 0.2, (4, 2)), RNG.normal(-1, 0.2, (5, 2))])[::-1].copy()
    centers, labels, far = kmeans(cupy.asarray(points))
    chosen = [points[cupy.asnumpy(labels) == k] for k in range(2)]
    cupy.testing.assert_allclose(centers, [c.mean(axis=0) for c in chosen])
    np.testing.assert_allclose(far.get(), ((points[:, None] - centers.get()) ** 2).sum(2))
    check(lambda p: kmeans(p)[::2], cupy.asarray(points))


def mixture(points, means, variances, weights, steps=2):
    """The log likelihood of a mixture of Gaussians, after steps of expectation maximization."""
    xp = cupy.get_array_module(points)
    for _ in range(steps):
        square = (points[:, None] - means) ** 2 / variances
        unit = points.shape[1] * xp.log(2 * np.pi)  # a number alone: on the default device
        log_prob = xp.log(weights) - 0.5 * (unit + xp.sum(square + xp.log(variances), axis=2))
        top = xp.log(xp.sum(xp.exp(log_prob), axis=1))
        share = xp.exp(log_prob - top[:, None])
        count = xp.sum(share, axis=0)
        means = xp.dot(share.T, points) / count[:, None]
        variances = xp.dot(share.T, points * points) / count[:, None] - means**2
        weights = count / len(points)
    return xp.mean(top)


def test_a_gaussian_mixture_is_numpys_and_has_the_slope_of_its_likelihood():
    points = np.concatenate([RNG.normal(1, 1, (6, 2)), RNG.normal(-1, 1, (6, 2))])
    start = np.array([[1.0, 0.5], [-1.0, -0.5]]), np.ones((2, 2)), np.array([0.5, 0.5])
    arrays = [cupy.array(a) for a in (points, *start)]
    cupy.testing.assert_allclose(mixture(*arrays), mixture(points, *start))
    check(lambda p: mixture(p, *arrays[1:]), arrays[0], order=1)


def conjugate_gradients(a, b, tolerance=1e-10):
    xp = cupy.get_array_module(a)
    x = xp.zeros_like(b, dtype=np.float64)
    r = p = b - xp.dot(a, x)
    for _ in range(len(b)):
        step = xp.inner(r, r) / xp.inner(p, xp.dot(a, p))
        x += step * p
        before, r = r, r - step * xp.dot(a, p)
        if xp.linalg.norm(r) < tolerance:
            break
        p = r + xp.inner(r, r) / xp.inner(before, before) * p
    return x


def test_conjugate_gradients_have_the_gradient_of_the_solution():
    a = RNG.normal(size=(5, 5))
    a, b = a @ a.T + np.eye(5), RNG.normal(size=5)
    with cupy.cuda.Device(), gg.GradientTape() as tape:
        right = cupy.asarray(b)
        tape.watch(right)
        x = conjugate_gradients(cupy.asarray(a), right)
    np.testing.assert_allclose(cupy.asnumpy(x), np.linalg.solve(a, b), rtol=1e-6)
    expected = np.linalg.solve(a, np.ones(5))
    np.testing.assert_allclose(tape.gradient(x, right).get(), expected, rtol=1e-4)


NORMAL = """
__device__ inline T below(T x) { return normcdf(x); }
typedef unsigned long long uint64_t;  // NVRTC has no <stdint.h>
__device__ inline T uniform(uint64_t* s) {
  *s = *s * 6364136223846793005ULL + 1442695040888963407ULL;
  return T((*s >> 11) + 0.5) / T(9007199254740992.0);
}
"""


def _delta(xp, s, k, t, r, v):
    d1 = (xp.log(s / k) + (r + v * v / 2) * t) / (v * xp.sqrt(t))
    return 0.5 * xp.erfc(-d1 / np.sqrt(2))


black_scholes = cupy.ElementwiseKernel(
    "T s, T k, T t, T r, T v", "T call, T put",
    """
    const T width = v * sqrt(t);
    const T d1 = (log(s / k) + (r + v * v / 2) * t) / width, d2 = d1 - width;
    const T later = k * exp(-r * t);
    call = s * below(d1) - later * below(d2);
    put = later * (1 - below(d2)) - s * (1 - below(d1));
    """,
    "black_scholes", preamble=NORMAL,
    vjp={"s": lambda xp, g, s, k, t, r, v: (g[0] + g[1]) * _delta(xp, s, k, t, r, v) - g[1]},
)  # fmt: skip


SAMPLES = """
    uint64_t state = 77 * i + 1;
    out = 0;
    for (int j = 0; j < n; ++j) {
      const T up = exp((r - v * v / 2) * t + v * sqrt(t) * -normcdfinv(uniform(&state)));
      if (s * up > k) out += %s;
    }
    out *= exp(-r * t) / n;
    """
sampled, slope = (
    cupy.ElementwiseKernel(
        "T s, T k, T t, T r, T v, int32 n", "T out", SAMPLES % added, name, preamble=NORMAL
    )
    for name, added in (("sampled", "s * up - k"), ("slope", "up"))
)
sampled.set_derivatives(d={"s": slope})  # of a program that does not know of gpugrad
OPTIONS = np.array([[20.0], [25.0]]), np.array([[21.0], [20.0]]), np.array([[1.0], [0.5]])


def test_prices_of_options_have_their_delta():
    s, k, t = map(cupy.asarray, OPTIONS)
    call, put = black_scholes(s, k, t, 0.02, 0.3)
    cupy.testing.assert_allclose(call - put, s - k * cupy.exp(-0.02 * t))  # put-call parity
    check(lambda s: black_scholes(s, k, t, 0.02, 0.3), s)


def test_sampled_prices_have_the_slopes_of_their_samples():
    s, k, t = map(cupy.asarray, OPTIONS)

    def price(s, samples=4):
        out = cupy.empty((2, samples))  # it decides the loop
        assert sampled(s, k, t, 0.02, 0.3, 200, out) is out
        return out.mean(axis=1)

    exact = black_scholes(s, k, t, 0.02, 0.3)[0][:, 0]
    assert float(cupy.abs(price(s) - exact).max()) < 1.0
    check(price, s, order=1)
