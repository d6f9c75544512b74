"""A pytest plugin: gpugrad in JAX's place in the list of backends that pyhf's tests go through."""

import with_numpy

import gpugrad.integrations.pyhf

with_numpy.pyhf_backends(gpugrad.integrations.pyhf.GpugradBackend)
