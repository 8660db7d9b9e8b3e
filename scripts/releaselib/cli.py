# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The subcommands of ``scripts/release.py``."""

import argparse
import hashlib
import re
import shutil
import sys
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

from releaselib import changelog, public_interface
from releaselib.building import build, check_metadata, export
from releaselib.packages import CORE, Package, all_packages, final_version, find_package
from releaselib.processes import ReleaseError, run
from releaselib.refusals import refusals
from releaselib.wheel_tests import companions, core_gate, test_wheel

ROOT = Path(__file__).resolve().parents[2]


def main(argv: list[str]) -> int:
    """Run one subcommand and return the exit status: 0 done, 1 refused or failed, 2 wrong usage."""
    options = _parser().parse_args(argv)
    try:
        options.run(options)
    except ReleaseError as error:
        print(f"release.py: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="release.py", description="Release one package, all but the upload.")
    parser.add_argument("--root", type=Path, default=ROOT, help="the workspace (default: this one)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    status = commands.add_parser("status", help="every package: version, last release, what keeps it from the next")
    status.set_defaults(run=_status)
    prepare = commands.add_parser("prepare", help="set a version and close its changelog; commit the result")
    prepare.add_argument("package")
    prepare.add_argument("version", type=str)
    prepare.set_defaults(run=_prepare)
    release = commands.add_parser("release", help="check, build, test the wheel; then tag")
    release.add_argument("package")
    release.add_argument("--tag", help="the tag that was pushed; nothing is tagged then")
    release.add_argument("--dry-run", action="store_true", help="everything but the tag")
    release.add_argument("--out", type=Path, help="where wheel and sdist are put (default: dist/)")
    release.set_defaults(run=_release)
    plain = commands.add_parser(
        "build", help="wheel and sdist of the last commit, and their hashes; nothing is checked"
    )
    plain.add_argument("package")
    plain.add_argument("--out", type=Path, help="where wheel and sdist are put (default: dist/)")
    plain.set_defaults(run=_build)
    interface = commands.add_parser("interface", help="public interfaces of core and tools against their last releases")
    interface.set_defaults(run=_interface)
    return parser


def _status(options: argparse.Namespace) -> None:
    for package in all_packages(options.root).values():
        print(f"{package.name} {package.version}, last release: {package.last_tag() or 'none'}")
        for reason in refusals(package, None):
            print(f"  {reason}")


def _interface(options: argparse.Namespace) -> None:
    for package in all_packages(options.root).values():
        if public_interface.is_stated(package):
            print(public_interface.check(package))


def _prepare(options: argparse.Namespace) -> None:
    package = find_package(options.root, options.package)
    version = final_version(options.version)
    changelog.close(package, version, datetime.now(timezone.utc).date())
    path = package.folder / "pyproject.toml"
    text, count = re.subn(r'^version = ".*"$', f'version = "{version}"', path.read_text("utf-8"), count=1, flags=re.M)
    if count != 1:
        raise ReleaseError(f"{path} has no line 'version = \"...\"'")
    path.write_text(text, encoding="utf-8")
    print(f"{package.name} {version}: look at CHANGELOG.md, type  uv lock , commit; then: release.py release")


def _release(options: argparse.Namespace) -> None:
    package = find_package(options.root, options.package)
    reasons = refusals(package, options.tag)
    if reasons:
        listed = "\n".join(f"  {reason}" for reason in reasons)
        raise ReleaseError(f"{package.name} {package.version} is not released:\n{listed}")
    with TemporaryDirectory(prefix="verl-hw-release-") as name:
        folder = Path(name).resolve()
        made = _checked(package, folder)
        _hand_over(made, options.out or options.root / "dist")
    if options.tag is None and not options.dry_run:
        run(
            ["git", "tag", "-a", package.tag, "-m", f"{package.name} {package.version}"],
            cwd=options.root,
            what="git tag",
        )
        print(f"tagged; publish with  git push origin {package.tag}")


def _build(options: argparse.Namespace) -> None:
    package = find_package(options.root, options.package)
    with TemporaryDirectory(prefix="verl-hw-release-") as name:
        folder = Path(name).resolve()
        (folder / "dist").mkdir()
        built = build(package.name, export(package.root, "HEAD", folder / "tree"), folder / "dist")
        _hand_over([built.wheel, built.sdist], options.out or options.root / "dist")


def _hand_over(paths: list[Path], out: Path) -> None:
    """Copy distributions to where they are wanted, and print what they are known by."""
    out.mkdir(parents=True, exist_ok=True)
    for path in paths:
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {shutil.copy(path, out)}")


def _checked(package: Package, folder: Path) -> list[Path]:
    """Build from the commit, check and test; return wheel and sdist."""
    tree = export(package.root, "HEAD", folder / "tree")
    (folder / "dist").mkdir()
    (folder / "others").mkdir()
    built = build(package.name, tree, folder / "dist")
    check_metadata(package, built)
    print(f"built: {built.wheel.name}, {built.sdist.name}; metadata are what an index takes")
    if public_interface.is_stated(package):
        print(public_interface.check(package))
    if package.name == CORE:
        print("\n".join(core_gate(package, built.wheel, tree, folder / "others")))
    others = folder / "own"
    others.mkdir()
    test_wheel(package, built.wheel, companions(package, tree, others), tree)
    print(f"{package.name}: its tests pass against the wheel")
    return [built.wheel, built.sdist]
