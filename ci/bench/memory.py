"""Memory: what a tape keeps of dead branches, and the peaks of a function's first call and replay.

Each figure is the growth of the process's peak, in a process of its own, beside torch's if torch is
installed. On the CPU.

Run: python ci/bench/memory.py
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys

LAYERS, ROWS, WIDTH = 12, 4096, 256

PEAK = """
import resource
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
"""

OURS = (
    PEAK
    + f"""
import numpy as np
import gpugrad as gg
weights = [gg.Variable(np.random.randn({WIDTH}, {WIDTH}).astype(np.float32) / 16)
           for _ in range({LAYERS})]
x = gg.random.normal((ROWS, {WIDTH}))
def step(x):
    with gg.GradientTape() as tape:
        for w in weights:
            x = x + gg.tanh(gg.nn.layer_norm(gg.gelu(x @ w), axis=-1) * 1.1 + 0.1)
        loss = gg.mean(x * x)
    for w, g in zip(weights, tape.gradient(loss, weights)):
        w.assign_sub(0.01 * g)
"""
)

THEIRS = (
    PEAK
    + f"""
import torch
torch.manual_seed(0)
weights = [torch.nn.Parameter(torch.randn({WIDTH}, {WIDTH}) / 16) for _ in range({LAYERS})]
x = torch.randn(ROWS, {WIDTH})
def step(x):
    for w in weights:
        h = torch.nn.functional.gelu(x @ w)
        x = x + torch.tanh(torch.nn.functional.layer_norm(h, ({WIDTH},)) * 1.1 + 0.1)
    for w, g in zip(weights, torch.autograd.grad((x * x).mean(), weights)):
        w.data -= 0.01 * g
"""
)

RUN = """
step(x[:8])
before = peak()
for _ in range(3):
    step(x)
print(peak() - before)
"""

FIRST_CALL = """
step(x[:8])
step = gg.function(step)
step(x[:8])
before = peak()
step(x)
print(peak() - before)
"""

LIMITED_FIRST_CALL = """
existing = x.nbytes + sum(w.nbytes for w in weights)
step(x[:8])
step = gg.function(step, remat="auto", memory_limit=LIMIT + existing)
step(x[:8])
before = peak()
step(x)
print(peak() - before)
"""

DEAD_OURS = (
    PEAK
    + """
import gpugrad as gg
x, big = gg.constant(2.0), gg.ones(100_000)
with gg.GradientTape() as tape:
    tape.watch(x)
    gg.sin(big * x)
    before = peak()
    for _ in range(1420):
        gg.sin(big * x)
print(peak() - before)
"""
)

DEAD_THEIRS = (
    PEAK
    + """
import torch
x, big = torch.tensor(2.0, requires_grad=True), torch.ones(100_000)
torch.sin(big * x)
before = peak()
for _ in range(1420):
    torch.sin(big * x)
print(peak() - before)
"""
)


def measured(program: str, rows: int, limit: int = 0) -> float:
    """The number that a program prints: MiB."""
    output = subprocess.run(
        [sys.executable, "-c", f"ROWS, LIMIT = {rows}, {limit}\n{program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(output.stdout)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="tiny arrays, to try the bench itself")
    rows_of_x = 64 if parser.parse_args().small else ROWS
    has_torch = importlib.util.find_spec("torch") is not None
    eager = measured(OURS + RUN, rows_of_x)
    limit = max(int(eager * 0.6), 64) << 20
    rows = [
        ("1,420 dead branches under a tape", DEAD_OURS, DEAD_THEIRS),
        (f"a step of {LAYERS} layers", None, THEIRS + RUN),
        ("the first call of its function", OURS + FIRST_CALL, None),
        (f"... function limited to {limit >> 20} MiB", OURS + LIMITED_FIRST_CALL, None),
    ]
    print(f"{'growth of the peak, MiB':36} {'gpugrad':>9} {'torch':>9} {'of eager':>9}")
    for title, ours, theirs in rows:
        ours_mib = eager if ours is None else measured(ours, rows_of_x, limit)
        theirs_mib = f"{measured(theirs, rows_of_x):9.0f}" if theirs and has_torch else f"{'':9}"
        share = f"{ours_mib / max(eager, 1e-9):9.2f}" if "function" in title else ""
        print(f"{title:36} {ours_mib:9.0f} {theirs_mib} {share}")


if __name__ == "__main__":
    main()
