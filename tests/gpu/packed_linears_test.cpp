// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Models with packed linears on a GPU: the logits of the CPU, wherever the linears were packed.

#include "tests/engine/model/packed_linears.h"

#include <algorithm>
#include <cmath>

#include "engine/model/model.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/gpu/context_testing.h"

namespace vitrine::gpu {
namespace {

using namespace engine;

std::vector<float> packedLogits(kernels::Backend backend, const ModelSource& source, const ModelOptions& options) {
    kernels::ContextOptions contextOptions;
    contextOptions.backend = backend;
    kernels::Context context(contextOptions);
    Model model(context, source, options, nullptr);
    std::vector<std::int32_t> ids;
    for (std::int32_t i = 0; i < 70; ++i) {
        ids.push_back((i * 7 + 3) % 200);
    }
    StepBatch batch;
    batch.sequences = {{0, ids}};
    batch.logits = StepLogits::All;
    std::vector<float> logits(ids.size() * static_cast<std::size_t>(source.config.vocab));
    batch.logitsOut = logits.data();
    model.step(batch);
    return logits;
}

class GpuPackedLinears : public GpuTest {
protected:
    static void expectLogitsOfTheCpu(const ModelSource& source, const ModelOptions& options) {
        const std::vector<float> expected = packedLogits(kernels::Backend::Cpu, source, options);
        const std::vector<float> found = packedLogits(kernels::Backend::Cuda, source, options);
        ASSERT_EQ(found.size(), expected.size());
        float largest = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const float difference = std::abs(expected[i] - found[i]);
            largest = std::isfinite(difference) ? std::max(largest, difference) : 1e30F;
        }
        EXPECT_LT(largest, 1e-3F);
    }
};

TEST_F(GpuPackedLinears, GiveTheLogitsOfTheCpu) {
    for (const bool packedScales : {false, true}) {
        engine::test::PackedTwins twins("llama", packedScales);
        ModelOptions options;
        const ModelSource packed = openModel(twins.writePacked());
        expectLogitsOfTheCpu(packed, options);
        options.dequantize = true;
        expectLogitsOfTheCpu(packed, options);
    }
}

TEST_F(GpuPackedLinears, ArePackedAtLoadToTheBytesOfTheCpu) {
    ModelOptions options;
    options.pack = kernels::WeightFormat::Nf4;
    engine::test::PackedTwins twins("qwen3");
    expectLogitsOfTheCpu(openModel(twins.writeBefore()), options);
    expectLogitsOfTheCpu(openModel("synthetic:tiny-llama", {{"intermediate_size", "192"}}), options);
}

} // namespace
} // namespace vitrine::gpu
