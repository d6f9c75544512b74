# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from collections.abc import Callable
from gpugrad.core.tensor import Tensor
from gpugrad.typing import ArrayLike
from typing import Any, SupportsIndex

__all__: list[str]

def braycurtis(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """The sum of differences by that of sums."""

def canberra(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """The sum of relative differences."""

def cdist(
    XA: ArrayLike,
    XB: ArrayLike,
    metric: str | Callable[..., Any] = "euclidean",
    *,
    out: Tensor | None = None,
    **kwargs: Any,
) -> Tensor:
    """Distances of all pairs of vectors of two sets."""

def chebyshev(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """The largest difference whose weight is not 0."""

def cityblock(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """The weighted sum of differences."""

def correlation(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """1 - the cosine of the angle between vectors, from which their means are subtracted."""

def cosine(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """1 - the cosine of the angle between vectors."""

def dice(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """Of numbers from 0 to 1: those that differ by those plus twice the ones in both."""

def directed_hausdorff(
    u: ArrayLike, v: ArrayLike, rng: SupportsIndex = 0, *, seed: Any = None
) -> tuple[Tensor, int, int]:
    """The largest distance of a point of `u` from the nearest one of `v`."""

def distance_matrix(
    x: ArrayLike, y: ArrayLike, p: ArrayLike = 2, threshold: int = 1000000
) -> Tensor:
    """Distances of all pairs of vectors by the norm of order `p`."""

def euclidean(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """The root of the weighted sum of squares."""

def hamming(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """The weighted part of elements that differ."""

def hellinger(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """The root of half the sum of squared differences of roots; in cupyx, not in SciPy."""

def is_valid_dm(
    D: Any, tol: Any = 0.0, throw: bool = False, name: str = "D", warning: bool = False
) -> Any:
    """SciPy's `is_valid_dm`, of values."""

def is_valid_y(y: Any, warning: bool = False, throw: bool = False, name: Any = None) -> Any:
    """SciPy's `is_valid_y`, of values."""

def jaccard(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """The part of elements of which one is 0, among those that are not both 0."""

def jensenshannon(
    p: ArrayLike, q: ArrayLike, base: Any = None, *, axis: int = 0, keepdims: bool = False
) -> Tensor:
    """The root of the Jensen-Shannon divergence of vectors that are normalized first."""

def kl_divergence(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """The Kullback-Leibler divergence, the sum of u log(u / v); in cupyx, not in SciPy."""

def mahalanobis(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """The Euclidean distance by an inverse covariance."""

def minkowski(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """The root of the weighted sum of powers."""

def num_obs_dm(d: Any) -> Any:
    """SciPy's `num_obs_dm`, of values."""

def num_obs_y(Y: Any) -> Any:
    """SciPy's `num_obs_y`, of values."""

def pdist(
    X: ArrayLike,
    metric: str | Callable[..., Any] = "euclidean",
    *,
    out: Tensor | None = None,
    **kwargs: Any,
) -> Tensor:
    """Distances of all pairs of vectors of one set: those of (0, 1), (0, 2), ... (m - 2, m - 1)."""

def rogerstanimoto(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """Twice those that differ, by them plus those that are equal."""

def russellrao(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """The part that is not in both."""

def seuclidean(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """The Euclidean distance by variances."""

def sokalsneath(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """Twice those that differ, by them plus those in both."""

def sqeuclidean(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """The weighted sum of squares."""

def squareform(X: ArrayLike, force: str = "no", checks: bool = True) -> Tensor:
    """The symmetric matrix of the distances of pairs, or these of a matrix."""

def yule(u: ArrayLike, v: ArrayLike, *args: Any, **options: Any) -> Tensor:
    """Twice the product of the two terms of differences, by it plus that of the two equal ones."""

def floats(x: Any, like: Tensor | None = None) -> Tensor:
    """A Tensor of floats: of 64 bits for integers and lists."""
