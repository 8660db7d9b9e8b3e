# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Stand-in for a vendor's CUDA migration module: importing it makes ``torch.cuda`` mean the simulated device.

Code that was written for CUDA only (Megatron-core) then runs on the simulated device. It covers what such training code
asks of ``torch.cuda``: the module's names, ``device="cuda"``, ``Tensor.cuda()`` and the names and classes of tensor
types. It says nothing about how complete a vendor's own module is.
"""

import contextlib
import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import torch.utils._device

from verl_hw_sim.simulation import active_simulation

_FACTORIES = (
    "tensor", "as_tensor", "empty", "zeros", "ones", "full", "arange", "rand", "randn", "randint", "randperm",
    "linspace", "eye", "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "empty_strided",
)  # fmt: skip
_METHODS = ("to", "new_tensor", "new_empty", "new_zeros", "new_ones", "new_full")
_TYPES = {
    "FloatTensor": torch.float32,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "DoubleTensor": torch.float64,
    "LongTensor": torch.int64,
    "IntTensor": torch.int32,
    "ByteTensor": torch.uint8,
    "BoolTensor": torch.bool,
}
_CAPABILITY = (8, 0)
_MARK = "_verl_hw_sim_migrated_to"


def migrate(device_name: str) -> None:
    """Make ``torch.cuda`` mean ``device_name`` in this process; a second call changes nothing.

    Args:
        device_name: Simulated device, as ``"mlu"``. ``"cuda"`` needs no migration and gets none.
    """
    cuda = torch.cuda  # noqa: TID251 - the module that is taken over
    if device_name == "cuda" or getattr(cuda, _MARK, None) == device_name:
        return
    _take_over_module(cuda, getattr(torch, device_name))
    _translate_devices(device_name, cuda)
    _answer_as_cuda(device_name, cuda)
    setattr(cuda, _MARK, device_name)


def _take_over_module(cuda: ModuleType, module: ModuleType) -> None:
    """Names of the device module under those of torch.cuda, its submodules included."""
    names = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    submodules = {name: value for name, value in names.items() if isinstance(value, ModuleType)}
    vars(cuda).update({name: value for name, value in names.items() if name not in submodules})
    for name in ("memory", "random", "streams"):
        stock = sys.modules[f"torch.cuda.{name}"]
        vars(stock).update({key: names[key] for key in set(vars(stock)) & set(names)})
    vars(cuda)["get_device_capability"] = functools.partial(_capability, module)
    vars(cuda)["_lazy_call"] = lambda function, **_: function()
    vars(cuda)["_lazy_init"] = lambda: None
    _make_on_demand(cuda, module, "default_generators")
    nothing = {name: lambda *_, **__: None for name in ("range_push", "range_pop", "mark")}
    vars(cuda.nvtx).update(nothing, range=lambda *_, **__: contextlib.nullcontext())
    # Megatron-core looks here for a torch whose generators keep their state in C.
    torch._C._cuda_setRNGState = None  # type: ignore[attr-defined, unused-ignore]


def _capability(module: ModuleType, device: Any = None) -> Any:
    """The device's own answer if it is a pair, which is what code for CUDA unpacks."""
    found = module.get_device_capability(None if isinstance(device, str | torch.device) else device)
    return found if isinstance(found, tuple) else _CAPABILITY


def _make_on_demand(cuda: ModuleType, module: ModuleType, name: str) -> None:
    """A name of the device module that starts the runtime: asked for when it is used, not before a fork."""
    vars(cuda).pop(name, None)
    stock = vars(cuda).get("__getattr__")

    def module_getattr(asked: str) -> Any:
        if asked == name:
            return getattr(module, name)
        if stock is not None:
            return stock(asked)
        raise AttributeError(f"module 'torch.cuda' has no attribute {asked!r}")

    vars(cuda)["__getattr__"] = module_getattr


def _translator(device_name: str) -> Callable[[Any], Any]:
    def translate(value: Any) -> Any:
        if isinstance(value, str) and value.partition(":")[0] == "cuda":
            return device_name + value[len("cuda") :]
        if isinstance(value, torch.device) and value.type == "cuda":
            return torch.device(device_name) if value.index is None else torch.device(device_name, value.index)
        return value

    return translate


def _translate_devices(device_name: str, cuda: ModuleType) -> None:
    """``"cuda"`` as a device, wherever torch takes one."""
    translate = _translator(device_name)

    def wrapped(function: Any, *, positions: bool) -> Any:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            if "device" in named:
                named["device"] = translate(named["device"])
            if positions:
                arguments = tuple(map(translate, arguments))
            return function(*arguments, **named)

        return call

    # `with torch.device("meta")` compares factories with this table of the functions as they were: fill it first, or
    # transformers' from_pretrained builds on the wrong device and says nothing.
    torch.utils._device._device_constructors()
    for name in _FACTORIES:
        setattr(torch, name, wrapped(getattr(torch, name), positions=False))
    for name in _METHODS:
        setattr(torch.Tensor, name, wrapped(getattr(torch.Tensor, name), positions=True))
    torch.nn.Module.to = wrapped(torch.nn.Module.to, positions=True)
    for name, value in vars(cuda).copy().items():
        ours = getattr(value, "__module__", "") in ("verl_hw_sim.device_api", "verl_hw_sim.streams")
        if ours and not isinstance(value, type):
            setattr(cuda, name, wrapped(value, positions=True))
    stream = vars(cuda)["Stream"]
    new = wrapped(lambda _cls, *arguments, **named: stream(*arguments, **named), positions=True)
    vars(cuda)["Stream"] = type(stream)("Stream", (stream,), {"__new__": new})
    cuda.random.get_rng_state = cuda.get_rng_state
    cuda.random.set_rng_state = cuda.set_rng_state


def _answer_as_cuda(device_name: str, cuda: ModuleType) -> None:
    """``Tensor.cuda()``, ``is_cuda``, the names that ``Tensor.type()`` gives, and ``torch.cuda.FloatTensor``."""
    translate = _translator(device_name)

    def target(device: Any) -> torch.device:
        if device is None or isinstance(device, int):
            return torch.device(device_name, cuda.current_device() if device is None else device)
        return torch.device(translate(device))

    def tensor_cuda(self: torch.Tensor, device: Any = None, non_blocking: bool = False, **_: Any) -> torch.Tensor:
        return self.to(target(device), non_blocking=non_blocking)

    def module_cuda(self: Any, device: Any = None) -> Any:
        return self._apply(lambda tensor: tensor.to(target(device)))

    stock_type = torch.Tensor.type

    def tensor_type(self: torch.Tensor, *arguments: Any, **named: Any) -> Any:
        answer = stock_type(self, *arguments, **named)
        return answer.replace(f"torch.{device_name}.", "torch.cuda.") if isinstance(answer, str) else answer

    torch.Tensor.cuda = tensor_cuda
    torch.nn.Module.cuda = module_cuda
    torch.Tensor.is_cuda = property(lambda self: self.device.type == device_name)
    torch.Tensor.type = tensor_type
    # Megatron-core tells by isinstance with these which tensors it has to convert: without them nothing fails, and the
    # loss is another one.
    for name, dtype in _TYPES.items():
        setattr(cuda, name, _tensor_class(name, dtype, device_name))


class _TensorClass(type):
    """``isinstance`` by device and element type, as torch's own tensor classes have it."""

    dtype: torch.dtype
    device_name: str

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, torch.Tensor)
            and instance.device.type == cls.device_name
            and instance.dtype == cls.dtype
        )


def _tensor_class(name: str, dtype: torch.dtype, device_name: str) -> type:
    def new(_cls: Any, *arguments: Any) -> torch.Tensor:
        return torch.tensor(*arguments, dtype=dtype, device=device_name)

    return _TensorClass(name, (), {"dtype": dtype, "device_name": device_name, "__new__": new})


migrate(active_simulation().profile.device_name)
