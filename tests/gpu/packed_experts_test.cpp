// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Experts with INT4 and FP8 weights and many tokens, on tensor cores, beside sums in float64: tiles that are full,
// nearly full and nearly empty, groups of every kind, axes that end within a load, all gates.

#include <algorithm>
#include <cmath>

#include "kernels/ops/fused/blocks.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/experts/expert_testing.h"
#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::IntegerForm;
using testing::TestTensor;
using testing::TestWeight;

/// Weights are rounded to BF16, and so are activated features and results.
constexpr double kExpertTolerance = 1e-2;

struct PackedExpertCase {
    std::int64_t hidden, width;
    IntegerForm form;
    Activation activation = Activation::Silu;
    GateLayout layout = GateLayout::Halves;
    bool biased = false;
    std::int64_t rowGroup = 0; ///< FP8 with scales for so many outputs and form.group inputs; 0: INT4

    TestWeight make(std::mt19937& random, std::int64_t out, std::int64_t in) const {
        return rowGroup > 0 ? testing::fp8Weight(random, out, in, rowGroup, std::min(form.group, in))
                            : testing::integerWeight(random, out, in, form);
    }
};

double activated(const PackedExpertCase& item, double gate, double up) {
    switch (item.activation) {
    case Activation::GeluTanh:
        return gate / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (gate + 0.044715 * gate * gate * gate))) * up;
    case Activation::ClampedSwiglu:
        gate = std::min(gate, 7.0);
        return gate / (1 + std::exp(-1.702 * gate)) * (std::clamp(up, -7.0, 7.0) + 1);
    default:
        return gate / (1 + std::exp(-gate)) * up;
    }
}

/// The stacks of a case, and what a token's row becomes by one expert.
class PackedTestExperts {
public:
    PackedTestExperts(std::mt19937& random, const PackedExpertCase& item, std::int64_t experts)
        : item_(item), experts_(experts), gateUp_(item.make(random, experts * 2 * item.width, item.hidden)),
          down_(item.make(random, experts * item.hidden, item.width)),
          gateUpBias_(DType::BF16, Shape{experts, 2 * item.width}),
          downBias_(DType::BF16, Shape{experts, item.hidden}) {
        gateUpBias_.fillNormal(random);
        downBias_.fillNormal(random);
        gateUpBiases_ = gateUpBias_.values();
        downBiases_ = downBias_.values();
    }

    template <class At> void place(At& at, ExpertMlp& op) const {
        op.gateUp.weight = testing::stackOf(testing::viewAt(gateUp_, at), experts_);
        op.down.weight = testing::stackOf(testing::viewAt(down_, at), experts_);
        if (item_.biased) {
            op.gateUp.bias = at(gateUpBias_);
            op.down.bias = at(downBias_);
        }
        op.activation = item_.activation;
        op.layout = item_.layout;
    }

    /// Adds `share` times the expert's result of x (hidden) to out (hidden).
    void add(const double* x, std::int64_t expert, double share, double* out) const {
        const std::int64_t width = item_.width, hidden = item_.hidden;
        std::vector<double> active(static_cast<std::size_t>(width));
        for (std::int64_t i = 0; i < width; ++i) {
            const bool halves = item_.layout == GateLayout::Halves;
            active[static_cast<std::size_t>(i)] = activated(
                item_, rowSum(gateUp_, gateUpBiases_, x, expert * 2 * width + (halves ? i : 2 * i), hidden),
                rowSum(gateUp_, gateUpBiases_, x, expert * 2 * width + (halves ? i + width : 2 * i + 1), hidden));
        }
        for (std::int64_t i = 0; i < hidden; ++i) {
            out[i] += share * rowSum(down_, downBiases_, active.data(), expert * hidden + i, width);
        }
    }

private:
    double rowSum(const TestWeight& weight, const std::vector<double>& biases, const double* x, std::int64_t row,
                  std::int64_t in) const {
        const double* values = weight.values.data() + row * in;
        double sum = item_.biased ? biases[static_cast<std::size_t>(row)] : 0;
        for (std::int64_t i = 0; i < in; ++i) {
            sum += values[i] * x[i];
        }
        return sum;
    }

    PackedExpertCase item_;
    std::int64_t experts_;
    TestWeight gateUp_, down_;
    TestTensor gateUpBias_, downBias_;
    std::vector<double> gateUpBiases_, downBiases_;
};

/// The op on the device beside sums in float64, for the choice `ids` (tokens, k).
void expectAsInFloat64(std::mt19937& random, const PackedExpertCase& item, const PackedTestExperts& experts,
                       const TestTensor& ids) {
    const std::int64_t tokens = ids.view().shape[0], k = ids.view().shape[1];
    TestTensor weights(DType::F32, Shape{tokens, k});
    TestTensor x(DType::BF16, Shape{tokens, item.hidden}), residual(DType::BF16, Shape{tokens, item.hidden});
    TestTensor out(DType::BF16, Shape{tokens, item.hidden});
    weights.fillNormal(random, 0.5);
    x.fillNormal(random);
    residual.fillNormal(random);
    testing::OnDevice device(*testing::gpu());
    ExpertMlp op;
    op.x = device(x);
    op.ids = device(ids);
    op.weights = device(weights);
    experts.place(device, op);
    op.residual = device(residual);
    op.out = device(out);
    device.run(op);
    device.download(out);
    std::vector<double> expected = residual.values();
    const std::vector<double> rows = x.values(), chosen = ids.values(), shares = weights.values();
    for (std::size_t pair = 0; pair < chosen.size(); ++pair) {
        const auto token = static_cast<std::int64_t>(pair) / k;
        experts.add(rows.data() + token * item.hidden, static_cast<std::int64_t>(chosen[pair]), shares[pair],
                    expected.data() + token * item.hidden);
    }
    EXPECT_TRUE(out.guardsIntact()) << "the device wrote outside its output";
    EXPECT_LE(testing::relativeDifference(out.values(), expected), kExpertTolerance);
}

/// One expert for each token: so many tokens for each expert, in random order.
TestTensor idsOf(std::mt19937& random, const std::vector<std::int64_t>& counts) {
    std::vector<std::int32_t> ids;
    for (std::size_t expert = 0; expert < counts.size(); ++expert) {
        ids.insert(ids.end(), static_cast<std::size_t>(counts[expert]), static_cast<std::int32_t>(expert));
    }
    std::shuffle(ids.begin(), ids.end(), random);
    TestTensor tensor(DType::I32, Shape{static_cast<std::int64_t>(ids.size()), 1});
    tensor.fillInts(ids);
    return tensor;
}

TEST(PackedExpertsGpu, RaggedTilesAsInFloat64) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(51);
    const std::vector<std::int64_t> counts{0, 1, 63, 64, 65, 128, 0, 130};
    const std::vector<PackedExpertCase> cases{
        {512, 384, {4, 32, DType::BF16, false, false}},
        {480, 352, {4, 32, DType::F16, true, false}, Activation::ClampedSwiglu, GateLayout::Interleaved, true},
        {448, 384, {4, 64, DType::F32, true, false}, Activation::GeluTanh, GateLayout::Interleaved},
        {512, 384, {4, 128, DType::BF16, true, false}, Activation::Silu, GateLayout::Halves, true},
        {768, 512, {4, 256, DType::F16, false, false}, Activation::GeluTanh},
        {416, 352, {4, 512, DType::BF16, true, false}}, // one group: larger than a row
        {96, 160, {4, 32, DType::BF16, true, false}},   // too short for the form with wgmma
        {512, 384, {8, 128}, Activation::Silu, GateLayout::Halves, false, 128},
        {640, 320, {8, 128}, Activation::ClampedSwiglu, GateLayout::Interleaved, true, 64},
        {464, 368, {8, 1024}, Activation::GeluTanh, GateLayout::Halves, false, 1}, // a scale for each row
        {80, 160, {8, 1024}, Activation::Silu, GateLayout::Halves, true, 80},
    };
    for (const PackedExpertCase& item : cases) {
        SCOPED_TRACE(::testing::Message() << item.hidden << " to " << item.width << ", group " << item.form.group
                                          << (item.form.zeros ? ", zeros" : "") << ", rows " << item.rowGroup);
        const PackedTestExperts experts(random, item, static_cast<std::int64_t>(counts.size()));
        expectAsInFloat64(random, item, experts, idsOf(random, counts));
    }
}

TEST(PackedExpertsGpu, ShapesOfQwen3AsInFloat64) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(52);
    const PackedExpertCase item{2048, 768, {4, 32, DType::BF16, false, false}};
    const PackedTestExperts experts(random, item, 4);
    expectAsInFloat64(random, item, experts, idsOf(random, {1, 33, 0, 65}));
}

TEST(PackedExpertsGpu, ManyExpertsAndChoicesAsInFloat64) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(53);
    const PackedExpertCase item{352, 160, {4, 32, DType::BF16, true, false}};
    const PackedTestExperts experts(random, item, 128);
    for (const std::int64_t tokens : {64, 150}) {
        expectAsInFloat64(random, item, experts, testing::chooseExperts(random, tokens, 8, 120));
    }
}

} // namespace
} // namespace vitrine::kernels
