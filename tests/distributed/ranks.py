"""Checks that each of several ranks runs: ``mpiexec -n 2 python ranks.py RESULTS CHECK...``.

A check is a function of ``checks_*.py`` whose name begins with ``check_``. Rank 0 writes what
failed, by name, as JSON.
"""

import json
import sys
import time
import traceback

import checks_charlm
import checks_fit
import checks_nan
import checks_ops
import checks_sharded
import checks_training
import pytest
from common import W

CHECKS = {
    name: check
    for module in (
        checks_ops,
        checks_training,
        checks_nan,
        checks_sharded,
        checks_fit,
        checks_charlm,
    )
    for name, check in vars(module).items()
    if name.startswith("check_")
}


def main():
    results, *names = sys.argv[1:]
    failed = {}
    for name in names or CHECKS:
        start = time.perf_counter()
        try:
            CHECKS[name]()
            error = None
        except (Exception, pytest.fail.Exception):
            error = traceback.format_exc()
            print(error, flush=True)  # the gather below may hang
        errors = [e for e in W.gather(error) if e]
        failed[name] = errors[0] if errors else None
        print(f"{name}: {time.perf_counter() - start:.2f} s", flush=True)
    if W.rank == 0:
        with open(results, "w") as file:
            json.dump(failed, file)


if __name__ == "__main__":
    main()
