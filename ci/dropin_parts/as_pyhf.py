"""A pytest plugin: gpugrad in JAX's place in the list of backends that pyhf's tests go through."""

from typing import Any

import with_numpy

import gpugrad.integrations.pyhf


class _NamedJax(gpugrad.integrations.pyhf.GpugradBackend):
    """The backend by the name under which a test's table has the expected values."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.name = "jax"


with_numpy.pyhf_backends(_NamedJax)
