// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Counts of blocks by the op, and the expected counts.

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "kernels/ops/attention/block_counts.h"
#include "kernels/program/interpreter.h"
#include "tests/kernels/program/program_testing.h"

namespace vitrine::kernels::testing {

inline BlockMaskShape randomShape(std::mt19937& random) {
    const auto pick = [&](int most) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(most)) + 1; };
    return {pick(2), pick(3), pick(150), pick(300), pick(40), pick(70)};
}

inline std::vector<BlockPlace> allPlaces(const BlockMaskShape& shape) {
    std::vector<BlockPlace> places;
    for (std::int32_t b = 0; b < shape.batch; ++b) {
        for (std::int32_t h = 0; h < shape.heads; ++h) {
            for (std::int32_t row = 0; row < shape.queryBlocks(); ++row) {
                for (std::int32_t column = 0; column < shape.keyBlocks(); ++column) {
                    places.push_back({b, h, row, column});
                }
            }
        }
    }
    return places;
}

inline std::int32_t allowedElements(const Program& mask, const CaptureBinding& binding, const BlockMaskShape& shape,
                                    const BlockPlace& place) {
    Interpreter<float> interpreter(mask, binding);
    std::int64_t sum = 0;
    const std::int64_t key0 = place.column * shape.keyBlock;
    const int width = static_cast<int>(std::min(shape.keyBlock, shape.keys - key0));
    for (std::int64_t query = place.row * shape.queryBlock;
         query < std::min((place.row + 1) * shape.queryBlock, shape.queries); ++query) {
        interpreter.run({place.batch, place.head, query}, key0, width, nullptr);
        sum += std::count(interpreter.booleans(), interpreter.booleans() + width, 1);
    }
    return static_cast<std::int32_t>(sum);
}

/// The op on the CPU, with the interface that builders of masks use.
class ContextEvaluator final : public BlockEvaluator {
public:
    ContextEvaluator(CpuContext& context, const Program& mask, const CaptureBinding& binding,
                     const BlockMaskShape& shape)
        : context_(context) {
        op_.mask = {&mask, binding};
        op_.shape = shape;
    }

    void count(std::span<const BlockPlace> places, bool exact, std::span<std::int32_t> counts) override {
        asked += static_cast<std::int64_t>(places.size());
        std::vector<BlockPlace> copy(places.begin(), places.end());
        const auto size = static_cast<std::int64_t>(places.size());
        op_.exact = exact;
        op_.places = {copy.data(), DType::I32, Shape{size, 4}, 0};
        op_.counts = {counts.data(), DType::I32, Shape{size}, 0};
        check(op_);
        execute(context_, op_);
    }
    std::int64_t worthElements() const override { return worth; }

    std::int64_t worth = 1;
    std::int64_t asked = 0;

private:
    CpuContext& context_;
    BlockCounts op_;
};

inline void expectSameMask(const BlockMask& found, const BlockMask& expected) {
    const auto same = [](const std::vector<BlockRun>& a, const std::vector<BlockRun>& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const BlockRun& x, const BlockRun& y) {
            return x.first == y.first && x.count == y.count && x.full == y.full;
        });
    };
    EXPECT_EQ(found.rowOffsets, expected.rowOffsets);
    EXPECT_EQ(found.columnOffsets, expected.columnOffsets);
    EXPECT_TRUE(same(found.rowRuns, expected.rowRuns));
    EXPECT_TRUE(same(found.columnRuns, expected.columnRuns));
    EXPECT_EQ(found.full, expected.full);
    EXPECT_EQ(found.partial, expected.partial);
    EXPECT_EQ(found.empty, expected.empty);
}

} // namespace vitrine::kernels::testing
