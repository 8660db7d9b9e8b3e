# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A plain CPU platform for verl: the reference that simulated devices are compared with. For tests only.

Loaded with ``VERL_USE_EXTERNAL_MODULES=cpu_reference VERL_PLATFORM=cpu_reference``.
"""

import sys
from contextlib import nullcontext
from types import ModuleType

import torch
from torch.distributed import ReduceOp
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry
from wrapt import register_post_import_hook

KEY = "cpu_reference"


def _device_module() -> ModuleType:
    """torch.cpu and what verl expects of a device module beyond it."""
    module = ModuleType("torch.cpu_reference")
    module.__dict__.update({name: value for name, value in vars(torch.cpu).items() if not name.startswith("__")})
    for name in ("empty_cache", "reset_peak_memory_stats"):
        setattr(module, name, lambda *_: None)
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        setattr(module, name, lambda *_: 0)
    module.mem_get_info = lambda *_: (8 << 30, 16 << 30)
    module.get_device_name = lambda *_: "cpu"
    module.get_rng_state = lambda *_: torch.get_rng_state()
    module.set_rng_state = lambda state, *_: torch.set_rng_state(state)
    return module


@PlatformRegistry.register(platform=KEY)
class CpuReferencePlatform(PlatformBase):
    device_name = "cpu"
    vendor_name = KEY
    device_module = _device_module()

    def is_available(self):
        return True

    def current_device(self):
        return "cpu"  # verl passes it on as a torch device, where 0 would mean CUDA

    def device_count(self):
        return 1

    def set_device(self, device_index):
        return None

    def synchronize(self, device_index=None):
        return None

    def manual_seed(self, seed):
        torch.manual_seed(seed)

    def manual_seed_all(self, seed):
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings):
        return None

    def empty_cache(self):
        return None

    def get_device_capability(self, device_index=0):
        return (None, None)

    def communication_backend_name(self):
        return "gloo"

    def visible_devices_envvar(self):
        return "CPU_REFERENCE_VISIBLE_DEVICES"

    def nvtx_range(self, msg):
        return nullcontext()

    def profiler_start(self):
        return None

    def profiler_stop(self):
        return None

    def ray_resource_name(self):
        return "GPU"

    def ray_noset_envvars(self):
        return []

    def is_ipc_supported(self):
        return False

    def cudart(self):
        return None


def _register_engines(_module: ModuleType) -> None:
    """verl's own FSDP engines, unchanged, for device cpu."""
    import verl.utils.model
    from transformers import AutoModelForTokenClassification
    from verl.workers.engine.base import EngineRegistry
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead, FSDPEngineWithValueHead

    for model_type, engine in (("language_model", FSDPEngineWithLMHead), ("value_model", FSDPEngineWithValueHead)):
        EngineRegistry.register(model_type=model_type, backend=["fsdp", "fsdp2"], device="cpu", vendor=KEY)(engine)

    def load_value_model(local_path, torch_dtype, model_config, trust_remote_code):
        """verl's own insists on flash_attention_2, which no CPU has."""
        return AutoModelForTokenClassification.from_pretrained(
            local_path, torch_dtype=torch_dtype, config=model_config, attn_implementation="eager"
        )

    verl.utils.model.load_valuehead_model = load_value_model


def _name_one_backend(module: ModuleType) -> None:
    """verl names a backend for cpu and one for the device, which torch refuses where both are cpu."""
    own = module.initialize_global_process_group_ray

    def initialize(timeout_second=None, backend=None):
        own(timeout_second, backend or "cpu:gloo")

    module.initialize_global_process_group_ray = initialize


def _offload_without_pinning(module: ModuleType) -> None:
    """verl pins the reference policy's memory, which needs an accelerator."""
    own = module.CPUOffloadPolicy
    module.CPUOffloadPolicy = lambda pin_memory=True: own(pin_memory=False)


def _average_over_gloo() -> None:
    """gloo of torch 2.8 adds up in a reduce-scatter that is asked for an average, and says nothing."""
    own = torch.distributed.reduce_scatter_tensor

    def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
        average = op == ReduceOp.AVG
        work = own(output, input, ReduceOp.SUM if average else op, group, async_op)
        if average:
            output.div_(torch.distributed.get_world_size(group))
        return work

    torch.distributed.reduce_scatter_tensor = reduce_scatter_tensor


if torch.__version__.startswith("2.8."):
    _average_over_gloo()
if "verl.workers.engine" not in sys.modules:
    register_post_import_hook(_register_engines, "verl.workers.engine")
    register_post_import_hook(_name_one_backend, "verl.utils.distributed")
    register_post_import_hook(_offload_without_pinning, "verl.utils.fsdp_utils")
