"""Imported before pytest starts: gpugrad in autograd's place, before anything imports that."""

import gpugrad.compat.autograd

gpugrad.compat.autograd.install()
