"""Runs after Keras' optimizers/base_optimizer.py, in its namespace: it takes our Variables, too."""

# ruff: noqa: D103, F821
from __future__ import annotations

import weakref

from keras.src import backend

import gpugrad as gg

_wrapped = weakref.WeakValueDictionary()


def _keras_variable(v):
    """The Keras Variable around a `gpugrad.Variable`, one for each."""
    if not isinstance(v, gg.Variable):
        return v
    if v.ref() not in _wrapped:
        around = backend.Variable(v.value(), trainable=v.trainable)
        around._value = v
        around.around = v  # lives as long as it
        _wrapped[v.ref()] = around
    return _wrapped[v.ref()]


_build, _apply = BaseOptimizer.build, BaseOptimizer.apply


def build(self, variables):
    return _build(self, [_keras_variable(v) for v in variables])  # which keeps them


def apply(self, grads, trainable_variables=None):
    if trainable_variables is not None:
        trainable_variables = [_keras_variable(v) for v in trainable_variables]
    return _apply(self, grads, trainable_variables)


BaseOptimizer.build, BaseOptimizer.apply = build, apply
