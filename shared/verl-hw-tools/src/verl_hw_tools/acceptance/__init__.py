# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Judge a training run from what verl logged: was it a good one, and is it like the reference?

Imports neither torch nor verl; what it computes and draws with comes with ``verl-hw-tools[accept]`` and is imported
when it is used.
"""
