# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's extension of vLLM's worker, and questions to the worker's process that only tests ask."""

import hashlib
import os

import torch
from verl.plugin.platform import get_platform
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension

EMBEDDINGS = ("model.embed_tokens.weight", "lm_head.weight")


def digest(tensor: torch.Tensor) -> str:
    """Shape, dtype and bytes in one word."""
    own = tensor.detach().cpu().contiguous()
    content = hashlib.sha256(own.view(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
    return f"{tuple(own.shape)} {own.dtype} {content}"


class Extension(vLLMColocateWorkerExtension):
    def digests(self) -> dict[str, str]:
        """Of each parameter, without the rows that vLLM adds to embeddings."""
        tokens = self.model_runner.model_config.get_vocab_size()
        return {
            name: digest(one[:tokens] if name in EMBEDDINGS else one)
            for name, one in self.model_runner.model.named_parameters()
        }

    def process(self) -> dict[str, object]:
        names = get_platform().rollout_env_vars()
        return {
            "pid": os.getpid(),
            "handle": self._get_zmq_handle(),
            "device": str(self.device),
            "platform": get_platform().vendor_name,
            "environment": {name: os.environ.get(name) for name in names},
        }
