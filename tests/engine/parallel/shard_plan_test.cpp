// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/parallel/shard_plan.h"

#include <gtest/gtest.h>
#include <numeric>

#include "base/error.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine {
namespace {

ModelConfig configOf(const std::string& name, const std::map<std::string, std::string>& set = {}) {
    return openModel("synthetic:" + name, set).config;
}

std::string refusalOf(const ModelConfig& config, ParallelShape shape) {
    try {
        const ShardPlan plan(config, shape);
    } catch (const base::BadInput& error) {
        return error.message();
    }
    return "";
}

std::uint64_t bytesOfRank(const ModelConfig& config, const ShardPlan& plan, int rank) {
    std::uint64_t bytes = 0;
    for (const TensorSpec& spec : expectedTensors(config)) {
        if (const auto mine = plan.tensorOf(spec, rank)) {
            bytes += bytesOf(mine->spec);
        }
    }
    return bytes;
}

/// Every element of a tensor that is divided is on exactly one rank; keys and values may be on several.
TEST(ShardPlan, RanksTogetherHaveEveryElementOnce) {
    for (const char* name : {"tiny-llama", "tiny-gpt-oss", "tiny-qwen3-moe", "tiny-deepseek-v3", "gpt-oss-20b"}) {
        const ModelConfig config = configOf(name);
        for (const ParallelShape shape :
             {ParallelShape{2, 1}, ParallelShape{4, 1}, ParallelShape{1, 2}, ParallelShape{2, 2}}) {
            if (!refusalOf(config, shape).empty()) {
                continue;
            }
            const ShardPlan plan(config, shape);
            for (const TensorSpec& spec : expectedTensors(config)) {
                std::int64_t elements = 0;
                int holders = 0;
                for (int rank = 0; rank < plan.ranks(); ++rank) {
                    const auto mine = plan.tensorOf(spec, rank);
                    if (!mine) {
                        continue;
                    }
                    ++holders;
                    elements += kernels::Shape(mine->spec.shape).count();
                    ASSERT_EQ(mine->cut->part.slice.size(), mine->cut->part.shape.size());
                }
                const std::int64_t whole = kernels::Shape(spec.shape).count();
                const ParameterRole role = roleOf(spec.packed() ? spec.weight : spec.name);
                const bool keys = role == ParameterRole::Key || role == ParameterRole::Value;
                const bool mirrored = holders == plan.ranks() && elements == whole * holders;
                EXPECT_TRUE(elements == whole || mirrored || (keys && elements % whole == 0))
                    << spec.name << " of " << name << ": " << elements << " of " << whole;
            }
        }
    }
}

/// Hand counts of the bytes of one rank, from the shapes that the families publish.
TEST(ShardPlan, BytesOfARankAreThoseOfAHandCount) {
    {
        const ModelConfig config = configOf("llama-3.1-8b");
        const ShardPlan plan(config, {8, 1});
        // Embedding and head over 8; of each layer q, o (4096 x 4096), k, v (1024 x 4096), three products of 14336.
        const std::uint64_t layer = (2 * 4096ULL * 4096 + 2 * 1024ULL * 4096 + 3 * 14336ULL * 4096) / 8 + 2 * 4096;
        EXPECT_EQ(bytesOfRank(config, plan, 3), 2 * (2 * 128'256ULL * 4096 / 8 + 32 * layer + 4096));
    }
    {
        const ModelConfig config = configOf("gpt-oss-120b");
        const ShardPlan plan(config, {1, 8});
        // 16 of 128 experts in MXFP4: 17 bytes for 32 elements, and their biases; attention over 8 ranks.
        const std::uint64_t expert = (2 * 2880ULL * 2880 + 2880ULL * 2880) / 32 * 17 + 2 * (2 * 2880 + 2880);
        const std::uint64_t attention =
            2 * ((64 + 8 + 8) * 64ULL / 8 * 2880 + (64 + 8 + 8) * 64ULL / 8 + 64 * 64ULL / 8 * 2880 + 64 / 8);
        const std::uint64_t rest = 2 * (128 * 2880ULL + 128 + 2 * 2880);
        const std::uint64_t outer = 2 * (2 * 201'088ULL / 8 * 2880 + 2880);
        EXPECT_EQ(bytesOfRank(config, plan, 5), 36 * (16 * expert + attention + rest) + outer);
        EXPECT_EQ(bytesOfRank(config, plan, 0), bytesOfRank(config, plan, 5) + 36 * 2 * 2880) << "the bias of o";
    }
}

TEST(ShardPlan, KeysAreMirroredWhereThereAreMoreRanksThanHeads) {
    const ModelConfig config = configOf("llama-3.1-8b"); // 8 heads of keys, 32 of queries
    const ShardPlan plan(config, {16, 1});
    for (int rank = 0; rank < 16; ++rank) {
        EXPECT_EQ(plan.heads(rank).begin, 2 * rank);
        EXPECT_EQ(plan.keyHeads(rank).begin, rank / 2);
        EXPECT_EQ(plan.keyHeads(rank).count(), 1);
    }
}

TEST(ShardPlan, PackedWeightsAreCutAtWholeGroups) {
    const ModelConfig config = configOf("gpt-oss-20b"); // 2880 features are 90 groups of 32
    const ShardPlan plan(config, {8, 1});
    std::int64_t features = 0;
    for (const TensorSpec& spec : expectedTensors(config)) {
        if (spec.layer != 0 || spec.weight != "model.layers.0.mlp.experts.down_proj" ||
            spec.stored.field != kernels::WeightField::Scales) {
            continue;
        }
        for (int rank = 0; rank < 8; ++rank) {
            const auto mine = plan.tensorOf(spec, rank);
            ASSERT_TRUE(mine);
            EXPECT_EQ(mine->spec.weightShape[2], mine->spec.shape[2] * 32);
            features += mine->spec.weightShape[2];
        }
    }
    EXPECT_EQ(features, 2880);
}

TEST(ShardPlan, SaysWhatCannotBeDividedAndWhatCan) {
    const ModelConfig llama = configOf("llama-3.1-8b");
    EXPECT_EQ(refusalOf(llama, {3, 1}),
              "--tp 3: model.layers.0.self_attn.q_proj.weight: 32 heads cannot be divided among 3 ranks; the nearest "
              "number that works is 2");
    EXPECT_EQ(
        refusalOf(llama, {1, 2}),
        "--ep 2: num_experts: the model has no experts that ranks could divide; the nearest number that works is 1");
    const ModelConfig moe = configOf("qwen3-30b-a3b"); // 128 experts, 32 heads, 4 of keys
    EXPECT_EQ(refusalOf(moe, {1, 64}),
              "--ep 64: model.layers.0.self_attn.q_proj.weight: 32 heads cannot be divided among 64 ranks; the nearest "
              "number that works is 32");
    EXPECT_EQ(refusalOf(moe, {1, 5}).substr(0, 8), "--ep 5: ");
    EXPECT_EQ(refusalOf(moe, {4, 8}), "");
    EXPECT_EQ(refusalOf(moe, {1, 1}), "");
}

} // namespace
} // namespace vitrine::engine
