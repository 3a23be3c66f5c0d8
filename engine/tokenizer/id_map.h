// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A small open-addressing hash map from 64-bit keys, for tables that are built once and read very often.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vitrine::engine {

/// Keys must not be 2^64-1. Value must be default constructible. Not safe to change while others read.
template <typename Value> class IdMap {
public:
    void set(std::uint64_t key, const Value& value) {
        if ((count_ + 1) * 2 > slots_.size()) {
            grow();
        }
        Slot& slot = slots_[find(key)];
        count_ += slot.key == kFree ? 1 : 0;
        slot = {key, value};
    }

    /// Null when the key is absent.
    const Value* get(std::uint64_t key) const {
        if (slots_.empty()) {
            return nullptr;
        }
        const Slot& slot = slots_[find(key)];
        return slot.key == key ? &slot.value : nullptr;
    }

    std::size_t size() const { return count_; }

private:
    static constexpr std::uint64_t kFree = ~std::uint64_t{0};
    static constexpr std::size_t kFirstSlots = 64;
    struct Slot {
        std::uint64_t key = kFree;
        Value value{};
    };

    std::size_t find(std::uint64_t key) const {
        const std::size_t mask = slots_.size() - 1;
        // Multiplicative hashing; the high bits are the mixed ones.
        std::size_t at = static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ULL) >> 20U) & mask;
        while (slots_[at].key != kFree && slots_[at].key != key) {
            at = (at + 1) & mask;
        }
        return at;
    }

    void grow() {
        std::vector<Slot> old(slots_.empty() ? kFirstSlots : slots_.size() * 2);
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (slot.key != kFree) {
                slots_[find(slot.key)] = slot;
            }
        }
    }

    std::vector<Slot> slots_;
    std::size_t count_ = 0;
};

} // namespace vitrine::engine
