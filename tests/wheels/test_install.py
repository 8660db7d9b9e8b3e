# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Installing a vendor wheel into a vendor image: the image's torch stays, and nothing but core and tools come along.

The images' torch builds are on no index, so a stand-in distribution of that name and version is installed.
Everything is a dry run: the resolvers say what they would do.
"""

import json
import re
from pathlib import Path

import pytest
from wheelkit import BASE_PYTHON, clean_env, from_index, run, tiny_wheel, uv

from devlib.stacks import install_lines, read_stack

pytestmark = pytest.mark.slow

IMAGES = {"verl-hw-cambricon": "2.9.1+mlu1.29", "verl-hw-metax": "2.8.0+metax3.5"}
VERL = "verl>=0.9,<0.11"


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """Return a function: version of torch -> Python of a fresh environment that holds that torch and pip."""

    def make(torch: str) -> Path:
        folder = tmp_path_factory.mktemp("image")
        run([uv(), "venv", "--seed", "--python", BASE_PYTHON, folder / "venv"])
        python = folder / "venv" / "bin" / "python"
        fake = tiny_wheel(folder, "torch", torch)
        run([uv(), "pip", "install", "--python", python, "--no-index", "--no-deps", fake])
        return python

    return make


def would_install_with_uv(python: Path, dist: Path, *requirements: str) -> dict[str, str]:
    """Distributions that ``uv pip install`` would put into that environment, with their versions."""
    command = [uv(), "pip", "install", "--dry-run", "--python", python, "--find-links", dist, *requirements]
    done = from_index(command)
    assert done.returncode == 0, done.stderr
    assert " - torch==" not in done.stderr, done.stderr
    return dict(re.findall(r"^ \+ ([^=\s]+)==(\S+)", done.stderr, re.MULTILINE))


@pytest.mark.parametrize(
    "wheel", [pytest.param("verl-hw-cambricon", marks=pytest.mark.ci(priority=2)), "verl-hw-metax"]
)
def test_uv_leaves_the_images_torch_and_adds_core_and_tools_only(wheel, image, dist):
    python = image(IMAGES[wheel])
    with_us = would_install_with_uv(python, dist, wheel)
    verl_alone = would_install_with_uv(python, dist, VERL)
    assert "torch" not in with_us
    assert "verl" in verl_alone
    assert set(with_us) - set(verl_alone) == {wheel, "verl-hw-core", "verl-hw-tools"}
    # Our requirements do not push verl's own to other versions either.
    assert {name: with_us.get(name) for name in verl_alone} == verl_alone


@pytest.mark.parametrize(("name", "torch"), [("cambricon-2.9", "2.9.1+mlu1.29"), ("metax-2.8", "2.8.0+metax3.7.2.0")])
def test_the_dockerfiles_of_a_vendors_image_leave_its_torch(name, torch, image, dist):
    python = image(torch)
    packages, wheels, *_ = install_lines(read_stack(name))
    added = would_install_with_uv(python, dist, *packages[3:], *wheels[5:])
    assert "verl" in added
    assert "torch" not in added


def test_pip_leaves_the_images_torch_too(image, dist):
    python = image(IMAGES["verl-hw-cambricon"])
    command = [python, "-m", "pip", "--disable-pip-version-check", "install", "--dry-run", "--quiet", "--report", "-"]
    done = from_index([*command, "--find-links", dist, "verl-hw-cambricon"], env=clean_env(PIP_NO_INPUT="1"))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    names = {item["metadata"]["name"].lower() for item in report["install"]}
    assert {"verl-hw-cambricon", "verl-hw-core", "verl-hw-tools", "verl"} <= names
    assert "torch" not in names
    assert [name for name in names if name.startswith(("nvidia", "triton", "cuda"))] == []


@pytest.mark.ci(priority=2)
def test_the_check_would_see_a_wheel_that_replaces_torch(image, dist, tmp_path):
    # The control: what a requirement on a stock torch does to the image, seen with the same eyes.
    python = image(IMAGES["verl-hw-cambricon"])
    tiny_wheel(tmp_path, "verl-hw-bad", "1.0", requires=["torch>=2.13,<2.14"])
    command = [uv(), "pip", "install", "--dry-run", "--python", python, "--find-links", tmp_path, "verl-hw-bad"]
    done = from_index(command)
    assert done.returncode == 0, done.stderr
    assert " - torch==2.9.1+mlu1.29" in done.stderr
    assert re.search(r"^ \+ torch==2\.13", done.stderr, re.MULTILINE)


@pytest.mark.parametrize("version", ["0.7.1", "0.8.0"])
def test_the_resolver_refuses_a_verl_without_plugin_interface(version, image, dist):
    python = image(IMAGES["verl-hw-metax"])
    command = [uv(), "pip", "install", "--dry-run", "--python", python, "--find-links", dist]
    done = from_index([*command, "verl-hw-metax", f"verl=={version}"])
    assert done.returncode != 0
    assert "verl>=0.9" in done.stderr
