# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The vendor's torch extension and runtime, as this process gets them."""

from typing import Any

from verl_hw_core.platform.vendor_module import ESSENTIAL, OPTIONAL


def look(vendor: str) -> dict[str, Any]:
    """Import the extension and ask for the devices, the module's names and the collective backend.

    Raises:
        VendorRuntimeError: The extension is missing or fails to import, or torch has no such device.
    """
    import torch.distributed as dist

    from verl_hw_core.platform import vendor_module
    from verl_hw_tools.installed import find_wheel, installed_wheels

    spec = find_wheel(vendor, installed_wheels()).facts
    module: Any = vendor_module.device_module(spec)
    count = int(module.device_count())
    names = [
        str(vendor_module.call(spec, "get_device_name", number, fallback=spec.display_name, loud=False))
        for number in range(count)
    ]
    known = [name.lower() for name in dist.Backend.backend_list] if dist.is_available() else []
    return {
        "count": count,
        "available": bool(module.is_available()),
        "names": names,
        "missing_essential": [name for name in ESSENTIAL if not hasattr(module, name)],
        "missing_optional": [name for name in OPTIONAL if not hasattr(module, name)],
        "ccl": spec.ccl_backend,
        "ccl_known": spec.ccl_backend in known and _is_built_in(dist, spec.ccl_backend),
        "backends": known,
    }


def _is_built_in(dist: Any, name: str) -> bool:
    """torch lists a few backends that this build may lack; for these it has a question each."""
    ask = getattr(dist, f"is_{name}_available", None)
    return bool(ask()) if callable(ask) else True
