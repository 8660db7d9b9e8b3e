# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Jagged tensors on a device whose extension wraps the constructors, and host copies that are complete (report 69)."""

import functools
from types import SimpleNamespace

import pytest

from verl_hw_core import upstream
from verl_hw_core.training import jagged


@pytest.fixture
def torch():
    import torch

    yield torch
    for row in ("nested-constructors", "tensordict-synchronization"):
        upstream.restore(row)


def wrap(torch, monkeypatch, refuses: bool) -> None:
    """Wrap torch's constructors as extensions do."""
    for name in jagged.CONSTRUCTORS:
        own = getattr(torch.nested, name)

        @functools.wraps(own)
        def wrapper(*args, own=own, **kwargs):
            if refuses:
                raise RuntimeError("not supported")
            return own(*args, **kwargs)

        monkeypatch.setattr(torch.nested, name, wrapper)


def constructors(torch) -> list:
    return [getattr(torch.nested, name) for name in jagged.CONSTRUCTORS]


def test_a_wrapper_that_refuses_the_device_is_undone(torch, monkeypatch):
    own = constructors(torch)
    wrap(torch, monkeypatch, refuses=True)
    with pytest.raises(RuntimeError, match="not supported"):
        torch.nested.nested_tensor([torch.zeros(1)], layout=torch.jagged)
    jagged.unwrap_constructors("cpu")
    jagged.unwrap_constructors("cpu")
    assert constructors(torch) == own
    assert "nested-constructors" in upstream.in_force()


def test_a_wrapper_that_works_stays(torch, monkeypatch):
    wrap(torch, monkeypatch, refuses=False)
    wrapped = constructors(torch)
    jagged.unwrap_constructors("cpu")
    assert constructors(torch) == wrapped


def test_a_wrapper_stays_where_torchs_own_refuses_as_well(torch, monkeypatch):
    def broken(*args, **kwargs):
        raise NotImplementedError("no such operator")

    for name in jagged.CONSTRUCTORS:
        monkeypatch.setattr(torch.nested, name, broken)
    wrap(torch, monkeypatch, refuses=True)
    wrapped = constructors(torch)
    jagged.unwrap_constructors("cpu")
    assert constructors(torch) == wrapped


def test_nothing_is_touched_without_a_wrapper(torch):
    jagged.unwrap_constructors("a device that does not exist")
    assert "nested-constructors" not in upstream.in_force()


class Device:
    """A device whose copies to the host are complete only after :meth:`synchronize`."""

    device_name = "acmedev"

    def __init__(self):
        self.pending = []

    def synchronize(self, device_index=None):
        for target, source in self.pending:
            target.copy_(source)
        self.pending.clear()


def on_device(torch, device: Device, values):
    """A tensor that copies like one on ``device``."""

    class DeviceTensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is not torch.Tensor.to or not (kwargs or {}).get("non_blocking"):
                return super().__torch_function__(func, types, args, kwargs)
            source = args[0].as_subclass(torch.Tensor)
            target = torch.full_like(source, -1)
            device.pending.append((target, source))
            return target

    return torch.as_tensor(values).as_subclass(DeviceTensor)


@pytest.mark.parametrize("mended", [False, True])
@pytest.mark.parametrize("found", ["cuda", None], ids=["a migration shim", "no device found"])
def test_a_batch_is_complete_on_the_host(torch, monkeypatch, mended, found):
    from tensordict import TensorDict, base

    device = Device()
    monkeypatch.setattr(base, "_get_available_device_type", lambda: found)
    if mended:
        jagged.synchronize_host_copies(device)
        jagged.synchronize_host_copies(device)
    batch = TensorDict({"values": on_device(torch, device, [1.0, 2.0])}, batch_size=[2])
    assert batch.to("cpu")["values"].tolist() == ([1.0, 2.0] if mended else [-1.0, -1.0])


def test_nothing_is_replaced_where_tensordict_waits_for_the_right_device(torch, monkeypatch):
    from tensordict import base

    monkeypatch.setattr(base, "_get_available_device_type", lambda: "acmedev")
    jagged.synchronize_host_copies(SimpleNamespace(device_name="acmedev"))
    assert "tensordict-synchronization" not in upstream.in_force()
