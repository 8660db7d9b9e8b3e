// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// What autograd lacks for PrivateUse1. Most of it is `parameter.data = parameter.to(device)`, as FSDP1 does: torch allows
// that between the CPU and the devices it knows, and has no bit for PrivateUse1
// (TensorImpl::has_compatible_shallow_copy_type). Wrap the hook that asks.
#pragma once

#include "common.h"

#include <ATen/core/VariableHooksInterface.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/variable.h>

namespace sim {

class SetDataHooks final : public at::impl::VariableHooksInterface {
 public:
  using Base = at::TensorBase;
  using Interface = at::impl::VariableHooksInterface;

  explicit SetDataHooks(Interface* torch_hooks) : torch_(torch_hooks) {}

  void set_data(const Base& self, const Base& data) const override {
    if (!plain(self) || !plain(data) || self.device().type() == data.device().type()) {
      torch_->set_data(self, data);
      return;
    }
    TORCH_CHECK(
        !self.requires_grad() || at::isFloatingType(data.scalar_type()) || at::isComplexType(data.scalar_type()),
        "data set to a tensor that requires gradients must be floating point or complex dtype");
    if (auto* meta = torch::autograd::impl::get_autograd_meta(self)) {
      // The accumulator remembers the old device.
      std::lock_guard<std::mutex> guard(meta->mutex_);
      if (meta->grad_accumulator_.lock()) {
        meta->grad_accumulator_.reset();
      }
    }
    self.unsafeGetTensorImpl()->shallow_copy_from(data.getIntrusivePtr());
  }

  Base tensor_data(const Base& self) const override {
    return torch_->tensor_data(self);
  }
  Base variable_data(const Base& self) const override {
    return torch_->variable_data(self);
  }
  // The return type differs between torch versions; take it from the interface.
  auto grad_fn(const Base& self) const -> decltype(std::declval<Interface>().grad_fn(self)) override {
    return torch_->grad_fn(self);
  }
  unsigned _register_hook(const Base& self, std::function<Base(const Base&)> hook) const override {
    return torch_->_register_hook(self, std::move(hook));
  }
  void remove_hook(const Base& self, unsigned position) const override {
    torch_->remove_hook(self, position);
  }
  bool is_view(const Base& self) const override {
    return torch_->is_view(self);
  }
  const Base& base(const Base& self) const override {
    return torch_->base(self);
  }
  const std::string& name(const Base& self) const override {
    return torch_->name(self);
  }
  bool is_leaf(const Base& self) const override {
    return torch_->is_leaf(self);
  }
  int64_t output_nr(const Base& self) const override {
    return torch_->output_nr(self);
  }
  Base data(const Base& self) const override {
    return torch_->data(self);
  }
  int64_t _version(const Base& self) const override {
    return torch_->_version(self);
  }
  void retain_grad(const Base& self) const override {
    torch_->retain_grad(self);
  }
  bool retains_grad(const Base& self) const override {
    return torch_->retains_grad(self);
  }
  void _backward(
      const at::Tensor& self,
      at::TensorList inputs,
      const std::optional<at::Tensor>& gradient,
      std::optional<bool> keep_graph,
      bool create_graph) const override {
    torch_->_backward(self, inputs, gradient, keep_graph, create_graph);
  }
  void requires_grad_(const Base& self, bool requires_grad) const override {
    torch_->requires_grad_(self, requires_grad);
  }
  void basic_autograd_not_implemented_fallback(
      const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) const override {
    torch_->basic_autograd_not_implemented_fallback(op, keys, stack);
  }
#if SIM_TORCH_HAS_GRAD_DTYPE
  std::optional<c10::ScalarType> grad_dtype(const Base& self) const override {
    return torch_->grad_dtype(self);
  }
  void set_grad_dtype(const Base& self, const std::optional<c10::ScalarType>& dtype) const override {
    torch_->set_grad_dtype(self, dtype);
  }
#endif

 private:
  static bool plain(const Base& tensor) {
    return tensor.defined() && tensor.layout() == at::kStrided &&
        (tensor.device().type() == kDeviceType || tensor.device().is_cpu()) &&
        !tensor.key_set().has(DispatchKey::Python);
  }

  Interface* torch_;
};

inline void install_set_data_hook() {
  // torch keeps the pointer for the life of the process.
  at::impl::SetVariableHooks(new SetDataHooks(at::impl::GetVariableHooks()));
}

#if !SIM_TORCH_HAS_PRIVATEUSE1_AUTOGRAD_FALLBACK
TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, library) {
  library.fallback(torch::autograd::basicAutogradNotImplementedFallback());
}
#endif

}  // namespace sim
