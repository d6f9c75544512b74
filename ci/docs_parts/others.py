"""Pages about namespaces that follow other libraries: tables of names with links."""

from __future__ import annotations

import importlib
import re
import types
from collections.abc import Iterator

from docs_parts.api import ROOT, Reference

_SCIPY = "https://docs.scipy.org/doc/scipy/reference/generated/scipy.{}.html"
_NUMPY = "https://numpy.org/doc/stable/reference/generated/numpy.{}.html"
_OURS = {"special": "gpugrad.special", "fft": "gpugrad.fft", "linalg": "gpugrad.linalg"}
NUMPYS = ("", "fft", "linalg", "random", "polynomial.polynomial")
COMPATS = {
    "cupy": ("CuPy", ("", ".linalg", ".fft", ".random")),
    "autograd": ("autograd", ("", ".numpy")),
    "tf": ("TensorFlow", ("", ".nn", ".math", ".linalg", ".random")),
}


def pages(reference: Reference) -> Iterator[tuple[str, str]]:
    """The path below api/ and the text of each page."""
    yield "gpugrad.numpy.md", _numpy(reference)
    for module, rows in _scipy_rows().items():
        if f"gpugrad.scipy.{module}" not in reference.homes:
            yield f"gpugrad.scipy.{module}.md", _scipy(reference, module, rows)
    for name, (title, parts) in COMPATS.items():
        yield f"gpugrad.compat.{name}.md", _compat(reference, name, title, parts)


def _numpy(reference: Reference) -> str:
    text = (
        "# gpugrad.numpy\n\nNumPy's names with NumPy's arguments, on Tensors: see the "
        "[guide](../numpy.md). Names have NumPy's own documentation.\n"
    )
    for part in NUMPYS:
        module = importlib.import_module(f"gpugrad.numpy.{part}".rstrip("."))
        prefix = f"{part}." if part else ""
        text += f"\n## gpugrad.numpy{'.' if part else ''}{part}\n\n"
        text += "| name | op or function behind it | documentation |\n|---|---|---|\n"
        for name in public(module):
            if not callable(getattr(module, name)):
                continue
            behind = _page(reference, *(f"gpugrad.{p}{name}" for p in (prefix, "")))
            text += f"| `{name}` | {behind} | [NumPy]({_NUMPY.format(prefix + name)}) |\n"
    return text


def _page(reference: Reference, *names: str) -> str:
    for name in names:
        if entry := reference.by_name.get(name):
            return f"[`{name.removeprefix('gpugrad.')}`]({entry.page}.md)"
    return ""


def public(module: types.ModuleType) -> list[str]:
    """A module's names: of its ``__all__``, or those that do not begin with an underscore."""
    return sorted(getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"])


def _scipy_rows() -> dict[str, list[tuple[str, str, str]]]:
    """Names, derivative and other libraries by module, as docs/scipy_names.md has them."""
    text = (ROOT / "docs" / "scipy_names.md").read_text()
    found = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        module, _, rest = section.partition("\n")
        rows = re.findall(r"^\| ([^|]*) \| ([^|]*) \| (`.*`) \|$", rest, re.MULTILINE)
        found[module.strip()] = sorted(
            (name, here.strip(), also.strip())
            for here, also, names in rows for name in re.findall(r"`(\w+)`", names)
        )  # fmt: skip
    return found


def _scipy(reference: Reference, module: str, rows: list[tuple[str, str, str]]) -> str:
    words = {"derivative": "yes", "passes": "no: raises under a tape", "-": "none to have"}
    text = (
        f"# gpugrad.scipy.{module}\n\nSciPy's names with SciPy's arguments, on Tensors: see the "
        "[guide](../scipy.md) and [all modules](../scipy_names.md).\n\n"
        "| name | derivative | page here | documentation |\n|---|---|---|---|\n"
    )
    for name, here, _ in rows:
        ours = f"{_OURS.get(module, f'gpugrad.scipy.{module}')}.{name}"
        url = _SCIPY.format(f"{module}.{name}")
        page = _page(reference, ours)
        text += f"| `{name}` | {words.get(here, here)} | {page} | [SciPy]({url}) |\n"
    return text


def _compat(reference: Reference, name: str, title: str, parts: tuple[str, ...]) -> str:
    guides = (f"coming-from-{title.lower()}.md", f"{title.lower()}.md", "moving.md")
    guide = next(g for g in guides if (ROOT / "docs" / g).exists())
    text = f"# gpugrad.compat.{name}\n\n{title}'s names: see the [guide](../{guide}).\n"
    for part in parts:
        module = importlib.import_module(f"gpugrad.compat.{name}")
        for piece in filter(None, part.split(".")):
            module = getattr(module, piece)
        shown = []
        for each in public(module):
            thing = getattr(module, each, None)
            entry = reference.entries.get(id(thing))
            if isinstance(thing, types.ModuleType) or not callable(thing):
                continue
            if not str(getattr(thing, "__module__", "gpugrad")).startswith(("gpugrad", "numpy")):
                continue
            shown.append(f"[`{each}`]({entry.page}.md)" if entry else f"`{each}`")
        text += f"\n## gpugrad.compat.{name}{part}\n\n{' '.join(shown)}\n"
    return text
