# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The option of every demo that chooses verl's training engine."""

from enum import Enum
from typing import Annotated

import typer


class Strategy(str, Enum):
    """verl's training engines that the demo can use."""

    FSDP = "fsdp"
    FSDP2 = "fsdp2"
    MEGATRON = "megatron"


Engine = Annotated[Strategy, typer.Option(help="verl's training engine.")]
