# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Put faults into the processes that run checks: Python imports this first where PYTHONPATH names this folder.

``VERL_HW_TEST_PLANTS`` is a comma list of functions of ``planted_faults``.
"""

import os
import sys

if "verl_hw_tools.conformance.child" in sys.orig_argv and os.environ.get("VERL_HW_TEST_PLANTS"):
    import planted_faults

    for name in os.environ["VERL_HW_TEST_PLANTS"].split(","):
        getattr(planted_faults, name)()
