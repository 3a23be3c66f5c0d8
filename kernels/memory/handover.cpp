// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/memory/handover.h"

#include <utility>

namespace vitrine::kernels {

void KeptReservation::reset() noexcept {
    if (owner_ != nullptr) {
        owner_->deallocate(address_, bytes_, StreamRef{});
        owner_.reset();
        address_ = nullptr;
        bytes_ = 0;
    }
}

void KeptReservation::swap(KeptReservation& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
}

void* HandoverResource::allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) {
    if (offered_.empty() || offered_.bytes() != bytes) {
        return upstream_->allocate(bytes, stream, tag);
    }
    void* const address = offered_.address();
    adopted_[address] = std::move(offered_);
    return address;
}

void HandoverResource::deallocate(void* address, std::uint64_t bytes, StreamRef stream) noexcept {
    const bool keep = std::exchange(keepNext_, false);
    const auto adopted = adopted_.find(address);
    if (adopted != adopted_.end()) {
        if (keep) {
            kept_ = std::move(adopted->second);
        }
        adopted_.erase(adopted);
    } else if (keep) {
        kept_ = KeptReservation(upstream_, address, bytes);
    } else {
        upstream_->deallocate(address, bytes, stream);
    }
}

} // namespace vitrine::kernels
