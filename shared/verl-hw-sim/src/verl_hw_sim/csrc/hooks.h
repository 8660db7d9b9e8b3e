// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// The accelerator hooks through which torch reaches the runtime, shared by the three kinds of device.
#pragma once

#include "generator.h"
#include "memory.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>

#include <type_traits>

namespace sim {

template <class Interface>
class Hooks : public Interface {
 public:
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return sim::device_count() > 0;
  }
  bool hasPrimaryContext(DeviceIndex ordinal) const override {
    return ordinal >= 0 && ordinal < sim::device_count();
  }
  void init() const override {}
  const at::Generator& getDefaultGenerator(DeviceIndex ordinal) const override {
    return sim::default_generator(ordinal);
  }
  at::Generator getNewGenerator(DeviceIndex ordinal) const override {
    return sim::new_generator(ordinal);
  }
  bool isPinnedPtr(const void* address) const override {
    return PinnedAllocator::get()->owns(address);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return PinnedAllocator::get();
  }
  Device getDeviceFromPtr(void*) const override {
    return Device(kDeviceType, current_ordinal);
  }
  DeviceIndex deviceCount() const override {
    return sim::device_count();
  }
  void setCurrentDevice(DeviceIndex ordinal) const override {
    set_current_ordinal(ordinal);
  }
  DeviceIndex getCurrentDevice() const override {
    return current_ordinal;
  }
  DeviceIndex exchangeDevice(DeviceIndex ordinal) const override {
    return exchange_ordinal(ordinal);
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex ordinal) const override {
    return exchange_ordinal(ordinal);
  }
};

// torch's getters make their hooks object once and keep it, usually during `import torch`, before we could register
// ours. The objects have no data members: exchange the virtual table.
template <class Ours, class Interface>
void replace_cached_hooks(const Interface& cached) {
  static_assert(std::is_base_of_v<Interface, Ours> && sizeof(Ours) == sizeof(void*));
  static auto* ours = new Ours();
  std::memcpy(static_cast<void*>(const_cast<Interface*>(&cached)), static_cast<void*>(ours), sizeof(void*));
}

#ifdef SIM_KIND_PRIVATEUSE1
class PrivateUse1Hooks final : public Hooks<at::PrivateUse1HooksInterface> {
 public:
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage(storage.unsafeGetStorageImpl(), bytes);
  }
};
#endif

}  // namespace sim
