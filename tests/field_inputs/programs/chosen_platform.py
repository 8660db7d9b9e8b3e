# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which platform verl chooses here. Answers it, what was said, and the error where that stopped.

Usage: ``chosen_platform.py [MODULE_IMPORTED_BEFORE | --nvidia | --engine]``. ``--nvidia`` lets torch see a GPU of
NVIDIA's, ``--engine`` asks for the FSDP2 engine as well.
"""

import json
import sys

import torch
from said import lines, text_of

answer = {"vendor": "", "usable": False, "engine": "", "said": [], "error": ""}
asked = sys.argv[1] if len(sys.argv) > 1 else ""
if asked == "--nvidia":
    torch.version.cuda = torch.version.cuda or "13.0"
    gpu = vars(torch)["cuda"]
    gpu.is_available, gpu.device_count = (lambda: True), (lambda: 1)
    gpu.get_device_name = lambda *_: "NVIDIA H100"
elif asked and not asked.startswith("--"):
    __import__(asked)

with lines() as said:
    try:
        from verl.plugin.platform import get_platform

        platform = get_platform()
        answer["vendor"] = platform.vendor_name
        if asked == "--engine":
            from verl.workers.engine import EngineRegistry

            answer["engine"] = EngineRegistry.get_engine_cls("language_model", "fsdp2").__module__
        else:
            answer["usable"] = platform.device_module is not None and platform.is_available()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - which one it is, is the answer
        answer["error"] = text_of(error)
answer["said"] = said
print(json.dumps(answer))
