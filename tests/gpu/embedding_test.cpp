// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/embedding.h"

#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(EmbeddingGpu, RowsOfTheTableScaled) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(8);
    for (const auto& [table, out, dim] :
         {std::tuple{DType::BF16, DType::BF16, 2880}, std::tuple{DType::BF16, DType::F32, 33},
          std::tuple{DType::F16, DType::F16, 40}}) {
        TestTensor rows(table, Shape{50, dim}), ids(DType::I32, Shape{5}), result(out, Shape{5, dim}, dim + 7);
        rows.fillNormal(random);
        ids.fillInts({0, 49, 3, 3, 17});
        testing::expectSameOnGpu(
            *testing::gpu(), [&](auto&& at) { return Embedding{at(ids), at(rows), at(result), 53.5F}; }, {&result}, 0);
    }
}

} // namespace
} // namespace vitrine::kernels
