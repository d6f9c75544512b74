"""``python -m gpugrad.testing.cuda.driver``: builds the driver and runs commands with it."""

from __future__ import annotations

import argparse
import os
import sys

from gpugrad.testing.cuda.driver import build, place


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m gpugrad.testing.cuda.driver",
        description="Real CuPy without a GPU: its kernels run on the CPU.",
        epilog="GPUGRAD_CACHE_DIR moves the cache. GPUGRAD_CUDA_DEVICES, _MEMORY, _PEERS, _LATE "
        "and _NULL_WORK set up the made-up GPUs.",
    )
    parser.add_argument(
        "command", help="build; path (print where the driver is); or a program, as python or pytest"
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the program")
    options = parser.parse_args()
    if options.command in ("build", "path"):
        if options.command == "build":
            try:
                build.build()
            except build.BuildError as error:
                sys.exit(f"The driver cannot be built: {error}")
        print(place.overlay())
        return
    if why := place.unavailable():
        sys.exit(f"{options.command} cannot be run: gpugrad {why}.")
    program = [options.command, *options.arguments]
    if options.command == "python":
        program[0] = sys.executable
    elif options.command == "pytest":
        program[:1] = [sys.executable, "-m", "pytest"]
    os.execvpe(program[0], program, place.environment())


if __name__ == "__main__":
    main()
