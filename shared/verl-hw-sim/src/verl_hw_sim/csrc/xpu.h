// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// Only for the XPU key (Intel): its hooks, and the c10d operators that a build without XPU has no kernels for.
#pragma once

#include "hooks.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/detail/XPUHooksInterface.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace sim {

class XpuHooks final : public Hooks<at::XPUHooksInterface> {
 public:
  bool hasXPU() const override {
    return true;
  }
  std::string showConfig() const override {
    return "simulated XPU";
  }
  int32_t getGlobalIdxFromDevice(const Device& device) const override {
    check_ordinal(device.index());
    return visible_ids()[static_cast<size_t>(device.index())];
  }
  DeviceIndex getNumGPUs() const override {
    return sim::device_count();
  }
  DeviceIndex current_device() const override {
    return current_ordinal;
  }
  void deviceSynchronize(DeviceIndex) const override {
    late_copies().finish();
  }
};

// The hooks of a torch built without CUDA. torch refuses to have two accelerators, and a machine with Intel's has no
// CUDA build; where the simulator runs on one, it hides that.
class NoCudaHooks final : public at::CUDAHooksInterface {};

// Arguments of one boxed c10d call, by their names in the schema.
class C10dArguments {
 public:
  C10dArguments(const c10::FunctionSchema& schema, torch::jit::Stack* stack)
      : schema_(schema), stack_(stack), base_(stack->size() - schema.arguments().size()) {}

  c10::IValue& operator[](const std::string& name) const {
    const auto index = schema_.argumentIndexWithName(name);
    TORCH_CHECK(index.has_value(), schema_.name(), " has no argument ", name, " in this torch");
    return (*stack_)[base_ + static_cast<size_t>(*index)];
  }
  at::Tensor tensor(const std::string& name) const {
    return (*this)[name].toTensor();
  }
  std::vector<at::Tensor> tensors(const std::string& name) const {
    return (*this)[name].toTensorVector();
  }
  std::vector<std::vector<at::Tensor>> lists(const std::string& name) const {
    return (*this)[name].to<std::vector<std::vector<at::Tensor>>>();
  }
  int64_t integer(const std::string& name) const {
    return (*this)[name].toInt();
  }
  c10d::ReduceOp reduce_op() const {
    return *(*this)["reduce_op"].toCustomClass<c10d::ReduceOp>();
  }
  c10::intrusive_ptr<c10d::Backend> backend() const {
    return (*this)["process_group"].toCustomClass<c10d::ProcessGroup>()->getBackend(kDeviceType);
  }

 private:
  const c10::FunctionSchema& schema_;
  torch::jit::Stack* stack_;
  size_t base_;
};

using C10dCall = c10::intrusive_ptr<c10d::Work> (*)(const C10dArguments&);

struct C10dOperator {
  C10dCall call;
  std::string first_result;  // argument returned before the Work, or empty
};

inline const std::unordered_map<std::string, C10dOperator>& c10d_operators() {
  static const auto* table = new std::unordered_map<std::string, C10dOperator>{
      {"c10d::allreduce_",
       {[](const C10dArguments& args) {
          auto tensors = args.tensors("tensors");
          c10d::AllreduceOptions options;
          options.reduceOp = args.reduce_op();
          return args.backend()->allreduce(tensors, options);
        },
        "tensors"}},
      {"c10d::allreduce_coalesced_",
       {[](const C10dArguments& args) {
          auto tensors = args.tensors("tensors");
          c10d::AllreduceCoalescedOptions options;
          options.reduceOp = args.reduce_op();
          return args.backend()->allreduce_coalesced(tensors, options);
        },
        ""}},
      {"c10d::broadcast_",
       {[](const C10dArguments& args) {
          auto tensors = args.tensors("tensors");
          c10d::BroadcastOptions options;
          options.rootRank = args.integer("root_rank");
          options.rootTensor = args.integer("root_tensor");
          return args.backend()->broadcast(tensors, options);
        },
        "tensors"}},
      {"c10d::reduce_",
       {[](const C10dArguments& args) {
          auto tensors = args.tensors("tensors");
          c10d::ReduceOptions options;
          options.reduceOp = args.reduce_op();
          options.rootRank = args.integer("root_rank");
          options.rootTensor = args.integer("root_tensor");
          return args.backend()->reduce(tensors, options);
        },
        ""}},
      {"c10d::allgather_",
       {[](const C10dArguments& args) {
          auto outputs = args.lists("output_tensors");
          auto inputs = args.tensors("input_tensors");
          return args.backend()->allgather(outputs, inputs, {});
        },
        "output_tensors"}},
      {"c10d::_allgather_base_",
       {[](const C10dArguments& args) {
          auto output = args.tensor("output_tensor");
          auto input = args.tensor("input_tensor");
          return args.backend()->_allgather_base(output, input, {});
        },
        "output_tensor"}},
      {"c10d::allgather_into_tensor_coalesced_",
       {[](const C10dArguments& args) {
          auto outputs = args.tensors("outputs");
          auto inputs = args.tensors("inputs");
          return args.backend()->allgather_into_tensor_coalesced(outputs, inputs, {});
        },
        ""}},
      {"c10d::reduce_scatter_",
       {[](const C10dArguments& args) {
          auto outputs = args.tensors("output_tensors");
          auto inputs = args.lists("input_tensors");
          c10d::ReduceScatterOptions options;
          options.reduceOp = args.reduce_op();
          return args.backend()->reduce_scatter(outputs, inputs, options);
        },
        "output_tensors"}},
      {"c10d::_reduce_scatter_base_",
       {[](const C10dArguments& args) {
          auto output = args.tensor("output_tensor");
          auto input = args.tensor("input_tensor");
          c10d::ReduceScatterOptions options;
          options.reduceOp = args.reduce_op();
          return args.backend()->_reduce_scatter_base(output, input, options);
        },
        "output_tensor"}},
      {"c10d::reduce_scatter_tensor_coalesced_",
       {[](const C10dArguments& args) {
          auto outputs = args.tensors("outputs");
          auto inputs = args.tensors("inputs");
          c10d::ReduceScatterOptions options;
          options.reduceOp = args.reduce_op();
          return args.backend()->reduce_scatter_tensor_coalesced(outputs, inputs, options);
        },
        ""}},
      {"c10d::gather_",
       {[](const C10dArguments& args) {
          auto outputs = args.lists("output_tensors");
          auto inputs = args.tensors("input_tensors");
          c10d::GatherOptions options;
          options.rootRank = args.integer("root_rank");
          return args.backend()->gather(outputs, inputs, options);
        },
        ""}},
      {"c10d::scatter_",
       {[](const C10dArguments& args) {
          auto outputs = args.tensors("output_tensors");
          auto inputs = args.lists("input_tensors");
          c10d::ScatterOptions options;
          options.rootRank = args.integer("root_rank");
          return args.backend()->scatter(outputs, inputs, options);
        },
        "output_tensors"}},
      {"c10d::alltoall_",
       {[](const C10dArguments& args) {
          auto outputs = args.tensors("output_tensors");
          auto inputs = args.tensors("input_tensors");
          return args.backend()->alltoall(outputs, inputs, {});
        },
        "output_tensors"}},
      {"c10d::alltoall_base_",
       {[](const C10dArguments& args) {
          auto output = args.tensor("output");
          auto input = args.tensor("input");
          auto output_sizes = args["output_split_sizes"].toIntVector();
          auto input_sizes = args["input_split_sizes"].toIntVector();
          return args.backend()->alltoall_base(output, input, output_sizes, input_sizes, {});
        },
        ""}},
      {"c10d::send",
       {[](const C10dArguments& args) {
          auto tensors = args.tensors("tensors");
          return args.backend()->send(
              tensors, static_cast<int>(args.integer("dst")), static_cast<int>(args.integer("tag")));
        },
        ""}},
      {"c10d::recv_",
       {[](const C10dArguments& args) {
          auto tensors = args.tensors("tensors");
          return args.backend()->recv(
              tensors, static_cast<int>(args.integer("src")), static_cast<int>(args.integer("tag")));
        },
        ""}},
      {"c10d::recv_any_source_",
       {[](const C10dArguments& args) {
          auto tensors = args.tensors("tensors");
          return args.backend()->recvAnysource(tensors, static_cast<int>(args.integer("tag")));
        },
        ""}},
      {"c10d::barrier", {[](const C10dArguments& args) { return args.backend()->barrier({}); }, ""}},
  };
  return *table;
}

inline void c10d_kernel(const c10::OperatorHandle& op, DispatchKeySet, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const auto& known = c10d_operators().at(schema.name());
  const C10dArguments arguments(schema, stack);
  auto work = known.call(arguments);
  std::optional<c10::IValue> first;
  if (!known.first_result.empty()) {
    first = arguments[known.first_result];
  }
  torch::jit::drop(*stack, schema.arguments().size());
  if (first) {
    stack->push_back(std::move(*first));
  }
  stack->emplace_back(std::move(work));
}

TORCH_LIBRARY_IMPL(c10d, XPU, library) {
  for (const auto& [name, unused] : c10d_operators()) {
    library.impl(
        name.substr(name.rfind(':') + 1).c_str(), torch::CppFunction::makeFromBoxedFunction<&c10d_kernel>());
  }
}

}  // namespace sim
