"""`scipy.spatial.distance` on Tensors: distances of vectors, and of all pairs of vectors.

Distances have gradients by the vectors, weights, variances, `VI` and `p`. Where a distance is 0
and has no derivative, its derivatives are 0. Metrics that count elements, such as "hamming", have
gradients by the weights alone. With `hellinger` and `kl_divergence` of cupyx.

>>> points = gg.asarray([[0.0, 0.0], [3.0, 4.0]])
>>> print(gg.scipy.spatial.distance.pdist(points, "cityblock"))
[7.]
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.spatial import distance as _distance

from gpugrad.array_api.numpy_results import on_values, write_out
from gpugrad.autodiff.batched import Batched
from gpugrad.autodiff.recorder import block
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.numpy.creation import asarray
from gpugrad.ops.arrays.join import broadcast_arrays
from gpugrad.scipy.calling import holds, new_tensor, public
from gpugrad.scipy.spatial import metrics
from gpugrad.trace.array import Traced

_CUPYX = ("distance_matrix", "hellinger", "kl_divergence")
__all__ = sorted([*_distance.__all__, *_CUPYX])


def _as_scipy(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which is SciPy's where nothing follows the arrays; a decorator."""
    theirs = getattr(_distance, function.__name__)

    @functools.wraps(theirs)
    def plain(*args: Any, **keywords: Any) -> Any:
        metric = keywords.get("metric", args[-1])
        ours = isinstance(metric, str) and metric.lower() in _CUPYX
        if ours:
            return function(*args, **keywords)
        result = theirs(*args, **keywords)
        return result if "out" in keywords else new_tensor(result)

    return public(function, plain)


def floats(x: Any, like: Tensor | None = None) -> Tensor:
    """A Tensor of floats: of 64 bits for integers and lists."""
    x = asarray(x, device=None if like is None else like.device)
    return x if x.dtype.kind in "fV" else xp.astype(x, "float64")


def _doubles(x: Any, like: Tensor | None = None) -> Tensor:
    x = floats(x, like)
    return x if x.dtype.char == "d" else xp.astype(x, "float64")


def _weights(w: Any, n: int, like: Tensor) -> Tensor:
    w = _doubles(w, like)
    if w.ndim != 1:
        raise ValueError("Input vector should be 1-D.")
    if w.shape[0] != n:
        raise ValueError(f"Weights must have same size as input vector. {w.shape[0]} vs. {n}")
    if not holds(xp.all(xp.greater_equal(w, 0))):
        raise ValueError("Input weights should be all non-negative")
    return w


def _check_options(
    metric: Callable[..., Tensor], options: dict[str, Any], x: Tensor
) -> dict[str, Any]:
    """Weights and other arguments as Tensors; SciPy's errors for wrong ones."""
    options = {k: v for k, v in options.items() if v is not None}
    wrong = set(options) - set(inspect.signature(metric).parameters)
    if wrong:
        raise TypeError(f"{metric.__name__}() got an unexpected keyword argument {wrong.pop()!r}")
    if "w" in options:
        options["w"] = _weights(options["w"], x.shape[-1], x)
    if "V" in options:
        V = options["V"] = _doubles(options["V"], x)
        if V.ndim != 1:
            raise ValueError("Variance vector V must be one-dimensional.")
        if V.shape[0] != x.shape[-1]:
            raise ValueError(
                "Variance vector V must be of the same dimension as the vectors on which the "
                "distances are computed."
            )
    if "VI" in options:
        options["VI"] = xp.reshape(_doubles(options["VI"], x), (x.shape[-1], x.shape[-1]))
    return options


def _of_observations(name: str, options: dict[str, Any], x: Tensor) -> None:
    """Fill in the variances or the inverse covariance of all vectors."""
    m, n = x.shape
    if name == "seuclidean" and options.get("V") is None:
        options["V"] = xp.var(x, axis=0, correction=1)
    if name == "mahalanobis" and options.get("VI") is None:
        if m <= n:
            raise ValueError(
                f"The number of observations ({m}) is too small; the covariance matrix is "
                f"singular. For observations with {n} dimensions, at least {n + 1} observations "
                "are required."
            )
        d = x - xp.mean(x, axis=0)
        options["VI"] = xp.inv(xp.matmul(xp.matrix_transpose(d), d) / (m - 1))


def _metric(metric: str) -> Callable[..., Tensor]:
    name = metric.lower()
    info = _distance._METRIC_ALIAS.get(name.removeprefix("test_"))
    if info is None and name not in _CUPYX[1:]:
        raise ValueError(f"Unknown Distance Metric: {name}")
    found: Callable[..., Tensor] = getattr(metrics, name if info is None else info.canonical_name)
    return found


def _stacked(values: Iterable[Any], shape: tuple[int, ...], like: Tensor) -> Tensor:
    """The results of a user's metric."""
    values = [xp.reshape(_doubles(v, like), ()) for v in values]
    return xp.reshape(xp.stack(values) if values else _doubles([], like), shape)


def _written(out: Any, result: Tensor) -> Any:
    if out is None:
        return result
    if tuple(out.shape) != result.shape:
        raise ValueError("Output array has incorrect shape.")
    if out.dtype != np.float64:
        raise ValueError("Output array must be double type.")
    return write_out("distance", out, result)


def _pairs(
    a: Tensor, b: Tensor, metric: str, options: dict[str, Any], observations: Callable[[], Tensor]
) -> Tensor:
    """The distances of all vectors of `a` from all of `b`."""
    formula = _metric(metric)
    name = formula.__name__
    options = dict(options)
    if name in ("seuclidean", "mahalanobis"):
        _of_observations(name, options, observations())
    options = _check_options(formula, options, a)
    if formula in metrics.COUNTS and "w" not in options:
        counted = _counted(_distance.cdist, name, a, b)
        if counted is not None:
            return counted
    a, b = _as_sets(formula, a, b)
    if not options and name in ("euclidean", "minkowski"):
        return xp.euclidean_distances(a, b)
    a, b = (xp.matrix_transpose(x) for x in (a, b))
    if name in ("cosine", "correlation"):
        return formula(a, b, **options, dot=lambda u, v: xp.matmul(xp.matrix_transpose(u), v))
    return formula(xp.expand_dims(a, axis=2), xp.expand_dims(b, axis=1), **options)


def _counted(theirs: Callable[..., Any], metric: str, *sets: Tensor) -> Tensor | None:
    """SciPy's distances of arrays on the CPU, which need no derivatives; None of others."""
    if any(type(x._data) is not np.ndarray for x in sets):
        return None
    out = new_tensor(theirs(*(x._data for x in sets), metric))
    block(metric, out, [x._id for x in sets])
    return out


def _as_sets(formula: Callable[..., Tensor], *arrays: Tensor) -> list[Tensor]:
    if formula not in metrics.OF_SETS:
        return list(arrays)
    return [xp.astype(xp.not_equal(x, 0), "float64") for x in arrays]


@_as_scipy
def cdist(
    XA: Any,
    XB: Any,
    metric: str | Callable[..., Any] = "euclidean",
    *,
    out: Any = None,
    **kwargs: Any,
) -> Tensor:
    """Distances of all pairs of vectors of two sets.

    Args:
        XA: array of shape (m, k).
        XB: array of shape (n, k).
        metric: SciPy's name of a metric, "hellinger", "kl_divergence", or a function of two
            vectors.
        out: array of shape (m, n) and float64 to write the result to.
        kwargs: `p`, `w`, `V` or `VI` of the metric.

    Returns:
        Tensor of shape (m, n) and float64. With weights of 0, and for metrics of sets, recording
        the gradient takes memory for m * n * k numbers.

    Raises:
        ValueError: arrays that are no matrices of as many columns, an unknown metric, negative
            weights.

    >>> print(gg.scipy.spatial.distance.cdist([[0.0, 0.0]], [[3.0, 4.0]], "minkowski", p=1))
    [[7.]]
    """
    a, b = floats(XA), floats(XB)
    for name, x in (("XA", a), ("XB", b)):
        if x.ndim != 2:
            raise ValueError(f"{name} must be a 2-dimensional array.")
    if a.shape[1] != b.shape[1]:
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    if callable(metric):
        pairs = (metric(a[i], b[j], **kwargs) for i in range(len(a)) for j in range(len(b)))
        return _written(out, _stacked(pairs, (len(a), len(b)), a))
    if not isinstance(metric, str):
        raise TypeError("2nd argument metric must be a string identifier or a function.")
    a, b = _doubles(a), _doubles(b)
    return _written(out, _pairs(a, b, metric, kwargs, lambda: xp.concat([a, b], axis=0)))


@_as_scipy
def pdist(
    X: Any, metric: str | Callable[..., Any] = "euclidean", *, out: Any = None, **kwargs: Any
) -> Tensor:
    """Distances of all pairs of vectors of one set: those of (0, 1), (0, 2), ... (m - 2, m - 1).

    Args:
        X: array of shape (m, k).
        metric, out, kwargs: as in `cdist`.

    Returns:
        Tensor of shape (m (m - 1) / 2,) and float64; `squareform` makes the matrix of it.

    Raises:
        ValueError: as `cdist`.

    >>> print(gg.scipy.spatial.distance.pdist([[0.0], [1.0], [3.0]]))
    [1. 3. 2.]
    """
    x = floats(X)
    if x.ndim != 2:
        raise ValueError(f"A 2-dimensional array must be passed. (Shape was {x.shape}).")
    if callable(metric):
        i, j = np.triu_indices(x.shape[0], 1)
        pairs = (metric(x[int(a)], x[int(b)], **kwargs) for a, b in zip(i, j, strict=True))
        return _written(out, _stacked(pairs, i.shape, x))
    if not isinstance(metric, str):
        raise TypeError("2nd argument metric must be a string identifier or a function.")
    x = _doubles(x)
    formula = _metric(metric)
    single = x.shape[0] > 1 and x.shape[1] and kwargs.get("w") is None
    if single and formula in metrics.OF_TERMS and not isinstance(kwargs.get("p"), Tensor):
        options = _check_options(formula, kwargs, x)
        columns = xp.expand_dims(xp.matrix_transpose(x), axis=2)
        return _written(out, formula(columns, columns, **options))
    if formula in metrics.COUNTS and kwargs.get("w") is None:
        _check_options(formula, kwargs, x)
        counted = _counted(_distance.pdist, formula.__name__, x)
        if counted is not None:
            return _written(out, counted)
    above = np.triu(np.ones((x.shape[0], x.shape[0]), bool), 1)  # a mask: the gradient is a copy
    return _written(out, _pairs(x, x, metric, kwargs, lambda: x)[above])


def _vectors(formula: Callable[..., Tensor]) -> Callable[..., Any]:
    """The public function of two vectors of a metric."""
    name = formula.__name__
    theirs = getattr(_distance, name, None)
    last = name in ("euclidean", "minkowski", "sqeuclidean")  # SciPy's since 1.18
    shape, result = "(k,)", "0-d Tensor"
    if last:
        shape, result = "(..., k)", "Tensor of the broadcast shape without the last axis"

    def function(u: Any, v: Any, *args: Any, **options: Any) -> Tensor:
        if theirs is not None:
            bound = inspect.signature(theirs).bind(u, v, *args, **options)
            options = dict(list(bound.arguments.items())[2:])
        u = floats(u)
        v = floats(v, u)
        if not last and (u.ndim != 1 or v.ndim != 1):
            raise ValueError("Input vector should be 1-D.")
        if u.shape[-1:] != v.shape[-1:]:
            raise ValueError(f"{name}: u {u.shape} and v {v.shape} must have equal lengths.")
        if not holds(options.get("p", 1) > 0):
            raise ValueError("p must be greater than 0")
        options = _check_options(formula, options, u)
        if u.ndim != 1 or v.ndim != 1:
            u, v = (xp.moveaxis(x, -1, 0) for x in broadcast_arrays(u, v))
        return formula(u, v, **options)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = (
        f"{formula.__doc__}\n\n    Args:\n        u, v: arrays of shape {shape}.\n"
        "        others: SciPy's, as weights `w` of shape (k,).\n\n"
        f"    Returns:\n        {result}, differentiable by all of them.\n    "
    )
    return function if theirs is None else public(function, theirs)


@_as_scipy
def jensenshannon(
    p: Any, q: Any, base: Any = None, *, axis: int = 0, keepdims: bool = False
) -> Tensor:
    """The root of the Jensen-Shannon divergence of vectors that are normalized first.

    Args:
        p, q: arrays of numbers that are not negative; they broadcast against each other.
        base: of the logarithm; None means e.
        axis: of the vectors.
        keepdims: whether it stays, with length 1.

    Returns:
        Tensor without the axis. At p = q, where it has no derivative, its derivatives are 0.

    >>> print(gg.scipy.spatial.distance.jensenshannon([1.0, 0.0], [0.0, 1.0], 2.0))
    1.0
    """
    u = floats(p)
    u, v = (xp.moveaxis(x, axis, 0) for x in (u, floats(q, u)))
    result = metrics.jensenshannon(u, v, base=None if base is None else floats(base, u))
    return xp.expand_dims(result, axis=axis) if keepdims else result


@_as_scipy
def directed_hausdorff(
    u: Any, v: Any, rng: Any = 0, *, seed: Any = None
) -> tuple[Tensor, int, int]:
    """The largest distance of a point of `u` from the nearest one of `v`.

    Args:
        u: array of shape (m, k).
        v: array of shape (n, k).
        rng, seed: SciPy's, which shuffle points; without effect if the result is recorded.

    Returns:
        (distance, index in `u`, index in `v`); the distance is differentiable by both points.

    Raises:
        ValueError: arrays of other numbers of columns.

    >>> print(gg.scipy.spatial.distance.directed_hausdorff([[0.0], [5.0]], [[1.0], [2.0]])[0])
    3.0
    """
    a, b = _doubles(u), _doubles(v)
    if a.shape[1] != b.shape[1]:
        raise ValueError("u and v need to have the same number of columns")
    nearest = xp.euclidean_distances(a, b)
    i = xp.argmax(xp.min(nearest, axis=1))
    j = xp.argmin(nearest[i])
    return xp.vector_norm(a[i] - b[j]), i, j


@_as_scipy
def squareform(X: Any, force: str = "no", checks: bool = True) -> Tensor:
    """The symmetric matrix of the distances of pairs, or these of a matrix.

    Args:
        X: array of shape (m (m - 1) / 2,) or (m, m).
        force: "tomatrix" or "tovector" raise for the other kind of array.
        checks: whether a matrix must be symmetric, with 0 on its diagonal.

    Raises:
        ValueError: an array of other shapes, or a matrix that is not symmetric.

    >>> print(gg.scipy.spatial.distance.squareform([1.0, 3.0, 2.0]))
    [[0. 1. 3.]
     [1. 0. 2.]
     [3. 2. 0.]]
    """
    x = asarray(X)
    square = x.ndim == 2 and x.shape[0] == x.shape[1]
    if square and checks and type(x._data) not in (Batched, Traced):
        _distance.is_valid_dm(x.numpy(), throw=True, name="X")
    places = np.arange(x.size).reshape(x.shape)  # SciPy puts them where the elements go
    if x.ndim != 1:
        return xp.ravel(x)[_distance.squareform(places, force, False)]
    at = _distance.squareform(places + 1, force)
    x = xp.pad_constant(x, [(1, 0)])
    return x[at]


def distance_matrix(x: Any, y: Any, p: Any = 2, threshold: int = 1000000) -> Tensor:
    """Distances of all pairs of vectors by the norm of order `p`.

    Args:
        x: array of shape (m, k).
        y: array of shape (n, k).
        p: order of the norm, from 1 to infinity.
        threshold: without effect.

    Returns:
        Tensor of shape (m, n), float64.

    Raises:
        ValueError: arrays of other numbers of columns.

    >>> print(gg.scipy.spatial.distance_matrix([[0.0, 0.0]], [[3.0, 4.0]]))
    [[5.]]
    """
    a, b = floats(x), floats(y)
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"x contains {a.shape[1]}-dimensional vectors but y contains {b.shape[1]}-dimensional "
            "vectors"
        )
    return cdist(a, b, "minkowski", p=p)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if hasattr(metrics, name):
        value = _vectors(getattr(metrics, name))
    else:
        theirs = getattr(_distance, name)

        @functools.wraps(theirs)
        def value(*args: Any, **keywords: Any) -> Any:
            return on_values(f"scipy.spatial.distance.{name}", theirs, args, keywords)

        value.__module__ = __name__
        value.__doc__ = f"SciPy's `{name}`, of values."
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
