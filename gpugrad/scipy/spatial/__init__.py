"""`scipy.spatial` on Tensors: distances, rotations, and SciPy's trees and triangulations.

Distances, rotations, `procrustes` and `geometric_slerp` are made of ops. `KDTree`, `Delaunay`,
`ConvexHull`, `Voronoi` and the like are SciPy's own, on values. The distances of `KDTree.query`
have gradients by both points; all else raises if a tape watches the points.

>>> tree = gg.scipy.spatial.KDTree([[0.0, 0.0], [3.0, 4.0]])
>>> distance, index = tree.query(gg.asarray([0.0, 1.0]))
>>> print(distance, index)
1.0 0
"""

from __future__ import annotations

import importlib
from typing import Any

from scipy import spatial as _spatial

from gpugrad.scipy.signatures import lazy
from gpugrad.scipy.spatial import geometry, trees

__all__ = sorted({n for n in _spatial.__all__ if n != "test"} | {"distance", "transform"})


def _found(name: str) -> Any:
    if name in ("distance", "transform"):
        return importlib.import_module(f"{__name__}.{name}")
    value = vars(geometry).get(name)
    return value or trees.on_tensors(getattr(_spatial, name))


__getattr__, __dir__ = lazy(globals(), _found)
