# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The switch: what VERL_HW_SIM and VERL_HW_SIM_LIMITS may say, and what happens without them."""

import sys
from pathlib import Path

import pytest
from machine_speed import scaled

import verl_hw_sim
from verl_hw_sim import limits
from verl_hw_sim.errors import NotSimulatingError, SettingsError, UnsupportedTorchError
from verl_hw_sim.profiles import BUILTIN_PROFILES, Profile, get_profile
from verl_hw_sim.settings import Request, parse_request
from verl_hw_sim.torch_support import SUPPORTED_TORCH, TORCH_RELEASES, check_torch_version


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("cambricon", Request("cambricon", 2)),
        ("Cambricon:1", Request("cambricon", 1)),
        (" intel : 16 ", Request("intel", 16)),
    ],
)
def test_requests(text, request_):
    assert parse_request(text) == request_


@pytest.mark.parametrize("text", [*(f"cambricon:{count}" for count in ("0", "17", "x", "", "-1")), ":2", " "])
def test_bad_requests_say_what_is_right(text):
    with pytest.raises(SettingsError, match=r"VERL_HW_SIM must be <vendor>\[:<devices>\].*1 to 16"):
        parse_request(text)


def test_an_unknown_vendor_gets_the_list_and_the_nearest_name():
    with pytest.raises(SettingsError, match=r"cambricon, enflame, intel, metax; found 'cambrian'\. Did you mean"):
        get_profile("cambrian")


@pytest.mark.parametrize(
    "text",
    ["", "avg_rejected", "avg_rejected,no_fp64,memory=64,deny=aten::topk,deny=mul,missing=a.b,raising=seed,hang=send"],
)
def test_limits_are_read_back(text):
    assert limits.parse(text).text == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("avg_reject", "Did you mean 'avg_rejected'"),
        ("memory", "memory is written memory=<value>"),
        ("memory=", "memory is written memory=<value>"),
        ("memory=1.5", "whole number of MiB"),
        ("memory=-1", "whole number of MiB"),
        ("no_fp64=1", "no_fp64 is written no_fp64"),
        ("deny", "deny is written deny=<value>"),
        ("unknown=3", "must be one of"),
    ],
)
def test_bad_limits_say_what_is_right(text, words):
    with pytest.raises(SettingsError, match=words):
        limits.parse(text)


def test_limits_need_a_simulated_device():
    with pytest.raises(NotSimulatingError, match="VERL_HW_SIM=cambricon:2"):
        limits.apply(limits.Limits())


@pytest.mark.parametrize("name", ["vendor", "device_name", "ccl_backend"])
def test_profiles_are_validated(name):
    facts = {"vendor": "acme", "device_name": "apu", "ccl_backend": "accl", "mask_variables": ()}
    with pytest.raises(SettingsError, match=f"{name} must be a lower-case identifier"):
        Profile(**{**facts, name: "No Such"})
    with pytest.raises(SettingsError, match="carries only the device 'xpu'"):
        Profile(**facts, kind="xpu")


def test_unset_does_nothing(run_python):
    child = run_python(
        "-c",
        "import sys, time, torch, verl_hw_sim\n"
        "mine = sorted(name for name in sys.modules if name.startswith('verl_hw_sim'))\n"
        "assert mine == ['verl_hw_sim'], mine\n"
        "assert not hasattr(torch, 'mlu') and not hasattr(torch, 'gcu')\n"
        "assert torch._C._get_privateuse1_backend_name() == 'privateuseone'\n"
        "times = []\n"
        "for _ in range(9):\n"
        "    del sys.modules['verl_hw_sim']\n"
        "    start = time.process_time(); import verl_hw_sim; verl_hw_sim.autoload()\n"
        "    times.append(time.process_time() - start)\n"
        "print(min(times))\n",
    )
    assert child.returncode == 0, child.stderr
    assert float(child.stdout) < scaled(0.002)
    assert child.stderr == ""


def test_a_bad_value_ends_the_import_of_torch(run_python, tmp_path):
    child = run_python("-c", "import torch", VERL_HW_SIM="cambricom:2")
    assert child.returncode != 0
    assert "the vendor in VERL_HW_SIM must be one of" in child.stderr
    assert "Did you mean 'cambricon'" in child.stderr


def test_a_cuda_build_of_torch_cannot_simulate_metax(run_python):
    child = run_python(
        "-c",
        "import torch, sys\n"
        "from verl_hw_sim.errors import UnsupportedTorchError\n"
        "from verl_hw_sim.install import check_torch_can_host\n"
        "from verl_hw_sim.profiles import METAX\n"
        "torch._C._has_cuda = True\n"  # so that the test says the same on a CPU build
        "try:\n"
        "    check_torch_can_host(METAX)\n"
        "except UnsupportedTorchError as error:\n"
        "    print(error)\n",
    )
    assert "works only with a torch built without CUDA" in child.stdout, child.stderr
    assert "whl/cpu" in child.stdout


OTHER_TORCH = """
import os, torch
torch.__version__ = {version!r}
import verl_hw_sim
from verl_hw_sim.__main__ import main
from verl_hw_sim.errors import UnsupportedTorchError
print(main(["build", "cambricon"]), main(["build", "all"]), main(["info"]))
os.environ["VERL_HW_SIM"] = "cambricon"
try:
    verl_hw_sim.autoload()
except UnsupportedTorchError as error:
    print(error)
"""


@pytest.mark.parametrize("version", ["2.7.1+cu126", "2.16.0"])
def test_a_torch_outside_the_range_is_refused_in_one_line_before_anything_is_compiled(run_python, tmp_path, version):
    compiler = tmp_path / "c++"
    compiler.write_text(f"#!/bin/sh\ntouch {tmp_path}/compiled\nexit 1\n")
    compiler.chmod(0o755)
    places = {"CXX": str(compiler), "VERL_HW_SIM_CACHE": str(tmp_path / "cache")}
    child = run_python("-c", OTHER_TORCH.format(version=version), **places)
    refusal = f"verl-hw-sim needs torch {TORCH_RELEASES[0]} to {TORCH_RELEASES[-1]}; found torch {version}."
    *info, statuses, error = child.stdout.splitlines()
    assert statuses == "1 1 0", child.stderr
    assert error.startswith(refusal)
    assert child.stderr.splitlines() == [f"verl-hw-sim: {error}"] * 2
    assert info[0] == f"torch     {version} (not supported, needs {SUPPORTED_TORCH})"
    assert not (tmp_path / "compiled").exists()


def test_the_readme_names_the_supported_releases():
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    _, _, section = readme.partition("## Supported torch")
    assert f"torch {SUPPORTED_TORCH};" in section


@pytest.mark.parametrize("version", ["2.7.1", "2.16.0a0+git1234567", "3.8.0", "1.13.1", "2", ""])
def test_every_other_torch_is_refused(version):
    with pytest.raises(UnsupportedTorchError):
        check_torch_version(version)


@pytest.mark.parametrize("version", ["2.8.0+cu128", "2.10.0a0+metax3.8", "2.15.0.dev20260101"])
def test_a_vendors_or_nightly_build_of_a_supported_torch_is_supported(version):
    check_torch_version(version)


def test_no_recorded_calls_without_a_simulation():
    assert verl_hw_sim.recorded_calls() == ()
    assert "verl_hw_sim.install" not in sys.modules


def test_command_line(run_python):
    child = run_python("-m", "verl_hw_sim", "info", VERL_HW_SIM="cambricon")
    assert child.returncode == 0, child.stderr
    assert "compiler" in child.stdout
    assert [line.split()[0] for line in child.stdout.splitlines()][-4:] == list(BUILTIN_PROFILES)
    child = run_python("-m", "verl_hw_sim", "build", "cambricom")
    assert child.returncode == 1
    assert "Did you mean 'cambricon'" in child.stderr
