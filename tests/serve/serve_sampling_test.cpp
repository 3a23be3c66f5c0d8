// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Log-probabilities, penalties and biases as clients see them, and what becomes of a request whose numbers break.

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/generation/generator.h"
#include "tests/engine/model/broken_model.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/serve/server_rig.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using nlohmann::json;
using test::HttpReply;
using test::ServerRig;

std::vector<std::int32_t> idsIn(const HttpReply& reply) {
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json::parse(reply.body).at("choices").at(0).at("token_ids").get<std::vector<std::int32_t>>();
}

/// What the generator says of the same model.
engine::GenerateResult reference(const std::vector<std::int32_t>& prompt, int newTokens, std::int32_t best) {
    const auto context = engine::test::makeContext(kernels::Backend::Cpu);
    const engine::ModelSource source = engine::openModel("synthetic:tiny-llama");
    engine::Model model(*context, source, engine::ModelOptions{}, nullptr);
    engine::GenerateOptions options;
    options.cache.dtype = kernels::DType::F32;
    options.topLogprobs = best;
    engine::GenerateRequest request;
    request.prompt = prompt;
    request.maxNewTokens = newTokens;
    request.forbidden = source.config.eosTokens;
    engine::GenerateReport report;
    engine::Generator(model, nullptr, options).run({request}, report, {});
    return report.results.at(0);
}

TEST(ServeSampling, TheBestLogprobsAreThoseOfTheGenerator) {
    ServerRig rig;
    const auto prompt = test::promptTokens(6, 3);
    constexpr int kTokens = 5;
    constexpr std::size_t kBest = 3;
    const engine::GenerateResult expected = reference(prompt, kTokens, kBest);
    json body = rig.body(prompt, kTokens);
    body["logprobs"] = kBest;
    const auto expectToken = [&](const json& logprobs, std::size_t at, std::size_t index) {
        EXPECT_NEAR(logprobs.at("token_logprobs").at(at).get<double>(), static_cast<double>(expected.logprobs[index]),
                    1e-5);
        const json& best = logprobs.at("top_logprobs").at(at);
        for (const auto& [id, logprob] : expected.top[index]) {
            const std::string text = (index > 0 ? " " : "") + std::to_string(id);
            ASSERT_TRUE(best.contains(text)) << best << " lacks " << text;
            EXPECT_NEAR(best.at(text).get<double>(), static_cast<double>(logprob), 1e-5);
        }
        EXPECT_LE(best.size(), kBest + 1);
        EXPECT_TRUE(best.contains(logprobs.at("tokens").at(at).get<std::string>()));
    };
    const json whole = json::parse(rig.complete(body).body).at("choices").at(0).at("logprobs");
    ASSERT_EQ(whole.at("top_logprobs").size(), static_cast<std::size_t>(kTokens));
    for (std::size_t i = 0; i < kTokens; ++i) {
        expectToken(whole, i, i);
    }
    body["stream"] = true;
    std::size_t index = 0;
    for (const json& event : test::events(rig.complete(body).body, nullptr)) {
        const json& logprobs = event.at("choices").at(0).at("logprobs");
        if (logprobs.is_object()) {
            expectToken(logprobs, 0, index++);
        }
    }
    EXPECT_EQ(index, static_cast<std::size_t>(kTokens));
    body["logprobs"] = 0;
    body["stream"] = false;
    const json none = json::parse(rig.complete(body).body).at("choices").at(0).at("logprobs");
    EXPECT_TRUE(none.at("top_logprobs").is_null());
    EXPECT_EQ(none.at("token_logprobs").size(), static_cast<std::size_t>(kTokens));
}

TEST(ServeSampling, AChatHasTheBestInOrder) {
    ServerRig rig;
    json body = {{"model", rig.name()}, {"messages", {{{"role", "user"}, {"content", "Hello"}}}},
                 {"max_tokens", 4},     {"temperature", 0},
                 {"logprobs", true},    {"top_logprobs", 7}};
    const auto expectToken = [](const json& token) {
        const json& best = token.at("top_logprobs");
        ASSERT_EQ(best.size(), 7U);
        EXPECT_EQ(best.at(0).at("token"), token.at("token")) << "greedy";
        EXPECT_EQ(best.at(0).at("logprob"), token.at("logprob"));
        for (std::size_t i = 1; i < best.size(); ++i) {
            EXPECT_LE(best.at(i).at("logprob"), best.at(i - 1).at("logprob"));
            EXPECT_TRUE(best.at(i).at("bytes").is_array());
        }
    };
    const json whole = json::parse(rig.chat(body).body).at("choices").at(0).at("logprobs").at("content");
    ASSERT_EQ(whole.size(), 4U);
    std::ranges::for_each(whole, expectToken);
    body["stream"] = true;
    std::vector<json> streamed;
    for (const json& event : test::events(rig.chat(body).body, nullptr)) {
        if (const json& logprobs = event.at("choices").at(0).at("logprobs"); logprobs.is_object()) {
            streamed.push_back(logprobs.at("content").at(0));
        }
    }
    EXPECT_EQ(json(streamed), whole);
}

TEST(ServeSampling, BiasesAndPenaltiesChangeWhatIsChosen) {
    ServerRig rig;
    json body = rig.body(test::promptTokens(6, 3), 12);
    const std::vector<std::int32_t> plain = idsIn(rig.complete(body));
    body["logit_bias"] = {{"9", 100}};
    EXPECT_THAT(idsIn(rig.complete(body)), testing::Each(9));
    body["logprobs"] = 1;
    const json logprobs = json::parse(rig.complete(body).body).at("choices").at(0).at("logprobs");
    EXPECT_LT(logprobs.at("token_logprobs").at(0).get<double>(), 0) << "of the raw logits: the bias is not in it";
    body.erase("logprobs");
    body["logit_bias"] = {{std::to_string(plain[0]), -100}};
    EXPECT_THAT(idsIn(rig.complete(body)), testing::Not(testing::Contains(plain[0])));
    // A lead of 1.5 over the second best is worn off by penalties.
    body["logit_bias"] = {{"9", 100}, {"8", 99}};
    body["presence_penalty"] = 1.5;
    const std::vector<std::int32_t> turns = idsIn(rig.complete(body));
    EXPECT_THAT(turns, testing::Contains(8));
    EXPECT_THAT(turns, testing::Contains(9));
    body["presence_penalty"] = 0;
    body["frequency_penalty"] = 2;
    const std::vector<std::int32_t> even = idsIn(rig.complete(body));
    EXPECT_NEAR(static_cast<double>(std::ranges::count(even, 9)), 6, 3);
    body["logit_bias"] = {{"1000000", 1}};
    const HttpReply refused = rig.complete(body);
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(json::parse(refused.body).at("error").at("param"), "logit_bias");
}

TEST(ServeSampling, ARequestIsTheSameAloneAndAmongOthers) {
    ServerRig rig;
    std::vector<json> bodies;
    for (int i = 0; i < 8; ++i) {
        json body = rig.body(test::promptTokens(4 + i, i), 20);
        body["temperature"] = i % 2 == 0 ? 1.0 : 0.0;
        body["seed"] = 100 + i;
        body["frequency_penalty"] = i % 3 == 0 ? 0.0 : 1.1;
        body["presence_penalty"] = i % 4 == 0 ? 0.0 : 0.6;
        body["logit_bias"] = i % 2 == 0 ? json{{"3", 4}, {"77", -100}} : json::object();
        body["logprobs"] = i % 5;
        bodies.push_back(body);
    }
    std::vector<json> alone;
    std::vector<std::string> texts;
    for (const json& body : bodies) {
        alone.push_back(json::parse(rig.complete(body).body).at("choices"));
        texts.push_back(test::postText("/v1/completions", body.dump()));
    }
    const auto together = test::manyRequests(rig.port(), texts, std::chrono::seconds(60));
    for (std::size_t i = 0; i < bodies.size(); ++i) {
        EXPECT_EQ(json::parse(together[i].body).at("choices"), alone[i]) << "request " << i;
    }
}

TEST(ServeSampling, OnlyTheRequestWhoseNumbersBreakFails) {
    const test::TempFolder folder;
    ServerRig::Options options;
    options.model = folder.file("broken");
    engine::test::copyWithBrokenRow("llama", options.model, "model.embed_tokens.weight", 5);
    ServerRig rig(options);
    for (const bool stream : {false, true}) {
        json bad = rig.body(json{4, 5, 6}, 8);
        bad["stream"] = stream;
        const auto replies = test::manyRequests(rig.port(),
                                                {test::postText("/v1/completions", rig.body(json{1, 2, 3}, 8).dump()),
                                                 test::postText("/v1/completions", bad.dump())},
                                                std::chrono::seconds(60));
        EXPECT_EQ(replies[0].status, 200) << replies[0].body;
        EXPECT_EQ(replies[1].status, stream ? 200 : 500) << replies[1].body;
        const json error =
            (stream ? test::events(replies[1].body, nullptr).back() : json::parse(replies[1].body)).at("error");
        EXPECT_EQ(error.at("code"), "not_finite");
        EXPECT_THAT(error.at("message").get<std::string>(), testing::HasSubstr("the output of the embedding"));
    }
    EXPECT_EQ(rig.complete(rig.body(json{1, 2, 3}, 8)).status, 200) << "and the server goes on";
    EXPECT_TRUE(rig.becomesIdle());
}

} // namespace
} // namespace vitrine
