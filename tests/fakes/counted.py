"""What the work of made-up devices that do nothing would take on a GPU: bytes and operations.

CuPy runs on the driver's null devices, so arrays are untouched memory and GPT-2 small takes
megabytes. Launches of our kernels, products of cuBLASLt and graphs of cuDNN note in the driver's
log what they take as a `Work`. For CuPy's own kernels the log has the layouts of their arrays.
Values are zeros, except what the host has copied there: only programs that do not depend on others
can be counted.
"""

import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from fakes import cublaslt, cudnn, cusolver
from gpugrad.function.inspect.cost import Work
from gpugrad.kernels.by_hand import attention
from gpugrad.testing.cuda import driver
from gpugrad.testing.cuda.driver.libraries import read


def works(log: Iterable[driver.Work]) -> list[Work]:
    """The log's work; launches of graphs, and waits, are none."""
    return [_counted(work) for work in log if work.kind not in ("graph", "wait")]


def _counted(work: driver.Work) -> Work:
    *steps, said = work.notes or ("",)
    if said.startswith("["):
        return Work(steps[-1] if steps else "", *json.loads(said))
    if work.kind != "kernel":
        moved = work.bytes * (2 if work.name == "DtoD" else 1)
        return Work(said, work.name if work.kind == "set" else f"copy {work.name}", moved)
    return Work(said, *_of_cupy(work))


def _of_cupy(work: driver.Work) -> tuple[str, int, float, str, int]:
    """A kernel of CuPy's, which takes one element per thread."""
    moved, widest, straight = 0, 0, True
    for item, shape, strides in work.arrays:
        moved += item * math.prod(n for n, s in zip(shape, strides, strict=True) if s)
        widest = max(widest, math.prod(shape))
        dense = np.cumprod((item, *shape[:0:-1])).tolist()[::-1]
        straight &= all(n == 1 or s == d for n, s, d in zip(shape, strides, dense, strict=False))
    shapes = " ".join(str(list(shape)) for _, shape, _ in work.arrays)
    name = f"CuPy {work.name} {shapes}{'' if straight else ' strided'}"
    return name, moved, 0, "", 0 if straight else widest


def _noted(
    name: str, moved: int, flops: float = 0, unit: str = "", **more: Any
) -> AbstractContextManager[None]:
    """Context manager: the work inside is this one."""
    return driver.noted(json.dumps(Work("", name, int(moved), float(flops), unit, **more)[1:]))


def touched(a: Any) -> int:
    """Bytes of an array's distinct elements: a broadcast axis counts once."""
    shape, strides = a.shape, a.strides
    return int(a.itemsize * math.prod(n for n, s in zip(shape, strides, strict=True) if s))


SIZES = {"float": 4, "double": 8, "__half": 2, "__nv_bfloat16": 2}
"""Bytes of a C++ type."""

PARTLY: dict[str, dict[int, int | None]] = {
    "read_rows": {0: 2},
    "add_rows": {2: 0},
    "spoil": {0: None},
}
"""Kernels that read only parts of an array: as much as another array, or next to nothing."""

TWICE = {"channel_forward": (0, 7), "channel_backward": (0, 1, 8, 14), "attention_grads": (6,)}
"""The arguments that a kernel moves twice; those of channels in three phases with two barriers."""

ATTENTION = {"attention_forward": 2, "attention_grads": 5, "QUERY": 3, "KEY": 3, "VALUE": 2}
"""Products in a kernel of attention.cu."""


def _launched(name: str, args: Sequence[Any]) -> AbstractContextManager[None]:
    """A launch of one of our kernels, which moves each of its arrays once."""
    short = name.partition("<")[0]
    kinds = name.partition("<")[2].rstrip(">").split(", ")
    if type(args[0]) is np.void and "chunks" in (args[0].dtype.names or ()):
        return _noted(f"kernel {name}", _moved_by_table(short, kinds, args))
    if short == "turn":
        turns = args[0]
        tiles = np.diff([*turns["first"][: turns["count"]], turns["tiles"]])
        sizes = tiles * turns["tall"][: turns["count"]] * turns["wide"][: turns["count"]]
        return _noted(f"kernel {name}", sizes.sum() * sum(SIZES[kind] for kind in kinds))
    arrays = [a for a in args if hasattr(a, "__cuda_array_interface__")]
    every = {id(a): 0 for a in arrays}
    for a in arrays:  # one that is passed twice is read and overwritten
        every[id(a)] += touched(a)
    for k, instead in PARTLY.get(short, {}).items():
        every[id(arrays[k])] = 0 if instead is None else touched(arrays[instead])
    again = [args[k] for k in TWICE.get(short, ())]
    if short == "channel_backward" and args[10] is not None:  # it is read instead of two others
        again = [args[10], args[1], args[14]]
    moved = sum(every.values()) + sum(touched(a) for a in again if a is not None)
    products = next((n for key, n in ATTENTION.items() if key in name), 0)
    if short in ("attention_forward", "attention_grad", "attention_grads"):
        shape = next(a for a in args if type(a) in (np.void, np.ndarray))
        outer = math.prod(arrays[0].shape[:2])
        flops = 2.0 * products * outer * int(shape["m"]) * int(shape["n"]) * int(shape["k"])
        share = 2 if shape["causal"] else 1
        blocks = -(-int(shape["n"]) // attention._JOINT) if short == "attention_grads" else 0
        sums = outer * int(shape["m"]) * int(shape["k"]) * blocks // share  # of queries' gradients
        return _noted(f"kernel {name}", moved, flops / share, "attention", atomics=sums)
    shapes = " ".join(f"{a.dtype}{list(a.shape)}" for a in arrays)
    more = {"barriers": 2} if short.startswith("channel_") else {}
    if short == "add_rows":
        more["atomics"] = arrays[0].size
    return _noted(f"kernel {name} {shapes}", moved, **more)


def _moved_by_table(short: str, kinds: list[str], args: Sequence[Any]) -> int:
    """Bytes that a kernel with a table of arrays moves.

    A step of an optimizer has settings as its second argument. It reads and writes all columns but
    the gradients and the rounded copies, which follow the averages.
    """
    table = args[0]
    columns = table["at"] != 0
    size = [SIZES[kinds[0]], SIZES[kinds[min(1, len(kinds) - 1)]]]
    if short == "add_parts":
        results = int(table["count"]) * int(args[2])
        return int(table["size"].sum()) * size[0] + results * size[1]
    if short == "cast":
        size = [SIZES["float"], SIZES[kinds[0]]]
    elif len(args) == 3 and type(args[1]) is np.void:
        averages = len(columns) - 2 - (len(kinds) == 3)
        state = args[1].dtype[0].itemsize  # averages have the dtype of the settings
        size = [2 * size[0], size[1], *[2 * state] * averages, *map(SIZES.get, kinds[2:])]
    return sum(int(table["size"][c].sum()) * n for c, n in zip(columns, size, strict=False))


class _Kernel:
    """A kernel whose launches are noted."""

    def __init__(self, name: str, kernel: Any) -> None:
        self._name, self._kernel = name, kernel

    def __call__(self, grid: Any, block: Any, args: Any, **options: Any) -> None:
        with _launched(self._name, args):
            self._kernel.kernel(grid, block, args, **options)

    max_dynamic_shared_size_bytes = property(
        fset=lambda self, n: setattr(self._kernel, "max_dynamic_shared_size_bytes", n)
    )


UNITS = {68: "fp32", 77: "tf32", 75: "bf16", 70: "fp64"}


_multiply = cublaslt.matmul


def _matmul(*args: int) -> None:
    _, compute_desc, _, _, adesc, _, bdesc, beta, *_ = args
    ddesc = args[11]
    desc = cublaslt.live[compute_desc]
    held = [cublaslt.live[n] for n in (adesc, bdesc, ddesc)]
    sizes = [h["rows"] * h["cols"] for h in held]
    counts = [int(h.get(5, 1)) if int(h.get(6, 1)) else 1 for h in held]
    of_size = np.dtype(cublaslt.DTYPES[held[0]["type"]]).itemsize
    k = held[0]["rows"] if desc.get(3, 0) else held[0]["cols"]
    flops = 2.0 * int(held[2].get(5, 1)) * sizes[2] * k
    adds = read(beta, cublaslt.DTYPES[desc["scale"]]) != 0
    moved = sum(n * size for n, size in zip(counts, sizes, strict=True)) + adds * sizes[2]
    epilogue = {v: k for k, v in EPILOGUES.items()}[int(desc.get(7, 1))]
    moved = moved * of_size + ("gelu" in epilogue) * sizes[2] * of_size
    unit = UNITS[desc["compute"]] if of_size != 2 else "bf16"
    m, n = held[2]["rows"], held[2]["cols"]
    name = f"cuBLASLt {m}x{n}x{k} {epilogue}{' +=' if adds else ''}"
    shape = int(held[2]["rows"]), int(held[2]["cols"]), int(k), int(held[2].get(5, 1))
    with _noted(name, moved, flops, unit, shape=shape):
        _multiply(*args)


EPILOGUES = {
    "": 1, "bias": 4, "relu_bias": 6, "relu_aux_bias": 134, "gelu_bias": 36, "gelu_aux_bias": 164,
    "drelu_bgrad": 152, "dgelu_bgrad": 208, "bgrad_b": 256,
}  # fmt: skip


class _Graph(cudnn.pygraph):
    """``cudnn.pygraph``, whose execution is noted."""

    def execute(self, tensor_dict: Any, workspace: int, handle: Any) -> None:
        every = [*self.inputs, *self.outputs]
        moved = sum(math.prod(t.dim) * np.dtype(cudnn.DTYPES[t.kind]).itemsize for t in every)
        half = self.inputs[0].kind in (cudnn.data_type.HALF, cudnn.data_type.BFLOAT16)
        name = self.name.partition(" ")[0]
        first, second, out = self.inputs[0].dim, self.inputs[1].dim, self.outputs[0].dim
        more: dict[str, Any] = {}
        if name.startswith("sdpa"):
            causal = bool(self.function.args[0][2] == 0)
            heads = math.prod(first[:2]) * first[2] * second[2] * first[3]
            flops = 2.0 * heads * (5 if "backward" in name else 2) / (2 if causal else 1)
        else:
            if name == "conv_wgrad":  # a sum over the output's places for each weight
                weight, shape = out, (out[0], math.prod(out[1:]), math.prod(second) // out[0], 1)
            elif name == "conv_dgrad":
                weight, n = second, second[1]  # of each place of g: its window
                shape = (math.prod(first) // second[0], n, second[0] * math.prod(second[2:]), 1)
            else:
                weight, shape = second, (math.prod(out) // out[1], out[1], math.prod(second[1:]), 1)
            flops = 2.0 * math.prod(shape)
            more = {"shape": shape, "channels": min(weight[:2])}
        of = f"{'x'.join(map(str, first))} {'x'.join(map(str, second))}"
        if not name.startswith("sdpa"):
            straight = [t for t in every if t.stride[1] != 1 and math.prod(t.dim[2:]) > 1]
            if half:  # cuDNN's tensor cores read channels last: it converts the others
                moved += sum(2 * 2 * math.prod(t.dim) for t in straight)
            of += f", {len(straight)} of 3 channels first"
        unit = "sdpa" if name.startswith("sdpa") else "bf16" if half else "tf32"
        with _noted(f"cuDNN {self.name} {of}", moved, flops, unit, **more):
            super().execute(tensor_dict, workspace, handle)


def use_null_devices(null_work: int = 1) -> None:
    """Make ``import cupy`` import CuPy on a device that does nothing; call before gpugrad does.

    Args:
        null_work: the driver's setting.
    """
    os.environ |= {"GPUGRAD_CUDA_NULL_WORK": str(null_work), "GPUGRAD_CUDA_DEVICES": "1"}
    driver.activate()
    cublaslt.install()
    cusolver.install()


def install(with_cudnn: bool = True) -> None:
    """Use null devices, and note what kernels and libraries take."""
    use_null_devices(2)
    import cupy

    class Module(cupy.RawModule):  # type: ignore[misc]
        def get_function(self, name: str) -> Any:
            return _Kernel(name, super().get_function(name))

    cupy.RawModule = Module
    cublaslt.matmul = _matmul
    cudnn.pygraph = _Graph  # type: ignore[misc]
    sys.modules["cudnn"] = cudnn if with_cudnn else None  # type: ignore[assignment]
