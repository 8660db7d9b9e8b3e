// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// What every part needs: the dispatch key this build is for, and a few names.
// One translation unit (module.cpp) includes all headers: a build then parses torch's headers once.
#pragma once

#include "torch_version.h"

#include <ATen/ATen.h>
#include <torch/extension.h>
#include <torch/library.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#if defined(SIM_KIND_PRIVATEUSE1)
#define SIM_DISPATCH_KEY PrivateUse1
#define SIM_AUTOGRAD_KEY AutogradPrivateUse1
#elif defined(SIM_KIND_XPU)
#define SIM_DISPATCH_KEY XPU
#define SIM_AUTOGRAD_KEY AutogradXPU
#elif defined(SIM_KIND_CUDA)
#define SIM_DISPATCH_KEY CUDA
#define SIM_AUTOGRAD_KEY AutogradCUDA
#else
#error "define one of SIM_KIND_PRIVATEUSE1, SIM_KIND_XPU, SIM_KIND_CUDA"
#endif

namespace sim {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::DispatchKey;
using c10::DispatchKeySet;

constexpr DeviceType kDeviceType = DeviceType::SIM_DISPATCH_KEY;
constexpr DispatchKey kKey = DispatchKey::SIM_DISPATCH_KEY;
constexpr DispatchKey kAutogradKey = DispatchKey::SIM_AUTOGRAD_KEY;
constexpr DeviceIndex kMaxDevices = 16;

inline bool on_device(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kDeviceType;
}

}  // namespace sim
