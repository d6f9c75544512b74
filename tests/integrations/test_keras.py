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


@needs_keras
@pytest.mark.slow
def test_a_model_trains_and_is_saved():
    done = subprocess.run([sys.executable, "-c", TRAINING], capture_output=True, text=True)
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
