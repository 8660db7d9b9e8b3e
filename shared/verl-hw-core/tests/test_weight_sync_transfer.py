# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Weight sync: the order of broadcasts in one process."""

import pytest
import torch
from machine_speed import scaled

from verl_hw_core.weight_sync.transfer import Broadcaster, Place


class Library:
    """Keeps what it was given instead of sending it."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def broadcast(self, contents: list[torch.Tensor], _options: object) -> None:
        self.sizes.append(contents[0].numel())


def test_after_a_broadcast_that_was_not_begun_none_follows():
    """A library matches broadcasts by their order: the next one would take the bytes of the one left out."""
    library = Library()
    broadcaster = Broadcaster(Place(torch.device("cpu")))
    broadcaster.open(lambda: library).result(scaled(10))

    def refuse() -> torch.Tensor:
        raise ValueError("planted")

    refused = broadcaster.submit(refuse, lambda: "refused")
    following = broadcaster.submit(lambda: torch.zeros(7, dtype=torch.uint8), lambda: "came")
    with pytest.raises(ValueError, match="planted"):
        refused.result(scaled(10))
    with pytest.raises(RuntimeError, match="was not begun: ValueError: planted"):
        following.result(scaled(10))
    assert library.sizes == [1]
    broadcaster.close(broken=True)
