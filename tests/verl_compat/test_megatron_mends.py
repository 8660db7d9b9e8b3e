# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Each ledger row for Megatron: what it mends works with it, and is broken again when it is taken back.

The second half tells when a row is no longer needed. All rows are tried in one process, whose import of Megatron costs
more than they do. It runs on the CPU, which a torch mode lets Megatron take for its CUDA device.
Whole training runs: conformance/test_megatron_parity.py.
"""

import pytest

COMMON = """
import logging
from pathlib import Path
import torch
from verl_hw_core import upstream
said, found = [], {}
class Keep(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())
logging.getLogger("verl_hw_core").addHandler(Keep())
def outcome(function):
    try:
        return function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
def try_row(row, function):
    mended = outcome(function)
    upstream.restore(row)
    found[row] = [mended, outcome(function)]
"""

MEGATRON = """
import torch.distributed as dist
from torch.overrides import TorchFunctionMode
class CpuAsCuda(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.type and len(args) == 1:
            return args[0].type().replace("torch.", "torch.cuda.")
        given = {name: "cpu" if value == "cuda" else value for name, value in (kwargs or {}).items()}
        return function(*args, **given)
CpuAsCuda().__enter__()
torch.cuda.current_device = lambda: torch.device("cpu")
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
from megatron.core import parallel_state
parallel_state.initialize_model_parallel()
from verl_hw_core.megatron import loading
loading.do_without_transformer_engine()
"""

LATENT = """
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_with_transformer_engine_spec
from megatron.core.transformer import MLATransformerConfig
from megatron.core.transformer.spec_utils import build_module
def down_projection():
    config = MLATransformerConfig(
        num_layers=1, hidden_size=16, num_attention_heads=2, q_lora_rank=8, kv_lora_rank=6, qk_head_dim=4,
        qk_pos_emb_head_dim=4, v_head_dim=5, rope_type="rope", use_cpu_initialization=True, normalization="RMSNorm",
        persist_layer_norm=False, bias_activation_fusion=False, bias_dropout_fusion=False, add_bias_linear=False,
    )
    spec = get_gpt_layer_with_transformer_engine_spec(multi_latent_attention=True, qk_layernorm=True)
    return list(build_module(spec, config=config, layer_number=1).self_attention.linear_kv_down_proj.weight.shape)
try_row("megatron-latent-attention", down_projection)
"""

# A packed batch of two sequences gives the logits that each has alone; the difference, and whether the norms are named
# as the bridges' weight mappings name TransformerEngine's.
LAYERS = """
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_with_transformer_engine_spec
from megatron.core.packed_seq_params import PackedSeqParams
from megatron.core.transformer import TransformerConfig
config = TransformerConfig(
    num_layers=1, hidden_size=16, num_attention_heads=2, use_cpu_initialization=True, normalization="RMSNorm",
    persist_layer_norm=False, bias_activation_fusion=False, bias_dropout_fusion=False, add_bias_linear=False,
    attention_dropout=0.0, hidden_dropout=0.0,
)
def packed_as_alone():
    model = GPTModel(config, get_gpt_layer_with_transformer_engine_spec(), vocab_size=8, max_sequence_length=16,
                     position_embedding_type="rope", share_embeddings_and_output_weights=False).eval()
    first, second = torch.tensor([[1, 2, 3, 4, 5]]), torch.tensor([[6, 7, 1]])
    alone = torch.cat([model(ids, torch.arange(ids.numel())[None], None) for ids in (first, second)], 1)
    bounds = torch.tensor([0, 5, 8], dtype=torch.int32)
    packed = PackedSeqParams(
        qkv_format="thd", cu_seqlens_q=bounds, cu_seqlens_kv=bounds, max_seqlen_q=5, max_seqlen_kv=5
    )
    places = torch.cat((torch.arange(5), torch.arange(3)))[None]
    together = model(torch.cat((first, second), 1), places, None, packed_seq_params=packed)
    named = "decoder.layers.0.self_attention.linear_qkv.layer_norm_weight" in dict(model.named_parameters())
    return [(together - alone).abs().max().item(), named]
try_row("megatron-local-layers", packed_as_alone)
"""

ROUTER = """
from megatron.core.transformer.moe import moe_utils
tokens, weight = torch.randn(3, 4, requires_grad=True), torch.randn(2, 4, requires_grad=True)
def route():
    logits = moe_utils.router_gating_linear(tokens, weight, None, torch.float32)
    logits.sum().backward()
    return (logits - tokens @ weight.T).abs().max().item()
mended = route()
upstream.restore("megatron-router-gemm")
found["megatron-router-gemm"] = [mended, outcome(route)]
"""

OPTIMIZER = """
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
def build():
    layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    model = DistributedDataParallel(config, DistributedDataParallelConfig(use_distributed_optimizer=True), layers)
    return model, get_megatron_optimizer(OptimizerConfig(lr=0.1, use_distributed_optimizer=True), [model])
def step(model, optimizer, times):
    for _ in range(times):
        model.zero_grad_buffer()
        optimizer.zero_grad()
        model(torch.ones(1, 4)).sum().backward()
        model.finish_grad_sync()
        optimizer.step()
def steps(optimizer):
    (one,) = optimizer.chained_optimizers
    return [state["step"].item() for state in one.optimizer.state.values()]
model, optimizer = build()
step(model, optimizer, 3)
saved = optimizer.state_dict()
def replay():
    step(model, optimizer, 2)
    optimizer.load_state_dict(saved)
    step(model, optimizer, 1)
    return steps(optimizer)
def resume():
    _, fresh = build()
    fresh.state_dict()  # as the loading of a sharded checkpoint asks for it
    fresh.load_state_dict(saved)
    return steps(fresh)
try_row("megatron-adam-state", resume)
try_row("megatron-adam-step", replay)
"""

BRIDGES = """
import transformers
from mbridge.core.parallel_states import ParallelStates
from mbridge.core.safetensor_io import SafeTensorIO
from mbridge.models.qwen2 import Qwen2Bridge
from safetensors.torch import save_file
from verl_hw_core.megatron import bridges
bridges.require_bridge(True)
for name, head in (("critic", {"score.weight": torch.full((1, 4), 2.0)}), ("tied", {})):
    Path(folder, name).mkdir()
    save_file({"model.norm.weight": torch.ones(4), **head}, Path(folder, name, "model.safetensors"))
def head_of(name):
    weights = SafeTensorIO(str(Path(folder, name))).load_some_hf_weight(["lm_head.weight", "model.norm.weight"])
    return weights["lm_head.weight"].tolist()
def bridge(tied):
    config = transformers.Qwen2Config(num_hidden_layers=1, hidden_size=8, intermediate_size=8, num_attention_heads=2,
                                      num_key_value_heads=2, tie_word_embeddings=tied)
    return Qwen2Bridge(config, torch.bfloat16, ParallelStates(**{name: value for name, value in dict(
        tp_size=1, tp_rank=0, pp_size=1, pp_rank=0, ep_size=1, ep_rank=0, etp_size=1, etp_rank=0, cp_size=1, cp_rank=0,
        vpp_size=None, vpp_rank=None, tp_group=None, pp_group=None, cp_group=None, ep_group=None, etp_group=None,
    ).items() if name in ParallelStates.__dataclass_fields__}))
from mbridge.utils import post_creation_callbacks
def freeze():
    router = torch.nn.Linear(2, 2, bias=False)  # its bias is there, and None
    shared = torch.nn.Module()
    shared.gate_weight = torch.nn.Parameter(torch.ones(1))
    layers = [torch.nn.Module(), torch.nn.Module()]
    for layer in layers:
        layer.mlp = torch.nn.Module()  # the first layer has no experts
    layers[1].mlp.router, layers[1].mlp.shared_experts = router, shared
    model = torch.nn.Module()
    model.decoder = torch.nn.Module()
    model.decoder.layers = torch.nn.ModuleList(layers)
    post_creation_callbacks.freeze_moe_router(model, pre_process=True, post_process=True, config=None, hf_config=None)
    return [router.weight.requires_grad, shared.gate_weight.requires_grad]
try_row("mbridge-frozen-router", freeze)
def dropout():
    one = bridge(False)
    one.set_extra_args(attention_dropout=0.5, of_another_version=3)
    return one.config.attention_dropout
try_row("mbridge-value-head", lambda: [outcome(lambda: head_of(name)) for name in ("critic", "tied")])
try_row("mbridge-unknown-settings", dropout)
try_row("mbridge-tied-mapping", lambda: [bridge(tied)._DIRECT_MAPPING["output_layer.weight"] for tied in (True, False)])
"""


@pytest.fixture(scope="module")
def outcomes(forks, tmp_path_factory) -> dict:
    """Of each row: what came out with it and, after it was taken back, without it."""
    folder = f"folder = {str(tmp_path_factory.mktemp('checkpoints'))!r}\n"
    script = COMMON + MEGATRON + LATENT + LAYERS + ROUTER + OPTIMIZER + folder + BRIDGES
    return forks.run(script + "answer(found=found, said=said)")


def test_the_layers_that_the_bridges_ask_for_take_packed_batches(outcomes):
    (difference, named), without = outcomes["found"]["megatron-local-layers"]
    assert difference < 1e-6
    assert named
    assert "Error" in without


def test_latent_attention_is_built(outcomes):
    mended, without = outcomes["found"]["megatron-latent-attention"]
    assert mended == [10, 16]
    assert without.startswith("TypeError: isinstance()")  # TELinear is None


def test_a_router_without_a_bias_is_frozen(outcomes):
    mended, without = outcomes["found"]["mbridge-frozen-router"]
    assert mended == [False, False]
    assert without.startswith("AttributeError")


def test_the_router_of_experts_computes(outcomes):
    difference, without = outcomes["found"]["megatron-router-gemm"]
    assert difference < 1e-6
    assert "te_general_gemm" in without


def test_loading_a_checkpoint_restores_the_step_of_every_parameter(outcomes):
    mended, without = outcomes["found"]["megatron-adam-step"]
    assert mended == [4.0] * 4
    assert without == [7.0] * 4  # one step tensor for all four, which each of them counts up


def test_an_optimizer_that_never_stepped_can_load(outcomes):
    mended, without = outcomes["found"]["megatron-adam-state"]
    assert mended == [3.0] * 4
    assert without.startswith("AssertionError")


def test_a_critic_is_loaded_from_checkpoints_without_a_language_model_head(outcomes):
    (critic, tied), without = outcomes["found"]["mbridge-value-head"]
    assert critic == [[2.0] * 4]
    assert len(tied) != 1  # mbridge leaves out a head of another shape, and the value head stays as it began
    assert all("lm_head.weight" in error for error in without)


def test_settings_that_megatron_core_does_not_have_are_left_out_and_named(outcomes):
    mended, without = outcomes["found"]["mbridge-unknown-settings"]
    assert mended == 0.5
    assert "of_another_version" in without
    (line,) = (line for line in outcomes["said"] if "of_another_version" in line)
    assert "no of_another_version=3: left out" in line


def test_a_tied_model_leaves_the_next_models_mapping_alone(outcomes):
    mended, without = outcomes["found"]["mbridge-tied-mapping"]
    assert mended == ["model.embed_tokens.weight", "lm_head.weight"]
    assert without == ["model.embed_tokens.weight"] * 2
