"""A formula and the facts about an op stand once, in the op's record.

``python tests/test_formulas_once.py`` prints how many op names stand elsewhere, and how many steps
of formulas passes write by hand.
"""

import ast
import collections
import sys
from collections.abc import Iterator
from pathlib import Path

import gpugrad as gg

ROOT = Path(gg.__file__).parent
FLOORS = ("core", "kernels", "trace", "autodiff", "registry", "function")

ALLOWED = {
    "core/views.py": (2, "an index alone decides by its values whether it is a view"),
    "kernels/codegen/code_reading.py": (5, "four of NumPy's names, and the op that fills by parts"),
    "kernels/codegen/for_ops.py": (1, "positive promises a new array"),
    "registry/function_text.py": (1, "an index decides by its values whether it is a view"),
    "registry/numpys_form.py": (2, "NumPy hid two signatures"),
    "function/cpu/replay.py": (1, "NumPy's relu is slow"),
    "function/passes/axes.py": (1, "a sum of products is a reduction of two arrays"),
    "function/passes/half.py": (1, "cuDNN wants the channels of convolutions last"),
    "function/passes/losses.py": (1, "the mean over labels that count divides so"),
    "function/passes/pieces.py": (4, "joins and padded gradients of indices are pieces"),
    "function/passes/products.py": (7, "the activations of cuBLASLt's and cuDNN's epilogues"),
    "function/passes/relus.py": (3, "what the kernels of batch norms with relu compute"),
    "function/passes/rewrite.py": (1, "the libraries compute products of matrices"),
    "function/passes/simplify.py": (2, "rows in order"),
    "function/passes/tied.py": (1, "one launcher adds rows to an array that is there"),
}
"""How many op names may stand in a file, and why."""

MOST = 40
"""Op names that may stand outside of records in all files together."""

BY_HAND = 3
"""Different ops of one formula, from which a function of a pass writes the formula by hand."""


def names_in(*nodes: ast.AST) -> list[str]:
    """The op names among strings, and in tuples, lists, sets and dicts of strings."""
    found: list[str] = []
    for node in nodes:
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            found += names_in(*node.elts)
        elif isinstance(node, ast.Dict):
            found += names_in(*filter(None, node.keys))
        elif isinstance(node, ast.Call):  # frozenset((...))
            found += names_in(*node.args)
        elif isinstance(node, ast.Constant) and node.value in gg.OPS:
            found.append(node.value)
    return found


def is_name(node: ast.AST) -> bool:
    """Whether an expression may be the name of an op: ``step.name``, or a variable `name`."""
    return "name" in (getattr(node, "attr", ""), getattr(node, "id", ""))


def compared_or_listed(tree: ast.AST, tables: bool) -> Iterator[str]:
    """The op names that code compares a name with, or keeps in tables and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(map(is_name, [node.left, *node.comparators])):
            yield from names_in(node.left, *node.comparators)
        elif isinstance(node, ast.Match) and is_name(node.subject):
            patterns = (p for case in node.cases for p in ast.walk(case.pattern))
            yield from names_in(*(p.value for p in patterns if isinstance(p, ast.MatchValue)))
        elif isinstance(node, ast.Call):
            method = isinstance(node.func, ast.Attribute) and is_name(node.func.value)
            if method or getattr(node.func, "id", "") == "_is":  # name.startswith, _is(step, ...)
                yield from names_in(*(a for a in node.args if not isinstance(a, ast.Call)))
        elif tables and isinstance(node, (ast.Dict, ast.Set)) and len(names_in(node)) > 1:
            yield from names_in(node)


def steps_by_hand(tree: ast.AST) -> list[str]:
    """The elementwise ops that functions with several of them write as steps, by name."""
    found: list[str] = []
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef):
            calls = [n for n in ast.walk(scope) if isinstance(n, ast.Call)]
            methods = [c for c in calls if isinstance(c.func, (ast.Attribute, ast.Name))]
            names = [n for c in methods for n in names_in(*c.args[:2]) if not is_asked(c)]
            by_element = {n for n in names if gg.OPS[n].by_element or gg.OPS[n].reduces}
            found += sorted(by_element) if len(by_element) >= BY_HAND else []
    return found


def is_asked(call: ast.Call) -> bool:
    """Whether a call asks for a name and writes nothing."""
    return getattr(call.func, "id", "") == "_is"


def counted() -> tuple[collections.Counter[str], list[str]]:
    """How many op names stand in each file, and the steps that passes write by hand."""
    tests, steps = collections.Counter[str](), []
    for floor in FLOORS:
        for path in sorted((ROOT / floor).rglob("*.py")):
            tree = ast.parse(path.read_text())
            # tables of core and kernels are about operators and functions of libraries
            names = [*compared_or_listed(tree, floor not in ("core", "kernels"))]
            tests.update({path.relative_to(ROOT).as_posix(): len(names)} if names else {})
            steps += steps_by_hand(tree) if "passes" in path.parts else []
    return tests, steps


def test_op_names_stand_in_records_or_in_the_list():
    tests, _ = counted()
    more = {f: n for f, n in tests.items() if n > ALLOWED.get(f, (0, ""))[0]}
    assert not more, f"ask a field of the record instead of a name: {more}"
    fewer = {f for f, (n, _) in ALLOWED.items() if tests[f] < n}
    assert not fewer, f"lower the numbers in ALLOWED: {fewer}"
    assert sum(tests.values()) <= MOST


def test_passes_write_no_formulas():
    assert counted()[1] == []


def test_every_way_to_write_a_list_of_names_is_seen():
    text = """
if step.name == "exp" or step.op.name in ("log", "sin") or name in {"cos"}: pass
match step.name:
    case "tan" | "add": pass
table = {"sqrt": 1, "cbrt": 2}
step.name.startswith("exp2")
"""
    assert len([*compared_or_listed(ast.parse(text), True)]) == 9
    assert [*compared_or_listed(ast.parse("text == 'exp'"), True)] == []


def test_a_formula_written_by_hand_is_seen():
    text = """
def softmax(do, x):
    e = do("exp", do("subtract", x, do("max", x)))
    return do("divide", e, do("sum", e))
"""
    assert len(steps_by_hand(ast.parse(text))) == 5


if __name__ == "__main__":
    tests, steps = counted()
    print(f"{sum(tests.values())} op names outside of records, in {len(tests)} files")
    print(f"{len(steps)} steps of formulas written by hand in passes")
    if "-v" in sys.argv:
        print(*tests.items(), *steps, sep="\n")
