# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.core.tensor import Tensor
from gpugrad.typing import ArrayLike
from typing import Any
from gpugrad.scipy.spatial import distance as distance
from gpugrad.scipy.spatial import transform as transform
from scipy.spatial import ckdtree as ckdtree
from scipy.spatial import kdtree as kdtree
from scipy.spatial import qhull as qhull
from scipy.spatial._qhull import QhullError as QhullError

__all__: list[str]
convex_hull_plot_2d: Any
delaunay_plot_2d: Any
tsearch: Any
voronoi_plot_2d: Any

class ConvexHull:
    def __init__(self, points: Any, incremental: bool = False, qhull_options: Any = None) -> None:
        """SciPy's `ConvexHull`: see `OnTensors`."""

    def __getattr__(self, name: str, /) -> Any: ...

class Delaunay:
    def __init__(
        self,
        points: Any,
        furthest_site: bool = False,
        incremental: bool = False,
        qhull_options: Any = None,
    ) -> None:
        """SciPy's `Delaunay`: see `OnTensors`."""

    def __getattr__(self, name: str, /) -> Any: ...

class HalfspaceIntersection:
    def __init__(
        self,
        halfspaces: Any,
        interior_point: Any,
        incremental: bool = False,
        qhull_options: Any = None,
    ) -> None:
        """SciPy's `HalfspaceIntersection`: see `OnTensors`."""

    def __getattr__(self, name: str, /) -> Any: ...

class KDTree:
    def __init__(
        self,
        data: Any,
        leafsize: Any = 10,
        compact_nodes: bool = True,
        copy_data: bool = False,
        balanced_tree: bool = True,
        boxsize: Any = None,
    ) -> None:
        """SciPy's `KDTree`: see `OnTensors`."""

    def __getattr__(self, name: str, /) -> Any: ...

class Rectangle:
    def __init__(self, maxes: Any, mins: Any) -> None:
        """SciPy's `Rectangle`: see `OnTensors`."""

    def __getattr__(self, name: str, /) -> Any: ...

class SphericalVoronoi:
    def __init__(
        self, points: Any, radius: Any = 1, center: Any = None, threshold: Any = 1e-06
    ) -> None:
        """SciPy's `SphericalVoronoi`: see `OnTensors`."""

    def __getattr__(self, name: str, /) -> Any: ...

class Voronoi:
    def __init__(
        self,
        points: Any,
        furthest_site: bool = False,
        incremental: bool = False,
        qhull_options: Any = None,
    ) -> None:
        """SciPy's `Voronoi`: see `OnTensors`."""

    def __getattr__(self, name: str, /) -> Any: ...

class cKDTree:
    def __init__(
        self,
        data: Any,
        leafsize: Any = 10,
        compact_nodes: bool = True,
        copy_data: bool = False,
        balanced_tree: bool = True,
        boxsize: Any = None,
    ) -> None:
        """SciPy's `cKDTree`: see `OnTensors`."""

    def __getattr__(self, name: str, /) -> Any: ...

def distance_matrix(
    x: ArrayLike, y: ArrayLike, p: ArrayLike = 2, threshold: int = 1000000
) -> Tensor:
    """Distances of all pairs of vectors by the norm of order `p`."""

def geometric_slerp(start: ArrayLike, end: ArrayLike, t: ArrayLike, tol: float = 1e-07) -> Tensor:
    """Points on the great circle from one unit vector to another."""

def minkowski_distance(x: ArrayLike, y: ArrayLike, p: ArrayLike = 2.0) -> Tensor:
    """Norms of differences along the last axis."""

def minkowski_distance_p(x: Any, y: Any, p: Any = 2.0) -> Tensor:
    """The p-th power of `minkowski_distance`; for p = inf the distance itself."""

def procrustes(data1: Any, data2: Any) -> Any:
    """Procrustes analysis, a similarity test for two data sets."""
