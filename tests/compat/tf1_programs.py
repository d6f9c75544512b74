"""Small programs for TensorFlow 1's graphs; each returns what a Session computed.

Each function takes the module; its name is that of the program. `test_tf1_programs`
compares what they return with TensorFlow's results.
"""

from __future__ import annotations

import os
import tempfile

import numpy as np

X = np.random.default_rng(0).standard_normal((4, 3)).astype("float32")
W = np.random.default_rng(1).standard_normal((3, 2)).astype("float32")
SEQUENCE = np.random.default_rng(5).standard_normal((6, 2, 3)).astype("float32")
OPTIMIZERS = """
GradientDescent(0.1)  Momentum(0.1, 0.9)  Momentum(0.1, 0.9, use_nesterov=True)  Adam()  Adam(0.1, 0.5, 0.9, 0.1)
RMSProp(0.1)  RMSProp(0.1, 0.5, 0.9, 0.1)  RMSProp(0.1, momentum=0.9, centered=True)  Adagrad(0.1)  Adagrad(0.1, 0.5)
Adadelta()  Adadelta(0.5, 0.9, 1e-2)  Ftrl(0.1)  Ftrl(0.1, -0.3, 0.2, 0.01, 0.02)  Ftrl(0.1, l2_shrinkage_regularization_strength=0.1)
ProximalGradientDescent(0.1, 0.01, 0.02)  ProximalAdagrad(0.1, 0.1, 0.01, 0.02)
"""  # noqa: E501  # a table
DECAYS = """
exponential_decay(0.1, g, 2, 0.5)  exponential_decay(0.1, g, 2, 0.5, staircase=True)  piecewise_constant(g, [2, 4], [0.1, 0.05, 0.01])
polynomial_decay(0.1, g, 4, 0.01, 2.0)  polynomial_decay(0.1, g, 4, 0.01, 2.0, cycle=True)  inverse_time_decay(0.1, g, 2, 0.5)
natural_exp_decay(0.1, g, 2, 0.5)  cosine_decay(0.1, g, 4, alpha=0.1)  cosine_decay_restarts(0.1, g, 2)  linear_cosine_decay(0.1, g, 4)
"""  # noqa: E501  # a table


def rows(table):
    return [call for line in table.strip().splitlines() for call in line.split("  ")]


def run(tf, fetches, feed=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


def after(tf, op, fetches, times=1):
    """What is fetched after an operation ran some times."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(times):
            session.run(op)
        return session.run(fetches)


def optimizer(tf, call):
    """Four steps on data that grow, and two that touch few rows of a table."""
    name, _, arguments = call.partition("(")
    make = lambda: eval(f"f({arguments}", {"f": getattr(tf.train, f"{name}Optimizer")})  # noqa: E731
    w, x = tf.Variable(W), tf.placeholder(tf.float32, [None, 3])
    step = make().minimize(tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0)))
    table, ids = tf.Variable(np.arange(12, dtype="float32").reshape(4, 3)), tf.placeholder(tf.int32)
    sparse = make().minimize(tf.reduce_sum(tf.nn.embedding_lookup(table, ids) ** 2))
    found = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for i in range(4):
            session.run(step, {x: X * (i + 1)})
            found.append(session.run(w))
        for rows_ in ([0, 2, 2], [1, 2], [3]):
            session.run(sparse, {ids: rows_})
        return [*found, session.run(table)]


def decay(tf, call):
    g = tf.train.get_or_create_global_step()
    rate = eval(f"train.{call}", {"train": tf.train, "g": g})
    w = tf.Variable(W)
    step = tf.train.GradientDescentOptimizer(rate).minimize(tf.reduce_sum(w * w), global_step=g)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = []
        for _ in range(5):
            found.append(session.run([rate, g]))
            session.run(step)
        return [*found, session.run(w)]


def rate_that_is_fed(tf):
    rate, w = tf.placeholder(tf.float32, []), tf.Variable(W)
    step = tf.train.AdamOptimizer(rate).minimize(tf.reduce_sum(w * w))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for value in (0.1, 0.5):
            session.run(step, {rate: value})
        return session.run(w)


def control_dependencies(tf):
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.assign_add(2.0)]):
        read, nothing = tf.identity(v), tf.no_op()
    with tf.control_dependencies([tf.assign(v, 7.0)]):
        later = v.assign_add(10.0)
    with tf.control_dependencies([later]):
        twice = v * 2.0
    return run(tf, read), run(tf, twice), after(tf, nothing, v), after(tf, tf.group(later), v)


def update_ops(tf):
    v, w = tf.Variable(1.0), tf.Variable(W)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, v.assign_add(1.0))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w * w))
    return after(tf, step, [v, w], 2)


def local_variables(tf):
    kinds = [tf.GraphKeys.LOCAL_VARIABLES]
    a = tf.get_variable("a", [], initializer=tf.zeros_initializer(), collections=kinds)
    v = tf.Variable(1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(v.assign(5.0))
        session.run(tf.local_variables_initializer())  # leaves v alone
        values = session.run([a, v])
    return values, [len(tf.global_variables()), len(tf.local_variables())]


def regularizers(tf):
    square, add = (lambda w: 0.1 * tf.reduce_sum(w * w)), tf.reduce_sum
    with tf.variable_scope("a", regularizer=square, initializer=tf.constant_initializer(3.0)):
        w, b = tf.get_variable("w", [2, 2]), tf.get_variable("b", [2], regularizer=add)
    loss = tf.reduce_sum(w) + tf.losses.get_regularization_loss()
    kept = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    return run(tf, [loss, *tf.gradients(loss, [w, b]), *kept])


def constraint(tf):
    clip = lambda w: tf.clip_by_value(w, 0.0, 10.0)  # noqa: E731
    v = tf.get_variable("v", initializer=tf.constant([1.0, -1.0]), constraint=clip)
    return after(tf, tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(v)), v)


def names(tf):
    with tf.variable_scope("s"):
        with tf.name_scope("n"):
            found = [tf.get_variable("a", [2]), tf.Variable(1.0, name="b"), tf.add(1.0, 2.0, "c")]
        found += [tf.Variable(1.0, name="v")]
    for _ in range(2):
        with tf.variable_scope(None, "fc"):
            found += [tf.get_variable("w", [1])]
    with tf.variable_scope("s") as scope:
        found += [tf.Variable(1.0, name="v")]
    with tf.variable_scope("other"), tf.variable_scope(scope, reuse=True):
        found += [tf.get_variable("a", [2])]
    return [x.name for x in found], found[0].op.name


def gradients_with_options(tf):
    a, b = tf.Variable(2.0), tf.Variable([2.0, 1.0])
    g = tf.gradients(a * a, [a, b], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    missing = [x is None for x in tf.gradients(a * a, [a, b])]
    y, first = tf.reduce_sum(b**3), tf.gradients(tf.reduce_sum(b**3), b)[0]
    more = [*tf.gradients(a * a, a, grad_ys=5.0), *tf.gradients([a * a, a * 3.0], a)]
    second = [first, *tf.gradients(first, b), tf.hessians(y, b)[0]]
    step = tf.train.GradientDescentOptimizer(0.1).minimize(b * b, grad_loss=tf.ones_like(b) * 2.0)
    return run(tf, [*g, *more, *second]), missing, after(tf, step, b)


def cond(tf):
    x, a = tf.placeholder(tf.float32, []), tf.Variable(3.0)
    inner = lambda: tf.cond(x > 1, lambda: a * x, lambda: a * a)  # noqa: E731
    y = tf.cond(x > 0, inner, lambda: -a)
    assigned = tf.cond(x > 0, lambda: tf.assign(a, 7.0), lambda: tf.assign(a, 9.0))
    chosen = tf.case([(x < 1.0, lambda: a * 1.0), (x < 2.0, lambda: x * 2.0)], lambda: x * 5.0)
    number = tf.switch_case(tf.cast(x, tf.int32), [lambda: a * 1.0, lambda: a * 2.0], lambda: x)
    values = [
        run(tf, [y, *tf.gradients(y, a), chosen, number], {x: v}) for v in (2.0, 0.5, -1.0, 4.0)
    ]
    return values, [run(tf, [assigned, a], {x: v})[0] for v in (1.0, -1.0)]


def while_loop(tf):
    x, w = tf.placeholder(tf.float32, []), tf.Variable(2.0)
    step = lambda i, a: (i + 1, tf.cond(tf.equal(i % 2, 0), lambda: a * w, lambda: a + 1.0))  # noqa: E731
    i, y = tf.while_loop(lambda i, a: i < 4, step, [tf.constant(0), x])
    most = tf.while_loop(
        lambda i, a: i < 9, lambda i, a: [i + 1, a * 2.0], [0, x], maximum_iterations=4
    )
    root = tf.while_loop(lambda z: tf.abs(z * z - x) > 1e-4, lambda z: (z + x / z) / 2.0, [x])
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    grow = lambda i, z: (i + 1, tf.concat([z, [1.0]], 0))  # noqa: E731
    longer = tf.while_loop(lambda i, z: i < 3, grow, [0, tf.constant([0.0])], shapes)
    cut = tf.while_loop(lambda a: a < 9.0, lambda a: a * w, [x], back_prop=False)
    values = run(tf, [i, y, *tf.gradients(y, [x, w]), most, root, longer], {x: 3.0})
    return values, [g is None for g in tf.gradients(cut, [x])]


def lstm(tf):
    x, w = tf.placeholder(tf.float32, [6, None, 3]), tf.Variable(np.cos(np.arange(112.0)) / 3)
    w = tf.cast(tf.reshape(w, [7, 16]), tf.float32)
    n = tf.shape(x)[1]

    def body(t, h, c):
        i, j, f, o = tf.split(tf.matmul(tf.concat([x[t], h], 1), w), 4, 1)
        c = c * tf.sigmoid(f) + tf.sigmoid(i) * tf.tanh(j)
        return t + 1, tf.tanh(c) * tf.sigmoid(o), c

    h = tf.while_loop(lambda t, h, c: t < 6, body, [0, tf.zeros([n, 4]), tf.zeros([n, 4])])[1]
    cell = lambda h, z: tf.tanh(tf.matmul(tf.concat([z, h], 1), w[:, :4]))  # noqa: E731
    scanned, unrolled = tf.scan(cell, x, tf.zeros([2, 4])), tf.zeros([n, 4])
    for z in tf.unstack(x):
        unrolled = cell(unrolled, z)
    losses = [tf.reduce_mean(y * y) for y in (h, scanned, unrolled)]
    return run(tf, [losses, *[tf.gradients(loss, w)[0] for loss in losses]], {x: SEQUENCE})


def functions_of_elements(tf):
    x = tf.placeholder(tf.float32, [None])
    both = tf.map_fn(lambda a: (a * a, a + 1.0), x, dtype=(tf.float32, tf.float32))
    pairs = tf.map_fn(lambda t: t[0] * t[1], (x, x + 1.0), dtype=tf.float32)
    zero, one = tf.constant(0.0), tf.constant(1.0)
    carry = tf.scan(lambda c, a: (c[0] + a, c[1] * a), x, (zero, one))
    folds = [tf.foldl(lambda a, b: a - b, x), tf.foldr(lambda a, b: a - b, x)]
    back = tf.scan(lambda a, b: a + b, x, zero, reverse=True)
    fetches = [both, tf.gradients(both[0], x), pairs, carry, folds, back]
    cut = tf.map_fn(lambda a: a * a, x, back_prop=False)
    return run(tf, fetches, {x: [1.0, 2.0, 3.0]}), tf.gradients(cut, x)[0] is None


def tensor_arrays(tf):
    array = tf.TensorArray(tf.float32, 3).write(0, 1.0).write(1, 2.0).write(2, 3.0)
    fill = lambda i, t: (i + 1, t.write(i, tf.cast(i, tf.float32) * 2.0))  # noqa: E731
    filled = tf.while_loop(lambda i, t: i < 3, fill, [0, tf.TensorArray(tf.float32, 3)])[1]
    read = tf.TensorArray(tf.float32, 2).unstack([1.0, 2.0]).read(1)
    return run(tf, [array.stack(), read, filled.stack()])


def moving_statistics(tf):
    x, train = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.bool, [])
    mean, variance = tf.nn.moments(x, [0])
    moving = tf.Variable(tf.zeros([3]), trainable=False)

    def update():
        with tf.control_dependencies([moving.assign(moving * 0.5 + mean * 0.5)]):
            return tf.identity(mean), tf.identity(variance)

    m, v = tf.cond(train, update, lambda: (moving, tf.ones([3])))
    y = tf.nn.batch_normalization(x, m, v, None, None, 1e-3)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first = session.run(y, {x: X, train: True})
        return first, session.run(moving), session.run(y, {x: X, train: False})


def averages(tf):
    v = tf.Variable(1.0)
    ema = tf.train.ExponentialMovingAverage(0.9)
    update = ema.apply([v])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(v.assign(5.0))
        session.run(update)
        return session.run(ema.average(v)), ema.average_name(v)


def losses(tf):
    a, b, kinds = tf.constant([1.0, 2.0]), tf.constant([2.0, 5.0]), tf.losses.Reduction
    each = [
        kinds.NONE,
        kinds.SUM,
        kinds.MEAN,
        kinds.SUM_OVER_BATCH_SIZE,
        kinds.SUM_BY_NONZERO_WEIGHTS,
    ]
    values = [tf.losses.absolute_difference(a, b, [2.0, 0.0], reduction=kind) for kind in each]
    tf.losses.mean_squared_error(a, b, loss_collection=None)
    p, q = tf.constant([[1.0, 0.0], [0.0, 1.0]]), tf.constant([[0.6, 0.8], [0.8, -0.6]])
    kept = [
        tf.losses.huber_loss(a, b, 1.0, 0.5),
        tf.losses.log_loss(tf.constant([1.0, 0.0]), tf.constant([0.6, 0.3])),
        tf.losses.cosine_distance(p, q, 1),
        tf.losses.hinge_loss(p, q),
        tf.losses.softmax_cross_entropy(p, q, label_smoothing=0.1),
    ]
    tf.losses.add_loss(tf.constant(3.0))
    return run(tf, [values[:1], kept]), len(tf.losses.get_losses())


def saved_steps(tf):
    folder, w = tempfile.mkdtemp(), tf.Variable(W)
    g = tf.train.create_global_step()
    step = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(w**2), global_step=g)
    saver = tf.train.Saver(max_to_keep=2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            session.run(step)
            path = saver.save(session, f"{folder}/model", global_step=g)
        session.run(step)
        expected = session.run(w)
        saver.restore(session, path)  # with the averages of Adam
        session.run(step)
        kept = {name.split(".")[0] for name in os.listdir(folder) if name.startswith("model")}
        return np.abs(session.run(w) - expected).max() < 1e-6, sorted(kept), expected


def adversaries(tf):
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    loss = (a * b - 3.0) ** 2
    first = tf.train.AdamOptimizer(0.1).minimize(loss, var_list=[a])
    second = tf.train.RMSPropOptimizer(0.1).minimize(-loss, var_list=[b])
    x, w = tf.placeholder(tf.float32, [None, 3]), tf.Variable(W)
    slope = tf.gradients(tf.reduce_sum(tf.tanh(tf.matmul(x, w)) ** 2), x)[0]
    penalty = tf.reduce_mean((tf.sqrt(tf.reduce_sum(slope * slope, 1)) - 1.0) ** 2)
    values = run(tf, [penalty, *tf.gradients(penalty, w)], {x: X})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(first)
            session.run(second)
        return values, session.run([a, b])


def several_results(tf):
    x = tf.constant(X)
    top, (mean, variance) = tf.nn.top_k(x, 2), tf.nn.moments(x, [0])
    a, b, c = tf.split(x, 3, axis=1)
    clipped, norm = tf.clip_by_global_norm([x, x * 2.0], 1.0)
    s, u, v = tf.svd(x)
    again = tf.matmul(u, tf.matmul(tf.diag(s), v, transpose_b=True))
    y, i = tf.unique(tf.constant([3, 1, 3]))
    fetches = [top.values, top.indices, mean, variance, a, b + c, clipped, norm, s, again, y, i]
    return run(tf, fetches), len(tf.unstack(x, axis=1))


def own_functions(tf):
    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: dy * 7.0

    w, x = tf.Variable(3.0), tf.placeholder(tf.float32, [None])
    doubled = tf.py_func(lambda a: (a * 2).astype("float32"), [x], tf.float32)
    y = square(w)
    values = [run(tf, doubled, {x: v}) for v in ([1.0, 2.0], [5.0])]
    return run(tf, [y, *tf.gradients(y, w)]), values


def rows_of_variables(tf):
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.scatter_update(v, [0], [9.0]))
        session.run(tf.scatter_add(v, [1, 1], [5.0, 1.0]))
        session.run(tf.scatter_sub(v, [2], [1.0]))
        return session.run(v)


def names_in_a_session(tf):
    x = tf.placeholder(tf.float32, [], name="x")
    tf.multiply(x, 2.0, name="y")
    y = tf.get_default_graph().get_tensor_by_name("y:0")
    default = tf.placeholder_with_default(3.0, [])
    with tf.Session() as session:
        fetched = session.run(["y:0", {"y": (y, [default * 1.0])}], {"x:0": 3.0})
        return fetched, session.run(y + default, {x: 1.0, default: 5.0, y: 10.0})


def shapes(tf):
    x = tf.placeholder(tf.float32, [None, 28, 28, 1])
    y = tf.nn.conv2d(x, tf.Variable(tf.ones([5, 5, 1, 4])), [1, 2, 2, 1], "SAME")
    z = tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    flat = tf.reshape(z, [-1, int(np.prod(z.get_shape().as_list()[1:]))])
    more = [tf.reduce_mean(flat), tf.concat([flat, flat], 0), tf.transpose(y, [3, 0, 1, 2])]
    return [v.get_shape().as_list() for v in (x, y, z, flat, *more)]


def old_names(tf):
    x = tf.constant(X)
    reduced = tf.reduce_sum(x, reduction_indices=1, keep_dims=True)
    quotients = [tf.div(7, 2), tf.div(7.0, 2.0), tf.truediv(7, 2), tf.floordiv(-7, 2)]
    order = [tf.argmax(x, dimension=1), tf.nn.softmax(x, dim=0), tf.expand_dims(x, dim=0)]
    return run(tf, [reduced, *quotients, *order, tf.to_float(tf.constant(1)), tf.diag([1.0, 2.0])])


def rows_by_a_vector(tf):
    x, first = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([True, False])
    return run(tf, [tf.where(first, x, -x), tf.where(x > 1.5, x, -x), tf.where(first)])


def gradients_by_labels(tf):
    w = tf.Variable(W)
    labels, logits = tf.nn.softmax(w), tf.constant(W) * 2.0
    first = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    second = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    return run(tf, [first, second, *tf.gradients(second, w)]), tf.gradients(first, w)[0] is None


def initial_values(tf):
    values = [
        tf.get_variable("a", [2, 2], initializer=tf.constant_initializer([1, 2, 3, 4], tf.float32)),
        tf.get_variable("b", [2], tf.int32, tf.ones_initializer(tf.int32)),
        tf.get_variable("c", [2, 3], initializer=tf.initializers.identity(2.0)),
        tf.get_variable("d", initializer=tf.constant([1.0, 2.0], tf.float64)),
    ]
    draws = (tf.initializers.random_normal, tf.initializers.truncated_normal)
    wide = [tf.get_variable(f"w{i}", [9999], initializer=f()) for i, f in enumerate(draws)]
    flat = tf.get_variable("u", [9999], initializer=tf.random_uniform_initializer())
    spread = [float(np.round(np.std(x), 1)) for x in run(tf, [*wide, flat])]
    return run(tf, values), spread


def reused_variables(tf):
    def message(*arguments, **options):
        try:
            with tf.variable_scope("s", reuse=True):
                tf.get_variable(*arguments, **options)
        except ValueError:
            return "ValueError"
        return "nothing"

    with tf.variable_scope("s"):
        a = tf.get_variable("a", [2], initializer=tf.ones_initializer())
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        b, c = tf.get_variable("a", [2]), tf.get_variable("c", [1])
    wrong = [message("a", [3]), message("b", [2]), message("a", [2], dtype=tf.float64)]
    return a is b, c.name, wrong, message("a", [2])


PROGRAMS = {
    **{f"{call}": lambda tf, call=call: optimizer(tf, call) for call in rows(OPTIMIZERS)},
    **{f"{call}": lambda tf, call=call: decay(tf, call) for call in rows(DECAYS)},
    **{
        f.__name__: f
        for f in (
            rate_that_is_fed, control_dependencies, update_ops, local_variables, regularizers,
            constraint, names, gradients_with_options, cond, while_loop, lstm,
            functions_of_elements, tensor_arrays, moving_statistics, averages, losses, saved_steps,
            adversaries, several_results, own_functions, rows_of_variables, names_in_a_session,
            shapes, old_names, rows_by_a_vector, gradients_by_labels, initial_values,
            reused_variables,
        )
    },
}  # fmt: skip
