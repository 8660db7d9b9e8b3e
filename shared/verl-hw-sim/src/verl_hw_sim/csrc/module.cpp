// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// The native half of one kind of simulated device: installation and what the Python half calls.

#include "attention.h"
#include "collectives.h"
#include "common.h"
#include "fallback.h"
#include "guard.h"
#include "half_softmax.h"
#include "hooks.h"
#include "native_ops.h"
#include "shutdown.h"

#if defined(SIM_KIND_PRIVATEUSE1)
#include "autocast.h"
#include "autograd.h"
#elif defined(SIM_KIND_XPU)
#include "xpu.h"
#elif defined(SIM_KIND_CUDA)
#include "cuda.h"
#endif

#include <torch/csrc/utils/pybind.h>

namespace sim {
namespace {

void install(
    std::string vendor,
    int64_t devices,
    std::vector<std::string> mask_variables,
    std::vector<std::string> uuids,
    bool ascending_mask,
    bool subdevice_mask,
    std::string selector_variable) {
  TORCH_CHECK(devices >= 0 && devices <= kMaxDevices, "between 0 and ", int{kMaxDevices}, " devices, got ", devices);
  runtime_config() = {
      std::move(vendor),
      static_cast<DeviceIndex>(devices),
      std::move(mask_variables),
      std::move(uuids),
      ascending_mask,
      subdevice_mask,
      std::move(selector_variable)};
  c10::SetAllocator(kDeviceType, allocator(), /*priority=*/255);
  prefer_cpu_kernels();
#if defined(SIM_KIND_PRIVATEUSE1)
  install_set_data_hook();
  at::RegisterPrivateUse1HooksInterface(new PrivateUse1Hooks());
#elif defined(SIM_KIND_XPU)
  replace_cached_hooks<XpuHooks>(at::detail::getXPUHooks());
  replace_cached_hooks<NoCudaHooks>(at::detail::getCUDAHooks());
#elif defined(SIM_KIND_CUDA)
  replace_cached_hooks<CudaHooks>(at::detail::getCUDAHooks());
#endif
}

void set_memory_fraction(int64_t ordinal, double fraction) {
  check_ordinal(ordinal);
  counters(static_cast<DeviceIndex>(ordinal)).fraction = fraction;
}

double memory_fraction(int64_t ordinal) {
  check_ordinal(ordinal);
  return counters(static_cast<DeviceIndex>(ordinal)).fraction;
}

std::unordered_map<std::string, int64_t> memory_counts(int64_t ordinal) {
  check_ordinal(ordinal);
  const auto& count = counters(static_cast<DeviceIndex>(ordinal));
  return {
      {"current", count.current},          {"peak", count.peak},
      {"allocated", count.allocated},      {"allocations", count.allocations},
      {"frees", count.frees},              {"out_of_memory", count.out_of_memory},
      {"free", free_memory(static_cast<DeviceIndex>(ordinal))},
      {"total", total_memory()},
  };
}

void set_limits(
    bool avg_rejected,
    bool avg_wrong,
    bool sum_wrong,
    bool no_fp64,
    bool late_host_copies,
    int64_t memory_bytes,
    const std::vector<std::string>& denied,
    const std::vector<std::string>& hanging) {
  auto& value = limits();
  value.avg_rejected = avg_rejected;
  value.avg_wrong = avg_wrong;
  value.sum_wrong = sum_wrong;
  value.no_fp64 = no_fp64;
  value.late_host_copies = late_host_copies;
  if (!late_host_copies) {
    late_copies().finish();
  }
  value.memory_bytes = memory_bytes;
  deny_operators(denied);
  std::lock_guard<std::mutex> guard(value.mutex);
  value.hanging = {hanging.begin(), hanging.end()};
}

}  // namespace
}  // namespace sim

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("install", &sim::install);
  m.attr("device_type") = static_cast<int>(sim::kDeviceType);
  m.def("started", [] { return sim::runtime_started().load(); });
  m.def("visible_ids", [] {
    const auto& ids = sim::visible_ids();
    return std::vector<int>(ids.begin(), ids.end());
  });
  m.def("device_count", [] { return static_cast<int>(sim::device_count()); });
  m.def("current_device", [] { return static_cast<int>(sim::current_ordinal); });
  m.def("check_device", &sim::check_ordinal);
  m.def("set_device", [](int64_t ordinal) { sim::set_current_ordinal(ordinal); });
  m.def("exchange_device", [](int64_t ordinal) { return static_cast<int>(sim::exchange_ordinal(ordinal)); });
  m.def("current_stream_id", [](int64_t ordinal) {
    sim::check_ordinal(ordinal);
    return sim::current_stream_id(static_cast<sim::DeviceIndex>(ordinal));
  });
  m.def("set_stream_id", [](int64_t ordinal, int64_t id) {
    sim::check_ordinal(ordinal);
    sim::exchange_stream_id(static_cast<sim::DeviceIndex>(ordinal), id);
  });
  m.def("memory_counts", &sim::memory_counts);
  m.def("reset_peak", [](int64_t ordinal) {
    sim::check_ordinal(ordinal);
    sim::reset_peak(static_cast<sim::DeviceIndex>(ordinal));
  });
  m.def("reset_accumulated", [](int64_t ordinal) {
    sim::check_ordinal(ordinal);
    sim::reset_accumulated(static_cast<sim::DeviceIndex>(ordinal));
  });
  m.def("memory_fraction", &sim::memory_fraction);
  m.def("set_memory_fraction", &sim::set_memory_fraction);
  m.def("default_generator", [](int64_t ordinal) {
    return sim::default_generator(static_cast<sim::DeviceIndex>(ordinal));
  });
  m.def("seed", [](uint64_t seed) { sim::seed_devices(sim::current_ordinal, seed); });
  m.def("seed_all", [](uint64_t seed) { sim::seed_devices(std::nullopt, seed); });
  m.def("resize_storage", [](const at::Tensor& tensor, int64_t bytes) {
    sim::resize_storage(sim::storage_of(tensor), static_cast<size_t>(bytes));
  });
  m.def("drain_autograd_threads", &sim::drain_autograd_threads, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("set_limits", &sim::set_limits);
  m.def("synchronize", [] { sim::late_copies().finish(); });
  m.def("unknown_operators", &sim::unknown_operators);
  m.def("make_backend",
        [](const c10::intrusive_ptr<c10d::Backend>& gloo, std::string name, double timeout_seconds)
            -> c10::intrusive_ptr<c10d::Backend> {
          const std::chrono::milliseconds timeout(static_cast<int64_t>(timeout_seconds * 1000));
          return c10::make_intrusive<sim::CollectiveBackend>(gloo, std::move(name), timeout);
        });
}
