// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What a batch takes of a small memory: its pages and its steps, decided before the first of them.

#include "engine/generation/batch_pool.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <optional>

#include "base/error.h"
#include "engine/generation/batch_engine.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

constexpr std::uint64_t kKiB = 1024;

/// What was decided; nothing where memory is too small for any step.
struct Decided {
    std::int64_t pages = 0, tokens = 0;
    std::uint64_t reserved = 0;

    bool operator==(const Decided&) const = default;
};

kernels::ContextOptions contextOf(kernels::Backend backend, const kernels::DeviceTraits& traits, std::uint64_t budget) {
    kernels::ContextOptions options;
    options.backend = backend;
    options.threads = 1;
    options.traits = traits;
    options.memory.deviceBudget = traits.untrackedBytes + budget;
    return options;
}

/// Makes the engine, which backs its pool where memory is short, and looks that the budget holds.
std::optional<Decided> decide(kernels::Backend backend, const kernels::DeviceTraits& traits, const ModelSource& source,
                              const BatchOptions& options, std::uint64_t budget) {
    kernels::Context context(contextOf(backend, traits, budget));
    try {
        Model model(context, source, {false, kernels::DType::F32}, nullptr);
        const BatchEngine engine(model, nullptr, options);
        const std::uint64_t reserved = context.memory().statistics().peakReserved;
        EXPECT_LE(reserved, context.memory().budget());
        return Decided{engine.cache().options().poolPages, engine.scheduler().options().tokenBudget, reserved};
    } catch (const base::OutOfMemory&) {
        return std::nullopt;
    }
}

/// Different kinds of batches.
BatchOptions optionsOf(std::size_t kind) {
    BatchOptions options;
    options.cache.dtype = kind % 3 == 0   ? kernels::DType::F32
                          : kind % 3 == 1 ? kernels::DType::F8E4M3
                                          : kernels::DType::I8;
    options.cache.pageTokens = kind % 4 == 3 ? 16 : 0;
    options.cache.poolPages = kind % 5 == 4 ? 40 : 0;
    options.cache.sharePrefixes = kind % 6 == 5;
    options.scheduler.slots = static_cast<std::int32_t>(1 + kind * 7 % 20);
    options.scheduler.mode = kind % 7 == 6 ? BatchMode::Static : BatchMode::Continuous;
    options.scheduler.preemption = kind % 2 == 1 ? Preemption::Swap : Preemption::Recompute;
    options.scheduler.swapPages = 10;
    options.scheduler.tokenBudget = kind % 8 == 7 ? 32 : 2048;
    if (kind % 3 != 2) { // else nobody knows what comes, as a server does not
        options.longestPrompt = 50 + static_cast<std::int64_t>(kind) * 13;
        options.longestSequence = options.longestPrompt + 100;
    }
    return options;
}

kernels::DeviceTraits cpuTraits() {
    kernels::ContextOptions options;
    options.threads = 1;
    return kernels::Context(options).traits();
}

class PoolOfFixture : public ::testing::TestWithParam<std::string> {};

TEST_P(PoolOfFixture, MoreMemoryIsNeverFewerPages) {
    const ModelSource source = openModel(GetParam());
    const std::size_t first = std::hash<std::string>{}(GetParam());
    const kernels::DeviceTraits gpu = test::testTraits(), cpu = cpuTraits();
    for (std::size_t round = 0; round < 4; ++round) {
        const BatchOptions options = optionsOf((first + round) % 56);
        const kernels::DeviceTraits& traits = round % 2 == 0 ? cpu : gpu;
        const std::uint64_t unit = traits.mapUnit;
        std::optional<Decided> before;
        for (std::uint64_t budget = 512 * kKiB; budget <= 16384 * kKiB; budget += 173 * kKiB + 77 * round) {
            const auto now = decide(kernels::Backend::Meta, traits, source, options, budget);
            const std::string what = fmt::format("{} bytes, slots {}, {}", budget, options.scheduler.slots,
                                                 unit > 64 * kKiB ? "gpu" : "cpu");
            EXPECT_TRUE(now.has_value() || !before.has_value()) << what;
            if (now && before) {
                EXPECT_GE(now->pages, before->pages) << what;
                EXPECT_GE(now->tokens, before->tokens) << what;
            }
            before = now;
        }
        ASSERT_TRUE(before.has_value());
    }
}

/// With the traits of a GPU the CPU decides and takes what Meta does.
TEST_P(PoolOfFixture, TheCpuDecidesAsMetaDoes) {
    const ModelSource source = openModel(GetParam());
    const std::size_t first = std::hash<std::string>{}(GetParam());
    const kernels::DeviceTraits gpu = test::testTraits(), cpu = cpuTraits();
    for (std::size_t round = 0; round < 6; ++round) {
        const BatchOptions options = optionsOf((first + 11 * round) % 56);
        const std::uint64_t budget = (600 + 1700 * round) * kKiB;
        for (const kernels::DeviceTraits& traits : {gpu, cpu}) {
            EXPECT_EQ(decide(kernels::Backend::Cpu, traits, source, options, budget),
                      decide(kernels::Backend::Meta, traits, source, options, budget))
                << budget;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Every, PoolOfFixture,
                         ::testing::Values("synthetic:tiny-llama", "synthetic:tiny-gpt-oss",
                                           test::fixture("gpt-oss-mxfp4"), test::fixture("llama"),
                                           test::fixture("llama-dynamic-rope"), test::fixture("mistral"),
                                           test::fixture("qwen2-sliding"), test::fixture("qwen3-moe"),
                                           test::fixture("gemma2")),
                         [](const auto& parameter) {
                             std::string name = parameter.param.substr(parameter.param.find_last_of("/:") + 1);
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

/// What is not enough is an error before anything runs, in a sentence that names the budget and what helps.
TEST(BatchPool, TooLittleIsAnErrorBeforeAnythingRuns) {
    const ModelSource source = openModel("synthetic:tiny-llama");
    kernels::Context context(contextOf(kernels::Backend::Meta, cpuTraits(), 400 * kKiB));
    Model model(context, source, {false, kernels::DType::F32}, nullptr);
    try {
        const BatchEngine engine(model, nullptr, {});
        ADD_FAILURE() << "there is no room for a page";
    } catch (const base::OutOfMemory& error) {
        EXPECT_NE(error.message().find("of 400.0 KiB free"), std::string::npos) << error.message();
        EXPECT_NE(error.message().find("raise the memory budget"), std::string::npos) << error.message();
    }
}

} // namespace
} // namespace vitrine::engine
