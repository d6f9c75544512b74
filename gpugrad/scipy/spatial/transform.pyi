# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from typing import Any

__all__: list[str]

class RigidTransform:
    def __init__(self, matrix: Any, normalize: bool = True, copy: bool = True) -> None:
        """Rigid transform in 3 dimensions."""

    def __getattr__(self, name: str, /) -> Any: ...

class Rotation:
    def __init__(
        self, quat: Any, normalize: bool = True, copy: bool = True, scalar_first: bool = False
    ) -> None:
        """Rotation in 3 dimensions."""

    def __getattr__(self, name: str, /) -> Any: ...

class RotationSpline:
    def __init__(self, times: Any, rotations: Any) -> None:
        """Interpolate rotations with continuous angular rate and acceleration."""

    def __getattr__(self, name: str, /) -> Any: ...

class Slerp:
    def __init__(self, times: Any, rotations: Any) -> None:
        """Spherical Linear Interpolation of Rotations."""

    def __getattr__(self, name: str, /) -> Any: ...

def is_lazy(x: Any) -> bool:
    """Whether values are not known: in a trace and in `vmap`."""
