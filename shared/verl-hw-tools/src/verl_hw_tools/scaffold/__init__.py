# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw new``: a complete package for a chip that has none yet, from the templates in this folder."""
