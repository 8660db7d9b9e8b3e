# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl platform for Enflame GCU."""

from verl_hw_core.platform import AcceleratorPlatform
from verl_hw_enflame.spec import SPEC


class EnflamePlatform(AcceleratorPlatform):
    """Enflame GCU: all facts, no behaviour of its own."""

    spec = SPEC
