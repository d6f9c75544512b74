"""Parts of complex numbers, and complex numbers from parts."""

from gpugrad.errors import DTypeError
from gpugrad.registry.on_arrays import typed
from gpugrad.registry.record import elementwise


def _write_imag(xp, x, part):
    if x.dtype.kind != "c":
        raise DTypeError(f"imag: a {x.dtype} array has no imaginary part to write to.")
    return xp.complex(xp.real(x), part)


real = elementwise(
    "real(x)",
    kinds="fc",
    forward=lambda xp, x: xp.lib.real(x).copy(),
    ref="numpy.real",
    vjp=[lambda xp, g, x_dtype: xp.astype(g, x_dtype)],
    jvp=[lambda xp, t: xp.real(t)],
    doc="Real part.",
    example=("1 + 2j", "1.0"),
    captures=True,
    writes=lambda xp, x, part: part if x.dtype.kind != "c" else xp.complex(part, xp.imag(x)),
)
imag = elementwise(
    "imag(x)",
    kinds="fc",
    forward=lambda xp, x: xp.lib.imag(x).copy(),
    ref="numpy.imag",
    vjp=[lambda xp, g, x_dtype: g * 1j if x_dtype.kind == "c" else g * 0],
    jvp=[lambda xp, t: xp.imag(t)],
    doc="Imaginary part.",
    example=("1 + 2j", "2.0"),
    writes=_write_imag,
)
conj = elementwise(
    "conj(x)",
    vjp=[lambda xp, g: xp.conj(g)],
    jvp=[lambda xp, t: xp.conj(t)],
    kinds="fc",
    doc="Complex conjugate.",
    example=("1 + 2j", "(1-2j)"),
    cost=0,
)


def _complex_forward(xp, x, y):
    """Parts are stored one by one: ``x + 1j * y`` has a real part of NaN where y is infinite."""
    lib = xp.lib
    x, y = lib.broadcast_arrays(*(lib.asarray(a) for a in typed(x, y)))
    if lib.result_type(x, y).kind == "c":  # storing a part would drop the imaginary part
        raise DTypeError("complex: the parts must be real. For complex ones write x + 1j * y.")
    out = lib.empty(x.shape, dtype=lib.result_type(x, y, lib.complex64))
    out.real[...], out.imag[...] = x, y
    return out


complex_ = elementwise(
    "complex(x, y)",
    vjp=[lambda xp, g: xp.real(g), lambda xp, g: xp.imag(g)],
    jvp=[lambda xp, t: t + 0j, lambda xp, t: t * 1j],
    forward=_complex_forward,
    ref=lambda x, y: x + 1j * y,
    doc="Complex number with real part `x` and imaginary part `y`.",
    example=("1.0, 2.0", "(1+2j)"),
    captures=True,
)
