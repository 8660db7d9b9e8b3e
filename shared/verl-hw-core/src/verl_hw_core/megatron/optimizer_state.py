# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Resuming Megatron's distributed optimizer with torch's Adam, which it uses without TransformerEngine and Apex.

Loading a checkpoint gives all parameters one and the same ``step`` tensor, and then copies the running process's step
over the loaded one: training goes on with a wrong bias correction, and nothing says so.
"""

from typing import Any

import torch
from megatron.core.optimizer import distrib_optimizer

from verl_hw_core import upstream

ROW = "megatron-adam-step"
"""Ledger row of the replacement."""


def restore_step_on_load() -> None:
    """Mend ``DistributedOptimizer.load_state_dict``; a second call changes nothing."""
    owner = distrib_optimizer.DistributedOptimizer
    own = upstream.original(ROW, owner, "load_state_dict")

    def load_state_dict(self: Any, state_dict: dict[str, Any]) -> None:
        """Megatron's own, then each parameter's step as the checkpoint has it."""
        own(self, state_dict)
        steps = {group["step"] for group in state_dict.get("optimizer", {}).get("param_groups", ()) if "step" in group}
        if len(steps) != 1:
            return
        (step,) = steps
        for state in self.optimizer.state.values():
            if "step" in state:
                state["step"] = torch.tensor(float(step), dtype=torch.float32)

    upstream.replace(ROW, owner, "load_state_dict", load_state_dict)
