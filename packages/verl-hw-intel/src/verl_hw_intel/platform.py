# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl platform for Intel XPU."""

from verl_hw_core.platform import AcceleratorPlatform
from verl_hw_intel.spec import SPEC


class IntelPlatform(AcceleratorPlatform):
    """Intel XPU: all facts, no behaviour of its own."""

    spec = SPEC
