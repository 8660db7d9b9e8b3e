# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw check-model``: is a model the same for the Megatron backend as for Hugging Face? See docs/new_model.md.

What imports torch runs in a child process (:mod:`verl_hw_tools.model_check.program`).
"""
