// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/matmul.h"

#include "kernels/formats/weight_formats.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/linear/weight_testing.h"

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

/// Few rows and F32 rows read the packed weight; many BF16 rows go through BF16 in scratch.
TEST(MatmulGpu, PackedAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(4);
    std::vector<testing::TestWeight> weights;
    weights.push_back(testing::nf4Weight(random, 130, 192, false));
    weights.push_back(testing::nf4Weight(random, 131, 320, true));
    weights.push_back(testing::mxfp4Weight(random, 129, 96));
    weights.push_back(testing::integerWeight(random, 131, 320, {4, 64, DType::F16, true, true}));
    weights.push_back(testing::integerWeight(random, 131, 320, {8, 32, DType::F16, false, false}));
    weights.push_back(testing::fp8Weight(random, 131, 320, 128, 128));
    for (const testing::TestWeight& weight : weights) {
        for (const std::int64_t rows : {1, 16, 17, 300}) {
            for (const auto& [type, result] : {std::pair{DType::BF16, DType::BF16},
                                               {DType::BF16, DType::F32},
                                               {DType::F32, DType::F32},
                                               {DType::F16, DType::F16}}) {
                for (const bool residual : {false, true}) {
                    SCOPED_TRACE(::testing::Message() << rows << " rows of " << dtypeName(type) << ", in "
                                                      << weight.view.inFeatures() << ", residual " << residual);
                    TestTensor x(type, Shape{rows, weight.view.inFeatures()}, weight.view.inFeatures() + 8);
                    TestTensor bias(result, Shape{weight.view.outFeatures()});
                    TestTensor out(result, Shape{rows, weight.view.outFeatures()}, weight.view.outFeatures() + 3);
                    x.fillNormal(random);
                    bias.fillNormal(random);
                    if (residual) {
                        out.fillNormal(random);
                    }
                    const auto make = [&](auto&& at) {
                        Matmul op;
                        op.x = at(x);
                        op.weight = testing::viewAt(weight, at);
                        op.bias = at(bias);
                        op.out = at(out);
                        op.residual = residual ? op.out : TensorView{};
                        op.scale = residual ? 0.5F : 1.0F;
                        return op;
                    };
                    testing::expectSameOnGpu(*testing::gpu(), make, {&out}, type == DType::F32 ? 1e-5 : 1e-2);
                }
            }
        }
    }
}

TEST(MatmulGpu, PackedWithAnAdapter) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(6);
    const testing::TestWeight weight = testing::nf4Weight(random, 72, 128, true);
    for (const std::int64_t rows : {3, 40}) {
        TestTensor x(DType::BF16, Shape{rows, 128}), out(DType::BF16, Shape{rows, 72});
        TestTensor a(DType::BF16, Shape{8, 128}), b(DType::BF16, Shape{72, 8});
        for (TestTensor* tensor : {&x, &a, &b}) {
            tensor->fillNormal(random);
        }
        const auto make = [&](auto&& at) {
            Matmul op;
            op.x = at(x);
            op.weight = testing::viewAt(weight, at);
            op.out = at(out);
            op.adapter = AdapterView{at(a), at(b), 0.25F};
            return op;
        };
        testing::expectSameOnGpu(*testing::gpu(), make, {&out}, 1e-2);
    }
}

/// Without the scratch that a GPU's traits ask for, the result is the same.
TEST(MatmulGpu, PackedWithoutScratch) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(5);
    const testing::TestWeight weight = testing::nf4Weight(random, 70, 128, true);
    TestTensor x(DType::BF16, Shape{40, 128}), out(DType::BF16, Shape{40, 70});
    x.fillNormal(random);
    const auto make = [&](auto&& at) {
        Matmul op;
        op.x = at(x);
        op.weight = testing::viewAt(weight, at);
        op.out = at(out);
        return op;
    };
    testing::OnDevice device(*testing::gpu());
    const Matmul op = make(device);
    check(op);
    execute(*testing::gpu(), op);
    testing::gpu()->synchronize();
    CpuContext cpu(2);
    testing::runOp(cpu, make([](const TestTensor& tensor) { return tensor.view(); }));
    const std::vector<double> expected = out.values();
    device.download(out);
    EXPECT_TRUE(out.guardsIntact());
    EXPECT_LE(testing::relativeDifference(out.values(), expected), 1e-2);
}

} // namespace
} // namespace vitrine::kernels
