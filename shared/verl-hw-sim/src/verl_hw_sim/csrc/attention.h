// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// scaled_dot_product_attention on the XPU and CUDA keys: torch's choice of a fused kernel has no slot for them in a
// build without that backend, so take the math implementation.
#pragma once

#include "common.h"

#include <limits>

namespace sim {

inline at::Tensor scaled_dot_product_attention(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const std::optional<at::Tensor>& mask,
    double dropout,
    bool is_causal,
    std::optional<double> scale,
    bool enable_gqa) {
  auto additive_mask = mask;
  if (mask && mask->defined() && mask->scalar_type() == at::kBool) {
    additive_mask = at::zeros(mask->sizes(), query.options().requires_grad(false))
                        .masked_fill_(mask->logical_not(), -std::numeric_limits<double>::infinity());
  }
  return std::get<0>(at::_scaled_dot_product_attention_math(
      query, key, value, additive_mask, dropout, is_causal, /*dropout_mask=*/std::nullopt, scale, enable_gqa));
}

TORCH_LIBRARY_IMPL(aten, SIM_DISPATCH_KEY, library) {
  library.impl("scaled_dot_product_attention", scaled_dot_product_attention);
}

TORCH_LIBRARY_IMPL(aten, SIM_AUTOGRAD_KEY, library) {
  library.impl("scaled_dot_product_attention", scaled_dot_product_attention);
}

}  // namespace sim
