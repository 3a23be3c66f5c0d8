// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The experts that requests return, against a forward pass over prompt and answer.

#include <gtest/gtest.h>
#include <malloc.h>

#include "engine/generation/batch_replay.h"
#include "engine/generation/ngram_drafter.h"
#include "tests/engine/generation/expert_reference.h"
#include "tests/engine/generation/knowing_drafter.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using Overrides = std::map<std::string, std::string>;

class ExpertRig {
public:
    explicit ExpertRig(const std::string& name, kernels::Backend backend = kernels::Backend::Cpu,
                       const Overrides& overrides = {})
        : context(test::makeContext(backend)), source(openModel(name, overrides)),
          model(std::make_unique<Model>(*context, source, ModelOptions{}, nullptr)) {
        options.cache.dtype = kernels::DType::F32;
        options.cache.pageTokens = 4;
        options.scheduler.slots = 3;
        options.scheduler.tokenBudget = 64;
    }

    std::vector<BatchResult> serve(const std::vector<GenerateRequest>& requests) {
        BatchEngine engine(*model, nullptr, options);
        std::vector<ArrivingRequest> arriving;
        for (const GenerateRequest& each : requests) {
            arriving.push_back({each, 0, {}});
        }
        replayRequests(engine, *context, std::move(arriving));
        std::vector<BatchResult> out;
        for (std::size_t i = 0; i < requests.size(); ++i) {
            out.push_back(engine.result(static_cast<std::int32_t>(i)));
        }
        counts = engine.counts();
        speculated = engine.speculation();
        return out;
    }

    /// Serves them, and looks at every row of those that asked.
    std::vector<BatchResult> expectServed(const std::vector<GenerateRequest>& requests, const std::string& what) {
        SCOPED_TRACE(what);
        std::vector<BatchResult> results = serve(requests);
        for (std::size_t i = 0; i < requests.size(); ++i) {
            SCOPED_TRACE(i);
            if (requests[i].returnsExperts) {
                // What it found when it came back may be more, or less.
                const bool cameBack = results[i].preemptions > 0;
                test::expectExperts(*model, requests[i], results[i].result,
                                    cameBack ? results[i].result.experts.firstKnown : results[i].sharedTokens);
            } else {
                EXPECT_EQ(results[i].result.experts.tokens(), 0) << "it did not ask";
            }
        }
        return results;
    }

    std::unique_ptr<kernels::Context> context;
    ModelSource source;
    std::unique_ptr<Model> model;
    BatchOptions options;
    BatchCounts counts;           ///< of the last call of serve()
    SpeculationCounts speculated; ///< the same
};

/// The last one does not ask.
std::vector<GenerateRequest> askingRequests() {
    std::vector<GenerateRequest> out(6);
    for (std::size_t i = 0; i < out.size(); ++i) {
        for (std::size_t t = 0; t < 1 + 11 * i % 40; ++t) {
            out[i].prompt.push_back(static_cast<std::int32_t>((31 * t + i * 7 + 1) % 200));
        }
        out[i].maxNewTokens = i == 1 ? 1 : 18 + static_cast<std::int64_t>(i);
        out[i].sampling.temperature = i % 2 == 0 ? 0.0F : 0.8F;
        out[i].sampling.seed = 5;
        out[i].samplingNumber = static_cast<std::uint32_t>(i);
        out[i].returnsExperts = i + 1 < out.size();
    }
    return out;
}

class ReturnedExperts : public ::testing::TestWithParam<const char*> {};

TEST_P(ReturnedExperts, AreThoseOfAForwardPassHoweverTokensAreRead) {
    ExpertRig rig(GetParam());
    std::vector<GenerateRequest> requests = askingRequests();
    rig.expectServed(requests, "continuous");
    rig.options.scheduler.mode = BatchMode::Static;
    rig.expectServed(requests, "static");
    EXPECT_GT(rig.counts.paddingTokens, 0);
    rig.options.scheduler.mode = BatchMode::Continuous;
    rig.options.scheduler.tokenBudget = 5;
    const std::vector<BatchResult> pieces = rig.expectServed(requests, "in pieces");
    requests[2].stopTokens = {pieces[2].result.ids[4]};
    EXPECT_LE(rig.expectServed(requests, "with a stop token")[2].result.ids.size(), 5U);

    GenerateOptions generate;
    generate.cache.dtype = kernels::DType::F32;
    generate.prefillChunk = 7;
    GenerateReport report;
    Generator(*rig.model, nullptr, generate).run(requests, report, {});
    for (std::size_t i = 0; i + 1 < requests.size(); ++i) {
        SCOPED_TRACE(i);
        test::expectExperts(*rig.model, requests[i], report.results[i]);
    }
}

TEST_P(ReturnedExperts, OfSharedTokensAreMissing) {
    ExpertRig rig(GetParam());
    rig.options.cache.sharePrefixes = true;
    rig.options.cache.slidingSaves = false;
    rig.options.scheduler.slots = 1;
    std::vector<GenerateRequest> requests(3, askingRequests()[3]);
    requests[1].prompt.push_back(7);
    requests[2].readsWholePrompt = true;
    const std::vector<BatchResult> results = rig.expectServed(requests, "shared");
    EXPECT_EQ(results[0].sharedTokens, 0);
    EXPECT_GT(results[1].sharedTokens, 20);
    EXPECT_EQ(results[2].sharedTokens, 0) << "it reads everything";
}

TEST_P(ReturnedExperts, SurvivePreemption) {
    ExpertRig rig(GetParam());
    rig.options.cache.poolPages = 18;
    rig.options.cache.slidingSaves = false;
    rig.options.scheduler.swapPages = 100;
    for (const bool shares : {false, true}) {
        rig.options.cache.sharePrefixes = shares;
        for (const Preemption preemption : {Preemption::Recompute, Preemption::Swap}) {
            rig.options.scheduler.preemption = preemption;
            rig.expectServed(askingRequests(), "with few pages");
            EXPECT_GT(rig.counts.preemptions, 0);
            EXPECT_EQ(rig.counts.swaps > 0, preemption == Preemption::Swap);
        }
    }
}

TEST_P(ReturnedExperts, OfRejectedDraftsAreDropped) {
    ExpertRig rig(GetParam());
    std::vector<GenerateResult> plain;
    for (BatchResult& result : rig.serve(askingRequests())) {
        plain.push_back(std::move(result.result));
    }
    test::KnowingDrafter knowing(plain);
    NgramDrafter ngram({1, 3});
    for (Drafter* const drafter : {static_cast<Drafter*>(&knowing), static_cast<Drafter*>(&ngram)}) {
        rig.options.speculation = {drafter, 4};
        std::vector<GenerateRequest> requests = askingRequests();
        for (std::size_t i = 2; i < requests.size(); ++i) { // some stop inside a draft
            requests[i].stopTokens = {plain[i].ids[6 + i]};
        }
        rig.expectServed(requests, "with drafts");
        EXPECT_GT(rig.speculated.drafted, rig.speculated.accepted);
    }
}

TEST_P(ReturnedExperts, HaveAsManyBytesInAPlan) {
    ExpertRig cpu(GetParam());
    const std::vector<GenerateRequest> requests = askingRequests();
    const std::vector<BatchResult> real = cpu.serve(requests);
    for (const bool jumps : {false, true}) {
        ExpertRig meta(GetParam(), kernels::Backend::Meta);
        meta.options.jumpEqualSteps = jumps;
        const std::vector<BatchResult> planned = meta.serve(requests);
        for (std::size_t i = 0; i < requests.size(); ++i) {
            const ReadExperts& experts = planned[i].result.experts;
            EXPECT_EQ(experts.choices.bytes.size(), real[i].result.experts.choices.bytes.size()) << "request " << i;
            EXPECT_EQ(experts.tokens(), real[i].result.experts.tokens());
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Models, ReturnedExperts,
                         ::testing::Values("synthetic:tiny-gpt-oss", "synthetic:tiny-qwen3-moe",
                                           "synthetic:tiny-deepseek-v3"),
                         [](const ::testing::TestParamInfo<const char*>& item) {
                             std::string name = std::string(item.param).substr(15);
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

TEST(ReturnedExpertsOfManyExperts, TakeTwoBytes) {
    ExpertRig rig("synthetic:tiny-qwen3-moe", kernels::Backend::Cpu, {{"num_experts", "300"}});
    const std::vector<BatchResult> results = rig.expectServed(askingRequests(), "300 experts");
    const ExpertChoices& choices = results[3].result.experts.choices;
    EXPECT_EQ(choices.idBytes, 2);
    bool wide = false;
    for (std::int64_t row = 0; row < choices.rows(); ++row) {
        wide = wide || choices.id(row, 0, 0) > 255;
    }
    EXPECT_TRUE(wide);
}

TEST(ReturnedExpertsOfNoExperts, AreEmpty) {
    ExpertRig rig("synthetic:tiny-llama");
    for (const BatchResult& result : rig.serve(askingRequests())) {
        EXPECT_EQ(result.result.experts.tokens(), 0);
        EXPECT_TRUE(isComplete(result.result.finish));
    }
}

/// The lines of allocations of a run.
std::vector<std::string> allocationsOf(kernels::Backend backend, bool asks) {
    const kernels::DeviceTraits traits = test::testTraits();
    test::RecordingSink sink;
    {
        const auto context = test::makeContext(backend, &sink, &traits);
        Model model(*context, openModel("synthetic:tiny-gpt-oss"), {false, kernels::DType::BF16, 7}, nullptr);
        GenerateOptions options;
        options.cache.dtype = kernels::DType::BF16;
        options.prefillChunk = 11;
        std::vector<GenerateRequest> requests = askingRequests();
        for (GenerateRequest& request : requests) {
            request.returnsExperts = request.returnsExperts && asks;
            request.sampling.temperature = 0;
        }
        GenerateReport report;
        Generator(model, nullptr, options).run(requests, report, {});
    }
    return sink.lines();
}

TEST(StepsThatReturnExperts, AllocateTheirBufferAndOthersDoNot) {
    const auto buffers = [](const std::vector<std::string>& lines) {
        return std::ranges::count_if(lines, [](const auto& line) { return line.find("expert_choices") != line.npos; });
    };
    const std::vector<std::string> asking = allocationsOf(kernels::Backend::Cpu, true);
    const std::vector<std::string> without = allocationsOf(kernels::Backend::Cpu, false);
    EXPECT_EQ(asking, allocationsOf(kernels::Backend::Meta, true));
    EXPECT_EQ(without, allocationsOf(kernels::Backend::Meta, false));
    EXPECT_EQ(buffers(without), 0);
    EXPECT_GT(buffers(asking), 20);
}

TEST(StepsThatReturnExperts, TakeTheBytesOfTheChoicesMore) {
    const auto context = test::makeContext(kernels::Backend::Meta);
    Model model(*context, openModel("synthetic:gpt-oss-20b"), {false, kernels::DType::BF16, 0}, nullptr);
    const std::vector<std::int32_t> tokens(4096, 1);
    StepBatch batch;
    batch.sequences = {{0, tokens}};
    KvCacheOptions cache;
    const std::uint64_t without = model.stepBytes(batch, 0, cache);
    batch.experts = true;
    EXPECT_EQ(model.stepBytes(batch, 0, cache), without + 4096U * 24 * 4);
}

TEST(StepsThatReturnExperts, OfWholeSequencesWithoutACache) {
    ExpertRig rig("synthetic:tiny-deepseek-v3");
    const std::vector<std::int32_t> tokens = askingRequests()[3].prompt;
    StepBatch batch;
    batch.sequences = {{0, tokens}};
    EXPECT_EQ(rig.model->step(batch).experts.rows(), 0);
    batch.experts = true; // of another size
    const StepOutput out = rig.model->step(batch);
    const auto wanted = test::chosenExperts(*rig.model, tokens);
    ASSERT_EQ(out.experts.layers, 3) << "the first layer is dense";
    ASSERT_EQ(out.experts.rows(), std::ssize(tokens));
    for (std::int64_t i = 0; i < out.experts.rows() * out.experts.k; ++i) {
        EXPECT_EQ(out.experts.id(i / out.experts.k, 2, i % out.experts.k), wanted[2][static_cast<std::size_t>(i)]);
    }
}

TEST(ReturnedExpertsOfManyRequests, DoNotStayInTheEngine) {
    ExpertRig rig("synthetic:tiny-gpt-oss");
    BatchEngine engine(*rig.model, nullptr, rig.options);
    GenerateRequest request = askingRequests()[3];
    request.maxNewTokens = 2;
    request.returnsExperts = true;
    request.prompt.resize(200, 3);
    std::size_t bytes = 0;
    const auto serve = [&](int requests) {
        for (int i = 0; i < requests; ++i) {
            const std::int32_t number = engine.add(request, 0);
            while (engine.step()) {
            }
            const BatchResult result = engine.takeResult(number);
            EXPECT_EQ(result.result.experts.choices.bytes.capacity(), 201U * 4 * 2);
            bytes += result.result.experts.choices.bytes.size();
        }
    };
    serve(20);
    const std::size_t before = mallinfo2().uordblks;
    bytes = 0;
    serve(100);
    EXPECT_LT(mallinfo2().uordblks, before + bytes / 3);
}

} // namespace
} // namespace vitrine::engine
