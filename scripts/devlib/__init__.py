# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What ``scripts/dev.py`` is made of. Standard library only, but for ``box``."""
