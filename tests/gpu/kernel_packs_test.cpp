// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Packs on the device: the pack that comes with the program computes what the built-in kernels do, and kernels are compiled
// before the first step.

#include <algorithm>
#include <cmath>

#include "engine/generation/generator.h"
#include "engine/model/model.h"
#include "kernels/jit/kernel_library.h"
#include "tests/engine/model_test_support.h"
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
    // One layer: behind the first experts a rounding could send a token to others.
    const ModelSource source = openModel("synthetic:gpt-oss-20b", {{"num_hidden_layers", "1"}, {"vocab_size", "512"}});
    const auto builtin = contextWith({});
    const std::vector<float> expected = logitsOf(*builtin, source);
    const auto packed = contextWith({VITRINE_RESOURCES "/kernel-packs/simple-moe"});
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

TEST_F(KernelPacksGpu, KernelsAreCompiledBeforeTheFirstStep) {
    const ModelSource source = openModel("synthetic:tiny-gpt-oss");
    const auto context = contextWith({});
    Model model(*context, source, {false, kernels::DType::BF16, 3}, nullptr);
    GenerateRequest request;
    for (int i = 0; i < 21; ++i) {
        request.prompt.push_back(i);
    }
    request.maxNewTokens = 9;
    GenerateOptions options;
    options.cache.dtype = kernels::DType::BF16;
    const kernels::KernelLibrary& library = context->cuda()->library();
    std::size_t atFirst = 0;
    GenerateReport report;
    Generator(model, nullptr, options).run({request}, report, [&](const GeneratedToken& token) {
        if (token.index == 0) {
            atFirst = library.uses().size();
        }
    });
    EXPECT_GT(atFirst, 0U);
    EXPECT_EQ(library.uses().size(), atFirst) << "a decode step compiled a kernel";
}

} // namespace
} // namespace vitrine::gpu
