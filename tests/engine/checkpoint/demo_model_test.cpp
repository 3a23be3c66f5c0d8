// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/resource_path.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;

const std::string& demoFolder() {
    static const std::string kFolder = base::resourcePath("models/vitrine-demo");
    return kFolder;
}

std::string answerTo(const std::string& prompt) {
    const nlohmann::json experiment = {{"vitrine", 1},          {"workload", "generate"}, {"backend", "cpu"},
                                       {"model", demoFolder()}, {"prompt", prompt},       {"max_new_tokens", 120}};
    return runExperiment(Experiment::parse(experiment, "demo"), {}, {}).at("text").get<std::string>();
}

TEST(DemoModel, OpensAndIsSmall) {
    const ModelSource source = openModel(demoFolder());
    EXPECT_EQ(source.config.family, Family::GptOss);
    EXPECT_EQ(source.config.packing("model.layers.0.mlp.experts.down_proj")->format, kernels::WeightFormat::Mxfp4);
    EXPECT_EQ(source.config.layers.size(), 6U);
    EXPECT_EQ(source.config.layers[0].window, 64);
    EXPECT_EQ(source.config.layers[1].window, 0);
    EXPECT_FALSE(source.tokenizerFile.empty());
    EXPECT_NE(source.chat.templates.at("default").find("<|start|>assistant"), std::string::npos);
    EXPECT_EQ(source.generation.eosTokens.size(), 4U) << "it has no thoughts, so <|end|> ends an answer too";
    std::uintmax_t bytes = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(demoFolder())) {
        bytes += entry.file_size();
    }
    EXPECT_LT(bytes, 8'000'000U);
}

TEST(DemoModel, DigitsAndBracketsAreTokensOfTheirOwn) {
    const ModelSource source = openModel(demoFolder());
    const auto tokenizer = Tokenizer::load(source.tokenizerFile);
    EXPECT_EQ(tokenizer->encode("4711", true).size(), 4U);
    EXPECT_EQ(tokenizer->encode("(([]{}", true).size(), 6U);
    EXPECT_EQ(tokenizer->encode("<|start|>assistant<|channel|>final<|message|>", true).size(), 5U);
    for (const std::int32_t id : source.generation.eosTokens) {
        EXPECT_LT(id, source.config.vocab);
    }
    EXPECT_EQ(tokenizer->idOf("<|return|>"), source.generation.eosTokens.front());
}

// Sums that are not chosen for the model: each digit and each carry occurs.
TEST(DemoModel, AddsNumbersOfTwoDigits) {
    int right = 0;
    const std::vector<std::pair<int, int>> sums = {{38, 47}, {12, 83}, {99, 99}, {56, 35}, {70, 21}, {64, 58}};
    for (const auto& [a, b] : sums) {
        const std::string left = std::to_string(a) + " + " + std::to_string(b);
        const std::string answer = answerTo("What is " + left + "?");
        right += answer.find(left + " = " + std::to_string(a + b) + ".") != std::string::npos ? 1 : 0;
    }
    EXPECT_GE(right, 5) << "of " << sums.size();
}

TEST(DemoModel, AnswersTheQuestionsOfTheDemo) {
    const std::string cache = answerTo("What does a KV cache hold?");
    EXPECT_NE(cache.find("key"), std::string::npos) << cache;
    EXPECT_NE(cache.find("value"), std::string::npos) << cache;
    const std::string sorted = answerTo("Sort 42, 7, 19.");
    EXPECT_NE(sorted.find("7, 19, 42"), std::string::npos) << sorted;
    const std::string story = answerTo("Tell me a story about a fox.");
    EXPECT_NE(story.find("fox"), std::string::npos) << story;
    EXPECT_EQ(story.back() == '.' || story.back() == '"', true) << story;
}

} // namespace
} // namespace vitrine::engine
