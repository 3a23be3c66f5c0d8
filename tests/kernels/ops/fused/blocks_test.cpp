// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/blocks.h"

#include <algorithm>
#include <numeric>

#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;
using Values = std::vector<double>;

// The reference: rows of doubles.

Values normed(const Values& x, const Values& weight, double eps) {
    Values out;
    const std::size_t dim = weight.size();
    for (std::size_t row = 0; row < x.size() / dim; ++row) {
        double squares = 0;
        for (std::size_t i = 0; i < dim; ++i) {
            squares += x[row * dim + i] * x[row * dim + i];
        }
        for (std::size_t i = 0; i < dim; ++i) {
            out.push_back(x[row * dim + i] * weight[i] / std::sqrt(squares / static_cast<double>(dim) + eps));
        }
    }
    return out;
}

Values product(const Values& x, const Values& weight, std::size_t in, const Values& bias) {
    Values out;
    const std::size_t width = weight.size() / in;
    for (std::size_t row = 0; row < x.size() / in; ++row) {
        for (std::size_t o = 0; o < width; ++o) {
            double sum = bias.empty() ? 0 : bias[o];
            for (std::size_t i = 0; i < in; ++i) {
                sum += x[row * in + i] * weight[o * in + i];
            }
            out.push_back(sum);
        }
    }
    return out;
}

Values silu(const Values& gate, const Values& up) {
    Values out;
    for (std::size_t i = 0; i < gate.size(); ++i) {
        out.push_back(gate[i] / (1 + std::exp(-gate[i])) * up[i]);
    }
    return out;
}

Values sum(Values a, const Values& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] += b[i];
    }
    return a;
}

/// Random tensors that stay alive with the fixture.
class Blocks : public ::testing::Test {
protected:
    TestTensor& random(DType type, const Shape& shape, double deviation = 1) {
        kept_.push_back(std::make_unique<TestTensor>(type, shape));
        kept_.back()->fillNormal(engine_, deviation);
        return *kept_.back();
    }
    TestTensor& ints(const std::vector<std::int32_t>& values, const Shape& shape) {
        kept_.push_back(std::make_unique<TestTensor>(DType::I32, shape));
        kept_.back()->fillInts(values);
        return *kept_.back();
    }
    TestTensor& blank(DType type, const Shape& shape) {
        kept_.push_back(std::make_unique<TestTensor>(type, shape));
        return *kept_.back();
    }
    static LinearView linear(const TestTensor& weight, const TensorView& bias = {}) {
        LinearView view;
        view.weight = denseWeight(weight);
        view.bias = bias;
        return view;
    }

    std::mt19937 engine_{7};
    std::vector<std::unique_ptr<TestTensor>> kept_;
    CpuContext context_{2};
};

TEST_F(Blocks, DenseMlpWithAndWithoutPostNorm) {
    for (const std::int64_t tokens : {1, 5, 40}) {
        for (const bool post : {false, true}) {
            const TestTensor& x = random(DType::F32, Shape{tokens, 24});
            const TestTensor& norm = random(DType::BF16, Shape{24});
            const TestTensor& postNorm = random(DType::BF16, Shape{24});
            const TestTensor& gate = random(DType::BF16, Shape{50, 24}, 0.3);
            const TestTensor& up = random(DType::F32, Shape{50, 24}, 0.3);
            const TestTensor& down = random(DType::BF16, Shape{24, 50}, 0.3);
            const TestTensor& bias = random(DType::F32, Shape{24});
            const TestTensor& out = blank(DType::F32, Shape{tokens, 24});
            DenseMlp op;
            op.x = x;
            op.norm = {norm, 1e-6F, RmsNormOrder::CastThenScale};
            op.gate = linear(gate);
            op.up = linear(up);
            op.down = linear(down, bias);
            op.out = out;
            if (post) {
                op.postNorm = {postNorm, 1e-6F, RmsNormOrder::ScaleThenCast};
            }
            testing::runOp(context_, op);
            const Values y = normed(x.values(), norm.values(), 1e-6);
            Values branch = product(silu(product(y, gate.values(), 24, {}), product(y, up.values(), 24, {})),
                                    down.values(), 50, bias.values());
            branch = post ? normed(branch, postNorm.values(), 1e-6) : branch;
            testing::expectNear(out, sum(branch, x.values()), 1e-4);
        }
    }
}

TEST_F(Blocks, DenseMlpInPlace) {
    TestTensor& x = random(DType::F32, Shape{3, 24});
    const TestTensor& gate = random(DType::BF16, Shape{50, 24}, 0.3);
    const TestTensor& down = random(DType::BF16, Shape{24, 50}, 0.3);
    const TestTensor& out = blank(DType::F32, Shape{3, 24});
    DenseMlp op;
    op.x = x;
    op.gate = linear(gate);
    op.up = linear(gate);
    op.down = linear(down);
    op.out = out;
    testing::runOp(context_, op);
    op.out = x;
    testing::runOp(context_, op);
    EXPECT_EQ(x.values(), out.values());
}

TEST_F(Blocks, OutProject) {
    for (const bool post : {false, true}) {
        const TestTensor& x = random(DType::F32, Shape{5, 32});
        const TestTensor& o = random(DType::BF16, Shape{20, 32});
        const TestTensor& bias = random(DType::BF16, Shape{20});
        const TestTensor& postNorm = random(DType::BF16, Shape{20});
        TestTensor& residual = random(DType::F32, Shape{5, 20});
        const Values before = residual.values();
        OutProject op;
        op.x = x;
        op.o = linear(o, bias);
        op.residual = residual;
        op.out = residual;
        if (post) {
            op.postNorm = {postNorm, 1e-5F, RmsNormOrder::ScaleThenCast};
        }
        testing::runOp(context_, op);
        Values branch = product(x.values(), o.values(), 32, bias.values());
        branch = post ? normed(branch, postNorm.values(), 1e-5) : branch;
        testing::expectNear(residual, sum(branch, before), 1e-4);
    }
}

TEST_F(Blocks, QkvProjectNormsRotatesAndWrites) {
    constexpr std::int64_t kTokens = 3, kHidden = 20, kHeads = 4, kKvHeads = 2, kDim = 8;
    for (const bool headNorms : {false, true}) {
        for (const bool write : {false, true}) {
            const TestTensor& x = random(DType::F32, Shape{kTokens, kHidden});
            const TestTensor& norm = random(DType::BF16, Shape{kHidden});
            const TestTensor& q = random(DType::BF16, Shape{kHeads * kDim, kHidden});
            const TestTensor& k = random(DType::BF16, Shape{kKvHeads * kDim, kHidden});
            const TestTensor& v = random(DType::BF16, Shape{kKvHeads * kDim, kHidden});
            const TestTensor& bias = random(DType::BF16, Shape{kKvHeads * kDim});
            const TestTensor& headNorm = random(DType::BF16, Shape{kDim});
            const TestTensor& inverse = random(DType::F32, Shape{kDim / 2});
            const TestTensor& keys = blank(DType::F32, Shape{2, 4, kKvHeads, kDim});
            const TestTensor& values = blank(DType::F32, Shape{2, 4, kKvHeads, kDim});
            QkvProject op;
            op.x = x;
            op.norm = {norm, 1e-5F, RmsNormOrder::CastThenScale};
            op.q = linear(q);
            op.k = linear(k, bias);
            op.v = linear(v);
            if (headNorms) {
                op.qNorm = op.kNorm = {headNorm, 1e-5F, RmsNormOrder::CastThenScale};
            }
            op.positions = ints({2, 3, 0}, Shape{kTokens});
            op.inverseFrequency = inverse;
            op.ropeScale = 1.5F;
            op.sequence = ints({0, 0, 1}, Shape{kTokens});
            op.cache = KvView{keys, values, ints({1, 0}, Shape{2, 1}), ints({0, 0}, Shape{2}), ints({4, 1}, Shape{2})};
            op.writeCache = write;
            const TestTensor& outQ = blank(DType::F32, Shape{kTokens, kHeads, kDim});
            const TestTensor& outK = blank(DType::F32, Shape{kTokens, kKvHeads, kDim});
            const TestTensor& outV = blank(DType::F32, Shape{kTokens, kKvHeads, kDim});
            op.outQ = outQ;
            op.outK = outK;
            op.outV = outV;
            testing::runOp(context_, op);

            const Values y = normed(x.values(), norm.values(), 1e-5);
            const auto rotated = [&](Values rows, std::size_t heads) {
                rows = headNorms ? normed(rows, headNorm.values(), 1e-5) : rows;
                Values out = rows;
                const int positions[] = {2, 3, 0};
                for (std::size_t t = 0; t < kTokens; ++t) {
                    for (std::size_t h = 0; h < heads; ++h) {
                        for (std::size_t i = 0; i < kDim / 2; ++i) {
                            const double angle = positions[t] * inverse.values()[i];
                            const std::size_t low = (t * heads + h) * kDim + i;
                            const std::size_t high = low + kDim / 2;
                            out[low] = 1.5 * (rows[low] * std::cos(angle) - rows[high] * std::sin(angle));
                            out[high] = 1.5 * (rows[high] * std::cos(angle) + rows[low] * std::sin(angle));
                        }
                    }
                }
                return out;
            };
            const Values expectedK = rotated(product(y, k.values(), kHidden, bias.values()), kKvHeads);
            const Values expectedV = product(y, v.values(), kHidden, {});
            testing::expectNear(outQ, rotated(product(y, q.values(), kHidden, {}), kHeads), 1e-4);
            testing::expectNear(outK, expectedK, 1e-4);
            testing::expectNear(outV, expectedV, 1e-4);
            // Sequence 0 owns page 1: its tokens 2 and 3 lie in slots 2 and 3; sequence 1 owns page 0.
            const std::size_t row = kKvHeads * kDim;
            const Values stored = keys.values();
            for (const auto& [token, slot] : {std::pair<std::size_t, std::size_t>{0, 6}, {1, 7}, {2, 0}}) {
                for (std::size_t i = 0; i < row; ++i) {
                    if (write) {
                        EXPECT_NEAR(stored[slot * row + i], expectedK[token * row + i], 1e-4);
                        EXPECT_NEAR(values.values()[slot * row + i], expectedV[token * row + i], 1e-4);
                    } else {
                        EXPECT_TRUE(std::isnan(stored[slot * row + i]));
                    }
                }
            }
            EXPECT_TRUE(std::isnan(stored[4 * row])) << "a slot that no token owns was written";
        }
    }
}

TEST_F(Blocks, RouteAndExperts) {
    constexpr std::int64_t kHidden = 32, kWidth = 12, kExperts = 6, kChosen = 2;
    for (const std::int64_t tokens : {1, 9, 70}) {
        TestTensor& x = random(DType::F32, Shape{tokens, kHidden});
        const TestTensor& norm = random(DType::BF16, Shape{kHidden});
        const TestTensor& router = random(DType::F32, Shape{kExperts, kHidden});
        const TestTensor& routerBias = random(DType::F32, Shape{kExperts});
        const TestTensor& y = blank(DType::F32, Shape{tokens, kHidden});
        const TestTensor& ids = blank(DType::I32, Shape{tokens, kChosen});
        const TestTensor& weights = blank(DType::F32, Shape{tokens, kChosen});
        Route route;
        route.x = x;
        route.norm = {norm, 1e-5F, RmsNormOrder::ScaleThenCast};
        route.router = linear(router, routerBias);
        route.order = RouterOrder::SoftmaxThenTopK;
        route.normalize = true;
        route.normed = y;
        route.ids = ids;
        route.weights = weights;
        testing::runOp(context_, route);
        const Values expectedY = normed(x.values(), norm.values(), 1e-5);
        testing::expectNear(y, expectedY, 1e-5);

        const TestTensor& gateUp = random(DType::BF16, Shape{kExperts, 2 * kWidth, kHidden}, 0.3);
        const TestTensor& gateUpBias = random(DType::BF16, Shape{kExperts, 2 * kWidth});
        const TestTensor& down = random(DType::BF16, Shape{kExperts, kHidden, kWidth}, 0.3);
        const TestTensor& downBias = random(DType::BF16, Shape{kExperts, kHidden});
        const Values residual = x.values();
        ExpertMlp op;
        op.x = y;
        op.ids = ids;
        op.weights = weights;
        op.gateUp = linear(gateUp, gateUpBias);
        op.down = linear(down, downBias);
        op.activation = Activation::ClampedSwiglu;
        op.layout = GateLayout::Interleaved;
        op.residual = x;
        op.out = x;
        testing::runOp(context_, op);

        const Values logits = product(expectedY, router.values(), kHidden, routerBias.values());
        Values expected = residual;
        const auto part = [](const Values& all, std::size_t index, std::size_t size) {
            return Values(all.begin() + static_cast<std::ptrdiff_t>(index * size),
                          all.begin() + static_cast<std::ptrdiff_t>((index + 1) * size));
        };
        for (std::size_t t = 0; t < static_cast<std::size_t>(tokens); ++t) {
            const Values scores = part(logits, t, kExperts);
            std::vector<std::size_t> order(kExperts);
            std::iota(order.begin(), order.end(), 0U);
            std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
            double total = 0;
            for (std::size_t j = 0; j < kChosen; ++j) {
                total += std::exp(scores[order[j]]);
            }
            for (std::size_t j = 0; j < kChosen; ++j) {
                const std::size_t e = order[j];
                const Values h = product(part(expectedY, t, kHidden), part(gateUp.values(), e, 2 * kWidth * kHidden),
                                         kHidden, part(gateUpBias.values(), e, 2 * kWidth));
                Values active;
                for (std::size_t i = 0; i < kWidth; ++i) {
                    const double g = std::min(h[2 * i], 7.0);
                    const double u = std::clamp(h[2 * i + 1], -7.0, 7.0);
                    active.push_back((u + 1) * g / (1 + std::exp(-1.702 * g)));
                }
                const Values result = product(active, part(down.values(), e, kHidden * kWidth), kWidth,
                                              part(downBias.values(), e, kHidden));
                for (std::size_t i = 0; i < kHidden; ++i) {
                    expected[t * kHidden + i] += std::exp(scores[e]) / total * result[i];
                }
            }
        }
        testing::expectNear(x, expected, 3e-4);
    }
}

TEST_F(Blocks, KeptTensorsOfDenseBlocksChangeNoBit) {
    for (const bool norms : {false, true}) {
        for (const DType type : {DType::F32, DType::BF16}) {
            const TestTensor& x = random(type, Shape{7, 24});
            const TestTensor& norm = random(DType::BF16, Shape{24});
            const NormWeights second = norms ? NormWeights{norm, 1e-6F, RmsNormOrder::ScaleThenCast} : NormWeights{};
            const TestTensor& wide = random(DType::BF16, Shape{40, 24}, 0.3);
            const TestTensor& back = random(DType::BF16, Shape{24, 40}, 0.3);
            DenseMlp mlp;
            mlp.x = x;
            mlp.norm = {norm, 1e-6F, RmsNormOrder::CastThenScale};
            mlp.postNorm = second;
            mlp.gate = linear(wide);
            mlp.up = linear(random(DType::F32, Shape{40, 24}, 0.3));
            mlp.down = linear(back);
            const TestTensor& plain = blank(type, Shape{7, 24});
            const TestTensor& kept = blank(type, Shape{7, 24});
            mlp.out = plain;
            testing::runOp(context_, mlp);
            EXPECT_TRUE(mlp.fusible());
            const TestTensor& mlpNormed = blank(type, Shape{7, 24});
            const TestTensor& gateUp = blank(type, Shape{7, 80});
            const TestTensor& branch = blank(type, Shape{7, 24});
            mlp.out = kept;
            mlp.normed = mlpNormed;
            mlp.gateUp = gateUp;
            mlp.branch = norms ? branch.view() : TensorView{};
            testing::runOp(context_, mlp);
            EXPECT_FALSE(mlp.fusible());
            EXPECT_EQ(kept.values(), plain.values());
            const Values before = gateUp.values();
            mlp.out = {};
            testing::runOp(context_, mlp);
            EXPECT_EQ(gateUp.values(), before);

            OutProject project;
            project.x = gateUp;
            project.o = linear(random(DType::BF16, Shape{24, 80}, 0.3));
            project.postNorm = second;
            project.residual = x;
            project.out = plain;
            testing::runOp(context_, project);
            project.out = kept;
            project.branch = norms ? branch.view() : TensorView{};
            testing::runOp(context_, project);
            EXPECT_EQ(kept.values(), plain.values());
        }
    }
}

TEST_F(Blocks, KeptTensorsOfQkvProjectChangeNoBit) {
    const TestTensor& x = random(DType::F32, Shape{5, 20});
    const TestTensor& norm = random(DType::BF16, Shape{20});
    const TestTensor& headNorm = random(DType::BF16, Shape{8});
    QkvProject op;
    op.x = x;
    op.norm = {norm, 1e-5F, RmsNormOrder::CastThenScale};
    op.q = linear(random(DType::BF16, Shape{32, 20}));
    op.k = linear(random(DType::BF16, Shape{16, 20}));
    op.v = linear(random(DType::BF16, Shape{16, 20}));
    op.qNorm = op.kNorm = {headNorm, 1e-5F, RmsNormOrder::CastThenScale};
    op.positions = ints({0, 1, 2, 3, 4}, Shape{5});
    op.inverseFrequency = random(DType::F32, Shape{4});
    op.writeCache = false;
    std::vector<const TestTensor*> plain, kept;
    for (std::vector<const TestTensor*>* outs : {&plain, &kept}) {
        for (const std::int64_t heads : {4, 2, 2}) {
            outs->push_back(&blank(DType::F32, Shape{5, heads, 8}));
        }
        op.outQ = *outs->at(0);
        op.outK = *outs->at(1);
        op.outV = *outs->at(2);
        testing::runOp(context_, op);
        EXPECT_EQ(op.fusible(), outs == &plain);
        op.normed = blank(DType::F32, Shape{5, 20});
        op.rawQ = blank(DType::F32, Shape{5, 4, 8});
        op.rawK = blank(DType::F32, Shape{5, 2, 8});
    }
    for (std::size_t i = 0; i < plain.size(); ++i) {
        EXPECT_EQ(kept[i]->values(), plain[i]->values());
    }
}

TEST_F(Blocks, KeptTensorsOfRouteAndExpertsChangeNoBit) {
    constexpr std::int64_t kHidden = 32, kWidth = 12, kExperts = 6, kChosen = 2;
    for (const auto& [tokens, type] : {std::pair{1, DType::F32}, {9, DType::BF16}, {90, DType::F32}}) {
        const TestTensor& x = random(type, Shape{tokens, kHidden});
        Route route;
        route.x = x;
        route.norm = {random(DType::BF16, Shape{kHidden}), 1e-5F, RmsNormOrder::ScaleThenCast};
        route.router = linear(random(DType::BF16, Shape{kExperts, kHidden}));
        route.normed = blank(type, Shape{tokens, kHidden});
        const TestTensor& ids = blank(DType::I32, Shape{tokens, kChosen});
        const TestTensor& weights = blank(DType::F32, Shape{tokens, kChosen});
        route.ids = ids;
        route.weights = weights;
        testing::runOp(context_, route);
        EXPECT_TRUE(route.fusible());
        const Values chosen = ids.values(), shares = weights.values();
        route.logits = blank(DType::F32, Shape{tokens, kExperts});
        testing::runOp(context_, route);
        EXPECT_FALSE(route.fusible());
        EXPECT_EQ(ids.values(), chosen);
        EXPECT_EQ(weights.values(), shares);

        ExpertMlp op;
        op.x = route.normed;
        op.ids = ids;
        op.weights = weights;
        op.gateUp = linear(random(DType::BF16, Shape{kExperts, 2 * kWidth, kHidden}, 0.3),
                           random(DType::BF16, Shape{kExperts, 2 * kWidth}));
        op.down = linear(random(DType::BF16, Shape{kExperts, kHidden, kWidth}, 0.3),
                         random(DType::BF16, Shape{kExperts, kHidden}));
        op.activation = Activation::ClampedSwiglu;
        op.layout = GateLayout::Interleaved;
        op.residual = x;
        const TestTensor& plain = blank(type, Shape{tokens, kHidden});
        const TestTensor& grouped = blank(type, Shape{tokens, kHidden});
        op.out = plain;
        testing::runOp(context_, op);
        EXPECT_FALSE(op.grouped());
        EXPECT_EQ(cost(op, DeviceTraits{}).rateClass, expertRateClass(WeightFormat::Dense, false));
        ExpertMlp packed = op;
        packed.gateUp.weight.format = WeightFormat::Mxfp4;
        EXPECT_EQ(cost(packed, DeviceTraits{}).rateClass, expertRateClass(WeightFormat::Mxfp4, false));
        const std::int64_t pairs = tokens * kChosen;
        op.out = grouped;
        op.kept.starts = blank(DType::I32, Shape{kExperts + 1});
        op.kept.pairs = blank(DType::I32, Shape{pairs});
        op.kept.places = blank(DType::I32, Shape{pairs});
        op.kept.x = blank(type, Shape{pairs, kHidden});
        op.kept.gateUp = blank(type, Shape{pairs, 2 * kWidth});
        testing::runOp(context_, op);
        EXPECT_TRUE(op.grouped());
        EXPECT_EQ(grouped.values(), plain.values());
    }
}

TEST_F(Blocks, LmHeadOfChosenRows) {
    const TestTensor& x = random(DType::F32, Shape{6, 16});
    const TestTensor& norm = random(DType::BF16, Shape{16});
    const TestTensor& head = random(DType::BF16, Shape{77, 16});
    for (const bool chosen : {false, true}) {
        for (const float cap : {0.0F, 2.0F}) {
            const std::vector<std::int32_t> rows =
                chosen ? std::vector<std::int32_t>{5, 2} : std::vector<std::int32_t>{0, 1, 2, 3, 4, 5};
            const TestTensor& logits = blank(DType::F32, Shape{static_cast<std::int64_t>(rows.size()), 77});
            LmHead op;
            op.x = x;
            op.norm = {norm, 1e-5F, RmsNormOrder::CastThenScale};
            op.head = linear(head);
            op.softCap = cap;
            op.logits = logits;
            if (chosen) {
                op.rows = ints(rows, Shape{2});
            }
            testing::runOp(context_, op);
            Values picked;
            const Values all = x.values();
            for (const std::int32_t row : rows) {
                picked.insert(picked.end(), all.begin() + row * 16, all.begin() + (row + 1) * 16);
            }
            Values expected = product(normed(picked, norm.values(), 1e-5), head.values(), 16, {});
            for (double& value : expected) {
                value = cap > 0 ? cap * std::tanh(value / cap) : value;
            }
            testing::expectNear(logits, expected, 1e-4);
        }
    }
}

TEST_F(Blocks, NarrowActivationsFollowTheWideOnes) {
    const TestTensor& wide = random(DType::F32, Shape{4, 64});
    TestTensor& narrow = blank(DType::BF16, Shape{4, 64});
    narrow.fill(wide.values());
    const TestTensor& gate = random(DType::BF16, Shape{96, 64}, 0.1);
    const TestTensor& down = random(DType::BF16, Shape{64, 96}, 0.1);
    const TestTensor& norm = random(DType::BF16, Shape{64});
    const TestTensor& wideOut = blank(DType::F32, Shape{4, 64});
    const TestTensor& narrowOut = blank(DType::BF16, Shape{4, 64});
    DenseMlp op;
    op.x = wide;
    op.norm = {norm, 1e-5F, RmsNormOrder::CastThenScale};
    op.gate = linear(gate);
    op.up = linear(gate);
    op.down = linear(down);
    op.out = wideOut;
    testing::runOp(context_, op);
    op.x = narrow;
    op.out = narrowOut;
    testing::runOp(context_, op);
    testing::expectNear(narrowOut, wideOut.values(), 0.1, 2);
}

/// Room for the weight in BF16, with an adapter and without: the last piece of the scratch.
TEST_F(Blocks, PackedWeightsAddToTheScratchOfAGpu) {
    std::mt19937 random(21);
    DeviceTraits gpu;
    gpu.features.kernelScratch = true;
    const testing::TestWeight weight = testing::nf4Weight(random, 64, 128, true);
    TestTensor x(DType::BF16, Shape{20, 128}), out(DType::BF16, Shape{20, 64});
    TestTensor a(DType::BF16, Shape{4, 128}), b(DType::BF16, Shape{64, 4});
    OutProject op;
    op.x = x;
    op.o.weight = weight.view;
    op.residual = out;
    op.out = out;
    EXPECT_EQ(scratch(op, gpu), scratch(op, DeviceTraits{}) + 64 * 128 * 2);
    op.o.adapter = AdapterView{a, b};
    EXPECT_EQ(scratch(op, gpu), scratch(op, DeviceTraits{}) + 64 * 128 * 2);
}

TEST_F(Blocks, CostsAreTheSumsAndScratchIsChecked) {
    const TestTensor& x = random(DType::BF16, Shape{2, 64});
    const TestTensor& gate = random(DType::BF16, Shape{96, 64});
    const TestTensor& down = random(DType::BF16, Shape{64, 96});
    const TestTensor& out = blank(DType::BF16, Shape{2, 64});
    DenseMlp op;
    op.x = x;
    op.gate = linear(gate);
    op.up = linear(gate);
    op.down = linear(down);
    op.out = out;
    const Cost sum = cost(op, DeviceTraits{});
    EXPECT_EQ(sum.launches, 4U);
    EXPECT_GE(sum.bytesRead, 3U * 96 * 64 * 2);
    EXPECT_GE(sum.flops, 3U * 2 * 2 * 96 * 64);
    EXPECT_EQ(sum.computeType, DType::BF16);
    testing::expectCheckNames(op, "scratch");
}

} // namespace
} // namespace vitrine::kernels
