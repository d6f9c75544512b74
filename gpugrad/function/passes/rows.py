"""Softmax, cross entropy and norms as steps, so that a C kernel fuses them with their neighbours.

On a GPU each of them has a kernel written by hand, which NumPy lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.function.passes.classes import Classes
from gpugrad.function.passes.fuse import LONG_ROW
from gpugrad.function.passes.rewrite import Rewriter
from gpugrad.trace.program import Program, Step, Value


def expand_rows(program: Program) -> Program:
    """Expand softmax and cross entropy along the last axis, and standardization along any axes."""
    expander = _Expander(program)
    for step in program.steps:
        step = expander.renamed(step)
        if is_expanded(step):
            _EXPANDED[step.name](expander, step)
        else:
            expander.keep(step)
    return expander.program()


def is_expanded(step: Step) -> bool:
    """Whether the pass expands a step."""
    if step.op is None or step.name not in _EXPANDED or not _has_one_float_dtype(step):
        return False
    return step.name.endswith("standardize") or _is_along_last(step)


def _has_one_float_dtype(step: Step) -> bool:
    floats = [a for a in step.args if isinstance(a, Value) and a.dtype.kind not in "biu"]
    dtypes = {v.dtype for v in floats} | {np.dtype(step.params.get("dtype") or floats[0].dtype)}
    return dtypes <= {np.dtype(np.float32)} or dtypes <= {np.dtype(np.float64)}


def _is_along_last(step: Step) -> bool:
    x = max(step.inputs, key=lambda v: len(v.shape))  # the scores
    last = (-1, len(x.shape) - 1)
    return step.params.get("axis", -1) in last and 0 < x.shape[-1] <= LONG_ROW


class _Expander(Rewriter):
    _of: Step

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._classes: dict[Any, Value] = {}  # by labels, scores' shape and ignored class

    def _do(self, name: str, *args: Any, dtype: Any = None) -> Any:
        """Append an elementwise step."""
        values = [a for a in args if isinstance(a, Value)]
        shape = np.broadcast_shapes(*[v.shape for v in values])
        return self.step(self._of, name, args, {}, shape, dtype or values[-1].dtype)

    def _reduce(self, name: str, x: Value, axis: Any = -1) -> Any:
        axes = axis if isinstance(axis, tuple) else (axis,)
        axes = tuple(a % len(x.shape) for a in axes)
        shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
        params = {"axis": axis, "keepdims": True} | ({"dtype": None} if name == "sum" else {})
        return self.step(self._of, name, [x], params, shape)

    def _log_softmax(self, x: Value) -> Value:
        z = self._do("subtract", x, self._reduce("max", x))
        total = self._do("log", self._reduce("sum", self._do("exp", z)))
        return self._do("subtract", z, total)

    def softmax(self, step: Step) -> None:
        """Append the formula of ``softmax``."""
        self._of, (x,) = step, step.args
        e = self._do("exp", self._do("subtract", x, self._reduce("max", x)))
        self.replace(step.outs[0], self._do("divide", e, self._reduce("sum", e)))

    def log_softmax(self, step: Step) -> None:
        """Append the formula of ``log_softmax``."""
        self._of, (x,) = step, step.args
        self.replace(step.outs[0], self._log_softmax(x))

    def softmax_cross_entropy(self, step: Step) -> None:
        """Append the formula of ``softmax_cross_entropy``."""
        self._of, (x, labels) = step, step.args
        nothing = self._do("equal", labels, 0, dtype=bool)
        term = self._do("multiply", labels, self._log_softmax(x))
        total = self._reduce("sum", self._do("where", nothing, 0, term))
        self._put_losses(self._do("subtract", 0, total))

    def sparse_softmax_cross_entropy(self, step: Step) -> None:
        """Append the formula of ``sparse_softmax_cross_entropy``."""
        self._of, (x, labels) = step, step.args
        smoothing, n = step.params["label_smoothing"], x.shape[-1]
        classes, hot = self._hot(x, labels)
        z = self._do("subtract", x, self._reduce("max", x))
        own = self._reduce("sum", self._do("where", hot, z, 0, dtype=x.dtype))
        if smoothing:
            every = self._do("multiply", self._reduce("sum", z), smoothing / n)
            own = self._do("add", self._do("multiply", own, 1 - smoothing), every)
        total = self._do("log", self._reduce("sum", self._do("exp", z)))
        self._put_losses(self._of_kept(classes, self._do("subtract", total, own)))

    def sparse_softmax_cross_entropy_grad(self, step: Step) -> None:
        """Append the formula of ``sparse_softmax_cross_entropy_grad``."""
        self._of, (g, x, labels) = step, step.args
        smoothing, n = step.params["label_smoothing"], x.shape[-1]
        classes, hot = self._hot(x, labels)
        g = self.reshaped(step, g, (*g.shape, 1))
        e = self._do("exp", self._do("subtract", x, self._reduce("max", x)))
        d = self._do("multiply", e, self._do("divide", g, self._reduce("sum", e)))
        own = g
        if smoothing:
            d = self._do("subtract", d, self._do("multiply", g, smoothing / n))
            own = self._do("multiply", g, 1 - smoothing)
        d = self._do("subtract", d, self._do("where", hot, own, 0, dtype=x.dtype))
        self.replace(step.outs[0], self._of_kept(classes, d))

    def _hot(self, x: Value, labels: Value) -> tuple[Value, Value]:
        """The class of each row, and where it is the row's class."""
        n, key = x.shape[-1], (id(labels), x.shape, self._of.params["ignore_index"])
        if key not in self._classes:
            step = Classes(self._of, x, labels)
            self.keep(step)
            (classes,) = step.outs
            self._classes[key] = self.reshaped(self._of, classes, (*labels.shape, 1))
        numbers = Value(np.arange(n, dtype=np.int32), constant=True)
        classes = self._classes[key]
        return classes, self._do("equal", classes, numbers, dtype=bool)

    def _of_kept(self, classes: Value, x: Value) -> Value:
        """The values of rows that are not ignored, 0 for others."""
        if self._of.params["ignore_index"] is None:
            return x
        kept = self._do("greater_equal", classes, 0, dtype=bool)
        return self._do("where", kept, x, 0, dtype=x.dtype)

    def _put_losses(self, losses: Value) -> None:
        (out,) = self._of.outs
        self.replace(out, self.reshaped(self._of, losses, out.shape))

    def masked_softmax(self, step: Step) -> None:
        """Append the formula of ``masked_softmax``."""
        self._of, (x, mask, *_) = step, (*step.args, None)
        if step.params["is_causal"]:
            lower = Value(np.tri(*x.shape[-2:], dtype=bool), constant=True)
            mask = lower if mask is None else self._do("logical_and", mask, lower)
        if mask is not None:
            x = self._do("where", mask, x, -math.inf, dtype=x.dtype)
        top = self._reduce("max", x)
        nothing = self._do("equal", top, -math.inf, dtype=bool)
        top = self._do("where", nothing, 0, top)
        e = self._do("exp", self._do("subtract", x, top))
        total = self._reduce("sum", e)
        empty = self._do("equal", total, 0, dtype=bool)
        total = self._do("where", empty, 1, total)
        self.replace(step.outs[0], self._do("divide", e, total))

    def standardize(self, step: Step) -> None:
        """Append the formula of ``standardize``."""
        self._of, (x,), (out, mean, std) = step, step.args, step.outs
        moments = _Moments(self, x, step.params["axis"])
        root, inverse = self._lengths(moments.variance, x.dtype, step.params["eps"])
        d = self._do("subtract", x, moments.mean)
        self.replace(out, self._do("multiply", d, inverse))
        self.replace(mean, moments.mean)
        self.replace(std, root)

    def rms_standardize(self, step: Step) -> None:
        """Append the formula of ``rms_standardize``."""
        self._of, (x,), (out, root) = step, step.args, step.outs

        def mean_square(scale: float | None = None) -> Any:
            return self._reduce("mean", self.square(x, scale), step.params["axis"])

        length, inverse = self._lengths(mean_square, x.dtype, step.params["eps"])
        self.replace(out, self._do("multiply", x, inverse))
        self.replace(root, length)

    def square(self, x: Value, scale: float | None) -> Any:
        """Append the square of `x`, which is first multiplied by `scale`."""
        if scale is not None:
            x = self._do("multiply", x, scale)
        return self._do("multiply", x, x)

    def _lengths(self, mean_square: Callable[..., Any], dtype: Any, eps: float) -> tuple[Any, Any]:
        """The root of the mean square, and 1 / sqrt(mean square + eps), or 0 where that is inf.

        By scaled values where squares overflow or, without `eps`, vanish.
        """
        limits = np.finfo(dtype)
        half = 2.0 ** (limits.maxexp // 2)
        square = mean_square()
        root = length = self._do("sqrt", square)
        if eps:
            length = self._do("sqrt", self._do("add", square, eps))
        ranges = [("greater", float(limits.max), 1 / half)]
        ranges += [] if eps else [("less", float(limits.tiny / limits.eps), half)]
        for beyond, limit, scale in ranges:
            there = self._do(beyond, square, limit, dtype=bool)
            size = self._do("multiply", self._do("sqrt", mean_square(scale)), 1 / scale)
            root, length = (self._do("where", there, size, a) for a in (root, length))
        if eps:
            return root, self._do("reciprocal", length)
        nothing = self._do("equal", length, 0, dtype=bool)
        inverse = self._do("reciprocal", self._do("where", nothing, 1, length))
        return root, self._do("where", nothing, 0, inverse)


class _Moments:
    """The mean of an array over some axes, and the mean squared distance from it.

    If these are the last axes and others, as in a batch norm of images, the array is read once: a
    row has its own mean, and the squared distance of that from the whole mean is added to the
    row's own variance (Chan, Golub and LeVeque 1983).
    """

    def __init__(self, write: _Expander, x: Value, axis: Any) -> None:
        n = len(x.shape)
        axes = {a % n for a in (axis if isinstance(axis, tuple) else (axis,))}
        last = next(k for k in range(n + 1) if n - 1 - k not in axes)
        self._write, self._last = write, tuple(range(n - last, n))
        if math.prod(x.shape[n - last :]) == 1:
            self._last = ()
        rest = sorted(axes - {*self._last})
        self._rest = tuple(a for a in rest if x.shape[a] > 1 or not self._last)
        self.mean = of_rows = self._reduced(x, self._last or self._rest)
        self._off = None
        if self._last and self._rest:
            self.mean = self._reduced(of_rows, self._rest)
            self._off = write._do("subtract", of_rows, self.mean)
        self._distance = write._do("subtract", x, of_rows)

    def _reduced(self, x: Value, axes: tuple[int, ...]) -> Any:
        return self._write._reduce("mean", x, axes)

    def variance(self, scale: float | None = None) -> Any:
        """The mean of squared distances, which are first multiplied by `scale`."""
        own = self._reduced(self._write.square(self._distance, scale), self._last or self._rest)
        if self._off is None:
            return own
        return self._reduced(
            self._write._do("add", own, self._write.square(self._off, scale)), self._rest
        )


_EXPANDED: dict[str, Callable[[_Expander, Step], None]] = {
    # these ops alone combine rows in ways that no field of a record describes
    "softmax": _Expander.softmax,
    "log_softmax": _Expander.log_softmax,
    "masked_softmax": _Expander.masked_softmax,
    "softmax_cross_entropy": _Expander.softmax_cross_entropy,
    "sparse_softmax_cross_entropy": _Expander.sparse_softmax_cross_entropy,
    "sparse_softmax_cross_entropy_grad": _Expander.sparse_softmax_cross_entropy_grad,
    "standardize": _Expander.standardize,
    "rms_standardize": _Expander.rms_standardize,
}
