"""The files that a reader passes who follows an optimizer's step."""

import sys
from pathlib import Path

import gpugrad as gg


def files_passed(call):
    """The files of gpugrad whose functions a call calls."""
    home, files = Path(gg.__file__).parent, set()

    def note(frame, event, arg):
        if event == "call":
            files.add(Path(frame.f_code.co_filename))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return sorted(str(f.relative_to(home)) for f in files if f.is_relative_to(home))


def test_a_warm_eager_step_of_adam_passes_at_most_10_files():
    model = gg.nn.Sequential(gg.nn.Dense(8, 16, activation=gg.tanh), gg.nn.Dense(16, 1))
    variables, optimizer = model.trainable_variables, gg.optim.Adam(0.01)
    assert len(variables) == 4

    def gradients():
        with gg.GradientTape() as tape:
            loss = gg.mean(model(gg.ones((4, 8))) ** 2)
        return list(zip(tape.gradient(loss, variables), variables, strict=True))

    optimizer.apply_gradients(gradients())
    pairs = gradients()
    passed = files_passed(lambda: optimizer.apply_gradients(pairs))
    assert "optim/adam.py" in passed
    assert len(passed) <= 10, passed
