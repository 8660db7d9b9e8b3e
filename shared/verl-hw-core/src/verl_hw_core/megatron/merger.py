# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m verl_hw_core.megatron.merger``: verl's ``verl.model_merger`` for Megatron on this machine's device.

verl's own command imports megatron before a vendor's CUDA migration, and asks for TransformerEngine. Arguments are its.
"""

import sys

from verl_hw_core.errors import VerlHwError
from verl_hw_core.megatron import loading


def main() -> None:
    """Load Megatron for the device, register what packages register, and merge."""
    try:
        loading.load_without_engine()
    except VerlHwError as error:
        sys.exit(f"verl-hw: {error}")

    from verl.model_merger.__main__ import main as merge

    from verl_hw_core.megatron import verl_registries

    verl_registries.install()
    merge()


if __name__ == "__main__":
    main()
