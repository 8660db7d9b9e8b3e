# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``operators``: what the model families that verl trains are made of."""

from verl_hw_tools.conformance.checks import (  # noqa: F401 - importing defines the checks
    _operators_experts,
    _operators_other,
)
from verl_hw_tools.conformance.checks._operator_case import add_cases
from verl_hw_tools.conformance.checks._operators_attention import ATTENTION
from verl_hw_tools.conformance.checks._operators_indexing import INDEXING
from verl_hw_tools.conformance.checks._operators_layers import LAYERS
from verl_hw_tools.conformance.checks._operators_loss import LOSSES

add_cases("operators", (*LAYERS, *ATTENTION, *LOSSES, *INDEXING))
