// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <numeric>

#include "kernels/ops/rowwise/embedding.h"
#include "tests/kernels/ops/common/gradient_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

std::vector<std::int32_t> sortedOrder(const std::vector<std::int32_t>& ids) {
    std::vector<std::int32_t> order(ids.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return ids[static_cast<std::size_t>(a)] < ids[static_cast<std::size_t>(b)];
    });
    return order;
}

/// Ids with a long run, single ones, and rows that no token has.
std::vector<std::int32_t> someIds(std::mt19937& random, std::int64_t tokens) {
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < tokens; ++i) {
        ids.push_back(i % 3 == 0 ? 4 : static_cast<std::int32_t>(random() % 20));
    }
    return ids;
}

TEST(EmbeddingGradient, AgainstDifferences) {
    std::mt19937 random(1);
    CpuContext context(2);
    const std::vector<std::int32_t> numbers = someIds(random, 9);
    TestTensor ids(DType::I32, Shape{9}), order(DType::I32, Shape{9}), table(DType::F64, Shape{20, 5});
    TestTensor out(DType::F64, Shape{9, 5}), gradOut(DType::F64, Shape{9, 5}), gradTable(DType::F64, Shape{20, 5});
    ids.fillInts(numbers);
    order.fillInts(sortedOrder(numbers));
    table.fillNormal(random);
    gradOut.fillNormal(random);
    gradTable.fill(std::vector<double>(100, 0));
    testing::runOp(context, EmbeddingGradient{order, ids, gradOut, gradTable, 1.5F});
    testing::expectGradient(table, gradTable.values(), [&] {
        testing::runOp(context, Embedding{ids, table, out, 1.5F});
        return testing::dotOf(out, gradOut);
    });
}

TEST(EmbeddingGradient, AddsInEveryType) {
    std::mt19937 random(2);
    for (const DType type : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
        for (const DType sums : {DType::F32, DType::F64}) {
            for (const auto& [tokens, hidden] : {std::pair{1, 3}, {300, 40}, {33, 600}, {0, 4}}) {
                const std::vector<std::int32_t> numbers = someIds(random, tokens);
                TestTensor ids(DType::I32, Shape{tokens}), order(DType::I32, Shape{tokens});
                TestTensor gradOut(type, Shape{tokens, hidden}, hidden + 3);
                TestTensor gradTable(sums, Shape{20, hidden}, hidden + 5);
                ids.fillInts(numbers);
                order.fillInts(sortedOrder(numbers));
                gradOut.fillNormal(random);
                gradTable.fillNormal(random);
                std::vector<double> expected = gradTable.values();
                const std::vector<double> before = expected, grads = gradOut.values();
                for (std::size_t i = 0; i < grads.size(); ++i) {
                    const auto width = static_cast<std::size_t>(hidden);
                    expected[static_cast<std::size_t>(numbers[i / width]) * width + i % width] += 0.5 * grads[i];
                }
                for (const int threads : {1, 3}) {
                    CpuContext context(threads);
                    gradTable.fill(before);
                    testing::runOp(context, EmbeddingGradient{order, ids, gradOut, gradTable, 0.5F});
                    testing::expectClose(gradTable, expected, sums == DType::F64 ? 1e-14 : 2e-6);
                }
            }
        }
    }
}

TEST(EmbeddingGradient, RefusesWrongIdsAndShapes) {
    CpuContext context(1);
    TestTensor ids(DType::I32, Shape{2}), order(DType::I32, Shape{2});
    TestTensor gradOut(DType::F32, Shape{2, 4}), gradTable(DType::F32, Shape{3, 4});
    const EmbeddingGradient good{order, ids, gradOut, gradTable};
    check(good);
    ids.fillInts({0, 3});
    order.fillInts({0, 1});
    EXPECT_THROW(execute(context, good), base::BadInput);
    ids.fillInts({0, 1});
    order.fillInts({0, 2});
    EXPECT_THROW(execute(context, good), base::BadInput);
    EmbeddingGradient op = good;
    op.order.shape = Shape{1};
    testing::expectCheckNames(op, "order");
    op = good;
    op.gradOut.shape = Shape{1, 4};
    testing::expectCheckNames(op, "gradOut");
    op = good;
    op.gradTable.dtype = DType::BF16;
    testing::expectCheckNames(op, "gradTable");
    op = good;
    op.gradTable.data = gradOut.view().data;
    testing::expectCheckNames(op, "gradTable");
}

} // namespace
} // namespace vitrine::kernels
