"""A CuPy that computes nothing and counts what a GPU would do, at full sizes on any machine.

Arrays are untouched memory, so GPT-2 small takes megabytes. A kernel launch, a product of cuBLASLt
or a graph of cuDNN is a `Work`: bytes that it reads and writes, and operations. A captured graph
holds the `Work` of its nodes. Values are zeros, so only programs that do not depend on values can
be counted.

Functions of CuPy that the programs call anyway run in NumPy if they make no large array, such as
indices; elementwise functions and copies do not run.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import math
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.special

from fakes import cublaslt, cudnn
from gpugrad.function.inspect.cost import Work

nodes: list[Work] = []
"""The launched kernels; a captured graph keeps its own list."""

SMALL = 4096
"""Elements up to which functions of NumPy run."""

_capturing: list[list[Work]] = []
_context: list[str] = [""]
uncounted: list[bool] = []
"""Not empty while the host's time is measured."""


@contextlib.contextmanager
def during(step: str) -> Iterator[None]:
    """Launches inside belong to this step of a program."""
    _context.append(step)
    try:
        yield
    finally:
        _context.pop()


def _log(name: str, moved: int, flops: float = 0, unit: str = "", **more: int) -> None:
    (_capturing[-1] if _capturing else nodes).append(
        Work(_context[-1], name, moved, flops, unit, **more)
    )


def touched(a: Any) -> int:
    """Bytes of an array's distinct elements: a broadcast axis counts once."""
    shape, strides = a.shape, a.strides
    return a.itemsize * math.prod(n for n, s in zip(shape, strides, strict=True) if s)


# ---- the array ---------------------------------------------------------------------------


class ndarray:
    """``cupy.ndarray``: untouched memory."""

    __slots__ = ("__weakref__", "_array", "data", "dtype", "flags", "shape")
    __module__ = "cupy"
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100

    def __init__(self, shape: Any, dtype: Any = float) -> None:
        self._array = np.zeros(shape, dtype)  # zeros are mapped, not written

    device = property(lambda self: Device(0))
    T = property(lambda self: _wrap(self._array.T))
    mT = property(lambda self: _wrap(self._array.mT))
    ndim = property(lambda self: self._array.ndim)
    size = property(lambda self: self._array.size)
    nbytes = property(lambda self: self._array.nbytes)
    itemsize = property(lambda self: self._array.itemsize)
    strides = property(lambda self: self._array.strides)
    base = property(lambda self: self._array.base)

    def __getattr__(self, name: str) -> Any:
        """An attribute's value at its first use: later ones cost no more than CuPy's."""
        if name == "data":
            value: Any = types.SimpleNamespace(ptr=self._array.ctypes.data)
        elif name in ("dtype", "flags", "shape"):
            value = getattr(self._array, name)
        else:
            raise AttributeError(name)
        setattr(self, name, value)
        return value

    def get(self, *args: Any, **kwargs: Any) -> np.ndarray[Any, Any]:
        _log("copy to the host", self.nbytes)
        return np.array(self._array)

    def fill(self, value: Any) -> None:
        _log("memset" if value == 0 else "fill", self.nbytes)
        if self.size <= SMALL:
            self._array.fill(value)

    def item(self, *args: Any) -> Any:
        return self.get().item(*args)

    def tobytes(self, order: str = "C") -> bytes:
        return self.get().tobytes(order)

    def __getitem__(self, index: Any) -> Any:
        return _called("getitem", lambda a: a[_bare(index)], (self,), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        part = self._array[_bare(index)]
        _moved("setitem", [np.asarray(_bare(value))], part)

    def __len__(self) -> int:
        return len(self._array)

    def __bool__(self) -> bool:
        return bool(self.item())

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _called(ufunc.__name__, ufunc, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _called(func.__name__, func, args, kwargs)


def _operator(ufunc: Any, reflected: bool, in_place: bool) -> Any:
    def method(self: ndarray, other: Any) -> Any:
        if not isinstance(other, ndarray) and getattr(other, "__array_ufunc__", ...) is None:
            return NotImplemented
        result = _called(ufunc.__name__, ufunc, (other, self) if reflected else (self, other), {})
        return self if in_place else result

    return method


for _name, _ufunc in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}.items():
    for _prefix in ("", "r", "i"):
        setattr(ndarray, f"__{_prefix}{_name}__", _operator(_ufunc, _prefix == "r", _prefix == "i"))
for _name, _ufunc in {"neg": np.negative, "abs": np.abs, "invert": np.invert}.items():
    setattr(ndarray, f"__{_name}__", lambda self, f=_ufunc: _called(f.__name__, f, (self,), {}))
METHODS = (
    "all any argmax argmin argsort astype clip conj copy cumsum dot flatten max mean min prod "
    "ravel repeat reshape round squeeze sum swapaxes take transpose var view"
)


def _method(name: str) -> Any:
    def call(a: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(a, name)(*args, **kwargs)

    return lambda self, *args, **kwargs: _called(name, call, (self, *args), kwargs)


for _name in METHODS.split():
    setattr(ndarray, _name, _method(_name))


def _wrap(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        wrapped = object.__new__(ndarray)
        wrapped._array = np.asarray(value)
        return wrapped
    if isinstance(value, (tuple, list)):
        return type(value)(map(_wrap, value))
    return value


def _bare(value: Any) -> Any:
    if type(value) is ndarray:
        return value._array
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(_bare, value))
    return value


def _arrays(values: Any) -> Iterator[np.ndarray[Any, Any]]:
    for v in values:
        if isinstance(v, np.ndarray):
            yield v
        elif isinstance(v, (list, tuple)):
            yield from _arrays(v)


def _moved(name: str, read: Sequence[Any], out: Any) -> None:
    """Log a function of CuPy, whose kernels take one element per thread."""
    read = [a for a in read if a.ndim or a.size > 1]
    straight = all(a.flags.c_contiguous for a in (*read, out))
    same = len(read) == 1 and read[0].dtype == out.dtype
    if straight and same and name in ("copy", "setitem", "array"):
        _log(f"memcpy {_kind(out)}", 2 * out.nbytes)
        return
    widest = max([out.size, *(a.size for a in read)])
    _log(
        f"CuPy {name} {_kind(out)}{'' if straight else ' strided'}",
        sum(map(touched, (*read, out))),
        elements=widest if not straight else 0,
    )


def _kind(a: Any) -> str:
    return f"{a.dtype}{list(a.shape)}"


def _called(name: str, function: Any, args: Any, kwargs: Any) -> Any:
    """A function of CuPy: its result's shape and dtype from NumPy, its values only if small."""
    args, kwargs = _bare(tuple(args)), {k: _bare(v) for k, v in kwargs.items()}
    read, out = list(_arrays((*args, *kwargs.values()))), kwargs.pop("out", None)
    out = out[0] if isinstance(out, tuple) else out
    small = sum(a.size for a in read) <= SMALL
    plain = isinstance(function, np.ufunc) and function.signature is None
    if plain and (out is not None or not small):
        if out is None:
            tiny = [
                np.ones((1,) * a.ndim, a.dtype) if isinstance(a, np.ndarray) else a for a in args
            ]
            with np.errstate(all="ignore"):
                dtype = np.asarray(function(*tiny, **kwargs)).dtype
            out = np.zeros(np.broadcast_shapes(*(a.shape for a in read)), dtype)
        _moved(name, [a for a in read if a is not out], out)
        return _wrap(out)
    if name == "astype" and (read[0].dtype != np.dtype(args[1]) or kwargs.get("copy", True)):
        result = np.zeros(read[0].shape, args[1])
    elif name == "copy" or (name == "ascontiguousarray" and not read[0].flags.c_contiguous):
        result = np.zeros(read[0].shape, read[0].dtype)
    elif name == "reshape" and not small:
        shape = args[1] if isinstance(args[1], (tuple, list)) else args[1:]
        result = _reshaped(read[0], shape)
    else:
        with np.errstate(all="ignore"):
            result = function(*args, **kwargs)
    for r in _arrays([result]):
        if not any(np.may_share_memory(r, a) for a in read) and r.size:
            _moved(name, read, r)
    return _wrap(result)


def _reshaped(a: Any, shape: Any) -> Any:
    """A view, or untouched memory where NumPy would copy."""
    try:
        return np.reshape(a, shape, copy=False)
    except ValueError:
        known = math.prod(n for n in shape if n != -1)
        return np.zeros([a.size // known if n == -1 else n for n in shape], a.dtype)


# ---- kernels and libraries -----------------------------------------------------------------

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


def launched(name: str, args: Sequence[Any]) -> None:
    """Log a launch of one of our kernels, which moves each of its arrays once."""
    short = name.partition("<")[0]
    kinds = name.partition("<")[2].rstrip(">").split(", ")
    if type(args[0]) is np.void and "chunks" in (args[0].dtype.names or ()):
        _log(f"kernel {name}", _moved_by_table(short, kinds, args))
        return
    if short == "turn":
        turns = args[0]
        tiles = np.diff([*turns["first"][: turns["count"]], turns["tiles"]])
        sizes = tiles * turns["tall"][: turns["count"]] * turns["wide"][: turns["count"]]
        _log(f"kernel {name}", int(sizes.sum()) * sum(SIZES[kind] for kind in kinds))
        return
    arrays = [a for a in args if type(a) is ndarray]
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
        _log(f"kernel {name}", moved, flops / (2 if shape["causal"] else 1), "attention")
        return
    kinds = " ".join(_kind(a) for a in arrays)
    _log(f"kernel {name} {kinds}", moved, barriers=2 if short.startswith("channel_") else 0)


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


class RawModule:
    """``cupy.RawModule``, whose kernels are counted."""

    def __init__(self, code: str | None = None, **kwargs: Any) -> None:
        self._code = code

    def get_function(self, name: str) -> Any:
        def launch(
            grid: Any,
            block: Any,
            args: Any,
            shared_mem: int = 0,
            enable_cooperative_groups: bool = False,
        ) -> None:
            if not uncounted:
                launched(name, args)

        return launch


UNITS = {68: "fp32", 77: "tf32", 75: "bf16", 70: "fp64"}


def _matmul(
    light_handle: int,
    compute_desc: int,
    alpha: int,
    a: int,
    adesc: int,
    b: int,
    bdesc: int,
    beta: int,
    c: int,
    cdesc: int,
    d: int,
    ddesc: int,
    *rest: Any,
) -> None:
    desc = cublaslt.live[compute_desc]
    held = [cublaslt.live[n] for n in (adesc, bdesc, ddesc)]
    sizes = [h["rows"] * h["cols"] for h in held]
    counts = [int(h.get(5, 1)) if int(h.get(6, 1)) else 1 for h in held]
    of_size = np.dtype(cublaslt.DTYPES[held[0]["type"]]).itemsize
    k = held[0]["rows"] if desc.get(3, 0) else held[0]["cols"]
    flops = 2.0 * int(held[2].get(5, 1)) * sizes[2] * k
    adds = cublaslt._read(beta, cublaslt.DTYPES[desc["scale"]])[()] != 0
    moved = sum(n * size for n, size in zip(counts, sizes, strict=True)) + adds * sizes[2]
    epilogue = {v: k for k, v in EPILOGUES.items()}[int(desc.get(7, 1))]
    moved = moved * of_size + ("gelu" in epilogue) * sizes[2] * of_size
    unit = UNITS[desc["compute"]] if of_size != 2 else "bf16"
    m, n = held[2]["rows"], held[2]["cols"]
    _log(f"cuBLASLt {m}x{n}x{k} {epilogue}{' +=' if adds else ''}", moved, flops, unit)


EPILOGUES = {
    "": 1,
    "bias": 4,
    "relu_bias": 6,
    "relu_aux_bias": 134,
    "gelu_bias": 36,
    "gelu_aux_bias": 164,
    "drelu_bgrad": 152,
    "dgelu_bgrad": 208,
    "bgrad_b": 256,
}


class pygraph(cudnn.pygraph):
    """``cudnn.pygraph``, whose execution is counted."""

    def execute(self, tensor_dict: Any, workspace: int, handle: Any) -> None:
        every = [*self.inputs, *self.outputs]
        moved = sum(math.prod(t.dim) * np.dtype(cudnn.DTYPES[t.kind]).itemsize for t in every)
        half = self.inputs[0].kind in (cudnn.data_type.HALF, cudnn.data_type.BFLOAT16)
        name = self.name.partition(" ")[0]
        first, second, out = self.inputs[0].dim, self.inputs[1].dim, self.outputs[0].dim
        if name.startswith("sdpa"):
            causal = bool(self.function.args[0][2] == 0)
            heads = math.prod(first[:2]) * first[2] * second[2] * first[3]
            flops = 2.0 * heads * (5 if "backward" in name else 2) / (2 if causal else 1)
        elif name == "conv_wgrad":  # per output element of g: the window of x
            flops = 2.0 * math.prod(second) * math.prod(out[1:])
        elif name == "conv_dgrad":
            flops = 2.0 * math.prod(first) * math.prod(second[1:])
        else:
            flops = 2.0 * math.prod(out) * math.prod(second[1:])
        of = f"{'x'.join(map(str, first))} {'x'.join(map(str, second))}"
        if not name.startswith("sdpa"):
            straight = [t for t in every if t.stride[1] != 1 and math.prod(t.dim[2:]) > 1]
            if half:  # cuDNN's tensor cores read channels last: it converts the others
                moved += sum(2 * 2 * math.prod(t.dim) for t in straight)
            of += f", {len(straight)} of 3 channels first"
        unit = "sdpa" if name.startswith("sdpa") else "bf16" if half else "tf32"
        _log(f"cuDNN {self.name} {of}", moved, flops, unit)


# ---- everything else -----------------------------------------------------------------------


class Device:
    """``cupy.cuda.Device``."""

    compute_capability = "90"
    id = 0

    def __init__(self, device: Any = None) -> None:
        pass

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class Event:
    """``cupy.cuda.Event``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class Graph:
    """``cupy.cuda.Graph``: the nodes that a capture has collected."""

    def __init__(self, held: list[Work]) -> None:
        self.nodes = held

    def launch(self, stream: Any = None) -> None:
        if not uncounted:
            nodes.extend(self.nodes)


class Stream:
    """``cupy.cuda.Stream``."""

    null: Stream
    _current: list[Stream] = []  # noqa: RUF012  # one stack for all
    _pointers = itertools.count(0x1000, 16)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.ptr = next(Stream._pointers)

    def __enter__(self) -> Stream:
        Stream._current.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        Stream._current.pop()

    def record(self, event: Any = None) -> Event:
        return Event()

    def wait_event(self, event: Any) -> None:
        pass

    def is_capturing(self) -> bool:
        return bool(_capturing)

    def begin_capture(self, mode: Any = None) -> None:
        _capturing.append([])

    def end_capture(self) -> Graph:
        return Graph(_capturing.pop())


Stream.null = Stream()
Stream._current.append(Stream.null)


class MemoryPool:
    """``cupy.cuda.MemoryPool``."""

    malloc = None

    def free_all_blocks(self) -> None:
        pass

    def total_bytes(self) -> int:
        return 0

    used_bytes = free_bytes = get_limit = total_bytes


@contextlib.contextmanager
def using_allocator(allocator: Any = None) -> Iterator[None]:
    yield


def _made(name: str) -> Any:
    """``empty``, ``zeros``, ``ones`` or ``full``, perhaps of another array's shape."""

    def make(like: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> ndarray:
        shape = like.shape if name.endswith("_like") else like
        dtype = dtype or (like.dtype if name.endswith("_like") else float)
        array = ndarray(shape, dtype)
        if not name.startswith("empty"):
            _log("memset" if "zeros" in name else "fill", array.nbytes)
        return array

    return make


def _array(obj: Any, dtype: Any = None, copy: Any = True, **kwargs: Any) -> ndarray:
    if type(obj) is ndarray:
        same = dtype in (None, obj.dtype)
        return obj if same and not copy else obj.astype(dtype or obj.dtype)
    _log("copy from the host", np.asarray(obj).nbytes)
    return _wrap(np.array(_bare(obj), dtype))  # type: ignore[no-any-return]


def _module(name: str, contents: dict[str, Any]) -> types.ModuleType:
    module = types.ModuleType(name, "Counts; see tests/fakes/counted.py.")
    module.__path__ = []
    module.__spec__ = importlib.util.spec_from_loader(name, loader=None)
    kept = {k: v for k, v in contents.items() if not k.startswith("__") or k == "__version__"}
    vars(module).update(kept)
    return module


def _namespace(of: Any) -> dict[str, Any]:
    contents: dict[str, Any] = {}
    for name in dir(of):
        value = getattr(of, name)
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        plain = isinstance(value, type) or not callable(value)
        contents[name] = value if plain else functools.partial(_lifted, name, value)
    return contents


def _lifted(name: str, function: Any, *args: Any, **kwargs: Any) -> Any:
    return _called(name, function, args, kwargs)


def modules() -> dict[str, types.ModuleType]:
    """The modules by name, cuBLASLt's and cuDNN's too."""
    top = _namespace(np) | {
        name: _made(name)
        for name in (
            "empty",
            "zeros",
            "ones",
            "full",
            "empty_like",
            "zeros_like",
            "ones_like",
            "full_like",
        )
    }
    runtime = _module(
        "cupy.cuda.runtime",
        {
            "memGetInfo": lambda: (1 << 36, 1 << 36),
            "getDeviceCount": lambda: 1,
            "getDeviceProperties": lambda device: {"multiProcessorCount": 132},
            "CUDARuntimeError": RuntimeError,
        },
    )
    device = _module("cupy.cuda.device", {"Device": Device})
    compiler = _module("cupy.cuda.compiler", {"CompileException": RuntimeError})
    pool = MemoryPool()
    cuda = _module(
        "cupy.cuda",
        {
            "Device": Device,
            "Stream": Stream,
            "Event": Event,
            "runtime": runtime,
            "Graph": Graph,
            "device": device,
            "compiler": compiler,
            "get_current_stream": lambda device=0: Stream._current[-1],
            "MemoryPool": MemoryPool,
            "alloc": lambda size: ndarray((size,), np.uint8).data,
            "using_allocator": using_allocator,
            "is_available": lambda: True,
            "get_allocator": lambda: None,
            "set_allocator": lambda allocator=None: None,
        },
    )
    linalg = _module("cupy.linalg", _namespace(np.linalg))
    fft = _module("cupy.fft", _namespace(np.fft))
    tricks = _module("cupy.lib.stride_tricks", _namespace(np.lib.stride_tricks))
    lib = _module("cupy.lib", {"stride_tricks": tricks})
    top |= {
        "ndarray": ndarray,
        "array": _array,
        "asarray": functools.partial(_array, copy=False),
        "cuda": cuda,
        "linalg": linalg,
        "fft": fft,
        "lib": lib,
        "RawModule": RawModule,
        "get_default_memory_pool": lambda: pool,
        "__version__": "14.2.0",
        "ufunc": np.ufunc,
    }
    top |= {n: getattr(np, n) for n in ("finfo", "iinfo", "broadcast_shapes", "isdtype")}
    special = _module("cupyx.scipy.special", _namespace(scipy.special))
    scipy_ = _module("cupyx.scipy", {"special": special})
    cupyx = _module(
        "cupyx",
        {
            "scipy": scipy_,
            "empty_pinned": np.empty,
            "rsqrt": functools.partial(_lifted, "rsqrt", np.sqrt),
            "errstate": lambda **kwargs: contextlib.nullcontext(),
        },
    )
    product = _module("nvmath.bindings.cublasLt", vars(cublaslt) | {"matmul": _matmul})
    every = [
        _module("cupy", top),
        lib,
        tricks,
        linalg,
        fft,
        cuda,
        device,
        runtime,
        compiler,
        cupyx,
        scipy_,
        special,
        _module("nvmath", {}),
        _module("nvmath.bindings", {}),
        product,
    ]
    return {m.__name__: m for m in every}


def install(with_cudnn: bool = True) -> None:
    """Have ``import cupy`` import this from now on; call before gpugrad asks for CuPy."""
    sys.modules.update(modules())
    library = _module("cudnn", vars(cudnn) | {"pygraph": pygraph})
    sys.modules |= {"cudnn": library if with_cudnn else None}  # type: ignore[dict-item]
