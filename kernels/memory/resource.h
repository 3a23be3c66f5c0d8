// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where memory comes from. Physical resources (host, Meta, device, pinned) are at the bottom. Policies are small
// adaptors over an upstream resource. Pools and arenas cut pieces. Calls are stream-ordered: memory freed on a stream
// may be given out again on that stream at once.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/trace.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// Alignment of every allocation, bytes.
inline constexpr std::size_t kMemoryAlignment = 256;

constexpr std::uint64_t alignedBytes(std::uint64_t bytes) {
    return (bytes + (kMemoryAlignment - 1)) & ~std::uint64_t{kMemoryAlignment - 1};
}

/// Stream 0 computes, stream 1 copies.
struct StreamRef {
    std::uint32_t index = 0;
};

/// What an allocation is for. `name` and `format` are read during the call only.
struct Tag {
    base::MemoryCategory category = base::MemoryCategory::Other;
    std::string_view name;
    DType dtype = DType::U8;
    Shape shape;
    std::string_view format = {}; ///< of a packed weight: weightFormatWords() of kernels/formats/weight_formats.h
};

/// Follows a name in errors when addresses ended before memory did.
inline constexpr std::string_view kAddressLimit = " (the limit on address space, ulimit -v, leaves no room)";

class AddressSpace;

class MemoryResource {
public:
    virtual ~MemoryResource() = default;

    /// At least `bytes` bytes aligned to kMemoryAlignment; 0 bytes give a unique address too.
    /// Throws base::OutOfMemory. Thread-safe only where a resource says so.
    virtual void* allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) = 0;
    virtual void deallocate(void* address, std::uint64_t bytes, StreamRef stream) noexcept = 0;
    virtual base::MemorySpace space() const = 0;

    /// Largest request that could succeed now, as far as the resource knows.
    virtual std::uint64_t largestFree() const = 0;

    /// For memory that grows where it lies (growing.h); null where a resource has none.
    virtual AddressSpace* addressSpace() { return nullptr; }
};

/// An owned allocation. Move-only; frees on stream 0.
class Buffer {
public:
    Buffer() = default;
    Buffer(MemoryResource& resource, std::uint64_t bytes, const Tag& tag);
    ~Buffer() { reset(); }
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        Buffer(std::move(other)).swap(*this);
        return *this;
    }
    Buffer(const Buffer&) = delete; // copying memory is an op, not an accident
    Buffer& operator=(const Buffer&) = delete;

    void* data() const { return data_; }
    std::uint64_t bytes() const { return bytes_; }
    void reset() noexcept;
    void swap(Buffer& other) noexcept {
        std::swap(resource_, other.resource_);
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
    }

private:
    MemoryResource* resource_ = nullptr;
    void* data_ = nullptr;
    std::uint64_t bytes_ = 0;
};

/// A buffer and how to look at it.
class Tensor {
public:
    Tensor() = default;
    /// `format` is that of Tag.
    Tensor(MemoryResource& resource, base::MemoryCategory category, std::string_view name, DType dtype,
           const Shape& shape, std::string_view format = {});
    const TensorView& view() const { return view_; }
    bool empty() const { return view_.empty(); }
    void reset() noexcept;

private:
    Buffer buffer_;
    TensorView view_;
};

} // namespace vitrine::kernels
