"""The project's first examples: TensorFlow's tape and tf.gradients, value by value."""

import numpy as np
import pytest
from taping import tape_gradient

import gpugrad as gg

pytestmark = pytest.mark.usefixtures("both_tapes")


def test_gradient_of_squared_sum_is_eight_everywhere():
    x = gg.ones((2, 2))
    with gg.GradientTape() as t:
        t.watch(x)
        y = gg.sum(x)
        z = gg.multiply(y, y)
    dz_dx = t.gradient(z, x)
    for i in [0, 1]:
        for j in [0, 1]:
            assert dz_dx[i][j].numpy() == 8.0


def test_gradient_with_respect_to_an_intermediate():
    x = gg.ones((2, 2))
    with gg.GradientTape() as t:
        t.watch(x)
        y = gg.sum(x)
        z = gg.multiply(y, y)
    assert t.gradient(z, y).numpy() == 8.0


def test_gradient_of_a_square():
    x = gg.constant(3.0)
    assert tape_gradient(lambda x: x * x, x).numpy() == 6.0


def test_persistent_tape_gives_several_gradients():
    x = gg.constant(3.0)
    with gg.GradientTape(persistent=True) as t:
        t.watch(x)
        y = x * x
        z = y * y
    assert t.gradient(z, x).numpy() == 108.0  # 4 x^3
    assert t.gradient(y, x).numpy() == 6.0
    del t


@pytest.mark.parametrize(("n", "slope"), [(6, 12.0), (5, 12.0), (4, 4.0)])
def test_control_flow_is_recorded_as_it_runs(n, slope):
    def f(x, y):
        output = 1.0
        for i in range(y):
            if i > 1 and i < 5:
                output = gg.multiply(output, x)
        return output

    x = gg.convert_to_tensor(2.0)
    assert tape_gradient(lambda x: f(x, n), x).numpy() == slope


def test_nested_tapes_give_higher_orders():
    x = gg.Variable(1.0)
    with gg.GradientTape() as t:
        with gg.GradientTape() as t2:
            y = x * x * x
        dy_dx = t2.gradient(y, x)
    d2y_dx2 = t.gradient(dy_dx, x)
    assert dy_dx.numpy() == 3.0
    assert d2y_dx2.numpy() == 6.0


def test_several_targets_add_up():
    """[dy1/dx1 + dy2/dx1, dy1/dx2 + dy2/dx2], not a Jacobian."""
    x1, x2 = gg.Variable(2.0), gg.Variable(3.0)
    with gg.GradientTape() as t:
        y1, y2 = x1 * x2, x1 * x1 + 5.0 * x2
    d1, d2 = t.gradient([y1, y2], [x1, x2])
    assert d1.numpy() == 3.0 + 4.0
    assert d2.numpy() == 2.0 + 5.0


def test_mean_loss_has_half_the_gradient_of_the_summed_losses():
    w, b = gg.Variable([[0.5], [-0.25]]), gg.Variable([0.1])
    x, label = gg.constant([[1.0, 2.0], [3.0, -1.0]]), gg.constant([[1.0], [0.0]])
    with gg.GradientTape(persistent=True) as t:
        losses = gg.squared_difference(gg.sigmoid(x @ w + b), label)
        reduced = 0.5 * gg.sum(losses)
    grads, reduced_grads = t.gradient(losses, [w, b]), t.gradient(reduced, [w, b])
    for g, r in zip(grads, reduced_grads, strict=True):
        np.testing.assert_allclose(r.numpy(), 0.5 * g.numpy(), rtol=1e-6)


def test_gradients_are_summed_over_ys():
    with gg.Graph().as_default():
        w1, w2, w3, w4 = (gg.Variable(gg.random.normal(3)) for _ in range(4))
        z1 = 3 * w1 + 2 * w2 + w3
        z2 = -1 * w3 + w4
        grads = gg.gradients([z1, z2], [w1, w2, w3, w4])
    assert [g.tolist() for g in grads] == [[3.0] * 3, [2.0] * 3, [0.0] * 3, [1.0] * 3]


def test_grad_ys_weight_each_y():
    with gg.Graph().as_default():
        w1, w2, w3, w4 = (gg.Variable(gg.random.normal(3)) for _ in range(4))
        z1 = 3 * w1 + 2 * w2 + w3
        z2 = -1 * w3 + w4
        grads = gg.gradients(
            [z1, z2], [w1, w2, w3, w4], grad_ys=[[-2.0, -3.0, -4.0], [-1.0, -2.0, -3.0]]
        )
    assert [g.tolist() for g in grads] == [
        [-6.0, -9.0, -12.0], [-4.0, -6.0, -8.0], [-1.0, -1.0, -1.0], [-1.0, -2.0, -3.0],
    ]  # fmt: skip


def test_gradients_of_a_product_with_a_constant():
    with gg.Graph().as_default():
        weight = gg.Variable([[1.0, 2.0]])
        y = gg.matmul(weight, [[9.0], [10.0]])
        assert [g.tolist() for g in gg.gradients(y, weight)] == [[[9.0, 10.0]]]


@pytest.mark.parametrize(("stopped", "expected"), [(True, [1.0, 1.0]), (False, [2.0, 2.0])])
def test_stop_gradient_removes_one_path(stopped, expected):
    with gg.Graph().as_default():
        a, b = gg.Variable(1.0), gg.Variable(1.0)
        c = gg.add(a, b)
        d = gg.add(a, b)
        e = gg.add(gg.stop_gradient(c) if stopped else c, d)
        assert [g.item() for g in gg.gradients(e, xs=[a, b])] == expected


def test_gradients_of_gradients():
    with gg.device("/cpu:0"), gg.Graph().as_default():
        a = gg.constant(2.0)
        b = gg.power(a, 2.0)
        grad = gg.gradients(ys=b, xs=a)
        grad_2 = gg.gradients(ys=grad[0], xs=a)
        grad_3 = gg.gradients(ys=grad_2[0], xs=a, unconnected_gradients="zero")
    assert [g.item() for g in (*grad, *grad_2, *grad_3)] == [4.0, 2.0, 0.0]


def test_total_derivatives_follow_b_back_to_a():
    with gg.Graph().as_default():
        a = gg.constant(0.0)
        b = 2 * a
        assert [g.item() for g in gg.gradients(a + b, [a, b])] == [3.0, 1.0]


def test_partial_derivatives_by_stop_gradients():
    with gg.Graph().as_default():
        a = gg.constant(0.0)
        b = 2 * a
        g = gg.gradients(a + b, [a, b], stop_gradients=[a, b])
    assert [x.item() for x in g] == [1.0, 1.0]


def test_partial_derivatives_by_stop_gradient():
    with gg.Graph().as_default():
        a = gg.stop_gradient(gg.constant(0.0))
        b = gg.stop_gradient(2 * a)
        assert [x.item() for x in gg.gradients(a + b, [a, b])] == [1.0, 1.0]


def test_stopped_sources_have_no_gradient():
    with gg.Graph().as_default():
        weight1, weight2, weight3 = (gg.Variable(gg.random.normal(2)) for _ in range(3))
        y3 = gg.stop_gradient(weight1 + weight2) + weight3
        upstream = [gg.convert_to_tensor([1.0, 2.0])]
        first = gg.gradients(y3, [weight1, weight2, weight3], grad_ys=upstream)
        second = gg.gradients(y3, [weight3], grad_ys=upstream)
    assert first[0] is None
    assert first[1] is None
    assert first[2].tolist() == [1.0, 2.0]
    assert second[0].tolist() == [1.0, 2.0]


def test_gradient_of_a_line_is_its_slope():
    with gg.Graph().as_default():
        m, b = gg.Variable(2.0), gg.Variable(1.0)
        x = gg.constant(3.0)
        y = gg.multiply(m, x) + b
        assert [g.item() for g in gg.gradients(y, x)] == [2.0]


def _to_expectation(mean, var_sqrt):
    """Expectation parameters of a Gaussian: (m, S S^T + m m^T).

    The first is a new tensor, as in GPflow: a derivative with respect to it keeps the second fixed.
    """
    var = gg.matmul(var_sqrt, gg.matrix_transpose(var_sqrt))
    return gg.positive(mean), var + gg.matmul(mean, gg.matrix_transpose(mean))


def _to_meanvarsqrt(eta1, eta2):
    """The inverse: the mean, and the Cholesky factor of the covariance."""
    return eta1, gg.cholesky(eta2 - gg.matmul(eta1, gg.matrix_transpose(eta1)))


def test_output_gradients_of_the_natural_gradient_step():
    """A gradient with `output_gradients` is not the plain gradient times the upstream gradient.

    `output_gradients` gives J^T u, with one u for each element of the target. Without it the
    result is J^T 1, where the rows of J are already summed, so no product with u can undo it.
    """
    mu = np.array([[0.93350756], [0.15833747], [0.23830378], [0.28742445], [0.14999759]])
    q_mu, q_sqrt = gg.Variable(mu), gg.Variable(np.eye(5))
    dl_dmean, dl_dvarsqrt = gg.constant(mu * 0.33), gg.constant(np.eye(5))
    with gg.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch([q_mu, q_sqrt])
        eta1, eta2 = _to_expectation(q_mu.value(), q_sqrt.value())
        meanvarsqrt = _to_meanvarsqrt(eta1, eta2)
    dl_deta1, dl_deta2 = tape.gradient(
        meanvarsqrt, [eta1, eta2], output_gradients=[dl_dmean, dl_dvarsqrt]
    )
    dtheta_deta1, dtheta_deta2 = tape.gradient(meanvarsqrt, [eta1, eta2])
    column = [[-0.6254500652], [-0.1060861049], [-0.1596635326], [-0.1925743815], [-0.1004983853]]
    np.testing.assert_allclose(dl_deta1.numpy(), column, rtol=1e-8)
    np.testing.assert_allclose(dl_deta2.numpy(), 0.5 * np.eye(5), atol=1e-12)
    np.testing.assert_allclose(dtheta_deta1.numpy(), np.full((5, 1), -0.76757085), rtol=1e-7)
    np.testing.assert_allclose(dtheta_deta2.numpy(), np.full((5, 5), 0.5), atol=1e-12)
    assert not np.allclose(dl_deta1.numpy(), dtheta_deta1.numpy() * dl_dmean.numpy())
