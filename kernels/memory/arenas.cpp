// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/memory/arenas.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "base/error.h"

namespace vitrine::kernels {

BumpArena::BumpArena(MemoryResource& upstream, std::uint64_t capacity, const Tag& tag)
    : upstream_(upstream), capacity_(alignedBytes(capacity)),
      address_(static_cast<std::byte*>(upstream.allocate(capacity_, StreamRef{}, tag))) {}

BumpArena::~BumpArena() {
    upstream_.deallocate(address_, capacity_, StreamRef{});
}

void* BumpArena::allocate(std::uint64_t bytes, StreamRef, const Tag& tag) {
    const std::uint64_t size = std::max<std::uint64_t>(alignedBytes(bytes), kMemoryAlignment);
    if (size > capacity_ - used_) {
        throw base::Internal(fmt::format("the arena of {} bytes is too small for {}", capacity_, tag.name));
    }
    std::byte* address = address_ + used_;
    used_ += size;
    return address;
}

FirstFitArena::~FirstFitArena() {
    if (address_ != nullptr) {
        upstream_.deallocate(address_, capacity_, StreamRef{});
    }
}

void* FirstFitArena::allocate(std::uint64_t bytes, StreamRef, const Tag& tag) {
    const std::uint64_t size = std::max<std::uint64_t>(alignedBytes(bytes), kMemoryAlignment);
    std::uint64_t offset = 0;
    for (const auto& [begin, length] : used_) {
        if (begin - offset >= size) {
            break;
        }
        offset = begin + length;
    }
    if (size > capacity_ || offset > capacity_ - size) {
        throw base::Internal(
            fmt::format("the step arena of {} bytes is too small for {} of {} bytes", capacity_, tag.name, bytes));
    }
    used_.emplace(offset, size);
    highWater_ = std::max(highWater_, offset + size);
    return address_ + offset;
}

void FirstFitArena::deallocate(void* address, std::uint64_t, StreamRef) noexcept {
    used_.erase(static_cast<std::uint64_t>(static_cast<std::byte*>(address) - address_));
}

std::uint64_t FirstFitArena::largestFree() const {
    std::uint64_t largest = 0;
    std::uint64_t offset = 0;
    for (const auto& [begin, length] : used_) {
        largest = std::max(largest, begin - offset);
        offset = begin + length;
    }
    return std::max(largest, capacity_ - offset);
}

std::uint64_t FirstFitArena::used() const {
    return std::accumulate(used_.begin(), used_.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const auto& piece) { return sum + piece.second; });
}

void FirstFitArena::ensureCapacity(std::uint64_t bytes) {
    const std::uint64_t wanted = alignedBytes(bytes);
    if (wanted <= capacity_) {
        return;
    }
    giveBack(); // first: old and new together may not fit
    address_ = static_cast<std::byte*>(
        upstream_.allocate(wanted, StreamRef{}, Tag{base::MemoryCategory::Activations, "step arena", DType::U8, {}}));
    capacity_ = wanted;
}

void FirstFitArena::giveBack() {
    if (!used_.empty()) {
        throw base::Internal("the step arena cannot move while pieces of it are in use");
    }
    if (address_ != nullptr) {
        upstream_.deallocate(address_, capacity_, StreamRef{});
        address_ = nullptr;
        capacity_ = 0;
    }
}

void FirstFitArena::beginStep() {
    if (!used_.empty()) {
        throw base::Internal("a step began while pieces of the last one are in use");
    }
    highWater_ = 0;
}

} // namespace vitrine::kernels
