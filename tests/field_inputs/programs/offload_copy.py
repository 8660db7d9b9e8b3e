# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Offload an activation where host memory cannot be pinned, read it back, and note who waited for the first copy.

Answers the events in their order: ``to host, late`` (a non-blocking copy), ``to host``, ``wait``, ``to device``.
"""

import json
from unittest import mock

import said  # noqa: F401 - makes the device
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from verl.plugin.platform import get_platform
from verl.utils.activation_offload import SynchronizedGroupOffloadHandler

from verl_hw_core.training import memory

events = []


class Copies(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if function is torch.ops.aten.copy_.default and args[1].device.type != args[0].device.type:
            late = (len(args) > 2 and args[2]) or (kwargs or {}).get("non_blocking")
            events.append("to device" if args[0].device.type != "cpu" else "to host, late" if late else "to host")
        if function is torch.ops.aten._to_copy.default and out.device.type != args[0].device.type:
            events.append("to device" if out.device.type != "cpu" else "to host")
        return out


def waiting(own):
    def wait(*args, **kwargs):
        events.append("wait")
        return own(*args, **kwargs)

    return wait


def refuse(*_args, **_kwargs):
    raise RuntimeError("no pinned memory on this chip")


module = get_platform().device_module
torch.Tensor.pin_memory = refuse
memory.pageable_where_pinned_fails()
activation = torch.arange(5.0, device=get_platform().device_name)
places = [(module, "synchronize"), (module.Stream, "synchronize"), (module.Event, "synchronize")]
for owner, name in [place for place in places if hasattr(*place)]:
    mock.patch.object(owner, name, waiting(getattr(owner, name))).start()
with Copies():
    state = SynchronizedGroupOffloadHandler.offload(activation)
    back = SynchronizedGroupOffloadHandler.reload(state)
assert torch.equal(back.cpu(), activation.cpu())
print(json.dumps({"events": events[: events.index("to device") + 1]}))
