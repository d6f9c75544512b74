"""gpugrad in other libraries: each module here registers Tensors with one of them.

``import gpugrad.integrations.einops`` and so on; the library must be installed. `import gpugrad`
imports none of them.
"""
