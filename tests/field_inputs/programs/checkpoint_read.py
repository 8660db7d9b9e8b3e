# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Merge a checkpoint with verl's merger. Usage: ``checkpoint_read.py CHECKPOINT OUT_FOLDER``.

Answers ``{"merged": [names of the files], "error": ...}``.
"""

import json
import runpy
import sys
from pathlib import Path

import said

checkpoint, out = sys.argv[1:]
sys.argv[1:] = ["merge", "--backend", "fsdp", "--local_dir", checkpoint, "--target_dir", out]
answer = {"merged": [], "error": ""}
try:
    runpy.run_module("verl.model_merger", run_name="__main__")
    answer["merged"] = sorted(path.name for path in Path(out).glob("*.safetensors"))
except Exception as error:  # noqa: BLE001 - which one it is, is the answer
    answer["error"] = said.text_of(error)
print(json.dumps(answer))
