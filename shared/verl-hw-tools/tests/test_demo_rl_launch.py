# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Ray's folder of the RL demo, and what is said where its name is too long for a socket."""

import tempfile
from pathlib import Path

import pytest

from verl_hw_tools.demo.rl.failure import explain
from verl_hw_tools.demo.rl.launch import _ray_folder

LONGEST_SOCKET = 107
OF_RAY = "ray/session_2026-11-30_11-29-37_123456_4194304/sockets/plasma_store.1"


def test_rays_sockets_fit_whatever_the_folder_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = tmp_path / "scratch of a batch system" / ("job-" + "7" * 60)
    far.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(far))
    with _ray_folder() as folder:
        assert folder.is_dir()
        assert len(str(folder / OF_RAY)) <= LONGEST_SOCKET
    assert not folder.exists()


def test_a_short_folder_for_temporary_files_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as parent:
        monkeypatch.setattr(tempfile, "tempdir", parent)
        with _ray_folder() as folder:
            assert folder.parent == Path(parent)
            assert len(str(folder / OF_RAY)) <= LONGEST_SOCKET


def test_a_name_too_long_for_a_socket_is_explained(tmp_path: Path) -> None:
    log = tmp_path / "main_ppo.log"
    log.write_text("OSError: validate_socket_filename failed: AF_UNIX path length cannot exceed 107 bytes: /a\n")
    assert "set TMPDIR to one with a short name" in explain(log, 1).lines[-1]
