"""Imported before pytest starts: names that NumPy 2 and SciPy 1.14 dropped."""

from typing import Any

import numpy as np
import scipy.sparse.linalg

_NAMES = {"product": np.prod, "cumproduct": np.cumprod, "in1d": np.isin, "trapz": np.trapezoid}
_NAMES |= {"row_stack": np.vstack, "alltrue": np.all, "sometrue": np.any, "Inf": np.inf}
_NAMES |= {"float": float, "int": int, "bool": bool, "complex": complex, "NaN": np.nan}

for name, value in _NAMES.items():
    if name not in vars(np):
        setattr(np, name, value)

_cg = scipy.sparse.linalg.cg


def _old_cg(
    A: Any, b: Any, x0: Any = None, *, tol: Any = None, atol: Any = 0, **others: Any
) -> Any:
    """SciPy's ``cg`` with the name that its ``rtol`` had."""
    if tol is not None:
        others["rtol"] = tol
    return _cg(A, b, x0, atol=0 if atol == "legacy" else atol, **others)


scipy.sparse.linalg.cg = _old_cg
