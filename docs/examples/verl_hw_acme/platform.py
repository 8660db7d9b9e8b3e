# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""verl platform for the Acme NPU."""

from verl_hw_acme.spec import SPEC
from verl_hw_core.platform import AcceleratorPlatform


class AcmePlatform(AcceleratorPlatform):
    """Acme NPU: everything follows from the facts but the allocator."""

    spec = SPEC

    # Override only what this chip does differently, and say why. Do not write __init__: verl builds every registered
    # class while it looks for the right one, so building one must have no effect.
    def set_allocator_settings(self, settings: str) -> None:
        """Pass ``settings`` on, except expandable segments, which Acme's allocator does not have."""
        if not settings.startswith("expandable_segments"):
            super().set_allocator_settings(settings)
