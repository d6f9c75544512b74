"""gpugrad.compat.tf beside its values: functions, Variables, modules, data, files, TensorFlow 1."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import gpugrad as gg
import gpugrad.compat.tf as tf
from gpugrad.compat.tf import v1
from gpugrad.compat.tf.__main__ import missing


@pytest.fixture(autouse=True)
def new_graph():
    v1.reset_default_graph()
    yield
    v1.enable_eager_execution()


def test_a_function_that_cannot_be_traced_runs_eagerly_and_says_so_once():
    @tf.function
    def f(x):
        return x * 2 if tf.reduce_sum(x) > 0 else -x

    with pytest.warns(RuntimeWarning, match="f runs eagerly"):
        assert f(tf.constant([1.0])).numpy() == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(tf.constant([-1.0])).numpy() == 1


def test_a_function_returns_values_of_variables_and_checks_its_signature():
    v = tf.Variable(1.0)
    f = tf.function(lambda: v.assign_add(1.0))
    first = f()
    f()
    assert (first.numpy(), v.numpy()) == (2, 3)
    g = tf.function(lambda x: x + 1, input_signature=[tf.TensorSpec([None], tf.int32)])
    assert g([1, 2]).numpy().tolist() == [2, 3]
    with pytest.raises(TypeError, match="does not fit TensorSpec"):
        g([[1, 2]])
    h = tf.function(lambda x, n: x * n).get_concrete_function(tf.TensorSpec([], tf.float32), n=3)
    assert h(tf.constant(2.0)).numpy() == h(tf.constant(2.0), n=3).numpy() == 6
    named = tf.function(lambda x, n: x * n).get_concrete_function(n=3, x=tf.TensorSpec([]))
    assert named(tf.constant(2.0)).numpy() == tf.function(lambda: 6)().numpy()
    k = tf.function(lambda n, x: n * x).get_concrete_function(3, tf.constant(1.0))
    assert k(tf.constant(2.0)).numpy() == k(3, tf.constant(2.0)).numpy() == 6
    with pytest.raises(TypeError, match="does not fit"):
        k(4, tf.constant(2.0))
    double = tf.numpy_function(Tout=tf.float32)(lambda a: a * 2)
    assert double([1.0]).numpy().tolist() == [2.0]
    for wrong in ({"n": 4}, {"m": 1}):
        with pytest.raises(TypeError, match="does not fit"):
            h(tf.constant(2.0), **wrong)


def test_gradients_inside_a_function_open_a_graph():
    f = tf.function(lambda x: tf.gradients(x**3, x)[0])
    assert f(tf.constant(2.0)).numpy() == 12
    g = tf.function(lambda x: tf.hessians(tf.reduce_sum(x**3), [x])[0])
    assert g(tf.constant([1.0, 2.0])).numpy().tolist() == [[6, 0], [0, 12]]


def test_shapes_and_dtypes_are_tensorflows_where_tf_is_this_package():
    x = tf.zeros([2, 3])
    assert x.shape.as_list() == [2, 3] == x.shape == x.get_shape()
    assert x.shape[1:] + (None,) == tf.TensorShape([3, None])  # noqa: RUF005
    assert (x.shape.rank, x.shape[0], x.shape.num_elements()) == (2, 2, 6)
    assert tf.ones([]).shape  # the shape is known
    assert x.dtype.is_floating
    assert not x.dtype.is_integer
    assert x.dtype == tf.float32 == "float32" == np.zeros(1, x.dtype).dtype
    assert x.dtype.as_numpy_dtype is np.float32
    assert {np.dtype("int8"): x.dtype.name}[tf.int8] == "float32"
    assert (x.dtype.size, tf.uint8.max) == (4, 255)
    assert tf.cast(x, tf.bfloat16).dtype is tf.bfloat16
    made = tf.cast([1], "float"), tf.zeros([1], float), tf.Variable([1], dtype="float")
    made += tf.constant([1], "float"), tf.TensorArray(float, 1).write(0, 1).stack()
    assert {x.dtype for x in made} == {tf.float32} == {v1.placeholder("float").dtype}
    assert tf.as_dtype("double") == tf.float64 == tf.as_dtype("float64")
    assert tf.complex64.real_dtype == tf.float32 != None  # noqa: E711
    with pytest.raises(ValueError, match="incompatible"):
        x.set_shape([2, 4])
    seen = eval("lambda x: (type(x.shape), x.dtype, hasattr(x, 'get_shape'))", {})(x)
    assert seen == (tuple, np.dtype("float32"), False)
    y = gg.zeros((2, 3))
    y.shape = (3, 2)
    assert y.shape == [3, 2]


def test_tensors_print_and_tell_their_device_as_in_tensorflow():
    x, v = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.Variable(27.3, name="v")
    array = "array([[1., 2.],\n       [3., 4.]], dtype=float32)"
    assert repr(x) == f"<tf.Tensor: shape=(2, 2), dtype=float32, numpy=\n{array}>"
    assert str(x) == "tf.Tensor(\n[[1. 2.]\n [3. 4.]], shape=(2, 2), dtype=float32)"
    value = "27.299999237060547"
    assert repr([v]) == f"[<tf.Variable 'v:0' shape=() dtype=float32, numpy={value}>]"
    assert f"{tf.constant(2.5)} {tf.constant([1, 2])}" == "2.5 [1 2]"
    assert x.device.endswith("CPU:0")
    assert tf.ones([]).numpy().shape == ()
    assert type(tf.ones([]).numpy()) is np.float32
    texts = []
    f = tf.function(lambda x: texts.append(str(x)) or x * 2)
    assert f(x).numpy()[1, 1] == 8  # traced, and read by no print
    assert texts == ['Tensor("Tensor:0", shape=(2, 2), dtype=float32)']
    assert gg.vmap(lambda r: texts.append(str(r)) or r)(x).shape == [2, 2]
    assert texts[-1] == "<2 examples of shape (2,)>"


def test_errors_have_tensorflows_classes_and_attributes():
    for call, code in (
        (lambda: tf.reshape([1, 2], [3]), 3),
        (lambda: tf.train.load_checkpoint("x"), 5),
    ):
        with pytest.raises(tf.errors.OpError) as raised:
            call()
        error = raised.value
        assert (error.message, error.op, error.node_def, error.error_code) == (
            str(error), None, None, code
        )  # fmt: skip
    for name in dir(tf.errors):
        if name.endswith("Error"):
            with pytest.raises(getattr(tf.errors, name), match="a text") as raised:
                raise getattr(tf.errors, name)(1, "op", "a text")
            assert (raised.value.node_def, raised.value.op) == (1, "op")
            assert isinstance(raised.value, gg.errors.GpugradError)
    iterator = iter(tf.data.Dataset.range(1))
    assert int(iterator.get_next()) == 0
    with pytest.raises(tf.errors.OutOfRangeError, match="no more elements"):
        iterator.get_next()


def test_arguments_are_read_by_their_names():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    old = v1.reduce_sum(x, reduction_indices=[1], keep_dims=True, name="s")
    assert old.numpy().tolist() == [[3.0], [7.0]]
    assert tf.add(x, 1, "name")[0, 0] == 2
    assert tf.squeeze(tf.ones([1, 3, 1]), 0).shape == [3, 1]
    assert v1.nn.dropout(tf.ones([1000]), 1.0).numpy().all()  # keep_prob
    for wrong in (lambda: tf.add(x), lambda: tf.add(x, 1, y=2), lambda: tf.add(x, 1, z=2)):
        with pytest.raises(TypeError, match="argument"):
            wrong()
    with pytest.raises(ValueError, match=r"check_numerics.*NaN"):
        tf.debugging.check_numerics([np.nan], "loss")
    with pytest.raises(AttributeError, match="padded_batch"):
        _ = tf.ragged


def test_modules_find_variables_by_names_of_attributes():
    class Dense(tf.Module):
        def __init__(self, name=None):
            super().__init__(name)
            self.w = tf.Variable([1.0], name="w")
            self.b = tf.Variable([0], trainable=False)

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.layers = [Dense(), Dense("last")]
            self.scale = tf.Variable(2.0)

    net = Net()
    assert [v.shape for v in net.variables] == [(), (1,), (1,), (1,), (1,)]
    assert len(net.trainable_variables) == 3
    assert [m.name for m in net.submodules] == ["dense", "last"]
    assert net.layers[0].b.dtype == tf.int32
    with pytest.raises(ValueError, match="not a Python identifier"):
        Dense("a b")


def test_optimizers_take_keras_arguments_and_minimize():
    v = tf.Variable(3.0)
    for optimizer in (tf.optimizers.SGD(0.1), tf.optimizers.Adam(learning_rate=0.1, name="a")):
        before = float(v)
        optimizer.minimize(lambda: v * v, [v])
        assert 0 < float(v) < before
    assert float(optimizer.learning_rate) == pytest.approx(0.1)


def test_datasets_chain():
    data = tf.data.Dataset.from_tensor_slices((np.arange(6), np.arange(6.0) * 2))
    pairs = data.filter(lambda i, x: i != 3).map(lambda i, x: (i + 1, x)).batch(2)
    assert [b.numpy().tolist() for b, _ in pairs] == [[1, 2], [3, 5], [6]]
    assert len(data.batch(4)) == 2
    assert len(data.batch(4, drop_remainder=True)) == 1
    assert len(data.repeat(2).skip(3).take(20)) == 9
    shuffled = [int(i) for i, _ in data.shuffle(3, seed=0)]
    assert sorted(shuffled) == list(range(6))
    windows = tf.data.Dataset.range(5).window(2, shift=1, drop_remainder=True)
    assert [[int(x) for x in w] for w in windows] == [[0, 1], [1, 2], [2, 3], [3, 4]]
    lengths = tf.data.Dataset.range(1, 4).map(tf.range).padded_batch(2)
    assert [b.shape for b in lengths] == [(2, 2), (1, 3)]
    merged = tf.data.Dataset.range(2).interleave(
        lambda i: tf.data.Dataset.from_tensors(i).repeat(3), cycle_length=2
    )
    assert [int(x) for x in merged] == [0, 1, 0, 1, 0, 1]
    assert int(tf.data.Dataset.range(5).reduce(0, lambda a, x: a + x)) == 10
    with pytest.raises(ValueError, match="not one length"):
        tf.data.Dataset.from_tensor_slices((np.arange(3), np.arange(4)))


def test_strategies_have_one_replica():
    strategy = tf.distribute.MirroredStrategy(["/GPU:0"])
    assert not tf.distribute.has_strategy()
    with strategy.scope():
        assert tf.distribute.get_strategy() is strategy
        data = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4))
    assert (tf.distribute.has_strategy(), strategy.num_replicas_in_sync) == (False, 1)
    for batch in data:
        each = strategy.run(lambda x, k: x * k, (batch,), {"k": 2})
        assert int(strategy.reduce("SUM", each, axis=None)[3]) == 6
        assert int(strategy.reduce(tf.distribute.ReduceOp.SUM, each, axis=0)) == 12
        assert float(strategy.reduce("mean", tf.cast(each, "float32"), axis=0)) == 3
    one = strategy.distribute_datasets_from_function(lambda c: c.get_per_replica_batch_size(8))
    assert strategy.experimental_local_results(one) == (8,)
    with pytest.raises(ValueError, match=r"2 devices.*gpugrad\.distributed"):
        tf.distribute.MirroredStrategy(["/GPU:0", "/GPU:1"])


def test_checkpoints_name_what_does_not_match(tmp_path):
    a, b = tf.Variable(1.0), tf.Variable([2, 3])
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(a=a, part=[b]), tmp_path, 2)
    paths = [manager.save() for _ in range(3)]
    assert manager.checkpoints == paths[1:]
    assert tf.train.latest_checkpoint(tmp_path) == paths[2]
    assert tf.train.list_variables(paths[2]) == [("a", []), ("part/0", [2])]
    reader = tf.train.load_checkpoint(tmp_path)
    assert reader.get_tensor("part/0").tolist() == [2, 3]
    assert reader.get_variable_to_dtype_map() == {"a": tf.float32, "part/0": tf.int32}
    assert not reader.has_tensor("b")
    status = tf.train.Checkpoint(a=a, other=tf.Variable(0.0)).restore(paths[2])
    with pytest.raises(ValueError, match="part/0"):
        status.assert_consumed()
    with pytest.raises(ValueError, match="no values of other"):
        status.assert_existing_objects_matched()


def test_checkpoints_hold_optimizers(tmp_path):
    def parts():
        return {"optimizer": tf.optimizers.Adam(0.1), "v": tf.Variable([3.0])}

    def step(p):
        p["optimizer"].minimize(lambda: tf.reduce_sum(p["v"] ** 2), [p["v"]])
        return p["v"].numpy().item()

    first, second = parts(), parts()
    step(first)
    path = tf.train.Checkpoint(first).write(tmp_path / "a")
    tf.train.Checkpoint(second).restore(path).assert_consumed()
    assert [step(first) for _ in range(3)] == [step(second) for _ in range(3)]
    status = tf.train.Checkpoint(v=first["v"], other=parts()["optimizer"]).read(path)
    with pytest.raises(ValueError, match="no values of other"):
        status.assert_existing_objects_matched()


def test_a_session_trains_and_traces_once():
    v1.disable_eager_execution()
    x, y = v1.placeholder("float32", [None, 2]), v1.placeholder("float32")
    w = v1.get_variable("w", [2, 1], initializer=v1.zeros_initializer())
    loss = v1.reduce_mean(v1.square(v1.matmul(x, w)[:, 0] - y))
    step = v1.train.AdamOptimizer(0.1).minimize(loss)
    config = v1.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    assert config.gpu_options.allow_growth
    (slope,) = v1.gradients(loss, [w])
    assert x.get_shape().as_list() == [None, 2]
    assert slope.shape == (2, 1)
    feed = {x: [[1.0, 2.0], [3.0, -1.0]], y: [1.0, 2.0]}
    with v1.Session() as session:
        with pytest.raises(ValueError, match="global_variables_initializer"):
            session.run(loss, feed)
        session.run(v1.global_variables_initializer())
        losses = [session.run([step, loss], feed)[1] for _ in range(60)]
        assert losses[-1] < 0.05 < losses[0]
        assert session.run(slope, feed).shape == (2, 1)
        session.run(w.assign([[1.0], [1.0]]))
        assert w.eval().tolist() == [[1.0], [1.0]]
        with pytest.raises(ValueError, match="has no value: give feed_dict"):
            session.run(loss)
        with pytest.raises(ValueError, match=r"has shape \(3,\)"):
            session.run(loss, {x: [1.0, 2.0, 3.0], y: 0.0})
        with pytest.raises(ValueError, match="cannot be fetched"):
            session.run("loss")
    with pytest.raises(TypeError, match="no value before a Session"):
        bool(loss)


def test_scopes_share_variables_and_a_saver_restores_them(tmp_path):
    v1.disable_eager_execution()
    with v1.variable_scope("net"):
        a = v1.get_variable("a", [2])
        with pytest.raises(ValueError, match="exists"):
            v1.get_variable("a", [2])
    with v1.variable_scope("net", reuse=True):
        assert v1.get_variable("a", [2]) is a
    assert [v.name for v in v1.trainable_variables("net")] == ["net/a:0"]
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        saver, values = v1.train.Saver(), session.run(a)
        path = saver.save(session, str(tmp_path / "model"))
        session.run(a.assign([0.0, 0.0]))
        saver.restore(session, path)
        assert session.run(a).tolist() == values.tolist()
        v1.Variable(1.0, name="later")
        with pytest.raises(tf.errors.NotFoundError, match="has no values of later"):
            v1.train.Saver().restore(session, path)


def test_layers_and_losses_of_tensorflow_1():
    v1.disable_eager_execution()
    v1.set_random_seed(0)
    x, y = v1.placeholder("float32", [None, 6, 6, 1]), v1.placeholder("int32", [None])
    hidden = v1.layers.conv2d(x, 2, 3, padding="same", activation=v1.nn.relu)
    hidden = v1.layers.average_pooling2d(v1.layers.max_pooling2d(hidden, 2, 2), 2, 1)
    hidden = v1.layers.dropout(v1.layers.flatten(hidden), 0.5, training=True)
    logits = v1.layers.dense(hidden, 3, name="last", kernel_initializer=v1.zeros_initializer())
    loss = v1.losses.sparse_softmax_cross_entropy(labels=y, logits=logits)
    assert (hidden.shape, logits.shape) == ([None, 8], [None, 3])
    names = [v.name for v in v1.trainable_variables()]
    assert names == [f"{n}:0" for n in ("conv2d/kernel", "conv2d/bias", "last/kernel", "last/bias")]
    step = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    labels, p = [[0.0, 1.0], [1.0, 1.0]], [[0.5, 0.25], [0.5, 3.0]]
    each = [  # as TensorFlow's
        v1.losses.mean_squared_error(labels, p), v1.losses.absolute_difference(labels, p),
        v1.losses.huber_loss(labels, predictions=p, weights=[[1.0], [0.0]]),
        v1.losses.softmax_cross_entropy(labels, p, 2.0), v1.losses.sigmoid_cross_entropy(labels, p),
    ]  # fmt: skip
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        feed = {x: np.ones((2, 6, 6, 1)), y: [0, 1]}
        first = session.run([loss, step], feed)[0]
        assert first == pytest.approx(np.log(3))
        assert session.run(loss, feed) < first
        assert session.run(each) == pytest.approx([1.265625, 0.9375, 0.203125, 3.483719, 0.5181702])
        assert session.run(v1.losses.get_total_loss(), feed) > 6.4
    with pytest.raises(TypeError, match=r"layers\.dense.*'kernel'"):
        v1.layers.dense(hidden, 3, kernel=1)


def test_arguments_that_do_not_fit_are_named():
    with pytest.raises(TypeError, match="do not fit"):
        tf.initializers.Constant(1.0, "float32", 2)
    with pytest.raises(TypeError, match="do not fit"):
        tf.initializers.GlorotUniform(scale=2.0)
    with pytest.raises(TypeError, match=r"mean_squared_error.*do not fit"):
        v1.losses.mean_squared_error([1.0], [2.0], reduce="none")
    with pytest.raises(TypeError, match="at most 6"):
        tf.optimizers.Adam(*[0.1] * 8)


def test_a_constraint_holds_in_a_traced_step():
    v, optimizer = tf.Variable([1.0, -1.0], constraint=tf.nn.relu), tf.optimizers.SGD(0.5)

    @tf.function
    def step():
        optimizer.apply_gradients([(tf.ones([2]), v)])
        return v * 1.0

    assert [step().numpy().tolist() for _ in range(3)] == [[0.5, 0.0], [0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("name", ["GradientDescent", "Momentum", "Adam", "RMSProp", "Ftrl"])
def test_an_optimizer_of_tensorflow_1_steps_at_once_with_eager_execution(name):
    arguments = (0.1, 0.9) if name == "Momentum" else (0.1,)
    optimizer = getattr(v1.train, f"{name}Optimizer")(*arguments)
    v = v1.Variable([1.0, -2.0], constraint=lambda x: tf.maximum(x, -1.95))
    losses = []
    for _ in range(3):
        optimizer.minimize(lambda: tf.reduce_sum(v**2))
        losses.append(float(tf.reduce_sum(v**2)))
    assert losses[2] < losses[1] < losses[0] < 5
    assert isinstance(v, v1.Variable)
    assert float(tf.reduce_min(v)) >= -1.95
    with pytest.raises(ValueError, match="must be a function"):
        optimizer.minimize(tf.reduce_sum(v), var_list=[v])


def test_names_of_tensorflow_1_compute_at_once_until_a_graph_begins():
    v = v1.Variable([1.0, 2.0])
    assert v1.to_int32(v1.matrix_inverse([[0.5]])).numpy().tolist() == [[2]]
    assert isinstance(v, tf.Variable)
    assert v.assign_add([1.0, 1.0]).numpy().tolist() == [2, 3]
    with v1.Graph().as_default():
        assert "placeholder" in repr(v1.placeholder("float32")).lower()
        assert not hasattr(v1.Variable(1.0), "numpy")


def test_missing_names_are_listed_with_lines():
    source = (
        "import tensorflow as tf\nfrom tensorflow import nn as n\nx = tf.foo(1)\ny = n.relu(x)\n"
    )
    source += "z = tf.strings.join(y)\ntf.math.bar()\nn.baz\n"
    assert missing(source) == {"foo": [3], "math.bar": [6], "nn.baz": [7], "strings": [5]}
    with pytest.raises(AttributeError, match="nearest names are relu"):
        _ = tf.nn.relux
    with pytest.raises(TypeError, match="no number"):
        tf.constant("text")
    with pytest.raises(OverflowError, match=r"tf\.int64"):
        tf.constant(2**40)
    assert gg.__name__ in tf.__name__


def test_after_tensorflow_it_is_too_late(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", np)
    with pytest.raises(ImportError, match="imported already"):
        tf.install()


def test_install_puts_it_in_tensorflows_place():
    program = (
        "import gpugrad.compat.tf as t; t.install()\n"
        "import tensorflow as tf, tensorflow.experimental.numpy as tnp\n"
        "from tensorflow.math import reduce_sum\n"
        "print(reduce_sum(tf.constant([1, 2])).numpy(), tf is t, tnp.ones(2).shape)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "3 True (2,)\n", done.stderr


def test_init_scope_makes_variables_while_a_function_is_traced():
    made = []

    class Layer:
        built = False

        def __call__(self, x):
            if not self.built:
                self.built = True  # before the Variables: the function runs once
                with tf.init_scope():
                    made.append(tf.Variable(tf.random.normal((3, 2))))
            return tf.matmul(x, made[0])

    step = tf.function(Layer())
    x = tf.ones((4, 3))
    np.testing.assert_allclose(step(x), tf.matmul(x, made[0]))
    made[0].assign(tf.zeros((3, 2)))
    assert not step(x).numpy().any()
    assert len(made) == 1
