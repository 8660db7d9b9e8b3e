# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The doctor's own checks, one topic a module. They judge what child processes found in torch, verl and Ray."""
