"""Every op on cuda:0 against the CPU: in its own dtypes, in a gg.function, and in narrow floats.

    python ci/gpu_parts/ops.py RECORDS [--processes 12] [--seconds 210] [--ops NAME ...]

On a made-up device that does nothing (GPUGRAD_CUDA_NULL_WORK=1) only dtypes are compared.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import workers

import gpugrad as gg
from gpugrad.testing.checks.on_device import PHASES, differences

SMALL = ("matmul", "softmax", "take", "tanh")
VALUES = os.environ.get("GPUGRAD_CUDA_NULL_WORK", "0") == "0"


def applies(op: Any, phase: str) -> bool:
    """Whether there is anything to compare."""
    return "device" not in op.params and (PHASES[phase] is None or "f" in op.kinds)


def check(item: tuple[str, str]) -> dict[str, Any]:
    """The first difference, and how many there are."""
    name, phase = item
    np.seterr(all="ignore")
    all_of_them = differences(gg.OPS[name], phase, gg.device("cuda:0"))
    wrong = [d for d in all_of_them if VALUES or not d.is_about_values]
    if not wrong:
        return {}
    first = wrong[0]
    message = " ".join(first.message.split())[:300]
    return {"why": f"{first.sample}, {first.what}: {message} ({len(wrong)} differences)"}


def main() -> int:
    parser = workers.parser(__doc__, processes=12, seconds=210, hung=60)
    parser.add_argument("--ops", nargs="*", default=[], help="only these (all)")
    args = parser.parse_args()
    names = args.ops or (SMALL if args.small else gg.OPS)
    items = [(name, phase) for phase in PHASES for name in names if applies(gg.OPS[name], phase)]
    return workers.run(args, "ops", items, check)


if __name__ == "__main__":
    sys.exit(main())
