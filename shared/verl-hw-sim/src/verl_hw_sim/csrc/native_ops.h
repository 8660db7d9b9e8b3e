// SPDX-FileCopyrightText: 2026 The verl-hw authors
// SPDX-License-Identifier: Apache-2.0
//
// Operators that create, view or re-seat device memory, which no CPU kernel can do for us.
#pragma once

#include "late_copies.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>

namespace sim {

inline Device target_device(std::optional<Device> device) {
  const auto ordinal = resolve_ordinal(device ? device->index() : DeviceIndex{-1});
  check_ordinal(ordinal);
  return Device(kDeviceType, ordinal);
}

inline at::Tensor empty(
    c10::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>,
    std::optional<Device> device,
    std::optional<bool>,
    std::optional<at::MemoryFormat> memory_format) {
  const auto scalar_type = c10::dtype_or_default(dtype);
  check_dtype(scalar_type);
  c10::DeviceGuard guard(target_device(device));
  return at::detail::empty_generic(size, allocator(), DispatchKeySet(kKey), scalar_type, memory_format);
}

inline at::Tensor empty_strided(
    c10::IntArrayRef size,
    c10::IntArrayRef stride,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>,
    std::optional<Device> device,
    std::optional<bool>) {
  const auto scalar_type = c10::dtype_or_default(dtype);
  check_dtype(scalar_type);
  c10::DeviceGuard guard(target_device(device));
  return at::detail::empty_strided_generic(size, stride, allocator(), DispatchKeySet(kKey), scalar_type);
}

inline at::Tensor as_strided(
    const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

inline at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  copy_between(self, source, non_blocking);
  return self;
}

inline at::Tensor copy_from(const at::Tensor& self, const at::Tensor& target, bool non_blocking) {
  copy_between(target, self, non_blocking);
  return target;
}

inline at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& target) {
  if (target.sizes() != self.sizes()) {
    target.resize_(self.sizes());
  }
  copy_between(target, self, false);
  return target;
}

inline const at::Tensor& resize_(
    const at::Tensor& self, c10::SymIntArrayRef symbolic_size, std::optional<at::MemoryFormat> memory_format) {
  auto* tensor = self.unsafeGetTensorImpl();
  tensor->set_sizes_contiguous(C10_AS_INTARRAYREF_SLOW(symbolic_size));
  if (memory_format && *memory_format != at::MemoryFormat::Preserve) {
    tensor->empty_tensor_restride(*memory_format);
  }
  const auto bytes = at::detail::computeStorageNbytes(
      tensor->sizes(), tensor->strides(), tensor->dtype().itemsize(), tensor->storage_offset());
  if (bytes > storage_of(self)->nbytes()) {
    resize_storage(storage_of(self), bytes);
  }
  return self;
}

inline at::Tensor& set_storage_offset(
    at::Tensor& self, at::Storage source, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  TORCH_CHECK(
      source.device() == self.device(), "set_(): a storage on ", source.device(), " cannot back a tensor on ",
      self.device());
  std::vector<int64_t> strides(stride.begin(), stride.end());
  if (strides.size() != size.size()) {  // no strides given: contiguous
    strides.assign(size.size(), 1);
    for (auto i = static_cast<int64_t>(size.size()) - 2; i >= 0; --i) {
      strides[i] = strides[i + 1] * std::max<int64_t>(size[i + 1], 1);
    }
  }
  // As on the CPU: a storage that is too small grows.
  const auto bytes = at::detail::computeStorageNbytes(size, strides, self.dtype().itemsize(), offset);
  if (bytes > source.nbytes()) {
    resize_storage(source.unsafeGetStorageImpl(), bytes);
  }
  auto* tensor = self.unsafeGetTensorImpl();
  tensor->set_storage_keep_dtype(std::move(source));
  tensor->set_sizes_and_strides(size, strides, offset);
  return self;
}

inline at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage_offset(self, std::move(source), 0, {elements}, {1});
}

inline at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_storage_offset(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

inline at::Tensor& set_empty(at::Tensor& self) {
  at::Storage storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), 0, c10::DataPtr(nullptr, self.device()), allocator(), /*resizable=*/true));
  return set_storage_offset(self, std::move(storage), 0, {0}, {1});
}

// Work is done when a call returns: no memory is ever reused too early.
inline void record_stream(at::Tensor&, c10::Stream) {}

inline bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  const auto plain = [](const at::Tensor& tensor) {
    return tensor.layout() == at::kStrided && (on_device(tensor) || tensor.device().is_cpu());
  };
  return plain(self) && plain(from);
}

// torch picks a convolution's algorithm by device type: make its choice for the CPU.
inline at::Tensor convolution(
    const at::Tensor& input,
    const at::Tensor& weight,
    const std::optional<at::Tensor>& bias,
    c10::IntArrayRef stride,
    c10::IntArrayRef padding,
    c10::IntArrayRef dilation,
    bool transposed,
    c10::IntArrayRef output_padding,
    int64_t groups) {
  std::optional<at::Tensor> cpu_bias;
  if (bias && bias->defined()) {
    cpu_bias = cpu_alias(*bias);
  }
  const auto result = at::convolution(
      cpu_alias(input), cpu_alias(weight), cpu_bias, stride, padding, dilation, transposed, output_padding, groups);
  return to_device_memory(result, input.device().index());
}

inline std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& weight,
    at::OptionalIntArrayRef bias_size,
    c10::IntArrayRef stride,
    c10::IntArrayRef padding,
    c10::IntArrayRef dilation,
    bool transposed,
    c10::IntArrayRef output_padding,
    int64_t groups,
    std::array<bool, 3> output_mask) {
  const auto [grad_input, grad_weight, grad_bias] = at::convolution_backward(
      cpu_alias(grad_output), cpu_alias(input), cpu_alias(weight), bias_size, stride, padding, dilation, transposed,
      output_padding, groups, output_mask);
  const auto ordinal = input.device().index();
  return {
      to_device_memory(grad_input, ordinal),
      to_device_memory(grad_weight, ordinal),
      to_device_memory(grad_bias, ordinal)};
}

TORCH_LIBRARY_IMPL(aten, SIM_DISPATCH_KEY, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("as_strided", as_strided);
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  library.impl("unfold", TORCH_FN(at::native::unfold));
  library.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  library.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  library.impl("copy_", copy_);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("resize_", resize_);
  library.impl("set_.source_Storage", set_storage);
  library.impl("set_.source_Storage_storage_offset", set_storage_offset);
  library.impl("set_.source_Tensor", set_tensor);
  library.impl("set_", set_empty);
  library.impl("record_stream", record_stream);
  library.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
  library.impl("convolution", convolution);
  library.impl("convolution_backward", convolution_backward);
}

}  // namespace sim
