"""Weights of torch models, from state dicts and files."""

import sys
import warnings

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import ArgumentError, CheckpointError, ShapeError, StructureError

nn = gg.nn


class GPT(nn.Module):
    def __init__(self, tokens, length, width, heads, layers):
        self.tokens, self.positions = nn.Embedding(tokens, width), nn.Embedding(length, width)
        self.blocks = [
            nn.TransformerBlock(width, heads, causal=True, activation=nn.GELU(approximate="tanh"))
            for _ in range(layers)
        ]
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(np.arange(ids.shape[-1]))
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ gg.matrix_transpose(self.tokens.weight)


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("f4")


def test_layers_find_their_arrays_by_type():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm(4),
        nn.Sequential(nn.Flatten(), nn.Dense(4, 2, use_bias=False)),
        nn.Embedding(5, 2),
    )
    state = {
        "0.weight": numbers(4, 3, 3, 3), "0.bias": numbers(4), "1.weight": numbers(4),
        "1.bias": numbers(4), "1.running_mean": numbers(4), "1.running_var": numbers(4),
        "1.num_batches_tracked": np.array(7), "2.1.weight": numbers(2, 4),
        "3.weight": numbers(5, 2).astype("f8"),
    }  # fmt: skip
    report = nn.load_torch(model, state)
    assert report.matched["layers.2.layers.1.kernel"] == "2.1.weight"
    assert (report.missing, report.unexpected) == ([], [])
    np.testing.assert_array_equal(model.state()["layers.2.layers.1.kernel"], numbers(2, 4).T)
    np.testing.assert_array_equal(model.state()["layers.0.weight"], numbers(4, 3, 3, 3))
    assert model.state()["layers.3.weight"].dtype == np.float32


def test_names_that_do_not_match_raise_and_change_nothing():
    model = nn.Dense(2, 3)
    before = model.kernel.numpy()
    state = {"weight": numbers(3, 2), "extra": numbers(1)}
    with pytest.raises(
        StructureError, match=r"missing: 'bias' \(3,\)\n  unexpected: 'extra' \(1,\)\nMap"
    ):
        nn.load_torch(model, state)
    np.testing.assert_array_equal(model.kernel.numpy(), before)
    report = nn.load_torch(model, state, strict=False)
    np.testing.assert_array_equal(model.kernel.numpy(), state["weight"].T)
    assert str(report) == "kernel <- weight\nbias: missing\nextra: unexpected"


def test_unknown_names_are_listed_in_order_with_the_nearest_variable():
    model = nn.Module()
    model.blocks = [nn.Dense(2, 3, use_bias=False) for _ in range(26)]
    state = {f"layer.{k}.weight": numbers(3, 2) for k in map(int, sorted(map(str, range(26))))}
    with pytest.raises(StructureError) as caught:
        nn.load_torch(model, state, names={"^layer": "block"})
    lines = str(caught.value).splitlines()
    assert "Variables without a value: 26; names without a Variable: 26." in lines[0]
    assert lines[11] == "  missing: 'blocks.10.kernel' (2, 3)"
    assert lines[21:23] == [
        "  missing: 6 more",
        "  unexpected: 'layer.0.weight' = 'block.0.weight' (3, 2), nearest 'blocks.0.kernel'",
    ]
    assert lines[33].endswith("'block.11.weight' (3, 2), nearest 'blocks.11.kernel'")
    with pytest.raises(ArgumentError, match=r"names='gpt3' is no kind .*: bert, gpt2, llama"):
        nn.load_torch(model, state, names="gpt3")
    for names in ([None], ["gpt2", 1], 1.5):
        with pytest.raises(ArgumentError, match=r"names must be kinds .* got a"):
            nn.load_torch(model, state, names=names)


@pytest.mark.peers
@pytest.mark.parametrize("norm_first", [False, True])
def test_blocks_read_torch_s_transformer(norm_first):
    torch = pytest.importorskip("torch")
    how = {"dim_feedforward": 12, "batch_first": True, "norm_first": norm_first}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's fast path needs norm_first=False
        peer = torch.nn.Transformer(8, 2, 2, 2, **how, dtype=torch.float64).eval()
    blocks = {"hidden": 12, "activation": "relu", "norm_first": norm_first, "dtype": "float64"}
    model = nn.Module()
    for part, more in {"encoder": {}, "decoder": {"causal": True, "context_width": 8}}.items():
        stack = nn.Module()
        stack.layers = [nn.TransformerBlock(8, 2, **blocks, **more) for _ in range(2)]
        stack.norm = nn.LayerNorm(8, dtype="float64")
        setattr(model, part, stack)
    for parameter in peer.parameters():  # torch's biases start as 0, its norms as 1
        torch.nn.init.normal_(parameter, std=0.5)
    nn.load_torch(model, peer.state_dict())
    source, target = numbers(2, 5, 8).astype("f8"), numbers(2, 4, 8).astype("f8")
    context = y = source
    for block in model.encoder.layers:
        context = block(context)
    context, y = model.encoder.norm(context), target
    for block in model.decoder.layers:
        y = block(y, context)
    causal = torch.nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    desired = peer(torch.from_numpy(source), torch.from_numpy(target), tgt_mask=causal)
    np.testing.assert_allclose(model.decoder.norm(y).numpy(), desired.detach().numpy(), 1e-9)


def test_wrong_shapes_and_names_that_meet_raise():
    model = nn.Dense(2, 3, use_bias=False)
    with pytest.raises(ShapeError, match=r"weight gives an array of shape \(3, 2\).*as_is"):
        nn.load_torch(model, {"weight": numbers(2, 3)})
    nn.load_torch(model, {"weight": numbers(2, 3)}, as_is="weight")
    np.testing.assert_array_equal(model.kernel.numpy(), numbers(2, 3))
    with pytest.raises(ArgumentError, match="'a' and 'b' both become 'weight'"):
        nn.load_torch(model, {"a": 1, "b": 2}, names={"^[ab]$": "weight"})
    with pytest.raises(ArgumentError, match="expected a path or a state dict, got int"):
        nn.load_torch(model, 3)


@pytest.mark.parametrize("as_is", [(), "_proj"])
def test_attention_joins_projections_that_are_layers_of_their_own(as_is):
    """As in Llama; with `as_is`, as if its matrices were (in, out)."""
    layer = nn.MultiHeadAttention(8, 4, kv_heads=2, causal=True)
    rng = np.random.default_rng(5)
    state = {}
    for letter, units in zip("qkvo", (8, 4, 4, 8), strict=True):
        matrix = rng.normal(size=(units, 8)).astype("f4")
        state[f"self_attn.{letter}_proj.weight"] = matrix.T if as_is else matrix
        state[f"self_attn.{letter}_proj.bias"] = rng.normal(size=units).astype("f4")
    names = {r"self_attn\.": "", r"^o_proj": "out_proj"}
    report = nn.load_torch(layer, state, names=names, as_is=as_is)
    assert report.matched["in_proj.bias"] == " + ".join(f"self_attn.{c}_proj.bias" for c in "qkv")
    matrices = [state[f"self_attn.{c}_proj.weight"] for c in "qkv"]
    joined = np.concatenate(matrices if as_is else [a.T for a in matrices], axis=1)
    np.testing.assert_array_equal(layer.in_proj.kernel.numpy(), joined)


def test_names_of_a_layer_that_is_shared_are_all_accepted_if_they_hold_the_same():
    class Model(nn.Module):
        def __init__(self):
            self.encoder = self.decoder = nn.Embedding(3, 2)
            self.layers = [nn.Dense(2, 2)] * 2
            self.me, self.norm = self, nn.LayerNorm(2)
            self.norm.all = self.layers

    state = {f"{name}.weight": numbers(3, 2) for name in ("encoder", "decoder")}
    state |= {f"layers.{k}.weight": numbers(2, 2) for k in range(2)}
    state |= {f"{name}.bias": numbers(2) for name in ("layers.0", "layers.1", "norm")}
    state["norm.weight"] = numbers(2)
    assert nn.load_torch(Model(), state).unexpected == []
    state["decoder.weight"] = numbers(3, 2) + 1
    with pytest.raises(StructureError, match=r"unexpected: 'decoder\.weight'"):
        nn.load_torch(Model(), state)


def test_the_message_lists_what_the_names_dropped():
    state = {"weight": numbers(2, 2), "bias": numbers(2)}
    with pytest.raises(StructureError, match=r"missing: 'bias'.*\n  dropped by names=: 'bias'"):
        nn.load_torch(nn.Dense(2, 2), state, names={"b.as": None})


def test_a_safetensors_file_is_read(tmp_path):
    path, model = tmp_path / "a.safetensors", nn.Dense(2, 1)
    gg.checkpoint.save(path, {"net.weight": numbers(1, 2), "net.bias": numbers(1)})
    nn.load_torch(model, path, names={r"^net\.": ""})
    np.testing.assert_array_equal(model.kernel.numpy(), numbers(1, 2).T)
    with pytest.raises(CheckpointError, match="There is no checkpoint"):
        nn.load_torch(model, tmp_path / "b.safetensors")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" * 50, b"\x80\x02."])
def test_a_damaged_file_of_torch_is_named(tmp_path, content):
    pytest.importorskip("torch", exc_type=ImportError)
    path = tmp_path / "a.pt"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"load_torch: .*a\.pt is damaged"):
        nn.load_torch(nn.Dense(2, 2), path)


def test_a_file_of_torch_needs_torch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(CheckpointError, match="load_torch: there is no file"):
        nn.load_torch(nn.Dense(1, 1), tmp_path / "model.pt")
    (tmp_path / "model.pt").touch()
    with pytest.raises(ArgumentError, match=r"only torch can read .*model\.pt.*safetensors"):
        nn.load_torch(nn.Dense(1, 1), tmp_path / "model.pt")


def test_a_dict_in_the_state_and_a_model_in_its_place_are_told_what_to_pass():
    with pytest.raises(ArgumentError, match=r"source's 'model' is a dict .*\['model'\]"):
        nn.load_torch(nn.Dense(1, 1), {"model": {"weight": numbers(1, 1)}, "epoch": 3})
    with pytest.raises(ArgumentError, match=r"got Dense\. Pass its state_dict\(\)"):
        nn.load_torch(nn.Dense(1, 1), nn.Dense(1, 1))


@pytest.mark.peers
def test_files_of_torch_that_hold_no_state_are_refused(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "model.pt"
    path.write_bytes(b"hello")
    with pytest.raises(CheckpointError, match=r"model\.pt is damaged, or holds more than arrays"):
        nn.load_torch(nn.Dense(1, 1), path)
    torch.save(torch.nn.Linear(1, 1), path)
    with pytest.raises(CheckpointError, match=r"holds more than arrays: save model\.state_dict"):
        nn.load_torch(nn.Dense(1, 1), path)
    torch.save([torch.ones(1)], path)
    with pytest.raises(CheckpointError, match=r"holds a list, not a state"):
        nn.load_torch(nn.Dense(1, 1), path)
    with pytest.raises(CheckpointError, match=r"there is no file"):
        nn.load_torch(nn.Dense(1, 1), tmp_path)


def gpt2_state(tokens=11, length=8, width=12, layers=2):
    """A state with Hugging Face's names; its Conv1D matrices are (in, out)."""
    rng = np.random.default_rng(3)

    def a(*shape):
        return (rng.normal(size=shape) * 0.3).astype("f4")

    state = {"transformer.wte.weight": a(tokens, width), "transformer.wpe.weight": a(length, width)}
    for k in range(layers):
        h = f"transformer.h.{k}."
        state |= {
            f"{h}ln_1.weight": 1 + a(width), f"{h}ln_1.bias": a(width),
            f"{h}attn.bias": np.tri(length)[None, None],
            f"{h}attn.c_attn.weight": a(width, 3 * width), f"{h}attn.c_attn.bias": a(3 * width),
            f"{h}attn.c_proj.weight": a(width, width), f"{h}attn.c_proj.bias": a(width),
            f"{h}ln_2.weight": 1 + a(width), f"{h}ln_2.bias": a(width),
            f"{h}mlp.c_fc.weight": a(width, 4 * width), f"{h}mlp.c_fc.bias": a(4 * width),
            f"{h}mlp.c_proj.weight": a(4 * width, width), f"{h}mlp.c_proj.bias": a(width),
        }  # fmt: skip
    state |= {"transformer.ln_f.weight": 1 + a(width), "transformer.ln_f.bias": a(width)}
    return state | {"lm_head.weight": state["transformer.wte.weight"]}


def test_a_file_with_the_names_of_gpt2_is_read_whole():
    model = GPT(11, 8, 12, 3, 2)
    report = nn.load_torch(model, gpt2_state(), names="gpt2")
    assert len(report.matched) == len(model.state()) == 28
    assert (report.missing, report.unexpected) == ([], [])


@pytest.mark.peers
def test_a_model_with_the_names_of_gpt2_gives_torch_s_logits():
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    state = {k: torch.from_numpy(np.asarray(v)) for k, v in gpt2_state().items()}
    ids = np.array([[1, 5, 2, 10], [0, 3, 3, 7]])

    def get(name):
        return state["transformer." + name]

    def norm(x, name):
        return F.layer_norm(x, (12,), get(f"{name}.weight"), get(f"{name}.bias"))

    def dense(x, name):
        return x @ get(f"{name}.weight") + get(f"{name}.bias")

    x = get("wte.weight")[ids] + get("wpe.weight")[:4]
    for k in range(2):
        q, key, v = dense(norm(x, f"h.{k}.ln_1"), f"h.{k}.attn.c_attn").split(12, -1)
        q, key, v = (a.reshape(2, 4, 3, 4).transpose(1, 2) for a in (q, key, v))
        y = F.scaled_dot_product_attention(q, key, v, is_causal=True)
        x = x + dense(y.transpose(1, 2).reshape(2, 4, 12), f"h.{k}.attn.c_proj")
        y = F.gelu(dense(norm(x, f"h.{k}.ln_2"), f"h.{k}.mlp.c_fc"), approximate="tanh")
        x = x + dense(y, f"h.{k}.mlp.c_proj")
    desired = norm(x, "ln_f") @ get("wte.weight").T

    model = GPT(11, 8, 12, 3, 2)
    nn.load_torch(model, state, names="gpt2")
    np.testing.assert_allclose(model(ids).numpy(), desired.numpy(), 1e-4, 1e-5)


@pytest.mark.peers
@pytest.mark.parametrize("kind", ["state", "pt", "bfloat16"])
def test_models_of_torch_give_the_same_results(kind, tmp_path):
    torch = pytest.importorskip("torch")
    t = torch.nn
    torch.manual_seed(0)
    peer = t.ModuleDict(
        {
            "lstm": t.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True),
            "gru": t.GRU(8, 4, batch_first=True),
            "attention": t.MultiheadAttention(4, 2, batch_first=True),
            "conv": t.Sequential(t.ConvTranspose1d(6, 4, 3), t.GroupNorm(2, 4), t.PReLU()),
            "bilinear": t.Bilinear(6, 6, 3),
        }
    )
    parts = {
        "lstm": nn.LSTM(3, 4, layers=2, bidirectional=True),
        "gru": nn.GRU(8, 4),
        "attention": nn.MultiHeadAttention(4, 2),
        "conv": nn.Sequential(nn.ConvTranspose1d(6, 4, 3), nn.GroupNorm(2, 4), nn.PReLU()),
        "bilinear": nn.Bilinear(6, 6, 3),
    }
    model = nn.Module()
    vars(model).update(parts)
    if kind == "bfloat16":
        peer = peer.bfloat16().float()
    source = peer.bfloat16().state_dict() if kind == "bfloat16" else peer.state_dict()
    if kind == "pt":
        torch.save(source, tmp_path / "model.pt")
        source = tmp_path / "model.pt"
    nn.load_torch(model, source)
    peer, x = peer.float(), numbers(2, 6, 3)
    with torch.no_grad():
        y = peer["gru"](peer["lstm"](torch.from_numpy(x))[0])[0]
        y = peer["conv"](peer["attention"](y, y, y)[0]).numpy()
        z = peer["bilinear"](torch.from_numpy(y), torch.from_numpy(y)).numpy()
    actual = parts["conv"](parts["attention"](parts["gru"](parts["lstm"](x)[0])[0]))
    np.testing.assert_allclose(actual.numpy(), y, 1e-4, 1e-5)
    np.testing.assert_allclose(parts["bilinear"](actual, actual).numpy(), z, 1e-3, 1e-5)


@pytest.mark.peers
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("width", [8, 6])
def test_cross_attention_of_torch_gives_the_same_results(width, bias):
    """torch joins queries, keys and values if the context is as wide as they are."""
    torch = pytest.importorskip("torch")
    peer = torch.nn.MultiheadAttention(
        8, 2, kdim=width, vdim=width, bias=bias, batch_first=True, dtype=torch.float64
    )
    layer = nn.MultiHeadAttention(8, 2, context_width=width, use_bias=bias, dtype="float64")
    nn.load_torch(layer, peer.state_dict())
    x, context = (numbers(2, n, w).astype("f8") for n, w in ((5, 8), (7, width)))
    desired = peer(*map(torch.from_numpy, (x, context, context)))[0].detach().numpy()
    np.testing.assert_allclose(layer(x, context).numpy(), desired, 1e-10)
