"""The source folder of the site: docs/, pages from docs/README.md's sections, the API."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from docs_parts import others
from docs_parts.api import ROOT, Reference
from docs_parts.links import PAGES, broken, for_site

DOCS = ROOT / "docs"
_PROJECT = ["project/contributing.md", "project/changelog.md"]


def write(folder: Path) -> None:
    """Write the folder; a file with the same text keeps its time, so that Sphinx skips it."""
    wanted = dict(_pages())
    for path in DOCS.rglob("*"):
        name = str(path.relative_to(DOCS))
        if path.is_file() and "__pycache__" not in path.parts and name not in wanted:
            wanted[name] = path.read_bytes()
    for name, content in wanted.items():
        data = content if isinstance(content, bytes) else content.encode()
        path = folder / name
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    for path in folder.rglob("*"):
        if path.is_file() and str(path.relative_to(folder)) not in wanted:
            path.unlink()


def broken_links() -> list[str]:
    """A line for each link of the site's sources that leaves the repository or leads nowhere."""
    files = [*DOCS.rglob("*.md"), *(ROOT / name for name in PAGES if not name.startswith("docs/"))]
    return [line for file in files for line in broken(ROOT, file)]


def _pages() -> list[tuple[str, str]]:
    """Path and text of each page that is not a copy."""
    found = []
    guides = sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))
    guides.remove("README.md")
    for name in guides:
        text = for_site((DOCS / name).read_text(), f"docs/{name}", name, ROOT)
        if name.endswith("/README.md"):  # the contents of a folder
            inside = [p for p in guides if p != name and Path(p).parent == Path(name).parent]
            text += "\n" + toctree(Path(p).name for p in inside)
        found.append((name, text))
    for name, page in PAGES.items():
        if page not in ("index.md", "guides.md"):
            found.append((page, for_site((ROOT / name).read_text(), name, page, ROOT)))
    folders = [name for name in guides if name.endswith("/README.md")]
    single = [p for p in guides if "/" not in p]
    listed = sections((DOCS / "README.md").read_text(), single)
    found.append(("guides.md", _guides((DOCS / "README.md").read_text(), listed)))
    found += _api()
    found.append(("project/index.md", _titled("Project", [f"/{name}" for name in _PROJECT])))
    found.append(("index.md", _index(listed, folders)))
    return found


def toctree(pages: Iterable[str], options: str = ":hidden:") -> str:
    """A list of pages for the sidebar."""
    return f"```{{toctree}}\n{options}\n\n" + "\n".join(pages) + "\n```\n"


def sections(text: str, pages: list[str]) -> dict[str, list[str]]:
    """Titles of the sections of docs/README.md, with the pages that each is the first to name.

    A page that the text does not name joins the last section.
    """
    parts = re.split(r"^#{1,2} (.+)\n", text, flags=re.MULTILINE)[1:]
    found, left = {}, list(pages)
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        here = [p for p in dict.fromkeys(re.findall(r"\]\(([\w-]+\.md)", body)) if p in left]
        left = [p for p in left if p not in here]
        if here:
            found[title] = here
    next(reversed(found.values())).extend(left)
    return found


def _guides(text: str, listed: dict[str, list[str]]) -> str:
    """docs/README.md as a page, with its sections in the sidebar."""
    shown = for_site(text, "docs/README.md", "guides.md", ROOT)
    lists = [toctree(pages, f":hidden:\n:caption: {title}") for title, pages in listed.items()]
    return "\n".join([shown, *lists])


def _titled(title: str, pages: list[str], text: str = "") -> str:
    return f"# {title}\n\n{text}\n\n" + toctree(pages, ":maxdepth: 1")


def _api() -> list[tuple[str, str]]:
    reference = Reference()
    written = [*reference.pages(), *others.pages(reference)]
    spaces = [name for name, _ in written if not name.startswith("names/")]
    order = sorted((name.removesuffix(".md") for name in spaces), key=_order)
    text = (
        "Every public name, from its docstring and, for an op, its record. "
        "[All ops and their modes](ops.md) are on one page too."
    )
    found = [(f"api/{name}", page) for name, page in written]
    return [*found, ("api/index.md", _titled("API reference", [*order, "ops"], text))]


def _order(name: str) -> tuple[bool, str]:
    return (not name.startswith("gpugrad"), name)


def _index(listed: dict[str, list[str]], folders: list[str]) -> str:
    """README.md, with the contents of the site at its end."""
    more = [*folders, "api/index.md", "api/ops.md", *_PROJECT]
    lines = ["## On this site"]
    for title, pages in [*listed.items(), ("More", more)]:
        lines.append(f"**{title}:** " + " · ".join(f"[]({page})" for page in pages))
    top = ["guides.md", *folders, "api/index.md", "project/index.md"]
    readme = for_site((ROOT / "README.md").read_text(), "README.md", "index.md", ROOT)
    return "\n\n".join([readme.rstrip(), *lines, toctree(top)])
