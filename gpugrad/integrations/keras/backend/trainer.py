"""Runs after Keras' backend/torch/trainer.py, in its namespace."""

from __future__ import annotations

import contextlib
import functools
import warnings

from keras.src import tree
from keras.src.backend.gpugrad.core import convert_to_tensor
from keras.src.trainers.data_adapters import data_adapter_utils
from keras.src.trainers.data_adapters.data_adapter import DataAdapter
from keras.src.trainers.epoch_iterator import EpochIterator

import gpugrad as gg
from gpugrad.errors import GpugradWarning, TraceError

_pause = contextlib.nullcontext


class _Batches(DataAdapter):
    """The batches of one of our own datasets, such as a `gpugrad.data.DataLoader`."""

    batch_size = has_partial_batch = partial_batch_size = None

    def __init__(self, batches):
        self._batches = batches

    def get_numpy_iterator(self):
        """An iterator of one epoch."""
        for batch in self._batches:
            yield tuple(batch) if isinstance(batch, list) else batch

    @property
    def num_batches(self):
        """Their number, or None."""
        return len(self._batches) if hasattr(self._batches, "__len__") else None


class TorchEpochIterator(EpochIterator):
    """Keras' iterator, of our datasets, too."""

    def __init__(self, x, *args, **settings):
        ours = type(x).__module__.startswith("gpugrad.") and not isinstance(x, gg.Tensor)
        super().__init__(_Batches(x) if ours else x, *args, **settings)


class GpugradTrainer(TorchTrainer):  # noqa: F821  # of Keras' own module
    """Keras' loops over training steps that are traced by `gpugrad.function`.

    With ``run_eagerly=True`` steps are not traced, nor where one needs values of Tensors in Python.
    """

    def train_step(self, data):
        """One step of the optimizer on a batch; the metrics by name."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        with gg.GradientTape() as tape:
            training = {"training": True} if self._call_has_training_arg else {}
            y_pred = self(x, **training)
            loss = self._compute_loss(
                x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True
            )
            scaled = loss if self.optimizer is None else self.optimizer.scale_loss(loss)
        first = next(i for i in tree.flatten(x) if i is not None)
        self._loss_tracker.update_state(gg.stop_gradient(loss), sample_weight=first.shape[0])
        weights = self.trainable_weights[:]
        if weights:
            gradients = tape.gradient(scaled, [v.value for v in weights])
            self.optimizer.apply(gradients, weights)
        else:
            warnings.warn("The model does not have any trainable weights.", GpugradWarning, 2)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def _symbolic_build(self, *args, **settings):
        try:
            super()._symbolic_build(*args, **settings)
        except RuntimeError:  # a step of the user's own may do without call()
            if type(self).train_step is GpugradTrainer.train_step:
                raise

    def _step(self, step):
        """A function of a list of one batch that runs a step, traced if it can be."""
        if self.run_eagerly:
            return lambda data: step(_tensors(data[0]))
        traced = gg.function(step)
        eager = []

        def call(data):
            batch = _tensors(data[0])
            if not eager:
                try:
                    return traced(batch)
                except TraceError as error:
                    eager.append(error)
                    warnings.warn(f"{step.__qualname__} runs eagerly: {error}", GpugradWarning, 2)
                finally:
                    self._clear_losses()  # those of a trace have no values
            return step(batch)

        return functools.wraps(step)(call)

    def _made(self, name, step, force):
        if getattr(self, name) is None or force:
            if self.steps_per_execution > 1:
                one = self._step(step)
                several = lambda data: [one([d]) for d in data][-1]
                setattr(self, name, several if name != "predict_function" else _each(one))
            else:
                setattr(self, name, self._step(step))
        return getattr(self, name)

    def make_train_function(self, force=False):
        """The function that trains on a batch."""
        return self._made("train_function", self.train_step, force)

    def make_test_function(self, force=False):
        """The function that evaluates a batch."""
        return self._made("test_function", self.test_step, force)

    def make_predict_function(self, force=False):
        """The function that predicts a batch."""
        return self._made("predict_function", self.predict_step, force)

    def train(self, mode=True):
        """Nothing: modes are torch's."""

    def eval(self):
        """Nothing: modes are torch's."""


def _each(one):
    def call(data):
        parts = [one([d]) for d in data]
        return tree.map_structure(lambda *xs: gg.concat(list(xs)), *parts)

    return call


def _tensors(batch):
    return tree.map_structure(lambda x: x if x is None else convert_to_tensor(x), batch)


NumpyTrainer = GpugradTrainer
