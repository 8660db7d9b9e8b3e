// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies between host and device. With the limit late_host_copies, one to the host that nobody waits for is done when
// somebody waits for the device, a stream or an event, or for a later copy to the host; until then the host memory holds
// NaN, or -1. What is read from it before, a copy back to the device included, is wrong.
#pragma once

#include "alias.h"
#include "limits.h"

#include <ATen/core/grad_mode.h>

namespace sim {

class LateCopies {
 public:
  void add(const at::Tensor& host, const at::Tensor& device) {
    at::NoGradGuard no_grad;
    auto target = host.detach();
    std::lock_guard<std::mutex> guard(mutex_);
    waiting_.emplace_back(target, cpu_alias(device).detach().clone());
    any_ = true;
    target.is_floating_point() ? target.fill_(std::numeric_limits<double>::quiet_NaN()) : target.fill_(-1);
  }

  void finish() {
    if (!any_) {  // every wait comes through here
      return;
    }
    at::NoGradGuard no_grad;
    std::lock_guard<std::mutex> guard(mutex_);
    for (auto& [target, content] : waiting_) {
      target.copy_(content);
    }
    waiting_.clear();
    any_ = false;
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> any_{false};
  std::vector<std::pair<at::Tensor, at::Tensor>> waiting_;
};

inline LateCopies& late_copies() {
  static auto* value = new LateCopies();
  return *value;
}

inline void copy_between(const at::Tensor& target, const at::Tensor& source, bool non_blocking) {
  if (target.device().is_cpu() && on_device(source)) {
    if (non_blocking && limits().late_host_copies) {
      late_copies().add(target, source);
      return;
    }
    late_copies().finish();
  }
  cpu_alias(target).copy_(cpu_alias(source), non_blocking);
}

}  // namespace sim
