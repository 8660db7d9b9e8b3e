# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of built wheels: a package's own tests against its wheel, and vendors' tests against a new core."""

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from releaselib import clean_environment
from releaselib.building import build, export
from releaselib.packages import CORE, SIM, TOOLS, Package, all_packages
from releaselib.processes import run

_IMPORT = """
import importlib, sys
module = importlib.import_module({module!r})
assert sys.flags.isolated and module.__file__.startswith({folder!r}), module.__file__
"""
_STEERING = ("VERL_", "RAY_", "PYTHON", "VIRTUAL_ENV", "USE_FLAGCX", "PYTEST_")


def companions(package: Package, tree: Path, out: Path) -> list[Path]:
    """Build the wheels that a package's tests need beside its own.

    Core and tools of a vendor's wheel are the newest released ones that it allows; the simulator is this commit's.
    """
    packages = all_packages(package.root)
    wanted = {name for name in packages if name != package.name and (not package.is_vendor or name == SIM)}
    wheels = []
    for name in (CORE, TOOLS) if package.is_vendor else ():
        requirement = package.requirement_on(name)
        if requirement is not None:
            version = next(one for one in packages[name].released() if one in requirement.specifier)
            released = export(package.root, f"{name}-v{version}", out / f"released-{name}")
            wheels.append(build(name, released, out).wheel)
    return wheels + [build(name, tree, out).wheel for name in sorted(wanted)]


def test_wheel(package: Package, wheel: Path, others: Sequence[Path], tree: Path) -> None:
    """Run a package's own tests in a clean environment, against the wheel.

    Args:
        package: The package.
        wheel: Its wheel.
        others: Wheels of ours beside it.
        tree: The exported commit that the tests are taken from.

    Raises:
        ReleaseError: A test fails, or the wheel is not what is imported.
    """
    with TemporaryDirectory(prefix="verl-hw-release-") as name:
        folder = Path(name).resolve() / "venv"
        python = clean_environment.make(folder, [wheel, *others])
        env = {key: value for key, value in os.environ.items() if not key.startswith(_STEERING)}
        code = _IMPORT.format(module=package.module, folder=str(folder))
        run([python, "-I", "-c", code], cwd=Path(name), env=env, what=f"importing {package.module} with python -I")
        tests = tree / package.folder.relative_to(package.root) / "tests"
        command: list[str | Path] = [
            python,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            tree,
            "-c",
            tree / "pyproject.toml",
        ]
        run([*command, tests], cwd=tree, env=env, what=f"the tests of {package.name}")


def core_gate(core: Package, core_wheel: Path, head: Path, out: Path) -> list[str]:
    """Run the last released tests and wheel of each vendor, and of the tools, against a new core wheel.

    A package without a release counts with this commit's.

    Returns:
        What was tested, a line each.

    Raises:
        ReleaseError: Tests of one of them fail with the new core.
    """
    said = []
    packages = all_packages(core.root)
    for user in (one for one in packages.values() if one.is_vendor or one.name == TOOLS):
        tag = user.last_tag()
        folder = out / f"gate-{user.name}"
        folder.mkdir()
        tree = export(core.root, tag, folder / "tree") if tag else head
        wheel = build(user.name, tree, folder).wheel
        if user.is_vendor:
            others = [SIM, *([TOOLS] if user.requirement_on(TOOLS) else [])]
        else:  # the tools' tests look at every wheel
            others = [name for name in packages if name not in (CORE, TOOLS)]
        test_wheel(user, wheel, [core_wheel, *(build(name, head, folder).wheel for name in others)], tree)
        said.append(f"{user.name} of {tag or 'this commit, since it was never released'}: its tests pass")
    return said
