"""Options of all optimizers: groups of settings, accumulation of gradients, skipped steps."""

import copy
import pickle

import numpy as np
import pytest
from update_rules import CASES, MATRICES, make

import gpugrad as gg
from gpugrad import nn, optim
from gpugrad.errors import ArgumentError, CheckpointError, ShapeError

EAGER_AND_TRACED = pytest.mark.parametrize(
    "wrapped", [lambda f: f, gg.function], ids=["eager", "function"]
)
DEVICES = pytest.mark.parametrize("device", ["cpu", "cuda:0"])


def small(name, variable):
    return variable.ndim < 2


def test_groups_select_by_the_path_in_a_module():
    model = nn.Sequential([nn.Dense(2, 3), nn.Dense(3, 1)])
    optimizer = optim.AdamW(0.1, groups={"*1.*": {"learning_rate": 0.0}})
    optimizer.build(model)
    before = {name: v.numpy() for name, v in model.named_variables()}
    ones = [(gg.ones_like(v), v) for v in model.trainable_variables]
    optimizer.apply_gradients(ones)
    moved = {name for name, v in model.named_variables() if (v.numpy() != before[name]).any()}
    assert moved == {name for name in before if "1." not in name}
    assert 0 < len(moved) < len(before)


def test_a_group_may_be_a_module():
    model = nn.Sequential(nn.Dense(2, 2), nn.Dense(2, 2))
    optimizer = optim.SGD(1.0, groups=[(model[1], {"learning_rate": 0.5})])
    before = [v.numpy() for v in model.variables]
    optimizer.apply_gradients([(gg.ones_like(v), v) for v in model.variables])
    for old, v, rate in zip(before, model.variables, (1, 1, 0.5, 0.5), strict=True):
        np.testing.assert_allclose(v.numpy(), old - rate, rtol=1e-6)


def test_build_after_a_step_moves_variables_to_their_groups():
    groups = [(lambda name, v: name == "part.kernel", {"learning_rate": 0.5})]
    v, optimizer = gg.Variable(1.0), optim.SGD(1.0, groups=groups)
    optimizer.apply_gradients([(gg.constant(1.0), v)])
    optimizer.build({"part.kernel": v})
    optimizer.apply_gradients([(gg.constant(1.0), v)])
    assert v.item() == -0.5


def test_the_first_group_that_selects_a_variable_counts():
    a, b, c = (gg.Variable(0.0, name=n) for n in "abc")
    groups = [([a], {"learning_rate": 1.0}), ("[ab]", {"learning_rate": 2.0})]
    optimizer = optim.SGD(3.0, groups=groups)
    optimizer.apply_gradients([(gg.constant(1.0), v) for v in (a, b, c)])
    assert (a.item(), b.item(), c.item()) == (-1, -2, -3)
    assert repr(optimizer.groups[1]) == "Group('[ab]', {'learning_rate': 2.0})"


@DEVICES
@EAGER_AND_TRACED
def test_settings_of_a_group_may_be_set_between_steps(wrapped, device):
    with gg.device(device):
        v = gg.Variable(np.zeros(2), name="v")
        optimizer = optim.SGD(1.0, groups={"v": {"learning_rate": 2.0}})

        @wrapped
        def step(g):
            optimizer.apply_gradients([(g, v)])

        g = gg.constant(np.ones(2))
        step(g)
        step(g)
        optimizer.groups[0].settings["learning_rate"] = 3.0
        step(g)
    assert v.tolist() == [-7.0, -7.0]


@DEVICES
@EAGER_AND_TRACED
def test_a_setting_that_changes_the_formula_may_be_set_between_steps(wrapped, device):
    with gg.device(device):
        v, optimizer = gg.Variable(np.ones(2)), optim.SGD(0.5)

        @wrapped
        def step(g):
            optimizer.apply_gradients([(g, v)])

        zero = gg.constant(np.zeros(2))
        step(zero)
        step(zero)
        optimizer.weight_decay = 1.0
        step(zero)
        step(zero)
    assert v.tolist() == [0.25, 0.25]


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([("*", {"decay": 1.0})], r"SGD: a group has no setting 'decay'; there are learning_rate,"),
        ([("*", {"momentum": 2.0})], "momentum of a group must be at least 0 and below 1, got 2"),
        ([("*", {"learning_rate": -1.0})], "learning rate must be at least 0"),
        ([("*", {"learning_rate": "fast"})], "learning rate must be a number"),
        ([("*", {"weight_decay": "much"})], "must be a number, got 'much'"),
        (["*"], "a group is a pair"),
        ([("*", 0.1)], "a group is a pair"),
        ([(3, {})], "a group is selected by a pattern"),
    ],
)
def test_wrong_groups_are_refused(groups, words):
    with pytest.raises(ArgumentError, match=words):
        optim.SGD(0.1, groups=groups)


def test_a_pattern_that_selects_no_variable_warns_once():
    v = gg.Variable(1.0, name="kernel")
    optimizer = optim.SGD(0.1, groups={"*.bais": {"learning_rate": 0.0}})
    with pytest.warns(UserWarning, match=r"group '\*\.bais' selects none .* 'kernel'") as caught:
        optimizer.apply_gradients([(gg.constant(1.0), v)])
    assert caught[0].filename == __file__
    optimizer.apply_gradients([(gg.constant(1.0), v)])


def test_optimizers_with_groups_are_copied_and_pickled():
    v = gg.Variable(np.ones(3), name="bias")
    optimizer = optim.AdamW(0.1, weight_decay=0.5, groups=[(small, {"weight_decay": 0.0})])
    optimizer.build({"layer.bias": v})
    g = gg.constant(np.zeros(3))
    for copied in (copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))):
        w, other = copied((v, optimizer))
        other.apply_gradients([(g, w)])
        assert w.tolist() == [1.0] * 3
        assert other.path_of(w) == "layer.bias"


def test_error_names_the_variable():
    v = gg.Variable(np.ones((2, 2)), name="layers.0.kernel")
    for name in (*CASES, *MATRICES):
        with pytest.raises(ShapeError, match=r"'layers.0.kernel' has shape \(2, 2\), its gradient"):
            make(name).apply_gradients([(gg.zeros(3, dtype="float64"), v)])
    optimizer = optim.SGD()
    optimizer.build({"blocks.3.kernel": v})
    with pytest.raises(ShapeError, match=r"'blocks\.3\.kernel' has shape"):
        optimizer.apply_gradients([(gg.zeros(3, dtype="float64"), v)])


def test_state_of_another_optimizer_is_refused():
    v = gg.Variable(np.ones((2, 2)))
    states = {}
    for name in (*CASES, *MATRICES):
        optimizer = make(name)
        optimizer.apply_gradients([(gg.ones_like(v), v)])
        states[type(optimizer).__name__, name] = optimizer.state_dict({"w": v})
    for name in (*CASES, *MATRICES):
        for (rule, _), state in states.items():
            optimizer = make(name)
            if rule != type(optimizer).__name__:
                with pytest.raises(CheckpointError, match=f"belongs to {rule}, not to"):
                    optimizer.load_state_dict(state, {"w": v})
                assert optimizer.iterations == 0


def test_a_state_without_a_rule_is_loaded_if_its_averages_have_the_same_names():
    v = gg.Variable(np.ones((2, 2)))
    adamw, nadam = optim.AdamW(), optim.NAdam()
    adamw.apply_gradients([(gg.ones_like(v), v)])
    state = adamw.state_dict({"w": v})
    with pytest.raises(CheckpointError, match="remove 'rule' from the state"):
        nadam.load_state_dict(state, {"w": v})
    del state["rule"]  # as in files that older versions wrote
    nadam.load_state_dict(state, {"w": v})
    assert nadam.iterations == 1
    with pytest.raises(CheckpointError, match=r"lacks|another optimizer"):
        optim.SGD(0.1, momentum=0.9).load_state_dict(state, {"w": v})


@DEVICES
@EAGER_AND_TRACED
@pytest.mark.parametrize("name", [*CASES, *MATRICES])
def test_accumulated_steps_are_those_of_the_mean(name, wrapped, device, rng):
    gradients = rng.integers(-8, 8, size=(6, 3, 2)).astype(float)  # their sums are exact
    with gg.device(device):
        one, other = (gg.Variable(np.ones((3, 2))) for _ in range(2))
        small_batches, big_batch = make(name, accumulate=3), make(name)

        @wrapped
        def step(g):
            small_batches.apply_gradients([(g, one)])

        for k, g in enumerate(gradients):
            step(gg.constant(g))
            if k % 3 == 2:
                mean = gradients[k - 2 : k + 1].sum(0) / 3
                big_batch.apply_gradients([(gg.constant(mean), other)])
            np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert small_batches.iterations == 2


@DEVICES
@EAGER_AND_TRACED
def test_clipping_and_skipping_apply_to_the_mean(wrapped, device):
    with gg.device(device):
        v = gg.Variable(np.zeros(2))
        optimizer = optim.SGD(1.0, accumulate=2, clipnorm=1.0, skip_nonfinite=True)

        @wrapped
        def step(g):
            optimizer.apply_gradients([(g, v)])

        for g in ([9.0, 8.0], [-3.0, 0.0], [np.inf, 0.0], [1.0, 0.0], [0.5, 0.0], [0.5, 0.0]):
            step(gg.constant(np.array(g)))
    np.testing.assert_allclose(v.numpy(), [-0.6 - 0.5, -0.8])
    assert (optimizer.iterations, optimizer.skipped) == (2, 1)


def test_accumulation_resumes_in_the_middle(rng):
    gradients = rng.normal(size=(8, 3)).astype(np.float32)
    whole, half = (gg.Variable(np.ones(3, np.float32)) for _ in range(2))
    one, first, second = (optim.Adam(0.1, accumulate=4) for _ in range(3))
    for g in gradients:
        one.apply_gradients([(gg.constant(g), whole)])
    for g in gradients[:6]:
        first.apply_gradients([(gg.constant(g), half)])
    again = gg.Variable(half.numpy())
    second.load_state_dict(first.state_dict({"w": half}), {"w": again})
    for g in gradients[6:]:
        second.apply_gradients([(gg.constant(g), again)])
    np.testing.assert_array_equal(again.numpy(), whole.numpy())
    assert first.state_dict({"w": half})["accumulated"].item() == 2


def test_accumulation_takes_rows_and_missing_gradients():
    table, other = gg.Variable(np.zeros((3, 1))), gg.Variable(np.zeros(2))
    optimizer = optim.SGD(1.0, accumulate=2)
    rows = gg.IndexedSlices(gg.constant(np.ones((2, 1))), gg.constant([1, 1]))
    optimizer.apply_gradients([(rows, table), (gg.constant(np.ones(2)), other)])
    optimizer.apply_gradients([(gg.constant(np.ones((3, 1))), table)])
    assert table.numpy().ravel().tolist() == [-0.5, -1.5, -0.5]
    assert other.tolist() == [-0.5, -0.5]


@DEVICES
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_accumulation_of_other_dtypes_rounds_once(dtype, device):
    with gg.device(device):
        v, optimizer = gg.Variable(gg.zeros(2, dtype=dtype)), optim.SGD(1.0, accumulate=4)
        for g in (2048.0, 1.0, 1.0, 2.0):  # 2048 + 1 is 2048 in 16 bits
            optimizer.apply_gradients([(gg.constant([g, 0.0], dtype), v)])
    expected = gg.constant([-513.0, 0.0], dtype)
    assert v.tolist() == expected.tolist()
    assert v.dtype == expected.dtype


@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_wrong_accumulation_is_refused(value):
    with pytest.raises(ArgumentError, match="accumulate must be a whole number above 0"):
        optim.Adam(accumulate=value)


def test_an_error_in_the_last_call_keeps_the_sum():
    v, rates = gg.Variable(np.zeros(1)), [1.0]
    optimizer = optim.SGD(lambda step: rates[0], accumulate=2)
    g = gg.constant(np.ones(1))
    optimizer.apply_gradients([(g, v)])
    rates[0] = float("nan")
    with pytest.raises(ArgumentError, match="learning rate"):
        optimizer.apply_gradients([(g, v)])
    rates[0] = 1.0
    optimizer.apply_gradients([(g, v)])
    assert v.tolist() == [-1.0]


@pytest.mark.filterwarnings("ignore:invalid value")
@EAGER_AND_TRACED
def test_loss_scale_works_with_accumulation(wrapped):
    v = gg.Variable([0.0, 0.0])
    optimizer = optim.LossScaleOptimizer(optim.SGD(1.0, accumulate=2), initial_scale=2.0**15)

    @wrapped
    def step(x):
        with gg.GradientTape() as tape:
            loss = optimizer.scale_loss(gg.sum(gg.astype(v, "float16") * x))
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])

    for x in ([1.0, 0.0], [np.inf, 0.0], [0.0, 3.0]):  # the second is skipped
        step(gg.constant(x, "float16"))
    assert v.tolist() == [-0.5, -1.5]
    assert (optimizer.iterations, optimizer.skipped) == (1, 1)


@EAGER_AND_TRACED
def test_loss_scale_works_with_groups_and_clipping(wrapped):
    model = nn.Dense(1, 1)
    inner = optim.SGD(1.0, groups={"bias": {"learning_rate": 0.0}}, clipnorm=0.5)
    optimizer = optim.LossScaleOptimizer(inner, initial_scale=2.0**15)
    optimizer.build(model)
    before = model.kernel.numpy()

    @wrapped
    def step(x):
        with gg.GradientTape() as tape:
            loss = optimizer.scale_loss(gg.sum(model(x)))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    step(gg.constant([[4.0]]))
    step(gg.constant([[0.25]]))
    np.testing.assert_allclose(model.kernel.numpy(), before - 0.75, rtol=1e-6)
    assert (model.bias.numpy() == 0).all()


@DEVICES
@EAGER_AND_TRACED
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_steps_with_gradients_that_are_not_finite_are_skipped_and_counted(bad, wrapped, device):
    with gg.device(device):
        v, w = gg.Variable(np.ones(2)), gg.Variable(np.ones(1))
        optimizer = optim.Adam(0.1, skip_nonfinite=True, global_clipnorm=1.0)

        @wrapped
        def step(g):
            optimizer.apply_gradients([(g, v), (gg.ones_like(w), w)])

        for g in ([1.0, 2.0], [1.0, bad], [2.0, 1.0]):
            step(gg.constant(np.array(g)))
    assert (optimizer.iterations, optimizer.skipped) == (2, 1)
    assert np.isfinite(v.numpy()).all()
    np.testing.assert_allclose(w.numpy(), 0.8, atol=0.03)


@DEVICES
@EAGER_AND_TRACED
def test_when_and_the_check_of_gradients_are_combined(wrapped, device):
    with gg.device(device):
        v, optimizer = gg.Variable([0.0]), optim.SGD(1.0, skip_nonfinite=True)

        @wrapped
        def step(g, when):
            optimizer.apply_gradients([(g, v)], when=when)

        for g, when in ((1.0, 1.0), (1.0, 0.0), (np.nan, 1.0), (np.inf, 0.0)):
            step(gg.constant([g]), gg.constant([when]))
    assert v.tolist() == [-1.0]
    assert (optimizer.iterations, optimizer.skipped) == (1, 3)


def test_the_count_of_skipped_steps_is_saved():
    v, optimizer = gg.Variable([1.0]), optim.SGD(0.1, skip_nonfinite=True)
    optimizer.apply_gradients([(gg.constant([np.nan]), v)])
    other = optim.SGD(0.1, skip_nonfinite=True)
    other.load_state_dict(optimizer.state_dict({"v": v}), {"v": v})
    assert other.skipped == 1
    assert repr(other) == "SGD(learning_rate=0.1, iterations=0, skipped=1)"


class Signs(optim.Optimizer):
    """As in the docstring of Optimizer."""

    slots = ("m",)
    hyper = optim.ranges(beta=optim.BELOW_1)

    def __init__(self, learning_rate, beta=0.9, **options):
        self.beta = beta
        super().__init__(learning_rate, **options)

    def numbers(self, h, rate, step):
        return {"beta": h.beta, "add": 1 - h.beta, "rate": rate}

    def formula(self, xp, s, p, g, m):
        m = s.beta * m + s.add * g
        return p - s.rate * xp.sign(m), m


@DEVICES
def test_an_optimizer_of_ones_own_needs_one_formula(device, rng):
    with gg.device(device):
        v, optimizer = gg.Variable(np.zeros(3)), Signs(0.5, groups={"*": {"beta": 0.5}})
        m, p = np.zeros(3), np.zeros(3)
        for g in rng.normal(size=(5, 3)):
            optimizer.apply_gradients([(gg.constant(g), v)])
            m = 0.5 * m + 0.5 * g
            p = p - 0.5 * np.sign(m)
    np.testing.assert_allclose(v.numpy(), p)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: optim.SGD(lr=0.1), TypeError, "SGD: .* lr is called learning_rate here"),
        (lambda: optim.Adam(0.1, betas=(0.9, 0.9)), TypeError, "beta_1 and beta_2"),
        (lambda: optim.Adam(0.1, weight_decay=0.1), TypeError, "AdamW decays"),
        (lambda: optim.Adam(0.1, other=1), TypeError, r"argument 'other'\. Its arguments are"),
        (lambda: optim.Adam(nn.Dense(1, 1), 0.1), ArgumentError, "Adam: .*got a Dense.*zip"),
        (lambda: optim.SGD([gg.Variable(1.0)]), ArgumentError, "SGD: .*got a list.*zip"),
        (lambda: optim.SGD(0.1).step(), AttributeError, r"SGD has .*'step'\. Call apply_gradients"),
        (lambda: optim.adamw, AttributeError, r"It is called gg\.optim\.AdamW here"),
        (
            lambda: optim.schedules.StepLR,
            AttributeError,
            r"'StepLR'\. It is called gg\.optim\.schedules\.step here",
        ),
        (lambda: setattr(optim.SGD(0.1), "lr", 0.2), AttributeError, "called learning_rate here"),
        (lambda: optim.SGD(0.1).lr, AttributeError, "called learning_rate here"),
        (lambda: optim.SGD(0.1).nothing, AttributeError, r"SGD has no attribute 'nothing'\.$"),
    ],
)
def test_names_of_other_libraries_raise_with_what_they_are_here(call, error, words):
    with pytest.raises(error, match=words):
        call()
