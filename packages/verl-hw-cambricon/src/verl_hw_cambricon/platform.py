# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl platform for Cambricon MLU."""

from verl_hw_cambricon.spec import SPEC
from verl_hw_core.platform import AcceleratorPlatform


class CambriconPlatform(AcceleratorPlatform):
    """Cambricon MLU: all facts, no behaviour of its own."""

    spec = SPEC
