# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""A vendor's package of fused kernels: some that are right, and RMSNorm with each fault of the field."""

import torch

from verl_hw_core.model_patches.operations import multimodal_rotary, rms_norm, rotary, swiglu

__all__ = ["multimodal_rotary", "rotary", "swiglu"]

calls = []


def good(hidden, weight, eps):
    calls.append("good")
    return rms_norm(hidden, weight, eps)


def without_autograd(hidden, weight, eps):
    with torch.no_grad():
        return rms_norm(hidden, weight, eps)


class _WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(context, hidden, weight, eps):
        return rms_norm(hidden, weight, eps)

    @staticmethod
    def backward(context, gradient):
        return gradient, gradient.reshape(-1, gradient.shape[-1]).sum(0), None


wrong_gradient = _WrongGradient.apply


def raising(hidden, weight, eps):
    raise RuntimeError("kernel not found for arch")


def half_the_result(hidden, weight, eps):
    return rms_norm(hidden, weight, eps) / 2


def in_place(hidden, weight, eps):
    result = rms_norm(hidden, weight, eps)
    hidden.data.mul_(2)
    return result


def no_float32(hidden, weight, eps):
    if hidden.dtype == torch.float32:
        raise RuntimeError("float32 is not supported")
    return rms_norm(hidden, weight, eps)


def lost_in_large_shapes(hidden, weight, eps):
    result = rms_norm(hidden, weight, eps)
    return result if hidden.shape[-1] < 128 else result * float("nan")
