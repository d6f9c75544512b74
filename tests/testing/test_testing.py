"""Tests of the tests: every kind of error is planted in an op, and a check must find it."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core.backend import TENSOR
from gpugrad.core.devices import CPU
from gpugrad.core.samples import grid, shaped
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.registry.record import OPS, elementwise, op
from gpugrad.testing import CHECKS, GradientCheckError, assert_close, check_grads, check_op

EXAMPLE = ("[1.0]", "[1.]")


def found_by(name, check, **keywords):
    """The message of the error that `check` raises for an op."""
    with pytest.raises(GradientCheckError) as caught:
        check_op(name, checks=[check], **keywords)
    message = str(caught.value)
    assert message.startswith(name)
    return message


def plant(d, forward=None, ref=None, **keywords):
    """An elementwise op of one array called planted, x * x by default."""
    return elementwise(
        "planted(x)", d=d, forward=forward or (lambda xp, x: x * x),
        ref=ref or (lambda x: x * x), doc="A planted op.", example=EXAMPLE, **keywords,
    )  # fmt: skip


def plant_op(vjp, forward=None, **keywords):
    """A primitive op of one array called planted, x * x by default."""

    def planted(xp, x, /):
        """Square of x."""
        return forward(xp, x) if forward else x * x

    settings = {
        "samples": shaped(([(2, 3)], {})), "ref": lambda x: x * x,
        "errors": [(["text"], {}, DTypeError, "number")],
    }  # fmt: skip
    return op(vjp=vjp, **settings | keywords)(planted)


def _double(xp, g, x):
    return g * (2 * x)


def test_a_correct_op_passes_all_numerical_checks():
    plant([lambda xp, x: 2 * x], kinds="fci")
    check_op(
        "planted", checks=[c for c in CHECKS if c not in ("documentation", "errors")], orders=3
    )


def test_a_linear_op_of_two_arrays_passes():
    @op(
        vjp=[lambda xp, g: g, lambda xp, g: 2 * g],
        jvp=[lambda xp, t: t, lambda xp, t: 2 * t],
        linear=True, samples=shaped(([(3,), (3,)], {})),
    )  # fmt: skip
    def planted(xp, x, y, /):
        """Of x and y."""
        return x + 2 * y

    check_op("planted", checks=["vjp", "jvp", "second_order"])


def test_a_linear_op_with_two_results_passes():
    @op(
        vjp=[lambda xp, g: 2 * g[0] + 3 * g[1]], outputs=2, linear=True,
        samples=shaped(([(3,)], {})),
    )  # fmt: skip
    def planted(xp, x, /):
        """Of x."""
        return 2 * x, 3 * x

    check_op("planted", checks=["vjp", "jvp", "second_order"])


def test_check_op_accepts_a_name_record_or_function():
    for one in ("tanh", OPS["tanh"], gg.tanh):
        check_op(one, checks=["vjp"])
    with pytest.raises(ArgumentError, match="no op 'tahn'"):
        check_op("tahn")
    with pytest.raises(ArgumentError, match="no check 'jvpp'"):
        check_op("tanh", checks=["jvpp"])


def test_a_wrong_partial_is_found():
    plant([lambda xp, x: 2.00001 * x])
    message = found_by("planted", "vjp")
    for part in ("sample 0", "float64 (3,)", "cotangent", "direction of x", "eps=0.0001",
                 "<gradient, direction>", "the gradient by x is wrong"):  # fmt: skip
        assert part in message
    found_by("planted", "jvp")


def test_a_wrong_partial_of_one_of_two_inputs_names_that_input():
    elementwise(
        "planted(x, y)", d=[lambda xp, y: y, lambda xp, x: -x], forward="multiply",
        doc="A planted op.", example=EXAMPLE,
    )  # fmt: skip
    assert "the gradient by y is wrong" in found_by("planted", "vjp")


def test_a_wrong_vjp_is_found():
    plant_op([lambda xp, g, x: g * x])
    assert "the gradient by x is wrong" in found_by("planted", "vjp")


def test_a_vjp_that_is_right_only_for_equal_cotangents_is_found():
    plant_op([lambda xp, g, x: 2 * x * xp.mean(g)])
    found_by("planted", "vjp")


def test_a_gradient_of_the_wrong_shape_is_found():
    plant_op([lambda xp, g, x: xp.sum(g * 2 * x, axis=0)], samples=shaped(([(1, 3)], {})))
    assert "the gradient by x is float64 (3,)" in found_by("planted", "vjp")


def test_a_lost_gradient_is_found():
    plant_op([None])
    assert "gradient: None" in found_by("planted", "vjp")


def test_an_op_declared_without_a_gradient_passes():
    plant_op([_double], differentiable=False)
    check_op("planted", checks=["vjp", "jvp", "second_order"])


def test_a_wrong_jvp_is_found():
    plant_op([_double], jvp=[lambda xp, t, x: t * x])
    check_op("planted", checks=["vjp", "readings"])
    assert "the tangent of result 0 is wrong" in found_by("planted", "jvp")


def test_a_false_claim_of_linearity_is_found():
    plant_op([_double], linear=True)
    found_by("planted", "jvp")


def _as_a_constant(xp, x):
    """A forbidden step: take the values out of a Tensor, so that no tape records them."""
    return gg.constant(x.numpy()) if xp is TENSOR else x


def test_a_rule_that_is_constant_on_tensors_only_is_found():
    plant_op([lambda xp, g, x: g * (2 * _as_a_constant(xp, x))])
    check_op("planted", checks=["vjp", "readings"])
    assert "planted, sample 0, gradient: the gradient by x is wrong" in found_by(
        "planted", "second_order"
    )


def test_a_rule_that_is_constant_in_its_cotangent_is_found():
    plant_op([lambda xp, g, x: _as_a_constant(xp, g) * (2 * x)])
    check_op("planted", checks=["vjp", "readings"])
    assert "the cotangent of result 0 is wrong" in found_by("planted", "second_order")


def test_a_rule_whose_own_op_has_a_wrong_rule_is_found():
    plant_op([lambda xp, g, x: g * xp.planted_slope(x)])
    elementwise(
        "planted_slope(x)", d=[3], forward=lambda xp, x: 2 * x, ref=lambda x: 2 * x,
        doc="Slope.", example=EXAMPLE,
    )  # fmt: skip
    check_op("planted", checks=["vjp"])
    found_by("planted", "second_order")


def test_a_wrong_third_order_is_found_when_asked_for():
    plant([lambda xp, x: xp.planted_slope(x)], lambda xp, x: x * x * x, lambda x: x**3)
    elementwise(
        "planted_slope(x)", d=[lambda xp, x: 6 * _as_a_constant(xp, x)],
        forward=lambda xp, x: 3 * x * x, ref=lambda x: 3 * x * x, doc="Slope.", example=EXAMPLE,
    )  # fmt: skip
    check_op("planted", checks=["second_order"])
    found_by("planted", "second_order", orders=3)


def test_a_rule_that_differs_between_bare_arrays_and_tensors_is_found():
    plant_op([lambda xp, g, x: g * x * (2 if xp is not TENSOR else 3)])
    check_op("planted", checks=["vjp"])
    assert "gradients on Tensors and on plain arrays, by, x" in found_by("planted", "readings")


def test_a_complex_rule_without_its_conjugate_is_found():
    plant_op([_double], kinds="fc")
    check_op("planted", checks=["forward"])
    assert "(complex)" in found_by("planted", "vjp")


def test_a_rule_that_raises_is_found_with_its_op():
    plant_op([lambda xp, g, x: xp.no_such_op(x)])
    assert "AttributeError" in found_by("planted", "vjp")


def test_a_wrong_gradient_of_one_of_several_results_is_found():
    def rule(xp, g, x):
        return g[0] * 2 + g[1] * x

    @op(vjp=[rule], outputs=2, samples=shaped(([(3,)], {})), ref=lambda x: (2 * x, x * x))
    def planted(xp, x, /):
        """Twice x, and its square."""
        return 2 * x, x * x

    check_op("planted", checks=["forward", "bare"])
    found_by("planted", "vjp")


def test_a_wrong_gradient_of_one_of_a_list_is_found_and_named():
    def rule(xp, g, i, arrays_shape):
        return g * (1 + i)

    def samples(rng):
        yield [[rng.standard_normal(3), rng.standard_normal(3)]], {}

    @op(vjp=rule, variadic=True, samples=samples, ref=lambda arrays: arrays[0] + arrays[1])
    def planted(xp, arrays, /):
        """Sum of two arrays."""
        return arrays[0] + arrays[1]

    check_op("planted", checks=["forward"])
    assert "the gradient by arrays[1] is wrong" in found_by("planted", "vjp")


def test_a_wrong_gradient_of_an_array_given_by_keyword_is_found():
    def samples(rng):
        yield [rng.standard_normal(3)], {}
        yield [rng.standard_normal(3)], {"scale": rng.standard_normal(3)}

    @op(vjp=[lambda xp, g, scale: g if scale is None else g * scale, lambda xp, g, x: g],
        arrays=("x", "scale"), samples=samples,
        ref=lambda x, scale=1: x * scale)  # fmt: skip
    def planted(xp, x, /, scale=None):
        """Scaled x."""
        return x.copy() if scale is None else x * scale

    assert "sample 1: the gradient by scale is wrong" in found_by("planted", "vjp")


def test_a_forward_that_differs_from_its_reference_is_found():
    plant([lambda xp, x: 2 * x], ref=lambda x: x * x + 1e-6)
    message = found_by("planted", "forward")
    assert "result 0" in message
    assert "expected" in message


def test_a_wrong_dtype_is_found():
    plant_op([_double], lambda xp, x: (x * x).astype(np.float32))
    assert "The dtype is float32, expected float64" in found_by("planted", "forward")


def test_a_float32_result_in_float64_is_found():
    plant_op([_double], lambda xp, x: (x * x).astype(np.float64))
    check_op("planted", checks=["forward"])
    assert "float64, expected float32" in found_by("planted", "float32")


def test_a_half_precision_overflow_is_found():
    plant_op([_double], lambda xp, x: (x * 1e3) * (x * 1e3) / 1e6, native_half=True)
    check_op("planted", checks=["float32"])
    assert "float16" in found_by("planted", "half")


def test_a_bare_reading_that_differs_from_the_recorded_one_is_found():
    @op(samples=grid(1), ref=lambda x: x * x)
    def planted(xp, x, /):
        """Square of x."""
        return x * x * (2 if xp is TENSOR else 1)

    check_op("planted", checks=["forward"])
    assert "recorded and unrecorded" in found_by("planted", "bare")


def test_an_op_that_depends_on_memory_layout_is_found():
    plant_op([_double], lambda xp, x: (x.ravel(order="K") ** 2).reshape(x.shape))
    check_op("planted", checks=["forward"])
    assert "(transposed in memory)" in found_by("planted", "layout")


def test_an_op_that_writes_to_its_input_is_found():
    def forward(xp, x):
        x *= x
        return x.copy()

    plant_op([_double], forward)
    assert "the op has written to its" in found_by("planted", "mutation")


def test_a_rule_that_writes_to_its_cotangent_is_found():
    def rule(xp, g, x):
        if xp is not TENSOR:
            g *= 2
            return g * x
        return g * (2 * x)

    plant_op([rule])
    assert "the op has written to its, cotangent 0" in found_by("planted", "mutation")


def test_a_result_computed_on_the_host_is_found(cuda):
    plant_op([_double], lambda xp, x: np.square(x if type(x) is np.ndarray else x.get()))
    check_op("planted", checks=["bare"])
    found_by("planted", "device", device=cuda)


def test_a_forward_that_needs_numpy_itself_is_found_on_the_device(cuda):
    plant_op([_double], lambda xp, x: x * np.asarray(x))
    check_op("planted", checks=["forward"])
    assert "on cuda:0" in found_by("planted", "device", device=cuda)


@pytest.mark.parametrize(
    ("lacking", "words"),
    [({"samples": None}, "samples"), ({"ref": None}, "ref"), ({"errors": ()}, "errors"),
     ({"kinds": "fz"}, "kinds")],
)  # fmt: skip
def test_an_incomplete_record_is_found(lacking, words):
    plant_op([_double], **lacking)
    assert words in found_by("planted", "record")


def _documented(doc):
    def planted(xp, x, /, scale=1.0):
        return x * x * scale

    planted.__doc__ = doc
    return op(vjp=[_double], samples=grid(1), ref="numpy.square")(planted)


@pytest.mark.parametrize(
    ("doc", "words"),
    [
        (None, "no docstring"),
        ("A square.", "does not describe ['scale']"),
        ("Square of x by scale.", "no example"),
        ("Square of x by scale.\n\n>>> 1 + 1\n3\n", "Expected:\n    3\nGot:\n    2"),
        ("Square of x by scale.\n\n>>> 1 / 0\n", "ZeroDivisionError"),
    ],
)
def test_bad_documentation_is_found(doc, words):
    _documented(doc)
    assert words in found_by("planted", "documentation")


@pytest.mark.parametrize(
    "doc", ["The gradient of `sin` by x.", "The op behind `gg.sin`.", "A square; `sin` calls it."]
)
def test_an_op_that_only_another_one_calls_leaves_arguments_and_an_example_to_that(doc):
    _documented(doc)
    assert "x, scale: as for `sin`" in gg.OPS["planted"].doc
    check_op("planted", checks=["documentation"])


def test_a_docstring_that_is_wrong_about_the_shape_is_found():
    @op(samples=grid(1), ref="numpy.sum")
    def planted(xp, x, /):
        """Sum.

        Returns:
            Tensor of the shape of `x`.

        >>> 1
        1
        """
        return xp.sum(x)

    assert "the shape of x, (3,). Its shape is ()" in found_by("planted", "documentation")


@pytest.mark.parametrize("signature", ["planted", "planted()", "planted(x", "planted(x))", "(x)"])
def test_a_malformed_signature_is_refused(signature):
    with pytest.raises(ArgumentError, match=r"write 'name\(x, y\)'"):
        elementwise(signature, d=[1], forward=lambda xp, x: x, doc="", example=EXAMPLE)


@pytest.mark.parametrize("rules", [
    {"vjp": [lambda xp, g: g]}, {"vjp": [None, None], "jvp": [lambda xp, t: t]},
    {"vjp": [None, None], "masked": [None]},
])  # fmt: skip
def test_a_rule_for_too_few_arrays_is_refused(rules):
    def planted(xp, x, y, /):
        return x + y

    with pytest.raises(TypeError, match=r"one partial or rule for each of \('x', 'y'\)"):
        op(**rules)(planted)


def test_an_elementwise_op_without_rules_is_refused():
    with pytest.raises(TypeError, match="one partial or rule for each"):
        elementwise("planted(x, y)", doc="", example=EXAMPLE)


def test_good_documentation_passes():
    _documented("Square of x by scale.\n\n>>> 1 + 1\n2\n")
    check_op("planted", checks=["documentation"])


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (([np.ones(2)], {}, DTypeError, "number"), "expected DTypeError"),
        (([np.ones(2)], {"axis": 0}, ShapeError, "axis"), "got TypeError, expected ShapeError"),
        (([np.zeros(2)], {}, ArgumentError, "positive"), "match 'positive'"),
    ],
)
def test_an_error_other_than_the_declared_one_is_found(error, words):
    def forward(xp, x):
        if x.size and not x.any():
            raise ArgumentError("planted: only numbers that are not 0")
        return x * x

    plant_op([_double], forward, errors=[error])
    assert words in found_by("planted", "errors")


def test_a_message_that_names_its_op_in_passing_is_found():
    def forward(xp, x):
        raise ArgumentError("nothing is given that could be planted")

    plant_op(None, forward, errors=[([np.ones(2)], {}, ArgumentError, "given")])
    assert "must begin with planted" in found_by("planted", "errors")


def test_check_grads_accepts_structures_and_all_dtypes():
    def f(weights, x, scale):
        return {"y": gg.tanh(weights["w"] * x) * scale, "n": gg.argmax(x)}

    weights = {"w": np.array([0.3, -0.4], np.float32)}
    check_grads(f, (weights, gg.constant([1.0, 2.0]), 3.0), order=3)
    check_grads(lambda z: z * gg.conj(z) * z, (np.array([1 + 2j, 0.3 - 1j]),))


def test_check_grads_finds_a_gradient_cut_by_stop_gradient():
    def f(x):
        return x * gg.stop_gradient(x)

    with pytest.raises(GradientCheckError, match=r"f: the gradient by argument 0 is wrong"):
        check_grads(f, (np.array([1.0, 2.0]),), modes=["rev"])
    with pytest.raises(GradientCheckError, match="tangent of result 0 is wrong"):
        check_grads(f, (np.array([1.0, 2.0]),), modes=["fwd"])


def test_check_grads_finds_a_wrong_custom_gradient():
    @gg.custom_gradient
    def f(x):
        return x * x, lambda g: 3 * g * x

    with pytest.raises(GradientCheckError, match="is wrong"):
        check_grads(f, (np.array([1.0, 2.0]),), order=1, modes=["rev"])


def test_check_grads_refuses_invalid_arguments():
    with pytest.raises(ArgumentError, match="no mode 'forward'"):
        check_grads(gg.sin, (np.ones(2),), modes=["forward"])
    with pytest.raises(ArgumentError, match="floating-point"):
        check_grads(gg.sin, (3,))


def test_assert_close_accepts_rounding_errors():
    assert_close(gg.constant([1.0, 2.0]), [1.0, 2.0 + 1e-6])
    assert_close(np.float64(1) + 1e-12, np.float64(1))
    assert_close([np.nan, np.inf], [np.nan, np.inf])
    assert_close(np.zeros((0, 2)), np.zeros((0, 2)))
    assert_close(np.ones(2, gg.bfloat16), np.full(2, 1.01).astype(gg.bfloat16))


@pytest.mark.parametrize(
    ("actual", "desired", "words"),
    [
        (np.zeros(2), np.zeros((2, 1)), r"shape is \(2,\), expected \(2, 1\)"),
        (np.zeros(2, np.float32), np.zeros(2), "dtype is float32, expected float64"),
        (np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.5, 3.1]), r"2 of 3 elements.*at \(1,\)"),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0]), r"at \(1,\)"),
        (np.array(np.inf), np.array(-np.inf), "1 of 1 elements differ, most: "),
        (np.array([3]), np.array([4]), "rtol=0, atol=0"),
        (np.array([True]), np.array([False]), "1 of 1"),
        (np.array([2**60, 1]), np.array([2**60 + 1, 1]), r"\(0,\): .*6976\), expected .*6977\)"),
    ],
)
def test_assert_close_reports_what_differs(actual, desired, words):
    with pytest.raises(AssertionError, match=words):
        assert_close(actual, desired)


def test_the_device_check_needs_no_gpu():
    check_op("tanh", checks=["device"], device=CPU)
