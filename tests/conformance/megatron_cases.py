# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Models, batches and settings of the Megatron tests, and the reference: transformers on the CPU, without verl.

Usage: ``python megatron_cases.py FOLDER CASE...`` writes the models and what the reference computes for these cases.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

VOCABULARY, SEQUENCES, STEPS, LEARNING_RATE, CLIP = 256, 8, 4, 1e-3, 1.0


@dataclass(frozen=True)
class Case:
    """One run of an engine of verl."""

    name: str
    strategy: str = "megatron"
    model: str = "qwen2"
    model_type: str = "language_model"
    ranks: int = 2
    tp: int = 1
    pp: int = 1
    vpp: int | None = None
    cp: int = 1
    ep: int = 1
    sequence_parallel: bool = False
    packed: bool = True
    dtype: str = "float32"
    offload: bool = False
    checkpoint: bool = False
    rollout: bool = False  # sync the trained weights into the bring-up rollout
    router_replay: str = "disabled"
    override: dict = field(default_factory=dict)


RECOMPUTE = {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}

BF16 = {"dtype": "bfloat16", "checkpoint": True}
CASES = [
    # fp32, which verl refuses and the program lets through: the mathematics, sharply.
    Case("tp2", tp=2),
    Case("tp4", ranks=4, tp=4),  # more ranks than key-value heads
    Case("tp2-padded", tp=2, packed=False),
    Case("tp2-sequence-parallel", tp=2, sequence_parallel=True, model="qwen3"),
    Case("dp2", model="tied"),
    Case("pp2", pp=2, model="tied", packed=False),
    Case("pp2-virtual", pp=2, vpp=2, model="deep"),
    Case("cp2", cp=2),
    Case("cp2-padded", cp=2, packed=False),
    Case("ep2", ep=2, model="qwen3_moe"),
    Case("tp2-pp2", ranks=4, tp=2, pp=2, sequence_parallel=True, model="qwen3"),
    Case("critic-tp2", tp=2, sequence_parallel=True, model="critic", model_type="value_model"),
    Case("fsdp2", strategy="fsdp2", model="qwen3"),
    Case("fp16-tp2", tp=2, sequence_parallel=True, dtype="float16", checkpoint=True),
    # bf16, as verl runs it, with checkpoints.
    Case("bf16-tp2", tp=2, sequence_parallel=True, model="qwen3", **BF16),
    Case("bf16-dp2-offload-recompute", offload=True, override=RECOMPUTE, **BF16),
    Case("bf16-dp2", model="tied", **BF16),
    Case("bf16-pp2", pp=2, **BF16),
    Case("bf16-ep2", ep=2, model="qwen3_moe", **BF16),
    Case("bf16-critic", tp=2, model="critic", model_type="value_model", **BF16),
    Case("bf16-critic-tied", model="tied", model_type="value_model", packed=False, **BF16),
]

FAMILIES = ("qwen3_moe", "qwen2_moe", "deepseek_v3")
"""Mixtures of experts; the second has a shared expert as well, the third latent attention and groups of experts."""

EXPERTS_PER_LAYER = 4

ENGINES = ("fsdp", "fsdp2", "megatron")


def experts_case(family: str, engine: str) -> Case:
    """A family in an engine, its experts spread over the ranks where the engine can."""
    ep = 2 if engine == "megatron" else 1
    return Case(f"{family}-{engine}", strategy=engine, model=family, ep=ep, rollout=True)


REPLAY = Case("router-replay", ep=2, model="qwen3_moe", router_replay="R2")
EXPERTS = [*(experts_case(family, engine) for family in FAMILIES for engine in ENGINES), REPLAY]


def write_models(folder: Path, names: Sequence[str] = (), vocabulary: int = VOCABULARY) -> None:
    """Tiny models with random weights, biases and norms: those of these names, or all."""
    import transformers as hf

    from verl_hw_tools.demo.assets import write_tokenizer

    common = {
        "vocab_size": vocabulary, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512, "pad_token_id": 0,
    }  # fmt: skip
    experts = {
        "num_experts": EXPERTS_PER_LAYER,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "norm_topk_prob": True,
    }
    shared = {**experts, "shared_expert_intermediate_size": 48, "norm_topk_prob": False}
    latent = {
        "n_routed_experts": EXPERTS_PER_LAYER, "num_experts_per_tok": 2, "n_shared_experts": 1,
        "moe_intermediate_size": 32, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1, "q_lora_rank": 16,
        "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8, "num_key_value_heads": 4,
    }  # fmt: skip
    models = {
        "qwen2": hf.Qwen2ForCausalLM(hf.Qwen2Config(**common, tie_word_embeddings=False)),
        "deep": hf.Qwen2ForCausalLM(hf.Qwen2Config(**{**common, "num_hidden_layers": 4}, tie_word_embeddings=False)),
        "qwen3": hf.Qwen3ForCausalLM(hf.Qwen3Config(**common, head_dim=8, tie_word_embeddings=False)),
        "tied": hf.Qwen2ForCausalLM(hf.Qwen2Config(**common, tie_word_embeddings=True)),
        "critic": hf.Qwen2ForTokenClassification(hf.Qwen2Config(**common, tie_word_embeddings=False, num_labels=1)),
        "qwen3_moe": hf.Qwen3MoeForCausalLM(
            hf.Qwen3MoeConfig(**common, **experts, head_dim=8, tie_word_embeddings=False)
        ),
        "qwen2_moe": hf.Qwen2MoeForCausalLM(hf.Qwen2MoeConfig(**common, **shared, tie_word_embeddings=False)),
        "deepseek_v3": hf.DeepseekV3ForCausalLM(hf.DeepseekV3Config(**{**common, **latent}, tie_word_embeddings=False)),
    }
    for name in names or models:
        model = models[name]
        generator = torch.Generator().manual_seed(len(name))
        with torch.no_grad():
            for parameter in model.parameters():
                mean = 1.0 if parameter.dim() == 1 else 0.0
                parameter.copy_(mean + 0.1 * torch.randn(parameter.shape, generator=generator))
            for key, buffer in model.named_buffers():
                if key.endswith("e_score_correction_bias"):
                    buffer.copy_(0.1 * torch.randn(buffer.shape, generator=generator))
            if name == "critic":
                model.score.bias.zero_()  # Megatron's value head has none
        model.save_pretrained(folder / name)
        write_tokenizer(folder / name)


def sequences(step: int) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """One global batch: (token ids, loss mask, targets of a value head) of each sequence."""
    generator = torch.Generator().manual_seed(100 + step)
    batch = []
    for index in range(SEQUENCES):
        length = 9 + (index * 5 + step) % 8
        ids = torch.randint(5, VOCABULARY, (length,), generator=generator)
        mask = torch.zeros(length, dtype=torch.int64)
        mask[3:] = 1
        batch.append((ids, mask, torch.randn(length, generator=generator)))
    return batch


def reference_loss(model, model_type: str, step: int) -> torch.Tensor:
    """What the engines are to minimize, from the logits of whole sequences."""
    total, tokens = torch.zeros(()), 0
    for ids, mask, targets in sequences(step):
        logits = model(ids[None], use_cache=False).logits[0].float()
        if model_type == "language_model":
            taken = logits.log_softmax(-1)[:-1].gather(-1, ids[1:, None])[:, 0]
            total = total - (taken * mask[1:]).sum()
        else:
            total = total + ((logits[:, 0] - targets).square() * mask).sum()
        tokens += int(mask.sum())
    return total / tokens


def reference(folder: Path, name: str, model_type: str) -> dict:
    """Losses, gradient norms and final sums of the weights of some steps of AdamW."""
    import transformers as hf
    from transformers.core_model_loading import revert_weight_conversion

    if model_type == "language_model":
        model = hf.AutoModelForCausalLM.from_pretrained(folder / name, dtype=torch.float32)
    else:
        model = hf.AutoModelForTokenClassification.from_pretrained(folder / name, dtype=torch.float32, num_labels=1)
        model.score.bias.requires_grad_(False)
    model.eval()
    ids = sequences(99)[0][0]
    with torch.no_grad():
        first = model(ids[None], use_cache=False).logits[0].float().sum(-1).tolist()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    steps = []
    for step in range(STEPS):
        loss = reference_loss(model, model_type, step)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        steps.append({"loss": loss.item(), "grad_norm": norm.item()})
    with torch.no_grad():
        last = model(ids[None], use_cache=False).logits[0].float().tolist()
    weights = revert_weight_conversion(model, model.state_dict())  # under the names that checkpoints have
    trained = {key: [list(one.shape), *sums(one)] for key, one in weights.items()}
    return {"steps": steps, "logits": first, "trained": trained, "trained_logits": last}


def replay_reference(folder: Path, name: str) -> dict:
    """The experts that the model chooses, and loss and gradient norm when each token goes to the next ones instead."""
    import transformers as hf

    model = hf.AutoModelForCausalLM.from_pretrained(folder / name, dtype=torch.float32).eval()
    routers = [layer.mlp.gate for layer in model.model.layers]
    chosen: list[torch.Tensor] = []  # by sequence and layer
    hooks = [router.register_forward_hook(lambda _module, _in, out: chosen.append(out[2])) for router in routers]
    for ids, _, _ in sequences(0):
        with torch.no_grad():
            model(ids[None], use_cache=False)
    for hook in hooks:
        hook.remove()
    forced = iter(chosen)

    def elsewhere(router, _inputs, output):
        index = (next(forced) + 1) % router.num_experts
        scores = output[0].softmax(-1).gather(-1, index)
        return output[0], scores / scores.sum(-1, keepdim=True), index

    for router in routers:
        router.register_forward_hook(elsewhere)
    loss = reference_loss(model, "language_model", 0)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    layers = len(routers)
    routes = [torch.stack(chosen[at : at + layers], dim=1).tolist() for at in range(0, len(chosen), layers)]
    return {"routes": routes, "loss": loss.item(), "grad_norm": norm.item()}


def sums(tensor: torch.Tensor) -> list[float]:
    """What a tensor is compared by."""
    return [tensor.cpu().double().sum().item(), tensor.cpu().double().square().sum().item()]


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    torch.set_num_threads(1)
    cases = [case for case in (*CASES, *EXPERTS) if case.name in names]
    write_models(folder, sorted({case.model for case in cases}))
    wanted = sorted(
        {(case.model, case.model_type) for case in cases if (case.model, case.model_type) != ("tied", "value_model")}
    )
    written = {f"{name} {model_type}": reference(folder, name, model_type) for name, model_type in wanted}
    written |= {case.name: replay_reference(folder, case.model) for case in cases if case.router_replay != "disabled"}
    (folder / "reference.json").write_text(json.dumps(written))


if __name__ == "__main__":
    main()
