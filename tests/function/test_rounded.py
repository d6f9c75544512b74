"""16-bit copies of Variables, which the optimizer's kernel keeps for the next replay."""

import numpy as np
import pytest
from needs import needs_shim

import gpugrad as gg
from gpugrad.core.backend import as_dtype
from gpugrad.errors import ArgumentError
from gpugrad.function.passes import pass_names
from gpugrad.function.plan import MEMORY

pytestmark = needs_shim

WITHOUT_COPIES = [*(name for name in pass_names() if name != "casts"), *MEMORY]
OPTIMIZERS = {
    "SGD": lambda: gg.optim.SGD(0.05, momentum=0.9),
    "AdamW": lambda: gg.optim.AdamW(0.05, weight_decay=0.01),
    "Lion": lambda: gg.optim.Lion(0.01),
}


class Model:
    """Two dense layers whose products are in 16 bits, with a step that trains them."""

    def __init__(self, dtype="bfloat16", optimizer="AdamW", passes=None, train=True):
        rng = np.random.default_rng(0)
        shapes = {"w": (4, 6), "b": (6,), "v": (6, 3), "c": (3,)}
        self.variables = [
            gg.Variable(rng.normal(size=s).astype(np.float32), name=name, device="cuda:0")
            for name, s in shapes.items()
        ]
        self.optimizer = OPTIMIZERS[optimizer]()
        self.dtype = dtype
        self.step = gg.function(self._step, passes=passes)
        self.look = gg.function(self.loss, passes=passes)

    def loss(self, x):
        w, b, v, c = self.variables
        half = [gg.astype(a, self.dtype) for a in (w, b, v)]
        y = gg.tanh(gg.astype(x, self.dtype) @ half[0] + half[1]) @ half[2]
        return gg.mean((gg.astype(y, "float32") + c) ** 2)

    def _step(self, x):
        return self.optimizer.minimize(lambda: self.loss(x), self.variables)

    def values(self):
        return [v.numpy() for v in self.variables]

    def updates(self):
        """The optimizer's steps of the programs that are replayed."""
        plans = self.step._plans.values()
        return [s for plan in plans for s in plan.replay.program.steps if s.launched]


def batches(n, rows=5):
    rng = np.random.default_rng(1)
    data = rng.normal(size=(n, rows, 4)).astype(np.float32)
    return [gg.constant(x, device="cuda:0") for x in data]


def assert_same_bits(of, steps, **options):
    """Run `steps` on a model with copies, and on one that casts: all values have the same bits."""
    models = [Model(passes=passes, **options) for passes in (None, WITHOUT_COPIES)]
    results = [of(model, steps) for model in models]
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    for a, b in zip(models[0].values(), models[1].values(), strict=True):
        np.testing.assert_array_equal(a, b)
    return models[0]


def train(model, data, between=lambda model, k: None):
    losses = []
    for k, x in enumerate(data):
        losses.append(model.step(x).numpy())
        between(model, k)
    return losses


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_replay_casts_no_variable_that_it_updates(dtype, optimizer, cuda):
    model = assert_same_bits(train, batches(6), dtype=dtype, optimizer=optimizer)
    (applied,) = model.updates()
    assert [v.dtype for v in applied.outs[4:]] == [as_dtype(dtype)] * 3
    (plan,) = model.step._plans.values()
    start = {id(v) for v in applied.args[4:8]}
    readers = [s for s in plan.replay.program.steps if start & {*map(id, s.inputs)}]
    assert not [s.name for s in readers if "cast" in s.name or s.name == "astype"]


def assigned(model, k):
    if k == 2:
        w = model.variables[0]
        w.assign(gg.zeros_like(w))


def assigned_in_part(model, k):
    if k in (1, 2, 4):
        model.variables[2][1:3].assign(0.25)


def stepped_eagerly(model, k):
    if k in (2, 3):
        gradients = [gg.ones_like(v) for v in model.variables]
        model.optimizer.apply_gradients(zip(gradients, model.variables, strict=True))


def stepped_by_another_function(model, k):
    if k == 0:
        w, model.extra = model.variables[0], gg.optim.SGD(0.5)
        model.other = gg.function(lambda x: model.extra.apply_gradients([(w * x, w)]))
    if k % 2:
        model.other(gg.constant(0.3, device="cuda:0"))


def restored(model, k):
    if k == 1:
        model.saved = [v.numpy() for v in model.variables], model.optimizer.state_dict()
    if k == 3:
        for v, value in zip(model.variables, model.saved[0], strict=True):
            v.assign(value)
        model.optimizer.load_state_dict(model.saved[1])


def held(model, k):
    model.__dict__.setdefault("held", []).append([v.value() for v in model.variables])


def shared(model, k):
    if k == 2:
        model.average = gg.Variable(model.variables[0])


def looked_at(model, k):
    model.__dict__.setdefault("losses", []).append(model.look(batches(1)[0]).numpy())


def of_another_batch_size(model, k):
    model.step(batches(k + 1, rows=3)[k])


@pytest.mark.parametrize(
    "between",
    [assigned, assigned_in_part, stepped_eagerly, stepped_by_another_function, restored, held,
     shared, looked_at, of_another_batch_size],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_copies_are_right_when_variables_are(between, cuda):
    model = assert_same_bits(lambda model, data: train(model, data, between), batches(7))
    assert all(len(step.variables) == 7 for step in model.updates())


def test_copies_are_right_after_a_step_that_failed(cuda):
    def fail_once(model, data):
        def rate(step):
            if step == 3 and not model.__dict__.get("failed"):
                model.failed = True
                raise ArgumentError("no rate")
            return 0.05

        model.optimizer.learning_rate = rate
        losses = []
        for x in data:
            try:
                losses.append(model.step(x).numpy())
            except ArgumentError:
                losses.append(model.step(x).numpy())
        return losses

    assert assert_same_bits(fail_once, batches(6)).failed


def test_copies_are_kept_between_steps_of_one_call(cuda):
    def in_fours(model, data):
        step = gg.function(model._step, steps_per_call=4, passes=model.step._options.passes)
        return [np.asarray(step(gg.stack(data[k : k + 4])).numpy()) for k in range(0, 12, 4)]

    assert_same_bits(in_fours, batches(12))


def test_a_step_whose_optimizer_reads_norms_still_casts(cuda):
    w = gg.Variable(np.ones((4, 3), np.float32), device="cuda:0")
    optimizer = gg.optim.LAMB(0.1)

    @gg.function
    def step(x):
        with gg.GradientTape() as tape:
            loss = gg.sum(gg.astype(gg.astype(x, "float16") @ gg.astype(w, "float16"), "float32"))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    losses = [step(x).numpy().item() for x in batches(1) * 4]
    (plan,) = step._plans.values()
    assert "astype" in str(plan.replay.program) or "cast" in str(plan.replay.program)
    assert len(set(losses)) == 4
