"""Programs for TensorFlow 1's graphs compute what TensorFlow computes.

tests/golden/tensorflow1.json holds TensorFlow's results; the test marked peers compares it with
the installed TensorFlow, and `python tests/compat/test_tf1_programs.py` writes it again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from tf1_programs import PROGRAMS

GOLDEN = Path(__file__).parents[1] / "golden" / "tensorflow1.json"


def plain(value: object) -> object:
    """A result as JSON keeps it: the dtype, shape and numbers of an array, with six digits."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        numbers = [float(f"{x:.6g}") for x in np.asarray(value, "float64").ravel()]
        return [str(value.dtype), list(value.shape), numbers]
    return value


def agree(a: object, b: object) -> bool:
    """Whether two results are equal up to rounding in float32."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(agree, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(agree(a[key], b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-5 + 2e-4 * abs(b)
    return a == b


def golden() -> dict[str, object]:
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.fixture
def v1():
    from gpugrad.compat.tf import v1

    v1.reset_default_graph()
    v1.disable_eager_execution()
    yield v1
    v1.reset_default_graph()
    v1.enable_eager_execution()


@pytest.mark.filterwarnings("ignore:tf.function. .* runs eagerly")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_what_tensorflow_computes(v1, name):
    assert agree(plain(PROGRAMS[name](v1)), golden()[name])


def results_of_tensorflow() -> dict[str, object]:
    import tensorflow.compat.v1 as v1

    v1.disable_v2_behavior()
    found = {}
    for name, program in PROGRAMS.items():
        v1.reset_default_graph()
        found[name] = plain(program(v1))
    return found


@pytest.mark.peers
def test_the_golden_file_holds_what_tensorflow_computes():
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    found, kept = results_of_tensorflow(), golden()
    assert [name for name in PROGRAMS if not agree(found[name], kept[name])] == []


if __name__ == "__main__":
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in results_of_tensorflow().items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
