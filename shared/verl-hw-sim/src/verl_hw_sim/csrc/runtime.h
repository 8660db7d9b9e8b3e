// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// The simulated runtime: which devices this process sees, and which one is current in each thread.
#pragma once

#include "common.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

namespace sim {

// What the Python half tells us before anything can use the device.
struct RuntimeConfig {
  std::string vendor = "simulated";
  DeviceIndex physical_devices = 0;
  std::vector<std::string> mask_variables;  // the first one that is set wins
  std::vector<std::string> device_uuids;    // of the physical devices
  bool ascending_mask = false;              // ordinals follow ascending ids whatever the mask's order
  bool subdevice_mask = false;              // entries may be "<id>.<part>"
  std::string selector_variable;            // SYCL's selector, which filters what the mask left; empty: none
};

inline RuntimeConfig& runtime_config() {
  static auto* config = new RuntimeConfig();
  return *config;
}

inline std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string::npos) {
    return "";
  }
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

inline bool all_digits(const std::string& text) {
  return !text.empty() && text.size() < 9 &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Physical id that one entry of a mask names, or nothing where no such device exists.
inline std::optional<DeviceIndex> masked_id(const std::string& raw, const RuntimeConfig& config) {
  std::string entry = trimmed(raw);
  if (config.subdevice_mask) {
    const auto dot = entry.find('.');
    if (dot != std::string::npos && all_digits(entry.substr(dot + 1))) {
      entry = entry.substr(0, dot);
    }
  }
  if (all_digits(entry)) {
    const int id = std::stoi(entry);
    return id < config.physical_devices ? std::make_optional(static_cast<DeviceIndex>(id)) : std::nullopt;
  }
  for (size_t i = 0; i < config.device_uuids.size() && !entry.empty(); ++i) {
    if (config.device_uuids[i].rfind(entry, 0) == 0) {
      return static_cast<DeviceIndex>(i);
    }
  }
  return std::nullopt;
}

// SYCL's selector "level_zero:0,2" or "*:gpu": keeps some of the devices that are there, in their order. Terms of other
// backends keep none, and numbers of devices that are not there are passed over.
inline std::vector<DeviceIndex> selected(const std::vector<DeviceIndex>& ids, const std::string& selector) {
  std::vector<DeviceIndex> kept;
  std::stringstream terms(selector);
  std::string term;
  std::vector<bool> keep(ids.size(), false);
  while (std::getline(terms, term, ';')) {
    const auto colon = term.find(':');
    const std::string backend = trimmed(term.substr(0, colon));
    if (colon == std::string::npos || (backend != "level_zero" && backend != "*")) {
      continue;
    }
    std::stringstream devices(term.substr(colon + 1));
    std::string device;
    while (std::getline(devices, device, ',')) {
      device = trimmed(device);
      for (size_t i = 0; i < ids.size(); ++i) {
        if (device == "*" || device == "gpu" || (all_digits(device) && static_cast<size_t>(std::stoi(device)) == i)) {
          keep[i] = true;
        }
      }
    }
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (keep[i]) {
      kept.push_back(ids[i]);
    }
  }
  return kept;
}

inline std::vector<DeviceIndex> read_masked_ids() {
  const auto& config = runtime_config();
  std::vector<DeviceIndex> ids;
  const char* mask = nullptr;
  for (const auto& name : config.mask_variables) {
    mask = std::getenv(name.c_str());
    if (mask != nullptr) {
      break;
    }
  }
  if (mask == nullptr) {
    for (DeviceIndex i = 0; i < config.physical_devices; ++i) {
      ids.push_back(i);
    }
    return ids;
  }
  std::stringstream entries(mask);
  std::string entry;
  while (std::getline(entries, entry, ',')) {
    const auto id = masked_id(entry, config);
    if (!id) {
      // CUDA's rule, which its relatives copied: what follows an entry that names no device is not visible either.
      break;
    }
    if (std::find(ids.begin(), ids.end(), *id) == ids.end()) {
      ids.push_back(*id);
    }
  }
  if (config.ascending_mask) {
    std::sort(ids.begin(), ids.end());
  }
  return ids;
}

inline std::vector<DeviceIndex> read_visible_ids() {
  const auto ids = read_masked_ids();
  const auto& variable = runtime_config().selector_variable;
  const char* selector = variable.empty() ? nullptr : std::getenv(variable.c_str());
  return selector == nullptr ? ids : selected(ids, selector);
}

inline std::atomic<bool>& runtime_started() {
  static std::atomic<bool> started{false};
  return started;
}

// Physical ids by ordinal. Read from the environment at first use, then frozen, as real runtimes do.
inline const std::vector<DeviceIndex>& visible_ids() {
  static const std::vector<DeviceIndex>* ids = [] {
    runtime_started() = true;
    return new std::vector<DeviceIndex>(read_visible_ids());
  }();
  return *ids;
}

inline DeviceIndex device_count() {
  return static_cast<DeviceIndex>(visible_ids().size());
}

inline void check_ordinal(int64_t ordinal) {
  TORCH_CHECK(
      ordinal >= 0 && ordinal < device_count(),
      "invalid device ordinal ", ordinal, ": this process sees ", static_cast<int>(device_count()), " simulated ",
      runtime_config().vendor, " device(s)");
}

inline thread_local DeviceIndex current_ordinal = 0;

inline void set_current_ordinal(int64_t ordinal) {
  check_ordinal(ordinal);
  current_ordinal = static_cast<DeviceIndex>(ordinal);
}

inline DeviceIndex exchange_ordinal(int64_t ordinal) {
  const auto previous = current_ordinal;
  if (ordinal >= 0) {
    set_current_ordinal(ordinal);
  }
  return previous;
}

inline DeviceIndex resolve_ordinal(DeviceIndex ordinal) {
  return ordinal < 0 ? current_ordinal : ordinal;
}

}  // namespace sim
