"""Arguments with the names that rules give to gradients and results: right, or refused."""

import contextlib
import inspect

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import ArgumentError
from gpugrad.registry.numpys_form import elsewhere


def _partials(name):
    return {"d": [eval(f"lambda xp, {name}: {name}"), lambda xp, x: x]}


def _gradients(name):
    rules = [eval(f"lambda xp, g, {name}: g * {name}"), lambda xp, g, x: g * x]
    return {"vjp": rules} if name != "g" else {"vjp": [lambda xp, g: g, lambda xp, g, x: g * x]}


@pytest.mark.parametrize("rules", [_partials, _gradients])
@pytest.mark.parametrize("name", ["t", "g", "out", "i", "xp", "x_shape", "record", "op", "beta"])
def test_an_argument_of_any_name_has_its_gradient_or_is_refused(name, rules):
    x, y = gg.constant([1.0, 2.0]), gg.constant([3.0, 10.0])
    with contextlib.ExitStack() as stack:
        stack.callback(gg.OPS.pop, "of_a_name", None)
        try:
            forward = eval(f"lambda xp, x, {name}: x * {name}")
            product = gg.elementwise(
                f"of_a_name(x, {name})",
                forward=forward,
                doc="The product.",
                example=("[2.0], [3.0]", "[6.]"),
                **rules(name),
            )
        except SyntaxError:
            return  # a lambda cannot have it twice
        except ArgumentError as error:
            assert repr(name) in str(error)  # noqa: PT017
            return
        of_x, of_y = gg.grad(lambda x, y: gg.sum(product(x, y)), argnums=(0, 1))(x, y)
        np.testing.assert_array_equal(of_x, y)
        np.testing.assert_array_equal(of_y, x)
        tangent = gg.jvp(product, [x, y], [gg.ones(2), gg.zeros(2)])[1]
        np.testing.assert_array_equal(tangent, y)


def test_an_argument_with_the_name_of_another_library_says_what_it_is_called_here():
    refused = 0
    for op in gg.OPS.values():
        required = [p for p in op.signature.parameters.values() if p.default is p.empty]
        args = [None for p in required if p.kind is p.POSITIONAL_ONLY]
        keywords = {p.name: None for p in required if p.kind is not p.POSITIONAL_ONLY}
        for theirs, here in elsewhere(op).items():
            if theirs not in op.params and here not in keywords:
                with pytest.raises(
                    TypeError, match=f"^{op.name}: .* {theirs} is called {here} here"
                ):
                    op.eager(*args, **keywords, **{theirs: 0})
                refused += 1
    assert refused > 300
    assert "dim" not in inspect.signature(gg.sum).parameters
    with pytest.raises(TypeError, match="keepdim is called keepdims here"):
        gg.ones(3).sum(keepdim=True)


@pytest.mark.parametrize("wrap", [gg.function, gg.recompute_grad, gg.vmap])
@pytest.mark.parametrize("name", ["self", "f", "t", "args", "keywords"])
def test_a_keyword_of_any_name_reaches_the_function(name, wrap):
    double = eval(f"lambda x, *, {name}: x * {name}")
    x = gg.constant([1.0, 2.0])
    np.testing.assert_array_equal(wrap(double)(x, **{name: x}), [1.0, 4.0])
