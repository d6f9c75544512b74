"""Examples for the docstrings of the functions that SciPy or cupyx runs."""

from __future__ import annotations

_CALLS = {
    "binary_closing([0, 1, 0, 1, 0])": "[False  True  True  True False]",
    "binary_dilation([0, 0, 1, 0, 0])": "[False  True  True  True False]",
    "binary_erosion([0, 1, 1, 1, 0])": "[False False  True False False]",
    "binary_fill_holes([0, 1, 0])": "[False  True False]",
    "binary_hit_or_miss([0, 1, 0, 1, 1], [1, 0])": "[False False  True False False]",
    "binary_opening([1, 1, 1, 0, 1])": "[ True  True  True False False]",
    "binary_propagation([0, 1, 0, 0], mask=[1, 1, 1, 0])": "[ True  True  True False]",
    "distance_transform_bf([0, 1, 1, 1])": "[0. 1. 2. 3.]",
    "distance_transform_cdt([0, 1, 1, 1])": "[0 1 2 3]",
    "distance_transform_edt([0, 1, 1, 1])": "[0. 1. 2. 3.]",
    "find_objects([0, 1, 1, 2])": "[(slice(1, 3, None),), (slice(3, 4, None),)]",
    "generate_binary_structure(1, 1)": "[ True  True  True]",
    "generic_filter1d([1.0, 3.0], lambda line, out: np.copyto(out, line[1:-1] ** 2), 3)": "[1. 9.]",
    "histogram([0.0, 1.0, 1.0, 3.0], 0, 4, 2)": "[3 1]",
    "iterate_structure([1, 1, 1], 2)": "[ True  True  True  True  True]",
    "label([1, 1, 0, 1])[0]": "[1 1 0 2]",
    "labeled_comprehension([1.0, 2.0, 5.0], [1, 1, 2], [1, 2], np.sum, float, 0.0)": "[3. 5.]",
    "maximum_position([[1.0, 4.0], [3.0, 2.0]])[1]": "1",
    "minimum_position([[1.0, 4.0], [3.0, 2.0]])[1]": "0",
    "value_indices([3, 5, 3])[3][0]": "[0 2]",
    "watershed_ift(np.array([0, 9, 0], np.uint8), [1, 0, 2])": "[1 2 2]",
}
"""Calls, and the printed result of each."""


def of(name: str) -> str:
    """The example of a function, or nothing.

    >>> of("histogram").splitlines()[1]
    '    [3 1]'
    """
    call = next((c for c in _CALLS if c.startswith(f"{name}(")), None)
    return f">>> print(gg.scipy.ndimage.{call})\n    {_CALLS[call]}" if call else ""
