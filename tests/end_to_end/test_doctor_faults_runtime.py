# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Planted faults of a vendor's runtime, of verl and of Ray: the doctor names each by its check, with what mends it."""

from pathlib import Path

import pytest
from doctorkit import Answer, Patient, assert_found
from machine_speed import scaled


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient.make(tmp_path)


class TestRuntime:
    """The runtime of a vendor that does not exist."""

    ONLY = {"VERL_USE_EXTERNAL_PLUGINS": "acme"}

    def test_a_broken_extension(self, patient: Patient) -> None:
        patient.acme(extension="raise OSError('libaccl.so.1: cannot open shared object file: No such file')\n")
        answer = patient.doctor("--check", "runtime", **self.ONLY)
        assert_found(answer, "runtime.devices", "fail", "OSError: libaccl.so.1", "grep libaccl.so.1")
        assert answer["runtime.collectives"]["status"] == "skip"

    def test_an_extension_that_is_installed_without_its_torch(self, patient: Patient) -> None:
        patient.acme(extension="import a_part_that_is_missing\n")
        patient.torch("2.13.0+cu130")
        answer = patient.doctor("--check", "python.torch_build", **self.ONLY)
        assert_found(answer, "python.torch_build", "warn", "torch_acme is installed", "+acme")

    def test_a_runtime_that_raises(self, patient: Patient) -> None:
        patient.acme(
            extension="import torch, types\ndef no(): raise RuntimeError('acInit failed: 100')\n"
            "torch.acmedev = types.SimpleNamespace(device_count=no, is_available=no)\n"
        )
        answer = patient.doctor("--check", "runtime", **self.ONLY)
        assert_found(answer, "runtime.devices", "fail", "acInit failed: 100", "import torch, torch_acme")

    def test_a_runtime_that_hangs(self, patient: Patient) -> None:
        patient.acme(extension="import time; time.sleep(600)\n")
        deadline = scaled(2)
        answer = patient.doctor("--check", "runtime", "--deadline", str(deadline), **self.ONLY)
        says = f"no answer within {deadline:.0f} s"
        assert_found(answer, "runtime.devices", "crash", says, "import torch, torch_acme")
        assert "torch_acme.py" in answer["runtime.devices"]["details"]

    @pytest.mark.parametrize(
        ("check", "status", "observed", "mend"),
        [
            ("runtime.devices", "fail", "lists 4 devices but the runtime shows 3", "export ACME_VISIBLE_DEVICES=0,1,2"),
            ("runtime.collectives", "fail", "no backend 'accl'", "n_gpus_per_node=1"),
            ("runtime.module", "fail", "lacks set_rng_state", "verl-hw check"),
        ],
    )
    def test_what_it_lacks(self, lacking: Answer, check: str, status: str, observed: str, mend: str) -> None:
        assert_found(lacking, check, status, observed, mend)
        assert "ipc_collect: device IPC" in lacking["runtime.module"]["details"]

    @pytest.fixture(scope="class")
    def lacking(self, tmp_path_factory: pytest.TempPathFactory) -> Answer:
        patient = Patient.make(tmp_path_factory.mktemp("lacking"))
        patient.acme(extension="", count=3, names="set_rng_state ipc_collect memory", backends="")
        return patient.doctor("--check", "runtime", ACME_VISIBLE_DEVICES="0,1,2,3", **self.ONLY)


class TestVerl:
    """A verl in which the vendor's engines and platform are not in force."""

    @pytest.fixture(scope="class")
    def answer(self, tmp_path_factory: pytest.TempPathFactory) -> Answer:
        patient = Patient.make(tmp_path_factory.mktemp("verl"))
        patient.acme(extension="")
        patient.module("megatron/core/__init__.py", "")
        patient.module("transformer_engine/__init__.py", "raise OSError('libtransformer_engine.so: no such file')")
        return patient.doctor("--check", "verl", "--check", "packages.megatron", **TestRuntime.ONLY)

    @pytest.mark.parametrize(
        ("check", "status", "observed", "mend"),
        [
            ("verl.platform", "fail", "verl takes nvidia", "export VERL_PLATFORM=acme"),
            ("verl.engines", "fail", "no engine of verl-hw-acme for language_model x fsdp", "--check plugins"),
            ("packages.megatron", "fail", "libtransformer_engine.so", "strategy=fsdp2"),
        ],
    )
    def test_is_named(self, answer: Answer, check: str, status: str, observed: str, mend: str) -> None:
        assert_found(answer, check, status, observed, mend)

    def test_the_matrix_and_what_weight_transfer_lacks_are_shown(self, answer: Answer) -> None:
        assert "value_model x fsdp: none: No engine registered" in answer["verl.engines"]["details"]
        assert (
            "acme_checkpoint_engine: ModuleNotFoundError: No module named 'vllm'" in answer["verl.transfer"]["observed"]
        )

    def test_megatron_has_a_word_for_each_case(self, patient: Patient) -> None:
        patient.acme(extension="")
        patient.module("megatron/__init__.py", "")
        half = patient.doctor("--check", "packages.megatron", **TestRuntime.ONLY)
        assert_found(half, "packages.megatron", "fail", "without megatron.core", "pip install --no-deps megatron-core")
        patient.module("megatron/core/__init__.py", "")
        alone = patient.doctor("--check", "packages.megatron", **TestRuntime.ONLY)
        assert "without Transformer Engine" in alone["packages.megatron"]["observed"]
        patient.module("megatron/core/__init__.py", "import apex_that_is_absent")
        broken = patient.doctor("--check", "packages.megatron", **TestRuntime.ONLY)
        assert_found(broken, "packages.megatron", "fail", "apex_that_is_absent", "reinstall megatron-core")


FAKE_RAY = """
import os
__version__ = "2.60.0"
def init(**_):
    if os.environ["RAY_ADDRESS"] == "nobody:1":
        raise ConnectionError("no cluster at nobody:1")
def nodes(): return [{"NodeID": "n" * 40, "Alive": True, "Resources": {"CPU": 4.0, "GPU": 8.0, "node:here": 1.0}}]
class Task:
    def __init__(self, function): self._function = function
    def options(self, **_): return self
    def remote(self):
        kept = os.environ.pop("VERL_PLATFORM", None)
        answer = self._function()
        os.environ["VERL_PLATFORM"] = kept or ""
        return id(ANSWERS.append(answer)), len(ANSWERS) - 1
ANSWERS = []
def remote(**_): return Task
def wait(references, **_): return references, []
def get(reference): return ANSWERS[reference[1]]
"""


class TestRay:
    @pytest.fixture
    def patient(self, patient: Patient) -> Patient:
        patient.module("ray/__init__.py", FAKE_RAY)
        patient.module("ray/util/__init__.py", "")
        patient.module(
            "ray/util/scheduling_strategies.py",
            "class NodeAffinitySchedulingStrategy:\n    def __init__(self, **_): pass\n",
        )
        patient.acme(extension="")
        return patient

    def test_a_cluster_that_does_not_know_the_device_nor_the_drivers_variables(self, patient: Patient) -> None:
        answer = patient.doctor("--check", "ray", RAY_ADDRESS="here:1", VERL_PLATFORM="acme")
        assert answer["ray.cluster"]["status"] == "ok"
        assert_found(answer, "ray.resource", "fail", "no node has ACME", "ray start --head --resources=")
        assert_found(answer, "ray.agreement", "fail", "VERL_PLATFORM=(unset) there, acme here", "export VERL_PLATFORM")

    def test_an_address_where_nobody_answers(self, patient: Patient) -> None:
        answer = patient.doctor("--check", "ray", RAY_ADDRESS="nobody:1")
        assert_found(answer, "ray.cluster", "fail", "no cluster at nobody:1", "unset RAY_ADDRESS")

    def test_a_cluster_that_wants_a_token(self, patient: Patient) -> None:
        refusal = 'raise ConnectionError("no") from ValueError("RPC error: InvalidAuthToken: token is missing")'
        patient.module("ray/__init__.py", FAKE_RAY.replace('raise ConnectionError("no cluster at nobody:1")', refusal))
        answer = patient.doctor("--check", "ray.cluster", RAY_ADDRESS="nobody:1")
        assert_found(answer, "ray.cluster", "fail", "ConnectionError", "export RAY_AUTH_MODE=token")

    def test_the_file_of_a_cluster_that_is_gone_is_only_a_warning(self, patient: Patient) -> None:
        patient.module("ray/__init__.py", FAKE_RAY.replace('os.environ["RAY_ADDRESS"]', '"nobody:1"'))
        file = patient.folder / "tmp" / "ray" / "ray_current_cluster"
        file.parent.mkdir()
        file.write_text("10.0.0.1:6379")
        answer = patient.doctor("--check", "ray.cluster")
        assert_found(answer, "ray.cluster", "warn", "no cluster", "rm ")
