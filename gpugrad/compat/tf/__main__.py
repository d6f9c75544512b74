"""List the names of TensorFlow that programs use and gpugrad.compat.tf lacks.

Those that gpugrad.compat.tf.v1 has are marked: run such a program with ``v1.install()``.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpugrad.compat import tf


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _aliases(tree: ast.AST) -> dict[str, str]:
    """Names that stand for TensorFlow or for a module of it, and what they stand for."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root, _, rest = alias.name.partition(".")
                if root == "tensorflow":
                    found[alias.asname or root] = rest if alias.asname else ""
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tensorflow":
            inside = (node.module or "").partition(".")[2]
            for alias in node.names:
                found[alias.asname or alias.name] = f"{inside}.{alias.name}".strip(".")
    return found


def _dotted(node: ast.AST) -> list[str]:
    """The parts of ``a.b.c``, none for other expressions."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        inside = _dotted(node.value)
        return [*inside, node.attr] if inside else []
    return []


def missing(source: str) -> dict[str, list[int]]:
    """Lines of a program by the names that it uses and that are missing.

    Raises:
        SyntaxError: it is not Python 3.
    """
    tree = ast.parse(source)
    aliases = _aliases(tree)
    found: dict[str, list[int]] = {}
    for node in ast.walk(tree):
        name, *rest = _dotted(node) or [""]
        if name not in aliases or (not rest and not aliases[name]):
            continue
        path = [*filter(None, aliases[name].split(".")), *rest]
        lacking = _first_missing(path)
        if lacking and (not rest or lacking.count(".") == len(path) - 1):
            found.setdefault(lacking, []).append(getattr(node, "lineno", 0))
    return {name: sorted(set(lines)) for name, lines in sorted(found.items())}


def _first_missing(path: list[str], module: Any = tf) -> str:
    value = module
    for i, part in enumerate(path):
        try:
            value = getattr(value, part)
        except AttributeError:
            return ".".join(path[: i + 1])
        if not hasattr(value, "__path__") and type(value).__name__ not in ("module", "_Names"):
            break
    return ""


def main() -> int:
    """Print the lines; the exit status is 1 if a name is missing."""
    parser = argparse.ArgumentParser(prog="python -m gpugrad.compat.tf", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a program or a folder")
    total = 0
    for file in _files(parser.parse_args().paths):
        try:
            names = missing(file.read_text(encoding="utf-8"))
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            print(f"{file}: {error}", file=sys.stderr)
            continue
        for name, lines in names.items():
            is_old = not _first_missing(name.split("."), tf.compat.v1)
            mark = " (in gpugrad.compat.tf.v1)" if is_old else ""
            print(f"{file}: tf.{name}{mark}, line {', '.join(map(str, lines))}")
        total += len(names)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
