"""Runs and compiles CUDA kernels without a GPU.

- `shim` compiles kernel sources with g++ against its C++ headers and runs them on the CPU.
- `nvrtc` compiles kernels to machine code for any architecture and reports registers and spills.
- `driver` runs the real CuPy on made-up GPUs: whole programs, and CUDA graphs, without a GPU.
- `kernels` calls the generated kernels of elementwise ops: forward, and all gradients at once.
"""
