# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The wheel that docs/development.md shows: verl loads it, and nothing happens before its time."""

import json
import os
import subprocess
import sys

import pytest
from documents import ROOT
from machine_speed import scaled

PROGRAM = """
import json, os, sys
before = dict(os.environ)
import verl
from verl.plugin.platform import platform_manager as manager
early = sorted(name for name in sys.modules if name.startswith("verl.workers"))
undecided = manager._current_platform is None
written = sorted(set(os.environ) - set(before))
import verl.workers.engine
from verl.workers.engine.base import EngineRegistry
from verl_hw_core import load_report
platform = manager.get_platform()
print(json.dumps({
    "early": early, "undecided": undecided, "written": [name for name in written if "ACCL" in name or "ACME" in name],
    "platform": type(platform).__name__, "device": platform.device_name, "ccl": platform.communication_backend_name(),
    "rollout": platform.rollout_env_vars(), "alias": manager.PlatformRegistry.get("apu").__name__,
    "engines": [EngineRegistry.get_engine_cls(model, backend).__name__
                for model in ("language_model", "value_model") for backend in ("fsdp", "fsdp2")],
    "problems": [problem.message for problem in load_report.problems()],
}))
"""


@pytest.mark.slow  # in CI: every vendor's wheel, and what `verl-hw new` writes
def test_the_example_wheel_is_loaded_by_verl():
    steering = ("VERL_", "RAY_", "USE_FLAGCX", "ACME_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(steering)}
    environment |= {
        "PYTHONPATH": str(ROOT / "docs" / "examples"),
        "VERL_USE_EXTERNAL_MODULES": "verl_hw_acme",
        "VERL_USE_EXTERNAL_PLUGINS": "none",
        "VERL_PLATFORM": "acme",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=scaled(240),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "early": [],
        "undecided": True,
        "written": [],
        "platform": "AcmePlatform",
        "device": "apu",
        "ccl": "accl",
        "rollout": {"ACME_SERVING": "1"},
        "alias": "AcmePlatform",
        "engines": ["AcmeFSDPEngineWithLMHead"] * 2 + ["AcmeFSDPEngineWithValueHead"] * 2,
        "problems": [],
    }
