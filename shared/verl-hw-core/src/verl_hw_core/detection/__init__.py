# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which vendor's accelerator this node has, from evidence that needs no visible device and starts no runtime."""

from verl_hw_core.detection.evidence import Evidence, VendorFinding, Verdict, explain
from verl_hw_core.detection.node_survey import Survey, forget, survey

__all__ = ["Evidence", "Survey", "VendorFinding", "Verdict", "explain", "forget", "survey"]
