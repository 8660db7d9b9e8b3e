# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a script wrote into the documents is what it would write now."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from documents import ROOT

SECTION = re.compile(r"write_vendor_docs\.py ([a-z_]+) -->")


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_vendor_docs", ROOT / "scripts" / "write_vendor_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_and_shared_text_are_up_to_date(writer):
    old = [
        str(path.relative_to(ROOT))
        for path, spec in writer.documents().items()
        if writer.document(path, spec) != path.read_text(encoding="utf-8")
    ]
    whole = [str(path.relative_to(ROOT)) for path, text in writer.whole_files().items() if _text(path) != text]
    assert old + whole == [], "run: python3 scripts/write_vendor_docs.py"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_no_dockerfile_is_left_of_a_stack_that_is_gone(writer):
    there = set((ROOT / "docs" / "dockerfiles").iterdir())
    assert there == {path for path in writer.whole_files() if path.suffix == ".Dockerfile"}


def test_the_walk_through_verls_settings_is_up_to_date():
    import write_settings_docs

    text = write_settings_docs.DOCUMENT.read_text(encoding="utf-8")
    assert write_settings_docs.document(text) == text, "run: python3 scripts/write_settings_docs.py"


def test_every_vendor_has_a_whole_guide(writer):
    pages = {"README", "install_guidance", "quick_start", "faq"}
    for spec in writer.specs():
        guide = [path for path, vendor in writer.documents().items() if vendor == spec]
        assert {path.stem for path in guide} == pages
        readme = next(path for path in guide if path.stem == "README").read_text(encoding="utf-8")
        sections = [f"write_vendor_docs.py {name} -->" for name in ("facts", "detection", "environment")]
        assert [name for name in sections if name not in readme] == []


def test_a_changed_fact_changes_the_table(writer):
    import dataclasses

    path, spec = next((path, spec) for path, spec in writer.documents().items() if spec and path.stem == "README")
    changed = dataclasses.replace(spec, visible_devices_envvar="OTHER_VISIBLE_DEVICES")
    assert "| Visible devices | `OTHER_VISIBLE_DEVICES`" in writer.document(path, changed)


def test_a_section_without_an_end_is_an_error(writer):
    with pytest.raises(ValueError, match="<!-- end -->"):
        writer.renewed("<!-- generated: python3 scripts/x.py a -->\n", "x.py", lambda name: name)


def test_shared_text_names_the_vendor_only(writer):
    for path, spec in writer.documents().items():
        if spec is not None:
            text = path.read_text(encoding="utf-8")
            others = [other.distribution for other in writer.specs() if other != spec]
            assert [name for name in others if name in text] == [], path
            assert "@key@" not in text


def test_the_guide_of_a_new_vendor_is_filled_in(writer, tmp_path):
    from acme import spec

    from verl_hw_tools.scaffold.names import VendorNames
    from verl_hw_tools.scaffold.rendering import guide_files

    pages = guide_files(VendorNames(vendor="acme", device="acmedev", ccl="accl", display="Acme NPU"))
    for name, text in pages.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    filled = {name: writer.document(tmp_path / name, spec()) for name in pages}
    assert "| Visible devices | `ACME_VISIBLE_DEVICES` |" in filled["README.md"]
    assert "pip install --find-links dist verl-hw-acme" in filled["install_guidance.md"]
    assert "VENDOR=acme" in filled["quick_start.md"]
    assert "verl-hw doctor --vendor acme" in filled["faq.md"]
    guide = (ROOT / "docs" / "user_guide_intel").glob("*.md")
    wanted = {path.name: set(SECTION.findall(path.read_text(encoding="utf-8"))) for path in guide}
    assert {name: set(SECTION.findall(text)) for name, text in pages.items()} == wanted
