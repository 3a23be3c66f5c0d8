// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/memory/resource.h"

#include "base/error.h"

namespace vitrine::kernels {

Buffer::Buffer(MemoryResource& resource, std::uint64_t bytes, const Tag& tag)
    : resource_(&resource), data_(resource.allocate(bytes, StreamRef{}, tag)), bytes_(bytes) {}

void Buffer::reset() noexcept {
    if (resource_ != nullptr) {
        resource_->deallocate(data_, bytes_, StreamRef{});
    }
    resource_ = nullptr;
    data_ = nullptr;
    bytes_ = 0;
}

Tensor::Tensor(MemoryResource& resource, base::MemoryCategory category, std::string_view name, DType dtype,
               const Shape& shape, std::string_view format)
    : buffer_(resource, bytesOf(dtype, shape.count()), Tag{category, name, dtype, shape, format}),
      view_{buffer_.data(), dtype, shape} {}

void Tensor::reset() noexcept {
    buffer_.reset();
    view_ = {};
}

} // namespace vitrine::kernels
