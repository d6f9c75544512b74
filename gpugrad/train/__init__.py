"""Training loops: `fit`, its callbacks, and metrics. All of it can be written by hand.

>>> model = gg.nn.Dense(1, 1)
>>> x = np.linspace(-1, 1, 64, dtype="float32")[:, None]
>>> data = gg.data.DataLoader(gg.data.Arrays(x, 3 * x + 1), batch_size=16, shuffle=True)
>>> run = gg.train.fit(
...     (model, gg.mse), data, epochs=60, optimizer=gg.optim.SGD(0.2), progress=False
... )
>>> round(model.kernel.numpy().item(), 2), round(model.bias.numpy().item(), 2)
(3.0, 1.0)

Without `fit`, that is::

    optimizer = gg.optim.SGD(0.2)

    @gg.function
    def step(x, y):
        with gg.GradientTape() as tape, gg.nn.training():
            loss = gg.mse(model(x), y)
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    for epoch in range(60):
        for x, y in gg.prefetch_to_device(data):
            loss = step(x, y)
        print(epoch, float(loss))
"""

from gpugrad.core.known_as import answer_missing
from gpugrad.train.callbacks import Callback, EarlyStopping, Plot, Progress
from gpugrad.train.checkpoints import Checkpoints
from gpugrad.train.logs import CSVLog, JSONLog, TensorBoard
from gpugrad.train.loop import Run, evaluate, fit
from gpugrad.train.metrics import F1, Accuracy, Mean, Metric, TopK

__all__ = [
    "F1",
    "Accuracy",
    "CSVLog",
    "Callback",
    "Checkpoints",
    "EarlyStopping",
    "JSONLog",
    "Mean",
    "Metric",
    "Plot",
    "Progress",
    "Run",
    "TensorBoard",
    "TopK",
    "evaluate",
    "fit",
]

answer_missing(__name__)


def __dir__() -> list[str]:
    return __all__
