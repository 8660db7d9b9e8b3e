# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The collective backend that the platform names, or why it names none."""

import json

from said import text_of
from verl.plugin.platform import get_platform

answer = {"backend": "", "error": ""}
try:
    answer["backend"] = get_platform().communication_backend_name()
except Exception as error:  # noqa: BLE001 - which one it is, is the answer
    answer["error"] = text_of(error)
print(json.dumps(answer))
