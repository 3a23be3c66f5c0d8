// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/pack_experts.h"

#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

std::vector<double> packedIds(const TensorView& out) {
    std::vector<double> ids;
    for (std::int64_t i = 0; i < out.shape.count(); ++i) {
        ids.push_back(out.dtype == DType::U8 ? out.as<std::uint8_t>()[i] : out.as<std::uint16_t>()[i]);
    }
    return ids;
}

TEST(PackExperts, EachLayerHasItsPlace) {
    CpuContext context(2);
    for (const auto& [type, experts] : {std::pair{DType::U8, 256}, {DType::U16, 384}}) {
        for (const auto& [tokens, k] : {std::pair{1, 1}, {70, 8}, {33, 4}, {0, 2}}) {
            constexpr int kLayers = 3;
            const TestTensor out(type, Shape{tokens, kLayers, k});
            std::vector<double> expected(static_cast<std::size_t>(tokens * kLayers * k));
            for (int layer = 0; layer < kLayers; ++layer) {
                std::vector<std::int32_t> values;
                for (int i = 0; i < tokens * k; ++i) {
                    values.push_back(experts - 1 - (7 * i + 3 * layer) % experts);
                    expected[static_cast<std::size_t>((i / k * kLayers + layer) * k + i % k)] = values.back();
                }
                TestTensor ids(DType::I32, Shape{tokens, k});
                ids.fillInts(values);
                testing::runOp(context, PackExperts{ids, out, layer});
            }
            EXPECT_EQ(packedIds(out), expected);
            EXPECT_TRUE(out.guardsIntact());
        }
    }
}

TEST(PackExperts, CheckNamesTheField) {
    const TestTensor ids(DType::I32, Shape{5, 2}), out(DType::U8, Shape{5, 3, 2});
    const PackExperts good{ids, out, 2};
    check(good);
    PackExperts op = good;
    op.layer = 3;
    testing::expectCheckNames(op, "layer");
    op = good;
    op.out.dtype = DType::I32;
    testing::expectCheckNames(op, "out");
    op = good;
    op.out.shape = Shape{5, 3, 1};
    testing::expectCheckNames(op, "out");
    op = good;
    op.ids.dtype = DType::U8;
    testing::expectCheckNames(op, "ids");
}

} // namespace
} // namespace vitrine::kernels
