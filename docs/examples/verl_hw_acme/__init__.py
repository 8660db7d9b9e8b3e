# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl on the Acme NPU: importing this module registers the platform with verl."""

from verl_hw_core import register

# Names, not imports: a fault in any of the modules is reported with what to do, and disturbs no other wheel.
register(
    "verl_hw_acme.spec:SPEC",
    platform="verl_hw_acme.platform:AcmePlatform",
    engines="verl_hw_acme.engines",  # imported when verl imports its own engines, not before
    contract=1,
)
