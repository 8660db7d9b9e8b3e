# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What an MTP block loses on a batch, computed with transformers' modules: the model itself has no such block there."""

from pathlib import Path

import torch
from megatron_cases import sequences
from plover_llm.modeling import PloverLayer
from safetensors.torch import load_file
from torch.nn import functional
from transformers import AutoModelForCausalLM

MICRO_BATCH = 2


def add_block(folder: Path, size: int, layer: int) -> None:
    """Random tensors of a block to a checkpoint, as one layer more; transformers leaves them out."""
    from safetensors.torch import save_file

    path = folder / "model.safetensors"
    weights, generator = load_file(path), torch.Generator().manual_seed(3)
    last = f"layers.{layer}."
    shapes = {f"model.{last}{name}.weight": (size,) for name in ("enorm", "hnorm", "final_norm")}
    shapes[f"model.{last}eh_proj.weight"] = (size, 2 * size)
    shapes |= {name.replace("layers.0.", last): one.shape for name, one in weights.items() if ".layers.0." in name}
    weights |= {name: torch.randn(shape, generator=generator) / 10 for name, shape in shapes.items()}
    save_file(weights, path, metadata={"format": "pt"})


@torch.no_grad()
def loss(folder: Path, layer: int, step: int = 0) -> float:
    """Mean over micro-batches of the mean loss of the token after the next."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    prefix = f"model.layers.{layer}."
    weights = load_file(folder / "model.safetensors").items()
    block = {name.removeprefix(prefix): tensor for name, tensor in weights if name.startswith(prefix)}
    own = PloverLayer(model.config)
    own.load_state_dict({name: block[name] for name in own.state_dict()})
    losses = []
    batch = sequences(step)
    for start in range(0, len(batch), MICRO_BATCH):
        total = tokens = 0.0
        for ids, mask, _ in batch[start : start + MICRO_BATCH]:
            taken = -_log_probs(model, own, block, ids)[:-2].gather(-1, ids[2:, None])[:, 0]
            total += float((taken * mask[2:]).sum())
            tokens += float(mask[2:].sum())
        losses.append(total / tokens)
    return sum(losses) / len(losses)


def _log_probs(model, own: PloverLayer, block: dict, ids: torch.Tensor) -> torch.Tensor:
    config = model.config

    def norm(hidden: torch.Tensor, name: str) -> torch.Tensor:
        return functional.rms_norm(hidden, (config.hidden_size,), block[f"{name}.weight"], config.rms_norm_eps)

    hidden = model.model(ids[None]).last_hidden_state[0]
    following = model.model.embed_tokens(ids.roll(-1))
    joined = torch.cat((norm(following, "enorm"), norm(hidden, "hnorm")), dim=-1) @ block["eh_proj.weight"].T
    rotary = int(config.head_dim * config.partial_rotary_factor)
    frequencies = config.rope_theta ** -(torch.arange(0, rotary, 2).float() / rotary)
    angles = torch.outer(torch.arange(len(ids)).float(), frequencies).repeat(1, 2)
    return model.lm_head(norm(own(joined[None], angles)[0], "final_norm")).log_softmax(-1)
