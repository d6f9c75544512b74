"""A stand-in for ``cudnn``, the module of nvidia-cudnn-frontend, that runs its graphs in NumPy.

`execute` builds its arrays only from pointers and the dims and strides of the graph's tensors: a
wrong stride, padding, scale or mask gives wrong numbers. It checks what the frontend checks: that
every tensor has an address and a dtype, that results have the implied dims, that steps come in
order, and a workspace. Names are those of nvidia-cudnn-frontend 1.32; where that is installed,
`test_cudnn.py` has it build the same graphs.

Not modelled: which problems cuDNN has plans for, alignment, rounding (except TensorFloat-32's),
speed.
"""

import enum
import functools
import itertools
import types
from typing import Any, Self

import ml_dtypes
import numpy as np

from gpugrad.testing.cuda.driver.libraries import view, work

calls: list[dict[str, Any]] = []
"""The calls of `execute`, for tests to inspect."""

built: list[dict[str, Any]] = []
"""The graphs whose plans were built."""


class cudnnGraphNotSupportedError(Exception):
    """``cudnn.cudnnGraphNotSupportedError``."""


data_type = enum.Enum("data_type", "FLOAT DOUBLE HALF BFLOAT16")
heur_mode = enum.Enum("heur_mode", "A B FALLBACK")
diagonal_alignment = enum.Enum("diagonal_alignment", "TOP_LEFT BOTTOM_RIGHT")
numerical_note = enum.Enum(
    "numerical_note", "TENSOR_CORE DOWN_CONVERT_INPUTS REDUCED_PRECISION_REDUCTION NONDETERMINISTIC"
)

DTYPES = {
    data_type.FLOAT: np.float32, data_type.DOUBLE: np.float64, data_type.HALF: np.float16,
    data_type.BFLOAT16: ml_dtypes.bfloat16,
}  # fmt: skip


def backend_version() -> int:
    return 92800


def create_handle() -> Any:
    return types.SimpleNamespace(stream=0)


def set_stream(handle: Any, stream: int) -> None:
    handle.stream = stream


class Tensor:
    def __init__(self, dim: Any = None, stride: Any = None, kind: Any = None) -> None:
        self.dim, self.stride, self.kind, self.is_output = dim, stride, kind, False

    def set_output(self, value: bool) -> Self:
        self.is_output = value
        return self

    def set_data_type(self, value: Any) -> Self:
        self.kind = data_type(value)
        return self

    def set_dim(self, value: list[int]) -> Self:
        self.dim = list(value)
        return self

    def set_stride(self, value: list[int]) -> Self:
        self.stride = list(value)
        return self


class pygraph:
    def __init__(
        self, *, io_data_type: Any, intermediate_data_type: Any, compute_data_type: Any,
        handle: Any,
    ) -> None:  # fmt: skip
        assert isinstance(io_data_type, data_type)
        assert intermediate_data_type == compute_data_type
        self.compute, self.handle = DTYPES[compute_data_type], handle
        self.tensors: list[Tensor] = []
        self.steps: list[str] = []
        self.notes: list[str] = []

    def tensor(self, dim: list[int], stride: list[int], data_type: Any) -> Tensor:
        assert len(dim) == len(stride)
        assert all(type(n) is int and n > 0 for n in dim)
        self.tensors.append(Tensor(dim, stride, data_type))
        return self.tensors[-1]

    def _node(self, name: str, function: Any, inputs: list[Tensor], n: int) -> list[Tensor]:
        assert self.steps == []
        outputs = [Tensor() for _ in range(n)]
        self.tensors += outputs
        self.name, self.function, self.inputs, self.outputs = name, function, inputs, outputs
        self.steps = ["node"]
        return outputs

    # ---- operations

    def _convolution(
        self, name: str, function: Any, inputs: list[Tensor], *, pre_padding: Any,
        post_padding: Any, stride: Any, dilation: Any,
    ) -> Tensor:  # fmt: skip
        window = pre_padding, post_padding, stride, dilation
        return self._node(name, functools.partial(function, window), inputs, 1)[0]

    def conv_fprop(self, image: Tensor, weight: Tensor, **window: Any) -> Tensor:
        return self._convolution("conv_fprop", _fprop, [image, weight], **window)

    def bias(self, input: Tensor, bias: Tensor) -> Tensor:
        spatial = len(self.inputs[0].dim) - 2
        assert bias.dim == [1, self.inputs[1].dim[0], *[1] * spatial]  # of a convolution
        return self._pointwise("bias", np.add, input, bias)

    def relu(self, input: Tensor) -> Tensor:
        """Propagates NaN, as the frontend requests from cuDNN, and clips infinity."""
        top = np.finfo(self.compute).max
        return self._pointwise("relu", lambda x: np.clip(x, 0, top), input)

    def _pointwise(self, name: str, function: Any, input: Tensor, *more: Tensor) -> Tensor:
        """Fuse a function into the node before, whose own result is then not stored."""
        assert self.steps == ["node"]
        assert self.outputs == [input]
        before, n = self.function, len(self.inputs)

        def both(*args: Any) -> Any:
            *arrays, shape = args
            return function(before(*arrays[:n], shape), *arrays[n:])

        self.tensors.remove(input)
        self.steps = []
        (result,) = self._node(f"{self.name} + {name}", both, [*self.inputs, *more], 1)
        return result

    def conv_dgrad(self, loss: Tensor, filter: Tensor, **window: Any) -> Tensor:
        return self._convolution("conv_dgrad", _dgrad, [loss, filter], **window)

    def conv_wgrad(self, image: Tensor, loss: Tensor, **window: Any) -> Tensor:
        return self._convolution("conv_wgrad", _wgrad, [image, loss], **window)

    def sdpa(
        self, q: Tensor, k: Tensor, v: Tensor, attn_scale: float, generate_stats: bool,
        diagonal_alignment: Any = diagonal_alignment.TOP_LEFT,
        diagonal_band_right_bound: int | None = None,
    ) -> list[Tensor]:  # fmt: skip
        assert generate_stats
        seen = attn_scale, diagonal_alignment, diagonal_band_right_bound
        return self._node("sdpa", functools.partial(_sdpa, seen), [q, k, v], 2)

    def sdpa_backward(
        self, q: Tensor, k: Tensor, v: Tensor, o: Tensor, dO: Tensor, stats: Tensor,
        attn_scale: float, use_deterministic_algorithm: bool = False,
        diagonal_alignment: Any = diagonal_alignment.TOP_LEFT,
        diagonal_band_right_bound: int | None = None,
    ) -> list[Tensor]:  # fmt: skip
        seen = attn_scale, diagonal_alignment, diagonal_band_right_bound
        self.notes += ["deterministic algorithm"] * use_deterministic_algorithm
        function = functools.partial(_sdpa_backward, seen)
        return self._node("sdpa_backward", function, [q, k, v, o, dO, stats], 3)

    # ---- plans

    def _step(self, name: str, after: str) -> None:
        assert self.steps[-1] == after, f"{name} after {self.steps}"
        self.steps.append(name)

    def validate(self) -> None:
        self._step("validate", "node")
        for t in self.outputs:
            assert t.is_output
        for t in self.tensors:
            if t.dim is None or t.kind is None or len(t.dim) not in (4, 5):
                raise ValueError("a tensor lacks its dims or its dtype")

    def build_operation_graph(self) -> None:
        self._step("build_operation_graph", "validate")

    def create_execution_plans(self, heuristics: list[Any]) -> None:
        assert all(isinstance(mode, heur_mode) for mode in heuristics)
        self._step("create_execution_plans", "build_operation_graph")

    def deselect_numeric_notes(self, notes: list[Any]) -> Self:
        assert self.steps[-1] == "create_execution_plans"
        assert all(isinstance(note, numerical_note) for note in notes)
        self.notes += [note.name for note in notes]
        return self

    def deselect_workspace_greater_than(self, workspace_limit: int) -> Self:
        assert self.steps[-1] == "create_execution_plans"
        return self

    def check_support(self) -> None:
        self._step("check_support", "create_execution_plans")

    def build_plans(self) -> None:
        self._step("build_plans", "check_support")
        built.append({"name": self.name, "notes": self.notes})

    def get_workspace_size(self) -> int:
        assert self.steps[-1] == "build_plans"
        return 1024

    def execute(self, tensor_dict: dict[Tensor, int], workspace: int, handle: Any) -> None:
        assert self.steps[-1] == "build_plans"
        assert handle is self.handle
        assert workspace
        if set(tensor_dict) != set(self.tensors):
            raise ValueError("the variant pack is missing a buffer")
        calls.append({"name": self.name, "notes": self.notes, "stream": handle.stream,
                      "dims": [t.dim for t in self.inputs]})  # fmt: skip
        work(handle.stream, "cudnn", self.name, functools.partial(self._launch, dict(tensor_dict)))

    def _launch(self, pointers: dict[Tensor, int]) -> None:
        arrays = [_read(pointers[t], t).astype(self.compute) for t in self.inputs]
        tf32 = self.inputs[0].kind is data_type.FLOAT and "TENSOR_CORE" not in self.notes
        if tf32:
            arrays = [_rounded(x) for x in arrays]
        with np.errstate(all="ignore"):
            results = self.function(*arrays, *(t.dim for t in self.outputs))
        for t, x in zip(
            self.outputs, results if isinstance(results, tuple) else (results,), strict=True
        ):
            assert list(x.shape) == t.dim, (self.name, x.shape, t.dim)
            _read(pointers[t], t)[...] = x


def _read(pointer: int, t: Tensor) -> np.ndarray[Any, Any]:
    """An array over memory."""
    return view(pointer, DTYPES[t.kind], t.dim, t.stride)


def _rounded(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """TensorFloat-32: 10 bits of mantissa."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x1000) & np.uint32(0xFFFFE000)).view(np.float32)


def _windows(window: Any, x: Any, w: Any, places: Any) -> Any:
    """The padded shape, and for each element of the kernel where it meets the padded input."""
    before, after, stride, dilation = window
    padded = [n + a + b for n, a, b in zip(x[2:], before, after, strict=True)]
    expected = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, d, s in zip(padded, w[2:], dilation, stride, strict=True)
    ]
    if list(places) != expected:
        raise ValueError(f"windows {places}, which should be {expected}")
    inside = tuple(slice(a, a + n) for n, a in zip(x[2:], before, strict=True))
    at = {
        k: tuple(
            slice(i * d, i * d + (p - 1) * s + 1, s)
            for i, d, p, s in zip(k, dilation, places, stride, strict=True)
        )
        for k in itertools.product(*map(range, w[2:]))
    }
    return padded, inside, at


def _grouped(x: Any, groups: int) -> Any:
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])


def _fprop(window: Any, x: Any, w: Any, shape: Any) -> Any:
    padded, inside, at = _windows(window, x.shape, w.shape, shape[2:])
    whole = np.zeros((*x.shape[:2], *padded), x.dtype)
    whole[..., *inside] = x
    groups = x.shape[1] // w.shape[1]
    whole, w = _grouped(whole, groups), w.reshape(groups, -1, *w.shape[1:])
    out: Any = 0
    for k, where in at.items():
        out = out + np.einsum("ngi...,goi->ngo...", whole[:, :, :, *where], w[:, :, :, *k])
    return out.reshape(shape)


def _dgrad(window: Any, g: Any, w: Any, shape: Any) -> Any:
    padded, inside, at = _windows(window, shape, w.shape, g.shape[2:])
    groups = shape[1] // w.shape[1]
    whole = np.zeros((shape[0], groups, w.shape[1], *padded), g.dtype)
    g, w = _grouped(g, groups), w.reshape(groups, -1, *w.shape[1:])
    for k, where in at.items():
        whole[:, :, :, *where] += np.einsum("ngo...,goi->ngi...", g, w[:, :, :, *k])
    return whole.reshape(*shape[:2], *padded)[..., *inside]


def _wgrad(window: Any, x: Any, g: Any, shape: Any) -> Any:
    padded, inside, at = _windows(window, x.shape, shape, g.shape[2:])
    whole = np.zeros((*x.shape[:2], *padded), x.dtype)
    whole[..., *inside] = x
    groups = x.shape[1] // shape[1]
    whole, g = _grouped(whole, groups), _grouped(g, groups)
    out = np.zeros((groups, shape[0] // groups, *shape[1:]), x.dtype)
    g = g.reshape(*g.shape[:3], -1)
    for k, where in at.items():
        met = whole[:, :, :, *where].reshape(*whole.shape[:3], -1)
        out[:, :, :, *k] = np.einsum("ngip,ngop->goi", met, g)
    return out.reshape(shape)


def _scores(seen: Any, q: Any, k: Any) -> Any:
    scale, alignment, right = seen
    k = np.repeat(k, q.shape[1] // k.shape[1], 1)
    s = scale * q @ k.swapaxes(-1, -2)
    if right is None:
        return s
    m, n = s.shape[-2:]
    ahead = right + (n - m if alignment is diagonal_alignment.BOTTOM_RIGHT else 0)
    return np.where(np.tri(m, n, ahead, bool), s, -np.inf)


def _sdpa(seen: Any, q: Any, k: Any, v: Any, *shapes: Any) -> Any:
    s = _scores(seen, q, k)
    top = s.max(-1, keepdims=True)
    stats = top + np.log(np.exp(s - top).sum(-1, keepdims=True))
    return np.exp(s - stats) @ np.repeat(v, q.shape[1] // v.shape[1], 1), stats


def _sdpa_backward(
    seen: Any, q: Any, k: Any, v: Any, o: Any, g: Any, stats: Any, *shapes: Any
) -> Any:
    group = q.shape[1] // k.shape[1]
    p = np.exp(_scores(seen, q, k) - stats)
    dp = g @ np.repeat(v, group, 1).swapaxes(-1, -2)
    ds = seen[0] * p * (dp - (g * o).sum(-1, keepdims=True))

    def shared(x: Any) -> Any:
        return x.reshape(x.shape[0], -1, group, *x.shape[2:]).sum(2)

    return (
        ds @ np.repeat(k, group, 1), shared(ds.swapaxes(-1, -2) @ q),
        shared(p.swapaxes(-1, -2) @ g),
    )  # fmt: skip
