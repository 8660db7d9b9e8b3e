// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// scaled_dot_product_attention. torch picks a fused kernel by device type and has none for ours; make the choice that
// it makes for the CPU, so that results are bit-identical to a run there.
#pragma once

#include "fallback.h"

#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>

#include <limits>

namespace sim {

inline bool takes_cpu_flash_attention(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const std::optional<at::Tensor>& mask,
    double dropout,
    bool is_causal,
    std::optional<double> scale,
    bool enable_gqa) {
  if (at::areAnyTensorSubclassLike({query, key, value})) {
    return false;  // no memory to alias, as while torch.compile traces
  }
  std::optional<at::Tensor> cpu_mask;
  if (mask && mask->defined()) {
    cpu_mask = cpu_alias(*mask);
  }
  const auto choice = at::_fused_sdp_choice(
      cpu_alias(query), cpu_alias(key), cpu_alias(value), cpu_mask, dropout, is_causal, scale, enable_gqa);
  return choice == static_cast<int64_t>(sdp::SDPBackend::flash_attention);
}

inline at::Tensor scaled_dot_product_attention(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const std::optional<at::Tensor>& mask,
    double dropout,
    bool is_causal,
    std::optional<double> scale,
    bool enable_gqa) {
  // The autograd key comes here directly, past the kernel that deny_operators would put in the way.
  static const c10::OperatorName name("aten::scaled_dot_product_attention", "");
  check_not_denied(name);
  auto additive_mask = mask;
  if (mask && mask->defined() && mask->scalar_type() == at::kBool) {
    additive_mask = at::zeros(mask->sizes(), query.options().requires_grad(false))
                        .masked_fill_(mask->logical_not(), -std::numeric_limits<double>::infinity());
  }
  if (takes_cpu_flash_attention(query, key, value, mask, dropout, is_causal, scale, enable_gqa)) {
    return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
        query, key, value, dropout, is_causal, additive_mask, scale));
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
