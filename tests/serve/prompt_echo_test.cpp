// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/prompt_echo.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/resource_path.h"
#include "tests/serve/server_rig.h"

namespace vitrine::app {
namespace {

using nlohmann::json;
using test::HttpReply;
using test::ServerRig;

constexpr const char* kSentence = "The window of a sliding layer";

ServerRig::Options demo(const json& more = json::object()) {
    ServerRig::Options options;
    options.model = base::resourcePath("models/vitrine-demo");
    options.more = more;
    return options;
}

json echoBody(const ServerRig& rig, const json& prompt, int maxTokens, const json& more = json::object()) {
    json body = rig.body(prompt, maxTokens);
    body["echo"] = true;
    body.update(more);
    return body;
}

json answerOf(const ServerRig& rig, const json& body) {
    const HttpReply reply = rig.complete(body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json::parse(reply.body);
}

/// What lm-evaluation-harness takes of a choice: the sum of the log-probabilities of the tokens behind the context, the
/// last (generated) one left out, and whether each of them was the likeliest.
std::pair<double, bool> scoreOf(const json& choice, std::size_t context) {
    const json& logprobs = choice.at("logprobs");
    double sum = 0;
    bool greedy = true;
    for (std::size_t i = context; i + 1 < logprobs.at("token_logprobs").size(); ++i) {
        const auto logprob = logprobs.at("token_logprobs").at(i).get<double>();
        sum += logprob;
        for (const auto& [text, other] : logprobs.at("top_logprobs").at(i).items()) {
            greedy = greedy && other.get<double>() <= logprob;
        }
    }
    return {sum, greedy};
}

TEST(PromptEcho, TheAnswerBeginsWithThePromptAndItsLogprobs) {
    const ServerRig rig(demo());
    const json plain = answerOf(rig, rig.body(kSentence, 4)).at("choices").at(0);
    const json whole = answerOf(rig, echoBody(rig, kSentence, 4, {{"logprobs", 2}}));
    const json& choice = whole.at("choices").at(0);
    const std::string text = choice.at("text");
    EXPECT_EQ(text, kSentence + plain.at("text").get<std::string>());
    const json& logprobs = choice.at("logprobs");
    const auto prompt = whole.at("usage").at("prompt_tokens").get<std::size_t>();
    EXPECT_EQ(whole.at("usage").at("completion_tokens"), 4);
    for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
        ASSERT_EQ(logprobs.at(list).size(), prompt + 4) << list;
    }
    EXPECT_TRUE(logprobs.at("token_logprobs").at(0).is_null());
    EXPECT_TRUE(logprobs.at("top_logprobs").at(0).is_null());
    for (std::size_t i = 1; i < prompt + 4; ++i) {
        EXPECT_LE(logprobs.at("token_logprobs").at(i).get<double>(), 0);
        const json& best = logprobs.at("top_logprobs").at(i);
        const std::string token = logprobs.at("tokens").at(i);
        EXPECT_THAT(best.size(), testing::AllOf(testing::Ge(2U), testing::Le(3U)));
        EXPECT_EQ(best.at(token), logprobs.at("token_logprobs").at(i));
        const auto offset = logprobs.at("text_offset").at(i).get<std::size_t>();
        EXPECT_EQ(text.substr(offset, token.size()), token) << "token " << i;
    }
}

TEST(PromptEcho, ScoresAreTheSameInPiecesAndBesideKnownPrefixes) {
    // Several pages, read in pieces, and known when they are read again.
    std::string prompt;
    for (int i = 0; i < 30; ++i) {
        prompt += kSentence;
    }
    const ServerRig rig(demo({{"token_budget", 24}, {"share_prefixes", true}}));
    const ServerRig simple(demo());
    const json first = answerOf(simple, echoBody(simple, prompt, 1, {{"logprobs", 1}})).at("choices").at(0);
    for (int i = 0; i < 2; ++i) {
        const json again = answerOf(rig, echoBody(rig, prompt, 1, {{"logprobs", 1}}));
        EXPECT_EQ(again.at("choices").at(0), first) << "to the last bit";
        EXPECT_GT(again.at("usage").at("prompt_tokens").get<int>(), 128);
        EXPECT_EQ(again.at("usage").at("prompt_tokens_details").at("cached_tokens"), 0);
    }
    EXPECT_GT(answerOf(rig, rig.body(prompt, 1)).at("usage").at("prompt_tokens_details").at("cached_tokens").get<int>(),
              0)
        << "what was scored is known to others";
    // Greedy answers score as greedy, and as their own log-probabilities.
    const json answer = answerOf(rig, echoBody(rig, kSentence, 3, {{"logprobs", 1}})).at("choices").at(0);
    const json& own = answer.at("logprobs").at("token_logprobs");
    const std::size_t context = own.size() - 3;
    const json longer = answerOf(rig, echoBody(rig, answer.at("text"), 1, {{"logprobs", 1}})).at("choices").at(0);
    ASSERT_EQ(longer.at("logprobs").at("tokens").size(), own.size() + 1);
    const auto [sum, greedy] = scoreOf(longer, context);
    EXPECT_TRUE(greedy);
    EXPECT_NEAR(sum,
                own.at(context).get<double>() + own.at(context + 1).get<double>() + own.at(context + 2).get<double>(),
                1e-4);
    EXPECT_FALSE(
        scoreOf(answerOf(rig, echoBody(rig, "zebra zebra zebra", 1, {{"logprobs", 1}})).at("choices").at(0), 1).second);
}

TEST(PromptEcho, ThePromptAloneIsAnAnswerWithoutNewTokens) {
    const ServerRig rig(demo());
    const json one = answerOf(rig, echoBody(rig, kSentence, 1, {{"logprobs", 1}})).at("choices").at(0).at("logprobs");
    const json none = answerOf(rig, echoBody(rig, kSentence, 0, {{"logprobs", 1}}));
    const json& choice = none.at("choices").at(0);
    EXPECT_EQ(choice.at("text"), kSentence);
    EXPECT_EQ(choice.at("finish_reason"), "length");
    EXPECT_EQ(none.at("usage").at("completion_tokens"), 0);
    for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
        json cut = one.at(list);
        cut.erase(cut.size() - 1);
        EXPECT_EQ(choice.at("logprobs").at(list), cut) << list;
    }
    EXPECT_EQ(rig.complete(rig.body(kSentence, 0)).status, 400) << "without echo there would be no answer";
}

TEST(PromptEcho, ManyPromptsOfTokensKeepTheirPlaces) {
    const ServerRig rig;
    std::vector<std::vector<std::int32_t>> prompts;
    for (int i = 0; i < 6; ++i) {
        prompts.push_back(test::promptTokens(3 + 5 * i, i));
    }
    const json all = answerOf(rig, echoBody(rig, prompts, 1, {{"logprobs", 1}, {"n", 2}})).at("choices");
    ASSERT_EQ(all.size(), 12U);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        json alone = answerOf(rig, echoBody(rig, prompts[i], 1, {{"logprobs", 1}})).at("choices").at(0);
        const auto ids = alone.at("token_ids").get<std::vector<std::int32_t>>();
        EXPECT_TRUE(std::equal(prompts[i].begin(), prompts[i].end(), ids.begin(), ids.end() - 1));
        EXPECT_TRUE(alone.at("text").get<std::string>().starts_with(std::to_string(prompts[i][0]) + " "));
        for (const std::size_t choice : {2 * i, 2 * i + 1}) {
            alone["index"] = choice;
            EXPECT_EQ(all.at(choice), alone);
        }
    }
}

TEST(PromptEcho, AStreamBeginsWithTheTextOfThePrompt) {
    const ServerRig rig(demo());
    const std::string whole = answerOf(rig, echoBody(rig, kSentence, 3)).at("choices").at(0).at("text");
    bool done = false;
    std::string streamed;
    for (const json& event : test::events(rig.complete(echoBody(rig, kSentence, 3, {{"stream", true}})).body, &done)) {
        const std::string text = event.at("choices").at(0).at("text");
        EXPECT_TRUE(!streamed.empty() || text == kSentence);
        streamed += text;
    }
    EXPECT_TRUE(done);
    EXPECT_EQ(streamed, whole);
    EXPECT_EQ(rig.complete(echoBody(rig, kSentence, 3, {{"stream", true}, {"logprobs", 1}})).status, 400);
}

TEST(PromptEcho, TokensOfARequestEndItsAnswer) {
    const ServerRig rig(demo({{"ignore_eos", false}}));
    json body = echoBody(rig, kSentence, 12, {{"logprobs", 0}});
    const json plain = answerOf(rig, body).at("choices").at(0);
    const std::string third = plain.at("logprobs").at("tokens").at(plain.at("logprobs").at("tokens").size() - 10);
    const auto tokenizer = engine::Tokenizer::load(base::resourcePath("models/vitrine-demo/tokenizer.json"));
    std::int32_t id = 0;
    while (id < tokenizer->vocabSize() && tokenizer->decode({&id, 1}) != third) {
        ++id;
    }
    body["stop_token_ids"] = {id};
    const json stopped = answerOf(rig, body);
    EXPECT_EQ(stopped.at("choices").at(0).at("finish_reason"), "stop");
    const auto tokens = stopped.at("usage").at("completion_tokens").get<int>();
    EXPECT_LE(tokens, 3);
    body["min_tokens"] = 6;
    EXPECT_GE(answerOf(rig, body).at("usage").at("completion_tokens").get<int>(), 6);
    body["min_tokens"] = 13;
    EXPECT_EQ(rig.complete(body).status, 400) << "more than max_tokens";
    body.erase("min_tokens");
    body["stop_token_ids"] = {10'000'000};
    const HttpReply refused = rig.complete(body);
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(json::parse(refused.body).at("error").at("param"), "stop_token_ids");
}

TEST(PromptEcho, SpecialTokensThatTheTextLacksHaveNoWidth) {
    const auto tokenizer = engine::Tokenizer::load(base::resourcePath("models/vitrine-demo/tokenizer.json"));
    std::int32_t special = 0;
    while (special < tokenizer->vocabSize() && !tokenizer->isSpecial(special)) {
        ++special;
    }
    ASSERT_LT(special, tokenizer->vocabSize());
    const std::string text = "a window";
    std::vector<std::int32_t> ids = tokenizer->encode(text, false);
    const std::size_t plain = ids.size();
    ids.insert(ids.begin(), special);
    const PromptEcho added = promptEcho(&text, ids, tokenizer);
    EXPECT_EQ(added.text, text);
    ASSERT_EQ(added.offsets.size(), plain + 1);
    EXPECT_EQ(added.offsets[1], 0);
    const PromptEcho written = promptEcho(nullptr, ids, tokenizer);
    EXPECT_EQ(written.text, tokenizer->decode({&special, 1}) + text);
    EXPECT_EQ(written.offsets[1], static_cast<std::int64_t>(tokenizer->decode({&special, 1}).size()));
    const std::vector<TokenLogprob> tokens = promptLogprobs(added, tokenizer.get(), {});
    EXPECT_EQ(tokens.size(), plain + 1) << "a request that failed has no scores";
    EXPECT_TRUE(std::ranges::none_of(tokens, &TokenLogprob::known));
}

} // namespace
} // namespace vitrine::app
