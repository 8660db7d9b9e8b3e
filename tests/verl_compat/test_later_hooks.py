# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A verl whose platforms have five more hooks, as its main has after 0.9.1: what the ledger's rows do there.

A stand-in of that verl is made in a fork while verl is imported: a base class with the hooks and their defaults, and
callers that ask them. Written after verl's main at 0d9af30b.
"""

import pytest
from forkkit import Forks

from verl_hw_core.upstream import LEDGER
from verl_hw_sim import simulated_environment

MASK = {"MLU_VISIBLE_DEVICES": "2,0,3"}
HOOKS = (
    "attention_utils_module",
    "dist_profiler_cls",
    "profiler_markers",
    "ray_device_index",
    "supports_colocated_worker_groups",
)

LATER = """
import importlib, os
from types import SimpleNamespace
from unittest import mock
import wrapt
asked = []
def later_base(module):
    class PlatformBase(module.PlatformBase):
        def attention_utils_module(self):
            return None
        def profiler_markers(self):
            return None
        def dist_profiler_cls(self, tool):
            return None
        def ray_device_index(self, accelerator_ids):
            return 0  # verl's own answer for an id that the mask does not hold
        def supports_colocated_worker_groups(self):
            return True
    module.PlatformBase = PlatformBase
def later_helpers(module):
    def _get_attention_functions():
        from verl.plugin.platform import get_platform
        name = get_platform().attention_utils_module() if hooks else None
        if name is None:
            raise ModuleNotFoundError("no module named flash_attn", name="flash_attn")  # as verl 0.9.0
        asked.append(name)
        found = importlib.import_module(name)
        return found.index_first_axis, found.pad_input, found.rearrange, found.unpad_input
    module._get_attention_functions = _get_attention_functions
def later_log_probs(module):
    def response(input_ids, attention_mask, logits_rmpad, response_length):
        from verl.utils import attention_utils
        packed, indices, *_ = attention_utils.unpad_input(input_ids.unsqueeze(-1), attention_mask)
        sizes = (*input_ids.shape, response_length)
        return module.log_probs_from_logits_all_rmpad(packed.T, logits_rmpad, indices, *sizes)
    def every(input_ids_rmpad, logits_rmpad, indices, batch_size, seqlen, response_length):
        from verl.utils import attention_utils
        labels = input_ids_rmpad.squeeze(0).roll(-1)
        found = module.logprobs_from_logits(logits=logits_rmpad, labels=labels)
        padded = attention_utils.pad_input(found.unsqueeze(-1), indices, batch_size, seqlen)
        return padded.squeeze(-1)[:, -response_length - 1 : -1]
    for name, function in {{"response": response, "all": every}}.items():
        if name in log_probs:
            setattr(module, f"log_probs_from_logits_{{name}}_rmpad", function)
def later_worker(module):
    def _setup_env_cuda_visible_devices(self):
        from verl.utils.device import get_resource_name
        from verl.plugin.platform import get_platform
        asked.append("worker")
        ids = ray.get_runtime_context().get_accelerator_ids().get(get_resource_name())
        if ids:
            ordinal = get_platform().ray_device_index(ids)
            os.environ["LOCAL_RANK"] = str(ordinal)
            get_platform().set_device(ordinal)
    module.Worker._setup_env_cuda_visible_devices = _setup_env_cuda_visible_devices
hooks, log_probs = {hooks!r}, {log_probs!r}
if hooks:
    wrapt.register_post_import_hook(later_base, "verl.plugin.platform.platform_base")
    wrapt.register_post_import_hook(later_worker, "verl.single_controller.base.worker")
wrapt.register_post_import_hook(later_helpers, "verl.utils.attention_utils")
wrapt.register_post_import_hook(later_log_probs, "verl.utils.torch_functional")
import verl, verl.workers.engine
from verl.plugin.platform import get_platform
from verl_hw_core import upstream
platform = get_platform()
"""

HELPERS = """
import torch
from verl.utils import attention_utils, torch_functional
from verl_hw_core.training import padding
device = platform.device_name
mask = torch.tensor([[0, 1, 1], [1, 1, 0]], device=device)
tokens = torch.tensor([[0, 3, 1], [2, 1, 0]], device=device)
padding.replace_helpers()
packed, indices, *_ = attention_utils.unpad_input(tokens.unsqueeze(-1), mask)
back = attention_utils.pad_input(packed, indices, 2, 3)
padding.replace_log_probs()
torch.manual_seed(0)
logits = torch.randn(2, 3, 5, device=device)
first = torch_functional.log_probs_from_logits_response_rmpad(tokens, mask, logits[mask.bool()], 1)
second = torch_functional.log_probs_from_logits_all_rmpad(packed.T, logits[mask.bool()], indices, 2, 3, 1)
expected = torch_functional.logprobs_from_logits(logits=logits[:1, 1:2], labels=tokens[:1, 2:])
answer(asked=sorted(set(asked)), in_force=list(upstream.in_force()), problems=problems(),
       same=torch.equal(back.squeeze(-1), tokens), device=str(packed.device),
       log_probs=[float(one[0, 0] - expected[0, 0]) for one in (first, second)])
"""

WORKER = """
import ray
from verl.single_controller.base.worker import Worker
from verl_hw_core.ray_support import holding, worker_device
class Context:
    def get_accelerator_ids(self):
        return {"GPU": [str(slot)], "MLU": []}
def set_up():
    asked.clear()
    os.environ.pop("LOCAL_RANK", None)
    platform.set_device(0)
    own = type(platform).set_device
    with mock.patch.object(type(platform), "set_device", autospec=True, side_effect=own) as select:
        Worker._setup_env_cuda_visible_devices(SimpleNamespace())
    return [platform.current_device(), os.environ.get("LOCAL_RANK"), select.call_count, list(asked)]
by_row, by_hook = [], []
with (
    mock.patch.object(ray, "is_initialized", lambda: True),
    mock.patch.object(ray, "get_runtime_context", Context),
    mock.patch("verl.utils.device.get_resource_name", lambda: "GPU"),
    mock.patch.object(worker_device, "answer_for_this_worker", lambda devices: None),
):
    for found in (by_row, by_hook):
        for slot in range(3):
            given = holding.Holding("GPU", 1.0, (slot,), (str(slot),), "CUDA_VISIBLE_DEVICES")
            with mock.patch.object(holding, "of_this_actor", lambda names: given):
                found.append(set_up())
        found.append("worker-device" in upstream.in_force())
        upstream.restore("worker-device")
answer(row=by_row, hook=by_hook, problems=problems())
"""

ANSWERS = """
base = sys.modules["verl.plugin.platform.platform_base"].PlatformBase
markers = platform.profiler_markers()
answer(
    hooks={hooks!r}, defined=[name for name in {hooks!r} if name in vars(base)],
    ours=[name for name in {hooks!r} if getattr(type(platform), name) is not getattr(base, name, None)],
    is_one=isinstance(platform, base), markers=[callable(one) for one in markers],
    tool=platform.dist_profiler_cls(platform.vendor_name).__name__, shared=platform.supports_colocated_worker_groups(),
    problems=problems(),
)
"""


@pytest.fixture(scope="module")
def chip():
    """Forks in which a simulated chip is there and verl was never imported."""
    with Forks(**simulated_environment("cambricon", 4), VERL_PLATFORM="cambricon", **MASK) as parent:
        yield parent


def later(hooks=True, log_probs=()):
    return LATER.format(hooks=hooks, log_probs=log_probs)


@pytest.mark.parametrize("hooks", [True, False])
def test_the_platform_has_the_hooks_whether_or_not_verl_does(chip, hooks):
    found = chip.run(later(hooks) + ANSWERS.format(hooks=HOOKS))
    assert found["defined"] == (list(HOOKS) if hooks else [])
    assert found["ours"] == list(HOOKS)
    assert found["is_one"]
    assert found["markers"] == [True] * 4
    assert (found["tool"], found["shared"]) == ("PlatformProfiler", True)
    assert found["problems"] == []


@pytest.mark.parametrize(
    ("hooks", "log_probs"), [(False, ()), (True, ()), (True, ("all",)), (True, ("all", "response"))]
)
def test_padding_helpers_come_by_the_hook_or_by_the_row(chip, hooks, log_probs):
    """``log_probs``: which of verl's functions take what they need from the helpers, and so work on any device."""
    found = chip.run(later(hooks, log_probs) + HELPERS)
    assert (found["same"], found["device"]) == (True, "mlu:0")
    assert ("padding-helpers" in found["in_force"]) == (not hooks)
    assert found["asked"] == (["verl_hw_core.training.padding"] if hooks else [])
    assert ("rmpad-log-probs" in found["in_force"]) == (len(log_probs) < 2)
    assert found["log_probs"] == pytest.approx([0, 0], abs=1e-6)
    assert found["problems"] == []


def test_a_workers_device_is_selected_once_and_is_the_same_by_the_row_and_by_the_hook(chip):
    found = chip.run(later() + WORKER)
    # With the row verl's own method is not run; without it that method asks the hook.
    assert found["row"] == [*([slot, str(slot), 1, []] for slot in range(3)), True]
    assert found["hook"] == [*([slot, str(slot), 1, ["worker"]] for slot in range(3)), False]
    assert found["problems"] == []


def test_rows_name_hooks_that_the_platform_has():
    rows = {row.id: row for row in LEDGER if row.hook}
    assert set(rows) == {"padding-helpers", "rmpad-log-probs", "worker-device"}
    for row in rows.values():
        module, _, path = row.hook.partition(":")
        assert (module, path.partition(".")[0]) == ("verl.plugin.platform.platform_base", "PlatformBase")
        assert path.partition(".")[2] in HOOKS
        assert len(row.with_hook.split()) >= 10
    assert not [row.id for row in LEDGER if row.with_hook and not row.hook]
