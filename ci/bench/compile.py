"""First calls of long programs on the CPU: a chain of ops, compiled with an empty cache.

python ci/bench/compile.py [--ops 100,400,1600]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from peers import jax_runs, options, status

parser = options(__doc__, rounds=1, threads=1)
parser.add_argument(
    "--ops", type=lambda text: [*map(int, text.split(","))], default=[100, 400, 1600]
)
args = parser.parse_args()
LINEAR = 1.2  # n times the ops take at most 1.2 n times the time

CHAIN = """
import sys, time
import numpy as np
n = {n}
x = np.random.default_rng(0).standard_normal(1 << 15, np.float32)

def chain(lib, x):
    y = x
    for k in range(n // 2):
        y = lib.sin(y * (1 + k * 1e-5)) + x
    return y

"""
FIRST = {
    "gpugrad": """
import gpugrad as gg
gg.function(lambda x: gg.exp(x) + 1)(np.zeros(1 << 20, np.float32))  # the files in C
f, x = gg.function(lambda x: chain(gg, x)), gg.asarray(x)
start = time.perf_counter()
f(x).numpy()
print(time.perf_counter() - start)
""",
    "jax.jit": """
import jax
from jax import numpy as jnp
f, x = jax.jit(lambda x: chain(jnp, x)), jnp.asarray(x)
start = time.perf_counter()
jax.block_until_ready(f(x))
print(time.perf_counter() - start)
""",
}


def seconds(library: str, n: int) -> float:
    """Of the first call of a chain of n ops in a new process."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "GPUGRAD_DEVICE": "cpu"}
        text = CHAIN.format(n=n) + FIRST[library]
        return float(subprocess.check_output([sys.executable, "-c", text], env=environment))


def main() -> int:
    """Print the seconds by library and number of ops; check that ours grow linearly."""
    good = True
    for library in FIRST if jax_runs(False) else ["gpugrad"]:
        times = [seconds(library, n) for n in args.ops]
        pairs = zip(args.ops, times, strict=True)
        print(f"{library}: " + ", ".join(f"{n} ops {t:.2f} s" for n, t in pairs))
        if library == "gpugrad":
            more, growth = args.ops[-1] / args.ops[0], times[-1] / times[0]
            good = growth <= LINEAR * more
            kept = f"at most {LINEAR * more:.1f}: {'reached' if good else 'MISSED'}"
            print(f"  {more:.0f} times the ops: {growth:.1f} times the time, {kept}")
    return status(good)


if __name__ == "__main__":
    sys.exit(main())
