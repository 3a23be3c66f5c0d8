// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/precision/keep_parts.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/quant/module_pattern.h"
#include "engine/quant/packing.h"

namespace vitrine::engine {
namespace {

constexpr std::uint64_t kDenseBytes = 100, kPackedBytes = 30;

/// BF16 and one format. Each role has a matrix in each layer, whose noise is given: roles first.
PrecisionResult noisy(const std::vector<std::pair<std::string, std::vector<double>>>& roles) {
    PrecisionResult result;
    result.formats.resize(2);
    std::vector<WeightEffect> effects;
    for (const auto& [role, noises] : roles) {
        for (std::size_t layer = 0; layer < noises.size(); ++layer) {
            LabWeight& weight = result.weights.emplace_back();
            weight.role = role;
            weight.layer = static_cast<std::int32_t>(layer);
            weight.name = fmt::format("model.layers.{}.self_attn.{}_proj.weight", layer, role);
            WeightEffect& dense = result.effects.emplace_back();
            dense.bytes = kDenseBytes;
            WeightEffect& packed = effects.emplace_back();
            packed.bytes = kPackedBytes;
            packed.error.squaredValues = 2;
            packed.error.squaredError = 2 * noises[layer];
        }
    }
    result.effects.insert(result.effects.end(), effects.begin(), effects.end());
    return result;
}

std::vector<std::string> titles(const std::vector<KeepEffect>& effects) {
    std::vector<std::string> all;
    for (const KeepEffect& effect : effects) {
        all.push_back(keepTitle(effect.part));
    }
    return all;
}

TEST(KeepParts, RolesComeFirstThenTheWorstLayersAndNeighboursAreOne) {
    PrecisionResult result =
        noisy({{"k", {.9, .8, .1, .1, .1, .1, .1, .1, .7, .1}}, {"o", {.1, .1, .2, .3, .4, .1, .1, .5, .1, .6}}});
    const auto candidates = keepCandidates(result, 1);
    EXPECT_EQ(titles(candidates),
              (std::vector<std::string>{"k, all layers", "o, all layers", "k, layers 0 and 1", "k, layer 8",
                                        "o, layers 2 to 4", "o, layer 7", "o, layer 9"}));
    EXPECT_EQ(candidates[0].bytesAdded, 10 * (kDenseBytes - kPackedBytes));
    EXPECT_EQ(candidates[4].bytesAdded, 3 * (kDenseBytes - kPackedBytes));
    EXPECT_EQ(candidates[4].format, 1U);
}

TEST(KeepParts, ManyEqualLayersStayFew) {
    const auto candidates = keepCandidates(noisy({{"k", std::vector<double>(200, .1)}}), 1);
    EXPECT_EQ(titles(candidates), (std::vector<std::string>{"k, all layers", "k, layers 0 to 7"}));
}

TEST(KeepParts, ARoleThatIsAllBadIsNoCandidateTwice) {
    EXPECT_EQ(titles(keepCandidates(noisy({{"k", {.5}}}), 1)), (std::vector<std::string>{"k, all layers"}));
    EXPECT_EQ(titles(keepCandidates(noisy({{"k", {.5, .5, .5}}}), 1)), (std::vector<std::string>{"k, all layers"}));
}

TEST(KeepParts, WhatStaysDenseAnywayIsNone) {
    PrecisionResult result = noisy({{"k", {.5, .4}}, {"router", {.9, .9}}});
    for (std::size_t i = 0; i < result.weights.size(); ++i) {
        result.effects[result.weights.size() + i].kept = result.weights[i].role == "router";
    }
    EXPECT_EQ(titles(keepCandidates(result, 1)), (std::vector<std::string>{"k, all layers"}));
    result = noisy({});
    EXPECT_TRUE(keepCandidates(result, 1).empty());
}

TEST(KeepParts, PatternsMeanTheirWeightsAndNoOthers) {
    PrecisionResult result = noisy({{"k", std::vector<double>(20, .1)}, {"o", std::vector<double>(20, .1)}});
    for (const KeepPart& part : {KeepPart{"k"}, KeepPart{"k", 1, 1}, KeepPart{"o", 2, 11}}) {
        const std::string pattern = keepPattern(result, part);
        for (const LabWeight& weight : result.weights) {
            EXPECT_EQ(matchesModule(pattern, moduleOf(weight.name)), part.has(weight))
                << pattern << " and " << weight.name;
        }
    }
    EXPECT_EQ(keepPattern(result, {"gate"}), "");
}

TEST(KeepParts, ASharedExpertsPatternLeavesOtherExpertsAlone) {
    PrecisionResult result = noisy({{"gate", {.1}}, {"shared gate", {.1}}});
    result.weights[0].name = "model.layers.0.mlp.experts.3.gate_proj.weight";
    result.weights[1].name = "model.layers.0.mlp.shared_expert.gate_proj.weight";
    for (const KeepPart& part : {KeepPart{"shared gate"}, KeepPart{"shared gate", 0, 0}}) {
        const std::string pattern = keepPattern(result, part);
        EXPECT_TRUE(matchesModule(pattern, moduleOf(result.weights[1].name))) << pattern;
        EXPECT_FALSE(matchesModule(pattern, moduleOf(result.weights[0].name))) << pattern;
    }
}

} // namespace
} // namespace vitrine::engine
