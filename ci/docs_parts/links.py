"""Links of Markdown files to files of the repository: on the site, and whether they lead somewhere.

A guide links to its neighbours by relative paths, and README.md, which the package index shows too,
by addresses in the repository. On the site both become links to pages of the site, where there is
one, and else addresses in the repository.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = "https://github.com/gpugrad/gpugrad"
PAGES = {  # files that are pages of the site by other names
    "README.md": "index.md", "docs/README.md": "guides.md",
    "CONTRIBUTING.md": "project/contributing.md", "CHANGELOG.md": "project/changelog.md",
    "gpugrad/ops/README.md": "api/ops.md",
}  # fmt: skip

_ABSOLUTE = re.compile(r"\w+:|#|//")
_FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1`*$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(
    r"(?P<before>\]\(|^\[[^\]]+\]: *|<img [^>]*src=\")(?P<target>[^)\s\"]+)", re.MULTILINE
)


_RAW = REPOSITORY.replace("github.com", "raw.githubusercontent.com")
_OWN = re.compile(rf"{REPOSITORY}/(?:blob|tree)/main/|{_RAW}/main/")


def own_links(text: str) -> Iterator[tuple[int, str]]:
    """The line and the target of each link outside of code to a file of the repository."""
    text = _FENCE.sub(lambda code: "\n" * code[0].count("\n"), text)
    text = re.sub(r"`[^`\n]*`", lambda code: " " * len(code[0]), text)
    for link in _LINK.finditer(text):
        if _OWN.match(link["target"]) or not _ABSOLUTE.match(link["target"]):
            yield text.count("\n", 0, link.start()) + 1, link["target"]


def _path(target: str, folder: str) -> str:
    """The path in the repository that a link leads to, without its anchor."""
    path = target.partition("#")[0]
    if own := _OWN.match(path):
        return posixpath.normpath(path[own.end() :])
    return posixpath.normpath(posixpath.join(folder, path))


def broken(root: Path, file: Path) -> Iterator[str]:
    """A line for each link of a file that leaves the repository or leads nowhere."""
    name = file.relative_to(root).as_posix()
    for line, target in own_links(file.read_text()):
        path = _path(target, posixpath.dirname(name))
        if path.startswith(("/", "..")):
            yield f"{name}:{line}: {target} leaves the repository"
        elif not (root / path).exists():
            yield f"{name}:{line}: {target} leads nowhere"


def for_site(text: str, file: str, page: str, root: Path) -> str:
    """The text of the repository's `file` as the site's `page`, with links that work there."""

    def one(link: re.Match[str]) -> str:
        target = link["target"]
        if not _OWN.match(target) and _ABSOLUTE.match(target):
            return link[0]
        path, anchor = _path(target, posixpath.dirname(file)), "".join(target.partition("#")[1:])
        if path in PAGES or (path.startswith("docs/") and (root / path).is_file()):
            to = PAGES.get(path, path.removeprefix("docs/"))
            target = posixpath.relpath(to, posixpath.dirname(page) or ".")
        else:
            kind = "tree" if (root / path).is_dir() else "blob"
            target = f"{REPOSITORY}/{kind}/main/{path}"
        return f"{link['before']}{target}{anchor}"

    parts, at = [], 0
    for code in _FENCE.finditer(text):
        parts += [_LINK.sub(one, text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*parts, _LINK.sub(one, text[at:])])
