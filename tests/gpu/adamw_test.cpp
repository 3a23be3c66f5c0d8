// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/adamw.h"

#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

/// A moment of squares.
void fillPositive(std::mt19937& random, TestTensor& tensor) {
    std::uniform_real_distribution<double> uniform(0.1, 2);
    std::vector<double> values(static_cast<std::size_t>(tensor.view().shape.count()));
    for (double& value : values) {
        value = uniform(random);
    }
    tensor.fill(values);
}

TEST(AdamWGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(41);
    for (const auto& [type, gradientType, withMaster] : {std::tuple{DType::F32, DType::F32, false},
                                                         {DType::BF16, DType::BF16, true},
                                                         {DType::BF16, DType::F32, false},
                                                         {DType::F16, DType::BF16, true}}) {
        for (const std::int64_t columns : {33, 4096}) {
            for (const bool scaled : {false, true}) {
                SCOPED_TRACE(::testing::Message()
                             << dtypeName(type) << ", columns " << columns << ", scaled " << scaled);
                const std::int64_t n = 3 * columns;
                TestTensor parameter(type, Shape{3, columns}), gradient(gradientType, Shape{n}), master, gradScale;
                TestTensor moment1(DType::F32, Shape{n}), moment2(DType::F32, Shape{n});
                parameter.fillNormal(random);
                gradient.fillNormal(random);
                moment1.fillNormal(random);
                fillPositive(random, moment2);
                std::vector<testing::ComparedOutput> outputs{
                    {&parameter, type == DType::F32 ? 1e-6 : 4e-3}, {&moment1, 1e-6}, {&moment2, 1e-6}};
                if (withMaster) {
                    master = TestTensor(DType::F32, Shape{n});
                    master.fillNormal(random);
                    outputs.push_back({&master, 1e-6});
                }
                if (scaled) {
                    gradScale = TestTensor(DType::F32, Shape{1});
                    gradScale.fill({0.3});
                }
                const auto make = [&](auto&& at) {
                    AdamW op{at(parameter), at(master), at(gradient), at(moment1), at(moment2), at(gradScale), 0.01};
                    op.step = 3;
                    return op;
                };
                testing::expectSameOnGpu(*testing::gpu(), make, outputs);
            }
        }
    }
}

TEST(AdamWGpu, NoElements) {
    VITRINE_NEEDS_GPU();
    TestTensor parameter(DType::F32, Shape{0}), gradient(DType::F32, Shape{0});
    TestTensor moment1(DType::F32, Shape{0}), moment2(DType::F32, Shape{0});
    testing::expectSameOnGpu(
        *testing::gpu(),
        [&](auto&& at) { return AdamW{at(parameter), {}, at(gradient), at(moment1), at(moment2), {}, 0.01}; },
        {&parameter}, 0);
}

} // namespace
} // namespace vitrine::kernels
