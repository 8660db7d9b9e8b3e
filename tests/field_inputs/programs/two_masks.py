# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Start torch.distributed as torchrun's ranks do in verl; answers everything that was said, an error included."""

import json

from said import lines, text_of
from verl.plugin.platform import get_platform
from verl.utils.distributed import destroy_global_process_group, initialize_global_process_group

answer = {"started": False, "said": []}
with lines() as said:
    try:
        get_platform()
        initialize_global_process_group()
        answer["started"] = True
        destroy_global_process_group()
    except Exception as error:  # noqa: BLE001 - which one it is, is the answer
        said.append(text_of(error))
answer["said"] = said
print(json.dumps(answer))
