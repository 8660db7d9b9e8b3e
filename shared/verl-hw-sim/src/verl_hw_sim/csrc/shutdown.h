// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// The end of a process. Autograd runs a device's backward in a thread of its own, which may still be letting go of
// Python objects when the interpreter begins to finalize. Asking for the GIL ends such a thread, through a frame that
// must not be unwound: "terminate called without an active exception". A script whose last act is a backward meets
// that about one time in three, since the simulated device is so quick.
#pragma once

#include "runtime.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/graph_task.h>

#include <future>
#include <thread>

namespace sim {

inline std::atomic<bool>& backward_ran() {
  static std::atomic<bool> ran{false};
  return ran;
}

inline void note_backward() {
  if (!backward_ran().load(std::memory_order_relaxed) && torch::autograd::get_current_graph_task_id() != -1) {
    backward_ran() = true;
  }
}

// A backward without memory, without Python objects and without operators that a limit could deny.
inline void empty_backward(DeviceIndex ordinal) {
  const auto options = at::TensorOptions().device(Device(kDeviceType, ordinal)).dtype(at::kFloat);
  const auto leaf = at::empty({0}, options).requires_grad_();
  torch::autograd::backward({leaf.view({0})}, {at::empty({0}, options)});
}

// Wait until every device's thread is done with what it has: it works in order, so put an empty task at the end.
// Returns whether that took less than the limit; a backward that hangs in a collective must not keep the process.
inline bool drain_autograd_threads(double limit_seconds) {
  if (!backward_ran()) {
    return true;
  }
  auto done = std::make_shared<std::promise<void>>();
  auto drained = done->get_future();
  std::thread([done] {
    try {
      for (DeviceIndex ordinal = 0; ordinal < device_count(); ++ordinal) {
        empty_backward(ordinal);
      }
    } catch (const std::exception&) {
      // A forked child has no such threads, and autograd says so.
    }
    done->set_value();
  }).detach();
  return drained.wait_for(std::chrono::duration<double>(limit_seconds)) == std::future_status::ready;
}

}  // namespace sim
