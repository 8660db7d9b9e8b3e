# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Group ``collectives``: the vendor's collective library, as torch.distributed hands it out, with known answers."""

from verl_hw_tools.conformance.checks import (  # noqa: F401 - importing defines the checks
    _collectives_average,
    _collectives_groups,
    _collectives_moves,
    _collectives_sums,
)
