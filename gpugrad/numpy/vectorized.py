"""`vectorize`, which calls a Python function for each element."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.array_api.numpy_results import as_tensors
from gpugrad.numpy.namespace import on_host


class vectorize(np.vectorize):
    """NumPy's ``vectorize`` of values. It returns Tensors, and raises if it would cut a gradient.

    >>> import gpugrad.numpy as np
    >>> np.vectorize(lambda a, b: a if a > b else -b)(np.arange(3), 1).tolist()
    [-1, -1, 2]
    """

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """The function of each element of the arguments, which broadcast."""
        hosted = {k: on_host(v) for k, v in keywords.items()}
        return as_tensors(super().__call__(*map(on_host, args), **hosted))
