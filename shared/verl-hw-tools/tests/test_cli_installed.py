# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
import sys
from collections.abc import Callable
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path

import pytest

from verl_hw_core.errors import InvalidSpecError, UnknownVendorError
from verl_hw_tools.installed import find_wheel, installed_specs, installed_wheels

SPEC = """
from dataclasses import dataclass
from verl_hw_core.facts.hardware import HardwareSpec
@dataclass
class Extra:
    text: str = ""
SPEC = HardwareSpec(key="{key}", display_name="X", distribution="verl-hw-{key}", device_name="xdev",
    aliases=("{key}x",), ccl_backend="xccl", visible_devices_envvar="X_DEVICES", ray_resources=("X",))
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a fake wheel whose package must never be executed."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def add(key: str, spec: str | None = SPEC, requires: str = "verl-hw-core>=0.1,<0.2") -> None:
        package = tmp_path / f"fake_{key}"
        package.mkdir()
        (package / "__init__.py").write_text("raise RuntimeError('the package was executed')")
        if spec is not None:
            (package / "spec.py").write_text(spec.replace("{key}", key))
        info = tmp_path / f"verl_hw_{key}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: verl-hw-{key}\nVersion: 1.2\nRequires-Dist: {requires}\n"
        )
        (info / "entry_points.txt").write_text(f"[verl.plugins]\n{key} = fake_{key}\n")

    return add


def points(folder: Path) -> list[EntryPoint]:
    found: list[Distribution] = list(distributions(path=[str(folder)]))
    return [point for dist in found for point in dist.entry_points]


def test_specs_are_read_without_running_a_package(tmp_path: Path, install: Install) -> None:
    install("zeta")
    install("acme")
    wheels = installed_wheels(points(tmp_path))
    assert [(wheel.name, wheel.distribution, wheel.version) for wheel in wheels] == [
        ("acme", "verl-hw-acme", "1.2"),
        ("zeta", "verl-hw-zeta", "1.2"),
    ]
    assert [spec.key for spec in installed_specs(points(tmp_path))] == ["acme", "zeta"]
    assert not {"fake_acme", "fake_zeta"} & set(sys.modules)


def test_plugins_of_others_are_left_alone(tmp_path: Path, install: Install) -> None:
    install("other", spec="raise SystemExit('somebody else')", requires="verl>=0.9")
    assert installed_wheels(points(tmp_path)) == ()


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (None, "spec.py is missing"),
        ("SPEC = 1", "must define SPEC as a HardwareSpec, found int"),
        ("import nothing_like_this", "No module named 'nothing_like_this'"),
    ],
)
def test_a_broken_wheel_is_reported_and_disturbs_no_other(
    tmp_path: Path, install: Install, spec: str | None, problem: str
) -> None:
    install("acme")
    install("bad", spec=spec)
    acme, bad = installed_wheels(points(tmp_path))
    assert acme.problem is None
    assert problem in (bad.problem or "")
    with pytest.raises(InvalidSpecError, match="installed but broken"):
        find_wheel("bad", [acme, bad])


def test_a_vendor_is_found_by_key_and_alias(tmp_path: Path, install: Install) -> None:
    install("acme")
    wheels = installed_wheels(points(tmp_path))
    assert find_wheel("acme", wheels) is find_wheel(" ACMEX ", wheels) is wheels[0]


def test_an_unknown_vendor_gets_the_nearest_and_the_installed(tmp_path: Path, install: Install) -> None:
    install("acme")
    with pytest.raises(UnknownVendorError, match=r"did you mean 'acme'\? installed: acme \(verl-hw-acme 1\.2\)"):
        find_wheel("acne", installed_wheels(points(tmp_path)))
    with pytest.raises(UnknownVendorError, match="no vendor wheel is installed"):
        find_wheel("acme", [])


def test_the_wheels_of_this_environment_all_have_facts() -> None:
    assert [wheel.problem for wheel in installed_wheels() if wheel.problem] == []
