// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The groups of a rounded matrix and the values that the format allows in each.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/workload/precision/lab_weights.h"
#include "kernels/formats/packed_format.h"

namespace vitrine::engine {

/// Where the groups of a matrix lie. Group number g is in row g / perRow; the last group of a row may be shorter.
struct GroupLayout {
    MatrixSize size;
    std::int64_t group = 0, perRow = 0;

    explicit GroupLayout(const kernels::WeightView& packed);
    std::int64_t count() const { return size.out * perRow; }
    std::int64_t first(std::int64_t number) const { return number % perRow * group; } ///< input that it begins with
    std::size_t begin(std::int64_t number) const {
        return static_cast<std::size_t>(number / perRow * size.in + first(number));
    }
    std::size_t length(std::int64_t number) const {
        return static_cast<std::size_t>(std::min(group, size.in - first(number)));
    }
};

/// The two outermost values at either end of what a group can hold. Equal ones: it can hold one value only.
struct LevelEnds {
    float low = 0, lowNext = 0, highNext = 0, high = 0;
};

/// All values that codes can give in a group. A row is filled with one code after the other, so every format says its
/// levels itself. Different threads may ask for different rows at the same time. The matrix outlives it.
class LevelFinder {
public:
    explicit LevelFinder(const RoundedMatrix& matrix);

    /// The levels of each group of the row: ascending, each value once.
    std::vector<std::vector<float>> ofRow(std::int64_t row);

    /// Sets the ends of each group of the row. It takes four codes only: their order is the same in all groups of a
    /// matrix, for groups differ in scale and zero.
    void endsOfRow(std::int64_t row, std::span<LevelEnds> ends);

private:
    int codes() const { return bytes_ ? 256 : 16; }
    /// Fills the row with a code and calls take(group, value) for each of its groups.
    template <class Take> void tryCode(std::int64_t row, int code, const Take& take);
    void findOrder();

    GroupLayout layout_;
    kernels::PackedMatrix packed_;
    bool bytes_ = false; ///< a byte for each code; else half of one
    std::unique_ptr<std::uint8_t[]> rows_;
    std::vector<int> order_; ///< codes by rising value, each value once; empty: no group has two values
};

} // namespace vitrine::engine
