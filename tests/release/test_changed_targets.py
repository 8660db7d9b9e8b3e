# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Which tests a change asks for."""

import pytest

from changed_targets import EVERYTHING, ROOT, changed_files, targets


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["packages/verl-hw-intel/src/verl_hw_intel/spec.py"], ["verl-hw-intel"]),
        (
            ["packages/verl-hw-intel/README.md", "packages/verl-hw-metax/pyproject.toml"],
            ["verl-hw-intel", "verl-hw-metax"],
        ),
        (["packages/verl-hw-intel/README.md", "shared/verl-hw-core/src/verl_hw_core/flags.py"], ["everything"]),
        (["shared/verl-hw-sim/README.md"], ["everything"]),
        (["uv.lock"], ["everything"]),
        (["tests/support/wheelkit.py"], ["everything"]),
        ([".github/workflows/ci.yml"], ["everything"]),
        (["docs/ray.md", "README.md"], ["text"]),
        (["docs/user_guide_intel/faq.md", "packages/verl-hw-intel/CHANGELOG.md"], ["text", "verl-hw-intel"]),
        ([], ["everything"]),
        (None, ["everything"]),
    ],
)
def test_a_change_selects(files, names):
    assert [one["name"] for one in targets(files)] == names


def test_every_path_that_is_selected_is_there():
    found = targets([f"packages/{path.name}/x" for path in ROOT.glob("packages/verl-hw-*")] + ["docs/x.md"])
    assert len(found) == 5
    assert [path for one in found for path in one["tests"].split() if not (ROOT / path).is_dir()] == []


def test_a_base_that_git_does_not_know_means_everything():
    assert targets(changed_files("0" * 40)) == [EVERYTHING]
    assert targets(changed_files("main; echo")) == [EVERYTHING]
