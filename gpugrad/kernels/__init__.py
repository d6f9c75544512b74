"""CUDA kernels: sources, launchers, and the generator of elementwise kernels. C kernels in cpu/.

A launcher is a function ``(xp, *arrays, **params)`` on plain NumPy or CuPy arrays. It allocates
its results with ``xp.lib`` and launches a kernel. For a dtype, layout or size that the kernel does
not support it returns NotImplemented, and the op's formula runs instead. `launch` runs a kernel on
CuPy arrays; tests run the same launchers on NumPy arrays through `gpugrad.testing.cuda.shim`.
"""
