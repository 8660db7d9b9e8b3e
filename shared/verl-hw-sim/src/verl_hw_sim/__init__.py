# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated accelerators for verl hardware plugins."""


def autoload() -> None:
    """Entry point of group ``torch.backends``; torch calls it at the end of ``import torch``."""
