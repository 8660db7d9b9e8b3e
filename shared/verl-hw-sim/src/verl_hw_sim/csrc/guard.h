// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// Device guard, streams and events. Work is done when a call returns, so a stream is only an id and an event a time; only
// copies to the host may be late.
#pragma once

#include "late_copies.h"
#include "runtime.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>

namespace sim {

inline thread_local std::array<c10::StreamId, kMaxDevices> current_streams = {};

inline c10::StreamId new_stream_id() {
  static std::atomic<c10::StreamId> next{1};
  return next++;
}

inline c10::StreamId current_stream_id(DeviceIndex ordinal) {
  return current_streams.at(static_cast<size_t>(ordinal));
}

inline c10::StreamId exchange_stream_id(DeviceIndex ordinal, c10::StreamId id) {
  return std::exchange(current_streams.at(static_cast<size_t>(ordinal)), id);
}

struct Event {
  std::chrono::steady_clock::time_point time;
};

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  DeviceType type() const override {
    return kDeviceType;
  }
  Device exchangeDevice(Device device) const override {
    return Device(kDeviceType, exchange_ordinal(device.index()));
  }
  Device getDevice() const override {
    return Device(kDeviceType, current_ordinal);
  }
  void setDevice(Device device) const override {
    exchange_ordinal(device.index());
  }
  void uncheckedSetDevice(Device device) const noexcept override {
    if (device.index() >= 0 && device.index() < device_count()) {
      current_ordinal = device.index();
    }
  }
  DeviceIndex deviceCount() const noexcept override {
    return device_count();
  }
#if SIM_TORCH_HAS_DEVICE_CAPABILITY
  c10::DeviceCapability getDeviceCapability(Device) const override {
    return {};
  }
#endif

  c10::Stream getStream(Device device) const override {
    const auto ordinal = resolve_ordinal(device.index());
    return stream(ordinal, current_stream_id(ordinal));
  }
  c10::Stream getDefaultStream(Device device) const override {
    return stream(resolve_ordinal(device.index()), 0);
  }
  c10::Stream getStreamFromGlobalPool(Device device, bool) const override {
    return getNewStream(device, 0);
  }
  c10::Stream getNewStream(Device device, int) const override {
    const auto ordinal = resolve_ordinal(device.index());
    check_ordinal(ordinal);
    return stream(ordinal, new_stream_id());
  }
  c10::Stream exchangeStream(c10::Stream next) const override {
    return stream(next.device_index(), exchange_stream_id(next.device_index(), next.id()));
  }
  bool queryStream(const c10::Stream&) const override {
    late_copies().finish();
    return true;
  }
  void synchronizeStream(const c10::Stream&) const override {
    late_copies().finish();
  }
  void synchronizeDevice(const DeviceIndex) const override {
    late_copies().finish();
  }

  void record(void** event, const c10::Stream&, const DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr) {
      *event = new Event();
    }
    static_cast<Event*>(*event)->time = std::chrono::steady_clock::now();
  }
  void destroyEvent(void* event, const DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override {
    late_copies().finish();
    return true;
  }
  void synchronizeEvent(void*) const override {
    late_copies().finish();
  }
  double elapsedTime(void* start, void* end, const DeviceIndex) const override {
    const auto elapsed = static_cast<Event*>(end)->time - static_cast<Event*>(start)->time;
    return std::chrono::duration<double, std::milli>(elapsed).count();
  }

 private:
  static c10::Stream stream(DeviceIndex ordinal, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, Device(kDeviceType, ordinal), id);
  }
};

inline c10::impl::DeviceGuardImplRegistrar guard_registrar(kDeviceType, new Guard());

}  // namespace sim
