"""Keras on Tensors: ``KERAS_BACKEND=gpugrad``, with no file of Keras changed.

Import this module before Keras. It adds an import hook for ``keras.src.backend.gpugrad``: each
module there is Keras' module for NumPy (for the trainer, that for torch) on `gpugrad.numpy`, and
then the file of that name in this package's folder ``backend``, which redefines what NumPy cannot
do: Variables, gradients, convolutions, random numbers, training steps. Six other modules of Keras
compare the backend's name with "numpy"; the hook lets them see ours. Tried with Keras 3.15.

>>> import gpugrad.integrations.keras  # doctest: +SKIP
>>> import keras  # doctest: +SKIP
>>> keras.backend.backend()  # doctest: +SKIP
'gpugrad'
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from gpugrad.integrations.library import compare_version

TRIED = "3.15"
"""The version of Keras that this was tried with."""

_OPTIMIZER = "keras.src.optimizers.base_optimizer"
_OURS = "keras.src.backend.gpugrad"
_HERE = Path(__file__).parent / "backend"
_NAME_NUMPY = [
    "keras.src.backend",
    "keras.src.layers.layer",
    "keras.src.models.model",
    "keras.src.export.saved_model",
    "keras.src.utils.traceback_utils",
    "keras.src.utils.backend_utils",
    "keras.src.layers.core.embedding",
]
_REPLACED = {
    "import numpy as np": "import gpugrad.numpy as np",
    "from keras.src.utils.module_utils import scipy": "import gpugrad.scipy as scipy",
    "import scipy.linalg": "import gpugrad.scipy.linalg",
    "from scipy import": "from gpugrad.scipy import",
    "torch.utils.data.DataLoader": "()",
    "torch.no_grad()": "_pause()",
}


def _as_numpy(source: str) -> str:
    """The source of a module that compares the backend's name."""
    source = source.replace("keras.src.backend.numpy", _OURS)
    # unpacked from int4 it is a Tensor, which takes no attributes
    source = source.replace("self.embeddings.trainable =", "self._embeddings.trainable =")
    for asked in ("backend()", "self._backend"):
        source = source.replace(f'{asked} == "numpy"', f'{asked} == "gpugrad"')
    return source.replace('"numpy", "openvino")', '"numpy", "openvino", "gpugrad")')


def _on_gpugrad(source: str) -> str:
    """The source of a module of Keras' NumPy or torch backend, on gpugrad.numpy."""
    for backend in ("numpy", "torch"):
        source = source.replace(f"keras.src.backend.{backend}", _OURS)
    for line in ("import jax\n", "from jax import lax\n", "import torch\n"):
        source = source.replace(line, "")
    lines = [line for line in source.splitlines() if "keras.src.backend.jax" not in line]
    source = "\n".join(lines)
    for theirs, ours in _REPLACED.items():
        source = source.replace(theirs, ours)
    return source


class _Loader(importlib.abc.Loader):
    """Runs a module of Keras after a change of its source, and then ours in the same namespace."""

    def __init__(self, path: Path, change: Any, own: Path | None = None) -> None:
        self._path, self._change, self._own = path, change, own

    def exec_module(self, module: ModuleType) -> None:
        """Run both."""
        for path, change in ((self._path, self._change), (self._own, str)):
            if path is not None and path.exists():
                source = change(path.read_text(encoding="utf-8"))
                exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == "keras":  # the program may have named another backend since
            os.environ["KERAS_BACKEND"] = "gpugrad"
        if name in _NAME_NUMPY or name == _OPTIMIZER:
            found = importlib.machinery.PathFinder.find_spec(name, path)
            if found is None or found.origin is None:
                return None
            own = _HERE / "base_optimizer.py" if name == _OPTIMIZER else None
            return importlib.util.spec_from_file_location(
                name,
                found.origin,
                loader=_Loader(Path(found.origin), _as_numpy, own),
                submodule_search_locations=found.submodule_search_locations,
            )
        if name != _OURS and not name.startswith(f"{_OURS}."):
            return None
        (folder,) = importlib.import_module("keras.src.backend").__path__
        stem = name.removeprefix(_OURS).strip(".") or "__init__"
        template = Path(folder) / ("torch" if stem == "trainer" else "numpy") / f"{stem}.py"
        return importlib.util.spec_from_file_location(
            name,
            template,
            loader=_Loader(template, _on_gpugrad, _HERE / f"{stem}.py"),
            submodule_search_locations=[] if stem == "__init__" else None,
        )


def _install() -> None:
    if "keras" in sys.modules:
        raise ImportError(
            "gpugrad.integrations.keras: Keras is imported already. Import this module before the "
            "first import of keras."
        )
    if importlib.util.find_spec("keras") is None:
        raise ImportError("gpugrad.integrations needs keras. Install it: pip install keras==3.15.1")
    compare_version("keras", (TRIED,))
    sys.meta_path.insert(0, _Finder())


_install()
