// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/adamw_8bit.h"

#include <algorithm>

#include "kernels/formats/dynamic_map.h"
#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

/// A parameter with its state, all moments zero.
struct State8Bit {
    TestTensor parameter, master, gradient, code1, absmax1, code2, absmax2, maps;

    State8Bit(std::mt19937& random, DType type, DType gradientType, bool withMaster, std::int64_t n)
        : parameter(type, Shape{n}), gradient(gradientType, Shape{n}), code1(DType::U8, Shape{n}),
          absmax1(DType::F32, Shape{adamW8BitBlocks(n)}), code2(DType::U8, Shape{n}),
          absmax2(DType::F32, Shape{adamW8BitBlocks(n)}), maps(DType::F32, Shape{2, 256}) {
        parameter.fillNormal(random);
        if (withMaster) {
            master = TestTensor(DType::F32, Shape{n});
            master.fillNormal(random);
        }
        code1.fillBytes(random, 0, 0);
        code2.fillBytes(random, 0, 0);
        const std::vector<double> zeros(static_cast<std::size_t>(adamW8BitBlocks(n)), 0);
        absmax1.fill(zeros);
        absmax2.fill(zeros);
        std::vector<double> tables;
        for (const DynamicMap& map : {signedDynamicMap(), unsignedDynamicMap()}) {
            tables.insert(tables.end(), map.begin(), map.end());
        }
        maps.fill(tables);
    }
    AdamW8Bit op() const {
        return {parameter, master, gradient, code1, absmax1, code2, absmax2, maps, {}, 1e-2, 0.8, 0.9, 1e-6, 0.1};
    }
};

std::vector<double> momentsOf(const DynamicMap& map, const TestTensor& codes, const TestTensor& absmax) {
    std::vector<double> out;
    const std::vector<double> values = codes.values(), scales = absmax.values();
    for (std::size_t i = 0; i < values.size(); ++i) {
        out.push_back(static_cast<double>(map[static_cast<std::size_t>(values[i])]) * scales[i / 256]);
    }
    return out;
}

/// Every scale is the block's largest, every code a nearest one.
void expectPacked(const std::vector<double>& moments, const DynamicMap& map, const TestTensor& codes,
                  const TestTensor& absmax) {
    const std::vector<double> values = codes.values(), scales = absmax.values();
    for (std::size_t i = 0; i < moments.size(); ++i) {
        const auto begin = moments.begin() + static_cast<std::ptrdiff_t>(i / 256 * 256);
        const auto end = moments.begin() + static_cast<std::ptrdiff_t>(std::min(moments.size(), i / 256 * 256 + 256));
        const double largest =
            std::fabs(*std::max_element(begin, end, [](double a, double b) { return std::fabs(a) < std::fabs(b); }));
        ASSERT_NEAR(scales[i / 256], largest, 1e-6 * largest);
        double nearest = 2;
        for (const float value : map) {
            nearest = std::min(nearest, std::fabs(static_cast<double>(value) - moments[i] / largest));
        }
        const double code = static_cast<double>(map[static_cast<std::size_t>(values[i])]);
        ASSERT_NEAR(std::fabs(code - moments[i] / largest), nearest, 1e-6) << "element " << i;
    }
    EXPECT_TRUE(codes.guardsIntact() && absmax.guardsIntact());
}

TEST(AdamW8Bit, StepsOnUnpackedMoments) {
    std::mt19937 random(1);
    CpuContext context(2);
    const DynamicMap first = signedDynamicMap(), second = unsignedDynamicMap();
    for (const auto& [type, gradientType, withMaster] : {std::tuple{DType::F32, DType::F32, false},
                                                         {DType::BF16, DType::BF16, true},
                                                         {DType::BF16, DType::F32, false},
                                                         {DType::F16, DType::F64, false}}) {
        for (const std::int64_t n : {1, 256, 3 * 256 + 17}) {
            SCOPED_TRACE(::testing::Message() << dtypeName(type) << ", " << n);
            State8Bit state(random, type, gradientType, withMaster, n);
            const TestTensor& updated = withMaster ? state.master : state.parameter;
            AdamW8Bit op = state.op();
            for (op.step = 1; op.step <= 4; ++op.step) {
                state.gradient.fillNormal(random);
                std::vector<double> m = momentsOf(first, state.code1, state.absmax1);
                std::vector<double> v = momentsOf(second, state.code2, state.absmax2);
                std::vector<double> p = updated.values();
                const std::vector<double> gradients = state.gradient.values();
                testing::runOp(context, op);
                const double root = std::sqrt(1 - std::pow(0.9, static_cast<double>(op.step)));
                const double rate = 1e-2 / (1 - std::pow(0.8, static_cast<double>(op.step)));
                for (std::size_t i = 0; i < p.size(); ++i) {
                    m[i] = 0.8 * m[i] + 0.2 * gradients[i];
                    v[i] = 0.9 * v[i] + 0.1 * gradients[i] * gradients[i];
                    p[i] = p[i] * (1 - 1e-3) - rate * m[i] / (std::sqrt(v[i]) / root + 1e-6);
                }
                testing::expectNear(updated, p, 1e-6, 1.01);
                expectPacked(m, first, state.code1, state.absmax1);
                expectPacked(v, second, state.code2, state.absmax2);
            }
            std::vector<double> rounded = updated.values();
            roundFloats(type, rounded.data(), n);
            EXPECT_EQ(state.parameter.values(), rounded);
        }
    }
}

TEST(AdamW8Bit, TiesGoToTheLowerCode) {
    CpuContext context(1);
    std::mt19937 random(2);
    State8Bit state(random, DType::F32, DType::F32, false, 2);
    std::vector<double> tables;
    for (int i = 0; i < 512; ++i) {
        tables.push_back((i % 256 - 127) / 128.0);
    }
    state.maps.fill(tables);
    state.gradient.fill({1, 0.5 / 128});
    AdamW8Bit op = state.op();
    op.beta1 = 0; // moment1 is the gradient
    testing::runOp(context, op);
    EXPECT_EQ(state.code1.values(), (std::vector<double>{255, 127}));
}

TEST(AdamW8Bit, ZeroGradientsKeepZeroMoments) {
    CpuContext context(1);
    std::mt19937 random(3);
    State8Bit state(random, DType::F32, DType::F32, false, 300);
    state.gradient.fill(std::vector<double>(300, 0));
    std::vector<double> expected = state.parameter.values();
    for (double& value : expected) {
        value *= 1 - 1e-3;
    }
    testing::runOp(context, state.op());
    testing::expectNear(state.parameter, expected, 0, 2);
    EXPECT_EQ(state.absmax1.values(), (std::vector<double>{0, 0}));
    EXPECT_EQ(state.absmax2.values(), (std::vector<double>{0, 0}));
}

TEST(AdamW8Bit, CheckNamesTheField) {
    std::mt19937 random(4);
    State8Bit state(random, DType::BF16, DType::BF16, true, 300);
    const AdamW8Bit good = state.op();
    check(good);
    AdamW8Bit op = good;
    op.code1.shape = Shape{299};
    testing::expectCheckNames(op, "code1");
    op = good;
    op.absmax2.shape = Shape{1};
    testing::expectCheckNames(op, "absmax2");
    op = good;
    op.code2.dtype = DType::I8;
    testing::expectCheckNames(op, "code2");
    op = good;
    op.maps.shape = Shape{256, 2};
    testing::expectCheckNames(op, "maps");
    op = good;
    op.step = 0;
    testing::expectCheckNames(op, "step");
    op = good;
    op.code2 = op.code1;
    testing::expectCheckNames(op, "code2");
}

} // namespace
} // namespace vitrine::kernels
