# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""When Megatron is imported, in which order, and which error says what is missing (field reports 84 and 110)."""

import pytest

CAMBRICON = {"VERL_PLATFORM": "cambricon"}

# Megatron is imported by nobody but a Megatron engine.
VERL = """
import os
import verl.workers.engine
from verl.workers.engine import EngineRegistry
def loaded(*names):
    return [name for name in names if name in sys.modules]
def build(backend="megatron", model_type="language_model"):
    engine = EngineRegistry.get_engine_cls(model_type, backend)
    try:
        return engine.load()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""

# What an engine does to get Megatron, without the rest of verl, whose import costs more than the test.
ALONE = """
import verl_hw_core.megatron
def build(wheel="cambricon"):
    spec = __import__(f"verl_hw_{wheel}.spec", fromlist=["SPEC"]).SPEC
    try:
        return verl_hw_core.megatron.load_engine(spec, "MegatronEngineWithLMHead")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""

HIDE = """
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r} or name.startswith({name!r} + "."):
            raise {error}
sys.meta_path.insert(0, Hide())
"""


@pytest.fixture
def migration(tmp_path):
    """A torch_mlu with a migration module that notes whether Megatron was there before it."""
    folder = tmp_path / "stack"
    package = folder / "torch_mlu" / "utils"
    package.mkdir(parents=True)
    (folder / "torch_mlu" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "gpu_migration.py").write_text("import sys\nLATE = 'megatron.core' in sys.modules\n")
    return folder


def test_no_megatron_without_a_megatron_engine(forks):
    answer = forks.run(
        VERL + "answer(found=loaded('megatron.core', 'mbridge', 'torch_mlu.utils.gpu_migration'))", env=CAMBRICON
    )
    assert answer["found"] == []


@pytest.mark.slow
def test_another_platform_imports_verls_engine_as_ever(forks):
    answer = forks.run(
        VERL + "answer(engine=str(verl.workers.engine.MegatronEngine.__module__))", env={"VERL_PLATFORM": "nvidia"}
    )
    assert answer["engine"] == "verl.workers.engine.megatron.transformer_impl"


def test_the_migration_comes_before_megatron_and_the_users_environment_stays(forks, migration):
    """verl's package deletes a TORCH_CUDA_ARCH_LIST of the user's where torch.cuda has no device."""
    answer = forks.run(
        VERL
        + """
engine = build()
answer(
    name=engine.__name__,
    arch_list=os.environ.get("TORCH_CUDA_ARCH_LIST"),
    verl=[cls.__module__ for cls in engine.__mro__],
    late=sys.modules["torch_mlu.utils.gpu_migration"].LATE,
    exported=verl.workers.engine.MegatronEngineWithLMHead.__module__, again=build() is engine,
    critic=build(model_type="value_model").__name__,
)""",
        first=[migration],
        env={**CAMBRICON, "TORCH_CUDA_ARCH_LIST": "9.0"},
    )
    assert answer["arch_list"] == "9.0"
    assert answer["name"] == "CambriconMegatronEngineWithLMHead"
    assert answer["critic"] == "CambriconMegatronEngineWithValueHead"
    assert "verl.workers.engine.megatron.transformer_impl" in answer["verl"]
    assert answer["exported"] == "verl.workers.engine.megatron.transformer_impl"
    assert answer["late"] is False
    assert answer["again"]


def test_loaded_too_late_names_who_came_first(forks, migration, tmp_path):
    (tmp_path / "mine.py").write_text("from megatron.core import parallel_state\n")
    answer = forks.run("import mine\n" + ALONE + "answer(error=build())", first=[migration, tmp_path])
    assert answer["error"].startswith("LoadOrderError: torch_mlu.utils.gpu_migration must be imported before Megatron")
    assert "megatron.core" in answer["error"]
    assert "imported by mine" in answer["error"]


@pytest.mark.slow
def test_a_migration_that_the_user_loaded_first_is_in_time(forks, migration):
    script = """
import torch_mlu.utils.gpu_migration, megatron.core
from verl_hw_cambricon.spec import SPEC
from verl_hw_core.megatron.loading import load_migration
load_migration(SPEC)
answer(late=sys.modules["torch_mlu.utils.gpu_migration"].LATE)
"""
    assert forks.run(script, first=[migration])["late"] is False


def test_no_megatron_core(forks, migration):
    hide = HIDE.format(name="megatron", error="ModuleNotFoundError(name, name='megatron')")
    answer = forks.run(
        hide + VERL + "answer(error=build(), fsdp=EngineRegistry.get_engine_cls('language_model', 'fsdp2').__name__,"
        " problems=problems())",
        first=[migration],
        env=CAMBRICON,
    )
    assert answer["error"].startswith("MegatronMissingError: strategy=megatron needs megatron-core")
    assert "pip install" in answer["error"]
    assert answer["fsdp"] == "CambriconFSDPEngineWithLMHead"
    assert answer["problems"] == []


def test_megatron_core_without_a_bridge(forks):
    hide = HIDE.format(name="mbridge", error="ModuleNotFoundError(\"No module named 'mbridge'\", name='mbridge')")
    script = """
import megatron.core
from verl_hw_core.megatron import bridges
found = []
for vanilla in (True, False):
    try:
        bridges.require_bridge(vanilla)
    except Exception as error:
        found.append(f"{type(error).__name__}: {error}")
answer(found=found)
"""
    mbridge, megatron_bridge = forks.run(hide + script)["found"]
    assert mbridge.startswith("MegatronBridgeError: megatron-core is installed, and what converts")
    assert "mbridge, chosen by vanilla_mbridge=True, fails" in mbridge
    assert "pip install --no-deps mbridge" in mbridge
    assert "Megatron-Bridge, chosen by vanilla_mbridge=False (verl's default), fails" in megatron_bridge
    assert "megatron.bridge" in megatron_bridge
    assert "vanilla_mbridge=True" in megatron_bridge


def test_a_megatron_bridge_that_asks_for_transformer_engine(forks, tmp_path):
    """What megatron-bridge 0.3.1 does: it is installed, and its import needs TransformerEngine."""
    package = tmp_path / "megatron" / "bridge"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import transformer_engine.pytorch as te\n")
    script = """
import megatron.core
from verl_hw_core.megatron import bridges
try:
    bridges.require_bridge(False)
except Exception as error:
    answer(found=f"{type(error).__name__}: {error}", cause=type(error.__cause__).__name__)
"""
    answer = forks.run(script, first=[tmp_path])
    assert answer["cause"] == "ModuleNotFoundError"
    assert answer["found"].startswith("MegatronBridgeError: ")
    assert "No module named 'transformer_engine'" in answer["found"]
    assert answer["found"].endswith("to use mbridge, which needs no TransformerEngine")


def test_a_broken_vendor_import(forks, migration):
    module = migration / "torch_mlu" / "utils" / "gpu_migration.py"
    module.write_text("raise OSError('libcnrt.so: cannot open shared object file')\n")
    answer = forks.run(ALONE + "answer(error=build())", first=[migration])
    assert answer["error"].startswith("MegatronImportError: torch_mlu.utils.gpu_migration, the CUDA migration of")
    assert "libcnrt.so" in answer["error"]


def test_a_broken_transformer_engine(forks, migration, tmp_path):
    """Megatron-core takes an ImportError for absence; a library that does not load is something else."""
    (tmp_path / "transformer_engine.py").write_text("raise OSError('libtransformer_engine.so: wrong ELF class')\n")
    answer = forks.run(ALONE + "answer(error=build())", first=[migration, tmp_path])
    assert answer["error"].startswith("MegatronImportError: megatron-core is installed and fails")
    assert "wrong ELF class" in answer["error"]


def test_a_vendor_without_a_migration_says_so(forks):
    answer = forks.run(ALONE + "answer(error=build('intel'))")
    assert answer["error"].startswith("MegatronError: Megatron-core computes through torch.cuda")
    assert "VERL_HW_CUDA_MIGRATION" in answer["error"]
    assert "fsdp2" in answer["error"]
