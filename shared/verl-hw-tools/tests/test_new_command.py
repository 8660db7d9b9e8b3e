# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw new``: what it writes, and what it refuses. That the package works: tests/wheels."""

import json
import re
import runpy
import shutil
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from typer.testing import CliRunner

from verl_hw_tools.cli.app import app
from verl_hw_tools.scaffold import names as scaffold_names
from verl_hw_tools.scaffold import workspace

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[3]
ACME = ("acme", "--device", "apu", "--ccl", "accl")


@pytest.fixture
def new(tmp_path, monkeypatch):
    """Run the command in an empty folder; torch, which takes seconds to import, is asked in one test only."""
    monkeypatch.setattr(scaffold_names, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, ["new", *arguments])


@pytest.fixture
def checkout(tmp_path):
    """The files of a checkout that name its members."""
    for name in ("pyproject.toml", str(workspace._MARK), str(workspace._KNOWN)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "packages").mkdir()
    return tmp_path


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def project(text: str) -> dict:
    return tomllib.loads(text)


def test_a_repository_of_its_own_is_complete(new, tmp_path):
    done = new(*ACME, "--display-name", "Acme APU")
    assert done.exit_code == 0, done.output
    written = files(tmp_path / "verl-hw-acme")
    assert {"LICENSE", "README.md", "CHANGELOG.md", ".gitignore", ".github/workflows/ci.yml"} <= set(written)
    assert {"docs/README.md", "docs/install_guidance.md", "docs/quick_start.md", "docs/faq.md"} <= set(written)
    assert [name for name, text in written.items() if "@@" in text] == []
    for name, text in written.items():
        if name.endswith((".py", ".toml", ".yml")):
            assert "SPDX-License-Identifier: Apache-2.0" in text.splitlines()[1], name
        if name.endswith(".py"):
            compile(text, name, "exec")
    for step in ("pip install", "pytest", "verl-hw demo --vendor acme", "spec.py"):
        assert step in done.output


def test_the_facts_are_a_spec_and_every_guess_says_so(new, tmp_path):
    new(*ACME)
    path = tmp_path / "verl-hw-acme" / "src" / "verl_hw_acme" / "spec.py"
    spec = runpy.run_path(str(path))["SPEC"]
    assert (spec.key, spec.device_name, spec.ccl_backend, spec.names) == ("acme", "apu", "accl", ("acme", "apu"))
    assert (spec.distribution, spec.display_name) == ("verl-hw-acme", "Acme APU")
    given = ("key=", "display_name=", "distribution=", "aliases=", "traces=")
    facts = [line for line in path.read_text().splitlines() if re.match(r" {4,8}\w+=", line)]
    unmarked = [line for line in facts if "# [U] " not in line and not line.strip().startswith(given)]
    assert len(facts) > 20
    assert unmarked == []


def test_the_bounds_are_those_of_our_own_wheels(new, tmp_path):
    new(*ACME)
    wanted = project((tmp_path / "verl-hw-acme" / "pyproject.toml").read_text())["project"]["dependencies"]
    ours = {Requirement(text) for text in metadata.requires("verl-hw-cambricon") or ()}
    assert {Requirement(text) for text in wanted} == ours
    [core] = [one for one in map(Requirement, wanted) if one.name == "verl-hw-core"]
    assert metadata.version("verl-hw-core") in core.specifier


REFUSED = {
    "a vendor of ours": (("metax", "--device", "apu", "--ccl", "accl"), "taken by verl-hw-metax"),
    "an alias of ours": (("maca", "--device", "apu", "--ccl", "accl"), "taken by verl-hw-metax"),
    "verl's own platform": (("nvidia", "--device", "apu", "--ccl", "accl"), "taken by verl or verl-hw itself"),
    "a part of this project": (("core", "--device", "apu", "--ccl", "accl"), "taken by verl or verl-hw itself"),
    "a device of ours": (("acme", "--device", "gcu", "--ccl", "accl"), "taken by verl-hw-enflame"),
    "torch's own device": (("acme", "--device", "mps", "--ccl", "accl"), "taken by torch"),
    "torch's own backend": (("acme", "--device", "apu", "--ccl", "gloo"), "taken by torch"),
    "no Python name": (("acme-one", "--device", "apu", "--ccl", "accl"), "lower-case letters"),
    "upper case": (("Acme", "--device", "apu", "--ccl", "accl"), "lower-case letters"),
    "a word of Python's": (("acme", "--device", "lambda", "--ccl", "accl"), "no word of Python's"),
    "digits in a device": (("acme", "--device", "apu2", "--ccl", "accl"), "without digits"),
    "a backend of ours": (("acme", "--device", "apu", "--ccl", "cncl"), "taken by verl-hw-cambricon"),
    "a path": (("../acme", "--device", "apu", "--ccl", "accl"), "lower-case letters"),
    "too long": (("a" * 25, "--device", "apu", "--ccl", "accl"), "at most 24"),
    "a display name with quotes": ((*ACME, "--display-name", 'A "chip"'), "--display-name"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_names_are_refused_with_the_reason_and_nothing_is_written(case, new, tmp_path):
    arguments, reason = REFUSED[case]
    done = new(*arguments)
    assert done.exit_code == 2
    assert reason in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_torch_has_is_refused(new, tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    done = new("acme", "--device", "nn", "--ccl", "accl")
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "torch.nn" in done.output


def test_a_folder_that_holds_something_is_left_as_it_is(new, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.txt").write_text("mine")
    done = new(*ACME, "--out", "there")
    assert (done.exit_code, files(tmp_path)) == (2, {"there/mine.txt": "mine"})
    assert "not an empty folder" in done.output
    assert new(*ACME, "--out", "there/mine.txt").exit_code == 2


def test_an_empty_folder_that_is_there_stays_that_folder(new, tmp_path, monkeypatch):
    """A shell may be in it, or a container have it mounted."""
    folder = tmp_path / "it's mine"
    folder.mkdir(mode=0o750)
    before = folder.stat()
    monkeypatch.chdir(folder)
    done = new(*ACME, "--out", ".")
    assert done.exit_code == 0, done.output
    assert (folder.stat().st_ino, folder.stat().st_mode) == (before.st_ino, before.st_mode)
    assert {"pyproject.toml", "src", ".github"} <= {path.name for path in Path().iterdir()}
    assert not [path for path in Path().iterdir() if path.name.startswith("..") or "it's" in path.name]
    monkeypatch.chdir(tmp_path)
    assert "cd 'with a blank'" in new(*ACME, "--out", "with a blank").output


def test_in_another_repository_the_last_step_makes_no_second_one(new, tmp_path):
    (tmp_path / ".git").mkdir()
    output = new(*ACME, "--out", "sub/acme").output
    assert f"It lies in the repository {tmp_path}" in output
    assert "git init" not in output


def test_long_names_need_no_display_name(new, tmp_path):
    done = new("a" * 24, "--device", "b_" * 10 + "c", "--ccl", "accl")
    assert done.exit_code == 0, done.output
    assert (
        'display_name="A' + "a" * 23 + '"'
        in (tmp_path / f"verl-hw-{'a' * 24}/src/verl_hw_{'a' * 24}/spec.py").read_text()
    )


def test_a_fault_in_an_empty_folder_is_taken_back(new, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    rename, said = Path.rename, iter([False, False, True])

    def third_fails(self, target):
        if next(said, False):
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", third_fails)
    assert new(*ACME, "--out", "empty").exit_code == 2
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_disk_that_fills_up_leaves_nothing(new, tmp_path, monkeypatch):
    def full(self, *arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    done = new(*ACME)
    assert done.exit_code == 2
    assert "No space left on device" in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_member_of_the_workspace_is_listed_where_members_are(new, checkout):
    before = files(checkout)
    done = new(*ACME, "--in-tree")
    assert done.exit_code == 0, done.output
    after = files(checkout)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"pyproject.toml", str(workspace._KNOWN)}
    root = project(after["pyproject.toml"])
    assert root["tool"]["uv"]["sources"]["verl-hw-acme"] == {"workspace": True}
    assert "packages/verl-hw-acme/src" in root["tool"]["mypy"]["mypy_path"]
    assert any("verl_hw_acme.*" in one["module"] for one in root["tool"]["mypy"]["overrides"])
    known = json.loads(after[str(workspace._KNOWN)])
    assert (known["acme"], known["apu"], known["maca"]) == ("verl-hw-acme", "verl-hw-acme", "verl-hw-metax")
    assert "packages/verl-hw-acme/src/verl_hw_acme/spec.py" in after
    assert "docs/user_guide_acme/faq.md" in after
    assert not [name for name in after if ".github" in name]


def test_in_tree_outside_a_checkout_is_refused(new, tmp_path):
    done = new(*ACME, "--in-tree")
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "is in none" in done.output


@pytest.mark.parametrize("fault", ["another form", "cannot be written"])
def test_a_member_that_cannot_be_listed_is_not_written(fault, new, checkout, monkeypatch):
    if fault == "another form":
        (checkout / "pyproject.toml").write_text("[project]\n")
    else:
        replace, said = Path.replace, iter([False, True, False])

        def second_fails(self, target):
            if next(said):
                raise OSError(30, "Read-only file system")
            return replace(self, target)

        monkeypatch.setattr(Path, "replace", second_fails)
    before = files(checkout)
    done = new(*ACME, "--in-tree")
    assert done.exit_code == 2, done.output
    assert files(checkout) == before
