"""Imported before pytest starts: gpugrad in TensorFlow's place, before anything imports that."""

import gpugrad.compat.tf

gpugrad.compat.tf.install()
