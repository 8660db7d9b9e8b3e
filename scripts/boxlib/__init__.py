# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What runs inside a box: the folder that ``dev.py box`` builds for a machine with real silicon and no network.

``devlib.box`` copies this package into the box, with ``run_box.py`` at its top. Modules here import the standard
library alone at their top; the programs of ``boxlib.programs`` run when the box's packages are on the path.
"""
