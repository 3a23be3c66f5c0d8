// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/flex_attention.h"
#include "kernels/program/program_builder.h"
#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

constexpr std::int64_t kTokens = 75, kHeads = 6, kKvHeads = 2, kDim = 24;
constexpr std::int64_t kQueryWidth = kHeads * kDim, kKeyWidth = kKvHeads * kDim;

/// Columns [begin, begin + heads * kDim) of a projection (tokens, columns) as (1, heads, tokens, dim), without a copy.
TensorView headsOf(const TensorView& projection, std::int64_t begin, std::int64_t heads) {
    const TensorView columns = slice(projection, 1, begin, begin + heads * kDim);
    return headsFirst(reshaped(columns, Shape{kTokens, heads, kDim}));
}

/// A copy with contiguous memory.
TestTensor packed(const TensorView& view) {
    std::vector<double> values;
    for (std::int64_t head = 0; head < view.shape[1]; ++head) {
        for (std::int64_t row = 0; row < view.shape[2]; ++row) {
            std::vector<double> one(static_cast<std::size_t>(kDim));
            loadFloats(view.dtype, view.data, head * view.stride(1) + row * view.stride(2), kDim, one.data());
            values.insert(values.end(), one.begin(), one.end());
        }
    }
    TestTensor out(view.dtype, view.shape);
    out.fill(values);
    return out;
}

void expectSame(const TensorView& strided, const TestTensor& contiguous) {
    EXPECT_EQ(packed(strided).values(), contiguous.values());
}

/// Attention of slices of one projection's rows, gradients into slices of another, against the same on contiguous
/// copies: equal to the last bit.
void expectNoDifference(CpuContext& context, DType dtype) {
    std::mt19937 random(3);
    TestTensor projection(dtype, Shape{kTokens, kQueryWidth + 2 * kKeyWidth});
    TestTensor gradient(dtype, projection.view().shape);
    TestTensor out(dtype, Shape{kTokens, kQueryWidth});
    TestTensor gradOut(dtype, out.view().shape);
    projection.fillNormal(random);
    gradOut.fillNormal(random);
    const KnownProgram mask(slidingWindowMask(20));
    const DType wide = dtype == DType::F64 ? DType::F64 : DType::F32;
    TestTensor lse(wide, Shape{1, kHeads, kTokens});

    FlexAttention op;
    op.q = headsOf(projection, 0, kHeads);
    op.k = headsOf(projection, kQueryWidth, kKvHeads);
    op.v = headsOf(projection, kQueryWidth + kKeyWidth, kKvHeads);
    op.mask = mask.bound();
    op.scale = 0.2F;
    op.out = headsOf(out, 0, kHeads);
    op.lse = lse;
    FlexAttentionBackward back;
    back.gradOut = headsOf(gradOut, 0, kHeads);
    back.dq = headsOf(gradient, 0, kHeads);
    back.dk = headsOf(gradient, kQueryWidth, kKvHeads);
    back.dv = headsOf(gradient, kQueryWidth + kKeyWidth, kKvHeads);
    testing::runOp(context, op);
    back.forward = op;
    testing::runOp(context, back);

    const TestTensor q = packed(op.q), k = packed(op.k), v = packed(op.v), upstream = packed(back.gradOut);
    TestTensor plainOut(dtype, op.out.shape), plainLse(wide, lse.view().shape);
    TestTensor dq(dtype, op.q.shape), dk(dtype, op.k.shape), dv(dtype, op.v.shape);
    FlexAttention plain = op;
    plain.q = q;
    plain.k = k;
    plain.v = v;
    plain.out = plainOut;
    plain.lse = plainLse;
    testing::runOp(context, plain);
    FlexAttentionBackward plainBack;
    plainBack.forward = plain;
    plainBack.gradOut = upstream;
    plainBack.dq = dq;
    plainBack.dk = dk;
    plainBack.dv = dv;
    testing::runOp(context, plainBack);

    expectSame(op.out, plainOut);
    EXPECT_EQ(lse.values(), plainLse.values());
    expectSame(back.dq, dq);
    expectSame(back.dk, dk);
    expectSame(back.dv, dv);
    EXPECT_TRUE(out.guardsIntact());
    EXPECT_TRUE(gradient.guardsIntact());
}

TEST(FlexAttentionStrides, SlicesOfAProjectionNeedNoCopy) {
    for (const DType dtype : {DType::BF16, DType::F32, DType::F64}) {
        SCOPED_TRACE(dtypeName(dtype));
        testing::forEachSimd([&](CpuContext& context) { expectNoDifference(context, dtype); });
    }
}

TEST(FlexAttentionStrides, ElementsOfAHeadMustBeNeighbours) {
    TestTensor q(DType::F32, Shape{1, 2, 4, 8}), out(DType::F32, Shape{1, 2, 4, 8});
    FlexAttention op;
    op.q = q;
    op.k = q;
    op.v = q;
    op.out = out;
    check(op);
    FlexAttention wrong = op;
    wrong.v.shape = Shape{1, 2, 4, 4};
    wrong.q.shape = wrong.k.shape = wrong.out.shape = wrong.v.shape;
    wrong.v.strides = {0, 0, 8, 2};
    testing::expectCheckNames(wrong, "v");
}

} // namespace
} // namespace vitrine::kernels
