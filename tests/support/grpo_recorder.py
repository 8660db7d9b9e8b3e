# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Keep what goes into every policy loss: log-probabilities and advantages of single tokens, by rank.

Loaded with ``VERL_USE_EXTERNAL_MODULES=grpo_recorder``; writes below the folder that GRPO_RECORDS names.
"""

import itertools
import os
from pathlib import Path
from types import ModuleType

from wrapt import register_post_import_hook

FOLDER = "GRPO_RECORDS"


def _record(module: ModuleType) -> None:
    import torch

    own = module.POLICY_LOSS_REGISTRY["vanilla"]
    numbers = itertools.count()

    def recorded(**given):
        rank = torch.distributed.get_rank()
        path = Path(os.environ[FOLDER]) / f"rank-{rank}-micro-batch-{next(numbers):04}.pt"
        names = ("old_log_prob", "log_prob", "advantages", "response_mask")
        torch.save({name: given[name].detach().cpu() for name in names}, path)
        return own(**given)

    module.POLICY_LOSS_REGISTRY["vanilla"] = recorded


if os.environ.get(FOLDER):
    register_post_import_hook(_record, "verl.trainer.ppo.core_algos")
