"""LossScaleOptimizer: the inner optimizer's steps, except those that overflow."""

import copy

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import ArgumentError, CheckpointError, DeviceError, ShapeError

DEVICES = pytest.mark.parametrize("device", ["cpu", "cuda:0"])
WRAPPED = pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])


def written_out(scale, growth, factors):
    """The final scale after float16 gradients ``factor * scale``, and which steps are applied."""
    good, stepped = 0, []
    for factor in factors:
        with np.errstate(over="ignore"):
            finite = bool(np.isfinite(np.float16(factor * scale)))
        stepped.append(finite)
        good = good + 1 if finite else 0
        if not finite:
            scale = max(scale / 2, 1.0)
        elif good == growth:
            scale, good = scale * 2, 0
    return scale, stepped


@DEVICES
@WRAPPED
def test_scale_and_steps_follow_the_paper(wrapped, device, rng):
    factors = np.exp(rng.uniform(-3, 3, 40)).astype("f4")
    scale, stepped = written_out(2.0**18, 3, factors)
    assert 5 < sum(stepped) < 35
    with gg.device(device):
        v = gg.Variable(np.float32([1.0, -2.0]))
        plain = copy.deepcopy(v)
        optimizer = gg.optim.LossScaleOptimizer(gg.optim.Adam(0.1), 2.0**18, 3)

        @wrapped
        def step(factor):
            with gg.GradientTape() as tape:
                loss = gg.astype(gg.sum(gg.astype(v, "float16")), "float32") * factor
                scaled = optimizer.scale_loss(loss)
            optimizer.apply_gradients([(tape.gradient(scaled, v), v)])
            return loss

        for factor in factors:
            step(gg.constant(factor))
        inner = gg.optim.Adam(0.1)
        for factor, once in zip(factors, stepped, strict=True):
            if once:
                inner.apply_gradients([(gg.full(2, factor, dtype="float32"), plain)])
    assert float(optimizer.loss_scale) == scale
    assert optimizer.iterations == inner.iterations == sum(stepped)
    np.testing.assert_allclose(v.numpy(), plain.numpy(), rtol=2e-3)  # gradients were float16


@DEVICES
@WRAPPED
def test_float16_gradients_that_overflow_update_nothing(wrapped, device):
    with gg.device(device):
        v = gg.Variable(np.float16([1.0, 2.0]))
        optimizer = gg.optim.SGD(0.5)

        @wrapped
        def step(scale):
            with gg.GradientTape() as tape:
                loss = gg.sum(gg.sin(v))
            g = tape.gradient(loss, v) * scale * scale
            finite = gg.optim.all_finite([g])
            optimizer.apply_gradients([(g, v)], when=finite)
            return finite

        for _ in range(3):
            with np.errstate(over="ignore"):
                assert not step(gg.constant(np.float16(400)))
    assert optimizer.iterations == 0
    np.testing.assert_array_equal(v.numpy(), [1, 2])


def test_small_gradients_survive():
    v = gg.Variable(np.float32([1.0]))
    grads = []
    for scale in (1.0, 2.0**15):
        optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(1.0), scale)
        with gg.GradientTape() as tape:
            scaled = optimizer.scale_loss(gg.astype(v, "float16") * 1e-4) * 1e-4
        assert scaled.dtype == np.float32
        grads.append(float(tape.gradient(scaled, v)[0]) / scale)
    assert grads[0] == 0
    assert grads[1] == pytest.approx(1e-8, rel=1e-3)


def test_float16_variables_are_updated_at_scales_beyond_float16():
    v = gg.Variable(np.float16([1.0]))
    optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.5), 2.0**20)
    g = gg.constant(np.float16([2.0])) * 2.0**12  # from a loss scaled by 2**12 only
    assert float(optimizer.loss_scale) == 2.0**20
    optimizer.apply_gradients([(g, v)])
    assert v.numpy()[0] == np.float16(1 - 0.5 * 2.0**-7)


@DEVICES
def test_sparse_and_missing_gradients_are_accepted(device):
    with gg.device(device):
        table, other = gg.Variable(np.ones((3, 2), "f4")), gg.Variable(1.0)
        optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.5), 4.0)
        with gg.GradientTape() as tape:
            loss = optimizer.scale_loss(gg.sum(gg.gather(table, gg.constant([2, 0, 2]))))
        g = tape.gradient(loss, table)
        assert isinstance(g, gg.IndexedSlices)
        with pytest.warns(UserWarning, match="is None") as caught:
            optimizer.apply_gradients([(g, table), (None, other)])
        assert caught[0].filename == __file__
    np.testing.assert_array_equal(table.numpy(), [[0.5, 0.5], [1, 1], [0, 0]])


def test_an_error_changes_nothing():
    v = gg.Variable(np.ones(2, "f4"))
    optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.5), 8.0)
    optimizer.scale_loss(gg.constant(1.0))
    with pytest.raises(ShapeError):
        optimizer.apply_gradients([(gg.constant([np.inf]), v)])
    assert float(optimizer.loss_scale) == 8
    np.testing.assert_array_equal(v.numpy(), [1, 1])


@WRAPPED
def test_a_loss_on_another_device_than_the_scale_is_refused(wrapped):
    optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.5))
    with pytest.raises(DeviceError, match=r'loss is on cuda:0, .* gg.device\("cuda:0"\)'):
        wrapped(optimizer.scale_loss)(gg.constant(1.0, device="cuda:0"))


@WRAPPED
def test_invalid_gradients_raise_the_inner_optimizers_errors(wrapped):
    v = gg.Variable([1.0], name="v")
    optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.5))
    for pairs, words in (
        ([], "SGD: got no gradients"),
        ([(None, v)], r"SGD: no gradients: all are None \('v'\)"),
        ([gg.ones(3)], "expected pairs"),
        ([3], "expected pairs"),
    ):
        with pytest.raises(ArgumentError, match=words):
            wrapped(lambda pairs=pairs: optimizer.apply_gradients(pairs))()


def test_the_scale_stays_between_its_bounds():
    v = gg.Variable(np.ones(1, "f4"))
    small = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.5), 2.0)
    large = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.5), 2.0**125, 1)
    for _ in range(3):
        small.apply_gradients([(np.nan * small.loss_scale * gg.ones(1), v)])
        large.apply_gradients([(gg.ones(1) * large.loss_scale, v)])
    assert float(small.loss_scale) == 1
    assert float(large.loss_scale) == 2.0**126


def test_restored_checkpoint_continues_bitwise(tmp_path, rng):
    def run(v, optimizer, data):
        for x in data:
            optimizer.apply_gradients([(gg.constant(x, "float32") * optimizer.loss_scale, v)])

    data = rng.normal(size=(9, 2))
    data[[1, 6]] = np.inf
    one, two = gg.Variable(np.ones(2, "f4")), gg.Variable(np.zeros(2, "f4"))
    first = gg.optim.LossScaleOptimizer(gg.optim.Adam(0.1), 2.0**4, 2)
    run(one, first, data[:4])
    gg.checkpoint.save(tmp_path / "a", {"v": one}, optimizer=first)
    run(one, first, data[4:])
    second = gg.optim.LossScaleOptimizer(gg.optim.Adam(0.1), 2.0**9, 2)
    gg.checkpoint.restore(tmp_path / "a", {"v": two}, optimizer=second)
    run(two, second, data[4:])
    np.testing.assert_array_equal(one.numpy(), two.numpy())
    assert str(first) == str(second) == repr(copy.deepcopy(first))


def test_a_state_without_a_scale_is_refused():
    optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.1))
    with pytest.raises(CheckpointError, match=r"lacks 'loss_scale'.*inner_optimizer"):
        optimizer.load_state_dict(gg.optim.SGD(0.1).state_dict())
    state = optimizer.state_dict()
    infinite = gg.constant([np.inf], "float32") * optimizer.loss_scale
    optimizer.apply_gradients([(infinite, gg.Variable(np.ones(1, "f4")))])
    with pytest.raises(CheckpointError, match=r"'loss_scale' must be a number, got float32 \(1,\)"):
        optimizer.load_state_dict({**state, "loss_scale": gg.ones(1)})
    for name, values in (("loss_scale", (np.nan, 0.0, np.inf)), ("good_steps", (-1, 0.5, np.nan))):
        for value in values:
            with pytest.raises(CheckpointError, match=f"'{name}' is"):
                optimizer.load_state_dict({**state, name: np.asarray(value)})
    assert float(optimizer.loss_scale) == 2.0**14


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gg.optim.LossScaleOptimizer(0.1), "must be an optimizer of gg.optim"),
        (lambda: gg.optim.LossScaleOptimizer(gg.optim.SGD(1), 0.5), "initial_scale"),
        (lambda: gg.optim.LossScaleOptimizer(gg.optim.SGD(1), np.nan), "initial_scale"),
        (lambda: gg.optim.LossScaleOptimizer(gg.optim.SGD(1), 2.0, 0), "dynamic_growth_steps"),
        (
            lambda: gg.optim.LossScaleOptimizer(gg.optim.SGD(1), 2.0, np.inf),
            "must be a whole number above 0",
        ),
    ],
)
def test_settings_out_of_range_are_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


def test_learning_rate_is_that_of_the_inner_optimizer():
    optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.1))
    optimizer.learning_rate = 0.2
    assert optimizer.learning_rate == optimizer.inner_optimizer.learning_rate == 0.2


LIMITS = [{"clipnorm": 0.6}, {"clipvalue": 0.3}, {"global_clipnorm": 0.6}]


@DEVICES
@WRAPPED
@pytest.mark.parametrize("limit", LIMITS, ids=[*map(str, LIMITS)])
def test_clipping_sees_unscaled_gradients(limit, wrapped, device):
    """A clip of scaled gradients would take a step that is too short by the scale."""

    def trained(optimizer, scale_loss):
        v, w = gg.Variable(np.float32([1.0, 2.0])), gg.Variable(np.float32([0.5]))

        @wrapped
        def step():
            with gg.GradientTape() as tape:
                x = gg.astype(v, "float16")
                loss = scale_loss(gg.sum(x * x) * gg.sum(gg.astype(w, "float16")))
            optimizer.apply_gradients(zip(tape.gradient(loss, [v, w]), [v, w], strict=True))

        for _ in range(3):
            step()
        return np.concatenate([v.numpy(), w.numpy()])

    with gg.device(device):
        scaled = gg.optim.LossScaleOptimizer(gg.optim.SGD(1.0, **limit), 2.0**10)
        result = trained(scaled, scaled.scale_loss)
        expected = trained(gg.optim.SGD(1.0, **limit), lambda loss: gg.astype(loss, "float32"))
    np.testing.assert_allclose(result, expected, rtol=1e-3)
    assert np.abs(result - [1, 2, 0.5]).max() > 0.2


def test_first_clipped_step_has_the_length_of_the_limit():
    v = gg.Variable(np.float32([3.0]))
    optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.1, global_clipnorm=6.0), 1000.0)
    with gg.GradientTape() as tape:
        loss = optimizer.scale_loss(gg.sum(v * v * 10))
    optimizer.apply_gradients([(tape.gradient(loss, v), v)])
    assert v.numpy()[0] == pytest.approx(3.0 - 0.6, rel=1e-6)


@DEVICES
@WRAPPED
@pytest.mark.parametrize("factors", [[1.0] * 5, [1.0, 2.0**125, 1.0, 1.0, 2.0**125]])
def test_optimizers_that_share_a_scale_update_it_once_a_step(factors, wrapped, device):
    with gg.device(device):
        scale = gg.optim.LossScale(2.0**10, 2)
        v, w = (gg.Variable(np.float32([1.0])) for _ in range(2))
        first = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.25), scale)
        second = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.5), scale)

        @wrapped
        def step(factor):
            with gg.GradientTape() as tape:
                loss = scale.scale_loss(gg.sum(v * factor + w))
            dv, dw = tape.gradient(loss, [v, w])
            first.apply_gradients([(dv, v)])
            second.apply_gradients([(dw, w)])

        one, good, moved = 2.0**10, 0, 0
        for factor in factors:
            with np.errstate(over="ignore"):
                step(gg.constant(factor, "float32"))
            finite = factor == 1
            good, moved = (good + 1 if finite else 0), moved + finite
            if not finite:
                one /= 2
            elif good == 2:
                one, good = one * 2, 0
            assert float(scale.value) == float(first.loss_scale) == float(second.loss_scale) == one
    assert first.iterations == moved
    assert second.iterations == len(factors)
    assert v.numpy()[0] == 1 - 0.25 * moved
    assert w.numpy()[0] == 1 - 0.5 * len(factors)


@WRAPPED
def test_gradients_scaled_by_another_scale_are_refused(wrapped):
    v, w = gg.Variable(np.float32([1.0])), gg.Variable(np.float32([2.0]))
    one = gg.optim.LossScaleOptimizer(gg.optim.SGD(1.0), 4.0)
    other = gg.optim.LossScaleOptimizer(gg.optim.SGD(1.0), 8.0)
    plain = gg.optim.SGD(1.0)

    @wrapped
    def step(apply):
        with gg.GradientTape() as tape:
            loss = one.scale_loss(gg.sum(v * w)) / 2
        apply(tape.gradient(loss, [v, w]))

    for apply, words in (
        (lambda g: other.apply_gradients([(g[0], v)]), "another LossScale"),
        (lambda g: plain.apply_gradients([(g[0], v)]), "gg.optim.LossScale"),
        (lambda g: gg.optim.clip_by_global_norm(g, 1.0), r"SGD\(0.1, global_clipnorm=1.0\)"),
    ):
        with pytest.raises(ArgumentError, match=words):
            step(apply)
    assert v.numpy()[0] == 1
    step(lambda g: one.apply_gradients([(g[0], v)]))
    assert v.numpy()[0] == 0


@WRAPPED
def test_gradients_of_a_loss_that_nobody_scaled_are_refused(wrapped):
    """Divided by the scale they would move nothing."""
    v, scale = gg.Variable(np.float32([1.0])), gg.optim.LossScale(4.0)
    optimizers = [gg.optim.LossScaleOptimizer(gg.optim.SGD(1.0), scale) for _ in range(2)]

    @wrapped
    def step(factor):
        with gg.GradientTape() as tape:
            loss = factor(gg.sum(v * v))
        g = tape.gradient(loss, v)
        for optimizer in optimizers:
            optimizer.apply_gradients([(g * 0.25, v)])

    with pytest.raises(ArgumentError, match=r"^LossScaleOptimizer: no loss was .*scale_loss"):
        step(lambda loss: loss)
    assert v.numpy()[0] == 1
    step(scale.scale_loss)
    assert v.numpy()[0] == 0


@DEVICES
@WRAPPED
def test_a_skipped_step_changes_nothing_but_the_scale(wrapped, device):
    with gg.device(device):
        v = gg.Variable(np.float32([1.0, 2.0]))
        optimizer = gg.optim.LossScaleOptimizer(gg.optim.Adam(0.1, global_clipnorm=1.0), 8.0)

        @wrapped
        def step(factor):
            with gg.GradientTape() as tape:
                loss = optimizer.scale_loss(gg.sum(gg.astype(v, "float16") * factor))
            optimizer.apply_gradients([(tape.gradient(loss, v), v)])

        step(gg.constant(np.float16(1)))
        before, value = optimizer.state_dict({"v": v}), v.numpy()
        for _ in range(2):
            step(gg.constant(np.float16(np.inf)))
        after = optimizer.state_dict({"v": v})
    np.testing.assert_array_equal(v.numpy(), value)
    assert float(after.pop("loss_scale")) == 2 < float(before.pop("loss_scale"))
    assert int(after.pop("good_steps")) == 0 < int(before.pop("good_steps"))
    for name, array in before.items():
        np.testing.assert_array_equal(after[name].numpy(), array.numpy(), err_msg=name)


@WRAPPED
def test_a_scale_may_be_used_in_functions_of_its_own(wrapped):
    """The loss is scaled in one function, each optimizer applies gradients in another."""
    scale = gg.optim.LossScale(2.0**4, 3)
    v, w = (gg.Variable(np.float32([8.0])) for _ in range(2))
    first = gg.optim.LossScaleOptimizer(gg.optim.SGD(1.0), scale)
    second = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.5), scale)

    @wrapped
    def gradients(factor):
        with gg.GradientTape() as tape:
            loss = scale.scale_loss(gg.sum(v + w) * factor)
        return tape.gradient(loss, [v, w])

    apply_first = wrapped(lambda g: first.apply_gradients([(g, v)]))
    apply_second = wrapped(lambda g: second.apply_gradients([(g, w)]))
    values = []
    for factor in (1.0, 1.0, np.inf, 1.0, 1.0, 1.0):
        dv, dw = gradients(gg.constant(factor, "float32"))
        apply_first(dv)
        apply_second(dw)
        values.append(float(scale.value))
    assert values == [16, 16, 8, 8, 8, 16]
    assert (v.numpy()[0], w.numpy()[0]) == (8 - 5, 8 - 2.5)


@WRAPPED
def test_gradients_may_be_scaled_by_hand(wrapped):
    v = gg.Variable(np.float32([8.0]))
    optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(1.0), 2.0**4, 2)
    apply = wrapped(lambda g: optimizer.apply_gradients([(g, v)]))
    values = []
    for factor in (1.0, 1.0, np.nan, 1.0, 1.0):
        apply(gg.constant([factor], "float32") * optimizer.loss_scale)
        values.append(float(optimizer.loss_scale))
    assert values == [16, 32, 16, 16, 32]
    assert v.numpy()[0] == 4


@WRAPPED
def test_minimize_scales_the_loss_on_its_own_tape(wrapped):
    v = gg.Variable([1.0, 2.0])
    optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.25), 2.0**20)

    @wrapped
    def step():
        return optimizer.minimize(lambda: gg.sum(gg.astype(v, "float16") ** 2))

    losses = [step().item() for _ in range(8)]
    assert losses[0] == 5
    assert (optimizer.skipped, optimizer.iterations) == (7, 1)  # 2**14 * 4 overflows float16
    assert v.tolist() == [0.5, 1.0]
    with pytest.raises(ArgumentError, match=r"minimize needs a function .* Got a Tensor"):
        optimizer.minimize(gg.sum(v))
