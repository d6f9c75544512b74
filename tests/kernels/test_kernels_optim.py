"""The optimizers' kernels: a step over many tensors matches NumPy's and writes nothing else."""

import collections
import functools

import numpy as np
import pytest
from needs import each_architecture, needs_nvrtc, needs_shim
from update_rules import CASES, make

import gpugrad as gg
from gpugrad import optim
from gpugrad.core.backend import BFLOAT16, HALF
from gpugrad.kernels.by_hand import optim as kernels
from gpugrad.kernels.codegen import update_kernel
from gpugrad.kernels.runtime import launch
from gpugrad.kernels.runtime.tables import arrays_per_launch, tables
from gpugrad.optim import accumulate
from gpugrad.testing.cuda import nvrtc, shim
from gpugrad.testing.cuda.kernels import step_kernels

pytestmark = needs_shim

DTYPES = [np.float32, np.float64, np.float16, BFLOAT16]
TOLERANCE = {
    np.dtype(np.float64): 1e-13, np.dtype(np.float32): 2e-6, np.dtype(np.float16): 2e-3,
    BFLOAT16: 2e-2,
}  # fmt: skip
SIZES = [1, 7, 64, 4096, 4097, 10_003]  # a scalar, tails, one chunk, more chunks
MAKERS = {name: functools.partial(make, name) for name in CASES}
OFTEN = ("nesterov", "adam", "rmsprop-all", "lion", "lamb")
NAMES = [n if n in OFTEN else pytest.param(n, marks=pytest.mark.slow) for n in CASES]
"""g++ takes a second for each kernel in each dtype."""


def wide(dtype):
    return np.dtype(np.float32) if np.dtype(dtype) in HALF else np.dtype(dtype)


class Fenced:
    """Arrays with a margin of known values, as the shim does not guard addresses in a table."""

    def __init__(self, margin=77):
        self._held, self._margin = [], margin

    def __call__(self, values, dtype, offset=8):
        memory = np.full(values.size + 16, self._margin, dtype)
        memory[offset : offset + values.size] = values.astype(dtype)
        self._held.append((memory, offset, values.size))
        return memory[offset : offset + values.size]

    def unharmed(self):
        return all(
            (m[:o] == m.dtype.type(77)).all() and (m[o + n :] == m.dtype.type(77)).all()
            for m, o, n in self._held
        )


def settings_of(optimizer, step=1, rate=0.1):
    return tuple(optimizer.numbers(optimizer, rate, step).values())


def launched(name, columns, step):
    optimizer = MAKERS[name]()
    optimizer.kernel.step(columns, settings_of(optimizer, step))


@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("name", NAMES)
def test_three_steps_match_the_cpu(name, dtype, schedule, rng):
    sizes = SIZES if schedule == "round robin" else SIZES[:3]
    starts = [rng.normal(size=n).astype(dtype) for n in sizes]
    optimizer, fenced = MAKERS[name](), Fenced()
    variables = [gg.Variable(s) for s in starts]
    offsets = [8, 8, 3, 8, 8, 8][: len(sizes)]  # 3: not aligned to 16 bytes
    p = [fenced(s, dtype, o) for s, o in zip(starts, offsets, strict=True)]
    state = [[fenced(np.zeros(n), wide(dtype)) for n in sizes] for _ in optimizer.slots]
    for step in (1, 2, 3):
        g = [rng.normal(size=n).astype(dtype) for n in sizes]
        optimizer.apply_gradients([(gg.constant(a), v) for a, v in zip(g, variables, strict=True)])
        with shim.running(schedule):
            launched(name, [p, g, *state], step)
    assert fenced.unharmed()
    tolerance = TOLERANCE[np.dtype(dtype)]
    for actual, v in zip(p, variables, strict=True):
        np.testing.assert_allclose(
            actual.astype(np.float64), v.numpy().astype(np.float64), tolerance, tolerance
        )


@pytest.mark.parametrize("name", NAMES)
def test_16_bit_gradients_are_widened_by_the_kernel(name, rng):
    kinds = [np.float16, np.float32, BFLOAT16, np.float16]  # a launch for each
    sizes = [5000, 7, 33, 1]
    starts = [rng.normal(size=n).astype(np.float32) for n in sizes]
    actual, desired = ([[s.copy() for s in starts]] for _ in range(2))
    for columns in (actual, desired):
        columns += [[np.zeros(n, np.float32) for n in sizes] for _ in MAKERS[name]().slots]
    for step in (1, 2):
        g = [rng.normal(size=n).astype(kind) for n, kind in zip(sizes, kinds, strict=True)]
        wide = [a.astype(np.float32) for a in g]
        with shim.running():
            launched(name, [actual[0], g, *actual[1:]], step)
            launched(name, [desired[0], wide, *desired[1:]], step)
    for some, others in zip(actual, desired, strict=True):
        for a, b in zip(some, others, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", [np.float32, np.float16, BFLOAT16])
@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16], ids=lambda d: np.dtype(d).name)
def test_rounded_copies_are_written_beside_the_same_step(dtype, kind, rng):
    sizes, fenced = [1, 64, 4097, 100, 9], Fenced()
    starts = [rng.normal(size=n).astype(np.float32) for n in sizes]
    g = [rng.normal(size=n).astype(kind) for n in sizes]
    offsets = [8, 8, 8, 3, 8]  # 3: not aligned to 16 bytes
    copies = [fenced(np.zeros(n), dtype, o) for n, o in zip(sizes, offsets, strict=True)]
    copies[1] = None
    columns, desired = ([[s.copy() for s in starts], g] for _ in range(2))
    for some in (columns, desired):
        some += [[np.zeros(n, np.float32) for n in sizes] for _ in range(2)]
    kernel, settings = MAKERS["adamw"]().kernel, settings_of(MAKERS["adamw"]())
    with shim.running():
        kernel.step(columns, settings, None, copies)
        kernel.step(desired, settings)
    for column, other in zip(columns, desired, strict=True):
        for a, b in zip(column, other, strict=True):
            np.testing.assert_array_equal(a, b)
    assert fenced.unharmed()
    for p, copy in zip(columns[0], copies, strict=True):
        assert copy is None or (copy == p.astype(dtype)).all()


def test_more_tensors_than_fit_one_launch_are_all_updated(rng, monkeypatch):
    n = arrays_per_launch(2) * 2 + 5
    p, g = [rng.normal(size=k % 5) for k in range(n)], [rng.normal(size=k % 5) for k in range(n)]
    desired = [a - 0.1 * b for a, b in zip(p, g, strict=True)]
    launches = []
    with shim.running():
        run = launch.on_host
        with monkeypatch.context() as patch:
            patch.setattr(launch, "on_host", lambda *a, **how: (launches.append(a), run(*a, **how)))
            launched("sgd", [p, g], 1)
    assert len(launches) == 3
    for a, d in zip(p, desired, strict=True):
        np.testing.assert_allclose(a, d, 1e-15)


def test_a_table_fits_the_arguments_of_a_kernel_and_is_laid_out_as_in_cuda():
    for k in (1, 2, 3, 4):
        ((table, _),) = tables([[np.zeros(3)]] * k)
        assert table.dtype.itemsize <= 4096 - 128
        source = launch.full_source("optim.cu") + (
            f"__global__ void sizes(int* n) {{ n[0] = ROOM<{k}>; n[1] = sizeof(Table<{k}>); }}"
        )
        n = np.zeros(2, np.int32)
        shim.compile_module(source, ["sizes"]).run("sizes", 1, 1, [n])
        assert n.tolist() == [arrays_per_launch(k), table.dtype.itemsize]


def test_broadcast_gradient_updates_every_element():
    p = np.zeros(9)
    with shim.running():
        launched("sgd", [[p], [np.broadcast_to(1.0, 9)]], 1)
    assert (p == -0.1).all()


@pytest.mark.parametrize("name", NAMES)
def test_settings_on_the_device_are_read_when_the_kernel_runs(name, rng):
    optimizer = MAKERS[name]()
    columns = [[rng.random(50)] for _ in range(2 + len(optimizer.slots))]
    other = [[c[0].copy()] for c in columns]
    seventh = settings_of(optimizer, 7)
    with shim.running():
        optimizer.kernel.step(columns, seventh)
        optimizer.kernel.step(other, settings_of(optimizer, 1, 9.0), np.array(seventh))
    np.testing.assert_array_equal(columns[0][0], other[0][0])


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_two_dtypes_takes_one_launch_per_dtype(name, cuda, rng, launches_of):
    starts = [rng.normal(size=s).astype(d) for d in (np.float32, np.float16)
              for s in ((3, 5), (7,), (), (0, 2))]  # fmt: skip
    there, here = MAKERS[name](), MAKERS[name]()
    v = [gg.Variable(gg.constant(s, device=cuda)) for s in starts]
    w = [gg.Variable(s) for s in starts]
    counted = launches_of(update_kernel)
    for _ in range(3):
        g = [rng.normal(size=s.shape).astype(s.dtype) for s in starts]
        there.apply_gradients([(gg.constant(a, device=cuda), x) for a, x in zip(g, v, strict=True)])
        here.apply_gradients([(gg.constant(a), x) for a, x in zip(g, w, strict=True)])
    assert len(counted) == 6 * len(there.kernel.names)
    for x, y in zip(v, w, strict=True):
        tolerance = TOLERANCE[x.dtype]
        np.testing.assert_allclose(x.numpy(), y.numpy(), tolerance, tolerance)


def test_complex_and_late_variables_are_updated_on_the_device(cuda, rng):
    there, here = optim.Adam(0.1), optim.Adam(0.1)
    starts = [rng.normal(size=4) + 1j, rng.normal(size=4) + 0j]
    v = [gg.Variable(gg.constant(s, device=cuda)) for s in starts]
    w = [gg.Variable(s) for s in starts]
    for n in (1, 2, 2):
        g = [rng.normal(size=4) + 1j * rng.normal(size=4) for _ in range(n)]
        there.apply_gradients(
            [(gg.constant(a, device=cuda), x) for a, x in zip(g, v, strict=False)]
        )
        here.apply_gradients([(gg.constant(a), x) for a, x in zip(g, w, strict=False)])
    for x, y in zip(v, w, strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), 1e-12)


def test_state_from_the_cpu_continues_on_the_device(cuda, rng):
    here, start = optim.SGD(0.1, momentum=0.5), rng.normal(size=6)
    w, gradients = gg.Variable(start), rng.normal(size=(20, 6))
    for g in gradients[:15]:  # the velocity is now kept with a scale other than 1
        here.apply_gradients([(gg.constant(g), w)])
    there, v = optim.SGD(0.1, momentum=0.5), gg.Variable(gg.constant(w.numpy(), device=cuda))
    there.build([v])
    there.load_state_dict(here.state_dict())
    for g in gradients[15:]:
        here.apply_gradients([(gg.constant(g), w)])
        there.apply_gradients([(gg.constant(g, device=cuda), v)])
    np.testing.assert_allclose(v.numpy(), w.numpy(), 1e-13)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("max_norm", [0.5, 1e6])
def test_clipping_on_the_device_matches_the_cpu(dtype, max_norm, cuda, rng):
    arrays = [rng.normal(size=s).astype(dtype) for s in ((70, 70), (3,), (), (0,))]
    arrays.append(arrays[0][::2, ::-1])
    there, norm = optim.clip_by_global_norm(
        [gg.constant(a, device=cuda) for a in arrays] + [None], max_norm
    )
    here, expected = optim.clip_by_global_norm([gg.constant(a) for a in arrays] + [None], max_norm)
    assert there[-1] is None
    assert norm.dtype == expected.dtype
    assert norm.device == cuda
    np.testing.assert_allclose(norm.item(), expected.item(), 1e-6)
    for a, b in zip(there[:-1], here[:-1], strict=True):
        assert (a.shape, a.dtype, str(a.device)) == (b.shape, b.dtype, cuda)
        t = TOLERANCE[a.dtype]
        np.testing.assert_allclose(a.numpy().astype(float), b.numpy().astype(float), t, t / 10)


def test_clipping_of_several_dtypes_takes_two_launches_per_dtype(cuda, rng, launches_of):
    counted = launches_of(kernels)
    arrays = [np.full(5, 300.0, d) for d in (np.float16, np.float64)]
    arrays.append(np.full(3, 1 + 2j))
    grads, norm = optim.clip_by_global_norm([gg.constant(a, device=cuda) for a in arrays], 1.0)
    assert len(counted) == 4
    expected = np.sqrt(10 * 300.0**2 + 3 * 5)
    assert norm.dtype == np.float64
    np.testing.assert_allclose(norm.item(), expected)
    np.testing.assert_allclose(grads[2].numpy(), arrays[2] / expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(("n", "offset"), [(7, 8), (5001, 3)])  # 3: as above
def test_norms_read_nothing_beyond_their_arrays(n, offset, dtype):
    fenced = Fenced(np.nan)
    grads = [fenced(np.ones(n), dtype, offset) for _ in range(2)]
    with shim.running():
        clipped, norm = kernels.clip(grads, 1e6)
        assert kernels.all_finite(grads)
    np.testing.assert_allclose(norm, (2 * n) ** 0.5, 1e-6)
    for a in clipped:
        np.testing.assert_array_equal(a.astype(float), np.ones(n))


@pytest.mark.parametrize("scale", [1e-30, 1e25])
def test_clipping_on_the_device_takes_squares_out_of_the_range_of_float32(scale, cuda):
    grads = [gg.constant([3 * scale, 4 * scale], np.float32, device=cuda)]
    (clipped,), norm = optim.clip_by_global_norm(grads, scale)
    np.testing.assert_allclose(norm.item(), 5 * scale, 1e-6)
    np.testing.assert_allclose(clipped.numpy(), [0.6 * scale, 0.8 * scale], 1e-6)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_clipping_non_finite_gradients_gives_nan_on_the_device(bad, cuda):
    grads, norm = optim.clip_by_global_norm([gg.constant([1.0, bad], device=cuda)], 1.0)
    assert not np.isfinite(norm.item())
    assert np.isnan(grads[0].numpy()).all()


@pytest.mark.parametrize("where", ["cpu", "cuda:0"])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("at", [0, 4095, 4096, 5000])
def test_all_finite_sees_one_element_that_is_not_finite(where, dtype, at):
    a = np.ones(5001, dtype)
    fine = [gg.constant(a, device=where), None, gg.constant(a[:3], device=where)]
    assert optim.all_finite(fine).item() is True
    a[at] = -np.inf if at % 2 else np.nan
    finite = optim.all_finite([gg.constant(a, device=where), None])
    assert finite.item() is False
    assert finite.device == where


def test_all_finite_of_no_gradient_is_an_error():
    with pytest.raises(gg.errors.ArgumentError, match="all_finite: all gradients are None"):
        optim.all_finite([None])


@needs_nvrtc
@each_architecture
@pytest.mark.parametrize("name", [*NAMES, "of all"])
def test_kernels_compile_without_spills_and_read_sixteen_bytes(name, architecture):
    by_source = collections.defaultdict(list)
    shared = [*kernels.INSTANCES, *step_kernels(accumulate.KERNELS)]
    for source, kernel in shared if name == "of all" else step_kernels([make(name).kernel]):
        by_source[source].append(kernel)
    for source, names in by_source.items():
        compiled = nvrtc.compile_all(architecture, launch.full_source(source), names)
        for kernel, code in compiled.items():
            assert code.spilled == 0, kernel
            assert ".local" not in code.ptx, kernel  # the table is read in place, not copied
            assert f"ld.global.v{2 if '<double' in kernel else 4}" in code.ptx, kernel
