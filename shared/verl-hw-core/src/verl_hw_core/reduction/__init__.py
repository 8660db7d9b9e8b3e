# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Averages over ranks that are right on any backend: sum-then-divide where ReduceOp.AVG is missing or wrong.

verl averages losses and timings with ``ReduceOp.AVG`` and FSDP2 averages gradients with it. Some collective libraries
reject AVG, some compute it wrongly for some sizes, and one is suspected to sum instead. Whether a group's backend can
be trusted is found out by trying, once a group (see :mod:`verl_hw_core.reduction.probe`).
"""

from verl_hw_core.reduction.collectives import install, uninstall
from verl_hw_core.reduction.decision import Decision, decide, force_sum, force_sum_where_needed, require_averaging

__all__ = ["Decision", "decide", "force_sum", "force_sum_where_needed", "install", "require_averaging", "uninstall"]
