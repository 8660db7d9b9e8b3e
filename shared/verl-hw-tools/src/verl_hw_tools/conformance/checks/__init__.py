# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Our checks, one module a group. They import torch; see :mod:`verl_hw_tools.conformance.registry`."""
