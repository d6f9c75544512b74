"""Time of ``import gpugrad``, beside NumPy's own and that of peers: python ci/bench/imports.py

Fresh interpreters in turns; each time is beyond that of an interpreter that imports nothing.
"""

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ("numpy", "autograd", "jax", "torch", "tensorflow")


def seconds(statement, env):
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], env=env, check=True, capture_output=True)
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="interpreters of each kind")
    rounds = parser.parse_args().rounds
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # the first import writes bytecode
    names = ["gpugrad", "gpugrad.numpy", *(n for n in PEERS if importlib.util.find_spec(n))]
    statements = {name: f"import {name}" for name in names} | {"python": "pass"}
    times = {name: [] for name in statements}
    for k in range(rounds + 1):
        for name, statement in statements.items():
            took = seconds(statement, env)
            if k:  # the first round warms the disk's cache
                times[name].append(took)
    python = statistics.median(times["python"])
    ours = statistics.median(times["gpugrad"]) - python
    print(f"import gpugrad: {ours * 1e3:.0f} ms beyond Python's own start")
    for name in names[2:]:
        theirs = statistics.median(times[name]) - python
        print(f"  import {name:<12} {theirs * 1e3:5.0f} ms   gpugrad is {ours / theirs:5.2f} of it")
    pairs = zip(times["gpugrad"], times["gpugrad.numpy"], strict=True)
    more = statistics.median(after - before for before, after in pairs)
    kept = "reached" if more <= 0.03 else "MISSED"
    print(f"  import gpugrad.numpy takes {more * 1e3:.0f} ms more: at most 30, {kept}")
    print(f"  at most 2.00 of numpy, and 250 ms: {'reached' if reached(times) else 'MISSED'}")


def reached(times):
    python, numpy, ours = (statistics.median(times[n]) for n in ("python", "numpy", "gpugrad"))
    return ours - python <= min(0.25, 2 * (numpy - python))


if __name__ == "__main__":
    main()
