"""Declarations of the ops, by topic; importing this declares them all: see `gpugrad.OPS`."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
