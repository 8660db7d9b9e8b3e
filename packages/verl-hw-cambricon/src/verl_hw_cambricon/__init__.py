# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl on Cambricon MLU: importing this module registers the platform with verl."""

from verl_hw_core import register

register(
    "verl_hw_cambricon.spec:SPEC",
    platform="verl_hw_cambricon.platform:CambriconPlatform",
    engines="verl_hw_cambricon.engines",
    contract=1,
)
