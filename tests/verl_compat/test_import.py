# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What ``import verl`` leaves behind with all four wheels: four platforms more, and nothing else changed."""

import sys

import pytest
from wheelkit import SURVEY, VENDORS, Answer, clean_env, our_engines, run

WITHOUT = {"VERL_USE_EXTERNAL_PLUGINS": "none"}

# Everything that we must leave alone, before and after the import: names of what is where, and the environment.
LOOK_AROUND = """
import os
import torch, torch.distributed, torch.utils.data
def contents(*prefixes):
    return {
        f"{name}.{key}": f"{type(value).__name__} {id(value)}"
        for name, module in list(sys.modules.items()) if name.startswith(prefixes)
        for key, value in list(vars(module).items())
        if not key.startswith("__") and (callable(value) or isinstance(value, (str, int, bool, tuple)))
    }
def changed(before, after):
    return sorted(name for name in before.keys() & after.keys() if before[name] != after[name])
torch_before, environ_before = contents("torch", "transformers", "ray"), dict(os.environ)
import verl
torch_after = contents("torch", "transformers", "ray")
at_import = dict(
    frozen=frozen(), workers=workers(), platforms=platforms(), problems=[], torch=changed(torch_before, torch_after),
    environ={key: value for key, value in os.environ.items() if environ_before.get(key) != value},
    unset=sorted(environ_before.keys() - os.environ.keys()),
    modules=sorted(name for name in sys.modules if "." not in name),
    device=[torch._C._get_privateuse1_backend_name(), torch.cuda.is_initialized(), torch.xpu.is_initialized()],
)
import verl.utils.device, verl.utils.profiler, verl.utils.ray_utils
verl_functions = {
    f"{name}.{key}": f"{value.__module__}.{value.__qualname__}"
    for name, module in list(sys.modules.items()) if name.startswith("verl.")
    for key, value in vars(module).items() if isinstance(getattr(value, "__qualname__", None), str)
}
answer(**at_import, verl_functions=verl_functions)
"""

CHOSEN = """
import verl
from verl.plugin.platform import get_platform
answer(vendor=get_platform().vendor_name, device=get_platform().device_name)
"""

IMPORT_FIRST = """
import {wheel}
loaded = "verl" in sys.modules
import verl
at_import = dict(loaded=loaded, frozen=frozen(), workers=workers(), platforms=platforms())
import verl.workers.engine
answer(**at_import, engines=engines(), problems=problems())
"""

SDKS = {"torch_mlu", "torch_gcu", "torch_npu", "intel_extension_for_pytorch", "pymxsml", "flag_gems", "vllm"}


def assert_platforms_and_engines(found: Answer, *vendors: str) -> None:
    for vendor in vendors:
        assert found["platforms"][vendor] == f"verl_hw_{vendor}.platform"
    assert {tuple(one) for one in found["engines"] if one[4].startswith("verl_hw_")} == our_engines(*vendors)


@pytest.fixture(scope="module")
def both(forks):
    """The same look at a process with our wheels and at one without plugins."""
    return forks.run(LOOK_AROUND), forks.run(LOOK_AROUND, env=WITHOUT)


def test_the_platform_is_left_open_and_no_worker_loaded(both):
    with_us, _ = both
    assert not with_us["frozen"]
    assert with_us["workers"] == []
    assert {with_us["platforms"][vendor] for vendor in VENDORS} == {f"verl_hw_{vendor}.platform" for vendor in VENDORS}


def test_the_only_modules_more_are_ours_and_what_they_are_made_of(both):
    with_us, without = both
    more = set(with_us["modules"]) - set(without["modules"])
    assert {name for name in more if not name.startswith("verl_hw_")} <= {"wrapt"}
    assert not SDKS & set(with_us["modules"])
    assert with_us["device"] == without["device"] == ["privateuseone", False, False]


def test_torch_the_environment_and_verls_functions_are_untouched(both):
    with_us, without = both
    assert with_us["torch"] == without["torch"]
    assert with_us["environ"].items() - without["environ"].items() <= {("VERL_USE_EXTERNAL_PLUGINS", "none")}
    assert with_us["unset"] == without["unset"] == []
    assert len(without["verl_functions"]) > 200
    assert with_us["verl_functions"] == without["verl_functions"]


def test_nothing_is_printed(both):
    with_us, without = both
    assert with_us.warnings == []
    assert set(with_us.stderr.splitlines()) <= set(without.stderr.splitlines())


def test_the_look_around_sees_a_careless_plugin(forks, tmp_path):
    # The control: what the comparison above is for, done on purpose.
    careless = """
import os, torch.distributed, verl.utils.device as device
os.environ["CARELESS"] = "1"
torch.distributed.all_reduce = lambda *_, **__: None
import verl.workers.engine
device.get_device_name = lambda: "mine"
"""
    tmp_path.joinpath("careless.py").write_text(careless, encoding="utf-8")
    env = {"VERL_USE_EXTERNAL_MODULES": "careless"}
    found, without = forks.run(LOOK_AROUND, first=[tmp_path], env=env), forks.run(LOOK_AROUND, env=WITHOUT)
    assert found["frozen"]
    assert "verl.workers.engine" in found["workers"]
    assert "torch.distributed.all_reduce" in set(found["torch"]) - set(without["torch"])
    assert found["environ"]["CARELESS"] == "1"
    assert found["verl_functions"]["verl.utils.device.get_device_name"].startswith("careless.")


@pytest.mark.parametrize(
    ("name", "vendor"),
    [("xpu", "intel"), (" XPU ", "intel"), ("mlu", "cambricon"), ("gcu", "enflame"), ("MACA", "metax")]
    + [(vendor, vendor) for vendor in VENDORS],
)
def test_verl_platform_takes_key_and_alias_in_any_case(name, vendor, forks):
    found = forks.run(CHOSEN, env={"VERL_PLATFORM": name})
    assert (found["vendor"], found["device"]) == (vendor, VENDORS[vendor])


@pytest.mark.parametrize(
    ("name", "nearest"), [("intell", "intel"), ("cambrcon", "cambricon"), ("Meta-X", "metax"), ("enflam", "enflame")]
)
def test_a_misspelt_verl_platform_ends_the_import_with_the_nearest_name(name, nearest, forks):
    found = forks.run("import verl\nanswer(imported=True)", env={"VERL_PLATFORM": name}, status=1)
    assert found.data == {}, "import verl went on"
    last = found.stderr.strip().splitlines()[-1]
    assert f"VERL_PLATFORM='{name}'" in last
    assert f"did you mean '{nearest}'?" in last
    assert "Traceback" not in found.stderr


def test_both_loading_roads_at_once_and_a_reload_register_once(forks):
    script = """
import importlib
import verl, verl_hw_cambricon
importlib.reload(verl_hw_cambricon)
at_import = dict(frozen=frozen(), workers=workers(), platforms=platforms())
import verl.workers.engine
importlib.reload(sys.modules["verl_hw_cambricon.engines"])
answer(**at_import, engines=engines(), problems=problems())
"""
    found = forks.run(script, env={"VERL_USE_EXTERNAL_MODULES": "verl_hw_cambricon,verl_hw_metax"})
    assert not found["frozen"]
    assert found["workers"] == []
    assert_platforms_and_engines(found, *VENDORS)
    assert found["problems"] == []
    assert found.warnings == []


@pytest.mark.parametrize(("plugins", "vendors"), [("auto", tuple(VENDORS)), ("none", ("intel",))])
def test_a_wheel_imported_before_verl(plugins, vendors, forks):
    env = {"VERL_USE_EXTERNAL_PLUGINS": plugins}
    found = forks.run(IMPORT_FIRST.format(wheel="verl_hw_intel"), env=env)
    assert found["loaded"], "the wheel is registered with verl by its own import"
    assert not found["frozen"]
    assert found["workers"] == []
    assert_platforms_and_engines(found, *vendors)
    assert found["problems"] == []


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("autoload", ["0", "1"])
def test_a_wheel_imported_first_in_a_process_that_has_not_even_torch(autoload):
    # A fresh interpreter: TORCH_DEVICE_BACKEND_AUTOLOAD is read while torch is imported.
    script = SURVEY + IMPORT_FIRST.format(wheel="verl_hw_cambricon")
    done = run([sys.executable, "-c", script], env=clean_env(TORCH_DEVICE_BACKEND_AUTOLOAD=autoload))
    found = Answer.of(done.stdout, done.stderr)
    assert found["loaded"]
    assert not found["frozen"]
    assert_platforms_and_engines(found, *VENDORS)
    assert found["problems"] == []
