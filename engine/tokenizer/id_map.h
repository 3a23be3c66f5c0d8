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
        if ((count_ + 1) * 2 > cells_.size()) {
            grow();
        }
        Cell& cell = cells_[find(key)];
        count_ += cell.key == kFree ? 1 : 0;
        cell = {key, value};
    }

    /// Null when the key is absent.
    const Value* get(std::uint64_t key) const {
        if (cells_.empty()) {
            return nullptr;
        }
        const Cell& cell = cells_[find(key)];
        return cell.key == key ? &cell.value : nullptr;
    }

    std::size_t size() const { return count_; }

private:
    static constexpr std::uint64_t kFree = ~std::uint64_t{0};
    static constexpr std::size_t kFirstCells = 64;
    struct Cell {
        std::uint64_t key = kFree;
        Value value{};
    };

    std::size_t find(std::uint64_t key) const {
        const std::size_t mask = cells_.size() - 1;
        // Multiplicative hashing; the high bits are the mixed ones.
        std::size_t at = static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ULL) >> 20U) & mask;
        while (cells_[at].key != kFree && cells_[at].key != key) {
            at = (at + 1) & mask;
        }
        return at;
    }

    void grow() {
        std::vector<Cell> old(cells_.empty() ? kFirstCells : cells_.size() * 2);
        old.swap(cells_);
        for (const Cell& cell : old) {
            if (cell.key != kFree) {
                cells_[find(cell.key)] = cell;
            }
        }
    }

    std::vector<Cell> cells_;
    std::size_t count_ = 0;
};

} // namespace vitrine::engine
