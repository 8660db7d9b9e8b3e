# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The ``verl-hw`` command and what judges and shows; no training process imports it."""
