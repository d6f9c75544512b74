"""A training step on a GPU is one CUDA graph with any op in it, except those listed in `CUT`."""

import numpy as np
import pytest
from needs import needs_shim

import gpugrad as gg
from gpugrad.core import nest
from gpugrad.core.backend import is_inexact
from gpugrad.core.devices import device, gpu_count
from gpugrad.core.tensor import tensor
from gpugrad.errors import DeviceError
from gpugrad.function.passes.fuse import fuse_groups, launches
from gpugrad.kernels.libraries import cublaslt
from gpugrad.testing.checks.subject import Subject

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(gpu_count() == 0, reason="needs a CUDA device"),
    pytest.mark.skipif(cublaslt.binding() is None, reason="without cuBLASLt products cut"),
    needs_shim,
]

CUT = {
    name: reason
    for reason, names in {
        "CuPy does not capture cuSOLVER and cuBLAS":
            "adjugate banded_solve cho_solve cholesky cholesky_grad cond det eig eigh eigvals "
            "eigvalsh expm gaussian_log_density gaussian_log_likelihood inv logm lstsq lu "
            "lu_factor lu_solve matrix_norm matrix_power matrix_rank norm pinv polar polyfit qr "
            "roots slogdet solve solve_sylvester solve_triangular spd_inverse sqrtm svd svdvals "
            "tensorinv tensorsolve toeplitz_solve",
        "CuPy owns the plan and the work area of an FFT and may free them":
            "fft fft2 fft_c2c fft_c2r fft_r2c fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft "
            "ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftn trigonometric_transform",
        "CuPy uses an FFT where that is faster": "convolve correlate poly polymul",
        "the shape of its result depends on values that the host reads":
            "argwhere bin_counts bincount compress extract flatnonzero intersect1d setdiff1d "
            "setxor1d union1d unique_all unique_values",
        "reads values on the host to name the wrong index":
            "checked_index class_numbers ravel_multi_index segment_max segment_min segment_prod "
            "unraveled",
        "not in CuPy: composed of several functions, with numbers from the host":
            "betainc_grad_a betainc_grad_b digamma expn gamma_reparameterized gamma_score "
            "gamma_sensitivity gammainc_grad_a polygamma random_gamma_grad trigamma yn",
        "reads the pattern of a sparse matrix, or solves, on the host":
            "csr_lstsq csr_matmul csr_sampled csr_solve",
        "copies counts, an order or a shape from the host":
            "repeat spherical_yn spline_coefficients",
        "copies the places of an edge, of windows, of taps or of pairs from the host":
            "correlate_valid own_pair_sums ranked_windows spline_at spline_spread tied_windows",
    }.items()
    for name in names.split()
}  # fmt: skip
"""Ops that split a step into several graphs, each with the reason."""

NAMES = sorted(name for name, op in gg.OPS.items() if "device" not in op.params)


def samples_of(name):
    """Real-valued samples of an op that have array arguments, on the GPU."""
    subject = Subject(gg.OPS[name], 0, 1, device("cuda:0"))
    for sample in subject.real_samples:
        if any(isinstance(a, np.ndarray) for a in sample.leaves):
            yield sample.replace(sample.leaves, "", subject.device)


def step_of(sample):
    """A function of a sample's arrays that returns results and gradients, and the arrays."""
    places = [i for i, a in enumerate(sample.leaves) if isinstance(a, np.ndarray)]
    watched = sample.inexact_leaves if sample.op.differentiable else []

    def step(*arrays):
        leaves = list(sample.leaves)
        for i, x in zip(places, arrays, strict=True):
            leaves[i] = x
        with gg.GradientTape() as tape:
            tape.watch([leaves[i] for i in watched])
            results = sample.call(leaves)
        inexact = [y for y in results if is_inexact(y.dtype)] if watched else []
        grads = (
            tape.gradient(inexact, [leaves[i] for i in watched], None, "zero") if inexact else []
        )
        return results, [tensor(g) for g in grads]

    return step, [sample.leaves[i] for i in places]


def varied(a, k):
    return np.asarray(a * a.dtype.type(1 - 0.05 * k)) if is_inexact(a.dtype) else a


def runs_of(function):
    launches = next(iter(function._plans.values())).replay
    return launches, getattr(launches, "runs", [])


@pytest.mark.parametrize("name", NAMES)
def test_a_step_with_an_op_and_its_gradient_is_one_graph(name):
    cut = False
    for sample in samples_of(name):
        step, arrays = step_of(sample)
        function = gg.function(step)
        for k in range(3):  # traced, captured, launched again
            args = [sample.put(varied(a, k)) for a in arrays]
            try:
                desired = nest.flatten(step(*args))
            except DeviceError:  # CuPy has no such function, and the op says so
                return
            for actual, d in zip(nest.flatten(function(*args)), desired, strict=True):
                np.testing.assert_allclose(actual.numpy(), d.numpy(), 1e-9, 1e-12)
        launches, parts = runs_of(function)
        fixed = [run.fixed for run in parts]
        cut = cut or fixed not in ([], [True])
        if name not in CUT:
            assert not cut, [s.name for run in parts if not run.fixed for s, _ in run.steps]
            assert not parts or launches._captured.graphs[0]._graph is not None
    assert cut == (name in CUT), CUT.get(name)


def one_graph(step, *batches):
    """Compare a step on the GPU with the CPU for each batch; return the traced function."""
    function = gg.function(step)
    for batch in batches:
        on_cpu, on_gpu = ([gg.constant(a, device=d) for a in batch] for d in ("cpu", "cuda:0"))
        actual = nest.flatten(function(*on_gpu))
        for a, d in zip(actual, nest.flatten(step(*on_cpu)), strict=True):
            np.testing.assert_allclose(a.numpy(), d.numpy(), 1e-9, 1e-12)
    launches, parts = runs_of(function)
    assert [run.fixed for run in parts] == [True]
    assert launches._captured.graphs[0]._graph is not None
    return function


def test_many_arrays_are_joined_in_a_graph(rng):
    def step(x):
        parts = [x * k for k in range(12)]
        return gg.concat(parts), gg.stack(parts, axis=-1), gg.concat(parts, axis=None)

    one_graph(step, *([rng.normal(size=(2, 3))] for _ in range(3)))


def test_a_step_of_an_image_network_is_one_graph(rng):
    kernel = rng.normal(size=(4, 3, 3, 3)) / 5

    def step(x, w):
        with gg.GradientTape() as tape:
            tape.watch(w)
            y = gg.nn.conv2d(gg.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="reflect"), w)
            y = gg.nn.max_pool2d(gg.relu(y), 2)
            y = gg.concat([y, (y - gg.mean(y)) / (gg.std(y) + 1e-3)], axis=1)
            y = gg.nn.interpolate(y, scale_factor=2, mode="bilinear")
            y = gg.nn.adaptive_avg_pool2d(gg.tile(y, (1, 1, 2, 1)), 3)
            y = gg.einsum("nchw,nc->nhw", y, gg.repeat(gg.max(y, axis=(2, 3)), 1, axis=0))
            loss = gg.sum(gg.top_k(gg.reshape(y, (y.shape[0], -1)), 2)[0]) + gg.linalg.norm(w)
        return loss, tape.gradient(loss, w)

    one_graph(step, *([rng.normal(size=(2, 3, 8, 8)), kernel * k] for k in (1, 2, 3)))


def test_a_step_with_constant_indices_is_one_graph(rng):
    rows, mask = [0, 2, 2], np.array([True, False, True, True])

    def step(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = x[rows, np.array([1, 1, 0])] + x[mask, 0] * x[:, -1][1:]
            z = gg.setitem(x, y, index=(slice(3), 0)) + gg.index_fill(x, index=rows, value=2.0)
            loss = gg.sum(z * z * x)
        return z, tape.gradient(loss, x)

    one_graph(step, *([rng.normal(size=(4, 3))] for _ in range(3)))


READ_BY_DATA = {
    "getitem": lambda x, i: x[:, i],
    "two indices": lambda x, i: x[gg.arange(2, device=x.device), i],
    "take": lambda x, i: gg.take(x, i, axis=1),
    "gather": lambda x, i: gg.gather(x, i, axis=1),
    "take_along_axis": lambda x, i: gg.take_along_axis(x, gg.reshape(i, (1, 2)), axis=1),
    "nll_loss": lambda x, i: gg.nn.nll_loss(x, i, reduction="none"),
    "segment_sum": lambda x, i: gg.segment_sum(x, i, 3),
    "ctc_loss": lambda x, i: gg.nn.ctc_loss(
        gg.log_softmax(gg.reshape(x, (2, 1, 3))), gg.reshape(i, (1, 2)),
        gg.constant([2], device=x.device), gg.constant([2], device=x.device), reduction="none",
    ),
}  # fmt: skip


def test_repeat_by_an_int_is_captured(rng):
    one_graph(lambda x: gg.repeat(x, 2, axis=1) * 2, *([rng.normal(size=(2, 3))] for _ in range(3)))


@pytest.mark.parametrize("name", READ_BY_DATA)
def test_a_data_index_is_read_in_a_graph_and_gives_nan_out_of_bounds(name, rng):
    function = one_graph(
        READ_BY_DATA[name],
        *([rng.normal(size=(2, 3)), np.array(i)] for i in ([2, 1], [1, 2], [0, 1])),
    )
    x = gg.constant(rng.normal(size=(2, 3)), device="cuda:0")
    actual = function(x, gg.constant([1, 3], device="cuda:0"))
    assert np.isnan(actual.numpy()).any()


def parts_of(step, rng):
    """Whether each part of a step on the GPU is a graph, after a comparison with eager."""
    function = gg.function(step)
    for _ in range(3):
        x = gg.constant(rng.normal(size=(3, 4)), device="cuda:0")
        np.testing.assert_allclose(function(x).numpy(), step(x).numpy(), 1e-9, 1e-12)
    return [run.fixed for run in runs_of(function)[1]]


@pytest.mark.parametrize(
    ("captures", "graph"), [(None, False), (False, False), (True, True), (lambda x, n: n > 0, True)]
)
def test_a_user_primitive_is_captured_only_if_it_declares_so(captures, graph, rng):
    @gg.op(vjp=[lambda xp, g, n: xp.roll(g, -n)], captures=captures)
    def turned(xp, x, /, *, n=1):
        return xp.lib.roll(x, n)

    def step(x):
        return gg.exp(turned(x * 2)) + 1

    assert parts_of(step, rng) == ([True] if graph else [True, False, True])


def test_a_user_elementwise_formula_with_cuda_source_is_captured(rng):
    cube = gg.elementwise(
        "cube(x)", forward=lambda xp, x: x * x * x, d=[lambda xp, x: 3 * x * x],
        doc="Third power.", example=("2.0", "8.0"),
    )  # fmt: skip
    assert parts_of(lambda x: cube(x) + 1, rng) == [True]


@pytest.mark.parametrize("captures", [None, True])
def test_other_user_elementwise_formulas_are_captured_only_if_declared(captures, rng):
    def sorted_twice(xp, x):  # a library function, which has no CUDA source
        return xp.lib.sort(xp.lib.sort(x))

    shifted = gg.elementwise(
        "shifted(x)", forward=sorted_twice, differentiable=False, captures=captures,
        doc="Not elementwise at all, but made of launches.", example=("2.0", "2.0"),
    )  # fmt: skip
    fixed = parts_of(lambda x: gg.sum(shifted(x * 2), axis=0), rng)
    assert (fixed == [True]) == (captures is True)


def test_a_user_defined_view_is_fused():
    @gg.op(vjp=[lambda xp, g, x_shape: xp.reshape(g, x_shape)], view="reshape")
    def batch_of_one(xp, x, /):
        return x[None]

    x = gg.constant(np.ones((3, 4)), device="cuda:0")
    program = gg.function(lambda x: gg.exp(batch_of_one(x * 2))).lower(x).program
    assert len(launches(fuse_groups(program))) == 1


def test_a_user_primitive_that_is_elementwise_is_fused():
    @gg.op(vjp=[...], by_element=True)
    def scaled(xp, x, /, *, by=2.0):
        return x * by

    x = gg.constant(np.ones((3, 4)), device="cuda:0")
    program = gg.function(lambda x: gg.exp(scaled(x * 2, by=3.0))).lower(x).program
    assert len(launches(fuse_groups(program))) == 1
