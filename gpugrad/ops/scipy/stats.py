"""Values of SciPy's distributions, which gpugrad.scipy.stats gives their derivatives."""

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import uniform
from gpugrad.errors import ArgumentError, DeviceError, DTypeError, ShapeError
from gpugrad.registry.record import op


def _ref(points, *, distribution, method, order=None):
    import scipy.stats

    first = () if order is None else (order,)
    return getattr(getattr(scipy.stats, distribution), method)(*first, *np.moveaxis(points, -1, 0))


@op(
    differentiable=False,
    batch="stack",
    ref=_ref,
    samples=lambda rng: [
        ([uniform(rng, 3, 2, low=0.1, high=0.9)], {"distribution": "gamma", "method": "ppf"}),
        ([uniform(rng, 2, low=0.1, high=0.9)], {"distribution": "t", "method": "cdf"}),
        (
            [uniform(rng, 2, 1, low=0.1, high=0.9)],
            {"distribution": "gamma", "method": "moment", "order": 2},
        ),
    ],
    errors=[([np.ones(())], {"distribution": "norm", "method": "cdf"}, ShapeError, "last axis")],
)
def distribution_values(xp, points, /, *, distribution, method, order=None):
    """Values of a method of one of SciPy's distributions, without a derivative; on the CPU.

    `gg.scipy.stats` calls it, and adds the derivatives.

    Args:
        points: array whose last axis has the method's arguments: a point, and the shapes.
        distribution: its name in ``scipy.stats``.
        method: its name, as ``"ppf"``.
        order: the first argument, of the method ``"moment"``.

    Returns:
        Tensor without the last axis.

    Raises:
        ArgumentError: SciPy has no such distribution or method.
        DeviceError: the points are on a GPU.

    >>> print(gg.distribution_values([[0.5], [0.975]], distribution="norm", method="ppf"))
    [0.       1.959964]
    """
    import scipy.stats

    if not hasattr(getattr(scipy.stats, str(distribution), None), str(method)):
        raise ArgumentError(
            f"distribution_values: scipy.stats has no {distribution!r} with a method {method!r}."
        )
    if points.dtype.kind == "c":
        raise DTypeError(f"distribution_values: points must be real, got {points.dtype}.")
    if points.ndim == 0:
        raise ShapeError(f"distribution_values: points need a last axis, got {points.shape}.")
    if xp is not NUMPY:
        raise DeviceError(
            f"distribution_values: SciPy computes {distribution}.{method} on the CPU only. Move "
            "the arguments there with x.to_device('cpu')."
        )
    with np.errstate(all="ignore"):
        try:
            values = _ref(points, distribution=distribution, method=method, order=order)
        except TypeError as error:
            raise ArgumentError(
                f"distribution_values: {points.shape[-1]} values on the last axis are not the "
                f"arguments of {distribution}.{method}: {error}"
            ) from None
    return np.asarray(values, dtype=points.dtype)
