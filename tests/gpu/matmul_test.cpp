// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/matmul.h"

#include "kernels/formats/weight_formats.h"
#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

struct MatmulCase {
    std::int64_t rows, in, out;
    DType x, weight, bias, result;
    int residual = 0; ///< 0 none, 1 elsewhere, 2 in place
    bool transposed = false;
    std::int64_t extraStride = 0;
};

TEST(MatmulGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    const DType mxfp4 = DType::U8, wide = DType::F32, narrow = DType::BF16, none = DType::None;
    const std::vector<MatmulCase> cases{
        {1, 64, 96, narrow, narrow, narrow, narrow},
        {200, 128, 320, narrow, narrow, narrow, narrow, 2},
        {200, 128, 320, narrow, narrow, narrow, narrow, 1},
        {70, 96, 32, narrow, narrow, narrow, wide},
        {33, 65, 31, narrow, narrow, narrow, narrow, 1},
        {40, 64, 48, narrow, narrow, none, narrow, 0, false, 48},
        {40, 64, 48, narrow, narrow, none, narrow, 0, true},
        {50, 96, 70, wide, narrow, narrow, wide, 2},
        {50, 96, 70, wide, wide, wide, wide, 1},
        {50, 96, 70, wide, mxfp4, narrow, wide},
        {9, 64, 130, narrow, mxfp4, none, narrow},
    };
    std::mt19937 random(3);
    for (const MatmulCase& item : cases) {
        SCOPED_TRACE(::testing::Message() << item.rows << " rows, in " << item.in << ", out " << item.out);
        TestTensor x(item.x, Shape{item.rows, item.in});
        x.fillNormal(random);
        TestTensor dense, blocks, scales, bias, residual;
        if (item.weight == mxfp4) {
            blocks = TestTensor(DType::U8, Shape{item.out, item.in / 32, 16});
            scales = TestTensor(DType::U8, Shape{item.out, item.in / 32});
            blocks.fillBytes(random, 0, 255);
            scales.fillBytes(random, 119, 125);
        } else {
            dense = TestTensor(item.weight, item.transposed ? Shape{item.in, item.out} : Shape{item.out, item.in});
            dense.fillNormal(random, 1 / std::sqrt(static_cast<double>(item.in)));
        }
        if (item.bias != none) {
            bias = TestTensor(item.bias, Shape{item.out});
            bias.fillNormal(random);
        }
        TestTensor out(item.result, Shape{item.rows, item.out}, item.out + item.extraStride);
        if (item.residual == 1) {
            residual = TestTensor(item.result, Shape{item.rows, item.out});
            residual.fillNormal(random);
        } else if (item.residual == 2) {
            out.fillNormal(random);
        }
        const auto make = [&](auto&& at) {
            Matmul op;
            op.x = at(x);
            op.weight = item.weight == mxfp4 ? packedWeight(WeightFormat::Mxfp4, at(blocks), at(scales))
                                             : denseWeight(at(dense), item.transposed);
            op.bias = at(bias);
            op.out = at(out);
            op.residual = item.residual == 2 ? op.out : at(residual);
            return op;
        };
        testing::expectSameOnGpu(*testing::gpu(), make, {&out}, item.result == wide && item.x == wide ? 1e-5 : 1e-2);
    }
}

} // namespace
} // namespace vitrine::kernels
