"""Declarations of the ops, by topic; importing this declares them all: see `gpugrad.OPS`."""

import importlib
import pkgutil

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
