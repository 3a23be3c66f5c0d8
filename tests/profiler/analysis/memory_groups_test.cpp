// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/memory_groups.h"

#include <gtest/gtest.h>

#include "profiler/timeline/memory_facet.h"
#include "tests/profiler/analysis/scripted_run.h"

namespace vitrine::profiler {
namespace {

using base::MemoryCategory;
using kernels::DType;
using testing::kMiB;
using testing::ScriptedRun;

const MemoryGroup& child(const MemoryGroup& group, std::string_view name) {
    for (const MemoryGroup& candidate : group.children) {
        if (candidate.name == name) {
            return candidate;
        }
    }
    ADD_FAILURE() << "no group " << name << " in " << group.name;
    static const MemoryGroup kNone;
    return kNone;
}

std::shared_ptr<const RunTimeline> groupedRun() {
    ScriptedRun run;
    run.begin(base::ScopeKind::Phase, "load");
    run.allocate("context and libraries", MemoryCategory::Untracked, 10 * kMiB, DType::None);
    for (int layer = 0; layer < 3; ++layer) {
        const std::string prefix = "model.layers." + std::to_string(layer);
        run.allocate(prefix + ".mlp.experts.gate_up_proj_blocks", MemoryCategory::Weights, 100 * kMiB, DType::U8);
        run.allocate(prefix + ".mlp.experts.gate_up_proj_scales", MemoryCategory::Weights, 6 * kMiB, DType::U8);
        run.allocate(prefix + ".self_attn.q_proj.weight", MemoryCategory::Weights, 20 * kMiB);
        run.allocate(prefix + ".input_layernorm.weight", MemoryCategory::Weights, 1 * kMiB);
    }
    run.allocate("model.embed_tokens.weight", MemoryCategory::Weights, 50 * kMiB);
    run.allocate("lm_head.weight", MemoryCategory::Weights, 50 * kMiB);
    run.end();
    run.time = 100;
    run.begin(base::ScopeKind::Step, "train", 3, 500);
    for (int layer = 0; layer < 3; ++layer) {
        run.begin(base::ScopeKind::Layer, "layer", layer);
        run.allocate("layer_input", MemoryCategory::Activations, 30 * kMiB);
        if (layer == 1) {
            run.begin(base::ScopeKind::Op, "ExpertMlp");
            run.allocate("hidden", MemoryCategory::Activations, 5 * kMiB);
            run.end();
        }
        run.end();
    }
    run.allocate("logits", MemoryCategory::Logits, 200 * kMiB, DType::F32);
    const std::uint64_t gone = run.allocate("Sample.scratch", MemoryCategory::Workspace, 7 * kMiB);
    run.time = 200;
    run.free(gone);
    run.end();
    return run.timeline();
}

TEST(MemoryGroups, NameCategoriesAndPartsInPlainWords) {
    const auto timeline = groupedRun();
    const MemoryGroup root = groupAlive(*timeline, 150, GroupBy::Category);
    EXPECT_EQ(root.bytes, 793 * kMiB);
    EXPECT_EQ(root.blocks, 21U);
    ASSERT_EQ(root.children.size(), 5U);
    EXPECT_EQ(root.children[0].name, "weights");
    EXPECT_EQ(root.children[1].name, "logits");
    const MemoryGroup& weights = root.children[0];
    EXPECT_EQ(weights.bytes, 481 * kMiB);
    EXPECT_EQ(weights.category, MemoryCategory::Weights);
    EXPECT_NEAR(weights.share, 481.0 / 793, 1e-12);
    EXPECT_EQ(weights.children[0].name, "experts, MXFP4");
    EXPECT_EQ(weights.children[0].blocks, 6U);
    EXPECT_EQ(weights.children[0].bytes, 318 * kMiB);
    EXPECT_EQ(child(weights, "embedding, lm_head").bytes, 100 * kMiB);
    EXPECT_EQ(child(weights, "attention").bytes, 60 * kMiB);
    EXPECT_EQ(child(weights, "norms").bytes, 3 * kMiB);
    const MemoryGroup& activations = child(root, "activations");
    EXPECT_EQ(child(activations, "layer inputs 0 to 2").blocks, 3U);
    EXPECT_EQ(child(activations, "hidden, layer 1").blocks, 1U);
    EXPECT_EQ(child(root, "logits").children[0].name, "logits, step 3");
    EXPECT_EQ(child(root, "workspace").bytes, 7 * kMiB);
    EXPECT_EQ(groupAlive(*timeline, 200, GroupBy::Category).children.size(), 4U);
}

TEST(MemoryGroups, GroupByLayerOpAndDtype) {
    const auto timeline = groupedRun();
    const MemoryGroup layers = groupAlive(*timeline, 150, GroupBy::Layer);
    EXPECT_EQ(child(layers, "layer 1").bytes, 162 * kMiB);
    EXPECT_FALSE(child(layers, "layer 1").category.has_value());
    EXPECT_EQ(child(layers, "outside of layers").bytes, 317 * kMiB);
    const MemoryGroup ops = groupAlive(*timeline, 150, GroupBy::Op);
    EXPECT_EQ(child(ops, "ExpertMlp").bytes, 5 * kMiB);
    EXPECT_EQ(child(ops, "Sample").bytes, 7 * kMiB);
    EXPECT_EQ(child(ops, "load").bytes, 491 * kMiB);
    const MemoryGroup types = groupAlive(*timeline, 150, GroupBy::Dtype);
    EXPECT_EQ(child(types, "float32").bytes, 200 * kMiB);
    EXPECT_EQ(child(types, "bytes").bytes, 10 * kMiB);
    for (const MemoryGroup* root : {&layers, &ops, &types}) {
        std::uint64_t bytes = 0;
        for (const MemoryGroup& group : root->children) {
            bytes += group.bytes;
        }
        EXPECT_EQ(bytes, root->bytes);
    }
}

TEST(MemoryGroups, NameTheFormatsOfPackedWeights) {
    testing::ScriptedRun run;
    const std::string int4 = "INT4, groups of 128", expert = "model.layers.0.mlp.experts.down_proj";
    run.allocate(expert + ".weight", MemoryCategory::Weights, 8 * kMiB, DType::U8, int4);
    run.allocate(expert + ".weight_scale", MemoryCategory::Weights, 1 * kMiB, DType::BF16, int4);
    run.allocate("model.layers.0.mlp.experts.gate_up_proj_blocks", MemoryCategory::Weights, 4 * kMiB, DType::U8);
    run.allocate("model.layers.0.self_attn.q_proj.weight", MemoryCategory::Weights, 3 * kMiB, DType::U8, int4);
    run.allocate("model.layers.0.self_attn.q_proj.bias", MemoryCategory::Weights, 1 * kMiB, DType::BF16);
    run.allocate("load.staging_blocks", MemoryCategory::Workspace, 2 * kMiB, DType::U8);
    const auto timeline = run.timeline();
    const MemoryGroup weights = child(groupAlive(*timeline, 0, GroupBy::Category), "weights");
    EXPECT_EQ(child(weights, "experts, INT4, groups of 128").bytes, 9 * kMiB) << "with its scales";
    EXPECT_EQ(child(weights, "attention, INT4, groups of 128").bytes, 3 * kMiB);
    EXPECT_EQ(child(weights, "attention").bytes, 1 * kMiB);
    EXPECT_EQ(child(weights, "experts, MXFP4").bytes, 4 * kMiB) << "as runs of earlier versions name it";
    const MemoryGroup types = groupAlive(*timeline, 0, GroupBy::Dtype);
    EXPECT_EQ(child(types, int4).bytes, 12 * kMiB);
    EXPECT_EQ(child(types, "uint8").bytes, 6 * kMiB);
    const auto rows = timeline->memory().allocations();
    EXPECT_EQ(formatText(*timeline, rows[0]), int4);
    EXPECT_EQ(formatText(*timeline, rows[2]), "MXFP4");
    EXPECT_EQ(formatText(*timeline, rows[5]), "");
}

TEST(MemoryGroups, KnowTheWeightsOfAllFamilies) {
    const std::string bf16 = "BF16";
    EXPECT_EQ(weightPart("model.layers.0.mlp.experts.3.gate_proj.weight", bf16), "experts, BF16");
    EXPECT_EQ(weightPart("model.layers.0.mlp.experts.gate_up_proj_bias", bf16), "experts, biases");
    EXPECT_EQ(weightPart("model.layers.0.mlp.gate.weight", bf16), "router");
    EXPECT_EQ(weightPart("model.layers.0.mlp.router.weight", bf16), "router");
    EXPECT_EQ(weightPart("model.layers.0.mlp.gate_proj.weight", bf16), "dense MLP");
    EXPECT_EQ(weightPart("model.layers.0.self_attn.q_norm.weight", bf16), "attention");
    EXPECT_EQ(weightPart("model.layers.0.self_attn.sinks", bf16), "attention");
    EXPECT_EQ(weightPart("model.layers.0.post_attention_layernorm.weight", bf16), "norms");
    EXPECT_EQ(weightPart("model.norm.weight", bf16), "norms");
    EXPECT_EQ(weightPart("base_model.model.layers.0.self_attn.q_proj.lora_A.default.weight", bf16), "LoRA A and B");
    EXPECT_EQ(weightPart("something", bf16), "other weights");
    EXPECT_EQ(plainName("model.layers.12.layer_input"), "layer input");
    EXPECT_EQ(plainName(""), "");
}

} // namespace
} // namespace vitrine::profiler
