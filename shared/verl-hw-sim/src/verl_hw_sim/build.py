# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Compile the native half once per torch, and load it. Processes that find it built pay for neither."""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType

from verl_hw_sim.errors import BuildError, CacheDirectoryError
from verl_hw_sim.profiles import Kind
from verl_hw_sim.settings import CACHE_ENVVAR, cache_directory
from verl_hw_sim.torch_support import pybind_defines

SOURCES = Path(__file__).parent / "csrc"
COMPILERS = ("c++", "g++", "clang++")
# -O1 halves the build; the work is in torch's own kernels.
FLAGS = ("-O1", "-std=c++20", "-fPIC", "-shared", "-Wall")
LIBRARIES = ("-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python")
LOCK_TIMEOUT_SECONDS = 1800.0
_SHOWN_LINES = 25
_ERROR_LINE = re.compile(r"\berror: |undefined reference to|: cannot find ")
# What to do about a first error that has nothing to do with torch; the second pattern is torch_version.h's.
_ADVICE = {
    r"-std=c\+\+20": "It needs C++20 (g++ 11 or later). ",
    r"needs a C\+\+20 compiler": "It needs C++20 (g++ 11 or later). ",
    r"Python\.h": "It needs Python's headers (Debian, Ubuntu: python3-dev). ",
}


@dataclass(frozen=True)
class TorchBuild:
    """The torch that the native half is compiled against.

    Attributes:
        version: ``torch.__version__``, before a simulated vendor changes it.
        folder: Where torch is installed.
        cxx11_abi: Value of ``_GLIBCXX_USE_CXX11_ABI``.
        defines: More arguments for the compiler, as ``-DNAME="value"``.
    """

    version: str
    folder: Path
    cxx11_abi: bool
    defines: tuple[str, ...] = ()

    @classmethod
    def installed(cls) -> "TorchBuild":
        """The torch of this process."""
        import torch

        abi = bool(torch._C._GLIBCXX_USE_CXX11_ABI)
        return cls(str(torch.__version__), Path(torch.__file__).parent, abi, pybind_defines(torch._C))


def find_compiler() -> tuple[str, ...] | None:
    """The C++ compiler's command: ``CXX`` (which may hold arguments), else the first usual one on ``PATH``.

    Raises:
        BuildError: ``CXX`` is set and names no executable.
    """
    configured = shlex.split(os.environ.get("CXX", ""))
    if configured:
        if shutil.which(configured[0]) is None:
            raise BuildError(
                f"CXX is {os.environ['CXX']!r}, but there is no executable {configured[0]!r}. "
                "Point CXX at a C++ compiler or unset it."
            )
        return tuple(configured)
    for name in COMPILERS:
        if shutil.which(name) is not None:
            return (name,)
    return None


def source_files() -> list[Path]:
    """The C++ files of the native half."""
    return sorted(path for path in SOURCES.iterdir() if path.suffix in {".h", ".cpp"})


def module_name(kind: Kind) -> str:
    """Name of the extension module of a kind."""
    return f"_verl_hw_sim_{kind}"


def build_directory(kind: Kind, torch_build: TorchBuild) -> Path:
    """Folder for the builds of one kind for one torch, Python and source; below it, one folder per compiler."""
    digest = hashlib.sha256()
    interpreter = (sys.implementation.cache_tag, sysconfig.get_config_var("SOABI"), sys.platform)
    abi = (torch_build.cxx11_abi, torch_build.defines)
    digest.update(repr((torch_build.version, abi, interpreter, FLAGS, LIBRARIES, kind)).encode())
    for path in source_files():
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return cache_directory() / "native" / f"{kind}-torch{torch_build.version}-{digest.hexdigest()[:12]}"


def _compiler_folder(compiler: tuple[str, ...]) -> str:
    # The resolved path tells versions apart (g++ is a link to g++-12) without starting the compiler.
    resolved = str(Path(shutil.which(compiler[0]) or compiler[0]).resolve())
    return hashlib.sha256(repr((resolved, *compiler[1:])).encode()).hexdigest()[:8]


def _sum_file(module: Path) -> Path:
    return module.with_name(f"{module.name}.sha256")


def _summed(module: Path) -> str:
    """Size and hash of a file, as they are kept beside it."""
    content = module.read_bytes()
    return f"{len(content)} {hashlib.sha256(content).hexdigest()}\n"


def is_intact(module: Path) -> bool:
    """Whether a compiled module is what the compiler wrote: loading half a file would end the process by SIGBUS."""
    try:
        return _sum_file(module).read_text(encoding="utf-8") == _summed(module)
    except (OSError, UnicodeDecodeError):
        return False


def find_built(kind: Kind, torch_build: TorchBuild) -> Path | None:
    """The compiled module, when there is one that is whole."""
    directory = build_directory(kind, torch_build)
    file_name = f"{module_name(kind)}.so"
    compiler = find_compiler()
    if compiler is not None:
        path = directory / _compiler_folder(compiler) / file_name
        return path if is_intact(path) else None
    # No compiler here, but perhaps when this cache was filled.
    return next(filter(is_intact, sorted(directory.glob(f"*/{file_name}"))), None)


def ensure_built(kind: Kind, torch_build: TorchBuild, label: str) -> Path:
    """Return the compiled module; compile it first if need be. Many processes may call this at once.

    Args:
        kind: Which device.
        torch_build: The torch to compile against.
        label: What the message on stderr calls the device, as ``"cambricon"``.

    Raises:
        BuildError: There is no compiler, or it failed.
        CacheDirectoryError: The cache folder cannot be written.
    """
    built = find_built(kind, torch_build)
    if built is not None:
        return built
    compiler = find_compiler()
    if compiler is None:
        raise BuildError(
            "the simulator is compiled at first use, and there is no C++ compiler: none of "
            f"{', '.join(COMPILERS)} is on PATH. Install one (Debian, Ubuntu: apt-get install g++; "
            "Fedora, openEuler: dnf install gcc-c++; conda: conda install cxx-compiler), or set CXX to its path."
        )
    # Imported here: most processes find the module built.
    from filelock import FileLock, Timeout

    target = build_directory(kind, torch_build) / _compiler_folder(compiler) / f"{module_name(kind)}.so"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.parent / "build.lock", timeout=LOCK_TIMEOUT_SECONDS):
            if not is_intact(target):  # else another process built it while we waited
                if target.is_file():
                    _say(f"{target} is damaged, it is compiled again")
                _compile(kind, torch_build, compiler, target, label)
    except Timeout as error:
        raise BuildError(
            f"another process has held {error.lock_file} for {LOCK_TIMEOUT_SECONDS:.0f} s while building the "
            "simulator. End that process, or delete the file if there is none, and try again."
        ) from error
    except OSError as error:
        raise CacheDirectoryError(
            f"the simulator is compiled into {target.parent}, which cannot be written ({error}). "
            f"Set {CACHE_ENVVAR} to a folder that can."
        ) from error
    return target


def compile_command(kind: Kind, torch_build: TorchBuild, compiler: tuple[str, ...], output: Path) -> list[str]:
    """The compiler's command line."""
    include, libraries = torch_build.folder / "include", torch_build.folder / "lib"
    # -isystem: warnings in torch's headers are not ours to mend.
    return [
        *compiler,
        *FLAGS,
        f"-DSIM_KIND_{kind.upper()}",
        f"-DTORCH_EXTENSION_NAME={module_name(kind)}",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch_build.cxx11_abi)}",
        *torch_build.defines,
        *("-isystem", str(include)),
        *("-isystem", str(include / "torch" / "csrc" / "api" / "include")),
        *("-isystem", sysconfig.get_paths()["include"]),
        str(SOURCES / "module.cpp"),
        *("-o", str(output)),
        f"-L{libraries}",
        *LIBRARIES,
    ]


def _compile(kind: Kind, torch_build: TorchBuild, compiler: tuple[str, ...], target: Path, label: str) -> None:
    # We hold the lock: whatever lies here was left by a build that was killed.
    for leftover in target.parent.glob(".building-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    # The only sign of life during a minute of silence.
    _say(f"compiling the simulated {label} device for torch {torch_build.version} (about 40 s, once) ...")
    started = time.monotonic()
    staging = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        output = staging / target.name
        command = compile_command(kind, torch_build, compiler, output)
        result = subprocess.run(
            command,
            env={**os.environ, "LC_ALL": "C"},  # _ERROR_LINE is English
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if result.returncode != 0 or not output.is_file():
            title, lines = _first_error(result.stdout)
            advice = next((text for pattern, text in _ADVICE.items() if re.search(pattern, lines[0])), "")
            raise BuildError(
                f"the C++ compiler failed (exit status {result.returncode}) on the simulated {label} device for "
                f"torch {torch_build.version}. {advice}Command:\n{shlex.join(command)}\n{title}:\n" + "\n".join(lines)
            )
        _sum_file(output).write_text(_summed(output), encoding="utf-8")
        # The sum last: without it the module counts as damaged.
        _sum_file(target).unlink(missing_ok=True)
        output.replace(target)
        _sum_file(output).replace(_sum_file(target))
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    _say(f"compiled in {time.monotonic() - started:.0f} s")


def _first_error(output: str) -> tuple[str, list[str]]:
    """A title and the compiler's lines from its first error on: what follows from that error is at the end."""
    lines = output.splitlines() or ["(none)"]
    for number, line in enumerate(lines):
        if _ERROR_LINE.search(line):
            return "First error", lines[number : number + _SHOWN_LINES]
    return "Last lines", lines[-_SHOWN_LINES:]


def _say(text: str) -> None:
    print(f"verl-hw-sim: {text}", file=sys.stderr, flush=True)  # noqa: T201


def load_native(kind: Kind, path: Path) -> ModuleType:
    """Load a compiled module.

    Raises:
        BuildError: It does not fit this process's torch.
    """
    name = module_name(kind)
    spec = importlib.util.spec_from_file_location(name, path, loader=ExtensionFileLoader(name, str(path)))
    if spec is None or spec.loader is None:
        raise BuildError(f"{path} cannot be loaded as an extension module. Delete its folder and try again.")
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        raise BuildError(
            f"the compiled simulator does not fit this torch ({error}). Delete {path.parent} and try again."
        ) from error
    return module
