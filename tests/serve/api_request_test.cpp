// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/api_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace vitrine::app {
namespace {

using nlohmann::json;

json completion(const json& more = json::object()) {
    json body = {{"model", "m"}, {"prompt", "Hello"}};
    body.update(more);
    return body;
}

json chat(const json& more = json::object()) {
    json body = {{"model", "m"}, {"messages", {{{"role", "user"}, {"content", "Hello"}}}}};
    body.update(more);
    return body;
}

ApiRequest read(const json& body) {
    return parseApiRequest(body.dump(), body.contains("messages") ? Endpoint::Chat : Endpoint::Completions);
}

void expectRefusal(const std::string& body, Endpoint endpoint, const std::string& param) {
    try {
        parseApiRequest(body, endpoint);
        ADD_FAILURE() << "was taken: " << body;
    } catch (const ApiError& error) {
        EXPECT_EQ(error.status, 400) << body;
        EXPECT_EQ(error.param, param) << error.message;
        EXPECT_FALSE(error.message.empty());
        EXPECT_EQ(errorBody(error).at("error").at("type"), "invalid_request_error");
    }
}

void expectRefusal(const json& body, const std::string& param) {
    expectRefusal(body.dump(), body.contains("messages") ? Endpoint::Chat : Endpoint::Completions, param);
}

TEST(ApiRequest, ReadsEveryFormOfAPrompt) {
    EXPECT_EQ(read(completion()).prompts.at(0).text, "Hello");
    EXPECT_EQ(read(completion({{"prompt", json::array({"a", "b"})}})).prompts.size(), 2U);
    const ApiRequest ids = read(completion({{"prompt", {1, 2, 3}}}));
    ASSERT_EQ(ids.prompts.size(), 1U);
    EXPECT_FALSE(ids.prompts[0].isText);
    EXPECT_THAT(ids.prompts[0].tokens, testing::ElementsAre(1, 2, 3));
    const ApiRequest rows = read(completion({{"prompt", {{1, 2}, {3}}}, {"n", 3}}));
    ASSERT_EQ(rows.prompts.size(), 2U);
    EXPECT_THAT(rows.prompts[1].tokens, testing::ElementsAre(3));
    EXPECT_EQ(rows.choices(), 6U);
}

TEST(ApiRequest, ReadsMessagesInPartsAndAsText) {
    const json parts = json::array({{{"type", "text"}, {"text", "Hel"}}, {{"type", "text"}, {"text", "lo"}}});
    const ApiRequest request = read(
        chat({{"messages", {{{"role", "system"}, {"content", "Short."}}, {{"role", "user"}, {"content", parts}}}}}));
    ASSERT_EQ(request.messages.size(), 2U);
    EXPECT_EQ(request.messages[1].text(), "Hello");
    EXPECT_EQ(request.choices(), 1U);
}

TEST(ApiRequest, ReadsWhatSamplingAndStreamsTake) {
    const ApiRequest request = read(chat({{"max_tokens", 3},
                                          {"max_completion_tokens", 7},
                                          {"temperature", 0.5},
                                          {"top_p", 0.9},
                                          {"top_k", -1},
                                          {"seed", std::uint64_t{1} << 63},
                                          {"stop", {"a", "b"}},
                                          {"stream", true},
                                          {"stream_options", {{"include_usage", true}}},
                                          {"logprobs", true},
                                          {"top_logprobs", 20},
                                          {"presence_penalty", -2},
                                          {"logit_bias", {{"7", -100}, {"0", 0.5}}},
                                          {"reasoning_effort", "high"},
                                          {"frequency_penalty", 1.5},
                                          {"tools", json::array()},
                                          {"response_format", {{"type", "text"}}},
                                          {"user", "somebody"}}));
    EXPECT_EQ(request.maxTokens, 7) << "the newer name counts";
    EXPECT_FLOAT_EQ(request.temperature.value_or(0), 0.5F);
    EXPECT_FLOAT_EQ(request.topP.value_or(0), 0.9F);
    EXPECT_EQ(request.topK, 0) << "-1 is off";
    EXPECT_EQ(request.seed, std::uint64_t{1} << 63);
    EXPECT_THAT(request.stop, testing::ElementsAre("a", "b"));
    EXPECT_TRUE(request.stream && request.includeUsage && request.logprobs);
    EXPECT_EQ(request.topLogprobs, 20);
    EXPECT_FLOAT_EQ(request.frequencyPenalty.value_or(0), 1.5F);
    EXPECT_FLOAT_EQ(request.presencePenalty.value_or(0), -2);
    EXPECT_THAT(request.logitBias, testing::UnorderedElementsAre(std::pair(7, -100.0F), std::pair(0, 0.5F)));
    EXPECT_EQ(request.chat.reasoningEffort, "high");
    EXPECT_EQ(read(completion({{"stop", "x"}})).stop.size(), 1U);
    EXPECT_FALSE(read(completion({{"seed", nullptr}, {"stop", nullptr}, {"max_tokens", nullptr}})).seed.has_value());
    EXPECT_TRUE(read(completion({{"logprobs", 0}})).logprobs);
    EXPECT_EQ(read(completion({{"logprobs", 5}})).topLogprobs, 5);
}

TEST(ApiRequest, ReadsWhatEndsAnAnswerAndWhetherItBeginsWithThePrompt) {
    const ApiRequest request = read(completion(
        {{"stop_token_ids", {7, 9}}, {"min_tokens", 3}, {"echo", true}, {"logprobs", 1}, {"max_tokens", 0}}));
    EXPECT_THAT(request.stopTokens, testing::ElementsAre(7, 9));
    EXPECT_EQ(request.minTokens, 3);
    EXPECT_TRUE(request.echo);
    EXPECT_EQ(request.maxTokens, 0);
    EXPECT_TRUE(read(completion({{"echo", true}, {"stream", true}})).echo) << "the text alone can be streamed";
}

TEST(ApiRequest, RefusesAWrongField) {
    const std::vector<std::pair<json, std::string>> wrong = {
        {json{{"prompt", "x"}}, "model"},
        {completion({{"model", 3}}), "model"},
        {completion({{"prompt", nullptr}}), "prompt"},
        {completion({{"prompt", 3}}), "prompt"},
        {completion({{"prompt", json::array()}}), "prompt"},
        {completion({{"prompt", json::array({json::array()})}}), "prompt"},
        {completion({{"prompt", {1, -2}}}), "prompt"},
        {completion({{"prompt", {1, 2.5}}}), "prompt"},
        {completion({{"prompt", {1, std::int64_t{1} << 31}}}), "prompt"},
        {completion({{"prompt", {"a", 1.5}}}), "prompt"},
        {completion({{"prompt", json(std::vector<std::string>(129, "a"))}}), "prompt"},
        {completion({{"prompt", json(std::vector<std::string>(2, "a"))}, {"n", 65}}), "n"},
        {completion({{"n", 0}}), "n"},
        {completion({{"n", "2"}}), "n"},
        {completion({{"max_tokens", 0}}), "max_tokens"},
        {completion({{"max_tokens", 1.5}}), "max_tokens"},
        {completion({{"max_tokens", 1e300}}), "max_tokens"},
        {completion({{"temperature", -0.1}}), "temperature"},
        {completion({{"temperature", "hot"}}), "temperature"},
        {completion({{"top_p", 0}}), "top_p"},
        {completion({{"top_p", 1.1}}), "top_p"},
        {completion({{"seed", 1.5}}), "seed"},
        {completion({{"stop", ""}}), "stop"},
        {completion({{"stop", {"a", "b", "c", "d", "e"}}}), "stop"},
        {completion({{"stop", {1}}}), "stop"},
        {completion({{"stream", "yes"}}), "stream"},
        {completion({{"stream_options", {{"include_usage", true}}}}), "stream_options"},
        {completion({{"stream", true}, {"stream_options", 1}}), "stream_options"},
        {completion({{"frequency_penalty", 2.5}}), "frequency_penalty"},
        {completion({{"presence_penalty", -2.1}}), "presence_penalty"},
        {completion({{"logit_bias", {{"5", 101}}}}), "logit_bias"},
        {completion({{"logit_bias", {{"five", 1}}}}), "logit_bias"},
        {completion({{"logit_bias", {{"-5", 1}}}}), "logit_bias"},
        {completion({{"logit_bias", {{"5", "much"}}}}), "logit_bias"},
        {completion({{"logit_bias", {1, 2}}}), "logit_bias"},
        {completion({{"echo", true}, {"logprobs", 1}, {"stream", true}}), "echo"},
        {completion({{"echo", "yes"}}), "echo"},
        {completion({{"min_tokens", 2}, {"stop", "x"}}), "min_tokens"},
        {completion({{"min_tokens", -1}}), "min_tokens"},
        {completion({{"stop_token_ids", 1}}), "stop_token_ids"},
        {completion({{"stop_token_ids", {1, -1}}}), "stop_token_ids"},
        {completion({{"stop_token_ids", json(std::vector<int>(129, 1))}}), "stop_token_ids"},
        {completion({{"response_format", {{"type", "json_object"}}}}), "response_format"},
        {chat({{"max_tokens", 0}}), "max_tokens"},
        {completion({{"suffix", "x"}}), "suffix"},
        {completion({{"best_of", 3}}), "best_of"},
        {completion({{"logprobs", 21}}), "logprobs"},
        {chat({{"messages", nullptr}}), "messages"},
        {chat({{"messages", "x"}}), "messages"},
        {chat({{"messages", json::array()}}), "messages"},
        {chat({{"messages", {{{"role", "user"}, {"content", {{{"type", "image_url"}}}}}}}}), "messages"},
        {chat({{"messages", {{{"content", "no role"}}}}}), "messages"},
        {chat({{"logprobs", 1}}), "logprobs"},
        {chat({{"logprobs", true}, {"top_logprobs", 21}}), "top_logprobs"},
        {chat({{"top_logprobs", 2}}), "top_logprobs"},
        {chat({{"tools", {{"function"}}}}), "tools"},
        {chat({{"tool_choice", "required"}}), "tool_choice"},
        {chat({{"response_format", {{"type", "json_object"}}}}), "response_format"},
        {chat({{"response_format", 7}}), "response_format"},
        {chat({{"reasoning_effort", "extreme"}}), "reasoning_effort"},
    };
    for (const auto& [body, param] : wrong) {
        expectRefusal(body, param);
    }
}

TEST(ApiRequest, RefusesWhatIsNoJsonObject) {
    const std::vector<std::string> broken = {"",
                                             " ",
                                             "null",
                                             "[]",
                                             "\"text\"",
                                             "{",
                                             "{\"model\": \"m\"} x",
                                             "{\"model\": \"m\", \"model\": \"m\"}",
                                             std::string("{\"model\": \"\0\"}", 14),
                                             "{\"model\": \"\xC0\x80\"}",
                                             "{\"model\": \"\\ud800\"}",
                                             "{\"temperature\": 1e999}",
                                             "{'model': 'm'}",
                                             "\xEF\xBB\xBF{}",
                                             std::string(1'000'000, '['),
                                             "{\"x\": " + std::string(40, '[') + std::string(40, ']') + "}"};
    for (const std::string& body : broken) {
        expectRefusal(body, Endpoint::Completions, "");
        expectRefusal(body, Endpoint::Chat, "");
    }
}

TEST(ApiError, TypesFollowTheStatus) {
    const auto type = [](int status) { return errorBody(ApiError(status, "x")).at("error").at("type"); };
    EXPECT_EQ(type(400), "invalid_request_error");
    EXPECT_EQ(type(401), "authentication_error");
    EXPECT_EQ(type(404), "invalid_request_error");
    EXPECT_EQ(type(429), "rate_limit_error");
    EXPECT_EQ(type(500), "server_error");
    EXPECT_EQ(type(503), "service_unavailable_error");
}

} // namespace
} // namespace vitrine::app
