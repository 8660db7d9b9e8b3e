# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What verl's training code needs on an accelerator, one reason a module; the engines apply it.

Outside :mod:`verl_hw_core.engines`, whose import loads ``verl.workers`` and with it verl's choice of platform.
"""
