# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A weight sync either puts every tensor of the trainer into the rollout's model, or fails and names the tensors."""

import asyncio

import pytest

torch = pytest.importorskip("torch")
from rolloutkit import all_buckets, request, tiny_model, tiny_module, trainer_log_probs  # noqa: E402

from verl_hw_core.errors import RolloutNotReadyError, WeightSyncError  # noqa: E402
from verl_hw_core.rollout.weights import WeightSync  # noqa: E402


def sent(tensors, limit=4096):
    return asyncio.run(all_buckets(tensors, limit))


def sync(model, tensors, limit=4096):
    model.begin_sync()
    for bucket in sent(tensors, limit):
        model.load(bucket)
    return model.finish_sync()


def trainer(seed=7, **options):
    return {name: tensor.clone() for name, tensor in tiny_module(seed, **options).state_dict().items()}


def answer(model):
    asked = request([9, 10, 11])
    model.generate([asked])
    return asked


@pytest.fixture
def model():
    return tiny_model(loaded=False)


@pytest.mark.parametrize("limit", [1, 100, 4096, 1 << 30])
def test_the_trainers_weights_arrive_whatever_the_size_of_a_bucket(limit, model):
    weights = trainer(layers=1)
    assert max(tensor.nbytes for tensor in weights.values()) > 4096, "some tensor needs several buckets"
    if limit == 1:
        weights = {name: tensor[:2] if tensor.ndim == 1 else tensor[:1, :2] for name, tensor in weights.items()}
    found = sent(weights, limit)
    assert all(sum(piece.data.nbytes for piece in bucket) <= max(limit, 4) for bucket in found)
    for name, tensor in weights.items():
        pieces = [piece for bucket in found for piece in bucket if piece.name == name]
        assert torch.equal(torch.cat([piece.tensor() for piece in pieces]).view(tensor.shape), tensor)


def test_after_a_sync_the_answers_are_the_trainers(model):
    assert sync(model, trainer()) == len(trainer())
    asked = answer(model)
    assert asked.log_probs == pytest.approx(trainer_log_probs(tiny_module(7), asked), abs=1e-5)


def test_a_second_sync_replaces_the_first(model):
    sync(model, trainer(7))
    first = answer(model)
    sync(model, trainer(8))
    second = answer(model)
    assert second.log_probs == pytest.approx(trainer_log_probs(tiny_module(8), second), abs=1e-5)
    assert first.token_ids != second.token_ids


def test_what_was_sent_is_a_copy():
    weights = trainer()
    found = sent(weights)
    before = [piece.tensor().clone() for bucket in found for piece in bucket]
    for tensor in weights.values():
        tensor.zero_()
    after = [piece.tensor() for bucket in found for piece in bucket]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_floating_point_is_converted_to_the_rollouts_dtype(dtype):
    model = tiny_model(loaded=False, dtype=torch.bfloat16)
    sync(model, {name: tensor.to(dtype) for name, tensor in trainer().items()})
    for name, parameter in model._module.named_parameters():
        assert torch.equal(parameter, trainer()[name].to(torch.bfloat16)), name


def test_not_before_the_first_sync(model):
    with pytest.raises(RolloutNotReadyError, match="no weights have come"):
        answer(model)
    with pytest.raises(RolloutNotReadyError, match="no weight sync is running"):
        model.finish_sync()


FAULTS = {
    "another name": (
        lambda weights: weights | {"model.layers.9.mlp.up_proj.weight": torch.zeros(2)},
        r"sent model\.layers\.9\.mlp\.up_proj\.weight, which",
    ),
    "another shape": (
        lambda weights: weights | {"model.norm.weight": torch.zeros(33)},
        r"model\.norm\.weight: the trainer sent shape \(33,\).*\(32,\)",
    ),
    "transposed": (
        lambda weights: weights | {"model.layers.0.mlp.up_proj.weight": torch.zeros(32, 48)},
        r"up_proj\.weight: the trainer sent shape \(32, 48\).*\(48, 32\)",
    ),
    "another kind": (
        lambda weights: weights | {"model.norm.weight": torch.zeros(32, dtype=torch.int8)},
        r"model\.norm\.weight: the trainer sent torch\.int8",
    ),
    "missing": (
        lambda weights: {name: tensor for name, tensor in weights.items() if "up_proj" not in name},
        r"did not send model\.layers\.0\.mlp\.up_proj\.weight, model\.layers\.1",
    ),
    "nothing": (lambda _: {}, "did not send .* and 19 more"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_tensors_are_named_and_nothing_is_generated_with_them(fault, model):
    change, text = FAULTS[fault]
    sync(model, trainer())
    with pytest.raises(WeightSyncError, match=text):
        sync(model, change(trainer(8)))
    with pytest.raises(RolloutNotReadyError, match=f"last weight sync failed: .*{text}"):
        answer(model)
    sync(model, trainer(8))
    answer(model)


def test_a_sync_that_ends_within_a_tensor(model):
    weights = trainer()
    model.begin_sync()
    found = sent(weights)
    for bucket in found[:-1]:
        model.load(bucket)
    with pytest.raises(WeightSyncError, match=r"in the middle of lm_head\.weight"):
        model.finish_sync()


def test_a_tensor_that_comes_twice(model):
    model.begin_sync()
    found = sent(trainer(), 1 << 30)
    model.load(found[0])
    with pytest.raises(WeightSyncError, match=r"embed_tokens\.weight: came twice"):
        model.load(found[0])


class TestTiedEmbeddings:
    @pytest.fixture
    def tied(self):
        return tiny_model(loaded=False, module=tiny_module(tied=True))

    @pytest.mark.parametrize("left_out", [None, "lm_head.weight", "model.embed_tokens.weight"])
    def test_either_name_or_both_will_do(self, tied, left_out):
        weights = trainer(tied=True)
        assert torch.equal(weights["lm_head.weight"], weights["model.embed_tokens.weight"])
        sync(tied, {name: tensor for name, tensor in weights.items() if name != left_out})
        asked = answer(tied)
        assert asked.log_probs == pytest.approx(trainer_log_probs(tiny_module(7, tied=True), asked), abs=1e-5)

    def test_different_values_are_named(self, tied):
        weights = trainer(tied=True)
        with pytest.raises(WeightSyncError, match=r"lm_head\.weight and model\.embed_tokens\.weight are one tensor"):
            sync(tied, weights | {"lm_head.weight": weights["lm_head.weight"] + 1})

    def test_neither(self, tied):
        weights = trainer(tied=True)
        with pytest.raises(WeightSyncError, match=r"did not send model\.embed_tokens\.weight, lm_head\.weight"):
            sync(tied, {name: one for name, one in weights.items() if "norm" in name or "layers" in name})

    @pytest.mark.parametrize("level", [1, 2])
    def test_sleep_keeps_them_tied(self, tied, level):
        sync(tied, trainer(tied=True))
        tied.sleep(level)
        tied.wake()
        sync(tied, {name: one for name, one in trainer(8, tied=True).items() if name != "lm_head.weight"})
        asked = answer(tied)
        assert asked.log_probs == pytest.approx(trainer_log_probs(tiny_module(8, tied=True), asked), abs=1e-5)


class TestSleep:
    def test_level_1_keeps_the_weights(self, model):
        sync(model, trainer())
        before = answer(model).token_ids
        model.sleep(1)
        with pytest.raises(RolloutNotReadyError, match="asleep"):
            answer(model)
        model.wake()
        assert answer(model).token_ids == before

    def test_level_2_drops_them_until_the_next_sync(self, model):
        sync(model, trainer())
        before = answer(model).token_ids
        model.sleep(2)
        assert {parameter.device.type for parameter in model._module.parameters()} == {"meta"}
        for _ in range(2):
            with pytest.raises(RolloutNotReadyError, match="dropped the weights"):
                answer(model)
            model.wake()
        sync(model, trainer())
        assert answer(model).token_ids == before

    def test_sleep_does_not_hide_a_failed_sync(self, model):
        with pytest.raises(WeightSyncError):
            sync(model, {})
        model.sleep(1)
        model.wake()
        with pytest.raises(RolloutNotReadyError, match="last weight sync failed"):
            answer(model)


class TestExperts:
    """transformers holds them packed; they come packed, as checkpoints have them, or as verl's engine splits them."""

    FAMILIES = ("Qwen3Moe", "Qwen2Moe", "DeepseekV3", "Mixtral", "GptOss")

    @staticmethod
    def module(family, seed):
        import transformers

        torch.manual_seed(seed)
        config = getattr(transformers, f"{family}Config")(
            vocab_size=32, hidden_size=16, intermediate_size=24, moe_intermediate_size=24, num_hidden_layers=2,
            num_attention_heads=2, num_key_value_heads=2, num_experts_per_tok=2, first_k_dense_replace=1, n_group=1,
            topk_group=1, q_lora_rank=8, kv_lora_rank=8, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=8,
            shared_expert_intermediate_size=16, pad_token_id=0, bos_token_id=1, eos_token_id=2,
            **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
        )  # fmt: skip
        return transformers.AutoModelForCausalLM.from_config(config)

    @staticmethod
    def spelt(module, how):
        from transformers.core_model_loading import revert_weight_conversion
        from verl.workers.engine.fsdp.utils import unfuse_moe_params

        own = module.state_dict()
        if how == "checkpoint":
            return dict(revert_weight_conversion(module, own))
        return dict(unfuse_moe_params(iter(own.items()), module.config.model_type)) if how == "verl" else dict(own)

    @staticmethod
    def load(module, tensors, limit=900):
        receiver = WeightSync(module)
        for bucket in sent(tensors, limit):
            receiver.load(bucket)
        return receiver.finish()

    @pytest.mark.parametrize("how", ["packed", "checkpoint", "verl"])
    @pytest.mark.parametrize("family", FAMILIES)
    def test_every_spelling_arrives(self, family, how):
        trainer, rollout = self.module(family, 1), self.module(family, 2)
        assert self.load(rollout, self.spelt(trainer, how)) == len(trainer.state_dict())
        for name, tensor in trainer.state_dict().items():
            assert torch.equal(rollout.state_dict()[name], tensor), name

    def test_a_missing_expert_is_named(self):
        weights = self.spelt(self.module("Qwen3Moe", 1), "checkpoint")
        del weights["model.layers.1.mlp.experts.2.up_proj.weight"]
        with pytest.raises(WeightSyncError, match=r"layers\.1\.mlp\.experts\.gate_up_proj \(a part of it came\)"):
            self.load(self.module("Qwen3Moe", 2), weights)

    def test_packed_and_one_by_one_at_once_is_refused(self):
        weights = self.spelt(self.module("Qwen3Moe", 1), "checkpoint")
        weights |= self.spelt(self.module("Qwen3Moe", 1), "packed")
        with pytest.raises(WeightSyncError, match="whole and in parts"):
            self.load(self.module("Qwen3Moe", 2), weights)
