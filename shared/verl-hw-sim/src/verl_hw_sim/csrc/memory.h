// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// Device memory is CPU memory with another device tag, counted per device; pinned memory is CPU memory we remember.
#pragma once

#include "limits.h"
#include "runtime.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <map>

namespace sim {

constexpr int64_t kTotalMemory = int64_t{64} << 30;

struct MemoryCounters {
  std::atomic<int64_t> current{0};
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> allocated{0};
  std::atomic<int64_t> allocations{0};
  std::atomic<int64_t> frees{0};
  std::atomic<int64_t> out_of_memory{0};
  std::atomic<double> fraction{1.0};
};

inline MemoryCounters& counters(DeviceIndex ordinal) {
  static auto* all = new std::array<MemoryCounters, kMaxDevices>();
  return all->at(static_cast<size_t>(ordinal));
}

inline int64_t total_memory() {
  const int64_t cap = limits().memory_bytes;
  return cap >= 0 ? cap : kTotalMemory;
}

inline int64_t free_memory(DeviceIndex ordinal) {
  return std::max<int64_t>(0, total_memory() - counters(ordinal).current);
}

inline void count_allocation(DeviceIndex ordinal, int64_t bytes) {
  auto& count = counters(ordinal);
  const auto allowed = static_cast<int64_t>(static_cast<double>(total_memory()) * count.fraction);
  const int64_t before = count.current.fetch_add(bytes);
  if (before + bytes > allowed) {
    count.current -= bytes;
    count.out_of_memory += 1;
    TORCH_CHECK_WITH(
        OutOfMemoryError, false, runtime_config().vendor, " out of memory. Tried to allocate ", bytes,
        " bytes. Device ", static_cast<int>(ordinal), " may use ", allowed, " bytes, of which ",
        std::max<int64_t>(0, allowed - before), " are free (simulated device)");
  }
  count.allocated += bytes;
  count.allocations += 1;
  int64_t peak = count.peak;
  while (before + bytes > peak && !count.peak.compare_exchange_weak(peak, before + bytes)) {
  }
}

// One piece of device memory. A storage owns it, and so does each CPU alias in flight: FSDP1 frees storages by
// resizing them to nothing, perhaps while a transfer still reads the old memory.
struct Block {
  c10::DataPtr memory;
  DeviceIndex ordinal;
  int64_t bytes;
  std::atomic<int> owners{1};
};

inline void release_block(void* context) {
  auto* block = static_cast<Block*>(context);
  if (block->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  auto& count = counters(block->ordinal);
  count.current -= block->bytes;
  count.frees += 1;
  delete block;
}

// The block behind a storage, or nothing where the storage is empty or not ours.
inline Block* block_of(const c10::DataPtr& memory) {
  return memory.get_deleter() == &release_block ? static_cast<Block*>(memory.get_context()) : nullptr;
}

inline c10::DataPtr adopt_counted(c10::DataPtr cpu, int64_t bytes, DeviceIndex ordinal) {
  void* address = cpu.get();
  auto* block = new Block{std::move(cpu), ordinal, bytes};
  return c10::DataPtr(address, block, &release_block, Device(kDeviceType, ordinal));
}

// The same memory, tagged as memory of a device; the result owns `cpu`.
inline c10::DataPtr adopt(c10::DataPtr cpu, int64_t bytes, DeviceIndex ordinal) {
  count_allocation(ordinal, bytes);
  return adopt_counted(std::move(cpu), bytes, ordinal);
}

// What count_allocation allowed, and the host then did not give.
inline void report_host_out_of_memory(DeviceIndex ordinal, int64_t bytes) {
  auto& count = counters(ordinal);
  count.current -= bytes;
  count.allocated -= bytes;
  count.allocations -= 1;
  count.out_of_memory += 1;
  TORCH_CHECK_WITH(
      OutOfMemoryError, false, runtime_config().vendor, " out of memory. Tried to allocate ", bytes,
      " bytes, which the host of the simulated device does not have");
}

inline c10::DataPtr allocate_on(DeviceIndex ordinal, size_t bytes) {
  check_ordinal(ordinal);
  if (bytes == 0) {
    return c10::DataPtr(nullptr, Device(kDeviceType, ordinal));
  }
  // Counted first: a device refuses what is too large without asking the host for it.
  const auto size = static_cast<int64_t>(bytes);
  count_allocation(ordinal, size);
  c10::DataPtr memory;
  try {
    memory = c10::GetCPUAllocator()->allocate(bytes);
  } catch (const c10::Error&) {
    report_host_out_of_memory(ordinal, size);
  }
  return adopt_counted(std::move(memory), size, ordinal);
}

inline void reset_accumulated(DeviceIndex ordinal) {
  auto& count = counters(resolve_ordinal(ordinal));
  count.allocated = 0;
  count.allocations = 0;
  count.frees = 0;
  count.out_of_memory = 0;
}

inline void reset_peak(DeviceIndex ordinal) {
  auto& count = counters(resolve_ordinal(ordinal));
  count.peak = count.current.load();
}

#if SIM_TORCH_HAS_DEVICE_ALLOCATOR
using AllocatorInterface = c10::DeviceAllocator;  // so that torch.accelerator.memory_* works too
#else
using AllocatorInterface = c10::Allocator;
#endif

class Allocator final : public AllocatorInterface {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    return allocate_on(current_ordinal, bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;
  }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }
#if SIM_TORCH_HAS_DEVICE_ALLOCATOR
  bool initialized() override {
    return runtime_started();
  }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  void resetAccumulatedStats(DeviceIndex ordinal) override {
    reset_accumulated(ordinal);
  }
  void resetPeakStats(DeviceIndex ordinal) override {
    reset_peak(ordinal);
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex ordinal) override {
    const auto& count = counters(resolve_ordinal(ordinal));
    c10::CachingDeviceAllocator::DeviceStats stats;
    // A block is never split or cached here: allocated, reserved, active and requested bytes are one number.
    for (auto* bytes : {&stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes, &stats.requested_bytes}) {
      auto& all = bytes->at(0);
      all.current = count.current;
      all.peak = count.peak;
      all.allocated = count.allocated;
      all.freed = count.allocated - count.current;
    }
    for (auto* calls : {&stats.allocation, &stats.active, &stats.segment}) {
      auto& all = calls->at(0);
      all.current = count.allocations - count.frees;
      all.peak = all.current;
      all.allocated = count.allocations;
      all.freed = count.frees;
    }
    stats.num_ooms = count.out_of_memory;
    return stats;
  }
#endif
#if SIM_TORCH_HAS_MEMORY_INFO
  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex ordinal) override {
    return {static_cast<size_t>(free_memory(resolve_ordinal(ordinal))), static_cast<size_t>(total_memory())};
  }
#endif
};

inline Allocator* allocator() {
  static auto* value = new Allocator();
  return value;
}

class PinnedAllocator final : public c10::Allocator {
 public:
  static PinnedAllocator* get() {
    static auto* value = new PinnedAllocator();
    return value;
  }
  c10::DataPtr allocate(size_t bytes) override {
    auto memory = std::make_unique<c10::DataPtr>(c10::GetCPUAllocator()->allocate(bytes));
    auto* address = static_cast<char*>(memory->get());
    if (address != nullptr) {
      std::lock_guard<std::mutex> guard(mutex_);
      live_[address] = bytes;
    }
    return c10::DataPtr(address, memory.release(), &PinnedAllocator::free, Device(DeviceType::CPU));
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;
  }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }
  bool owns(const void* address) {
    std::lock_guard<std::mutex> guard(mutex_);
    auto next = live_.upper_bound(static_cast<const char*>(address));
    if (next == live_.begin()) {
      return false;
    }
    --next;
    return address < next->first + next->second;
  }

 private:
  static void free(void* context) {
    std::unique_ptr<c10::DataPtr> memory(static_cast<c10::DataPtr*>(context));
    auto* self = get();
    std::lock_guard<std::mutex> guard(self->mutex_);
    self->live_.erase(static_cast<const char*>(memory->get()));
  }

  std::mutex mutex_;
  std::map<const char*, size_t> live_;
};

// FSDP1 frees and restores parameters by resizing their storage.
inline void resize_storage(c10::StorageImpl* storage, size_t bytes) {
  const auto ordinal = resolve_ordinal(storage->device().index());
  auto memory = allocate_on(ordinal, bytes);
  if (bytes != 0 && storage->data() != nullptr) {
    std::memcpy(memory.get(), storage->data(), std::min(bytes, storage->nbytes()));
  }
  storage->set_data_ptr_noswap(std::move(memory));
  storage->set_nbytes(bytes);
}

}  // namespace sim
