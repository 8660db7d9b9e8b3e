# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Driver, CPU-only Ray actor and device actor resolve the same platform, with every device hidden (field report 1)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from machine_speed import scaled
from platformkit import clean_environment
from raykit import START, SUPPORT

PROGRAM = Path(__file__).parent / "ray_detection_program.py"

pytestmark = pytest.mark.slow


def resolve(tmp_path: Path, **environment: str) -> dict:
    """Run the program on a machine (root folder, PATH) that shows nothing but what the case put there."""
    root = tmp_path / "root"
    root.mkdir()
    finished = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env=clean_environment(
            VERL_HW_PROBE_ROOT=str(root),
            VERL_HW_PROBE_CACHE="0",
            **{**environment, "PYTHONPATH": os.pathsep.join((environment.get("PYTHONPATH", ""), str(SUPPORT)))},
            **START,
        ),
        capture_output=True,
        text=True,
        timeout=scaled(280),
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    return json.loads(finished.stdout.splitlines()[-1])


@pytest.mark.ci
def test_management_tool_alone(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    tool = tools / "mx-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: MXC500'\n")
    tool.chmod(0o755)
    answers = resolve(tmp_path, PATH=f"{tools}{os.pathsep}{os.environ['PATH']}")
    assert {answer["platform"] for answer in answers.values()} == {"metax"}
    assert answers["cpu_actor"]["mask"] != answers["device_actor"]["mask"], "the actors must differ in what they see"


def test_vendor_package_whose_runtime_sees_no_device(tmp_path):
    package = tmp_path / "site" / "torch_mlu"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import types, torch\n"
        "torch.mlu = types.ModuleType('torch.mlu')\n"
        "def is_available(): raise RuntimeError('no driver on this node')\n"
        "torch.mlu.is_available = is_available\n"
    )
    answers = resolve(tmp_path, PYTHONPATH=str(package.parent))
    assert {(answer["platform"], answer["device"]) for answer in answers.values()} == {("cambricon", "mlu")}
    assert {answer["capability_values"] for answer in answers.values()} == {2}
