"""``python -m gpugrad.testing.cuda.driver``: builds the driver and runs commands with it."""

from __future__ import annotations

import argparse
import os
import sys

from gpugrad.testing.cuda.driver import ahead, build, place


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m gpugrad.testing.cuda.driver",
        description="Real CuPy without a GPU: its kernels run on the CPU.",
        epilog="GPUGRAD_CACHE_DIR moves the cache. GPUGRAD_CUDA_DEVICES, _MEMORY, _PEERS, _LATE "
        "and _NULL_WORK set up the made-up GPUs.",
    )
    parser.add_argument(
        "command",
        help="build; path (print where the driver is); a program, as python or pytest; or prepare "
        "and a program: it runs on devices that do nothing, and its kernels are compiled together",
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
    is_rehearsal = options.command == "prepare"
    program = options.arguments if is_rehearsal else [options.command, *options.arguments]
    environment = place.environment()
    if is_rehearsal:
        count = ahead.prepare(_resolved(program), environment)
        print(f"{count} kernel sources are compiled")
        return
    program = _resolved(program)
    os.execvpe(program[0], program, environment)


def _resolved(program: list[str]) -> list[str]:
    """The command, run by this Python if it is Python."""
    if program[0] == "python":
        return [sys.executable, *program[1:]]
    if program[0] == "pytest":
        return [sys.executable, "-m", "pytest", *program[1:]]
    return program


if __name__ == "__main__":
    main()
