# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Train models that packages registered with verl's Megatron engine, and the same with transformers on the CPU.

Usage: ``python new_model_program.py models FOLDER`` writes the models and what transformers computes on them;
``python new_model_program.py train MODELS_FOLDER OUT_FOLDER`` runs the engine on simulated devices.
"""

import json
import shutil
import sys
from functools import partial
from pathlib import Path

import mtp_reference
import plover_llm
import torch
import transformers as hf
from megatron_cases import CLIP, LEARNING_RATE, STEPS, VOCABULARY, Case, reference_loss
from new_model_cases import CASES, FROZEN, MTP, REFUSED, SHARDED, TRAINED_MTP
from safetensors.torch import save_file

from verl_hw_tools.demo.assets import write_tokenizer

COMMON = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 512, "pad_token_id": 0, "tie_word_embeddings": False,
}  # fmt: skip


def configs() -> dict:
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "norm_topk_prob": True}
    latent = {
        "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_group": 2, "topk_group": 1,
        "first_k_dense_replace": 1, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 8, "v_head_dim": 12, "num_key_value_heads": 4, "num_nextn_predict_layers": 0,
    }  # fmt: skip
    return {
        "plover": plover_llm.PloverConfig(**COMMON, num_key_value_heads=2, head_dim=8),
        "mtp": plover_llm.PloverConfig(**COMMON, num_key_value_heads=2, head_dim=8, num_nextn_predict_layers=1),
        "experts": hf.Qwen3MoeConfig(**COMMON, **experts, num_key_value_heads=2, head_dim=8),
        "latent": hf.DeepseekV3Config(**COMMON, **latent, rope_scaling=None),
    }


def write_models(folder: Path) -> None:
    """Random weights, and a tokenizer, which verl asks for."""
    for name, config in configs().items():
        model = hf.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        generator = torch.Generator().manual_seed(len(name))
        with torch.no_grad():
            for parameter in model.parameters():
                noise = 0.1 * torch.randn(parameter.shape, generator=generator)
                parameter.copy_(parameter + noise if parameter.dim() == 1 else noise)
        model.save_pretrained(folder / name)
        write_tokenizer(folder / name)
    mtp_reference.add_block(folder / "mtp", COMMON["hidden_size"], COMMON["num_hidden_layers"])


def reference(folder: Path) -> list[dict]:
    """Loss and gradient norm of some steps of AdamW, routers frozen."""
    model = hf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("mlp.gate.weight"):
            parameter.requires_grad_(False)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=LEARNING_RATE, weight_decay=0.0)
    steps = []
    for step in range(STEPS):
        loss = reference_loss(model, "language_model", step)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(trained, CLIP)
        optimizer.step()
        optimizer.zero_grad()
        steps.append({"loss": loss.item(), "grad_norm": norm.item()})
    return steps


def run_with_mtp(models: Path, out: Path, case: Case, train: bool) -> None:
    """Run one case with verl's switch for the MTP block."""
    import megatron_program
    from verl.workers.config import HFModelConfig, MtpConfig

    megatron_program.HFModelConfig = partial(HFModelConfig, mtp=MtpConfig(enable=True, enable_train=train))
    own = megatron_program.train_step
    if train:
        megatron_program.train_step = with_mtp_loss
    try:
        run(models, out, case, {})
    finally:
        megatron_program.HFModelConfig, megatron_program.train_step = HFModelConfig, own


def with_mtp_loss(engine, case: Case, _step: int) -> dict | None:
    """Instead of loss and gradient norm: the block's own loss, on one and the same batch."""
    from megatron_program import batch_of, sft_loss

    with engine.train_mode():
        out = engine.train_batch(batch_of(engine, case, 0), loss_function=partial(sft_loss, None))
    if not engine.is_mp_src_rank_with_outputs():
        return None
    return {name: value for name, value in out["metrics"].items() if "mtp" in name}


def run(models: Path, out: Path, case: Case, override: dict) -> None:
    """Run one case in forked ranks."""
    import megatron_program

    own = megatron_program.megatron_settings

    def settings(case: Case) -> tuple:
        engine, optimizer = own(case)
        object.__setattr__(engine, "override_mcore_model_config", override)
        return engine, optimizer

    megatron_program.megatron_settings = settings
    try:
        torch.multiprocessing.start_processes(
            megatron_program.run_rank, (models, out, case), nprocs=case.ranks, start_method="fork"
        )
    finally:
        megatron_program.megatron_settings = own


def refusal(out: Path, models: Path, case: Case) -> None:
    """What building an engine ends with."""
    torch.multiprocessing.start_processes(_refused, (out, models, case), nprocs=case.ranks, start_method="fork")


def _refused(rank: int, out: Path, models: Path, case: Case) -> None:
    from megatron_program import build

    join(rank, case.ranks, out, case.name)
    try:
        build(models, case)
        text = "nothing was refused"
    except Exception as error:  # noqa: BLE001 - the test that reads it compares it
        text = f"{type(error).__name__}: {error}"
    if rank == 0:
        (out / f"{case.name}.txt").write_text(text)


def save_sharded(rank: int, models: Path, out: Path, case: Case) -> None:
    """Write Megatron's own checkpoint, which has to be merged, and what it must be merged to."""
    import torch.distributed as dist
    from megatron_program import build

    join(rank, case.ranks, out, f"sharded-{case.model}")
    engine = build(models, case)
    engine.checkpoint_mananager.use_dist_checkpointing = True
    engine.save_checkpoint(str(out / f"sharded-{case.model}"))
    exported = {name: tensor.cpu().contiguous() for name, tensor in engine.get_per_tensor_param()[0]}
    if rank == 0:
        # verl writes neither for this kind of checkpoint, and its merger reads them here.
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            shutil.copy(models / case.model / name, out / f"sharded-{case.model}" / "model" / "huggingface")
        save_file(exported, out / f"exported-{case.model}.safetensors")
    dist.barrier()


def join(rank: int, ranks: int, out: Path, name: str) -> None:
    import torch.distributed as dist
    from verl.plugin.platform import get_platform

    # Torch makes its thread pool anew in a fork; here and in autograd's threads at once, that ends the process.
    torch.set_num_threads(1)
    platform = get_platform()
    platform.set_device(rank)
    backend = f"cpu:gloo,{platform.device_name}:{platform.communication_backend_name()}"
    dist.init_process_group(backend, init_method=f"file://{out}/rendezvous-{name}", rank=rank, world_size=ranks)


def train(models: Path, out: Path) -> None:
    from dataclasses import replace

    import registered_models
    from verl.workers.engine import EngineRegistry

    from verl_hw_core.megatron.architectures import register_architecture, registered

    EngineRegistry.get_engine_cls("language_model", "megatron").load()  # imports Megatron before the forks
    run(models, out, CASES[-1], FROZEN)
    registered_models.add()
    for case in CASES[:-1]:
        run(models, out, case, {})
    own = registered()["plover"]
    register_architecture(registered_models.plover_with_mtp())
    run_with_mtp(models, out, MTP, train=False)
    run_with_mtp(models, out, TRAINED_MTP, train=True)
    register_architecture(own)
    for case in SHARDED:
        torch.multiprocessing.start_processes(save_sharded, (models, out, case), nprocs=case.ranks, start_method="fork")
    register_architecture(replace(registered()["plover"], batches=("padded",)))
    for case in REFUSED:
        refusal(out, models, case)


def main() -> None:
    torch.set_num_threads(1)
    what, models, *out = sys.argv[1], Path(sys.argv[2]), *map(Path, sys.argv[3:])
    if what == "models":
        write_models(models)
        hf.Qwen2ForCausalLM(hf.Qwen2Config(**COMMON, num_key_value_heads=2)).save_pretrained(models / "unregistered")
        config = json.loads((models / "unregistered" / "config.json").read_text())
        (models / "unregistered" / "config.json").write_text(json.dumps({**config, "model_type": "gemma2"}))
        write_tokenizer(models / "unregistered")
        written = {name: reference(models / name) for name in configs()}
        written["mtp loss"] = mtp_reference.loss(models / "mtp", COMMON["num_hidden_layers"])
        (models / "reference.json").write_text(json.dumps(written))
    else:
        train(models, *out)


if __name__ == "__main__":
    main()
