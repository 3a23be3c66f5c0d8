// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How a reservation goes from one Memory to the next. Its bytes are not moved. Between the two, its KeptReservation is
// the only owner.

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "kernels/memory/resource.h"

namespace vitrine::kernels {

/// An owned reservation of a physical resource that counts against no budget. Move-only; the destructor frees it.
class KeptReservation {
public:
    KeptReservation() = default;
    KeptReservation(std::shared_ptr<MemoryResource> owner, void* address, std::uint64_t bytes)
        : owner_(std::move(owner)), address_(address), bytes_(bytes) {}
    ~KeptReservation() { reset(); }
    KeptReservation(KeptReservation&& other) noexcept { swap(other); }
    KeptReservation& operator=(KeptReservation&& other) noexcept {
        KeptReservation(std::move(other)).swap(*this);
        return *this;
    }
    KeptReservation(const KeptReservation&) = delete; // owns memory
    KeptReservation& operator=(const KeptReservation&) = delete;

    void* address() const { return address_; }
    std::uint64_t bytes() const { return bytes_; }
    bool empty() const { return owner_ == nullptr; }
    void reset() noexcept;
    void swap(KeptReservation& other) noexcept;

private:
    std::shared_ptr<MemoryResource> owner_;
    void* address_ = nullptr;
    std::uint64_t bytes_ = 0;
};

/// An adaptor over the physical resource. A reservation that was offered answers the next request of its size. After
/// keepNext(), the next reservation to be freed is kept instead.
class HandoverResource final : public MemoryResource {
public:
    explicit HandoverResource(std::shared_ptr<MemoryResource> upstream) : upstream_(std::move(upstream)) {}

    void* allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) override;
    void deallocate(void* address, std::uint64_t bytes, StreamRef stream) noexcept override;
    base::MemorySpace space() const override { return upstream_->space(); }
    std::uint64_t largestFree() const override { return upstream_->largestFree(); }
    AddressSpace* addressSpace() override { return upstream_->addressSpace(); }

    void offer(KeptReservation block) { offered_ = std::move(block); }
    /// The reservation that was offered, if no request took it.
    KeptReservation withdraw() { return std::move(offered_); }
    /// The reservation that is freed next is kept; takeKept() returns it.
    void keepNext() { keepNext_ = true; }
    KeptReservation takeKept() { return std::move(kept_); }

private:
    std::shared_ptr<MemoryResource> upstream_;
    KeptReservation offered_, kept_;
    bool keepNext_ = false;
    std::unordered_map<void*, KeptReservation> adopted_; ///< in use; each goes back to where it came from
};

} // namespace vitrine::kernels
