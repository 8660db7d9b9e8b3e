# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Send functions that are replaced in the driver to Ray workers of this and of other platforms; answers as JSON.

Everything defined below is pickled by value, since it belongs to ``__main__``, as what a user's script defines is.
"""

import json
import logging
import sys

import ray
import torch
import torch.distributed as dist
from machine_speed import scaled
from ray import cloudpickle
from torch.distributed import all_reduce as bound_before
from transformers.models.qwen3 import modeling_qwen3
from verl.plugin.platform import get_platform
from verl.utils import torch_functional

from verl_hw_core import model_patches, reduction, upstream
from verl_hw_core.training import padding

SITE = "transformers.models.qwen3.modeling_qwen3:apply_rotary_pos_emb"
NOBODY = {"VERL_HW_SIM": "", "VERL_HW_SIM_LIMITS": "", "VERL_HW_PROBE_ROOT": ""}
WORKERS = {
    "chosen": {},
    "nvidia": {**NOBODY, "VERL_PLATFORM": "nvidia"},
    "without plugins": {**NOBODY, "VERL_PLATFORM": "", "VERL_USE_EXTERNAL_PLUGINS": "none"},
}


def patched_rotary(*_args, **_kwargs):
    return "patched"


def declare_patch() -> None:
    """A third party's patch, as its entry point would declare it in every process."""
    patch = model_patches.ModelPatch(
        vendor="any", model_type="qwen3", target=SITE, replacement=patched_rotary, reason="to be recognized"
    )
    model_patches.add_patch(patch)


def outcome(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - which one it is, is the answer
        return f"{type(error).__name__}: {error}"


class Carrier:
    """A user's class: replaced functions as globals of its methods, in a class attribute and in an instance."""

    helper = staticmethod(torch_functional.log_probs_from_logits_all_rmpad)

    def __init__(self) -> None:
        self.reductions = {}

    def average(self, function):
        tensor = torch.ones(2, device=self.device)
        function(tensor, op=dist.ReduceOp.AVG)
        return tensor.tolist()

    def packed_log_probs(self, function):
        logits = torch.eye(5, device=self.device)
        indices = torch.tensor([0, 1, 2, 4, 5], device=self.device)
        return function(torch.arange(5, device=self.device)[None], logits, indices, 2, 4, 2).shape

    def rotary(self, function):
        states = torch.ones(1, 1, 2, 4)
        found = function(states, states, states[0], states[0])
        return found if isinstance(found, str) else "own"

    def run(self) -> dict:
        platform = get_platform()
        self.device = platform.device_name if platform.vendor_name == "cambricon" else "cpu"
        backend = platform.communication_backend_name() if self.device != "cpu" else "gloo"
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
        at_first = list(upstream.in_force())
        answers = {
            "platform": platform.vendor_name,
            "in force at first": at_first,
            "bound before": outcome(self.average, bound_before),
            "average": outcome(self.average, self.reductions["all_reduce"]),
            "log probs": outcome(self.packed_log_probs, self.helper),
            "rotary at first": self.rotary(rotary),
            "in force at last": list(upstream.in_force()),
            "verl's own name": outcome(self.packed_log_probs, torch_functional.log_probs_from_logits_all_rmpad),
        }
        if platform.vendor_name == "cambricon":
            answers.update(self.patched_again())
        return answers

    def patched_again(self) -> dict:
        """What the engine does here after the references have arrived, then its undoing."""
        before = dist.all_reduce
        reduction.install(self.device)
        declare_patch()
        model_patches.apply("cambricon", self.device, "qwen3")
        answers = {"once": dist.all_reduce is before, "rotary": self.rotary(rotary)}
        for row in upstream.in_force():
            upstream.restore(row)
        own = cloudpickle.loads(cloudpickle.dumps(dist.all_reduce)) is dist.all_reduce is bound_before
        return {**answers, "restored": own}


def identities() -> dict:
    """Whether each function is itself after a journey through a pickle, and how many bytes the journey takes."""
    travelled = {
        "bound before": bound_before,
        "all_reduce": dist.all_reduce,
        "rotary": rotary,
        "helper": Carrier.helper,
    }
    pickles = {name: cloudpickle.dumps(function) for name, function in travelled.items()}
    return {name: [cloudpickle.loads(sent) is travelled[name], len(sent)] for name, sent in pickles.items()}


def replace_all() -> None:
    reduction.install(get_platform().device_name)
    padding.replace_log_probs()
    declare_patch()
    model_patches.apply("cambricon", get_platform().device_name, "qwen3")


def main() -> None:
    global rotary
    replace_all()
    rotary = modeling_qwen3.apply_rotary_pos_emb
    Carrier.helper = staticmethod(torch_functional.log_probs_from_logits_all_rmpad)
    carrier = Carrier()
    carrier.reductions["all_reduce"] = dist.all_reduce
    driver = {"identities": identities()}
    ray.init(
        address="local",
        num_cpus=2,
        _temp_dir=sys.argv[1],
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    run = ray.remote(Carrier.run)
    echo = ray.remote(lambda function: function)
    asked = {
        name: run.options(runtime_env={"env_vars": variables}).remote(carrier) for name, variables in WORKERS.items()
    }
    answers = {name: ray.get(reference, timeout=scaled(200)) for name, reference in asked.items()}
    driver["echo"] = ray.get(echo.remote(dist.all_reduce), timeout=scaled(200)) is dist.all_reduce
    for row in upstream.in_force():
        upstream.restore(row)
    driver["restored"] = dist.all_reduce is bound_before and bound_before.__module__.startswith("torch.distributed")
    print(json.dumps({**answers, "driver": driver}))
    ray.shutdown()


if __name__ == "__main__":
    main()
