// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// Only for the CUDA key (MetaX), and only on a torch built without CUDA: with one, torch has kernels of its own.
#pragma once

#include "hooks.h"

#include <ATen/detail/CUDAHooksInterface.h>

namespace sim {

class CudaHooks final : public Hooks<at::CUDAHooksInterface> {
 public:
  bool hasCUDA() const override {
    return true;
  }
  DeviceIndex current_device() const override {
    return current_ordinal;
  }
  int getNumGPUs() const override {
    return sim::device_count();
  }
  void deviceSynchronize(DeviceIndex) const override {
    late_copies().finish();
  }
  c10::Allocator* getCUDADeviceAllocator() const override {
    return allocator();
  }
};

}  // namespace sim
