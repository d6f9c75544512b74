"""Multi-head attention, its cache, rotary positions and the Transformer block."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import ArgumentError, IndexOutOfBoundsError, ShapeError

nn = gg.nn


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("f4")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(layer, x, causal):
    """The layer's formula in NumPy, head by head."""
    size, heads, kv = layer.width // layer.heads, layer.heads, layer.kv_heads
    joined = x @ layer.in_proj.kernel.numpy() + layer.in_proj.bias.numpy()
    q, k, v = np.split(joined, [heads * size, (heads + kv) * size], axis=-1)
    results = []
    for h in range(heads):
        own, other = slice(h * size, (h + 1) * size), h * kv // heads
        there = slice(other * size, (other + 1) * size)
        scores = q[..., own] @ np.swapaxes(k[..., there], -1, -2) / np.sqrt(size)
        if causal:
            scores = np.where(np.tri(x.shape[-2], dtype=bool), scores, -np.inf)
        results.append(softmax(scores) @ v[..., there])
    return np.concatenate(results, -1) @ layer.out_proj.kernel.numpy() + layer.out_proj.bias.numpy()


def randomised(layer):
    rng = np.random.default_rng(1)
    for v in layer.variables:
        v.assign(rng.normal(size=v.shape).astype("f4") * 0.5)
    return layer


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_multi_head_attention_matches_the_formula(kv_heads, causal):
    layer = randomised(nn.MultiHeadAttention(8, 4, kv_heads=kv_heads, causal=causal))
    x = numbers(3, 5, 8)
    np.testing.assert_allclose(layer(x).numpy(), attend(layer, x, causal), 1e-4, 1e-5)


def test_cross_attention_reads_its_context():
    layer = randomised(nn.MultiHeadAttention(8, 2, context_width=3))
    x, context = numbers(2, 4, 8), numbers(2, 6, 3)
    y = layer(x, context)
    assert y.shape == (2, 4, 8)
    assert not np.allclose(y.numpy(), layer(x, context[:, ::2]).numpy())
    with pytest.raises(ArgumentError, match="this layer needs context"):
        layer(x)
    with pytest.raises(ArgumentError, match="this layer takes no context"):
        nn.MultiHeadAttention(8, 2)(x, context)


def test_a_mask_hides_positions():
    layer = randomised(nn.MultiHeadAttention(8, 2))
    x = numbers(1, 4, 8)
    y = layer(x, mask=np.array([True, True, False, False]))
    np.testing.assert_allclose(y.numpy()[:, :2], layer(x[:, :2]).numpy(), 1e-5, 1e-6)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("rotary", [False, True])
def test_steps_with_a_cache_give_what_one_call_gives(rotary, traced):
    block = randomised(nn.TransformerBlock(8, 4, causal=True, rotary=rotary, kv_heads=2))
    x = numbers(2, 6, 8)
    desired = block(x).numpy()
    step = (
        (lambda x, cache: block(x, cache=cache))
        if not traced
        else gg.function(lambda x, cache: block(x, cache=cache))
    )
    cache, parts = block.attention.new_cache(2, 7), []
    for a, b in ((0, 3), (3, 4), (4, 5), (5, 6)):
        y, cache = step(gg.constant(x[:, a:b]), cache)
        parts.append(y.numpy())
    np.testing.assert_allclose(np.concatenate(parts, 1), desired, 1e-4, 1e-5)
    assert cache.used.item() == 6
    with pytest.raises(IndexOutOfBoundsError):
        step(gg.constant(x[:, :2]), cache)


def test_traced_steps_with_a_cache_run_on_a_gpu(cuda):
    with gg.device(cuda):
        layer = gg.nn.MultiHeadAttention(8, 2, causal=True)
        x = gg.random.normal((1, 3, 8))
        cache, step = layer.new_cache(1, 4), gg.function(lambda x, cache: layer(x, cache=cache))
        parts = []
        for k in range(3):
            y, cache = step(x[:, k : k + 1], cache)
            parts.append(y)
        expected = layer(x)
    np.testing.assert_allclose(gg.concat(parts, axis=1).numpy(), expected.numpy(), atol=1e-5)


def test_a_cache_is_written_in_place_and_can_be_continued_twice():
    layer, x = randomised(nn.MultiHeadAttention(8, 2, causal=True)), numbers(3, 1, 5, 8)
    _, first = layer(x[0], cache=layer.new_cache(1, 8))
    y, one = layer(x[1, :, :2], cache=first)
    z, two = layer(x[2, :, :2], cache=first)
    assert np.shares_memory(one.keys._data, first.keys._data)
    assert not np.shares_memory(two.keys._data, first.keys._data)
    for tokens, got in ((x[1], y), (x[2], z)):
        desired = layer(np.concatenate([x[0], tokens[:, :2]], 1))[:, 5:]
        np.testing.assert_allclose(got.numpy(), desired.numpy(), 1e-4, 1e-5)
    again, _ = layer(x[1, :, 2:3], cache=one)
    desired = layer(np.concatenate([x[0], x[1, :, :3]], 1))[:, 7:]
    np.testing.assert_allclose(again.numpy(), desired.numpy(), 1e-4, 1e-5)


def test_gradients_go_through_a_cache():
    layer, x = randomised(nn.MultiHeadAttention(8, 2, causal=True)), numbers(1, 4, 8)

    def by_steps(x):
        y, cache = layer(x[:, :3], cache=layer.new_cache(1, 6))
        return gg.sum(y**2) + gg.sum(layer(x[:, 3:], cache=cache)[0] ** 2)

    desired = gg.grad(lambda x: gg.sum(layer(x) ** 2))(x).numpy()
    for gradient in (gg.grad(by_steps), gg.function(gg.grad(by_steps))):
        np.testing.assert_allclose(gradient(x).numpy(), desired, 1e-4, 1e-5)


def test_the_base_of_rotary_embedding_is_a_layer_s():
    layers = [nn.MultiHeadAttention(8, 2, rotary=True, rotary_base=b) for b in (1e4, 10.0)]
    layers[1].load_state(layers[0].state())
    one, two = (layer(numbers(1, 5, 8)).numpy() for layer in layers)
    assert not np.allclose(one, two, atol=1e-4)
    with pytest.raises(ArgumentError, match="rotary_base must be above 0"):
        nn.MultiHeadAttention(8, 2, rotary_base=0)


def test_a_cache_needs_causal_attention_without_a_mask():
    layer = nn.MultiHeadAttention(8, 2)
    with pytest.raises(ArgumentError, match="causal self-attention"):
        layer(numbers(1, 2, 8), cache=layer.new_cache(1, 4))


def test_a_full_cache_says_so():
    layer = nn.MultiHeadAttention(8, 2, causal=True)
    _, cache = layer(gg.ones((1, 3, 8)), cache=layer.new_cache(1, 4))
    with pytest.raises(IndexOutOfBoundsError, match="MultiHeadAttention: the cache is full: its 4"):
        layer(gg.ones((1, 2, 8)), cache=cache)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-14)])
def test_rotary_angles_are_as_precise_as_the_input(dtype, tolerance):
    x = np.random.default_rng(0).normal(size=(50, 8))
    angles = np.outer(np.arange(50), 1e4 ** (-np.arange(4) / 4))
    turned = (x[:, :4] + 1j * x[:, 4:]) * np.exp(1j * angles)
    actual = nn.rotary_embedding(gg.constant(x, dtype))
    assert actual.dtype == dtype
    desired = np.concatenate([turned.real, turned.imag], axis=1)
    np.testing.assert_allclose(actual.numpy(), desired, tolerance, 50 * tolerance)


def test_rotary_products_depend_on_the_distance_only():
    q, k = (nn.rotary_embedding(np.tile(numbers(1, 6), (9, 1))) for _ in range(2))
    products = (q @ gg.matrix_transpose(k)).numpy()
    for d in range(-8, 9):
        diagonal = np.diagonal(products, d)
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=1e-4)
    there = nn.rotary_embedding(numbers(3, 6), positions=[4, 5, 6])
    np.testing.assert_allclose(
        there.numpy(),
        nn.rotary_embedding(np.pad(numbers(3, 6), ((4, 0), (0, 0)))).numpy()[4:],
        rtol=1e-5,
    )
    with pytest.raises(ShapeError, match="even width"):
        nn.rotary_embedding(numbers(3, 5))


@pytest.mark.parametrize(
    "how",
    [{}, {"norm_first": False}, {"context_width": 5}, {"gated": True, "activation": "swiglu"}],
)
def test_every_variable_of_a_block_gets_a_gradient(how):
    block = nn.TransformerBlock(8, 2, dropout=0.1, norm=nn.RMSNorm, **how)
    context = [numbers(2, 4, 5)] if "context_width" in how else []
    with gg.GradientTape() as tape, nn.training():
        loss = gg.sum(block(numbers(2, 3, 8), *context) ** 2)
    gradients = tape.gradient(loss, block.trainable_variables)
    assert all(g is not None for g in gradients)
    if not context:
        with pytest.raises(ArgumentError, match="takes no context: set context_width"):
            block(numbers(2, 3, 8), numbers(2, 4, 5))


def test_heads_that_do_not_divide_raise():
    for how in ({"heads": 3}, {"heads": 4, "kv_heads": 3}, {"heads": 8, "rotary": True}):
        with pytest.raises(ArgumentError, match="MultiHeadAttention"):
            nn.MultiHeadAttention(8, **how)


@pytest.mark.peers
def test_multi_head_attention_matches_torch():
    torch = pytest.importorskip("torch")
    layer, x = randomised(nn.MultiHeadAttention(8, 4)), numbers(3, 5, 8)
    peer = torch.nn.MultiheadAttention(8, 4, batch_first=True)
    with torch.no_grad():
        peer.in_proj_weight.copy_(torch.from_numpy(layer.in_proj.kernel.numpy().T.copy()))
        peer.in_proj_bias.copy_(torch.from_numpy(layer.in_proj.bias.numpy()))
        peer.out_proj.weight.copy_(torch.from_numpy(layer.out_proj.kernel.numpy().T.copy()))
        peer.out_proj.bias.copy_(torch.from_numpy(layer.out_proj.bias.numpy()))
        t = torch.from_numpy(x)
        desired = peer(t, t, t)[0].numpy()
    np.testing.assert_allclose(layer(x).numpy(), desired, 1e-4, 1e-5)
