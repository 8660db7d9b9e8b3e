# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Our forms of torch's two operators for padding jagged tensors give what torch's own give on the CPU (report 69).

That a device which lacks them gets ours: tests/conformance/test_training_settings.py.
"""

import pytest

LENGTHS = [(3, 0, 5), (0, 0), (1,), (2, 2, 2), (7, 1)]


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64", "bool"])
@pytest.mark.parametrize("longest", [1, 4, 9])
def test_both_ways(lengths, dtype, longest):
    import torch

    from verl_hw_core.training.jagged import jagged_to_padded, padded_to_jagged

    offsets = torch.tensor([0, *lengths]).cumsum(0)
    values = torch.arange(int(offsets[-1]) * 3).view(-1, 3).to(getattr(torch, dtype))
    fill = 2.5 if values.is_floating_point() else 1.0
    padded = jagged_to_padded(values, [offsets], [longest], fill)
    expected = torch.ops.aten._jagged_to_padded_dense_forward(values, [offsets], [longest], fill)
    assert padded.dtype == values.dtype
    assert torch.equal(padded, expected)
    if longest >= max(lengths):
        for total in (None, len(values)):
            assert torch.equal(padded_to_jagged(padded, [offsets], total), values)


def test_what_was_cut_off_comes_back_as_zeros():
    import torch

    from verl_hw_core.training.jagged import padded_to_jagged

    found = padded_to_jagged(torch.ones(2, 1, 1), [torch.tensor([0, 2, 3])], 4)
    assert found.flatten().tolist() == [1, 0, 1, 0]
