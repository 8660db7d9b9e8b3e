# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Stand-in for the vendor's module of this name; see :mod:`verl_hw_sim.cuda_migration`."""

import verl_hw_sim.cuda_migration  # noqa: F401 - importing it is what the vendor's module does
