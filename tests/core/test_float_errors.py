"""NumPy's error states: `no_overflow` is `np.errstate(over="ignore")`."""

import threading

import numpy as np
import pytest

from gpugrad.core import float_errors
from gpugrad.core.float_errors import no_overflow

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


def test_a_numpy_with_other_states_gets_its_own_errstate():
    """What `no_overflow` is where NumPy's private names are others."""
    fast = float_errors.MODES is not None
    assert (no_overflow is float_errors._NoOverflow) is fast
