# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Faults that people met in the field, planted: the doctor names each by its check, with what mends it."""

from pathlib import Path

import pytest
from doctorkit import Answer, Patient, bare_environment


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient.make(tmp_path)


def assert_found(answer: Answer, check: str, status: str, observed: str, mend: str) -> None:
    """One fault, by the right check, with what was seen and what to type."""
    found = answer[check]
    assert found["status"] == status, found
    assert observed in found["observed"] + found["details"], found
    assert mend in found["mend"], found
    assert found["expected"]
    assert found["why"]
    assert found["doc"].startswith("docs/doctor.md#")
    assert answer.code == (0 if status == "warn" and not _failed(answer) else 1)


def _failed(answer: Answer) -> bool:
    return any(result["status"] in ("fail", "crash") for result in answer.data["results"])


class TestVariables:
    """Several at once, which do not mask each other."""

    @pytest.fixture(scope="class")
    def answer(self, tmp_path_factory: pytest.TempPathFactory) -> Answer:
        patient = Patient.make(tmp_path_factory.mktemp("variables"))
        patient.module("flag_gems/__init__.py", "")
        patient.package("flag_gems", "4.2")
        return patient.doctor(
            *("--check", "environment", "--check", "packages.overrides"),
            VERL_PLATFORM=" Intell ",
            VERL_ENGINE_VENDOR="flagoss",
            VERL_USE_EXTERNAL_MODULES="verl_hardware_plugin",
            RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES="0",
            VERL_HW_REDUCTIONS="sum",
            TRAINING_FL_FLAGGEMS_ENABLE="1",
        )

    @pytest.mark.parametrize(
        ("check", "status", "observed", "mend"),
        [
            ("environment.platform", "fail", "names no platform", "export VERL_PLATFORM=intel"),
            ("environment.engine", "fail", "VERL_ENGINE_VENDOR=flagoss", "unset VERL_ENGINE_VENDOR"),
            ("environment.modules", "fail", "verl_hardware_plugin cannot be found", "unset VERL_USE_EXTERNAL_MODULES"),
            ("environment.noset", "warn", "any value counts as yes", "unset RAY_EXPERIMENTAL_NOSET_CUDA"),
            ("environment.settings", "warn", "VERL_HW_REDUCTIONS is read by nobody", "export VERL_HW_REDUCTION=sum"),
            ("packages.overrides", "warn", "flag_gems 4.2", "unset TRAINING_FL_FLAGGEMS_ENABLE"),
        ],
    )
    def test_is_named(self, answer: Answer, check: str, status: str, observed: str, mend: str) -> None:
        assert_found(answer, check, status, observed, mend)


@pytest.mark.parametrize(
    ("variables", "check", "status", "observed", "mend"),
    [
        ({"VERL_PLATFORM": "flagos"}, "environment.platform", "fail", "VERL_PLATFORM=flagos", "unset VERL_PLATFORM"),
        (
            {"MLU_VISIBLE_DEVICES": "0,,1"}, "environment.visible", "fail",
            "entry '' is not valid", "export MLU_VISIBLE_DEVICES=0,1",
        ),
        ({"MLU_VISIBLE_DEVICES": ""}, "environment.visible", "warn", "sees no device", "unset MLU_VISIBLE_DEVICES"),
        (
            {"MLU_VISIBLE_DEVICES": "0,1", "CN_VISIBLE_DEVICES": "1"}, "environment.conflicting", "warn",
            "CN_VISIBLE_DEVICES wins", "unset MLU_VISIBLE_DEVICES",
        ),
        (
            {"RAY_EXPERIMENTAL_NOSET_MLU_VISIBLE_DEVICES": "1"}, "environment.noset", "warn",
            "Ray does not restrict MLU_VISIBLE_DEVICES", "unset RAY_EXPERIMENTAL_NOSET_MLU_VISIBLE_DEVICES",
        ),
        (
            {"VLLM_FL_FLAGOS_WHITELIST": "mm", "VLLM_FL_FLAGOS_BLACKLIST": "bmm"}, "packages.overrides", "fail",
            "both set", "unset VLLM_FL_FLAGOS_WHITELIST",
        ),
        ({"VERL_HW_REDUCTION": "avg"}, "environment.settings", "fail", "VERL_HW_REDUCTION=avg", "=auto"),
        (
            {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, "environment.autoload", "warn",
            "torch_mlu itself", "unset TORCH_DEVICE_BACKEND_AUTOLOAD",
        ),
    ],
)  # fmt: skip
def test_a_variable(patient: Patient, variables, check, status, observed, mend) -> None:
    patient.node("cambricon_dev0")
    assert_found(patient.doctor("--check", check, **variables), check, status, observed, mend)


def test_a_second_selector_of_the_same_devices(patient: Patient) -> None:
    answer = patient.doctor(
        *("--vendor", "xpu", "--check", "environment.conflicting"),
        ZE_AFFINITY_MASK="0.0,0.1",
        ONEAPI_DEVICE_SELECTOR="level_zero:1",
    )
    assert_found(answer, "environment.conflicting", "warn", "both filter", "unset ONEAPI_DEVICE_SELECTOR")


@pytest.mark.parametrize("value", ["verl_hw_cambricon", "verl-hw-cambricon", "mlu", "cambrican"])
def test_a_typo_that_turns_every_plugin_off(patient: Patient, value: str) -> None:
    answer = patient.doctor("--check", "wheels.filtered", VERL_USE_EXTERNAL_PLUGINS=value)
    mend = "export VERL_USE_EXTERNAL_PLUGINS=cambricon"
    assert_found(answer, "wheels.filtered", "fail", "filtered out: cambricon", mend)


def test_the_wheel_of_the_hardware_is_left_out(patient: Patient) -> None:
    patient.node("cambricon_dev0")
    answer = patient.doctor("--check", "wheels.filtered", VERL_USE_EXTERNAL_PLUGINS="intel")
    assert_found(answer, "wheels.filtered", "fail", "hardware of cambricon is here", "PLUGINS=intel,cambricon")


class TestDetection:
    def test_a_management_tool_alone_on_a_machine_with_stock_torch(self, patient: Patient) -> None:
        patient.tool("mx-smi", "exit 0")
        patient.torch("2.13.0+cu130")
        answer = patient.doctor("--check", "detection", "--check", "python.torch_build")
        assert answer["detection.vendor"]["status"] == "ok"
        assert "metax" in answer["detection.vendor"]["observed"]
        assert_found(answer, "python.torch_build", "fail", "a stock build has replaced", "+metax")

    def test_tools_that_hang_and_fail(self, patient: Patient) -> None:
        patient.tool("mx-smi", "exec /bin/sleep 60")
        patient.tool("cnmon", "echo no driver; exit 215")
        answer = patient.doctor("--check", "detection")
        assert_found(answer, "detection.tools", "warn", "no answer", "cnmon info")
        assert_found(answer, "detection.vendor", "warn", "exited 215", "export VERL_PLATFORM=cambricon")
        assert answer.data["seconds"] < 10

    def test_two_vendors(self, patient: Patient) -> None:
        patient.node("cambricon_dev0")
        patient.node("gcu0")
        answer = patient.doctor("--check", "detection")
        assert_found(answer, "detection.vendor", "warn", "Several accelerators", "export VERL_PLATFORM=enflame")

    def test_a_card_without_its_driver(self, patient: Patient) -> None:
        patient.file("sys/bus/pci/devices/0000:01:00.0/vendor", "0x1e36\n")
        patient.file("sys/bus/pci/devices/0000:01:00.0/class", "0x120000\n")
        answer = patient.doctor("--check", "detection.driver")
        assert_found(answer, "detection.driver", "fail", "no /dev/gcuctl", "--device")


class TestPackages:
    """A set of packages as a vendor's guide left it."""

    @pytest.fixture(scope="class")
    def answer(self, tmp_path_factory: pytest.TempPathFactory) -> Answer:
        patient = Patient.make(tmp_path_factory.mktemp("packages"))
        patient.package("numpy", "1.26.4")
        patient.package(
            "verl", "0.8.0", requires=["numpy>=2.0.0", "tensordict!=0.9.0,>=0.8.0", 'pytest; extra == "test"']
        )
        patient.package("tensordict", "0.9.0")
        patient.module("flash_attn/__init__.py", "")
        patient.package("apex", "0.1")
        patient.wheel("acme", "SPEC = 1", requires="verl-hw-core>=7,<8")
        patient.package("verl-hardware-plugin", "0.2", points={"verl.plugins": {"cambricon": "verl_hardware_plugin"}})
        return patient.doctor("--check", "packages.requirements", "--check", "packages.faked", "--check", "wheels",
                              "--check", "python.versions")  # fmt: skip

    @pytest.mark.parametrize(
        ("check", "status", "observed", "mend"),
        [
            (
                "packages.requirements",
                "fail",
                "wants numpy>=2.0.0, found 1.26.4",
                "pip install --no-deps 'numpy>=2.0.0'",
            ),
            ("packages.requirements", "fail", "tensordict!=0.9.0,>=0.8.0, found 0.9.0", "'tensordict!=0.9.0,>=0.8.0'"),
            ("packages.faked", "warn", "module flash_attn belongs to no installed package", "flash_attn/__init__.py"),
            ("packages.faked", "warn", "package apex is installed without its module", ""),
            ("python.versions", "fail", "verl 0.8.0", "pip install --no-deps 'verl>=0.9"),
            ("wheels.contract", "fail", "verl-hw-acme 1.0 wants verl-hw-core<8,>=7", "'verl-hw-core<8,>=7'"),
            ("wheels.facts", "fail", "must define SPEC as a HardwareSpec", "--force-reinstall --no-deps verl-hw-acme"),
            ("wheels.twins", "fail", "'cambricon' comes from", "pip uninstall verl-hardware-plugin"),
        ],
    )
    def test_is_named(self, answer: Answer, check: str, status: str, observed: str, mend: str) -> None:
        assert_found(answer, check, status, observed, mend)


class TestPlugins:
    def test_the_error_that_verl_hides(self, patient: Patient) -> None:
        patient.plugin("fine", "")
        patient.plugin("images", "def load():\n    import PIL_that_is_absent\nload()\n")
        answer = patient.doctor("--check", "plugins", VERL_USE_EXTERNAL_PLUGINS="fine,images")
        assert_found(
            answer, "plugins.load", "fail", "No module named 'PIL_that_is_absent'", "pip install --no-deps PIL_th"
        )
        assert "in load" in answer["plugins.load"]["details"]
        assert "fine:" not in answer["plugins.load"]["observed"]

    @pytest.mark.parametrize(
        ("code", "observed"),
        [
            ("import os; os._exit(3)", "ended itself with exit code 3"),
            ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV"),
            ("import time; time.sleep(600)", "no answer within 2 s"),
        ],
    )
    def test_a_death_or_a_hang_is_the_plugins(self, patient: Patient, code: str, observed: str) -> None:
        patient.plugin("bad", code)
        patient.plugin("good", "")
        answer = patient.doctor("--check", "plugins.load", "--deadline", "2", VERL_USE_EXTERNAL_PLUGINS="good,bad")
        assert_found(answer, "plugins.load", "crash", f"bad: {observed}" if "2 s" in observed else "bad: the", "good")
        assert observed in answer["plugins.load"]["observed"]
        if "exit" not in observed:
            assert "plugin_bad.py" in answer["plugins.load"]["details"], "the stack names the line"

    def test_what_the_core_reported_is_shown_with_its_remedy(self, patient: Patient) -> None:
        report = "('verl-hw-acme', 'platform acme', 'x.Y took it and was refused', 'Uninstall the package of x')"
        patient.plugin("acme", f"from verl_hw_core import load_report\nload_report.report{report}\n")
        answer = patient.doctor("--check", "plugins.owners", VERL_USE_EXTERNAL_PLUGINS="acme")
        assert_found(answer, "plugins.owners", "warn", "x.Y took it", "Uninstall the package of x")


class TestTorch:
    def test_a_missing_library(self, patient: Patient) -> None:
        patient.torch("2.13.0+cpu", code="raise OSError('libtorch_acme.so: cannot open shared object file')\n")
        answer = patient.doctor("--check", "python.torch")
        assert_found(answer, "python.torch", "fail", "libtorch_acme.so", "reinstall torch")

    def test_no_torch(self, patient: Patient, tmp_path: Path) -> None:
        python = bare_environment(tmp_path / "venv", ["torch-", "torch.", "torch", "functorch"])
        answer = _without_miniatures(patient, python).doctor()
        assert_found(answer, "python.torch", "fail", "torch is not installed", "pip install torch")
        assert "python.torch" in answer.bad
        assert answer["plugins.load"]["status"] == "skip"

    def test_no_verl_and_no_ray(self, patient: Patient, tmp_path: Path) -> None:
        python = bare_environment(tmp_path / "venv", ["verl", "ray", "torch"])
        answer = _without_miniatures(patient, python).doctor("--check", "verl", "--check", "ray")
        assert_found(answer, "verl.installed", "fail", "verl is not installed", "pip install --no-deps 'verl>=0.9'")
        assert_found(answer, "ray.installed", "fail", "ray is not installed", "pip install 'ray[default]")


def _without_miniatures(patient: Patient, python: str) -> Patient:
    import shutil

    for name in ("torch", "verl"):
        shutil.rmtree(patient.folder / "site" / name)
    return Patient(patient.folder, python)


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
        answer = patient.doctor("--check", "runtime", "--deadline", "2", **self.ONLY)
        assert_found(answer, "runtime.devices", "crash", "no answer within 2 s", "import torch, torch_acme")
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
        patient.module("megatron/__init__.py", "raise ImportError('apex is required')")
        broken = patient.doctor("--check", "packages.megatron", **TestRuntime.ONLY)
        assert_found(broken, "packages.megatron", "fail", "megatron", "megatron-core")


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

    def test_the_file_of_a_cluster_that_is_gone_is_only_a_warning(self, patient: Patient) -> None:
        patient.module("ray/__init__.py", FAKE_RAY.replace('os.environ["RAY_ADDRESS"]', '"nobody:1"'))
        file = patient.folder / "tmp" / "ray" / "ray_current_cluster"
        file.parent.mkdir()
        file.write_text("10.0.0.1:6379")
        answer = patient.doctor("--check", "ray.cluster")
        assert_found(answer, "ray.cluster", "warn", "no cluster", "rm ")


def test_a_healthy_machine_without_hardware_has_no_complaint(patient: Patient) -> None:
    answer = patient.doctor(VERL_USE_EXTERNAL_PLUGINS="none")
    assert answer.bad <= {"system.shm", "system.open_files", "python.versions"}, answer.bad
    assert answer.code == 0
    assert answer.data["schema_version"] == 1
    assert answer["runtime.devices"]["status"] == answer["verl.import"]["status"] == "skip"
