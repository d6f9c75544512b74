"""The page that lists every op with its modes, made from the registry.

python -m gpugrad.testing.page > gpugrad/ops/README.md
"""

from __future__ import annotations

from collections import defaultdict

from gpugrad.autodiff.forward import tangent_by
from gpugrad.registry.record import OPS, Op

__all__ = ["page"]

_KINDS = {"f": "float", "c": "complex", "i": "int", "b": "bool"}

_HEAD = """\
# Every op and its modes

Made from the registry by `python -m gpugrad.testing.page`; a test holds this page against it.
There are {count} ops, {differentiable} of them differentiable: each of those has passed its
gradient, its forward mode, the second order and `vmap` on the samples in its record
(`tests/test_ops.py`).

- **gradient**: the inputs that get one; *none* where the result does not vary smoothly.
- **forward mode**: how the tangent is made. *partials* are declared derivatives, *itself*: the op
  is linear, *rule*: a written one, *transposed*: from the gradient's rule, *body*: from the ops
  that it is made of.
- **vmap**: how examples run at once. *aligned*: arrays broadcast behind the batch axis, *stack*:
  the op takes stacks, *axis*: it runs along an axis, *formula*: one of its own, *body*: its ops
  do, *loop*: one example after the other.
"""


def _gradient(op: Op) -> str:
    if not op.differentiable:
        return "none"
    if op.kind == "composite":
        return "body"
    if op.variadic:
        return "all"
    given = [n for n, rule in zip(op.arrays, op.rules, strict=True) if rule is not None]
    return "all" if len(given) == len(op.arrays) else ", ".join(f"`{n}`" for n in given)


def _forward_mode(op: Op) -> str:
    if not op.differentiable:
        return "none"
    return "body" if op.kind == "composite" else tangent_by(op)


def _vmap(op: Op) -> str:
    if op.kind == "elementwise":
        return "aligned"
    if op.batch is None and op.kind == "composite" and op.differentiable:
        return "body"
    return "formula" if callable(op.batch) else op.batch or "loop"


def page() -> str:
    """The whole page, as Markdown."""
    rooms: dict[str, list[Op]] = defaultdict(list)
    for op in OPS.values():
        rooms[op.home.removeprefix("gpugrad.ops.").replace(".", "/")].append(op)
    lines = [
        _HEAD.format(count=len(OPS), differentiable=sum(op.differentiable for op in OPS.values()))
    ]
    for home in sorted(rooms):
        lines += [
            f"## [{home}]({home}.py)\n",
            "| op | what | dtypes | gradient | forward mode | vmap |",
            "|---|---|---|---|---|---|",
        ]
        for op in rooms[home]:
            what = op.doc.partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")
            kinds = " ".join(_KINDS[k] for k in op.kinds)
            cells = [f"`{op.name}`", what, kinds, _gradient(op), _forward_mode(op), _vmap(op)]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    import gpugrad  # noqa: F401  # registers every op

    print(page(), end="")
