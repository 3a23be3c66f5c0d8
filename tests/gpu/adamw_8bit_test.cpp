// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/adamw_8bit.h"

#include "kernels/formats/dynamic_map.h"
#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

std::vector<double> bothMaps() {
    std::vector<double> values;
    for (const DynamicMap& map : {signedDynamicMap(), unsignedDynamicMap()}) {
        values.insert(values.end(), map.begin(), map.end());
    }
    return values;
}

void fillScales(std::mt19937& random, TestTensor& tensor) {
    std::uniform_real_distribution<double> uniform(0.5, 2);
    std::vector<double> values(static_cast<std::size_t>(tensor.view().shape.count()));
    for (double& value : values) {
        value = uniform(random);
    }
    tensor.fill(values);
}

TEST(AdamW8BitGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(51);
    // A moment that lies within rounding of a border may get either neighbour.
    const double oneCode = 1.5 / 200;
    for (const auto& [type, gradientType, withMaster] : {std::tuple{DType::F32, DType::F32, false},
                                                         {DType::BF16, DType::BF16, true},
                                                         {DType::BF16, DType::F32, false}}) {
        for (const std::int64_t n : {256, 8 * 1000, 77777, 4 << 20}) {
            SCOPED_TRACE(::testing::Message() << dtypeName(type) << ", " << n);
            TestTensor parameter(type, Shape{n}), gradient(gradientType, Shape{n}), master, gradScale;
            TestTensor code1(DType::U8, Shape{n}), absmax1(DType::F32, Shape{adamW8BitBlocks(n)});
            TestTensor code2(DType::U8, Shape{n}), absmax2(DType::F32, Shape{adamW8BitBlocks(n)});
            TestTensor maps(DType::F32, Shape{2, 256});
            maps.fill(bothMaps());
            parameter.fillNormal(random);
            gradient.fillNormal(random);
            code1.fillBytes(random, 0, 255);
            code2.fillBytes(random, 200, 255); // no quotients by moments of almost zero
            fillScales(random, absmax1);
            fillScales(random, absmax2);
            std::vector<testing::ComparedOutput> outputs{{&parameter, type == DType::F32 ? 1e-6 : 4e-3},
                                                         {&code1, oneCode},
                                                         {&absmax1, 1e-6},
                                                         {&code2, oneCode},
                                                         {&absmax2, 1e-6}};
            if (withMaster) {
                master = TestTensor(DType::F32, Shape{n});
                master.fillNormal(random);
                outputs.push_back({&master, 1e-6});
                gradScale = TestTensor(DType::F32, Shape{1});
                gradScale.fill({0.5});
            }
            const auto make = [&](auto&& at) {
                AdamW8Bit op{at(parameter), at(master),  at(gradient), at(code1),     at(absmax1),
                             at(code2),     at(absmax2), at(maps),     at(gradScale), 0.01};
                op.step = 2;
                return op;
            };
            testing::expectSameOnGpu(*testing::gpu(), make, outputs);
        }
    }
}

TEST(AdamW8BitGpu, FirstStepFromZeroBytes) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(52);
    const std::int64_t n = 300;
    TestTensor parameter(DType::F32, Shape{n}), gradient(DType::F32, Shape{n}), maps(DType::F32, Shape{2, 256});
    TestTensor code1(DType::U8, Shape{n}), absmax1(DType::F32, Shape{2});
    TestTensor code2(DType::U8, Shape{n}), absmax2(DType::F32, Shape{2});
    maps.fill(bothMaps());
    parameter.fillNormal(random);
    gradient.fill(std::vector<double>(static_cast<std::size_t>(n), 0));
    code1.fillBytes(random, 0, 0);
    code2.fillBytes(random, 0, 0);
    absmax1.fill({0, 0});
    absmax2.fill({0, 0});
    const auto make = [&](auto&& at) {
        return AdamW8Bit{at(parameter), {},          at(gradient), at(code1), at(absmax1),
                         at(code2),     at(absmax2), at(maps),     {},        0.01};
    };
    testing::expectSameOnGpu(*testing::gpu(), make,
                             {{&parameter, 1e-6}, {&code1, 0}, {&code2, 0}, {&absmax1, 0}, {&absmax2, 0}});
}

} // namespace
} // namespace vitrine::kernels
