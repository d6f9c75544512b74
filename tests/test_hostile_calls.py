"""Hostile values in the place of every argument of the public functions that are not ops.

Each call returns, or raises a documented error that names the function.
"""

import atexit
import contextlib
import inspect
import tempfile

import numpy as np
import pytest
from hostile import EACH_THIRD, bounded_calls, complaints, split

import gpugrad as gg

FOLDER = tempfile.TemporaryDirectory()
atexit.register(FOLDER.cleanup)
X, M = gg.constant([0.5, -1.5]), gg.constant([[1.0, 2.0], [3.0, 4.0]])
INDEXED = gg.IndexedSlices(gg.ones((1, 2)), gg.constant([1]), (2, 2))


def total(x):
    return gg.sum(x * x)


def elements(x):
    return x * x


def taped(method, target, sources, **arguments):
    """A method of a tape, with "y" for its target and "x" for its source."""
    x, tape = gg.constant([[0.5, -1.5]]), gg.GradientTape()
    with tape:
        tape.watch(x)
        y = x * x
    target, sources = (_placed(v, x, y) for v in (target, sources))
    return getattr(tape, method)(target, sources, **arguments)


def _placed(value, x, y):
    return {"x": x, "y": y}[value] if isinstance(value, str) and value in ("x", "y") else value


def tape_gradient(target="y", sources="x", output_gradients=None, unconnected_gradients="none"):
    options = {"unconnected_gradients": unconnected_gradients, "output_gradients": output_gradients}
    return taped("gradient", target, sources, **options)


def tape_jacobian(target="y", sources="x", unconnected_gradients="none", chunk_bytes=1 << 20):
    options = {"unconnected_gradients": unconnected_gradients, "chunk_bytes": chunk_bytes}
    return taped("jacobian", target, sources, **options)


def tape_batch_jacobian(target="y", source="x", unconnected_gradients="none", chunk_bytes=1 << 20):
    options = {"unconnected_gradients": unconnected_gradients, "chunk_bytes": chunk_bytes}
    return taped("batch_jacobian", target, source, **options)


def tape_explain(target="y", source="x"):
    return taped("explain", target, source)


def tape_watch(tensor=X):
    with gg.GradientTape() as tape:
        tape.watch(tensor)


def forward_jvp(primals=X, tangents=X, of=None, unconnected_gradients="none"):
    with gg.ForwardAccumulator(primals, tangents) as forward:
        y = gg.sin(X)
    return forward.jvp(y if of is None else of, unconnected_gradients)


def graph_gradients(ys="y", xs="x", grad_ys=None, unconnected_gradients="none"):
    with gg.Graph().as_default():
        x = gg.constant([0.5, -1.5])
        y = x * x
        ys, xs = (_placed(v, x, y) for v in (ys, xs))
        return gg.gradients(ys, xs, grad_ys, unconnected_gradients=unconnected_gradients)


def of_variable(method):
    return lambda value=X: getattr(gg.Variable([1.0, 2.0], name="v"), method)(value)


def scatter(method):
    return lambda slices=INDEXED: getattr(gg.Variable(gg.ones((2, 2))), method)(slices)


def stepped(make):
    def apply_gradients(grads_and_vars=None, gradient=X, variable=None, when=True):
        v = gg.Variable([1.0, 2.0]) if variable is None else variable
        pairs = [(gradient, v)] if grads_and_vars is None else grads_and_vars
        optimizer = make()
        options = {} if when is True else {"when": when}
        optimizer.apply_gradients(pairs, **options)

    return apply_gradients


def step_scaled(grads_and_vars=None, gradient=X):
    optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD())
    optimizer.scale_loss(gg.constant(1.0))
    v = gg.Variable([1.0, 2.0])
    optimizer.apply_gradients([(gradient, v)] if grads_and_vars is None else grads_and_vars)


def optimizer_state(state=None, names=None, value=None):
    v, optimizer = gg.Variable([1.0, 2.0]), gg.optim.Adam()
    optimizer.build([v])
    if value is not None:
        state = dict.fromkeys(optimizer.state_dict(), value)
    optimizer.load_state_dict(optimizer.state_dict() if state is None else state, names)


def minimize(loss=None, var_list=None, tape=None):
    v = gg.Variable([1.0, 2.0])
    gg.optim.SGD().minimize((lambda: gg.sum(v * v)) if loss is None else loss, var_list, tape)


def module_state(values=None, value=None):
    layer = gg.nn.Dense(2, 2)
    if value is not None:
        values = dict.fromkeys(layer.state_dict(), value)
    layer.load_state_dict(layer.state_dict() if values is None else values)


def module_attribute(value=X):
    layer = gg.nn.Module()
    layer.part = value
    return list(layer.named_variables())


def called(layer):
    def call(x=M):
        return layer()(x)

    return call


def indexed(values=gg.ones((1, 2)), indices=gg.constant([1]), dense_shape=(2, 2)):  # noqa: B008
    return gg.IndexedSlices(values, indices, dense_shape).to_dense()


def saved(path=None, tensors=None, metadata=None, optimizer=None, value=None):
    """Save in a folder, where a path that is hostile but valid may stay."""
    with contextlib.chdir(FOLDER.name):
        tensors = {"x": X if value is None else value} if tensors is None else tensors
        path = "x.safetensors" if path is None else path
        gg.checkpoint.save(path, tensors, metadata, optimizer=optimizer)


def loaded(path=None):
    with contextlib.chdir(FOLDER.name):
        gg.checkpoint.load(path)


def restored(module=None, optimizer=None, path=None):
    with contextlib.chdir(FOLDER.name):
        gg.checkpoint.save("y.safetensors", {"v": X})
        module = {"v": gg.Variable([1.0, 2.0])} if module is None else module
        gg.checkpoint.restore("y.safetensors" if path is None else path, module, optimizer)


def custom(result=None, gradient=None, x=X):
    @gg.custom_gradient
    def f(x):
        return (x * x if result is None else result), lambda *g: g if gradient is None else gradient

    return gg.grad(lambda x: gg.sum(f(x)))(x)


def hostile_kernel(
    signature="hostile(x)", cuda="x", formula=lambda xp, x: x, d=(1.0,), preamble="", doc="",
    example=None, singular=False,
):  # fmt: skip
    try:
        gg.elementwise_kernel(
            signature, cuda, formula=formula, d=d, preamble=preamble, doc=doc, example=example,
            singular=singular,
        )  # fmt: skip
    finally:
        gg.OPS.pop("hostile", None)


def call_result(function, argument):
    """The function, whose result is called too: some arguments are only checked then."""

    def call(*args, **keywords):
        return function(*args, **keywords)(argument + 0)

    call.__signature__ = inspect.signature(function)
    return call


def in_context(function):
    """A context manager that is entered and left."""

    def call(*args, **keywords):
        with function(*args, **keywords):
            pass

    call.__signature__ = inspect.signature(function)
    return call


def restoring(setter, before):
    """A function that changes a setting of the process, which is set back."""

    def call(*args, **keywords):
        try:
            setter(*args, **keywords)
        finally:
            setter(before)

    call.__signature__ = inspect.signature(setter)
    return call


SIZES = {"channels_in": 2, "channels_out": 2, "size": 2}
UNITS, HEADS = {"units_in": 2, "units": 2}, {"width": 2, "heads": 1}
SGD, ADAM, ADAMW = gg.optim.SGD, gg.optim.Adam, gg.optim.AdamW
CALLS = {
    "grad": (call_result(gg.grad, X), {"f": total}),
    "value_and_grad": (call_result(gg.value_and_grad, X), {"f": total}),
    "jacobian": (call_result(gg.jacobian, X), {"f": elements}),
    "hessian": (call_result(gg.hessian, X), {"f": total}),
    "batch_jacobian": (call_result(gg.batch_jacobian, M), {"f": elements}),
    "grad of": (lambda x: gg.grad(total)(x), {"x": X}),
    "vmap": (call_result(gg.vmap, M), {"f": elements}),
    "vectorized_map": (gg.vectorized_map, {"fn": elements, "elems": M}),
    "hvp": (gg.hvp, {"f": total, "primals": [X], "tangents": [X]}),
    "jvp": (gg.jvp, {"f": elements, "primals": [X], "tangents": [X]}),
    "vjp": (gg.vjp, {"f": elements, "primals": (X,)}),
    "vjp pullback": (lambda g: gg.vjp(elements, X)[1](g), {"g": X}),
    "linearize": (gg.linearize, {"f": elements, "primals": (X,)}),
    "linearize pushforward": (lambda t: gg.linearize(elements, X)[1](t), {"t": X}),
    "custom_gradient": (call_result(gg.custom_gradient, X), {"f": lambda x: (x, lambda g: g)}),
    "custom_gradient of": (custom, {}),
    "custom_jvp": (call_result(gg.custom_jvp, X), {"f": lambda x: x}),
    "grad_pass_through": (call_result(gg.grad_pass_through, X), {"f": elements}),
    "recompute_grad": (call_result(gg.recompute_grad, X), {"f": elements}),
    "implicit_diff": (gg.implicit_diff, {"condition": lambda y, x: y - x}),
    "no_gradient": (gg.no_gradient, {"name": "NotAnOp"}),
    "function": (call_result(gg.function, X), {"f": elements}),
    "cond": (
        gg.cond,
        {"pred": True, "true_fn": elements, "false_fn": elements, "operands": (X,)},
    ),
    "while_loop": (gg.while_loop, {
        "cond_fn": lambda x: x < 3, "body_fn": lambda x: x + 1, "init": 0,
        "maximum_iterations": 9}),
    "scan": (gg.scan, {"f": lambda c, x: (c + x, c), "init": 0.0, "xs": X}),
    "GradientTape": (in_context(gg.GradientTape), {}),
    "GradientTape.gradient": (tape_gradient, {}),
    "GradientTape.jacobian": (tape_jacobian, {}),
    "GradientTape.batch_jacobian": (tape_batch_jacobian, {}),
    "GradientTape.explain": (tape_explain, {}),
    "GradientTape.watch": (tape_watch, {}),
    "ForwardAccumulator.jvp": (forward_jvp, {}),
    "gradients": (graph_gradients, {}),
    "IndexedSlices": (indexed, {}),
    "Variable": (gg.Variable, {"initial_value": lambda: X}),
    **{f"Variable.{n}": (of_variable(n), {}) for n in ("assign", "assign_add", "assign_sub")},
    **{
        f"Variable.{n}": (scatter(n), {})
        for n in ("scatter_add", "scatter_sub", "scatter_update")
    },
    "constant": (gg.constant, {"value": X}),
    "convert_to_tensor": (gg.convert_to_tensor, {"value": X}),
    "asarray": (gg.asarray, {"obj": X}),
    "array": (gg.array, {"obj": X}),
    "from_dlpack": (gg.from_dlpack, {"x": X}),
    "to_device": (X.to_device, {"device": "cpu"}),
    "fill": (lambda value: (X + 0).fill(value), {"value": 1}),
    "reshape": (lambda shape: X.reshape(shape), {"shape": (2, 1)}),
    "transpose": (lambda axes: X.transpose(axes), {"axes": 0}),
    "view": (lambda dtype: X.view(dtype), {"dtype": None}),
    "setitem": (lambda index, value: (X + 0).__setitem__(index, value), {"index": 0, "value": 1}),
    "copyto": (lambda dst, src, casting, where: gg.copyto(dst, src, casting, where), {
        "dst": X + 0, "src": X, "casting": "same_kind", "where": True}),
    "fill_diagonal": (gg.fill_diagonal, {"a": M + 0, "val": 1.0}),
    "place": (gg.place, {"arr": X + 0, "mask": [True, False], "vals": [1.0]}),
    "put": (gg.put, {"a": X + 0, "ind": 0, "v": 1.0}),
    "put_along_axis": (
        gg.put_along_axis, {"arr": X + 0, "indices": gg.constant([0]), "values": 1.0, "axis": 0}
    ),
    "putmask": (gg.putmask, {"a": X + 0, "mask": [True, False], "values": 1.0}),
    "can_cast": (gg.can_cast, {"from_": "float32", "to": "float64"}),
    "finfo": (gg.finfo, {"type": "float32"}),
    "iinfo": (gg.iinfo, {"type": "int32"}),
    "isdtype": (gg.isdtype, {"dtype": gg.float32, "kind": "numeric"}),
    "promote_types": (gg.promote_types, {"type1": "float32", "type2": "int8"}),
    "result_type": (gg.result_type, {"arrays_and_dtypes": (X,)}),
    "device": (gg.device, {"name": "cpu"}),
    "set_device": (restoring(gg.set_device, "cpu"), {"name": "cpu"}),
    "set_deterministic": (restoring(gg.set_deterministic, False), {}),
    "set_matmul_precision": (
        restoring(gg.set_matmul_precision, gg.get_matmul_precision()), {"precision": "highest"}
    ),
    "set_seed": (gg.set_seed, {"seed": 1}),
    "Generator": (gg.random.Generator, {"seed": 1}),
    "Generator.fold_in": (gg.random.Generator(1).fold_in, {"data": 1}),
    "Generator.split": (gg.random.Generator(1).split, {"n": 2}),
    "Generator.state": (
        lambda state: setattr(gg.random.Generator(1), "state", state),
        {"state": gg.random.Generator(1).state},
    ),
    "SGD": (SGD, {}), "Adam": (ADAM, {}), "AdamW": (ADAMW, {}),
    "LossScale": (gg.optim.LossScale, {}),
    "LossScaleOptimizer": (gg.optim.LossScaleOptimizer, {"inner_optimizer": SGD()}),
    "LossScaleOptimizer.apply_gradients": (step_scaled, {}),
    "LossScale.scale_loss": (lambda loss: gg.optim.LossScale().scale_loss(loss), {"loss": X[0]}),
    "SGD.apply_gradients": (stepped(SGD), {}),
    "Adam.apply_gradients": (stepped(ADAM), {}),
    "Optimizer.load_state_dict": (optimizer_state, {}),
    "Optimizer.build": (lambda var_list: SGD().build(var_list), {"var_list": []}),
    "minimize": (minimize, {}),
    "all_finite": (gg.optim.all_finite, {"grads": [X]}),
    "clip_by_global_norm": (gg.optim.clip_by_global_norm, {"grads": [X], "max_norm": 1.0}),
    "Dense": (gg.nn.Dense, {"units_in": 2, "units_out": 2}),
    "Conv2d": (gg.nn.Conv2d, {"channels_in": 2, "channels_out": 2, "size": 2}),
    "Embedding": (gg.nn.Embedding, {"rows": 2, "width": 2}),
    "LayerNorm": (gg.nn.LayerNorm, {"shape": 2}),
    "BatchNorm": (gg.nn.BatchNorm, {"channels": 2}),
    "Dropout": (gg.nn.Dropout, {}),
    **{
        name: (getattr(gg.nn, name), arguments)
        for name, arguments in {
            "AlphaDropout": {},
            "Bilinear": {"units_in1": 2, "units_in2": 2, "units_out": 2,
                         "weight_initializer": gg.nn.initializers.normal},
            "Conv1d": SIZES, "Conv3d": SIZES, "ConvTranspose1d": SIZES, "ConvTranspose2d": SIZES,
            "ConvTranspose3d": SIZES, "EmbeddingBag": {"rows": 2, "width": 2},
            "GroupNorm": {"groups": 2, "channels": 2}, "InstanceNorm": {"channels": 2},
            "PReLU": {}, "RMSNorm": {"shape": 2}, "RNNCell": UNITS, "LSTMCell": UNITS,
            "GRUCell": UNITS, "RNN": UNITS, "LSTM": UNITS, "GRU": UNITS,
            "MultiHeadAttention": HEADS, "TransformerBlock": HEADS,
        }.items()
    },
    **{
        f"{name} forward": (called(make), {})
        for name, make in {
            "Bilinear bilinear": lambda: lambda x: gg.nn.Bilinear(2, 2, 2)(x, M),
            "Conv1d conv1d": lambda: gg.nn.Conv1d(2, 2, 2),
            "GroupNorm group_norm": lambda: gg.nn.GroupNorm(1, 2),
            "InstanceNorm instance_norm": lambda: gg.nn.InstanceNorm(2),
            "RMSNorm rms_norm": lambda: gg.nn.RMSNorm(2),
            "PReLU prelu": gg.nn.PReLU,
            "GRUCell matmul": lambda: gg.nn.GRUCell(2, 2),
            "LSTM LSTMCell": lambda: gg.nn.LSTM(2, 2),
            "MultiHeadAttention Dense": lambda: gg.nn.MultiHeadAttention(2, 1),
            "TransformerBlock LayerNorm layer_norm": lambda: gg.nn.TransformerBlock(2, 1),
            "ReLU relu": gg.nn.ReLU,
            "MaxPool1d max_pool1d": lambda: gg.nn.MaxPool1d(2),
        }.items()
    },
    "functional_call": (
        lambda module, state: gg.nn.functional_call(module, state, M),
        {"module": gg.nn.Dense(2, 2), "state": {}},
    ),
    "mixed_precision": (in_context(gg.mixed_precision), {"dtype": "bfloat16"}),
    "Sequential": (gg.nn.Sequential, {"layers": (gg.nn.Flatten(),)}),
    "Dense matmul": (called(lambda: gg.nn.Dense(2, 2)), {}),
    "Conv2d convolution": (called(lambda: gg.nn.Conv2d(2, 2, 2)), {}),
    "Embedding take": (called(lambda: gg.nn.Embedding(2, 2)), {}),
    "LayerNorm layer_norm": (called(lambda: gg.nn.LayerNorm(2)), {}),
    "BatchNorm batch_norm": (called(lambda: gg.nn.BatchNorm(2)), {}),
    "Dropout dropout": (called(gg.nn.Dropout), {}),
    "Flatten": (called(gg.nn.Flatten), {}),
    "Module.load_state": (module_state, {}),
    "Module": (module_attribute, {}),
    "training": (in_context(gg.nn.training), {}),
    **{
        f"initializers.{n}": (getattr(gg.nn.initializers, n), {"shape": (2, 2)})
        for n in gg.nn.initializers.__all__
        if inspect.isfunction(getattr(gg.nn.initializers, n))
    },
    "save": (saved, {}), "load": (loaded, {}), "restore": (restored, {}),
    "check_numerics": (gg.debug.check_numerics, {"x": X, "message": "x"}),
    "nans": (in_context(gg.debug.nans), {}),
    "debug.print": (gg.debug.print, {"format": "{}", "args": (X,)}),
    "assert_close": (gg.testing.assert_close, {"actual": X, "desired": X}),
    "check_grads": (gg.testing.check_grads, {"f": lambda *x: total(x[0]), "args": [X]}),
    "check_op": (lambda op, checks: gg.testing.check_op(op, checks=checks), {
        "op": "negative", "checks": ("record",)}),
    "memory_stats": (gg.cuda.memory_stats, {}), "synchronize": (gg.cuda.synchronize, {}),
    "empty_cache": (gg.cuda.empty_cache, {}), "reset_peak": (gg.cuda.reset_peak, {}),
    "set_memory_limit": (gg.cuda.set_memory_limit, {}),
    "stream": (in_context(gg.cuda.stream), {}),
    "prefetch_to_device": (
        lambda batches, device, size: list(gg.cuda.prefetch_to_device(batches, device, size)),
        {"batches": [X], "device": "cpu", "size": 2},
    ),
    "elementwise_kernel": (hostile_kernel, {}),
}  # fmt: skip


NAMESPACES = (gg, gg.linalg, gg.fft, gg.special, gg.nn, gg.random)
V, AT = gg.constant([1.0, 2.0]), gg.constant([0, 1])
SAMPLES = {  # by the parameter's name
    **dict.fromkeys(("a", "a1", "a2", "ar", "arr", "ary", "b", "f", "logits", "x", "y", "z"), M),
    **dict.fromkeys(("key", "query", "value"), M[None]),
    **dict.fromkeys(("N", "n", "n_rows"), 3),
    **dict.fromkeys(("arrays", "operands"), (M,)),
    "A": V, "M": 4, "dln": 0.1, "m": 1, "v": 1.5, "theta": 0.5, "phi": 0.3, "mu": 0.5, "target": 7,
    "alpha": V, "arrays_and_dtypes": (M,), "axes": [0], "axis": 0, "beta": 1.0,
    "c_and_lower": (gg.eye(2), True), "choicelist": [[1.0, 2.0]], "choices": [M, M],
    "condlist": [[True, False]], "dimensions": (2, 3), "dtype": "float32", "element": 1.0,
    "fill_value": 1.0, "filt": [0.0, 1.0, 0.0], "func": lambda x, axis: gg.sum(x, axis=axis),
    "func1d": lambda x, *args, **keywords: gg.sum(x), "funclist": [1.0],
    "function": lambda *i, **keywords: i[0] * 1, "indices": AT,
    "indices_or_sections": 1, "lu_and_pivots": (gg.eye(2), AT), "mean": V, "obj": 0,
    "shape": (2, 2), "shapes": ((2, 1), (1, 3)), "start": 1.0, "stop": 5.0,
    "subscripts": "ij->i", "values": 1.0, "x1": V, "x2": [1.5],
}  # fmt: skip
SAMPLES_OF = {
    **{k: {"n": 2} for k in ("dft", "hadamard", "helmert", "hilbert", "invhilbert")},
    **{k: {"n": 2} for k in ("invpascal", "pascal")},
    **{k: {"z": 0.5} for k in ("lqn", "lqmn")},  # infinite at 1
    **{k: {"x": 0.5} for k in ("lmbda", "riccati_jn", "riccati_yn")},
    "solve_triangular": {"a": M, "b": V, "lower": True},
    "choose": {"a": AT, "choices": [AT, AT]},
    "cho_factor": {"a": gg.eye(2)},
    "load_torch": {
        "module": gg.nn.Dense(2, 2),
        "source": {"weight": np.ones((2, 2)), "bias": np.ones(2)},
    },
    "dsplit": {"ary": gg.ones((2, 2, 2))},
    "integers": {"high": 3},
    "ix_": {"args": (AT,)},
    "meshgrid": {"arrays": (V,)},
    "multinomial": {"n": 3, "p": [0.5, 0.5]},
    "multivariate_hypergeometric": {"colors": [3, 4], "nsample": 2},
    "multivariate_normal": {"cov": gg.eye(2)},
    "piecewise": {"x": V},
    "spherical_jn": {"n": 1},
}
ELSEWHERE = {
    "op", "elementwise", "raw_kernel",  # declarations
    "default_generator", "deterministic", "devices", "get_matmul_precision", "is_training",
}  # fmt: skip


def array_functions():
    """The public functions that are neither ops nor in the table, with arguments."""
    found = {}
    for home in NAMESPACES:
        for name in dir(home):
            f = getattr(home, name)
            if not inspect.isfunction(f) or hasattr(f, "op") or name in ELSEWHERE | set(CALLS):
                continue
            if name in home.__all__:
                own, needed = SAMPLES_OF.get(name, {}), inspect.Parameter.empty
                parameters = inspect.signature(f).parameters.values()
                required = [
                    p.name
                    for p in parameters
                    if p.default is needed and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
                ]
                required += [
                    p.name for p in parameters if p.kind is p.VAR_POSITIONAL and p.name in SAMPLES
                ]
                found[name] = f, {n: SAMPLES[n] for n in required if n not in own} | own
    return found


ARRAY_FUNCTIONS = array_functions()
CALLS |= ARRAY_FUNCTIONS

# other names in messages: of the function that does the work, of the user's function, of a role
ALSO = {
    **dict.fromkeys(("grad", "value_and_grad", "hessian", "hvp"), ("gradient of",)),
    **dict.fromkeys(("jvp", "hvp", "ForwardAccumulator.jvp"), ("tangents",)),
    **dict.fromkeys(("asarray", "array", "convert_to_tensor"), ("constant", "asarray")),
    "LossScaleOptimizer.apply_gradients": ("SGD",),
    "custom_gradient of": ("grad", "sum"),
    "empty_like": ("zeros_like",),
    "full_like": ("full",),
    "IndexedSlices": ("scatter_rows",),
    "elementwise_kernel": ("hostile", "op"),
    "fill": ("setitem",),
    "transpose": ("permute_dims",),
    "Conv2d convolution": ("conv2d",),
    "Embedding take": ("embedding",),
    "stream": ("device cuda:0",),
    "prefetch_to_device": ("constant",),
    "Optimizer.load_state_dict": ("Adam",),
}


OTHERS = {  # a keyword that a function passes on
    getattr(gg.nn, name): "dtype"
    for name in ("RNNCell", "LSTMCell", "GRUCell", "RNN", "LSTM", "GRU")
}


@pytest.mark.parametrize("title", ARRAY_FUNCTIONS)
def test_samples_of_array_functions_are_accepted(title):
    function, arguments = CALLS[title]
    args, keywords = split(inspect.signature(function).parameters, arguments)
    function(*args, **keywords)


@EACH_THIRD
@pytest.mark.parametrize("title", CALLS)
@pytest.mark.thin(2)
def test_hostile_calls_return_or_raise_a_named_error(title, third, capsys):
    function, arguments = CALLS[title]
    passed_on = OTHERS.get(function, "clipnorm")
    with bounded_calls():
        wrong = complaints(title, function, arguments, third, ALSO.get(title, ()), passed_on)
    assert not wrong, f"{len(wrong)} calls:\n" + "\n".join(wrong)
