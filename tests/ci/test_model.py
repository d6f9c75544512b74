"""The training steps of the benches keep to their numbers of graph nodes and modelled times."""

import os
import re
from pathlib import Path

import pytest
from fresh import output_of
from needs import needs_driver

MODEL = Path(__file__).parents[2] / "ci" / "model"

TOTAL = re.compile(
    r"total: (\d+) nodes, ([\d.]+) ms modelled .*; (\d+) strided copies"
    r".* (\d+) launches and copies outside"
)
HOST = re.compile(
    r"host \(.*, processor time\): (\d+) us an eager step of (\d+) launches, ([\d.]+)"
)
SEVERAL = re.compile(
    r"8 steps a call, each: ([\d.]+) nodes and ([\d.]+) launches.* ([\d.]+) us modelled"
)
TORCH = re.compile(
    r"eager torch: (not installed|(\d+) ops, (\d+) of them .* at 5 us each (\d+) us)"
)


@pytest.mark.slow  # up to 6 GB of zeros
@pytest.mark.device
@needs_driver
@pytest.mark.parametrize(
    ("arguments", "nodes", "milliseconds", "strided"),
    [
        (["mlp", "--tf32", "--ranks", "8,512"], 10, 0.0355, 0),
        (["gpt2"], 232, 16.32, 0),
        (["gpt2", "--no-cudnn"], 244, 19.55, 0),
        (["resnet"], 117, 12.9, 1),
    ],
    ids=["mlp", "gpt2", "gpt2-no-cudnn", "resnet"],
)
def test_a_step_takes_at_most_its_nodes_and_time(arguments, nodes, milliseconds, strided):
    text = output_of(MODEL, *arguments, GPUGRAD_DEVICE="")
    counted = TOTAL.search(text)
    assert counted, text
    assert (int(counted[1]), int(counted[3])) <= (nodes, strided), text
    assert float(counted[2]) <= milliseconds, text
    assert int(counted[4]) <= 1, text  # the upload of arguments
    eager, launches, replay = map(float, HOST.search(text).groups())
    assert nodes < launches
    assert 0 < replay < eager  # not how long: other processes take turns with this one
    assert len(re.findall(r"ranks: sums take +[\d.]+ ms, exposed", text)) == (
        4 if "--ranks" in arguments else 0
    ), text
    if "mlp" in arguments:
        nodes, outside, microseconds = map(float, SEVERAL.search(text).groups())
        assert nodes <= 11.13, text
        # in 8 steps an upload and 8 copies, since CuPy stacks the losses one by one
        assert outside <= 1.13, text
        assert microseconds <= 37.7, text
        torch = TORCH.search(text)
        assert torch[2] is None or int(torch[4]) == 5 * int(torch[2]) > 5 * int(torch[3])


def test_help_names_the_benches():
    text = output_of(MODEL, "--help")
    assert all(name in text for name in ("gpt2", "mlp", "resnet", "--no-cudnn"))


@pytest.mark.device
@needs_driver
@pytest.mark.parametrize(
    ("optimizer", "floats"),
    [("SGD(0.1)", 3), ("SGD(0.1, momentum=0.9)", 5), ("AdamW(0.1)", 7), ("Lion(0.1)", 5)],
)
def test_a_step_of_any_optimizer_is_counted(optimizer, floats):
    script = f"""
from fakes import counted as gpu
gpu.install(with_cudnn=False)
import gpugrad as gg
from gpugrad.testing.cuda import driver
with gg.device("cuda:0"):
    w, g = gg.Variable(gg.zeros(50_000)), gg.zeros(50_000)
    optimizer = gg.optim.{optimizer}
    optimizer.build([w])
with driver.logged() as log:
    optimizer.apply_gradients([(g, w)])
(node,) = gpu.works(log)
print(node.moved)
"""
    tests = str(Path(__file__).parents[1])
    path = os.pathsep.join((tests, os.environ.get("PYTHONPATH", "")))
    assert output_of("-c", script, PYTHONPATH=path).split() == [str(50_000 * 4 * floats)]
