# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Taking padding out of a batch and putting it back, as verl 0.9.1 does without flash_attn and 0.9.0 cannot."""

import pytest

from verl_hw_core import upstream


@pytest.fixture
def attention_utils(verl_without_plugins):
    from verl.utils import attention_utils

    yield attention_utils
    upstream.restore("padding-helpers")


@pytest.mark.parametrize("unused", [False, True])
def test_ours_give_what_verls_give(attention_utils, unused):
    import torch

    from verl_hw_core.training import padding

    if not hasattr(attention_utils, "_fallback_unpad_input"):
        pytest.skip("this verl has no helpers of its own to compare with")
    mask = torch.tensor([[0, 1, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 1, 0]])
    other = torch.tensor([[0, 0, 0, 0, 1], [0] * 5, [0] * 5]) if unused else None
    hidden = torch.randn(3, 5, 2, 4)
    found = padding.unpad_input(hidden, mask, other)
    expected = attention_utils._fallback_unpad_input(hidden, mask, other)
    for one, own in zip(found, expected, strict=True):
        assert one == own if isinstance(own, int) else torch.equal(one, own)
        assert getattr(one, "dtype", None) == getattr(own, "dtype", None)
    padded = padding.pad_input(found[0], found[1], 3, 5)
    assert torch.equal(padded, attention_utils._fallback_pad_input(expected[0], expected[1], 3, 5))
    rows = torch.tensor([2, 0])
    assert torch.equal(padding.index_first_axis(hidden, rows), hidden[rows])


def test_gradients_pass_through(attention_utils):
    import torch

    from verl_hw_core.training import padding

    mask = torch.tensor([[0, 1, 1], [1, 1, 0]])
    hidden = torch.randn(2, 3, 4, requires_grad=True)
    packed, indices, *_ = padding.unpad_input(hidden, mask)
    padding.pad_input(packed, indices, 2, 3).sum().backward()
    assert torch.equal(hidden.grad, mask[..., None].expand(2, 3, 4).float())


def test_verls_own_stay_where_they_work(attention_utils, monkeypatch):
    from verl_hw_core.training import padding

    padding.replace_helpers()
    assert ("padding-helpers" in upstream.in_force()) == (not hasattr(attention_utils, "_fallback_pad_input"))
    # A later verl, whose helpers are its module's own functions.
    upstream.restore("padding-helpers")
    monkeypatch.setattr(attention_utils, "index_first_axis", lambda tensor, indices: tensor[indices])
    monkeypatch.delattr(attention_utils, "_get_attention_functions")
    padding.replace_helpers()
    assert "padding-helpers" not in upstream.in_force()


def test_a_verl_without_helpers_gets_ours(attention_utils, monkeypatch):
    import torch

    from verl_hw_core.training import padding

    def flash_only():  # as verl 0.9.0
        raise ModuleNotFoundError("no module named flash_attn", name="flash_attn")

    monkeypatch.setattr(attention_utils, "_get_attention_functions", flash_only)
    padding.replace_helpers()
    padding.replace_helpers()
    packed, *_ = attention_utils.unpad_input(torch.arange(4).reshape(2, 2, 1), torch.tensor([[0, 1], [1, 0]]))
    assert packed.flatten().tolist() == [1, 2]
    assert "padding-helpers" in upstream.in_force()
