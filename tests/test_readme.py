"""The README tells the truth: its example runs, and its numbers are the registry's."""

import re
from pathlib import Path

import gpugrad as gg

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_example_of_the_readme_runs_and_learns(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example, step, more, kernel = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    scope = {}
    exec(example, scope)
    assert float(scope["loss"]) < 5e-3  # Adam at a constant rate spikes now and then
    assert abs(float(scope["slope"](gg.constant([[0.0]]))) - 2) < 0.1
    assert capsys.readouterr().out.startswith("loss 0.00")
    exec(step, scope)
    lowered = capsys.readouterr().out.splitlines()
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    shown = [line for line in shown.splitlines() if line != "..."]
    assert [line for line in lowered if line in shown] == shown
    assert re.search(r"peak .*", step)[0] in lowered
    assert (tmp_path / "step.html").stat().st_size > 1000
    exec(more, scope)
    assert abs(gg.grad(scope["solve"])(2.0).item() - 0.25) < 1e-6
    exec(kernel, scope)
    assert gg.OPS.pop("swish").kind == "elementwise"


def test_readme_counts_the_ops():
    (said,) = re.findall(r"\| ops \| (\d+),", README)
    assert int(said) == sum(op.home.startswith("gpugrad.ops.") for op in gg.OPS.values())


def test_readme_has_two_commands_that_set_up_a_fresh_machine():
    commands = re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
    assert len(commands) == 2
    assert all(c.startswith("python3 -m venv .venv && .venv/bin/pip install -e ") for c in commands)
