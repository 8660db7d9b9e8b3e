// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// Every difference between the supported releases of torch that the native half has to know, by feature. Code asks for
// a feature, never for a version. The supported range itself is in torch_support.py.
#pragma once

// Older compilers take -std=c++20 and then fail somewhere inside torch's headers.
#if __cplusplus < 202002L
#error "verl-hw-sim needs a C++20 compiler"
#endif

#include <torch/version.h>

#define SIM_TORCH_SINCE(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

// 2.9: c10::DeviceAllocator (and c10::MempoolId_t), through which torch.accelerator.memory_* asks the allocator. Before
// it there are no such functions, and an allocator only allocates.
#define SIM_TORCH_HAS_DEVICE_ALLOCATOR SIM_TORCH_SINCE(2, 9)

// 2.9: c10d::Backend::setTimeout. Before it torch changes the timeout of nccl and gloo groups only.
#define SIM_TORCH_HAS_BACKEND_TIMEOUT SIM_TORCH_SINCE(2, 9)

// 2.10: c10::DeviceAllocator::getMemoryInfo, for torch.accelerator.get_memory_info.
#define SIM_TORCH_HAS_MEMORY_INFO SIM_TORCH_SINCE(2, 10)

// 2.10: c10::DeviceCapability, for torch.accelerator.get_device_capability.
#define SIM_TORCH_HAS_DEVICE_CAPABILITY SIM_TORCH_SINCE(2, 10)

// 2.10: a fallback of the AutogradPrivateUse1 key. Before it, a composite operator for which PrivateUse1 has a kernel of
// its own (_has_compatible_shallow_copy_type, and any that is denied) cannot be called.
#define SIM_TORCH_HAS_PRIVATEUSE1_AUTOGRAD_FALLBACK SIM_TORCH_SINCE(2, 10)

// 2.10: VariableHooksInterface::grad_dtype and set_grad_dtype, pure virtual, behind Tensor.grad_dtype.
#define SIM_TORCH_HAS_GRAD_DTYPE SIM_TORCH_SINCE(2, 10)
