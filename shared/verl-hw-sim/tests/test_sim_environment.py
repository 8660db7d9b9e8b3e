# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a parent sets for its children, and profiles of third parties."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from verl_hw_sim import simulated_environment
from verl_hw_sim.errors import SettingsError


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VERL_HW_SIM_CACHE", str(tmp_path / "cache"))


def test_simulated_environment():
    variables = simulated_environment("cambricon", 3, limits="avg_rejected")
    root = variables.pop("VERL_HW_PROBE_ROOT")
    assert variables == {"VERL_HW_SIM": "cambricon:3", "VERL_HW_SIM_LIMITS": "avg_rejected"}
    assert sorted(path.name for path in Path(root, "dev").iterdir()) == [
        "cambricon_ctl",
        *(f"cambricon_dev{number}" for number in range(3)),
    ]
    assert simulated_environment("cambricon", 3)["VERL_HW_PROBE_ROOT"] == root
    assert simulated_environment("cambricon", 2)["VERL_HW_PROBE_ROOT"] != root


def test_the_management_tool_lists_the_devices():
    root = simulated_environment("metax", 4)["VERL_HW_PROBE_ROOT"]
    tool = subprocess.run([f"{root}/opt/mxdriver/bin/mx-smi", "-L"], capture_output=True, text=True, check=True)
    assert len(tool.stdout.splitlines()) == 5


def test_a_parent_does_not_import_torch(run_python):
    child = run_python(
        "-c",
        "import sys, verl_hw_sim; verl_hw_sim.simulated_environment('intel', 2); assert 'torch' not in sys.modules",
        VERL_HW_SIM_CACHE=os.environ["VERL_HW_SIM_CACHE"],
    )
    assert child.returncode == 0, child.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("cambricom", 2), "Did you mean"), (("intel", 17), "1 to 16"), (("intel", 2, "avg"), "avg_rejected")],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(SettingsError, match=words):
        simulated_environment(*arguments)


PLUGIN = """
from verl_hw_sim.profiles import HostTraces, Profile

ACME = Profile(
    vendor="acme",
    device_name="apu",
    ccl_backend="accl",
    mask_variables=("APU_VISIBLE_DEVICES",),
    extension_module="torch_apu",
    range_module="ranges",
    absent=("empty_cache",),
    host=HostTraces(device_nodes=("dev/apu{index}",)),
)
WRONG = "acme"
"""


def _third_party(folder, target):
    (folder / "acme_sim.py").write_text(PLUGIN)
    info = folder / "acme_sim-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-sim\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[verl_hw_sim.profiles]\nacme = acme_sim:{target}\n")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))}


def test_a_profile_of_a_third_party(run_python, tmp_path):
    program = """
        import importlib, os, torch
        assert torch.ones(2, device="apu:2").sum().item() == 2
        assert torch.apu.device_count() == 3
        assert torch.ones(1).apu().is_apu
        assert not hasattr(torch.apu, "empty_cache")
        assert torch.apu.ranges.range_push("a") == 0
        assert torch.distributed.get_default_backend_for_device("apu") == "accl"
        assert importlib.import_module("torch_apu").apu is torch.apu
        assert os.path.exists(os.environ["VERL_HW_PROBE_ROOT"] + "/dev/apu2")
        print("good")
    """
    # The native half is that of every PrivateUse1 device: take it from the usual cache.
    usual = {name: os.environ[name] for name in ("XDG_CACHE_HOME",) if name in os.environ}
    child = run_python(
        "-c",
        textwrap.dedent(program),
        VERL_HW_SIM="acme:3",
        **usual,
        **_third_party(tmp_path, "ACME"),
        VERL_HW_SIM_CACHE=USUAL_CACHE,
    )
    assert child.stdout.strip() == "good", child.stderr


@pytest.mark.parametrize("root_of", ["another vendor", "the user"])
def test_a_child_that_simulates_another_vendor_sees_its_machine(run_python, tmp_path, root_of):
    inherited = simulated_environment("cambricon", 2)["VERL_HW_PROBE_ROOT"] if root_of == "another vendor" else tmp_path
    program = (
        "import os, verl_hw_sim.install as i; from verl_hw_sim.profiles import get_profile; "
        "i._show_fake_host(get_profile('enflame'), 2); print(os.environ['VERL_HW_PROBE_ROOT'])"
    )
    child = run_python("-c", program, VERL_HW_PROBE_ROOT=str(inherited), VERL_HW_SIM_CACHE=str(tmp_path / "cache"))
    own = simulated_environment("enflame", 2)["VERL_HW_PROBE_ROOT"]
    assert child.stdout.strip() == (own if root_of == "another vendor" else str(tmp_path)), child.stderr


# Before any fixture changes it; an empty value means the default.
USUAL_CACHE = os.environ.get("VERL_HW_SIM_CACHE", "")


def test_a_wrong_entry_point_is_refused(tmp_path):
    child = subprocess.run(
        [sys.executable, "-c", "import verl_hw_sim; verl_hw_sim.simulated_environment('acme', 2)"],
        env={**os.environ, **_third_party(tmp_path, "WRONG")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "entry point 'acme' of group verl_hw_sim.profiles must be a verl_hw_sim.profiles.Profile" in child.stderr
