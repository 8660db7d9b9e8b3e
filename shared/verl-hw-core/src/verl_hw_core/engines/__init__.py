# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Training engines: what an accelerator needs on top of verl's own. Imports ``verl.workers``; see registration."""

from verl_hw_core.engines.fsdp import FSDPLanguageModelEngine, FSDPValueModelEngine
from verl_hw_core.engines.table import register_engine

__all__ = ["FSDPLanguageModelEngine", "FSDPValueModelEngine", "register_engine"]
