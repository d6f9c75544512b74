"""glibc's allocator under training steps."""

import os
import subprocess
import sys

import pytest

STEP = """
import resource
import gpugrad as gg

def step(x):
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = gg.sum(gg.tanh(x * 2) * x)
    return tape.gradient(y, x)

x = gg.ones(1_000_000)
for _ in range(5):
    step(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step(x)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(**environment):
    result = subprocess.run(
        [sys.executable, "-c", STEP],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(result.stdout)


@pytest.mark.skipif(
    "glibc" not in (getattr(os, "confstr", str)("CS_GNU_LIBC_VERSION") or ""),
    reason="only glibc has these thresholds",
)
def test_steps_after_the_first_take_no_new_memory_from_the_system_unless_declined():
    assert page_faults() < 500
    assert page_faults(GPUGRAD_MALLOC="0") > 2000
    assert page_faults(MALLOC_TRIM_THRESHOLD_="131072") > 2000
