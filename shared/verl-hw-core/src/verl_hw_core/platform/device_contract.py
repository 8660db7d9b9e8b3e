# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What verl asks of ``torch.<device>``: name by name, with what stops working where a vendor's module lacks it.

Read from verl 0.9.0 and 0.9.1 (every attribute of ``get_torch_device()``); a test reads the installed verl again and
fails when the list has grown.
"""

ESSENTIAL: dict[str, str] = {
    "is_available": "everything: verl takes the device for absent",
    "device_count": "everything: workers cannot be placed",
    "current_device": "everything: tensors go to device 0",
    "set_device": "everything: all workers land on device 0",
    "synchronize": "timings and copies to the host",
    "empty_cache": "memory between rollout and training",
    "get_rng_state": "checkpoints: saving fails",
    "set_rng_state": "checkpoints: resuming fails",
}
"""Names without which training does not start or cannot be resumed."""

OPTIONAL: dict[str, str] = {
    "Event": "fused cross-entropy kernel",
    "Stream": "activation offload, fused cross-entropy kernel",
    "current_stream": "activation offload, fused cross-entropy kernel",
    "stream": "activation offload, fused cross-entropy kernel",
    "get_device_name": "model FLOPs utilisation in the metrics",
    "get_device_properties": "memory report",
    "ipc_collect": "device IPC in weight transfer; host memory is used instead",
    "max_memory_allocated": "memory metrics of a training step",
    "max_memory_reserved": "memory metrics of a training step",
    "mem_get_info": "memory log, delta weight sync",
    "memory": "memory snapshots",
    "memory_allocated": "memory log",
    "memory_reserved": "memory log",
    "reset_accumulated_memory_stats": "aggressive memory release",
    "reset_peak_memory_stats": "aggressive memory release",
    "set_per_process_memory_fraction": "memory limit of a process",
}
"""Names whose absence costs one feature."""
