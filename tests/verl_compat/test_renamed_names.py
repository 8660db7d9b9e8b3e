# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A verl, torch, Ray, ... in which names that the ledger declares have other names: verl imports, and we say so.

Each case runs on a simulated chip in a fork of one process, renames, imports verl with all that we hook, and builds an
engine. In CI each row loses its first name; every name alone is tried with ``--slow``.
"""

import pytest
from forkkit import Forks

from verl_hw_core.model_patches.targets import SITES
from verl_hw_core.upstream import LEDGER
from verl_hw_core.upstream.installed_state import applicable
from verl_hw_sim import simulated_environment

MEGATRON_ROWS = tuple(row.id for row in LEDGER if "megatron" in row.only_where or "merger" in row.only_where)
NAMES = [(row.id, name) for row in LEDGER for name in (*applicable(row.targets), *applicable(row.reads))]
FIRST = list({row: (row, name) for row, name in reversed(NAMES)}.values())
REFUSE = {row.id for row in LEDGER if row.if_missing != "warn"}
# No chip has all the conditions on which rows are applied; enflame's vLLM cannot sleep, the rest is put on here.
VENDOR = "enflame"

RENAME = """
import importlib.machinery, re, types
import wrapt
names = {names!r}
OURS_TO_RENAME = ("verl", "mbridge", "megatron")  # the others are imported already
# Words that are other names' too, in Python or in other packages: only the one attribute is taken away.
COMMON = ("state_dict", "load_state_dict", "offload", "register", "CPUOffloadPolicy", "is_cuda_available")
def place(module, path):
    owner = sys.modules[module]
    *parents, name = path.replace("()", "").split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name
def take_away(module, path):
    owner, name = place(module, path)
    setattr(owner, name + "_renamed", getattr(owner, name))
    delattr(owner, name)
class Renaming(importlib.machinery.SourceFileLoader):
    def get_code(self, name):
        pattern = rf"\\b(?:{{'|'.join(words)}})\\b".encode()
        source = re.sub(pattern, rb"\\g<0>_renamed", self.get_data(self.path)) if words else self.get_data(self.path)
        return compile(source, self.path, "exec", dont_inherit=True)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.replace("verl.workers.engine.", "verl.workers.engine:") in names:  # a package
            raise ModuleNotFoundError(name, name=name)
        if name.partition(".")[0] not in OURS_TO_RENAME:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = Renaming(spec.loader.name, spec.loader.path)
        return spec
sys.meta_path.insert(0, Finder())  # before wrapt puts its own there, which asks ours
words = []
for module, path in (one.split(":") for one in names):
    word = path.rpartition(".")[2]
    if path.startswith("ops."):  # torch makes its operators when they are asked for
        operators = sys.modules["torch"].ops.aten
        ask, gone = type(operators).__getattr__, word
        if gone in vars(operators):
            delattr(operators, gone)
        def asked(self, name, ask=ask, gone=gone):
            if name == gone:
                raise AttributeError(name)
            return ask(self, name)
        type(operators).__getattr__ = asked
    elif module == "verl.workers.engine":
        continue
    elif module.partition(".")[0] not in OURS_TO_RENAME:
        __import__(module)
        take_away(module, path)
    elif word.startswith("__") or word in COMMON:
        wrapt.register_post_import_hook(lambda found, path=path: take_away(found.__name__, path), module)
    else:
        words.append(re.escape(word))
"""

IMPORT = """
from pathlib import Path
from types import SimpleNamespace
from unittest import mock
def lose_fallback(attention_utils):  # as verl 0.9.0
    def flash_only():
        raise ModuleNotFoundError("no module named flash_attn", name="flash_attn")
    (name,) = (name for name in vars(attention_utils) if name.startswith("_get_attention_functions"))
    setattr(attention_utils, name, flash_only)
wrapt.register_post_import_hook(lose_fallback, "verl.utils.attention_utils")
import verl
import verl.workers.engine
rollout = types.ModuleType("verl.workers.rollout.vllm_rollout")  # the package itself needs vLLM
rollout.__path__ = [str(Path(verl.__file__).parent / "workers" / "rollout" / "vllm_rollout")]
sys.modules[rollout.__name__] = rollout
import verl.checkpoint_engine, verl.single_controller.ray.base, verl.trainer.constants_ppo, verl.workers.config.rollout
import verl.workers.rollout.base, verl.workers.rollout.replica
import verl.workers.rollout.vllm_rollout.bucketed_weight_transfer
from verl.workers.engine import EngineRegistry
from verl.plugin.platform import get_platform
import ray
def outcome(function, *args):
    try:
        function(*args)
        return "went well"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
def build(backend):
    cls = EngineRegistry.get_engine_cls("language_model", backend)
    model = SimpleNamespace(override_config={}, hf_config=SimpleNamespace(model_type="qwen3"), use_fused_kernels=False,
                            enable_activation_offload=True, lora_rank=0, lora={}, lora_adapter_path=None,
                            mtp=SimpleNamespace(enable=False))
    engine = SimpleNamespace(mixed_precision=None, ulysses_sequence_parallel_size=1, strategy=backend, dtype=None,
                             forward_only=True)
    with mock.patch.object(ray, "is_initialized", lambda: True):
        return outcome(cls, model, engine)
"""

FSDP = """
import torch, tensordict.base
from verl.workers.engine.fsdp import transformer_impl
from verl_hw_core import model_patches
from verl_hw_sim import limits
def init(self, *args, **kwargs):
    self.device_mesh = SimpleNamespace(size=lambda *_: 1, ndim=1)
transformer_impl.FSDPEngine.__init__ = init
def refuse(*args, **kwargs):
    raise RuntimeError("not on this chip")
def refusing(own):
    wrapper = lambda *args, **kwargs: refuse()
    wrapper.__wrapped__ = own
    return wrapper
for name in ("nested_tensor", "as_nested_tensor"):
    if hasattr(torch.nested, name):
        setattr(torch.nested, name, refusing(getattr(torch.nested, name)))
if hasattr(tensordict.base, "_get_available_device_type"):
    tensordict.base._get_available_device_type = lambda: "cuda"
operators = ("aten::_jagged_to_padded_dense_forward", "aten::_padded_dense_to_jagged_forward")
with mock.patch.object(torch.Tensor, "pin_memory", refuse), limits.override(deny=operators):
    built = build("fsdp2")
os_environ = __import__("os").environ
os_environ["VERL_HW_MODEL_PATCHES"] = "portable"
import logging
said = []
class Keep(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())
logging.getLogger("verl_hw_core").addHandler(Keep())
patched = outcome(model_patches.apply, get_platform().vendor_name, get_platform().device_name, "qwen3")
from verl_hw_core.upstream.patches import replaced
answer(platform=get_platform().vendor_name, device=str(torch.ones(1, device=get_platform().device_name).device),
       problems=problems(), built=built, patched=patched, said=said,
       replaced={row: sorted(names) for row, names in replaced().items()})
"""

MEGATRON = """
import os
def load():
    EngineRegistry.get_engine_cls("language_model", "megatron").load()
built = outcome(load)
def bridge():
    from verl_hw_core.megatron import bridges
    bridges.require_bridge(True)
def architecture():
    from verl_hw_core.megatron import architecture_bridge
    architecture_bridge.require_architecture(SimpleNamespace(model_type="qwen2"), True)
def merge():
    from verl_hw_core.megatron import verl_registries
    verl_registries.install()
bridged, known, merged = outcome(bridge), outcome(architecture), outcome(merge)
from verl_hw_core.upstream.patches import replaced
answer(problems=problems(), built=" ".join((built, bridged, known)), merged=merged,
       replaced={row: sorted(names) for row, names in replaced().items()})
"""


@pytest.fixture(scope="module")
def chip():
    """Forks in which a simulated chip is there and verl was never imported."""
    with Forks(**simulated_environment(VENDOR, 1), VERL_PLATFORM=VENDOR) as parent:
        yield parent


def targets(rows):
    """Of each row that replaces something, the names."""
    return {row.id: sorted(applicable(row.targets)) for row in rows if row.targets}


def check(chip, renamed):
    """Rename, import and build; each row says what it misses and no other row says anything."""
    megatron = renamed[0][0] in MEGATRON_ROWS
    script = RENAME.format(names=[name for _, name in renamed]) + IMPORT + (MEGATRON if megatron else FSDP)
    found = chip.run(script)
    said = {stage.removeprefix("upstream patch "): message for _, stage, message, _ in found["problems"]}
    expected = dict(renamed)
    if name := expected.pop("model-patches", None):
        assert any(name in line for line in found["said"])
    assert set(said) == set(expected), found["problems"]
    for row, name in expected.items():
        (facts,) = (one for one in LEDGER if one.id == row)
        assert f" has no {name}" in said[row]
        assert facts.lost in said[row]
        assert row not in found["replaced"]
    refused = REFUSE & set(expected)
    assert found["built"].startswith("UpstreamPatchError: ") == bool(refused) or megatron, found["built"]
    for row in refused:
        assert f"upstream patch {row}: " in found["built"]
        assert f" has no {expected[row]}" in found["built"]
    for row in set(expected) - refused:
        assert row not in found["built"]
    return found


def test_all_rows_are_applied_where_nothing_is_renamed(chip):
    found = chip.run(RENAME.format(names=[]) + IMPORT + FSDP)
    assert (found["platform"], found["device"]) == (VENDOR, "gcu:0")
    assert found["problems"] == []
    assert (found["built"], found["patched"]) == ("went well", "went well")
    assert set(found["replaced"].pop("model-patches")) <= {site.target for site in SITES}
    # The one is applied while a model is built, the other in Ray's workers.
    elsewhere = {"value-model-attention", "ray-accelerator-ids"}
    assert found["replaced"] == targets(row for row in LEDGER if row.id not in (*MEGATRON_ROWS, *elsewhere))


def test_the_first_name_of_every_row(chip):
    check(chip, [one for one in FIRST if one[0] not in MEGATRON_ROWS])


def test_all_rows_of_megatron_are_applied_where_nothing_is_renamed(chip):
    found = chip.run(RENAME.format(names=[]) + IMPORT + MEGATRON)
    assert found["problems"] == []
    assert (found["built"], found["merged"]) == ("went well went well went well", "went well")
    assert found["replaced"].items() >= targets(row for row in LEDGER if row.id in MEGATRON_ROWS).items()


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("first_gate", [False, True])
def test_the_first_name_of_every_row_of_megatron(chip, first_gate):
    # What is refused before Megatron is changed hides what would be said later.
    gate = REFUSE - {"megatron-engine", "megatron-offload-order"}
    check(chip, [one for one in FIRST if one[0] in MEGATRON_ROWS and (one[0] in gate) == first_gate])


@pytest.mark.slow
@pytest.mark.parametrize(("row", "name"), NAMES)
def test_each_name(chip, row, name):
    check(chip, [(row, name)])
