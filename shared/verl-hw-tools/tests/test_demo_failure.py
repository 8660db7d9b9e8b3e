# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

from verl_hw_tools.demo.failure import explain, relevant_lines

TORCHRUN = """W1130 torch/distributed/elastic: Sending process 7 closing signal SIGTERM
Root Cause (first observed failure):
[0]:
  time      : 2026-11-30_05:13:50
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : {code} (pid: 6400)
"""
TRACEBACK = """WARNING:2026-11-30 something else
[rank1]: Traceback (most recent call last):
[rank1]:   File "a.py", line 1, in <module>
[rank1]:     main()
[rank1]:     ^^^^^^
[rank1]: ValueError: batch of 3 does not divide
[rank1]: by 2
[rank1]:[W1130 05:13:50] Warning: destroy_process_group() was not called
"""


def logs(folder: Path, rank: int, text: str) -> Path:
    path = folder / "ranks" / "run_x" / "attempt_0" / str(rank) / "stderr.log"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_shows_the_traceback_of_the_rank_that_failed_first(tmp_path: Path) -> None:
    (tmp_path / "torchrun.log").write_text(TORCHRUN.format(code=1))
    logs(tmp_path, 0, "Traceback (most recent call last):\n  File\nRuntimeError: connection closed by peer\n")
    path = logs(tmp_path, 1, TRACEBACK)
    failure = explain(tmp_path / "torchrun.log", tmp_path / "ranks", 1)
    assert failure.where == "rank 1 (exit code 1)"
    assert failure.log == path
    assert failure.lines[0] == "Traceback (most recent call last):"
    assert "ValueError: batch of 3 does not divide" in failure.lines
    assert "by 2" in failure.lines
    assert not [line for line in failure.lines if "WARNING" in line or "destroy_process_group" in line or "^" in line]
    assert str(path) in str(failure)


def test_a_killed_rank_says_so(tmp_path: Path) -> None:
    (tmp_path / "torchrun.log").write_text(TORCHRUN.format(code=-9))
    noise = "WARNING:2026-11-30 a note\nLoading weights: 100%|█████| 27/27 [00:00<00:00, 21513it/s]\r\n"
    logs(tmp_path, 1, f"loading\n{noise}")
    failure = explain(tmp_path / "torchrun.log", tmp_path / "ranks", 1)
    assert failure.where == "rank 1 (exit code -9, SIGKILL: most likely the machine ran out of memory)"
    assert failure.lines == ("loading",)


def test_without_a_word_of_the_killed_rank_torchrun_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "torchrun.log").write_text(TORCHRUN.format(code=-15))
    logs(tmp_path, 1, "Epoch 1/1:  60%|██████    | 36/60 [00:18<00:12,  1.86it/s]\n")
    failure = explain(tmp_path / "torchrun.log", tmp_path / "ranks", 1)
    assert failure.where == "rank 1 (exit code -15, SIGTERM)"
    assert "Root Cause (first observed failure):" in failure.lines


def test_a_failure_of_torchrun_itself_is_shown_from_its_own_log(tmp_path: Path) -> None:
    (tmp_path / "torchrun.log").write_text("/usr/bin/python: No module named torch\n")
    failure = explain(tmp_path / "torchrun.log", tmp_path / "ranks", 1)
    assert failure.where == "torchrun (exit code 1)"
    assert failure.lines == ("/usr/bin/python: No module named torch",)


def test_an_empty_log_is_no_reason_to_fail_again(tmp_path: Path) -> None:
    failure = explain(tmp_path / "missing.log", tmp_path / "ranks", 3)
    assert failure.lines == ()
    assert str(failure).startswith("torchrun (exit code 3), which wrote nothing\n")


def test_the_last_of_several_chained_tracebacks_is_shown() -> None:
    first = "Traceback (most recent call last):\n  File x\nKeyError: 'a'\n\nDuring handling of the above\n\n"
    lines = relevant_lines(first + "Traceback (most recent call last):\n  File y\nRuntimeError: b\n")
    assert lines == ("Traceback (most recent call last):", "  File y", "RuntimeError: b")


def test_long_tracebacks_keep_their_end() -> None:
    frames = "".join(f'  File "f{number}.py"\n' for number in range(60))
    lines = relevant_lines(f"Traceback (most recent call last):\n{frames}OSError: last\n")
    assert len(lines) == 18
    assert lines[-2:] == ('  File "f59.py"', "OSError: last")
