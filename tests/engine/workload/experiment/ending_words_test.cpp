// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/ending_words.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

namespace vitrine::engine {
namespace {

std::string words(const char* metrics, const char* limit = "64") {
    const std::string spec =
        R"({"vitrine":1,"workload":"generate","model":"m","tokens":[1],"max_new_tokens":)" + std::string(limit) + "}";
    return endingWords(nlohmann::json::parse(metrics), Experiment::parse(nlohmann::json::parse(spec), "spec"));
}

TEST(EndingWords, SayWhyTheAnswerEnded) {
    EXPECT_EQ(words(R"({"finish_reason":"stop_token","generated_tokens":9})"), "ended at a stop token");
    EXPECT_EQ(words(R"({"finish_reason":"stop_text","generated_tokens":9})"), "ended at a stop text");
    EXPECT_EQ(words(R"({"finish_reason":"length","generated_tokens":64})"), "ended at the limit of 64 new tokens");
    EXPECT_EQ(words(R"({"finish_reason":"length","generated_tokens":1})", "1"), "ended at the limit of 1 new token");
    EXPECT_EQ(words(R"({"finish_reason":"context","generated_tokens":9,"kv_cache":{"context_limit":4096}})"),
              "ended at the end of the model's context of 4,096 tokens, after 9 of 64 new tokens");
    EXPECT_EQ(words(R"({"finish_reason":"length","generated_tokens":9})"),
              "ended at the end of the model's context, after 9 of 64 new tokens")
        << "what sessions of the first versions hold";
    EXPECT_EQ(words(R"({"finish_reason":"cancelled","generated_tokens":9})"), "");
    EXPECT_EQ(words("{}"), "");
}

TEST(EndingWords, CountTheRequestsOfABatch) {
    EXPECT_EQ(words(R"({"requests":4,"finish_reasons":{"length":1200,"stop_token":3,"context":0}})"),
              "ended: 3 at a stop token, 1,200 at the limit of new tokens");
    EXPECT_EQ(words(R"({"requests":4,"finish_reason":"length","generated_tokens":9})"), "")
        << "the reason of one request is not that of all";
}

} // namespace
} // namespace vitrine::engine
