"""Completes an op's docstring with what its record says already.

A declaration documents what is special to it: what it computes, arguments with a meaning of their
own, an example. `complete` adds the rest: arguments that mean the same in every op (`axis`,
`keepdims`, ...), the shape of the result, and the errors, from the calls in the record that must
fail. A section that the author wrote is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpugrad.errors import ArgumentError

_ARGUMENTS = {
    "assume_unique": "whether neither array has duplicates, which may be faster.",
    "correction": "subtracted from the count before dividing; 1 for the variance of a sample.",
    "ddof": "NumPy's older name for `correction`.",
    "descending": "whether the largest comes first.",
    "device": "where the result is created; the default device if None.",
    "dtype": "dtype of the result; None chooses it by NumPy's rules.",
    "eps": "added to the variance.",
    "generator": "source of the random numbers; the default generator if None.",
    "index": "as for `getitem`.",
    "keepdims": "whether reduced axes stay, with length 1.",
    "offset": "the diagonal; 0 is the main one, positive ones lie above it.",
    "reduction": '``"mean"``, ``"sum"`` or ``"none"``.',
    "rowvar": "whether variables are rows; else they are columns.",
    "stable": "ignored: equal elements always keep their order. Part of the array API.",
}
"""Arguments that mean the same in every op."""

_PART = re.compile(
    r"(?:gradients?|derivative) of (?:a )?`(?P<whole>\w+)`"
    r"|(?:behind `(?:gg\.)?(?P<front>[\w.]+)`|`(?P<caller>[\w.]+)`[^`.]* calls? it\b)"
)
_SECTION = re.compile(r"^(Args|Returns|Raises):\n((?:    .*\n|\n(?=    ))*)\n?", re.MULTILINE)
_NAMED = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*):", re.MULTILINE)


def is_part(doc: str) -> bool:
    """Whether a docstring says that only another op calls this one."""
    return _PART.search(doc.partition("\n\n")[0]) is not None


def complete(
    doc: str, arrays: Sequence[str], params: Mapping[str, Any], errors: Iterable[Any],
    elementwise: bool = False, keeps_shape: bool = True,
) -> str:  # fmt: skip
    """The docstring of an op with every section.

    Args:
        doc: what its author wrote, without indentation.
        arrays: names of the array arguments.
        params: names and defaults of the other arguments.
        errors: calls that must fail, as an op's record has them.
        elementwise: whether arrays are broadcast against each other.
        keeps_shape: whether the result has the shape of the first array where nothing else is said.

    >>> print(complete("Sum.", ["x"], {"axis": None, "keepdims": False}, []))
    Sum.
    <BLANKLINE>
    Args:
        x: array of any shape.
        axis: int, tuple of ints, or None for all axes.
        keepdims: whether reduced axes stay, with length 1.
    <BLANKLINE>
    Returns:
        Tensor without the reduced axes.
    """
    head, mark, example = doc.partition(">>>")
    written = dict(_SECTION.findall(f"{head}\n" if mark else f"{head}\n\n"))
    head = _SECTION.sub("", f"{head}\n").rstrip()
    args = written.get("Args", "")
    named = {n.strip("*") for names in _NAMED.findall(args) for n in names.split(", ")}
    missing = [n for n in arrays if n not in named]
    before = after = result = ""
    if part := None if elementwise else _PART.search(head.partition("\n\n")[0]):
        before = _of_another(part, [*missing, *(n for n in params if n not in named)])
    else:
        has_axis = isinstance(params.get("axis"), int)
        before = _arrays(missing, elementwise, has_axis) if missing else ""
        for name, default in params.items():
            if name not in named and (text := _parameter(name, default)):
                after += f"    {name}: {text}\n"
        result = _result(arrays, params, elementwise, keeps_shape)
    sections = {
        "Args": before + args + after,
        "Returns": written.get("Returns") or result,
        "Raises": written.get("Raises") or _raises(errors),
    }
    parts = [head, *(f"{title}:\n{lines.rstrip()}" for title, lines in sections.items() if lines)]
    return "\n\n".join([*parts, mark + example] if mark else parts)


def _of_another(part: re.Match[str], names: Sequence[str]) -> str:
    """Lines for the arguments that a part of another op leaves to that op's docstring."""
    own = [n for n in names if part["whole"] and re.match("g(_|$)", n)]
    rest = ", ".join(n for n in names if n not in own)
    results = ", or results of it" if part["whole"] else ""
    lines = f"    {', '.join(own)}: gradients by the results.\n" if own else ""
    return lines + (f"    {rest}: as for `{part[part.lastgroup or 0]}`{results}.\n" if rest else "")


def _arrays(names: Sequence[str], elementwise: bool, has_axis: bool) -> str:
    if not elementwise:
        shape = "at least one axis" if has_axis else "any shape"
        return "".join(f"    {name}: array of {shape}.\n" for name in names)
    many = len(names) > 1
    return (
        f"    {', '.join(names)}: array{'s, broadcast against each other' if many else ''}, "
        "of any shape; or a number.\n"
    )


def _parameter(name: str, default: Any) -> str | None:
    if name == "axis":
        many = "int, tuple of ints, or None for all axes."
        return many if default is None else "int: the axis to work along."
    return _ARGUMENTS.get(name)


def _result(
    arrays: Sequence[str], params: Mapping[str, Any], elementwise: bool, keeps_shape: bool
) -> str:
    if elementwise:
        shape = "the (broadcast) shape; its dtype follows NumPy's promotion"
    elif "keepdims" in params:
        return "    Tensor without the reduced axes.\n"
    elif "reduction" in params:
        shape = f"shape (), or of the shape of `{arrays[0]}`"
    elif arrays and keeps_shape:
        shape = f"the shape of `{arrays[0]}`"
    else:
        return ""
    return f"    Tensor of {shape}.\n"


def _raises(errors: Iterable[Any]) -> str:
    """The section of errors, from the calls that must fail; the classes say why."""
    classes: dict[type[Exception], list[str]] = {}
    for _, keywords, cls, _ in errors:
        examples = classes.setdefault(cls, [])
        if cls is ArgumentError and len(keywords) == 1:  # of several it may be any
            ((name, value),) = keywords.items()
            text = f"``{name}={value!r}``"
            if len(text) < 40 and "array" not in text:
                examples.append(text)
    lines = ""
    for cls, examples in classes.items():
        why = (cls.__doc__ or "").partition(".")[0]
        such = f", such as {' or '.join(dict.fromkeys(examples))}" if examples else ""
        lines += f"    {cls.__name__}: {why[:1].lower()}{why[1:]}{such}.\n"
    return lines
