"""A pytest plugin: gpugrad in autograd's place, before a test module imports anything."""

import gpugrad.compat.autograd

gpugrad.compat.autograd.install()
