# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which attention a model is loaded with, and what is refused (field report 68)."""

import logging
from types import SimpleNamespace

import pytest

from verl_hw_core.errors import UnsupportedModelSettingError

FLASH = "flash_attention_2"


@pytest.fixture(scope="module")
def attention(verl_without_plugins):
    from verl_hw_core.training import attention

    return attention


@pytest.mark.parametrize("requested", ["sdpa", "eager", FLASH, "kernels-community/flash-attn2"])
def test_the_users_choice_is_respected_without_a_word(attention, requested, caplog):
    assert attention.choose(requested, FLASH, None) == requested
    assert not caplog.records


@pytest.mark.parametrize(
    ("asked", "config"), [(FLASH, None), (None, SimpleNamespace(_attn_implementation=FLASH))], ids=["asked", "config"]
)
def test_flash_attention_that_nobody_asked_for_becomes_sdpa_with_one_line(attention, caplog, asked, config):
    with caplog.at_level(logging.WARNING, "verl_hw_core"):
        assert attention.choose(None, asked, config) == "sdpa"
    (record,) = caplog.records
    assert "flash_attn is not installed: attention runs with sdpa" in record.getMessage()


def test_flash_attention_stays_where_it_is_installed(attention, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert attention.choose(None, FLASH, None) == FLASH


def test_what_is_not_flash_attention_stays(attention):
    assert attention.choose(None, "eager", None) == "eager"
    assert attention.choose(None, None, SimpleNamespace(_attn_implementation=None)) is None


@pytest.mark.parametrize(("ranks", "loaded"), [(1, "sdpa"), (2, "verl_hw_ulysses_sdpa")])
def test_models_are_loaded_so_inside_the_block_only(attention, monkeypatch, ranks, loaded):
    from transformers import PreTrainedModel

    seen = []

    def noting(cls, *args, **kwargs):
        seen.append(kwargs.get("attn_implementation"))

    monkeypatch.setattr(PreTrainedModel, "from_pretrained", classmethod(noting))
    with attention.usable_attention(None, ranks):
        PreTrainedModel.from_pretrained("folder", attn_implementation=FLASH)
    PreTrainedModel.from_pretrained("folder", attn_implementation=FLASH)
    assert seen == [loaded, FLASH]


def model_config(attention: str | None = None, model_type: str = "qwen2") -> SimpleNamespace:
    override = {} if attention is None else {"attn_implementation": attention}
    return SimpleNamespace(override_config=override, hf_config=SimpleNamespace(model_type=model_type))


@pytest.mark.parametrize("setting", [None, "sdpa", FLASH])
def test_sequence_parallelism_runs_with_sdpa_and_flash(attention, setting):
    attention.require_sequence_parallelism(model_config(setting), 2)


@pytest.mark.parametrize("setting", ["eager", "flex_attention"])
def test_sequence_parallelism_is_refused_where_it_would_be_wrong(attention, setting):
    attention.require_sequence_parallelism(model_config(setting), 1)
    with pytest.raises(UnsupportedModelSettingError, match="attn_implementation=sdpa"):
        attention.require_sequence_parallelism(model_config(setting), 2)


def test_sequence_parallelism_of_flash_only_models_is_refused(attention):
    with pytest.raises(UnsupportedModelSettingError, match="needs flash_attn for qwen2_5_vl"):
        attention.require_sequence_parallelism(model_config(model_type="qwen2_5_vl"), 2)


def model(attention: str, *layers: str, base: type = object, module: str = "transformers.models.acme"):
    """A model with this attention and these kinds of layers."""
    text = SimpleNamespace(layer_types=list(layers), _attn_implementation=attention)
    config = SimpleNamespace(get_text_config=lambda: text)
    return type("AcmeModel", (base,), {"config": config, "__module__": module})()


class Plain:
    def forward(self, input_ids):
        """No sequence lengths."""


class Careful:
    def forward(self, input_ids, cu_seqlens=None):
        """With sequence lengths."""


@pytest.mark.parametrize("implementation", ["sdpa", "eager", FLASH])
def test_linear_attention_is_refused_unless_it_takes_the_lengths(attention, implementation):
    layers = ("full_attention", "linear_attention")
    attention.require_separate_sequences(model(implementation, "full_attention", base=Plain))
    attention.require_separate_sequences(model(implementation, *layers, base=Careful))
    with pytest.raises(UnsupportedModelSettingError, match="use_remove_padding=False"):
        attention.require_separate_sequences(model(implementation, *layers, base=Plain))


def test_an_implementation_without_masks_is_refused(attention):
    with pytest.raises(UnsupportedModelSettingError, match="for which transformers builds no mask"):
        attention.require_separate_sequences(model("acme_attention", "full_attention", base=Plain))


def test_a_model_with_its_own_code_is_warned_about(attention, caplog):
    remote = "transformers_modules.acme.modeling_acme"
    attention.require_separate_sequences(model(FLASH, base=Plain, module=remote))
    assert not caplog.records
    attention.require_separate_sequences(model("sdpa", base=Plain, module=remote))
    (record,) = caplog.records
    assert "AcmeModel brings its own modelling code" in record.getMessage()


@pytest.mark.parametrize("window", [None, 3])
def test_the_packs_mask_is_transformers_own(verl_without_plugins, window):
    import torch
    from transformers import AutoConfig
    from transformers.masking_utils import create_causal_mask, create_sliding_window_causal_mask

    from verl_hw_core.training.ulysses import pack_mask

    positions = torch.tensor([[0, 1, 2, 3, 4, 0, 0, 1, 2, 3, 4, 5, 0, 1]])
    config = AutoConfig.for_model("qwen2", sliding_window=window, attn_implementation="sdpa")
    config.sliding_window = window
    create = create_causal_mask if window is None else create_sliding_window_causal_mask
    expected = create(
        config=config,
        inputs_embeds=torch.zeros(1, positions.shape[1], 1),
        attention_mask=None,
        past_key_values=None,
        position_ids=positions,
    )
    assert torch.equal(pack_mask(positions, window), expected)
