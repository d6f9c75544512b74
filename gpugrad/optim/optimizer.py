"""The base class of optimizers: steps in place."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from gpugrad.autodiff.scaled_losses import marked, scale_of
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core.arguments import COUNT, FLAG
from gpugrad.core.holders import opened
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.known_as import MissingNameError, about, keyword_error
from gpugrad.core.tensor import Tensor
from gpugrad.core.user_code import user_level
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, GpugradWarning, saying_where
from gpugrad.optim.apply_step import ApplyStep
from gpugrad.optim.checks import Gradient, check_condition, check_gradient, check_pairs
from gpugrad.optim.clip import Limits, check_limits
from gpugrad.optim.groups import Group, Options, make_groups
from gpugrad.optim.state import flatten_variables
from gpugrad.optim.step import Schedule, Stepping
from gpugrad.trace.array import current
from gpugrad.trace.profiling import Span, profiles
from gpugrad.trace.tracing import Tracing


class Optimizer(Stepping):
    """Base class of optimizers. A subclass declares its averages, its settings and one formula.

    The formula computes one element of a Variable. NumPy runs it on arrays, and it becomes a loop
    in C and a CUDA kernel, each for all Variables::

        class Signs(gg.optim.Optimizer):
            slots = ("m",)                               # averages, zeros at first
            hyper = gg.optim.ranges(beta=gg.optim.BELOW_1)   # settings that a group may have

            def __init__(self, learning_rate, beta=0.9, **options):
                self.beta = beta
                super().__init__(learning_rate, **options)

            def numbers(self, h, rate, step):            # of a step, computed in float64
                return {"beta": h.beta, "add": 1 - h.beta, "rate": rate}

            def formula(self, xp, s, p, g, m):           # the new (p, *slots)
                m = s.beta * m + s.add * g
                return p - s.rate * xp.sign(m), m

    Args:
        learning_rate: a number, or a function of `iterations` that returns one, such as those in
            `gg.optim.schedules`.
        name: name in messages; the class name if None.
        clipnorm: if not None, each gradient whose Euclidean norm is larger is scaled down to it.
        clipvalue: if not None, elements of gradients are limited to [-clipvalue, clipvalue].
        global_clipnorm: if not None, all gradients of a step are scaled down together so that
            their common norm is at most this. At most one of the three may be set. With
            `LossScaleOptimizer`, gradients are clipped after they were divided by the scale.
        groups: pairs (selector, settings) that give Variables settings of their own; the first
            that selects a Variable counts. A selector is a function of the name and the Variable, a
            shell-style pattern for names, a Module, or a list of Variables. Settings are a dict of
            the optimizer's arguments, such as ``{"weight_decay": 0.0, "learning_rate": 1e-4}``.
            Names are the paths in a Module that was passed to `build`, otherwise those of the
            Variables. May also be a dict of settings by pattern.
        accumulate: the number of calls of `apply_gradients` that make one step, with the mean of
            their gradients. `iterations` counts steps; clipping and `skip_nonfinite` apply to the
            mean.
        skip_nonfinite: whether to skip steps in which a gradient is infinite or NaN. `skipped`
            counts them. On a GPU the host waits for the gradients.

    >>> class Halving(gg.optim.Optimizer):
    ...     def numbers(self, h, rate, step):
    ...         return {"rate": rate}
    ...     def formula(self, xp, s, p, g):
    ...         return (p - s.rate * p,)
    >>> x = gg.Variable(8.0)
    >>> Halving(0.5).apply_gradients([(gg.constant(1.0), x)])
    >>> print(x)
    4.0
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.__module__.startswith("gpugrad.") and "__init__" in vars(cls):
            cls.__init__ = saying_where(cls.__init__)  # type: ignore[method-assign]

    @saying_where
    def __init__(
        self, learning_rate: Schedule, name: str | None = None, **options: Unpack[Options]
    ) -> None:
        super().__init__()
        self.name = name or type(self).__name__
        if unknown := options.keys() - Options.__annotations__.keys():
            own = inspect.signature(type(self)).parameters.values()
            names = [p.name for p in own if p.kind is not p.VAR_KEYWORD]
            error = keyword_error(self.name, [*names, *Options.__annotations__], sorted(unknown))
            raise error or TypeError(f"{self.name}: unexpected keywords {sorted(unknown)}.")
        limits: Limits = {k: options.get(k) for k in Limits.__annotations__}  # type: ignore[assignment]
        check_limits(self.name, limits)
        self.limits: Limits = limits if any(limits.values()) else {}
        """The clipping options that are set."""
        for what, allowed in self.hyper.items():
            setattr(self, what, allowed(self.name, what, getattr(self, what)))
        self.groups: list[Group] = make_groups(self.name, options.get("groups", ()), self.hyper)
        """The groups, without that of all other Variables."""
        self._unused_groups = [g for g in self.groups if isinstance(g.selector, str)]
        for group in self.groups:
            if "learning_rate" in group.settings:
                group.settings["learning_rate"] = self._check_rate(group.settings["learning_rate"])
        self.accumulate = COUNT(self.name, "accumulate", options.get("accumulate", 1))
        self.skip_nonfinite = FLAG(
            self.name, "skip_nonfinite", options.get("skip_nonfinite", False)
        )
        self.learning_rate = learning_rate

    @property
    def learning_rate(self) -> Schedule:
        """The number or function; may be set between steps."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Schedule) -> None:
        self._learning_rate = self._check_rate(value)

    def _check_rate(self, value: Any) -> Schedule:
        if isinstance(value, Variable):
            raise ArgumentError(
                f"{self.name}: the learning rate must be a number or a function, got the Variable "
                f"'{value.name}', whose later values the optimizer would not see. Pass a function "
                "of the number of steps, as lambda _: rate, or set optimizer.learning_rate."
            )
        if hasattr(value, "named_variables") or isinstance(value, (list, tuple, Mapping)):
            raise ArgumentError(
                f"{self.name}: the learning rate must be a number or a function, got a "
                f"{type(value).__name__}. Variables come with their gradients: call "
                "optimizer.apply_gradients(zip(gradients, variables))."
            )
        return value if callable(value) else self._rate(value)

    # -- stepping

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Gradient | None, Variable]], *, when: Any = True
    ) -> None:
        """Update Variables in place from their gradients.

        All gradients are checked before any Variable changes, so an error leaves the model and the
        optimizer unchanged. Tensors read from a Variable earlier keep their values.

        Args:
            grads_and_vars: pairs (gradient, Variable), as ``zip(gradients, variables)``. A
                gradient has the shape, dtype and device of its Variable. IndexedSlices update only
                their rows where rows without a gradient would keep their values: in `SGD` without
                momentum and in `Adagrad`, both without weight decay. Other optimizers make them
                dense. A Variable whose gradient is None is skipped, with a warning (once).
            when: whether to take the step: a bool, or a Tensor of one element. A skipped step is
                not counted. A traced function reads `when` in each run, and on a GPU the host
                waits for it.

        Raises:
            ArgumentError: there are no gradients, all are None, a Variable is repeated, or the
                gradients are those of a scaled loss.
            ShapeError, DTypeError, DeviceError: a gradient does not fit its Variable, or `when`
                does not have one element.

        >>> v = gg.Variable([1.0, 2.0])
        >>> gg.optim.SGD(0.5).apply_gradients([(gg.constant([1.0, 1.0]), v)])
        >>> print(v.value())
        [0.5 1.5]
        """
        pairs, when = self._check(grads_and_vars, when)
        if current.trace is not None:
            self._apply_at_replay(current.trace, pairs, when)
        elif profiles:
            with Span("optimizer", self.name) as span:
                span.nbytes = sum(3 * v.nbytes for _, v in pairs)
                self._take(pairs, when)
        else:
            self._take(pairs, when)

    def _apply_at_replay(self, trace: Tracing, pairs: list[Any], when: Any) -> None:
        """Add the step to the program that is being traced."""
        read = [] if when is True else [when]
        for g, v in pairs:
            if isinstance(g, IndexedSlices):  # checked again in each run
                read += [g.values, g.indices]
            else:
                read.append(check_gradient(self.name, g, v, self._paths.get(v._id)))
        step = ApplyStep(self, pairs, when is not True)
        trace.effect("apply_gradients", step, read, step.variables, undo=self._undo)

    @saying_where
    def minimize(
        self,
        loss: Tensor | Callable[[], Tensor],
        var_list: Any = None,
        tape: GradientTape | None = None,
    ) -> Tensor:
        """Take one step that makes `loss` smaller; return the loss before it.

        Args:
            loss: a function without arguments that computes the loss; or a Tensor, with the
                `tape` that recorded it.
            var_list: Variables to update, possibly in nested lists; or a Module, for its trainable
                Variables. If None, `loss` must be a function, and all trainable Variables that it
                reads are updated.

        Raises:
            ArgumentError: `loss` is a Tensor without a tape or `var_list`. Also raises what
                `apply_gradients` raises.

        >>> v = gg.Variable(4.0)
        >>> optimizer = gg.optim.SGD(0.25)
        >>> print(optimizer.minimize(lambda: v * v), v.value())
        16.0 2.0
        """
        loss = opened(loss)
        if isinstance(loss, Tensor):
            value: Tensor = loss
            if tape is None or var_list is None:
                raise ArgumentError(
                    "minimize: a loss that is a Tensor needs var_list= and the tape= that recorded "
                    "it. Or pass a function that computes the loss."
                )
        else:
            if tape is not None:
                raise ArgumentError(
                    "minimize: drop tape=. A loss that is a function is recorded on its own tape."
                )
            tape = GradientTape()
            with tape:
                value = loss()
        variables = flatten_variables(tape.watched_variables() if var_list is None else var_list)
        if not variables:
            raise ArgumentError(
                "minimize: the loss read no trainable Variable, so there is nothing to update."
            )
        gradients = tape.gradient(value, variables)
        self.apply_gradients(zip(gradients, variables, strict=True))
        return value

    if not TYPE_CHECKING:  # type checkers find misspelt names themselves

        def __getattr__(self, name: str) -> Any:
            message = f"{type(self).__name__} has no attribute {name!r}."
            raise MissingNameError(message, name, lambda: about("an optimizer", name, dir(self)))

        lr = property(fset=lambda self, _: self.__getattr__("lr"))  # it would change nothing

    # -- checking

    def _check(self, grads_and_vars: Any, when: Any) -> tuple[list[tuple[Gradient, Variable]], Any]:
        """The gradients, clipped, and whether to step; a trace checks some of them later."""
        pairs = self._check_pairs(grads_and_vars)
        if marked:
            self._refuse_scaled(pairs)
        if self._unused_groups:
            self._warn_of_unused_groups([v for _, v in pairs])
        if when is not True:
            when = check_condition(self.name, when)
        if self.accumulate == 1 and (self.limits or self.skip_nonfinite):
            pairs, when = self._prepare(pairs, when)
        return (pairs if current.trace is not None else self._check_gradients(pairs)), when

    def _refuse_scaled(self, pairs: Iterable[tuple[Gradient, Variable]]) -> None:
        for g, v in pairs:
            if scale_of(g) is not None:
                raise ArgumentError(
                    f"{self.name}: the gradient of '{v.name}' is that of a scaled loss, so it is "
                    "too large by the scale. Apply it with a LossScaleOptimizer: one for each "
                    "optimizer, which share one gg.optim.LossScale."
                )

    def _check_pairs(self, grads_and_vars: Any) -> list[tuple[Gradient, Variable]]:
        """`check_pairs`, with a warning of Variables without a gradient."""
        pairs, skipped = check_pairs(self.name, grads_and_vars)
        key = tuple(v._id for v in skipped)
        if skipped and key not in self._warned:
            self._warned.add(key)
            names = ", ".join(f"'{v.name}'" for v in skipped)
            warnings.warn(
                f"{self.name}: the gradient of {names} is None, so they are not updated. "
                "tape.explain(loss, variable) says why.",
                GpugradWarning,
                stacklevel=user_level(),
            )
        return pairs

    def _warn_of_unused_groups(self, variables: list[Variable]) -> None:
        """Warn once of patterns that select no Variable."""
        for group in self._unused_groups:
            if not any(group.selects(self.path_of(v), v) for v in variables):
                names = ", ".join(f"'{self.path_of(v)}'" for v in variables[:6])
                warnings.warn(
                    f"{self.name}: the group {group.selector!r} selects none of the Variables "
                    f"{names}... Call optimizer.build(model) first if it is for paths in a Module.",
                    GpugradWarning,
                    stacklevel=user_level(),
                )
        self._unused_groups = []

    def __repr__(self) -> str:
        rate = self._learning_rate
        shown = getattr(rate, "__name__", repr(rate)) if callable(rate) else repr(rate)
        skipped = f", skipped={self.skipped}" if self.skipped else ""
        name = type(self).__name__
        return f"{name}(learning_rate={shown}, iterations={self.iterations}{skipped})"
