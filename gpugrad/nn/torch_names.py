"""Names in checkpoints of well-known models, and the paths of a Module that they become.

Each table has the replacements that `load_torch` takes as ``names=``. The paths are the same for
all models: ``tokens`` ``positions`` ``types`` (embeddings), ``blocks`` (a list of
`TransformerBlock`), ``norm``, ``pooler`` and ``head``.
"""

from __future__ import annotations

from collections.abc import Mapping

_BERT = {
    r"^bert\.": "",
    r"\.gamma$": ".weight",  # in files that TensorFlow's weights were converted to
    r"\.beta$": ".bias",
    r"^embeddings\.position_ids$": None,
    r"^embeddings\.word_embeddings\.": "tokens.",
    r"^embeddings\.position_embeddings\.": "positions.",
    r"^embeddings\.token_type_embeddings\.": "types.",
    r"^embeddings\.LayerNorm\.": "norm.",
    r"^encoder\.layer\.": "blocks.",
    r"\.attention\.self\.(query|key|value)\.": r".attention.\1.",
    r"\.attention\.output\.dense\.": ".attention.out_proj.",
    r"\.attention\.output\.LayerNorm\.": ".norm1.",
    r"\.intermediate\.dense\.": ".hidden.",
    r"\.output\.dense\.": ".out.",
    r"\.output\.LayerNorm\.": ".norm2.",
    r"^pooler\.dense\.": "pooler.",
    r"^classifier\.": "head.",
}

_GPT2 = {
    r"^transformer\.": "",
    r"\.attn\.(bias|masked_bias)$": None,  # the causal mask
    r"^lm_head\.weight$": None,  # the table of tokens once more
    r"^wte\.": "tokens.",
    r"^wpe\.": "positions.",
    r"^h\.": "blocks.",
    r"\.ln_1\.": ".norm1.",
    r"\.ln_2\.": ".norm2.",
    r"\.attn\.c_attn\.": ".attention.in_proj.",
    r"\.attn\.c_proj\.": ".attention.out_proj.",
    r"\.mlp\.c_fc\.": ".hidden.",
    r"\.mlp\.c_proj\.": ".out.",
    r"^ln_f\.": "norm.",
}

_LLAMA = {
    r"^model\.": "",
    r"\.rotary_emb\.inv_freq$": None,
    r"^embed_tokens\.": "tokens.",
    r"^layers\.": "blocks.",
    r"\.self_attn\.o_proj\.": ".attention.out_proj.",
    r"\.self_attn\.": ".attention.",
    r"\.input_layernorm\.": ".norm1.",
    r"\.post_attention_layernorm\.": ".norm2.",
    r"\.mlp\.down_proj\.": ".out.",
    r"\.mlp\.(gate|up)_proj\.": r".\1_proj.",
    r"^lm_head\.": "head.",
}

_RESNET = {
    r"^resnet\.": "",
    r"^embedder\.embedder\.": "stem.",
    r"^encoder\.stages\.(\d+)\.layers\.": r"stages.\1.",
    r"\.layer\.": ".layers.",
    r"^classifier\.1\.": "head.",
}

_VIT = {
    r"^vit\.": "",
    r"^embeddings\.mask_token$": None,
    r"^embeddings\.cls_token$": "cls_token",
    r"^embeddings\.position_embeddings$": "positions",
    r"^embeddings\.patch_embeddings\.projection\.": "patches.",
    r"^(encoder\.layer|layers)\.": "blocks.",  # the second names are those of transformers 5
    r"\.attention\.attention\.(query|key|value)\.": r".attention.\1.",
    r"\.attention\.(output\.dense|o_proj)\.": ".attention.out_proj.",
    r"\.(intermediate\.dense|mlp\.fc1)\.": ".hidden.",
    r"\.(output\.dense|mlp\.fc2)\.": ".out.",
    r"\.layernorm_before\.": ".norm1.",
    r"\.layernorm_after\.": ".norm2.",
    r"^layernorm\.": "norm.",
    r"^pooler\.dense\.": "pooler.",
    r"^classifier\.": "head.",
}

TABLES: Mapping[str, Mapping[str, str | None]] = {
    "bert": _BERT,
    "gpt2": _GPT2,
    "llama": _LLAMA,
    "resnet": _RESNET,
    "vit": _VIT,
}

AS_IS = {"gpt2": r"\.c_(attn|proj|fc)\."}
"""The matrices that a kind of checkpoint stores as (in, out): ``as_is=`` of `load_torch`."""

INSIDE_BLOCK = {
    "attention": "self_attn",
    "context_attention": "multihead_attn",
    "hidden": "linear1",
    "out": "linear2",
}
"""A `TransformerBlock`'s layers by the names of torch's encoder and decoder layers."""
