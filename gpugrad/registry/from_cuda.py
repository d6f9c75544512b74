"""Ops from a user's CUDA source: declared in ten lines, checked on the CPU by the shim.

Each such op has a formula as well as a kernel. The formula runs where the kernel does not: on NumPy
arrays, for dtypes that the kernel was not written for, and under transformations.
`gpugrad.testing.check_op` compares the kernel with it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, NUMPY, SCALARS, as_dtype
from gpugrad.errors import ArgumentError, saying_where
from gpugrad.kernels.by_hand.rows import FLOATS
from gpugrad.kernels.codegen.code import Code, cast, compute_dtype
from gpugrad.kernels.codegen.elementwise import Elementwise
from gpugrad.kernels.runtime.launch import headers, launch, type_name
from gpugrad.registry.on_arrays import typed
from gpugrad.registry.record import elementwise, names_in, op

# ---- elementwise ------------------------------------------------------------------------


@saying_where
def elementwise_kernel(
    signature: str,
    cuda: str,
    *,
    formula: Callable[..., Any],
    d: Sequence[Any],
    preamble: str = "",
    ref: Any = None,
    doc: str = "",
    example: tuple[str, str] | None = None,
    **record: Any,
) -> Callable[..., Any]:
    """Declare an elementwise op whose kernel is an expression of CUDA C++.

    The kernel reads and writes 16 bytes at a time where the arrays are contiguous, computes
    float16 and bfloat16 in float32, and broadcasts arrays and reads views without copying them.

    Args:
        signature: ``"name(x, y)"``; names as for `gpugrad.elementwise`.
        cuda: expression of one element, or the body of a function with ``return``. `x` and `y` are
            of type ``T``, float or double; write literals as ``T(0.5)``, because 0.5 is a double.
        formula: the same function ``(xp, x, y)``, in gpugrad's ops.
        d: one partial derivative for each input: a number, or a formula whose parameters name what
            it needs: inputs, and ``out``. A derivative with its own kernel calls another such op by
            name: ``lambda xp, x: xp.my_derivative(x)``.
        preamble: CUDA C++ to put before the kernel: functions that `cuda` calls.
        ref: function of NumPy arrays for `gpugrad.testing.check_op`; the formula if None.
        doc, example: as for `gpugrad.elementwise`.
        record: other arguments of `gpugrad.elementwise`: ``domain=``, ``samples=``, ``errors=``.

    Returns:
        The op: a function of Tensors, also called ``gg.name`` and, in formulas, ``xp.name``.

    Raises:
        ArgumentError: an op of that name exists already, or `signature` is not a signature.
        KernelError: on the first call on a GPU, if the compiler rejects the expression. The message
            has the op, the dtype, the architecture and the compiler's lines.

    >>> softplus_of = gg.elementwise_kernel(
    ...     "softplus_of(x, beta)", "log1p(exp(beta * x)) / beta",
    ...     formula=lambda xp, x, beta: xp.log1p(xp.exp(beta * x)) / beta,
    ...     d=[lambda xp, x, beta: xp.sigmoid(beta * x),
    ...        lambda xp, x, beta, out: (x * xp.sigmoid(beta * x) - out) / beta],
    ...     domain=[(-2, 2), (0.5, 2)],
    ... )
    >>> print(softplus_of(gg.constant([0.0, 3.0]), 2.0))
    [0.3465736 3.0012379]
    >>> gg.testing.check_op("softplus_of", checks=["vjp", "jvp", "second_order", "kernel"])
    >>> forgotten = gg.OPS.pop("softplus_of")
    """
    name, arrays = names_in(signature)
    body = cuda if re.search(r"\breturn\b", cuda) else f"return {cuda};"
    return elementwise(
        signature, forward=lambda xp, *args: formula(xp, *typed(*args)), d=d,
        cuda=_elementwise_launcher(name, arrays, preamble, body),
        ref=ref or functools.partial(formula, NUMPY),
        doc=doc or f"The kernel ``{cuda.strip()}`` of each element.",
        example=example or (", ".join(["gg.zeros(0)"] * len(arrays)), "[]"), **record,
    )  # fmt: skip


def _elementwise_launcher(
    name: str, arrays: Sequence[str], preamble: str, body: str
) -> Callable[..., Any]:
    """The launcher of a generated kernel of one step: a call of the user's function."""
    parameters = ", ".join(f"T {a}" for a in arrays)
    function = f"template <class T> __device__ T {name}_of({parameters}) {{ {body} }}\n"
    head = f'{headers("elementwise.cuh")}{preamble}\n#line 1 "{name}"\n{function}'

    @functools.cache
    def kernel(xp: Any, *kinds: Any) -> Elementwise:  # one remembers calls with arrays of a library
        dtype = next(k for k in kinds if k is not float)
        wide = compute_dtype(dtype)

        def formula(*codes: Code) -> list[Code]:
            own = codes[0].body
            values = [cast(own, c, wide) for c in codes]
            return [own.add("call", wide, *values, how=f"{name}_of<{{T}}>()")]

        return Elementwise(name, kinds, formula, [dtype], head)

    def launcher(xp: Any, *values: Any) -> Any:
        if any(isinstance(a, (complex, np.complexfloating)) for a in values):
            return NotImplemented
        values = tuple(float(a) if _is_number(a) else a for a in values)
        kinds = [float if type(a) is float else a.dtype for a in values]
        if len({*kinds} - {float}) != 1 or not {*kinds} <= {float, *FLOATS}:
            return NotImplemented  # the formula determines promotion
        results = kernel(xp, *kinds)(*values)
        return results if results is NotImplemented else results[0]

    return launcher


def _is_number(a: Any) -> bool:
    return type(a) in SCALARS or isinstance(a, np.generic)  # a weak number next to bfloat16


# ---- any kernel -------------------------------------------------------------------------


def raw_kernel(
    source: str,
    *,
    grid: Callable[..., Any] | int | Sequence[int],
    block: Callable[..., Any] | int | Sequence[int] = 256,
    scalars: Callable[..., Sequence[Any]] | None = None,
    results: Callable[..., Any] | None = None,
    shared: Callable[..., int] | int = 0,
    dtypes: Sequence[Any] | None = None,
    **record: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare an op with a CUDA kernel, from its formula; a decorator.

    The kernel has the op's name. It gets pointers to the op's arrays as C-contiguous copies if
    necessary (null for an omitted one), to its results, and then the scalars. `grid`, `block`,
    `scalars`, `results` and `shared` may be functions of the op's arguments: the formula's, without
    `xp`.

    Args:
        source: CUDA C++ with ``__global__ void name(...)``. As a template ``template <class T>`` it
            is compiled for the dtype of the first array; ``compute_t<T>`` is float for 16-bit
            floats, and `gpugrad/kernels/runtime/common.cuh` has reductions over a warp and a block.
        grid, block: numbers of blocks and of threads, in up to three directions. With 0 blocks
            nothing is launched, and the results are zeros.
        scalars: the remaining arguments: an int is passed as ``long long``, a float as
            ``compute_t<T>``, a NumPy scalar in its own type.
        results: shape and dtype of the result, ``(shape, dtype)``, or a list of such pairs. None
            means the first array's shape and dtype.
        shared: bytes of dynamic shared memory.
        dtypes: dtypes of the first array for which the kernel runs; for others the formula runs. By
            default all floats if the source is a template, or else float32. Other floating-point
            arrays must agree.
        record: arguments of `gg.op`: ``vjp=``, ``samples=``, ``ref=``, ``errors=``, ... A CUDA
            graph may hold the launch; ``captures=False`` forbids it where `grid`, `scalars` or
            `results` read values.

    Raises:
        ArgumentError: the source has no kernel of the op's name, or there is such an op already.
            KernelError: on the first call on a GPU, if the compiler rejects the source. The message
            has the op, the dtype, the architecture and the compiler's lines.

    >>> def samples(rng):
    ...     yield [rng.normal(size=(5, 40))], {}
    >>> @gg.raw_kernel(
    ...     '''
    ...     template <class T> __global__ void row_norm(const T* x, T* out, long long n) {
    ...       __shared__ compute_t<T> scratch[32];
    ...       compute_t<T> sum = 0;
    ...       for (int i = threadIdx.x; i < n; i += blockDim.x) {
    ...         compute_t<T> v = x[blockIdx.x * n + i];
    ...         sum += v * v;
    ...       }
    ...       sum = block_reduce(sum, Sum(), compute_t<T>(0), scratch);
    ...       if (threadIdx.x == 0) out[blockIdx.x] = T(sqrt(sum));
    ...     }''',
    ...     grid=lambda x: x.shape[0], block=64, scalars=lambda x: [x.shape[1]],
    ...     results=lambda x: (x.shape[:1], x.dtype), samples=samples,
    ...     vjp=[lambda xp, g, x, out: xp.expand_dims(g / out, axis=1) * x],
    ... )
    ... def row_norm(xp, x, /):
    ...     return xp.sqrt(xp.sum(x * x, axis=1))
    >>> gg.testing.check_op("row_norm", checks=["vjp", "second_order", "kernel"])
    >>> forgotten = gg.OPS.pop("row_norm")
    """

    def declare(formula: Callable[..., Any]) -> Callable[..., Any]:
        name = record.get("name") or formula.__name__
        if not re.search(rf"__global__[^;{{]*\b{name}\s*\(", source):
            raise ArgumentError(f"raw_kernel: the source has no __global__ function {name!r}.")
        template = bool(re.search(r"template\s*<[^>]*>\s*__global__", source))
        which = {as_dtype(t) for t in dtypes or (FLOATS if template else (np.float32,))}

        text = f'#line 1 "{name}"\n{source}'  # so that the compiler's line numbers match the source

        def launcher(xp: Any, *arrays: Any, **params: Any) -> Any:
            first = arrays[0]
            floats = {a.dtype for a in arrays if hasattr(a, "dtype") and a.dtype.kind in "fcV"}
            if getattr(first, "dtype", None) not in which or len(floats | {first.dtype}) > 1:
                return NotImplemented
            if any(type(a) in SCALARS for a in arrays):
                return NotImplemented

            def asked(what: Any) -> Any:
                return what(*arrays, **params) if callable(what) else what

            layout = asked(results) if results is not None else (first.shape, first.dtype)
            several = isinstance(layout, list)
            outs = [
                xp.lib.zeros(shape, dtype=dtype)
                for shape, dtype in (layout if several else [layout])
            ]
            blocks = asked(grid)
            if min((blocks,) if isinstance(blocks, int) else blocks) > 0:
                inputs = [None if a is None else xp.lib.ascontiguousarray(a) for a in arrays]
                numbers = [_scalar(v, first.dtype) for v in (asked(scalars) if scalars else ())]
                kernel = f"{name}<{type_name(first.dtype)}>" if template else name
                args = (*inputs, *outs, *numbers)
                launch(text, kernel, blocks, asked(block), args, asked(shared))
            return tuple(outs) if several else outs[0]

        return op(cuda=launcher, **record)(formula)

    return declare


def _scalar(value: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, np.generic):
        return value
    if isinstance(value, (int, bool)):
        return np.int64(value)
    return (np.float32 if dtype in HALF else dtype.type)(value)
