"""Names of other libraries, and what they are called here: the hints in messages."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Iterable
from typing import Any

_NAMES = {
    "gg": """
        GradientTape.stop_recording = inference_mode no_grad; Variable = Parameter
        all = reduce_all; any = reduce_any; asarray = as_tensor device_put from_numpy tensor
        astype = cast; checkpoint.load = load; checkpoint.save = save; clip = clamp clip_by_value
        concat = cat; cumulative_logsumexp = logcumsumexp
        custom_gradient = Function custom_vjp defvjp; data.DataLoader = DataLoader
        debug.nans = debug_nans detect_anomaly enable_check_numerics; expand_dims = unsqueeze
        function = compile jit; jacobian = jacfwd jacrev; jvp = make_jvp
        logsumexp = reduce_logsumexp; matmul = bmm mm; max = reduce_max; mean = reduce_mean
        min = reduce_min; mixed_precision = autocast; nn.Dense = Linear; nn.Module = Module
        nn.Sequential = Sequential; optim.LossScaleOptimizer = GradScaler
        optim.clip_by_global_norm = clip_by_global_norm; permute_dims = permute
        prod = reduce_prod; profile = profiler; random.categorical = multinomial
        random.integers = randint; random.normal = normal randn; random.permutation = randperm
        random.uniform = rand; recompute_grad = remat; segment_sum = unsorted_segment_sum
        set_seed = manual_seed; size = numel; split = chunk; stop_gradient = detach
        sum = reduce_sum; take = index_select; top_k = topk; train.Checkpoints = Checkpoint
        train.fit = fit; unstack = unbind; value_and_grad = value_and_gradient
        vectorized_map = map_fn; where = masked_fill
    """,
    "gg.nn": """
        AvgPool2d = AveragePooling2d; BatchNorm = BatchNorm2d BatchNormalization
        ConvTranspose2d = Conv2dTranspose; Dense = Linear; Embedding = Embed
        GroupNorm = GroupNormalization; InstanceNorm = InstanceNorm2d
        LayerNorm = LayerNormalization; MaxPool2d = MaxPooling2d; Module = Layer Model
        RMSNorm = RMSNormalization; RNN = SimpleRNN; RNNCell = SimpleRNNCell
        TransformerBlock = TransformerEncoderLayer; Upsample = UpSampling2d
        binary_cross_entropy = BCELoss; hardswish = hard_silu; initializers = init
        scaled_dot_product_attention = dot_product_attention; silu = swish
    """,
    "a layer's argument": """
        activation = nonlinearity; affine = elementwise_affine; axis = dim
        channels = num_channels num_features; channels_in = in_channels
        channels_out = filters out_channels; eps = epsilon; groups = num_groups
        heads = num_heads; kv_heads = num_kv_heads; layers = num_layers
        rows = input_dim num_embeddings; shape = normalized_shape; size = kernel_size
        stride = strides; units = hidden_size; units_in = in_features input_size
        units_out = features out_features; use_bias = bias
        width = embed_dim embedding_dim output_dim
    """,
    "an op's argument": """
        axes = dims perm; axis = axes dim dims; keepdims = keep_dims keepdim
        kernel_size = pool_size; max = clip_value_max max_value; min = clip_value_min min_value
        num_classes = depth; stride = strides
    """,
    "gg.optim": "LossScaleOptimizer = GradScaler; schedules = lr_scheduler",
    "a schedule": """
        constant = ConstantLR; cosine = CosineAnnealingLR CosineDecay
        exponential = ExponentialDecay ExponentialLR; join = SequentialLR; one_cycle = OneCycleLR
        piecewise = MultiStepLR PiecewiseConstantDecay; polynomial = PolynomialDecay PolynomialLR
        step = StepLR; warmup = LinearLR
    """,
    "an optimizer's argument": """
        beta_1 = b1; beta_2 = b2; epsilon = eps; global_clipnorm = max_grad_norm
        learning_rate = lr; rho = alpha
    """,
    "an optimizer's attribute": "groups = param_groups; learning_rate = lr",
}
"""Where a name is missing, the names there = names in other libraries; 2d stands for 1d and 3d."""

_PARTS = "Modules and Variables are attributes, also in lists and dicts."
_APPLY = "Call apply_gradients(zip(gradients, variables))."
_STORED = "Gradients are not stored: tape.gradient returns them."
_SENTENCES = {
    "gg.nn": {
        "Bidirectional": "gg.nn.RNN, LSTM and GRU take bidirectional=True.",
        "Buffer": "Assign gg.Variable(x, trainable=False) as an attribute.",
        "CircularPad2d ConstantPad2d ReflectionPad2d ReplicationPad2d ZeroPad2d ZeroPadding2d": (
            "gg.pad pads, also as a layer of a Sequential: lambda x: gg.pad(x, widths)."
        ),
        "Concatenate": "Call gg.concat.",
        "Dropout2d SpatialDropout2d": "gg.nn.Dropout takes noise_shape=.",
        "GlobalAveragePooling2d GlobalMaxPooling2d": (
            "Reduce the axes with gg.mean(x, axis=(2, 3)) or gg.max."
        ),
        "Input": "There are no symbolic inputs: call the model with arrays.",
        "Lambda": "A Sequential takes functions, too.",
        "ModuleDict ModuleList ParameterDict ParameterList": _PARTS,
        "Parameter": "Assign a gg.Variable as an attribute.",
    },
    "a layer's argument": {
        "batch_first": "The time is the second-to-last axis, so there is no batch_first."
    },
    "a Module's method": {
        "add append": "Its layers are a list: model.layers.append(layer).",
        "add_module register_module": _PARTS,
        "bfloat16 double float half": "Layers take dtype=; gg.mixed_precision computes in 16 bits.",
        "buffers": "It has variables, some of them not trainable.",
        "children modules": "It has named_modules().",
        "compile fit": "Train it with gg.train.fit((model, loss), data, optimizer=optimizer).",
        "count_params": "It has summary().",
        "cpu cuda to": (
            "Its Variables stay on their device; create it inside with gg.device(device):"
        ),
        "eval train": "Set training mode for a block: with gg.nn.training():",
        "evaluate": "Call gg.train.evaluate(model, data, metrics).",
        "get_weights": "It has state().",
        "load_weights": "Call gg.checkpoint.restore(path, model).",
        "named_buffers named_parameters": "It has named_variables().",
        "parameters trainable_weights": "It has trainable_variables.",
        "predict": "Call it.",
        "register_buffer": "Assign gg.Variable(x, trainable=False) as an attribute.",
        "register_parameter": "Assign a gg.Variable as an attribute.",
        "requires_grad_": "It has freeze() and unfreeze().",
        "save save_weights": "Call gg.checkpoint.save(path, model).",
        "set_weights": "It has load_state(values).",
        "training": "gg.nn.is_training() says whether a block of gg.nn.training() runs.",
        "weights": "It has variables.",
        "zero_grad": _STORED,
    },
    "an optimizer's argument": {
        "betas": "They are called beta_1 and beta_2 here.",
        "nesterov": "gg.optim.NAdam is Adam with Nesterov's momentum.",
        "params": "Variables come with their gradients, to apply_gradients.",
        "weight_decay": "gg.optim.AdamW decays weights.",
    },
    "an optimizer's attribute": {"step update": _APPLY, "zero_grad": _STORED},
    "a Tensor": {
        "abs allclose amax amin bincount ceil cholesky cos det diag diag_embed erf exp flip floor "
        "gather isclose isfinite isinf isnan lerp log log10 log1p log2 log_softmax logsumexp "
        "matmul median quantile reciprocal relu roll rsqrt select sigmoid sign sin softmax solve "
        "split sqrt square tan tanh tile tril triu trunc unique": "Call gg.{name}(x).",
        "digamma erfinv": "Call gg.special.{name}(x).",
        "norm qr svd": "Call gg.linalg.{name}(x).",
        "bfloat16": "Call x.astype(gg.{name}).",
        "bool float int type": "Call x.astype(dtype).",
        "byte double half long short type_as": "Call x.astype(dtype), as x.astype(gg.float64).",
        "add addmm add_ sub sub_ mul mul_ div div_ pow pow_ neg mm mv bmm eq ne lt gt le ge": (
            "Write operators: x + y, x @ y, x < y; x += y writes to x."
        ),
        "abs_ clamp_ detach_ exp_ index_add_ masked_fill_ relu_ scatter_ scatter_add_ squeeze_ "
        "unsqueeze_": "Assign the result of the function without _, or write x[i] = y.",
        "aval sharding weak_type": "It has shape, dtype and device.",
        "at": "Write to elements: x[i] = y and x[i] += y, which is differentiable.",
        "backward": (
            "Record with gg.GradientTape() as tape: tape.gradient(loss, variables) returns the "
            "gradients."
        ),
        "block_until_ready": "Call gg.cuda.synchronize().",
        "chunk tensor_split": "Call gg.split(x, parts).",
        "clamp clamp_max clamp_min": "Call x.clip(min, max).",
        "clone": "Call x.copy().",
        "contiguous is_contiguous": "It has flags; gg.numpy.ascontiguousarray copies.",
        "copy_": "Write x[...] = y; a Variable's value is set by assign.",
        "cpu cuda to": 'Call x.to_device("cpu") or x.to_device("cuda"), or x.astype(dtype).',
        "data_ptr storage": "Libraries read the memory by DLPack or __cuda_array_interface__.",
        "detach": "Call gg.stop_gradient(x).",
        "dim rank": "It has ndim.",
        "eval": "Call x.numpy().",
        "expand expand_as": "Call gg.broadcast_to(x, shape).",
        "fill_ zero_": "Write x[...] = value.",
        "frac": "Call gg.modf(x)[0].",
        "get_shape as_list dims": "x.shape is a tuple.",
        "grad": _STORED,
        "grad_fn is_leaf": "tape.explain(target, source) says how a gradient flows.",
        "histc": "Call gg.histogram(x, bins).",
        "index_select": "Call x.take(indices, axis).",
        "inverse": "Call gg.linalg.inv(x).",
        "is_complex is_floating_point": 'Call gg.isdtype(x.dtype, "real floating").',
        "is_cuda": 'Write x.device.kind == "cuda".',
        "kthvalue mode": "Call gg.sort(x, axis) and index it.",
        "lgamma": "Call gg.special.gammaln(x).",
        "masked_fill": "Call gg.where(mask, value, x).",
        "masked_select": "Write x[mask].",
        "movedim swapdims": "Call gg.moveaxis(x, source, destination), or x.swapaxes(i, j).",
        "narrow": "Write a slice: x[start:stop].",
        "nelement numel": "It has size.",
        "new_empty new_full new_ones new_tensor new_zeros": (
            "Call gg.zeros(shape, x.dtype, device=x.device)."
        ),
        "normal_ uniform_ random_ bernoulli_": "Call gg.random.normal(shape) and the like.",
        "permute": "Call gg.permute_dims(x, axes), or x.transpose(axes).",
        "pin_memory share_memory_": "gg.prefetch_to_device copies batches ahead.",
        "register_hook retain_grad": "tape.gradient takes any Tensor as a source.",
        "repeat_interleave": "Call x.repeat(n, axis).",
        "requires_grad requires_grad_": "tape.watch(x) records a Tensor; Variables are watched.",
        "reshape_as view_as": "Call x.reshape(y.shape).",
        "scatter": "Call gg.scatter_along_axis(x, indices, values, axis).",
        "set_shape": "Shapes are those of the values: there is nothing to set.",
        "stride": "It has strides, in bytes.",
        "topk": "Call gg.top_k(x, k).",
        "unbind": "Call gg.unstack(x).",
        "unfold": "Call gg.sliding_window_view(x, n, axis).",
        "unsqueeze": "Call gg.expand_dims(x, axis).",
        "where": "Call gg.where(condition, x, y).",
        "initialized_value initial_value": "It has its value when it is created.",
        "initializer load": "Its value is set by assign.",
        "scatter_nd_update batch_scatter_update": "Write v[index].assign(value).",
        "constraint": "Assign the projected value after a step.",
        "handle": "A Variable is its own handle: v.ref() is a key.",
    },
}
"""The same for names of other libraries that stand for no single name here."""


class MissingNameError(AttributeError):
    """A namespace lacks a name; the message has a hint, or the nearest names.

    These are looked for only if somebody reads the message: that takes milliseconds, and libraries
    ask by ``hasattr`` what a namespace has.
    """

    def __init__(
        self, message: str, name: str, names: Callable[[], Iterable[str]], way_out: str = ""
    ) -> None:
        super().__init__(message, name=name)
        self._message, self._names, self._way_out = message, names, way_out

    def __str__(self) -> str:
        if not self._way_out:
            difflib = importlib.import_module("difflib")
            near = difflib.get_close_matches(str(self.name), sorted(self._names()), 3, 0.7)
            self._way_out = f" The nearest names are {', '.join(near)}." if near else " "
        return f"{self._message}{self._way_out}".rstrip()

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return AttributeError, (str(self),)


def hint(place: str, name: str, known: Iterable[str] = ()) -> str:
    """A sentence about a name that a place lacks, with a space before it; or "".

    Args:
        place: a key of the tables.
        name: the name.
        known: the names that the place has, which may differ only in case.
    """
    axes = re.search(r"([123])[dD]", name)
    here = table(place).get(re.sub(r"[123][dD]", "2d", name))
    if here is None:
        here = next((k for k in known if _squeezed(k) == _squeezed(name)), "")
    elif axes:
        here = here.replace("2d", f"{axes[1]}d")
    if not here or here[-1] in ".:":
        return here and f" {here}"
    where = f"{place}." if place.startswith("gg") else ""
    return f" It is called {where}{here} here."


@functools.cache
def table(place: str) -> dict[str, str]:
    """The name here, or the sentence, by the name in another library."""
    rows: dict[str, str] = {}
    for names, sentence in _SENTENCES.get(place, {}).items():
        rows.update((name, sentence.replace("{name}", name)) for name in names.split())
    for here, theirs in names_elsewhere(place).items():
        rows.update(dict.fromkeys(theirs, here))
    return rows


@functools.cache
def names_elsewhere(place: str) -> dict[str, list[str]]:
    """The names in other libraries, by the name here."""
    entries = [e.partition("=") for e in re.split(r"[;\n]", _NAMES.get(place, "")) if e.strip()]
    return {here.strip(): theirs.split() for here, _, theirs in entries}


def _squeezed(name: str) -> str:
    """A name without what differs between a class and a function, and between libraries."""
    return name.lower().replace("_", "").removesuffix("loss")


class _Elsewhere:
    """An attribute that Tensors have in other libraries: reading or setting it says what to write.

    A ``__getattr__`` of Tensor would say so, too, but makes every read of an attribute slower.
    """

    def __init__(self, name: str, sentence: str) -> None:
        self._name, self.__doc__ = name, sentence

    def __get__(self, x: Any, kind: type) -> Any:
        message = f"{kind.__name__} has no attribute {self._name!r}. {self.__doc__}"
        raise AttributeError(message, name=self._name, obj=kind if x is None else x)

    def __set__(self, x: Any, value: Any) -> None:
        self.__get__(x, type(x))


class NamesElsewhere:
    """The base of Tensor, with attributes that it lacks and that other libraries have."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        """The attributes that there are."""
        return [name for name in super().__dir__() if name not in table("a Tensor")]


for _name, _sentence in table("a Tensor").items():
    setattr(NamesElsewhere, _name, _Elsewhere(_name, _sentence))
