// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/speculation.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "engine/generation/batch_replay.h"
#include "engine/generation/model_drafter.h"
#include "engine/generation/ngram_drafter.h"
#include "tests/engine/generation/knowing_drafter.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

class SpeculationRig {
public:
    explicit SpeculationRig(const std::string& name, kernels::Backend backend = kernels::Backend::Cpu,
                            base::TraceSink* sink = nullptr, const kernels::DeviceTraits* traits = nullptr)
        : context(test::makeContext(backend, sink, traits)), source(openModel(name)),
          model(std::make_unique<Model>(*context, source, ModelOptions{}, nullptr)) {
        generate.cache.dtype = kernels::DType::F32;
        batch.cache.dtype = kernels::DType::F32;
        batch.cache.pageTokens = 4;
        batch.scheduler.slots = 3;
        batch.scheduler.tokenBudget = 64;
    }

    GenerateReport run(const std::vector<GenerateRequest>& requests) const {
        GenerateReport report;
        Generator(*model, nullptr, generate).run(requests, report, {});
        return report;
    }

    void serve(const std::vector<GenerateRequest>& requests, const std::vector<GenerateResult>& wanted,
               const std::string& what) {
        BatchEngine engine(*model, nullptr, batch);
        std::vector<ArrivingRequest> arriving;
        for (const GenerateRequest& request : requests) {
            arriving.push_back({request, 0, {}});
        }
        replayRequests(engine, *context, std::move(arriving));
        for (std::size_t i = 0; i < requests.size(); ++i) {
            const GenerateResult& result = engine.result(static_cast<std::int32_t>(i)).result;
            EXPECT_EQ(result.ids, wanted[i].ids) << what << ", request " << i;
            EXPECT_EQ(result.finish, wanted[i].finish) << what << ", request " << i;
        }
        counts = engine.counts();
        speculated = engine.speculation();
        const PageBook& book = *engine.cache().book();
        EXPECT_EQ(book.counts().used,
                  engine.scheduler().options().otherPages * static_cast<std::int64_t>(book.groups().size()));
    }

    std::unique_ptr<kernels::Context> context;
    ModelSource source;
    std::unique_ptr<Model> model;
    GenerateOptions generate;
    BatchOptions batch;
    BatchCounts counts;
    SpeculationCounts speculated;
};

GenerateRequest askFor(std::size_t length, std::int64_t newTokens, std::int32_t salt) {
    GenerateRequest out;
    for (std::size_t i = 0; i < length; ++i) {
        out.prompt.push_back(static_cast<std::int32_t>((31 * i + static_cast<std::size_t>(salt) * 7 + 1) % 200));
    }
    out.maxNewTokens = newTokens;
    return out;
}

std::vector<GenerateRequest> requestsToDraft() {
    std::vector<GenerateRequest> out = {askFor(3, 40, 1), askFor(40, 17, 5), askFor(17, 50, 9), askFor(1, 1, 2),
                                        askFor(40, 2, 5)};
    out[1].sampling.temperature = 0.9F;
    out[1].sampling.topP = 0.95F;
    out[2].sampling.temperature = 1.2F;
    out[2].sampling.topK = 40;
    out[2].sampling.seed = 8;
    out[2].sampling.repetitionPenalty = 1.1F;
    out[2].sampling.frequencyPenalty = 0.3F;
    return out;
}

class SpeculationOfFamily : public ::testing::TestWithParam<const char*> {};

TEST_P(SpeculationOfFamily, AnswersAreThoseOfPlainDecoding) {
    SpeculationRig rig(std::string("synthetic:tiny-") + GetParam());
    const std::vector<GenerateRequest> requests = requestsToDraft();
    const GenerateReport plain = rig.run(requests);
    test::KnowingDrafter knowing(plain.results);
    NgramDrafter ngram({1, 3});
    rig.generate.cache.pageTokens = 3;
    for (std::int64_t tokens = 1; tokens <= 8; ++tokens) {
        rig.generate.speculation.draftTokens = tokens;
        for (Drafter* const drafter : {static_cast<Drafter*>(&knowing), static_cast<Drafter*>(&ngram)}) {
            rig.generate.speculation.drafter = drafter;
            rig.generate.cache.kind = tokens % 3 == 0   ? KvCacheKind::Static
                                      : tokens % 3 == 1 ? KvCacheKind::Dynamic
                                                        : KvCacheKind::Paged;
            const GenerateReport report = rig.run(requests);
            for (std::size_t i = 0; i < requests.size(); ++i) {
                EXPECT_EQ(report.results[i].ids, plain.results[i].ids) << tokens << " tokens, request " << i;
                EXPECT_EQ(report.results[i].finish, plain.results[i].finish);
            }
            EXPECT_EQ(report.decodedTokens, plain.decodedTokens);
            if (drafter == &knowing) {
                EXPECT_GT(report.speculation.accepted, 0);
                EXPECT_LT(report.speculation.accepted, report.speculation.drafted);
                EXPECT_LT(report.decodeSteps, plain.decodeSteps);
                EXPECT_EQ(report.speculation.rows + report.speculation.accepted, report.decodedTokens);
            }
        }
    }
}

TEST_P(SpeculationOfFamily, BatchesGiveThoseAnswersToo) {
    SpeculationRig rig(std::string("synthetic:tiny-") + GetParam());
    std::vector<GenerateRequest> requests = requestsToDraft();
    std::vector<GenerateResult> wanted;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i].samplingNumber = static_cast<std::uint32_t>(i);
    }
    wanted = rig.run(requests).results;
    test::KnowingDrafter drafter(wanted); // it goes on beyond a stop token
    requests[0].stopTokens = {wanted[0].ids[9]};
    const auto cut = std::ranges::find(wanted[0].ids, wanted[0].ids[9]) - wanted[0].ids.begin() + 1;
    wanted[0].ids.resize(static_cast<std::size_t>(cut));
    wanted[0].finish = FinishReason::StopToken;
    rig.batch.speculation = {&drafter, 4};
    rig.serve(requests, wanted, "plainly");
    EXPECT_GT(rig.speculated.accepted, 0);
    EXPECT_LT(rig.speculated.accepted, rig.speculated.drafted);
    EXPECT_EQ(rig.counts.recomputedTokens, 0) << "a rejected token is no lost one";
    rig.batch.scheduler.tokenBudget = 7;
    rig.serve(requests, wanted, "with few tokens in a step");
    rig.batch.scheduler.tokenBudget = 64;
    rig.batch.cache.sharePrefixes = true;
    rig.serve(requests, wanted, "with shared prefixes");
    rig.batch.cache.sharePrefixes = false;
    rig.batch.cache.poolPages = 24;
    for (const Preemption preemption : {Preemption::Recompute, Preemption::Swap, Preemption::Off}) {
        rig.batch.scheduler.preemption = preemption;
        rig.batch.scheduler.swapPages = 100;
        rig.serve(requests, wanted, "with few pages");
    }
}

INSTANTIATE_TEST_SUITE_P(Every, SpeculationOfFamily,
                         ::testing::Values("gpt-oss", "llama", "mistral", "qwen3-moe", "gemma2"),
                         [](const auto& family) {
                             std::string name = family.param;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

TEST(Speculation, ADraftModelThatIsTheModelItselfIsAlwaysRight) {
    for (const char* const name : {"synthetic:tiny-llama", "synthetic:tiny-gpt-oss"}) {
        SpeculationRig rig(name);
        const std::vector<GenerateRequest> requests = requestsToDraft();
        const GenerateReport plain = rig.run(requests);
        Model twin(*rig.context, rig.source, ModelOptions{}, nullptr);
        ModelDrafterOptions options;
        options.cache.dtype = kernels::DType::F32;
        options.draftTokens = 4;
        options.prefillChunk = 16;
        ModelDrafter drafter(twin, options);
        rig.generate.speculation = {&drafter, 4};
        const GenerateReport report = rig.run(requests);
        for (std::size_t i = 0; i < requests.size(); ++i) {
            EXPECT_EQ(report.results[i].ids, plain.results[i].ids) << name << ", request " << i;
        }
        EXPECT_GT(report.speculation.drafted, 50);
        EXPECT_EQ(report.speculation.accepted, report.speculation.drafted) << "sampled with the same random numbers";
        EXPECT_EQ(drafter.cache().tokens(), 0) << "what ended is forgotten";
    }
}

TEST(Speculation, ADraftModelOfOtherWeightsChangesNothingButTheSteps) {
    SpeculationRig rig("synthetic:tiny-gpt-oss");
    const std::vector<GenerateRequest> requests = requestsToDraft();
    const GenerateReport plain = rig.run(requests);
    ModelOptions others;
    others.seed = 3;
    Model other(*rig.context, rig.source, others, nullptr);
    ModelDrafterOptions options;
    options.cache.dtype = kernels::DType::F32;
    options.draftTokens = 6;
    ModelDrafter drafter(other, options);
    rig.generate.speculation = {&drafter, 6};
    const GenerateReport report = rig.run(requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(report.results[i].ids, plain.results[i].ids) << "request " << i;
    }
    EXPECT_LT(report.speculation.accepted, report.speculation.drafted);
}

TEST(Speculation, ADraftModelWithoutRoomDraftsNothing) {
    SpeculationRig rig("synthetic:tiny-llama");
    const std::vector<GenerateRequest> requests = {askFor(30, 12, 1), askFor(5, 12, 3)};
    const std::vector<GenerateResult> wanted = rig.run(requests).results;
    Model twin(*rig.context, rig.source, ModelOptions{}, nullptr);
    ModelDrafterOptions options;
    options.cache.dtype = kernels::DType::F32;
    options.cache.kind = KvCacheKind::Paged;
    options.cache.pageTokens = 4;
    options.cache.poolPages = 5; // 20 tokens: only the second request
    options.cache.poolSequences = 2;
    options.draftTokens = 3;
    ModelDrafter drafter(twin, options);
    rig.batch.speculation = {&drafter, 3};
    rig.serve(requests, wanted, "with a small pool");
    EXPECT_GT(rig.speculated.accepted, 0);
    EXPECT_EQ(rig.speculated.accepted, rig.speculated.drafted);
    EXPECT_LT(rig.speculated.drafted, 12);
}

TEST(Speculation, PlansAcceptWhatTheyAssume) {
    SpeculationRig rig("synthetic:tiny-llama", kernels::Backend::Meta);
    rig.generate.jumpEqualSteps = true;
    Model twin(*rig.context, rig.source, ModelOptions{}, nullptr);
    ModelDrafterOptions options;
    options.draftTokens = 4;
    ModelDrafter drafter(twin, options);
    rig.generate.speculation = {&drafter, 4, 0.5};
    const GenerateReport report = rig.run({askFor(10, 200, 1)});
    EXPECT_EQ(report.results[0].ids.size(), 200U);
    EXPECT_EQ(report.decodedTokens, 199);
    EXPECT_GT(report.speculation.accepted, 0);
    EXPECT_LT(report.speculation.tokensPerStep(), 1.3) << "a draft model as large as the model does not pay";
    PlannedDrafter planned;
    rig.generate.speculation.drafter = &planned;
    const GenerateReport lookedUp = rig.run({askFor(10, 200, 1)});
    EXPECT_EQ(lookedUp.results[0].ids.size(), 200U);
    const SpeculationCounts& counts = lookedUp.speculation;
    EXPECT_NEAR(static_cast<double>(counts.accepted) / static_cast<double>(counts.checkSteps),
                0.5 + 0.25 + 0.125 + 0.0625, 0.05);
    EXPECT_EQ(counts.plainSteps, counts.checkSteps / 16) << "some steps go without, to compare";
    EXPECT_GT(counts.gain(), 1.5);
    rig.generate.speculation.assumedAcceptance = 0;
    EXPECT_EQ(rig.run({askFor(10, 50, 1)}).decodeSteps, 49);
}

/// Drafts a token that is nearly always wrong.
class UselessDrafter final : public Drafter {
public:
    void draft(std::span<const DraftJob> jobs) override {
        for (const DraftJob& job : jobs) {
            for (std::int64_t i = 0; i < job.tokens; ++i) {
                job.request->addToDraft(199);
            }
        }
    }
    void forget(std::int32_t) override {}
    void forgetAll() override {}
};

TEST(Speculation, UselessDraftsBecomeRareAndChangeNothing) {
    SpeculationRig rig("synthetic:tiny-llama");
    std::vector<GenerateRequest> requests = {askFor(9, 150, 1), askFor(5, 150, 4)};
    requests[1].sampling.temperature = 1.1F;
    requests[1].samplingNumber = 1;
    const GenerateReport plain = rig.run(requests);
    UselessDrafter drafter;
    rig.generate.speculation = {&drafter, 5};
    rig.batch.speculation = {&drafter, 5};
    const GenerateReport report = rig.run(requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(report.results[i].ids, plain.results[i].ids) << "request " << i;
    }
    EXPECT_GT(report.speculation.drafted, 0);
    EXPECT_LT(report.speculation.drafted, 100) << "of 298 tokens";
    EXPECT_GT(report.speculation.plainSteps, 3 * report.speculation.checkSteps);
    EXPECT_EQ(report.speculation.plainSteps + report.speculation.checkSteps, report.decodeSteps);
    rig.serve(requests, plain.results, "in a batch");
    EXPECT_LT(rig.speculated.drafted, 100);
}

/// With the traits of a GPU steps are filled up to a few sizes.
TEST(Speculation, FilledStepsLeaveNothingBehind) {
    for (const char* const name : {"synthetic:tiny-llama", "synthetic:tiny-gpt-oss"}) {
        const kernels::DeviceTraits gpu = test::testTraits();
        ASSERT_TRUE(gpu.features.fewStepSizes);
        SpeculationRig rig(name, kernels::Backend::Cpu, nullptr, &gpu);
        std::vector<GenerateRequest> requests = requestsToDraft();
        for (std::size_t i = 0; i < requests.size(); ++i) {
            requests[i].samplingNumber = static_cast<std::uint32_t>(i);
        }
        const GenerateReport plain = rig.run(requests);
        test::KnowingDrafter knowing(plain.results);
        NgramDrafter ngram({1, 3});
        for (std::int64_t tokens = 1; tokens <= 8; ++tokens) {
            for (Drafter* const drafter : {static_cast<Drafter*>(&knowing), static_cast<Drafter*>(&ngram)}) {
                rig.generate.speculation = {drafter, tokens};
                const GenerateReport report = rig.run(requests);
                for (std::size_t i = 0; i < requests.size(); ++i) {
                    EXPECT_EQ(report.results[i].ids, plain.results[i].ids) << tokens << " tokens, request " << i;
                }
                EXPECT_EQ(report.speculation.rows + report.speculation.accepted, report.decodedTokens);
                rig.batch.speculation = {drafter, tokens};
                rig.serve(requests, plain.results, "in a batch");
            }
        }
    }
}

/// How many numbers of rows of logits the steps of a plan have.
std::size_t sizesOfSteps(bool few) {
    test::RecordingSink sink;
    kernels::DeviceTraits gpu = test::testTraits();
    gpu.features.fewStepSizes = few;
    SpeculationRig rig("synthetic:tiny-llama", kernels::Backend::Meta, &sink, &gpu);
    PlannedDrafter drafter;
    rig.batch.scheduler.slots = 8;
    rig.batch.speculation = {&drafter, 6, 0.4};
    BatchEngine engine(*rig.model, nullptr, rig.batch);
    std::vector<ArrivingRequest> arriving;
    for (std::int32_t i = 0; i < 6; ++i) {
        arriving.push_back({askFor(5, 60 + 13 * i, i), 0, {}});
    }
    replayRequests(engine, *rig.context, std::move(arriving));
    EXPECT_GT(engine.speculation().checkSteps, 20);
    std::set<std::string> sizes; // "(rows, vocabulary)"
    for (const std::string& line : sink.lines()) {
        if (line.find(" logits ") != std::string::npos) {
            sizes.insert(line.substr(line.find('(')));
        }
    }
    return sizes.size();
}

TEST(Speculation, StepsThatCheckDraftsHaveFewSizesOnAGpu) {
    const std::size_t few = sizesOfSteps(true);
    EXPECT_GT(few, 1U);
    EXPECT_LT(few * 4, sizesOfSteps(false) * 3);
}

TEST(Speculation, StepsReportTheirDraftsToTheTrace) {
    test::RecordingSink sink;
    SpeculationRig rig("synthetic:tiny-llama", kernels::Backend::Cpu, &sink);
    const std::vector<GenerateRequest> requests = {askFor(8, 20, 1)};
    test::KnowingDrafter drafter(rig.run(requests).results);
    rig.generate.speculation = {&drafter, 4};
    const GenerateReport report = rig.run(requests);
    const auto sum = [&](std::string_view counter) {
        double out = 0;
        for (const auto& [name, value] : sink.counters()) {
            out += name == counter ? value : 0;
        }
        return out;
    };
    EXPECT_GT(report.speculation.drafted, 0);
    EXPECT_EQ(sum("drafted_tokens"), static_cast<double>(report.speculation.drafted));
    EXPECT_EQ(sum("accepted_tokens"), static_cast<double>(report.speculation.accepted));
}

TEST(Speculation, WhatCannotBeLosslessIsRefused) {
    SpeculationRig rig(test::fixture("llama-dynamic-rope"));
    NgramDrafter drafter({2, 4});
    rig.generate.speculation = {&drafter, 4};
    EXPECT_THROW(rig.run({askFor(4, 4, 1)}), base::Unsupported);
    rig.batch.speculation = {&drafter, 4};
    EXPECT_THROW(BatchEngine(*rig.model, nullptr, rig.batch), base::Unsupported);
    SpeculationRig plain("synthetic:tiny-llama");
    plain.batch.speculation = {&drafter, 4};
    plain.batch.scheduler.mode = BatchMode::Static;
    EXPECT_THROW(BatchEngine(*plain.model, nullptr, plain.batch), base::Unsupported);
}

} // namespace
} // namespace vitrine::engine
