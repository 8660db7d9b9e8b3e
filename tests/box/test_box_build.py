# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``dev.py box`` with stand-ins for uv's answers: what is in a box, what is left out, and what is refused."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from boxlib import image
from boxlib.image import BoxError, Carried, Manifest
from devlib import box
from devlib.console import DevError

PYTHON = "3.12"


def write_distribution(site: Path, name: str, version: str, files: dict[str, str], requires: tuple[str, ...] = ()):
    """An installed distribution as uv leaves it."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = [f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}", *(f"Requires-Dist: {one}" for one in requires)]
    (info / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, encoding="utf-8")
    record = [*files, f"{info.name}/METADATA", f"{info.name}/RECORD"]
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in record), encoding="utf-8")


def write_site(site: Path) -> None:
    write_distribution(site, "verl", "0.9.1", {"verl/__init__.py": ""}, ("ray[default]>=2.41", "numpy>=2.0", "wandb"))
    ray = {"ray/__init__.py": "", "ray/jars/ray.jar": "java", "ray/dashboard/client/build/x.js": "js"}
    write_distribution(site, "ray", "2.60.0", ray | {"ray/dashboard/agent.py": "", "bin/ray": "#!"}, ("click>=7",))
    ours = {"verl_hw_cambricon/__init__.py": ""}
    write_distribution(site, "verl_hw_cambricon", "0.1.0", ours, ("verl>=0.9,<0.11", "torch>=2.8; extra == 'x'"))


class Uv:
    """Stands for uv, git and strip, and notes how they are called."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, command: list[str], seconds: int) -> str:
        assert 0 < seconds <= 1800
        self.calls.append(list(command))
        if command[0] == "git":
            return "abc123\n"
        if command[1] == "export":
            return "ray==2.60.0\nverl==0.9.1\n"
        if command[1] == "pip":
            write_site(Path(command[command.index("--target") + 1]))
        return ""

    def call(self, word: str) -> list[str]:
        (found,) = [call for call in self.calls if word in call]
        return found


@pytest.fixture
def uv(monkeypatch) -> Uv:
    stand_in = Uv()
    monkeypatch.setattr(box, "_run", stand_in)
    return stand_in


def build(folder: Path, work: Path, simulator: bool = False) -> int:
    work.mkdir()
    return box.Builder("cambricon", PYTHON, simulator, "uv", work).into(folder)


def test_a_box_is_whole_and_its_manifest_says_what_is_in_it(uv, tmp_path):
    size = build(tmp_path / "box", tmp_path / "work")
    names = {str(path.relative_to(tmp_path / "box")) for path in (tmp_path / "box").rglob("*") if path.is_file()}
    wanted = {"run_box.py", "box.json", "packages.tar.xz", "README.md", "boxlib/record.py", "boxlib/programs/sft.py"}
    assert names >= wanted | {f"boxlib/copies/{Path(one).name}" for one in box.COPIES}
    assert not [name for name in names if "__pycache__" in name]
    assert size == sum((tmp_path / "box" / name).stat().st_size for name in names)
    manifest = image.read_manifest(tmp_path / "box")
    assert (manifest.vendor, manifest.python, manifest.revision, manifest.simulator) == (
        "cambricon",
        PYTHON,
        "abc123",
        False,
    )
    assert {one.name: (one.version, one.wanted, one.ours) for one in manifest.carried} == {
        "verl": ("0.9.1", "<0.11,>=0.9", False),
        "ray": ("2.60.0", ">=2.41", False),
        "verl-hw-cambricon": ("0.1.0", "", True),
    }
    assert manifest.needed == {"torch": "", "numpy": ">=2.0"}


def test_what_no_run_opens_is_not_packed(uv, tmp_path):
    build(tmp_path / "box", tmp_path / "work")
    with tarfile.open(tmp_path / "box" / "packages.tar.xz") as packed:
        members = packed.getnames()
    assert "ray/ray/__init__.py" in members
    assert "ray/ray/dashboard/agent.py" in members
    assert "ray/ray-2.60.0.dist-info/METADATA" in members
    assert not [name for name in members if "jars" in name or "client" in name or "/bin/" in name]


def test_what_is_installed_is_the_locks_for_the_images_python(uv, tmp_path):
    build(tmp_path / "box", tmp_path / "work", simulator=True)
    built = {call[call.index("--package") + 1] for call in uv.calls if call[1] == "build"}
    assert built == {"verl-hw-core", "verl-hw-tools", "verl-hw-cambricon", "verl-hw-sim"}
    export, install = uv.call("export"), uv.call("install")
    pruned = {export[index + 1] for index, word in enumerate(export) if word == "--prune"}
    assert {"torch", "numpy", "wandb", "matplotlib"} <= pruned
    assert "--frozen" in export
    assert install[install.index("--python-version") + 1] == PYTHON
    assert "--no-deps" in install


def test_a_box_that_is_too_large_is_refused_with_the_names_of_what_is_large(uv, tmp_path, monkeypatch):
    (tmp_path / "box").mkdir()
    monkeypatch.setattr(box, "LARGEST_BYTES", 1000)
    with pytest.raises(DevError, match=r"MiB") as refused:
        build(tmp_path / "box", tmp_path / "work")
    assert "ray " in str(refused.value)
    assert list((tmp_path / "box").iterdir()) == []


def test_the_largest_are_named_first():
    sizes = {f"small-{number}": number for number in range(1000, 1010)} | {"large": 60 * box.MIB}
    box.require_size(64 * box.MIB, sizes)
    with pytest.raises(DevError, match=r"65\.0 MiB, and 64 is.*: large 60\.0, ") as refused:
        box.require_size(65 * box.MIB, sizes)
    assert "small-1000" not in str(refused.value)


def test_another_folder_is_not_overwritten_and_a_former_box_is(uv, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    with pytest.raises(DevError, match="is no box"):
        build(tmp_path / "mine", tmp_path / "work")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years"
    shutil.rmtree(tmp_path / "work")
    build(tmp_path / "box", tmp_path / "work")
    (tmp_path / "box" / "old").touch()
    shutil.rmtree(tmp_path / "work")
    build(tmp_path / "box", tmp_path / "work")
    assert not (tmp_path / "box" / "old").exists()


def carried(name: str, wanted: str = "", ours: bool = False) -> Carried:
    return Carried(name=name, version="1.0", wanted=wanted, ours=ours)


def manifest(*distributions: Carried, python: str = "", **needed: str) -> Manifest:
    import sys

    python = python or f"{sys.version_info.major}.{sys.version_info.minor}"
    return Manifest(
        vendor="acme", python=python, revision="r", simulator=False, sha256="", needed=needed, carried=distributions
    )


def test_the_images_own_is_used_where_it_does():
    box_ = manifest(
        carried("ray", ">=2.41"), carried("pandas"), carried("transformers", "<5.11,>=5.5.3,!=5.6.0"),
        carried("tokenizers", "<=0.23.0"), carried("hydra-core"), carried("verl-hw-core", ours=True),
    )  # fmt: skip
    found = {"ray": "2.51.1+mlu", "pandas": "1", "transformers": "5.17.0", "tokenizers": "0.22.2", "verl-hw-core": "9"}
    assert [one.name for one in image.chosen(box_, found)] == ["transformers", "hydra-core", "verl-hw-core"]


def test_another_python_and_a_missing_torch_are_refused_by_name():
    with pytest.raises(BoxError, match=r"built for Python 3\.9.*--python"):
        image.require_image(manifest(python="3.9"), {})
    with pytest.raises(BoxError, match="no torch, no numpy"):
        image.require_image(manifest(torch="", numpy=""), {"pip": "26"})
    remarks = image.require_image(manifest(torch="", numpy=">=2.0"), {"torch": "2.9.1+mlu", "numpy": "1.26.4"})
    assert len(remarks) == 1
    assert "numpy 1.26.4" in remarks[0]


def test_only_what_was_chosen_is_unpacked_and_a_damaged_archive_is_refused(uv, tmp_path):
    build(tmp_path / "box", tmp_path / "work")
    site, there = tmp_path / "site", image.read_manifest(tmp_path / "box")
    site.mkdir()
    image.unpack(tmp_path / "box", there, {"verl"}, site)
    assert (site / "verl" / "__init__.py").is_file()
    assert not (site / "ray").exists()
    archive = tmp_path / "box" / image.ARCHIVE
    archive.write_bytes(archive.read_bytes()[:-8])
    with pytest.raises(BoxError, match="copy the box again"):
        image.unpack(tmp_path / "box", there, {"verl"}, site)


def test_a_folder_without_a_manifest_says_how_to_build_one(tmp_path):
    with pytest.raises(BoxError, match=r"dev\.py box"):
        image.read_manifest(tmp_path)
    (tmp_path / image.MANIFEST).write_text(json.dumps({"vendor": "acme"}))
    with pytest.raises(BoxError, match="copy the box again"):
        image.read_manifest(tmp_path)
