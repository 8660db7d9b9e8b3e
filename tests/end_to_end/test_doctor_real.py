# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw doctor`` over the real torch and verl: without hardware, and on simulated devices with planted faults."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from doctorkit import Answer, Patient
from machine_speed import scaled

from verl_hw_sim import simulated_environment

# As the public multi-vendor plugin does it: our key, and engines imported while the entry point loads.
FOREIGN = """
from verl.plugin.platform.platform_cuda import PlatformCUDA
from verl.plugin.platform.platform_manager import PlatformRegistry
@PlatformRegistry.register(platform="cambricon")
class PlatformMLU(PlatformCUDA):
    device_name, vendor_name = "mlu", "cambricon"
"""
TALKS = "print('a banner on standard output')\nimport os; os.system('echo and another one')\n"


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient.make(tmp_path).with_real_stack()


def test_without_hardware_nothing_is_wrong_and_neither_ray_nor_transformers_is_imported(patient: Patient) -> None:
    """What keeps it under five seconds: of all that verl imports, torch alone."""
    mark = patient.folder / "imported"
    for name in ("ray", "transformers", "tensordict"):
        patient.module(f"{name}/__init__.py", f"open({str(mark)!r}, 'w').close()\n")
    patient.plugin("banner", TALKS)
    answer = patient.doctor()
    assert not mark.exists()
    assert answer.bad <= {"system.shm", "system.open_files", "python.versions", "packages.requirements"}, answer.bad
    assert answer["plugins.load"]["status"] == "ok"
    assert "cambricon from verl-hw-cambricon" in answer["plugins.owners"]["observed"]
    assert "nvidia from verl" in answer["plugins.owners"]["observed"]
    assert answer["verl.import"]["status"] == "skip"


@pytest.mark.slow
@pytest.mark.ci
class TestSimulated:
    @pytest.fixture(scope="class")
    def answer(self, tmp_path_factory: pytest.TempPathFactory) -> Answer:
        patient = Patient.make(tmp_path_factory.mktemp("simulated")).with_real_stack()
        patient.plugin("foreign", FOREIGN)
        patient.plugin("images", "import PIL_that_is_absent\n")
        # The simulator needs its compiler, and what it compiled before.
        own = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}
        environment = {**own, "MLU_VISIBLE_DEVICES": "0,1", **simulated_environment("cambricon", 4)}
        return patient.doctor(**{"XDG_CACHE_HOME": "", **environment})

    def test_the_plugin_that_verl_hides(self, answer: Answer) -> None:
        assert answer["plugins.load"]["status"] == "fail"
        assert "images: ModuleNotFoundError" in answer["plugins.load"]["observed"]
        assert answer.code == 1

    def test_the_plugin_under_our_key(self, answer: Answer) -> None:
        assert answer["plugins.owners"]["status"] == "warn"
        assert "plugin_foreign.PlatformMLU" in answer["plugins.owners"]["observed"]
        assert "Uninstall the package that provides 'plugin_foreign'" in answer["plugins.owners"]["mend"]

    def test_platform_engines_and_devices_are_the_vendors(self, answer: Answer) -> None:
        assert answer["verl.platform"]["observed"].startswith("cambricon (torch.mlu, cncl")
        assert answer["verl.engines"]["status"] == "ok"
        assert "language_model x fsdp2: verl_hw_cambricon.engines" in answer["verl.engines"]["details"]
        assert answer["runtime.devices"]["observed"].startswith("SIMULATED: 2 x ")
        assert answer["runtime.collectives"]["status"] == answer["runtime.module"]["status"] == "ok"
        assert "naive" in answer["verl.transfer"]["observed"]
        assert "in force" in answer["verl.ledger"]["observed"] + answer["verl.ledger"]["details"]


CLUSTER = """
import ray, sys
context = ray.init(address="local", num_cpus=2, num_gpus=2, include_dashboard=False, _temp_dir=sys.argv[1])
print("ADDRESS", context.address_info["gcs_address"], flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.ci
def test_a_running_ray_cluster(patient: Patient) -> None:
    patient.node("cambricon_dev0")
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="rd") as folder:
        cluster = subprocess.Popen(
            [sys.executable, "-c", CLUSTER, folder],
            # A busy machine takes its time to start Ray.
            env={**patient.environment(RAY_raylet_start_wait_time_s="180"), "PATH": os.environ["PATH"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            address = next(line.split()[1] for line in cluster.stdout if line.startswith("ADDRESS"))
            answer = patient.doctor("--check", "ray", RAY_ADDRESS=address, RAY_AUTH_MODE="token", VERL_PLATFORM="mlu")
        finally:
            cluster.communicate("", timeout=scaled(60))
    assert answer["ray.cluster"]["observed"].startswith("1 nodes: ")
    assert answer["ray.resource"]["observed"] == "GPU: 2"
    assert answer["ray.agreement"]["status"] == "fail"
    assert "VERL_PLATFORM=(unset) there, mlu here" in answer["ray.agreement"]["observed"]
