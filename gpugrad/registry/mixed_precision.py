"""Mixed precision: products in 16-bit floats, sums and losses in float32, Variables in float32."""

from __future__ import annotations

from typing import Any

from gpugrad.core.backend import HALF, as_dtype
from gpugrad.core.settings import Block, mixed_modes
from gpugrad.errors import ArgumentError
from gpugrad.registry.on_tensors import rewrite


class mixed_precision(Block):  # it reads as a statement
    """Compute with 16-bit floats where they suffice, in a ``with`` block; also decorates functions.

    Matrix products, convolutions and attention cast float32 arguments to the 16-bit dtype, for the
    tensor cores of a GPU. Exponentials, powers, sums, norms and losses cast 16-bit arguments to
    float32, since their results may be large or lose digits. All other ops compute in the dtype of
    their arguments. The op's record says which kind it is (``mixed=``), also for a user's op.
    float64 stays float64.

    Variables and their gradients stay in float32, so optimizers need nothing; with ``"float16"``,
    small gradients vanish unless a `gg.optim.LossScaleOptimizer` scales the loss. Derivatives are
    computed in the dtypes of the forward pass, wherever ``tape.gradient`` is called. `gg.function`
    traces once for each precision.

    Args:
        dtype: ``"bfloat16"`` or ``"float16"``; None computes as usual in an inner block.

    Raises:
        ArgumentError: another dtype.

    >>> x, w = gg.ones((2, 3)), gg.Variable(np.ones((3, 2), np.float32))
    >>> with gg.mixed_precision("bfloat16"), gg.GradientTape() as tape:
    ...     y = x @ w
    ...     loss = gg.sum(y)
    >>> print(y.dtype, loss.dtype, tape.gradient(loss, w).dtype)
    bfloat16 float32 float32
    """

    def __init__(self, dtype: Any) -> None:
        if dtype is not None:
            try:
                dtype = as_dtype(dtype)
            except Exception as error:
                raise ArgumentError(f"mixed_precision: {dtype!r:.60} is no dtype.") from error
            if dtype not in HALF:
                raise ArgumentError(
                    f"mixed_precision: the dtype must be 'bfloat16' or 'float16', got '{dtype}'."
                )
        self.dtype = dtype
        super().__init__("mixed", dtype, "mixed_precision")

    def __enter__(self) -> None:
        if not mixed_modes:
            mixed_modes.append(True)
            rewrite()
        super().__enter__()
