# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Training engines: what an accelerator needs on top of verl's own. Imports ``verl.workers``; see registration."""

from verl_hw_core.engines.fsdp import FSDPLanguageModelEngine, FSDPValueModelEngine
from verl_hw_core.engines.megatron import MegatronLanguageModelEngine, MegatronValueModelEngine
from verl_hw_core.engines.table import register_engine
from verl_hw_core.platform import our_platform
from verl_hw_core.training import padding

__all__ = [
    "FSDPLanguageModelEngine",
    "FSDPValueModelEngine",
    "MegatronLanguageModelEngine",
    "MegatronValueModelEngine",
    "register_engine",
]

# verl.workers is loaded, so the platform is chosen; another vendor's run is left alone.
if our_platform() is not None:
    padding.replace_helpers()
