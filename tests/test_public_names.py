"""Every public name, and how each function is called: as in tests/golden/public_names.txt.

A change of that file is a change of the interface. Write it anew with
``python tests/test_public_names.py``.
"""

import importlib
import inspect
from pathlib import Path

import gpugrad as gg

GOLDEN = Path(__file__).parent / "golden" / "public_names.txt"
MODULES = [
    "gpugrad", "gpugrad.bridge", "gpugrad.checkpoint", "gpugrad.cuda", "gpugrad.data",
    "gpugrad.data.augment", "gpugrad.debug", "gpugrad.distributed", "gpugrad.errors",
    "gpugrad.fft", "gpugrad.linalg", "gpugrad.nn", "gpugrad.nn.functional",
    "gpugrad.nn.initializers", "gpugrad.optim", "gpugrad.optim.schedules", "gpugrad.random",
    "gpugrad.scipy", "gpugrad.scipy.ndimage", "gpugrad.scipy.sparse",
    "gpugrad.scipy.sparse.csgraph", "gpugrad.scipy.sparse.linalg",
    "gpugrad.special", "gpugrad.testing", "gpugrad.train", "gpugrad.typing",
]  # fmt: skip


def _called(thing):
    """A function's parameters, without annotations; nothing for what is not a function."""
    if not inspect.isfunction(thing):
        return ""
    signature = inspect.signature(thing)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


def public_names():
    for name in MODULES:
        module = importlib.import_module(name)
        for thing in sorted(module.__all__):
            yield f"{name}.{thing}{_called(getattr(module, thing))}"
    for kind in (gg.GradientTape, gg.Tensor, gg.Variable):
        for name in sorted(dir(kind)):
            if not name.startswith("_") and hasattr(kind, name):
                yield f"{kind.__name__}.{name}{_called(inspect.getattr_static(kind, name))}"


def test_public_names_are_those_that_were_reviewed():
    assert list(public_names()) == GOLDEN.read_text().splitlines()


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(public_names()) + "\n")
