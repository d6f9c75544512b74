"""``cupy.testing``: the assertions of `numpy.testing`, which read Tensors on any device."""

import functools
from typing import Any

import numpy as np

from gpugrad.compat.names import forwarding
from gpugrad.core.tensor import Tensor

_look_up, __dir__ = forwarding(__name__, np.testing)


def __getattr__(name: str) -> Any:
    function = _look_up(name)
    if isinstance(function, type) or not callable(function):
        return function

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        return function(*(x.numpy() if isinstance(x, Tensor) else x for x in args), **keywords)

    return call
