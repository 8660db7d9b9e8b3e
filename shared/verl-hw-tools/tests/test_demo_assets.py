# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
import json
import subprocess
import sys
from pathlib import Path

import pytest
from machine_speed import scaled

from verl_hw_tools.demo.assets import LONGEST_SEQUENCE, write_assets, write_model, write_tokenizer
from verl_hw_tools.demo.pairs import LONGEST_PAIR, Pair

PAIRS = [Pair(f"What does f{number} do?", f"It returns {number}.") for number in range(6)]

# In a process of its own: transformers is large and would stay loaded for all other tests.
CHECK = """
import json, sys
from transformers import AutoModelForCausalLM, AutoTokenizer
folder = sys.argv[1]
tokenizer = AutoTokenizer.from_pretrained(folder)
model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
text = "What does os.path.join do?\\n\\tüß 漢 <|im_end|>"
ids = tokenizer(text)["input_ids"]
chat = tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=True, add_generation_prompt=True)
chat = chat if isinstance(chat, list) else chat["input_ids"]
print(json.dumps({
    "same": tokenizer.decode(ids) == text, "bytes": len(text.encode()) - len("<|im_end|>") + 1, "tokens": len(ids),
    "chat": tokenizer.decode(chat), "eos": tokenizer.eos_token, "pad": tokenizer.pad_token,
    "missing": sorted(info["missing_keys"]), "unexpected": sorted(info["unexpected_keys"]),
    "parameters": sum(p.numel() for p in model.parameters()), "ids_fit": max(ids) < model.config.vocab_size,
    "model_eos": model.config.eos_token_id == tokenizer.eos_token_id,
}))
"""


def test_every_byte_is_a_token_and_comes_back(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    write_tokenizer(tmp_path)
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    text = "What does os.path.join do?\n\tüß 漢"
    ids = tokenizer.encode(text).ids
    assert len(ids) == len(text.encode())
    assert tokenizer.decode(ids) == text
    assert len(tokenizer.encode("<|im_start|>user\n").ids) == 6


@pytest.mark.slow
def test_transformers_loads_model_and_tokenizer_and_every_byte_is_a_token(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    write_tokenizer(tmp_path)
    parameters = write_model(tmp_path, seed=0)
    command = [sys.executable, "-c", CHECK, str(tmp_path)]
    out = subprocess.run(command, capture_output=True, text=True, timeout=scaled(200), check=True).stdout
    seen = json.loads(out.splitlines()[-1])
    assert seen["same"]
    assert seen["tokens"] == seen["bytes"]
    assert seen["chat"] == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert (seen["eos"], seen["pad"]) == ("<|im_end|>", "<pad>")
    assert seen["missing"] == seen["unexpected"] == []
    assert seen["parameters"] == parameters
    assert seen["ids_fit"]
    assert seen["model_eos"]


def test_weights_follow_the_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_model(tmp_path / name, seed)
    weights = {name: (tmp_path / name / "model.safetensors").read_bytes() for name in "abc"}
    assert weights["a"] == weights["b"] != weights["c"]


def test_data_files_hold_conversations_and_nothing_is_in_both(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_assets(tmp_path / "m", tmp_path / "o", tmp_path / "d", PAIRS, held_out=2, seed=0)
    train = parquet.read_table(tmp_path / "d" / "train.parquet")["messages"].to_pylist()
    held_out = parquet.read_table(tmp_path / "d" / "held-out.parquet")["messages"].to_pylist()
    assert [len(train), len(held_out)] == [4, 2]
    assert train[0] == [
        {"role": "user", "content": PAIRS[2].question},
        {"role": "assistant", "content": PAIRS[2].answer},
    ]
    assert not [row for row in held_out if row in train]


def test_the_longest_pair_fits_a_sequence() -> None:
    turns = "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n"
    assert LONGEST_PAIR + len(turns) < LONGEST_SEQUENCE
