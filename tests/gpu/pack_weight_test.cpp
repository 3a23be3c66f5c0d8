// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/pack_weight.h"

#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/linear/pack_weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::PackForm;
using testing::PackRig;

TEST(PackWeightGpu, BitForBitAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(31);
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
    for (const PackForm& form : forms) {
        for (const DType xType : {DType::F32, DType::BF16}) {
            SCOPED_TRACE(::testing::Message() << static_cast<int>(form.format) << " group " << form.group << " type "
                                              << dtypeName(form.type) << " of " << dtypeName(xType));
            PackRig rig(random, form, xType, 3, 131, 384);
            const auto make = [&](auto&& at) { return rig.op(at); };
            testing::expectSameOnGpu(*testing::gpu(), make, {&rig.data, &rig.scales, &rig.changed}, 0);
        }
    }
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
        testing::expectSameOnGpu(*testing::gpu(), make, {&rig.data, &rig.scales}, 0);
        x[2 * 64 + 5] = std::numeric_limits<float>::infinity();
        testing::expectSameOnGpu(*testing::gpu(), make, {&rig.data}, 0);
    }
}

} // namespace
} // namespace vitrine::kernels
