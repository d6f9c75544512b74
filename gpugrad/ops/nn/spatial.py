"""Families of layers that differ only in how many spatial axes they have."""

import inspect

from gpugrad.registry.record import op

_WORDS = {
    1: {"where": "along one axis", "shape": "(N, C, L), or (C, L)", "each": "int"},
    2: {"where": "of images", "shape": "(N, C, H, W), or (C, H, W)", "each": "int or a pair"},
    3: {"where": "of volumes", "shape": "(N, C, D, H, W), or (C, D, H, W)", "each": "int or three"},
}


def spatial(n, example, **record):
    """Declare a layer with `n` spatial axes; a decorator like `op`.

    The op's name is the function's name with ``1d``, ``2d`` or ``3d`` appended. The docstring is a
    template for ``{n}``, ``{where}``, the ``{shape}`` of x, and ``{each}``, the value of an
    argument that may differ from axis to axis.

    Args:
        n: 1, 2 or 3.
        example: arguments, and what printing the result gives.
        record: keywords for `op`.
    """

    def declare(forward):
        name, doc = f"{forward.__name__}{n}d", inspect.cleandoc(forward.__doc__)
        for word, text in {"n": str(n), **_WORDS[n]}.items():
            doc = doc.replace(f"{{{word}}}", text)
        forward.__doc__ = f"{doc}\n\n>>> print(gg.nn.{name}({example[0]}))\n{example[1]}\n"
        return op(name=name, **record)(forward)

    return declare
