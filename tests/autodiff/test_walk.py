"""The way from an op to its gradient is short."""

from needs import needs_thresholds
from walk import files_passed


@needs_thresholds
def test_a_recorded_tanh_and_its_gradient_pass_ten_files():
    passed = files_passed(
        "x = gg.constant([0.1, 0.2, 0.3])",
        """
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = gg.tanh(x)
        tape.gradient(y, x)
        """,
    )
    assert {"autodiff/tape.py", "autodiff/backward.py", "ops/math/transcendental.py"} <= {*passed}
    assert len(passed) <= 10, passed
