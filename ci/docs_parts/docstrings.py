"""Docstrings as Markdown: sections become lists, examples become code, names become links."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator

Link = Callable[[str], str | None]
"""The page of a public name, or None."""

_SECTION = re.compile(r"^(Args|Returns|Raises|Attributes|Warns|Yields):$")
_TITLES = {"Args": "Arguments", "Returns": "Result", "Raises": "Errors", "Warns": "Warnings"}
_ITEM = re.compile(r"^(\*{0,2}\w[\w.]*(?:, \*{0,2}\w[\w.]*)*): +(?=\S)")
_CODE = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)
_NUMPYS = re.compile(r"^ *(Parameters|Returns|Notes|See Also|Examples)\n *-{3,}$", re.MULTILINE)


def markdown(doc: str, link: Link) -> str:
    """A docstring as Markdown. Of one in NumPy's format only what stands before the sections."""
    if found := _NUMPYS.search(doc):
        doc = doc[: found.start()]
    return "\n\n".join(_blocks(doc.strip("\n").splitlines(), link))


def summary(doc: str, link: Link) -> str:
    """The first paragraph, for a cell of a table."""
    first = " ".join(doc.strip().partition("\n\n")[0].split())
    return prose(first, link).replace("|", r"\|")


def prose(text: str, link: Link) -> str:
    """Text whose names in backticks are links, and in which Markdown's other marks mean nothing."""

    def one(part: str) -> str:
        if not part.startswith("`"):
            return re.sub(r"([\\*\[\]<>$^~{}]|(?<!\w)_|_(?!\w))", r"\\\1", part)
        code = part.strip("`").replace("\n", " ")
        target = link(code) if not part.startswith("``") else None
        return (
            f"[`{code}`]({target})" if target else f"`` {code} ``" if "`" in code else f"`{code}`"
        )

    return "".join(one(part) for part in _CODE.split(text))


def _blocks(lines: list[str], link: Link) -> Iterator[str]:
    """The blocks of a docstring: paragraphs, sections, examples, literal blocks."""
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif found := _SECTION.match(line):
            end = _end_of_indented(lines, at + 1)
            yield _section(found[1], textwrap.dedent("\n".join(lines[at + 1 : end])), link)
            at = end
        else:
            end = next((i for i in range(at, len(lines)) if not lines[i].strip()), len(lines))
            if line.startswith(">>>"):
                yield "```pycon\n" + "\n".join(lines[at:end]) + "\n```"
            elif line.startswith("    "):
                end = _end_of_indented(lines, at)
                code = textwrap.dedent("\n".join(lines[at:end])).rstrip()
                yield f"```text\n{code}\n```"
            else:
                yield _paragraph(lines[at:end], link)
            at = end


def _end_of_indented(lines: list[str], start: int) -> int:
    """Where the indented lines from `start` end; blank ones between them belong to them."""
    inside = (i for i in range(start, len(lines)) if lines[i].strip() and lines[i][:1] != " ")
    return next(inside, len(lines))


def _paragraph(lines: list[str], link: Link) -> str:
    """A paragraph up to an example that begins within it; a list stays one."""
    code = next((i for i, line in enumerate(lines) if line.startswith(">>>")), len(lines))
    text = prose("\n".join(lines[:code]), link).replace("::", ":", text_ends(lines[:code]))
    if code == len(lines):
        return text
    return f"{text}\n\n```pycon\n" + "\n".join(lines[code:]) + "\n```"


def text_ends(lines: list[str]) -> int:
    """1 if a paragraph ends in the mark of a literal block, which Markdown does not have."""
    return int(lines[-1].rstrip().endswith("::")) if lines else 0


def _section(name: str, body: str, link: Link) -> str:
    """A title, and a list of the items; a result without names is a paragraph."""
    title = f"**{_TITLES.get(name, name)}**"
    items: list[list[str]] = []
    for line in body.splitlines():
        if not items or _ITEM.match(line):
            items.append([])
        items[-1].append(line)
    if not _ITEM.match(body) or name in ("Returns", "Yields"):
        return f"{title}\n\n" + "\n\n".join(_blocks(body.splitlines(), link))
    return f"{title}\n\n" + "\n".join(_item(item, link, name) for item in items)


def _item(lines: list[str], link: Link, section: str) -> str:
    names, text = "\n".join(lines).split(":", 1)
    shown = ", ".join(
        prose(f"`{n}`", link if section in ("Raises", "Warns") else lambda _: None)
        for n in names.split(", ")
    )
    first, _, rest = text.lstrip().partition("\n")
    text = "\n".join(filter(None, [first, textwrap.dedent(rest)]))
    return textwrap.indent(f"{shown}: {prose(text, link)}", "  ").replace("  ", "- ", 1)
