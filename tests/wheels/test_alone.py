# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Each vendor's wheel alone, outside the workspace: core and that one wheel beside verl, torch and Ray.

Without the tools, which no training process needs.
"""

import json
from pathlib import Path

import pytest
from wheelkit import BASE_PYTHON, VENDORS, clean_env, run, uv

from releaselib.clean_environment import link_stack

pytestmark = pytest.mark.slow
# One that torch dispatches by a name of its own, and one that presents itself as cuda.
IN_CI = ("cambricon", "metax")

# Isolated (-I): no PYTHONPATH, no current folder, so only what is installed is found.
CHILD = """
import importlib.util, json, os, sys
vendor, siblings = {vendor!r}, {siblings!r}
assert sys.flags.isolated == 1
found = [name for name in siblings if importlib.util.find_spec(name)]
import verl
from verl.plugin.platform import platform_manager as manager
frozen_at_import = manager._current_platform is not None
early = sorted(name for name in sys.modules if name.startswith("verl.workers"))
import verl_hw_core
platform_cls = manager.PlatformRegistry.get(vendor)
import verl.workers.engine
from verl.workers.engine.base import EngineRegistry
engines = [
    [model, backend, list(key), cls.__module__]
    for model, backends in EngineRegistry._engines.items()
    for backend, keys in backends.items()
    for key, cls in keys.items()
    if cls.__module__.startswith("verl_hw_")
]
platform = manager.get_platform()
print(json.dumps({{
    "siblings": found, "frozen_at_import": frozen_at_import, "early": early, "core": verl_hw_core.__file__,
    "platform": platform_cls and platform_cls.__module__, "engines": engines,
    "device": platform.device_name, "vendor": platform.vendor_name,
}}))
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return link_stack(tmp_path_factory.mktemp("stack") / "site")


@pytest.fixture
def alone(stack, dist, tmp_path):
    """Return a function: vendor -> Python of an environment that holds the stack, the core and that wheel."""

    def make(vendor: str) -> Path:
        venv = tmp_path / "venv"
        run([uv(), "venv", "--python", BASE_PYTHON, venv])
        python = venv / "bin" / "python"
        wheels = [next(dist.glob(f"verl_hw_{name}-*.whl")) for name in ("core", vendor)]
        run([uv(), "pip", "install", "--python", python, "--no-deps", "--no-index", *wheels])
        (site,) = venv.glob("lib/python*/site-packages")
        (site / "stack.pth").write_text(f"{stack}\n", encoding="utf-8")
        return python

    return make


@pytest.mark.parametrize("vendor", [pytest.param(one, marks=[pytest.mark.ci] * (one in IN_CI)) for one in VENDORS])
def test_a_wheel_alone_registers_platform_and_engines(vendor, alone, tmp_path):
    siblings = [f"verl_hw_{name}" for name in (*VENDORS, "sim", "tools") if name != vendor]
    env = clean_env(VERL_PLATFORM=vendor)
    done = run([alone(vendor), "-I", "-c", CHILD.format(vendor=vendor, siblings=siblings)], env=env)
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    assert answer["siblings"] == []
    assert str(tmp_path) in answer["core"]
    assert answer["early"] == []
    assert not answer["frozen_at_import"]
    assert answer["platform"] == f"verl_hw_{vendor}.platform"
    assert (answer["device"], answer["vendor"]) == (VENDORS[vendor], vendor)
    found = {(model, backend, *key) for model, backend, key, module in answer["engines"]}
    assert found == {
        (model, backend, VENDORS[vendor], vendor)
        for model in ("language_model", "value_model")
        for backend in ("fsdp", "fsdp2", "megatron")
    }
    assert "verl_hw_core" not in done.stderr, f"a load problem was reported:\n{done.stderr}"
