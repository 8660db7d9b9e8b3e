# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Faults that people met in the field, planted: the doctor names each by its check, with what mends it."""

import signal
import time
from pathlib import Path

import pytest
from detectionkit import is_running
from doctorkit import Answer, Patient, assert_found, bare_environment
from machine_speed import scaled


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient.make(tmp_path)


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
            {"RAY_EXPERIMENTAL_NOSET_MLU_VISIBLE_DEVICES": "off"}, "environment.noset", "warn",
            "any value counts as yes", "unset RAY_EXPERIMENTAL_NOSET_MLU_VISIBLE_DEVICES",
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


def test_a_mask_that_ray_leaves_alone_is_no_fault(patient: Patient) -> None:
    """Workers of ours choose by ordinal, and on Intel the wheel itself sets it."""
    patient.node("cambricon_dev0")
    answer = patient.doctor("--check", "environment.noset", RAY_EXPERIMENTAL_NOSET_MLU_VISIBLE_DEVICES="1")
    found = answer["environment.noset"]
    assert (found["status"], answer.code) == ("ok", 0), found
    assert "ours choose theirs by ordinal" in found["observed"]


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
        assert_found(answer, "detection.tools", "warn", "no answer", "cnmon info; ")
        assert "mx-smi" in answer["detection.tools"]["mend"]
        assert_found(answer, "detection.vendor", "warn", "exited 215", "export VERL_PLATFORM=cambricon")
        assert answer.data["seconds"] < scaled(10)

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
            ("packages.faked", "warn", "module flash_attn belongs to no installed package", "/flash_attn.aside"),
            ("packages.faked", "warn", "package apex is installed without its module", ""),
            ("python.versions", "fail", "verl 0.8.0", "pip install --no-deps 'verl>=0.9"),
            ("wheels.contract", "fail", "verl-hw-acme 1.0 wants verl-hw-core<8,>=7", "'verl-hw-core<8,>=7'"),
            ("wheels.facts", "fail", "must define SPEC as a HardwareSpec", "--force-reinstall --no-deps verl-hw-acme"),
            ("wheels.twins", "fail", "'cambricon' comes from", "pip uninstall verl-hardware-plugin"),
        ],
    )
    def test_is_named(self, answer: Answer, check: str, status: str, observed: str, mend: str) -> None:
        assert_found(answer, check, status, observed, mend)


def test_a_vendors_machine_without_rollout_engine_and_flash_attention(patient: Patient) -> None:
    patient.node("cambricon_dev0")
    answer = patient.doctor("--check", "packages.attention", "--check", "packages.rollout")
    assert_found(answer, "packages.rollout", "warn", "only fine-tuning (SFT) works", "the vendor's vllm")
    assert "choose SDPA" in answer["packages.attention"]["observed"]


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

    def test_a_secret_in_a_traceback_is_hidden(self, patient: Patient) -> None:
        patient.plugin("bad", "raise OSError('401 for https://me:letmein@index.example, token hf_abcdefghijkl')\n")
        answer = patient.doctor("--check", "plugins.load", VERL_USE_EXTERNAL_PLUGINS="bad")
        assert "401 for https://<hidden>@index.example, token <hidden>" in answer["plugins.load"]["observed"]
        assert "letmein" not in str(answer.data)

    @pytest.mark.parametrize(
        ("code", "observed"),
        [
            ("import os; os._exit(3)", "ended itself with exit code 3"),
            ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV"),
            ("import time; time.sleep(600)", "no answer within {:.0f} s"),
        ],
    )
    def test_a_death_or_a_hang_is_the_plugins(self, patient: Patient, code: str, observed: str) -> None:
        patient.plugin("bad", code)
        patient.plugin("good", "")
        deadline = scaled(2)
        hangs, observed = "answer" in observed, observed.format(deadline)
        answer = patient.doctor(
            "--check", "plugins.load", "--deadline", str(deadline), VERL_USE_EXTERNAL_PLUGINS="good,bad"
        )
        assert_found(answer, "plugins.load", "crash", f"bad: {observed}" if hangs else "bad: the", "good")
        assert observed in answer["plugins.load"]["observed"]
        if "exit" not in observed:
            assert "plugin_bad.py" in answer["plugins.load"]["details"], "the stack names the line"

    def test_what_the_core_reported_is_shown_with_its_remedy(self, patient: Patient) -> None:
        report = "('verl-hw-acme', 'platform acme', 'x.Y took it and was refused', 'Uninstall the package of x')"
        patient.plugin("acme", f"from verl_hw_core import load_report\nload_report.report{report}\n")
        answer = patient.doctor("--check", "plugins.owners", VERL_USE_EXTERNAL_PLUGINS="acme")
        assert_found(answer, "plugins.owners", "warn", "x.Y took it", "Uninstall the package of x")

    def test_an_interrupt_leaves_nothing_behind(self, patient: Patient) -> None:
        file = patient.folder / "pid"
        patient.plugin("bad", f"import os, time\nopen({str(file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
        process = patient.start("doctor", "--check", "plugins.load", VERL_USE_EXTERNAL_PLUGINS="bad")
        while not (file.exists() and file.read_text()):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=scaled(60))
        assert process.returncode == 130, said
        assert not is_running(int(file.read_text()))


class TestTorch:
    def test_a_missing_library(self, patient: Patient) -> None:
        patient.torch("2.13.0+cpu", code="raise OSError('libtorch_acme.so: cannot open shared object file')\n")
        answer = patient.doctor("--check", "python.torch")
        assert_found(answer, "python.torch", "fail", "libtorch_acme.so", "reinstall torch")

    def test_no_torch(self, patient: Patient, tmp_path: Path) -> None:
        python = bare_environment(tmp_path / "venv", ["torch-", "torch.", "torch", "functorch"])
        answer = patient.with_real_stack(python).doctor()
        assert_found(answer, "python.torch", "fail", "torch is not installed", "pip install torch")
        assert "python.torch" in answer.bad
        assert answer["plugins.load"]["status"] == "skip"

    def test_no_verl_and_no_ray(self, patient: Patient, tmp_path: Path) -> None:
        python = bare_environment(tmp_path / "venv", ["verl", "ray", "torch", "megatron"])
        answer = patient.with_real_stack(python).doctor("--check", "verl", "--check", "ray", "--check", "packages")
        assert "megatron is not installed: backend=megatron is not" in answer["packages.megatron"]["observed"]
        assert_found(answer, "verl.installed", "fail", "verl is not installed", "pip install --no-deps 'verl>=0.9'")
        assert_found(answer, "ray.installed", "fail", "ray is not installed", "pip install 'ray[default]")


def test_a_healthy_machine_without_hardware_has_no_complaint(patient: Patient) -> None:
    answer = patient.doctor(VERL_USE_EXTERNAL_PLUGINS="none")
    assert answer.bad <= {"system.shm", "system.open_files", "python.versions"}, answer.bad
    assert answer.code == 0
    assert answer.data["schema_version"] == 1
    assert answer["runtime.devices"]["status"] == answer["verl.import"]["status"] == "skip"
