"""The functions that the models call, in each library."""

from __future__ import annotations

import functools
import math
from typing import Any


def of_gpugrad() -> Any:
    """gpugrad's."""
    import gpugrad as gg

    class Ours:
        reshape, permute, mean = gg.reshape, gg.permute_dims, gg.mean
        relu, relu6, silu, sigmoid, tanh = gg.nn.relu, gg.nn.relu6, gg.nn.silu, gg.sigmoid, gg.tanh
        exp, softplus, softmax = gg.exp, gg.nn.softplus, gg.softmax
        sum, sqrt, top_k = gg.sum, gg.sqrt, gg.top_k
        cross_entropy, segment_sum = gg.nn.cross_entropy, gg.segment_sum

        def norm(x, w):
            return gg.nn.layer_norm(x, w[0], w[1])

        def batch_norm(x, w):
            return gg.nn.batch_norm(x, None, None, w[0], w[1], training=True)[0]

        def group_norm(x, w, groups):
            return gg.nn.group_norm(x, w[0], w[1], num_groups=groups)

        def conv(x, w, stride, groups=1):
            function = gg.nn.conv2d if x.ndim == 4 else gg.nn.conv3d
            return function(x, w, stride=stride, padding=w.shape[-1] // 2, groups=groups)

        def pad(x):
            return gg.pad(x, 1)

        def twice_as_large(x):
            return gg.nn.interpolate(x, scale_factor=2)

        def attention(q, k, v, is_causal):
            return gg.nn.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

        def gelu(x):
            return gg.nn.gelu(x, "tanh")

        def concat(arrays, axis=1):
            return gg.concat(arrays, axis=axis)

        def rows(table, indices):
            return gg.nn.embedding(indices, table, sparse=True)

        def derivative(f, x):
            return gg.grad(lambda x: gg.sum(f(x)))(x)

        def scan(f, state, xs):
            return gg.scan(lambda state, x: (f(state, x), None), state, xs)[0]

        def lstm(x, w_x, w_h, bias, state):
            def step(state, projected):
                h, c = state
                i, f, g, o = gg.split(projected + h @ w_h, 4, axis=1)
                c = gg.sigmoid(f) * c + gg.sigmoid(i) * gg.tanh(g)
                h = gg.sigmoid(o) * gg.tanh(c)
                return (h, c), h

            state, ys = gg.scan(step, state, gg.permute_dims(x @ w_x + bias, (1, 0, 2)))
            return gg.permute_dims(ys, (1, 0, 2)), state

    return Ours


def of_torch() -> Any:
    """torch's, as its users call them."""
    import torch
    from torch.nn import functional as F

    class Torch:
        reshape, permute = torch.reshape, torch.permute
        mean, exp, softplus = torch.mean, torch.exp, F.softplus
        sum, sqrt, top_k = torch.sum, torch.sqrt, torch.topk
        relu, relu6, silu = torch.relu, F.relu6, F.silu
        sigmoid, tanh, cross_entropy = torch.sigmoid, torch.tanh, F.cross_entropy
        gelu = functools.partial(F.gelu, approximate="tanh")
        softmax = functools.partial(torch.softmax, dim=-1)

        def norm(x, w):
            return F.layer_norm(x, x.shape[-1:], w[0], w[1])

        def batch_norm(x, w):
            return F.batch_norm(x, None, None, w[0], w[1], training=True)

        def group_norm(x, w, groups):
            return F.group_norm(x, groups, w[0], w[1])

        def conv(x, w, stride, groups=1):
            function = F.conv2d if x.ndim == 4 else F.conv3d
            return function(x, w, stride=stride, padding=w.shape[-1] // 2, groups=groups)

        def pad(x):
            return F.pad(x, (1, 1, 1, 1))

        def twice_as_large(x):
            return F.interpolate(x, scale_factor=2)

        def attention(q, k, v, is_causal):
            return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

        def concat(arrays, axis=1):
            return torch.cat(arrays, axis)

        def rows(table, indices):
            return F.embedding(indices, table, sparse=True)

        def segment_sum(x, segments, n):
            return torch.zeros(n, *x.shape[1:]).index_add(0, segments, x)

        def derivative(f, x):
            x = x if x.requires_grad else x.detach().requires_grad_()
            return torch.autograd.grad(f(x).sum(), x, create_graph=True)[0]

        def scan(f, state, xs):
            return functools.reduce(f, xs, state)

        def lstm(x, w_x, w_h, bias, state):  # as torch.nn.LSTM, whose weights are transposed
            states = [part[None] for part in state]
            how = (True, 1, 0.0, True, False, True)
            y, h, c = torch.lstm(x, states, (w_x, w_h, bias, bias * 0), *how)
            return y, (h[0], c[0])

    return Torch


def of_jax() -> Any:
    """jax's."""
    import jax
    from jax import numpy as jnp

    def standardized(x, w, axes, shape):
        mean = jnp.mean(x, axes, keepdims=True)
        y = (x - mean) * jax.lax.rsqrt(jnp.var(x, axes, keepdims=True) + 1e-5)
        return y * w[0].reshape(shape) + w[1].reshape(shape)

    class Jax:
        reshape, permute, mean, exp = jnp.reshape, jnp.transpose, jnp.mean, jnp.exp
        relu, relu6, silu, sigmoid = jax.nn.relu, jax.nn.relu6, jax.nn.silu, jax.nn.sigmoid
        softplus, softmax, tanh = jax.nn.softplus, jax.nn.softmax, jnp.tanh
        sum, sqrt, top_k = jnp.sum, jnp.sqrt, jax.lax.top_k
        gelu = jax.nn.gelu  # by tanh, unless told otherwise

        def norm(x, w):
            return standardized(x, w, -1, -1)

        def batch_norm(x, w):
            axes = tuple(range(2, x.ndim))
            return standardized(x, w, (0, *axes), (1, -1, *(1 for _ in axes)))

        def group_norm(x, w, groups):
            y = x.reshape(x.shape[0], groups, -1)
            mean, var = (f(y, -1, keepdims=True) for f in (jnp.mean, jnp.var))
            y = ((y - mean) * jax.lax.rsqrt(var + 1e-5)).reshape(x.shape)
            return y * w[0].reshape(-1, 1, 1) + w[1].reshape(-1, 1, 1)

        def conv(x, w, stride, groups=1):
            n = x.ndim - 2
            pads = [(w.shape[-1] // 2,) * 2] * n
            return jax.lax.conv_general_dilated(
                x, w, (stride,) * n, pads, feature_group_count=groups
            )

        def pad(x):
            return jnp.pad(x, 1)

        def twice_as_large(x):
            return jnp.repeat(jnp.repeat(x, 2, 2), 2, 3)

        def attention(q, k, v, is_causal):
            scores = q @ jnp.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
            if is_causal:
                kept = jnp.tril(jnp.ones(scores.shape[-2:], bool))
                scores = jnp.where(kept, scores, -jnp.inf)
            return jax.nn.softmax(scores) @ v

        def cross_entropy(scores, labels):
            rows = jax.nn.log_softmax(scores)
            return -jnp.mean(jnp.take_along_axis(rows, labels[:, None], 1))

        def concat(arrays, axis=1):
            return jnp.concatenate(arrays, axis)

        def rows(table, indices):
            return table[indices]

        def segment_sum(x, segments, n):
            return jax.ops.segment_sum(x, segments, n)

        def derivative(f, x):
            return jax.grad(lambda x: f(x).sum())(x)

        def scan(f, state, xs):
            return jax.lax.scan(lambda state, x: (f(state, x), None), state, xs)[0]

        def lstm(x, w_x, w_h, bias, state):
            def step(state, projected):
                h, c = state
                i, f, g, o = jnp.split(projected + h @ w_h, 4, 1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), h

            state, ys = jax.lax.scan(step, state, jnp.swapaxes(x @ w_x + bias, 0, 1))
            return jnp.swapaxes(ys, 0, 1), state

    return Jax
