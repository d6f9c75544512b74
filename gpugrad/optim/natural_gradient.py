"""Natural gradients of Gaussian posteriors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core.arguments import ABOVE_0, list_of, one_of, takes
from gpugrad.core.backend import TENSOR
from gpugrad.core.convert import constant
from gpugrad.core.tensor import Tensor
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, ShapeError, SingularMatrixError, saying_where
from gpugrad.optim.checks import check_count, check_empty, check_gradient, take_array
from gpugrad.optim.step import Schedule
from gpugrad.trace.array import current_trace

_Pair = tuple[Variable, Variable]


class NaturalGradient:
    """Steps of Gaussian posteriors along the natural gradient, as GPflow's optimizer of that name.

    A posterior N(m, S) is a pair of Variables: its mean, and the lower Cholesky factor L of its
    covariance S = L L^T, or the covariance itself. A step adds ``-learning_rate`` times the
    gradient of the loss with respect to the expectation parameters (m, S + m m^T) to the natural
    parameters (inv(S) m, -inv(S) / 2). With the gradients g_m and g_S of the loss this is::

        inv(S) = inv(S) + 2 * learning_rate * g_S
        m      = m - learning_rate * S @ g_m            # with the new S

    For a conjugate likelihood one step with learning rate 1 is exact: Salimbeni, Eleftheriadis and
    Hensman 2018, "Natural Gradients in Practice". g_S follows from the gradient of L by the
    backward rule of the Cholesky decomposition, and no matrix is inverted.

    Args:
        learning_rate: a number above 0, or a function of the number of steps taken so far.
        of: what the second Variable of a pair is: ``"cholesky"`` or ``"covariance"``.

    >>> mean, factor = gg.Variable([0.0, 0.0]), gg.Variable(gg.eye(2))
    >>> def loss():  # KL divergence to N(1, 4), up to a constant
    ...     log_det = gg.sum(gg.log(gg.diagonal(factor)))
    ...     return gg.sum(factor**2) / 8 + gg.sum((mean - 1.0) ** 2) / 8 - log_det
    >>> _ = gg.optim.NaturalGradient(1.0).minimize(loss, [(mean, factor)])
    >>> print(mean.value(), gg.diagonal(factor))
    [1. 1.] [2. 2.]
    """

    @saying_where
    @takes(of=one_of("cholesky", "covariance"))
    def __init__(
        self,
        learning_rate: Schedule = 0.1,
        of: Literal["cholesky", "covariance"] = "cholesky",
        name: str | None = None,
    ) -> None:
        self.name = name or type(self).__name__
        if not callable(learning_rate):
            learning_rate = ABOVE_0(self.name, "learning_rate", learning_rate)
        self.learning_rate, self.of = learning_rate, of
        self.iterations = 0
        """The number of steps taken."""

    def minimize(self, loss: Callable[[], Tensor], pairs: Iterable[_Pair]) -> Tensor:
        """Take one step that makes `loss` smaller; return the loss before it.

        Args:
            loss: a function without arguments that computes the loss.
            pairs: a mean of shape (..., n), and a Cholesky factor or covariance of (..., n, n).

        Raises:
            As `apply_gradients`.
        """
        pairs = list(pairs)
        with GradientTape() as tape:
            value = loss()
        gradients = tape.gradient(value, [list(pair) for pair in pairs])
        self.apply_gradients(zip(gradients, pairs, strict=True))
        return value

    def apply_gradients(self, grads_and_pairs: Iterable[tuple[Any, _Pair]]) -> None:
        """Update pairs of Variables from their gradients, in `gg.function` too.

        Args:
            grads_and_pairs: ``((gradient of mean, gradient of factor), (mean, factor))`` for each
                posterior.

        Raises:
            ShapeError: a factor is not (..., n, n) for a mean (..., n), or a gradient has another
                shape than its Variable.
            ArgumentError: a gradient is None, or the step would make a covariance indefinite.
        """
        flat: list[Any] = []
        variables: list[Variable] = []
        for gradients, pair in self._pairs(grads_and_pairs):
            mean, factor = pair
            if mean.ndim < 1 or factor.shape != (*mean.shape, mean.shape[-1]):
                raise ShapeError(
                    f"{self.name}: '{mean.name}' of shape {mean.shape} needs a matrix of shape "
                    f"(..., n, n), '{factor.name}' has {factor.shape}."
                )
            for g, v in zip(gradients, pair, strict=True):
                if g is None:
                    raise ArgumentError(f"{self.name}: the gradient of '{v.name}' is None.")
                flat.append(check_gradient(self.name, g, v))
            variables += [mean, factor]
        if not variables:
            raise ArgumentError(f"{self.name}: got no gradients.")

        def step(*gradients: Tensor) -> list[Tensor]:
            with recording_stopped():
                self._step(variables, gradients)
            return []

        if (trace := current_trace()) is None:
            step(*flat)
        else:
            trace.effect("apply_gradients", step, flat, variables, undo=self._undo)

    def _pairs(self, grads_and_pairs: Any) -> Iterable[tuple[Any, _Pair]]:
        """The argument, checked to be pairs of pairs."""
        for item in list_of(tuple, list)(self.name, "grads_and_pairs", grads_and_pairs):
            if [len(part) for part in item if isinstance(part, (tuple, list))] != [2, 2] or not all(
                isinstance(v, Variable) for v in item[1]
            ):
                raise ArgumentError(
                    f"{self.name}: expected ((gradient, gradient), (mean, factor)), the last two "
                    f"Variables, got {item!r:.60}."
                )
            yield item[0], item[1]

    def _undo(self) -> Callable[[], None]:
        before = self.iterations

        def undo() -> None:
            self.iterations = before

        return undo

    def _step(self, variables: Sequence[Variable], gradients: Sequence[Tensor]) -> None:
        rate = self.learning_rate
        rate = float(rate(self.iterations) if callable(rate) else rate)
        new: list[Tensor] = []
        for k in range(0, len(variables), 2):
            (mean, matrix), (g_mean, g_matrix) = variables[k : k + 2], gradients[k : k + 2]
            try:
                new += self._moved(rate, mean.value(), matrix.value(), g_mean, g_matrix)
            except SingularMatrixError as error:
                raise ArgumentError(
                    f"{self.name}: with the learning rate {rate} the covariance '{matrix.name}' "
                    "would not be positive definite. Use a smaller learning rate."
                ) from error
        for v, value in zip(variables, new, strict=True):
            v.assign(value)
        self.iterations += 1

    def _moved(self, rate: float, mean: Any, matrix: Any, g_mean: Any, g_matrix: Any) -> list[Any]:
        """The new mean, and the new factor or covariance."""
        xp = TENSOR
        if self.of == "cholesky":
            factor = xp.tril(matrix)
            inner = _lower_half(_transposed(factor) @ g_matrix)  # of L^T g_S L, which is symmetric
            inner = (inner + _transposed(inner)) / 2
        else:
            factor = xp.cholesky(matrix)
            inner = _transposed(factor) @ ((g_matrix + _transposed(g_matrix)) / 2) @ factor
        identity = constant(np.eye(mean.shape[-1]), mean.dtype, device=mean.device)
        # inv(S) + 2 r g_S = inv(L)^T (I + 2 r L^T g_S L) inv(L), and I + ... = U U^T with upper U
        precision = identity + 2 * rate * inner
        upper = _flipped(xp.cholesky(_flipped(precision)))
        lower = _transposed(xp.solve_triangular(upper, _transposed(factor), lower=False))
        moved = lower @ (_transposed(lower) @ g_mean[..., None])
        new_mean = mean - rate * moved[..., 0]
        return [new_mean, xp.tril(lower) if self.of == "cholesky" else lower @ _transposed(lower)]

    def state_dict(self, names: Mapping[str, Variable] | None = None) -> dict[str, Tensor]:
        """The number of steps: there is no other state."""
        return {"iterations": constant(np.array(self.iterations), device="cpu")}

    def load_state_dict(
        self, state: Mapping[str, Any], names: Mapping[str, Variable] | None = None
    ) -> None:
        """Load a state that `state_dict` returned.

        Raises:
            CheckpointError: the state belongs to another optimizer.
        """
        left = dict(state)
        iterations = take_array(self.name, left, "iterations", ())
        check_empty(self.name, left)
        self.iterations = check_count(self.name, "iterations", iterations)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(learning_rate={self.learning_rate!r}, "
            f"iterations={self.iterations})"
        )


def _transposed(x: Tensor) -> Tensor:
    return TENSOR.matrix_transpose(x)


def _flipped(x: Tensor) -> Tensor:
    return TENSOR.flip(x, axis=(-2, -1))


def _lower_half(x: Tensor) -> Tensor:
    """The lower triangle with half of the diagonal."""
    return (TENSOR.tril(x) + TENSOR.tril(x, k=-1)) / 2
