"""``x[i] = v`` changes one object: other holders of its value or gradient see no change."""

import ast
import functools
from pathlib import Path

import numpy as np
import pytest
from taping import tape_gradient, taped

import gpugrad as gg
from gpugrad.core.tensor import Tensor
from gpugrad.core.views import View, _is_view_in_rows
from gpugrad.errors import DTypeError, NumberOverflowError, TapeError


def _writes(x):
    x[0] = 5.0
    return gg.sum(x * x)


@pytest.mark.parametrize("transform", [gg.grad, lambda f: lambda x: gg.value_and_grad(f)(x)[1]])
def test_function_that_writes_to_its_argument_is_differentiated_at_the_original_value(transform):
    assert transform(_writes)([1.0, 2.0]).tolist() == [0.0, 4.0]
    assert gg.jacobian(_writes)([1.0, 2.0]).tolist() == [0.0, 4.0]
    assert gg.jvp(_writes, [[1.0, 2.0]], [[1.0, 1.0]])[1].item() == 4.0


def test_writing_to_the_result_of_vjp_does_not_change_its_pullback():
    y, pull = gg.vjp(lambda x: x * x, gg.constant([1.0, 2.0]))
    y[0] = 0.0
    assert pull(gg.ones(2))[0].tolist() == [2.0, 4.0]


def test_later_writes_do_not_change_a_recomputed_or_custom_gradient():
    @gg.custom_gradient
    def square(h):
        return h * h, lambda dy: 2 * h * dy

    for f in (square, gg.recompute_grad(lambda h: h * h)):
        x = gg.constant([1.0, 2.0])
        with gg.GradientTape() as tape:
            tape.watch(x)
            h = x * 1.0
            y = f(h)
            h[0] = 100.0
        assert tape.gradient(y, x).tolist() == [2.0, 4.0]


def test_gradients_under_an_outer_tape_do_not_alias_each_other():
    x, y = gg.constant([1.0]), gg.constant([2.0])
    upstream = gg.ones(1)
    with gg.GradientTape() as outer:
        outer.watch([x, y])
        gx, gy = tape_gradient(lambda x, y: x + y, x, y, output_gradients=upstream)
        gx[0] = 99.0
    assert (gy.tolist(), upstream.tolist()) == ([1.0], [1.0])


def test_writing_to_a_tangent_does_not_change_other_tangents():
    x = gg.constant([3.0])
    with gg.ForwardAccumulator(x, gg.ones(1)) as acc:
        y = x * x
        t = acc.jvp(y)
        t[0] = 99.0
        z = y * 1.0
    assert acc.jvp(z).tolist() == [6.0]


def test_references_are_counted_of_attributes_and_items():
    """A variable holds a reference, or from Python 3.14 on borrows one: its count says nothing."""
    found = []
    for path in Path(gg.__file__).parent.rglob("*.py"):
        if "getrefcount(" in (text := path.read_text("utf-8")):
            calls = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call))
            found += [
                (path.name, ast.unparse(c.args[0]))
                for c in calls
                if ast.unparse(c.func) == "sys.getrefcount"
            ]
    assert len(found) >= 5
    assert [f for f in found if f[1].isidentifier()] == []


def test_constant_of_a_tensor_is_a_new_object():
    x = gg.constant([1.0, 2.0])
    y = gg.constant(x)
    y[0] = 9.0
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_watching_a_half_precision_tensor_does_not_change_the_value_of_a_composite(dtype):
    x = gg.constant([-100.0, 100.0] * 5, dtype)
    alone = gg.var(x)
    tape, watched = taped(gg.var, x)
    assert watched.item() == alone.item()
    assert watched.dtype == alone.dtype == tape.gradient(watched, x).dtype


def test_paused_tape_resumes_at_its_position_among_the_recorders():
    x = gg.constant(2.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        with gg.ForwardAccumulator(x, gg.constant(1.0)) as acc:
            with tape.stop_recording():
                pass
            y = x * x * x
        t = acc.jvp(y)
    assert tape.gradient(t, x).item() == 12.0


def test_watch_after_a_failed_gradient_inside_the_block_is_refused():
    x = gg.constant(2.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(DTypeError):
            tape.gradient(x * x, [1.0])
        y = x * x
        tape.gradient(y, x)
        with pytest.raises(TapeError):
            tape.watch(x)


def test_linear_op_of_two_arrays_has_forward_mode():
    @gg.op(vjp=[lambda xp, g: g, lambda xp, g: 2 * g], linear=True)
    def weighed(xp, x, y, /):
        return x + 2 * y

    assert gg.jvp(weighed, [1.0, 1.0], [1.0, 10.0])[1].item() == 21.0


def test_custom_gradient_accepts_a_partial():
    f = functools.partial(lambda x, n: (x**n, lambda dy: dy * 7), n=2)
    assert gg.grad(gg.custom_gradient(f))(3.0).item() == 7.0


@pytest.mark.parametrize(("value", "dtype"), [(300, "int8"), (-1, "uint8"), (1.7, "int32")])
def test_python_number_that_does_not_fit_its_dtype_is_refused(value, dtype):
    with pytest.raises((DTypeError, NumberOverflowError), match=dtype):
        gg.constant(value, dtype)
    assert gg.constant(np.array([value]), dtype).dtype == dtype  # arrays are cast as NumPy does


def test_integer_beyond_64_bits_is_refused():
    with pytest.raises(DTypeError):
        gg.add(2**70, 1)


def test_whether_a_reshape_is_a_view_is_computed_once_for_a_shape():
    def views():
        root = gg.constant(np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)))
        assert not root._data.flags.c_contiguous
        return gg.reshape(root, (6, 4)), gg.reshape(gg.permute_dims(root, (0, 2, 1)), (2, 12))

    views()
    before = _is_view_in_rows.cache_info()
    rows, turned = views()
    after = _is_view_in_rows.cache_info()
    assert (after.hits - before.hits, after.misses - before.misses) == (2, 0)
    assert [type(x) for x in (rows, turned)] == [View, Tensor]
