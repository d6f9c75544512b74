"""Multi-head attention with rotary positions and a key-value cache."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from gpugrad.core.arguments import COUNT, FLAG, FRACTION, POSITIVE, optional, takes
from gpugrad.core.backend import TENSOR, as_dtype
from gpugrad.core.convert import constant
from gpugrad.core.listening import graphs, recorders
from gpugrad.core.settings import is_training
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, IndexOutOfBoundsError, ShapeError, saying_where
from gpugrad.nn import functional
from gpugrad.nn.initializers import Initializer, glorot_uniform
from gpugrad.nn.layers import Dense, warn_without_training
from gpugrad.nn.module import Module
from gpugrad.ops.arrays.creation import arange
from gpugrad.ops.random.generator import Generator
from gpugrad.trace.array import current_trace


class KeyValueCache(NamedTuple):
    """Keys and values of earlier positions, for generation: see `MultiHeadAttention.new_cache`.

    >>> attention = gg.nn.MultiHeadAttention(8, 2)
    >>> cache = attention.new_cache(1, 16)
    >>> cache.keys.shape, cache.used.item()
    ((1, 2, 16, 4), 0)
    """

    keys: Tensor
    """(..., kv_heads, length, width of a head)."""
    values: Tensor
    """As `keys`."""
    used: Tensor
    """The number of positions that are filled: an int32 scalar."""


_newest: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
"""By the id of the keys of a cache that an eager call has returned: the `used` of the newest cache
in that memory. An earlier one that is continued once more gets memory of its own."""


@saying_where
def rotary_embedding(x: Any, positions: Any = None, *, base: float = 10_000.0) -> Tensor:
    """Rotate pairs of features by angles proportional to the position.

    Feature k of the first half and feature k of the second half are a pair, with the angle
    ``position * base ** (-2 k / width)``. Su et al. 2021, "RoFormer".

    Args:
        x: Tensor of shape (..., length, width), such as queries or keys; the width is even.
        positions: integers of shape (length,); 0, 1, 2... if None.
        base: the angle's base.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ShapeError: `x` has fewer than two axes, or an odd width.

    >>> print(gg.nn.rotary_embedding([[1.0, 0.0], [1.0, 0.0]]))
    [[1.        0.       ]
     [0.5403023 0.841471 ]]
    """
    x = tensor(x)
    if x.ndim < 2 or x.shape[-1] % 2:
        raise ShapeError(
            f"rotary_embedding: x must have the shape (..., length, even width), got {x.shape}."
        )
    half = x.shape[-1] // 2
    wide = "float64" if x.dtype.char in "dD" else "float32"
    frequencies = constant(base ** (-np.arange(half) / half), wide, device=x.device)
    if positions is None:
        positions = arange(x.shape[-2], device=x.device)
    angles = TENSOR.multiply(
        TENSOR.expand_dims(TENSOR.astype(tensor(positions), frequencies.dtype), axis=-1),
        frequencies,
    )
    cos, sin = (TENSOR.astype(f(angles), x.dtype) for f in (TENSOR.cos, TENSOR.sin))
    first, second = x[..., :half], x[..., half:]
    return TENSOR.concat([first * cos - second * sin, second * cos + first * sin], axis=-1)


class MultiHeadAttention(Module):
    """Attention of several heads: softmax(q k^T / sqrt(d)) v, projected from and to the width.

    Vaswani et al. 2017, "Attention Is All You Need".

    Args:
        width: length of the last axis of the input and of the output.
        heads: number of heads; must divide `width`.
        kv_heads: number of heads of keys and values; must divide `heads`, as in grouped-query
            attention. By default `heads`.
        causal: whether a position sees only itself and earlier ones.
        rotary: whether queries and keys get `rotary_embedding`.
        rotary_base: its base; Llama 3's is 500,000.
        context_width: length of the last axis of `context`, for cross-attention. If None, the
            layer attends to its input.
        dropout: probability with which `gg.nn.training` drops a weight of the softmax.
        use_bias: whether the projections have biases.
        kernel_initializer, generator, dtype: as for `Dense`.

    Attributes:
        in_proj: Dense from the input to queries, keys and values, in this order; for
            cross-attention to the queries.
        context_proj: Dense from the context to keys and values, or None.
        out_proj: Dense from all heads to the output.

    >>> layer = gg.nn.MultiHeadAttention(16, heads=4, kv_heads=2, causal=True)
    >>> layer(gg.ones((3, 5, 16))).shape
    (3, 5, 16)
    """

    @takes(width=COUNT, heads=COUNT, kv_heads=optional(COUNT), context_width=optional(COUNT))
    @takes(causal=FLAG, rotary=FLAG, rotary_base=POSITIVE, dropout=FRACTION, use_bias=FLAG)
    def __init__(
        self,
        width: int,
        heads: int,
        *,
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
        name, kv_heads = type(self).__name__, heads if kv_heads is None else kv_heads
        if width % heads or heads % kv_heads:
            raise ArgumentError(
                f"{name}: heads={heads} must divide width={width}, and kv_heads={kv_heads} must "
                "divide heads."
            )
        if rotary and width // heads % 2:
            raise ArgumentError(
                f"{name}: rotary needs an even width of heads, not {width}/{heads}."
            )
        self.width, self.heads, self.kv_heads = width, heads, kv_heads
        self.causal, self.rotary, self.dropout = causal, rotary, dropout
        self.rotary_base = rotary_base
        size = width // heads

        def dense(units_in: int, units_out: int) -> Dense:
            how = {"generator": generator, "dtype": dtype, "kernel_initializer": kernel_initializer}
            return Dense(units_in, units_out, use_bias=use_bias, **how)

        own = heads if context_width is not None else heads + 2 * kv_heads
        self.in_proj = dense(width, own * size)
        self.context_proj = (
            None if context_width is None else dense(context_width, 2 * kv_heads * size)
        )
        self.out_proj = dense(width, width)

    def forward(
        self, x: Any, context: Any = None, *, mask: Any = None, cache: KeyValueCache | None = None
    ) -> Any:
        """Map x of shape (..., length, width) to the same shape.

        Args:
            x: the input.
            context: array of shape (..., positions, context_width), for cross-attention only.
            mask: booleans that broadcast to (..., heads, length, positions): True where a query
                sees a key; or floats that are added to the scores.
            cache: what `new_cache` or an earlier call returned; `x` is at the positions after it.

        Returns:
            The output; with a cache, the pair (output, next cache).

        Raises:
            ArgumentError: `context` is missing or not expected, or there are a `cache` and a
                context or a mask.
            ShapeError: shapes do not fit.
            IndexOutOfBoundsError: the cache is full.
        """
        self._check(x, context, mask, cache)
        if mask is not None:
            mask = tensor(mask)
            if mask.dtype.kind == "f":
                mask = self._input(mask, self.out_proj.kernel, "mask")
        q, k, v = self._projections(x, context)
        start = 0 if cache is None else cache.used
        if self.rotary:
            at = {"base": self.rotary_base}
            q, k = (rotary_embedding(a, arange(a.shape[-2]) + start, **at) for a in (q, k))
        if self.dropout:
            warn_without_training(self)
        dropout = self.dropout if is_training() else 0.0
        options: dict[str, Any] = {"enable_gqa": self.kv_heads != self.heads}
        if cache is not None:
            cache = self._appended(cache, k, v)
        if cache is None:
            options |= {"dropout_p": dropout, "is_causal": self.causal}
            y = functional.scaled_dot_product_attention(q, k, v, mask, **options)
        elif dropout:
            seen = self._seen(cache, q.shape[-2])
            y = functional.scaled_dot_product_attention(q, *cache[:2], seen, dropout, **options)
        else:
            y = TENSOR.dot_product_attention(q, *cache[:2], used=cache.used, **options)
        y = TENSOR.swapaxes(y, axis1=-3, axis2=-2)
        y = self.out_proj(TENSOR.reshape(y, (*y.shape[:-2], self.width)))
        return y if cache is None else (y, cache)

    def new_cache(self, batch: int | tuple[int, ...], length: int) -> KeyValueCache:
        """An empty cache for `length` positions of a batch: a length, or several.

        Each call returns a new cache. On the CPU an eager call writes to the memory of the cache
        that it continues, at positions that this one has not in use; a `gg.function` does if the
        cache is donated, else it copies the cache.

        >>> layer = gg.nn.MultiHeadAttention(8, heads=2, causal=True)
        >>> cache = layer.new_cache(1, length=10)
        >>> y, cache = layer(gg.ones((1, 3, 8)), cache=cache)
        >>> y, cache = layer(gg.ones((1, 1, 8)), cache=cache)
        >>> y.shape, cache.used.item()
        ((1, 1, 8), 4)
        """
        lengths = batch if isinstance(batch, tuple) else (batch,)
        kernel = self.out_proj.kernel
        shape = (*lengths, self.kv_heads, length, self.width // self.heads)
        keys, values = (constant(0, kernel.dtype, shape, device=kernel.device) for _ in range(2))
        return KeyValueCache(keys, values, constant(0, as_dtype("int32"), device=kernel.device))

    def _check(self, x: Any, context: Any, mask: Any, cache: Any) -> None:
        if (context is None) != (self.context_proj is None):
            need = "needs" if context is None else "takes no"
            raise ArgumentError(
                f"MultiHeadAttention: this layer {need} context: context_width is "
                f"{'set' if context is None else 'None'}."
            )
        if cache is not None and (context is not None or mask is not None or not self.causal):
            raise ArgumentError(
                "MultiHeadAttention: a cache is for causal self-attention, without a mask."
            )

    def _projections(self, x: Any, context: Any) -> list[Tensor]:
        """Queries, keys and values, each of shape (..., heads, length, width of a head)."""
        size, n = self.width // self.heads, self.kv_heads
        joined: list[tuple[Tensor, tuple[int, ...]]]
        if self.context_proj is None:
            joined = [(self.in_proj(x), (self.heads, n, n))]
        else:
            joined = [(self.in_proj(x), (self.heads,)), (self.context_proj(context), (n, n))]
        parts = []
        for y, heads in joined:
            at = 0
            for h in heads:
                part = y[..., at * size : (at + h) * size]
                part = TENSOR.reshape(part, (*part.shape[:-1], h, size))
                parts.append(TENSOR.swapaxes(part, axis1=-3, axis2=-2))
                at += h
        return parts

    def _appended(self, cache: KeyValueCache, k: Tensor, v: Tensor) -> KeyValueCache:
        """The cache with more keys and values; in its own memory, if it is the newest one there."""
        n, length = k.shape[-2], cache.keys.shape[-2]
        places: Any
        in_place = type(cache.used._data) is np.ndarray and current_trace() is None
        if in_place := in_place and not (recorders or graphs):
            start = int(cache.used._data)
            if start + n > length:
                raise self._full(length, n)
            places = slice(start, start + n)
            owned = _newest.pop(id(cache.keys), None) is cache.used
        else:
            places = arange(n, dtype="int32", device=k.device) + cache.used
            owned = False
        keys, values = cache[:2] if owned else (cache.keys.copy(), cache.values.copy())
        try:
            keys[..., places, :] = k
        except IndexOutOfBoundsError as error:
            raise self._full(length, n) from error
        values[..., places, :] = v
        after = KeyValueCache(keys, values, cache.used + n)
        if in_place:
            _newest[id(keys)] = after.used
        return after

    def _full(self, length: int, n: int) -> IndexOutOfBoundsError:
        return IndexOutOfBoundsError(
            f"MultiHeadAttention: the cache is full: its {length} positions are too few for {n} "
            "more. Give new_cache a larger length."
        )

    def _seen(self, cache: KeyValueCache, n: int) -> Tensor:
        """The mask of the positions that each of the last n sees."""
        length, device = cache.keys.shape[-2], cache.keys.device
        at = arange(n, dtype="int32", device=device) + (cache.used - n)
        return arange(length, dtype="int32", device=device) <= TENSOR.expand_dims(at, axis=-1)

    def _repr_args(self) -> str:
        kv = f", kv_heads={self.kv_heads}" if self.kv_heads != self.heads else ""
        flags = "".join(f", {f}=True" for f in ("causal", "rotary") if getattr(self, f))
        return f"{self.width}, {self.heads}{kv}{flags}"
