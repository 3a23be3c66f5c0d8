// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/sampling/greedy_parts.h"

#include "kernels/core/communicator.h"
#include "kernels/ops/sampling/sample.h"
#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

/// The whole row by Sample, and its parts by the two ops.
void compare(const std::vector<std::vector<double>>& rows, int parts) {
    CpuContext context(2);
    const auto count = static_cast<std::int64_t>(rows.size()), vocab = static_cast<std::int64_t>(rows[0].size());
    TestTensor logits(DType::F32, Shape{count, vocab}), ids(DType::I32, Shape{count}),
        logprobs(DType::F32, Shape{count});
    std::vector<double> all;
    for (const std::vector<double>& row : rows) {
        all.insert(all.end(), row.begin(), row.end());
    }
    logits.fill(all);
    const std::vector<SampleParameters> greedy(rows.size());
    Sample sample;
    sample.logits = logits;
    sample.parameters = greedy;
    sample.ids = ids;
    sample.logprobs = logprobs;
    testing::runOp(context, sample);
    TestTensor best(DType::F32, Shape{count, parts * kBestOfPart});
    for (int part = 0; part < parts; ++part) {
        const RankShare share = rankShare(vocab, part, parts);
        TestTensor of(DType::F32, Shape{count, kBestOfPart});
        TensorView own = logits;
        own.data = own.as<float>() + share.begin;
        own.shape = Shape{count, share.count()};
        own.strides[0] = vocab;
        testing::runOp(context, BestOfPart{own, share.begin, of});
        for (std::int64_t row = 0; row < count; ++row) {
            std::memcpy(best.view().as<float>() + (row * parts + part) * kBestOfPart,
                        of.view().as<float>() + row * kBestOfPart, kBestOfPart * sizeof(float));
        }
    }
    TestTensor partIds(DType::I32, Shape{count}), partLogprobs(DType::F32, Shape{count});
    testing::runOp(context, BestOfParts{best, partIds, partLogprobs});
    EXPECT_EQ(partIds.values(), ids.values());
    const std::vector<double> expected = logprobs.values(), actual = partLogprobs.values();
    for (std::size_t row = 0; row < rows.size(); ++row) {
        EXPECT_TRUE(std::isnan(expected[row]) ? std::isnan(actual[row]) : std::fabs(actual[row] - expected[row]) < 1e-5)
            << actual[row] << " and " << expected[row];
    }
}

TEST(GreedyParts, GiveWhatSampleGives) {
    std::mt19937 random{std::random_device{}()};
    std::normal_distribution<double> normal(0, 3);
    std::vector<std::vector<double>> rows(7, std::vector<double>(103));
    for (std::vector<double>& row : rows) {
        std::ranges::generate(row, [&] { return static_cast<double>(static_cast<float>(normal(random))); });
    }
    for (const int parts : {1, 2, 3, 8}) {
        compare(rows, parts);
    }
}

TEST(GreedyParts, TiesGoToTheLowerIdAndBrokenRowsSaySo) {
    std::vector<std::vector<double>> rows(4, std::vector<double>(16, -1));
    rows[0][3] = rows[0][12] = 5;
    rows[1][15] = rows[1][14] = 2;
    rows[2][9] = std::numeric_limits<double>::infinity();
    rows[3][2] = -std::numeric_limits<double>::infinity();
    for (const int parts : {1, 2, 4}) {
        compare(rows, parts);
    }
}

} // namespace
} // namespace vitrine::kernels
