"""The API reference as Markdown: a page for each public name, and one for each namespace.

Public names are those of tests/golden/public_names.txt. A name's page has its signature, its
docstring and, for an op, its modes from the record. Names of one object share a page. Namespaces
that follow another library's (`gpugrad.numpy`, `gpugrad.compat`, most of `gpugrad.scipy`) are
tables with links.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.machinery
import importlib.util
import inspect
import re
import types
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from docs_parts import docstrings
from docs_parts.links import REPOSITORY

ROOT = Path(__file__).resolve().parents[2]
NAMES = ROOT / "tests" / "golden" / "public_names.txt"
_PARTS = {
    "array_api": "Arrays", "core": "Tensors, devices, settings", "autodiff": "Tapes",
    "transforms": "Transforms of functions", "function": "Traced functions",
    "registry": "Declaring ops", "checkpoint": "Transforms of functions",
    "kernels": "Tensors, devices, settings", "cuda": "Tensors, devices, settings",
    "ops.arrays": "Arrays", "ops.math": "Mathematics", "ops.linalg": "Linear algebra",
    "ops.fft": "Fourier transforms", "ops.special": "Special functions",
    "ops.random": "Random numbers", "ops.nn": "Neural networks", "ops.scipy": "SciPy's functions",
}  # fmt: skip
"""Titles of groups of names, by the floor or shelf that defines them."""


@dataclasses.dataclass
class Entry:
    """A public function or class, with all of its names.

    Attributes:
        names: all public names, with the namespace; the page has the first one's.
        thing: the object.
        op: the op's record, or None.
    """

    names: list[str]
    thing: Any
    op: Any = None

    @property
    def name(self) -> str:
        """The name of its page."""
        return self.names[0]

    @property
    def page(self) -> str:
        """Its page, without a suffix; not two that differ by the case of letters alone."""
        kind = "-class" if inspect.isclass(self.thing) else ""
        return f"names/{self.name}{kind}"

    @property
    def doc(self) -> str:
        """Its docstring."""
        return inspect.getdoc(self.thing) or ""


class Reference:
    """The public names, and the pages about them."""

    def __init__(self) -> None:
        import gpugrad

        self.ops = gpugrad.OPS
        by_eager = {id(op.eager): op for op in self.ops.values()}
        self.entries: dict[int, Entry] = {}
        self.values: dict[str, Any] = {}
        self.homes: list[str] = []
        names = [line.split("(")[0] for line in NAMES.read_text().splitlines()]
        names = [name for name in names if name.startswith("gpugrad.")]
        for name in sorted(names, key=lambda n: (n.count("."), n.startswith("gpugrad.nn.f"))):
            home, _, last = name.rpartition(".")
            thing = getattr(importlib.import_module(home), last)
            if home not in self.homes:
                self.homes.append(home)
            if isinstance(thing, types.ModuleType) or not callable(thing):
                self.values[name] = thing
            elif id(thing) in self.entries:
                self.entries[id(thing)].names.append(name)
            else:
                op = by_eager.get(id(thing)) or self._behind(thing, last)
                self.entries[id(thing)] = Entry([name], thing, op)
        self.by_name = {n: entry for entry in self.entries.values() for n in entry.names}
        self.homes.sort()

    def _behind(self, thing: Any, name: str) -> Any:
        """The op of its name that a function of a namespace calls, or None."""
        namespace = re.fullmatch(
            r"gpugrad\.(linalg|fft|special|random|array_api\..*|nn\..*|ops\..*)",
            getattr(thing, "__module__", None) or "",
        )
        return (
            self.ops[name] if namespace and inspect.isfunction(thing) and name in self.ops else None
        )

    def link(self, home: str, above: str) -> docstrings.Link:
        """The function that finds the page of a name in a docstring of the namespace `home`."""

        def find(code: str) -> str | None:
            code = re.sub(r"\(.*\)$", "", re.sub(r"^gg\.", "gpugrad.", code))
            if not re.fullmatch(r"[A-Za-z_][\w.]*", code):
                return None
            for name in (code, f"{home}.{code}", f"gpugrad.{code}", f"gpugrad.errors.{code}"):
                if name in self.by_name:
                    return f"{above}{self.by_name[name].page}.md"
                if name in self.homes and name != "gpugrad":
                    return f"{above}{name}.md"
            return None

        return functools.cache(find)

    def pages(self) -> Iterator[tuple[str, str]]:
        """The path below api/ and the text of each page."""
        for entry in self.entries.values():
            yield f"{entry.page}.md", self._page_of(entry)
        for home in self.homes:
            yield f"{home}.md", self._namespace(home)

    # ---- a name ----------------------------------------------------------------------

    def _page_of(self, entry: Entry) -> str:
        home = entry.name.rpartition(".")[0]
        link = self.link(home, "../")
        own = {*entry.names, *(entry.op.arrays if entry.op else ())}

        def link_here(code: str) -> str | None:
            to = link(code) if code not in own else None
            return None if to == f"../{entry.page}.md" else to

        kind = "class" if inspect.isclass(entry.thing) else "function"
        signatures = "\n".join(f"{name}{signature(entry.thing)}" for name in entry.names)
        body = docstrings.markdown(entry.doc, link_here)
        if kind == "class":
            body += self._members(entry, link_here)
        parts = [
            f"---\norphan: true\n---\n# {entry.name.removeprefix('gpugrad.')}",
            f"[API](../index.md) / [{home}](../{home}.md)",
            f":::::{{py:{kind}}} {signatures}\n:::::\n\n{body}",
        ]
        bases = [self.entries.get(id(base)) for base in getattr(entry.thing, "__bases__", ())]
        if links := ", ".join(f"[`{b.name}`](../{b.page}.md)" for b in bases if b is not None):
            parts.insert(2, f"A subclass of {links}.")
        if entry.op is not None:
            parts.append(modes(entry.op))
        if source := source_of(entry):
            parts.append(f"Source: [`{source}`]({REPOSITORY}/blob/main/{source})")
        return "\n\n".join(parts) + "\n"

    def _members(self, entry: Entry, link: docstrings.Link) -> str:
        """The methods and properties that the class itself defines."""
        text = ""
        for name, thing in members(entry.thing, self.entries):
            doc = inspect.getdoc(thing) or ""
            op = self.ops.get(name) if name in self.ops else None
            if op is not None and doc == inspect.cleandoc(op.doc or ""):
                doc = f"As `gg.{name}`."
            kind = "method" if callable(thing) else "attribute"
            called = signature(thing, method=True) if callable(thing) else ""
            body = docstrings.markdown(doc, link)
            text += f"\n\n:::::{{py:{kind}}} {entry.name}.{name}{called}\n{body}\n:::::"
        return f"\n\n## Methods and attributes{text}" if text else ""

    # ---- namespaces ------------------------------------------------------------------

    def _namespace(self, home: str) -> str:
        module = importlib.import_module(home)
        link = self.link(home, "")
        groups: dict[str, list[str]] = {}
        for name, entry in sorted(self.by_name.items(), key=lambda item: item[0].lower()):
            if name.rpartition(".")[0] == home:
                what = docstrings.summary(entry.doc, lambda _: None)
                row = f"| [`{name.rpartition('.')[2]}`]({entry.page}.md) | {what} |"
                groups.setdefault(group_of(entry, home), []).append(row)
        rows = []
        for name, value in sorted(self.values.items()):
            if name.rpartition(".")[0] == home:
                last = name.rpartition(".")[2]
                full = getattr(value, "__name__", "")
                page = f"[`{last}`]({full}.md)" if full in self.homes else f"`{last}`"
                rows.append(f"| {page} | {value_text(value)} |")
        if rows:
            groups["Namespaces, dtypes and constants"] = rows
        text = f"# {home}\n\n{docstrings.markdown(inspect.getdoc(module) or '', link)}\n"
        for title, lines in groups.items():
            if len(groups) > 1:
                text += f"\n## {title}\n"
            text += "\n| name | summary |\n|---|---|\n" + "\n".join(lines) + "\n"
        return text


def group_of(entry: Entry, home: str) -> str:
    """The title of the group that a name stands in: of large namespaces, by who defines it."""
    if home != "gpugrad":
        return "Classes" if inspect.isclass(entry.thing) else "Functions"
    where = (entry.op.home if entry.op else getattr(entry.thing, "__module__", "")) or ""
    where = where.removeprefix("gpugrad.") if where != "gpugrad" else "core"
    for depth in (2, 1):
        if title := _PARTS.get(".".join(where.split(".")[:depth])):
            return title
    return "Others"


def value_text(value: Any) -> str:
    """A cell about a module, a dtype or a constant."""
    if isinstance(value, types.ModuleType):
        return docstrings.summary(value.__doc__ or "", lambda _: None)
    text = repr(value)
    return f"`{text}`" if len(text) < 60 else f"{type(value).__name__}"


def signature(thing: Any, method: bool = False) -> str:
    """How a function or a class is called, without annotations."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "()" if inspect.isroutine(thing) else ""
    parameters = list(found.parameters.values())
    if method and parameters and parameters[0].name in ("self", "cls", "x"):
        parameters = parameters[1:]
        if parameters and parameters[0].kind is inspect.Parameter.POSITIONAL_ONLY:
            parameters = [
                p.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
                if p.kind is inspect.Parameter.POSITIONAL_ONLY else p
                for p in parameters
            ]  # fmt: skip
    plain = [
        p.replace(
            annotation=p.empty, default=p.empty if p.default is p.empty else _Shown(p.default)
        )
        for p in parameters
    ]
    return str(inspect.Signature(plain, __validate_parameters__=False))


class _Shown:
    """A default value as a signature shows it: an expression."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        text = repr(self.value)
        if text.startswith("<"):
            text = getattr(self.value, "__name__", "...")
        return text if len(text) < 40 else "..."


def members(cls: type, documented: Container[int] = ()) -> list[tuple[str, Any]]:
    """The public attributes with docstrings that a class, or a base without a page, defines."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        own = base is cls or id(base) not in documented
        if own and base.__module__.startswith("gpugrad"):
            found |= {n: t for n, t in vars(base).items() if not n.startswith("_")}
    plain = {}
    for name, thing in found.items():
        thing = getattr(thing, "__func__", thing)
        if (callable(thing) or hasattr(thing, "__get__")) and inspect.getdoc(thing):
            plain[name] = thing
    return sorted(plain.items())


def source_of(entry: Entry) -> str | None:
    """The file that defines a name, below the repository's root."""
    home = entry.op.home if entry.op is not None else getattr(entry.thing, "__module__", None)
    if not (home or "").startswith("gpugrad"):
        return None
    spec = importlib.util.find_spec(home)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else None


# ---- modes of ops ------------------------------------------------------------------------


@functools.cache
def script(name: str) -> Any:
    """A command of ci/ as a module."""
    loader = importlib.machinery.SourceFileLoader(f"ci_{name}", str(ROOT / "ci" / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def modes(op: Any) -> str:
    """A table of an op's modes: the columns of gpugrad/ops/README.md, and kernels."""
    columns = script("ops_page").columns(op)
    complexes = "c" in op.kinds
    columns["complex gradients"] = (
        "no gradient" if not op.differentiable else "yes" if complexes or op.linear is True
        else "raises if a complex tensor is watched"
    )  # fmt: skip
    columns["kernel on a GPU"] = gpu_kernel(op)
    rows = "\n".join(f"| {name} | {value} |" for name, value in columns.items())
    meaning = "[What the modes mean](../ops.md)."
    return f"## Modes\n\n| mode | here |\n|---|---|\n{rows}\n\n{meaning}"


def gpu_kernel(op: Any) -> str:
    """The code that runs the forward on CuPy arrays."""
    import numpy as np

    from gpugrad.kernels.codegen.code import NoCodeError
    from gpugrad.kernels.codegen.for_ops import forward_of

    if op.cuda is not None:
        return "written by hand, or a library's"
    if op.kind == "composite":
        return "those of the ops that it calls"
    if op.kind == "elementwise":
        kind = {"f": np.float32, "i": np.int32, "b": np.bool_, "c": np.complex64}[op.kinds[0]]
        try:
            forward_of(op, [np.dtype(kind)] * len(op.arrays))
        except NoCodeError:
            pass
        else:
            return "generated from its formula"
    return "CuPy's functions, as its formula calls them"
