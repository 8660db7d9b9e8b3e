# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Compilation of the native half, with stub compilers and without torch."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from verl_hw_sim import build
from verl_hw_sim.errors import BuildError, CacheDirectoryError
from verl_hw_sim.torch_support import pybind_defines

TORCH = build.TorchBuild("9.9.9+none", Path("/nowhere/torch"), True)
STUB = f"""#!{sys.executable}
import sys, time
with open({{log!r}}, "a") as log:
    log.write("run\\n")
time.sleep({{seconds}})
open(sys.argv[sys.argv.index("-o") + 1], "w").close()
"""
PROGRAM = """
from pathlib import Path
from verl_hw_sim import build
torch_build = build.TorchBuild("9.9.9+none", Path("/nowhere/torch"), True)
print(build.ensure_built("privateuse1", torch_build, "cambricon"))
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VERL_HW_SIM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def stub_compiler(tmp_path, monkeypatch):
    """``stub_compiler(text)`` makes a compiler and sets CXX to it."""

    def make(text):
        path = tmp_path / "stub-c++"
        path.write_text(text)
        path.chmod(0o755)
        monkeypatch.setenv("CXX", str(path))
        return path

    return make


def test_sixteen_starters_build_once(cache, stub_compiler, tmp_path, run_python):
    log = tmp_path / "runs"
    compiler = stub_compiler(STUB.format(log=str(log), seconds=1))
    with ThreadPoolExecutor(16) as pool:
        starters = pool.map(
            lambda _: run_python("-c", PROGRAM, VERL_HW_SIM_CACHE=str(cache), CXX=str(compiler)), range(16)
        )
        children = list(starters)
    assert [child.stderr for child in children if child.returncode] == []
    assert len({child.stdout for child in children}) == 1
    assert log.read_text().splitlines() == ["run"]
    messages = "".join(child.stderr for child in children).splitlines()
    assert len(messages) == 2, messages  # one line when it starts, one when it is done
    assert "compiling the simulated cambricon device for torch 9.9.9+none" in messages[0]
    assert list(cache.rglob(".building-*")) == []


def test_the_environment_of_the_key(cache, stub_compiler, tmp_path):
    log = tmp_path / "runs"
    stub_compiler(STUB.format(log=str(log), seconds=0))
    first = build.ensure_built("privateuse1", TORCH, "cambricon")
    assert build.ensure_built("privateuse1", TORCH, "cambricon") == first
    assert build.find_built("privateuse1", TORCH) == first
    others = {
        build.ensure_built("xpu", TORCH, "intel"),
        build.ensure_built("privateuse1", build.TorchBuild("9.9.8", TORCH.folder, True), "cambricon"),
        build.ensure_built("privateuse1", build.TorchBuild("9.9.9+none", TORCH.folder, False), "cambricon"),
        build.ensure_built("privateuse1", build.TorchBuild("9.9.9+none", TORCH.folder, True, ("-DX=1",)), "cambricon"),
    }
    assert len(others | {first}) == 5
    assert len(log.read_text().splitlines()) == 5


def test_a_build_needs_no_compiler_once_it_is_there(cache, stub_compiler, tmp_path, monkeypatch):
    stub_compiler(STUB.format(log=str(tmp_path / "runs"), seconds=0))
    first = build.ensure_built("privateuse1", TORCH, "cambricon")
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert build.ensure_built("privateuse1", TORCH, "cambricon") == first


def test_what_a_killed_build_left_is_removed(cache, stub_compiler, tmp_path):
    stub_compiler(STUB.format(log=str(tmp_path / "runs"), seconds=0))
    target = build.ensure_built("privateuse1", TORCH, "cambricon")
    target.unlink()
    (target.parent / ".building-old").mkdir()
    assert build.ensure_built("privateuse1", TORCH, "cambricon") == target
    assert list(cache.rglob(".building-*")) == []


@pytest.mark.parametrize("damage", ["truncated", "changed", "unsummed"])
def test_a_damaged_module_is_compiled_again(cache, stub_compiler, tmp_path, damage, capsys):
    log = tmp_path / "runs"
    stub_compiler(STUB.format(log=str(log), seconds=0).replace('"w").close()', '"w").write("whole")'))
    target = build.ensure_built("privateuse1", TORCH, "cambricon")
    capsys.readouterr()
    if damage == "unsummed":
        target.with_name(f"{target.name}.sha256").unlink()
    else:
        target.write_text({"truncated": "who", "changed": "whale"}[damage])
    assert build.find_built("privateuse1", TORCH) is None
    assert build.ensure_built("privateuse1", TORCH, "cambricon") == target
    assert target.read_text() == "whole"
    assert len(log.read_text().splitlines()) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"verl-hw-sim: {target} is damaged, it is compiled again"
    assert build.ensure_built("privateuse1", TORCH, "cambricon") == target
    assert len(log.read_text().splitlines()) == 2


def test_no_compiler(cache, monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match=r"no C\+\+ compiler: none of c\+\+, g\+\+, clang\+\+.*apt-get install g\+\+"):
        build.ensure_built("privateuse1", TORCH, "cambricon")


def test_cxx_names_no_executable(cache, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler -O3")
    with pytest.raises(BuildError, match="CXX is 'no-such-compiler -O3', but there is no executable"):
        build.ensure_built("privateuse1", TORCH, "cambricon")


def test_cxx_may_hold_arguments(cache, stub_compiler, tmp_path, monkeypatch):
    path = stub_compiler(STUB.format(log=str(tmp_path / "runs"), seconds=0))
    monkeypatch.setenv("CXX", f"{path} --flag")
    assert build.find_compiler() == (str(path), "--flag")


def test_a_failing_compiler_shows_its_last_lines(cache, stub_compiler):
    stub_compiler("#!/bin/sh\nfor i in 1 2 3; do echo line $i; done\necho fatal: no such header >&2\nexit 3\n")
    with pytest.raises(BuildError) as caught:
        build.ensure_built("privateuse1", TORCH, "cambricon")
    text = str(caught.value)
    assert "exit status 3" in text
    assert text.endswith("line 1\nline 2\nline 3\nfatal: no such header")
    assert "-DSIM_KIND_PRIVATEUSE1" in text  # the command, to try it by hand
    assert list(cache.rglob("*.so")) == []


ERRORS = {
    "a name that torch lacks": ("memory.h:177:29: error: 'getMemoryInfo' marked 'override', but does not override", ""),
    "an old compiler": ("g++: error: unrecognized command-line option '-std=c++20'", "g++ 11 or later"),
    "an old clang": ("error: invalid value 'c++20' in '-std=c++20'", "g++ 11 or later"),
    "an unfinished C++20": (
        'torch_version.h:10:2: error: #error "verl-hw-sim needs a C++20 compiler"',
        "g++ 11 or later",
    ),
    "no headers of Python": ("module.cpp:9:10: fatal error: Python.h: No such file or directory", "python3-dev"),
    "the linker": ("/usr/bin/ld: cannot find -ltorch_python", ""),
}


@pytest.mark.parametrize("reason", ERRORS)
def test_a_failing_compiler_shows_its_first_error_and_advice_only_where_it_helps(cache, stub_compiler, reason):
    first, advice = ERRORS[reason]
    noise = "\n".join(f"module.cpp:{number}:1: error: and so on" for number in range(60))
    stub_compiler(f"#!/bin/sh\ncat <<'END'\nIn file included from module.cpp:7:\n{first}\n{noise}\nEND\nexit 1\n")
    with pytest.raises(BuildError) as caught:
        build.ensure_built("privateuse1", TORCH, "cambricon")
    told, _, shown = str(caught.value).partition("First error:\n")
    assert shown.splitlines()[0] == first
    assert len(shown.splitlines()) == 25
    for text in ("g++ 11 or later", "python3-dev"):
        assert (text in told) == (text == advice), told


def test_an_old_standard_is_the_first_error_of_the_real_compiler():
    compiler = build.find_compiler()
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    header = str(build.SOURCES / "torch_version.h")
    child = subprocess.run(
        [*compiler, "-std=c++17", "-fsyntax-only", "-x", "c++", header], capture_output=True, text=True, check=False
    )
    _, lines = build._first_error(child.stderr)
    assert "verl-hw-sim needs a C++20 compiler" in lines[0]


def test_a_cache_that_cannot_be_written(stub_compiler, tmp_path, monkeypatch):
    stub_compiler(STUB.format(log=str(tmp_path / "runs"), seconds=0))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VERL_HW_SIM_CACHE", str(tmp_path / "file"))
    with pytest.raises(CacheDirectoryError, match="Set VERL_HW_SIM_CACHE"):
        build.ensure_built("privateuse1", TORCH, "cambricon")


def test_a_module_that_does_not_fit_is_refused(tmp_path):
    module = tmp_path / "_verl_hw_sim_xpu.so"
    module.write_bytes(b"not an extension module")
    with pytest.raises(BuildError, match="does not fit this torch"):
        build.load_native("xpu", module)


def test_every_source_file_counts_and_names_its_licence():
    names = {path.name for path in build.source_files()}
    assert {"module.cpp", "common.h", "fallback.h"} <= names
    for path in build.source_files():
        assert path.read_text().splitlines()[1] == "// SPDX-License-Identifier: Apache-2.0", path


def test_an_older_torch_names_the_abi_of_its_bindings(tmp_path):
    older = SimpleNamespace(_PYBIND11_COMPILER_TYPE="_gcc", _PYBIND11_STDLIB=None, _PYBIND11_BUILD_ABI="_cxxabi1018")
    defines = pybind_defines(older)
    assert defines == ('-DPYBIND11_COMPILER_TYPE="_gcc"', '-DPYBIND11_BUILD_ABI="_cxxabi1018"')
    assert pybind_defines(SimpleNamespace()) == ()
    torch_build = build.TorchBuild("2.8.0", TORCH.folder, True, defines)
    assert set(defines) <= set(build.compile_command("xpu", torch_build, ("c++",), tmp_path / "a.so"))


def test_the_compiler_gets_no_shell(cache, tmp_path):
    command = build.compile_command("xpu", TORCH, ("c++",), tmp_path / "a b.so")
    assert str(tmp_path / "a b.so") in command
    assert subprocess.list2cmdline(command)
