# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The RL demo: verl's unmodified PPO trainer (``verl.trainer.main_ppo``) on Ray, with GRPO or PPO."""
