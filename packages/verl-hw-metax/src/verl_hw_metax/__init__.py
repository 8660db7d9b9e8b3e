# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl on MetaX: importing this module registers the platform with verl."""

from verl_hw_core import register

register(
    "verl_hw_metax.spec:SPEC",
    platform="verl_hw_metax.platform:MetaxPlatform",
    engines="verl_hw_metax.engines",
    contract=1,
)
