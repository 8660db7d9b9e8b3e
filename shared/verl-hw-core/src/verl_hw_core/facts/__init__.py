# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Facts: of each chip, of who registered, of what other packages declare and runs run on. Imports nothing heavy."""
