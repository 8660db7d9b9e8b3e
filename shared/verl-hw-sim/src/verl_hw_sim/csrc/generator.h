// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// Random numbers: each device has its own CPU engine, so a seeded device draws what a seeded CPU would draw,
// and drawing on the device leaves the CPU's own generator alone.
#pragma once

#include "runtime.h"

#include <ATen/CPUGeneratorImpl.h>

namespace sim {

// torch locks the generator's own mutex, CPU kernels lock the engine's: take the engine's here.
class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(DeviceIndex ordinal)
      : c10::GeneratorImpl(Device(kDeviceType, ordinal), DispatchKeySet(kKey)),
        engine(at::detail::createCPUGenerator()) {}

  void set_current_seed(uint64_t seed) override {
    std::lock_guard<std::mutex> guard(engine.mutex());
    engine.set_current_seed(seed);
  }
  uint64_t current_seed() const override {
    std::lock_guard<std::mutex> guard(engine.mutex());
    return engine.current_seed();
  }
  uint64_t seed() override {
    std::lock_guard<std::mutex> guard(engine.mutex());
    return engine.seed();
  }
  // The engine has no offset; torch asks for one when it checkpoints a generator.
  void set_offset(uint64_t) override {}
  uint64_t get_offset() const override {
    return 0;
  }
  void set_state(const c10::TensorImpl& state) override {
    std::lock_guard<std::mutex> guard(engine.mutex());
    engine.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    std::lock_guard<std::mutex> guard(engine.mutex());
    return engine.unsafeGetGeneratorImpl()->get_state();
  }

  mutable at::Generator engine;

 private:
  Generator* clone_impl() const override {
    auto copy = std::make_unique<Generator>(device_.index());
    std::lock_guard<std::mutex> guard(engine.mutex());
    copy->engine = engine.clone();
    return copy.release();
  }
};

// Seeds given before the default generators exist wait here: to make those is to start the runtime, and seeding must
// not freeze the visibility mask.
struct PendingSeeds {
  std::mutex mutex;
  bool closed = false;  // the generators exist: seed them directly
  std::vector<std::pair<std::optional<DeviceIndex>, uint64_t>> seeds;  // no ordinal: every device
};

inline PendingSeeds& pending_seeds() {
  static auto* value = new PendingSeeds();
  return *value;
}

inline const std::vector<at::Generator>& default_generators() {
  static const auto* all = [] {
    auto* made = new std::vector<at::Generator>();
    for (DeviceIndex ordinal = 0; ordinal < device_count(); ++ordinal) {
      made->push_back(at::make_generator<Generator>(ordinal));
    }
    auto& pending = pending_seeds();
    std::lock_guard<std::mutex> guard(pending.mutex);
    for (const auto& [only, seed] : pending.seeds) {
      for (auto& generator : *made) {
        if (!only || *only == generator.device().index()) {
          generator.set_current_seed(seed);
        }
      }
    }
    pending.closed = true;
    return made;
  }();
  return *all;
}

inline const at::Generator& default_generator(DeviceIndex ordinal) {
  ordinal = resolve_ordinal(ordinal);
  check_ordinal(ordinal);
  return default_generators()[static_cast<size_t>(ordinal)];
}

inline at::Generator new_generator(DeviceIndex ordinal) {
  ordinal = resolve_ordinal(ordinal);
  check_ordinal(ordinal);
  return at::make_generator<Generator>(ordinal);
}

// Seed one device, or all of them when `only` is empty.
inline void seed_devices(std::optional<DeviceIndex> only, uint64_t seed) {
  {
    auto& pending = pending_seeds();
    std::lock_guard<std::mutex> guard(pending.mutex);
    if (!pending.closed) {
      pending.seeds.emplace_back(only, seed);
      return;
    }
  }
  for (auto generator : default_generators()) {
    if (!only || *only == generator.device().index()) {
      std::lock_guard<std::mutex> guard(generator.mutex());
      generator.set_current_seed(seed);
    }
  }
}

// Some CPU kernels always draw from the default CPU generator: lend it the device's engine for one call. The kernel
// takes the generator's lock itself, so a thread that draws on the CPU meanwhile gets numbers of the device's.
class LendEngineToCpu {
 public:
  explicit LendEngineToCpu(const at::Generator& device_generator) : lock_(mutex()), device_(device_generator) {
    std::scoped_lock guard(cpu_.mutex(), device_engine().mutex());
    saved_ = cpu_.get_state();
    cpu_.set_state(device_engine().get_state());
  }
  ~LendEngineToCpu() {
    std::scoped_lock guard(cpu_.mutex(), device_engine().mutex());
    device_engine().set_state(cpu_.get_state());
    cpu_.set_state(saved_);
  }
  LendEngineToCpu(const LendEngineToCpu&) = delete;
  LendEngineToCpu& operator=(const LendEngineToCpu&) = delete;

 private:
  static std::mutex& mutex() {
    static auto* value = new std::mutex();
    return *value;
  }
  at::Generator& device_engine() {
    return static_cast<Generator*>(device_.unsafeGetGeneratorImpl())->engine;
  }

  std::lock_guard<std::mutex> lock_;
  at::Generator device_;
  at::Generator cpu_ = at::detail::getDefaultCPUGenerator();
  at::Tensor saved_;
};

}  // namespace sim
