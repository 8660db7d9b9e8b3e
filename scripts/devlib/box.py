# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``dev.py box``: a folder that runs verl on a machine with real silicon and without a network (docs/real_silicon.md).

The box holds our wheels, built from the tree, and everything that verl needs beside torch, in the versions of
``uv.lock``, unpacked, without what a run does not use, in one archive. ``boxlib`` is what runs there.
"""

import argparse
import csv
import hashlib
import json
import lzma
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path
from typing import Any

from boxlib.image import ARCHIVE, MANIFEST, normalized
from devlib.console import DevError, fail, say
from devlib.environment import ROOT, find_uv

MIB = 2**20
LARGEST_MIB = 64
LARGEST_BYTES = LARGEST_MIB * MIB
PYTHONS = ("3.10", "3.11", "3.12")
# The image's own and never replaced; what only they need is left out with them.
FROM_IMAGE = ("torch", "numpy")
# Named by metadata and not imported by what the box runs.
LEFT_OUT = {
    "wandb": "verl imports it where its logger is asked for",
    "tensorboard": "likewise",
    "matplotlib": "the demo draws no picture without it",
    "hf-xet": "downloads from the hub",
    "pybind11": "verl names it for building",
    # ray[default] brings these for the dashboard; without them Ray starts none.
    "grpcio": "Ray's dashboard and tensorboard",
    "aiohttp-cors": "Ray's dashboard",
    "colorful": "Ray's dashboard",
    "opencensus": "Ray's dashboard",
    "opentelemetry-exporter-prometheus": "Ray's dashboard",
    "opentelemetry-sdk": "Ray's dashboard",
    "py-spy": "Ray's dashboard",
    "smart-open": "Ray's dashboard",
    "virtualenv": "environments that Ray builds",
}
# Files that no part of a run opens, by distribution.
TRIMMED = {
    "ray": ("ray/jars/*", "ray/dashboard/client/*", "ray/rllib/*", "ray/llm/*"),
    "pyarrow": (
        *("pyarrow/include/*", "pyarrow/src/*", "pyarrow/tests/*", "pyarrow/*.px[id]", "pyarrow/_pyarrow_cpp_tests*"),
        *("pyarrow/libarrow_flight*", "pyarrow/libarrow_python_flight*", "pyarrow/_flight*"),
        *("pyarrow/libarrow_s3*", "pyarrow/_s3fs*"),
        # Each library is there three times, under its short, its shared and its full name; the shared one is loaded.
        *("pyarrow/lib*.so.*.*.*", "pyarrow/libarrow_python*.so", "pyarrow/libparquet.so", "pyarrow/libarrow.so"),
    ),
    "pandas": ("pandas/tests/*",),
}
# Symbol tables of large programs and libraries, which only a debugger reads; a third of their size.
STRIPPED = {
    "ray": ("ray/_raylet.so", "ray/core/src/ray/*/*"),
    "pyarrow": ("pyarrow/lib*.so.*", "pyarrow/*.cpython-*.so"),
}
# Console scripts and bytecode are of no use on another path.
_TRIMMED_EVERYWHERE = ("bin/*", "*/__pycache__/*", "*.pyc", "_virtualenv.*", ".lock")
# Copies of the tests' programs, as module files for the box's path.
COPIES = (
    *("tests/conformance/engine_program.py", "tests/conformance/cpu_reference.py", "tests/conformance/rank_start.py"),
    *("tests/conformance/replaced_names.py", "tests/conformance/tiny_models.py"),
    *("tests/conformance/colocated_transfer_program.py", "tests/conformance/weight_sync_crew.py"),
    "tests/support/machine_speed.py",
)
_BUILD_SECONDS, _DOWNLOAD_SECONDS, _STRIP_SECONDS = 600, 1500, 60
_ELF = b"\x7fELF"
_PLATFORM = "x86_64-manylinux_2_28"
# Ray's programs are built of the same code: the dictionary reaches from one to the next. Jumps in machine code become
# alike by the first filter.
_FILTERS = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 64 * MIB}]


def main(arguments: Sequence[str]) -> int:
    """Build a box.

    Args:
        arguments: The command line behind ``box``.

    Returns:
        The exit status.

    Raises:
        DevError: It cannot be built; what is there already is left as it is.
    """
    parser = argparse.ArgumentParser(prog="dev.py box", description="Build a box: see docs/real_silicon.md.")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder of the box; must be empty, or a former box")
    vendors = sorted(path.name.removeprefix("verl-hw-") for path in (ROOT / "packages").glob("verl-hw-*"))
    parser.add_argument(
        "--vendor", choices=vendors, default="metax", help="whose wheel drives the device (%(default)s)"
    )
    parser.add_argument("--python", choices=PYTHONS, default="3.12", help="the image's Python (%(default)s)")
    parser.add_argument("--with-simulator", action="store_true", help="bring the simulator, to try the box without one")
    options = parser.parse_args(arguments)

    uv = find_uv()
    with tempfile.TemporaryDirectory(prefix="verl-hw-box-") as temporary:
        build = Builder(options.vendor, options.python, options.with_simulator, uv, Path(temporary))
        size = build.into(options.out)
    say(f"{options.out}: {size / MIB:.1f} MiB of at most {LARGEST_MIB}. There: python{options.python} run_box.py")
    return 0


class Builder:
    """Builds one box in a folder of its own, and moves it to its place when it is whole."""

    def __init__(self, vendor: str, python: str, simulator: bool, uv: str, work: Path) -> None:
        self._vendor, self._python, self._simulator = vendor, python, simulator
        self._uv, self._work = uv, work

    def into(self, out: Path) -> int:
        """Build the box and return its size in bytes.

        Raises:
            DevError: ``out`` holds something else, a tool failed, or the box is too large.
        """
        if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / MANIFEST).exists())):
            raise DevError(f"{out} is there and is no box: name a new or an empty folder")
        site, box = self._work / "site", self._work / "box"
        say("== wheels of the tree")
        wheels = self._wheels()
        say("== what verl needs beside the image, in the versions of uv.lock")
        self._install(wheels, site)
        say("== the box")
        box.mkdir()
        files = distributions(site)
        kept = {name: trimmed(name, paths) for name, paths in files.items()}
        for name, patterns in STRIPPED.items():
            strip(site, [path for path in kept.get(name, ()) if any(fnmatch(path, one) for one in patterns)])
        sizes = pack(site, kept, box / ARCHIVE)
        self._scripts(box)
        manifest = self._manifest(site, files, box / ARCHIVE)
        (box / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        size = sum(path.stat().st_size for path in box.rglob("*") if path.is_file())
        require_size(size, sizes, LARGEST_BYTES)
        if out.exists():
            shutil.rmtree(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(box, out)
        return size

    @property
    def _members(self) -> list[str]:
        names = ["verl-hw-core", "verl-hw-tools", f"verl-hw-{self._vendor}"]
        return [*names, "verl-hw-sim"] if self._simulator else names

    def _wheels(self) -> list[Path]:
        folder = self._work / "wheels"
        for name in self._members:
            command = [self._uv, "build", "--quiet", "--wheel", "--no-sources", "--package", name]
            _run([*command, "--out-dir", str(folder)], _BUILD_SECONDS)
        return sorted(folder.glob("*.whl"))

    def _install(self, wheels: Sequence[Path], site: Path) -> None:
        """Unpack wheels and requirements for the image's Python, whatever Python runs this."""
        pruned = [word for name in (*FROM_IMAGE, *LEFT_OUT) for word in ("--prune", name)]
        packages = [word for name in self._members for word in ("--package", name)]
        export = [self._uv, "export", "--quiet", "--frozen", "--no-dev", *packages, "--extra", "demo", *pruned]
        plain = ["--no-hashes", "--no-header", "--no-annotate", "--no-emit-workspace"]
        wanted = self._work / "wanted.txt"
        wanted.write_text(_run([*export, *plain], _BUILD_SECONDS), encoding="utf-8")
        # omegaconf needs antlr's runtime, which has no wheel; it is plain Python.
        only_wheels = ["--only-binary", ":all:", "--no-binary", "antlr4-python3-runtime"]
        target = ["--target", str(site), "--python-version", self._python, "--python-platform", _PLATFORM]
        install = [self._uv, "pip", "install", "--quiet", "--no-deps", *only_wheels, *target]
        _run([*install, "-r", str(wanted), *map(str, wheels)], _DOWNLOAD_SECONDS)

    def _scripts(self, box: Path) -> None:
        library = ROOT / "scripts" / "boxlib"
        shutil.copytree(library, box / "boxlib", ignore=shutil.ignore_patterns("__pycache__", "run_box.py"))
        shutil.copyfile(library / "run_box.py", box / "run_box.py")
        copies = box / "boxlib" / "copies"
        copies.mkdir()
        for name in COPIES:
            shutil.copyfile(ROOT / name, copies / Path(name).name)
        shutil.copyfile(ROOT / "docs" / "real_silicon.md", box / "README.md")

    def _manifest(self, site: Path, files: Mapping[str, list[str]], archive: Path) -> dict[str, Any]:
        required = requirements(site, self._python)
        carried = [
            {"name": name, "version": version, "wanted": required.get(name, ""), "ours": name.startswith("verl-hw-")}
            for name, version in sorted(versions(site).items())
        ]
        describe = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
        return {
            "vendor": self._vendor,
            "python": self._python,
            "revision": _run(describe, 60).strip(),
            "simulator": self._simulator,
            "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
            "needed": {name: required.get(name, "") for name in FROM_IMAGE},
            "carried": carried,
        }


def distributions(site: Path) -> dict[str, list[str]]:
    """Return the files of each distribution, relative to ``site``, from what its RECORD says and what is there."""
    found: dict[str, list[str]] = {}
    for record in sorted(site.glob("*.dist-info/RECORD")):
        name = normalized(record.parent.name.rsplit("-", 1)[0].removesuffix(".dist-info").partition("-")[0])
        rows = csv.reader(record.read_text(encoding="utf-8").splitlines())
        found[name] = sorted({row[0] for row in rows if row and (site / row[0]).is_file() and ".." not in row[0]})
    return found


def versions(site: Path) -> dict[str, str]:
    """Return the version of each distribution in a folder."""
    return {normalized(one.metadata["Name"]): one.version for one in metadata.distributions(path=[str(site)])}


def requirements(site: Path, python: str) -> dict[str, str]:
    """Return what the distributions in a folder ask of each other and of the image, as one specifier set a name."""
    from packaging.markers import default_environment
    from packaging.requirements import Requirement

    there: dict[str, Any] = {**default_environment(), "python_version": python, "python_full_version": f"{python}.0"}
    asked: dict[str, set[str]] = {}
    for distribution in metadata.distributions(path=[str(site)]):
        for text in distribution.requires or ():
            one = Requirement(text)
            if one.marker is None or any(one.marker.evaluate({**there, "extra": extra}) for extra in ("", "demo")):
                asked.setdefault(normalized(one.name), set()).update(map(str, one.specifier))
    return {name: ",".join(sorted(specifiers)) for name, specifiers in asked.items()}


def trimmed(name: str, paths: Iterable[str]) -> list[str]:
    """Return the files of a distribution that a run may open."""
    patterns = (*_TRIMMED_EVERYWHERE, *TRIMMED.get(name, ()))
    return [path for path in paths if not any(fnmatch(path, pattern) for pattern in patterns)]


def strip(site: Path, paths: Iterable[str]) -> None:
    """Take the symbol tables out of programs and libraries; what is none of them stays as it is.

    Raises:
        DevError: There is no strip, or it failed.
    """
    for path in paths:
        with (site / path).open("rb") as file:
            if file.read(len(_ELF)) != _ELF:
                continue
        if shutil.which("strip") is None:
            raise DevError("needs strip, which comes with the compiler: sudo apt-get install binutils")
        # uv may have linked the file from its cache, which stays as it is: strip writes a new one.
        _run(["strip", "--strip-unneeded", "-o", str(site / f"{path}.stripped"), str(site / path)], _STRIP_SECONDS)
        (site / f"{path}.stripped").replace(site / path)


def pack(site: Path, kept: Mapping[str, Sequence[str]], archive: Path) -> dict[str, int]:
    """Pack the files as ``<distribution>/<path>``, and return about how many bytes each distribution takes in it.

    Args:
        site: Where the files are.
        kept: Files by distribution.
        archive: The archive to write.
    """
    sizes = {}
    with lzma.open(archive, "wb", filters=_FILTERS) as compressed, tarfile.open(fileobj=compressed, mode="w") as packed:
        for name, paths in kept.items():
            before = archive.stat().st_size
            for path in paths:
                packed.add(site / path, f"{name}/{path}", recursive=False, filter=_anonymous)
            compressed.flush()
            sizes[name] = archive.stat().st_size - before
    return sizes


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Nobody's name and no time, so that the same tree gives the same archive."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def require_size(size: int, sizes: Mapping[str, int], largest: int = LARGEST_BYTES) -> None:
    """Refuse a box that is too large.

    Raises:
        DevError: It is; what takes the most is named.
    """
    if size <= largest:
        return
    most = sorted(sizes.items(), key=lambda one: one[1], reverse=True)[:8]
    named = ", ".join(f"{name} {taken / MIB:.1f}" for name, taken in most)
    raise DevError(
        f"the box would take {size / MIB:.1f} MiB, and {largest / MIB:.0f} is the most that travels. The largest in "
        f"it, in MiB: {named}. What no run opens goes into TRIMMED, what nothing imports into LEFT_OUT (devlib/box.py)"
    )


def _run(command: Sequence[str], seconds: int) -> str:
    """Run a tool to its end and return what it printed.

    Raises:
        DevError: It failed or took too long.
    """
    try:
        done = subprocess.run(list(command), cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise DevError(
            f"{' '.join(command[:3])} was not over after {seconds} s; is the package index within reach?"
        ) from (error)
    if done.returncode != 0:
        raise DevError(f"{' '.join(command[:3])} failed:\n{done.stderr.strip()[-3000:]}")
    return done.stdout


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except DevError as problem:
        sys.exit(fail(str(problem)))
