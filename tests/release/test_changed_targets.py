# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which tests a change asks for."""

import pytest

from changed_targets import EVERYTHING, ROOT, changed_files, targets

TOOLS = "shared/verl-hw-tools/src/verl_hw_tools/choice.py"


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["packages/verl-hw-intel/src/verl_hw_intel/spec.py"], ["verl-hw-intel"]),
        (
            ["packages/verl-hw-intel/README.md", "packages/verl-hw-metax/pyproject.toml"],
            ["verl-hw-intel", "verl-hw-metax"],
        ),
        (["packages/verl-hw-intel/README.md", "shared/verl-hw-core/src/verl_hw_core/errors.py"], ["everything"]),
        (["shared/verl-hw-sim/README.md"], ["everything"]),
        (["shared/verl-hw-tools/src/verl_hw_tools/choice.py", "docs/doctor.md"], ["text", "verl-hw-tools"]),
        (["shared/verl-hw-tools/README.md", "shared/verl-hw-core/README.md"], ["everything"]),
        (["uv.lock"], ["everything"]),
        (["tests/support/wheelkit.py"], ["everything"]),
        ([".github/workflows/ci.yml"], ["everything"]),
        (["docs/ray.md", "README.md"], ["text"]),
        (["docs/user_guide_intel/faq.md", "packages/verl-hw-intel/CHANGELOG.md"], ["text", "verl-hw-intel"]),
        (["scripts/releaselib/gates.py", "docs/x.md"], ["everything", "release tools"]),
        (["tests/release/conftest.py"], ["everything", "release tools"]),
        (["scripts/release.py"], ["everything", "release tools"]),
        (["scripts/dev.py"], ["everything"]),
        ([], ["everything"]),
        (None, ["everything"]),
    ],
)
def test_a_change_selects(files, names):
    assert [one["name"] for one in targets(files)] == names


def test_every_path_that_is_selected_is_there():
    found = targets([f"packages/{path.name}/x" for path in ROOT.glob("packages/verl-hw-*")] + ["docs/x.md", TOOLS])
    assert len(found) == 6
    assert [path for one in found for path in one["tests"].split() if not (ROOT / path).exists()] == []


def test_a_change_of_the_tools_selects_every_test_that_imports_them():
    [selected] = (one["tests"].split() for one in targets([TOOLS]))
    users = [path for path in ROOT.glob("tests/**/test_*.py") if "verl_hw_tools" in path.read_text(encoding="utf-8")]
    outside = [path for path in users if not any(path.is_relative_to(ROOT / one) for one in selected)]
    assert users
    assert [str(path.relative_to(ROOT)) for path in outside if path.name != "test_changed_targets.py"] == []


def test_a_base_that_git_does_not_know_means_everything():
    assert targets(changed_files("0" * 40)) == [EVERYTHING]
    assert targets(changed_files("main; echo")) == [EVERYTHING]
