"""gg.scipy.linalg and gg.scipy.fft beside SciPy: arguments, defaults and results are SciPy's."""

import numpy as np
import pytest
import scipy.fft
import scipy.linalg

import gpugrad as gg
from gpugrad.errors import ArgumentError

A = np.random.default_rng(0).normal(size=(4, 4))
S, V, C = A @ A.T + np.eye(4), np.abs(A[0]) + 0.5, A + 1j * A.T
H = C @ C.conj().T + np.eye(4)
LINALG = {
    "cholesky": lambda f, x: [f.cholesky(x(S)), f.cholesky(x(H), lower=True, overwrite_a=True)],
    "one triangle": lambda f, x: [f.cholesky(x(np.triu(H))), np.triu(f.cho_factor(x(S))[0])],
    "det": lambda f, x: f.det(x(A), True, True),
    "inv": lambda f, x: [
        f.inv(x(A), check_finite=False), f.inv(x(np.tril(S)), lower=True, assume_a="pos")
    ],
    "solve": lambda f, x: [
        f.solve(x(A), x(V), transposed=True), f.solve(x(S), x(A), assume_a="her"),
        f.solve(x(A), x(V), assume_a="upper triangular"), f.solve(x(A), x(V), overwrite_b=True),
        f.solve(x(C), x(V), lower=True, assume_a="sym"),
    ],
    "solve_triangular": lambda f, x: [
        f.solve_triangular(x(S), x(V)), f.solve_triangular(x(S), x(V), "T", True, True),
    ],
    "lu": lambda f, x: [*f.lu(x(A)), *f.lu(x(A), True), *f.lu(x(A), p_indices=True)[1:]],
    "qr": lambda f, x: [
        abs(y) for mode in ("full", "economic", "r") for y in f.qr(x(A[:, :2]), mode=mode)
    ],
    "svd": lambda f, x: [
        f.svd(x(A[:2]), False, False, lapack_driver="gesvd"), f.svdvals(x(A), True),
        f.svd(x(A[:2]))[1],
    ],
    "pinv": lambda f, x: [
        f.pinv(x(A)), f.pinv(x(A), atol=0.5), f.pinv(x(A), rtol=0.3, atol=0.1),
        f.pinv(x(A), atol=0.5, return_rank=True)[0],
    ],
    "lstsq": lambda f, x: f.lstsq(x(A[:, :2]), x(A))[0],
    "norm": lambda f, x: [f.norm(x(A), "fro", keepdims=True), f.norm(x(A), 1, (0, 1))],
    "eigh": lambda f, x: [
        f.eigh(x(np.triu(H)), lower=False, eigvals_only=True), abs(f.eigh(x(S))[1]),
        *(f.eigvalsh(x(H), x(S), type=k) for k in (1, 2, 3)), abs(f.eigh(x(S), x(S @ S))[1]),
        abs(f.eigh(x(S), x(S @ S), type=3, subset_by_index=[0, 1])[1]),
        f.eigvalsh(x(S), subset_by_index=[1, 2]),
    ],
    "eig": lambda f, x: [
        sum(f.eigvals(x(A))), sum(f.eigvals(x(A), x(S))), sum(abs(f.eig(x(A), left=True)[1]).T)
    ],
    "float64 of lists": lambda f, x: [f.inv([[2.0, 1.0], [0.0, 1.0]]), f.det([[3.0]])],
}  # fmt: skip
FFT = {
    "lists": lambda f, x: [f.fft([1.0, 2.0]), f.dct([1.0, 2.0])],
    "frequencies": lambda f, x: [f.fftfreq(5), f.rfftfreq(4, 0.5)],
    "arguments": lambda f, x: [
        f.fft(x(V.astype("f4")), 6, 0, "ortho", True, 1), f.fftn(x(A), (4, 3), overwrite_x=True),
        f.dct(x(A), 3, 5, 1, "ortho", orthogonalize=False), f.irfft(x(V), workers=2),
    ],
}  # fmt: skip


def _same(actual, expected):
    if isinstance(expected, (list, tuple)):
        for a, e in zip(actual, expected, strict=True):
            _same(a, e)
        return
    expected = np.asarray(expected)
    assert isinstance(actual, gg.Tensor)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", [*LINALG, *FFT])
def test_call_is_scipys(name):
    module = "linalg" if name in LINALG else "fft"
    call = {**LINALG, **FFT}[name]
    expected = call(getattr(scipy, module), np.copy)  # it may overwrite
    _same(call(getattr(gg.scipy, module), gg.asarray), expected)


@pytest.mark.parametrize("call", [
    lambda f, a: f.cholesky(a @ a.T + gg.eye(4)), lambda f, a: f.pinv(a, atol=1e-3),
    lambda f, a: f.eigvalsh(a, a @ a.T + gg.eye(4)), lambda f, a: f.solve(a, a[0], transposed=True),
    lambda f, a: f.inv(a + 9 * gg.eye(4), assume_a="her"),
], ids=["cholesky", "pinv", "eigvalsh", "solve", "inv"])  # fmt: skip
def test_scipys_forms_have_gradients(call):
    gg.testing.check_grads(lambda a: call(gg.scipy.linalg, a), (gg.asarray(A),))


@pytest.mark.parametrize("call", [
    lambda f: f.eigh(S, subset_by_value=(0, 1)), lambda f: f.eigh(S, type=4),
    lambda f: f.qr(S, pivoting=True), lambda f: f.qr(S, mode="raw"),
    lambda f: f.eig(S, S, left=True), lambda f: f.eigvals(S, homogeneous_eigvals=True),
    lambda f: f.solve(S, V, assume_a="round"),
])  # fmt: skip
def test_arguments_without_a_counterpart_are_refused(call):
    with pytest.raises(ArgumentError):
        call(gg.scipy.linalg)
