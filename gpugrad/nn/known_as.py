"""Our names of layers, methods and arguments of torch, Keras and Flax, for messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gpugrad.errors import ArgumentError

CLASSES = {
    "AveragePooling1D": "AvgPool1d",
    "AveragePooling2D": "AvgPool2d",
    "AveragePooling3D": "AvgPool3d",
    "BCELoss": "binary_cross_entropy",
    "BatchNorm1d": "BatchNorm",
    "BatchNorm2d": "BatchNorm",
    "BatchNorm3d": "BatchNorm",
    "BatchNormalization": "BatchNorm",
    "Conv1DTranspose": "ConvTranspose1d",
    "Conv2DTranspose": "ConvTranspose2d",
    "Conv3DTranspose": "ConvTranspose3d",
    "Embed": "Embedding",
    "GroupNormalization": "GroupNorm",
    "InstanceNorm1d": "InstanceNorm",
    "InstanceNorm2d": "InstanceNorm",
    "InstanceNorm3d": "InstanceNorm",
    "Layer": "Module",
    "LayerNormalization": "LayerNorm",
    "Linear": "Dense",
    "MaxPooling1D": "MaxPool1d",
    "MaxPooling2D": "MaxPool2d",
    "MaxPooling3D": "MaxPool3d",
    "Model": "Module",
    "RMSNormalization": "RMSNorm",
    "SimpleRNN": "RNN",
    "SimpleRNNCell": "RNNCell",
    "TransformerEncoderLayer": "TransformerBlock",
    "UpSampling1D": "Upsample",
    "UpSampling2D": "Upsample",
    "UpSampling3D": "Upsample",
    "init": "initializers",
}
"""Names in `gpugrad.nn` of classes that differ in more than upper and lower case."""

_PARTS = "Modules and Variables are attributes, also in lists and dicts."
_PADDING = "gg.pad pads, also as a layer of a Sequential: lambda x: gg.pad(x, widths)."
_POOLING = "Reduce the axes with gg.mean(x, axis=(2, 3)) or gg.max."
_CLASS_HINTS = {  # without the number of axes
    "Bidirectional": "gg.nn.RNN, LSTM and GRU take bidirectional=True.",
    "Buffer": "Assign gg.Variable(x, trainable=False) as an attribute.",
    "CircularPad": _PADDING,
    "Concatenate": "Call gg.concat.",
    "ConstantPad": _PADDING,
    "Dropout": "gg.nn.Dropout takes noise_shape=.",
    "GlobalAveragePooling": _POOLING,
    "GlobalMaxPooling": _POOLING,
    "Input": "There are no symbolic inputs: call the model with arrays.",
    "Lambda": "A Sequential takes functions, too.",
    "ModuleDict": _PARTS,
    "ModuleList": _PARTS,
    "Parameter": "Assign a gg.Variable as an attribute.",
    "ParameterDict": _PARTS,
    "ParameterList": _PARTS,
    "ReflectionPad": _PADDING,
    "ReplicationPad": _PADDING,
    "SpatialDropout": "gg.nn.Dropout takes noise_shape=.",
    "ZeroPad": _PADDING,
    "ZeroPadding": _PADDING,
}

_TRAINING = "Set training mode for a block: with gg.nn.training():"
_DTYPE = "Layers take dtype=; gg.mixed_precision computes in 16 bits."
_FIT = "Train it with gg.train.fit((model, loss), data, optimizer=optimizer)."
_DEVICE = "Its Variables stay on their device; create it inside with gg.device(device):"
_METHOD_HINTS = {
    "add": "Its layers are a list: model.layers.append(layer).",
    "append": "Its layers are a list: model.layers.append(layer).",
    "add_module": _PARTS,
    "bfloat16": _DTYPE,
    "buffers": "It has variables, some of them not trainable.",
    "children": "It has named_modules().",
    "compile": _FIT,
    "count_params": "It has summary().",
    "cpu": _DEVICE,
    "cuda": _DEVICE,
    "double": _DTYPE,
    "eval": _TRAINING,
    "evaluate": "Call gg.train.evaluate(model, data, metrics).",
    "fit": _FIT,
    "float": _DTYPE,
    "get_weights": "It has state().",
    "half": _DTYPE,
    "load_weights": "Call gg.checkpoint.restore(path, model).",
    "modules": "It has named_modules().",
    "named_buffers": "It has named_variables().",
    "named_parameters": "It has named_variables().",
    "parameters": "It has trainable_variables.",
    "predict": "Call it.",
    "register_buffer": "Assign gg.Variable(x, trainable=False) as an attribute.",
    "register_module": _PARTS,
    "register_parameter": "Assign a gg.Variable as an attribute.",
    "requires_grad_": "It has freeze() and unfreeze().",
    "save": "Call gg.checkpoint.save(path, model).",
    "save_weights": "Call gg.checkpoint.save(path, model).",
    "set_weights": "It has load_state(values).",
    "to": _DEVICE,
    "train": _TRAINING,
    "trainable_weights": "It has trainable_variables.",
    "training": "gg.nn.is_training() says whether a block of gg.nn.training() runs.",
    "weights": "It has variables.",
    "zero_grad": "Gradients are not stored: tape.gradient returns them.",
}

_KEYWORDS = {  # a name, or a sentence
    "batch_first": "The time is the second-to-last axis, so there is no batch_first.",
    "bias": "use_bias",
    "dim": "axis",
    "elementwise_affine": "affine",
    "embed_dim": "width",
    "embedding_dim": "width",
    "epsilon": "eps",
    "features": "units_out",
    "filters": "channels_out",
    "hidden_size": "units",
    "in_channels": "channels_in",
    "in_features": "units_in",
    "input_dim": "rows",
    "input_size": "units_in",
    "kernel_size": "size",
    "nonlinearity": "activation",
    "normalized_shape": "shape",
    "num_channels": "channels",
    "num_embeddings": "rows",
    "num_features": "channels",
    "num_groups": "groups",
    "num_heads": "heads",
    "num_kv_heads": "kv_heads",
    "num_layers": "layers",
    "out_channels": "channels_out",
    "out_features": "units_out",
    "output_dim": "width",
    "strides": "stride",
}


def hint_of_class(name: str, known: Iterable[str]) -> str:
    """A sentence about a name that `gpugrad.nn` lacks, with a space before it; or "".

    Args:
        name: the name.
        known: the names that it has.
    """
    here = CLASSES.get(name)
    if here is None:
        here = next((k for k in known if _squeezed(k) == _squeezed(name)), None)
    if here is not None:
        return f" It is called gg.nn.{here} here."
    hint = _CLASS_HINTS.get(re.sub(r"[123][dD]$", "", name))
    return f" {hint}" if hint else ""


def _squeezed(name: str) -> str:
    """A name without what differs between a class and a function, and between libraries."""
    return name.lower().replace("_", "").removesuffix("loss")


def hint_of_method(name: str) -> str:
    """A sentence about a method that a Module lacks, with a space before it; or ""."""
    return f" {_METHOD_HINTS[name]}" if name in _METHOD_HINTS else ""


def named_keywords(layer: str, keywords: Iterable[str], error: TypeError) -> TypeError:
    """The error of a call of a constructor that does not fit, with the layer and a way out."""
    text = re.sub(r"^\w+\.__init__\(\)", f"{layer}:", str(error)).rstrip(".")
    for keyword in keywords:
        if here := _KEYWORDS.get(keyword):
            text += f". {here[:-1]}" if here[-1] == "." else f". {keyword} is called {here} here"
    return TypeError(f"{text}.")


def check_initializers(layer: str, keywords: Mapping[str, Any]) -> None:
    """Raise an ArgumentError that names an initializer that is no function."""
    for what, value in keywords.items():
        if what.endswith("initializer") and value is not None and not callable(value):
            raise ArgumentError(
                f"{layer}: {what} must be a function such as gg.nn.initializers.he_normal, got "
                f"{value!r:.60}."
            )
