"""CuPy's kernels on NumPy arrays, as loops of one thread that the CUDA shim compiles and runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.errors import KernelError
from gpugrad.kernels.runtime.launch import type_name
from gpugrad.testing.cuda import shim

_HEAD = """
#include <complex>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
using std::complex;
typedef __half float16;
template <int N> struct CIndexer {
  const long long* shape_; ptrdiff_t size_; ptrdiff_t index_[N ? N : 1];
  ptrdiff_t size() const { return size_; }
  const long long* shape() const { return shape_; }
  void set(ptrdiff_t i) { for (int k = N; k--;) index_[k] = i % shape_[k], i /= shape_[k]; }
  const ptrdiff_t (&get() const)[N ? N : 1] { return index_; }
};
template <class T, int N> struct CArray {  // a `raw` argument
  T* data_; const long long* shape_; ptrdiff_t size_;
  ptrdiff_t size() const { return size_; }
  const long long* shape() const { return shape_; }
  T& operator[](ptrdiff_t i) const { return data_[i]; }
  template <class I, int M> T& operator[](const I (&index)[M]) const {
    ptrdiff_t i = 0;
    for (int k = 0; k < N; ++k) i = i * shape_[k] + index[k];
    return data_[i];
  }
};
"""


def c_type(dtype: Any) -> str:
    """CuPy's C++ type of a dtype."""
    return type_name(dtype).replace("Complex<", "complex<")


def launch(
    source: str, name: str, grid: Any, block: Any, args: Sequence[Any], **options: Any
) -> None:
    """Run a kernel on NumPy arrays; raises KernelError if it does not compile, or fails."""
    if why := shim.unavailable():
        raise KernelError(
            f"{name}: a CUDA kernel on the CPU {why}. Install one, use a GPU, or write the "
            "computation in array functions."
        )
    try:
        source = f'#include <stdio.h>\n#line 1 "{name}"\n{source}'
        shim.module(source, name).run(name, grid, block, args, **options)
    except shim.ShimError as error:
        raise KernelError(f"{name}: {error}") from error


def run(kernel: Any, types: dict[str, Any], shape: Any, axes: Any, values: Sequence[Any]) -> None:
    """Run an elementwise kernel, or a reduction along the axes; it writes to arrays of `values`."""
    kept = [k for k in range(len(shape)) if k not in axes]
    order, reduced = (*kept, *axes), math.prod(shape[k] for k in axes)
    parameters, args, declared = list[str](), list[Any](), list[str]()
    element: dict[bool, list[str]] = {False: [], True: []}

    def shaped(kind: str, name: str, lengths: Sequence[int], first: str) -> None:
        parameters.append(f"const long long* _shape_{name}")
        args.append(np.array([*lengths, 0], np.int64))
        parts = f"{first}_shape_{name}, {math.prod(lengths)}"
        declared.append(f"C{kind}{len(lengths)}> {name} = {{{parts}}};")

    for p, x in zip(kernel.params, values, strict=True):
        t, is_array = c_type(x.dtype), isinstance(x, np.ndarray)
        if p.raw:
            x = np.ascontiguousarray(x) if is_array else np.array(x)
            shaped(f"Array<{t}, ", p.name, x.shape, f"_data_{p.name}, ")
        elif is_array and x.size != 1 and not p.is_out:
            x = np.ascontiguousarray(np.broadcast_to(x, shape).transpose(order))
        args.append(x)
        if not is_array and not p.raw:
            parameters.append(f"const {t} {p.name}")
            continue
        parameters.append(f"{t}* _data_{p.name}")
        if not p.raw:
            at = "0" if x.size == 1 else "_i" if p.is_out else "i"
            const = "" if p.is_out else "const "
            element[p.is_out].append(f"{const}{t}& {p.name} = _data_{p.name}[{at}];")
    shaped("Indexer<", "_ind", [shape[k] for k in order], "")
    shaped("Indexer<", "_out_ind", [shape[k] for k in kept], "")
    define, body = kernel.loop(types, "\n".join(element[False]), "\n".join(element[True]), reduced)
    typedefs = "".join(f"typedef {c_type(t)} {n};\n" for n, t in types.items() if len(n) == 1)
    source = (
        f"{_HEAD}{typedefs}{kernel.preamble}\n{define}\n"
        f"__global__ void {kernel.name}({', '.join(parameters)}) {{\n"
        f"{' '.join(declared)}\nCIndexer<{len(shape)}>& _in_ind = _ind;\n{body}\n}}\n"
    )
    launch(source, kernel.name, 1, 1, args)
