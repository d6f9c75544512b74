"""The models of docs/pretrained.md compute what Hugging Face's do with the same weights."""

import re
from pathlib import Path

import numpy as np
import pytest

from gpugrad import nn

PAGE = Path(__file__).parents[2] / "docs" / "pretrained.md"
RNG = np.random.default_rng(0)
IDS, IMAGES = RNG.integers(0, 50, (2, 7)), RNG.normal(size=(2, 3, 32, 32)).astype("f4")
SMALL = {"hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 2} | {
    "intermediate_size": 24, "vocab_size": 50, "num_labels": 3
}  # fmt: skip
OURS = {"width": 16, "heads": 4, "hidden": 24, "layers": 2}
CASES = {
    "bert": ("BertForSequenceClassification", "Bert", SMALL | {"max_position_embeddings": 8},
             {"tokens": 50, "length": 8, "classes": 3, **OURS}, IDS),
    "llama": ("LlamaForCausalLM", "Llama",
              SMALL | {"num_key_value_heads": 2, "rope_theta": 5e5, "rms_norm_eps": 1e-5},
              {"tokens": 50, "kv_heads": 2, "rotary_base": 5e5, "eps": 1e-5, **OURS}, IDS),
    "vit": ("ViTForImageClassification", "ViT", SMALL | {"image_size": 32, "patch_size": 8},
            {"size": 32, "patch": 8, "classes": 3, **OURS}, IMAGES),
}  # fmt: skip
for _kind in ("basic", "bottleneck"):
    CASES[f"resnet {_kind}"] = (
        "ResNetForImageClassification", "ResNet",
        {"embedding_size": 4, "hidden_sizes": [8, 16], "depths": [2, 1], "num_labels": 3,
         "layer_type": _kind},
        {"widths": [8, 16], "depths": [2, 1], "classes": 3, "stem": 4,
         "bottleneck": _kind == "bottleneck"},
        IMAGES,
    )  # fmt: skip


@pytest.mark.peers
@pytest.mark.parametrize("case", CASES)
def test_models_with_hugging_face_s_weights_give_its_logits(case, tmp_path):
    torch, transformers = map(pytest.importorskip, ("torch", "transformers"))
    theirs, name, config, arguments, x = CASES[case]
    scope = {}
    exec("\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.S | re.M)), scope)
    torch.manual_seed(0)
    build = getattr(transformers, theirs)
    peer = build(build.config_class(**config)).eval()
    state = peer.state_dict()
    for key, value in state.items():  # biases and running means start as 0
        if value.is_floating_point():
            value.copy_(torch.rand(value.shape) + 0.5 if "var" in key else
                        value + 0.2 * torch.randn(value.shape))  # fmt: skip
    with torch.no_grad():
        desired = peer(torch.from_numpy(x)).logits.numpy()
    peer.save_pretrained(tmp_path)  # with the names that files have, in a safetensors file
    for source in (tmp_path / "model.safetensors", state):
        model = scope[name](**arguments)
        report = nn.load_torch(model, source, names=case.split()[0])
        assert (report.missing, report.unexpected) == ([], [])
        np.testing.assert_allclose(model(x).numpy(), desired, 1e-4, 1e-5)
    if case == "bert":
        mask = np.arange(7) < np.array([[4], [7]])
        with torch.no_grad():
            desired = peer(torch.from_numpy(x), torch.from_numpy(mask.astype("i8"))).logits.numpy()
        np.testing.assert_allclose(model(x, mask=mask).numpy(), desired, 1e-4, 1e-5)
