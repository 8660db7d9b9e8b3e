# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Save a checkpoint with verl's FSDP2 engine on this device.

Usage: ``checkpoint_write.py MODELS_FOLDER CHECKPOINT``.
"""

import json
import sys
from pathlib import Path

import said  # noqa: F401 - makes the device
from engine_program import build_engine
from rank_start import joined
from verl.plugin.platform import get_platform

models, checkpoint = map(Path, sys.argv[1:])
platform = get_platform()
checkpoint.mkdir()
with joined(0, 1, checkpoint, platform.device_name, platform.communication_backend_name()):
    engine, _ = build_engine(models, "fsdp2", "language_model", 1)
    engine.save_checkpoint(str(checkpoint), global_step=1)
print(json.dumps({"files": sorted(path.name for path in checkpoint.iterdir())}))
