"""NumPy's error states: `no_overflow` is `np.errstate(over="ignore")`, `no_errors` ``all=``."""

import threading

import numpy as np
import pytest

from gpugrad.core import float_errors
from gpugrad.core.float_errors import no_errors, no_overflow

LARGE = np.full(3, 1e30, np.float32)


def test_no_overflow_ignores_overflows_alone_and_restores_the_state():
    before = np.geterr()
    with np.errstate(over="raise", invalid="raise"):
        outer = np.geterr()
        for _ in range(2):
            with no_overflow():
                assert np.isinf(LARGE * LARGE).all()
                with pytest.raises(FloatingPointError, match="invalid"):
                    np.subtract(np.inf, np.inf)
                with np.errstate(over="raise"), no_overflow():
                    assert np.geterr() == outer | {"over": "ignore"}
            assert np.geterr() == outer
        with pytest.raises(FloatingPointError, match="overflow"):
            LARGE * LARGE
        with pytest.raises(ZeroDivisionError), no_overflow():
            raise ZeroDivisionError
        assert np.geterr() == outer
    assert np.geterr() == before


def test_a_thread_has_a_state_of_its_own():
    seen = []
    with no_overflow():
        thread = threading.Thread(target=lambda: seen.append(np.geterr()["over"]))
        thread.start()
        thread.join()
    assert seen == ["warn"]


@pytest.mark.parametrize("state", ["raise", "warn"])
def test_no_errors_ignores_all_of_them_and_restores_the_state(state):
    with np.errstate(all=state):
        outer = np.geterr()
        for _ in range(2):
            with no_errors():
                assert set(np.geterr().values()) == {"ignore"}
                np.subtract(np.inf, np.inf)
                with no_overflow():
                    assert set(np.geterr().values()) == {"ignore"}
            assert np.geterr() == outer


def test_a_numpy_with_other_states_gets_its_own_errstate():
    fast = float_errors.MODES is not None
    for block in (no_overflow, no_errors):
        assert isinstance(block(), float_errors._Ignored) is fast
        assert isinstance(block(), np.errstate) is not fast
