# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What is in each wheel and sdist, and what their metadata promise."""

import configparser
import sys
import tarfile
from collections import Counter
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version
from wheelkit import ROOT, VENDORS, run

VENDOR_WHEELS = {f"verl-hw-{vendor}" for vendor in VENDORS}
# Nothing here may ever pull a torch build or a vendor's SDK into an image that has its own.
NEVER_REQUIRED = ("torch", "triton", "nvidia", "intel", "ipex", "cncl", "vllm", "flash", "transformer-engine", "ray")


def console_scripts(text: str | None) -> dict[str, str]:
    parser = configparser.ConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text or "")
    return dict(parser["console_scripts"]) if "console_scripts" in parser else {}


def test_every_member_is_built_as_wheel_and_sdist(built, dist):
    assert set(built) == {*VENDOR_WHEELS, "verl-hw-core", "verl-hw-tools", "verl-hw-sim"}
    assert len([path for path in dist.iterdir() if path.name.startswith("verl_hw_")]) == 2 * len(built)


def test_the_metadata_pass_twine_strictly(built):
    paths = [path for member in built.values() for path in (member.wheel, member.sdist)]
    said = run([Path(sys.executable).with_name("twine"), "check", "--strict", *paths]).stdout
    assert said.count("PASSED") == len(paths)


def test_the_metadata_version_is_one_that_upload_tools_know(built):
    # Newer than hatchling's default matters: a publishing action refuses what twine had let pass.
    assert {name: member.metadata["Metadata-Version"] for name, member in built.items()} == dict.fromkeys(built, "2.4")


def test_a_wheel_holds_its_package_with_type_marker_and_licence_and_no_more(built):
    for member in built.values():
        top = {name.split("/")[0] for name in member.files}
        assert top == {member.module, f"{member.module}-{member.metadata['Version']}.dist-info"}
        assert f"{member.module}/py.typed" in member.files
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in member.files)
        strays = [name for name in member.files if name.endswith((".pyc", ".so", ".o")) or "/tests/" in name]
        assert strays == []


def test_a_wheel_holds_every_tracked_file_of_its_package(built):
    for member in built.values():
        (source,) = ROOT.glob(f"*/{member.name}/src")
        tracked = run(["git", "ls-files", "-z", "."], cwd=source, check=False)
        if tracked.returncode != 0:  # a tarball: compare with what lies there
            paths = [str(path.relative_to(source)) for path in source.rglob("*.py")]
        else:
            paths = [path for path in tracked.stdout.split("\0") if path and (source / path).exists()]
        assert set(paths) <= set(member.files), member.name


def test_an_sdist_holds_what_a_rebuild_and_a_reader_need(built):
    for member in built.values():
        with tarfile.open(member.sdist) as archive:
            names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
        assert {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "PKG-INFO"} <= names
        assert {f"src/{name}" for name in member.files if name.startswith(f"{member.module}/")} <= names


def test_no_wheel_requires_torch_or_a_vendor_sdk(built):
    for member in built.values():
        required = {Requirement(text).name.lower() for text in member.metadata.get_all("Requires-Dist") or []}
        wrong = [name for name in required if name.startswith(NEVER_REQUIRED)]
        assert wrong == [], member.name


def test_a_vendor_wheel_requires_core_and_verl_within_tested_bounds(built):
    for name in VENDOR_WHEELS:
        requirements = {(r := Requirement(t)).name: r for t in built[name].metadata.get_all("Requires-Dist")}
        assert set(requirements) == {"verl-hw-core", "verl-hw-tools", "verl", "tensordict"}
        assert "0.8.3" not in requirements["tensordict"].specifier, "verl fails on it at the first batch"
        core, verl = requirements["verl-hw-core"].specifier, requirements["verl"].specifier
        assert Version(built["verl-hw-core"].metadata["Version"]) in core
        assert {bound.operator for bound in core} == {">=", "<"}
        tools = requirements["verl-hw-tools"].specifier
        assert Version(built["verl-hw-tools"].metadata["Version"]) in tools
        assert {bound.operator for bound in tools} == {">="}, "a later verl-hw command must not wait for the vendors"
        allowed = [version for version in ("0.7.1", "0.8.0", "0.9.0", "0.9.1", "0.10.0", "0.11.0") if version in verl]
        assert allowed == ["0.9.0", "0.9.1", "0.10.0"]


def test_core_requires_nothing_that_only_a_command_line_needs(built):
    required = {Requirement(text).name for text in built["verl-hw-core"].metadata.get_all("Requires-Dist")}
    assert required == {"filelock", "packaging", "platformdirs", "wrapt"}


def test_no_two_wheels_own_a_file_or_a_command(built):
    owners = Counter(name for member in built.values() for name in member.files)
    assert [name for name, count in owners.items() if count > 1] == []
    commands = {name: console_scripts(member.text(".dist-info/entry_points.txt")) for name, member in built.items()}
    assert {name: found for name, found in commands.items() if found} == {
        "verl-hw-tools": {"verl-hw": "verl_hw_tools.cli:main"}
    }


def test_a_vendor_wheel_has_one_plugin_named_like_its_vendor(built):
    # The name is what a user would put into VERL_USE_EXTERNAL_PLUGINS and VERL_PLATFORM.
    for vendor in VENDORS:
        parser = configparser.ConfigParser()
        parser.read_string(built[f"verl-hw-{vendor}"].text(".dist-info/entry_points.txt") or "")
        assert dict(parser["verl.plugins"]) == {vendor: f"verl_hw_{vendor}"}
        assert set(parser.sections()) <= {"verl.plugins", "verl_hw_sim.profiles"}


def test_the_readme_on_an_index_stands_alone(built):
    for member in built.values():
        body = member.metadata.get_payload()
        assert isinstance(body, str)
        assert f"pip install {member.name}" in body, member.name
        links = [part for part in body.split("](")[1:] if not part.startswith(("https://", "#"))]
        assert links == [], f"{member.name}: a relative link is dead on an index"
