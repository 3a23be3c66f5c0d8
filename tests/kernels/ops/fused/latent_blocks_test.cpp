// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/latent_blocks.h"

#include <deque>

#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;
using Values = std::vector<double>;

constexpr std::int64_t kTokens = 5, kHidden = 12, kHeads = 3, kNope = 6, kRope = 4, kLatent = 8, kValue = 5, kRank = 7;
constexpr std::int64_t kUp = kNope + kValue, kWidth = kLatent + kRope;

/// Row `at` of a matrix of `width` columns.
Values rowOf(const Values& matrix, std::int64_t at, std::int64_t width) {
    const auto begin = matrix.begin() + at * width;
    return {begin, begin + width};
}

double dot(const Values& a, const Values& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        sum += a[i] * b[i];
    }
    return sum;
}

/// W x, W with rows as long as x.
Values times(const Values& weight, const Values& x) {
    Values out;
    const auto width = static_cast<std::int64_t>(x.size());
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(weight.size()) / width; ++row) {
        out.push_back(dot(rowOf(weight, row, width), x));
    }
    return out;
}

Values normed(Values x, const Values& weight) {
    const double factor = 1 / std::sqrt(dot(x, x) / static_cast<double>(x.size()) + 1e-6);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] *= factor * weight[i];
    }
    return x;
}

/// Neighbouring elements turn by position * frequency.
Values turned(const Values& x, double position, const Values& frequencies) {
    Values out;
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
        const double angle = position * frequencies[i];
        out.push_back(x[2 * i] * std::cos(angle) - x[2 * i + 1] * std::sin(angle));
        out.push_back(x[2 * i + 1] * std::cos(angle) + x[2 * i] * std::sin(angle));
    }
    return out;
}

class LatentBlocks : public ::testing::Test {
protected:
    TestTensor& random(DType dtype, const Shape& shape, double deviation = 1) {
        TestTensor& tensor = tensors_.emplace_back(dtype, shape);
        tensor.fillNormal(random_, deviation);
        return tensor;
    }
    LinearView linear(const TestTensor& weight) {
        LinearView out;
        out.weight = denseWeight(weight);
        return out;
    }
    NormWeights norm(const TestTensor& weight) { return {weight, 1e-6F, RmsNormOrder::CastThenScale}; }

    std::mt19937 random_{11};
    CpuContext context_{2};
    std::deque<TestTensor> tensors_;
};

TEST_F(LatentBlocks, GiveTheScoresOfExpandedKeys) {
    for (const bool ranked : {true, false}) {
        const TestTensor& x = random(DType::F64, Shape{kTokens, kHidden});
        const TestTensor& xNorm = random(DType::F32, Shape{kHidden});
        const TestTensor& queryDown = random(DType::F32, Shape{kRank, kHidden});
        const TestTensor& queryNorm = random(DType::F32, Shape{kRank});
        const TestTensor& query = random(DType::F32, Shape{kHeads * (kNope + kRope), ranked ? kRank : kHidden});
        const TestTensor& keyDown = random(DType::F32, Shape{kWidth, kHidden});
        const TestTensor& keyNorm = random(DType::F32, Shape{kLatent});
        const TestTensor& up = random(DType::F32, Shape{kHeads * kUp, kLatent});
        TestTensor positions(DType::I32, Shape{kTokens}), sequence(DType::I32, Shape{kTokens});
        TestTensor inverse(DType::F32, Shape{kRope / 2});
        positions.fillInts({0, 1, 2, 3, 4});
        sequence.fillInts({0, 0, 0, 0, 0});
        inverse.fill({1, 0.125});
        const TestTensor outQ(DType::F64, Shape{kTokens, kHeads, kWidth}), outK(DType::F64, Shape{kTokens, 1, kWidth});
        LatentProject op;
        op.x = x;
        op.norm = norm(xNorm);
        if (ranked) {
            op.queryDown = linear(queryDown);
            op.queryNorm = norm(queryNorm);
        }
        op.query = linear(query);
        op.keyDown = linear(keyDown);
        op.keyNorm = norm(keyNorm);
        op.heads = {up, kHeads, kNope};
        op.positions = positions;
        op.inverseFrequency = inverse;
        op.interleaved = true;
        op.sequence = sequence;
        op.writeCache = false;
        op.outQ = outQ;
        op.outK = outK;
        testing::runOp(context_, op);

        std::vector<Values> queries, latents, rotated;
        for (std::int64_t t = 0; t < kTokens; ++t) {
            const Values in = normed(rowOf(x.values(), t, kHidden), xNorm.values());
            const Values low = ranked ? normed(times(queryDown.values(), in), queryNorm.values()) : in;
            queries.push_back(times(query.values(), low));
            const Values down = times(keyDown.values(), in);
            latents.push_back(normed(rowOf(down, 0, kLatent), keyNorm.values()));
            rotated.push_back(turned({down.begin() + kLatent, down.end()}, static_cast<double>(t), inverse.values()));
        }
        for (std::int64_t t = 0; t < kTokens * kHeads * kTokens; ++t) {
            const std::int64_t key = t % kTokens, head = t / kTokens % kHeads, row = t / kTokens / kHeads;
            const auto i = static_cast<std::size_t>(row), j = static_cast<std::size_t>(key);
            const Values q = rowOf(queries[i], head, kNope + kRope);
            const Values k = times(up.values(), latents[j]);
            const double expected =
                dot(rowOf(q, 0, kNope), {k.begin() + head * kUp, k.begin() + head * kUp + kNope}) +
                dot(turned({q.begin() + kNope, q.end()}, static_cast<double>(row), inverse.values()), rotated[j]);
            const double score =
                dot(rowOf(outQ.values(), row * kHeads + head, kWidth), rowOf(outK.values(), key, kWidth));
            EXPECT_NEAR(score, expected, 1e-5 * (1 + std::abs(expected)));
        }
    }
}

TEST_F(LatentBlocks, GiveTheOutputOfExpandedValues) {
    const TestTensor& x = random(DType::F64, Shape{kTokens, kHeads, kWidth});
    const TestTensor& up = random(DType::F32, Shape{kHeads * kUp, kLatent});
    const TestTensor& o = random(DType::F32, Shape{kHidden, kHeads * kValue});
    TestTensor& residual = random(DType::F64, Shape{kTokens, kHidden});
    const Values before = residual.values();
    LatentOut op;
    op.x = x;
    op.heads = {up, kHeads, kNope};
    op.o = linear(o);
    op.residual = residual;
    op.out = residual;
    testing::runOp(context_, op);
    Values expected;
    for (std::int64_t t = 0; t < kTokens; ++t) {
        Values all;
        for (std::int64_t head = 0; head < kHeads; ++head) {
            const Values latent = rowOf(rowOf(x.values(), t * kHeads + head, kWidth), 0, kLatent);
            const Values own = times(up.values(), latent);
            all.insert(all.end(), own.begin() + head * kUp + kNope, own.begin() + (head + 1) * kUp);
        }
        for (const double value : times(o.values(), all)) {
            expected.push_back(value + before[expected.size()]);
        }
    }
    testing::expectNear(residual, expected, 1e-5);
}

TEST_F(LatentBlocks, RefusesAnUpMatrixThatIsNoWholeHeads) {
    LatentOut op;
    op.x = random(DType::F32, Shape{kTokens, kHeads, kWidth});
    op.heads = {random(DType::F32, Shape{kHeads * kUp + 1, kLatent}), kHeads, kNope};
    EXPECT_THROW(check(op), base::Internal);
}

} // namespace
} // namespace vitrine::kernels
