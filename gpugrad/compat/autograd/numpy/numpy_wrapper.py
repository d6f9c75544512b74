"""The name under which autograd has its functions of NumPy."""

import gpugrad.compat.autograd.numpy as _numpy


def wrap_namespace(old: dict[str, object], new: dict[str, object]) -> None:
    """Put the functions of the namespace `old` into `new`, for boxes too where NumPy has them."""
    for name, value in old.items():
        if not name.startswith("_"):
            new[name] = getattr(_numpy, name, value)


def __getattr__(name: str) -> object:
    return getattr(_numpy, name)


def __dir__() -> list[str]:
    return dir(_numpy)
