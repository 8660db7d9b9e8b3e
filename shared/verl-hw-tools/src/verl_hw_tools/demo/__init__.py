# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Demonstrations: verl's own trainers on a vendor's device, with a tiny model, nothing downloaded."""
