// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/memory/growing.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "kernels/memory/caching_allocator.h"
#include "kernels/memory/policies.h"

namespace vitrine::kernels {

namespace {

constexpr std::uint64_t kMostAddresses = std::uint64_t{1} << 46;

std::uint64_t wholeUnits(std::uint64_t bytes, std::uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

} // namespace

GrowingRange::GrowingRange(const RangeServices& parts, std::uint64_t capacity, const Tag& tag) : parts_(parts) {
    if (parts_.space != nullptr && capacity <= kMostAddresses) {
        capacity_ = wholeUnits(std::max<std::uint64_t>(capacity, 1), parts_.unit);
        data_ = parts_.space->reserve(capacity_);
        // Addresses may be limited (ulimit -v): a smaller range serves as long as it is not outgrown.
        while (data_ == nullptr && capacity_ > parts_.unit) {
            capacity_ = wholeUnits(capacity_ / 2, parts_.unit);
            limited_ = true;
            data_ = parts_.space->reserve(capacity_);
        }
    }
    if (data_ == nullptr) {
        throw failure(capacity, tag, true);
    }
}

GrowingRange::~GrowingRange() {
    for (const std::uint64_t offset : entered_) {
        parts_.ledger.freed(data_ + offset);
    }
    shrink(0);
    parts_.space->release(data_, capacity_);
}

/// False: refused, and nothing has changed.
bool GrowingRange::mapTo(std::uint64_t bytes) {
    const std::uint64_t end = wholeUnits(bytes, parts_.unit);
    const std::uint64_t more = end - backed_;
    if (parts_.failing.refuses() || !parts_.budget.fits(more) || !parts_.space->map(data_ + backed_, more)) {
        return false;
    }
    pieces_.push_back(end);
    parts_.budget.taken(more);
    if (parts_.mapped) {
        parts_.mapped(data_ + backed_, more);
    }
    backed_ = end;
    return true;
}

bool GrowingRange::tryGrow(std::uint64_t bytes) {
    if (bytes <= backed_) {
        return true;
    }
    if (bytes > capacity_) {
        return false;
    }
    if (mapTo(bytes)) {
        return true;
    }
    parts_.cache.trim();
    return mapTo(bytes);
}

void GrowingRange::grow(std::uint64_t bytes, const Tag& tag) {
    if (!tryGrow(bytes)) {
        throw failure(bytes - backed_, tag, limited_ && bytes > capacity_);
    }
}

base::OutOfMemory GrowingRange::failure(std::uint64_t bytes, const Tag& tag, bool addresses) const {
    const std::string name = std::string(tag.name) + std::string(addresses ? kAddressLimit : "");
    Tag named = tag;
    named.name = name;
    return parts_.ledger.failure(bytes, named, parts_.budget.limit(), parts_.budget.largestFree());
}

void GrowingRange::shrink(std::uint64_t bytes) noexcept {
    while (!pieces_.empty()) {
        const std::uint64_t begin = pieces_.size() > 1 ? pieces_[pieces_.size() - 2] : 0;
        if (begin < bytes) {
            break;
        }
        parts_.space->unmap(data_ + begin, backed_ - begin);
        parts_.budget.given(backed_ - begin);
        backed_ = begin;
        pieces_.pop_back();
    }
}

void GrowingRange::enter(std::uint64_t offset, std::uint64_t bytes, const Tag& tag) {
    if (offset > backed_ || bytes > backed_ - offset || !entered_.insert(offset).second) {
        throw base::Internal("memory of a growing range is used before it is there");
    }
    parts_.ledger.allocated(data_ + offset, bytes, tag);
}

void GrowingRange::leave(std::uint64_t offset) noexcept {
    if (entered_.erase(offset) > 0) {
        parts_.ledger.freed(data_ + offset);
    }
}

} // namespace vitrine::kernels
