// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/memory/caching_allocator.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/error.h"

namespace vitrine::kernels {

namespace {

constexpr std::uint64_t kSmallLimit = std::uint64_t{1} << 20;
constexpr std::uint64_t kSegmentUnit = std::uint64_t{2} << 20;

} // namespace

struct CachingAllocator::State {
    explicit State(MemoryResource& resource) : upstream(resource) {}

    struct Segment {
        std::byte* address = nullptr;
        std::uint64_t bytes = 0;
        bool small = false;
        std::map<std::uint64_t, std::uint64_t> free; ///< offset -> bytes
    };
    struct Piece {
        std::uint64_t segment = 0;
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
    };
    using FreeKey = std::tuple<bool, std::uint64_t, std::uint64_t, std::uint64_t>; ///< small, bytes, segment, offset

    MemoryResource& upstream;
    std::map<std::uint64_t, Segment> segments; ///< by creation number
    std::uint64_t nextSegment = 0;
    std::set<FreeKey> free;
    std::unordered_map<void*, Piece> live;

    void addFree(std::uint64_t segment, std::uint64_t offset, std::uint64_t bytes) {
        Segment& owner = segments.at(segment);
        owner.free.emplace(offset, bytes);
        free.emplace(owner.small, bytes, segment, offset);
    }
    void removeFree(std::uint64_t segment, std::uint64_t offset, std::uint64_t bytes) {
        Segment& owner = segments.at(segment);
        owner.free.erase(offset);
        free.erase(FreeKey{owner.small, bytes, segment, offset});
    }

    void* cut(const FreeKey& key, std::uint64_t bytes) {
        const auto [small, freeBytes, segment, offset] = key;
        removeFree(segment, offset, freeBytes);
        if (freeBytes > bytes) {
            addFree(segment, offset + bytes, freeBytes - bytes);
        }
        void* address = segments.at(segment).address + offset;
        live[address] = Piece{segment, offset, bytes};
        return address;
    }

    void* find(std::uint64_t bytes) {
        const bool small = bytes <= kSmallLimit;
        const auto it = free.lower_bound(FreeKey{small, bytes, 0, 0});
        return it == free.end() || std::get<0>(*it) != small ? nullptr : cut(*it, bytes);
    }

    /// `exact`: a segment of the request's size, where there is no room for more.
    void grow(std::uint64_t bytes, bool exact, StreamRef stream, const Tag& tag) {
        const bool small = bytes <= kSmallLimit;
        const std::uint64_t whole = small ? kSegmentUnit : (bytes + kSegmentUnit - 1) / kSegmentUnit * kSegmentUnit;
        const std::uint64_t size = exact ? bytes : whole;
        auto* address = static_cast<std::byte*>(upstream.allocate(size, stream, tag));
        const std::uint64_t number = nextSegment++;
        segments.emplace(number, Segment{address, size, small, {}});
        addFree(number, 0, size);
    }

    void release(std::map<std::uint64_t, Segment>::iterator it) noexcept {
        for (const auto& [offset, bytes] : it->second.free) {
            free.erase(FreeKey{it->second.small, bytes, it->first, offset});
        }
        upstream.deallocate(it->second.address, it->second.bytes, StreamRef{});
    }
};

CachingAllocator::CachingAllocator(MemoryResource& upstream) : state_(std::make_unique<State>(upstream)) {}

CachingAllocator::~CachingAllocator() {
    for (auto it = state_->segments.begin(); it != state_->segments.end(); ++it) {
        state_->upstream.deallocate(it->second.address, it->second.bytes, StreamRef{});
    }
}

void* CachingAllocator::allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) {
    if (bytes > (std::uint64_t{1} << 60)) {
        base::OutOfMemoryDetails details;
        details.what = std::string(tag.name);
        details.requested = bytes;
        throw base::OutOfMemory(std::move(details));
    }
    const std::uint64_t size = std::max<std::uint64_t>(alignedBytes(bytes), kMemoryAlignment);
    if (void* address = state_->find(size)) {
        return address;
    }
    for (const bool trimmed : {false, true}) {
        try {
            state_->grow(size, false, stream, tag);
            return state_->find(size);
        } catch (const base::OutOfMemory&) {
            if (!trimmed) {
                trim();
            }
        }
    }
    state_->grow(size, true, stream, tag);
    return state_->find(size);
}

void CachingAllocator::deallocate(void* address, std::uint64_t, StreamRef) noexcept {
    const auto it = state_->live.find(address);
    if (it == state_->live.end()) {
        return;
    }
    State::Piece piece = it->second;
    state_->live.erase(it);
    auto& freeOfSegment = state_->segments.at(piece.segment).free;
    const auto next = freeOfSegment.lower_bound(piece.offset);
    if (next != freeOfSegment.begin()) {
        const auto before = *std::prev(next);
        if (before.first + before.second == piece.offset) {
            state_->removeFree(piece.segment, before.first, before.second);
            piece.offset = before.first;
            piece.bytes += before.second;
        }
    }
    const auto after = freeOfSegment.lower_bound(piece.offset);
    if (after != freeOfSegment.end() && piece.offset + piece.bytes == after->first) {
        const auto following = *after;
        state_->removeFree(piece.segment, following.first, following.second);
        piece.bytes += following.second;
    }
    state_->addFree(piece.segment, piece.offset, piece.bytes);
}

base::MemorySpace CachingAllocator::space() const {
    return state_->upstream.space();
}

std::uint64_t CachingAllocator::largestFree() const {
    std::uint64_t largest = state_->upstream.largestFree();
    for (const auto& key : state_->free) {
        largest = std::max(largest, std::get<1>(key));
    }
    return largest;
}

void CachingAllocator::trim() noexcept {
    for (auto it = state_->segments.begin(); it != state_->segments.end();) {
        const bool unused = it->second.free.size() == 1 && it->second.free.begin()->second == it->second.bytes;
        if (unused) {
            state_->release(it);
            it = state_->segments.erase(it);
        } else {
            ++it;
        }
    }
}

} // namespace vitrine::kernels
