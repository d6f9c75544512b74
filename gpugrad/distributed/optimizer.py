"""An optimizer whose gradients are means over all ranks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.autodiff.scaled_losses import keep_mark
from gpugrad.core import devices
from gpugrad.core.arguments import COUNT, one_of, takes
from gpugrad.core.backend import BFLOAT16
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.distributed.blocks import ShardedParameters
from gpugrad.distributed.buckets import Averager
from gpugrad.distributed.sharded import ShardedOptimizer
from gpugrad.distributed.world import World, world
from gpugrad.errors import ArgumentError, DistributedError, saying_where
from gpugrad.ops.random.generator import default_generator
from gpugrad.optim.checks import Gradient, check_condition, check_gradient
from gpugrad.optim.loss_scale import LossScaleOptimizer
from gpugrad.optim.optimizer import Optimizer as Inner
from gpugrad.optim.state import flatten_variables
from gpugrad.trace.array import current_trace
from gpugrad.trace.tracing import Tracing

_COMPRESSED = {None: None, "bfloat16": BFLOAT16, "float16": np.dtype("float16")}


class Optimizer:
    """An optimizer that steps on all ranks alike, with the means of their gradients.

    Each rank computes gradients of its own data; `tape.gradient` stays local. They become means
    where they enter the optimizer, before it clips, accumulates, skips or divides by a loss scale,
    so that all ranks decide alike. In `gg.function` that is part of the program.

    At the start, the Variables of all ranks get the values of rank 0, and from then on each rank
    draws its own random numbers.

    Args:
        inner: an optimizer of `gg.optim`, a `LossScaleOptimizer` too. ``accumulate=k``
            communicates once in k calls.
        model: a Module, or nested lists of Variables: all that any rank will update. Names, shapes
            and dtypes are the same on all ranks.
        bucket_bytes: gradients travel in groups of about so many bytes.
        compress: ``"bfloat16"`` or ``"float16"`` halves the bytes of float32 gradients on their
            way, and rounds them.
        shard: ``"optimizer"`` lets each rank keep the averages of a part of the elements, and step
            it: a rank of n has 1/n of them. LAMB, LARS, Adafactor and Muon, which read whole
            Variables, deal those out. ``"parameters"`` lets each rank keep a part of the Variables
            of `model` too, a Module: the Modules in its attributes and lists run on the whole
            ones, which they gather while they run, forward and backward, so that all ranks call
            them alike, on equally many examples. Variables that the model itself holds, or that
            two such Modules share, stay whole. `state_dict` is still that of one process; all
            ranks call it. `gg.train.Checkpoints` saves all of this.

    Raises:
        ArgumentError: `inner` is no optimizer, or is wrapped already; there are no Variables.
        DistributedError: the models of the ranks differ, or `init` was not called.

    >>> model = gg.nn.Dense(3, 1)
    >>> optimizer = gg.distributed.Optimizer(gg.optim.SGD(0.1), model)
    >>> with gg.GradientTape() as tape:
    ...     loss = gg.mean(model(gg.ones((2, 3))) ** 2)
    >>> variables = model.trainable_variables
    >>> optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    >>> optimizer.iterations
    1
    """

    takes_weight = True
    """Whether `apply_gradients` takes ``weight=``: `gg.train.fit` asks."""

    @saying_where
    @takes(bucket_bytes=COUNT, compress=one_of("bfloat16", "float16", None))
    @takes(shard=one_of("optimizer", "parameters", None))
    def __init__(
        self,
        inner: Any,
        model: Any,
        bucket_bytes: int = 25 << 20,
        compress: str | None = None,
        shard: str | None = None,
    ) -> None:
        self.name = f"distributed.{type(self).__name__}"
        if not isinstance(inner, (Inner, LossScaleOptimizer)):
            wrapped = " which is distributed already" if isinstance(inner, Optimizer) else ""
            raise ArgumentError(
                f"{self.name}: inner must be an optimizer of gg.optim, got a "
                f"{type(inner).__name__}{wrapped}."
            )
        self.inner, self._world = inner, world()
        self._variables = flatten_variables(model)
        if not self._variables:
            raise ArgumentError(f"{self.name}: the model has no trainable Variables.")
        self._places = {v._id: k for k, v in enumerate(self._variables)}
        self._accumulates = isinstance(inner, Inner) and inner.accumulate > 1
        self._weight: float | None = None  # of the calls since the last step, with `accumulate`
        if self._accumulates:
            cast(Inner, inner).average = self._average_sums
        self._sharded: ShardedOptimizer | ShardedParameters | None = None
        if self._world.size > 1:
            _compare(self.name, self._world, model, self._variables)
            for v in self._variables:
                text, own = f"broadcast of '{v.name}'", devices.copy_array(v._data)
                v.assign(wrap(self._world.run(text, "broadcast", own, 0)))
            random = default_generator()
            random.state = random.fold_in(self._world.rank).state
        if shard is not None:
            if not isinstance(inner, Inner) or self._accumulates or compress is not None:
                raise ArgumentError(
                    f"{self.name}: shard= goes without a loss scale, accumulate= and compress=."
                )
            kind = ShardedOptimizer if shard == "optimizer" else ShardedParameters
            self._sharded = kind(self.name, inner, self._variables, self._world, model)
        places = getattr(self._sharded, "places", None)
        self._average = Averager(self._variables, bucket_bytes, _COMPRESSED[compress], places)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # of a copy that has no attributes yet
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def learning_rate(self) -> Any:
        """The learning rate of the inner optimizer."""
        return self.inner.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self.inner.learning_rate = value

    def __repr__(self) -> str:
        return f"{self.name}({self.inner!r}, {self._world!r})"

    # -- stepping

    @saying_where
    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Gradient | None, Variable]],
        *,
        weight: Any = None,
        when: Any = True,
    ) -> None:
        """Step with the means over ranks of gradients; all ranks call it equally often.

        Args:
            grads_and_vars: pairs, as for the inner optimizer. Those of a rank may lack Variables,
                or have None: the mean counts them as 0. A Variable is left out if no rank has a
                gradient. In `gg.function` all ranks have gradients of the same Variables.
            weight: of this rank's gradients in the means: the number of examples or tokens that
                its loss is a mean of, a number or a Tensor of one element. A rank without data
                passes 0, and its gradients do not count, whatever they are. None is 1.
            when: whether to step; all ranks skip if one does.

        Raises:
            ArgumentError: a Variable is not part of the model; the sum of all weights is not above
                0; a weight is negative; `weight` with an optimizer that accumulates in a traced
                function. Also raises what the inner optimizer raises.
        """
        grads = self._in_order(grads_and_vars)
        weight = _checked_weight(self.name, weight)
        if not self._accumulates:
            self._reduced(grads, 1.0 if weight is None else weight, when)
        elif weight is None:
            self._step(grads, when)
        elif current_trace() is not None or isinstance(weight, Tensor):
            raise ArgumentError(
                f"{self.name}: weight= of an optimizer with accumulate= must be a number, and the "
                "step eager: the sum of weights is counted on the host."
            )
        else:
            self._weight = (self._weight or 0.0) + weight
            self._step([None if g is None or not weight else g * weight for g in grads], when)

    def _reduced(self, grads: list[Any], weight: Any, when: Any) -> None:
        """Step with the means over ranks."""
        if when is not True and not isinstance(when, Tensor):
            when = bool(check_condition(self.name, when).numpy().reshape(()))
        if isinstance(self._sharded, ShardedParameters):
            places = self._sharded.places
            if any(g is None and k not in places for k, g in enumerate(grads)):
                raise ArgumentError(
                    f"{self.name}: with shard='parameters' each rank needs a gradient of each "
                    "Variable, so it needs data: use batches that the ranks divide evenly."
                )
            whole = [g if k in places else None for k, g in enumerate(grads)]
            means, when = self._means(whole, weight, when)
            self._sharded.step(grads, means, when)
        elif self._sharded is not None:
            with recording_stopped(keep=Tracing):
                dense = [g.to_dense() if isinstance(g, IndexedSlices) else g for g in grads]
            share, steps, _ = self._average.header(dense, weight, when)
            self._sharded.step(dense, share, steps)
        elif self._world.size == 1 and not isinstance(weight, Tensor) and weight > 0:
            self._step(grads, when)
        else:
            self._step(*self._means(grads, weight, when))

    def _step(self, grads: Sequence[Any], when: Any) -> None:
        pairs = [(g, v) for g, v in zip(grads, self._variables, strict=True) if g is not None]
        options = {} if when is True else {"when": when}
        if pairs or not self._accumulates or current_trace() is not None:
            self.inner.apply_gradients(pairs, **options)
        else:  # a rank without data counts the call
            cast(Inner, self.inner)._take([], when)

    def _in_order(self, grads_and_vars: Any) -> list[Any]:
        """The gradients of all Variables of the model, checked."""
        grads: list[Any] = [None] * len(self._variables)
        for g, v in grads_and_vars:
            k = self._places.get(getattr(v, "_id", -1))
            if k is None:
                raise ArgumentError(
                    f"{self.name}: '{getattr(v, 'name', v)}' is not a Variable of the model that "
                    "this optimizer was made for."
                )
            if grads[k] is not None:
                raise ArgumentError(f"{self.name}: the Variable '{v.name}' is repeated.")
            if isinstance(g, IndexedSlices) and current_trace() is not None:
                grads[k] = IndexedSlices(g.values, g.indices, v.shape)  # its indices have no values
            elif g is not None:
                grads[k] = check_gradient(self.name, g, v)
        return grads

    def _means(self, grads: Sequence[Any], weight: Any, when: Any) -> tuple[list[Any], Any]:
        """The means over ranks, and whether all ranks step."""
        with recording_stopped(keep=Tracing):
            means, steps = self._average(grads, weight, when)
        for old, new in zip(grads, means, strict=True):
            keep_mark(old, new)
        return means, steps

    def _average_sums(self, pairs: Sequence[Any], when: Any) -> tuple[list[Any], Any]:
        """Means over ranks of what the inner optimizer has accumulated; called by its step."""
        grads, total, self._weight = self._in_order(pairs), self._weight, None
        calls = cast(Inner, self.inner).accumulate
        if total is not None:
            with recording_stopped():
                grads = [g * (calls / total) if g is not None and total else None for g in grads]
        weight = 1.0 if total is None else total
        if self._world.size > 1 or not weight:
            grads, when = self._means(grads, weight, when)
        variables = zip(grads, self._variables, strict=True)
        return [(g, v) for g, v in variables if g is not None], when

    def minimize(self, loss: Callable[[], Tensor], var_list: Any = None) -> Tensor:
        """Take one step that makes the mean over ranks of `loss` smaller; return this rank's loss.

        Args:
            loss: a function without arguments that computes the loss.
            var_list: as for the inner optimizer.

        >>> v = gg.Variable(4.0)
        >>> optimizer = gg.distributed.Optimizer(gg.optim.SGD(0.25), [v])
        >>> print(optimizer.minimize(lambda: v * v), v.value())
        16.0 2.0
        """
        kind = LossScaleOptimizer if isinstance(self.inner, LossScaleOptimizer) else Inner
        return kind.minimize(cast(Any, self), loss, var_list)

    def state_dict(self, names: Mapping[str, Variable] | None = None) -> dict[str, Tensor]:
        """The state of the inner optimizer, which is the same on all ranks."""
        return (self._sharded or self.inner).state_dict(names)

    def shards(self, names: Mapping[str, Variable] | None = None) -> dict[str, Any] | None:
        """The state that this rank has a part of, for `gg.train.Checkpoints`, or None."""
        return None if self._sharded is None else self._sharded.shards(names)

    def load_state_dict(
        self, state: Mapping[str, Any], names: Mapping[str, Variable] | None = None
    ) -> None:
        """Load a state that `state_dict` returned, on all ranks."""
        (self._sharded or self.inner).load_state_dict(state, names)


def _checked_weight(name: str, weight: Any) -> Any:
    """None, a number of at least 0, or a Tensor of one element."""
    if weight is None:
        return None
    if isinstance(weight, Tensor) and current_trace() is not None:
        return check_condition(name, weight)
    try:
        number = float(weight)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ArgumentError(
            f"{name}: weight must be a number of examples, 0 or above, got {weight!r:.60}."
        )
    return number


def _compare(name: str, world: World, model: Any, variables: Sequence[Variable]) -> None:
    """DistributedError if the ranks have other Variables than rank 0."""
    named = getattr(model, "named_variables", None)
    paths = {v._id: path for path, v in named()} if named is not None else {}
    # names that the library has made up count Variables, also those that only one rank has made
    own = [(paths.get(v._id, ""), v.shape, str(v.dtype)) for v in variables]
    version = sys.modules["gpugrad"].__version__
    versions, models = zip(*world.gather((version, own)), strict=True)
    if len({*versions}) > 1:
        raise DistributedError(f"{name}: the ranks run different versions of gpugrad: {versions}.")
    for rank, other in enumerate(models):
        if other != models[0]:
            pairs = list(zip(other, models[0], strict=False))
            k = next((k for k, (a, b) in enumerate(pairs) if a != b), len(pairs))
            first, second = (m[k] if k < len(m) else "missing" for m in (models[0], other))
            raise DistributedError(
                f"{name}: the models differ: Variable {k} is {first} on rank 0, and {second} on "
                f"rank {rank}. Build the same model on all ranks."
            )
