"""cuFFT by SciPy's pocketfft."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.fft

from gpugrad.testing.cuda.driver.libraries import Library, view, work, write

LIBRARY = Library("libcufft.so.12", failed=5, missing=16)


@dataclass
class _Plan:
    """A batch of transforms of an `n`-shaped grid; distances in elements."""

    stream: int = 0
    n: tuple[int, ...] = ()
    batch: int = 1
    inputs: tuple[tuple[int, ...], int, int] = field(default=((), 1, 0))  # sizes, stride, distance
    outputs: tuple[tuple[int, ...], int, int] = field(default=((), 1, 0))


_plans: dict[int, _Plan] = {}
_numbers = itertools.count(1)


@LIBRARY.function("cufftGetVersion", "p")
def get_version(to: int) -> None:
    """The version of CUDA 13.0."""
    write(to, "i4", 12000)


@LIBRARY.function("cufftCreate", "p")
def create(to: int) -> None:
    """Make a plan that is empty still."""
    number = next(_numbers)
    _plans[number] = _Plan()
    write(to, "i4", number)


@LIBRARY.function("cufftDestroy", "i")
def destroy(plan: int) -> None:
    """Forget a plan."""
    del _plans[plan]


@LIBRARY.function("cufftSetStream", "ip")
def set_stream(plan: int, stream: int) -> None:
    """The stream of a plan's work."""
    _plans[plan].stream = stream


@LIBRARY.function("cufftSetAutoAllocation", "ii")
def set_auto_allocation(plan: int, allocate: int) -> None:
    """Nothing: no work area is needed."""


@LIBRARY.function("cufftSetWorkArea", "ip")
def set_work_area(plan: int, area: int) -> None:
    """Nothing: no work area is needed."""


def _half_sizes(kind: int, n: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes of input and output for a ``cufftType``: half of the spectrum of real data."""
    half = (*n[:-1], n[-1] // 2 + 1)
    is_forward, is_inverse = kind in (0x2A, 0x6A), kind in (0x2C, 0x6C)  # R2C D2Z, C2R Z2D
    return tuple(half if is_inverse else n), tuple(half if is_forward else n)


@LIBRARY.function("cufftMakePlan1d", "iiiip")
def make_plan_1d(plan: int, n: int, kind: int, batch: int, size: int) -> None:
    """Contiguous one-dimensional transforms."""
    p, (inputs, outputs) = _plans[plan], _half_sizes(kind, (n,))
    p.n, p.batch = (n,), batch
    p.inputs, p.outputs = (inputs, 1, inputs[0]), (outputs, 1, outputs[0])
    write(size, "u8", 0)


@LIBRARY.function("cufftMakePlanMany", "iippiipiiiip")
def make_plan_many(*args: int) -> None:
    """Transforms of a grid that lies within a larger one."""
    plan, rank, n, inembed, istride, idist, onembed, ostride, odist, kind, batch, size = args
    p = _plans[plan]
    p.n, p.batch = tuple(view(n, "i4", (rank,)).tolist()), batch
    inputs, outputs = _half_sizes(kind, p.n)
    if inembed:
        inputs = tuple(view(inembed, "i4", (rank,)).tolist())
        outputs = tuple(view(onembed, "i4", (rank,)).tolist())
    else:  # contiguous
        istride, idist, ostride, odist = 1, int(np.prod(inputs)), 1, int(np.prod(outputs))
    p.inputs, p.outputs = (inputs, istride, idist), (outputs, ostride, odist)
    write(size, "u8", 0)


def _grid(
    layout: tuple[tuple[int, ...], int, int],
    pointer: int,
    dtype: Any,
    plan: _Plan,
    n: Sequence[int],
) -> Any:
    sizes, stride, distance = layout
    strides = [stride * int(np.prod(sizes[k + 1 :])) for k in range(len(sizes))]
    return view(pointer, dtype, (plan.batch, *n), (distance, *strides))


def _run(plan: int, name: str, kinds: str, source: int, target: int, inverse: bool) -> None:
    p = _plans[plan]
    axes = tuple(range(1, 1 + len(p.n)))
    half = (*p.n[:-1], p.n[-1] // 2 + 1)
    from_shape = half if kinds[1] in "fd" else p.n
    to_shape = half if kinds[0] in "fd" else p.n

    def run() -> None:
        x = _grid(p.inputs, source, kinds[0], p, from_shape)
        y = _grid(p.outputs, target, kinds[1], p, to_shape)
        if kinds[0] in "fd":
            y[...] = scipy.fft.rfftn(x, axes=axes)
        elif kinds[1] in "fd":
            y[...] = scipy.fft.irfftn(x, p.n, axes, norm="forward")
        elif inverse:
            y[...] = scipy.fft.ifftn(x, axes=axes, norm="forward")
        else:
            y[...] = scipy.fft.fftn(x, axes=axes)

    work(p.stream, "cufft", name, run)


def _register(name: str, kinds: str) -> None:
    def directed(plan: int, source: int, target: int, direction: int) -> None:
        _run(plan, name, kinds, source, target, direction == 1)

    def undirected(plan: int, source: int, target: int) -> None:
        _run(plan, name, kinds, source, target, False)

    both = kinds in ("FF", "DD")
    LIBRARY.function(f"cufftExec{name}", "ippi" if both else "ipp")(
        directed if both else undirected
    )


for _name, _kinds in (
    ("C2C", "FF"),
    ("R2C", "fF"),
    ("C2R", "Ff"),
    ("Z2Z", "DD"),
    ("D2Z", "dD"),
    ("Z2D", "Dd"),
):
    _register(_name, _kinds)
