# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Ray for an accelerator that Ray may not know: one device a worker, clear errors, and an environment that arrives.

Ray's and verl's behaviour is changed only in processes whose platform is ours: :mod:`verl_hw_core.ray_support.hooks`.
"""
