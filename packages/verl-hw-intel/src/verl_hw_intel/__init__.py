# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl on Intel XPU: importing this module registers the platform with verl."""

from verl_hw_core import register

register(
    "verl_hw_intel.spec:SPEC",
    platform="verl_hw_intel.platform:IntelPlatform",
    engines="verl_hw_intel.engines",
    contract=1,
)
