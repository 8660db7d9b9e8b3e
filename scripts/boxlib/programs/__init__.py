# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The programs of a box, one a part, run as ``python -m boxlib.programs.<part> JOB_FILE``."""
