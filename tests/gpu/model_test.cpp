// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Whole models on the GPU: against the CPU, against Meta's allocations, and with memory that ends at every reservation.

#include "engine/model/model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "engine/generation/generator.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/gpu/context_testing.h"

namespace vitrine::gpu {
namespace {

using namespace engine;

constexpr int kModelTokens = 40;

std::vector<std::int32_t> someTokens(std::int64_t vocab, int salt) {
    std::vector<std::int32_t> ids(kModelTokens);
    for (int i = 0; i < kModelTokens; ++i) {
        ids[static_cast<std::size_t>(i)] = static_cast<std::int32_t>((i * 7 + salt * 13 + 3) % vocab);
    }
    return ids;
}

/// Logits of two sequences: a prefill in two pieces, then single tokens.
std::vector<float> logitsOf(kernels::Context& context, const ModelSource& source, kernels::DType dtype) {
    Model model(context, source, {false, dtype, 3}, nullptr);
    KvCacheOptions options;
    options.dtype = dtype;
    options.pageTokens = 8;
    KvCache cache(context, source.config, options);
    const std::array<int, 2> sequences{cache.addSequence(), cache.addSequence()};
    const std::array<std::vector<std::int32_t>, 2> ids{someTokens(source.config.vocab, 0),
                                                       someTokens(source.config.vocab, 1)};
    std::vector<float> all;
    const auto feed = [&](std::size_t begin, std::size_t count) {
        std::vector<float> piece(2 * count * static_cast<std::size_t>(source.config.vocab));
        StepBatch batch;
        batch.name = count == 1 ? "decode" : "prefill";
        batch.logits = StepLogits::All;
        batch.logitsOut = piece.data();
        for (std::size_t s = 0; s < 2; ++s) {
            batch.sequences.push_back({sequences[s], {ids[s].data() + begin, count}, true, kModelTokens});
        }
        model.step(batch, cache);
        all.insert(all.end(), piece.begin(), piece.end());
    };
    feed(0, 17);
    feed(17, 14);
    for (std::size_t i = 31; i < kModelTokens; ++i) {
        feed(i, 1);
    }
    return all;
}

double spread(const std::vector<float>& values) {
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    double sum = 0;
    for (const float value : values) {
        sum += (value - mean) * (value - mean);
    }
    return std::sqrt(sum / static_cast<double>(values.size()));
}

class GpuModel : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        if (const std::string why = kernels::whyNoCuda(); !why.empty()) {
            GTEST_SKIP() << why;
        }
    }
    /// The largest difference from the CPU's float32 logits, as a share of their spread.
    static double error(const std::vector<float>& expected, const std::vector<float>& found) {
        EXPECT_EQ(expected.size(), found.size());
        double largest = 0;
        for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
            const double difference = std::abs(static_cast<double>(found[i]) - expected[i]);
            largest = std::isfinite(difference) ? std::max(largest, difference) : 1e30;
        }
        return largest / spread(expected);
    }
    static std::vector<float> onCpu(const ModelSource& source, kernels::DType dtype) {
        const auto context = engine::test::makeContext(kernels::Backend::Cpu);
        return logitsOf(*context, source, dtype);
    }
};

TEST_P(GpuModel, LogitsInFloat32) {
    const ModelSource source = openModel(engine::test::fixture(GetParam()));
    const auto context = cudaContext();
    EXPECT_LT(error(onCpu(source, kernels::DType::F32), logitsOf(*context, source, kernels::DType::F32)), 2e-3);
}

// Rounding to bfloat16 may send a token to other experts, on every backend: the GPU's error is measured by the CPU's.
TEST_P(GpuModel, LogitsInBfloat16) {
    const ModelSource source = openModel(engine::test::fixture(GetParam()));
    const std::vector<float> exact = onCpu(source, kernels::DType::F32);
    const double usual = error(exact, onCpu(source, kernels::DType::BF16));
    const auto context = cudaContext();
    const double found = error(exact, logitsOf(*context, source, kernels::DType::BF16));
    EXPECT_LT(found, std::max(0.12, 2 * usual)) << "the CPU's is " << usual;
}

std::vector<std::string> generated(kernels::Context& context, const std::string& model,
                                   engine::test::RecordingSink& sink) {
    const ModelSource source = openModel(model);
    Model loaded(context, source, {false, kernels::DType::BF16, 7}, nullptr);
    GenerateOptions options;
    options.cache.dtype = kernels::DType::BF16;
    options.cache.pageTokens = 4;
    options.prefillChunk = 11;
    std::vector<GenerateRequest> requests(3);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        for (std::size_t t = 0; t < 5 + 6 * i; ++t) {
            requests[i].prompt.push_back(static_cast<std::int32_t>((7 * t + i) % 100));
        }
        requests[i].maxNewTokens = 9 + static_cast<std::int64_t>(3 * i);
    }
    GenerateReport report;
    Generator(loaded, nullptr, options).run(requests, report, {});
    return sink.lines();
}

GenerateReport greedy(kernels::Context& context, const std::string& model, std::int32_t stop,
                      kernels::DType cacheType = kernels::DType::F32) {
    Model loaded(context, openModel(model), {false, kernels::DType::F32, 7}, nullptr);
    GenerateOptions options;
    options.cache.dtype = cacheType;
    options.topLogprobs = kernels::isQuantizedKv(cacheType) ? 5 : 0;
    options.cache.pageTokens = 16;
    std::vector<GenerateRequest> requests(3);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        for (std::size_t t = 0; t < 5 + 6 * i; ++t) {
            requests[i].prompt.push_back(static_cast<std::int32_t>((7 * t + i) % 100));
        }
        requests[i].maxNewTokens = 20 + static_cast<std::int64_t>(7 * i);
        requests[i].stopTokens = {stop};
    }
    GenerateReport report;
    Generator(loaded, nullptr, options).run(requests, report, {});
    return report;
}

// Steps are launched before the ids of the last one are read: ends by length and by a stop token must not be missed.
TEST_P(GpuModel, GreedyIdsAsOnTheCpu) {
    const std::string model = engine::test::fixture(GetParam());
    const auto cpu = engine::test::makeContext(kernels::Backend::Cpu);
    const std::int32_t stop = greedy(*cpu, model, -1).results[2].ids[11];
    const GenerateReport expected = greedy(*cpu, model, stop);
    const auto gpu = cudaContext(nullptr, true);
    const GenerateReport found = greedy(*gpu, model, stop);
    EXPECT_EQ(found.decodedTokens, expected.decodedTokens);
    for (std::size_t i = 0; i < expected.results.size(); ++i) {
        EXPECT_EQ(found.results[i].ids, expected.results[i].ids) << "request " << i;
        EXPECT_EQ(found.results[i].finish, expected.results[i].finish) << "request " << i;
    }
}

// Sums in another order may round an element to another byte. Where answers first differ, the CPU finds both tokens
// about as good.
TEST_P(GpuModel, GreedyIdsOfQuantizedCaches) {
    const std::string model = engine::test::fixture(GetParam());
    for (const kernels::DType dtype : {kernels::DType::F8E4M3, kernels::DType::I8}) {
        const auto cpu = engine::test::makeContext(kernels::Backend::Cpu);
        const GenerateReport expected = greedy(*cpu, model, -1, dtype);
        const auto gpu = cudaContext(nullptr, true);
        const GenerateReport found = greedy(*gpu, model, -1, dtype);
        for (std::size_t i = 0; i < expected.results.size(); ++i) {
            const GenerateResult& cpuResult = expected.results[i];
            const std::vector<std::int32_t>& ids = found.results[i].ids;
            ASSERT_EQ(ids.size(), cpuResult.ids.size());
            const auto at = static_cast<std::size_t>(
                std::mismatch(ids.begin(), ids.end(), cpuResult.ids.begin()).first - ids.begin());
            if (at == ids.size()) {
                continue;
            }
            const auto& top = cpuResult.top[at];
            const auto chosen = std::find_if(top.begin(), top.end(), [&](const auto& t) { return t.first == ids[at]; });
            ASSERT_NE(chosen, top.end()) << kernels::dtypeName(dtype) << ", token " << at << " of request " << i;
            EXPECT_LT(cpuResult.logprobs[at] - chosen->second, 0.2)
                << kernels::dtypeName(dtype) << ", token " << at << " of request " << i;
        }
        EXPECT_EQ(found.kvBytes, expected.kvBytes);
    }
}

/// Whatever the pieces in which a prompt is read: a step's own keys are rounded before anything reads them.
TEST(GpuQuantizedCache, AnswersDoNotDependOnThePiecesOfAPrompt) {
    if (const std::string why = kernels::whyNoCuda(); !why.empty()) {
        GTEST_SKIP() << why;
    }
    const auto gpu = cudaContext(nullptr, true);
    Model model(*gpu, openModel("synthetic:tiny-gpt-oss"), {false, kernels::DType::F32, 7}, nullptr);
    GenerateRequest request;
    for (std::int32_t t = 0; t < 1700; ++t) {
        request.prompt.push_back((31 * t + t * t / 7) % 200);
    }
    request.maxNewTokens = 40;
    for (const kernels::DType dtype : {kernels::DType::F8E4M3, kernels::DType::I8}) {
        std::vector<std::vector<std::int32_t>> answers;
        for (const std::int64_t piece : {0, 64, 1000}) {
            GenerateOptions options;
            options.cache.dtype = dtype;
            options.prefillChunk = piece;
            GenerateReport report;
            Generator(model, nullptr, options).run({request}, report, {});
            answers.push_back(report.results[0].ids);
        }
        EXPECT_EQ(answers[1], answers[0]) << kernels::dtypeName(dtype) << ", pieces of 64";
        EXPECT_EQ(answers[2], answers[0]) << kernels::dtypeName(dtype) << ", pieces of 1,000";
    }
}

TEST_P(GpuModel, AllocatesAsMetaDoes) {
    engine::test::RecordingSink gpuSink;
    std::vector<std::string> gpu;
    kernels::DeviceTraits traits;
    {
        const auto context = cudaContext(&gpuSink);
        traits = context->traits();
        gpu = generated(*context, engine::test::fixture(GetParam()), gpuSink);
    }
    engine::test::RecordingSink metaSink;
    const auto context = engine::test::makeContext(kernels::Backend::Meta, &metaSink, &traits);
    const std::vector<std::string> meta = generated(*context, engine::test::fixture(GetParam()), metaSink);
    // Pinned buffers are host memory; the device's sequence is what must agree.
    const auto device = [](const std::vector<std::string>& lines) {
        std::vector<std::string> out;
        for (const std::string& line : lines) {
            if (line.starts_with("+") && line.find("load.pinned") == std::string::npos &&
                line.find("step.results") == std::string::npos) {
                out.push_back(line.substr(line.find(' ', 2)));
            }
        }
        return out;
    };
    EXPECT_EQ(device(gpu), device(meta));
}

TEST_P(GpuModel, MemoryThatEndsAnywhereIsAnError) {
    const std::string model = engine::test::fixture(GetParam());
    int refused = 0;
    for (std::uint64_t from = 1; from < 400; ++from) {
        kernels::ContextOptions options;
        options.backend = kernels::Backend::Cuda;
        options.memory.failFrom = from;
        kernels::Context context(options);
        engine::test::RecordingSink sink;
        try {
            generated(context, model, sink);
            break;
        } catch (const base::OutOfMemory&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 2);
    const auto context = cudaContext();
    engine::test::RecordingSink sink;
    EXPECT_NO_THROW(generated(*context, model, sink));
}

// Every request that a run sends to the driver: memory of the load, the prefill and the decode, pinned buffers,
// programs of kernels, the graphs of steps, and the workspace of a new context. The process and the device stay usable.
TEST(GpuDriverMemory, ThatEndsAnywhereIsAnError) {
    if (const std::string why = kernels::whyNoCuda(); !why.empty()) {
        GTEST_SKIP() << why;
    }
    const auto first = cudaContext(); // keeps the device's context alive, so that the others start at once
    std::set<std::string> refused;
    bool through = false;
    for (std::uint64_t from = 1; from < 200 && !through; ++from) {
        engine::test::RecordingSink sink;
        kernels::ContextOptions options;
        options.backend = kernels::Backend::Cuda;
        options.cuda.failFrom = from;
        try {
            kernels::Context context(options);
            generated(context, engine::test::fixture("gpt-oss-mxfp4"), sink);
            through = true;
        } catch (const base::OutOfMemory& error) {
            refused.insert(error.details().what);
        }
    }
    EXPECT_TRUE(through);
    for (const char* what :
         {"workspace", "weights", "load.pinned", "kernel embedding/pieces", "a step's graph", "step.results"}) {
        EXPECT_EQ(refused.count(what), 1U) << what;
    }
    EXPECT_TRUE(
        std::ranges::any_of(refused, [](const std::string& what) { return what.starts_with("arena of the "); }));
    engine::test::RecordingSink sink;
    EXPECT_NO_THROW(generated(*first, engine::test::fixture("gpt-oss-mxfp4"), sink));
}

INSTANTIATE_TEST_SUITE_P(Fixture, GpuModel, testing::ValuesIn(engine::test::modelFixtures()), [](const auto& item) {
    std::string name = item.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

} // namespace
} // namespace vitrine::gpu
