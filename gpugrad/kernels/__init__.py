"""CUDA kernels: their sources, what launches them, and what writes the generated ones.

A launcher is a function ``(xp, *arrays, **params)`` of bare arrays that allocates its results by
``xp.lib`` and launches a kernel, or returns NotImplemented for what its kernel does not do (a
dtype, a layout, a size): the op's formula runs then. `launch` runs a kernel on CuPy arrays; tests
run the same launchers on NumPy arrays through `gpugrad.testing.cuda.shim`.
"""
