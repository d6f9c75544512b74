"""gpugrad.integrations.keras: Keras models train on Tensors, in processes of their own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

needs_keras = pytest.mark.skipif(
    importlib.util.find_spec("keras") is None, reason="Keras is not installed"
)

TRAINING = """
import gpugrad.integrations.keras, keras, numpy as np, tempfile
keras.utils.set_random_seed(0)
assert keras.backend.backend() == "gpugrad"
k = keras.layers
x, y = np.random.randn(64, 8, 8, 2).astype("float32"), np.random.randn(64, 1).astype("float32")
model = keras.Sequential([keras.Input((8, 8, 2)), k.Conv2D(4, 3, padding="same", strides=2),
                          k.BatchNormalization(), k.Dropout(0.1), k.MaxPooling2D(), k.Flatten(),
                          k.Reshape((2, -1)), k.LSTM(3), k.Dense(1)])
model.compile("adam", "mse", metrics=["mae"])
history = model.fit(x, y, epochs=8, verbose=0, validation_split=0.25).history
assert history["loss"][-1] < history["loss"][0] and "val_mae" in history, history
before = model.predict(x, verbose=0)
with tempfile.TemporaryDirectory() as folder:
    model.save(folder + "/m.keras")
    again = keras.models.load_model(folder + "/m.keras")
assert np.array_equal(before, again.predict(x, verbose=0))
import gpugrad as gg
with gg.GradientTape() as tape:
    loss = keras.ops.mean(keras.ops.square(model(x) - y))
gradients = tape.gradient(loss, model.trainable_variables)
assert all(g.shape == v.shape for g, v in zip(gradients, model.trainable_variables, strict=True))
v = gg.Variable([1.0, 2.0])
optimizer = keras.optimizers.SGD(0.5)
for _ in range(2):
    optimizer.apply_gradients([(gg.ones(2), v)])
assert v.numpy().tolist() == [0.0, 1.0]
print("trained")
"""

STEPS = """
import gpugrad.integrations.keras, keras, numpy as np, tempfile
import gpugrad as gg
from keras import ops
k = keras.layers
x = np.random.randn(32, 6).astype("float32")
model = keras.Sequential([keras.Input((6,)), k.Dense(8), k.Dropout(0.5), k.Dense(1)])
model.layers[0].enable_lora(2)
model.compile("adam", "mse")
with gg.GradientTape() as tape:
    y = model(x, training=True)
assert all(g is not None for g in tape.gradient(y, model.trainable_weights))
@gg.function
def step(x):  # draws for the dropout in a trace
    with gg.GradientTape() as tape:
        loss = ops.mean(model(x, training=True) ** 2)
    weights = model.trainable_weights
    model.optimizer.apply(tape.gradient(loss, weights), weights)
    return loss
losses = [float(step(x)) for _ in range(9)]
assert len({*losses}) == 9, losses
assert len(model.optimizer.variables) == 2 + 2 * len(model.trainable_weights)
with tempfile.TemporaryDirectory() as folder:  # LoRA is merged into the kernel in the file
    model.save(folder + "/m.keras")
    model.save_weights(folder + "/m.weights.h5")
    again = keras.models.load_model(folder + "/m.keras")
    np.testing.assert_allclose(model(x), again(x), 1e-4, 1e-5)
    again.load_weights(folder + "/m.weights.h5")
    np.testing.assert_allclose(model(x), again(x), 1e-4, 1e-5)

class Own(keras.Model):  # has no call()
    def __init__(self):
        super().__init__()
        self.inner = keras.Sequential([keras.Input((6,)), k.Dense(1, activity_regularizer="l2")])
    def train_step(self, x):
        with gg.GradientTape() as tape:
            loss = ops.mean(self.inner(x) ** 2) + sum(self.inner.losses)
        weights = self.inner.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return {"loss": loss}
own = Own()
own.compile("sgd")
own.fit(gg.data.DataLoader(gg.data.Arrays(x), batch_size=8), epochs=2, verbose=0)
assert not own.losses or np.isfinite(float(own.losses[0]))

def gradient(f, *xs):
    xs = [gg.constant(np.float32(x)) for x in xs]
    with gg.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return [g.numpy().tolist() for g in tape.gradient(y, xs)]
loss = lambda x: ops.binary_crossentropy(ops.ones(3), x, from_logits=True)
assert np.allclose(gradient(loss, [-100, 0, 100]), [[-1, -0.5, 0]])
assert np.allclose(gradient(ops.sigmoid, [-200, 0, 200]), [[0, 0.25, 0]])
assert gradient(ops.relu, [-1, 0, 1]) == [[0, 0, 1]]
put = lambda x, u: ops.scatter_update(x, [[1], [1], [0]], u, reduction="max")
assert gradient(put, [2, 0, 5], [1, 4, 1]) == [[1, 0, 1], [0, 1, 0]]
@ops.custom_gradient
def product(a, b):
    return a * b, lambda upstream: (upstream * 7, None)
assert gradient(lambda a: product(a, ops.ones(2)), [1, 2]) == [[7, 7]]
class Unbuilt(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = k.Dense(2)
    def call(self, x):
        return self.dense(x)
for method in ("predict", "predict_on_batch", "evaluate", "fit"):
    model = Unbuilt()
    model.compile("sgd", "mse")
    arrays = [x] if "predict" in method else [x, x[:, :2]]
    getattr(model, method)(*arrays, **({} if "on_batch" in method else {"verbose": 0}))
    assert all(v._value is not None for v in model.variables), method
    for v in model.variables:
        v.assign(v * 0)
    assert not model.predict(x, verbose=0).any()
outside = ops.image.map_coordinates(ops.ones((4, 4)), [[1e30, 1], [np.nan, 2]], 1)
assert outside.numpy().tolist() == [0, 1]
print("trained")
"""

INSTALLED = """
import gpugrad.compat.tf
gpugrad.compat.tf.install()
import keras, tempfile, tensorflow as tf
from tensorflow.keras.layers import Dense
assert keras.backend.backend() == "gpugrad"
assert tf.losses.MeanSquaredError is keras.losses.MeanSquaredError
assert tf.keras.losses.MSE([1.0, 2.0], [1.0, 4.0]) == 2  # a name that Keras 3 itself dropped
model = tf.keras.Sequential([tf.keras.Input((2,)), Dense(1)])
with tempfile.TemporaryDirectory() as folder:
    model.save(folder + "/m.keras")
    again = tf.keras.models.load_model(folder + "/m.keras")
    model.compile("adam", "mse")
    model.fit(tf.ones((4, 2)), tf.ones((4, 1)), verbose=0)
    saved = tf.train.Checkpoint(net=model, optimizer=model.optimizer).save(folder + "/c")
    kernel = tf.Variable(tf.zeros((2, 1)))
    dense = tf.train.Checkpoint(kernel=kernel)
    status = tf.train.Checkpoint(net={"layers": [None, dense]}).restore(saved)
    names = [name for name, _ in tf.train.list_variables(saved)]
    assert (kernel == model.layers[-1].kernel.value).numpy().all(), names
    assert sum("optimizer/" in name for name in names) == 6, names
    again = model
assert (again(tf.ones((1, 2))) == model(tf.ones((1, 2)))).numpy().all()
print("trained")
"""


@needs_keras
@pytest.mark.slow
@pytest.mark.parametrize("program", [TRAINING, STEPS, INSTALLED], ids=["fit", "steps", "tf"])
def test_a_model_trains_and_is_saved(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.endswith("trained\n"), done.stderr[-2000:]


def test_without_keras_the_error_says_what_to_install():
    program = (
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'keras' else find(name, *rest)\n"
        "import gpugrad.integrations.keras"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install keras==3.15" in done.stderr


def test_after_keras_it_is_too_late():
    program = (
        "import sys, types; sys.modules['keras'] = types.ModuleType('keras')\n"
        "import gpugrad.integrations.keras"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "Import this module before" in done.stderr
