// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax(half, dtype=float) is one operator on a CUDA device (half_to_float), and two on the CPU, whose kernel refuses
// the first form. Here it is done as on the CPU.
#pragma once

#include "alias.h"

#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>

namespace sim {

inline at::Tensor softmax(const at::Tensor& self, int64_t dim, bool half_to_float) {
  const auto input = cpu_alias(self);
  const auto result = at::_softmax(half_to_float ? input.to(at::kFloat) : input, dim, false);
  return to_device_memory(result, self.device().index());
}

inline at::Tensor log_softmax(const at::Tensor& self, int64_t dim, bool half_to_float) {
  const auto input = cpu_alias(self);
  const auto result = at::_log_softmax(half_to_float ? input.to(at::kFloat) : input, dim, false);
  return to_device_memory(result, self.device().index());
}

inline at::Tensor softmax_backward(
    const at::Tensor& grad, const at::Tensor& output, int64_t dim, at::ScalarType input_dtype) {
  const auto result =
      at::_softmax_backward_data(cpu_alias(grad), cpu_alias(output), dim, grad.scalar_type()).to(input_dtype);
  return to_device_memory(result, grad.device().index());
}

inline at::Tensor log_softmax_backward(
    const at::Tensor& grad, const at::Tensor& output, int64_t dim, at::ScalarType input_dtype) {
  const auto result =
      at::_log_softmax_backward_data(cpu_alias(grad), cpu_alias(output), dim, grad.scalar_type()).to(input_dtype);
  return to_device_memory(result, grad.device().index());
}

TORCH_LIBRARY_IMPL(aten, SIM_DISPATCH_KEY, library) {
  library.impl("_softmax", softmax);
  library.impl("_log_softmax", log_softmax);
  library.impl("_softmax_backward_data", softmax_backward);
  library.impl("_log_softmax_backward_data", log_softmax_backward);
}

}  // namespace sim
