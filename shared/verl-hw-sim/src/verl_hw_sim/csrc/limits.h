// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// Faults and limits that tests switch on. The Python half owns the names; see limits.py.
#pragma once

#include "common.h"

namespace sim {

struct Limits {
  std::atomic<bool> avg_rejected{false};
  std::atomic<bool> avg_wrong{false};
  std::atomic<bool> sum_wrong{false};
  std::atomic<bool> no_fp64{false};
  std::atomic<bool> late_host_copies{false};
  std::atomic<int64_t> memory_bytes{-1};  // per device; negative: no cap

  bool denied(const c10::OperatorName& op) const {
    if (!any_denied) {  // every operator comes through here
      return false;
    }
    std::lock_guard<std::mutex> guard(mutex);
    return denied_ops.count(op.name) != 0 || denied_ops.count(c10::toString(op)) != 0;
  }

  void deny(const std::vector<std::string>& names) {
    std::lock_guard<std::mutex> guard(mutex);
    denied_ops = {names.begin(), names.end()};
    any_denied = !denied_ops.empty();
  }

  bool hangs(const std::string& collective) const {
    std::lock_guard<std::mutex> guard(mutex);
    return hanging.count(collective) != 0;
  }

  mutable std::mutex mutex;
  std::atomic<bool> any_denied{false};
  std::unordered_set<std::string> denied_ops;  // "aten::topk" or "aten::topk.values"
  std::unordered_set<std::string> hanging;
};

inline Limits& limits() {
  static auto* value = new Limits();
  return *value;
}

inline void check_dtype(c10::ScalarType dtype) {
  TORCH_CHECK(
      !limits().no_fp64 || (dtype != at::kDouble && dtype != at::kComplexDouble),
      "Required aspect fp64 is not supported on the device (VERL_HW_SIM_LIMITS: no_fp64)");
}

// Largest AVG that the faulty small-tensor path of a real ccl divides twice.
constexpr int64_t kAvgWrongBelow = 64;

}  // namespace sim
