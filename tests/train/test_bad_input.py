"""Bad input in a training run: errors name the layer's path, files survive."""

import functools
import resource
import signal

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import (
    ArgumentError,
    CheckpointError,
    DTypeError,
    IndexOutOfBoundsError,
    NumericsError,
    ShapeError,
)

nn = gg.nn
RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 4)).astype("f4")
LABELS = np.arange(12) % 3


class Classifier(nn.Module):
    def __init__(self, width=5):
        self.encoder = nn.Sequential(nn.Dense(4, width, gg.tanh), nn.LayerNorm(width))
        self.head = nn.Dense(width, 3)

    def forward(self, x):
        return self.head(self.encoder(x))


def fit(data, model=None, **options):
    return gg.train.fit(
        (model or Classifier(), nn.cross_entropy), data, optimizer=gg.optim.Adam(0.1),
        progress=False, **options,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_loss_that_is_nan_names_the_variables_that_are():
    model = Classifier()
    model.encoder.layers[0].kernel.assign(np.full((4, 5), np.inf))
    words = r"loss is nan at step 2.* By now encoder\.layers\.0\.kernel, .*hold NaN"
    with pytest.raises(NumericsError, match=words):
        fit([(X, LABELS)] * 2, model)


def test_nans_around_fit_name_the_layer_where_one_begins():
    model = Classifier()
    model.head.kernel.assign(np.full((5, 3), np.inf))
    with gg.debug.nans(), pytest.raises(NumericsError, match=r"^head: matmul: .* arises here"):
        fit([(X, LABELS)], model)


def test_a_loss_that_is_nan_says_so_if_the_data_are():
    x = X.copy()
    x[3, 1] = np.nan
    with pytest.raises(NumericsError, match="The data of this step hold NaN or infinities"):
        fit([(X, LABELS), (x, LABELS)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: gg.optim.SGD(0.1, skip_nonfinite=True),
        lambda: gg.optim.LossScaleOptimizer(gg.optim.SGD(0.1)),
    ],
    ids=["skip_nonfinite", "loss scale"],
)
def test_steps_that_the_optimizer_skips_do_not_count(make):
    bad, pair = np.full_like(X, np.nan), (Classifier(), nn.cross_entropy)
    batches, optimizer = [(X, LABELS), (bad, LABELS), (X, LABELS)], make()
    run = gg.train.fit(
        pair, batches, optimizer=optimizer, metrics=[gg.train.Accuracy()], progress=False
    )
    assert (run.step, optimizer.iterations, optimizer.skipped) == (3, 2, 1)
    assert np.isfinite(run.logs["loss"])
    assert 0 <= run.logs["accuracy"] <= 1
    with pytest.raises(NumericsError, match="the loss is nan at step 2"):
        gg.train.fit(pair, [(bad, LABELS)] * 2, optimizer=make(), progress=False)


def test_a_batch_without_examples_raises_before_the_step():
    model = Classifier()
    before = model.head.kernel.numpy()
    words = r"fit: a batch has no examples.*\(0, 4\), \(0,\)"
    with pytest.raises(ArgumentError, match=words):
        fit([(X[:0], LABELS[:0])], model)
    np.testing.assert_array_equal(model.head.kernel.numpy(), before)
    with pytest.raises(ArgumentError, match="evaluate: a batch has no examples"):
        gg.train.evaluate(model, [(X[:0], LABELS[:0])], [gg.train.Accuracy()])


def test_a_dataset_without_examples_raises():
    with pytest.raises(ArgumentError, match="the dataset is empty"):
        gg.data.DataLoader(gg.data.Arrays(X[:0], LABELS[:0]))


def test_a_batch_larger_than_the_data_is_all_of_it_or_raises():
    data = gg.data.Arrays(X, LABELS)
    assert fit(gg.data.DataLoader(data, batch_size=100)).step == 1
    with pytest.raises(ArgumentError, match="12 examples, fewer than batch_size=100"):
        gg.data.DataLoader(data, batch_size=100, drop_last=True)


@pytest.mark.parametrize(
    ("labels", "error", "words"),
    [
        (LABELS[:7], ShapeError, r"\(12, 3\).*\(7,\)"),
        (LABELS + 1, IndexOutOfBoundsError, "labels run from 1 to 3, the 3 classes from 0 to 2"),
        (LABELS.astype("f4"), ShapeError, "labels are float32.*astype"),
        (np.array(["a"] * 12), DTypeError, "array of numbers"),
    ],
)
def test_labels_that_do_not_match_name_the_loss(labels, error, words):
    with pytest.raises(error, match=f"(cross_entropy|constant).*{words}"):
        fit([(X, labels)])
    if labels.shape != LABELS.shape:
        with pytest.raises(ShapeError, match="first axes must have one length"):
            gg.data.Arrays(X, labels)


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (X[:, :3], ShapeError, r"last axis of x must have length 4, but its shape is \(12, 3\)"),
        (X.astype("f8"), DTypeError, "x is float64 and the weights are float32"),
    ],
)
def test_inputs_that_do_not_fit_name_the_layer(x, error, words):
    with pytest.raises(error, match=rf"^encoder\.layers\.0: Dense: .*{words}"):
        fit([(x, LABELS)])


@pytest.mark.parametrize("how", ["parts", "one file"])
def test_a_checkpoint_of_another_model_names_the_layer(how, tmp_path):
    wide, narrow = Classifier(7), Classifier()
    before = {k: v.numpy() for k, v in narrow.state().items()}
    words = r"encoder\.layers\.0\.kernel.*\(4, 7\).*\(4, 5\)"
    path = tmp_path / "00000001.safetensors"
    if how == "parts":
        gg.train.Checkpoints(tmp_path, model=wide).save(1)
        restore = gg.train.Checkpoints(tmp_path, model=narrow).restore
    else:
        gg.checkpoint.save(path, wide)
        restore = functools.partial(gg.checkpoint.restore, module=narrow)
    with pytest.raises(CheckpointError, match=words):
        restore(path)
    for name, variable in narrow.state().items():
        np.testing.assert_array_equal(variable.numpy(), before[name])


def test_a_state_of_another_optimizer_is_refused_with_the_model_unchanged(tmp_path):
    first, second = Classifier(), Classifier()
    adamw, nadam = gg.optim.AdamW(), gg.optim.NAdam()
    adamw.apply_gradients([(gg.ones_like(v), v) for v in first.trainable_variables])
    gg.train.Checkpoints(tmp_path, model=first, optimizer=adamw).save(1)
    before = second.head.kernel.numpy()
    with pytest.raises(CheckpointError, match="NAdam: the state belongs to AdamW"):
        gg.train.Checkpoints(tmp_path, model=second, optimizer=nadam).restore()
    np.testing.assert_array_equal(second.head.kernel.numpy(), before)


def test_a_disk_that_fills_up_while_saving_leaves_the_old_file(tmp_path):
    model = Classifier()
    checkpoints = gg.train.Checkpoints(tmp_path, keep=1, model=model)
    old = checkpoints.save(1)
    content = old.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) // 2, limits[1]))
    try:
        with pytest.raises(CheckpointError, match="cannot be written: File too large"):
            checkpoints.save(2)
        with pytest.raises(CheckpointError, match="cannot be written: File too large"):
            checkpoints.save(1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert [f.name for f in tmp_path.iterdir() if f.name != ".lock"] == [old.name]
    assert old.read_bytes() == content


@pytest.mark.parametrize(
    "options", [{}, {"global_clipnorm": 1.0}, {"accumulate": 2}, {"skip_nonfinite": True}]
)
def test_a_gradient_of_another_shape_names_the_layer(options):
    model, optimizer = Classifier(), gg.optim.Adam(0.1, **options)
    before = [v.numpy() for v in model.variables]
    pairs = [(gg.ones_like(v), v) for v in model.trainable_variables]
    pairs[0] = gg.ones((3, 3)), pairs[0][1]
    words = r"'encoder\.layers\.0\.kernel' has shape \(4, 5\), its gradient has \(3, 3\)"
    with pytest.raises(ShapeError, match=words):
        optimizer.apply_gradients(pairs)
    for old, v in zip(before, model.variables, strict=True):
        np.testing.assert_array_equal(v.numpy(), old)
    assert optimizer.iterations == 0
