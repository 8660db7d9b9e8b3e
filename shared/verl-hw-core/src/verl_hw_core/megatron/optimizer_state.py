# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Megatron's distributed optimizer with torch's Adam, which it uses without TransformerEngine and Apex.

Loading a checkpoint gives all parameters one and the same ``step`` tensor, and then copies the running process's step
over the loaded one: training goes on with a wrong bias correction, and nothing says so. Before the first step there is
no state at all, on which both saving and loading fail, so that no new process could resume.
"""

from collections.abc import Callable
from typing import Any

import torch

from verl_hw_core import upstream

ROW = "megatron-adam-step"
"""Ledger row of the step that loading loses."""

STATE_ROW = "megatron-adam-state"
"""Ledger row of the state that is not there before the first step."""


def mend_checkpoints() -> None:
    """Mend ``DistributedOptimizer.state_dict`` and ``load_state_dict``; a second call changes nothing."""
    upstream.apply(STATE_ROW)
    upstream.apply(ROW)


@upstream.replaces(STATE_ROW, "megatron.core.optimizer.distrib_optimizer:DistributedOptimizer.state_dict")
def state_dict(own: Callable[[Any], Any], optimizer: Any) -> Any:
    """Megatron's own, after Adam's state was given the values with which Adam itself would start."""
    if isinstance(optimizer.optimizer, torch.optim.Adam):  # AdamW is one
        for group in optimizer.optimizer.param_groups:
            for parameter in group["params"]:
                state = optimizer.optimizer.state[parameter]
                if not state:
                    state["step"] = torch.tensor(0.0, dtype=torch.float32)
                    state["exp_avg"] = torch.zeros_like(parameter)
                    state["exp_avg_sq"] = torch.zeros_like(parameter)
    return own(optimizer)


@upstream.replaces(ROW, "megatron.core.optimizer.distrib_optimizer:DistributedOptimizer.load_state_dict")
def load_state_dict(own: Callable[..., None], optimizer: Any, state_dict: dict[str, Any]) -> None:
    """Megatron's own, then each parameter's step as the checkpoint has it."""
    own(optimizer, state_dict)
    steps = {group["step"] for group in state_dict.get("optimizer", {}).get("param_groups", ()) if "step" in group}
    if len(steps) != 1:
        return
    (step,) = steps
    for state in optimizer.optimizer.state.values():
        if "step" in state:
            state["step"] = torch.tensor(float(step), dtype=torch.float32)
