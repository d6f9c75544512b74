# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.core.tensor import Tensor
from gpugrad.typing import ArrayLike, Axis, DeviceLike, Shape
from typing import Any, SupportsIndex

__all__: list[str]

def dct(
    x: ArrayLike,
    /,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Tensor:
    """Discrete cosine transform along an axis, as SciPy's."""

def dctn(
    x: ArrayLike,
    /,
    type: int = 2,
    s: Shape | None = None,
    axes: Axis = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Tensor:
    """`dct` along several axes."""

def dst(
    x: Any,
    /,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Tensor:
    """Discrete sine transform along an axis, as SciPy's; arguments as `dct`."""

def dstn(
    x: ArrayLike,
    /,
    type: int = 2,
    s: Shape | None = None,
    axes: Axis = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Tensor:
    """`dst` along several axes."""

def fft(
    x: ArrayLike,
    /,
    n: SupportsIndex | None = None,
    axis: Axis = -1,
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Discrete Fourier transform along an axis: sum over j of x_j exp(-2 pi i j k / n)."""

def fft2(
    x: ArrayLike,
    /,
    s: Shape | None = None,
    axes: Axis = (-2, -1),
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Discrete Fourier transform along two axes: `fftn` of the last two."""

def fftfreq(n: int, d: float = 1.0, *, xp: Any = None, device: DeviceLike = None) -> Tensor:
    """The frequencies of the results of `fft`, in float64."""

def fftn(
    x: ArrayLike,
    /,
    s: Shape | None = None,
    axes: Axis = None,
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Discrete Fourier transform along several axes."""

def fftshift(x: ArrayLike, /, axes: Axis = None) -> Tensor:
    """Move the frequency 0 of a transform from the start to the middle."""

def fht(a: ArrayLike, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Tensor:
    """Fast Hankel transform of a periodic sequence with logarithmic spacing, as SciPy's."""

def fhtoffset(dln: float, mu: float, initial: float = 0.0, bias: float = 0.0) -> float:
    """Offset near `initial` with which `fht` rings least."""

def hfft(
    x: ArrayLike,
    /,
    n: SupportsIndex | None = None,
    axis: Axis = -1,
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Fourier transform, which is real, of an array that is symmetric: x_-k = conj(x_k)."""

def hfft2(
    x: ArrayLike,
    /,
    s: Shape | None = None,
    axes: Axis = (-2, -1),
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
) -> Tensor:
    """Fourier transform, which is real, of an array whose half is `x`, as for `hfft`, along two
    axes: `hfftn` of the last two.
    """

def hfftn(
    x: ArrayLike,
    /,
    s: Shape | None = None,
    axes: Axis = None,
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
) -> Tensor:
    """Fourier transform, which is real, of an array whose half is `x`, as for `hfft`, along
    several axes.
    """

def idct(
    x: Any,
    /,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Tensor:
    """Inverse of `dct` with the same arguments; ``"backward"`` divides, ``"forward"`` does not."""

def idctn(
    x: ArrayLike,
    /,
    type: int = 2,
    s: Shape | None = None,
    axes: Axis = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Tensor:
    """`idct` along several axes."""

def idst(
    x: Any,
    /,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Tensor:
    """Inverse of `dst` with the same arguments."""

def idstn(
    x: ArrayLike,
    /,
    type: int = 2,
    s: Shape | None = None,
    axes: Axis = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Tensor:
    """`idst` along several axes."""

def ifft(
    x: ArrayLike,
    /,
    n: SupportsIndex | None = None,
    axis: Axis = -1,
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Inverse discrete Fourier transform along an axis."""

def ifft2(
    x: ArrayLike,
    /,
    s: Shape | None = None,
    axes: Axis = (-2, -1),
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Inverse discrete Fourier transform along two axes: `ifftn` of the last two."""

def ifftn(
    x: ArrayLike,
    /,
    s: Shape | None = None,
    axes: Axis = None,
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Inverse discrete Fourier transform along several axes."""

def ifftshift(x: ArrayLike, /, axes: Axis = None) -> Tensor:
    """Move the frequency 0 from the middle back to the start; the inverse of `fftshift`."""

def ifht(A: Any, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Tensor:
    """Inverse of `fht` with the same arguments."""

def ihfft(
    x: ArrayLike,
    /,
    n: SupportsIndex | None = None,
    axis: Axis = -1,
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """First half of the symmetric array whose transform is `x`; the inverse of `hfft`."""

def ihfft2(
    x: ArrayLike,
    /,
    s: Shape | None = None,
    axes: Axis = (-2, -1),
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
) -> Tensor:
    """Half of the symmetric array whose transform is `x`, the inverse of `hfftn`, along two
    axes: `ihfftn` of the last two.
    """

def ihfftn(
    x: ArrayLike,
    /,
    s: Shape | None = None,
    axes: Axis = None,
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
) -> Tensor:
    """Half of the symmetric array whose transform is `x`, the inverse of `hfftn`, along several
    axes.
    """

def irfft(
    x: ArrayLike,
    /,
    n: SupportsIndex | None = None,
    axis: Axis = -1,
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Real array from the first half of its spectrum; the inverse of `rfft`."""

def irfft2(
    x: ArrayLike,
    /,
    s: Shape | None = None,
    axes: Axis = (-2, -1),
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Inverse of `rfftn`: real array from its half spectrum along two axes: `irfftn` of the last
    two.
    """

def irfftn(
    x: ArrayLike,
    /,
    s: Shape | None = None,
    axes: Axis = None,
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Inverse of `rfftn`: real array from its half spectrum along several axes."""

def next_fast_len(target: int, real: bool = False) -> int:
    """Smallest length from `target` on that transforms fast."""

def prev_fast_len(target: int, real: bool = False) -> int:
    """Largest length up to `target` that transforms fast."""

def rfft(
    x: ArrayLike,
    /,
    n: SupportsIndex | None = None,
    axis: Axis = -1,
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Discrete Fourier transform of a real array along an axis: the first half of `fft`."""

def rfft2(
    x: ArrayLike,
    /,
    s: Shape | None = None,
    axes: Axis = (-2, -1),
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Discrete Fourier transform of a real array along two axes: `rfftn` of the last two."""

def rfftfreq(n: int, d: float = 1.0, *, xp: Any = None, device: DeviceLike = None) -> Tensor:
    """The frequencies of the results of `rfft`, in float64."""

def rfftn(
    x: ArrayLike,
    /,
    s: Shape | None = None,
    axes: Axis = None,
    norm: str = "backward",
    overwrite_x: bool = False,
    workers: Any = None,
    *,
    plan: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Discrete Fourier transform of a real array along several axes."""
