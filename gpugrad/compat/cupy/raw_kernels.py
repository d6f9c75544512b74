"""CuPy's ``RawKernel`` and ``RawModule`` on Tensors: kernels whose source says all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.array_api.writes import begin_write
from gpugrad.compat.cupy import on_host
from gpugrad.compat.cupy.kernels import Kernel, evaluate, is_array
from gpugrad.core.backend import cupy
from gpugrad.core.forking import cached_property
from gpugrad.errors import ArgumentError, KernelError


class RawKernel(Kernel):
    """A kernel of CUDA source, as CuPy's ``RawKernel``, with derivatives besides.

    Tensors whose parameter is a pointer to const are read. What the kernel writes to the others is
    a recorded write of these Tensors.

    Args:
        vjp: functions ``(xp, g, names...)`` by the names of parameters; `g` is the gradient of the
            written array, `out` its new value: tuples, if there are several.

    >>> import gpugrad.compat.cupy as cp
    >>> twice = cp.RawKernel('''extern "C" __global__
    ...     void twice(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }''',
    ...     "twice", vjp={"x": lambda xp, g: 2 * g})
    >>> y = cp.empty(3, cp.float32)
    >>> twice((1,), (3,), (cp.arange(3, dtype="f4"), y))
    >>> y.tolist()
    [0.0, 2.0, 4.0]
    """

    max_dynamic_shared_size_bytes: int | None = None

    def __init__(
        self,
        code: str,
        name: str,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        *,
        module: Any = None,
        vjp: Any = None,
        **others: Any,
    ) -> None:
        self.code, self._module = code, module
        self._parameters = _parameters_of(code, name.partition("<")[0].strip())
        names = [n for n, _, _ in self._parameters]
        definition = code, name, tuple(options), backend
        super().__init__(re.sub(r"\W+", "_", name).strip("_"), definition, others, names, None, vjp)

    @cached_property
    def on_gpu(self) -> Any:
        """CuPy's own kernel."""
        module, (code, name, *rest) = self._module, self._definition
        if module is not None:
            return module.on_gpu.get_function(name)
        return cupy().RawKernel(code, name, *rest, **self._options)

    def __call__(
        self, grid: Any, block: Any, args: Sequence[Any], *, shared_mem: int = 0, stream: Any = None
    ) -> None:
        """Launch the kernel."""
        size = {"grid": tuple(grid), "block": tuple(block), "shared_mem": int(shared_mem)}
        written = self._written(args)
        for k in written:
            begin_write(args[k])
        results = self._apply(args, size, max(len(written), 1))
        for k, result in zip(written, results, strict=False):
            args[k][...] = result

    def _written(self, args: Sequence[Any]) -> list[int]:
        """The positions of the arrays that the kernel may write to."""
        known = [read for _, read, _ in self._parameters]
        is_read = known if len(known) == len(args) else [False] * len(args)
        return [k for k, x in enumerate(args) if is_array(x) and not is_read[k]]

    def _run(self, lib: Any, values: list[Any], options: dict[str, Any]) -> Sequence[Any]:
        written, shared = self._written(values), options["shared_mem"]
        copies = {id(values[k]): lib.array(values[k]) for k in written}
        args = [copies.get(id(x), x) for x in values]
        if lib is not np:
            if self.max_dynamic_shared_size_bytes is not None:
                self.on_gpu.max_dynamic_shared_size_bytes = self.max_dynamic_shared_size_bytes
            self.on_gpu(options["grid"], options["block"], tuple(args), shared_mem=shared)
        else:
            kinds = [kind for _, _, kind in self._parameters] or ["long"] * len(args)
            numbers = list(map(_number, args, kinds))
            together = bool(self._options.get("enable_cooperative_groups"))
            name, size = self._definition[1], (options["grid"], options["block"])
            macros = [o[2:].partition("=") for o in self._definition[2] if o[:2] == "-D"]
            code = "".join(f"#define {n} {v or 1}\n" for n, _, v in macros) + self.code
            on_host.launch(code, name, *size, numbers, shared=shared, cooperative=together)
        return [args[k] for k in written] or [lib.zeros(0)]

    def _gradient(self, xp: Any, g: Any, values: list[Any], out: Any, k: int, axis: Any) -> Any:
        known = dict(zip((n for n, _, _ in self._parameters), values, strict=True))
        rule = self._vjp.get(self._parameters[k][0])
        return rule and evaluate(rule, xp, {**known, "g": g, "out": out})


def _number(x: Any, ctype: str) -> Any:
    """A number in NumPy's type for a parameter; Python's ints fit any, as in CuPy."""
    if type(x) is int:
        return (np.int64 if re.search("long|64|size_t|ptrdiff", ctype) else np.int32)(x)
    return np.array(x)[()] if type(x) in (bool, float, complex) else x


def _parameters_of(code: str, name: str) -> list[tuple[str, bool, str]]:
    """(name, whether a pointer to const, type) of a kernel's parameters, if they are found."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/|__restrict__", "", code or "", flags=re.DOTALL)
    match = re.search(rf"__global__[^;{{]*?\b{re.escape(name)}\s*\(([^){{;]*)\)", code)
    parts = re.split(r",(?![^<]*>)", match[1]) if match else []
    found = [re.fullmatch(r"\s*(.*?)(\w+)\s*(?:\[\s*\])?\s*", part, re.DOTALL) for part in parts]
    return [(m[2], "const" in m[1].split("*")[0] and "*" in m[1], m[1]) for m in found if m]


class RawModule:
    """A module of CUDA source, as CuPy's ``RawModule``; `path` needs a GPU."""

    def __init__(self, *, code: str | None = None, path: str | None = None, **options: Any) -> None:
        if (code is None) == (path is None):
            raise ArgumentError("RawModule: either code= or path= is needed.")
        self.code, self._options = code, {"code": code, "path": path, **options}

    @cached_property
    def on_gpu(self) -> Any:
        """CuPy's own module."""
        return cupy().RawModule(**self._options)

    def get_function(self, name: str, *, vjp: Any = None) -> RawKernel:
        """The kernel of a name, or name expression; `vjp` as for `RawKernel`."""
        if self.code is None and not gg.cuda.is_available():
            raise KernelError(f"RawModule: {self._options['path']} needs a GPU; pass code=.")
        names = ("options", "enable_cooperative_groups")
        others = {n: self._options[n] for n in names if n in self._options}
        return RawKernel(self.code or self._options["path"], name, module=self, vjp=vjp, **others)
