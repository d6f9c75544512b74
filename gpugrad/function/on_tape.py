"""A traced function under a tape: one entry in its log, whose rule is the traced backward pass.

For a second-order gradient the function itself is called again, on Tensors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from copy import copy
from threading import get_ident
from typing import Any

from gpugrad.autodiff.gradients import is_nan
from gpugrad.autodiff.recorder import RecordedCall, recording_stopped
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core.backend import TENSOR, is_array
from gpugrad.core.devices import default_device, full_on_device_of
from gpugrad.core.replaceable import read_together
from gpugrad.core.scopes import Scope, scopes
from gpugrad.core.settings import is_training, training
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.function.differentiate import differentiable, differentiate
from gpugrad.function.plan import Options, planned
from gpugrad.function.signature import Signature
from gpugrad.function.structures import fill_holes
from gpugrad.trace.program import NotMasked, NotReplayable


def _snapshot(leaf: Any) -> Any:
    """A leaf of the arguments that does not change when the user's array or Tensor does."""
    if isinstance(leaf, Variable):
        return leaf
    return copy(leaf) if isinstance(leaf, Tensor) else tensor(leaf) if is_array(leaf) else leaf


class Pair:
    """A forward and a backward program, for one signature under tapes.

    Attributes:
        forward, backward: their replays.
        others: ids of Tensors that are read but are not sources: the function itself must be called
            if a tape knows one of them.
        read: the Variables that are read.
    """

    def __init__(
        self,
        f: Any,
        args: Any,
        keywords: Any,
        wanted: list[Tensor],
        options: Options,
        signature: Signature,
        masks: bool = False,
    ) -> None:
        both = differentiate(f, args, keywords, wanted, signature, options, masks)
        self._options, self._masks = options, masks
        self._nans = 0
        self._masked: Pair | None = None
        self._result, self._variables, self._signature = both.form, both.variables, signature
        self._n_outputs, self._targets = both.n_outputs, both.targets
        self._connected, self.others = both.connected, both.others
        self.read = [variable for variable, _ in both.forward.reads]
        self.forward, self.backward = (
            planned(p, options)[1] for p in (both.forward, both.backward)
        )

    def __call__(
        self, f: Any, arrays: list[Any], args: Any, keywords: Any, wanted: list[Tensor]
    ) -> Any:
        """Replay `f` on arguments whose arrays are `arrays`, and record the call."""
        for v in self._variables:
            v._read()  # so that tapes that watch Variables on first use watch it
        mode, device = is_training(), default_device()
        values = dict(zip([v._id for v in self.read], read_together(self.read), strict=True))
        kept: dict[int, Any] = {}

        def keep(leaf: Any) -> Any:
            return kept.setdefault(id(leaf), _snapshot(leaf))

        args, keywords = self._signature.mapped(keep, args, keywords)
        tensors = [kept[id(x)] for x in wanted]

        def then(call: Callable[[], Any]) -> Any:
            with training(mode), device, Scope(scopes.get(get_ident(), {}) | values):
                return call()

        def again() -> list[Tensor]:
            return then(lambda: differentiable(f(*args, **keywords)))

        def masked(upstream: list[Any], given: Any) -> list[Any]:
            with recording_stopped():
                return then(
                    lambda: self._with_masks(f, args, keywords, tensors)._from_start(
                        self._signature.key(args, keywords)[1], upstream, given
                    )
                )

        name = getattr(f, "__name__", "function")
        sources = [*tensors, *self._variables]
        return fill_holes(self._result, iter(self.replayed(name, arrays, sources, again, masked)))

    def _with_masks(self, f: Any, args: Any, keywords: Any, wanted: list[Tensor]) -> Pair:
        """The pair with masked products; traced when a second gradient is NaN."""
        self._nans += 1
        if self._masked is None:
            if not self._options.is_worth_masking(self._nans):
                raise NotReplayable("its gradients are seldom NaN")
            signature = self._signature
            self._masked = Pair(f, args, keywords, wanted, self._options, signature, masks=True)
        return self._masked

    def _from_start(self, arrays: list[Any], upstream: list[Any], given: Any) -> list[Any]:
        """The gradients by both programs, of leaves of the arguments."""
        held = self.forward(arrays)[self._n_outputs :]
        return self._pulled_back([*held, *upstream], given)

    def replayed(
        self,
        name: str,
        arrays: list[Any],
        sources: list[Tensor],
        again: Callable[[], list[Tensor]],
        masked: Callable[[list[Any], Any], list[Any]] | None = None,
    ) -> list[Tensor]:
        """The Tensors of the result, recorded.

        Args:
            name: the function's name.
            arrays: the leaves of its arguments.
            sources: the Tensors and Variables that gradients are taken with respect to.
            again: calls the function itself on the sources; returns the results that have
                gradients.
            masked: gradients with masked products, from those of the results, for a NaN.
        """
        results = self.forward(arrays)
        outs = [wrap(a) for a in results[: self._n_outputs]]
        held = results[self._n_outputs :]
        kinds = [(outs[k].shape, outs[k].dtype) for k in self._targets]

        def gradients(xp: Any, g: tuple[Any, ...]) -> list[Any]:
            """Gradients from the backward program, or from a tape over another run."""
            upstream = {k: x for k, x in enumerate(g) if x is not None}
            if xp is not TENSOR and not xp.nesting:  # batched arrays are not replayed
                like = next(iter(upstream.values()))
                pairs = zip(g, kinds, strict=True)
                full = [full_on_device_of(like, *kind) if x is None else x for x, kind in pairs]
                with contextlib.suppress(NotReplayable):
                    try:
                        return self._pulled_back([*held, *full], upstream.keys())
                    except NotMasked:
                        if masked is not None:
                            return masked(full, upstream.keys())
            with GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(sources)
                targets = again()
            seeds = [x if isinstance(x, Tensor) else wrap(x) for x in upstream.values()]
            grads = tape.gradient([targets[k] for k in upstream], sources, seeds)
            return [x if x is None or xp is TENSOR else tensor(x)._data for x in grads]

        call = RecordedCall(name, gradients, unused=range(len(kinds)))
        call.record([outs[k] for k in self._targets], sources)
        return outs

    def _pulled_back(self, arrays: list[Any], given: Any) -> list[Any]:
        """The gradients that flow back from the results `given`, by the backward program.

        Raises:
            NotReplayable: one is NaN, or a step of the program says so.
        """
        results = self.backward(arrays)
        if not self._masks and any(map(is_nan, results)):
            raise NotMasked
        grads = iter(results)
        every = [None if of is None else (of, next(grads)) for of in self._connected]
        return [x[1] if x and not x[0].isdisjoint(given) else None for x in every]
