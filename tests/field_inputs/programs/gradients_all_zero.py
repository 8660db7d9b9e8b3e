# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Train three steps with a head whose backward, as an operator override's might, gives zeros.

Usage: ``gradients_all_zero.py MODELS_FOLDER OUT_FOLDER``. Answers the gradient norms, what was said of gradients, and
the error that ended it, if one did.
"""

import json
import sys
from pathlib import Path

import torch
from said import lines, text_of

from engine_program import build_engine, train_step  # isort: skip
from rank_start import joined
from verl.plugin.platform import get_platform

models, out = map(Path, sys.argv[1:])
platform = get_platform()
answer = {"norms": [], "said": [], "error": ""}


class ZeroBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        return values.clone()

    @staticmethod
    def backward(ctx, gradient):
        return torch.zeros_like(gradient)


with joined(0, 1, out, platform.device_name, platform.communication_backend_name()), lines() as said:
    engine, loss = build_engine(models, "fsdp2", "language_model", 1)
    (head,) = (part for name, part in engine.module.named_modules() if name.endswith("lm_head"))
    own = head.forward
    head.forward = lambda *args, **kwargs: ZeroBackward.apply(own(*args, **kwargs))
    try:
        for step in range(3):
            answer["norms"].append(train_step(engine, loss, 10 + step, "language_model")["grad_norm"])
    except Exception as error:  # noqa: BLE001 - which one it is, is the answer
        answer["error"] = text_of(error)
answer["said"] = [line for line in said if "gradient" in line.lower()]
print(json.dumps(answer))
