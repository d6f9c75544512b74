"""A pytest plugin: gpugrad in the list of backends that POT's tests go through, NumPy out of it."""

import with_numpy  # noqa: F401  # no other backends

import ot.backend  # isort: skip

import gpugrad.integrations.pot

ot.backend.get_backend_list = lambda: [
    ot.backend._get_backend_instance(gpugrad.integrations.pot.GpugradBackend)
]
