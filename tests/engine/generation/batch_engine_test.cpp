// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mutex>
#include <random>

#include "base/error.h"
#include "engine/generation/batch_replay.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/repetitions.h"

namespace vitrine::engine {
namespace {

struct Served {
    std::vector<BatchResult> results;
    BatchCounts counts;
};

class BatchRig {
public:
    explicit BatchRig(const std::string& name, kernels::Backend backend = kernels::Backend::Cpu,
                      base::TraceSink* sink = nullptr, const ModelOptions& modelOptions = {})
        : context(test::makeContext(backend, sink)), source(openModel(name)),
          model(std::make_unique<Model>(*context, source, modelOptions, nullptr)) {
        options.cache.dtype = kernels::DType::F32;
        options.scheduler.slots = 3;
        options.scheduler.tokenBudget = 64;
        options.cache.pageTokens = 4;
    }

    Served serve(const std::vector<GenerateRequest>& requests) {
        BatchEngine engine(*model, nullptr, options);
        kernels::Memory& memory = context->memory();
        const auto others = left > 0 ? memory.reserveArena(memory.budget() - left, "others") : nullptr;
        std::vector<ArrivingRequest> arriving;
        for (const GenerateRequest& request : requests) {
            arriving.push_back({request, 0, {}});
        }
        replayRequests(engine, *context, std::move(arriving));
        const PageBook& book = *engine.cache().book();
        EXPECT_EQ(book.counts().used,
                  engine.scheduler().options().otherPages * static_cast<std::int64_t>(book.groups().size()));
        Served served;
        for (std::size_t i = 0; i < requests.size(); ++i) {
            served.results.push_back(engine.result(static_cast<std::int32_t>(i)));
        }
        served.counts = engine.counts();
        return served;
    }

    std::vector<GenerateResult> alone(const std::vector<GenerateRequest>& requests) {
        std::vector<GenerateResult> out;
        GenerateOptions generate;
        generate.cache.dtype = options.cache.dtype;
        for (const GenerateRequest& request : requests) {
            GenerateReport report;
            Generator(*model, nullptr, generate).run({request}, report, {});
            out.push_back(report.results[0]);
        }
        return out;
    }

    std::unique_ptr<kernels::Context> context;
    ModelSource source;
    std::unique_ptr<Model> model;
    BatchOptions options;
    std::uint64_t left = 0; ///< bytes of all memory, when others take the rest once the engine is made; 0: nobody does
};

GenerateRequest request(std::size_t length, std::int64_t newTokens, std::int32_t salt, std::int64_t vocab) {
    GenerateRequest out;
    for (std::size_t i = 0; i < length; ++i) {
        out.prompt.push_back(static_cast<std::int32_t>((31 * i + static_cast<std::size_t>(salt) * 7 + 1) %
                                                       static_cast<std::size_t>(vocab)));
    }
    out.maxNewTokens = newTokens;
    return out;
}

/// The types of activations and of the cache.
struct Types {
    kernels::DType compute, cache;
};

class BatchOfFixture : public ::testing::TestWithParam<std::tuple<std::string, Types>> {};

TEST_P(BatchOfFixture, AnswersAreThoseOfOneByOneUnderEveryModeCacheAndPolicy) {
    const auto& [name, types] = GetParam();
    ModelOptions modelOptions;
    modelOptions.computeDType = types.compute;
    BatchRig rig(test::fixture(name), kernels::Backend::Cpu, nullptr, modelOptions);
    rig.options.cache.dtype = types.cache;
    const std::int64_t vocab = rig.source.config.vocab;
    std::vector<GenerateRequest> requests = {request(3, 12, 1, vocab),  request(30, 7, 5, vocab),
                                             request(17, 20, 9, vocab), request(1, 1, 2, vocab),
                                             request(30, 9, 5, vocab),  request(9, 16, 3, vocab)};
    const auto expected = rig.alone(requests);
    // One ends by a stop token in the middle.
    auto wanted = expected;
    std::vector<std::int32_t>& cut = wanted[2].ids;
    requests[2].stopTokens = {cut[8]};
    cut.resize(static_cast<std::size_t>(std::find(cut.begin(), cut.end(), requests[2].stopTokens[0]) - cut.begin()) +
               1);
    wanted[2].logprobs.resize(cut.size());
    const auto expectSame = [&](const std::string& what) {
        const Served served = rig.serve(requests);
        for (std::size_t i = 0; i < requests.size(); ++i) {
            EXPECT_EQ(served.results[i].result.ids, wanted[i].ids) << what << ", request " << i;
            EXPECT_EQ(served.results[i].result.logprobs, wanted[i].logprobs) << what << ", request " << i;
            EXPECT_GE(served.results[i].end, served.results[i].firstToken) << what;
        }
        return served.counts;
    };
    SchedulerOptions& scheduler = rig.options.scheduler;
    scheduler.mode = BatchMode::Static;
    EXPECT_GT(expectSame("static").paddingTokens, 0);
    scheduler.mode = BatchMode::Continuous;
    for (const BatchOrder order : {BatchOrder::LongestFirst, BatchOrder::Fifo, BatchOrder::PrefillFirst}) {
        scheduler.order = order;
        expectSame("continuous");
        scheduler.tokenBudget = 5;
        expectSame("with a small budget");
        scheduler.tokenBudget = 64;
    }
    const auto layers = rig.source.config.layers;
    const bool grows =
        std::any_of(layers.begin(), layers.end(), [](const LayerConfig& layer) { return layer.window == 0; });
    rig.options.cache.sharePrefixes = true;
    for (const bool rings : {true, false}) {
        rig.options.cache.slidingSaves = rings;
        const bool shares = !rig.source.config.rope.followsLength() && (grows || !rings);
        const Served shared = rig.serve(requests);
        EXPECT_EQ(shared.results[4].sharedTokens, shares ? 28 : 0) << "request 4 begins like request 1";
        expectSame("with shared prefixes");
        scheduler.tokenBudget = 5;
        expectSame("with shared prefixes and a small budget");
        scheduler.tokenBudget = 64;
    }
    rig.options.cache.sharePrefixes = false;
    rig.options.cache.slidingSaves = true;
    // A pool of two requests for three slots.
    rig.options.cache.poolPages = 16;
    scheduler.gatherSteps = 2;
    for (const Preemption preemption : {Preemption::Off, Preemption::Recompute, Preemption::Swap}) {
        scheduler.preemption = preemption;
        scheduler.swapPages = 1000;
        const BatchCounts counts = expectSame(fmt::format("preemption {}", static_cast<int>(preemption)));
        EXPECT_EQ(counts.preemptions > 0, grows && preemption != Preemption::Off);
        EXPECT_EQ(counts.swaps > 0, grows && preemption == Preemption::Swap);
    }
}

INSTANTIATE_TEST_SUITE_P(Every, BatchOfFixture,
                         ::testing::Combine(::testing::ValuesIn(test::modelFixtures()),
                                            ::testing::Values(Types{kernels::DType::F32, kernels::DType::F32},
                                                              Types{kernels::DType::F32, kernels::DType::BF16},
                                                              Types{kernels::DType::F32, kernels::DType::F8E4M3},
                                                              Types{kernels::DType::F32, kernels::DType::I8},
                                                              Types{kernels::DType::BF16, kernels::DType::BF16},
                                                              Types{kernels::DType::BF16, kernels::DType::F8E4M3},
                                                              Types{kernels::DType::BF16, kernels::DType::I8})),
                         [](const auto& item) {
                             const Types types = std::get<1>(item.param);
                             std::string name = std::get<0>(item.param);
                             for (const kernels::DType type : {types.compute, types.cache}) {
                                 name += type == kernels::DType::F32 ? "" : "_" + std::string(kernels::dtypeName(type));
                             }
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

TEST(BatchEngine, SamplingDoesNotDependOnTheSchedule) {
    BatchRig rig("synthetic:tiny-gpt-oss");
    std::vector<GenerateRequest> requests;
    for (std::int32_t i = 0; i < 7; ++i) {
        GenerateRequest item = request(static_cast<std::size_t>(3 + 5 * i), 10, i, 300);
        item.sampling.temperature = 0.8F;
        item.sampling.topP = 0.9F;
        item.sampling.repetitionPenalty = i % 2 == 0 ? 1.2F : 1;
        item.sampling.seed = static_cast<std::uint64_t>(i);
        requests.push_back(item);
    }
    const Served first = rig.serve(requests);
    rig.options.scheduler.slots = 7;
    rig.options.scheduler.tokenBudget = 9;
    rig.options.scheduler.order = BatchOrder::PrefillFirst;
    const Served second = rig.serve(requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(first.results[i].result.ids, second.results[i].result.ids);
    }
}

TEST(BatchEngine, MetaKeepsTheOrderOfTimesAndItsSlots) {
    test::RecordingSink sink;
    BatchRig rig("synthetic:tiny-gpt-oss", kernels::Backend::Meta, &sink);
    std::vector<GenerateRequest> requests;
    for (std::int32_t i = 0; i < 20; ++i) {
        requests.push_back(request(static_cast<std::size_t>(3 + i), 5 + i, i, 300));
    }
    const Served served = rig.serve(requests);
    std::int64_t tokens = 0;
    for (const BatchResult& result : served.results) {
        EXPECT_LE(result.arrival, result.admitted);
        EXPECT_LT(result.admitted, result.firstToken);
        EXPECT_LE(result.firstToken, result.end);
        tokens += static_cast<std::int64_t>(result.result.ids.size());
    }
    EXPECT_EQ(tokens, served.counts.generated);
    EXPECT_EQ(tokens, 20 * 5 + 190);
}

/// Keeps the steps of a batch and the failures.
class StepSink final : public base::TraceSink {
public:
    base::StringId intern(std::string_view) override { return {1}; }
    void record(const base::TraceEvent& event) override {
        const std::lock_guard lock(mutex_);
        if (const auto* step = std::get_if<base::BatchStepEvent>(&event)) {
            steps.push_back(*step);
        }
        failures += std::holds_alternative<base::OutOfMemoryEvent>(event) ? 1 : 0;
    }
    std::vector<base::BatchStepEvent> steps;
    int failures = 0;

private:
    std::mutex mutex_;
};

std::unique_ptr<kernels::Context> contextWith(kernels::Backend backend, const kernels::MemoryOptions& memory,
                                              base::TraceSink* sink) {
    kernels::ContextOptions options;
    options.backend = backend;
    options.threads = 2;
    options.memory = memory;
    options.sink = sink;
    if (backend == kernels::Backend::Meta) {
        options.traits = test::testTraits();
    }
    return std::make_unique<kernels::Context>(options);
}

TEST(BatchEngine, OnMetaPagesComeBackBesideTheSteps) {
    StepSink sink;
    BatchRig rig("synthetic:tiny-gpt-oss", kernels::Backend::Meta, &sink);
    rig.model.reset();
    kernels::ContextOptions unmeasured;
    unmeasured.backend = kernels::Backend::Meta;
    unmeasured.sink = &sink;
    unmeasured.traits = test::testTraits();
    unmeasured.traits.rates = nullptr; // first steps of graphs stand between the others too
    rig.context = std::make_unique<kernels::Context>(unmeasured);
    rig.model = std::make_unique<Model>(*rig.context, rig.source, ModelOptions{}, nullptr);
    rig.options.scheduler.preemption = Preemption::Swap;
    rig.options.scheduler.swapPages = 1000;
    rig.options.cache.poolPages = 16;
    std::vector<GenerateRequest> requests;
    for (std::int32_t i = 0; i < 12; ++i) {
        requests.push_back(request(20, 24, i, 300));
    }
    const BatchCounts counts = rig.serve(requests).counts;
    ASSERT_GT(counts.swaps, 3);
    double waited = 0;
    for (std::size_t i = 1; i < sink.steps.size(); ++i) {
        waited += static_cast<double>(sink.steps[i].begin - sink.steps[i - 1].end) * 1e-9;
    }
    const double oneWay = static_cast<double>(counts.swapBytes) / 2;
    EXPECT_LT(waited, 0.3 * oneWay / rig.context->traits().hostToDeviceBandwidth)
        << "only the copies inside the device stand between the steps";
}

TEST(BatchEngine, AStepThatDoesNotFitIsCutAndAnswersStayTheSame) {
    std::vector<GenerateRequest> requests = {request(200, 6, 1, 300), request(90, 9, 5, 300), request(3, 12, 9, 300),
                                             request(260, 4, 2, 300)};
    const auto reservedWith = [&](std::int64_t tokenBudget) {
        BatchRig rig("synthetic:tiny-gpt-oss");
        rig.options.cache.poolPages = 200;
        rig.options.scheduler.tokenBudget = tokenBudget;
        rig.serve(requests);
        return rig.context->memory().statistics().peakReserved;
    };
    const std::uint64_t small = reservedWith(16), large = reservedWith(512);
    ASSERT_LT(small, large);
    StepSink sink; // outlives the rig, which reports its last buffers to it
    BatchRig rig("synthetic:tiny-gpt-oss");
    const auto expected = rig.alone(requests);
    rig.model.reset();
    rig.context = contextWith(kernels::Backend::Cpu, {}, &sink);
    rig.model = std::make_unique<Model>(*rig.context, rig.source, ModelOptions{}, nullptr);
    rig.left = (small + large) / 2;
    rig.options.cache.poolPages = 200;
    rig.options.scheduler.tokenBudget = 512;
    EXPECT_THROW(rig.serve(requests), base::OutOfMemory) << "nobody said that it should endure it";
    rig.options.survivesOutOfMemory = true;
    sink.steps.clear();
    sink.failures = 0;
    const Served served = rig.serve(requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(served.results[i].result.ids, expected[i].ids) << i;
        EXPECT_EQ(served.results[i].result.logprobs, expected[i].logprobs) << i;
    }
    EXPECT_GT(served.counts.outOfMemorySteps, 0);
    EXPECT_EQ(served.counts.outOfMemorySteps, sink.failures) << "the session has each of them";
    EXPECT_EQ(served.counts.failedRequests, 0);
    for (std::size_t i = 0; i < sink.steps.size(); ++i) {
        EXPECT_EQ(sink.steps[i].index, static_cast<std::int64_t>(i)) << "steps are counted without gaps";
    }
}

TEST(BatchEngine, WhoDoesNotFitAloneEndsAndTheOthersGoOn) {
    StepSink sink; // outlives the rig
    BatchRig rig("synthetic:tiny-llama");
    rig.options.cache.poolPages = 40;
    std::uint64_t held = 0;
    {
        const BatchEngine engine(*rig.model, nullptr, rig.options);
        held = rig.context->memory().statistics().reserved;
    }
    rig.model.reset();
    rig.left = held + 512; // no room for any step
    rig.context = contextWith(kernels::Backend::Cpu, {}, &sink);
    rig.model = std::make_unique<Model>(*rig.context, rig.source, ModelOptions{}, nullptr);
    rig.options.survivesOutOfMemory = true;
    std::vector<GenerateRequest> requests;
    for (std::int32_t i = 0; i < 7; ++i) {
        requests.push_back(request(static_cast<std::size_t>(1 + 9 * i), 4, i, 256));
    }
    const Served served = rig.serve(requests); // looks that no page is left in use
    EXPECT_EQ(served.counts.failedRequests, 7);
    EXPECT_EQ(served.counts.steps, 0);
    for (const BatchResult& result : served.results) {
        EXPECT_EQ(result.result.finish, FinishReason::OutOfMemory);
        EXPECT_NE(result.failure.find("out of memory"), std::string::npos) << result.failure;
        EXPECT_TRUE(result.result.ids.empty());
    }
}

TEST(BatchEngine, WithoutHostMemoryPreemptedRequestsAreComputedAgain) {
    BatchRig rig("synthetic:tiny-llama");
    kernels::MemoryOptions memory;
    memory.hostBudget = std::uint64_t{16} << 20;
    rig.model.reset();
    rig.source = openModel("synthetic:gpt-oss-20b");
    rig.context = contextWith(kernels::Backend::Meta, memory, nullptr);
    rig.model = std::make_unique<Model>(*rig.context, rig.source, ModelOptions{}, nullptr);
    rig.options = {};
    rig.options.scheduler.slots = 8;
    rig.options.scheduler.preemption = Preemption::Swap;
    rig.options.scheduler.swapPages = 1000;
    rig.options.cache.poolPages = 60;
    std::vector<GenerateRequest> requests;
    for (std::int32_t i = 0; i < 16; ++i) {
        requests.push_back(request(400, 300, i, 300));
    }
    const Served served = rig.serve(requests);
    EXPECT_GT(served.counts.lostSwaps, 0);
    EXPECT_GT(served.counts.swaps, 0);
    for (const BatchResult& result : served.results) {
        EXPECT_EQ(result.result.ids.size(), 300U);
    }
}

TEST(BatchEngine, RowsThatFillAStepUpKeepToItsBudget) {
    for (const BatchMode mode : {BatchMode::Continuous, BatchMode::Static}) {
        StepSink sink;
        BatchRig rig("synthetic:tiny-gpt-oss", kernels::Backend::Meta, &sink); // with the traits of a GPU
        rig.options.scheduler.mode = mode;
        rig.options.scheduler.slots = 8;
        rig.options.scheduler.tokenBudget = 7;
        std::vector<GenerateRequest> requests;
        for (std::int32_t i = 0; i < 8; ++i) {
            requests.push_back(request(4, 20, i, 300));
        }
        rig.serve(requests);
        std::int32_t filled = 0;
        for (const base::BatchStepEvent& step : sink.steps) {
            EXPECT_LE(step.decodeRows + step.prefillTokens + step.paddingTokens, 7) << "step " << step.index;
            filled += step.decodeRows + step.paddingRows == 7 ? 1 : 0;
        }
        EXPECT_GT(filled, 5);
    }
}

TEST(BatchEngine, WhoComesBackSharesWithItselfAndCountsOnce) {
    BatchRig rig("synthetic:tiny-llama");
    rig.options.cache.sharePrefixes = true;
    rig.options.cache.poolPages = 14;
    std::vector<GenerateRequest> requests;
    for (std::int32_t i = 0; i < 6; ++i) {
        requests.push_back(request(12, 30, 1, 300)); // all alike
    }
    const Served served = rig.serve(requests);
    EXPECT_GT(served.counts.preemptions, 0);
    std::int64_t sharing = 0;
    for (const BatchResult& result : served.results) {
        sharing += result.sharedTokens > 0 ? 1 : 0;
    }
    EXPECT_GT(sharing, 0);
    EXPECT_LE(served.counts.sharingRequests, 6);
    EXPECT_GE(served.counts.sharingRequests, sharing);
}

TEST(BatchEngine, CallbacksMayCancelAndTakeResults) {
    BatchRig rig("synthetic:tiny-llama");
    BatchEngine engine(*rig.model, nullptr, rig.options);
    std::vector<BatchResult> taken;
    engine.onToken([&](const GeneratedToken& token) {
        if (token.request == 1 && token.index == 2) {
            engine.cancel(1);
        }
    });
    engine.onEnd([&](std::int32_t number) { taken.push_back(engine.takeResult(number)); });
    for (std::int32_t i = 0; i < 5; ++i) {
        engine.add(request(5, 8, i, 300), 0);
    }
    engine.cancel(4);
    engine.cancel(4);
    EXPECT_EQ(engine.refuse("no", 0), 5);
    while (engine.step()) {
    }
    EXPECT_EQ(engine.result(5).refusal, "no");
    ASSERT_EQ(taken.size(), 5U);
    const auto cancelled = std::count_if(taken.begin(), taken.end(), [](const BatchResult& result) {
        return result.result.finish == FinishReason::Cancelled;
    });
    EXPECT_EQ(cancelled, 2);
    EXPECT_EQ(engine.scheduler().remembered(), 1U) << "of the one whose result was not taken";
    EXPECT_EQ(engine.cache().book()->counts().used, 0);
}

TEST(BatchEngine, ASamplingNumberMakesAnAnswerTheSameWheneverItComes) {
    BatchRig rig("synthetic:tiny-llama");
    std::vector<GenerateRequest> requests(4, request(5, 12, 0, 300));
    for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i].sampling.temperature = 1;
        requests[i].sampling.seed = 7;
        requests[i].samplingNumber = i < 2 ? std::optional<std::uint32_t>(3) : std::nullopt;
    }
    const Served served = rig.serve(requests);
    EXPECT_EQ(served.results[0].result.ids, served.results[1].result.ids);
    EXPECT_NE(served.results[2].result.ids, served.results[0].result.ids);
    EXPECT_EQ(served.results[3].result.ids, served.results[0].result.ids) << "its own number is 3";
}

TEST(BatchEngine, ThePagesOfTheLastRequestAreReportedWhenNobodyFollows) {
    test::RecordingSink sink;
    BatchRig rig("synthetic:tiny-llama", kernels::Backend::Meta, &sink);
    BatchEngine engine(*rig.model, nullptr, rig.options);
    engine.add(request(5, 3, 0, 300), 0);
    while (engine.step()) {
    }
    const auto lastOf = [&](const std::string& name) {
        const auto found = std::find_if(sink.counters().rbegin(), sink.counters().rend(),
                                        [&](const auto& counter) { return counter.first == name; });
        return found == sink.counters().rend() ? -1.0 : found->second;
    };
    EXPECT_EQ(lastOf("kv_bytes.full"), static_cast<double>(engine.cache().bytes()));
    EXPECT_EQ(lastOf("kv_tokens"), static_cast<double>(engine.cache().tokens()));
    const std::size_t reported = sink.counters().size();
    EXPECT_FALSE(engine.step());
    EXPECT_EQ(sink.counters().size(), reported) << "once";
}

TEST(BatchEngine, ALaterRequestIsWaitedFor) {
    BatchRig rig("synthetic:tiny-llama", kernels::Backend::Meta);
    BatchEngine engine(*rig.model, nullptr, rig.options);
    replayRequests(engine, *rig.context,
                   {{request(5, 3, 0, 300), 0, {}}, {request(5, 3, 1, 300), 2.5, {}}, {{}, 3.0, "not asked for"}});
    EXPECT_GE(engine.result(1).admitted, engine.result(0).arrival + 2'500'000'000);
    EXPECT_LT(engine.result(1).end, engine.result(0).arrival + 3'000'000'000);
    EXPECT_EQ(engine.result(2).refusal, "not asked for");
}

TEST(BatchEngine, AnErrorLeavesWhatWasDone) {
    base::StopSource stop;
    kernels::ContextOptions options;
    options.threads = 1;
    options.stop = stop.get_token();
    kernels::Context context(options);
    const ModelSource source = openModel("synthetic:tiny-llama");
    Model model(context, source, ModelOptions{}, nullptr);
    BatchOptions batch;
    batch.cache.dtype = kernels::DType::F32;
    BatchEngine engine(model, nullptr, batch);
    engine.onToken([&](const GeneratedToken& token) {
        if (token.index == 3) {
            stop.request_stop();
        }
    });
    EXPECT_THROW(replayRequests(engine, context, {{request(5, 100, 0, 300), 0, {}}}), base::Cancelled);
    EXPECT_EQ(engine.result(0).result.ids.size(), 4U);
    EXPECT_EQ(engine.result(0).result.finish, FinishReason::Cancelled);
}

/// Hundreds of random traces over random pools and policies, with requests that are cancelled and stopped on their way:
/// what one gets depends on nothing but itself.
TEST(BatchEngine, RandomTracesOnMetaGiveEachRequestItsOwnTokens) {
    const std::array traits = {kernels::cpuTraits(1), test::testTraits()};
    BatchCounts all;
    std::uint64_t shared = 0;
    std::int32_t refused = 0;
    for (const kernels::DeviceTraits& device : traits) { // without and with buckets of rows
        const auto context = test::makeContext(kernels::Backend::Meta, nullptr, &device);
        const ModelSource source = openModel("synthetic:tiny-gpt-oss");
        Model model(*context, source, ModelOptions{}, nullptr);
        for (std::uint32_t seed = 0; seed < vitrine::test::repetitions(250U); ++seed) {
            std::mt19937 random(seed);
            const auto below = [&](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
            std::vector<GenerateRequest> requests;
            for (std::int32_t i = 2 + below(8); i > 0; --i) {
                requests.push_back(request(static_cast<std::size_t>(1 + below(24)), 1 + below(14), below(2), 300));
            }
            std::vector<std::vector<std::int32_t>> wanted;
            const auto serve = [&](const BatchOptions& options, bool disturb) {
                BatchEngine engine(model, nullptr, options);
                const auto count = static_cast<std::int32_t>(requests.size());
                engine.onToken([&](const GeneratedToken&) {
                    if (disturb && below(25) == 0) {
                        engine.cancel(below(static_cast<std::uint32_t>(count)));
                    }
                });
                std::vector<ArrivingRequest> arriving;
                double arrival = 0;
                for (const GenerateRequest& one : requests) {
                    arrival += disturb ? 1e-5 * below(20) : 0;
                    arriving.push_back({one, arrival, {}});
                }
                replayRequests(engine, *context, std::move(arriving));
                const PageBook& book = *engine.cache().book();
                EXPECT_EQ(book.counts().used,
                          engine.scheduler().options().otherPages * static_cast<std::int64_t>(book.groups().size()))
                    << "pages leaked";
                for (std::int32_t i = 0; i < count; ++i) {
                    const BatchResult& result = engine.result(i);
                    if (!disturb) {
                        wanted.push_back(result.result.ids);
                        continue;
                    }
                    const auto at = static_cast<std::size_t>(i);
                    const auto& ids = result.result.ids;
                    const bool finished = result.refusal.empty() && result.result.finish != FinishReason::Cancelled;
                    ASSERT_LE(ids.size(), wanted[at].size());
                    EXPECT_TRUE(std::equal(ids.begin(), ids.end(), wanted[at].begin())) << "request " << i;
                    EXPECT_TRUE(!finished || ids.size() == wanted[at].size() ||
                                result.result.finish == FinishReason::StopToken);
                    EXPECT_TRUE(result.firstToken < 0 ||
                                (result.admitted >= result.arrival && result.firstToken >= result.admitted))
                        << "request " << i << " answered and was never admitted";
                    refused += result.refusal.empty() ? 0 : 1;
                }
                const BatchCounts& counts = engine.counts();
                all.preemptions += counts.preemptions;
                all.swaps += counts.swaps;
                shared += book.sharedTokens();
                EXPECT_LE(counts.sharingRequests, count);
                EXPECT_GE(counts.sharedTokens, counts.sharingRequests);
            };
            BatchOptions options;
            options.cache.dtype = kernels::DType::F32;
            options.cache.pageTokens = 4;
            options.scheduler.slots = 1;
            serve(options, false);
            for (std::size_t i = 0; i < requests.size(); ++i) {
                if (below(4) == 0) {
                    requests[i].stopTokens = {
                        wanted[i][static_cast<std::size_t>(below(static_cast<std::uint32_t>(wanted[i].size())))]};
                }
            }
            SchedulerOptions& scheduler = options.scheduler;
            scheduler.mode = below(5) == 0 ? BatchMode::Static : BatchMode::Continuous;
            scheduler.slots = 1 + below(6);
            scheduler.tokenBudget = 3 + below(40);
            scheduler.order = static_cast<BatchOrder>(below(3));
            scheduler.preemption = static_cast<Preemption>(below(3));
            scheduler.swapPages = below(4) * 40;
            scheduler.gatherSteps = below(3);
            options.cache.sharePrefixes = below(2) == 0;
            options.cache.poolPages = 7 + below(12);
            serve(options, true);
            ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
        }
    }
    EXPECT_GT(all.preemptions, vitrine::test::moreThan(50));
    EXPECT_GT(all.swaps, vitrine::test::moreThan(10));
    EXPECT_GT(shared, vitrine::test::moreThan(100U));
    EXPECT_GT(refused, vitrine::test::moreThan(5));
}

/// The same steps, rows and allocations on Meta with a GPU's traits as on a CPU that rehearses them.
TEST(BatchEngine, MetaAllocatesWhatTheCpuDoesWithTheTraitsOfAGpu) {
    const kernels::DeviceTraits traits = test::testTraits();
    const auto linesOf = [&](kernels::Backend backend) {
        test::RecordingSink sink;
        const auto context = test::makeContext(backend, &sink, &traits);
        const ModelSource source = openModel("synthetic:tiny-gpt-oss");
        Model model(*context, source, {false, kernels::DType::BF16}, nullptr);
        BatchOptions options;
        options.scheduler.slots = 5;
        options.scheduler.tokenBudget = 40;
        BatchEngine engine(model, nullptr, options);
        std::vector<ArrivingRequest> requests;
        for (std::int32_t i = 0; i < 9; ++i) {
            requests.push_back({request(static_cast<std::size_t>(4 + 3 * i), 6, i, 300), 0, {}});
        }
        replayRequests(engine, *context, std::move(requests));
        return sink.lines();
    };
    EXPECT_EQ(linesOf(kernels::Backend::Cpu), linesOf(kernels::Backend::Meta));
}

/// Memory that others took: the pool ends where it is, requests make room for each other, and one that can never fit
/// ends.
TEST(BatchEngine, APoolWithoutMemoryStaysAsItIs) {
    BatchRig rig("synthetic:tiny-llama");
    rig.options.cache.pageTokens = 16;
    rig.options.cache.aheadBytes = 0;
    rig.options.cache.poolPages = 100'000;
    rig.options.scheduler.slots = 6;
    rig.options.survivesOutOfMemory = true;
    std::vector<GenerateRequest> requests;
    for (std::int32_t i = 0; i < 6; ++i) {
        requests.push_back(request(40, 200, i, rig.source.config.vocab));
    }
    const Served free = rig.serve(requests); // its steps have made their arena
    EXPECT_EQ(free.counts.preemptions, 0);
    const std::uint64_t left = free.counts.kvPageBytes / 2;
    rig.left = rig.context->memory().statistics().reserved + left;
    requests.push_back(request(40, 2000, 7, rig.source.config.vocab));
    for (const Preemption preemption : {Preemption::Recompute, Preemption::Off}) {
        rig.options.scheduler.preemption = preemption;
        const Served scarce = rig.serve(requests);
        for (std::size_t i = 0; i < 6; ++i) {
            EXPECT_EQ(scarce.results[i].result.ids, free.results[i].result.ids) << i;
        }
        EXPECT_EQ(scarce.results[6].result.finish, FinishReason::OutOfMemory);
        EXPECT_NE(scarce.results[6].failure.find("kv_cache.full: out of memory"), std::string::npos);
        EXPECT_GT(scarce.counts.preemptions, 0);
        EXPECT_LE(scarce.counts.kvPageBytes, left);
        EXPECT_GT(scarce.counts.kvPageBytes, left / 2);
    }
    rig.options.survivesOutOfMemory = false;
    EXPECT_THROW(rig.serve(requests), base::OutOfMemory) << "nobody said that it should endure it";
}

} // namespace
} // namespace vitrine::engine
