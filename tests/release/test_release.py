# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``scripts/release.py`` on a small workspace: what it refuses, what it makes, and what it compares."""

import pytest


def refused(workspace, capsys, *arguments: str) -> str:
    """What was said when a release was refused; nothing may be tagged or built then."""
    capsys.readouterr()
    tags = workspace.git("tag")
    assert workspace.release("release", *arguments) == 1
    assert workspace.git("tag") == tags
    assert not (workspace.root / "dist").exists()
    return capsys.readouterr().err


@pytest.mark.slow
def test_a_release_of_core_then_of_a_vendor(workspace, capsys):
    workspace.prepared("verl-hw-core")
    assert workspace.release("release", "core", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "verl-hw-acme of this commit, since it was never released: its tests pass" in said
    assert "verl-hw-core: its tests pass against the wheel" in said
    assert sorted(path.name for path in (workspace.root / "dist").iterdir()) == [
        "verl_hw_core-0.1.0-py3-none-any.whl",
        "verl_hw_core-0.1.0.tar.gz",
    ]
    assert workspace.git("tag") == ""
    # The job that uploads builds again and compares.
    assert workspace.release("build", "core", "--out", str(workspace.root.parent / "again")) == 0
    for first in (workspace.root / "dist").iterdir():
        assert (workspace.root.parent / "again" / first.name).read_bytes() == first.read_bytes()
    workspace.git("tag", "-a", "verl-hw-core-v0.1.0", "-m", "core")
    # What is in the tree now is not released: the vendor's tests need the core that is.
    workspace.edit("verl-hw-core", "src/verl_hw_core/__init__.py", "value", "other")
    workspace.prepared("acme")
    assert workspace.release("release", "acme") == 0
    assert workspace.git("tag").split() == ["verl-hw-acme-v0.1.0", "verl-hw-core-v0.1.0"]
    assert workspace.release("release", "acme", "--tag", "verl-hw-acme-v0.1.0") == 0
    assert "git push origin verl-hw-acme-v0.1.0" in capsys.readouterr().out


def test_an_uncommitted_tree_is_refused(workspace, capsys):
    workspace.prepared("core")
    (workspace.root / "stray.txt").write_text("x")
    assert "tree: 1 files are not committed" in refused(workspace, capsys, "core")


def test_a_missing_changelog_is_refused(workspace, capsys):
    assert "changelog: no dated section 0.1.0" in refused(workspace, capsys, "core")


def test_a_changelog_without_text_is_refused(workspace, capsys):
    workspace.prepared("core")
    workspace.edit("verl-hw-core", "CHANGELOG.md", "- First version.\n", "")
    workspace.commit()
    assert "changelog: no dated section 0.1.0 with text" in refused(workspace, capsys, "core")


def test_fragments_that_no_section_took_in_are_refused(workspace, capsys):
    workspace.prepared("core")
    (workspace.folder("verl-hw-core") / "changelog.d").mkdir()
    (workspace.folder("verl-hw-core") / "changelog.d" / "7.fix.md").write_text("Something.")
    workspace.commit()
    assert "1 fragments are not taken in (7.fix.md)" in refused(workspace, capsys, "core")


def test_a_tag_of_another_version_is_refused(workspace, capsys):
    workspace.prepared("core")
    workspace.git("tag", "verl-hw-core-v0.2.0")
    said = refused(workspace, capsys, "core", "--tag", "verl-hw-core-v0.2.0")
    assert "it must be verl-hw-core-v0.1.0" in said


def test_a_version_that_was_released_is_refused(workspace, capsys):
    workspace.prepared("core")
    workspace.git("tag", "verl-hw-core-v0.1.0")
    workspace.commit()
    assert "a version is released once" in refused(workspace, capsys, "core")


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        (">=0.2,<0.3", "no released core is in <0.3,>=0.2 (released: 0.1.0)"),
        (">=0.0.9,<0.2", "the lowest core in <0.2,>=0.0.9 was never released"),
        (">=0.1", "has no upper end"),
    ],
)
def test_a_core_bound_that_no_release_meets_is_refused(bound, reason, workspace, capsys):
    workspace.prepared("core")
    workspace.git("tag", "verl-hw-core-v0.1.0")
    workspace.edit("verl-hw-acme", "pyproject.toml", ">=0.1,<0.2", bound)
    workspace.prepared("acme")
    assert reason in refused(workspace, capsys, "acme")


@pytest.mark.parametrize(
    ("bound", "released", "reason"),
    [
        (">=0.1", False, "tools bound: no released tools is in >=0.1 (released: none): release verl-hw-tools first"),
        (">=0.0.9", True, "tools bound: the lowest tools in >=0.0.9 was never released"),
        (">=0.1,<0.2", True, "tools bound: <0.2,>=0.1 keeps later tools away"),
    ],
)
def test_a_tools_bound_that_no_release_meets_or_that_ends_is_refused(bound, released, reason, workspace, capsys):
    workspace.add("verl-hw-tools", "verl-hw-core>=0.1,<0.2")
    workspace.edit("verl-hw-acme", "pyproject.toml", "'verl-hw-core", f"'verl-hw-tools{bound}', 'verl-hw-core")
    workspace.prepared("core")
    workspace.git("tag", "verl-hw-core-v0.1.0")
    workspace.prepared("tools")
    if released:
        workspace.git("tag", "verl-hw-tools-v0.1.0")
    workspace.prepared("acme")
    assert reason in refused(workspace, capsys, "acme")


def test_requirements_that_no_index_takes_are_refused(workspace, capsys):
    workspace.edit(
        "verl-hw-core", "pyproject.toml", "dependencies = []", 'dependencies = ["x @ https://example.org/x.whl"]'
    )
    workspace.prepared("core")
    assert "name a version instead of a URL" in refused(workspace, capsys, "core")


def test_metadata_that_an_index_rejects_are_refused(workspace, capsys):
    workspace.edit("verl-hw-core", "README.md", "Text.", "")
    workspace.edit("verl-hw-core", "pyproject.toml", 'readme = "README.md"\n', "")  # twine --strict wants a description
    workspace.prepared("core")
    assert "twine check --strict failed" in refused(workspace, capsys, "core")


@pytest.mark.slow
@pytest.mark.ci(priority=3)
def test_a_wheel_that_fails_its_tests_is_refused(workspace, capsys):
    workspace.edit("verl-hw-sim", "src/verl_hw_sim/__init__.py", "return number", "return number + 1")
    workspace.prepared("sim")
    assert "the tests of verl-hw-sim failed" in refused(workspace, capsys, "sim")


@pytest.mark.slow
def test_a_core_that_breaks_a_released_vendor_is_refused(workspace, capsys):
    workspace.prepared("acme")
    workspace.git("tag", "verl-hw-acme-v0.1.0")
    use = "import verl_hw_core\ndef test_core():\n    assert verl_hw_core.value() == 1\n"
    (workspace.folder("verl-hw-acme") / "tests" / "test_core.py").write_text(use)
    workspace.commit()
    workspace.git("tag", "-f", "verl-hw-acme-v0.1.0")
    # The vendor's own tree follows the new core, its release does not.
    (workspace.folder("verl-hw-acme") / "tests" / "test_core.py").unlink()
    workspace.edit("verl-hw-core", "src/verl_hw_core/__init__.py", "def value", "def new_value")
    workspace.prepared("core")
    assert "the tests of verl-hw-acme failed" in refused(workspace, capsys, "core")


def test_a_changed_interface_needs_a_waiver_and_a_waiver_needs_a_change(workspace, capsys):
    assert workspace.release("interface") == 0
    assert "was never released" in capsys.readouterr().out
    workspace.git("tag", "verl-hw-core-v0.1.0")
    assert workspace.release("interface") == 0
    assert "public interface as in verl-hw-core-v0.1.0" in capsys.readouterr().out
    workspace.edit("verl-hw-core", "src/verl_hw_core/__init__.py", "value(number=1)", "value(count=1)")
    assert workspace.release("interface") == 1
    said = capsys.readouterr().err
    assert "verl_hw_core.value(number): Parameter was removed" in said
    waiver = (
        '[[waiver]]\nobject = "verl_hw_core.value(number)"\nkind = "Parameter was removed"\nreason = "a better name"\n'
    )
    settings = workspace.folder("verl-hw-core") / "public_interface.toml"
    settings.write_text(settings.read_text() + waiver)
    assert workspace.release("interface") == 0
    assert "1 waived" in capsys.readouterr().out
    workspace.edit("verl-hw-core", "src/verl_hw_core/__init__.py", "value(count=1)", "value(number=1)")
    assert workspace.release("interface") == 1
    assert "nothing broke where these waivers are for" in capsys.readouterr().err


def test_fragments_become_the_section_of_the_next_version(workspace, capsys):
    workspace.prepared("acme")
    folder = workspace.folder("verl-hw-acme")
    (folder / "changelog.d").mkdir()
    (folder / "changelog.d" / "12.fix.md").write_text("Averages of empty tensors.")
    (folder / "changelog.d" / "+mask.feature.md").write_text("Masks of two kinds.")
    assert workspace.release("prepare", "acme", "0.2.0") == 0
    text = (folder / "CHANGELOG.md").read_text()
    title, new, old = (text.index(one) for one in ("# Changelog", "## 0.2.0 (20", "## 0.1.0 (20"))
    assert title < new < old
    assert "- Masks of two kinds.\n" in text
    assert "- Mended: Averages of empty tensors. (#12)\n" in text
    assert 'version = "0.2.0"' in (folder / "pyproject.toml").read_text()
    assert not list((folder / "changelog.d").glob("*.md"))
    assert workspace.release("prepare", "acme", "0.3.0") == 1
    assert "nothing is written about 0.3.0" in capsys.readouterr().err
    assert workspace.release("prepare", "acme", "0.2.0") == 1
    assert "has a dated section 0.2.0 already" in capsys.readouterr().err
    assert workspace.release("prepare", "acme", "v0.3") == 1


def test_an_open_section_of_another_version_is_not_passed_over(workspace, capsys):
    """It would stay open below the new one for ever."""
    folder = workspace.root / "packages" / "verl-hw-acme"
    path = folder / "CHANGELOG.md"
    path.write_text(path.read_text().replace("## 0.1.0", "## 0.2.0 (unreleased)\n\n- More.\n\n## 0.1.0", 1))
    (folder / "changelog.d").mkdir()
    (folder / "changelog.d" / "12.fix.md").write_text("Averages of empty tensors.")
    before = path.read_text()
    for version in ("0.3.0", "0.2.0rc1"):
        assert workspace.release("prepare", "acme", version) == 1
        assert f"open section 0.2.0: prepare that version, or write {version}" in capsys.readouterr().err
    assert path.read_text() == before
