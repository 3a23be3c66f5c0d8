// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/memory/policies.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"

namespace vitrine::kernels {

namespace {

constexpr std::uint64_t kGuardBytes = kMemoryAlignment;
constexpr unsigned char kGuardPattern = 0xFD;

} // namespace

void* FailingResource::allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) {
    if (refuses()) {
        base::OutOfMemoryDetails details;
        details.what = std::string(tag.name);
        details.requested = bytes;
        throw base::OutOfMemory(std::move(details));
    }
    return upstream_.allocate(bytes, stream, tag);
}

void* BudgetResource::allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) {
    if (!fits(bytes)) {
        base::OutOfMemoryDetails details;
        details.what = std::string(tag.name);
        details.requested = bytes;
        details.budget = limit_;
        details.held = used_;
        details.largestFree = largestFree();
        throw base::OutOfMemory(std::move(details));
    }
    void* address = upstream_.allocate(bytes, stream, tag);
    taken(bytes);
    return address;
}

void BudgetResource::deallocate(void* address, std::uint64_t bytes, StreamRef stream) noexcept {
    upstream_.deallocate(address, bytes, stream);
    given(bytes);
}

void BudgetResource::taken(std::uint64_t bytes) {
    used_ += bytes;
    ledger_.reserved(static_cast<std::int64_t>(bytes));
}

void BudgetResource::given(std::uint64_t bytes) {
    used_ -= bytes;
    ledger_.reserved(-static_cast<std::int64_t>(bytes));
}

std::uint64_t BudgetResource::largestFree() const {
    const std::uint64_t upstream = upstream_.largestFree();
    return limit_ == 0 ? upstream : std::min(upstream, limit_ - std::min(limit_, used_));
}

bool GuardResource::intact(const std::byte* guard) const {
    std::array<unsigned char, kGuardBytes> found{};
    if (access_.read) {
        access_.read(guard, found.data(), found.size());
    } else {
        std::memcpy(found.data(), guard, found.size());
    }
    return std::all_of(found.begin(), found.end(), [](unsigned char byte) { return byte == kGuardPattern; });
}

void* GuardResource::allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) {
    auto* base = static_cast<std::byte*>(upstream_.allocate(bytes + 2 * kGuardBytes, stream, tag));
    // Poison the piece as well, so that a read before the first write shows.
    poison(base, bytes + 2 * kGuardBytes);
    return base + kGuardBytes;
}

void GuardResource::poison(void* address, std::uint64_t bytes) {
    if (access_.fill) {
        access_.fill(address, kGuardPattern, bytes);
    } else {
        std::memset(address, kGuardPattern, bytes);
    }
}

void GuardResource::deallocate(void* address, std::uint64_t bytes, StreamRef stream) noexcept {
    auto* base = static_cast<std::byte*>(address) - kGuardBytes;
    try {
        if (!intact(base) || !intact(base + kGuardBytes + bytes)) {
            ++violations_;
            base::log(base::LogLevel::Error, fmt::format("a write outside a block of {} bytes was found", bytes));
        }
    } catch (const base::Error& error) {
        // The device is lost. The next call that uses it throws.
        base::log(base::LogLevel::Debug, error.message());
    }
    upstream_.deallocate(base, bytes + 2 * kGuardBytes, stream);
}

void* RecordingResource::allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) {
    void* address = nullptr;
    bool refused = false;
    try {
        address = upstream_.allocate(bytes, stream, tag);
    } catch (const base::OutOfMemory&) {
        refused = true;
    }
    if (refused) {
        throw ledger_.failure(bytes, tag, budget_.limit(), upstream_.largestFree());
    }
    ledger_.allocated(address, bytes, tag);
    return address;
}

void RecordingResource::deallocate(void* address, std::uint64_t bytes, StreamRef stream) noexcept {
    ledger_.freed(address);
    upstream_.deallocate(address, bytes, stream);
}

} // namespace vitrine::kernels
