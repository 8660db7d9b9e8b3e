# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The Enflame GCU platform on simulated devices."""

from platform_suite import PlatformSuite


class TestEnflamePlatform(PlatformSuite):
    key = "enflame"
    mask = {"TOPS_VISIBLE_DEVICES": "4,5"}
    cards = ["4", "5"]
    ray_resource = "GCU"
    facts = {
        "class": "EnflamePlatform",
        "vendor": "enflame",
        "device": "gcu",
        "ccl": "eccl",
        "visible": "TOPS_VISIBLE_DEVICES",
        "noset": ["RAY_EXPERIMENTAL_NOSET_TOPS_VISIBLE_DEVICES"],
        "capability": [3, 0],
        "collective_module": None,
        "rollout_env": {
            "NCCL_CUMEM_ENABLE": "0",
            "TORCH_ECCL_AVOID_RECORD_STREAMS": "1",
            "TORCHGCU_INDUCTOR_ENABLE": "0",
            "TORCHDYNAMO_DISABLE": "1",
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_ALL2ALL_BACKEND": "allgather_reducescatter",
            "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        },
        "ipc": False,  # torch.gcu has no ipc_collect, which verl calls
    }
