# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Megatron-core on devices that are not CUDA and have no TransformerEngine. Importing it imports no megatron."""

from verl_hw_core.megatron.loading import load_engine

__all__ = ["load_engine"]
