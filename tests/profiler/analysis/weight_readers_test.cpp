// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/weight_readers.h"

#include <gtest/gtest.h>

namespace vitrine::profiler {
namespace {

using Ops = std::vector<std::string_view>;

TEST(WeightReaders, AreTheOpsOfTheModule) {
    EXPECT_EQ(weightReaders("lm_head.weight", false).ops, Ops{"LmHead"});
    EXPECT_EQ(weightReaders("lm_head.weight", false).layer, -1);
    EXPECT_EQ(weightReaders("model.layers.11.mlp.experts.gate_up_proj_blocks", false).ops, Ops{"ExpertMlp"});
    EXPECT_EQ(weightReaders("model.layers.11.mlp.experts.gate_up_proj_blocks", false).layer, 11);
    EXPECT_EQ(weightReaders("model.layers.0.mlp.gate.weight", false).ops, Ops{"Route"});
    EXPECT_EQ(weightReaders("model.layers.0.mlp.gate_proj.weight", false).ops, Ops{"DenseMlp"});
    EXPECT_EQ(weightReaders("model.layers.0.self_attn.k_norm.weight", false).ops, Ops{"QkvProject"});
    EXPECT_EQ(weightReaders("model.layers.0.self_attn.q_a_proj.weight", false).ops, Ops{"LatentProject"});
}

TEST(WeightReaders, AnEmbeddingIsReadByTheHeadThatHasNoWeightOfItsOwn) {
    EXPECT_EQ(weightReaders("model.embed_tokens.weight", false).ops, Ops{"Embedding"});
    EXPECT_EQ(weightReaders("model.embed_tokens.weight", true).ops, (Ops{"Embedding", "LmHead"}));
}

TEST(WeightReaders, AreUnknownWhereFamiliesDiffer) {
    EXPECT_TRUE(weightReaders("model.layers.0.post_attention_layernorm.weight", false).ops.empty());
    EXPECT_TRUE(weightReaders("something.else", false).ops.empty());
}

} // namespace
} // namespace vitrine::profiler
