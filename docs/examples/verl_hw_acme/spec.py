# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Facts on the Acme NPU, each with its source and mark."""

from verl_hw_core import HardwareSpec, SmiTool, Traces

SPEC = HardwareSpec(
    # Who it is. The key is the value of VERL_PLATFORM and the vendor in verl's engine lookup.
    key="acme",
    display_name="Acme NPU",
    distribution="verl-hw-acme",
    aliases=("apu",),
    # What torch calls it: torch.apu, imported with torch_apu, and a torch.distributed backend.
    device_name="apu",
    extension_module="torch_apu",
    ccl_backend="accl",
    # Which variables choose devices. One that wins over the first belongs into overriding_visible_envvars.
    visible_devices_envvar="APU_VISIBLE_DEVICES",
    # What Ray calls it: candidates, the preferred one first; the running cluster is asked.
    ray_resources=("APU", "GPU"),
    # What its torch offers. Leave out what is unknown: each has a fallback.
    ipc=True,  # tried on the running stack before it is used
    capability="module",
    allocator_setter="apu.memory._set_allocator_settings",
    range_module="apu.ranges",
    # Defaults for processes; what the user exported wins.
    launch_env=(("ACCL_SOCKET_TIMEOUT", "600"),),
    rollout_env=(("ACME_SERVING", "1"),),
    # What its stack leaves on a machine, without a visible device: only what is this vendor's alone decides.
    traces=Traces(
        torch_version_tag="+apu",
        packages=("torch_apu",),
        device_nodes=("/dev/apu[0-9]*",),
        smi=(SmiTool(command="apu-smi", args=("-L",)),),
    ),
)
