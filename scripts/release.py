#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Release one package of this workspace, all but the upload, without a network: see docs/releasing.md.

python3 scripts/dev.py run python scripts/release.py status
python3 scripts/dev.py run python scripts/release.py prepare verl-hw-cambricon 0.1.0
python3 scripts/dev.py run python scripts/release.py release verl-hw-cambricon --dry-run
"""

import sys

from releaselib.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
