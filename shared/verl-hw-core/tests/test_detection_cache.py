# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Results of management tools shared between the processes of a node."""

import json
import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from detectionkit import DEADLINE_S, SPECS, Machine, answer_of
from machine_speed import scaled

from verl_hw_core.detection import Verdict, forget, survey
from verl_hw_core.detection.result_cache import ANSWERED_SECONDS, UNANSWERED_SECONDS, ResultCache, open_cache
from verl_hw_core.detection.tool_run import ToolResult

COUNTS = 'echo run >> "$0.runs"; '


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine.make(tmp_path)
    for name in ("VERL_HW_PROBE_ROOT", "PATH", "XDG_CACHE_HOME", "HOME", "TMPDIR"):
        monkeypatch.setenv(name, made.environment()[name])
    monkeypatch.delenv("VERL_HW_PROBE_CACHE", raising=False)
    monkeypatch.setattr("tempfile.tempdir", None)  # or the folder of an earlier test is used
    forget()
    yield made
    forget()


def _runs(tool: Path) -> int:
    file = Path(f"{tool}.runs")
    return len(file.read_text().splitlines()) if file.exists() else 0


def _folder(machine: Machine) -> Path:
    return machine.cache / "verl-hw" / "probes"


def _cache() -> ResultCache:
    cache = open_cache()
    assert cache is not None
    return cache


def _survey_anew() -> dict[str, Verdict]:
    forget()
    return {key: finding.verdict for key, finding in survey(SPECS, deadline_s=scaled(0.5)).findings.items()}


@pytest.mark.parametrize(
    ("body", "verdict"), [("/bin/sleep 0.3; exit 0", "present"), ("exec /bin/sleep 60", "unknown")]
)
def test_processes_that_start_together_run_the_tool_once(machine: Machine, body: str, verdict: str) -> None:
    tool = machine.tool("mx-smi", COUNTS + body)
    started = [machine.start() for _ in range(8)]
    answers = [answer_of(process) for process in started]
    assert {answer["verdicts"]["metax"] for answer in answers} == {verdict}
    assert _runs(tool) == 1
    assert max(answer["seconds"] for answer in answers) < scaled(DEADLINE_S) * 1.5


def test_results_are_reused_and_say_so(machine: Machine) -> None:
    tool = machine.tool("mx-smi", COUNTS + "exit 0")
    broken = machine.tool("cnmon", COUNTS + "exit 3")
    for _ in range(3):
        verdicts = _survey_anew()
        assert (verdicts["metax"], verdicts["cambricon"]) == (Verdict.PRESENT, Verdict.UNKNOWN)
    # A quick failure is asked again: it may be due to the environment of the process that asked.
    assert (_runs(tool), _runs(broken)) == (1, 3)
    assert "asked earlier on this node" in survey(SPECS, deadline_s=scaled(0.5)).findings["metax"].evidence[-1].why


def test_replaced_tool_is_run_again(machine: Machine) -> None:
    machine.tool("mx-smi", "exit 1")
    assert _survey_anew()["metax"] is Verdict.UNKNOWN
    machine.tool("mx-smi", "echo repaired; exit 0")
    assert _survey_anew()["metax"] is Verdict.PRESENT


def test_other_probe_root_is_another_node(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = machine.tool("mx-smi", COUNTS)
    _survey_anew()
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("VERL_HW_PROBE_ROOT", str(tmp_path / "other"))
    _survey_anew()
    assert _runs(tool) == 2


def test_cache_can_be_switched_off(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERL_HW_PROBE_CACHE", "0")
    tool = machine.tool("mx-smi", COUNTS)
    _survey_anew()
    _survey_anew()
    assert _runs(tool) == 2
    assert not _folder(machine).exists()


def test_one_process_asks_once_even_without_cache(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERL_HW_PROBE_CACHE", "0")
    tool = machine.tool("mx-smi", COUNTS + "exit 1")
    survey(SPECS, deadline_s=scaled(DEADLINE_S))
    survey(SPECS[1:], deadline_s=scaled(DEADLINE_S))
    assert _runs(tool) == 1


def test_nothing_is_written_when_no_tool_is_there(machine: Machine) -> None:
    _survey_anew()
    assert list(machine.cache.iterdir()) == []


def test_folder_and_file_are_private(machine: Machine) -> None:
    machine.tool("mx-smi", "exit 0")
    _survey_anew()
    assert stat.S_IMODE(_folder(machine).stat().st_mode) == 0o700
    files = list(_folder(machine).iterdir())
    assert sorted(file.suffix for file in files) == [".json", ".lock"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1, 2]",
        b"null",
        b"\xff\xfe\x00",
        b'{"a": 1, "b": {"answered": "yes", "why": 3, "at": null}, "c": {"answered": true, "why": "w", "at": NaN}}',
        b"[" * 100_000,
    ],
)
def test_damaged_file_is_ignored_and_replaced(machine: Machine, content: bytes) -> None:
    machine.tool("mx-smi", "exit 0")
    _survey_anew()
    (file,) = _folder(machine).glob("*.json")
    file.write_bytes(content)
    assert _survey_anew()["metax"] is Verdict.PRESENT
    assert len(json.loads(file.read_bytes())) == 1


def test_foreign_folder_is_refused(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = machine.tool("mx-smi", COUNTS)
    _survey_anew()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert _survey_anew()["metax"] is Verdict.PRESENT
    assert _runs(tool) == 2
    assert open_cache() is None  # the folder in the temporary directory is not that user's either


@pytest.mark.parametrize("spoil", ["open to others", "a link", "a file"])
def test_unsafe_folder_is_refused_for_the_next_candidate(machine: Machine, tmp_path: Path, spoil: str) -> None:
    folder = _folder(machine)
    folder.parent.mkdir()
    if spoil == "open to others":
        folder.mkdir()
        folder.chmod(0o755)
    elif spoil == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.touch()
    machine.tool("mx-smi", "exit 0")
    assert _survey_anew()["metax"] is Verdict.PRESENT
    assert list(machine.cache.glob("verl-hw-probes-*/probes-*.json"))
    assert not list(tmp_path.glob("elsewhere/*"))


def test_no_place_for_a_cache_is_no_error(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine.cache / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine.cache / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(machine.cache / "file"))
    machine.tool("mx-smi", "exit 0")
    assert _survey_anew()["metax"] is Verdict.PRESENT


def test_held_lock_delays_no_longer_than_the_deadline(machine: Machine) -> None:
    tool = machine.tool("mx-smi", COUNTS)
    cache = _cache()
    with cache.hold(cache.new_lock(), 1) as is_held:
        assert is_held
        answer = answer_of(machine.start(call=f"deadline_s={scaled(1.0)}"))
        assert answer["verdicts"]["metax"] == "present"
        assert answer["seconds"] < scaled(1.0) * 1.5
    assert _runs(tool) == 1


def test_silence_of_a_tool_that_had_little_time_is_not_kept(machine: Machine) -> None:
    tool = machine.tool("mx-smi", COUNTS + "exec /bin/sleep 60")
    cache, held = _cache(), threading.Event()

    def hold_most_of_the_time() -> None:
        with cache.hold(cache.new_lock(), 1):
            held.set()
            time.sleep(scaled(0.8))

    holder = threading.Thread(target=hold_most_of_the_time)
    holder.start()
    held.wait()
    assert survey(SPECS, deadline_s=scaled(1.0)).findings["metax"].verdict is Verdict.UNKNOWN
    holder.join()
    assert _runs(tool) == 1
    assert cache.load() == {}


@pytest.mark.parametrize(("answered", "seconds"), [(True, ANSWERED_SECONDS), (False, UNANSWERED_SECONDS)])
def test_results_age(machine: Machine, monkeypatch: pytest.MonkeyPatch, answered: bool, seconds: float) -> None:
    cache = _cache()
    result = ToolResult(answered, "in a test")
    cache.store({"key": result})
    now = time.monotonic()
    for later, expected in ((seconds - 5, {"key": result}), (seconds + 5, {}), (-5, {})):
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        assert cache.load() == expected


def test_other_boot_has_other_results(machine: Machine) -> None:
    cache = ResultCache(_folder(machine), "this boot")
    _folder(machine).mkdir(parents=True)
    cache.store({"key": ToolResult(True, "in a test")})
    assert ResultCache(_folder(machine), "this boot").load()
    assert not ResultCache(_folder(machine), "next boot").load()


def test_files_of_old_boots_are_removed(machine: Machine) -> None:
    cache = _cache()
    old = _folder(machine) / "probes-0123456789abcdef.json"
    old.touch()
    os.utime(old, (1, 1))
    cache.store({"key": ToolResult(True, "in a test")})
    assert not old.exists()
    assert cache.load()
