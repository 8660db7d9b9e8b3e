// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// The vendor's collective library: gloo on CPU aliases of the tensors, with the limits of a real one.
// A collective is complete when its call returns; point-to-point transfers are asynchronous.
#pragma once

#include "work.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <thread>

namespace sim {

class CollectiveBackend final : public c10d::Backend {
 public:
  CollectiveBackend(c10::intrusive_ptr<c10d::Backend> gloo, std::string name, std::chrono::milliseconds timeout)
      : c10d::Backend(gloo->getRank(), gloo->getSize()),
        gloo_(std::move(gloo)),
        name_(std::move(name)),
        timeout_(timeout) {}

  const std::string getBackendName() const override {
    return name_;
  }
#if SIM_TORCH_HAS_BACKEND_TIMEOUT
  void setTimeout(std::chrono::milliseconds timeout) override {
    timeout_ = timeout;
    gloo_->setTimeout(timeout);
  }
#endif
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override {
    return sequence_;
  }

  WorkPtr broadcast(TensorList& tensors, const c10d::BroadcastOptions& options) override {
    begin("broadcast");
    auto aliases = alias(tensors);
    gloo_->broadcast(aliases, options)->wait();
    return done(c10d::OpType::BROADCAST, tensors);
  }

  WorkPtr allreduce(TensorList& tensors, const c10d::AllreduceOptions& options) override {
    begin("all_reduce");
    auto aliases = alias(tensors);
    auto gloo_options = options;
    const auto reduction = prepare(gloo_options.reduceOp);
    for (const auto& tensor : aliases) {
      spoil_sum_input(tensor, reduction);
    }
    gloo_->allreduce(aliases, gloo_options)->wait();
    finish_average(aliases, reduction);
    return done(c10d::OpType::ALLREDUCE, tensors);
  }

  WorkPtr allreduce_coalesced(TensorList& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    for (const auto& tensor : tensors) {
      TensorList one{tensor};
      c10d::AllreduceOptions one_options;
      one_options.reduceOp = options.reduceOp;
      allreduce(one, one_options);
    }
    return done(c10d::OpType::ALLREDUCE_COALESCED, tensors);
  }

  WorkPtr reduce(TensorList& tensors, const c10d::ReduceOptions& options) override {
    begin("reduce");
    auto aliases = alias(tensors);
    auto gloo_options = options;
    const auto reduction = prepare(gloo_options.reduceOp);
    // gloo uses every rank's tensor as scratch space; a real ccl writes the root's only.
    const bool is_root = options.rootRank == rank_;
    TensorList scratch;
    for (const auto& tensor : aliases) {
      scratch.push_back(is_root ? tensor : tensor.clone());
      spoil_sum_input(scratch.back(), reduction);
    }
    gloo_->reduce(scratch, gloo_options)->wait();
    if (is_root) {
      finish_average(aliases, reduction);
    }
    return done(c10d::OpType::REDUCE, tensors);
  }

  WorkPtr allgather(
      std::vector<TensorList>& outputs, TensorList& inputs, const c10d::AllgatherOptions& options) override {
    begin("all_gather");
    auto output_aliases = alias(outputs);
    auto input_aliases = alias(inputs);
    gloo_->allgather(output_aliases, input_aliases, options)->wait();
    return done(c10d::OpType::ALLGATHER, outputs.empty() ? TensorList{} : outputs[0]);
  }

  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override {
    begin("all_gather_into_tensor");
    auto output_alias = alias(output);
    auto input_alias = alias(input);
    gloo_->_allgather_base(output_alias, input_alias, options)->wait();
    return done(c10d::OpType::_ALLGATHER_BASE, {output});
  }

  WorkPtr allgather_into_tensor_coalesced(
      TensorList& outputs, TensorList& inputs, const c10d::AllgatherOptions& options) override {
    for (size_t i = 0; i < outputs.size(); ++i) {
      _allgather_base(outputs[i], inputs[i], options);
    }
    return done(c10d::OpType::COALESCED, outputs);
  }

  WorkPtr gather(std::vector<TensorList>& outputs, TensorList& inputs, const c10d::GatherOptions& options) override {
    begin("gather");
    auto output_aliases = alias(outputs);
    auto input_aliases = alias(inputs);
    gloo_->gather(output_aliases, input_aliases, options)->wait();
    return done(c10d::OpType::GATHER, outputs.empty() ? TensorList{} : outputs[0]);
  }

  WorkPtr scatter(TensorList& outputs, std::vector<TensorList>& inputs, const c10d::ScatterOptions& options) override {
    begin("scatter");
    auto output_aliases = alias(outputs);
    auto input_aliases = alias(inputs);
    gloo_->scatter(output_aliases, input_aliases, options)->wait();
    return done(c10d::OpType::SCATTER, outputs);
  }

  WorkPtr reduce_scatter(
      TensorList& outputs, std::vector<TensorList>& inputs, const c10d::ReduceScatterOptions& options) override {
    begin("reduce_scatter");
    auto output_aliases = alias(outputs);
    auto input_aliases = alias(inputs);
    auto gloo_options = options;
    const auto reduction = prepare(gloo_options.reduceOp);
    for (auto& list : input_aliases) {
      for (auto& tensor : list) {
        tensor = spoiled_copy(tensor, reduction);
      }
    }
    gloo_->reduce_scatter(output_aliases, input_aliases, gloo_options)->wait();
    finish_average(output_aliases, reduction);
    return done(c10d::OpType::REDUCE_SCATTER, outputs);
  }

  WorkPtr _reduce_scatter_base(
      at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override {
    begin("reduce_scatter_tensor");
    TensorList output_alias{alias(output)};
    auto gloo_options = options;
    const auto reduction = prepare(gloo_options.reduceOp);
    auto input_alias = spoiled_copy(alias(input), reduction);
    gloo_->_reduce_scatter_base(output_alias[0], input_alias, gloo_options)->wait();
    finish_average(output_alias, reduction);
    return done(c10d::OpType::_REDUCE_SCATTER_BASE, {output});
  }

  WorkPtr reduce_scatter_tensor_coalesced(
      TensorList& outputs, TensorList& inputs, const c10d::ReduceScatterOptions& options) override {
    for (size_t i = 0; i < outputs.size(); ++i) {
      _reduce_scatter_base(outputs[i], inputs[i], options);
    }
    return done(c10d::OpType::COALESCED, outputs);
  }

  WorkPtr alltoall_base(
      at::Tensor& output,
      at::Tensor& input,
      std::vector<int64_t>& output_sizes,
      std::vector<int64_t>& input_sizes,
      const c10d::AllToAllOptions& options) override {
    begin("all_to_all_single");
    auto output_alias = alias(output);
    auto input_alias = alias(input);
    gloo_->alltoall_base(output_alias, input_alias, output_sizes, input_sizes, options)->wait();
    return done(c10d::OpType::ALLTOALL_BASE, {output});
  }

  // gloo has no all-to-all of lists: send and receive.
  WorkPtr alltoall(TensorList& outputs, TensorList& inputs, const c10d::AllToAllOptions&) override {
    begin("all_to_all");
    const auto output_aliases = alias(outputs);
    const auto input_aliases = alias(inputs);
    std::vector<WorkPtr> transfers;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) {
        output_aliases[peer].copy_(input_aliases[peer]);
        continue;
      }
      TensorList outgoing{input_aliases[peer].contiguous()};
      transfers.push_back(send_aliases(std::move(outgoing), peer, kAllToAllTag));
    }
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) {
        TensorList incoming{output_aliases[peer]};
        auto work = gloo_->recv(incoming, peer, kAllToAllTag);
        transfers.push_back(c10::make_intrusive<TransferWork>(std::move(work), std::move(incoming)));
      }
    }
    for (const auto& transfer : transfers) {
      transfer->wait();
    }
    return done(c10d::OpType::ALLTOALL, outputs);
  }

  WorkPtr send(TensorList& tensors, int destination, int tag) override {
    begin("send");
    return send_aliases(alias(tensors), destination, tag);
  }

  WorkPtr recv(TensorList& tensors, int source, int tag) override {
    begin("recv");
    auto aliases = alias(tensors);
    auto work = gloo_->recv(aliases, source, tag);
    return c10::make_intrusive<TransferWork>(std::move(work), std::move(aliases));
  }

  WorkPtr recvAnysource(TensorList& tensors, int tag) override {
    begin("recv");
    auto aliases = alias(tensors);
    auto work = gloo_->recvAnysource(aliases, tag);
    return c10::make_intrusive<TransferWork>(std::move(work), std::move(aliases));
  }

  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    begin("barrier");
    gloo_->barrier(options)->wait();
    return done(c10d::OpType::BARRIER, {});
  }

 private:
  static constexpr int kAllToAllTag = 0x5157;  // away from the tags that users pick

  enum class Reduction { kSum, kAverage, kOther };

  void begin(const std::string& collective) {
    ++sequence_;
    const auto start = std::chrono::steady_clock::now();
    while (limits().hangs(collective)) {
      TORCH_CHECK_WITH(
          DistBackendError, std::chrono::steady_clock::now() - start < timeout_, name_, ": ", collective,
          " timed out after ", timeout_.count(), " ms (VERL_HW_SIM_LIMITS: hang=", collective, ")");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  WorkPtr done(c10d::OpType type, TensorList outputs) const {
    return c10::make_intrusive<CompletedWork>(rank_, type, std::move(outputs));
  }

  WorkPtr send_aliases(TensorList aliases, int destination, int tag) {
    auto work = gloo_->send(aliases, destination, tag);
    return c10::make_intrusive<TransferWork>(std::move(work), std::move(aliases));
  }

  at::Tensor alias(const at::Tensor& tensor) const {
    TORCH_CHECK(
        on_device(tensor), name_, ": needs tensors on ", Device(kDeviceType), ", got one on ", tensor.device());
    return cpu_alias(tensor);
  }
  TensorList alias(const TensorList& tensors) const {
    TensorList aliases;
    aliases.reserve(tensors.size());
    for (const auto& tensor : tensors) {
      aliases.push_back(alias(tensor));
    }
    return aliases;
  }
  std::vector<TensorList> alias(const std::vector<TensorList>& lists) const {
    std::vector<TensorList> aliases;
    aliases.reserve(lists.size());
    for (const auto& list : lists) {
      aliases.push_back(alias(list));
    }
    return aliases;
  }

  // gloo has no AVG: it becomes SUM here, and finish_average divides.
  Reduction prepare(c10d::ReduceOp& op) const {
    TORCH_CHECK(op != c10d::ReduceOp::PREMUL_SUM, name_, ": ReduceOp.PREMUL_SUM is not supported");
    if (op == c10d::ReduceOp::AVG) {
      TORCH_CHECK(!limits().avg_rejected, name_, ": ReduceOp.AVG is not supported (VERL_HW_SIM_LIMITS: avg_rejected)");
      op = c10d::ReduceOp::SUM;
      return Reduction::kAverage;
    }
    return op == c10d::ReduceOp::SUM ? Reduction::kSum : Reduction::kOther;
  }

  void finish_average(const TensorList& aliases, Reduction reduction) const {
    if (reduction != Reduction::kAverage) {
      return;
    }
    for (const auto& tensor : aliases) {
      const int times = limits().avg_wrong && tensor.numel() < kAvgWrongBelow ? 2 : 1;
      for (int i = 0; i < times; ++i) {
        if (at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false)) {
          tensor.copy_(tensor.div(size_, "trunc"));
        } else {
          tensor.div_(size_);
        }
      }
    }
  }

  bool spoils_sum(Reduction reduction) const {
    return limits().sum_wrong && reduction == Reduction::kSum && rank_ == 0;
  }
  void spoil_sum_input(const at::Tensor& tensor, Reduction reduction) const {
    if (spoils_sum(reduction)) {
      tensor.mul_(2);
    }
  }
  at::Tensor spoiled_copy(const at::Tensor& tensor, Reduction reduction) const {
    return spoils_sum(reduction) ? tensor.mul(2) : tensor;
  }

  c10::intrusive_ptr<c10d::Backend> gloo_;
  std::string name_;
  std::chrono::milliseconds timeout_;
  std::atomic<uint64_t> sequence_{0};
};

}  // namespace sim
