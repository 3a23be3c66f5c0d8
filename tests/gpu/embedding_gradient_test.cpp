// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <numeric>

#include "kernels/ops/rowwise/embedding.h"
#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(EmbeddingGradientGpu, RunsOfEqualIdsAddUp) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(41);
    for (const auto& [type, tokens, dim] : {std::tuple{DType::BF16, 300, 2880}, std::tuple{DType::F32, 40, 33},
                                            std::tuple{DType::F16, 1, 1032}, std::tuple{DType::BF16, 0, 64}}) {
        SCOPED_TRACE(dim);
        std::vector<std::int32_t> numbers, places(static_cast<std::size_t>(tokens));
        for (int i = 0; i < tokens; ++i) {
            numbers.push_back(i % 3 == 0 ? 4 : static_cast<std::int32_t>(random() % 50));
        }
        std::iota(places.begin(), places.end(), 0);
        std::stable_sort(places.begin(), places.end(), [&](std::int32_t a, std::int32_t b) {
            return numbers[static_cast<std::size_t>(a)] < numbers[static_cast<std::size_t>(b)];
        });
        TestTensor ids(DType::I32, Shape{tokens}), order(DType::I32, Shape{tokens});
        TestTensor gradOut(type, Shape{tokens, dim}, dim + 8), gradTable(DType::F32, Shape{50, dim}, dim + 16);
        ids.fillInts(numbers);
        order.fillInts(places);
        gradOut.fillNormal(random);
        gradTable.fillNormal(random);
        testing::expectSameOnGpu(
            *testing::gpu(),
            [&](auto&& at) { return EmbeddingGradient{at(order), at(ids), at(gradOut), at(gradTable), 1.5F}; },
            {&gradTable}, 1e-6);
    }
}

} // namespace
} // namespace vitrine::kernels
