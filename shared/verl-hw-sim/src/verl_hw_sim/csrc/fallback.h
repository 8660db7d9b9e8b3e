// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel behind almost every operator: run the CPU kernel on aliases of the arguments, re-tag what it returns.
#pragma once

#include "alias.h"
#include "generator.h"
#include "shutdown.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace sim {

// One call in flight: the device arguments with their CPU aliases, and the device the results belong to.
class AliasedCall {
 public:
  explicit AliasedCall(const c10::FunctionSchema& schema) : schema_(schema) {}

  // Factories name their device; it decides where the results go.
  void take_device(c10::IValue& value) {
    if (value.isDevice() && value.toDevice().type() == kDeviceType) {
      const auto ordinal = resolve_ordinal(value.toDevice().index());
      check_ordinal(ordinal);
      target_ = Device(kDeviceType, ordinal);
      value = c10::IValue(Device(DeviceType::CPU));
    }
  }

  void alias_argument(c10::IValue& value) {
    if (value.isTensor()) {
      value = c10::IValue(alias(value.toTensor()));
    } else if (value.isTensorList()) {
      const auto tensors = value.toTensorList();
      c10::List<at::Tensor> aliases;
      aliases.reserve(tensors.size());
      for (size_t i = 0; i < tensors.size(); ++i) {
        aliases.push_back(alias(tensors.get(i)));
      }
      value = c10::IValue(std::move(aliases));
    } else if (value.isOptionalTensorList()) {
      const auto tensors = value.toOptionalTensorList();
      c10::List<std::optional<at::Tensor>> aliases;
      aliases.reserve(tensors.size());
      for (size_t i = 0; i < tensors.size(); ++i) {
        std::optional<at::Tensor> tensor = tensors.get(i);
        aliases.push_back(tensor ? std::make_optional(alias(*tensor)) : std::nullopt);
      }
      value = c10::IValue(std::move(aliases));
    }
  }

  DeviceIndex ordinal() const {
    return target_ ? target_->index() : current_ordinal;
  }

  // The CPU kernel may have resized an output: carry its new memory and shape over to the device tensor.
  void carry_over_resizes() {
    for (const auto& pair : pairs_) {
      auto* cpu_storage = storage_of(pair.cpu);
      auto* device_storage = storage_of(pair.device);
      if (cpu_storage->data() != device_storage->data()) {
        const auto bytes = cpu_storage->nbytes();
        auto memory = cpu_storage->set_data_ptr(c10::DataPtr(nullptr, Device(DeviceType::CPU)));
        void* address = memory.get();
        device_storage->set_data_ptr_noswap(
            adopt(std::move(memory), static_cast<int64_t>(bytes), pair.device.device().index()));
        device_storage->set_nbytes(bytes);
        // The alias may be returned as well: it goes on seeing the memory it no longer owns.
        cpu_storage->set_data_ptr_noswap(c10::DataPtr(address, Device(DeviceType::CPU)));
      }
      const bool same_shape = pair.cpu.sizes() == pair.device.sizes() &&
          pair.cpu.strides() == pair.device.strides() && pair.cpu.storage_offset() == pair.device.storage_offset();
      if (!same_shape) {
        pair.device.unsafeGetTensorImpl()->set_sizes_and_strides(
            pair.cpu.sizes(), pair.cpu.strides(), pair.cpu.storage_offset());
      }
    }
  }

  void return_to_device(c10::IValue& value) const {
    if (value.isTensor()) {
      value = c10::IValue(to_device(value.toTensor()));
    } else if (value.isTensorList()) {
      const auto tensors = value.toTensorList();
      c10::List<at::Tensor> results;
      results.reserve(tensors.size());
      for (size_t i = 0; i < tensors.size(); ++i) {
        results.push_back(to_device(tensors.get(i)));
      }
      value = c10::IValue(std::move(results));
    }
  }

 private:
  struct Pair {
    at::Tensor device;
    at::Tensor cpu;
  };

  // Operators whose index arguments may live on the CPU, on real devices too.
  bool takes_cpu_indices() const {
    static const std::unordered_set<std::string> names = {
        "aten::index",         "aten::index_put",         "aten::index_put_",   "aten::_index_put_impl_",
        "aten::_unsafe_index", "aten::_unsafe_index_put", "aten::tensor_split", "aten::_pad_packed_sequence",
    };
    return names.count(schema_.name()) != 0;
  }

  at::Tensor alias(const at::Tensor& tensor) {
    if (!on_device(tensor)) {
      TORCH_CHECK(
          !tensor.defined() || !tensor.device().is_cpu() || tensor.dim() == 0 || takes_cpu_indices(),
          "Expected all tensors to be on the same device, but found a CPU tensor of ", tensor.dim(),
          " dimension(s) among tensors on ", Device(kDeviceType, ordinal()), " in a call to ", schema_.name());
      return tensor;
    }
    if (!target_) {
      target_ = tensor.device();
    }
    TORCH_CHECK(
        *target_ == tensor.device(), "Expected all tensors to be on the same device, but found at least two devices, ",
        *target_, " and ", tensor.device(), "! (in a call to ", schema_.name(), ")");
    for (const auto& pair : pairs_) {
      if (pair.device.is_same(tensor)) {
        return pair.cpu;
      }
    }
    auto cpu = cpu_alias(tensor);
    pairs_.push_back({tensor, cpu});
    return cpu;
  }

  at::Tensor to_device(const at::Tensor& tensor) const {
    if (!tensor.defined() || !tensor.device().is_cpu()) {
      return tensor;
    }
    for (const auto& pair : pairs_) {
      if (pair.cpu.is_same(tensor)) {
        return pair.device;
      }
    }
    if (tensor.has_storage()) {
      for (const auto& pair : pairs_) {
        if (storage_of(pair.cpu) == storage_of(tensor)) {
          // A view of an argument: share the argument's storage.
          return device_tensor(
              c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage_of(pair.device))), tensor);
        }
      }
    }
    return to_device_memory(tensor, ordinal());
  }

  const c10::FunctionSchema& schema_;
  std::optional<Device> target_;
  std::vector<Pair> pairs_;
};

inline void check_not_denied(const c10::OperatorName& op) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !limits().denied(op), "Could not run '", c10::toString(op), "' on the simulated ", runtime_config().vendor,
      " device: VERL_HW_SIM_LIMITS denies it");
}

// Give the call the device's generator; true when the operator has a generator argument.
inline bool pass_generator(const c10::FunctionSchema& schema, torch::jit::Stack* stack, DeviceIndex ordinal) {
  const auto base = stack->size() - schema.arguments().size();
  bool found = false;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    if (schema.arguments()[i].name() != "generator") {
      continue;
    }
    found = true;
    auto& value = (*stack)[base + i];
    const at::Generator generator = value.isNone() ? default_generator(ordinal) : value.toGenerator();
    TORCH_CHECK(
        generator.device().type() == kDeviceType, "Expected a '", Device(kDeviceType),
        "' device type for generator but found '", generator.device().type(), "'");
    value = c10::IValue(static_cast<Generator*>(generator.unsafeGetGeneratorImpl())->engine);
  }
  return found;
}

inline void cpu_fallback(const c10::OperatorHandle& op, DispatchKeySet, torch::jit::Stack* stack) {
  check_not_denied(op.operator_name());
  note_backward();
  const auto& schema = op.schema();
  const auto argument_count = schema.arguments().size();
  const auto base = stack->size() - argument_count;

  AliasedCall call(schema);
  for (size_t i = 0; i < argument_count; ++i) {
    call.take_device((*stack)[base + i]);
  }
  for (size_t i = 0; i < argument_count; ++i) {
    call.alias_argument((*stack)[base + i]);
  }
  const bool has_generator = pass_generator(schema, stack, call.ordinal());
  {
    std::optional<LendEngineToCpu> lend;
    if (!has_generator && op.hasTag(at::Tag::nondeterministic_seeded)) {
      lend.emplace(default_generator(call.ordinal()));
    }
    op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), stack);
  }
  call.carry_over_resizes();
  const auto results = stack->size() - schema.returns().size();
  for (size_t i = results; i < stack->size(); ++i) {
    call.return_to_device((*stack)[i]);
  }
}

// Operators that prefer_cpu_kernels sent to the fallback.
inline std::unordered_set<std::string>& preferred_operators() {
  static auto* names = new std::unordered_set<std::string>();
  return *names;
}

// A new key takes an operator's CompositeExplicit decomposition even where the CPU has its own kernel. Send those
// operators to the CPU kernel as well: results are then bit-identical to a run on the CPU.
inline void prefer_cpu_kernels() {
  // Never destroyed: at exit the dispatcher may already be gone.
  auto& library = *new torch::Library(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) {
      continue;
    }
    const auto op = dispatcher.findOp(name);
    if (!op || !op->hasSchema() || op->hasKernelForDispatchKey(kKey) ||
        !op->hasKernelForDispatchKey(DispatchKey::CPU)) {
      continue;
    }
    if (op->hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
        op->hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional)) {
      library.impl(
          c10::toString(name).substr(6).c_str(), torch::CppFunction::makeFromBoxedFunction<&cpu_fallback>());
      preferred_operators().insert(c10::toString(name));
    }
  }
}

inline void denied_kernel(const c10::OperatorHandle& op, DispatchKeySet, torch::jit::Stack*) {
  check_not_denied(op.operator_name());
}

// Deny operators ("aten::topk" or "aten::topk.values"); replaces the previous list. Operators that never reach the
// fallback (composite ones, ours in native_ops.h) get a kernel of their own while they are denied.
inline void deny_operators(const std::vector<std::string>& names) {
  static auto* libraries = new std::vector<std::unique_ptr<torch::Library>>();
  libraries->clear();
  limits().deny(names);
  if (names.empty()) {
    return;
  }
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (!limits().denied(name)) {
      continue;
    }
    const auto op = dispatcher.findOp(name);
    if (!op || !op->hasSchema() || preferred_operators().count(c10::toString(name)) != 0) {
      continue;
    }
    if (op->hasKernelForDispatchKey(kKey) || !op->hasKernelForDispatchKey(DispatchKey::CPU)) {
      auto library = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
      library->impl(
          c10::toString(name).substr(6).c_str(), torch::CppFunction::makeFromBoxedFunction<&denied_kernel>());
      libraries->push_back(std::move(library));
    }
  }
}

inline std::vector<std::string> unknown_operators(const std::vector<std::string>& names) {
  std::unordered_set<std::string> known;
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.rfind("aten::", 0) == 0) {
      known.insert(name.name);
      known.insert(c10::toString(name));
    }
  }
  std::vector<std::string> unknown;
  for (const auto& name : names) {
    if (known.count(name) == 0) {
      unknown.push_back(name);
    }
  }
  return unknown;
}

TORCH_LIBRARY_IMPL(_, SIM_DISPATCH_KEY, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&cpu_fallback>());
}

}  // namespace sim
