#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Try a verl that was not tried yet, and record how it went in ``scripts/tried_verl.json``.

    python3 scripts/dev.py run python scripts/try_verl.py                # the newest of the index, if it is new
    python3 scripts/dev.py run python scripts/try_verl.py --verl 0.9.1   # this one

It judges the patch registry against it, puts it into the environment without its requirements, runs a few tests, and
puts the locked one back. Exit code 0: nothing is new, or all fits and passes; 1: something does not; 2: it could not be
tried. The nightly workflow keeps the file as an artifact; who looks at it commits it.
"""

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
TRIED = ROOT / "scripts" / "tried_verl.json"
# Names and imports, then engines, offload and checkpoints against a CPU reference.
TESTS = (
    "tests/verl_compat/test_ledger.py",
    "tests/verl_compat/test_import.py",
    "tests/conformance/test_engine_parity.py",
)
INDEX_SECONDS = 300
TEST_SECONDS = 2400


class TrialError(Exception):
    """A verl could not be tried."""


def main(argv: list[str] | None = None) -> int:
    """Try one verl and record it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verl", metavar="VERSION", help="version to try (default: the newest, if it is new)")
    parser.add_argument("--tried", type=Path, default=TRIED, help="file of results to read and to add to")
    options = parser.parse_args(argv)
    record = json.loads(options.tried.read_text(encoding="utf-8"))
    try:
        version = options.verl or new_version(record["tried"], newest_on_index())
        if version is None:
            print("no verl of the index is newer than those that were tried")
            return 0
        result = {"verl": version, "date": datetime.date.today().isoformat(), **trial(version)}
    except TrialError as error:
        print(f"try_verl: {error}", file=sys.stderr)
        return 2
    record["tried"] = [one for one in record["tried"] if one["verl"] != version] + [result]
    options.tried.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))
    return 0 if is_good(result) else 1


def new_version(tried: list[dict[str, Any]], newest: str) -> str | None:
    """Return the newest version if it is newer than every one that was tried."""
    known = [Version(one["verl"]) for one in tried]
    return newest if all(Version(newest) > one for one in known) else None


def is_good(result: dict[str, Any]) -> bool:
    """Whether every row fits and every test that ran passed."""
    return not (result["patches"]["moved"] or result["patches"]["gone"] or result["tests"]["failed"])


def newest_on_index() -> str:
    """Ask the package index for its newest verl, pre-releases included.

    Raises:
        TrialError: It does not answer.
    """
    options = ("--no-deps", "--prerelease=allow", "--no-header", "--no-annotate", "--upgrade", "--quiet", "-")
    done = run("uv", "pip", "compile", *options, seconds=INDEX_SECONDS, text="verl")
    if done.returncode != 0:
        raise TrialError(f"the package index says nothing of verl: {done.stderr.strip()}")
    return done.stdout.strip().partition("==")[2]


def trial(version: str) -> dict[str, Any]:
    """Judge the patch registry and run the tests; the locked verl is put back, whatever happens.

    Raises:
        TrialError: The version cannot be read or installed, or its tests cannot be run.
    """
    judged = run("verl-hw", "patches", "upstream", "--json", "--verl", version, seconds=INDEX_SECONDS)
    if judged.returncode not in (0, 1):
        raise TrialError(judged.stderr.strip())
    locked = metadata.version("verl")
    try:
        install(version)
        tests = run_tests()
    finally:
        install(locked)
    return {"patches": patch_summary(json.loads(judged.stdout)), "tests": tests}


def patch_summary(answer: dict[str, Any]) -> dict[str, Any]:
    """Reduce the answer of ``verl-hw patches upstream --verl`` to what is recorded."""
    rows = answer["rows"]
    named = {verdict: [row["id"] for row in rows if row["verdict"] == verdict] for verdict in ("moved", "gone")}
    return {"fit": sum(row["verdict"] == "fits" for row in rows), **named}


def install(version: str) -> None:
    """Put a verl into this environment, and nothing that it requires.

    Raises:
        TrialError: It cannot be installed.
    """
    done = run(
        "uv", "pip", "install", "--python", sys.executable, "--no-deps", f"verl=={version}", seconds=INDEX_SECONDS
    )
    if done.returncode != 0:
        raise TrialError(f"verl {version} cannot be installed: {done.stderr.strip()}")


def run_tests() -> dict[str, Any]:
    """Run the tests and return how many passed and were skipped, and the names of those that failed.

    Raises:
        TrialError: They took too long, or pytest itself broke.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        done = run("pytest", "-q", f"--junitxml={report}", *TESTS, seconds=TEST_SECONDS)
        if done.returncode not in (0, 1):
            raise TrialError(f"pytest ended with {done.returncode}: {(done.stdout + done.stderr)[-3000:]}")
        return test_summary(report.read_text(encoding="utf-8"))


def test_summary(report: str) -> dict[str, Any]:
    """Reduce a JUnit report to what is recorded."""
    cases = list(ElementTree.fromstring(report).iter("testcase"))  # noqa: S314 - pytest's own
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    names = [f"{case.get('classname')}::{case.get('name')}" for case in failed]
    return {"passed": len(cases) - len(failed) - skipped, "skipped": skipped, "failed": names}


def run(program: str, *arguments: str, seconds: float, text: str = "") -> "subprocess.CompletedProcess[str]":
    """Run an executable of this environment.

    Raises:
        TrialError: It took too long.
    """
    command = [str(Path(sys.executable).with_name(program)), *arguments]
    try:
        return subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=seconds, check=False, cwd=ROOT
        )
    except subprocess.TimeoutExpired as error:
        raise TrialError(f"{program} {arguments[0]} was not over within {seconds:.0f} s") from error


if __name__ == "__main__":
    sys.exit(main())
