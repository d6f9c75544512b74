"""Random faults of random ranks, each of which must end all and be named.

python tests/distributed/faults.py [--faults N] [--seed N] [--slack SECONDS]

Each run trains and saves until a rank is killed, stops, sleeps, leaves, raises, or calls another
collective than the others. All ranks must have ended SLACK seconds after the timeout of two, with a
message that names the fault, and the latest checkpoint must be whole.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import gpugrad as gg

HERE = Path(__file__).parent
MPIEXEC = Path(sys.executable).parent / "mpiexec"
TIMEOUT = 2
WORDS = {
    "killed": r"KILLED BY SIGNAL: 9|BAD TERMINATION",
    "raises": r"ValueError: a bad batch(.|\n)*rank {0} of \d ends all",
    "leaves": r"rank {0} has not begun it: it is after collective .* the end of its program",
    "sleeps": r"rank {0} has not begun it: it is after collective",
    "stopped": r"rank {0} \(process \d+\) is stopped, after collective",
    "shape": r"Allreduce(.|\n)*truncated",  # MPICH says so itself
    "other": r"rank {0} (is in another one:|of \d: collective \d+,) all_gather float32",
}


def environment():
    """That of a process of its own, in which this checkout is imported."""
    paths = [str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}


def run(commands, seconds=280):
    """Run commands at the same time; what they print, and their exit statuses."""
    started = [
        subprocess.Popen(
            list(map(str, c)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment(), start_new_session=True,
        )
        for c in commands
    ]  # fmt: skip
    try:
        return [(p.communicate(timeout=seconds)[0], p.returncode) for p in started]
    finally:
        for p in started:
            if p.poll() is None:
                os.killpg(p.pid, signal.SIGKILL)


def fail(fault, n, rank, step):
    """Run n ranks of which one fails; the seconds until all have ended."""
    with tempfile.TemporaryDirectory() as folder:
        script = [sys.executable, HERE / "fault.py", fault, rank, step, folder]
        ((text, status),) = run([[MPIEXEC, "-n", n, *script]], 60)
        after = time.time() - float(re.search(r"FAULT ([\d.]+)", text)[1])
        assert status != 0
        assert re.search(WORDS[fault].format(rank), text), text
        v = gg.Variable(np.zeros(50_000))
        optimizer = gg.optim.SGD(1.0, 0.9)
        saves = gg.train.Checkpoints(folder, v=v, optimizer=optimizer)
        if saves.restore() is None and not saves.latest():
            assert step < 2, text
        else:
            steps, momentum, right = optimizer.iterations, 0.0, 0.0
            for _ in range(steps):
                momentum = 0.9 * momentum + 1
                right -= momentum
            assert steps in range(step, step + 6), (steps, text)
            assert np.allclose(v.numpy(), right)
    return after


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slack", type=float, default=2.0)
    args = parser.parse_args()
    rng, longest = random.Random(args.seed), {}
    for k in range(args.faults):
        fault, n = list(WORDS)[k % len(WORDS)], rng.choice((2, 3))
        rank, step = rng.randrange(n), rng.randrange(1, 20)
        after = fail(fault, n, rank, step)
        longest[fault] = max(after, longest.get(fault, 0.0))
        print(f"{fault} of rank {rank} of {n} at step {step}: {after:.2f} s", flush=True)
        if after > TIMEOUT + args.slack:
            sys.exit("too late")
    print("longest:", ", ".join(f"{k} {v:.2f} s" for k, v in longest.items()))


if __name__ == "__main__":
    main()
