# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The files of a vendor's package, from templates."""

import json
from collections.abc import Mapping
from datetime import date
from importlib import metadata, resources
from string import Template

from packaging.version import Version

from verl_hw_tools.scaffold.names import VendorNames

# Template below templates/ -> path in the package. Flat, so that no template looks like a part of this package.
_PACKAGE = {
    "LICENSE": "LICENSE",
    "README.md": "README.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "pyproject.toml": "pyproject.toml",
    "init.py": "src/@@{module}/__init__.py",
    "spec.py": "src/@@{module}/spec.py",
    "platform.py": "src/@@{module}/platform.py",
    "engines.py": "src/@@{module}/engines.py",
    "simulated.py": "src/@@{module}/simulated.py",
    "py.typed": "src/@@{module}/py.typed",
    "test_platform.py": "tests/test_@@{vendor}_platform.py",
    "test_conformance.py": "tests/test_@@{vendor}_conformance.py",
}
_REPOSITORY = {"gitignore": ".gitignore", "ci.yml": ".github/workflows/ci.yml"}
_GUIDE = {
    "guide_README.md": "README.md",
    "guide_install.md": "install_guidance.md",
    "guide_quick_start.md": "quick_start.md",
    "guide_faq.md": "faq.md",
}
# Of a guide in verl-hw's own docs: title of each section that is written by a script, and its name there.
_GUIDE_SECTIONS = {
    "README.md": (
        ("In one table", "facts"),
        ("How it is recognised", "detection"),
        ("Environment variables", "environment"),
        ("", "readme_end"),
    ),
    "install_guidance.md": (("", "before_docker"), ("", "install")),
    "quick_start.md": (("", "quick_start"),),
    "faq.md": (("Any chip", "faq"),),
}


# How a repository of its own is tested; the workspace has settings for all members.
_TEST_SETTINGS = """
[dependency-groups]
test = ["pytest>=8.3", "pytest-timeout>=2.3", "verl-hw-tools[demo]", "verl-hw-sim"]

[tool.pytest.ini_options]
addopts = ["-ra", "--strict-markers", "--strict-config"]
testpaths = ["tests"]
timeout = 300
markers = ["slow: takes more than about 20 seconds"]
filterwarnings = ["ignore::DeprecationWarning"]

[tool.ruff]
line-length = 120
"""


class _Template(Template):
    """Placeholders ``@@{name}``: workflow files, Python and shell have other uses for the dollar sign."""

    delimiter = "@@"
    idpattern = r"(?!)"
    braceidpattern = r"[a-z_]+"


def package_files(names: VendorNames, *, in_tree: bool) -> dict[str, str]:
    """Return the text of each file of the package by its path in it.

    Args:
        names: The vendor.
        in_tree: For a member of verl-hw's own workspace, which has workflows and guides in other places.
    """
    table = _PACKAGE if in_tree else {**_PACKAGE, **_REPOSITORY, **{k: f"docs/{v}" for k, v in _GUIDE.items()}}
    return _render(table, names, in_tree=in_tree)


def guide_files(names: VendorNames) -> dict[str, str]:
    """Return the text of each page of the user guide by its name, for verl-hw's own docs folder.

    There ``scripts/write_vendor_docs.py`` fills in the tables of facts and what all guides share.
    """
    return {name: text + _sections(name) for name, text in _render(_GUIDE, names, in_tree=True).items()}


def core_bound() -> str:
    """The versions of the core that a package generated now works with: this minor series."""
    core = Version(metadata.version("verl-hw-core"))
    return f">={core.major}.{core.minor},<{core.major}.{core.minor + 1}"


def tools_bound() -> str:
    """The versions of the command that a package generated now works with: this minor series and all later ones."""
    tools = Version(metadata.version("verl-hw-tools"))
    return f">={tools.major}.{tools.minor}"


def _sections(page: str) -> str:
    """The empty sections of a page, in the form that the script looks for."""
    return "".join(
        (f"\n## {title}\n" if title else "")
        + f"\n<!-- generated: python3 scripts/write_vendor_docs.py {name} -->\n<!-- end -->\n"
        for title, name in _GUIDE_SECTIONS[page]
    )


def _render(table: Mapping[str, str], names: VendorNames, *, in_tree: bool) -> dict[str, str]:
    values = _values(names, in_tree=in_tree)
    folder = resources.files(__package__).joinpath("templates")
    return {
        _Template(path).substitute(values): _Template(
            folder.joinpath(f"{template}.tmpl").read_text(encoding="utf-8")
        ).substitute(values)
        for template, path in table.items()
    }


def _values(names: VendorNames, *, in_tree: bool) -> dict[str, str]:
    return {
        "vendor": names.vendor,
        "device": names.device,
        "device_upper": names.device.upper(),
        "ccl": names.ccl,
        "display": names.display,
        "module": names.module,
        "distribution": names.distribution,
        "prefix": names.class_prefix,
        "aliases": f'("{names.device}",)' if names.device != names.vendor else "()",
        "authors": "The verl-hw authors" if in_tree else f"The {names.distribution} authors",
        "year": str(date.today().year),
        "core_bound": core_bound(),
        "tools_bound": tools_bound(),
        "verl_bound": _bound("verl"),
        "tensordict_bound": _bound("tensordict"),
        "gap": "\n" if in_tree else "",  # our packages are first-party there, and others' in a repository of its own
        "test_settings": "" if in_tree else _TEST_SETTINGS,
    }


def _bound(package: str) -> str:
    """Requirement of a package, from the table that the doctor and the documentation show."""
    text = resources.files("verl_hw_core").joinpath("tested_versions.json").read_text(encoding="utf-8")
    row = next(row for row in json.loads(text)["packages"] if row["name"] == package)
    return f">={row['floor']}" + (f",<{row['ceiling']}" if row["ceiling"] else "")
