"""The Transformer block: attention and a perceptron, each with a norm and a residual connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpugrad.core.arguments import COUNT, FLAG, optional, takes
from gpugrad.errors import ArgumentError
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
        width, heads, kv_heads, causal, rotary, rotary_base, use_bias, kernel_initializer,
            generator, dtype: as for `MultiHeadAttention`.
        hidden: width of the perceptron's hidden layer; by default four times `width`.
        activation: the perceptron's activation.
        gated: whether the activation halves its input, as `gg.nn.swiglu` does. The hidden layer
            then has twice as many units.
        norm: the class of the norms, called with (width, dtype=dtype). For another eps pass
            ``functools.partial(gg.nn.LayerNorm, eps=1e-12)``.
        norm_first: whether norms come before attention and perceptron, as in GPT-2; if not, after
            the residual sums, as in the first Transformer.
        context_width: length of the last axis of `context`, to which a decoder's block attends
            after its input. If None, it attends to its input only.
        dropout: probability of dropping a weight of the softmax, and a feature of each branch.

    Attributes:
        attention: the MultiHeadAttention.
        context_attention: the MultiHeadAttention to the context, or None.
        norm1, norm2, norm3: the norms of attention, attention to the context, and perceptron;
            without a context norm2 is the perceptron's, and norm3 is None.
        hidden, out: the perceptron's Dense layers.
        dropout: the Dropout of all branches.

    >>> block = gg.nn.TransformerBlock(16, heads=4, causal=True)
    >>> block(gg.ones((2, 5, 16))).shape
    (2, 5, 16)
    >>> decoder = gg.nn.TransformerBlock(16, heads=4, causal=True, context_width=8)
    >>> decoder(gg.ones((2, 5, 16)), gg.ones((2, 9, 8))).shape
    (2, 5, 16)
    """

    @takes(width=COUNT, heads=COUNT, hidden=optional(COUNT), norm_first=FLAG, gated=FLAG)
    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int | None = None,
        *,
        activation: Activation = functional.gelu,
        gated: bool = False,
        norm: Any = LayerNorm,
        norm_first: bool = True,
        kv_heads: int | None = None,
        causal: bool = False,
        rotary: bool = False,
        rotary_base: float = 10_000.0,
        context_width: int | None = None,
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
        attention = {"kv_heads": kv_heads, "dropout": dropout, **how}
        self.norm1 = norm(width, dtype=dtype)
        self.attention = MultiHeadAttention(
            width, heads, causal=causal, rotary=rotary, rotary_base=rotary_base, **attention
        )
        self.norm2 = norm(width, dtype=dtype)
        self.context_attention = self.norm3 = None
        if context_width is not None:
            self.context_attention = MultiHeadAttention(
                width, heads, context_width=context_width, **attention
            )
            self.norm3 = norm(width, dtype=dtype)
        hidden = 4 * width if hidden is None else hidden
        self.hidden = Dense(width, 2 * hidden if gated else hidden, activation, **how)
        self.out = Dense(hidden, width, **how)
        self.dropout = Dropout(dropout) if dropout else None
        self.norm_first, self.gated = norm_first, gated

    def forward(
        self,
        x: Any,
        context: Any = None,
        *,
        mask: Any = None,
        context_mask: Any = None,
        cache: KeyValueCache | None = None,
    ) -> Any:
        """Map x of shape (..., length, width) to the same shape.

        `mask` and `cache` are those of `MultiHeadAttention`, `context` and `context_mask` the
        context and the mask of the attention to it.

        Returns:
            The output; with a cache, the pair (output, next cache).

        Raises:
            ArgumentError: `context` or `context_mask` is not expected, or `context` is missing.
        """
        attend = self.context_attention
        if attend is None and not (context is None and context_mask is None):
            raise ArgumentError("TransformerBlock: this block takes no context: set context_width.")

        def attention(x: Any) -> Any:
            nonlocal cache
            y = self.attention(x, mask=mask, cache=cache)
            if cache is not None:
                y, cache = y
            return y

        last = self.norm2
        x = self._plus(attention, self.norm1, x)
        if attend is not None:
            x = self._plus(lambda x: attend(x, context, mask=context_mask), self.norm2, x)
            last = self.norm3
        x = self._plus(lambda x: self.out(self.hidden(x)), last, x)
        return x if cache is None else (x, cache)

    def _plus(self, branch: Callable[[Any], Any], norm: Any, x: Any) -> Any:
        """The sum of `x` and a branch, whose norm stands before it or after the sum."""
        y = branch(norm(x) if self.norm_first else x)
        x = x + (y if self.dropout is None else self.dropout(y))
        return x if self.norm_first else norm(x)
