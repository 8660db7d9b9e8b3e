# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl on Enflame GCU: importing this module registers the platform with verl."""

from verl_hw_core import register

register(
    "verl_hw_enflame.spec:SPEC",
    platform="verl_hw_enflame.platform:EnflamePlatform",
    engines="verl_hw_enflame.engines",
    contract=1,
)
