#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Set up the development environment and run one thing in it.

Needs nothing but Python with its venv module (and a C++ compiler for the simulator):

    python3 scripts/dev.py demo --vendor cambricon
    python3 scripts/dev.py test

This file only checks the interpreter, in syntax that old ones can read too; the work is in ``devlib``.
"""

import sys

OLDEST, NEWEST = (3, 10), (3, 12)

if not OLDEST <= sys.version_info[:2] <= NEWEST:
    sys.stderr.write(
        "dev.py: needs Python 3.10, 3.11 or 3.12, and this is Python " + sys.version.split()[0] + ".\n"
        "        Type the same with another interpreter, for example:  python3.11 scripts/dev.py test\n"
        "        Debian and Ubuntu:  sudo apt-get install python3 python3-venv\n"
    )
    sys.exit(2)

from devlib.cli import main  # noqa: E402 - only after the check above

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
