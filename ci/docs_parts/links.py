"""Relative links of Markdown files: on the site, and whether they lead somewhere.

In the repository a link is relative, so that it works where the file is read. On the site a file
that is a page of it gets a link to the page; any other file one to the repository.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = "https://github.com/gpugrad/gpugrad"
PAGES = {  # files outside of docs/ that are pages of the site
    "README.md": "index", "docs/README.md": "index", "docs/index.rst": "index",
    "CONTRIBUTING.md": "project/contributing.md", "CHANGELOG.md": "project/changelog.md",
    "gpugrad/ops/README.md": "api/ops.md",
}  # fmt: skip

_FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1`*$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(
    r"(?P<before>\]\(|^\[[^\]]+\]: *|<img [^>]*src=\")(?P<target>[^)\s\"]+)", re.MULTILINE
)


def relative_links(text: str) -> Iterator[tuple[int, str]]:
    """The line and the target of each relative link outside of code."""
    text = _FENCE.sub(lambda code: "\n" * code[0].count("\n"), text)
    text = re.sub(r"`[^`\n]*`", lambda code: " " * len(code[0]), text)
    for link in _LINK.finditer(text):
        if not re.match(r"\w+:|#|//", link["target"]):
            yield text.count("\n", 0, link.start()) + 1, link["target"]


def broken(root: Path, file: Path) -> Iterator[str]:
    """A line for each relative link of a file that leaves the repository or leads nowhere."""
    for line, target in relative_links(file.read_text()):
        path = target.partition("#")[0]
        found = (file.parent / path).resolve()
        where = f"{file.relative_to(root)}:{line}: {target}"
        if path.startswith("/") or not found.is_relative_to(root):
            yield f"{where} leaves the repository"
        elif not found.exists():
            yield f"{where} leads nowhere"


def for_site(text: str, file: str, page: str, root: Path) -> str:
    """The text of the repository's `file` as the site's `page`, with links that work there."""

    def one(link: re.Match[str]) -> str:
        target, mark, anchor = link["target"].partition("#")
        if not target or re.match(r"\w+:|//", target):
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(file), target))
        if path in PAGES or (path.startswith("docs/") and (root / path).is_file()):
            to = PAGES.get(path, path.removeprefix("docs/"))
            to = f"{to}.rst" if to == "index" else to
            target = posixpath.relpath(to, posixpath.dirname(page) or ".")
        else:
            kind = "tree" if (root / path).is_dir() else "blob"
            target = f"{REPOSITORY}/{kind}/main/{path}"
        return f"{link['before']}{target}{mark}{anchor}"

    parts, at = [], 0
    for code in _FENCE.finditer(text):
        parts += [_LINK.sub(one, text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*parts, _LINK.sub(one, text[at:])])
