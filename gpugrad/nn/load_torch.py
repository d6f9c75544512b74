"""Weights of torch models: where each layer's are, and in which layout."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from gpugrad import checkpoint
from gpugrad.core.arguments import FLAG, takes
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, CheckpointError, ShapeError, StructureError, saying_where
from gpugrad.nn.attention import MultiHeadAttention
from gpugrad.nn.layers import Dense, Sequential
from gpugrad.nn.module import Module, require_module
from gpugrad.nn.recurrent import Cell, GRUCell, Recurrent
from gpugrad.nn.torch_names import AS_IS, INSIDE_BLOCK, TABLES
from gpugrad.nn.torch_report import TorchReport, differences, in_order
from gpugrad.nn.transformer import TransformerBlock

Array = np.ndarray[Any, Any]


_COUNTER = "num_batches_tracked"
"""torch's batch norms count batches; ours do not."""


def _same(array: Array) -> Array:
    return array


class _Source(NamedTuple):
    """Where a Variable's value comes from: names in the state, and how their arrays become it."""

    variable: Variable
    names: tuple[str, ...]
    convert: Callable[..., Array] = _same
    transposed: bool = False
    """Whether the arrays are matrices that torch stores the other way round."""


def _sources(module: Module, prefix: str) -> Iterator[_Source]:
    """The sources of the Variables that a layer owns itself, by torch's names after `prefix`."""
    if isinstance(module, Dense):
        yield _Source(module.kernel, (f"{prefix}weight",), transposed=True)
        if module.bias is not None:
            yield _Source(module.bias, (f"{prefix}bias",))
        return
    for name, part in vars(module).items():
        if isinstance(part, Variable):
            yield _Source(part, (prefix + name,))


_PROJECTIONS: tuple[Callable[[str], str], ...] = (
    lambda letter: f"{letter}_proj.",  # of layers, as in Llama
    lambda letter: f"{letter}_proj_",  # of torch, if the widths differ
    lambda letter: {"q": "query.", "k": "key.", "v": "value."}[letter],  # of layers, as in BERT
)


def _attention(module: MultiHeadAttention, prefix: str) -> Iterator[_Source]:
    """Projections that are joined as in torch.nn.MultiheadAttention, or one by one, or as ours.

    The queries of cross-attention are the first columns of those that torch joins.
    """
    own, context = module.in_proj, module.context_proj
    queries = None if context is None else own.units_out
    parts = [("in_proj", own, slice(queries), "qkv" if context is None else "q")]
    if context is not None:
        parts.append(("context_proj", context, slice(queries, None), "kv"))
    for ours, dense, columns, letters in parts:
        for what, variable in (("weight", dense.kernel), ("bias", dense.bias)):
            if variable is None:
                continue
            transposed = what == "weight"
            joined = functools.partial(_columns, columns)
            yield _Source(variable, (f"{prefix}in_proj_{what}",), joined, transposed)
            for name in _PROJECTIONS:
                names = tuple(f"{prefix}{name(letter)}{what}" for letter in letters)
                yield _Source(variable, names, _side_by_side, transposed)
        yield from _sources(dense, f"{prefix}{ours}.")
    yield from _sources(module.out_proj, f"{prefix}out_proj.")


def _columns(columns: slice, array: Array) -> Array:
    return array[..., columns]


def _side_by_side(*arrays: Array) -> Array:
    return np.concatenate(arrays, -1)


def _cell(cell: Cell, prefix: str, suffix: str = "") -> Iterator[_Source]:
    """A recurrent cell. torch adds two biases, of which RNN and LSTM need only the sum."""
    yield _Source(cell.kernel, (f"{prefix}weight_ih{suffix}",), transposed=True)
    yield _Source(cell.recurrent_kernel, (f"{prefix}weight_hh{suffix}",), transposed=True)
    if cell.bias is None:
        return
    one, two = f"{prefix}bias_ih{suffix}", f"{prefix}bias_hh{suffix}"
    if isinstance(cell, GRUCell):
        assert cell.recurrent_bias is not None  # both or neither
        yield _Source(cell.bias, (one,))
        yield _Source(cell.recurrent_bias, (two,))
    else:
        yield _Source(cell.bias, (one, two), np.add)


def _block(module: TransformerBlock, prefix: str, prefixes: Collection[str]) -> Iterator[_Source]:
    """The layers of a block by the names of torch's, and the two halves of a gated perceptron."""
    for ours, theirs in INSIDE_BLOCK.items():
        yield from _walk(getattr(module, ours), f"{prefix}{theirs}.", prefixes)
    if module.gated:
        for what, variable in (("weight", module.hidden.kernel), ("bias", module.hidden.bias)):
            if variable is not None:
                names = tuple(f"{prefix}{part}_proj.{what}" for part in ("gate", "up"))
                yield _Source(variable, names, _side_by_side, what == "weight")


def _walk(module: Any, prefix: str, prefixes: Collection[str]) -> Iterator[_Source]:
    """The sources of all Variables in a Module or container. A Sequential's layers are numbered.

    Only those after `prefixes`, those of the state: so a reference to a parent ends, and a layer
    that has two names is found by both.
    """
    if module is None or prefix not in prefixes:
        return
    if isinstance(module, MultiHeadAttention):
        yield from _attention(module, prefix)
        return
    if isinstance(module, Cell):
        yield from _cell(module, prefix)
        return
    if isinstance(module, Recurrent):
        for k, cell in enumerate(module.cells):
            yield from _cell(cell, prefix, f"_l{k}")
        for k, cell in enumerate(module.reverse_cells):
            yield from _cell(cell, prefix, f"_l{k}_reverse")
        return
    if isinstance(module, TransformerBlock):
        yield from _block(module, prefix, prefixes)
    parts: Any
    if isinstance(module, Sequential):
        parts = enumerate(module.layers)
    elif isinstance(module, Module):
        yield from _sources(module, prefix)
        parts = vars(module).items()
    else:
        parts = module.items() if isinstance(module, dict) else enumerate(module)
    for name, part in parts:
        if isinstance(part, (Module, list, tuple, dict)):
            yield from _walk(part, f"{prefix}{name}.", prefixes)
        elif isinstance(part, Variable) and not isinstance(module, Module):
            yield _Source(part, (f"{prefix}{name}",))


@saying_where
@takes(strict=FLAG)
def load_torch(
    module: Module,
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    names: str | Mapping[str, str | None] | Sequence[str | Mapping[str, str | None]] | None = None,
    as_is: str | Sequence[str] = (),
    strict: bool = True,
) -> TorchReport:
    """Load the weights of a torch model into a Module of the same structure: all, or none.

    Layers are matched by type: `Dense` transposes the weight of a Linear, `RNN`, `LSTM` and `GRU`
    and their cells read torch's joined arrays, and the layers of a `Sequential` are numbered as
    torch numbers them. `MultiHeadAttention` reads the arrays of torch's, or joins those of layers
    ``q_proj``, ``k_proj`` and ``v_proj``, or ``query``, ``key`` and ``value``. `TransformerBlock`
    reads torch's TransformerEncoderLayer, and with `context_width` its TransformerDecoderLayer.

    Args:
        module: the model.
        source: a state dict, of torch Tensors or of arrays; or the path of a safetensors file, or
            of a file that ``torch.save`` wrote (which needs torch).
        names: replacements of regular expressions in the source's names, in order, that turn them
            into paths of the module. A name that matches one with None is dropped. Or the kind of
            a checkpoint on Hugging Face, ``"bert"``, ``"gpt2"``, ``"llama"``, ``"resnet"`` or
            ``"vit"``, for a module with the attributes that docs/pretrained.md lists; or a list of
            kinds and replacements, in order.
        as_is: regular expressions of names whose matrices are not transposed, such as those of
            the Conv1D layers in Hugging Face's GPT-2 (which ``names="gpt2"`` knows).
        strict: whether every Variable must have a value and every value a Variable.

    Returns:
        What was matched; ``print`` lists it.

    Raises:
        StructureError: `strict`, and names are missing or unexpected. The message lists them, each
            unexpected one with the missing Variable that is most like it.
        ShapeError: a value does not fit its Variable.
        CheckpointError: the file is missing or damaged, or holds more than arrays.
        ArgumentError: two names in the source become one, or it holds dicts of its own; `names` is
            no kind that is known.

    >>> model = gg.nn.Sequential(gg.nn.Dense(2, 1), gg.nn.ReLU())
    >>> state = {"0.weight": np.array([[1.0, 2.0]]), "0.bias": np.array([3.0])}
    >>> print(gg.nn.load_torch(model, state))
    layers.0.kernel <- 0.weight
    layers.0.bias <- 0.bias
    >>> print(model([[1.0, 1.0]]))
    [[6.]]
    """
    require_module("load_torch", module)
    originals = _read(source)
    tables, own = _tables(names)
    own += [as_is] if isinstance(as_is, str) else list(as_is)
    state = _renamed(originals, tables)
    paths = {id(v): name for name, v in module.state().items()}
    matched: dict[str, str] = {}
    values: dict[str, Array] = {}
    used: set[str] = set()
    prefixes = {name[:at] for name in state for at in _ends_of_parts(name)}
    for variable, theirs, convert, transposed in _walk(module, "", prefixes):
        ours = paths[id(variable)]
        if any(name not in state for name in theirs):
            continue
        known = [state[name][0] for name in theirs]
        arrays = [_array(state[name][1]) for name in theirs]
        if transposed and not any(re.search(pattern, known[0]) for pattern in own):
            arrays = [array.T for array in arrays]
        if ours in matched:  # by another name: that of a layer that shares it, if it is the same
            if np.array_equal(convert(*arrays).astype(variable.dtype), values[ours]):
                used.update(theirs)
            continue
        values[ours] = _fitted(convert(*arrays), variable, ours, known)
        matched[ours] = " + ".join(known)
        used.update(theirs)
    report = TorchReport(
        matched,
        [name for name in module.state() if name not in matched],
        sorted(
            (original for name, (original, _) in state.items() if name not in used), key=in_order
        ),
    )
    if strict and (report.missing or report.unexpected):
        new = {original: name for name, (original, _) in state.items()}
        shapes = {name: tuple(np.shape(originals[name])) for name in new}
        dropped = [n for n in originals if n not in new and not n.endswith(_COUNTER)]
        raise StructureError(differences(report, module.state(), new, shapes, dropped))
    module.load_state(values, strict=False)
    return report


def _tables(names: Any) -> tuple[list[Mapping[str, str | None]], list[str]]:
    """The replacements that `names` means, in order, and the ``as_is`` of the kinds among them."""
    tables: list[Mapping[str, str | None]] = []
    as_is: list[str] = []
    for part in names or () if isinstance(names, (list, tuple, NoneType)) else [names]:
        if isinstance(part, str) and part not in TABLES:
            raise ArgumentError(
                f"load_torch: names={part!r:.60} is no kind of checkpoint that is known: "
                f"{', '.join(TABLES)}. Pass a dict of replacements."
            )
        if not isinstance(part, (str, Mapping)):
            raise ArgumentError(
                f"load_torch: names must be kinds of checkpoints or dicts of replacements, got a "
                f"{type(part).__name__}."
            )
        tables.append(TABLES[part] if isinstance(part, str) else part)
        as_is += [AS_IS[part]] if isinstance(part, str) and part in AS_IS else []
    return tables, as_is


def _ends_of_parts(name: str) -> list[int]:
    """Where the prefixes of a dotted name end: behind its dots, and at its start."""
    return [0, *(at + 1 for at, c in enumerate(name) if c == ".")]


def _read(source: Any) -> Mapping[str, Any]:
    if not isinstance(source, (str, os.PathLike)):
        if not isinstance(source, Mapping):
            hint = " Pass its state_dict()." if hasattr(source, "state_dict") else ""
            raise ArgumentError(
                f"load_torch: expected a path or a state dict, got {type(source).__name__}.{hint}"
            )
        state: Mapping[str, Any] = source
    elif Path(source).suffix == ".safetensors":
        state = checkpoint.load(source)[0]
    else:
        state = _read_pickle(Path(source))
    for name, value in state.items():
        if isinstance(value, Mapping):
            raise ArgumentError(
                f"load_torch: the source's {name!r} is a dict of its own. Pass that one, as "
                f"torch.load(path)[{name!r}]."
            )
    return state


def _read_pickle(path: Path) -> Any:
    if not path.is_file():
        raise CheckpointError(f"load_torch: there is no file {path}.")
    try:
        import torch
    except ImportError as error:
        raise ArgumentError(
            f"load_torch: only torch can read {path}. Install it, or save the weights as "
            "safetensors."
        ) from error
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of any kind: it unpickles
        raise CheckpointError(
            f"load_torch: {path} is damaged, or holds more than arrays: save model.state_dict(), "
            f"not the model. {type(error).__name__} {error!s:.80}"
        ) from error
    if not isinstance(state, Mapping):
        raise CheckpointError(f"load_torch: {path} holds a {type(state).__name__}, not a state.")
    return state


def _renamed(
    state: Mapping[str, Any], tables: Iterable[Mapping[str, str | None]]
) -> dict[str, tuple[str, Any]]:
    """By their new names, the old names and the values; without torch's counters of batches."""
    renamed: dict[str, tuple[str, Any]] = {}
    for original, value in state.items():
        name: str | None = None if original.endswith(_COUNTER) else original
        for pattern, replacement in (pair for names in tables for pair in names.items()):
            if name is not None and re.search(pattern, name):
                name = None if replacement is None else re.sub(pattern, replacement, name)
        if name is None:
            continue
        if name in renamed:
            raise ArgumentError(
                f"load_torch: {renamed[name][0]!r} and {original!r} both become {name!r}."
            )
        renamed[name] = original, value
    return renamed


def _array(value: Any) -> Array:
    """A NumPy array of a value; of a torch Tensor without its gradient, bfloat16 as float32."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if "bfloat16" in str(value.dtype):
            value = value.float()
        value = value.numpy()
    return np.asarray(value)


def _fitted(value: Array, variable: Variable, ours: str, theirs: list[str]) -> Array:
    """The value in the Variable's dtype."""
    if value.shape != variable.shape:
        raise ShapeError(
            f"load_torch: {' + '.join(theirs)} gives an array of shape {value.shape}, but "
            f"'{ours}' has shape {variable.shape}. If it should not be transposed, name it in "
            "as_is=."
        )
    return value.astype(variable.dtype)
