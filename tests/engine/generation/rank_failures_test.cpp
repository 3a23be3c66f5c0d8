// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// One of several ranks fails at a random moment: all others end, the error names the rank, the trace has an end for
// everything that it began, and the next run works.

#include <gtest/gtest.h>
#include <random>
#include <set>
#include <thread>

#include "base/error.h"
#include "engine/generation/generator.h"
#include "kernels/context/device_group.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

constexpr int kRanks = 4;

/// Scopes that began and have not ended, and allocations that live.
class OpenThings final : public base::TraceSink {
public:
    base::StringId intern(std::string_view) override { return {1}; }
    void record(const base::TraceEvent& event) override {
        const std::lock_guard lock(mutex_);
        if (const auto* begin = std::get_if<base::ScopeBeginEvent>(&event)) {
            scopes_.insert(begin->id.value);
        } else if (const auto* end = std::get_if<base::ScopeEndEvent>(&event)) {
            scopes_.erase(end->id.value);
        } else if (const auto* born = std::get_if<base::AllocationEvent>(&event)) {
            blocks_.insert(born->id);
        } else if (const auto* freed = std::get_if<base::FreeEvent>(&event)) {
            blocks_.erase(freed->id);
        }
    }
    std::size_t scopes() const { return scopes_.size(); }
    std::size_t blocks() const { return blocks_.size(); }

private:
    std::mutex mutex_;
    std::set<std::uint64_t> scopes_, blocks_;
};

std::vector<kernels::ContextOptions> rankOptions(base::TraceSink& sink) {
    kernels::ContextOptions options;
    options.threads = 1;
    options.sink = &sink;
    options.profile = kernels::ProfileLevel::Full;
    return std::vector<kernels::ContextOptions>(kRanks, options);
}

std::vector<std::int32_t> generate(kernels::DeviceGroup& group, const ModelSource& source, std::int64_t newTokens) {
    ModelOptions modelled;
    modelled.parallel = {kRanks, 1};
    Model model(group.leader(), source, modelled, nullptr);
    GenerateRequest request;
    request.prompt = {5, 17, 33, 9, 101};
    request.maxNewTokens = newTokens;
    GenerateOptions options;
    options.cache.dtype = kernels::DType::F32;
    GenerateReport report;
    Generator(model, nullptr, options).run({request}, report, {});
    return report.results.front().ids;
}

TEST(RankFailures, OutOfMemoryOnAnyRankEndsAllByItsName) {
    const ModelSource source = openModel(test::fixture("llama-8h"));
    std::mt19937 random{std::random_device{}()};
    int failed = 0;
    for (int round = 0; round < 20; ++round) {
        const int rank = static_cast<int>(random() % kRanks);
        const std::uint64_t from = 1 + random() % 8;
        SCOPED_TRACE(fmt::format("rank {} from reservation {}", rank, from));
        OpenThings open;
        std::vector<kernels::ContextOptions> options = rankOptions(open);
        options[static_cast<std::size_t>(rank)].memory.failFrom = from;
        try {
            kernels::DeviceGroup group(options);
            generate(group, source, 40);
        } catch (const base::OutOfMemory& error) {
            ++failed;
            EXPECT_EQ(error.details().what.substr(0, 6), fmt::format("rank {}", rank)) << error.message();
        }
        EXPECT_EQ(open.scopes(), 0U);
        EXPECT_EQ(open.blocks(), 0U);
    }
    EXPECT_GT(failed, 0);
}

TEST(RankFailures, AStopThatOneRankSeesFirstEndsAll) {
    const ModelSource source = openModel(test::fixture("llama-8h"));
    std::mt19937 random{std::random_device{}()};
    OpenThings open;
    int stopped = 0;
    for (int round = 0; round < 20; ++round) {
        base::StopSource stop;
        std::vector<kernels::ContextOptions> options = rankOptions(open);
        options[random() % kRanks].stop = stop.get_token();
        std::jthread stopper([&, wait = random() % 40] {
            std::this_thread::sleep_for(std::chrono::milliseconds(wait));
            stop.request_stop();
        });
        kernels::DeviceGroup group(options);
        try {
            generate(group, source, 60);
        } catch (const base::Cancelled&) {
            ++stopped;
        }
        EXPECT_EQ(open.scopes(), 0U);
    }
    EXPECT_EQ(open.blocks(), 0U);
    EXPECT_GT(stopped, 0);
}

TEST(RankFailures, AGroupWorksAgainAfterAFailure) {
    const ModelSource source = openModel(test::fixture("llama-8h"));
    OpenThings open;
    kernels::DeviceGroup group(rankOptions(open));
    const std::vector<std::int32_t> expected = generate(group, source, 8);
    for (int rank = 0; rank < kRanks; ++rank) {
        EXPECT_THROW(group.run([&](kernels::Context& context) {
            if (context.rank() == rank) {
                throw base::Unsupported("planted");
            }
        }),
                     base::Unsupported);
        EXPECT_EQ(generate(group, source, 8), expected);
    }
}

} // namespace
} // namespace vitrine::engine
