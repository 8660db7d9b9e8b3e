# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw patches upstream --verl``: does the patch registry fit a verl that is read, and need not run here?"""
