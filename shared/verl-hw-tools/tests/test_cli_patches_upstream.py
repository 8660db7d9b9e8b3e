# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""``verl-hw patches upstream --verl``: what moved or is gone in a verl that is read and not imported."""

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from io import BytesIO

import pytest
from machine_speed import scaled
from typer.testing import CliRunner

from verl_hw_core.upstream import LEDGER, LedgerRow
from verl_hw_tools.cli.app import app
from verl_hw_tools.errors import VerlSourceError
from verl_hw_tools.upstream_check import source as sources
from verl_hw_tools.upstream_check.judgement import Verdict, judge
from verl_hw_tools.upstream_check.names import Names
from verl_hw_tools.upstream_check.source import VerlSource, find_source, installed_source

BASE = "verl/single_controller/ray/base.py"
WORKER = "verl/single_controller/base/worker.py"


def tree(**modules: str) -> VerlSource:
    """A verl of these modules; what ends with ``__init__`` is a package."""
    named = {f"verl.{name.replace('__', '.').rstrip('.')}": text for name, text in modules.items()}
    packages = {"verl", *(f"verl.{name[:-2]}" for name in modules if name.endswith("__"))}
    return VerlSource("a tree", "0.11.0", {"verl": "", **named}, frozenset(packages))


def row(**names: tuple[str, ...]) -> LedgerRow:
    return LedgerRow(id="row", reason="", lost="something is lost", link="", removal="", **names)


FORMS = tree(
    pkg__="from .deep import Own as Renamed, late\nfrom verl.plain import *\nimport verl.plain as other\n",
    pkg__deep="""
import torch
from torch import Policy
from verl.plain import Base
if torch.version.hip:
    late = 1
else:
    def late(): pass
try:
    import fast
except ImportError:
    fast = None
class Own(Base):
    table: dict = {}
    only_a_type: int
    def __init__(self):
        self._options = {}
    def call(self): pass
""",
    plain="class Base:\n    def inherited(self): pass\ndef plain(): pass\n",
)


@pytest.mark.parametrize(
    ("name", "own", "there"),
    [
        ("verl.pkg.deep:Own.call", True, True),
        ("verl.pkg.deep:Own.table", True, True),
        ("verl.pkg.deep:Own.only_a_type", True, False),
        ("verl.pkg.deep:Own.inherited", True, False),
        ("verl.pkg.deep:Own.inherited", False, True),
        ("verl.pkg.deep:Own()._options", False, True),
        ("verl.pkg.deep:Own._options", False, False),
        ("verl.pkg.deep:Own()._other", False, False),
        ("verl.pkg.deep:late", True, True),
        ("verl.pkg.deep:fast", True, True),
        ("verl.pkg.deep:Policy", True, True),
        ("verl.pkg.deep:Policy.of.torch", False, True),
        ("verl.pkg.deep:gone", False, False),
        ("verl.pkg:Renamed.call", True, True),
        ("verl.pkg:Renamed.gone", False, False),
        ("verl.pkg:Own", False, False),
        ("verl.pkg:plain", False, True),
        ("verl.pkg:other.plain", False, True),
        ("verl.pkg:other.gone", False, False),
        ("verl.pkg:deep", True, True),
        ("verl.pkg:shallow", True, False),
        ("verl.gone:plain", False, False),
    ],
)
def test_a_name_is_looked_up_as_python_would(name, own, there):
    assert Names(FORMS).has(name, own=own) is there


BEFORE = tree(
    work="class Worker:\n    def set_up(self): pass\ndef pools(): pass\nfrom verl.flags import available\n",
    flags="available = True\n",
)
NAMES = row(targets=("verl.work:Worker.set_up", "verl.work:available"), reads=("verl.work:pools", "torch:private"))


@pytest.mark.parametrize(
    ("after", "verdict", "found"),
    [
        (BEFORE, Verdict.FITS, {}),
        (
            tree(new__work=BEFORE.modules["verl.work"], flags="available = True\n"),
            Verdict.GONE,  # what it imported is not a definition of its own
            {"verl.work:Worker.set_up": ("verl.new.work",), "verl.work:pools": ("verl.new.work",)},
        ),
        (
            tree(work=BEFORE.modules["verl.work"].replace("def pools(): pass", ""), pools="def pools(): pass\n"),
            Verdict.MOVED,
            {"verl.work:pools": ("verl.pools",)},
        ),
        (
            tree(work=BEFORE.modules["verl.work"].replace("set_up", "prepare"), flags="available = True\n"),
            Verdict.GONE,
            {"verl.work:Worker.set_up": ()},
        ),
    ],
)
def test_a_row_is_as_its_worst_name(after, verdict, found):
    (judged,) = judge(after, BEFORE, [NAMES])
    assert judged.verdict is verdict
    assert judged.others == ("torch",)
    wrong = {name.name: name.found_in for name in judged.names if name.verdict is not Verdict.FITS}
    assert wrong == {**found, **({"verl.work:available": ()} if "verl.work" not in after.modules else {})}
    assert judged.consequence == ("" if verdict is Verdict.FITS else "lost")
    (judged,) = judge(after, BEFORE, [replace(NAMES, if_missing="refuse in Ray")])
    assert judged.consequence == ("" if verdict is Verdict.FITS else "refused in Ray")


def test_names_of_other_versions_of_verl_are_left_out():
    limited = row(targets=("verl.flags:available; verl>=0.10", "verl.flags:older; verl<0.10"))
    (judged,) = judge(BEFORE, None, [limited])
    assert [(name.name, name.verdict) for name in judged.names] == [("verl.flags:available", Verdict.FITS)]


def test_a_module_that_does_not_parse_is_named():
    with pytest.raises(VerlSourceError, match=r"verl\.flags of verl 0\.11\.0 .* line 1"):
        judge(tree(flags="available = = 1\n"), None, [row(targets=("verl.flags:available",))])


@pytest.fixture(scope="module")
def installed():
    found = installed_source()
    assert found is not None
    return found


def test_every_row_fits_the_installed_verl(installed):
    judged = judge(installed, installed)
    assert [one.row for one in judged] == list(LEDGER)
    assert [one.row.id for one in judged if one.verdict not in (None, Verdict.FITS)] == []
    assert {one.row.id for one in judged if one.verdict is None} == {
        one.id for one in LEDGER if not any(name.startswith("verl.") for name in (*one.targets, *one.reads))
    }


@pytest.fixture(scope="module")
def later_wheel(installed, tmp_path_factory):
    """The installed verl as a wheel, with a module renamed, a function and a method gone, and a hook more."""
    path = tmp_path_factory.mktemp("later") / "verl-0.11.0-py3-none-any.whl"
    changes = {
        BASE: lambda text: text,
        WORKER: lambda text: text.replace("_setup_env_cuda_visible_devices", "_select_device"),
        "verl/utils/attention_utils.py": lambda text: text.replace("_get_attention_functions", "_functions"),
        "verl/plugin/platform/platform_base.py": lambda text: (
            text + "\n\n    def ray_device_index(self, accelerator_ids):\n        return 0\n"
        ),
    }
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("verl/version/version", "0.11.0\n")
        for module, text in installed.modules.items():
            name = module.replace(".", "/") + ("/__init__.py" if module in installed.packages else ".py")
            text = changes.get(name, str)(text)
            wheel.writestr(name.replace(BASE, "verl/single_controller/ray/worker_group.py"), text)
    return path


def ask(*arguments: object):
    return CliRunner().invoke(app, ["patches", "upstream", *map(str, arguments)], env={"COLUMNS": "200"})


def test_what_changed_is_said_with_its_consequence(later_wheel):
    done = ask("--verl", later_wheel, "--json")
    assert done.exit_code == 1
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["verl"], answer["place"]) == (1, "0.11.0", str(later_wheel))
    rows = {one["id"]: one for one in answer["rows"]}
    assert set(rows) == {one.id for one in LEDGER}
    changed = {name: one["verdict"] for name, one in rows.items() if one["verdict"] not in (None, "fits")}
    moved = ("resource-pools", "resource-check", "worker-environment")
    assert changed == {**dict.fromkeys(moved, "moved"), "worker-device": "gone", "padding-helpers": "gone"}
    for name in moved:
        assert rows[name]["consequence"] == "lost"
        assert {where for one in rows[name]["names"] for where in one["found_in"]} == {
            "verl.single_controller.ray.worker_group"
        }
    assert [one["use"] for one in rows["worker-environment"]["names"]] == ["target", "read"]
    assert rows["worker-device"]["consequence"] == "refused in Ray"
    assert rows["worker-device"]["hook"].endswith(".ray_device_index")
    assert rows["worker-device"]["with_hook"]
    assert rows["padding-helpers"]["hook"] == ""
    assert rows["reduce-avg"]["not_judged"] == ["torch"]
    assert rows["model-patches"]["not_judged"] == ["transformers"]


def test_the_table_says_the_same(later_wheel):
    done = ask("--verl", later_wheel)
    assert done.exit_code == 1
    said = " ".join(done.stdout.split())
    ours = sum(any(name.startswith("verl.") for name in (*one.targets, *one.reads)) for one in LEDGER)
    assert f"of {ours} rows {ours - 5} fit, 3 with a name that moved, 2 with a name that is gone" in said
    assert "now in verl.single_controller.ray.worker_group" in said
    assert "refused in Ray: all workers of a node use device 0" in said
    assert "with the hook ray_device_index, which it has" in said


def test_an_sdist_and_folders_are_read_too(later_wheel, tmp_path):
    with zipfile.ZipFile(later_wheel) as wheel:
        shutil.unpack_archive(later_wheel, tmp_path / "site", "zip")
        with tarfile.open(tmp_path / "verl-0.11.0.tar.gz", "w:gz") as sdist:
            for name in wheel.namelist():
                member = tarfile.TarInfo(f"verl-0.11.0/{name}")
                content = wheel.read(name)
                member.size = len(content)
                sdist.addfile(member, BytesIO(content))
    read = [find_source(str(tmp_path / one)) for one in ("site", "site/verl", "verl-0.11.0.tar.gz")]
    wheel_source = find_source(str(later_wheel))
    assert all(dict(one.modules) == dict(wheel_source.modules) for one in read)
    assert {one.version for one in read} == {"0.11.0"}


def test_the_installed_version_is_not_fetched(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("fetched")

    monkeypatch.setattr(subprocess, "run", refuse)
    from importlib import metadata

    done = ask("--verl", metadata.version("verl"), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["verl"] == metadata.version("verl")


def test_another_version_is_fetched(monkeypatch, later_wheel):
    copy = "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])"
    command = lambda wanted, folder: (sys.executable, "-c", copy, later_wheel, folder)  # noqa: E731
    monkeypatch.setattr(sources, "_command", command)
    done = ask("--verl", "0.11.0", "--json")
    assert (done.exit_code, json.loads(done.stdout)["verl"]) == (1, "0.11.0")


@pytest.mark.parametrize(
    ("program", "seconds", "said"),
    [
        ("import sys; sys.exit('ERROR: no matching distribution')", 60, "no matching distribution"),
        ("import time; time.sleep(600)", 0.5, "was not fetched within"),
        ("pass", 60, "holds no package verl"),
    ],
)
def test_a_version_that_cannot_be_had_is_an_error_that_says_how(monkeypatch, program, seconds, said):
    monkeypatch.setattr(sources, "FETCH_SECONDS", scaled(seconds) if seconds > 1 else seconds)
    monkeypatch.setattr(sources, "_command", lambda wanted, folder: (sys.executable, "-c", program))
    done = ask("--verl", "0.11.0")
    assert done.exit_code == 2
    assert said in done.stderr
    assert "pip download" in done.stderr or said.startswith("holds")


@pytest.mark.parametrize(("wanted", "said"), [("no-such-folder", "neither"), (".", "holds no package verl")])
def test_what_is_no_verl_is_an_error(tmp_path, monkeypatch, wanted, said):
    monkeypatch.chdir(tmp_path)
    done = ask("--verl", wanted)
    assert done.exit_code == 2
    assert said in done.stderr


def test_without_a_verl_it_shows_the_registry_as_ledger_does():
    assert ask("--json").stdout == CliRunner().invoke(app, ["ledger", "--json"]).stdout
    shown = CliRunner().invoke(app, ["patches", "upstream"], env={"COLUMNS": "4000"}).stdout
    assert all(one.id in shown for one in LEDGER)
    assert "With attention_utils_module: Not applied" in shown


def test_options_before_its_name_are_refused():
    assert CliRunner().invoke(app, ["patches", "--all", "upstream"]).exit_code == 2


def test_neither_verl_nor_torch_is_imported(later_wheel):
    code = "import sys\nfrom verl_hw_tools.cli.app import app\ntry: app(sys.argv[1:])\nexcept SystemExit: pass\n"
    code += "print('torch' in sys.modules, 'verl' in sys.modules)"
    command = [sys.executable, "-c", code, "patches", "upstream", "--json", "--verl", later_wheel]
    done = subprocess.run(command, capture_output=True, text=True, timeout=scaled(60), check=True)
    assert done.stdout.splitlines()[-1] == "False False"
