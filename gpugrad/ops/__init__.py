"""Declarations of the ops, by topic: see `gpugrad.OPS`.

Tensor's methods need the first two shelves. The others are imported when one of their ops is first
asked for, which halves the time of ``import gpugrad``.
"""

import functools
import importlib
import pkgutil

from gpugrad.core.backend import OPS


def _declare(shelf: str) -> None:
    package = importlib.import_module(f"{__name__}.{shelf}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


for _shelf in ("arrays", "math"):
    _declare(_shelf)
for _shelf in ("nn", "random", "linalg", "fft", "special", "scipy"):  # seldom used ones last
    OPS.defer(functools.partial(_declare, _shelf))
