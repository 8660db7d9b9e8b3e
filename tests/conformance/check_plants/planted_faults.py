# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Faults of vendor stacks, put into the torch of this process. Only tensors on the simulated device are affected."""

import copy
import ctypes
import functools
import os
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint
from torch.nn import functional

DEVICE = torch._C._get_privateuse1_backend_name()
MODULE = getattr(torch, DEVICE)
# Kernels registered through a library live as long as it does.
LIBRARY = torch.library.Library("aten", "IMPL")


def on_device(tensor) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.device.type == DEVICE


def replace(owner, name):
    """Decorator: put a function in another's place; it gets the original as its first argument."""

    def decorate(fault):
        original = getattr(owner, name)
        setattr(owner, name, functools.wraps(original)(functools.partial(fault, original)))

    return decorate


# Operators.


def silu_without_autograd():
    @replace(functional, "silu")
    def silu(original, x, *args, **kwargs):
        if not on_device(x):
            return original(x, *args, **kwargs)
        with torch.no_grad():
            return original(x, *args, **kwargs)


def gelu_with_zero_gradient():
    @replace(functional, "gelu")
    def gelu(original, x, *args, **kwargs):
        result = original(x, *args, **kwargs)
        return result.detach() + 0 * x if on_device(x) else result


def bf16_accumulates_in_bf16():
    def mm(a, b):
        if a.dtype != torch.bfloat16:
            return torch.mm(a.cpu(), b.cpu()).to(DEVICE)
        a, b = a.cpu(), b.cpu()
        total = torch.zeros(a.shape[0], b.shape[1], dtype=torch.bfloat16)
        for k in range(a.shape[1]):
            total += a[:, k : k + 1] * b[k : k + 1]
        return total.to(DEVICE)

    LIBRARY.impl("mm", mm, "PrivateUse1")


def fp16_softmax_overflows():
    def softmax(x, dim, half_to_float):
        if x.dtype != torch.float16:
            return torch._softmax(x.cpu(), dim, half_to_float).to(DEVICE)
        exponentials = x.cpu().exp()
        return (exponentials / exponentials.sum(dim, keepdim=True)).to(DEVICE)

    LIBRARY.impl("_softmax", softmax, "PrivateUse1")


def bmm_in_reduced_precision():
    def shorten(tensor):
        bits = tensor.cpu().contiguous().view(torch.int32)
        return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)

    def bmm(a, b):
        if a.dtype != torch.float32:
            return torch.bmm(a.cpu(), b.cpu()).to(DEVICE)
        return torch.bmm(shorten(a), shorten(b)).to(DEVICE)

    LIBRARY.impl("bmm", bmm, "PrivateUse1")


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        return gradient * 2


def cross_entropy_gradient_doubled():
    @replace(functional, "cross_entropy")
    def cross_entropy(original, x, *args, **kwargs):
        return original(_Doubled.apply(x) if on_device(x) else x, *args, **kwargs)


def sdpa_ignores_mask():
    @replace(functional, "scaled_dot_product_attention")
    def sdpa(original, q, k, v, attn_mask=None, **kwargs):
        return original(q, k, v, attn_mask=None if on_device(q) else attn_mask, **kwargs)


def rms_norm_segfaults():
    @replace(functional, "rms_norm")
    def rms_norm(original, x, *args):
        return ctypes.string_at(0) if on_device(x) else original(x, *args)


def layer_norm_hangs():
    @replace(functional, "layer_norm")
    def layer_norm(original, x, *args):
        while on_device(x):
            time.sleep(1)
        return original(x, *args)


def embedding_wrong_for_strided_weight():
    @replace(functional, "embedding")
    def embedding(original, ids, weight, *args):
        if on_device(weight) and not weight.is_contiguous():
            weight = weight.as_strided(weight.shape, (weight.shape[1], 1))
        return original(ids, weight, *args)


# Random numbers, selection, memory.


def seeds_ignored():
    MODULE.manual_seed = MODULE.manual_seed_all = lambda seed: None


def set_rng_state_ignored():
    MODULE.set_rng_state = lambda state, device=None: None


def one_rng_state_for_all_devices():
    @replace(MODULE, "set_rng_state")
    def set_rng_state(original, state, device=None):
        for ordinal in range(MODULE.device_count()):
            original(state, ordinal)


def set_device_ignored():
    MODULE.set_device = lambda device: None


def free_memory_is_zero():
    MODULE.mem_get_info = lambda device=None: (0, 0)


# Types and copies.


def no_byte_views():
    plain = torch._C.TensorBase.view

    def view(self, *args, **kwargs):
        if on_device(self) and torch.uint8 in (*args, kwargs.get("dtype")) and self.dtype != torch.uint8:
            raise RuntimeError("view(torch.uint8) is not supported on this device")
        return plain(self, *args, **kwargs)

    torch.Tensor.view = view


def strided_copies_to_host_wrong():
    plain = torch._C.TensorBase.cpu

    def cpu(self, *args, **kwargs):
        if on_device(self) and not self.is_contiguous() and self.dim() == 3:
            strides = (self.shape[1] * self.shape[2], self.shape[2], 1)
            last = sum((size - 1) * stride for size, stride in zip(self.shape, strides, strict=True))
            if (last + 1) * self.element_size() <= self.untyped_storage().nbytes():
                self = self.as_strided(self.shape, strides)
        return plain(self, *args, **kwargs)

    torch.Tensor.cpu = cpu


def non_blocking_never_finishes():
    plain = torch._C.TensorBase.to

    def to(self, *args, **kwargs):
        result = plain(self, *args, **kwargs)
        return result.zero_() if on_device(self) and kwargs.get("non_blocking") else result

    torch.Tensor.to = to


def scaler_disabled():
    plain = torch.amp.GradScaler.__init__

    def init(self, device="cuda", **kwargs):
        plain(self, device, **{**kwargs, "enabled": False})

    torch.amp.GradScaler.__init__ = init


def scaler_ignores_overflow():
    def unscale(gradients, found_inf, inverse_scale):
        for gradient in gradients:
            gradient.mul_(inverse_scale.item())

    LIBRARY.impl("_amp_foreach_non_finite_check_and_unscale_", unscale, "PrivateUse1")


def jagged_copies_to_host_unfinished():
    from torch.nested._internal.nested_tensor import NestedTensor

    def to(self, *args, **kwargs):
        result = torch._C.TensorBase.to(self, *args, **kwargs)
        if on_device(self) and not on_device(result):
            result.values().zero_()
        return result

    NestedTensor.to = to


# Collectives.


def broadcast_from_another_root():
    @replace(dist, "broadcast")
    def broadcast(original, tensor, src=0, **kwargs):
        wrong = (src + 1) % dist.get_world_size() if on_device(tensor) else src
        return original(tensor, src=wrong, **kwargs)


def all_gather_reversed():
    @replace(dist, "all_gather_into_tensor")
    def all_gather_into_tensor(original, output, tensor, **kwargs):
        work = original(output, tensor, **kwargs)
        output.copy_(torch.cat(output.chunk(dist.get_world_size())[::-1]))
        return work


class _Work:
    def __init__(self, hangs):
        self.hangs = hangs

    def wait(self):
        while self.hangs:
            time.sleep(1)

    def is_completed(self):
        return not self.hangs


def asynchronous_all_reduce_returns_early():
    @replace(dist, "all_reduce")
    def all_reduce(original, tensor, *args, async_op=False, **kwargs):
        return _Work(hangs=False) if async_op else original(tensor, *args, **kwargs)


def asynchronous_all_reduce_never_completes():
    @replace(dist, "all_reduce")
    def all_reduce(original, tensor, *args, async_op=False, **kwargs):
        work = original(tensor, *args, async_op=async_op, **kwargs)
        return _Work(hangs=True) if async_op else work


def scatter_segfaults_on_rank_1():
    @replace(dist, "scatter")
    def scatter(original, *args, **kwargs):
        return ctypes.string_at(0) if os.environ["RANK"] == "1" else original(*args, **kwargs)


def gather_raises_on_rank_0():
    @replace(dist, "gather")
    def gather(original, *args, **kwargs):
        if os.environ["RANK"] == "0":
            raise RuntimeError("out of resources")
        return original(*args, **kwargs)


def groups_reduce_over_everybody():
    @replace(dist, "all_reduce")
    def all_reduce(original, tensor, *args, group=None, **kwargs):
        return original(tensor, *args, **kwargs)


# Checkpoints.


def checkpoint_restores_nothing():
    torch.distributed.checkpoint.load = lambda states, **kwargs: None


def optimizer_state_not_restored():
    plain = torch.optim.Optimizer.load_state_dict

    def load_state_dict(self, state_dict):
        before = copy.deepcopy(self.state_dict())
        plain(self, state_dict)
        plain(self, before)

    torch.optim.Optimizer.load_state_dict = load_state_dict
