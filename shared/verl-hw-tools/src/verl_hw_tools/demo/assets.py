# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The demo's model, tokenizer and data files, built locally in about a second.

They are written in the formats that transformers and verl read, without importing torch or transformers: that
would cost more time than everything else in this file, and the weights would depend on their versions. Python itself
writes the bytes, so that a full disk is an OSError whatever library made them.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from verl_hw_tools.demo.pairs import Pair

PAD, UNKNOWN, TURN_START, TURN_END = SPECIAL_TOKENS = ("<pad>", "<unk>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LONGEST_SEQUENCE = 256

_HIDDEN, _INTERMEDIATE, _LAYERS, _HEADS, _KV_HEADS = 96, 256, 2, 4, 2
_VOCABULARY = 264  # 4 special tokens and 256 bytes, rounded up to a multiple of 8
_INITIAL_SCALE = 0.05


def write_tokenizer(folder: Path) -> None:
    """Write a byte-level tokenizer: every byte is one token, no merges, a chat template of the usual form."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate((*SPECIAL_TOKENS, *alphabet))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": PAD,
        "unk_token": UNKNOWN,
        "eos_token": TURN_END,
        "additional_special_tokens": [TURN_START],
        "clean_up_tokenization_spaces": False,
        "model_max_length": LONGEST_SEQUENCE,
        "chat_template": CHAT_TEMPLATE,
    }
    _write_json(folder / "tokenizer_config.json", settings)


def write_model(folder: Path, seed: int) -> int:
    """Write a two-layer Qwen2 with random weights and return its number of parameters."""
    import numpy
    from safetensors.numpy import save

    generator = numpy.random.default_rng(seed)
    weights: dict[str, Any] = {}
    for name, shape in _shapes().items():
        if name.endswith("norm.weight"):
            weights[name] = numpy.ones(shape, dtype=numpy.float32)
        elif name.endswith("bias"):
            weights[name] = numpy.zeros(shape, dtype=numpy.float32)
        else:
            weights[name] = generator.standard_normal(shape, dtype=numpy.float32) * numpy.float32(_INITIAL_SCALE)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(save(weights, metadata={"format": "pt"}))
    _write_json(folder / "config.json", _model_config())
    return sum(int(weight.size) for weight in weights.values())


def write_conversations(path: Path, pairs: Iterable[Pair]) -> None:
    """Write pairs as a parquet file of two-turn conversations, the form that verl's SFT dataset reads."""
    import pyarrow
    from pyarrow import parquet

    rows = [
        [{"role": "user", "content": pair.question}, {"role": "assistant", "content": pair.answer}] for pair in pairs
    ]
    turn = pyarrow.struct([("role", pyarrow.string()), ("content", pyarrow.string())])
    column = pyarrow.array(rows, type=pyarrow.list_(turn))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        parquet.write_table(pyarrow.table({"messages": column}), file)


def write_assets(model: Path, other_model: Path, data: Path, pairs: Sequence[Pair], held_out: int, seed: int) -> int:
    """Write everything one demo needs and return the model's number of parameters.

    Args:
        model: Folder of the model that is trained.
        other_model: Folder of a model with other random weights. The resumed run starts from it, so that an exact
            resume shows that every weight came from the checkpoint.
        data: Folder of ``train.parquet`` and ``held-out.parquet``.
        pairs: All pairs.
        held_out: How many of them to keep from training.
        seed: Seed of the weights.
    """
    for folder, folder_seed in ((model, seed), (other_model, seed + 1)):
        write_tokenizer(folder)
        parameters = write_model(folder, folder_seed)
    write_conversations(data / "held-out.parquet", pairs[:held_out])
    write_conversations(data / "train.parquet", pairs[held_out:])
    return parameters


def _shapes() -> dict[str, tuple[int, ...]]:
    """Names and shapes of Qwen2's weights as transformers stores them."""
    kv = _HIDDEN // _HEADS * _KV_HEADS
    layer = {
        "input_layernorm.weight": (_HIDDEN,),
        "post_attention_layernorm.weight": (_HIDDEN,),
        "self_attn.q_proj.weight": (_HIDDEN, _HIDDEN),
        "self_attn.q_proj.bias": (_HIDDEN,),
        "self_attn.k_proj.weight": (kv, _HIDDEN),
        "self_attn.k_proj.bias": (kv,),
        "self_attn.v_proj.weight": (kv, _HIDDEN),
        "self_attn.v_proj.bias": (kv,),
        "self_attn.o_proj.weight": (_HIDDEN, _HIDDEN),
        "mlp.gate_proj.weight": (_INTERMEDIATE, _HIDDEN),
        "mlp.up_proj.weight": (_INTERMEDIATE, _HIDDEN),
        "mlp.down_proj.weight": (_HIDDEN, _INTERMEDIATE),
    }
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (_VOCABULARY, _HIDDEN)}
    for number in range(_LAYERS):
        shapes |= {f"model.layers.{number}.{name}": shape for name, shape in layer.items()}
    return shapes | {"model.norm.weight": (_HIDDEN,), "lm_head.weight": (_VOCABULARY, _HIDDEN)}


def _model_config() -> dict[str, Any]:
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "vocab_size": _VOCABULARY,
        "hidden_size": _HIDDEN,
        "intermediate_size": _INTERMEDIATE,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _KV_HEADS,
        "max_position_embeddings": LONGEST_SEQUENCE,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "attention_dropout": 0.0,
        "use_sliding_window": False,
        "bos_token_id": None,
        "eos_token_id": SPECIAL_TOKENS.index(TURN_END),
        "pad_token_id": SPECIAL_TOKENS.index(PAD),
        "torch_dtype": "float32",
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
