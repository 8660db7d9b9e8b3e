# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of verl's Megatron engine with models that packages registered."""

from megatron_cases import Case

FROZEN = {"moe_config": {"freeze_moe_router": True}}
CASES = [
    Case("plover", model="plover", tp=2, sequence_parallel=True),
    Case("plover-stages", model="plover", pp=2, packed=False),
    Case("experts", model="experts", ep=2),
    Case("latent-attention", model="latent", tp=2, sequence_parallel=True),
    # mbridge's own, with verl's switch for routers.
    Case("mbridge-frozen-router", model="experts", ep=2),
]
MTP = Case("mtp", model="mtp", tp=2, sequence_parallel=True)
TRAINED_MTP = Case("trained-mtp", model="mtp", tp=2, sequence_parallel=True)
SHARDED = [
    Case("plover", model="plover", tp=2, sequence_parallel=True, dtype="bfloat16"),
    Case("experts", model="experts", ep=2, dtype="bfloat16"),
    Case("latent", model="latent", pp=2, dtype="bfloat16"),
]
REFUSED = [
    Case("packed", model="plover", ranks=1),
    Case("unregistered", model="unregistered", ranks=1),
    Case("uneven-experts", model="experts", ep=2, override={"num_moe_experts": 3}),
]
