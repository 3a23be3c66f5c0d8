// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/error.h"
#include "kernels/ops/attention/flex_attention.h"
#include "kernels/program/block_mask.h"
#include "kernels/program/program_builder.h"
#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

constexpr std::int64_t kFlexStridesTokens = 333, kHeads = 8, kKvHeads = 2;

struct StridesCase {
    DType type;
    std::int64_t dim;
    std::int64_t extra =
        0; ///< columns after the last key and value: 3 leave rows that begin at no multiple of 16 bytes
};

/// Heads of a projection (tokens, columns) from column `begin` on as (1, heads, tokens, dim), without a copy.
TensorView headsOf(const TensorView& projection, std::int64_t begin, std::int64_t heads, std::int64_t dim) {
    return headsFirst(
        reshaped(slice(projection, 1, begin, begin + heads * dim), Shape{kFlexStridesTokens, heads, dim}));
}

/// Forward and backward over slices of one projection's rows are those of the CPU.
TEST(FlexStridesGpu, SlicesOfAProjectionNeedNoCopy) {
    VITRINE_NEEDS_GPU();
    const KnownProgram mask(slidingWindowMask(100));
    base::ThreadPool pool(2);
    const BlockMask blocks =
        buildBlockMask(mask.program, {}, {1, kHeads, kFlexStridesTokens, kFlexStridesTokens, 128, 128}, pool);
    std::mt19937 random(7);
    for (const StridesCase& item :
         std::vector<StridesCase>{{DType::BF16, 64}, {DType::BF16, 128}, {DType::F16, 96}, {DType::F16, 64, 8}}) {
        SCOPED_TRACE(::testing::Message() << dtypeName(item.type) << " dim " << item.dim << " extra " << item.extra);
        const std::int64_t queries = kHeads * item.dim, keys = kKvHeads * item.dim;
        TestTensor projection(item.type, Shape{kFlexStridesTokens, queries + 2 * keys + item.extra});
        TestTensor gradient(item.type, projection.view().shape);
        TestTensor out(item.type, Shape{kFlexStridesTokens, queries + item.extra}),
            gradOut(item.type, out.view().shape);
        TestTensor lse(DType::F32, Shape{1, kHeads, kFlexStridesTokens});
        projection.fillNormal(random);
        gradOut.fillNormal(random);
        for (TestTensor* written : {&out, &gradient}) { // the extra columns keep their values
            written->fillNormal(random);
        }
        const auto forward = [&](auto&& at) {
            FlexAttention op;
            op.q = headsOf(at(projection), 0, kHeads, item.dim);
            op.k = headsOf(at(projection), queries, kKvHeads, item.dim);
            op.v = headsOf(at(projection), queries + keys, kKvHeads, item.dim);
            op.mask = mask.bound();
            op.scale = 1 / std::sqrt(static_cast<float>(item.dim));
            op.out = headsOf(at(out), 0, kHeads, item.dim);
            op.lse = at(lse);
            return op;
        };
        testing::expectSameOnGpu(*testing::gpu(), forward, {{&out, 1e-2}, {&lse, 1e-4}});
        CpuContext cpu(2);
        testing::runOp(cpu, forward([](const TestTensor& tensor) { return tensor.view(); }));
        const auto backward = [&](auto&& at) {
            FlexAttentionBackward op;
            op.forward = forward(at);
            op.forward.blocks = &blocks;
            op.gradOut = headsOf(at(gradOut), 0, kHeads, item.dim);
            op.dq = headsOf(at(gradient), 0, kHeads, item.dim);
            op.dk = headsOf(at(gradient), queries, kKvHeads, item.dim);
            op.dv = headsOf(at(gradient), queries + keys, kKvHeads, item.dim);
            return op;
        };
        testing::expectSameOnGpu(*testing::gpu(), backward, {{&gradient, 1e-2}});
    }
}

/// Kernels copy 16 bytes at once: other rows are refused, not read wrongly.
TEST(FlexStridesGpu, RowsThatBeginAnywhereAreRefused) {
    VITRINE_NEEDS_GPU();
    TestTensor wide(DType::BF16, Shape{kFlexStridesTokens, kHeads * 64 + 3}),
        out(DType::BF16, Shape{kFlexStridesTokens, kHeads * 64});
    testing::OnDevice device(*testing::gpu());
    FlexAttention op;
    op.q = headsOf(device(wide), 0, kHeads, 64);
    op.k = op.q;
    op.v = op.q;
    op.out = headsOf(device(out), 0, kHeads, 64);
    EXPECT_THROW(device.run(op), base::Unsupported);
}

} // namespace
} // namespace vitrine::kernels
