// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/generator.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/resource_path.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

struct TestModel {
    explicit TestModel(const std::string& name, base::StopToken stop = {}, std::uint64_t budget = 0) {
        kernels::ContextOptions options;
        options.threads = 2;
        options.stop = std::move(stop);
        options.memory.deviceBudget = budget;
        context = std::make_unique<kernels::Context>(options);
        source = openModel(name);
        model = std::make_unique<Model>(*context, source, ModelOptions{}, nullptr);
        generate.cache.dtype = kernels::DType::F32;
    }

    GenerateReport run(const std::vector<GenerateRequest>& requests, const TokenCallback& onToken = {}) {
        GenerateReport report;
        Generator(*model, tokenizer, generate).run(requests, report, onToken);
        return report;
    }

    std::unique_ptr<kernels::Context> context;
    ModelSource source;
    std::unique_ptr<Model> model;
    std::shared_ptr<const Tokenizer> tokenizer;
    GenerateOptions generate;
};

GenerateRequest request(std::size_t length, std::int64_t newTokens, std::int32_t salt = 0) {
    GenerateRequest out;
    for (std::size_t i = 0; i < length; ++i) {
        out.prompt.push_back(static_cast<std::int32_t>((31 * i + static_cast<std::size_t>(salt)) % 300));
    }
    out.maxNewTokens = newTokens;
    return out;
}

std::string demoModel() {
    return base::resourcePath("models/vitrine-demo");
}

class GeneratorOfFamily : public ::testing::TestWithParam<const char*> {};

TEST_P(GeneratorOfFamily, ResultsDoNotDependOnTheBatchTheChunkOrTheCache) {
    TestModel setup(std::string("synthetic:tiny-") + GetParam());
    const std::vector<GenerateRequest> requests = {request(3, 12), request(40, 7, 5), request(17, 20, 9)};
    std::vector<GenerateResult> alone;
    for (const GenerateRequest& item : requests) {
        alone.push_back(setup.run({item}).results[0]);
    }
    const auto expectSame = [&](const char* what) {
        const GenerateReport report = setup.run(requests);
        for (std::size_t i = 0; i < requests.size(); ++i) {
            EXPECT_EQ(report.results[i].ids, alone[i].ids) << what << ", request " << i;
            EXPECT_EQ(report.results[i].logprobs, alone[i].logprobs) << what << ", request " << i;
        }
    };
    expectSame("together");
    setup.generate.prefillChunk = 7;
    expectSame("in small chunks");
    setup.generate.cache.pageTokens = 3;
    expectSame("in small pages");
    setup.generate.cache.slidingSaves = false;
    expectSame("with full caches");
    setup.generate.cache.slidingSaves = true;
    setup.generate.cache.kind = KvCacheKind::Static;
    expectSame("in a static cache");
    setup.generate.cache.kind = KvCacheKind::Paged;
    expectSame("in a pool of pages");
    setup.generate.cache.pageTokens = 0;
    expectSame("in a pool of large pages");
}

INSTANTIATE_TEST_SUITE_P(Every, GeneratorOfFamily,
                         ::testing::Values("gpt-oss", "llama", "mistral", "qwen2", "qwen3", "qwen3-moe", "gemma2"),
                         [](const auto& family) {
                             std::string name = family.param;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

TEST(Generator, SamplingFollowsItsSeed) {
    TestModel setup("synthetic:tiny-llama");
    GenerateRequest item = request(5, 30);
    item.sampling.temperature = 1;
    item.sampling.topP = 0.95F;
    const auto ids = [&](std::uint64_t seed) {
        item.sampling.seed = seed;
        return setup.run({item}).results[0].ids;
    };
    const auto first = ids(1);
    EXPECT_EQ(ids(1), first);
    EXPECT_NE(ids(2), first);
    item.sampling.topK = 1;
    GenerateRequest greedy = request(5, 30);
    EXPECT_EQ(ids(2), setup.run({greedy}).results[0].ids) << "the best of one is the best";
}

TEST(Generator, StopTokensEndARequestAndForbiddenIdsNeverCome) {
    TestModel setup("synthetic:tiny-llama");
    GenerateRequest item = request(5, 20);
    const auto free = setup.run({item}).results[0].ids;
    item.stopTokens = {free[6]};
    const GenerateReport stopped = setup.run({item});
    EXPECT_EQ(stopped.results[0].finish, FinishReason::StopToken);
    EXPECT_EQ(stopped.results[0].ids.back(), free[6]);
    EXPECT_LE(stopped.results[0].ids.size(), 7U);
    item.stopTokens.clear();
    item.forbidden = {free[0]};
    const GenerateReport without = setup.run({item});
    for (const std::int32_t id : without.results[0].ids) {
        EXPECT_NE(id, free[0]);
    }
}

TEST(Generator, LogprobsAreSortedAndHoldTheChosenToken) {
    TestModel setup("synthetic:tiny-qwen3");
    setup.generate.topLogprobs = 4;
    const GenerateReport report = setup.run({request(6, 5)});
    const GenerateResult& result = report.results[0];
    ASSERT_EQ(result.top.size(), 5U);
    for (std::size_t i = 0; i < result.top.size(); ++i) {
        ASSERT_EQ(result.top[i].size(), 4U);
        EXPECT_EQ(result.top[i][0].first, result.ids[i]) << "greedy takes the first";
        EXPECT_FLOAT_EQ(result.top[i][0].second, result.logprobs[i]);
        EXPECT_GE(result.top[i][0].second, result.top[i][1].second);
        EXPECT_LE(result.top[i][0].second, 0);
    }
}

TEST(Generator, StreamedTextIsTheWholeTextAndStopTextsCutIt) {
    TestModel setup(demoModel());
    setup.tokenizer = Tokenizer::load(setup.source.tokenizerFile);
    GenerateRequest item = request(8, 30);
    std::string streamed;
    const auto collect = [&](const GeneratedToken& token) { streamed += token.text; };
    const GenerateReport whole = setup.run({item}, collect);
    const std::string text = whole.results[0].channels.at("final");
    EXPECT_EQ(streamed, text);
    ASSERT_GT(text.size(), 20U);

    const std::string stop = text.substr(9, 6);
    item.stopTexts = {stop};
    streamed.clear();
    const GenerateReport cut = setup.run({item}, collect);
    EXPECT_EQ(cut.results[0].finish, FinishReason::StopText);
    EXPECT_EQ(cut.results[0].channels.at("final"), text.substr(0, text.find(stop)));
    EXPECT_EQ(streamed, text.substr(0, text.find(stop)));
}

TEST(Generator, StopsAtAnyTokenAndKeepsWhatWasThere) {
    base::StopSource source;
    TestModel setup("synthetic:tiny-llama", source.get_token());
    GenerateReport report;
    Generator generator(*setup.model, nullptr, setup.generate);
    const TokenCallback stopAtFour = [&](const GeneratedToken& token) {
        if (token.index == 3) {
            source.request_stop();
        }
    };
    EXPECT_THROW(generator.run({request(5, 1000)}, report, stopAtFour), base::Cancelled);
    ASSERT_EQ(report.results.size(), 1U);
    EXPECT_EQ(report.results[0].ids.size(), 4U);
    EXPECT_EQ(report.results[0].finish, FinishReason::Cancelled);
}

TEST(Generator, RunsOutOfMemoryBeforeAKernelAndWorksAgain) {
    TestModel setup("synthetic:tiny-llama", {}, std::uint64_t{8} << 20);
    setup.generate.prefillChunk = 1 << 20;
    const std::uint64_t before = setup.context->memory().statistics().current;
    GenerateReport report;
    Generator generator(*setup.model, nullptr, setup.generate);
    EXPECT_THROW(generator.run({request(20000, 4)}, report, {}), base::OutOfMemory);
    EXPECT_EQ(report.results.at(0).finish, FinishReason::OutOfMemory);
    EXPECT_EQ(setup.context->memory().statistics().current, before) << "everything was given back";
    EXPECT_EQ(setup.run({request(20, 4)}).results[0].ids.size(), 4U);
}

TEST(Generator, AnEmptyPromptIsRefused) {
    TestModel setup("synthetic:tiny-llama");
    EXPECT_THROW(setup.run({GenerateRequest{}}), base::BadInput);
}

TEST(Generator, JumpsOnMetaReachTheSamePeak) {
    const auto peakOf = [](bool jump) {
        const auto context = test::makeContext(kernels::Backend::Meta);
        const ModelSource source = openModel("synthetic:tiny-gpt-oss");
        Model model(*context, source, {false, kernels::DType::BF16}, nullptr);
        GenerateOptions options;
        options.jumpEqualSteps = jump;
        GenerateReport report;
        Generator(model, nullptr, options).run({request(10, 700), request(30, 300)}, report, {});
        EXPECT_EQ(report.results[0].ids.size(), 700U);
        return std::tuple(context->memory().statistics().peak, context->memory().statistics().peakByCategory,
                          report.kvBytes, report.kvPageBytes, report.decodedTokens, report.decodeSteps);
    };
    EXPECT_EQ(peakOf(true), peakOf(false));
}

} // namespace
} // namespace vitrine::engine
