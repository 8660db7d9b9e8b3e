# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The work of ``scripts/release.py``; runs in the locked environment."""
