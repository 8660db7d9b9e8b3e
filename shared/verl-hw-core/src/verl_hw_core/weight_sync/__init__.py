# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Weights from trainer to rollout workers over any torch.distributed backend: verl's checkpoint engine, once for all.

A sender packs tensors into buckets and broadcasts them in a process group of its own, outside the default one. What a
bucket holds is said before it on an authenticated connection, which also carries failures (docs/weight_sync.md).
"""
