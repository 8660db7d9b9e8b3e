# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Facts of a chip, whose wheels are installed, and what other packages declare; nothing heavy is imported."""
