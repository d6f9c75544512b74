"""``python -m gpugrad``: what gpugrad runs on, and how to begin."""

import argparse

import gpugrad as gg

BEGIN = """
Begin with an example, which says with --help what it does:
  python -m gpugrad.examples.digits    reads handwritten digits: training, checkpoints, a picture
  python -m gpugrad.examples.charlm    a small GPT that writes characters
  python -m gpugrad.examples.deblur    an inverse problem: the gradient of a filter of SciPy's
In Python: import gpugrad as gg; help(gg.GradientTape). The guides are in docs/."""


def main() -> None:
    """Print them."""
    parser = argparse.ArgumentParser(
        prog="python -m gpugrad", description="Print what gpugrad runs on, and how to begin."
    )
    parser.add_argument("--version", action="version", version=f"gpugrad {gg.__version__}")
    parser.parse_args()
    print(gg.about() + "\n" + BEGIN)


if __name__ == "__main__":
    main()
