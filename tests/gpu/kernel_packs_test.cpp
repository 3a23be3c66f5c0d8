// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Packs on the device: the pack that comes with the program computes what the built-in kernels do, and kernels are
// compiled before the first step.

#include <algorithm>
#include <cmath>

#include "base/resource_path.h"
#include "engine/generation/generator.h"
#include "engine/model/model.h"
#include "kernels/cuda/jit/kernel_library.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/gpu/context_testing.h"

namespace vitrine::gpu {
namespace {

using namespace engine;

std::unique_ptr<kernels::Context> contextWith(const std::vector<std::string>& packs) {
    kernels::ContextOptions options;
    options.backend = kernels::Backend::Cuda;
    options.cuda.kernelPacks = packs;
    return std::make_unique<kernels::Context>(options);
}

std::vector<float> logitsOf(kernels::Context& context, const ModelSource& source) {
    Model model(context, source, {false, kernels::DType::BF16, 3}, nullptr);
    KvCache cache(context, source.config, {});
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 200; ++i) {
        ids.push_back((i * 7 + 3) % static_cast<int>(source.config.vocab));
    }
    std::vector<float> logits(ids.size() * static_cast<std::size_t>(source.config.vocab));
    StepBatch batch;
    batch.name = "prefill";
    batch.sequences.push_back({cache.addSequence(), ids, true});
    batch.logits = StepLogits::All;
    batch.logitsOut = logits.data();
    model.step(batch, cache);
    return logits;
}

class KernelPacksGpu : public GpuTest {};

TEST_F(KernelPacksGpu, TheSimplePackAgreesWithTheBuiltinKernels) {
    // One layer: after the first experts a rounding could send a token to others.
    const ModelSource source = openModel("synthetic:gpt-oss-20b", {{"num_hidden_layers", "1"}, {"vocab_size", "512"}});
    const auto builtin = contextWith({});
    const std::vector<float> expected = logitsOf(*builtin, source);
    const auto packed = contextWith({base::resourcePath("kernel-packs/simple-moe")});
    const std::vector<float> found = logitsOf(*packed, source);
    const auto uses = packed->cuda()->library().uses();
    EXPECT_TRUE(std::any_of(uses.begin(), uses.end(), [](const kernels::KernelUse& use) {
        return use.family == "expert_gemm" && use.pack == "simple-moe" && use.calls > 0;
    }));
    const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
    float largest = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const float difference = std::abs(expected[i] - found[i]);
        largest = std::isfinite(difference) ? std::max(largest, difference) : 1e30F;
    }
    EXPECT_LT(largest, 0.02F * (*high - *low));
}

/// Names what compiling and choosing know at a moment.
std::vector<std::string> kernelsOf(const kernels::KernelLibrary& library) {
    std::vector<std::string> names;
    for (const kernels::KernelUse& use : library.uses()) {
        names.push_back(use.family + "/" + use.variant + " " + use.specialization);
    }
    return names;
}

/// The kernels at the run's end are those of the moment when compiling ended.
void expectNothingCompiledLate(const std::string& name, const std::vector<GenerateRequest>& requests,
                               std::int64_t chunk) {
    const ModelSource source = openModel(name);
    const auto context = contextWith({});
    Model model(*context, source, {false, kernels::DType::BF16, 3}, nullptr);
    /// The last word on compiling is before the first step.
    class Watch final : public base::ProgressSink {
    public:
        explicit Watch(const kernels::KernelLibrary& library) : library_(library) {}
        void progress(std::string_view what, std::uint64_t done, std::uint64_t total) override {
            if (what == "Compiling kernels" && done == total) {
                compiled = kernelsOf(library_);
            }
        }
        std::vector<std::string> compiled;

    private:
        const kernels::KernelLibrary& library_;
    } watch(context->cuda()->library());
    GenerateOptions options;
    options.cache.dtype = kernels::DType::BF16;
    options.prefillChunk = chunk;
    options.progress = &watch;
    GenerateReport report;
    Generator(model, nullptr, options).run(requests, report, {});
    EXPECT_FALSE(watch.compiled.empty());
    EXPECT_EQ(kernelsOf(context->cuda()->library()), watch.compiled) << name;
}

std::vector<GenerateRequest> requestsOf(std::size_t count, const Sampling& sampling) {
    std::vector<GenerateRequest> requests(count);
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t t = 0; t < 21 + 3 * i; ++t) {
            requests[i].prompt.push_back(static_cast<std::int32_t>(t));
        }
        requests[i].maxNewTokens = 3 + 2 * static_cast<std::int64_t>(i);
        requests[i].sampling = sampling;
    }
    return requests;
}

TEST_F(KernelPacksGpu, KernelsAreCompiledBeforeTheFirstStep) {
    for (const char* name : {"synthetic:tiny-gpt-oss", "synthetic:tiny-llama", "synthetic:tiny-qwen3-moe"}) {
        expectNothingCompiledLate(name, requestsOf(1, {}), 0);
        // Batches that shrink from 20 rows to one; the prompts end in pieces of different lengths.
        expectNothingCompiledLate(name, requestsOf(20, {}), 64);
        Sampling sampling;
        sampling.temperature = 0.8F;
        sampling.topK = 20;
        expectNothingCompiledLate(name, requestsOf(3, sampling), 17);
    }
}

TEST_F(KernelPacksGpu, AnyNumberOfRowsMayBeLeftByStopTokens) {
    std::vector<GenerateRequest> requests = requestsOf(12, {});
    for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i].maxNewTokens = 12;
        for (std::int32_t id = 0; id < 1000; ++id) {
            if (id % 12 <= static_cast<std::int32_t>(i)) {
                requests[i].stopTokens.push_back(id);
            }
        }
    }
    expectNothingCompiledLate("synthetic:tiny-gpt-oss", requests, 0);
}

} // namespace
} // namespace vitrine::gpu
