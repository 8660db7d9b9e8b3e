# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
import errno
from pathlib import Path
from types import SimpleNamespace

import pytest

from verl_hw_core.errors import TrainingFailedError
from verl_hw_tools.demo import workspace as module
from verl_hw_tools.demo.workspace import MARKER, is_full, open_workspace, writing
from verl_hw_tools.errors import OutputFolderError


def test_default_folders_are_fresh_and_below_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = open_workspace("acme", None), open_workspace("acme", None)
    assert first.root == tmp_path / "outputs" / "demo-acme"
    assert second.root == tmp_path / "outputs" / "demo-acme-2"


def test_a_folder_that_cannot_be_written_falls_back_to_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outputs").write_text("a file, no folder")
    monkeypatch.chdir(tmp_path)
    assert tmp_path not in open_workspace("acme", None).root.parents


def test_a_deleted_working_directory_falls_back_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert open_workspace("acme", None).root.is_dir()


def test_a_former_demo_is_replaced(tmp_path: Path) -> None:
    old = open_workspace("acme", tmp_path / "out")
    old.whole.root.mkdir()
    old.whole.metrics.write_text("old")
    del old
    new = open_workspace("acme", tmp_path / "out")
    assert not new.whole.root.exists()


def test_files_of_someone_else_are_never_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputFolderError, match=r"thesis\.tex"):
        open_workspace("acme", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_foreign_file_in_a_demo_folder_is_kept_too(tmp_path: Path) -> None:
    open_workspace("acme", tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputFolderError, match=r"notes\.txt"):
        open_workspace("acme", tmp_path)
    assert (tmp_path / MARKER).exists()


def test_a_running_demo_keeps_its_folder(tmp_path: Path) -> None:
    running = open_workspace("acme", tmp_path)
    running.model.mkdir()
    with pytest.raises(OutputFolderError, match="another demo is running"):
        open_workspace("acme", tmp_path)
    assert running.model.exists()


def test_a_file_system_without_locks_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(_file: object, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(module.fcntl, "flock", flock)
    assert open_workspace("acme", tmp_path).root == tmp_path


def test_a_full_disk_is_an_error_of_the_folder_and_other_errors_are_left_alone(tmp_path: Path) -> None:
    with pytest.raises(OutputFolderError, match=r"cannot write into .*No space left"), writing(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(TrainingFailedError, match="broken"), writing(tmp_path):
        raise TrainingFailedError("broken")


def test_a_disk_without_room_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_full(tmp_path)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda folder: SimpleNamespace(free=4096))
    assert is_full(tmp_path)


def test_a_link_is_removed_but_not_followed(tmp_path: Path) -> None:
    open_workspace("acme", tmp_path / "out")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    (tmp_path / "out" / "whole-run").symlink_to(tmp_path / "precious")
    open_workspace("acme", tmp_path / "out")
    assert (tmp_path / "precious" / "file").exists()


def test_a_file_as_output_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputFolderError, match="cannot write into"):
        open_workspace("acme", tmp_path / "file")


def test_bulky_files_go_and_results_stay(tmp_path: Path) -> None:
    workspace = open_workspace("acme", tmp_path)
    for folder in (workspace.model, workspace.other_model, workspace.data, workspace.whole.checkpoints):
        folder.mkdir(parents=True)
    workspace.whole.metrics.write_text("{}")
    workspace.drop_bulky()
    assert sorted(path.name for path in tmp_path.iterdir()) == [MARKER, "whole-run"]
    assert [path.name for path in workspace.whole.root.iterdir()] == ["metrics.jsonl"]


def test_training_never_finds_a_module_in_the_folder_it_runs_in(tmp_path: Path) -> None:
    workspace = open_workspace("acme", tmp_path)
    folders = (workspace.model, workspace.other_model, workspace.data, workspace.whole.root, workspace.resumed.root)
    assert not [folder.name for folder in folders if folder.name.isidentifier()]
