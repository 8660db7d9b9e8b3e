# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Rollout for the bring-up of a chip whose inference engine is not there yet: ``rollout.name=hf_bringup``.

Hugging Face models generate on the accelerator, one Ray actor a replica, behind verl's own rollout interface.
docs/bringup_rollout.md says what it is for and what it promises. This module imports neither verl nor torch.
"""

NAME = "hf_bringup"
"""Value of ``actor_rollout_ref.rollout.name``, and key of the settings in ``rollout.engine_kwargs``."""
