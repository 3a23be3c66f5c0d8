// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/causal_blocks.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <random>

#include "kernels/program/program_builder.h"
#include "tests/repetitions.h"

namespace vitrine::kernels {
namespace {

/// first[query] <= key <= query
Program fromFirstKey() {
    ProgramBuilder builder;
    const auto query = builder.input(ProgramOp::Query);
    const auto key = builder.input(ProgramOp::Key);
    const std::int32_t first = builder.capture({"first", ProgramType::Int32, 1, false});
    return builder.finish(builder.binary(ProgramOp::And, builder.binary(ProgramOp::Le, key, query),
                                         builder.binary(ProgramOp::Le, builder.load(first, std::array{query}), key)));
}

/// For each token the first key that it sees: of its document, and of its window where there is one.
std::vector<std::int32_t> randomFirstKeys(std::mt19937& random) {
    std::vector<std::int32_t> out;
    const auto window = static_cast<std::int32_t>(random() % 3 == 0 ? 1 + random() % 500 : 1 << 20);
    for (auto documents = 1 + random() % 12; documents > 0; --documents) {
        const auto begin = static_cast<std::int32_t>(out.size());
        const auto length = static_cast<std::int32_t>(1 + random() % (random() % 2 == 0 ? 700 : 5));
        for (std::int32_t query = begin; query < begin + length; ++query) {
            out.push_back(std::max(begin, query - window + 1));
        }
    }
    return out;
}

std::vector<std::array<std::int32_t, 3>> numbersOf(const std::vector<BlockRun>& runs) {
    std::vector<std::array<std::int32_t, 3>> out;
    for (const BlockRun& run : runs) {
        out.push_back({run.first, run.count, run.full ? 1 : 0});
    }
    return out;
}

TEST(CausalBlocksTest, ItIsTheMaskThatTheProgramGives) {
    std::mt19937 random(11);
    const Program program = fromFirstKey();
    base::ThreadPool pool(1);
    for (int round = 0; round < vitrine::test::repetitions(200); ++round) {
        std::vector<std::int32_t> first = randomFirstKeys(random);
        const auto tokens = static_cast<std::int64_t>(first.size());
        CaptureBinding binding;
        binding.tensors = {TensorView{first.data(), DType::I32, Shape{tokens}, {}}};
        const BlockMask expected = buildBlockMask(program, binding, {1, 1, tokens, tokens}, pool);
        const BlockMask mask =
            causalBlockMask(tokens, [&](std::int64_t query) { return first[static_cast<std::size_t>(query)]; });
        EXPECT_EQ(mask.rowOffsets, expected.rowOffsets) << "round " << round;
        EXPECT_EQ(numbersOf(mask.rowRuns), numbersOf(expected.rowRuns)) << "round " << round;
        EXPECT_EQ(mask.columnOffsets, expected.columnOffsets) << "round " << round;
        EXPECT_EQ(numbersOf(mask.columnRuns), numbersOf(expected.columnRuns)) << "round " << round;
        EXPECT_EQ(mask.full, expected.full) << "round " << round;
        EXPECT_EQ(mask.partial, expected.partial) << "round " << round;
        EXPECT_EQ(mask.empty, expected.empty) << "round " << round;
    }
}

} // namespace
} // namespace vitrine::kernels
