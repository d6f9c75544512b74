"""The Transformer block: attention and a perceptron, each with a norm and a residual connection."""

from __future__ import annotations

from typing import Any

from gpugrad.core.arguments import COUNT, FLAG, optional, takes
from gpugrad.core.tensor import Tensor
from gpugrad.nn import functional
from gpugrad.nn.attention import KeyValueCache, MultiHeadAttention
from gpugrad.nn.initializers import Initializer, glorot_uniform
from gpugrad.nn.layers import Activation, Dense, Dropout
from gpugrad.nn.module import Module
from gpugrad.nn.normalization import LayerNorm
from gpugrad.ops.random.generator import Generator


class TransformerBlock(Module):
    """Attention and a two-layer perceptron, each with a norm and a residual connection.

    Args:
        width, heads, kv_heads, causal, rotary, use_bias, kernel_initializer, generator, dtype: as
            for `MultiHeadAttention`.
        hidden: width of the perceptron's hidden layer; by default four times `width`.
        activation: the perceptron's activation.
        norm: the class of the norms, called with (width, dtype=dtype).
        norm_first: whether norms come before attention and perceptron, as in GPT-2; if not, after
            the residual sums, as in the first Transformer.
        dropout: probability of dropping a weight of the softmax, and a feature of each branch.

    Attributes:
        attention: the MultiHeadAttention.
        norm1, norm2: the norms of attention and perceptron.
        hidden, out: the perceptron's Dense layers.
        dropout: the Dropout of both branches.

    >>> block = gg.nn.TransformerBlock(16, heads=4, causal=True)
    >>> block(gg.ones((2, 5, 16))).shape
    (2, 5, 16)
    """

    @takes(width=COUNT, heads=COUNT, hidden=optional(COUNT), norm_first=FLAG)
    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int | None = None,
        *,
        activation: Activation = functional.gelu,
        norm: Any = LayerNorm,
        norm_first: bool = True,
        kv_heads: int | None = None,
        causal: bool = False,
        rotary: bool = False,
        dropout: float = 0.0,
        use_bias: bool = True,
        kernel_initializer: Initializer = glorot_uniform,
        generator: Generator | None = None,
        dtype: Any = "float32",
    ) -> None:
        how: dict[str, Any] = {
            "use_bias": use_bias,
            "kernel_initializer": kernel_initializer,
            "generator": generator,
            "dtype": dtype,
        }
        self.norm1 = norm(width, dtype=dtype)
        self.attention = MultiHeadAttention(
            width, heads, kv_heads=kv_heads, causal=causal, rotary=rotary, dropout=dropout, **how
        )
        self.norm2 = norm(width, dtype=dtype)
        hidden = 4 * width if hidden is None else hidden
        self.hidden = Dense(width, hidden, activation, **how)
        self.out = Dense(hidden, width, **how)
        self.dropout = Dropout(dropout) if dropout else None
        self.norm_first = norm_first

    def forward(self, x: Any, *, mask: Any = None, cache: KeyValueCache | None = None) -> Any:
        """Map x of shape (..., length, width) to the same shape.

        `mask` and `cache` are those of `MultiHeadAttention`.

        Returns:
            The output; with a cache, the pair (output, next cache).
        """
        y = self.attention(self.norm1(x) if self.norm_first else x, mask=mask, cache=cache)
        if cache is not None:
            y, cache = y
        x = x + self._dropped(y)
        if not self.norm_first:
            x = self.norm1(x)
        y = self._dropped(self.out(self.hidden(self.norm2(x) if self.norm_first else x)))
        x = x + y
        if not self.norm_first:
            x = self.norm2(x)
        return x if cache is None else (x, cache)

    def _dropped(self, y: Tensor) -> Tensor:
        return y if self.dropout is None else self.dropout(y)
