"""``python -m gpugrad``: what gpugrad runs on, and how to begin."""

import argparse

import gpugrad as gg


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(
        prog="python -m gpugrad", description="Print what gpugrad runs on, and how to begin."
    )
    parser.add_argument("--version", action="version", version=f"gpugrad {gg.__version__}")
    parser.parse_args()
    print(gg.about())


if __name__ == "__main__":
    main()
