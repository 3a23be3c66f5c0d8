// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Memory that is given back between phases goes to the driver, and what follows is as without that.

#include <vector>

#include "engine/training/passes/trainer.h"
#include "kernels/memory/memory.h"
#include "tests/bytes.h"
#include "tests/engine/training/training_test_support.h"
#include "tests/gpu/context_testing.h"

namespace vitrine::gpu {
namespace {

using namespace engine;

using vitrine::test::kMiB;

class GpuGiveBack : public GpuTest {};

void appendTo(KvCache& cache, int sequence, std::int64_t tokens) {
    const KvAppend more{sequence, tokens};
    cache.reserve({&more, 1});
    cache.commit({&more, 1});
}

TEST_F(GpuGiveBack, APoolOfPagesShrinksToNothingAndGrowsAgain) {
    const auto context = cudaContext();
    KvCacheOptions options;
    options.kind = KvCacheKind::Paged;
    options.poolPages = 4096;
    options.poolSequences = 2;
    options.sharePrefixes = true;
    KvCache cache(*context, openModel("synthetic:gpt-oss-20b").config, options);
    const std::uint64_t before = context->cuda()->usedBytes();
    for (int round = 0; round < 2; ++round) {
        const int sequence = cache.addSequence();
        appendTo(cache, sequence, 20'000);
        EXPECT_GT(context->cuda()->usedBytes(), before + 400 * kMiB);
        cache.removeSequence(sequence);
        cache.giveBack();
        EXPECT_EQ(cache.poolBytes(), 0U);
        EXPECT_LT(context->cuda()->usedBytes(), before + 16 * kMiB);
    }
}

/// Losses of four steps of full fine-tuning with inputs of layers on the host.
std::vector<double> lossesOf(kernels::Backend backend, bool givesBack) {
    const engine::test::TrainedModel trained("llama", kernels::DType::F32, backend);
    kernels::Memory& memory = trained.context->memory();
    TrainedState state(*trained.context, engine::test::allTensors(*trained.model), {});
    Trainer trainer(*trained.model, state, {Checkpointing::Offload, 8, 0});
    TrainingBatch batch;
    std::vector<std::int32_t> ids(600);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        ids[i] = static_cast<std::int32_t>((i * i * 7 + 3) % 200);
    }
    batch.addDocument(ids);
    std::vector<double> out;
    for (std::int64_t step = 1; step <= 4; ++step) {
        out.push_back(trainer.step({&batch, 1}, trainer.nextToken(), 1e-3, step).loss);
        if (givesBack) {
            const std::uint64_t reserved = memory.statistics().reserved;
            const std::uint64_t host = memory.hostStatistics().current;
            trainer.giveBack();
            EXPECT_LT(memory.statistics().reserved, reserved);
            EXPECT_LT(memory.hostStatistics().current, host);
        }
    }
    return out;
}

TEST_F(GpuGiveBack, StepsAfterItAreThoseWithoutIt) {
    const std::vector<double> expected = lossesOf(kernels::Backend::Cuda, false);
    EXPECT_EQ(lossesOf(kernels::Backend::Cuda, true), expected);
    const std::vector<double> reference = lossesOf(kernels::Backend::Cpu, true);
    for (std::size_t step = 0; step < expected.size(); ++step) {
        EXPECT_NEAR(expected[step], reference[step], 1e-3 * reference[step]) << step;
    }
}

} // namespace
} // namespace vitrine::gpu
