# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Shared core of the verl-hw accelerator plugins for verl."""

from verl_hw_core.hardware import HardwareSpec, SmiTool, Traces

__all__ = ["HardwareSpec", "SmiTool", "Traces"]
