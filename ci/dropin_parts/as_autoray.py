"""A pytest plugin: autoray's tests on gpugrad alone."""

import with_numpy

import gpugrad.integrations.autoray  # noqa: F401

with_numpy.autoray_backends("gpugrad")
