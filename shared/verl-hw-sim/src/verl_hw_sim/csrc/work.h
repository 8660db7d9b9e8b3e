// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// What a collective returns.
#pragma once

#include "alias.h"

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace sim {

using TensorList = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// A collective that is done; its future carries the outputs, as DDP's hooks expect.
class CompletedWork final : public c10d::Work {
 public:
  CompletedWork(int rank, c10d::OpType type, TensorList outputs) : c10d::Work(rank, type), outputs_(std::move(outputs)) {
    std::vector<Device> devices;
    for (const auto& output : outputs_) {
      if (std::find(devices.begin(), devices.end(), output.device()) == devices.end()) {
        devices.push_back(output.device());
      }
    }
    future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()), devices);
    future_->markCompleted(c10::IValue(outputs_));
    finish();
  }
  bool isCompleted() override {
    return true;
  }
  bool isSuccess() const override {
    return true;
  }
  bool wait(std::chrono::milliseconds) override {
    return true;
  }
  void synchronize() override {}
  TensorList result() override {
    return outputs_;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    return future_;
  }

 private:
  TensorList outputs_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// A transfer in flight: keeps the aliases alive until gloo is done with them.
class TransferWork final : public c10d::Work {
 public:
  TransferWork(WorkPtr transfer, TensorList aliases) : transfer_(std::move(transfer)), aliases_(std::move(aliases)) {}
  bool isCompleted() override {
    return transfer_->isCompleted();
  }
  bool isSuccess() const override {
    return transfer_->isSuccess();
  }
  std::exception_ptr exception() const override {
    return transfer_->exception();
  }
  bool wait(std::chrono::milliseconds timeout) override {
    return transfer_->wait(timeout);
  }
  void synchronize() override {
    transfer_->synchronize();
  }
  int sourceRank() const override {
    return transfer_->sourceRank();
  }

 private:
  WorkPtr transfer_;
  TensorList aliases_;
};

}  // namespace sim
