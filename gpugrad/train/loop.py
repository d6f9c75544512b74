"""The training loop: epochs of steps, validation, and what callbacks see of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import nest
from gpugrad.core.arguments import COUNT, FLAG, FUNCTION, WHOLE, a_function, list_of, takes
from gpugrad.core.backend import TENSOR
from gpugrad.core.format import format_html
from gpugrad.core.known_as import answering
from gpugrad.core.ranks import ranks
from gpugrad.core.settings import training
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.cuda import prefetch_to_device
from gpugrad.data.datasets import Arrays, Windows
from gpugrad.errors import ArgumentError, GpugradError, NumericsError
from gpugrad.function import function
from gpugrad.nn.module import Module
from gpugrad.train.callbacks import Callback, Progress
from gpugrad.train.metrics import Mean, Metric, mean_of, sums_of_mean
from gpugrad.train.signals import SignalsBetweenSteps

Array = np.ndarray[Any, Any]


class _MetricSums(dict[str, Tensor]):
    """Sums by the metric's name, which the step of a model returns."""


class Sums:
    """Sums of metrics over an epoch; steps' results are read from the device when asked."""

    def __init__(self, metrics: Sequence[Metric], optimizer: Any = None) -> None:
        self._results = {metric.name: metric.result for metric in metrics}
        inner = getattr(optimizer, "inner_optimizer", None)  # of a loss scale, which skips, too
        self.skips = inner is not None or getattr(optimizer, "skip_nonfinite", False)
        self.totals: dict[str, Array] = {}
        self._waiting: list[tuple[Any, int]] = []

    def add(self, result: Any, n: int) -> None:
        """Add what a step returned for a batch of `n` examples: sums, or means over the batch."""
        self._waiting.append((result, n))

    def read(self) -> dict[str, float]:
        """The metrics so far."""
        for result, n in self._waiting:
            named = result if isinstance(result, Mapping) else {"loss": result}
            if self.skips and not _is_finite(tensor(named.get("loss", 0.0))):
                self.totals.setdefault("loss", np.zeros(2))  # of no examples: the mean is NaN
                continue  # the optimizer has skipped the step
            for name, value in named.items():
                if isinstance(result, _MetricSums):
                    values = np.asarray(tensor(value).numpy(), np.float64)
                else:
                    what = f"fit: the step must return a loss or a dict of numbers, but {name!r}"
                    values = np.array([_number(what, value) * n, n])
                self.totals[name] = self.totals.get(name, 0.0) + values
        self._waiting.clear()
        totals = self.of_all_ranks().items()
        return {n: float(self._results.get(n, mean_of)(t)) for n, t in totals}

    def of_all_ranks(self) -> dict[str, Array]:
        """The sums over ranks."""
        totals: dict[str, Any] = {}
        for own in ranks.gather(self.totals):
            for name, values in own.items():
                totals[name] = totals.get(name, 0.0) + values
        return totals


def _number(what: str, value: Any) -> float:
    """A number of a step or a callback, as float."""
    try:
        array = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
        if array.dtype.kind not in "cSUO":
            return float(array.item())
    except (TypeError, ValueError, GpugradError):
        pass
    raise ArgumentError(f"{what} is {value!r:.80}.")


class Run:
    """A training run, as callbacks see it and as `fit` returns it.

    Attributes:
        epochs: the number of epochs to train.
        epoch: the number of epochs that have ended.
        step: the number of steps taken.
        batch: the number of steps taken in the current epoch.
        logs: numbers of the current epoch by name; after its end also those of the validation,
            whose names begin with ``val_``.
        history: the logs of each epoch that has ended.
        model, optimizer, data: as passed to `fit`, or None.
        interrupted: whether Ctrl-C, or another signal, ended the run.
        in_step: whether a step is running, or a second Ctrl-C has broken one off.

    >>> run = gg.train.fit(lambda x: gg.sum(x), [np.ones(2)] * 3, epochs=2, progress=False)
    >>> run.epoch, run.step, run.history[-1]["loss"]
    (2, 6, 2.0)
    """

    @takes(epochs=WHOLE)
    def __init__(
        self,
        epochs: int,
        model: Module | None = None,
        optimizer: Any = None,
        metrics: Sequence[Metric] = (),
    ) -> None:
        self.epochs, self.model, self.optimizer = epochs, model, optimizer
        self.epoch = self.step = self.batch = 0
        self.steps_per_epoch: int | None = None
        self.data: Any = None
        self.logs: dict[str, float] = {}
        self.history: list[dict[str, float]] = []
        self.stopped = self.interrupted = self.in_step = False
        self._sums = Sums(metrics, optimizer)

    def stop(self) -> None:
        """End the run after this epoch; in `begin_epoch`, before it."""
        self.stopped = True

    def state(self) -> dict[str, Any]:
        """The position for `load_state`, also in the middle of an epoch; JSON can hold it.

        Raises:
            NumericsError: the loss is NaN or infinite, so the weights are not worth saving.
        """
        self.logs = self.logs | self._sums.read()  # a new dict: the old one is in the history
        if not self._sums.skips:
            _check_loss(self, None)
        totals = {name: t.tolist() for name, t in self._sums.of_all_ranks().items()}
        names = "epoch", "step", "batch", "history"
        return {**{name: getattr(self, name) for name in names}, "totals": totals}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue where another run was."""
        self.epoch, self.step, self.batch = state["epoch"], state["step"], state["batch"]
        self.history = list(state["history"])
        self.logs = dict(self.history[-1]) if self.history else {}
        totals = {} if ranks.rank else state["totals"]  # of all ranks, so of one from now on
        self._sums.totals = {name: np.asarray(t) for name, t in totals.items()}

    def __repr__(self) -> str:
        logs = ", ".join(f"{name} {value:.4g}" for name, value in self.logs.items())
        return f"Run(epoch {self.epoch} of {self.epochs}, step {self.step}: {logs})"

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for logs in self.history for name in logs))
        rows = [["epoch", *names]]
        for epoch, logs in enumerate(self.history, 1):
            rows.append([str(epoch), *(f"{logs[n]:.4g}" if n in logs else "" for n in names)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.rjust, row, widths)) for row in rows)
        title = f"Run: epoch {self.epoch} of {self.epochs}, step {self.step}"
        return format_html(title, "\n".join(lines))


@takes(epochs=WHOLE, log_every=COUNT, progress=FLAG)
def fit(
    step: Callable[..., Any] | tuple[Module, Callable[[Any, Any], Any]],
    data: Iterable[Any],
    epochs: int = 1,
    *,
    optimizer: Any = None,
    metrics: Sequence[Metric] = (),
    validation: Iterable[Any] | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
    log_every: int = 10,
) -> Run:
    """Train: call a step for each batch of each epoch.

    Args:
        step: a pair (model, loss function of outputs and labels), which is traced with the
            optimizer's step; or a function of a batch that takes the step itself and returns the
            loss, or a dict of numbers by name.
        data: batches, such as a `gg.data.DataLoader`; iterated over once for each epoch. The parts
            of a tuple or list become arguments; for a model, the last part is the labels.
        epochs: number of epochs.
        optimizer: a `gg.optim` optimizer, for a model.
        metrics: metrics of outputs and labels, for a model.
        validation: batches on which a model is evaluated after each epoch.
        callbacks: called at the start and the end of the run, of epochs and of steps, in this
            order.
        progress: whether to show a progress bar (by tqdm, if it is installed).
        log_every: how often losses are read from the device, in steps.

    Returns:
        The run, with its history. Ctrl-C ends it in the same way, with ``interrupted=True``, after
        callbacks have saved what they save. SIGTERM, which batch systems send, does so too, and
        then ends the process with exit code 143. Signal handlers of your own run between two steps,
        and may end the run by raising.

    Raises:
        ArgumentError: there are no batches; arguments do not fit a model or a function.
        NumericsError: a loss is NaN or infinite; the message names Variables that are, too. With
            an optimizer that skips such steps, only if all of them are.

    >>> x = np.linspace(-1, 1, 64, dtype="float32")[:, None]
    >>> data = gg.data.DataLoader(gg.data.Arrays(x, 3 * x), batch_size=16)
    >>> model, optimizer = gg.nn.Dense(1, 1), gg.optim.SGD(0.2)
    >>> run = gg.train.fit((model, gg.mse), data, epochs=60, optimizer=optimizer, progress=False)
    >>> round(model.kernel.item(), 2)
    3.0
    """
    model, metrics = None, list_of(Metric)("fit", "metrics", metrics)
    measured = metrics
    if isinstance(step, tuple):
        model, loss = _pair(step)
        step, measured = _step_of(model, loss, optimizer, metrics), [Mean(loss, "loss"), *metrics]
    elif optimizer is not None or metrics or validation is not None:
        raise ArgumentError(
            "fit: optimizer, metrics and validation go with a pair (model, loss). A step of your "
            "own applies its optimizer and returns its metrics itself; validate in a callback."
        )
    else:
        a_function("a function or (model, loss)")("fit", "step", step)
    run = Run(epochs, model, optimizer, measured)
    run.data, run.steps_per_epoch = data, _count_batches(data)
    _check_names("fit", measured)
    evaluated = _evaluation(model, measured)
    listeners = list_of(Callback)("fit", "callbacks", callbacks)
    listeners += [Progress()] if progress else []
    listeners = [c for c in listeners if c.on_every_rank or not ranks.rank]
    with SignalsBetweenSteps(run) as signals:
        try:
            for callback in listeners:
                callback.begin(run)
            while run.epoch < run.epochs and not (run.stopped or run.interrupted):
                if not _epoch(run, step, data, listeners, log_every, signals):
                    break
                if model is not None:
                    average_statistics(model)
                if validation is not None:
                    values = evaluated(validation)
                    run.logs.update({f"val_{name}": value for name, value in values.items()})
                run.history.append(run.logs)
                run.epoch, run.batch = run.epoch + 1, 0
                for callback in listeners:
                    callback.end_of_epoch(run)
                    about = f"fit: logs must be numbers, but after {type(callback).__name__} "
                    for name, value in run.logs.items():
                        if type(value) is not float:
                            run.logs[name] = _number(f"{about}{name!r}", value)
                signals.deliver()
        except KeyboardInterrupt:
            run.interrupted = True
        finally:
            for callback in reversed(listeners):
                callback.end(run)
    return run


def _count_batches(data: Any) -> int | None:
    """The number of batches, or None if it is not known."""
    try:
        return len(data)
    except (TypeError, GpugradError):  # of a loader of an iterable
        return None


def _on_device(name: str, data: Any) -> Iterator[Any]:
    """The batches on the default device; ArgumentError if there can be none."""
    if not (hasattr(data, "__iter__") or hasattr(data, "__getitem__")):
        raise ArgumentError(f"{name}: data must be an iterable of batches, got {data!r:.60}.")
    if isinstance(data, (Arrays, Windows)):
        raise ArgumentError(
            f"{name}: data must be batches, and {type(data).__name__} has single examples: pass "
            "gg.data.DataLoader(data, batch_size)."
        )
    return prefetch_to_device(data)


_NO_BATCHES = (
    "has no batches. An iterator can be read only once: pass what makes one, such as a list."
)


def _epoch(
    run: Run,
    step: Callable[..., Any],
    data: Iterable[Any],
    callbacks: Sequence[Callback],
    log_every: int,
    signals: SignalsBetweenSteps,
) -> bool:
    """Train the rest of an epoch; returns whether it has ended."""
    start = time.perf_counter()
    if not run.batch:  # else the run continues in the middle of an epoch
        run._sums.totals.clear()
    for callback in callbacks:
        callback.begin_epoch(run)
    run.stopped = ranks.any(run.stopped)
    if run.stopped:
        return False
    batch = None
    for batch in _on_device("fit", data):
        signals.deliver()
        run.interrupted = ranks.any(run.interrupted)
        if run.interrupted:
            return False
        n = _count_examples("fit", batch)
        run.in_step = True
        result = step(*_parts(batch))
        if n:
            run._sums.add(result, n)
        run.step, run.batch = run.step + 1, run.batch + 1
        run.in_step = False
        if run.step % log_every == 0:
            _read(run, batch)
        for callback in callbacks:
            callback.end_of_step(run)
    if not run.batch:
        raise ArgumentError(f"fit: the data {_NO_BATCHES}")
    _read(run, batch)
    run.logs["seconds"] = time.perf_counter() - start
    return True


def _parts(batch: Any) -> Sequence[Any]:
    return batch if isinstance(batch, (tuple, list)) else (batch,)


def _count_examples(name: str, batch: Any) -> int:
    """The length of the first array of a batch; 1 if there is none."""
    leaves = nest.flatten(batch)
    shapes = (x.shape if type(x) is Tensor else np.shape(x) for x in leaves)  # NumPy asks all ops
    length = next((shape[0] for shape in shapes if shape), 1)
    if not length and ranks.size == 1:  # else the other ranks have some
        shown = [np.shape(x) for x in leaves]
        raise ArgumentError(f"{name}: a batch has no examples: its parts have the shapes {shown}.")
    return length


def _read(run: Run, batch: Any) -> None:
    """Read the numbers of the epoch so far, and check the loss."""
    run.logs = run._sums.read()
    _check_loss(run, batch)


def _check_loss(run: Run, batch: Any) -> None:
    loss = run.logs.get("loss", 0.0)
    if not np.isfinite(loss):
        raise NumericsError(
            f"fit: the loss is {loss} at step {run.step}, in epoch {run.epoch + 1}. "
            f"{_what_is_not_finite(run, batch)}`with gg.debug.nans():` around fit names the op "
            "where it began, unless the data held it; a lower learning rate or clipping "
            "(global_clipnorm=) may prevent it."
        )


def _what_is_not_finite(run: Run, batch: Any) -> str:
    """A sentence about the last batch or else the model; "" if both are finite."""
    if not all(_is_finite(part) for part in nest.flatten(batch) if isinstance(part, Tensor)):
        return "The data of this step hold NaN or infinities. "
    named = run.model.named_variables() if run.model is not None else ()
    names = [name for name, v in named if not _is_finite(v)]
    listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if names[4:] else "")
    return f"By now {listed} of the model hold NaN or infinities. " if names else ""


def _is_finite(t: Tensor) -> bool:
    return bool(TENSOR.all(TENSOR.isfinite(t)))


def _check_names(name: str, metrics: Sequence[Metric]) -> None:
    names = [metric.name for metric in metrics]
    if len(set(names)) < len(names):
        raise ArgumentError(f"{name}: two metrics have one name among {names}: pass name=.")


def _pair(step: tuple[Any, ...]) -> tuple[Module, Any]:
    if len(step) != 2 or not isinstance(step[0], Module) or not callable(step[1]):
        raise ArgumentError(
            f"fit: expected a pair (gg.nn.Module, loss function), got {step!r:.80}."
        )
    return step[0], step[1]


def _step_of(
    model: Module, loss: Callable[[Any, Any], Any], optimizer: Any, metrics: Sequence[Metric]
) -> Callable[..., _MetricSums]:
    if not hasattr(optimizer, "apply_gradients") or isinstance(optimizer, type):
        raise ArgumentError(
            "fit: a pair (model, loss) needs optimizer=, one of gg.optim with apply_gradients, got "
            f"{optimizer!r:.60}."
        )

    weighs = getattr(optimizer, "takes_weight", False)  # of gg.distributed

    @function
    def train_step(*batch: Any) -> dict[str, Tensor]:
        *inputs, labels = _labelled("fit", batch)
        with GradientTape() as tape, training():
            outputs = model(*inputs)
            value = loss(outputs, labels)
            scaled = optimizer.scale_loss(value) if hasattr(optimizer, "scale_loss") else value
        variables = model.trainable_variables
        gradients = tape.gradient(scaled, variables)
        weight = {"weight": _count_examples("fit", batch)} if weighs else {}
        optimizer.apply_gradients(zip(gradients, variables, strict=True), **weight)
        sums = {"loss": sums_of_mean(value, outputs)}
        return sums | {metric.name: metric.sums(outputs, labels) for metric in metrics}

    def step(*batch: Any) -> _MetricSums:
        if weighs and not _count_examples("fit", batch):
            optimizer.apply_gradients((), weight=0)  # takes part in the step of the others
            return _MetricSums()
        return _MetricSums(train_step(*batch))

    return step


def average_statistics(model: Module) -> None:
    """Give what no gradient trains, such as running means, the mean over ranks."""
    if ranks.size > 1:
        ranks.average([v for v in model.variables if not v.trainable and v.dtype.kind == "f"])


def _labelled(name: str, batch: Sequence[Any]) -> Sequence[Any]:
    if len(batch) < 2:
        raise ArgumentError(
            f"{name}: a batch for a model must be a tuple of inputs and labels, got "
            f"{batch!r:.60}. Arrays become batches by "
            "gg.data.DataLoader(gg.data.Arrays(x, labels), batch_size)."
        )
    return batch


@answering
def evaluate(model: Any, data: Iterable[Any], metrics: Sequence[Metric]) -> dict[str, float]:
    """Metrics of a model over batches, in inference mode.

    Args:
        model: the model, or any function of the inputs.
        data: batches of inputs and, as last part, labels.
        metrics: the metrics; a loss is ``gg.train.Mean(loss)``.

    Returns:
        Numbers by the metrics' names.

    Raises:
        ArgumentError: there are no batches.

    >>> data = [(np.ones((2, 3), "float32"), np.zeros(2, int))]
    >>> gg.train.evaluate(lambda x: x, data, [gg.train.Accuracy()])
    {'accuracy': 1.0}
    """
    FUNCTION("evaluate", "model", model)
    metrics = list_of(Metric)("evaluate", "metrics", metrics)
    _check_names("evaluate", metrics)
    return _evaluation(model, metrics)(data)


def _evaluation(
    model: Any, metrics: Sequence[Metric]
) -> Callable[[Iterable[Any]], dict[str, float]]:
    """`evaluate` as a function of the data, which is traced once for all epochs."""

    @function
    def evaluation_step(*batch: Any) -> dict[str, Tensor]:
        *inputs, labels = _labelled("evaluate", batch)
        with training(False):
            outputs = model(*inputs)
        return {metric.name: metric.sums(outputs, labels) for metric in metrics}

    def evaluated(data: Iterable[Any]) -> dict[str, float]:
        sums = Sums(metrics)
        batch = None
        for batch in _on_device("evaluate", data):
            n = _count_examples("evaluate", batch)
            sums.add(_MetricSums(evaluation_step(*_parts(batch))), n)
        if batch is None:
            raise ArgumentError(f"evaluate: the data {_NO_BATCHES}")
        return sums.read()

    return evaluated
