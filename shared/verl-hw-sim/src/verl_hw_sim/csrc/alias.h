// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// Zero-copy views between the device and the CPU. Both directions own the memory they look at: an alias may
// outlive the tensor it was made from (asynchronous point-to-point communication), or that tensor's memory.
#pragma once

#include "memory.h"

namespace sim {

inline void copy_metadata(const at::Tensor& from, const at::Tensor& to) {
  auto* target = to.unsafeGetTensorImpl();
  target->set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
  if (from.unsafeGetTensorImpl()->is_wrapped_number()) {
    target->set_wrapped_number(true);
  }
}

inline void delete_storage(void* context) {
  delete static_cast<c10::Storage*>(context);
}

inline c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

// The memory of a device storage once more, as CPU memory that stays alive on its own.
inline c10::DataPtr shared_memory(c10::StorageImpl* device_storage) {
  void* address = device_storage->mutable_data();
  if (auto* block = block_of(device_storage->data_ptr())) {
    block->owners.fetch_add(1, std::memory_order_relaxed);
    return c10::DataPtr(address, block, &release_block, Device(DeviceType::CPU));
  }
  auto* owner = new c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(device_storage));
  return c10::DataPtr(address, owner, &delete_storage, Device(DeviceType::CPU));
}

// A CPU tensor over the memory of a device tensor; any other tensor as it is.
inline at::Tensor cpu_alias(const at::Tensor& tensor) {
  if (!on_device(tensor)) {
    return tensor;
  }
  auto* device_storage = storage_of(tensor);
  c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), device_storage->nbytes(), shared_memory(device_storage), c10::GetCPUAllocator(),
      /*resizable=*/true));
  auto alias = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), DispatchKeySet(DispatchKey::CPU), tensor.dtype());
  copy_metadata(tensor, alias);
  return alias;
}

// A device tensor over `storage`, shaped like `like`.
inline at::Tensor device_tensor(c10::Storage storage, const at::Tensor& like) {
  auto tensor =
      at::detail::make_tensor<c10::TensorImpl>(std::move(storage), DispatchKeySet(kKey), like.dtype());
  copy_metadata(like, tensor);
  return tensor;
}

// A device tensor over the memory of a CPU tensor, which becomes device memory; any other tensor as it is.
inline at::Tensor to_device_memory(const at::Tensor& tensor, DeviceIndex ordinal) {
  if (!tensor.defined() || !tensor.device().is_cpu()) {
    return tensor;
  }
  check_ordinal(ordinal);
  check_dtype(tensor.scalar_type());
  auto owner = std::make_unique<c10::Storage>(tensor.storage());
  const auto bytes = static_cast<int64_t>(owner->nbytes());
  void* address = owner->mutable_data();
  c10::DataPtr memory(address, owner.release(), &delete_storage, Device(DeviceType::CPU));
  c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, adopt(std::move(memory), bytes, ordinal), allocator(),
      /*resizable=*/true));
  return device_tensor(std::move(storage), tensor);
}

}  // namespace sim
