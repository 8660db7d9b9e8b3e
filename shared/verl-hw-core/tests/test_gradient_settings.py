# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What would train on wrong gradients without a word: FSDP1 that never averages, offloaded views taken for one."""

import math
from types import SimpleNamespace

import pytest

from verl_hw_core import reduction, upstream
from verl_hw_core.errors import UnsupportedModelSettingError
from verl_hw_core.training import memory


class Mesh:
    """A device mesh's sizes."""

    def __init__(self, *sizes: int):
        self._sizes = sizes
        self.ndim = len(sizes)

    def size(self, dimension: int | None = None) -> int:
        return math.prod(self._sizes) if dimension is None else self._sizes[dimension]


def config(strategy: str = "fsdp", *, fsdp_size: int = 1, forward_only: bool = False) -> SimpleNamespace:
    return SimpleNamespace(strategy=strategy, fsdp_size=fsdp_size, forward_only=forward_only)


@pytest.mark.parametrize("ranks", [2, 8])
def test_fsdp1_that_shards_over_one_rank_is_refused(ranks):
    with pytest.raises(UnsupportedModelSettingError, match=rf"on {ranks} ranks with fsdp_size=1.*strategy=fsdp2"):
        reduction.require_averaging(Mesh(ranks, 1), config())


@pytest.mark.parametrize(
    ("mesh", "settings"),
    [
        pytest.param(Mesh(1), config(), id="one rank"),
        pytest.param(Mesh(4), config(fsdp_size=-1), id="all ranks"),
        pytest.param(Mesh(2, 2), config(fsdp_size=2), id="two replicas of two"),
        pytest.param(Mesh(4, 1), config("fsdp2"), id="FSDP2"),
        pytest.param(Mesh(4, 1), config(forward_only=True), id="no gradients"),
    ],
)
def test_what_averages_or_has_no_gradients_is_not_refused(mesh, settings):
    reduction.require_averaging(mesh, settings)


def test_offloaded_views_of_one_memory_are_told_apart(verl_without_plugins):
    import torch
    from verl.utils import activation_offload

    memory.offload_views_apart()
    try:
        key = activation_offload._get_unique_tensor_key
        keys = torch.arange(16.0).reshape(4, 4)
        assert key(keys) == key(keys.view(4, 4))
        others = [keys.T, keys.reshape(2, 8), keys[:1], keys[:1].expand(4, 4), keys[1:]]
        assert len({key(one) for one in (keys, *others)}) == 1 + len(others)
    finally:
        upstream.restore("activation-offload-key")
    assert activation_offload._get_unique_tensor_key(keys) == activation_offload._get_unique_tensor_key(keys.T)
