# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Install the simulated device into the torch of this process."""

import atexit
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from verl_hw_sim import limits
from verl_hw_sim.build import TorchBuild, ensure_built, load_native
from verl_hw_sim.collectives import register_ccl
from verl_hw_sim.device_module import create_device_module, take_over_device_module
from verl_hw_sim.errors import UnsupportedTorchError
from verl_hw_sim.fake_host import ensure_fake_host
from verl_hw_sim.profiles import Kind, Profile, get_profile
from verl_hw_sim.settings import LIMITS_ENVVAR, PROBE_ROOT_ENVVAR, SIM_ENVVAR, Request, parse_request
from verl_hw_sim.simulation import Simulation, is_active, set_active
from verl_hw_sim.torch_support import check_torch_version

_DRAIN_SECONDS = 2.0


def install_from_environment() -> None:
    """Do what ``VERL_HW_SIM`` and ``VERL_HW_SIM_LIMITS`` say; the second call in a process does nothing.

    Raises:
        SettingsError: A variable has a value that means nothing.
        UnsupportedTorchError: The installed torch cannot host the device.
        BuildError: The native half could not be compiled or loaded.
    """
    if is_active():
        return
    request = parse_request(os.environ[SIM_ENVVAR])
    wanted_limits = limits.parse(os.environ.get(LIMITS_ENVVAR, ""))
    install(request, wanted_limits)


def install(request: Request, wanted_limits: limits.Limits) -> Simulation:
    """Install one simulated device; see :func:`install_from_environment` for what it raises.

    Args:
        request: Vendor and number of devices.
        wanted_limits: Limits to start with.
    """
    profile = get_profile(request.vendor)
    check_torch_can_host(profile)
    native = load_native(profile.kind, ensure_built(profile.kind, TorchBuild.installed(), profile.vendor))
    native.install(
        profile.vendor,
        request.devices,
        list(profile.mask_variables),
        [profile.uuid(index) for index in range(request.devices)],
        profile.ascending_mask,
        profile.subdevice_mask,
        profile.selector_variable or "",
    )
    if profile.kind == "privateuse1":
        torch.utils.rename_privateuse1_backend(profile.device_name)
        module = create_device_module(native, profile)
        torch._register_device_module(profile.device_name, module)
        torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    else:
        module = take_over_device_module(native, profile)
    if profile.kind == "cuda":
        _patch_untyped_storage(native, profile.device_name)
    register_ccl(native, profile)
    _compile_to_eager(profile.device_name)
    _add_extension_module(profile, module)
    _mark_torch_build(profile)
    _show_fake_host(profile, request.devices)
    simulation = Simulation(profile, request.devices, native, module)
    limits.apply_to(simulation, wanted_limits)
    set_active(simulation)
    # See csrc/shutdown.h: without this a script whose last act is a backward may abort.
    atexit.register(native.drain_autograd_threads, _DRAIN_SECONDS)
    return simulation


def check_torch_can_host(profile: Profile) -> None:
    """Refuse a torch outside the supported range, or with real kernels under the dispatch key that we need.

    Raises:
        UnsupportedTorchError: It is one of these.
    """
    check_torch_version(str(torch.__version__))
    built_for: dict[Kind, bool] = {"cuda": torch._C._has_cuda, "xpu": torch._C._has_xpu}
    if built_for.get(profile.kind, False):
        raise UnsupportedTorchError(
            f"simulating {profile.vendor} takes over torch.{profile.kind}, which works only with a torch built without "
            f"{profile.kind.upper()}; found torch {torch.__version__}. Use a CPU build in a separate environment "
            "(pip install torch --index-url https://download.pytorch.org/whl/cpu), or simulate another vendor."
        )


def _add_extension_module(profile: Profile, device_module: ModuleType) -> None:
    """Make ``import torch_mlu`` work here, and only here: transformers and accelerate import any that they see."""
    name = profile.extension_module
    if name is None or name in sys.modules:
        return
    module = ModuleType(name, f"Stand-in of verl-hw-sim for the extension of {profile.vendor}.")
    spec = ModuleSpec(name, loader=None, origin="verl-hw-sim", is_package=True)
    module.__spec__ = spec
    module.__path__ = [str(Path(__file__).parent / "stand_ins" / name)]  # its submodules, where we have stand-ins
    vars(module)["__version__"] = profile.extension_version
    vars(module)[profile.device_name] = device_module
    sys.modules[name] = module


def _show_fake_host(profile: Profile, devices: int) -> None:
    """Let detection see the vendor's machine, unless the user chose a root. A parent may have simulated another one."""
    root = ensure_fake_host(profile, devices)
    present = os.environ.get(PROBE_ROOT_ENVVAR)
    if not present or Path(present).parent == root.parent:
        os.environ[PROBE_ROOT_ENVVAR] = str(root)


def _mark_torch_build(profile: Profile) -> None:
    """Show the markers of the vendor's own build of torch."""
    for name, value in profile.torch_version_attributes:
        setattr(torch.version, name, value)
    if profile.torch_local_version is not None:
        public = str(torch.__version__).partition("+")[0]
        version = f"{public}+{profile.torch_local_version}"
        torch.version.__version__ = version
        torch.__version__ = type(torch.__version__)(version)


def _compile_to_eager(device_name: str) -> None:
    """Run what torch.compile captures eagerly: Inductor has no code generator for the simulated device."""
    wrapper = torch._TorchCompileInductorWrapper
    stock_call = wrapper.__call__

    def call(self: Any, graph_module: Any, inputs: Any) -> Any:
        if any(isinstance(value, torch.Tensor) and value.device.type == device_name for value in inputs):
            return graph_module.forward
        return stock_call(self, graph_module, inputs)

    wrapper.__call__ = call


def _patch_untyped_storage(native: ModuleType, device_name: str) -> None:
    """A torch without CUDA cannot resize or create a storage on that device: do it through tensors."""
    storage = torch.UntypedStorage
    stock_resize, stock_new = storage.resize_, storage.__new__

    def resize_(self: Any, size: int) -> Any:
        if self.device.type != device_name:
            return stock_resize(self, size)
        native.resize_storage(torch.empty(0, dtype=torch.uint8, device=self.device).set_(self), size)
        return self

    def new(cls: Any, *arguments: Any, **named: Any) -> Any:
        device = named.get("device")
        if device is None or torch.device(device).type != device_name:
            return stock_new(cls, *arguments, **named)
        size = arguments[0] if arguments else 0
        return torch.empty(size, dtype=torch.uint8, device=device).untyped_storage()

    storage.resize_ = resize_
    storage.__new__ = new
