"""The op record: its fields, what a declaration refuses, and how a record is replaced."""

import ast
import dataclasses
import inspect
from pathlib import Path

import numpy as np
import pytest
from taping import tape_gradient

import gpugrad as gg
from gpugrad.errors import ArgumentError, NoGradientError
from gpugrad.registry import fields

HOUSE = Path(gg.__file__).parent


def test_signatures_of_declarations_show_every_field():
    names = {f.name for group in fields.GROUPS for f in dataclasses.fields(group)}
    shown = {
        declare: set(inspect.signature(declare).parameters) for declare in (gg.op, gg.elementwise)
    }
    assert names - shown[gg.op] == {"d", "singular"}
    assert {"d", "singular", "captures", "cost", "cuda"} <= shown[gg.elementwise]
    assert not shown[gg.elementwise] & {"outputs", "batch", "view"}


def test_error_for_an_unknown_field_lists_all_fields():
    with pytest.raises(TypeError, match=r"op: there is no field 'captues'; there are .*'captures'"):

        @gg.op(captues=True)
        def misspelled(xp, x, /):
            return x

    with pytest.raises(TypeError, match=r"elementwise: there is no field 'domian'; .*'domain'"):
        gg.elementwise("misspelled(x)", d=[1], domian=(0, 1), doc="", example=("1.0", "1.0"))
    assert "misspelled" not in gg.OPS


def test_record_cannot_be_edited():
    with pytest.raises(dataclasses.FrozenInstanceError):
        gg.OPS["sin"].linear = True


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda g, x: g, "first parameter of a rule must be xp"),
        (lambda xp, g, y: g, "reads 'y', which is not an argument of the op"),
        (lambda xp, g, z_shape: g, "reads 'z_shape'"),
    ],
)
def test_rule_with_an_unknown_parameter_is_refused_at_declaration(rule, message):
    for keywords in ({"vjp": [rule]}, {"vjp": [...], "masked": [rule]}):
        with pytest.raises(TypeError, match=message):
            gg.op(**keywords)(lambda xp, x, /: x)
    with pytest.raises(TypeError, match="reads 'x'"):  # no rule `vjp` reads it, so it is not saved
        gg.op(vjp=[lambda xp, g: g], masked=[lambda xp, g, x: g])(lambda xp, x, /: x)


NAMES = [*"abcdeghijklmnpqrstuvwyz", "out", "x_shape", "xi", "x_", "kind", "record", "value", "new"]


def _declared_by(how, name):
    """A product of ``name`` squared and x, declared with rules that name their arguments."""
    product, by_a, by_x = (f"{name} * {name} * x", f"2 * {name} * x", f"{name} * {name}")
    scope = {"gg": gg, "__name__": __name__}
    of = f"xp, {name}, x"
    about = "doc='', example=('1.0, 1.0', '1.0')"
    rules = {
        "d": f"d=[lambda {of}: {by_a}, lambda {of}: {by_x}]",
        "vjp": f"vjp=[lambda xp, g, {name}, x: g * {by_a}, lambda xp, g, {name}: g * {by_x}]",
        "jvp": f"d=None, vjp=[lambda xp, g, {name}, x: g * {by_a}, lambda xp, g, {name}: g * {by_x}"
        f"], jvp=[lambda xp, t, {name}, x: t * {by_a}, lambda xp, t, {name}: t * {by_x}]",
    }  # fmt: skip
    if how == "op":
        head = f"@gg.op({rules['vjp']})\ndef probe({of}, /): return {product}"
    elif how == "parameter":
        head = (
            f"@gg.op(vjp=[lambda xp, g, x, {name}: g * {by_x}])\n"
            f"def probe(xp, x, /, *, {name}=1.0): return {product}"
        )
    elif how == "kernel":
        head = (
            f"probe = gg.elementwise_kernel('probe({name}, x)', '{product}', "
            f"formula=lambda {of}: {product}, {rules['d']})"
        )
    else:
        head = (
            f"probe = gg.elementwise('probe({name}, x)', forward=lambda {of}: {product}, "
            f"{rules[how]}, {about})"
        )
    exec(head, scope)
    return scope["probe"]


def _check(how, name):
    probe, a, x = _declared_by(how, name), gg.constant([1.0, 3.0]), gg.constant([3.0, 5.0])
    if how == "parameter":
        assert tape_gradient(lambda x: probe(x, **{name: 3.0}), x).tolist() == [9.0, 9.0]
        return
    grads = gg.grad(lambda a, x: gg.sum(probe(a, x)), argnums=(0, 1))(a, x)
    assert [g.tolist() for g in grads] == [[6.0, 30.0], [1.0, 9.0]], name
    assert gg.jvp(probe, [a, x], [gg.ones(2), gg.zeros(2)])[1].tolist() == [6.0, 30.0], name
    assert gg.function(probe)(a, x).tolist() == [3.0, 45.0], name


@pytest.mark.parametrize(("how", "meant"), [
    ("d", ""), ("vjp", "g"), ("jvp", "gt"), ("op", "g"), ("parameter", "g"), ("kernel", ""),
])  # fmt: skip
def test_an_argument_of_any_name_is_itself_or_refused(how, meant):
    for name in NAMES:
        try:
            if name in {*meant, "out", "x_shape", "xi", "x_", "kind", "record", "new"}:
                with pytest.raises((ArgumentError, SyntaxError), match=name):  # g twice in a rule
                    _check(how, name)
            else:
                _check(how, name)
        finally:
            gg.OPS.pop("probe", None)


def test_no_gradient_replaces_the_record_of_the_function():
    @gg.op(vjp=[..., lambda xp, g: g])
    def step_up(xp, x, y, /):
        return xp.lib.ceil(x) + y

    def gradients():
        x, y = gg.constant([0.5]), gg.constant([1.0])
        return tape_gradient(step_up, x, y)

    before = gg.OPS["step_up"]
    with pytest.raises(NoGradientError, match="step_up"):
        gradients()
    gg.no_gradient("step_up")
    record = gg.OPS["step_up"]
    assert record is not before
    assert step_up.op is record
    assert record.eager is step_up
    assert before.declared.vjp[0] is ...
    dx, dy = gradients()
    assert dx is None
    np.testing.assert_array_equal(dy.numpy(), [1.0])


def test_op_declared_again_replaces_the_deleted_one_everywhere():
    for factor in (2.0, 3.0):

        @gg.op(vjp=[lambda xp, g: g])
        def scaled_by(xp, x, /):
            return x * factor  # noqa: B023

        @gg.op()
        def through_xp(xp, x, /):
            return xp.scaled_by(x)

        x = gg.constant([1.0])
        assert scaled_by(x).item() == factor
        assert through_xp(x).item() == factor
        assert gg.vmap(scaled_by)(gg.constant([[1.0]])).numpy() == [[factor]]
        assert gg.function(scaled_by)(x).item() == factor
        del gg.OPS["scaled_by"], gg.OPS["through_xp"]


def _is_name(node):
    """Whether an expression is the name of a step or of an op."""
    return isinstance(node, ast.Attribute) and node.attr == "name"


def _strings(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return set().union(*map(_strings, node.elts)) if node.elts else set()
    return set()


def _collections(tree):
    """The sets in a module, and its module-level dicts with op names as keys."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Set):
            yield node, _strings(node)
    for node in tree.body:
        value = getattr(node, "value", None)
        if isinstance(value, ast.Dict):
            names = set().union(*(_strings(k) for k in value.keys if k is not None))
            if len(names & set(gg.OPS)) == len(value.keys):
                yield node, names


@pytest.mark.parametrize(
    "path", [p for p in sorted(HOUSE.rglob("*.py")) if p.relative_to(HOUSE).parts[0] != "ops"],
    ids=lambda p: str(p.relative_to(HOUSE)),
)  # fmt: skip
def test_code_that_compares_op_names_says_why(path):
    """A fact about ops belongs in the record; code about one op says in a comment why."""
    text = path.read_text()
    lines, tree = text.split("\n"), ast.parse(text)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    places = [
        (node, set().union(*map(_strings, node.comparators)))
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and _is_name(node.left)
    ]
    for node, strings in (*places, *_collections(tree)):
        if names := sorted(strings & set(gg.OPS)):
            around = [f for f in functions if f.lineno <= node.lineno <= f.end_lineno] or [node]
            beside = "\n".join(lines[max(around[-1].lineno - 3, 0) : around[-1].end_lineno + 1])
            assert "#" in beside or '"""' in beside, (
                f"{path.relative_to(HOUSE)}:{node.lineno} asks for {names}. Add a field to the op "
                "record, or say in a comment why the code is about these ops alone."
            )


def test_kernel_for_numpy_runs_first_and_may_decline():
    def launch(xp, x, /, *, n):
        assert x.dtype != np.float16  # which is computed in float32
        return NotImplemented if x.size < 3 else x * n + 100

    @gg.op(vjp=[lambda xp, g, n: g * n], cpu=launch)
    def tripled(xp, x, /, n=3):
        return x * n

    try:
        traced = gg.function(tripled)
        for call in (tripled, traced, traced):
            assert call(gg.constant([1.0, 2.0])).tolist() == [3.0, 6.0]
            assert call(gg.constant([1.0, 2.0, 3.0])).tolist() == [103.0, 106.0, 109.0]
        x = gg.Variable(np.ones(3, np.float16))
        with gg.GradientTape() as tape:
            y = tripled(x)
        assert y.dtype == np.float16
        assert y.tolist() == [103.0] * 3
        assert tape.gradient(y, x).tolist() == [3.0] * 3
    finally:
        gg.OPS.pop("tripled")
