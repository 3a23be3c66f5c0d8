// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/pack_weight.h"

#include <cmath>
#include <deque>
#include <limits>
#include <random>
#include <vector>

#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/linear/pack_weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::PackBase;
using testing::PackForm;
using testing::PackRig;
using testing::TestTensor;

std::vector<PackForm> packForms() {
    std::vector<PackForm> forms;
    for (const DType type : {DType::F32, DType::BF16, DType::F16}) {
        for (const IntegerRule rule : {IntegerRule::Seven, IntegerRule::CompressedTensors}) {
            for (const std::int64_t group : {8, 32, 128, 96}) {
                forms.push_back({WeightFormat::Int4, group, 1, type, rule});
            }
        }
        forms.push_back({WeightFormat::Mxfp4, 32, 1, type});
        forms.push_back({WeightFormat::Fp8, 128, 128, type});
        forms.push_back({WeightFormat::Fp8, 384, 1, type});
    }
    return forms;
}

/// One of each kind: each makes kernels of its own for every kind of weight that it is packed from.
std::vector<PackForm> fewPackForms() {
    return {{WeightFormat::Int4, 32, 1, DType::F32, IntegerRule::Seven},
            {WeightFormat::Int4, 128, 1, DType::BF16, IntegerRule::CompressedTensors},
            {WeightFormat::Int4, 96, 1, DType::BF16, IntegerRule::Seven},
            {WeightFormat::Int4, 8, 1, DType::F16, IntegerRule::CompressedTensors},
            {WeightFormat::Mxfp4, 32, 1, DType::F32},
            {WeightFormat::Fp8, 128, 128, DType::BF16},
            {WeightFormat::Fp8, 384, 1, DType::F32}};
}

void expectSamePacked(std::mt19937& random, const PackForm& form, const PackBase& base) {
    SCOPED_TRACE(::testing::Message() << static_cast<int>(form.format) << " group " << form.group << " type "
                                      << dtypeName(form.type) << " of " << dtypeName(base.x) << ", format "
                                      << static_cast<int>(base.format) << ", rank " << base.rank);
    PackRig rig(random, form, base, 3, 131, 384);
    const auto make = [&](auto&& at) { return rig.op(at); };
    std::vector<TestTensor*> results = {&rig.out.data, &rig.out.scales, &rig.changed};
    if (base.values != DType::None) {
        results.push_back(&rig.values);
    }
    testing::expectSameOnGpu(*testing::gpu(), make, results, 0);
}

TEST(PackWeightGpu, BitForBitAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(31);
    for (const PackForm& form : packForms()) {
        expectSamePacked(random, form, PackBase{DType::F32});
    }
    for (const PackForm& form : fewPackForms()) {
        expectSamePacked(random, form, PackBase{DType::BF16});
        for (const DType values : {DType::F32, DType::BF16}) {
            expectSamePacked(random, form, PackBase{DType::F32, WeightFormat::Dense, 0, DType::BF16, values});
        }
    }
}

TEST(PackWeightGpu, AnAdapterIsMergedBitForBit) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(33);
    for (const PackForm& form : fewPackForms()) {
        for (const std::int64_t rank : {1, 16}) {
            expectSamePacked(random, form, PackBase{DType::BF16, WeightFormat::Dense, rank, DType::BF16});
            expectSamePacked(random, form, PackBase{DType::BF16, form.format, rank, DType::F32, DType::BF16});
        }
    }
}

/// Quotients near the halves between codes are where a division that is not exact would show.
TEST(PackWeightGpu, ManyRandomQuotientsAreRoundedAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(std::random_device{}());
    for (const DType type : {DType::F32, DType::BF16}) {
        for (const double deviation : {1e-30, 1e-3, 1e30}) {
            PackRig rig(random, {WeightFormat::Int4, 32, 1, type, IntegerRule::CompressedTensors}, DType::F32, 1, 2048,
                        1024);
            rig.x.fillNormal(random, deviation);
            float* const x = rig.x.view().as<float>();
            for (std::int64_t i = 0; i < 2048 * 1024; i += 32) {
                const float step = std::abs(x[i]);
                x[i] = 7.5F * step;
                for (std::int64_t k = 1; k < 16; ++k) { // halves, and their neighbours
                    x[i + k] = (static_cast<float>(k) - 7.5F) * step;
                    x[i + k + 15] = std::nextafter(x[i + k], k % 2 == 0 ? 0.0F : x[i]);
                }
            }
            const auto make = [&](auto&& at) { return rig.op(at); };
            testing::expectSameOnGpu(*testing::gpu(), make, {&rig.out.data, &rig.out.scales}, 0);
        }
    }
}

/// More weights than a launch takes, of two kinds, and with rows that make no whole blocks of threads.
TEST(PackWeightGpu, ManyWeightsInOneOp) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(34);
    std::deque<PackRig> rigs;
    for (std::int64_t i = 0; i < 70; ++i) {
        const std::int64_t rank = i % 5 == 0 ? 3 : 0;
        rigs.emplace_back(random, i % 7 == 6 ? PackForm{WeightFormat::Mxfp4} : PackForm{},
                          PackBase{DType::BF16, WeightFormat::Dense, rank}, 1 + i % 3, 1 + i * 3 % 40, 32 + i % 4 * 64);
    }
    std::deque<std::vector<PackWeight>> made;
    const auto make = [&](auto&& at) {
        std::vector<PackWeight>& weights = made.emplace_back();
        for (PackRig& rig : rigs) {
            weights.push_back(rig.weight(at));
        }
        return PackWeights{weights, at(rigs.front().changed)};
    };
    std::vector<TestTensor*> results = {&rigs.front().changed};
    for (PackRig& rig : rigs) {
        results.push_back(&rig.out.data);
        results.push_back(&rig.out.scales);
    }
    testing::expectSameOnGpu(*testing::gpu(), make, results, 0);
}

TEST(PackWeightGpu, GroupsOfZerosAndWhatIsNoNumber) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(32);
    for (const PackForm& form : {PackForm{}, PackForm{WeightFormat::Fp8, 32, 2}, PackForm{WeightFormat::Mxfp4}}) {
        PackRig rig(random, form, DType::F32, 1, 4, 64);
        float* const x = rig.x.view().as<float>();
        std::fill_n(x, 64, 0.0F);
        std::fill_n(x + 64, 64, 0.0F);
        x[3 * 64] = 1e-42F;
        const auto make = [&](auto&& at) { return rig.op(at); };
        testing::expectSameOnGpu(*testing::gpu(), make, {&rig.out.data, &rig.out.scales}, 0);
        x[2 * 64 + 5] = std::numeric_limits<float>::infinity();
        testing::expectSameOnGpu(*testing::gpu(), make, {&rig.out.data}, 0);
    }
}

} // namespace
} // namespace vitrine::kernels
