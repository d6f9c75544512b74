"""Lines of SciPy that are replaced: they are there, and the new ones compute the same."""

import builtins
import contextlib
import re
import textwrap
import types

import numpy as np
import pytest
import scipy
import scipy.signal as S
from fresh import output_of

import gpugrad as gg
from gpugrad.scipy import reading
from gpugrad.scipy.signal.compiled import frames, modules, overlap_added
from gpugrad.scipy.signal.edits import EDITS

G = gg.scipy.signal
HELPERS = {"frames": frames, "overlap_added": overlap_added}


@pytest.mark.parametrize(("m", "hop"), [(8, 1), (8, 4), (9, 4), (8, 11)])
@pytest.mark.parametrize("detrend", [None, "linear", lambda part: part - part.mean()])
def test_parts_of_a_signal_overlap_by_any_number(m, hop, detrend):
    window = np.hanning(m + 2)[1:-1]
    ours, theirs = (k(window, hop, 1.0, phase_shift=1) for k in (G.ShortTimeFFT, S.ShortTimeFFT))
    signal = np.random.default_rng(0).normal(size=(3, 60))
    expected = theirs.stft_detrend(signal, detrend, padding="even")
    result = ours.stft_detrend(gg.constant(signal), detrend, padding="even")
    np.testing.assert_allclose(result.numpy(), expected, atol=1e-12)
    if hop <= m:
        back = ours.istft(result, 0, 60).numpy()
        np.testing.assert_allclose(back, theirs.istft(expected, 0, 60), atol=1e-12)


LOST = "a line that no SciPy has"


def _read(edits, given=()):
    return reading.Reader("scipy.signal", {**modules(), **dict(given)}, edits, **HELPERS)


def test_a_line_that_scipy_does_not_have_breaks_the_names_that_need_it_and_no_others():
    edits = {**EDITS["scipy.signal._signaltools"], "lfilter_zi deconvolve": {LOST: ""}}
    read = _read({**EDITS, "scipy.signal._signaltools": edits}).read("scipy.signal._signal_api")
    b, a = read.butter(2, 0.2)
    x = gg.asarray(np.linspace(0, 1, 20))
    np.testing.assert_allclose(read.lfilter(b, a, x), S.lfilter(*S.butter(2, 0.2), x.numpy()))
    message = rf"SciPy {re.escape(scipy.__version__)} has no line '{LOST}' there. Install"
    for call in (read.lfilter_zi, read.deconvolve, lambda b, a: read.filtfilt(b, a, x)):
        with pytest.raises(ImportError, match=message):
            call(b, a)


@pytest.mark.parametrize("new", ["1.99.0", None], ids=["newer", "tried"])
def test_a_module_that_a_newer_scipy_has_changed_breaks_its_own_names(new, monkeypatch):
    changed = {"scipy.ndimage": types.ModuleType("scipy.ndimage")}  # without what is imported
    if new is None:
        with pytest.raises(ImportError, match="No module named"):
            _read(EDITS, changed).read("scipy.signal._savitzky_golay")
        return
    monkeypatch.setattr(scipy, "__version__", new)
    reading._compare.cache_clear()
    with pytest.warns(gg.errors.GpugradWarning, match=f"tried with .*, not {new}") as warned:
        readers = [_read(EDITS, changed) for _ in range(2)]
    assert len(warned) == 1
    names = readers[0].read("scipy.signal._signal_api")
    with pytest.raises(ImportError, match=f"SciPy {new} has other imports there: No module"):
        names.savgol_filter(gg.ones(9), 3, 1)
    assert names.hilbert(gg.ones(3)).shape == (3,)


def test_threads_that_use_a_module_first_wait_until_it_is_complete():
    text = """
        import sys, threading
        import gpugrad as gg
        sys.setswitchinterval(1e-5)
        x, found, together = gg.constant([0.0, 1.0, 2.0]), [], threading.Barrier(4)
        def use():
            together.wait()
            found.append(gg.scipy.interpolate.CubicSpline(x, x)(1.5).item())
        threads = [threading.Thread(target=use) for _ in range(4)]
        [t.start() for t in threads], [t.join() for t in threads]
        print(found)
    """
    assert output_of("-c", textwrap.dedent(text)) == f"{[1.5] * 4}\n"


def test_a_module_whose_execution_was_interrupted_is_executed_again(monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    reader = reading.Reader("scipy.signal", {}, {})
    with monkeypatch.context() as patch:
        patch.setattr(reading, "edited", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reader.read("scipy.signal.windows._windows")
    assert callable(reader.read("scipy.signal.windows._windows").hann)


@pytest.mark.parametrize("draw", [
    lambda S: S.sparse.random_array((3, 3), density=0.5).toarray(),
    lambda S: S.spatial.transform.Rotation.random(2).as_quat(),
    lambda S: S.stats.norm.rvs(size=2),
    lambda S: S.stats.levy_stable.rvs(1.5, 0.5, size=2),
    lambda S: S.stats.random_correlation([0.5, 0.8, 1.7]).rvs(),
    lambda S: S.stats.permutation_test(
        (np.arange(5.0), np.arange(5.0) ** 2), lambda x, y: x[0] - y[1], n_resamples=5
    ).null_distribution,
    lambda S: S.optimize.differential_evolution(
        lambda x: x @ x, [(-1, 1)], maxiter=1, popsize=1, polish=False
    ).x,
], ids=["sparse", "rotation", "law", "compiled", "loops", "test", "minimizer"])  # fmt: skip
def test_numbers_that_scipy_draws_repeat_with_the_seed_and_are_no_constants_of_a_trace(draw):
    def drawn(f):
        gg.set_seed(3)
        one, two = (np.asarray(f(gg.scipy)) for _ in range(2))
        assert not np.array_equal(one, two)
        return one

    np.testing.assert_array_equal(drawn(draw), drawn(draw))
    with contextlib.suppress(gg.errors.GpugradError):
        drawn(gg.function(draw))


def test_sums_of_windows_are_one_step_of_any_length():
    def power(x):
        return gg.scipy.signal.periodogram(x, window=gg.abs(x) + 1)[1]

    steps = [str(gg.function(power).lower(np.ones(n))).count("\n") for n in (16, 512)]
    assert steps[0] == steps[1]


@pytest.mark.parametrize("name", ["sum", "all", "any"])
def test_a_builtin_of_a_formula_is_one_op_of_a_tensor(name, monkeypatch):
    """A loop over its elements took hundreds of times as long as SciPy (`make_lsq_spline`)."""

    def refuse(self):
        raise AssertionError("walks over the elements")

    builtin = reading.Reader("scipy.signal", {}, {}).builtins[name]
    monkeypatch.setattr(gg.Tensor, "__iter__", refuse)
    for values in ([0.0, 2.0], [0.0, 0.0], [3.0, 1.0]):
        assert builtin(gg.asarray(values)) == getattr(builtins, name)(values)
