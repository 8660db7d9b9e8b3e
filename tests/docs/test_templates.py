# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Issue templates ask for what is needed, and links of the files outside docs/ lead somewhere."""

import re

import pytest
import yaml
from documents import ROOT

LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)(?:#([\w-]+))?\)")
OUTSIDE = [
    *ROOT.glob("*.md"),
    *ROOT.glob(".github/*.md"),
    *ROOT.glob("packages/*/*.md"),
    *ROOT.glob("shared/*/*.md"),
]


def test_a_fault_report_asks_for_env_and_doctor():
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/fault.yml").read_text(encoding="utf-8"))
    required = {field["attributes"]["label"] for field in form["body"] if field.get("validations", {}).get("required")}
    assert required >= {"Output of `verl-hw env`", "Output of `verl-hw doctor`"}


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/ISSUE_TEMPLATE/[!c]*.yml")), ids=lambda path: path.name)
def test_every_form_is_whole(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= form.keys()
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    assert all(field["attributes"]["label"] for field in form["body"])


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for name, anchor in LINK.findall(path.read_text(encoding="utf-8")):
        target = (path.parent / name).resolve()
        assert target.exists(), name
        if anchor:
            assert anchor in _anchors(target.read_text(encoding="utf-8")), f"{name}#{anchor}"


def test_readmes_of_wheels_stand_alone():
    """A package index shows nothing but this one file."""
    for path in [*ROOT.glob("packages/*/README.md"), *ROOT.glob("shared/*/README.md")]:
        text = path.read_text(encoding="utf-8")
        assert LINK.search(text) is None, f"{path}: a link into the repository"
        assert f"pip install {path.parent.name}" in text, path
        assert "Apache-2.0" in text, path


def _anchors(text: str) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
