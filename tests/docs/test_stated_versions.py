# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Versions that files must state in letters are those of ``tested_versions.json``."""

import re
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from devlib.stack_record import read_records
from devlib.stack_tables import versions_run
from verl_hw_core.registration import MINIMUM_VERL
from verl_hw_core.upstream.installed_state import bounds
from verl_hw_tools.doctor.versions import version_table

ROOT = Path(__file__).parents[2]
SUFFIXES = (".md", ".py", ".toml", ".tmpl", ".yml", ".json", ".sh")
ROWS = {row.name: row for row in version_table()}
PYTHONS = [
    f"3.{minor}" for minor in range(*(Version(ROWS["python"].__dict__[key]).minor for key in ("floor", "ceiling")))
]
NAMES = "|".join(name for name in ROWS if name != "python")
REQUIREMENT = re.compile(rf"(?<![\w.-])(?:{NAMES})(?:\[\w+\])?(?:[<>=~!]=?\d+(?:\.\d+)*,?)+")
IN_WORDS = re.compile(r"\bverl\s+(\d+\.\d+)\s+or\s+(.{0,20})", re.DOTALL)
# Said of one thing only, and true of it; each as (file, what it says).
OF_ONE_THING = {
    ("pyproject.toml", "torch>=2.13,<2.14"),  # the lock
    ("docs/megatron.md", "transformers<5"),  # what Megatron-Bridge requires
    # Since when a name exists, and an example of it.
    ("shared/verl-hw-core/src/verl_hw_core/upstream/ledger.json", "torch>=2.13"),
    ("shared/verl-hw-core/src/verl_hw_core/upstream/ledger.json", "transformers>=5"),
    ("shared/verl-hw-core/src/verl_hw_core/upstream/ledger.py", "torch>=2.13"),
    ("docs/architecture.md", "torch>=2.13"),
}


def files():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        path = ROOT / name
        wanted = path.suffix in SUFFIXES and "tests/" not in name and path.name != "CHANGELOG.md"
        if wanted and path.is_file():
            yield name, path.read_text(encoding="utf-8")


TEXTS = dict(files())


def requirements():
    return [(name, found) for name, text in TEXTS.items() for found in REQUIREMENT.findall(text)]


def within(name: str, requirement: str) -> bool:
    """Whether each bound is the table's; a lower one may name a patch release of the same series."""
    wanted = Requirement(requirement.rstrip(","))
    table = {bound.operator: Version(bound.version) for bound in SpecifierSet(bounds()[wanted.name])}
    return all(
        bound.operator in table
        and (
            table[bound.operator] == Version(bound.version)
            or (bound.operator == ">=" and Version(bound.version).release[:2] == table[">="].release)
        )
        for bound in wanted.specifier
    )


def test_the_walk_finds_what_it_is_for():
    found = {name for name, _ in requirements()}
    assert {"pyproject.toml", "docs/development.md", "packages/verl-hw-intel/pyproject.toml"} <= found
    assert len([text for text in TEXTS.values() if IN_WORDS.search(text)]) > 10


def test_every_requirement_is_the_tables():
    wrong = [(name, found) for name, found in requirements() if not within(name, found)]
    assert set(wrong) == OF_ONE_THING


@pytest.mark.parametrize(
    "stated", ["verl>=0.8", "verl>=0.9,<0.12", "megatron-core>=0.17", "tensordict==0.10", "ray<2.41"]
)
def test_another_bound_would_be_seen(stated):
    assert REQUIREMENT.fullmatch(stated)
    assert not within("a file", stated)


def test_verls_bounds_in_words():
    row = ROWS["verl"]
    for name, text in TEXTS.items():
        for floor, rest in IN_WORDS.findall(text):
            assert floor == row.floor, name
            assert " ".join(rest.split()).startswith(f"later, below {row.ceiling}"), f"{name}: {rest}"


def test_the_releases_of_verl_that_were_run_are_the_recorded_ones():
    run = versions_run(read_records(), "verl")
    stated = {name: re.findall(r"\(run with ([0-9. and,]*[0-9])", text) for name, text in TEXTS.items()}
    assert {text for found in stated.values() for text in found} == {" and ".join(run)}
    assert {"README.md", "docs/user_guide_intel/install_guidance.md", "packages/verl-hw-intel/README.md"} <= {
        name for name, found in stated.items() if found
    }
    assert [name for name, text in TEXTS.items() if re.search(r"verl 0\.9 (or|and) 0\.10", text)] == []


def test_pythons():
    spoken = f"Python {PYTHONS[0]} to {PYTHONS[-1]}"
    stated = f">={ROWS['python'].floor},<{ROWS['python'].ceiling}"
    for name, text in TEXTS.items():
        assert set(re.findall(r"Python 3\.\d+ to 3\.\d+", text)) <= {spoken}, name
        assert set(re.findall(r'requires-python = "(.*)"', text)) <= {stated}, name
        for matrix in re.findall(r'python: (\["3.*\])', text):
            assert matrix == str(PYTHONS).replace("'", '"'), name
        classifiers = re.findall(r"Programming Language :: Python :: (3\.\d+)", text)
        assert classifiers in ([], PYTHONS), name
    assert sum(spoken in text for text in TEXTS.values()) > 8


def test_the_oldest_verl():
    assert Version(ROWS["verl"].floor) == MINIMUM_VERL
    assert f"older than {ROWS['verl'].floor}" in TEXTS["shared/verl-hw-core/src/verl_hw_core/registration.py"]


def test_the_workspace_locks_versions_within_the_table():
    (block,) = re.findall(r"^constraint-dependencies = \[(.*?)^\]", TEXTS["pyproject.toml"], re.DOTALL | re.MULTILINE)
    locked = [Requirement(one) for one in re.findall(r'"(.+?)"', block)]
    assert {one.name for one in locked} == {"torch", "tensordict"}
    for requirement in locked:
        row = ROWS[requirement.name]
        lowest = next(bound.version for bound in requirement.specifier if bound.operator == ">=")
        assert row.allows(lowest)
        assert row.covers(lowest)
