"""A fuzzer: random programs of all ops, against NumPy, `gg.function`, vmap and differences.

``pytest tests/fuzz --programs 20000 --seed 1`` runs more of them than CI does. A failure prints the
program as a script.
"""

import hypothesis
import numpy as np
import pytest
from oracles import STATISTICS, check_derivatives, check_function, check_values, check_vmap
from programs import programs

PARTS, BATCH = 4, 10  # hypothesis varies earlier examples after ten: a new seed is worth more


def check(program):
    hypothesis.note(program.script())
    with np.errstate(all="ignore"):
        check_values(program)
        check_function(program)
        check_derivatives(program)
        check_vmap(program)


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_agree_with_numpy_functions_and_differences(part, pytestconfig):
    n, seed = pytestconfig.getoption("programs"), pytestconfig.getoption("seed")
    health = list(hypothesis.HealthCheck)
    settings = hypothesis.settings(max_examples=BATCH, suppress_health_check=health)
    for batch in range(part, -(-n // BATCH), PARTS):
        hypothesis.seed(seed + batch)(settings(hypothesis.given(programs())(check)))()
    assert STATISTICS["kinks"] <= 3 + STATISTICS["derivatives"] // 50
