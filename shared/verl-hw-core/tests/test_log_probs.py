# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl's log-prob helpers without padding equal those with padding on any device (field report 67)."""

import inspect

import pytest

from verl_hw_core import upstream

BATCH, TOKENS, RESPONSE, VOCABULARY = 3, 9, 4, 17
NAMES = ("log_probs_from_logits_response_rmpad", "log_probs_from_logits_all_rmpad")


@pytest.fixture
def functional(verl_without_plugins, monkeypatch):
    """verl's functions with ours in place, on a device that is neither cuda nor npu."""
    from verl.utils import torch_functional

    from verl_hw_core.training import padding

    monkeypatch.setattr(torch_functional, "get_device_name", lambda: "acmedev")
    padding.replace_log_probs()
    padding.replace_log_probs()
    yield torch_functional
    upstream.restore(padding.LOG_PROBS_ROW)


@pytest.fixture(params=["float32", "bfloat16"])
def batch(request):
    """Tokens, mask and logits of sequences padded on both sides; every response starts after a real token."""
    import torch

    generator = torch.Generator().manual_seed(0)
    mask = torch.ones(BATCH, TOKENS, dtype=torch.int64)
    mask[1, :3] = 0
    mask[2, :2] = 0
    mask[2, -2:] = 0
    ids = torch.randint(1, VOCABULARY, (BATCH, TOKENS), generator=generator) * mask
    logits = torch.randn(BATCH, TOKENS, VOCABULARY, generator=generator, dtype=torch.float32)
    return ids, mask, logits.to(getattr(torch, request.param)).requires_grad_()


def packed_answers(functional, batch):
    ids, mask, logits = batch
    indices = mask.flatten().nonzero().flatten()
    packed = logits.reshape(-1, VOCABULARY)[indices]
    first = functional.log_probs_from_logits_response_rmpad(ids, mask, packed, RESPONSE)
    second = functional.log_probs_from_logits_all_rmpad(
        ids.flatten()[indices][None], packed, indices, BATCH, TOKENS, RESPONSE
    )
    return first, second


def test_both_equal_the_padded_result_and_its_gradient(functional, batch):
    import torch

    ids, mask, logits = batch
    response = mask[:, -RESPONSE:]
    expected = functional.log_probs_from_logits_response(ids, logits, RESPONSE) * response
    (gradient,) = torch.autograd.grad(expected.sum(), logits)
    for found in packed_answers(functional, batch):
        assert found.shape == (BATCH, RESPONSE)
        assert torch.equal(found * response, expected)
        (own,) = torch.autograd.grad((found * response).sum(), logits, retain_graph=True)
        torch.testing.assert_close(own, gradient)
        assert gradient.abs().sum() > 0


def test_verls_own_fail_on_such_a_device(functional, batch):
    upstream.restore("rmpad-log-probs")
    with pytest.raises((ImportError, UnboundLocalError)):
        packed_answers(functional, batch)
    ids, mask, logits = batch
    with pytest.raises(UnboundLocalError):
        functional.log_probs_from_logits_all_rmpad(ids[:1], logits[0], mask[0].nonzero().flatten(), 1, TOKENS, RESPONSE)


@pytest.mark.parametrize("name", NAMES)
def test_the_signatures_are_verls(functional, name):
    ours = list(inspect.signature(getattr(functional, name)).parameters)
    assert ours == list(inspect.signature(upstream.original("rmpad-log-probs", functional, name)).parameters)
