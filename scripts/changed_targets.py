#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a change asks CI to test, as JSON for a matrix: a vendor's package or the tools alone, or everything.

    python3 scripts/changed_targets.py --base <commit>      [{"name": ..., "tests": "<paths for pytest>"}, ...]

Needs nothing but Python and git.
"""

import argparse
import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EVERYTHING = {"name": "everything", "tests": ""}
# Beside a package's own tests: what looks at all wheels and guides.
_SHARED_TESTS = "tests/wheels tests/verl_compat tests/docs"
# No training process imports the tools: their own tests, and what runs the command.
_TOOLS_TESTS = (
    f"shared/verl-hw-tools/tests {_SHARED_TESTS} tests/end_to_end tests/conformance/test_check.py "
    "tests/conformance/test_check_faults.py tests/conformance/test_model_check.py"
)
_VENDOR = re.compile(r"packages/(verl-hw-[a-z0-9-]+)/")
# Nothing else looks at them: what a release takes is tried on a workspace of the tests' own.
RELEASE_TOOLS = {"name": "release tools", "tests": "--slow tests/release"}
_RELEASE = re.compile(r"scripts/release|tests/release/")
_TEXT = re.compile(r"docs/|[A-Z_]+\.md$|\.github/ISSUE_TEMPLATE/")


def main() -> None:
    """Print the targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--base", default="", help="the commit that is compared with; none, or an unknown one: everything"
    )
    print(json.dumps(targets(changed_files(parser.parse_args().base))))


def changed_files(base: str) -> list[str] | None:
    """Return what changed since the common ancestor with a commit; None when that cannot be said."""
    if not re.fullmatch(r"[0-9a-f]{40}", base):
        return None
    command = ["git", "diff", "--name-only", "--no-renames", "-z", f"{base}...HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    return [name for name in done.stdout.split("\0") if name] if done.returncode == 0 else None


def targets(files: Iterable[str] | None) -> list[dict[str, str]]:
    """Return the targets of a change: one a vendor, tools, text, or everything when anything else was touched.

    Where the release tools changed, all their tests are a target of its own.
    """
    if files is None:
        return [EVERYTHING]
    files = list(files)
    found = {}
    more = [RELEASE_TOOLS] if any(map(_RELEASE.match, files)) else []
    for file in files:
        if vendor := _VENDOR.match(file):
            name = vendor.group(1)
            found[name] = f"packages/{name} {_SHARED_TESTS}"
        elif file.startswith("shared/verl-hw-tools/"):
            found["verl-hw-tools"] = _TOOLS_TESTS
        elif _TEXT.match(file):
            found["text"] = "tests/docs"
        else:
            return [EVERYTHING, *more]
    return [{"name": name, "tests": tests} for name, tests in sorted(found.items())] or [EVERYTHING]


if __name__ == "__main__":
    main()
